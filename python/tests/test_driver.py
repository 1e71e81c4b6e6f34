"""What is asked of a GPU's driver: one that only writes it down (driver.c), so no GPU is needed."""
import os
import shutil
import subprocess
import sys
import pathlib

import pytest

SOURCE = pathlib.Path(__file__).resolve().parent / "driver.c"
PROGRAM = """
import ctypes
import numpy as np
import pytest
import tensorc

driver = ctypes.CDLL("libcuda.so.1")
driver.driver_log.restype = ctypes.c_char_p
driver.driver_capture.argtypes = driver.cuCtxSetCurrent.argtypes = [ctypes.c_void_p]

class Array:
    __cuda_array_interface__ = None  # a class attribute says what instances have

    def __init__(self, stream=None, first=0, shape=(64, )):
        self.memory = np.zeros(64 * 1024 + 5, "float32")  # what the driver says is the device's
        place = self.memory.ctypes.data + -self.memory.ctypes.data % 16 + 4 * first
        self.__cuda_array_interface__ = dict(shape=shape, typestr="<f4", data=(place, False), version=3, stream=stream)

aligned, unaligned = Array(shape=(64, 1024)), Array(shape=(64, 1024), first=1)
total = tensorc.define("def total(float(N,D) x) -> (s) { s(n) +=! x(n,d) }").total  # by vectors
add = tensorc.define("def add(float(N) x, float(N) y) -> (z) { z(i) = x(i) + y(i) }").add

def asked():
    return driver.driver_log().decode().splitlines()

def launch_on(stream):
    return f"launch on {hex(stream) if stream else '(nil)'} in 0x1000"
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("there is no C compiler to make a driver with")
    path = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", path, SOURCE], check=True)
    return path


@pytest.fixture
def run(library):
    """Runs a program in a process with that driver."""
    def run_program(text):
        environment = dict(os.environ, LD_LIBRARY_PATH=f"{library.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}",
                           TENSORC_NVRTC=str(library))
        done = subprocess.run([sys.executable, "-c", PROGRAM + text], capture_output=True, text=True, env=environment,
                              timeout=300)
        assert done.returncode == 0, done.stderr
    return run_program


def test_a_kernel_is_loaded_into_the_primary_context_where_none_is_current(run):
    run("""
add(Array(), Array(), out=Array())
assert asked() == ["load in 0x1000", launch_on(0)]
add(Array(), Array(), out=Array())
assert asked() == [launch_on(0)]
""")


def test_a_kernel_is_loaded_into_the_callers_context(run):
    run("""
driver.cuCtxSetCurrent(0x2000)
kernel = total.compile(aligned)
assert asked() == ["load in 0x2000"]
driver.cuCtxSetCurrent(0x3000)  # another one now: a def's kernels stay together
kernel(unaligned, out=Array())
assert asked() == ["load in 0x2000", "launch on (nil) in 0x2000"]
kernel = tensorc.compile("def neg(float(N) x) -> (y) { y(i) = -x(i) }", sizes={"N": 64}, backend="cuda")
assert asked() == ["load in 0x3000"]
""")


def test_a_launch_waits_for_the_streams_that_arrays_name(run):
    run("""
add.compile(Array(), Array())
asked()
for x, y, z, stream, expected in (
        (None, None, None, None, [launch_on(0)]),
        (0x70, 0x70, 0x70, None, [launch_on(0x70)]),
        (0x70, 0x80, None, None, ["0x70 waits for 0x80", launch_on(0x70)]),
        (None, 0x80, 0x90, None, ["0x80 waits for 0x90", launch_on(0x80)]),
        (None, None, 0x90, None, [launch_on(0x90)]),
        (0x70, 0x80, 0x80, 0xa0, ["0xa0 waits for 0x70", "0xa0 waits for 0x80", launch_on(0xa0)]),
        (1, 0x70, 1, None, ["0x1 waits for 0x70", launch_on(1)]),
        (0x70, 1, None, 0x70, ["0x70 waits for 0x1", launch_on(0x70)])):
    add(Array(x), Array(y), out=Array(z), stream=stream)
    assert asked() == expected, (x, y, z, stream)
""")


def test_a_stream_that_is_captured_is_given_no_kernel_that_is_not_there(run):
    run("""
kernel = total.compile(aligned)
asked()
driver.driver_capture(0x70)
kernel(aligned, out=Array(), stream=0x70)
assert asked() == [launch_on(0x70)]
for function in (total, kernel):
    with pytest.raises(tensorc.Error, match="the stream is being captured, and a tensor is not aligned to the vectors"):
        function(unaligned, out=Array(), stream=0x70)
assert asked() == []
kernel(unaligned, out=Array(), stream=0x80)
assert asked() == ["load in 0x1000", launch_on(0x80)]
kernel(unaligned, out=Array(), stream=0x70)
assert asked() == [launch_on(0x70)]
""")
