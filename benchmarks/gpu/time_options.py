#!/usr/bin/env python3
"""Times our kernels of rows of the board under many mapping options, on a GPU.

    time_options.py --rows=NAME,... --options=FILE [--turns=N] [--seconds=S] [--library=PATH]

FILE has mapping options as text, those of one contestant a line; an empty line is the compiler's choice. --rows are as
those of board/run.py. Every result is compared with float64, and launches are captured into CUDA graphs which events
time, as there. Prints the median time of a launch on one set of tensors, best first; options that are refused, and why,
at the end. Options whose kernel fails end their row, and all rows where they bring the device's context down. Ends with
1 if a result is wrong or a kernel fails.
"""
import argparse
import pathlib
import statistics
import sys
import time

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(folder / "board") for folder in (HERE, HERE.parent)]  # as a bundle has it; in the sources

from arrays import TorchArrays, worst_error  # noqa: E402
from engine import Library, Refused  # noqa: E402
from measure import exact_results  # noqa: E402
from run import chosen  # noqa: E402
from timing import Contestant, capture, event_us, first_line  # noqa: E402


def timed(row, library, text, inputs, right, stream, arguments):
    """Microseconds of a launch, how far the result is off, and milliseconds of the compilation."""
    arrays = TorchArrays("cuda")
    begin = time.perf_counter()
    kernel = library.compile(row, arrays.device, options=text)
    compile_ms = (time.perf_counter() - begin) * 1e3
    kernel.prepare(stream.cuda_stream)
    outputs = [arrays.empty(tensor) for tensor in row.outputs]
    call = kernel.call(inputs, outputs, stream.cuda_stream)
    call()
    stream.synchronize()
    error = worst_error([arrays.exact(a, t) for a, t in zip(outputs, row.outputs)], right)
    contestant = Contestant("ours", lambda i: call(), 1)
    capture(torch, contestant, "hot", stream)
    graph, launches = contestant.graphs["hot"]
    us = [event_us(torch, stream, graph.replay) / launches for _ in range(arguments.turns + 2)][2:]
    return statistics.median(us), error, compile_ms


def time_texts(texts, time_text, tolerance, end):
    """(microseconds, milliseconds of the compilation, text, remark) of each, why others have none, whether all went
    well. What no refusal explains is a broken kernel, after which nothing is timed."""
    results, without, all_right = [], [], True
    for text in texts:
        if time.monotonic() > end:
            break
        try:
            us, error, compile_ms = time_text(text)
        except Refused as refusal:
            without.append(f"refused: {text}: {first_line(refusal)}")
            continue
        except Exception as fault:
            without.append(f"FAILED: {text}: {first_line(fault)}")
            return results, without, False
        wrong = not error <= tolerance
        all_right = all_right and not wrong
        results.append((us, compile_ms, text, "  WRONG" if wrong else ""))
    return results, without, all_right


def time_row(row, library, texts, stream, arguments, end):
    with torch.inference_mode(), torch.cuda.stream(stream):
        arrays = TorchArrays("cuda")
        inputs = [arrays.make(tensor) for tensor in row.inputs]
        right = exact_results(row, arrays, inputs)
        results, without, all_right = time_texts(
            texts, lambda text: timed(row, library, text, inputs, right, stream, arguments), row.tolerance, end)
    print(f"== {row.title}: {len(results)} of {len(texts)} options")
    for us, compile_ms, text, remark in sorted(results):
        print(f"{us:9.2f} us  {compile_ms:5.0f} ms  {text}{remark}")
    for line in without:
        print(f"  {line}")
    sys.stdout.flush()
    stream.synchronize()  # raises if a kernel has brought the device's context down
    return all_right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", required=True)
    parser.add_argument("--options", required=True)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--library", default="")
    arguments = parser.parse_args()
    rows = chosen(arguments, "cuda")
    texts = pathlib.Path(arguments.options).read_text(encoding="utf-8").splitlines()
    library, stream = Library(arguments.library), torch.cuda.Stream()
    end = time.monotonic() + arguments.seconds
    return 0 if all([time_row(row, library, texts, stream, arguments, end) for row in rows]) else 1


if __name__ == "__main__":
    sys.exit(main())
