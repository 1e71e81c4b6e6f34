"""The board's machinery without a GPU: python3 -m pytest benchmarks/board (needs NumPy, and the library in build/)."""
import argparse
import contextlib
import dataclasses
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import arrays  # noqa: E402
import engine  # noqa: E402
import measure  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
import timing  # noqa: E402

# Of rows that differ in sizes alone, the first.
DIFFERENT = list({(entry.row().entry, entry.row().text): entry for entry in reversed(rows.GPU + rows.CPU)}.values())
NAMES = [f"{entry.number} {entry.name}" for entry in DIFFERENT]


@pytest.fixture(scope="session")
def library():
    return engine.Library()


@pytest.mark.parametrize("entry", DIFFERENT, ids=NAMES)
def test_program_agrees_with_float64(entry, library):
    row = entry.row(small=True)
    place = arrays.NumpyArrays()
    inputs = [place.make(tensor) for tensor in row.inputs]
    outputs = [place.empty(tensor) for tensor in row.outputs]
    right = row.reference(np, *[place.exact(a, t) for a, t in zip(inputs, row.inputs)])
    assert not all((exact == 0).all() for exact in right)
    library.compile(row, place.device).call(inputs, outputs)()
    assert arrays.worst_error([place.exact(a, t) for a, t in zip(outputs, row.outputs)], right) <= row.tolerance


def test_every_size_is_used():
    """Two rows with one program differ in their tensors, or in the options that say what results mean."""
    titles = [entry.row().title for entry in rows.GPU + rows.CPU]
    assert len(set(titles)) == len(titles)
    shapes = [(row.entry, row.text, row.peak, row.mapping, tuple(t.shape for t in row.inputs))
              for row in (entry.row() for entry in rows.GPU)]
    assert len(set(shapes)) == len(shapes)


def test_sizes_and_scalars_are_those_of_the_program():
    sizes = {entry.row().title: entry.row() for entry in rows.GPU}
    assert sizes["7 group conv f32 C=F=4 H=W=56"].sizes() == dict(N=32, G=32, C=4, H=56, W=56, F=4, KH=3, KW=3)
    assert sizes["11 MLP chain f16 4096×128, 4 layers"].sizes() == dict(B=4096, N=128, L=4)
    assert sizes["21 conv 7×7 f16 NHWC 32×3×224² → 64"].sizes() == dict(N=32, H=224, W=224, C=3, F=64)
    assert sizes["23 int8 weights f16 8192×8192, 16 rows"].sizes() == dict(M=16, K=8192, N=8192, G=64)
    assert sizes["19 conv pair f16 1×64×56²"].sizes() == dict(N=1, C=64, H=56, W=56)
    assert sizes["17 rmsnorm f16 4096×4096"].scalar_values() == dict(eps=1e-5)
    for row in (entry.row() for entry in rows.GPU + rows.CPU):
        tensors = [(dims, name) for _, dims, name in row.parameters() if dims]
        assert [name for _, name in tensors] == [tensor.name for tensor in row.inputs], row.title
        found = [tuple(row.sizes().get(dim) or int(dim) for dim in dims) for dims, _ in tensors]
        assert found == [tensor.shape for tensor in row.inputs], row.title


def test_flops_and_bytes_give_the_floors():
    """The floors that a machine of 4.25 TB/s, 720 (half), 365 (TF32) and 55 TFLOP/s has, computed by hand."""
    floors = {
        "1 gemm f16 8192³": 1527, "1c gemm TF32 4096³": 376.5, "4 tmm f32 128×4096×16384": 312.4, "7 group conv f32 C=F=4 H=W=56": 23.3,
        "8 depthwise f32 NCHW": 46.7, "9 LUT batch 65536": 197.4, "11 MLP chain f16 4096×128, 20 layers": 3.7,
        "12 GPT-3 MLP f16, 1 row": 71, "13 LLaMA MLP f16, 2048 rows": 394, "14 LSTM-like cell f16 4096×1024×1024": 23.9,
        "15 BCE of a gemm f16 4096×8192×1024": 95.4, "16 softmax f16 32768×4096": 126.3,
        "18 causal attention f16 4×16×4096×128": 381.8, "19 conv pair f16 16×512×7²": 10.3,
        "20 batchnorm f32 32×256×56²": 72.5, "20 moments f32 64×10⁶": 60.2,
        "21 conv 3×3 f16 NHWC 32×512×7² → 512": 10.3, "21 conv 1×1 f16 NCHW 32×256×56² → 64": 15.1,
        "21 conv 7×7 f16 NCHW 32×3×224² → 64": 14.4, "22 bmm f16 512 × (512×64×512)": 79,
        "22 bmm f16 64 × (128×2048×128)": 16.3, "22 bmm f16 4096 × (64×64×64)": 23.7,
        "23 int8 weights f16 8192×8192, 1 row": 16,
        "24 64 experts bf16, 4096 tokens, 2048→1408": 94, "25 separable blur 3×3 f32 8192²": 126.3
    }
    best = {"bandwidth": 4.25e12, "half": 720e12, "tf32": 365e12, "fp8": 1410e12, "float": 55e12}
    from machine import floor_us
    found = {entry.row().title: floor_us(entry.row(), best) for entry in rows.GPU}
    for title, floor in floors.items():
        assert found[title] == pytest.approx(floor, rel=0.02), title


def test_error_counts_nan_and_small_elements():
    exact = [np.array([1.0, -1.0, 0.0])]
    assert arrays.worst_error([np.array([1.0, -1.0, 0.0])], exact) == 0
    assert arrays.worst_error([np.array([1.0, -1.0, 0.1])], exact) == pytest.approx(0.1 / math.sqrt(2 / 3))
    assert math.isnan(arrays.worst_error([np.array([1.0, math.nan, 0.0])], exact))
    assert arrays.worst_error([np.zeros(3)], [np.zeros(3)]) == 0
    with pytest.raises(ValueError, match="shape"):
        arrays.worst_error([np.zeros((3, 1))], exact)


@pytest.mark.parametrize("name, largest", [("bfloat16", 0x7F7F), ("float8_e4m3", 0x7E)])
def test_floats_that_numpy_lacks(name, largest):
    """Each finite value is its own rounding, and the tensors' poison is no value."""
    kind = arrays.BITS[name]
    bits = np.arange(largest + 1, dtype=kind.bits)
    assert (kind.encode(kind.decode(bits)) == bits).all()
    assert (kind.decode(kind.encode(-kind.decode(bits))) == -kind.decode(bits)).all()
    assert np.isnan(kind.decode(np.array([kind.nan], kind.bits))).all()


def test_float8_rounds_to_the_nearest_even():
    values = [0.0, 2.0**-10, 3 * 2.0**-10, 1.0625, 1.1875, -1.07, 448.0, 1e9, -1e9]
    decoded = arrays.Float8E4M3.decode(arrays.Float8E4M3.encode(np.array(values)))
    assert decoded.tolist() == [0.0, 0.0, 2.0**-8, 1.0, 1.25, -1.125, 448.0, 448.0, -448.0]


def test_bfloat16_rounds_to_the_nearest():
    place, tensor = arrays.NumpyArrays(), rows.w.Tensor("t", (3, ), "bfloat16")
    bits = arrays.Bfloat16.encode(np.array([1.0, 1 + 2**-9, 1 + 3 * 2**-8]))
    assert place.exact(bits, tensor).tolist() == [1.0, 1.0, 1 + 2**-6]


class FakeCuda:
    """What timing.py uses of PyTorch, with a clock that launches move."""

    def __init__(self):
        self.now, self.replays, self.capturing, fake = 0.0, [], False, self

        class Event:

            def __init__(self, enable_timing):
                self.at = math.nan

            def record(self, stream):
                self.at = fake.now

            def synchronize(self):
                pass

            def elapsed_time(self, end):
                return (end.at - self.at) / 1e3

        class CUDAGraph:

            def replay(self):
                fake.now += self.us
                fake.replays.append(self.name)

        @contextlib.contextmanager
        def graph(made, stream, capture_error_mode):
            begin, fake.capturing = fake.now, True
            yield
            made.us, made.name, fake.now, fake.capturing = fake.now - begin, fake.last, begin, False

        self.cuda = type("cuda", (), {"Event": Event, "CUDAGraph": CUDAGraph, "graph": staticmethod(graph)})

    def synchronize(self):
        pass

    def kernel(self, name, us, sets=(), host_us=0):
        """Takes `us` in a graph; launched by the host, as long as that takes if it is longer."""

        def launch(i):
            self.now, self.last = self.now + (us if self.capturing else max(us, host_us)), name
            sets.append(i) if isinstance(sets, list) else None

        return launch


def test_turns_alternate_and_keep_to_the_seconds():
    fake, seen = FakeCuda(), []
    pair = [
        timing.Contestant("ours", fake.kernel("ours", 100, seen), 7),
        timing.Contestant("eager", fake.kernel("eager", 50), 7)
    ]
    assert timing.time_column(fake, pair, "cold", fake, pairs=30, seconds=100) == {}
    assert fake.replays[-64:] == ["ours", "eager"] * (30 + timing.WARM_TURNS)
    assert pair[0].us["cold"] == [pytest.approx(100)] * 30 and pair[1].us["cold"] == [pytest.approx(50)] * 30
    assert seen[-7:] == list(range(7))
    slow = [timing.Contestant("ours", fake.kernel("ours", 1e6), 1)]
    timing.time_column(fake, slow, "hot", fake, pairs=30, seconds=10)
    assert len(slow[0].us["hot"]) == 8


def test_turns_are_counted_by_the_device_and_not_by_the_host():
    """A kernel of 4 µs whose launch keeps the host busy for 40."""
    fake = FakeCuda()
    short = timing.Contestant("ours", fake.kernel("ours", 4, host_us=40), 1000)
    timing.time_column(fake, [short], "cold", fake, pairs=30, seconds=0.2)
    assert short.us["cold"] == [pytest.approx(4)] * 30
    timing.capture(fake, short, "hot", fake)
    assert short.graphs["hot"][1] * 4 >= timing.GRAPH_US


def test_a_peer_that_cannot_be_captured_is_named():
    fake = FakeCuda()
    calls = []

    def launch(i):
        calls.append(i)
        if len(calls) > 4:
            raise RuntimeError("operation not permitted\nwhen stream is capturing")

    pair = [timing.Contestant("ours", fake.kernel("ours", 1000), 1), timing.Contestant("odd", launch, 1)]
    failed = timing.time_column(fake, pair, "hot", fake, pairs=3, seconds=1)
    assert failed == {"odd": "cannot be captured: operation not permitted"}
    assert len(pair[0].us["hot"]) == 3 and "hot" not in pair[1].us


def settings_for(library, variants=None):
    import run
    import types
    made = run.Settings(device="cpu",
                        library=library,
                        arrays=arrays.NumpyArrays(),
                        torch=None,
                        best={"bandwidth": 1e10, "float": 1e11, "half": 1e11, "tf32": 1e11, "fp8": 1e11},
                        stream=None,
                        columns=("hot", ),
                        pairs=2,
                        seconds=0.01,
                        compile_s=20,
                        without=frozenset(),
                        only=frozenset(),
                        variants=variants or {"ours": {}})
    return made, types.SimpleNamespace(hang=60, seconds=0.01, limit=1e9, began=time.time())


def entry_called(title):
    return next(entry for entry in rows.GPU + rows.CPU if f"{entry.number} {entry.name}" == title)


def test_wrong_results_are_shown_and_not_timed(library):
    settings, _ = settings_for(library)
    row = entry_called("20 copy f32 10⁸").row(small=True)
    wrong = dataclasses.replace(row, reference=lambda xp, a: (a * 1.001, ))
    result = measure.measure(wrong, settings)
    assert result["status"] == "wrong" and result["us"] == {} and "off by" in result["message"]
    assert "wrong" in report.text_line(result)
    assert measure.measure(row, settings)["status"] == "ok"


@pytest.mark.parametrize("title", ["C1 sgemm 1024³", "C1 sgemm 1024³, second operand by columns"])
def test_openblas_takes_turns_without_pytorch(library, title):
    settings, _ = settings_for(library)
    result = measure.measure(entry_called(title).row(small=True), settings)
    assert result["status"] == "ok" and result["error"]["OpenBLAS"] < 1e-4
    assert result["notes"] == {"PyTorch": "not installed"}
    assert measure.best_peer(result)[0] == "OpenBLAS" and report.ratio(result) > 0


def test_refusals_and_options(library):
    settings, _ = settings_for(library, {"ours": {}, "given": {"options": "tile: -1"}})
    row = dataclasses.replace(entry_called("20 copy f32 10⁸").row(small=True), refused="there is no word for it")
    refused = measure.measure(row, settings)
    assert refused["status"] == "not expressible" and "no word" in report.text_line(refused)
    copied = measure.measure(entry_called("20 copy f32 10⁸").row(small=True), settings)
    assert "hot" in copied["us"]["ours"] and "given" not in copied["us"] and "tile" in copied["notes"]["given"]


def test_options_of_a_row_are_asked_for(tmp_path):
    """PyTorch's allow_tf32 is an option here; a def that rounds needs none."""
    import tune
    arguments = argparse.Namespace(tool="tensorc", device="cuda", cache="c", generations=1, population=2, jobs=1)
    row, file = entry_called("1c gemm TF32 4096³").row(), tmp_path / "0.tc"
    assert row.mapping == "tf32: true" and row.entry == "gemm_f32"
    assert f"--options={tmp_path}/0.options" in tune.command_of(row, file, 1, arguments)
    rounded = entry_called("1c gemm TF32 rounded 4096³").row()
    assert rounded.mapping == "" and "tf32(A(m,k))" in rounded.source and rounded.peak == "tf32"
    assert not any("--options" in word for word in tune.command_of(rounded, file, 1, arguments))


def test_a_cache_without_options_for_a_row_is_said(library, tmp_path):
    """The file has the kernel; nothing has been measured in it."""
    row, path = entry_called("20 copy f32 10⁸").row(small=True), tmp_path / "tuned.cache"
    assert not library.compile(row, (1, 0), cache=path, keep=True).from_cache
    assert library.compile(row, (1, 0), cache=path).from_cache
    settings, _ = settings_for(library, {"ours": {}, "tuned": {"cache": str(path)}})
    result = measure.measure(row, settings)
    assert "hot" in result["us"]["ours"] and "tuned" not in result["us"]
    assert result["notes"]["tuned"] == "the cache has no options for this row"


def test_a_run_is_written_after_each_row_and_resumed(library, tmp_path, capsys):
    import run
    settings, arguments = settings_for(library)
    chosen = [entry_called(title).row(small=True) for title in ("20 copy f32 10⁸", "20 window sum f32 10⁸")]
    document = {"rows": [], "machine": {"name": "M"}}
    path = tmp_path / "board.json"
    run.run_rows(chosen[:1], settings, arguments, path, document)
    assert [row["name"] for row in json.loads(path.read_text())["rows"]] == ["copy f32 10⁸"]
    run.run_rows(chosen, settings, arguments, path, document)
    assert [row["name"] for row in json.loads(path.read_text())["rows"]] == ["copy f32 10⁸", "window sum f32 10⁸"]
    assert capsys.readouterr().out.count("\n") == 2
    arguments.began, arguments.limit = 0, 5
    run.run_rows([entry_called("20 transpose f32 8192²").row(small=True)], settings, arguments, path, document)
    assert "stopped" in json.loads(path.read_text()) and len(document["rows"]) == 2


def started(script, tmp_path, *flags):
    """run.py, or a script in its place, over two CPU rows without PyTorch."""
    command = [sys.executable, str(script), "--device=cpu", "--rows=C2 softmax f32 128,C3 layernorm f32 128",
               "--pairs=2", "--bandwidth=1e10", "--peak=float=1e11", f"--output={tmp_path / 'board.json'}", *flags]
    return subprocess.Popen(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


FAKE = """
import sys, time
sys.path.insert(0, {here!r})
import measure, run

def fake(row, settings):
    if "softmax" in row.name:
        print("sleeping", flush=True)
        time.sleep(600)
    return measure.blank(row, settings)

run.measure = fake
sys.exit(run.main())
"""


def test_a_row_that_hangs_costs_itself_only(tmp_path):
    script = tmp_path / "fake.py"
    script.write_text(FAKE.format(here=str(HERE)), encoding="utf-8")
    running = started(script, tmp_path, "--hang=0.5", "--seconds=0.1", "--without=compile")
    text, _ = running.communicate(timeout=100)
    found = json.loads((tmp_path / "board.json").read_text(encoding="utf-8"))["rows"]
    assert [(row["name"][:7], row["status"]) for row in found] == [("softmax", "failed"), ("layerno", "ok")], text
    assert found[0]["message"].startswith("hung: not done after") and running.returncode == 1


def test_rows_of_another_build_are_not_resumed(tmp_path):
    import run
    begun = a_document() | {"library": "cafe"}
    path = tmp_path / "board.json"
    run.save(path, begun)
    assert run.resumed(path, begun | {"rows": [], "date": "2026-02-02"})["rows"] == begun["rows"]
    with pytest.raises(SystemExit, match=r"rows of another run \(revision abc, now abd; library cafe, now f00d\)"):
        run.resumed(path, begun | {"revision": "abd", "library": "f00d"})


def test_the_revision_is_gits_and_a_bundles_own(tmp_path):
    """A folder of a repository that does not have the file is a bundle's, or a copy's."""
    import machine
    copied = tmp_path / "machine.py"
    copied.write_text((HERE / "machine.py").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "revision").write_text("noted\n", encoding="utf-8")

    def revision():
        command = [sys.executable, "-c", "import machine; print(machine.revision())"]
        environment = os.environ | {"PYTHONPATH": str(HERE)}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True,
                              check=True).stdout.strip()

    def git(*words):
        settings = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        return subprocess.run(["git", *settings, *words], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert revision() == "noted"
    git("init")
    assert revision() == "noted"
    git("add", "machine.py")
    git("commit", "-m", "all")
    assert revision() == git("rev-parse", "--short=12", "HEAD").strip()
    copied.write_text(copied.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert revision() == git("rev-parse", "--short=12", "HEAD").strip() + "+"


def test_what_the_cpu_reaches_is_the_fastest_products(monkeypatch):
    import machine
    monkeypatch.setattr(machine, "least_seconds", lambda function: function())
    monkeypatch.setattr(machine, "cpu_products", lambda torch: [lambda: 2.0, lambda: 0.5, lambda: 1.0])
    monkeypatch.setattr(machine.np, "copyto", lambda target, source: 0.25)
    assert machine.measured_cpu(None) == {"bandwidth": 8 * 2**28, "float": 2 * 2048**3 / 0.5}


def test_ctrl_c_keeps_what_is_done(tmp_path):
    script = tmp_path / "fake.py"
    script.write_text(FAKE.format(here=str(HERE)).replace("softmax", "layernorm"), encoding="utf-8")
    running = started(script, tmp_path)
    assert "sleeping\n" in iter(running.stdout.readline, "")
    running.send_signal(signal.SIGINT)
    text, _ = running.communicate(timeout=100)
    document = json.loads((tmp_path / "board.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in document["rows"]] == ["softmax f32 128×100"]
    assert document["stopped"] == "stopped by hand after 1 of 2 rows" and "has the 1 rows that are done" in text


CREW = """
import json, sys, time
for line in sys.stdin:
    if "softmax f32 128" in line:
        sys.exit(3)
    if "layernorm f32 4096" in line:
        time.sleep(3600)
    print(json.dumps({"seconds": 1, "device": sys.argv[1]}), flush=True)
"""


def test_rows_are_compiled_ahead(tmp_path):
    """One by a process that ends, one by a process that hangs: they cost themselves only, whatever the time."""
    import prepare
    script = tmp_path / "crew.py"
    script.write_text(CREW, encoding="utf-8")
    chosen = [entry.row() for entry in rows.CPU if entry.number in ("C2", "C3", "C4")]
    found = prepare.prepare(chosen, "cpu", 1, patience=6, script=script)
    assert list(found) == [row.title for row in chosen]
    assert found["C2 softmax f32 128×100"] == {"fault": "the process that compiled it ended"}
    assert found["C3 layernorm f32 4096×1024"] == {"fault": "not compiled within 6 s"}
    others = [answer for title, answer in found.items() if "128×100" not in title and "norm f32 4096" not in title]
    assert others == [{"seconds": 1, "device": "cpu"}] * 4
    hanging = [row for row in chosen if "layernorm f32 4096" in row.title]
    assert prepare.prepare(hanging, "cpu", 1, seconds=0.1, script=script) == {
        "C3 layernorm f32 4096×1024": {"fault": "not compiled within 0 s"}
    }


def test_processes_time_their_choices_in_turns(tmp_path):
    import prepare
    first, second = prepare.Turns(tmp_path / "turns"), prepare.Turns(tmp_path / "turns")
    entered = []

    def enter():
        with second.taken():
            entered.append("second")

    other = threading.Thread(target=enter)
    with first.taken():
        with first.taken():
            other.start()
            other.join(0.2)
        other.join(0.2)
        entered.append("first")
    other.join()
    assert entered == ["first", "second"]


def test_what_was_not_compiled_ahead_is_left_out_and_said(library):
    torch, _ = peers_on_cpu()
    settings, _ = settings_for(library)
    settings.torch, settings.arrays = torch, arrays.TorchArrays("cpu")
    row = entry_called("20 copy f32 10⁸").row(small=True)
    settings.prepared = {row.title: {"fault": "not compiled within 2 s"}}
    result = measure.measure(row, settings)
    assert "eager" in result["us"] and "compile" not in result["us"]
    assert result["notes"]["compile"] == "not compiled within 2 s"


def test_launches_are_timed_in_c_as_well(library):
    import launches
    row = entry_called("20 copy f32 10⁸").row(small=True)
    place = arrays.NumpyArrays()
    kernel = library.compile(row, (1, 0))
    assert list(kernel.pass_times())[0] == "parse"
    source, target = (place.make(tensor) for tensor in row.inputs + row.outputs)
    call = kernel.call([source], [target], 0)
    assert launches.us_from_c(call, lambda: None) > 0 and (target == source).all()
    assert launches.us_from_python(call, lambda: None) > 0
    with pytest.raises(engine.Refused, match="a launch fails"):
        launches.us_from_c(kernel.call([source], [source], 0), lambda: None)


def a_result(name, ours, peer, goal, **more):

    def times(median):
        return {"hot": {"median": median, "low": median * 0.98, "high": median * 1.02, "least": median, "turns": 30}}

    us = {} if ours is None else {"ours": times(ours)}
    return {
        "number": "20", "name": name, "status": "ok", "message": "", "goal": goal, "floor_us": 50.0, "us":
        us | {"eager": times(peer), "compile": times(peer * 2)}, "notes": {}
    } | more


def a_document():
    results = [
        a_result("copy f32 10⁸", 100.0, 150.0, ["us", 120]),
        a_result("moments f32 64×10⁶", 200.0, 100.0, ["ratio", 1.0]),
        a_result("transpose f32 8192²",
                 None,
                 10.0, ["us", 9],
                 status="wrong",
                 message="off by 0.5",
                 notes={"CuPy": "not | here"})
    ]
    return {
        "device": "cuda", "machine": {"name": "NVIDIA X1 Y", "clocks.sm": "1 MHz"}, "versions": {"torch": "2"},
        "revision": "abc", "figures": {"bandwidth": 4e12}, "figures_from": "known", "date": "2026-01-01", "pairs": 30,
        "options": "default", "rows": results
    }


def test_table():
    first, second, third = (dict(zip(report.COLUMNS, report.cells(row))) for row in a_document()["rows"])
    assert first["ours"] == "100" and first["peer"] == "150" and first["which"] == "eager" and first[
        "peer / ours"] == "1.50"
    assert first["of floor"] == "50%" and first["spread"] == "4.0%" and first["goal"] == "≤ 120 µs, yes"
    assert second["peer / ours"] == "0.50" and second["goal"] == "≥ 1×, no"
    assert third["ours"] == "wrong" and third["peer / ours"] == "" and third["goal"] == "≤ 9 µs, no"


def test_tuned_rows_that_do_not_count_have_a_table_of_their_own():
    tuned = a_document()
    fast = tuned["rows"][0]
    fast["us"]["tuned"] = {"hot": dict(fast["us"]["ours"]["hot"], median=80.0)}
    fast["us"].pop("compile")
    document, = report.joined([a_document(), tuned])
    assert "tuned" not in document["rows"][2]["us"]
    assert report.searched_table(document)[2:] == ["| 20 | copy f32 10⁸ | 100 | 80 | 1.25 |  | 150 | eager | 1.88 |"]
    assert "by options that a search found" in report.markdown([document], {})
    alone, = report.joined([tuned])
    assert not report.searched(alone) and "by options that a search found, in" not in report.markdown([alone], {})


def test_goals_need_what_they_compare():
    alone = a_result("copy f32 10⁸", 100.0, 150.0, ["ratio", 1.0])
    assert report.reached(alone) is True
    alone["us"].pop("compile")
    assert report.goal_text(alone) == "≥ 1×, yes*" and report.goal_text(alone | {"goal": ["us", 120]}) == "≤ 120 µs, yes"
    assert report.goal_text(alone | {"goal": ["ratio", 2]}) == "≥ 2×, no"
    alone["us"] = {"ours": alone["us"]["ours"]}
    assert report.reached(alone) is None and report.reached(alone | {"goal": ["us", 90]}) is False


def test_markdown_and_pictures(tmp_path):
    earlier, later = a_document(), a_document()
    earlier["rows"][0]["us"]["ours"]["hot"]["median"] = 1.0
    later["prepared"] = {"jobs": 8, "seconds": 99.7, "rows": {"20 copy f32 10⁸": {"seconds": 9}}}
    for name, document in (("a.json", earlier), ("b.json", later)):
        (tmp_path / name).write_text(json.dumps(document), encoding="utf-8")
    command = [sys.executable, str(HERE / "report.py"), "b.json", "a.json", "--markdown=board.md"]
    drawn = subprocess.run([sys.executable, "-c", "import matplotlib"], capture_output=True).returncode == 0
    done = subprocess.run(command + ["--pictures=board"] * drawn, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "board.md").read_text(encoding="utf-8")
    assert text.count("## NVIDIA X1 Y") == 1
    said = f"3 of the board's {len(rows.GPU)} rows were run, 2 of ours right and timed; 1 at least as fast as the best "
    said += "peer; 1 of 3 goals reached. torch.compile is among the peers of 3 rows; 0 goals (*) are reached without it."
    assert said in " ".join(text.split())
    assert "| 20 | copy f32 10⁸ | 100 |" in text  # not the last file's: that of the lower ratio
    assert "- 20 transpose f32 8192²: wrong: off by 0.5" in text and "- CuPy, row 20: not | here" in text
    assert "- compile: max-autotune ran in 8 processes" in text and "100 s for 1 rows" in text
    order = [text.index(name) for name in ("moments f32", "transpose f32", "copy f32")]
    assert order == sorted(order)
    if drawn:
        assert "(board-x1-y.svg)" in text and (tmp_path / "board-x1-y.png").stat().st_size > 1000
        assert "</svg>" in (tmp_path / "board-x1-y.svg").read_text(encoding="utf-8")


TOOL = """#!/usr/bin/env python3
import sys
print("best 1 us; 1 of 3 done; none failed; 5 s left")
print(*sys.argv[1:2], *sys.argv[3:6])
sys.exit("--entry=layernorm_f32" in sys.argv)
"""


def test_rows_are_tuned_side_by_side(tmp_path):
    tool = tmp_path / "tensorc"
    tool.write_text(TOOL, encoding="utf-8")
    tool.chmod(0o755)
    command = [sys.executable, str(HERE / "tune.py"), "--device=cpu", "--rows=C2 softmax f32 128,C3 layernorm f32 128",
               "--jobs=2", f"--cache={tmp_path / 'cache'}", f"--tool={tool}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert set(done.stdout.splitlines()) == {
        "# C2 softmax f32 128×100", "tune --entry=softmax_f32 --sizes=N=128,D=100 --backend=cpu",
        "# C3 layernorm f32 128×768", "tune --entry=layernorm_f32 --sizes=N=128,D=768 --backend=cpu"
    }
    done = subprocess.run(command + ["--limit=0"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout.count("not searched: the time is over") == 2


SLOW_TOOL = """#!/usr/bin/env python3
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to end"))
print("begun", file=open({path!r}, "a"), flush=True)
time.sleep(3600)
"""


@pytest.mark.parametrize("script", ["tune.py", "../tuning.py"])
def test_ctrl_c_ends_searches(script, tmp_path):
    """Of three, two at once: none is begun after the others are asked to end."""
    tool, begun = tmp_path / "tensorc", tmp_path / "begun"
    tool.write_text(SLOW_TOOL.format(path=str(begun)), encoding="utf-8")
    tool.chmod(0o755)
    begun.touch()
    flags = ["--device=cpu", "--rows=C1,C2", f"--cache={tmp_path / 'cache'}"] if script == "tune.py" else []
    running = subprocess.Popen([sys.executable, str(HERE / script), "--jobs=2", f"--tool={tool}", *flags],
                               stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE,
                               text=True)
    while begun.read_text(encoding="utf-8").count("begun") < 2:
        assert running.poll() is None, running.communicate()
    running.send_signal(signal.SIGINT)
    _, complaint = running.communicate(timeout=100)
    assert running.returncode == 1 and "stopped" in complaint and "Traceback" not in complaint
    assert begun.read_text(encoding="utf-8").count("begun") == 2


def test_options_that_break_the_kernel_end_the_row():
    pytest.importorskip("torch", reason="PyTorch is not installed: its side is not tested")
    sys.path.insert(0, str(HERE.parent / "gpu"))
    import time_options
    answers = {"a": (2.0, 0.0, 1.0), "b": engine.Refused("no\nplan"), "c": (1.0, 9.0, 1.0), "d": RuntimeError("gone")}

    def time_text(text):
        if isinstance(answers[text], Exception):
            raise answers[text]
        return answers[text]

    right = [(2.0, 1.0, "a", "")]
    assert time_options.time_texts("ab", time_text, 0.1, math.inf) == (right, ["refused: b: no"], True)
    wrong = [*right, (1.0, 1.0, "c", "  WRONG")]
    assert time_options.time_texts("ac", time_text, 0.1, math.inf) == (wrong, [], False)
    assert time_options.time_texts("ada", time_text, 0.1, math.inf) == (right, ["FAILED: d: gone"], False)


def test_searches_are_measured_by_their_histories(tmp_path):
    tool = tmp_path / "tensorc"
    tool.write_text("""#!/bin/sh
case "$*" in *moments*) echo 'error: no such device' >&2; exit 1;; esac
for word; do case "$word" in --history=*) history=${word#--history=};; esac; done
printf 'problem,outcome,us,options\\np,done,20,\\np,refused,0,x\\np,done,10,tile: 8\\n' >"$history"
""", encoding="utf-8")
    tool.chmod(0o755)
    command = [sys.executable, str(HERE.parent / "tuning.py"), "--backend=sim", "--rows=20 copy,20 moments",
               f"--tool={tool}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "| 20 copy f32 10⁸ | 20 µs | 10 µs | 10 µs | 0.50 | 1.00 | 1 of 3 | `tile: 8` |" in done.stdout
    assert "| 20 moments f32 64×10⁶ | error: no such device |" in done.stdout
    assert "Geometric means of 1 of 2 rows, those whose search was complete: default 0.500 (1 below 0.85)" in done.stdout


def test_rows_are_chosen_as_keyboards_have_them():
    import argparse
    import run

    def titles(text):
        return [row.title for row in run.chosen(argparse.Namespace(rows=text), "cuda")]

    assert titles("4 tmm 128x32x256") == ["4 tmm f32 128×32×256"] == titles("4 tmm f32 128×32×256")
    assert titles("5 gemm 1024, 20 window_sum") == ["5 gemm f32 1024³", "20 window sum f32 10⁸"]
    assert titles("22 bmm 4096 x (64x64x64)") == ["22 bmm f16 4096 × (64×64×64)"]
    assert titles("7 group_conv C=F=32") == ["7 group conv f32 C=F=32 H=W=7"]
    assert titles("11 MLP chain f16 4096×128, 4 layers") == ["11 MLP chain f16 4096×128, 4 layers"]
    assert titles("11 mlp chain 4096x128, 4 layers") == ["11 MLP chain f16 4096×128, 4 layers"]
    assert len(titles("1")) == 3 and len(titles("")) == len(rows.GPU)
    assert len(run.chosen(argparse.Namespace(rows="C1"), "cpu")) == 2
    with pytest.raises(SystemExit, match="no row is called 27"):
        titles("27")


def test_commands_list_and_show():

    def printed(*flags):
        return subprocess.run([sys.executable, str(HERE / "run.py"), *flags],
                              capture_output=True,
                              text=True,
                              check=True).stdout

    assert "# C1 sgemm 1024³: gemm_f32 A[1024, 1024] B[1024, 1024]" in printed("--device=cpu", "--list")
    assert "# 20 copy f32 10⁸" in printed("--device=cuda", "--list", "--rows=20")
    shown = printed("--device=cuda", "--show", "--rows=11 MLP chain f16 4096×128, 4 layers")
    assert "half X3(b,n) = half(relu(S2(b,n) + bias(2,n)))" in shown


def test_flags_that_say_nothing_known_end_the_run(tmp_path):
    (tmp_path / "empty.json").write_text("[]")
    for script, flags, sentence in (
        ("run.py", ["--peers=eager,cublas"], "there is no 'cublas'; there are eager, compile, "),
        ("run.py", ["--without=triton"], "there is no 'triton'; there are "),
        ("run.py", ["--columns=warm"], "there is no 'warm'; there are hot, cold"),
        ("run.py", ["--peak=half:3"], "'half:3' is not like half=720e12"),
        ("run.py", ["--rows=C2,C7"], "no row is called c7"),
        ("run.py", [f"--output={tmp_path}/none/board.json"], "there is no folder"),
        ("run.py", [f"--output={tmp_path}/board.json", "--library=/none.so"], "/none.so: cannot open"),
        ("report.py", [f"{tmp_path}/none.json"], "none.json: No such file"),
        ("report.py", [f"{tmp_path}/empty.json"], "empty.json: this is no file that run.py wrote"),
    ):
        device = ["--device=cpu"] if script == "run.py" else []
        done = subprocess.run([sys.executable, str(HERE / script), *device, *flags], capture_output=True, text=True)
        assert done.returncode != 0 and sentence in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_flags_know_every_peer():
    import run
    _, peers = peers_on_cpu()
    known = {name for entries, device in ((rows.GPU, "cuda"), (rows.CPU, "cpu"))
             for entry in entries for name in peers.peers_of(entry.row(), device)}
    assert known == set(run.PEERS)


def peers_on_cpu():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: its side is not tested")
    import peers
    return torch, peers


@pytest.mark.parametrize("entry", DIFFERENT, ids=NAMES)
def test_peers_agree_with_float64(entry):
    """PyTorch's programs, where they run on a CPU."""
    torch, peers = peers_on_cpu()
    row, place = entry.row(small=True), arrays.TorchArrays("cpu")
    inputs = [place.make(tensor) for tensor in row.inputs]
    right = row.reference(torch, *[place.exact(a, t) for a, t in zip(inputs, row.inputs)])
    away = {"compile", "cublasLt", "Triton", "CuPy", "cuDNN", "FlashAttention"}
    for name, prepare in (peers.peers_of(row, "cuda") | peers.peers_of(row, entry.device)).items():
        if name not in away:
            try:
                results = peers.results_of(row, prepare(row, [inputs])(0))
            except peers.Missing:
                continue
            assert arrays.worst_error([result.double() for result in results], right) <= row.tolerance, name
