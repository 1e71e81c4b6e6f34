#!/usr/bin/env python3
"""What a call from Python costs: three small tensors, so that there is next to nothing to compute.

    benchmarks/python/call_overhead.py [--seconds=SECONDS]

For NumPy, PyTorch on the CPU and, where there is one, on a GPU (launches of a burst, waited for at its end): a call
that makes its result, and one with out=; beside them the library's own addition and the making of a result. Best and
median time of a call over many bursts, in microseconds.
"""
import argparse
import statistics
import time

import numpy as np

import tensorc

ADD = "def add(float(N) x, float(N) y) -> (z) { z(i) = x(i) + y(i) }"
BURST = 200


def measure(name, call, seconds, wait=lambda: None):
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        for _ in range(BURST):
            call()
        times.append((time.perf_counter() - begin) / BURST * 1e6)
        wait()
    print(f"{name:44s} {min(times):8.2f} {statistics.median(times):8.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row")
    seconds = parser.parse_args().seconds
    add = tensorc.define(ADD, options=tensorc.CpuOptions(parallel=False)).add
    print(f"{'':44s} {'best':>8s} {'median':>8s}  us a call")

    x, y, z = (np.ones(64, "float32") for _ in range(3))
    measure("NumPy: tensorc add(x, y)", lambda: add(x, y), seconds)
    measure("NumPy: tensorc add(x, y, out=z)", lambda: add(x, y, out=z), seconds)
    measure("NumPy: np.add(x, y, out=z)", lambda: np.add(x, y, out=z), seconds)
    measure("NumPy: np.empty", lambda: np.empty((64,), np.float32), seconds)
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed for this Python")
        return
    for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
        x, y, z = (torch.ones(64, device=device) for _ in range(3))
        wait = torch.cuda.synchronize if device == "cuda" else lambda: None
        name = f"PyTorch {device}: "
        measure(name + "tensorc add(x, y)", lambda: add(x, y), seconds, wait)
        measure(name + "tensorc add(x, y, out=z)", lambda: add(x, y, out=z), seconds, wait)
        measure(name + "torch.add(x, y)", lambda: torch.add(x, y), seconds, wait)
        measure(name + "torch.add(x, y, out=z)", lambda: torch.add(x, y, out=z), seconds, wait)
        measure(name + "torch.empty", lambda: torch.empty((64,), device=device), seconds, wait)


if __name__ == "__main__":
    main()
