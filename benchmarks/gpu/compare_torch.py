#!/usr/bin/env python3
"""Times kernels of programs.tc against PyTorch on a GPU, in one process, turn by turn: A B C A B C ...

    compare_torch.py [--rows=NAME,...] [--pairs=N] [--compile=MODE|none] [--mapping=TEXT] [--seconds=S]
                     [--output=FILE] [--library=PATH] [--list]

Each contestant's launches are captured into one CUDA graph, which events time: no launch overhead counts. The hot
column runs on one set of tensors, the cold column goes around sets of more than 120 MB together, which no L2 holds.
Medians of at least 30 turns. Before anything is timed every result is compared with PyTorch's in float64. Inputs are
normally distributed. No TF32. The floor is the larger of bytes / 4.25 TB/s and operations / 55 TFLOP/s.
    --rows: those whose names begin so. --compile: the mode of torch.compile (default: max-autotune-no-cudagraphs).
    --mapping: mapping options for our kernels, as text. --seconds: after which no further row is started.
    --output: file to which each row is also appended, as a line of JSON.
Ends with 1 if a result of ours is wrong or a row fails.
"""
import argparse
import ctypes
import json
import math
import pathlib
import statistics
import sys
import time
import traceback

import torch
import torch.nn.functional as F

from engine import Engine

HERE = pathlib.Path(__file__).resolve().parent
COLD_BYTES = 125e6
MOST_SETS = 1300
GRAPH_US = 400  # what one replay should take at least, for the events' resolution
BYTES_PER_S, FLOPS_PER_S = 4.25e12, 55e12


class Row:
    """One workload. `make` gives one set of inputs; `torch` computes the results from them, in any precision; `timed`
    is what is timed of PyTorch, where the results need more than that."""

    def __init__(self, name, entry, make, torch_function, flops=0, scalars=(), bytes_moved=None, timed=None):
        self.name, self.entry, self.make, self.torch, self.flops = name, entry, make, torch_function, flops
        self.scalars, self.bytes_moved, self.timed = scalars, bytes_moved, timed or torch_function


def normal(*shape):
    return torch.randn(shape, device="cuda")


def integers(below, *shape):
    return torch.randint(below, shape, device="cuda", dtype=torch.int32)


def matmul_row(name, m, n, k, transposed):
    if transposed:
        return Row(name, "tmm", lambda: [normal(m, k), normal(n, k)], lambda a, b: a @ b.t(), 2 * m * n * k)
    return Row(name, "matmul", lambda: [normal(m, k), normal(k, n)], lambda a, b: a @ b, 2 * m * n * k)


def group_row(channels, size, n=32, g=32):
    def convolve(x, w, b):
        y = F.conv2d(x.flatten(1, 2), w.flatten(0, 1), b.flatten(), groups=g)
        return y.unflatten(1, (g, channels))

    def make():
        return [normal(n, g, channels, size, size), normal(g, channels, channels, 3, 3), normal(g, channels)]

    return Row(f"7 group_conv C=F={channels} H=W={size}", "group_convolution", make, convolve,
               2 * n * g * channels * channels * 9 * (size - 2) ** 2)


def depthwise(x, w):
    return F.conv2d(x, w.unsqueeze(1), groups=w.shape[0])


def depthwise_nhwc(x, w):
    return depthwise(x.permute(0, 3, 1, 2), w).permute(0, 2, 3, 1)


def lookup(table, indices):
    return F.embedding_bag(indices, table, mode="sum")


def mlp3(x, w2, b2, w3, b3, w4, b4):
    y = F.relu(F.linear(x, w2, b2))
    z = F.relu(F.linear(y, w3, b3))
    return y, z, F.relu(F.linear(z, w4, b4))


def native_batchnorm(x, gamma, beta):
    return torch.native_batch_norm(x, gamma, beta, None, None, True, 0.1, 1e-5)


def batchnorm(x, gamma, beta):
    y, mean, inverse = native_batchnorm(x, gamma, beta)
    return y, mean, 1 / (inverse * inverse) - 1e-5


def moments(x):
    var, mean = torch.var_mean(x, 1, correction=0)
    return mean, var


def shared_tables(rows):
    """Tables of 2.56 GB are not made anew for each set: their rows are drawn at random, and L2 holds few of them."""
    tables = []

    def make(count, batch):
        while len(tables) < count:
            tables.append(normal(rows, 64))
        return [part for table in tables[:count] for part in (table, integers(rows, batch, 50))]

    return make


def all_rows():
    tables = shared_tables(10_000_000)
    image = (32, 256, 56, 56)
    return [
        matmul_row("4 tmm 128x32x256", 128, 256, 32, True),
        matmul_row("4 tmm 128x1024x1024", 128, 1024, 1024, True),
        matmul_row("4 tmm 128x4096x16384", 128, 16384, 4096, True),
        matmul_row("5 gemm 1024", 1024, 1024, 1024, False),
        Row("6 tbmm 500x26x72x26", "tbmm", lambda: [normal(500, 26, 72), normal(500, 26, 72)],
            lambda x, y: torch.bmm(x, y.transpose(1, 2)), 2 * 500 * 26 * 72 * 26),
        group_row(4, 56), group_row(8, 28), group_row(16, 14), group_row(32, 7),
        Row("8 depthwise NCHW", "depthwise", lambda: [normal(*image), normal(256, 3, 3)], depthwise),
        Row("8 depthwise NHWC", "depthwise_nhwc", lambda: [normal(32, 56, 56, 256), normal(256, 3, 3)],
            depthwise_nhwc),
        Row("9 2LUT batch 128", "two_lut", lambda: tables(2, 128),
            lambda a, i, b, j: (lookup(a, i), lookup(b, j)), bytes_moved=2 * 128 * 50 * 64 * 4),
        Row("9 LUT batch 65536", "lut", lambda: tables(1, 65536), lookup, bytes_moved=65536 * 50 * 64 * 4),
        matmul_row("10 C3 128x1024x1000", 128, 1000, 1024, True),
        Row("10 MLP1 128x2000x128", "mlp1", lambda: [normal(128, 2000), normal(128, 2000), normal(128)],
            lambda x, w, b: F.relu(F.linear(x, w, b)), 2 * 128 * 2000 * 128),
        Row("10 MLP3 128-128-64-32-2", "mlp3", lambda: [normal(128, 128), normal(64, 128), normal(64),
                                                        normal(32, 64), normal(32), normal(2, 32), normal(2)],
            mlp3, 2 * 128 * (128 * 64 + 64 * 32 + 32 * 2)),
        Row("20 batchnorm 32x256x56x56", "batchnorm", lambda: [normal(*image), normal(256), normal(256)],
            batchnorm, scalars=(1e-5,), bytes_moved=3 * 4 * math.prod(image), timed=native_batchnorm),
        Row("20 moments 64x1e6", "moments", lambda: [normal(64, 1_000_000)], moments),
        Row("20 transpose 8192", "transpose", lambda: [normal(8192, 8192)], lambda a: a.t().contiguous()),
        Row("20 window_sum 1e8", "window_sum", lambda: [normal(100_000_000)], lambda a: a[:-2] + a[1:-1] + a[2:]),
        Row("20 copy 1e8", "copy", lambda: [normal(100_000_000)], torch.clone),
    ]


def as_list(results):
    return list(results) if isinstance(results, (tuple, list)) else [results]


def worst_error(results, exact):
    """The largest distance, as a part of the root of the mean square of each exact result; NaN stays NaN."""
    worst = 0.0
    for result, right in zip(results, exact, strict=True):
        scale = right.square().mean().sqrt()
        error = ((result.double() - right).abs().max() / scale).item()
        worst = error if math.isnan(error) else max(worst, error)
    return worst


def exact_results(row, inputs):
    if row.entry in ("lut", "two_lut"):  # a table in float64 would not fit twice; the sums are made of its rows
        return [inputs[i][inputs[i + 1].long()].double().sum(1) for i in range(0, len(inputs), 2)]
    return as_list(row.torch(*[x.double() if x.is_floating_point() else x for x in inputs]))


class Contestant:
    """Launches of one side over sets of tensors, as a graph for each column."""

    def __init__(self, name, launch, sets):
        self.name, self.launch, self.sets = name, launch, sets
        self.us = {"hot": [], "cold": []}
        self.graphs = {}

    def capture(self, column, stream, launches):
        """Warms up, measures roughly, and captures as many launches as make a turn long enough."""
        for i in range(min(3, self.sets)):
            self.launch(i)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="relaxed"):
            for i in range(launches):
                self.launch(0 if column == "hot" else i % self.sets)
        self.graphs[column] = (graph, launches)

    def turn(self, column, stream):
        graph, launches = self.graphs[column]
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record(stream)
        graph.replay()
        end.record(stream)
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / launches


def launches_for(contestant, stream):
    """Rough time of a launch, and from it how many fill a turn."""
    contestant.launch(0)
    stream.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record(stream)
    for _ in range(3):
        contestant.launch(0)
    end.record(stream)
    end.synchronize()
    us = begin.elapsed_time(end) * 1e3 / 3
    return max(2, min(100, int(GRAPH_US / max(us, 1.0))))


def contestants_of(row, engine, arguments, stream):
    """Ours first. Checks all of them, and says how far each is off."""
    first = row.make()
    exact = exact_results(row, first)
    outputs = [torch.full_like(x, math.nan, dtype=torch.float32, memory_format=torch.contiguous_format)
               for x in exact]
    fresh_bytes = sum(x.numel() * x.element_size() for x in first + outputs if x.numel() * x.element_size() < 2e9)
    sets = min(MOST_SETS, max(1, math.ceil(COLD_BYTES / fresh_bytes)))
    if row.entry in ("lut", "two_lut"):  # each set draws other rows of the tables
        sets = max(2, math.ceil(COLD_BYTES / row.bytes_moved))
    inputs = [first] + [row.make() for _ in range(sets - 1)]
    results = [outputs] + [[torch.empty_like(x) for x in outputs] for _ in range(sets - 1)]
    begin = time.perf_counter()
    ours = engine.compile(row.entry, inputs[0], outputs, row.scalars, arguments.mapping)
    compile_ms = (time.perf_counter() - begin) * 1e3
    ours.prepare(stream.cuda_stream)
    calls = [ours.call(x, y, stream.cuda_stream) for x, y in zip(inputs, results, strict=True)]
    functions = {"eager": row.timed}
    if arguments.compile != "none":
        functions["compile"] = torch.compile(row.timed, mode=arguments.compile, dynamic=False)
    calls[0]()
    stream.synchronize()
    errors = {"ours": worst_error(outputs, exact), "eager": worst_error(as_list(row.torch(*first)), exact)}
    contestants = [Contestant("ours", lambda i: calls[i](), sets)]
    for name, function in functions.items():
        try:
            function(*first)
            contestants.append(Contestant(name, lambda i, function=function: function(*inputs[i]), sets))
        except Exception as fault:  # a peer that does not run is no peer
            print(f"  {name}: {str(fault).splitlines()[0]}")
    bytes_moved = row.bytes_moved or sum(x.numel() * x.element_size() for x in first + outputs)
    return contestants, errors, bytes_moved, compile_ms


def run_row(row, engine, arguments, stream):
    with torch.inference_mode(), torch.cuda.stream(stream):
        contestants, errors, bytes_moved, compile_ms = contestants_of(row, engine, arguments, stream)
        stream.synchronize()
        for column in ("hot", "cold"):
            for contestant in list(contestants):
                launches = launches_for(contestant, stream)
                if column == "cold":
                    launches = max(launches, contestant.sets)
                try:
                    contestant.capture(column, stream, launches)
                except Exception as fault:
                    if contestant.name == "ours":
                        raise
                    print(f"  {contestant.name}: cannot be captured: {str(fault).splitlines()[0]}")
                    contestants.remove(contestant)
            for turn in range(arguments.pairs + 2):
                for contestant in contestants:
                    us = contestant.turn(column, stream)
                    if turn >= 2:
                        contestant.us[column].append(us)
            for contestant in contestants:
                contestant.graphs.clear()
    medians = {c.name: {column: statistics.median(us) for column, us in c.us.items()} for c in contestants}
    floor = max(bytes_moved / BYTES_PER_S, row.flops / FLOPS_PER_S) * 1e6
    limit = max(1e-5, 20 * errors["eager"])
    return {"row": row.name, "floor_us": floor, "us": medians, "error": errors, "right": errors["ours"] <= limit,
            "bytes": bytes_moved, "flops": row.flops, "compile_ms": compile_ms, "pairs": arguments.pairs}


def print_row(result):
    ours = result["us"]["ours"]
    peers = {name: us for name, us in result["us"].items() if name != "ours"}
    line = f"{result['row']:28} {result['floor_us']:8.1f}"
    for column in ("hot", "cold"):
        line += f" | {ours[column]:8.1f}"
        for name in ("eager", "compile"):
            line += f" {peers[name][column]:8.1f}" if name in peers else f" {'-':>8}"
        best = min((us[column] for us in peers.values()), default=math.nan)
        line += f" {best / ours[column]:6.2f}"
    rate = result["bytes"] / ours["hot"] / 1e3
    line += f" | {rate:6.0f} GB/s {result['flops'] / ours['hot'] / 1e6:5.1f} TF"
    line += f" | error {result['error']['ours']:.1e}{'' if result['right'] else '  WRONG'}"
    print(line, flush=True)


def measure_launch(engine, stream):
    """Host time of a call with three tensors, from Python."""
    inputs, output = [normal(1024, 8), normal(8)], [torch.empty(1024, device="cuda")]
    engine_mv = Engine(HERE / "programs.tc", engine.library,
                       "def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }")
    kernel = engine_mv.compile("mv", inputs, output, (), "")
    call = kernel.call(inputs, output, stream.cuda_stream)
    best = math.inf
    for _ in range(50):
        stream.synchronize()
        begin = time.perf_counter()
        for _ in range(200):
            call()
        best = min(best, (time.perf_counter() - begin) / 200)
    print(f"launch from Python, three tensors: {best * 1e6:.2f} us", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default="")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--compile", default="max-autotune-no-cudagraphs")
    parser.add_argument("--mapping", default="")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--output", default="")
    parser.add_argument("--library", default="")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    rows = all_rows()
    if arguments.rows:
        wanted = tuple(arguments.rows.split(","))
        rows = [row for row in rows if row.name.startswith(wanted)]
    if arguments.list:
        print("\n".join(row.name for row in rows))
        return 0
    begin = time.monotonic()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    engine = Engine(HERE / "programs.tc", arguments.library)
    stream = torch.cuda.Stream()
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}; medians of {arguments.pairs} turns, us")
    measure_launch(engine, stream)
    print(f"{'':28} {'floor':>8} | {'hot':>8} {'eager':>8} {'compile':>8} {'ratio':>6} | "
          f"{'cold':>8} {'eager':>8} {'compile':>8} {'ratio':>6}")
    bad = 0
    for row in rows:
        if time.monotonic() - begin > arguments.seconds:
            print(f"{row.name}: not started, the time is over")
            continue
        try:
            result = run_row(row, engine, arguments, stream)
        except Exception:
            print(f"{row.name}: FAILED\n{traceback.format_exc()}", flush=True)
            bad += 1
            continue
        finally:
            torch.cuda.empty_cache()
        print_row(result)
        bad += not result["right"]
        if arguments.output:
            with open(arguments.output, "a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
