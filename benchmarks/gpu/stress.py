#!/usr/bin/env python3
"""Runs products of warpgroups very often beside other work, on a GPU: do they always end, and with the same bits?

    stress.py [--runs=100000] [--kernels=40] [--delays=0.5] [--seed=1] [--seconds=300]

Each kernel is a product of float16 or bfloat16 of random sizes, with a random tile, number of buffers, cluster and
epilogue. Half of the kernels are persistent, and in half of these two teams of warpgroups take turns. Half of all
kernels store boxes. A choice that the compiler refuses is skipped.

A kernel's first result is compared with float64. Then it runs again and again, while a second stream runs products of
random sizes, which take processors and the cache away from it at random moments. Each result is compared with the
first, bit by bit. --delays is the part of the kernels whose warps also sleep for random times before they wait at
barriers, arrive at them and copy boxes. This needs a C compiler ($CC or cc).

Prints a line for each kernel that fails and the number of runs. The line gives the kernel's number and a file with its
CUDA text. --first=NUMBER --kernels=1 with the same --seed and --delays runs it again. A kernel that does not end within
--hang seconds ends the program. Ends with 1 if anything failed or nothing ran.
"""
import argparse
import ctypes
import glob
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(folder / "board") for folder in (HERE, HERE.parent)]  # as a bundle has it; in the sources

import workloads  # noqa: E402
from arrays import TorchArrays, worst_error  # noqa: E402
from engine import Library, Refused  # noqa: E402
from measure import exact_results  # noqa: E402
from timing import first_line  # noqa: E402

EPILOGUES = ("bias", "relu", "bias_relu", "bias_gelu")


# A library between tensorc and NVRTC, which compiles what `edit` makes of a text.
BETWEEN = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
typedef int Create(void**, const char*, const char*, int, const char* const*, const char* const*);
const char* (*edit)(const char*);
int nvrtcCreateProgram(void** program, const char* text, const char* name, int count, const char* const* headers,
                       const char* const* names) {
  Create* create = (Create*)dlsym(RTLD_NEXT, "nvrtcCreateProgram");
  return create(program, edit ? edit(text) : text, name, count, headers, names);
}
"""
# The lanes of a warp that come together read one clock, so they sleep together and go on together.
DRIFT = """__device__ __forceinline__ void drift() {
  const unsigned lanes = __activemask();
  unsigned x = __shfl_sync(lanes, unsigned(clock64()), __ffs(lanes) - 1) ^ (threadIdx.x / 32 + blockIdx.x * 64) << 16;
  x = (x ^ x >> 15) * 0x85ebca6bu;
  x = (x ^ x >> 13) * 0xc2b2ae35u;
  x ^= x >> 16;
  if (x % ONE_IN == 0) __nanosleep(x / ONE_IN % BELOW_NS);
  __syncwarp(lanes);
}
"""
# The functions of a text that begin with a delay. All waits at mbarriers go through wait_for_phase().
DELAYED = ("wait_for_phase", "commit", "release", "release_in", "pass", "copy_box", "copy_box_to", "store_box",
           "commit_boxes", "wait_boxes_read", "sync_warpgroup", "wait_for_rings", "arrive_in_cluster",
           "wait_for_cluster", "wait_for_kernels_before", "let_next_kernel_start")
BODY = re.compile(rf"__device__ __forceinline__ void ({'|'.join(DELAYED)})\([^)]*\) {{")


def random_kernel(numbers):
    """A row, and options as text. Results of persistent kernels are large, so that blocks have several tiles."""
    sizes = (64, 128, 200, 256, 384, 512, 640, 1000, 1024)
    persistent, turns, boxes = (numbers.random() < 0.5 for _ in range(3))
    turns = turns and persistent
    m, n = (numbers.choice((1000, 2048, 3000, 4096) if persistent else sizes) for _ in range(2))
    k = numbers.choice(sizes)
    if numbers.random() < 0.5:
        row = workloads.gemm("S", f"{m}x{n}x{k}", m, n, k, type=numbers.choice(("half", "bfloat16")))
    else:
        row = workloads.gemm_epilogue("S", f"{m}x{n}x{k}", m, n, k, epilogue=numbers.choice(EPILOGUES))
    rows = numbers.randint(1, 2 if turns else 3)
    columns = numbers.randint(1, 6 if turns and rows == 2 else 8)  # a thread of a team has 192 sums at most
    tile = [64 * rows, 32 * columns, 64]
    text = f"tile: {tile} copy_stages: {numbers.randint(2, 5)} tensor_cores: true"
    for name, value in (("persistent", persistent), ("store_boxes", boxes), ("ping_pong", turns)):
        text += f" {name}: true" if value else ""
    if not persistent and numbers.random() < 0.3:
        text += f" cluster: {numbers.choice(([2, 1], [1, 2]))}"
    return row, text


def open_nvrtc():
    """Loads NVRTC where tensorc finds it, too, and returns its path."""
    given = os.environ.get("TENSORC_NVRTC")
    names = [f"libnvrtc.so{version}" for version in (".13", ".12", "")]
    names += sorted(glob.glob("/usr/local/cuda*/lib64/libnvrtc.so*"), reverse=True)
    for name in [given] if given else names:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return next(line.split()[-1] for line in open("/proc/self/maps", encoding="utf-8") if "libnvrtc.so" in line)
    raise FileNotFoundError(f"NVRTC is not found (looked for {given or ', '.join(names)}); set TENSORC_NVRTC")


class Delays:
    """Puts delays into the texts that the library compiles, between choose() and clear(). Must exist before the library
    compiles anything."""

    def __init__(self):
        self.nvrtc, self.folder = open_nvrtc(), tempfile.TemporaryDirectory()
        source, path = pathlib.Path(self.folder.name, "between.c"), pathlib.Path(self.folder.name, "between.so")
        source.write_text(BETWEEN, encoding="utf-8")
        compiler = shlex.split(os.environ.get("CC") or "cc")
        subprocess.run([*compiler, "-shared", "-fPIC", "-o", path, source, "-Wl,--no-as-needed", self.nvrtc, "-ldl"],
                       check=True)
        os.environ["TENSORC_NVRTC"] = str(path)
        self.callback = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)(self.edit)
        edit = ctypes.c_void_p.in_dll(ctypes.CDLL(str(path)), "edit")
        edit.value = ctypes.cast(self.callback, ctypes.c_void_p).value
        self.clear()

    def choose(self, numbers):
        """Delays for the next kernel, as text: a sleep at one place in so many, of less than so many nanoseconds."""
        self.clear()
        self.one_in, self.below_ns = numbers.choice(((2, 1000), (8, 4000), (64, 30000)))
        return f"delays: 1 in {self.one_in} below {self.below_ns} ns"

    def clear(self):
        self.one_in, self.below_ns, self.delayed, self.text = 0, 0, set(), ctypes.create_string_buffer(b"")

    def edit(self, text):
        text = text.decode()
        if self.one_in:
            self.delayed |= set(BODY.findall(text))
            drift = DRIFT.replace("ONE_IN", str(self.one_in)).replace("BELOW_NS", str(self.below_ns))
            text = drift + BODY.sub(r"\g<0> drift();", text)
        self.text = ctypes.create_string_buffer(text.encode())  # lives until NVRTC has copied it
        return ctypes.addressof(self.text)

    def save(self):
        """Writes the kernel's text to a file that stays, and returns a note with its name."""
        if not self.text.value:
            return ""
        with tempfile.NamedTemporaryFile("wb", prefix="stress_", suffix=".cu", delete=False) as file:
            file.write(self.text.value)
        return f", text in {file.name}"


class Hog:
    """Products of random sizes on a stream of their own."""

    def __init__(self, seed):
        self.numbers, self.stream = random.Random(seed), torch.cuda.Stream()
        self.arrays = [torch.randn(s, s, device="cuda", dtype=torch.half) for s in (256, 512, 1024, 2048)]

    def work(self):
        with torch.cuda.stream(self.stream):
            a = self.numbers.choice(self.arrays)
            torch.mm(a, a)


class Watch:
    """Ends the process if nothing has ended for so long: a kernel that hangs lets no other thread synchronise."""

    def __init__(self, hang, delays):
        self.hang, self.delays = hang, delays
        self.begin("nothing", "starts")
        threading.Thread(target=self.look, daemon=True).start()

    def begin(self, what, state):
        self.what, self.state, self.done, self.alive = what, state, 0, time.monotonic()

    def ends(self, runs):
        self.done, self.alive = self.done + runs, time.monotonic()

    def look(self):
        while time.monotonic() - self.alive <= self.hang:
            time.sleep(1)
        self.report("HANGS", f"{self.state} for {self.hang:g} s after {self.done} runs")
        os._exit(1)

    def report(self, fault, how):
        print(f"{fault}: {self.what}: {how}{self.delays.save() if self.delays else ''}", flush=True)


def run_kernel(row, kernel, runs, hog, stream, end, watch):
    """(how many runs differed), and the error of the first."""
    arrays = TorchArrays("cuda")
    with torch.cuda.stream(stream):
        inputs = [arrays.make(tensor) for tensor in row.inputs]
        right = exact_results(row, arrays, inputs)
        kernel.prepare(stream.cuda_stream)
        outputs = [arrays.empty(tensor) for tensor in row.outputs]
        call = kernel.call(inputs, outputs, stream.cuda_stream)
        call()
        stream.synchronize()
        error = worst_error([arrays.exact(a, t) for a, t in zip(outputs, row.outputs)], right)
        first = [a.clone() for a in outputs]
        differing = torch.zeros((), dtype=torch.int64, device="cuda")
        while watch.done < runs and time.monotonic() < end:
            count = min(20, runs - watch.done)
            for _ in range(count):
                if hog.numbers.random() < 0.3:
                    hog.work()
                for a in outputs:
                    a.fill_(float("nan"))
                call()
                for a, b in zip(outputs, first):
                    differing += (a != b).any()
            stream.synchronize()
            hog.stream.synchronize()
            watch.ends(count)
    return int(differing), error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--runs", type=int, default=100_000, help="of all kernels together")
    add("--kernels", type=int, default=40)
    add("--delays", type=float, default=0.5, help="part of the kernels with delays inside, 0 to 1")
    add("--seed", type=int, default=1)
    add("--first", type=int, default=0, help="number of the first kernel to try")
    add("--seconds", type=float, default=300, help="after which no further runs are started")
    add("--hang", type=float, default=60)
    add("--library", default="")
    arguments = parser.parse_args()
    if not 0 <= arguments.delays <= 1:
        parser.error(f"--delays={arguments.delays:g} is not between 0 and 1")
    if not 1 <= arguments.kernels <= arguments.runs:
        parser.error(f"--kernels={arguments.kernels} is not between 1 and --runs={arguments.runs}")
    if not torch.cuda.is_available():
        parser.error("PyTorch finds no GPU")
    delays = Delays() if arguments.delays else None
    library, stream, hog = Library(arguments.library), torch.cuda.Stream(), Hog(arguments.seed)
    end, watch = time.monotonic() + arguments.seconds, Watch(arguments.hang, delays)
    number, total, wrong, kernels, refused = arguments.first - 1, 0, 0, 0, 0
    kinds = dict.fromkeys(("persistent", "store_boxes", "ping_pong", "cluster", "delays"), 0)
    while kernels < arguments.kernels and time.monotonic() < end:
        number += 1
        numbers = random.Random(f"{arguments.seed} {number}")
        row, text = random_kernel(numbers)
        what = f"kernel {number} of seed {arguments.seed}: {row.name} {row.entry} {text}"
        has_delays = numbers.random() < arguments.delays
        if delays:
            delays.clear()
        if has_delays:
            what += f" ({delays.choose(numbers)})"
        watch.begin(what, "compiles")
        try:
            kernel = library.compile(row, (2, 0), options=text)
        except Refused as refusal:
            if "NVRTC" in str(refusal):
                watch.report("FAILS", str(refusal))
                return 1
            refused += 1
            if refused == 1:
                print(f"refused: {what}: {first_line(refusal)}")
            continue
        if delays and b"wgmma" not in delays.text.value:  # the compiler knows better for small products
            refused += 1
            continue
        if has_delays and "wait_for_phase" not in delays.delayed:
            watch.report("FAILS", "its text has no function 'wait_for_phase', which waits at mbarriers")
            return 1
        watch.begin(what, "runs")
        try:
            differing, error = run_kernel(row, kernel, arguments.runs // arguments.kernels, hog, stream, end, watch)
        except (Refused, RuntimeError) as fault:  # the device has to be opened anew
            watch.report("FAILS", f"after {watch.done} runs: {first_line(fault)}")
            return 1
        kernels, total = kernels + 1, total + watch.done
        for kind in kinds:
            kinds[kind] += f"{kind}:" in what
        if differing or not error <= row.tolerance:
            wrong += 1
            watch.report("WRONG", f"{differing} of {watch.done} runs differ, error {error:.2g}")
    listed = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    print(f"{total} runs of {kernels} kernels ({listed}; {refused} refused): {wrong} wrong")
    return 1 if wrong or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
