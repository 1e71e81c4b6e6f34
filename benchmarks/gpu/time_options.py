#!/usr/bin/env python3
"""Times our kernels of one row of compare_torch.py under many mapping options, on a GPU.

    time_options.py --rows=NAME,... --options=FILE [--turns=N] [--seconds=S] [--library=PATH]

FILE has mapping options as text, those of one contestant a line; an empty line is the compiler's choice. Every result
is compared with PyTorch's in float64, and launches are captured into CUDA graphs which events time, as there. Prints
the median time of a launch on one set of tensors, best first; options that are refused, and why, at the end.
Ends with 1 if a result is wrong.
"""
import argparse
import math
import pathlib
import statistics
import sys
import time

import torch

from compare_torch import Contestant, all_rows, exact_results, launches_for, worst_error
from engine import Engine

HERE = pathlib.Path(__file__).resolve().parent


def timed(row, engine, text, inputs, exact, stream, turns):
    """Microseconds of a launch, how far the result is off, and milliseconds of the compilation."""
    outputs = [torch.full_like(x, math.nan, dtype=torch.float32, memory_format=torch.contiguous_format) for x in exact]
    begin = time.perf_counter()
    kernel = engine.compile(row.entry, inputs, outputs, row.scalars, text)
    compile_ms = (time.perf_counter() - begin) * 1e3
    kernel.prepare(stream.cuda_stream)
    call = kernel.call(inputs, outputs, stream.cuda_stream)
    call()
    stream.synchronize()
    error = worst_error(outputs, exact)
    contestant = Contestant("ours", lambda i: call(), 1)
    contestant.capture("hot", stream, launches_for(contestant, stream))
    us = [contestant.turn("hot", stream) for _ in range(turns + 2)][2:]
    return statistics.median(us), error, compile_ms


def time_row(row, engine, texts, stream, turns, end):
    right, results, refused = True, [], []
    with torch.inference_mode(), torch.cuda.stream(stream):
        inputs = row.make()
        exact = exact_results(row, inputs)
        for text in texts:
            if time.monotonic() > end:
                break
            try:
                us, error, compile_ms = timed(row, engine, text, inputs, exact, stream, turns)
            except Exception as fault:
                refused.append((text, str(fault).strip().splitlines()[0]))
                continue
            wrong = not error <= 1e-4
            right = right and not wrong
            results.append((us, compile_ms, text, "  WRONG" if wrong else ""))
    print(f"== {row.name}: {len(results)} of {len(texts)} options")
    for us, compile_ms, text, remark in sorted(results):
        print(f"{us:9.2f} us  {compile_ms:5.0f} ms  {text}{remark}")
    for text, reason in refused:
        print(f"  refused: {text}: {reason}")
    sys.stdout.flush()
    return right


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", required=True)
    parser.add_argument("--options", required=True)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--library", default="")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    engine = Engine(HERE / "programs.tc", arguments.library)
    texts = pathlib.Path(arguments.options).read_text().splitlines()
    stream = torch.cuda.Stream()
    end = time.monotonic() + arguments.seconds
    right = True
    for row in all_rows():
        if row.name.startswith(tuple(arguments.rows.split(","))):
            right = time_row(row, engine, texts, stream, arguments.turns, end) and right
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
