#!/usr/bin/env python3
"""Runs products of warpgroups very often beside other work, on a GPU: do they always end, and with the same bits?

    stress.py [--runs=100000] [--kernels=40] [--seed=1] [--seconds=300]

Each kernel is a product of float16 or bfloat16 of random sizes, with a random tile, number of buffers, cluster and
epilogue. Its first result is compared with float64. Then it runs again and again, while a second stream runs products
of random sizes, which take processors and the cache away from it at random moments; each result is compared with the
first, bit by bit. A kernel that does not end within --hang seconds is reported, and ends the program. Prints a line for
each kernel that fails and the number of runs. Ends with 1 if anything differed.
"""
import argparse
import os
import pathlib
import random
import sys
import threading
import time

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(folder / "board") for folder in (HERE, HERE.parent)]  # as a bundle has it; in the sources

import workloads  # noqa: E402
from arrays import TorchArrays, worst_error  # noqa: E402
from engine import Library, Refused  # noqa: E402
from measure import exact_results  # noqa: E402
from timing import first_line  # noqa: E402

EPILOGUES = ("bias", "relu", "bias_relu", "bias_gelu")


def random_kernel(numbers):
    """A row, and options as text."""
    m, n, k = (numbers.choice((64, 128, 200, 256, 384, 512, 640, 1000, 1024)) for _ in range(3))
    if numbers.random() < 0.5:
        row = workloads.gemm("S", f"{m}x{n}x{k}", m, n, k, type=numbers.choice(("half", "bfloat16")))
    else:
        row = workloads.gemm_epilogue("S", f"{m}x{n}x{k}", m, n, k, epilogue=numbers.choice(EPILOGUES))
    tile = [64 * numbers.randint(1, 3), 32 * numbers.randint(1, 8), 64 * numbers.randint(1, 2)]
    text = f"tile: {tile} copy_stages: {numbers.randint(2, 5)} tensor_cores: true"
    if numbers.random() < 0.3:
        text += f" cluster: {numbers.choice(([2, 1], [1, 2]))}"
    return row, text


class Hog:
    """Products of random sizes on a stream of their own."""

    def __init__(self, seed):
        self.numbers, self.stream = random.Random(seed), torch.cuda.Stream()
        self.arrays = [torch.randn(s, s, device="cuda", dtype=torch.half) for s in (256, 512, 1024, 2048)]

    def work(self):
        with torch.cuda.stream(self.stream):
            a = self.numbers.choice(self.arrays)
            torch.mm(a, a)


def run_kernel(row, text, runs, library, hog, stream, end):
    """(runs done, how many differed), and the error of the first."""
    arrays = TorchArrays("cuda")
    with torch.cuda.stream(stream):
        inputs = [arrays.make(tensor) for tensor in row.inputs]
        right = exact_results(row, arrays, inputs)
        kernel = library.compile(row, arrays.device, options=text)
        kernel.prepare(stream.cuda_stream)
        outputs = [arrays.empty(tensor) for tensor in row.outputs]
        call = kernel.call(inputs, outputs, stream.cuda_stream)
        call()
        stream.synchronize()
        error = worst_error([arrays.exact(a, t) for a, t in zip(outputs, row.outputs)], right)
        first = [a.clone() for a in outputs]
        differing = torch.zeros((), dtype=torch.int64, device="cuda")
        done = 0
        while done < runs and time.monotonic() < end:
            for _ in range(20):
                if hog.numbers.random() < 0.3:
                    hog.work()
                for a in outputs:
                    a.fill_(float("nan"))
                call()
                for a, b in zip(outputs, first):
                    differing += (a != b).any()
                done += 1
            stream.synchronize()
            hog.stream.synchronize()
            run_kernel.alive = time.monotonic()
    return done, int(differing), error


def watch(hang):
    """Ends the process if nothing has ended for so long: a kernel that hangs lets no other thread synchronise."""
    run_kernel.alive = time.monotonic()

    def look():
        while True:
            time.sleep(1)
            if time.monotonic() - run_kernel.alive > hang:
                print(f"HANGS: {run_kernel.what}", flush=True)
                os._exit(1)

    threading.Thread(target=look, daemon=True).start()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--runs", type=int, default=100_000, help="of all kernels together")
    add("--kernels", type=int, default=40)
    add("--seed", type=int, default=1)
    add("--seconds", type=float, default=300, help="after which no further runs are started")
    add("--hang", type=float, default=60)
    add("--library", default="")
    arguments = parser.parse_args()
    numbers, library, stream = random.Random(arguments.seed), Library(arguments.library), torch.cuda.Stream()
    hog, end = Hog(arguments.seed), time.monotonic() + arguments.seconds
    watch(arguments.hang)
    total = wrong = kernels = refused = 0
    while kernels < arguments.kernels and time.monotonic() < end:
        row, text = random_kernel(numbers)
        run_kernel.what, run_kernel.alive = f"{row.name} {row.entry} {text}", time.monotonic()
        try:
            done, differing, error = run_kernel(row, text, arguments.runs // arguments.kernels, library, hog, stream,
                                                end)
        except Refused as refusal:
            refused += 1
            if refused == 1:
                print(f"refused: {text}: {first_line(refusal)}")
            continue
        kernels, total = kernels + 1, total + done
        if differing or not error <= row.tolerance:
            wrong += 1
            print(f"WRONG: {row.name} {row.entry} {text}: {differing} of {done} runs differ, error {error:.2g}",
                  flush=True)
    print(f"{total} runs of {kernels} kernels ({refused} refused): {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
