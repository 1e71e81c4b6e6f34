#!/usr/bin/env python3
"""How good is what the compiler chooses, and how good are the first 16 candidates of a search?

For each row one genetic search of 160 candidates (ten generations of 16), whose first generation is what a search of 16
measures. Times within a search are comparable: each candidate runs in turn with the best of its time. "default" and "16"
are the best time of the whole search over that of the compiler's choice, and of the best after 16 candidates.

    benchmarks/tuning.py [--tool=build/tensorc] [--backend=cpu|cuda] [--rows=WORD] [--generations=10] [--population=16]

Prints a Markdown table; goals: 16 candidates >= 0.96, the default >= 0.85.
"""
import argparse
import csv
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# name, file, entry, sizes, scalars
CPU_ROWS = [
    ("matmul 512³", "benchmarks/cpu/programs.tc", "matmul", "M=512,N=512,K=512", ""),
    ("matmul, transposed, 512³", "benchmarks/cpu/programs.tc", "matmul_transposed", "M=512,N=512,K=512", ""),
    ("matmul 64×1024×256", "benchmarks/cpu/programs.tc", "matmul", "M=64,N=1024,K=256", ""),
    ("transpose 2048²", "benchmarks/cpu/programs.tc", "transpose", "M=2048,N=2048", ""),
    ("sum 2048²", "benchmarks/cpu/programs.tc", "sum", "M=2048,N=2048", ""),
    ("softmax 1024×1024", "benchmarks/cpu/programs.tc", "softmax", "M=1024,N=1024", ""),
    ("layernorm 1024×1024", "benchmarks/cpu/programs.tc", "layernorm", "M=1024,N=1024", ""),
    ("three layers, 128 rows", "benchmarks/cpu/programs.tc", "mlp3", "B=128,P=784,L=128,M=64,C=10", ""),
    ("convolution 3×3, 1×64×30² → 64", "benchmarks/cpu/programs.tc", "conv3x3", "B=1,I=64,H=30,W=30,O=64,KH=3,KW=3", ""),
]
GPU_ROWS = [
    ("4 tmm 128×32×256", "benchmarks/gpu/programs.tc", "tmm", "M=128,K=32,N=256", ""),
    ("4 tmm 128×1024×1024", "benchmarks/gpu/programs.tc", "tmm", "M=128,K=1024,N=1024", ""),
    ("5 gemm 1024³", "benchmarks/gpu/programs.tc", "matmul", "M=1024,K=1024,N=1024", ""),
    ("6 tbmm 500×26×72×26", "benchmarks/gpu/programs.tc", "tbmm", "B=500,N=26,M=72,K=26", ""),
    ("7 grouped convolution 32, 7", "benchmarks/gpu/programs.tc", "group_convolution",
     "N=32,G=32,C=32,F=32,H=7,W=7,KH=3,KW=3", ""),
    ("8 depthwise NCHW", "benchmarks/gpu/programs.tc", "depthwise", "N=32,C=256,H=56,W=56,KH=3,KW=3", ""),
    ("8 depthwise NHWC", "benchmarks/gpu/programs.tc", "depthwise_nhwc", "N=32,C=256,H=56,W=56,KH=3,KW=3", ""),
    ("9 look-up, batch 65,536", "benchmarks/gpu/programs.tc", "lut", "E=10000000,D=64,B=65536,L=50", ""),
    ("10 MLP1 128×2000×128", "benchmarks/gpu/programs.tc", "mlp1", "B=128,M=2000,N=128", ""),
    ("10 MLP3 128-128-64-32-2", "benchmarks/gpu/programs.tc", "mlp3", "B=128,N=128,O=64,P=32,Q=2", ""),
    ("20 batchnorm 32×256×56²", "benchmarks/gpu/programs.tc", "batchnorm", "N=32,C=256,H=56,W=56", "eps=0.00001"),
    ("20 moments 64×10⁶", "benchmarks/gpu/programs.tc", "moments", "N=64,K=1000000", ""),
    ("20 transpose 8192²", "benchmarks/gpu/programs.tc", "transpose", "M=8192,N=8192", ""),
]


def tune(arguments, row):
    """The history of one search, as rows of the CSV, or what the tool complains of."""
    _, file, entry, sizes, scalars = row
    with tempfile.TemporaryDirectory() as folder:
        history = pathlib.Path(folder) / "history.csv"
        command = [arguments.tool, "tune", str(ROOT / file), f"--entry={entry}", f"--sizes={sizes}",
                   f"--backend={arguments.backend}", f"--generations={arguments.generations}",
                   f"--population={arguments.population}", f"--history={history}", "--measure_limit=120"]
        if scalars:
            command.append(f"--scalars={scalars}")
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            return done.stderr.strip().splitlines()[-1]
        with open(history, newline="") as lines:
            return list(csv.DictReader(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default=str(ROOT / "build/tensorc"))
    parser.add_argument("--backend", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--rows", default="", help="only rows whose name has this word")
    parser.add_argument("--generations", type=int, default=10)
    parser.add_argument("--population", type=int, default=16)
    arguments = parser.parse_args()
    print("| row | default | after 16 | best | default / best | 16 / best | failed | best options |")
    print("|---|---|---|---|---|---|---|---|")
    shares = {"default": [], "first": []}
    for row in CPU_ROWS if arguments.backend == "cpu" else GPU_ROWS:
        if arguments.rows not in row[0]:
            continue
        history = tune(arguments, row)
        if isinstance(history, str):
            print(f"| {row[0]} | {history} | | | | | | |", flush=True)
            continue
        right = [one for one in history if one["outcome"] == "done"]
        us = [float(one["us"]) for one in right]
        first = min(float(one["us"]) for one in right if int(one["generation"]) <= 1)
        best = right[us.index(min(us))]
        shares["default"].append(min(us) / us[0])
        shares["first"].append(min(us) / first)
        failed = sum(one["outcome"] not in ("done", "hopeless") for one in history)
        print(f"| {row[0]} | {us[0]:.4g} µs | {first:.4g} µs | {min(us):.4g} µs | {min(us) / us[0]:.2f} | "
              f"{min(us) / first:.2f} | {failed} of {len(history)} | `{best['options']}` |", flush=True)
    if shares["first"]:
        print(f"\nGeometric means: default {statistics.geometric_mean(shares['default']):.3f}, "
              f"16 candidates {statistics.geometric_mean(shares['first']):.3f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
