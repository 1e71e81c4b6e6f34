#!/usr/bin/env python3
"""All that only a machine with a GPU can show of the Python package, the cache, the tuner and exported kernels.

    acceptance.py [--backend=cuda|cpu] [--only=SECTION,...] [--output=FILE.json]

Each section runs in a process of its own under a time limit, and ends in a line: passed, failed, or skipped and why.
Times are shown beside their goals and make nothing fail; a wrong result, an error or a hang does. What needs no GPU
runs anywhere with --backend=cpu, which tries the command itself. The Python package is the one that this Python finds.
Ends with 1 if a section has failed.
"""
import argparse
import csv
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import types

HERE = pathlib.Path(__file__).resolve().parent


def beside(*places):
    """The first place that exists: in the sources, or in a bundle, which has its parts beside this file."""
    return next((place for place in places if place.exists()), places[0])


BOARD = beside(HERE / "board", HERE.parent / "board")
OVERHEAD = beside(HERE / "python", HERE.parent / "python") / "call_overhead.py"
TESTS = beside(HERE / "tests", HERE.parents[1] / "python/tests")
sys.path.insert(0, str(BOARD))

MATMUL = "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }\n"
SIZES = "--sizes=M=256,N=256,K=256"
DEVICE = {"cpu": (1, 0), "cuda": (2, 0)}  # as DLPack has them

# Runs an exported kernel on small integers, whose sums are exact.
HEAD = """
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "FUNCTION.h"
#define N (256 * 256)
"""
CALLER = {
    "cpu": "static int call(float* A, float* B, float* C) { return FUNCTION(A, B, C); }",
    "cuda": """
extern int cuInit(unsigned), cuDeviceGet(int*, int), cuDevicePrimaryCtxRetain(void**, int), cuCtxSetCurrent(void*);
extern int cuMemAlloc_v2(uint64_t*, size_t), cuMemcpyHtoD_v2(uint64_t, const void*, size_t);
extern int cuMemcpyDtoH_v2(void*, uint64_t, size_t);
static int call(float* A, float* B, float* C) {
  int status, device;
  void* context;
  uint64_t at[3];
  FUNCTION_kernels kernels;
  if ((status = cuInit(0)) || (status = cuDeviceGet(&device, 0))) return status;
  if ((status = cuDevicePrimaryCtxRetain(&context, device)) || (status = cuCtxSetCurrent(context))) return status;
  for (int i = 0; i < 3; ++i) if ((status = cuMemAlloc_v2(&at[i], N * sizeof(float)))) return status;
  if ((status = cuMemcpyHtoD_v2(at[0], A, N * sizeof(float)))) return status;
  if ((status = cuMemcpyHtoD_v2(at[1], B, N * sizeof(float)))) return status;
  if ((status = FUNCTION_load(&kernels))) return status;
  if ((status = FUNCTION_launch(&kernels, 0, at[0], at[1], at[2]))) return status;
  return cuMemcpyDtoH_v2(C, at[2], N * sizeof(float));
}"""
}
MAIN = """
int main(void) {
  static float A[N], B[N], C[N];
  int status;
  for (int i = 0; i < N; ++i) { A[i] = (float)(i % 7); B[i] = (float)(i % 5); C[i] = -1; }
  if ((status = call(A, B, C)) != 0) { printf("status %d\\n", status); return 1; }
  for (int m = 0; m < 256; ++m)
    for (int n = 0; n < 256; ++n) {
      float sum = 0;
      for (int k = 0; k < 256; ++k) sum += A[m * 256 + k] * B[k * 256 + n];
      if (C[m * 256 + n] != sum) { printf("C(%d,%d) is %g, not %g\\n", m, n, C[m * 256 + n], sum); return 1; }
    }
  return 0;
}
"""


class Skipped(Exception):
    """Why a section has nothing to run on here."""


class Failed(Exception):
    """What is wrong."""


class Place:
    """Where a section works: a folder with matmul.tc, which goes away, and the tool."""

    def __init__(self, arguments, folder):
        from tune import environment_of
        self.backend, self.tool, self.folder = arguments.backend, str(arguments.tool), pathlib.Path(folder)
        self.library, self.seconds = arguments.library, arguments.seconds
        self.environment = environment_of(self.tool)
        # Python's run in the folder, and import what this process would from where it was started, with the libraries
        # that a package has of its own.
        paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        self.of_python = os.environ | {"PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in paths)}
        self.path("matmul.tc").write_text(MATMUL, encoding="utf-8")

    def path(self, name):
        return self.folder / name

    def run(self, *command, **environment):
        """What a command prints. Raises Failed with the last that it says if it ends with anything but 0."""
        inherited = self.of_python if command[0] == sys.executable else self.environment
        done = subprocess.run([str(word) for word in command], cwd=self.folder, env=inherited | environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()
            failed = [line for line in said if line.startswith(("FAILED ", "ERROR "))]  # of pytest
            raise Failed(f"{pathlib.Path(str(command[0])).name} {command[1]} ends with {done.returncode}: "
                         f"{'; '.join(failed or said[-1:])}")
        return done.stdout

    def tensorc(self, verb, *words, **environment):
        return self.run(self.tool, verb, *words, f"--backend={self.backend}", **environment)

    def need_gpu(self):
        if self.backend != "cuda":
            raise Skipped("needs a GPU")


def gpus():
    """Architectures of the GPUs here, sm_90 say, by nvidia-smi."""
    if not shutil.which("nvidia-smi"):
        return []
    done = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True,
                          text=True, check=False)
    return ["sm_" + line.strip().replace(".", "") for line in done.stdout.splitlines() if re.match(r"\d+\.\d", line)]


def need_modules(*names):
    import importlib.util
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise Skipped(f"this Python has no {', '.join(missing)}")


def suite(place):
    """The package's tests: on a GPU with PyTorch, and with CuPy and JAX where they are."""
    need_modules("tensorc", "pytest", "numpy", *(["torch"] if place.backend == "cuda" else []))
    files = ["test_gpu.py"] if place.backend == "cuda" else ["test_numpy.py"]
    said = place.run(sys.executable, "-m", "pytest", "-q", "-rfEs", "-p", "no:cacheprovider",
                     *(TESTS / f for f in files))
    skipped = sorted(set(re.findall(r"SKIPPED \[\d+\] [^:]*:\d+: (.*)", said)))
    last = said.strip().splitlines()[-1].strip("= ")
    if " passed" not in last:
        raise Skipped(f"{last}: {'; '.join(skipped)}")
    return {"tests": last, "skipped": skipped}


def overhead(place):
    """What calls from Python cost beyond the launch, by benchmarks/python/call_overhead.py; goal 4 us."""
    need_modules("tensorc", "numpy", *(["torch"] if place.backend == "cuda" else []))
    place.run(sys.executable, OVERHEAD, f"--seconds={place.seconds}", "--output=us.json")
    us = json.loads(place.path("us.json").read_text(encoding="utf-8"))
    figures = {"us": us, "goal_us": 4.0}
    if place.backend == "cuda":
        ours = "PyTorch cuda: tensorc add(x, y{})"
        bare = us["PyTorch cuda: the same launch in C"]["median"]
        figures["beyond_us"] = {how: round(us[ours.format(end)]["median"] - bare, 3)
                                for how, end in (("new result", ""), ("out=", ", out=z"))}
    return figures


def cache(place):
    """From a cache's file that is not open to a kernel that can be launched; goal 2 ms."""
    need_modules("numpy")
    from engine import Library
    from system import cache_hit
    figure = cache_hit(types.SimpleNamespace(library=Library(place.library),
                                             arrays=types.SimpleNamespace(device=DEVICE[place.backend])))
    return {"ms": round(figure["ours"], 3), "goal_ms": figure["goal"]}


def production(place):
    """A kernel that was compiled here, exported and run where nothing is compiled and NVRTC is not to be found."""
    place.tensorc("run", "matmul.tc", SIZES, "--cache=all.tcc", "--keep_text", "--output_dir=")
    place.run(place.tool, "cache", "export", "all.tcc", "production.tcc", "--entries=matmul")
    found = place.tensorc("run", "matmul.tc", SIZES, "--cache=production.tcc", "--production", "--check",
                          "--output_dir=", TENSORC_NVRTC="/nonexistent/libnvrtc.so")
    if "cache: found" not in found or "agrees" not in found:
        raise Failed(f"production says {found.strip()}")
    try:
        place.tensorc("run", "matmul.tc", "--sizes=M=8,N=8,K=8", "--cache=production.tcc", "--production")
    except Failed as miss:
        return {"miss": str(miss)}
    raise Failed("production runs a shape that its file does not have")


def caller_of(place, function):
    text = HEAD + CALLER[place.backend] + MAIN
    place.path(f"{function}_main.c").write_text(text.replace("FUNCTION", function), encoding="utf-8")
    compiler = os.environ.get("CC") or "cc"
    if not shutil.which(compiler):
        raise Skipped("there is no C compiler")
    libraries = ["-l:libcuda.so.1"] if place.backend == "cuda" else ["-lm"]
    place.run(compiler, "-O1", f"{function}_main.c", f"lib{function}.a", *libraries, "-o", function)
    place.run(place.path(function), "256")


def export(place):
    """A C program of an exported kernel: built without CUDA's headers, and its result compared."""
    place.tensorc("export", "matmul.tc", "--kind=c", SIZES, "--name=exported")
    caller_of(place, "exported")
    return {"bytes": place.path("libexported.a").stat().st_size}


def architectures(place):
    """Code of several architectures in one exported kernel and in one cache's entry, launched on the GPU here."""
    place.need_gpu()
    here = gpus()[0]
    others = [arch for arch in ("sm_80", "sm_86", "sm_89", "sm_100") if arch != here]
    place.tensorc("export", "matmul.tc", "--kind=c", SIZES, "--name=several",
                  f"--arch={','.join([others[0], here, *others[1:]])}")
    caller_of(place, "several")
    place.tensorc("run", "matmul.tc", SIZES, "--cache=all.tcc", "--keep_text", "--output_dir=")
    place.run(place.tool, "cache", "export", "all.tcc", "several.tcc", f"--code_for={','.join(others)}")
    found = place.tensorc("run", "matmul.tc", SIZES, "--cache=several.tcc", "--production", "--check", "--output_dir=",
                          TENSORC_NVRTC="/nonexistent/libnvrtc.so")
    if "agrees" not in found:
        raise Failed(f"production says {found.strip()}")
    return {"device": here, "also": others}


def outcomes(path):
    with open(path, newline="", encoding="utf-8") as lines:
        found = list(csv.DictReader(lines))
    counts = {outcome: sum(row["outcome"] == outcome for row in found) for outcome in {row["outcome"] for row in found}}
    wrong = {outcome: count for outcome, count in counts.items() if outcome not in ("done", "hopeless", "refused")}
    if wrong or not counts.get("done"):
        raise Failed(f"candidates ended as {counts}")
    return counts


def devices(place):
    """tensorc tune on two GPUs at once; on the CPU, and simulated, one search each."""
    words = ["tune", "matmul.tc", SIZES, "--generations=1", "--population=8", "--history=h.csv"]
    if place.backend == "cuda":
        if len(gpus()) < 2:
            raise Skipped("needs two GPUs")
        place.tensorc(*words, "--devices=0,1", "--cache=two.tcc")
        return outcomes(place.path("h.csv"))
    place.tensorc(*words)
    found = {"cpu": outcomes(place.path("h.csv"))}
    place.run(place.tool, "tune", "matmul.tc", "--sizes=M=16,N=16,K=16", "--generations=1", "--population=4",
              "--backend=sim", "--devices=0,1", "--history=h.csv")
    return found | {"sim": outcomes(place.path("h.csv"))}


def mpi(place):
    """Three tuners side by side, by mpirun, into one cache."""
    if not shutil.which("mpirun"):
        raise Skipped("there is no mpirun")
    root = ["--allow-run-as-root"] * (os.geteuid() == 0)
    place.run("mpirun", *root, "--oversubscribe", "-n", "3", place.tool, "tune", "matmul.tc", SIZES,
              f"--backend={place.backend}", "--generations=1", "--population=4", "--cache=mpi.tcc")
    best = json.loads(place.run(place.tool, "cache", "best", "mpi.tcc", "--json"))
    if not best:
        raise Failed("the cache knows no best options")
    return {"best": best[0]}


def ctrl_c(place):
    """Ctrl-C of a search: how long it takes to end with the best so far; a second search goes on from there."""
    words = [place.tool, "tune", "matmul.tc", SIZES, f"--backend={place.backend}", "--cache=c.tcc"]
    tuner = subprocess.Popen(words + ["--generations=1000"], cwd=place.folder, env=place.environment, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    for line in tuner.stderr:  # a line for each new best
        if "x" in line:
            break
    begin = time.monotonic()
    tuner.send_signal(signal.SIGINT)
    said, _ = tuner.communicate()
    took = time.monotonic() - begin
    if tuner.returncode != 0 or "candidates" not in said:
        raise Failed(f"the search ends with {tuner.returncode}: {said.strip()}")
    again = place.run(*words, "--generations=1", "--population=4")
    known = int(re.search(r"(\d+) known before", again)[1])
    if known == 0:
        raise Failed("the second search knows nothing of the first")
    return {"seconds": round(took, 2), "known_before": known}


# In this order, with the seconds that each may take.
SECTIONS = {suite: 900, overhead: 300, cache: 120, production: 240, export: 120, architectures: 240, devices: 240,
            mpi: 240, ctrl_c: 240}


def run_here(section, arguments):
    """A section in this process; its end as JSON on the last line."""
    begin, end = time.monotonic(), {}
    try:
        with tempfile.TemporaryDirectory(prefix="tensorc-acceptance-") as folder:
            end = {"outcome": "passed", "figures": section(Place(arguments, folder))}
    except Skipped as why:
        end = {"outcome": "skipped", "why": str(why)}
    except Failed as why:
        end = {"outcome": "failed", "why": str(why)}
    except Exception as fault:
        traceback.print_exc()
        end = {"outcome": "failed", "why": f"{type(fault).__name__}: {fault}"}
    print(json.dumps(end | {"seconds": round(time.monotonic() - begin, 1)}))


def run_apart(section, arguments):
    """The same in a process group of its own, which is ended with all that it has started when its time is over."""
    limit = arguments.limit or SECTIONS[section]
    command = [sys.executable, __file__, f"--section={section.__name__}", f"--backend={arguments.backend}",
               f"--tool={arguments.tool}", f"--library={arguments.library}", f"--seconds={arguments.seconds}"]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, start_new_session=True)
    try:
        said, errors = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return {"outcome": "failed", "why": f"took longer than {limit} s", "seconds": limit}
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
    try:
        return json.loads(said.strip().splitlines()[-1])
    except (IndexError, ValueError):
        last = (errors.strip().splitlines() or ["nothing said"])[-1]
        return {"outcome": "failed", "why": f"the process ended with {child.returncode}: {last}", "seconds": 0}


def line_of(name, end):
    what = end.get("why") or json.dumps(end.get("figures", {}), ensure_ascii=False)
    return f"{name:14s} {end['outcome']:8s} {end['seconds']:6.1f} s  {what}"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [section.__name__ for section in SECTIONS]
    parser.add_argument("--backend", choices=DEVICE, default="cuda" if gpus() else "cpu",
                        help="default: cuda where nvidia-smi sees a GPU")
    parser.add_argument("--only", default="", help=f"of {','.join(names)}; default: all")
    parser.add_argument("--list", action="store_true", help="print the sections and what they show")
    parser.add_argument("--output", default="", help="file to write the ends and figures of all sections to, as JSON")
    parser.add_argument("--limit", type=float, default=0, help="seconds for a section; default: its own")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each figure of the call overhead")
    parser.add_argument("--library", default="", help="libtensorc.so; default: in build/, or beside a bundle's files")
    parser.add_argument("--tool", default="", help="tensorc; default: beside the library")
    parser.add_argument("--section", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = [name for name in filter(None, arguments.only.split(",")) if name not in names]
    if unknown:
        parser.error(f"there is no section {', '.join(unknown)}; there are {', '.join(names)}")
    return arguments


def main():
    arguments = parse()
    if arguments.list:
        for section, limit in SECTIONS.items():
            print(f"{section.__name__:14s} {limit:4d} s  {section.__doc__}")
        return 0
    from engine import default_library
    arguments.library = arguments.library or str(default_library())
    arguments.tool = pathlib.Path(arguments.tool or pathlib.Path(arguments.library).parent / "tensorc").resolve()
    by_name = {section.__name__: section for section in SECTIONS}
    if arguments.section:
        run_here(by_name[arguments.section], arguments)
        return 0
    chosen = list(filter(None, arguments.only.split(","))) or list(by_name)
    ends = {}
    for name in chosen:
        ends[name] = run_apart(by_name[name], arguments)
        print(line_of(name, ends[name]), flush=True)
        if arguments.output:
            known = {"backend": arguments.backend, "gpus": gpus(), "sections": ends}
            pathlib.Path(arguments.output).write_text(json.dumps(known, indent=1), encoding="utf-8")
    counts = {what: sum(end["outcome"] == what for end in ends.values()) for what in ("passed", "failed", "skipped")}
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
