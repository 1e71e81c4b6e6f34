#!/usr/bin/env python3
"""Measures plans of ours against those that the compiler chooses, on a GPU: what was built to be faster and waits for
figures, or for a reason to become the default.

    compare_plans.py [--sections=transpose,tbmm,look-ups,gather,atomics,unroll] [--seconds=S] [--output=FILE.json]
                     [--list]

Every result is compared with float64 first; what is wrong is not timed. Plans of a row take turns, each turn a CUDA
graph between two events, as on the board. Prints for each plan the median of its turns, tensors in the L2 cache and not,
the ratio to the default's, the time that NVRTC took, and what is wrong or refused; --output gets the same and more.
Sections are measured for at most --seconds each (100), rows that find no time are named. Ends with 1 if a result is
wrong or a plan is refused; no time makes it fail.
"""
import argparse
import dataclasses
import json
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(folder / "board") for folder in (HERE, HERE.parent)]  # as a bundle has it; in the sources

import workloads as w  # noqa: E402

GATHER = """
def gather(float(V,K) E, int32(N) I, float(K,M) W) -> (Z) {
  Z(n,m) +=! E(I(n),k) * W(k,m)
}
"""
TRANSPOSE = "def transpose({0}(N,M) A) -> (B) {{ B(i,j) = A(j,i) }}\n"


@dataclasses.dataclass(frozen=True)
class Race:
    """A row and the mapping options of its plans by name; "ours" is the compiler's choice."""

    row: w.Row
    plans: dict


def tiles(*, tile, registers, threads, more=""):
    return f"tile: {list(tile)} register_tile: {list(registers)} map_to_threads: {list(threads)} {more}".strip()


def transposition(m, n, type="float"):
    row = w.row("20", f"transpose {type} {m}×{n}", "", "transpose", [w.Tensor("A", (m, n), type)],
                [w.Tensor("B", (n, m), type)], lambda xp, a: (a.T, ), text=TRANSPOSE.format(type))
    return Race(
        row, {
            "vectors, 256 threads": "map_to_threads: [8, 32, 1]", "vectors, 512 threads": "map_to_threads: [8, 64, 1]",
            "elements, 256 threads": "map_to_threads: [32, 8, 1]", "elements, 512 threads": "map_to_threads: [32, 16, 1]"
        })


def gathered(v, n, k, m):
    row = w.row("3", f"{n} rows of {v}×{k} times {k}×{m}", "", "gather",
                [w.Tensor("E", (v, k)), w.Tensor("I", (n, ), "int", below=v), w.Tensor("W", (k, m))],
                [w.Tensor("Z", (n, m))], lambda xp, e, i, x: (e[i] @ x, ), flops=2 * n * k * m, text=GATHER)
    return Race(row, {"straight to shared memory": "max_gathered_memory: 0",
                      "through workspace": f"max_gathered_memory: {1 << 32}"})


def total(name, text, shape, result, numpy):
    """Sums of parts of a tensor: added up by another launch, or by atomic updates."""
    row = w.row("20", name, "", "total", [w.Tensor("x", shape)], [w.Tensor("s", result)], numpy, text=text)
    return Race(row, {"two stages": "atomic_reduction: false", "atomics": "atomic_reduction: true"})


def split_product(number, m, n, k, **more):
    """A matrix product whose reduction is cut into parts."""
    row = w.gemm(number, f"{m}×{k}×{n} (M, K, N)", m, n, k, "float", **more)
    return Race(row, {
        f"{parts} parts, {name}": f"split_reduction: {parts} atomic_reduction: {value}"
        for parts in (2, 4, 8, 16) for name, value in (("two stages", "false"), ("atomics", "true"))
    })


def look_ups():
    """Two tables: more rows of a table in flight at once, or more of a row in each thread."""
    return Race(w.lut("9", "2LUT batch 128", tables=2, entries=10_000_000, batch=128, looks=50), {
        "one look-up at once, 2 elements": "unroll: 1 register_tile: [1, 2]",
        "one look-up at once, 1 element": "unroll: 1 register_tile: [1, 1]",
        "8 at once, 2 elements": "unroll: 8 register_tile: [1, 2]",
        "16 at once, 2 elements": "unroll: 16 register_tile: [1, 2]",
        "8 at once, 1 element": "unroll: 8 register_tile: [1, 1]",
    })


def product(number, m, n, k, shape, unrolls, **more):
    """A matrix product by one plan, of which more or less of a step is laid out."""
    row = w.gemm(number, f"{m}×{k}×{n} (M, K, N)", m, n, k, "float", **more)
    return Race(row, {f"unroll {count}": f"{shape} unroll: {count}" for count in unrolls})


def tbmm():
    """One warp for each batch element waits for copies, then for its own products: more warps, or other shapes."""
    shapes = {
        "all copies ahead": tiles(tile=(1, 28, 28, 24), registers=(1, 4, 7), threads=(4, 7, 1), more="copy_stages: 4"),
        "all copies ahead, steps of 36": tiles(tile=(1, 28, 28, 36), registers=(1, 4, 7), threads=(4, 7, 1),
                                               more="copy_stages: 3"),
        "two groups of a warp": tiles(tile=(1, 28, 28, 24), registers=(1, 4, 7), threads=(4, 7, 2)),
        "steps of 12, 4 buffers": tiles(tile=(1, 28, 28, 12), registers=(1, 4, 7), threads=(4, 7, 1),
                                        more="copy_stages: 4"),
        "steps of 36": tiles(tile=(1, 28, 28, 36), registers=(1, 4, 7), threads=(4, 7, 1)),
        "all at once": tiles(tile=(1, 28, 28, 72), registers=(1, 4, 7), threads=(4, 7, 1)),
        "exact tiles": tiles(tile=(1, 26, 26, 24), registers=(1, 2, 13), threads=(2, 13, 1)),
        "exact tiles, 52 threads": tiles(tile=(1, 26, 28, 24), registers=(1, 2, 7), threads=(4, 13, 1)),
    }
    return Race(w.tbmm("6", "tbmm f32 500×26×72×26", 500, 26, 72, 26), shapes)


def sections():
    return {
        "transpose": [transposition(8192, 8192), transposition(8192, 4096), transposition(8188, 8196),
                      transposition(8192, 8192, "half"), transposition(2048, 2048)],
        "tbmm": [tbmm()],
        "look-ups": [look_ups()],
        "gather": [gathered(100_000, 65_536, 256, 128), gathered(100_000, 1 << 20, 128, 64)],
        "atomics": [
            total("sum of 10⁸", "def total(float(N) x) -> (s) { s +=! x(i) }\n", (100_000_000, ), (),
                  lambda xp, x: (x.sum(), )),
            total("sums of 64 columns of 10⁶", "def total(float(N,M) x) -> (s) { s(m) +=! x(n,m) }\n", (1_000_000, 64),
                  (64, ), lambda xp, x: (x.sum(0), )),
            total("sums of 4096 columns of 4096", "def total(float(N,M) x) -> (s) { s(m) +=! x(n,m) }\n", (4096, 4096),
                  (4096, ), lambda xp, x: (x.sum(0), )),
            split_product("4", 128, 1024, 1024, transposed=True), split_product("4", 128, 256, 32, transposed=True),
            split_product("4", 128, 16384, 4096, transposed=True), split_product("5", 1024, 1024, 1024),
        ],
        "unroll": [product("4", 128, 16384, 4096,
                           tiles(tile=(128, 128, 32), registers=(8, 8), threads=(16, 16, 1), more="copy_stages: 3"),
                           (256, 512, 1024), transposed=True),
                   product("5", 1024, 1024, 1024,
                           tiles(tile=(64, 128, 32), registers=(8, 8), threads=(16, 8, 2), more="copy_stages: 4"),
                           (128, 256, 512))],
    }


class Recorder:
    """The library, and what its compilations took."""

    def __init__(self, library):
        self.library, self.passes = library, {}

    def compile(self, row, device, options="", limit_s=60):
        kernel = self.library.compile(row, device, options=options, limit_s=limit_s)
        self.passes[options] = kernel.pass_times()
        return kernel


def measured(race, settings, library):
    """A result as the board's of a row, without peers; NVRTC's milliseconds of each plan beside it."""
    from measure import blank, exact_results, make_sets, our_contestants, time_all
    settings.library = Recorder(library)
    settings.variants = {"ours": {}} | {name: {"options": text} for name, text in race.plans.items()}
    result = blank(race.row, settings)
    sets = make_sets(race.row, settings.arrays, "cuda")
    right = exact_results(race.row, settings.arrays, sets[0])
    contestants = our_contestants(race.row, sets, right, settings, result)
    time_all(contestants, settings, result)
    result["nvrtc_ms"] = {
        name: settings.library.passes.get(race.plans.get(name, ""), {}).get("nvrtc") for name in settings.variants
    }
    return result


def print_result(result, race):
    print(f"-- {result['number']} {result['name']}: floor {result['floor_us']:.1f} us")
    if result["status"] != "ok":
        print(f"   {result['status']}: {result['message']}")
    default = {column: us["median"] for column, us in result["us"].get("ours", {}).items()}
    for name, columns in result["us"].items():
        times = "  ".join(
            f"{column} {us['median']:9.2f} us ({us['high'] - us['low']:.2f}), {default[column] / us['median']:5.3f}"
            for column, us in columns.items() if column in default)
        nvrtc = result["nvrtc_ms"].get(name)
        text = result["options"].get(name, "") if name == "ours" else race.plans[name]
        print(f"   {name:28} {times}  nvrtc {nvrtc or 0:5.0f} ms  {' '.join(text.split())}")
    for name, note in result["notes"].items():
        print(f"   {name}: {note}")
    sys.stdout.flush()


def faulty(result, race):
    return result["status"] != "ok" or any(name in result["notes"] for name in race.plans)


def open_settings(arguments):
    import torch
    import machine
    from arrays import TorchArrays
    from engine import Library
    from run import Settings
    library, facts = Library(arguments.library), machine.gpu_facts(torch)
    best, source = machine.figures("cuda", facts["name"], torch, {})
    settings = Settings(device="cuda", library=library, arrays=TorchArrays("cuda"), torch=torch, best=best,
                        stream=torch.cuda.Stream(), columns=("hot", "cold"), pairs=arguments.pairs, seconds=0,
                        compile_s=30, without=frozenset(), only=frozenset(), variants={})
    heading = {"machine": facts, "versions": machine.versions() | {"tensorc": library.version}, "revision":
               machine.revision(), "figures": best, "figures_from": source, "date": time.strftime("%Y-%m-%d")}
    return settings, library, heading


def run_section(races, settings, library, seconds):
    """Results of a section, the races that found no time, and whether all was right."""
    from timing import first_line
    results, late, right = [], [], True
    end = time.monotonic() + seconds
    for i, race in enumerate(races):
        left = end - time.monotonic()
        if left <= 0:
            late.append(race.row.title)
            continue
        settings.seconds = 0.5 * left / (len(races) - i)  # the other half for tensors, compilations and checks
        try:
            with settings.torch.inference_mode(), settings.torch.cuda.stream(settings.stream):
                result = measured(race, settings, library)
        except Exception as fault:
            print(f"-- {race.row.title}: {first_line(fault)}", flush=True)
            right = False
            continue
        print_result(result, race)
        results.append(result)
        right = right and not faulty(result, race)
    return results, late, right


def list_plans(wanted):
    for name in wanted:
        for race in sections()[name]:
            print(f"{name}: {race.row.title}")
            for plan, text in {"ours": "", **race.plans}.items():
                print(f"    {plan}: {text or 'what the compiler chooses'}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", default=",".join(sections()))
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--pairs", type=int, default=30, help="turns; fewer if time is short")
    parser.add_argument("--output", default="", help="JSON file, written after each section")
    parser.add_argument("--library", default="", help="libtensorc.so; default: beside the board or in build/")
    parser.add_argument("--list", action="store_true", help="print rows and plans, measure nothing")
    arguments = parser.parse_args()
    wanted = [name for name in arguments.sections.split(",") if name]
    if unknown := [name for name in wanted if name not in sections()]:
        sys.exit(f"compare_plans.py: no section is called {unknown[0]}; there are {', '.join(sections())}")
    if arguments.list:
        return list_plans(wanted)
    settings, library, document = open_settings(arguments)
    document["sections"], all_right = {}, True
    for name in wanted:
        print(f"== {name}", flush=True)
        results, late, right = run_section(sections()[name], settings, library, arguments.seconds)
        for title in late:
            print(f"-- {title}: no time left", flush=True)
        document["sections"][name] = {"rows": results, "late": late}
        all_right = all_right and right
        if arguments.output:
            pathlib.Path(arguments.output).write_text(json.dumps(document, indent=1, ensure_ascii=False), "utf-8")
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
