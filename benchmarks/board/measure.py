"""One row: compiled, checked against float64, then timed turn by turn with its peers. Returns plain values for JSON.

The status of a row: "ok"; "wrong", the result is not what float64 says, so nothing of ours is timed; "refused", by the
compiler; "not expressible", as the language stands; "failed", with why. Peers are timed in every case.
"""
import gc
import math
import time

import openblas
from arrays import TorchArrays, worst_error
from engine import Refused
from machine import clocks, floor_us
from prepare import set_modes
from timing import Contestant, first_line, summary, time_column, time_on_cpu

COLD_BYTES = 125e6
MOST_SETS = 1300
SHARED_BYTES = 1e9  # a tensor this large is in all sets: no cache holds it
OURS = ("ours", "tuned", "given")


def make_sets(row, arrays, device):
    """Sets of inputs which, with their results, fill more than any L2; one set for a CPU."""
    first = [arrays.make(tensor) for tensor in row.inputs]
    if device == "cpu":
        return [first]
    sizes = [tensor.bytes for tensor in row.inputs + row.outputs]
    shared = [size >= SHARED_BYTES for size in sizes]
    fresh = row.bytes if any(shared) else sum(sizes)
    count = min(MOST_SETS, max(2 if any(shared) else 1, math.ceil(COLD_BYTES / max(fresh, 1))))
    return [first] + [[old if keep else arrays.make(tensor)
                       for tensor, old, keep in zip(row.inputs, first, shared)]
                      for _ in range(count - 1)]


def compile_ours(row, settings, result):
    """The kernels to time, by the names of settings.variants. Fills in refusals."""
    kernels = {}
    if row.refused:
        result.update(status="not expressible", message=row.refused)
        return kernels
    for name, choice in settings.variants.items():
        begin = time.perf_counter()
        try:
            kernel = settings.library.compile(row, settings.arrays.device, **choice, limit_s=settings.compile_s)
        except Refused as refusal:
            if name == "ours":
                result.update(status="refused", message=str(refusal))
            else:
                result["notes"][name] = first_line(refusal)
            continue
        if name == "tuned" and not kernel.options:
            result["notes"][name] = "the cache has no options for this row"
            continue
        kernels[name] = kernel
        result["compile_ms"][name] = (time.perf_counter() - begin) * 1e3
        result["options"][name] = kernel.options
    return kernels


def exact_results(row, arrays, inputs):
    return row.reference(arrays.xp, *[arrays.exact(array, tensor) for array, tensor in zip(inputs, row.inputs)])


def right_of_ours(name, launch, outputs, row, right, settings, result):
    """Runs once and compares; says whether the kernel may be timed."""
    launch(0)
    settings.synchronize()
    error = worst_error([settings.arrays.exact(a, t) for a, t in zip(outputs[0], row.outputs)], right)
    result["error"][name] = error
    if error <= row.tolerance:
        return True
    if name == "ours":
        result.update(status="wrong",
                      message=f"off by {error:.2g} of an element's size; at most {row.tolerance:g} is right")
    else:
        result["notes"][name] = f"wrong: off by {error:.2g}"
    return False


def our_contestants(row, sets, right, settings, result):
    kernels = compile_ours(row, settings, result)
    found = []
    for name, kernel in kernels.items():
        outputs = [[settings.arrays.empty(tensor) for tensor in row.outputs] for _ in sets]
        try:
            if settings.stream is not None:
                kernel.prepare(settings.stream_handle)
            calls = [kernel.call(i, o, settings.stream_handle) for i, o in zip(sets, outputs)]

            def launch(i, calls=calls):
                calls[i]()

            if right_of_ours(name, launch, outputs, row, right, settings, result):
                found.append(Contestant(name, launch, len(sets)))
        except Refused as refusal:
            if name == "ours":
                result.update(status="failed", message=str(refusal))
            else:
                result["notes"][name] = first_line(refusal)
    return found


def peers_without_torch(row, result):
    result["notes"]["PyTorch"] = "not installed"
    return openblas.peers_of(row), lambda row, launched: [launched]


def peers_with_torch(row, device):
    import peers
    return peers.peers_of(row, device), peers.results_of


def peer_contestants(row, sets, right, settings, result):
    with_torch = isinstance(settings.arrays, TorchArrays)
    known, results_of = peers_with_torch(row, settings.device) if with_torch else peers_without_torch(row, result)
    found = []
    for name, prepare in known.items():
        if name in settings.without or (settings.only and name not in settings.only):
            continue
        if name == "compile" and "seconds" not in settings.prepared.get(row.title, {"seconds": 0}):
            result["notes"][name] = settings.prepared[row.title]["fault"]
            continue
        try:
            launch = prepare(row, sets)
            launched = results_of(row, launch(0))
            error = worst_error([array.double() if with_torch else array for array in launched], right)
        except Exception as fault:  # a peer that does not run on this machine is no peer
            result["notes"][name] = first_line(fault)
            continue
        result["error"][name] = error
        if error <= row.tolerance:
            found.append(Contestant(name, launch, len(sets)))
        else:
            result["notes"][name] = f"wrong: off by {error:.2g}"
    return found


def blank(row, settings):
    return {
        "number": row.number, "name": row.name, "entry": row.entry, "device": settings.device, "status": "ok",
        "message": "", "goal": list(row.goal), "flops": row.flops, "bytes": row.bytes, "peak": row.peak, "floor_us":
        floor_us(row, settings.best), "us": {}, "error": {}, "compile_ms": {}, "options": {}, "notes": {}
    }


def time_all(contestants, settings, result):
    if settings.device == "cpu":
        time_on_cpu(contestants, settings.pairs, settings.seconds)
    else:
        for column in settings.columns:
            failed = time_column(settings.torch, contestants, column, settings.stream, settings.pairs,
                                 settings.seconds / len(settings.columns))
            for name, why in failed.items():
                if name == "ours":
                    result.update(status="failed", message=why)
                else:
                    result["notes"][name] = why
            contestants = [contestant for contestant in contestants if contestant.name not in failed]
            if sum(sum(c.us[column]) for c in contestants) / 1e6 > 2 * settings.seconds:
                break  # one slow column is enough
    for contestant in contestants:
        result["us"][contestant.name] = {column: summary(us) for column, us in contestant.us.items() if us}


def measure(row, settings):
    """Everything about a row. Raises what a broken device raises."""
    result = blank(row, settings)
    begin = time.monotonic()
    sets = make_sets(row, settings.arrays, settings.device)
    if settings.torch is not None:
        set_modes(settings.torch, row)
    right = exact_results(row, settings.arrays, sets[0])
    contestants = our_contestants(row, sets, right, settings, result)
    contestants += peer_contestants(row, sets, right, settings, result)
    del right
    time_all(contestants, settings, result)
    result["seconds"] = time.monotonic() - begin
    if settings.device == "cuda":
        result["clocks"] = clocks()
    del contestants, sets
    gc.collect()
    return result


def best_peer(result, column="hot"):
    """(name, median in microseconds) of the fastest peer, or None."""
    times = [(us[column]["median"], name) for name, us in result["us"].items() if name not in OURS and column in us]
    return tuple(reversed(min(times))) if times else None


def best_of_ours(result, column="hot"):
    times = [(us[column]["median"], name) for name, us in result["us"].items() if name in OURS and column in us]
    return tuple(reversed(min(times))) if times else None
