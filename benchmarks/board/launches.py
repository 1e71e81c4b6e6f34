"""What a launch costs on the host: least times of calls in bursts, from Python and, where there is a C compiler, from C."""
import ctypes
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from engine import Refused

SOURCE = pathlib.Path(__file__).resolve().parent / "launches.c"
CALLS, ROUNDS = 200, 50  # a burst fits into a stream's queue


def us_from_python(call, synchronize):
    least = float("inf")
    for _ in range(ROUNDS):
        synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        least = min(least, (time.perf_counter() - begin) / CALLS)
    synchronize()
    return least * 1e6


def loop_in_c():
    """launches.c as a library. Raises Refused where it cannot be compiled."""
    with tempfile.TemporaryDirectory() as folder:
        library = pathlib.Path(folder) / "launches.so"
        compiler = os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), "cc")
        command = [compiler, "-O2", "-shared", "-fPIC", str(SOURCE), "-o", str(library)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as fault:
            raise Refused(f"no C compiler: {fault}") from fault
        loaded = ctypes.CDLL(str(library))
    loaded.us_of_calls.restype = ctypes.c_double
    return loaded.us_of_calls


def us_from_c(launch, synchronize):
    """Of what Kernel.call() returned for a stream."""
    loop, least = loop_in_c(), float("inf")
    for _ in range(ROUNDS):
        synchronize()
        us = loop(launch.function, *launch.arguments, ctypes.c_int(CALLS))
        if us < 0:
            raise Refused("a launch fails")
        least = min(least, us)
    synchronize()
    return least
