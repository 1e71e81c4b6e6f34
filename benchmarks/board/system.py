"""What a launch and a compilation cost on a GPU, beside PyTorch's launches: figures that belong to no row."""
import pathlib
import statistics
import tempfile
import time

import workloads
from engine import Refused
from timing import Contestant, first_line, time_column

LAUNCHES = 1000


def host_us(function, synchronize, calls=200, rounds=50):
    """The least time of a call on the host, over rounds of calls."""
    least = float("inf")
    for _ in range(rounds):
        synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        least = min(least, (time.perf_counter() - begin) / calls)
    synchronize()
    return least * 1e6


def smallest_kernel(settings):
    """A copy of 32 elements, launched over and over in one graph, and the same of PyTorch's."""
    torch, row = settings.torch, workloads.copy("S", "", 32)
    source, target = (settings.arrays.empty(tensor) for tensor in row.inputs + row.outputs)
    kernel = settings.library.compile(row, settings.arrays.device)
    kernel.prepare(settings.stream_handle)
    call = kernel.call([source], [target], settings.stream_handle)
    contestants = [
        Contestant("ours", lambda i: call(), LAUNCHES),
        Contestant("eager", lambda i: target.copy_(source), LAUNCHES)
    ]
    time_column(torch, contestants, "cold", settings.stream, settings.pairs, settings.seconds)
    ours, peer = (statistics.median(contestant.us["cold"]) for contestant in contestants)
    return {
        "name": "the smallest kernel in a graph, µs a launch", "ours": ours, "peer": peer, "which": "eager", "goal":
        1.13
    }


def launch_from_python(settings):
    torch, row = settings.torch, workloads.gemm("S", "", 8, 8, 8, "float")
    a, b, c = (settings.arrays.empty(tensor) for tensor in row.inputs + row.outputs)
    kernel = settings.library.compile(row, settings.arrays.device)
    kernel.prepare(settings.stream_handle)
    call = kernel.call([a, b], [c], settings.stream_handle)
    return {
        "name": "a launch from Python (ctypes) with three tensors, µs", "ours": host_us(call, settings.synchronize),
        "peer": host_us(lambda: torch.mm(a, b, out=c), settings.synchronize), "which": "eager", "goal": 4.0
    }


def text_to_kernel(settings):
    """Of programs that this process, and the driver's cache, have not seen: sizes that no row has."""
    times = []
    for step, make in enumerate((workloads.copy, workloads.window_sum)):
        row = make("S", "", 1_000_003 + step + time.time_ns() % 100_000)
        begin = time.perf_counter()
        settings.library.compile(row, settings.arrays.device)
        times.append((time.perf_counter() - begin) * 1e3)
    return {
        "name": "text to loaded kernel, NVRTC included, ms", "ours": min(times), "peer": None, "which": "", "goal": None
    }


def cache_hit(settings):
    """From a file that is not open to a kernel that can be launched; the least of some."""
    row, least = workloads.gemm("S", "", 256, 256, 256, "float"), float("inf")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cache"
        settings.library.compile(row, settings.arrays.device, cache=path, keep=True)
        for _ in range(10):
            begin = time.perf_counter()
            kernel = settings.library.compile(row, settings.arrays.device, cache=path)
            least = min(least, (time.perf_counter() - begin) * 1e3)
            if not kernel.from_cache:
                raise Refused("the cache does not return what it was given")
    return {
        "name": "a cache's file to loaded kernel, parsing included, ms",
        "ours": least,
        "peer": None,
        "which": "",
        "goal": 2.0
    }


def figures(settings):
    found = []
    for function in (smallest_kernel, launch_from_python, text_to_kernel, cache_hit):
        try:
            found.append(function(settings))
        except (Refused, RuntimeError) as fault:
            found.append({
                "name": function.__name__, "ours": None, "message": first_line(fault), "peer": None, "which": "",
                "goal": None
            })
    return found
