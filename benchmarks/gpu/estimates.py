#!/usr/bin/env python3
"""How well the estimates of a product's plans foretell what a GPU takes, on random shapes and random plans.

    estimates.py measure FILE.json [--count=40] [--plans=24] [--seed=1] [--kinds=aligned,odd] [--shapes=MxNxK,...]
                 [--seconds=S]
    estimates.py compare FILE.json [--tensorc=build/tensorc] [--kind=atoms|warpgroups|elements] [--show=N]

`measure` needs a GPU. Shapes of float16 are drawn as by sweep.py. Each gets the compiler's choice and --plans random
ones: by mma.sync with one or several groups of warps, by warpgroups, with and without copies of operands, and by
elements. Every result is compared with float64. FILE gets the median time of each, and PyTorch's time of the shape.

`compare` needs no GPU. It asks tensorc for the estimate of each plan in FILE that names its tiles; what the compiler
chose may have changed since. It prints, for each kind of plan, the geometric mean of measured / estimated and how far it
spreads. And it prints what matters in the end: for each shape, how the plan of least estimate compares with the fastest
one that was measured, and with PyTorch.
"""
import argparse
import concurrent.futures
import json
import math
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(folder / "board") for folder in (HERE, HERE.parent)]  # as a bundle has it; in the sources

import workloads  # noqa: E402

PROGRAM = next((path for path in (HERE / "board" / "tc" / "products.tc", HERE.parent / "board" / "tc" / "products.tc")
                if path.exists()), None)


def fitting(numbers, extent, values):
    """One of the values, of which those beyond twice the extent are left out."""
    return numbers.choice([value for value in values if value < 2 * extent] or values[:1])


def atoms_plan(numbers, m, n, k):
    tile_m, tile_n = fitting(numbers, m, [16, 32, 64, 128, 256]), fitting(numbers, n, [8, 16, 32, 64, 128, 256])
    tile_k = fitting(numbers, k, [16, 32, 64, 128])
    # Of warps, so that a thread has at most 128 sums.
    warps = [(rows, columns) for rows in (1, 2, 4) for columns in (1, 2, 4, 8)
             if 16 * rows <= tile_m and 8 * columns <= tile_n and tile_m * tile_n <= 4096 * rows * columns]
    rows, columns = numbers.choice(warps or [(4, 8)])
    groups = numbers.choice([groups for groups in (1, 1, 2, 4, 8) if tile_k % (16 * groups) == 0])
    if 32 * rows * columns * groups > 512:
        groups = 1
    threads = [4 * columns, 8 * rows] + [groups] * (groups > 1)
    copies = " copy_operands: true" if (n % 8 or k % 8) and numbers.random() < 0.3 else ""
    return (f"tile: [{tile_m}, {tile_n}, {tile_k}] tensor_cores: true map_to_threads: {threads} "
            f"register_tile: [{tile_m // (8 * rows)}, {tile_n // (4 * columns)}]{copies}")


def across_plan(numbers, m, n):
    """Of warpgroups whose instructions have their 64 rows along n, and any multiple of 8 columns along m."""
    parts = max(-(-m // 256), numbers.choice([1, 2, 3, 4, 6, 8]) if m <= 1024 else -(-m // numbers.choice(
        [64, 96, 128, 160, 192, 224, 256])))
    tile_m, tile_n = -(-m // parts // 8) * 8, fitting(numbers, n, [64, 128, 128, 192, 256])
    is_stored_by_boxes = n % 8 == 0 and (m > 1024 or numbers.random() < 0.7)
    more = numbers.choice(["", "", "cluster: [2, 1]", "cluster: [1, 2]"] + ([] if is_stored_by_boxes else [
        f"cluster: [1, 1, {blocks}]" for blocks in (2, 2, 3, 4, 5, 6, 8)]))
    boxes = f"store_boxes: {'true' if is_stored_by_boxes else 'false'}"
    return (f"tile: [{tile_m}, {tile_n}, 64] tensor_cores: true map_to_threads: [{tile_n // 2}, 4, 1] "
            f"register_tile: [{tile_m // 4}, 2] {boxes} {more}")


def warpgroups_plan(numbers, m, n, k):
    copies = " copy_operands: true" if n % 8 or k % 8 else ""
    copies += numbers.choice(["", ""] + [f" copy_stages: {buffers}" for buffers in (3, 4, 5, 6, 8)])
    if numbers.random() < (0.4 if m <= 1024 or n % 8 == 0 else 0):  # rows of the instruction along n
        return across_plan(numbers, m, n) + copies
    is_large = m * n * k > 1e10  # narrow tiles would take most of the time
    tile_m = fitting(numbers, m, [64, 128, 128, 192, 256] if is_large else [64, 128, 192, 256])
    tile_n = fitting(numbers, n, [96, 128, 160, 192, 224, 256] if is_large else [16, 32, 64, 96, 128, 160, 192, 256])
    more = numbers.choice(["", "cluster: [2, 1]", "cluster: [1, 2]", "cluster: [1, 1, 2]", "cluster: [1, 1, 4]",
                           "persistent: true store_boxes: true", "ping_pong: true store_boxes: true"])
    return f"tile: [{tile_m}, {tile_n}, 64] tensor_cores: true {more}{copies}"


def plans_of(numbers, m, n, k, count, atoms=0.7):
    """Options as text; the compiler's choice is the first."""
    plans = ["", "tensor_cores: false"]
    if n % 8 or k % 8:
        plans += ["copy_operands: true", "copy_operands: false"]
    while len(plans) < count:
        make = atoms_plan if numbers.random() < atoms else warpgroups_plan
        plan = make(numbers, m, n, k)
        plans += [plan] * (plan not in plans)
    return plans


def row_of(shape):
    return workloads.gemm("x", "x".join(map(str, shape)), *shape)


def measure(arguments):
    import torch
    import sweep
    from arrays import TorchArrays, worst_error
    from engine import Library, Refused
    from machine import gpu_facts
    from measure import exact_results
    from timing import Contestant, capture, event_us, first_line

    library, stream, end = Library(arguments.library), torch.cuda.Stream(), time.monotonic() + arguments.seconds
    arrays, all_right, measured = TorchArrays("cuda"), True, []
    lists = [(kind, shape) for kind in arguments.kinds.split(",") if not arguments.shapes
             for shape in sweep.shapes(kind, arguments.count, arguments.seed, arguments.most, arguments.flops)]
    lists += [("given", tuple(map(int, shape.split("x")))) for shape in arguments.shapes.split(",") if shape]
    numbers = random.Random(arguments.seed)
    tasks = [(kind, shape, plans_of(numbers, *shape, arguments.plans, arguments.atoms)) for kind, shape in lists]
    numbers.shuffle(tasks)

    def compiled(shape, plan):
        try:
            kernel = library.compile(row_of(shape), arrays.device, options=plan)
            return kernel, ""
        except Refused as refusal:
            return None, first_line(refusal)

    def timed(call):
        contestant = Contestant("ours", lambda i: call(), 1)
        capture(torch, contestant, "hot", stream)
        graph, launches = contestant.graphs["hot"]
        return statistics.median(event_us(torch, stream, graph.replay) / launches for _ in range(arguments.turns))

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        waiting = {}
        for number, (kind, shape, plans) in enumerate(tasks):
            if time.monotonic() > end:
                break
            for ahead in range(number, min(number + 4, len(tasks))):  # compiled while others are timed
                if ahead not in waiting:
                    waiting[ahead] = [(plan, pool.submit(compiled, tasks[ahead][1], plan)) for plan in tasks[ahead][2]]
            found = [(plan, *future.result()) for plan, future in waiting.pop(number)]
            row = row_of(shape)
            with torch.inference_mode(), torch.cuda.stream(stream):
                inputs = [arrays.make(tensor) for tensor in row.inputs]
                right = exact_results(row, arrays, inputs)
                output = torch.empty(shape[:2], device="cuda", dtype=torch.float16)
                entry = {"kind": kind, "shape": list(shape), "refused": [], "plans": [],
                         "peer_us": timed(lambda: torch.mm(inputs[0], inputs[1], out=output))}
                for plan, kernel, why in found:
                    if kernel is None:
                        entry["refused"].append([plan, why])
                        continue
                    kernel.prepare(stream.cuda_stream)
                    outputs = [arrays.empty(tensor) for tensor in row.outputs]
                    call = kernel.call(inputs, outputs, stream.cuda_stream)
                    call()
                    stream.synchronize()
                    error = worst_error([arrays.exact(a, t) for a, t in zip(outputs, row.outputs)], right)
                    if not error <= row.tolerance:
                        all_right = False
                        print(f"WRONG: {shape} {plan}: {error}")
                        continue
                    entry["plans"].append([plan, timed(call)])
            measured.append(entry)
            print(f"\r{len(measured)} of {len(tasks)} shapes", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    text = json.dumps({"gpu": gpu_facts(torch)["name"], "library": library.digest(), "shapes": measured}, indent=None)
    pathlib.Path(arguments.file).write_text(text.replace('{"kind"', '\n{"kind"') + "\n", encoding="utf-8")
    print(f"{len(measured)} of {len(tasks)} shapes, {sum(len(entry['plans']) for entry in measured)} plans, "
          f"{sum(len(entry['refused']) for entry in measured)} refused")
    return 0 if all_right else 1


def estimate(tensorc, shape, plan):
    """(kind of plan, microseconds), or None if it is refused now."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(plan)
        file.flush()
        sizes = ",".join(f"{name}={size}" for name, size in zip("MNK", shape))
        command = [tensorc, "explain", str(PROGRAM), "--entry=gemm_f16", f"--sizes={sizes}", "--backend=cuda",
                   "--format=json", f"--options={file.name}"]
        done = subprocess.run(command if plan else command[:-1], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    explained = json.loads(done.stdout)
    kernel = explained["kernels"][-1]
    options = " ".join(kernel["options"].split())
    mapped = re.findall(r"map_to_threads: (\d+|\[[\d, ]+\])", options)
    threads = math.prod(json.loads(f"[{', '.join(text.strip('[]') for text in mapped)}]"))
    copies = math.prod(kernel["launch"]["block"]) > threads  # threads of warpgroups that only copy
    kind = "warpgroups" if copies else "atoms" if "tensor_cores: true" in options else "elements"
    return ("copied " if len(explained["kernels"]) > 1 else "") + kind, explained["estimate_us"], options


def mean(values):
    return math.exp(statistics.fmean(map(math.log, values))) if values else float("nan")


def compare(arguments):
    shapes = json.loads(pathlib.Path(arguments.file).read_text(encoding="utf-8"))["shapes"]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        asked = [[(plan, us, pool.submit(estimate, arguments.tensorc, entry["shape"], plan))
                  for plan, us in entry["plans"] if "tile" in plan] for entry in shapes]
        known = [[(plan, us, *future.result()) for plan, us, future in plans if future.result()] for plans in asked]
    kinds = {}
    for entry, plans in zip(shapes, known):
        for plan, us, kind, estimated, options in plans:
            kinds.setdefault(kind, []).append((us / estimated, us, estimated, entry["shape"], plan, options))
    for kind, found in sorted(kinds.items()):
        logs = [math.log(ratio) for ratio, *_ in found]
        spread = math.exp(statistics.pstdev(logs))
        print(f"{kind}: {len(found)} plans, measured / estimated {mean([r for r, *_ in found]):.2f}, spread {spread:.2f}")
        if kind == arguments.kind:
            for ratio, us, estimated, shape, plan, options in sorted(found, key=lambda one: one[0])[::max(
                    1, len(found) // max(arguments.show, 1))]:
                print(f"  {ratio:5.2f} {us:8.2f} of {estimated:8.2f} us  {'x'.join(map(str, shape))}  {plan or options}")
    regrets, ratios = [], []
    lines = []
    for entry, plans in zip(shapes, known):
        if not plans:
            continue
        best = min(plans, key=lambda one: one[1])
        pick = min(plans, key=lambda one: one[3])
        regrets.append(pick[1] / best[1])
        ratios.append(entry["peer_us"] / pick[1])
        lines.append((ratios[-1], f"  {entry['peer_us'] / pick[1]:5.2f} of PyTorch, {pick[1]:8.2f} us (estimated "
                      f"{pick[3]:.2f}), best {best[1]:8.2f} (estimated {best[3]:.2f})  {'x'.join(map(str, entry['shape']))}  "
                      f"{pick[0] or 'choice: ' + pick[4]} | {best[0] or 'choice'}"))
    for _, line in sorted(lines)[:arguments.show]:
        print(line)
    print(f"least estimate: {mean(regrets):.3f} of the fastest, worst {max(regrets):.2f}; peer / it {mean(ratios):.3f}, "
          f"worst {min(ratios):.2f}, {sum(ratio < 0.85 for ratio in ratios)} of {len(ratios)} below 0.85")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("task", choices=["measure", "compare"])
    add("file")
    add("--count", type=int, default=40, help="shapes of each kind")
    add("--plans", type=int, default=24, help="of each shape")
    add("--atoms", type=float, default=0.7, help="share of plans by mma.sync")
    add("--seed", type=int, default=1)
    add("--kinds", default="aligned,odd")
    add("--shapes", default="", help="MxNxK,..., instead of random ones")
    add("--most", type=int, default=8192, help="of M, N and K")
    add("--flops", type=float, default=4e10, help="operations of a shape, at most")
    add("--turns", type=int, default=5, help="of each plan")
    add("--jobs", type=int, default=2, help="compilations at once")
    add("--seconds", type=float, default=1e9, help="after which no further shape is begun")
    add("--library", default="")
    add("--tensorc", default="build/tensorc")
    add("--kind", default="", help="of which the plans are shown")
    add("--show", type=int, default=12, help="lines of each list")
    arguments = parser.parse_args()
    for path in (arguments.file, arguments.tensorc) if arguments.task == "compare" else ():
        if not pathlib.Path(path).is_file():
            parser.error(f"there is no file {path}")
    return measure(arguments) if arguments.task == "measure" else compare(arguments)


if __name__ == "__main__":
    sys.exit(main())
