"""Tensor Comprehensions as functions of arrays.

    import numpy as np
    import tensorc

    tc = tensorc.define('''
    def matmul(float(M,K) A, float(K,N) B) -> (C) {
      C(m,n) +=! A(m,k) * B(k,n)
    }''')
    C = tc.matmul(np.ones((4, 5), "float32"), np.ones((5, 6), "float32"))

A call compiles for the shapes, strides, types and device of its arrays once, and runs where the arrays are: those of
NumPy and of PyTorch on the CPU on the CPU, those of PyTorch, CuPy and JAX on a GPU there, on the current stream.
Arrays are never copied. Results are new arrays of the caller's library, or those of `out=`.
"""
from __future__ import annotations

import functools
import json
import os
from typing import Any, Iterator, Mapping, Sequence

from . import _core
from ._arguments import checking, typed
from ._cache import Cache, path_of
from ._core import (Argument, BudgetError, CancelledError, CpuOptions, Error, Function, Fusion, InternalError, Kernel,
                    KernelOptions, MappingOptions, Progress, Record, SchedulerOptions, Signature, TensorSpec)
from ._defaults import Defaults, defaults
from ._explain import Explanation
from ._kernel import kernel
from ._schedule import ReductionLoops, Schedule
from ._tune import Tuned, tune

__version__ = _core.__version__
__all__ = [
    "Argument", "BudgetError", "Cache", "CancelledError", "CpuOptions", "Defaults", "Error", "Explanation", "Function", "Fusion",
    "InternalError", "Kernel", "KernelOptions", "MappingOptions", "Program", "Progress", "Record", "ReductionLoops",
    "Schedule", "SchedulerOptions", "Signature", "TensorSpec", "Tuned", "check", "compile", "defaults", "define", "diagnose", "emit",
    "format", "gradient", "kernel", "tune",
]


def __dir__() -> list[str]:
    imported = [name for name in ("jax", "torch") if name in globals()]
    return [*__all__, "__doc__", "__file__", "__name__", "__version__", *imported]


def _engine(source: str, name: str, cache: Cache | str | os.PathLike[str] | None) -> _core.Engine:
    typed(str, source=source, name=name)
    source.encode(), name.encode()  # half a character is no text
    if source.endswith(".tc") and "\n" not in source:
        raise ValueError(f"{source!r} is the name of a file, and a text is expected: "
                         f"define(open({source!r}).read())")
    cache = defaults._chosen(cache)
    if not isinstance(cache, Cache):
        cache = Cache("" if cache is None else cache)
    elif not os.fspath(cache.path):
        raise ValueError("a Cache without a path")
    typed(bool, read_only=cache.read_only, nearest=cache.nearest, keep_text=cache.keep_text,
           production=cache.production)
    path = path_of(cache)
    if cache.production:
        return _core.Engine.production(path, source, name)
    return _core.Engine(source, name, path, cache.read_only, cache.nearest, cache.keep_text)


class Program:
    """The defs of a text, each a function of arrays: as attributes, and by name (`program["matmul"]`).

    By name only: a def that is called like one of this class's own attributes (source, statistics, infer, emit, explain) or like
    a word of Python's.
    """

    def __init__(self, source: str, *, name: str = "tc", backend: str | None = None,
                 options: CpuOptions | None = None, mapping: MappingOptions | None = None,
                 element_aligned: bool = False, cache: Cache | str | os.PathLike[str] | None = None,
                 check_bounds: bool | None = None) -> None:
        self.source = source
        self._arguments: dict[str, Any] = dict(name=name, backend=backend, options=options, mapping=mapping,
                                               element_aligned=element_aligned, cache=cache,
                                               check_bounds=check_bounds)
        self._engine = _engine(source, name, cache)
        options, mapping = checking(options, mapping, check_bounds, defaults._chosen(cache))
        self._options, self._mapping = options, mapping
        typed(bool, element_aligned=element_aligned)
        self._functions = {
            entry: Function(self._engine, entry, backend, options, mapping, element_aligned)
            for entry in self._engine.entries()
        }

    def __getattr__(self, name: str) -> Function:
        functions: dict[str, Function] = self.__dict__.get("_functions", {})
        if name in functions:
            return functions[name]
        raise AttributeError(f"the text has no def '{name}'; there are {', '.join(functions)}")

    def __getitem__(self, name: str) -> Function:
        if name in self._functions:
            return self._functions[name]
        raise KeyError(f"the text has no def '{name}'; there are {', '.join(self._functions)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._functions]

    def __reduce__(self) -> tuple[Any, ...]:
        # A process that gets it compiles for itself, or finds kernels in the cache's file.
        return functools.partial(Program, **self._arguments), (self.source,)

    def __repr__(self) -> str:
        return f"<tensorc.Program of {', '.join(self._functions)}>"

    def _repr_html_(self) -> str:
        from ._notebook import html_of_program
        return html_of_program(self)

    @property
    def statistics(self) -> dict[str, int]:
        """How many kernels came from memory (memory_hits), from the cache's file (file_hits; reproved of these), and
        from the compiler (compiled)."""
        return self._engine.statistics()

    def infer(self, entry: str = "", *, inputs: Sequence[Any] = (), outputs: Sequence[Any] = (),
              sizes: Mapping[str, int] | None = None,
              scalars: Mapping[str, Any] | None = None) -> tuple[list[TensorSpec], list[TensorSpec]]:
        """Types and shapes of all tensors, inputs and results, without compiling; arguments as those of compile().

        >>> program = tensorc.define("def f(float(M,K) A) -> (s) { s(m) +=! A(m,k) }")
        >>> program.infer(sizes={"M": 4, "K": 5})
        ([TensorSpec(float32(4, 5))], [TensorSpec(float32(4))])
        """
        return self._engine.infer(_request(entry, inputs, outputs, sizes, scalars))

    def emit(self, stage: str, entry: str = "", *, arch: str = "sm_90a", inputs: Sequence[Any] = (),
             outputs: Sequence[Any] = (), sizes: Mapping[str, int] | None = None,
             scalars: Mapping[str, Any] | None = None, options: CpuOptions | None = None,
             mapping: MappingOptions | None = None, element_aligned: bool = False) -> str:
        """The text of a stage of the compilation.

        `stage` is ast, program, schedule, stmt or object (assembly) for the CPU, tile, certificate, cuda, ptx or cubin for a GPU of
        the architecture `arch`; no GPU is needed. The other arguments are those of compile(). Raises Error.
        """
        typed(str, stage=stage, arch=arch)
        request = _request(entry, inputs, outputs, sizes, scalars, options=options, mapping=mapping,
                           element_aligned=element_aligned)
        return self._engine.emit(request, stage, arch)

    def explain(self, entry: str = "", *, arch: str = "sm_90a", inputs: Sequence[Any] = (), outputs: Sequence[Any] = (),
                sizes: Mapping[str, int] | None = None, scalars: Mapping[str, Any] | None = None,
                backend: str = "cpu") -> Explanation:
        """What the compiler makes of a def, and why; the program's options and cache count.

        `backend` is "cpu", "cuda" or "sim", and `arch` the architecture of a GPU; none is needed. The other arguments are
        those of compile(). Raises Error.

        >>> program = tensorc.define("def f(float(M,K) A) -> (s) { s(m) +=! A(m,k) }")
        >>> program.explain(sizes={"M": 4, "K": 5}).to_dict()["kernels"][0]["strategy"]
        'tiles'
        """
        typed(str, arch=arch)
        request = _request(entry, inputs, outputs, sizes, scalars, backend=backend, options=self._options,
                           mapping=self._mapping, element_aligned=self._arguments["element_aligned"])
        return self._engine.explain(request, arch)


def _request(entry: str, inputs: Sequence[Any], outputs: Sequence[Any], sizes: Mapping[str, int] | None,
             scalars: Mapping[str, Any] | None, **others: Any) -> dict[str, Any]:
    return dict(entry=entry, inputs=list(inputs), outputs=list(outputs), sizes=dict(sizes or {}),
                scalars=dict(scalars or {}), **others)


def define(source: str, *, name: str = "tc", backend: str | None = None, options: CpuOptions | None = None,
           mapping: MappingOptions | None = None, element_aligned: bool = False,
           cache: Cache | str | os.PathLike[str] | None = None, check_bounds: bool | None = None) -> Program:
    """Reads and checks a text of one or more defs. Each is a function of arrays; see Program and Function.

    `name` stands for the text in messages. `backend` is "cpu", "cuda" or "sim" (a GPU's kernels, simulated on the
    CPU; slow, finds races); by default the arrays decide. `options` is how defs are compiled for the CPU, `mapping` how
    they are mapped to a GPU. `element_aligned`: kernels of a GPU take tensors of any address that their elements can
    have; without it they may copy by vectors of up to 16 bytes, and the first call with other tensors (a slice x[1:])
    compiles a second kernel. `cache` is a file of kernels, by its path or as a Cache; None is that of tensorc.defaults,
    "" none. `check_bounds`: whether subscripts that data choose, as in `x(at(i))`, are checked at each call; one outside
    is an Error, and nothing outside a tensor is touched. By default kernels of the CPU check, and those of a GPU do not:
    a checked call waits for the GPU. Those of a production file run as they were made; True refuses unchecked ones.
    Raises Error, whose text shows the place, TypeError and ValueError for arguments
    that are not what they are called.

    >>> import numpy as np
    >>> tensorc.define("def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }").scale(np.ones(3, "float32"), 2)
    array([2., 2., 2.], dtype=float32)
    """
    return Program(source, name=name, backend=backend, options=options, mapping=mapping,
                   element_aligned=element_aligned, cache=cache, check_bounds=check_bounds)


def load_ipython_extension(shell: Any) -> None:
    """Adds the cell magic %%tc: `%load_ext tensorc` in a notebook."""
    from ._notebook import register
    register(shell)


def check(source: str, *, name: str = "tc") -> list[Signature]:
    """The signatures of a text's defs. Raises Error if there is something wrong with it.

    >>> tensorc.check("def f(float(M,K) A) -> (s) { s(m) +=! A(m,k) }")
    [<tensorc.Signature f(float32(M, K) A) -> (float32(M) s)>]
    """
    engine = _engine(source, name, "")
    return [engine.signature(entry) for entry in engine.entries()]


def diagnose(source: str, *, name: str = "tc", sizes: Mapping[str, int] | None = None,
             scalars: Mapping[str, int] | None = None, types: Mapping[str, str] | None = None,
             time_limit_ms: int = 60_000) -> dict[str, Any]:
    """What a check finds in a text, errors too: what `tensorc check --json` prints, as a dict.

    Each error and note has its range, each index its range and what bounds it, each tensor its type and extents;
    docs/editors.md describes all keys. `sizes` and `scalars` are numbers to put in their places, `types` names one
    instance of generic defs. `time_limit_ms` bounds the whole check. Raises Error for arguments that fit no def.

    >>> tensorc.diagnose("def f(float(N) x) -> (y) { y(i) = z(i) }")["diagnostics"][0]["message"]
    "'z' is neither a tensor nor an intrinsic"
    """
    typed(str, source=source, name=name)
    source.encode(), name.encode()
    return json.loads(_core.check(source, name, dict(sizes or {}), dict(scalars or {}), dict(types or {}), False,
                                  time_limit_ms))


def format(source: str, *, name: str = "tc") -> str:
    """A text in canonical form, as `tensorc fmt` prints it. Raises Error where its syntax is wrong.

    >>> tensorc.format("def f(float(N) x)->(y){y(i)=2*x(i)}")
    'def f(float32(N) x) -> (y) {\\n  y(i) = 2 * x(i)\\n}\\n'
    """
    typed(str, source=source, name=name)
    source.encode(), name.encode()
    return _core.format(source, name)


def compile(source: str, entry: str = "", *, inputs: Sequence[Any] = (), outputs: Sequence[Any] = (),
            sizes: Mapping[str, int] | None = None, scalars: Mapping[str, Any] | None = None, backend: str = "cpu",
            device: int = 0, options: CpuOptions | None = None, mapping: MappingOptions | None = None,
            element_aligned: bool = False, cache: Cache | str | os.PathLike[str] | None = None,
            check_bounds: bool | None = None) -> Kernel:
    """Compiles a def for fixed shapes, without running it.

    `inputs` (and `outputs`) are arrays, TensorSpecs, or None where the shape follows from `sizes`; `scalars` are values
    of at least those that decide a shape, a range or a subscript. `entry` may be empty if the text has one def.
    `device` is the number of the GPU if `backend` is "cuda". `element_aligned`, `cache` and `check_bounds` are as in define(). Raises
    Error, and TypeError for arguments that are not what they are called.

    >>> tensorc.compile("def f(float(M,K) A) -> (s) { s(m) +=! A(m,k) }", sizes={"M": 4, "K": 5})
    <tensorc.Kernel f(float32(4, 5)) -> (float32(4)) on cpu>
    """
    options, mapping = checking(options, mapping, check_bounds, defaults._chosen(cache))
    request = _request(entry, inputs, outputs, sizes, scalars, backend=backend, device=device, options=options,
                       mapping=mapping, element_aligned=element_aligned)
    return _engine(source, "tc", cache).compile(request)


def gradient(source: str, entry: str = "") -> str:
    """The text of a def that computes the gradients of a def's float inputs from those of its results.

    Its parameters are what it reads of the first's parameters and results, then d_R for the gradient of each float
    result R; its results are d_A for each float input A. An in-out tensor C is an input old_C too. Raises Error, which
    says what it cannot derive and where.

    >>> tensorc.gradient("def f(float(N) x) -> (y) { y(i) = 3.0 * x(i) }").splitlines()
    ['def f_gradient(float32(N) d_y) -> (float32(N) d_x) {', '  d_x(i) = d_y(i) * 3.0', '}']
    """
    return _engine(source, "tc", "").gradient(entry)


def emit(source: str, stage: str, entry: str = "", **arguments: Any) -> str:
    """The text of a stage of the compilation of a text's def: Program.emit().

    >>> tensorc.emit("def f(float(N) x) -> (y) { y(i) = 3.0 * x(i) }", "ast").splitlines()[0]
    'definition f'
    """
    return Program(source, cache="").emit(stage, entry, **arguments)
