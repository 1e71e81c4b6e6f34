"""Functions of JAX's arrays from Tensor Comprehensions, under jit, grad and vmap.

    import jax
    import tensorc.jax

    scale = tensorc.jax.op("def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }")
    y = jax.jit(lambda x: scale(x, 2.0))(x)

A compiled program calls the kernel through XLA's foreign-function interface, without the interpreter.
"""
from __future__ import annotations

import functools
import numbers
import struct
import threading
from typing import Any, Callable, Sequence

import jax
import numpy as np

from . import CpuOptions, Error, MappingOptions, Program, TensorSpec, _batch, _core
from ._arguments import said_checks

__all__ = ["Operator", "op"]


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__file__", "__name__"]


_FLOAT8 = {"float8_e4m3": "float8_e4m3fn"}  # the language's name, JAX's
_lock = threading.RLock()


@functools.cache
def _target(backend: str) -> str:
    """What XLA knows the handler by: one name for each device, so that no kernel runs on the other."""
    name = f"tensorc_{backend}"
    jax.ffi.register_ffi_target(name, _core.jax_handler(), platform="cpu" if backend == "cpu" else "CUDA")
    return name


def _spec(array: Any) -> TensorSpec:
    names = {jaxs: ours for ours, jaxs in _FLOAT8.items()}
    return TensorSpec(names.get(array.dtype.name, array.dtype.name), array.shape)


def _number(name: str, value: Any) -> Any:
    """A number of Python's, also of an array of NumPy's or JAX's without dimensions."""
    value = value.item() if getattr(value, "ndim", None) == 0 else value
    if not isinstance(value, numbers.Number):
        raise TypeError(f"'{name}' is a scalar, and takes a number, not a {type(value).__name__}")
    return value


def _key(value: Any) -> Any:
    """What is equal for numbers that compile to the same: 0.0 == -0.0 do not, and a NaN does with itself."""
    return struct.pack("d", value) if isinstance(value, float) else (type(value), value)


class Operator:
    """A def as a function of JAX's arrays: call it with the def's parameters, in the order of the text or by name.

    Arrays may be traced. Numbers are part of what is compiled: they are Python's, or static arguments of jit. Its
    gradient is derived, in reverse mode and to any order. vmap runs the def with one index more.
    """

    def __init__(self, program: Program, entry: str) -> None:
        self.program = program
        self.entry = entry
        self.signature = program[entry].signature
        self._numbers: dict[Any, tuple[int, list[TensorSpec]]] = {}
        self._batched: dict[frozenset[str], tuple[Operator, set[str]]] = {}
        updated = [r.name for r in self.signature.results if r.role == "inout"]
        if updated:
            raise Error(f"'{entry}' updates '{updated[0]}', and JAX's arrays do not change: write '=' or '+=!', and take "
                        "the old elements as a parameter of another name")

    def __repr__(self) -> str:
        return f"<tensorc.jax.Operator {self.entry}>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        parameters = self.signature.parameters
        if len(args) > len(parameters):
            raise TypeError(f"{self.entry}() takes {len(parameters)} arguments, not {len(args)}")
        values = {**{p.name: a for p, a in zip(parameters, args)}, **kwargs}
        sizes = {name: values.pop(name) for name in list(values) if name in self.signature.sizes}
        missing = [p.name for p in parameters if p.name not in values]
        unknown = [name for name in values if name not in {p.name for p in parameters}]
        if missing or unknown or len(values) + len(sizes) != len(args) + len(kwargs):
            raise TypeError(f"{self.entry}() takes {', '.join(p.name for p in parameters)}")
        scalars = {p.name: values[p.name] for p in parameters if p.role == "scalar"}
        for name, value in scalars.items():
            if isinstance(value, jax.core.Tracer):
                raise TypeError(f"'{name}' is a number of what is compiled, and is traced here: pass a number of "
                                "Python's, make it a static argument, or declare it as a tensor of one element")
        scalars = {name: _number(name, value) for name, value in scalars.items()}
        tensors = [jax.numpy.asarray(values[p.name]) for p in parameters if p.role != "scalar"]
        results = self._differentiable(scalars, sizes)(*tensors)
        return results[0] if len(results) == 1 else results

    def _tensors(self) -> list[str]:
        return [p.name for p in self.signature.parameters if p.role != "scalar"]

    def _kernel(self, specs: Sequence[TensorSpec], scalars: dict[str, Any],
                sizes: dict[str, int]) -> tuple[str, int, list[TensorSpec]]:
        """The handler's name, the kernel's number and its results."""
        backend = "cpu" if jax.default_backend() == "cpu" else "cuda"
        key = (backend, tuple(specs), tuple(sorted((n, _key(v)) for n, v in scalars.items())),
               tuple(sorted(sizes.items())))
        with _lock:
            if key not in self._numbers:
                kernel = self.program._engine.compile(dict(
                    entry=self.entry, inputs=list(specs), outputs=[], sizes=sizes, scalars=scalars, backend=backend,
                    options=self.program._options, mapping=self.program._mapping))
                self._numbers[key] = _core.jax_register(kernel, scalars), kernel.outputs
        return _target(backend), *self._numbers[key]

    def _plain(self, scalars: dict[str, Any], sizes: dict[str, int]) -> Callable[..., tuple[Any, ...]]:
        """Arrays to results, with a rule for batches."""
        @jax.custom_batching.custom_vmap
        def call(*tensors: Any) -> tuple[Any, ...]:
            target, number, outputs = self._kernel([_spec(t) for t in tensors], scalars, sizes)
            shapes = [jax.ShapeDtypeStruct(o.shape, jax.numpy.dtype(_FLOAT8.get(o.dtype, o.dtype))) for o in outputs]
            return tuple(jax.ffi.ffi_call(target, shapes)(*tensors, kernel=np.int64(number)))

        @call.def_vmap
        def over_batch(extent: int, in_batched: Any, *tensors: Any) -> Any:
            names = frozenset(n for n, is_batched in zip(self._tensors(), in_batched) if is_batched)
            with _lock:
                if names not in self._batched:
                    text, wide = _batch.batched(self.program.source, self.entry, names)
                    strict = [kind.strict for kind in (self.program._options, self.program._mapping)]
                    given = self.program._arguments
                    program = Program(text, check_bounds=given["check_bounds"], cache="",
                                      options=CpuOptions(strict=strict[0], **said_checks(given["options"])),
                                      mapping=MappingOptions(strict=strict[1], tf32=self.program._mapping.tf32,
                                                             fast_accumulation=self.program._mapping.fast_accumulation,
                                                             **said_checks(given["mapping"])))
                    self._batched[names] = Operator(program, self.entry), wide
                operator, wide = self._batched[names]
            is_wide = tuple(r.name in wide for r in self.signature.results)
            if extent > 0:
                return operator._plain(scalars, sizes)(*tensors), is_wide
            # No range of a def is empty: the elements that are missing are zeros here.
            elements = [jax.numpy.zeros(t.shape[1:], t.dtype) if n in names else t
                        for n, t in zip(self._tensors(), tensors)]
            plain = self._plain(scalars, sizes)
            made = jax.eval_shape(plain, *elements) if all(is_wide) else plain(*elements)
            return tuple(jax.numpy.zeros((0, *m.shape), m.dtype) if w else m for m, w in zip(made, is_wide)), is_wide

        return call

    def _differentiable(self, scalars: dict[str, Any], sizes: dict[str, int]) -> Callable[..., tuple[Any, ...]]:
        plain = self._plain(scalars, sizes)
        call = jax.custom_vjp(plain)

        def forward(*tensors: Any) -> tuple[Any, Any]:
            results = call(*tensors)  # which may be differentiated again
            return results, (tensors, results)

        def backward(kept: Any, slopes: tuple[Any, ...]) -> tuple[Any, ...]:
            tensors, results = kept
            names = [r.name for r in self.signature.results]
            gradient, prefix = self._gradient
            values = {**dict(zip(self._tensors(), tensors)), **dict(zip(names, results)), **scalars,
                      **{prefix + name: slope for name, slope in zip(names, slopes)}}
            # A gradient that is merged of two instances has T where a result of narrow inputs is wider than they are.
            generic = [p for p in gradient.signature.parameters if p.role != "scalar" and p.type_variable]
            types = {p.type_variable: values[p.name].dtype for p in generic if p.name in self._tensors()}
            for p in generic:
                values[p.name] = values[p.name].astype(types.get(p.type_variable, values[p.name].dtype))
            made = gradient(*(_as(p, values[p.name]) for p in gradient.signature.parameters))
            found = dict(zip((r.name for r in gradient.signature.results), made if isinstance(made, tuple) else (made,)))
            return tuple(found.get(prefix + name) for name in self._tensors())

        call.defvjp(forward, backward)
        return call

    @functools.cached_property
    def _gradient(self) -> tuple[Operator, str]:
        """Derived when somebody differentiates, and what names of gradients begin with: d_, or d2_, d3_, ... where the
        def has such names itself. Raises Error, which says what cannot be derived."""
        given = self.program._arguments
        program = Program(self.program._engine.gradient(self.entry), options=given["options"],
                          mapping=given["mapping"], check_bounds=given["check_bounds"], cache="")
        made = Operator(program, next(iter(program)))
        results = [r.name for r in made.signature.results]
        prefix = next(prefix for prefix in ("d_", *(f"d{n}_" for n in range(2, 100)))
                      if all(name.startswith(prefix) and name[len(prefix):] in self._tensors() for name in results))
        return made, prefix


def _as(parameter: Any, value: Any) -> Any:
    """A tensor without dimensions is one of one element for a gradient's def."""
    is_one_element = parameter.role != "scalar" and getattr(value, "ndim", None) == 0 and len(parameter.shape) == 1
    return value.reshape(1) if is_one_element else value


def op(source: str, entry: str = "", *, options: CpuOptions | None = None, mapping: MappingOptions | None = None,
       check_bounds: bool | None = None, cache: Any = None) -> Operator:
    """Makes a def a function of JAX's arrays. The arguments are those of tensorc.define(). Raises Error.

    >>> import jax.numpy as jnp
    >>> tensorc.jax.op("def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }")(jnp.ones(3), 2.0)
    Array([2., 2., 2.], dtype=float32)
    """
    program = Program(source, options=options, mapping=mapping, check_bounds=check_bounds, cache=cache)
    if not entry and len(program) != 1:
        raise Error(f"the text has {len(program)} defs; name one: {', '.join(program)}")
    entry = entry or next(iter(program))
    program._engine.signature(entry)  # raises for a name that the text does not have
    return Operator(program, entry)
