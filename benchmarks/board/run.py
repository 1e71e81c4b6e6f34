#!/usr/bin/env python3
"""Runs the board: rows of ours and of their peers, interleaved, on the GPU or the CPU of this machine.

    run.py [--device=cuda|cpu] [--rows=1b,20] [--output=board.json] ...

Every result is compared with float64 before it is timed. --output is written anew after each row, so what is done
stays when the run is stopped, by Ctrl-C too. A kernel that hangs, or that takes the device's context down, costs its
row: the command starts itself again for the rest. report.py makes a table in Markdown and pictures of the file.
Ends with 0 unless a result of ours is wrong or a row fails; no time makes it fail.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import re
import signal
import sys
import threading
import time
import traceback

import machine
import prepare
import report
import rows as board
import system
from arrays import NumpyArrays, TorchArrays
from engine import Library
from measure import blank, measure
from timing import first_line


@dataclasses.dataclass
class Settings:
    device: str
    library: Library
    arrays: object
    torch: object
    best: dict
    stream: object
    columns: tuple
    pairs: int
    seconds: float
    compile_s: float
    without: frozenset
    only: frozenset
    variants: dict  # of our kernels, by name: arguments of Library.compile
    prepared: dict = dataclasses.field(default_factory=dict)  # what prepare() says of rows

    @property
    def stream_handle(self):
        return None if self.stream is None else self.stream.cuda_stream

    def synchronize(self):
        if self.stream is not None:
            self.stream.synchronize()


PEERS = ("eager", "compile", "bilinear", "avg_pool2d", "dequantised", "grouped_mm", "cublasLt", "addmm_activation",
         "channels_last", "cuDNN", "FlashAttention", "Triton", "CuPy", "OpenBLAS")


def names(known):
    """Reads names of a flag, separated by commas, all of them known."""

    def read(text):
        given = tuple(name.strip() for name in text.split(",") if name.strip())
        for name in given:
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no '{name}'; there are {', '.join(known)}")
        return given

    return read


def peaks(text):
    try:
        return {key: float(value) for key, value in (pair.split("=") for pair in text.split(",") if pair)}
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not like half=720e12,float=55e12") from None


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--device", choices=("cuda", "cpu"), default="", help="what to measure; default: cuda where PyTorch finds one")
    add("--rows", default="", help="numbers, such as 1b,20, or beginnings of titles: '18 causal'; default: all")
    add("--options",
        choices=("default", "tuned"),
        default="default",
        help="tuned: a kernel by the options of --cache too")
    add("--cache", default="", help="the file of tuned options that 'tensorc tune' left")
    add("--mapping", default="", help="options as text for one more kernel of ours, 'given'")
    add("--peers", type=names(PEERS), default="", help="only these peers, such as eager,cublasLt; default: all")
    add("--without", type=names(PEERS), default="", help="peers that stay away, such as compile, which tunes for tens of seconds a row")
    add("--system", action="store_true", help="first measure what a launch and a compilation cost on the GPU")
    add("--columns",
        type=names(("hot", "cold")),
        default="hot,cold",
        help="hot, cold or both: whether the L2 cache holds the tensors")
    add("--compile_cache",
        default="",
        help="folder where torch.compile keeps what it has tuned, for the next run; default: PyTorch's own")
    add("--prepare",
        type=int,
        default=-1,
        help="processes that run torch.compile for all rows before any is timed; 0: each row when its time has come; "
        "default: half of the cores for a GPU, 0 for the CPU")
    add("--prepare_seconds",
        type=float,
        default=0,
        help="at most, for that; what is not compiled then goes without torch.compile; default: until all is done")
    add("--pairs", type=int, default=30, help="turns; fewer if they would take longer than --seconds")
    add("--seconds", type=float, default=8, help="for the turns of a row")
    add("--compile_seconds", type=float, default=30, help="for compiling one kernel of ours")
    add("--limit", type=float, default=1e9, help="seconds after which no further row is started")
    add("--hang", type=float, default=120, help="seconds after which a row counts as hung, torch.compile's apart")
    add("--output", default="", help="JSON file to write; default: board.json")
    add("--library", default="", help="libtensorc.so; default: beside the board or in build/")
    add("--bandwidth", type=float, default=0, help="of the memory, in bytes/s, for the floor")
    add("--peak", type=peaks, default="", help="half=720e12,float=55e12,...: operations/s, for the floor")
    add("--list", action="store_true", help="list the rows")
    add("--show", action="store_true", help="print the programs of the rows")
    add("--resume", action="store_true", help="keep the rows that --output has, and run the others")
    add("--began", type=float, default=time.time(), help=argparse.SUPPRESS)  # where start_again() goes on
    return parser.parse_args()


def plain(title):
    """As keyboards have it: "4 tmm f32 128×32×256" is "4 tmm 128x32x256"."""
    title = title.lower().replace("×", "x").replace("_", " ")
    return re.sub("[²³]| f(16|32)\\b", "", title)


def chosen(arguments, device):
    rows = [entry.row() for entry in (board.CPU if device == "cpu" else board.GPU)]
    whole = [row for row in rows if row.title == arguments.rows]  # which may have commas
    whole = whole or [row for row in rows if plain(row.title) == plain(arguments.rows)]
    if whole:
        return whole
    wanted = [plain(text.strip()) for text in arguments.rows.split(",") if text.strip()]
    if not wanted:
        return rows

    def is_called(row, text):
        return row.number.lower() == text or (" " in text and plain(row.title).startswith(text))

    for text in wanted:
        if not any(is_called(row, text) for row in rows):
            sys.exit(f"run.py: no row is called {text}; --list says which there are")
    return [row for row in rows if any(is_called(row, text) for text in wanted)]


def import_torch():
    try:
        import torch
        return torch
    except ImportError:
        return None


def open_run(arguments, device, torch):
    """Settings of a run, and its heading for the file."""
    stream = None
    if device == "cuda":
        stream = torch.cuda.Stream()
    library = Library(arguments.library)
    facts = machine.gpu_facts(torch) if device == "cuda" else machine.cpu_facts()
    given = {"bandwidth": arguments.bandwidth} if arguments.bandwidth else {}
    given |= arguments.peak
    best, source = machine.figures(device, facts["name"], torch, given)
    variants = {"ours": {}}
    if arguments.options == "tuned":
        variants["tuned"] = {"cache": arguments.cache}
    if arguments.mapping:
        variants["given"] = {"options": arguments.mapping}
    settings = Settings(device=device,
                        library=library,
                        arrays=TorchArrays(device) if torch else NumpyArrays(),
                        torch=torch,
                        best=best,
                        stream=stream,
                        columns=(arguments.columns or ("hot", "cold")) if device == "cuda" else ("hot", ),
                        pairs=arguments.pairs,
                        seconds=arguments.seconds,
                        compile_s=arguments.compile_seconds,
                        without=frozenset(arguments.without),
                        only=frozenset(arguments.peers),
                        variants=variants)
    heading = {
        "device": device, "machine": facts, "versions": machine.versions() | {"tensorc": library.version}, "revision":
        machine.revision(), "library": library.digest(), "figures": best, "figures_from": source, "date":
        time.strftime("%Y-%m-%d"), "pairs": arguments.pairs, "options": arguments.options, "rows": []
    }
    return settings, heading


def resumed(path, heading):
    """The document of --output, which `heading` describes too: rows of two builds or machines do not share a file."""
    document = report.read(path)

    def told(one):
        facts = {"machine": one["machine"]["name"]} | {key: one.get(key) for key in ("revision", "library", "options")}
        return facts | {"turns": one["pairs"]}

    old, new = told(document), told(heading)
    differing = [f"{key} {old[key]}, now {new[key]}" for key in new if old[key] != new[key]]
    if differing:
        sys.exit(f"run.py: {path} has rows of another run ({'; '.join(differing)}); another --output begins anew")
    return document


def save(path, document):
    part = path.with_suffix(".part")
    part.write_text(json.dumps(document, indent=1, ensure_ascii=False), encoding="utf-8")
    part.replace(path)


def start_again(path, document, result, began):
    """Notes a row whose fault this process does not survive, and goes on in a new one."""
    document["rows"].append(result)
    save(path, document)
    sys.stdout.flush()
    again = [a for a in sys.argv if a != "--resume" and not a.startswith("--began=")]
    os.execv(sys.executable, [sys.executable] + again + ["--resume", f"--began={began}"])


def prepare_rows(rows, arguments, settings, document):
    """Compiles ahead what is not done, unless a run that was begun again has; notes what became of each row."""
    jobs = arguments.prepare
    if jobs < 0:
        jobs = len(os.sched_getaffinity(0)) // 2 if settings.device == "cuda" else 0
    away = settings.torch is None or "compile" in settings.without or (settings.only and "compile" not in settings.only)
    if jobs and not away and "prepared" not in document:
        done = {f"{result['number']} {result['name']}" for result in document["rows"]}
        begin = time.monotonic()
        print(f"torch.compile in {jobs} processes ...", flush=True)
        found = prepare.prepare([row for row in rows if row.title not in done], settings.device, jobs,
                                arguments.prepare_seconds)
        document["prepared"] = {"jobs": jobs, "seconds": round(time.monotonic() - begin, 1), "rows": found}
        compiled = sum("fault" not in row for row in found.values())
        print(f"{compiled} of {len(found)} rows in {document['prepared']['seconds']:.0f} s", flush=True)
    settings.prepared = document.get("prepared", {}).get("rows", {})


def run_row(row, settings, arguments, path, document):
    """Measures a row under a watch. A fault of the row is its result; the device's ends the process for a new one."""
    patience = arguments.hang + (0 if "compile" in settings.without else 300) + 4 * arguments.seconds
    hung = dict(blank(row, settings), status="failed", message=f"hung: not done after {patience:.0f} s")
    watch = threading.Timer(patience, start_again, (path, document, hung, arguments.began))
    watch.daemon = True
    watch.start()
    try:
        if settings.torch is None:
            return measure(row, settings)
        with settings.torch.inference_mode(), settings.torch.cuda.stream(settings.stream):
            return measure(row, settings)
    except Exception as fault:
        traceback.print_exc()
        result = dict(blank(row, settings), status="failed", message=first_line(fault))
        try:
            settings.synchronize()
        except Exception:
            watch.cancel()
            start_again(path, document, result, arguments.began)
        return result
    finally:
        watch.cancel()
        if settings.stream is not None:
            settings.torch.cuda.empty_cache()


def run_rows(rows, settings, arguments, path, document):
    done = {f"{result['number']} {result['name']}" for result in document["rows"]}
    for place, row in enumerate(rows, 1):
        if row.title in done:
            continue
        elapsed = time.time() - arguments.began
        if elapsed > arguments.limit:
            print(f"the time is over after {place - 1} of {len(rows)} rows")
            document["stopped"] = f"--limit after {place - 1} of {len(rows)} rows"
            break
        if sys.stderr.isatty():
            print(f"\r[{place}/{len(rows)}] {elapsed:5.0f} s  {row.title}\033[K\r", end="", file=sys.stderr, flush=True)
        result = run_row(row, settings, arguments, path, document)
        document["rows"].append(result)
        save(path, document)
        print(report.text_line(result), flush=True)
    save(path, document)


def main():
    arguments = parse()
    if arguments.compile_cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(pathlib.Path(arguments.compile_cache).resolve())
    torch = import_torch()
    device = arguments.device or ("cuda" if torch and torch.cuda.is_available() else "cpu")
    rows = chosen(arguments, device)
    if arguments.list or arguments.show:
        for row in rows:
            print(f"# {row.title}: {row.entry}" +
                  "".join(f" {tensor.name}{list(tensor.shape)}" for tensor in row.inputs))
            if arguments.show:
                print(row.source)
        return 0
    if device == "cuda" and (torch is None or not torch.cuda.is_available()):
        sys.exit("run.py: --device=cuda needs PyTorch with a GPU")
    if arguments.options == "tuned" and not pathlib.Path(arguments.cache).is_file():
        sys.exit(f"run.py: --options=tuned needs --cache: there is no file '{arguments.cache}'")
    path = pathlib.Path(arguments.output or "board.json")
    if not os.access(path.parent, os.W_OK):
        sys.exit(f"run.py: --output={path}: there is no folder {path.parent} to write to")
    try:
        settings, document = open_run(arguments, device, torch)
    except OSError as fault:
        sys.exit(f"run.py: {fault}")
    if arguments.resume and path.exists():
        document = resumed(path, document)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(report.heading(document))
    print(report.text_header(document))
    try:
        if arguments.system and device == "cuda" and "system" not in document:
            with torch.cuda.stream(settings.stream):
                document["system"] = system.figures(settings)
            print("\n".join(report.system_table(document)))
        prepare_rows(rows, arguments, settings, document)
        run_rows(rows, settings, arguments, path, document)
    except KeyboardInterrupt:
        document["stopped"] = f"stopped by hand after {len(document['rows'])} of {len(rows)} rows"
        save(path, document)
        print(f"\nstopped; {path} has the {len(document['rows'])} rows that are done")
    return 1 if any(result["status"] in ("wrong", "failed") for result in document["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
