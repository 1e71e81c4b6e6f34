"""The search for the fastest options: what `tensorc.tune` is."""
from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import sys
import time
from typing import Any, Callable, Mapping, Sequence

from . import _core
from ._core import CpuOptions, MappingOptions, Progress, Record

# Of the library's Executor: how a job that has no reply was lost.
_REPLIED, _CRASHED, _HUNG = 0, 1, 2


@dataclasses.dataclass(frozen=True)
class Tuned:
    """The end of a search: the fastest options and what they give; times are of one run, in microseconds."""
    options: CpuOptions | MappingOptions
    best_us: float
    best_cold_us: float
    default_us: float
    speedup: float
    device: str
    ending: str
    history: list[Record]


def run_job(job: bytes) -> bytes:
    """Does a job of a search in this process; one at a time."""
    return _core.run_tune_job(job)


class _Futures:
    """Jobs by way of a concurrent.futures.Executor."""

    def __init__(self, executor: concurrent.futures.Executor) -> None:
        self._executor = executor
        self._jobs: dict[concurrent.futures.Future[bytes], tuple[int, float]] = {}
        self._began: dict[concurrent.futures.Future[bytes], float] = {}

    def submit(self, number: int, device: int, job: bytes, limit_s: float) -> None:
        self._jobs[self._executor.submit(run_job, job)] = (number, limit_s)

    def wait(self, timeout_s: float) -> list[tuple[int, int, bytes]]:
        ended: list[tuple[int, int, bytes]] = []
        end = time.monotonic() + timeout_s
        while not ended:
            left = max(0.0, min(end - time.monotonic(), 0.2))  # limits are looked at in between
            done, _ = concurrent.futures.wait(self._jobs, left, concurrent.futures.FIRST_COMPLETED)
            ended = [self._end(future) for future in done] + self._hung()
            if time.monotonic() >= end:
                break
        return ended

    def _end(self, future: concurrent.futures.Future[bytes]) -> tuple[int, int, bytes]:
        number, _ = self._jobs.pop(future)
        self._began.pop(future, None)
        try:
            return number, _REPLIED, future.result()
        except Exception as error:  # whatever a job or its place raises costs that job only
            return number, _CRASHED, f"{type(error).__name__}: {error}".encode()

    def _hung(self) -> list[tuple[int, int, bytes]]:
        """Jobs that have run longer than their limits. Where they run is the executor's: it may have to end them."""
        now = time.monotonic()
        hung = []
        for future, (number, limit_s) in list(self._jobs.items()):
            if future.running() and now - self._began.setdefault(future, now) > limit_s:
                del self._jobs[future], self._began[future]
                future.cancel()
                hung.append((number, _HUNG, f"no reply in {limit_s:.0f} s".encode()))
        return hung


def _show(progress: Progress) -> None:
    failed = sum(progress.failed.values())
    best = f"best {progress.best_us:.1f} us, {progress.default_us / progress.best_us:.2f}x" if progress.best_us else ""
    print(f"\r{progress.done}/{progress.planned} {best}, {failed} failed\033[K", end="", file=sys.stderr, flush=True)


def tune(source: str, entry: str = "", *, inputs: Sequence[Any] = (), outputs: Sequence[Any] = (),
         sizes: Mapping[str, int] | None = None, scalars: Mapping[str, Any] | None = None, backend: str = "cpu",
         device: int = 0, options: CpuOptions | None = None, mapping: MappingOptions | None = None,
         cache: str | os.PathLike[str] | None = None, search: str = "genetic", generations: int = 10,
         population: int = 16, seed: int = 1, threads: int = 0, devices: Sequence[int] = (), time_limit: float = 0,
         executor: concurrent.futures.Executor | None = None, folder: str | os.PathLike[str] | None = None,
         progress: bool | Callable[[Progress], None] | None = None) -> Tuned:
    """Searches for the fastest options of a def, for fixed shapes.

    The first arguments are those of compile(). `inputs` in host memory are what candidates run on, otherwise random
    data; every candidate is compared with the interpreter before it counts. `cache` is a file that gets all
    measurements and the best kernel, and gives what it knows; define(..., cache=) then uses the best. `search` is
    "genetic" or "random"; `population` candidates are measured in each of `generations`. `threads` candidates compile
    at once (0: one for each core); `devices` are the GPUs that measure. `time_limit` is in seconds, 0 for none.

    Candidates run in worker processes on this machine, or wherever `executor`, any concurrent.futures.Executor, places
    them: one that runs a job at a time in each of its processes, started and not forked, on machines of one kind that
    can read `folder`. A job that crashes a process of concurrent.futures' own pool ends that pool, and with it the
    search.

    `progress` is called after each candidate; True shows a line on standard error, None does so on a terminal. Ctrl-C
    ends the search with the best so far. Raises Error.
    """
    request = dict(entry=entry, inputs=list(inputs), outputs=list(outputs), sizes=dict(sizes or {}),
                   scalars=dict(scalars or {}), backend=backend, device=device, options=options, mapping=mapping)
    config: dict[str, Any] = dict(search=search, generations=generations, population=population, seed=seed,
                                  threads=threads, devices=list(devices), time_limit_s=float(time_limit),
                                  worker=[sys.executable, "-m", "tensorc.worker"])
    if cache is not None:
        config["cache"] = os.fspath(cache)
    if folder is not None:
        config["folder"] = os.fspath(folder)
    if executor is not None:
        config["executor"] = _Futures(executor)
    if progress is None:
        progress = sys.stderr.isatty()
    tuned = _core.tune(source, request, config, _show if progress is True else progress or None)
    if progress is True:
        print(file=sys.stderr)
    read = CpuOptions.from_text if backend == "cpu" else MappingOptions.from_text
    return Tuned(read(tuned.best), tuned.best_us, tuned.best_cold_us, tuned.default_us, tuned.speedup, tuned.device,
                 tuned.ending, tuned.history)
