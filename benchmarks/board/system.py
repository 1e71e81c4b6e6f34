"""What a launch and a compilation cost on a GPU, beside PyTorch's launches: figures that belong to no row."""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import workloads
from engine import Refused
from launches import us_from_c, us_from_python
from timing import Contestant, first_line, time_column

HERE = pathlib.Path(__file__).resolve().parent
LAUNCHES = 1000
PROCESSES = 5


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


def three_tensors(settings):
    row = workloads.gemm("S", "", 8, 8, 8, "float")
    tensors = [settings.arrays.empty(tensor) for tensor in row.inputs + row.outputs]
    kernel = settings.library.compile(row, settings.arrays.device)
    kernel.prepare(settings.stream_handle)
    return tensors, kernel.call(tensors[:2], tensors[2:], settings.stream_handle)


def launch_from_python(settings):
    (a, b, c), call = three_tensors(settings)
    return {
        "name": "a launch from Python (ctypes) with three tensors, µs", "ours":
        us_from_python(call, settings.synchronize), "peer":
        us_from_python(lambda: settings.torch.mm(a, b, out=c), settings.synchronize), "which": "eager", "goal": 4.0
    }


def launch_from_c(settings):
    _, call = three_tensors(settings)
    return {
        "name": "a launch from C with three tensors, µs", "ours": us_from_c(call, settings.synchronize), "peer": None,
        "which": "", "goal": 2.5
    }


def new_process(settings):
    """Medians of some processes, as new_process.py measures them."""
    found = []
    for _ in range(PROCESSES):
        done = subprocess.run([sys.executable, str(HERE / "new_process.py"), str(settings.library.path)],
                              capture_output=True,
                              text=True,
                              check=False)
        if done.returncode != 0:
            raise Refused(f"new_process.py: {first_line(done.stderr)}")
        found.append(json.loads(done.stdout))

    def figure(name, goal, ms):
        return {"name": name, "ours": statistics.median(map(ms, found)), "peer": None, "which": "", "goal": goal}

    return [
        figure("a new process: text of a matrix product to its first run, NVRTC included, ms", 150,
               lambda one: one["first"]["ms"]),
        figure("of these NVRTC, ms", None, lambda one: one["first"]["nvrtc_ms"]),
        figure("opening the library before that, ms", None, lambda one: one["library_ms"]),
        figure("its next kernel, a softmax, without NVRTC, ms", 40,
               lambda one: one["next"]["ms"] - one["next"]["nvrtc_ms"]),
        figure("NVRTC of the next, ms", None, lambda one: one["next"]["nvrtc_ms"])
    ]


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
    for function in (smallest_kernel, launch_from_c, launch_from_python, new_process, cache_hit):
        try:
            figure = function(settings)
            found += figure if isinstance(figure, list) else [figure]
        except (Refused, RuntimeError) as fault:
            found.append({
                "name": function.__name__, "ours": None, "message": first_line(fault), "peer": None, "which": "",
                "goal": None
            })
    return found
