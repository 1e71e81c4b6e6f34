#!/usr/bin/env python3
"""What a call from Python costs: three small tensors, so that there is next to nothing to compute.

    benchmarks/python/call_overhead.py [--seconds=SECONDS] [--library=PATH] [--output=FILE.json]

For NumPy, PyTorch on the CPU and, where there is one, on a GPU (launches of a burst, waited for at its end): a call
that makes its result, and one with out=; beside them the library's own addition and the making of a result. On a GPU
also the same kernel launched by a loop in C, by the C interface of the library at --library: what a call takes beyond
that is Python's share. Best and median time of a call over many bursts, in microseconds, in turn.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time

import numpy as np

import tensorc

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(folder / "board") for folder in (HERE, HERE.parent)]  # as a bundle has it; in the sources

ADD = "def add(float(N) x, float(N) y) -> (z) { z(i) = x(i) + y(i) }"
BURST = 200


def measure(calls, seconds, wait=lambda: None):
    """`calls` are functions by name that make a burst each and return the microseconds of one call. Best and median of
    each, which it prints too."""
    times, end = {name: [] for name in calls}, time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end or len(next(iter(times.values()))) < 5:
        for name, burst in calls.items():
            times[name].append(burst())
            wait()
    found = {name: {"best": min(us), "median": statistics.median(us)} for name, us in times.items()}
    for name, us in found.items():
        print(f"{name:44s} {us['best']:8.2f} {us['median']:8.2f}", flush=True)
    return found


def burst_of(call):

    def burst():
        begin = time.perf_counter()
        for _ in range(BURST):
            call()
        return (time.perf_counter() - begin) / BURST * 1e6

    return burst


def burst_in_c(x, y, z, stream, library):
    """The same addition by tc_run_on_stream(), in a loop in C."""
    import ctypes
    from engine import Library
    from launches import loop_in_c
    from workloads import Row, Tensor
    vectors = [Tensor(name, tuple(x.shape)) for name in "xyz"]
    row = Row("", "", "", "add", tuple(vectors[:2]), tuple(vectors[2:]), None, text=ADD)
    kernel = Library(library).compile(row, (2, x.device.index))
    kernel.prepare(stream)
    launch, loop = kernel.call([x, y], [z], stream), loop_in_c()
    return lambda: loop(launch.function, *launch.arguments, ctypes.c_int(BURST))


def torch_calls(torch, add, device, library):
    x, y, z = (torch.ones(64, device=device) for _ in range(3))
    calls = {
        "tensorc add(x, y)": burst_of(lambda: add(x, y)),
        "tensorc add(x, y, out=z)": burst_of(lambda: add(x, y, out=z)),
        "torch.add(x, y)": burst_of(lambda: torch.add(x, y)),
        "torch.add(x, y, out=z)": burst_of(lambda: torch.add(x, y, out=z)),
        "torch.empty": burst_of(lambda: torch.empty((64, ), device=device)),
    }
    if device == "cuda":
        calls["the same launch in C"] = burst_in_c(x, y, z, torch.cuda.current_stream().cuda_stream, library)
    return {f"PyTorch {device}: {name}": call for name, call in calls.items()}


def measure_all(add, arguments):
    x, y, z = (np.ones(64, "float32") for _ in range(3))
    found = measure({
        "NumPy: tensorc add(x, y)": burst_of(lambda: add(x, y)),
        "NumPy: tensorc add(x, y, out=z)": burst_of(lambda: add(x, y, out=z)),
        "NumPy: np.add(x, y, out=z)": burst_of(lambda: np.add(x, y, out=z)),
        "NumPy: np.empty": burst_of(lambda: np.empty((64, ), np.float32)),
    }, arguments.seconds)
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed for this Python")
        return found
    found |= measure(torch_calls(torch, add, "cpu", ""), arguments.seconds)
    if torch.cuda.is_available():
        found |= measure(torch_calls(torch, add, "cuda", arguments.library), arguments.seconds, torch.cuda.synchronize)
    return found


def library_of_package():
    """What a wheel brought: a process does not take two copies of the library."""
    files = sorted((pathlib.Path(tensorc.__file__).parent / "lib").glob("libtensorc.so*"))
    return str(files[0]) if files else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row")
    parser.add_argument("--library", default=library_of_package(),
                        help="libtensorc.so; default: a wheel's own, else in build/, or beside the bundle's files")
    parser.add_argument("--output", type=pathlib.Path, help="file to write the figures to as well, as JSON")
    arguments = parser.parse_args()
    add = tensorc.define(ADD, options=tensorc.CpuOptions(parallel=False)).add
    print(f"{'':44s} {'best':>8s} {'median':>8s}  us a call")
    found = measure_all(add, arguments)
    if arguments.output:
        arguments.output.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
