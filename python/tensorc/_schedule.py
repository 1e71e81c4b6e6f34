"""Kernels written loop by loop: what `tensorc.Schedule` is."""
from __future__ import annotations

import os
from typing import Any, Mapping, NamedTuple, Sequence

from . import _core
from ._arguments import checking, typed
from ._cache import Cache, path_of
from ._core import CpuOptions, Kernel, MappingOptions


class ReductionLoops(NamedTuple):
    """The loops that Schedule.split_reduction() makes of one."""
    part: str  #: over the parts
    rest: str  #: within a part
    together: str  #: over the partial results
    partial: str  #: the tensor of these
    parts: int  #: how many there are


class Schedule:
    """The loops of a def for fixed shapes, on a CPU or a GPU, to be changed step by step.

    Loops have names: at first those of the indices that they run over. Each step is proved. One that would change what
    the def computes raises Error, whose text names two instances that show it, and leaves the schedule as it was.
    `print(schedule)` shows the loop nest. The arguments are those of compile(), without a cache.

    >>> s = tensorc.Schedule("def f(float(M,K) A) -> (s) { s(m) +=! A(m,k) }", sizes={"M": 64, "K": 9})
    >>> outer, inner = s.split("m", 8)
    >>> s.parallelize(outer)
    >>> print(s)
    f(float32(64,9) A) -> (float32(64) s) on cpu
    for m_outer in 0:8  # parallel
      for m_inner in 0:8
        S0_init: s(m) = 0.0
        for k in 0:9
          S0: s(m) += A(m, k)
    >>> s.parallelize("k")
    Traceback (most recent call last):
    tensorc.Error: cannot run iterations of 'k' at once: S0[m = 0, k = 0] and S0[m = 0, k = 1] must not (reduction dependence)
    """

    def __init__(self, source: str, entry: str = "", *, inputs: Sequence[Any] = (), outputs: Sequence[Any] = (),
                 sizes: Mapping[str, int] | None = None, scalars: Mapping[str, Any] | None = None,
                 backend: str = "cpu", device: int = 0, options: CpuOptions | None = None,
                 mapping: MappingOptions | None = None, element_aligned: bool = False,
                 check_bounds: bool | None = None) -> None:
        typed(str, source=source, entry=entry)
        options, mapping = checking(options, mapping, check_bounds)
        request = dict(entry=entry, inputs=list(inputs), outputs=list(outputs), sizes=dict(sizes or {}),
                       scalars=dict(scalars or {}), backend=backend, device=device, options=options, mapping=mapping,
                       element_aligned=element_aligned)
        self._schedule = _core.Schedule.create(source, request)

    def copy(self) -> Schedule:
        """Returns a schedule of its own with the same loops: what is tried on it leaves this one alone."""
        result = object.__new__(Schedule)
        result._schedule = self._schedule.copy()
        return result

    __copy__ = copy

    def __str__(self) -> str:
        return self._schedule.text().rstrip("\n")

    def _repr_html_(self) -> str:
        from ._notebook import html_of_schedule
        return html_of_schedule(self)

    def __repr__(self) -> str:
        return f"<tensorc.Schedule {str(self).partition(chr(10))[0]}>"

    @property
    def loops(self) -> list[str]:
        """The names of all loops, outermost first, in the order of execution."""
        return self._schedule.loops()

    def split(self, loop: str, size: int) -> tuple[str, str]:
        """Makes two loops of one, of which the inner has `size` iterations. Returns their names."""
        return self._schedule.split(loop, size)

    def tile(self, loops: Sequence[str], sizes: Sequence[int]) -> list[str]:
        """Splits each loop, and puts all outer loops above all inner ones. Returns their names, outer ones first."""
        return self._schedule.tile(list(loops), list(sizes))

    def fuse(self, outer: str, inner: str) -> str:
        """Makes one loop of two, of which the second is right below the first. Returns its name."""
        return self._schedule.fuse(outer, inner)

    def reorder(self, *loops: str) -> None:
        """Puts loops that are right below each other into this order."""
        self._schedule.reorder(list(loops))

    def distribute(self, loop: str) -> None:
        """Gives each part of the sequence below the loop a loop of its own.

        The last part keeps the name. Others are named with their first statement: "i_S0_init".
        """
        self._schedule.distribute(loop)

    def partition(self, loop: str, at: int) -> tuple[str, str]:
        """Lets the loop's iterations from `at` on follow in a loop of their own, which counts from 0.

        Copies of loops below it are named with "_rest". Returns the names of both loops.
        """
        return self._schedule.partition(loop, at)

    def merge(self, first: str, second: str) -> None:
        """Makes one loop of two that follow each other. It keeps the first one's name."""
        self._schedule.merge(first, second)

    def sink(self, name: str, loop: str) -> None:
        """Moves a loop, or a statement by its name, under a loop beside it.

        Each instance goes to the first iteration that needs it, or to the last one that it needs.
        """
        self._schedule.sink(name, loop)

    def split_reduction(self, loop: str, parts: int, cyclic: bool = False) -> ReductionLoops:
        """Gives each of `parts` parts of a reduction a partial result, which the statement then reduces.

        A part has neighbouring iterations, or with `cyclic` every parts-th. The loop over the parts may then run at
        once.
        """
        return ReductionLoops(*self._schedule.split_reduction(loop, parts, cyclic))

    def parallelize(self, loop: str) -> None:
        """On a CPU: shares the loop's iterations among the cores."""
        self._schedule.parallelize(loop)

    def unroll(self, loop: str) -> None:
        """Lays all iterations of the loop out; on a CPU at most 64."""
        self._schedule.unroll(loop)

    def vectorize(self, loop: str) -> None:
        """Makes the iterations of an innermost loop the lanes of a vector; on a CPU at most 64.

        On a GPU the loop moves 2 to 16 bytes of neighbours in memory.
        """
        self._schedule.vectorize(loop)

    def promote(self, tensor: str, loop: str, memory: str, fetch: str = "vectorized") -> None:
        """Holds what an iteration of the loop uses of the tensor in a buffer.

        `memory` is "registers", "cache" (on a CPU: an array of its own) or "shared" (on a GPU: one of the block). The
        buffer is filled before and written back after, where that is needed. `fetch` says how a block fills shared
        memory: "vectorized", "cooperative" (element by element), "one thread", or "boxes" (by the copy engine, for
        "wgmma").
        """
        self._schedule.promote(tensor, loop, memory, fetch)

    def bind(self, loop: str, axis: str) -> None:
        """On a GPU: deals the loop's iterations out to "block.x", "block.y", "block.z", "thread.x", "thread.y" or
        "thread.z"; of a tile operation also to "warp.x", "warp.y", "warp.z", "warpgroup" or "cluster"."""
        self._schedule.bind(loop, axis)

    def tensorize(self, loop: str, operation: str) -> None:
        """On a GPU: makes the loop, and all below it, one operation of a block.

        `operation` is "fma", "mma.sync" or "wgmma" for a product, "pointwise", or "reduce" for rows that threads share.
        The verbs after it say how it is done: `bind`, `promote`, `stage`, `persist` and `vectorize`. Each raises Error
        if no kernel of that form can be made. No loop of the launch can be split or moved any more.
        """
        self._schedule.tensorize(loop, operation)

    def launch(self, at: str) -> None:
        """On a GPU: starts another launch at a loop, or a statement, that is below no other loop."""
        self._schedule.launch(at)

    def persist(self, loop: str, teams: int = 1) -> None:
        """On a GPU: lets each block of a product by "wgmma" go on with further tiles.

        As many blocks start as run at once. `loop` is the innermost loop on blocks. With two teams of warpgroups, one
        stores its tile while the other multiplies the next one.
        """
        self._schedule.persist(loop, teams)

    def reduce_by_warp(self, loop: str) -> None:
        """On a GPU: lets the lanes of the block's first warp share the iterations of a reduction to one element."""
        self._schedule.reduce_by_warp(loop)

    def stage(self, tensor: str, loop: str, stages: int) -> None:
        """On a GPU: lets the copies of a tensor in shared memory run ahead of the loop, into 2 to 8 buffers."""
        self._schedule.stage(tensor, loop, stages)

    def emit(self, stage: str) -> str:
        """Returns the text of a stage: schedule, stmt or object (assembly) of a CPU, tile or cuda of a GPU."""
        typed(str, stage=stage)
        return self._schedule.emit(stage)

    def compile(self) -> Kernel:
        """Compiles the loops as they are now. Raises Error for what the device cannot run."""
        return self._schedule.compile()

    def check(self, seed: int = 1) -> None:
        """Runs on random data and compares with the interpreter. Raises Error for a wrong element.

        Beyond 2**29 instances of statements, the CPU's strict kernel stands in for the interpreter.
        """
        self._schedule.check(seed)

    def save(self, cache: Cache | str | os.PathLike[str]) -> float:
        """Compares with the interpreter on three inputs, measures, and adds the kernel to a cache's file.

        `define(..., cache=)`, `compile(..., cache=)` and `tensorc export --cache` then take it for these shapes, while
        it is the fastest that the file knows and no options are asked for. Returns microseconds of one run.
        """
        if isinstance(cache, Cache) and (cache.read_only or cache.production):
            raise ValueError("a schedule is written to its cache, which is not to be written")
        return self._schedule.save(path_of(cache))[1]

    def count(self, seed: int = 1) -> dict[str, int]:
        """On the backend "sim": runs on random data, and counts bytes, requests, bank conflicts and barriers."""
        return self._schedule.count(seed)
