#!/usr/bin/env python3
"""Products of float16 of random shapes against PyTorch and cuBLASLt, on a GPU: where the compiler's choice is not enough.

    sweep.py [--count=60] [--seed=1] [--kinds=aligned,odd] [--candidates] [--output=FILE] ...

A shape is M, N, K between 16 and --most, each drawn evenly on a logarithmic scale, of at most --flops operations.
Aligned ones are multiples of 8 (sizes to 256) or 64; of odd ones at least one size is no multiple of 8. Every result is
compared with float64, and our kernel and its peers run in turn in CUDA graphs, as on the board. --candidates times a
list of tiles for each shape too, as time_options.py does, and says how far the compiler's choice is behind the best of
them. Prints a line a shape, worst last, then the geometric mean, the worst shape and how many are below 0.85. Ends with
1 if a result is wrong; no time makes it fail.
"""
import argparse
import json
import math
import pathlib
import random
import sys
import time

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(folder / "board") for folder in (HERE, HERE.parent)]  # as a bundle has it; in the sources

import workloads  # noqa: E402
from arrays import TorchArrays  # noqa: E402
from engine import Library  # noqa: E402
from machine import figures, gpu_facts  # noqa: E402
from measure import best_peer, exact_results, measure  # noqa: E402
from run import Settings  # noqa: E402
from time_options import time_texts, timed  # noqa: E402

TILES = [(128, 256, 64), (256, 128, 64), (128, 192, 64), (128, 128, 64), (128, 128, 128), (128, 64, 64), (64, 256, 64),
         (64, 128, 64), (64, 64, 64), (192, 128, 64), (128, 32, 64), (64, 32, 128), (32, 64, 64), (32, 32, 128),
         (16, 64, 128)]


def size(random_numbers, most, aligned):
    value = round(math.exp(random_numbers.uniform(math.log(16), math.log(most))))
    if not aligned:
        return value
    step = 8 if value <= 256 else 64
    return max(16, round(value / step) * step)


def shapes(kind, count, seed, most, flops):
    numbers, found = random.Random(f"{kind} {seed}"), []
    while len(found) < count:
        m, n, k = (size(numbers, most, kind == "aligned") for _ in range(3))
        if 2 * m * n * k <= flops and (kind == "aligned" or any(s % 8 for s in (m, n, k))) and m * n * k >= 1 << 18:
            found.append((m, n, k))
    return found


def row_of(kind, m, n, k):
    return workloads.gemm(kind, f"{m}x{n}x{k}", m, n, k)


def best_of_candidates(row, settings, arguments):
    """(microseconds of the compiler's choice, those of the best candidate, its options), measured alike."""
    with torch.inference_mode(), torch.cuda.stream(settings.stream):
        inputs = [settings.arrays.make(tensor) for tensor in row.inputs]
        right = exact_results(row, settings.arrays, inputs)
        texts = [""] + [f"tile: [{m}, {n}, {k}] tensor_cores: true" for m, n, k in TILES]
        results, _, _ = time_texts(
            texts, lambda text: timed(row, settings.library, text, inputs, right, settings.stream, arguments),
            row.tolerance, time.monotonic() + 120)
    own = next(us for us, _, text, _ in results if not text)
    us, _, text, _ = min(result for result in results if not result[3])
    return own, us, text


def measure_shape(row, settings, arguments):
    with torch.inference_mode(), torch.cuda.stream(settings.stream):
        result = measure(row, settings)
    found = {"kind": row.number, "shape": row.name, "status": result["status"], "options": result["options"].get("ours"),
             "message": result["message"], "floor_us": result["floor_us"]}
    peer = best_peer(result)
    if result["status"] == "ok" and peer and "hot" in result["us"].get("ours", {}):
        found |= {"ours": result["us"]["ours"]["hot"]["median"], "peer": peer[1], "which": peer[0]}
        found["ratio"] = found["peer"] / found["ours"]
    if arguments.candidates and result["status"] == "ok":
        own, best, text = best_of_candidates(row, settings, arguments)
        found |= {"own": own, "best": best, "best_options": text}
    return found


def line_of(found):
    text = f"{found['kind']:8} {found['shape']:>16}"
    if "ratio" not in found:
        return f"{text}  {found['status']}: {found['message']}"
    text += f"  ours {found['ours']:8.2f}  {found['which']} {found['peer']:8.2f}  {found['ratio']:5.2f}"
    if "best" in found:
        text += f"  best candidate {found['best'] / found['own']:5.2f} of ours: {found['best_options']}"
    return text


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def summary(kind, found):
    ratios = [one["ratio"] for one in found if one["kind"] == kind and "ratio" in one]
    if not ratios:
        return f"{kind}: no shape was timed"
    text = (f"{kind}: {len(ratios)} shapes, geometric mean {mean(ratios):.2f}, worst {min(ratios):.2f}, "
            f"{sum(ratio < 0.85 for ratio in ratios)} below 0.85")
    gains = [one["best"] / one["own"] for one in found if one["kind"] == kind and "best" in one]
    if gains:
        text += (f"; the choice reaches {mean(gains):.2f} of the best candidate, "
                 f"{sum(gain < 0.95 for gain in gains)} shapes below 0.95")
    return text


def settings_of(arguments):
    library, device = Library(arguments.library), "cuda"
    best, _ = figures(device, gpu_facts(torch)["name"], torch, {})
    return Settings(device=device, library=library, arrays=TorchArrays(device), torch=torch, best=best,
                    stream=torch.cuda.Stream(), columns=("hot",), pairs=arguments.pairs,
                    seconds=arguments.each, compile_s=30, without=frozenset(["compile"]), only=frozenset(),
                    variants={"ours": {}})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--count", type=int, default=60, help="shapes of each kind")
    add("--seed", type=int, default=1)
    add("--kinds", default="aligned,odd")
    add("--most", type=int, default=8192, help="of M, N and K")
    add("--flops", type=float, default=6e11, help="operations of a shape, at most")
    add("--candidates", action="store_true", help="time other tiles for each shape, too")
    add("--pairs", type=int, default=8, help="turns")
    add("--turns", type=int, default=5, help="of each candidate")
    add("--each", type=float, default=1, help="seconds for the turns of a shape")
    add("--seconds", type=float, default=1e9, help="after which no further shape is begun")
    add("--output", default="", help="JSON file to write")
    add("--library", default="")
    arguments = parser.parse_args()
    settings, end, found = settings_of(arguments), time.monotonic() + arguments.seconds, []
    kinds = arguments.kinds.split(",")
    lists = {kind: shapes(kind, arguments.count, arguments.seed, arguments.most, arguments.flops) for kind in kinds}
    for turn in range(arguments.count):
        for kind in kinds:
            if time.monotonic() < end:
                found.append(measure_shape(row_of(kind, *lists[kind][turn]), settings, arguments))
    for one in sorted(found, key=lambda one: (one["kind"], -one.get("ratio", 0))):
        print(line_of(one))
    for kind in kinds:
        print(summary(kind, found))
    if arguments.output:
        document = {"gpu": gpu_facts(torch)["name"], "library": settings.library.digest(), "shapes": found}
        pathlib.Path(arguments.output).write_text(json.dumps(document, indent=1), encoding="utf-8")
    return 1 if any(one["status"] in ("wrong", "failed") for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
