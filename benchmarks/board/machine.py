"""What a run was measured on, and what that machine could do at best."""
import functools
import os
import pathlib
import platform
import subprocess
import time

import numpy as np

import openblas
import workloads

HERE = pathlib.Path(__file__).resolve().parent
# Bytes and operations per second that the best known kernels reach, not data sheets'.
KNOWN = {"NVIDIA H200": {"bandwidth": 4.25e12, "half": 720e12, "tf32": 365e12, "fp8": 1410e12, "float": 55e12}}


def output_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True, cwd=HERE)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def revision():
    """Of the sources: as git says where they are under it; in a bundle, as the file `revision` that it has."""
    if output_of("git", "ls-files", "machine.py"):
        changed = output_of("git", "status", "--porcelain", "--untracked-files=no")
        return output_of("git", "rev-parse", "--short=12", "HEAD") + "+" * bool(changed)
    noted = HERE / "revision"
    return noted.read_text(encoding="utf-8").strip() if noted.exists() else "unknown"


def queried(*names):
    """What nvidia-smi says of GPU 0 now."""
    values = output_of("nvidia-smi", "--id=0", "--query-gpu=" + ",".join(names), "--format=csv,noheader").split(", ")
    return dict(zip(names, values)) if len(values) == len(names) else {}


def gpu_facts(torch):
    return {
        "name": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "cudnn": str(torch.backends.cudnn.version()),
        "capability": "{}.{}".format(*torch.cuda.get_device_capability())
    } | queried("driver_version", "clocks.max.sm", "clocks.max.mem")


def clocks():
    return queried("clocks.sm", "clocks.mem", "power.draw", "temperature.gpu")


def cpu_facts():
    model = platform.processor()
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {"name": model, "cores": len(os.sched_getaffinity(0)), "load": f"{os.getloadavg()[0]:.1f}"}


def versions():
    found = {"python": platform.python_version()}
    for module in ("numpy", "torch", "triton", "cupy"):
        try:
            found[module] = __import__(module).__version__
        except ImportError:
            found[module] = "not installed"
    return found


def measured_gpu(torch):
    """Figures of a GPU that is not in KNOWN: what PyTorch's copy and products reach."""

    def seconds(function):
        function()
        least = float("inf")
        for _ in range(5):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            function()
            end.record()
            end.synchronize()
            least = min(least, begin.elapsed_time(end) / 1e3)
        return least

    source = torch.randn(1 << 28, device="cuda")
    target = torch.empty_like(source)
    figures = {"bandwidth": 2 * 4 * source.numel() / seconds(lambda: target.copy_(source))}
    del source, target
    for name, type, size in (("half", torch.float16, 8192), ("float", torch.float32, 4096)):
        a, b = (torch.randn(size, size, device="cuda").to(type) for _ in range(2))
        figures[name] = 2 * size**3 / seconds(lambda: a @ b)
    return figures | {"tf32": figures["half"] / 2, "fp8": figures["half"] * 2}


def cpu_products(torch):
    """Products of 2048² float32 by all that this machine has: functions to time."""
    row = workloads.gemm("", "", 2048, 2048, 2048, "float")
    a = np.ones((2048, 2048), np.float32)
    products = [lambda: a @ a]
    try:
        openblas.library()
        products.append(functools.partial(openblas.sgemm(row, [(a, a)]), 0))
    except OSError:
        pass
    if torch is not None:
        b = torch.ones(2048, 2048)
        products.append(lambda: b @ b)
    return products


def least_seconds(function):
    """Of ten calls, after some that wake threads, fill caches and raise clocks."""
    warm = time.perf_counter() + 0.3
    while time.perf_counter() < warm:
        function()
    least = float("inf")
    for _ in range(10):
        begin = time.perf_counter()
        function()
        least = min(least, time.perf_counter() - begin)
    return least


def measured_cpu(torch):
    """Of all cores: the bandwidth of a copy of 256 MB, and what the fastest product of float32 reaches."""
    source = np.ones(1 << 26, np.float32)
    target = np.empty_like(source)
    copies = [lambda: np.copyto(target, source)]
    if torch is not None:
        copies.append(lambda: torch.from_numpy(target).copy_(torch.from_numpy(source)))
    return {
        "bandwidth": 2 * source.nbytes / min(map(least_seconds, copies)),
        "float": 2 * 2048**3 / min(map(least_seconds, cpu_products(torch)))
    }


def figures(device, name, torch, given):
    """Bytes and operations per second, and whence they are. `given` overrides."""
    source = "known"
    best = next((dict(values) for known, values in KNOWN.items() if name.startswith(known)), None)
    if device == "cpu" and {"bandwidth", "float"} <= given.keys():
        best, source = {}, "given"
    elif device == "cpu":
        best, source = measured_cpu(torch), "measured: the fastest copy and product of matrices of NumPy, OpenBLAS and PyTorch"
    elif best is None:
        best, source = measured_gpu(torch), "measured by a copy and products of matrices"
    return best | given, source


def floor_us(row, best):
    """The time below which no implementation comes."""
    return max(row.bytes / best["bandwidth"], row.flops / best[row.peak]) * 1e6
