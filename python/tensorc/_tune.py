"""The search for the fastest options: what `tensorc.tune` is."""
from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import sys
import warnings
from typing import Any, Callable, Mapping, Sequence

from . import _core
from ._arguments import checking
from ._cache import Cache, path_of
from ._core import CpuOptions, MappingOptions, Progress, Record
from ._defaults import defaults

# Of the library's Executor: a job that has no reply since whoever had it is gone.
_CRASHED = 1

# This package and no other, whatever the working directory is by then and wherever the caller found it.
_WORKER = [sys.executable, "-P", "-c",
           f"import sys; sys.path.insert(0, {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))!r}); "
           "from tensorc.worker import main; main()"]


@dataclasses.dataclass(frozen=True)
class Tuned:
    """The end of a search: the fastest options and what they give; times are of one run, in microseconds.

    `speedup` is that of the best over what the compiler chooses, measured in turn. `ending` is "finished", "exhausted"
    (nothing new to try), "time limit" or "stopped". `reference` says what results were compared with; `rejected` counts
    candidates that were turned down before any compilation; `history` has what became of all others. `floor_us` is the
    least that any code can take on this machine. `noise` says why the machine was too noisy to decide; it is empty if
    it was not.
    """
    options: CpuOptions | MappingOptions
    best_us: float
    best_cold_us: float
    default_us: float
    speedup: float
    device: str
    ending: str
    reference: str
    rejected: int
    history: list[Record]
    floor_us: float = 0.0
    noise: str = ""

    def _repr_html_(self) -> str:
        from ._notebook import html_of_search
        return html_of_search(self)


def run_job(job: bytes, limit_s: float) -> tuple[int, bytes]:
    """Does a job of a search in a worker process of this thread's: how it was lost, or 0, and the reply."""
    return _core.run_tune_job(job, limit_s, _WORKER)


class _Futures:
    """Jobs by way of a concurrent.futures.Executor."""

    def __init__(self, executor: concurrent.futures.Executor) -> None:
        self._executor = executor
        self._jobs: dict[concurrent.futures.Future[tuple[int, bytes]], int] = {}

    def submit(self, number: int, device: int, job: bytes, limit_s: float) -> None:
        # What hangs is ended where it runs: here nobody knows when a job has begun, since Dask's and Ray's futures do
        # not say, and could not end it either.
        self._jobs[self._executor.submit(run_job, job, limit_s)] = number

    def wait(self, timeout_s: float) -> list[tuple[int, int, bytes]]:
        done, _ = concurrent.futures.wait(self._jobs, timeout_s, concurrent.futures.FIRST_COMPLETED)
        return [self._end(future) for future in done]

    def _end(self, future: concurrent.futures.Future[tuple[int, bytes]]) -> tuple[int, int, bytes]:
        number = self._jobs.pop(future)
        try:
            loss, reply = future.result()
            return number, loss, reply
        except Exception as error:  # whatever a job or its place raises costs that job only
            return number, _CRASHED, f"{type(error).__name__}: {error}".encode()


def progress_text(progress: Progress) -> str:
    failed = sum(progress.failed.values())
    best = f"best {progress.best_us:.1f} us, {progress.default_us / progress.best_us:.2f}x" if progress.best_us else ""
    return f"{progress.done}/{progress.planned} {best}, {failed} failed"


def _show(progress: Progress) -> None:
    print(f"\r{progress_text(progress)}\033[K", end="", file=sys.stderr, flush=True)


def tune(source: str, entry: str = "", *, inputs: Sequence[Any] = (), outputs: Sequence[Any] = (),
         sizes: Mapping[str, int] | None = None, scalars: Mapping[str, Any] | None = None, backend: str = "cpu",
         device: int = 0, options: CpuOptions | None = None, mapping: MappingOptions | None = None,
         element_aligned: bool = False, cache: Cache | str | os.PathLike[str] | None = None,
         check_bounds: bool | None = None, search: str = "genetic", generations: int = 10, population: int = 16,
         seed: int = 1, threads: int = 0, devices: Sequence[int] = (), time_limit: float = 0,
         executor: concurrent.futures.Executor | None = None, folder: str | os.PathLike[str] | None = None,
         progress: bool | Callable[[Progress], None] | None = None) -> Tuned:
    """Searches for the fastest options of a def, for fixed shapes.

    The first arguments are those of compile(). `inputs` in host memory are what candidates run on, otherwise random
    data; every candidate is compared with the interpreter before it counts. `cache`, a path or a Cache, is a file that gets
    all measurements and the best kernel, and gives what it knows; define(..., cache=) then uses the best. `search` is
    "genetic" or "random"; `population` candidates are measured in each of `generations`. `threads` candidates compile
    at once (0: one for each core); `devices` are the GPUs that measure. `time_limit` is in seconds, 0 for none.

    Candidates run in worker processes on this machine, or wherever `executor`, any concurrent.futures.Executor, places
    them: on machines of one kind that can read `folder`. Each thread there that is given jobs starts a worker process
    for them, so that a candidate that crashes or hangs costs itself only. Dask has such an executor,
    `client.get_executor(pure=False)` of workers with one thread each; one over Ray is a class whose
    `submit(function, *arguments)` returns `ray.remote(function).remote(*arguments).future()`.

    `progress` is called after each candidate; True shows a line on standard error, or a bar in a notebook; None does so
    on a terminal and in a notebook. What it raises, and Ctrl-C, ends the search; what has been measured is in `cache`,
    and a search with it goes on from there. Raises Error.

    >>> text = "def f(float(M,K) A) -> (s) { s(m) +=! A(m,k) }"
    >>> tuned = tensorc.tune(text, sizes={"M": 8, "K": 9}, generations=1, population=2, progress=False)
    >>> program = tensorc.define(text, options=tuned.options)
    """
    options, mapping = checking(options, mapping, check_bounds)
    request = dict(entry=entry, inputs=list(inputs), outputs=list(outputs), sizes=dict(sizes or {}),
                   scalars=dict(scalars or {}), backend=backend, device=device, options=options, mapping=mapping,
                   element_aligned=element_aligned)
    config: dict[str, Any] = dict(search=search, generations=generations, population=population, seed=seed,
                                  threads=threads, devices=list(devices), time_limit=time_limit, worker=_WORKER)
    cache = defaults._chosen(cache)
    if isinstance(cache, Cache) and (cache.read_only or cache.production):
        raise ValueError("a search writes to its cache, which is not to be written")
    if cache is not None:
        config["cache"] = path_of(cache)
    if folder is not None:
        config["folder"] = path_of(folder)
    if executor is not None:
        config["executor"] = _Futures(executor)
    bar = None
    if (progress is None or progress is True) and "IPython" in sys.modules:
        from ._notebook import Bar
        bar = Bar.of_notebook()
    if progress is None:
        progress = bar is not None or sys.stderr is not None and sys.stderr.isatty()
    show = bar.show if bar else _show
    try:
        tuned = _core.tune(source, request, config, show if progress is True else progress or None)
    finally:
        if progress is True and not bar:
            print(file=sys.stderr)
    if tuned.not_kept:
        warnings.warn(f"the search is done, but not all of it is in the cache: {tuned.not_kept}", stacklevel=2)
    read = CpuOptions.from_text if backend == "cpu" else MappingOptions.from_text
    return Tuned(read(tuned.best), tuned.best_us, tuned.best_cold_us, tuned.default_us, tuned.speedup, tuned.device,
                 tuned.ending, tuned.reference, tuned.rejected, tuned.history, tuned.floor_us, tuned.noise)
