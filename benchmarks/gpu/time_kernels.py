#!/usr/bin/env python3
"""Times each kernel of our launches of rows of the board, on a GPU: where the time of a row goes.

    time_kernels.py --rows=NAME,... [--options=FILE] [--runs=N] [--library=PATH]

--rows are as those of board/run.py; FILE has mapping options as text, those of one contestant a line, and an empty line
is the compiler's choice (which is all there is without a file). Prints for each kernel, in the order of the launch, the
median time of --runs launches one after the other, its blocks and threads, and its registers; then their sum and the
time from the first kernel's begin to the last one's end. Times are CUPTI's, by PyTorch's profiler: a kernel that
starts while the one before still runs counts its wait too. Results are not compared (time_options.py does).
"""
import argparse
import collections
import json
import pathlib
import statistics
import sys
import tempfile

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(folder / "board") for folder in (HERE, HERE.parent)]  # as a bundle has it; in the sources

from arrays import TorchArrays  # noqa: E402
from engine import Library, Refused  # noqa: E402
from run import chosen  # noqa: E402
from timing import first_line  # noqa: E402


def kernels_of(profiler):
    """The kernels that ran, as CUPTI's events: name, begin and length in microseconds, launch configuration."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        profiler.export_chrome_trace(file.name)
        trace = json.loads(pathlib.Path(file.name).read_text(encoding="utf-8"))
    found = [event for event in trace["traceEvents"] if event.get("cat") == "kernel"]
    return sorted(found, key=lambda event: event["ts"])


def time_row(row, library, text, runs):
    arrays = TorchArrays("cuda")
    inputs = [arrays.make(tensor) for tensor in row.inputs]
    outputs = [arrays.empty(tensor) for tensor in row.outputs]
    stream = torch.cuda.current_stream()
    kernel = library.compile(row, arrays.device, options=text)
    kernel.prepare(stream.cuda_stream)
    call = kernel.call(inputs, outputs, stream.cuda_stream)
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        for _ in range(runs):
            call()
            torch.cuda.synchronize()
    events = kernels_of(profiler)
    each = len(events) // runs
    if each == 0 or each * runs != len(events):
        raise RuntimeError(f"the profiler saw {len(events)} kernels in {runs} runs")
    print(f"== {row.title}" + (f"  [{text}]" if text else ""))
    times = collections.defaultdict(list)
    for i, event in enumerate(events):
        times[i % each].append(event["dur"])
    for i in range(each):
        about = events[i]["args"]
        print(f"{statistics.median(times[i]):9.2f} us  grid {about.get('grid')} block {about.get('block')} "
              f"registers {about.get('registers per thread')}  {events[i]['name'][:60]}")
    spans = [events[i + each - 1]["ts"] + events[i + each - 1]["dur"] - events[i]["ts"]
             for i in range(0, len(events), each)]
    print(f"{sum(statistics.median(t) for t in times.values()):9.2f} us in all, {statistics.median(spans):.2f} us from "
          "begin to end")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", required=True)
    parser.add_argument("--options", default="")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--library", default="")
    arguments = parser.parse_args()
    texts = [""]
    if arguments.options:
        texts = pathlib.Path(arguments.options).read_text(encoding="utf-8").splitlines()
    library = Library(arguments.library)
    for row in chosen(arguments, "cuda"):
        for text in texts:
            try:
                time_row(row, library, text, arguments.runs)
            except Refused as refusal:
                print(f"== {row.title}  [{text}]\n  refused: {first_line(refusal)}")


if __name__ == "__main__":
    sys.exit(main())
