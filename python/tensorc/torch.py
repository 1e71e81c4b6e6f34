"""Operators of PyTorch from Tensor Comprehensions.

    import tensorc.torch

    scale = tensorc.torch.op("def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }")
    y = scale(x, 2.0)

An operator is registered with torch.library: it works under torch.compile without a break of the graph, on the CPU and
on a GPU, on the current stream, in CUDA graphs, and in autograd with a gradient that is given or derived.
"""
from __future__ import annotations

import functools
import hashlib
import inspect
import keyword
import re
import threading
from typing import Any, Callable

import torch
from torch.autograd import forward_ad

from . import CpuOptions, Error, MappingOptions, Program, Signature, TensorSpec, __version__, _batch, _extents
from ._arguments import said_checks

__all__ = ["Operator", "op"]


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__file__", "__name__"]



_NAMESPACE = "tensorc"
_library = torch.library.Library(_NAMESPACE, "FRAGMENT")
_operators: dict[str, "Operator"] = {}
_registering = threading.RLock()
_DTYPES = {
    "bool": torch.bool, "int8": torch.int8, "int16": torch.int16, "int32": torch.int32, "int64": torch.int64,
    "uint8": torch.uint8, "uint16": torch.uint16, "uint32": torch.uint32, "uint64": torch.uint64,
    "float16": torch.float16, "bfloat16": torch.bfloat16,
    "float8_e4m3": torch.float8_e4m3fn, "float8_e5m2": torch.float8_e5m2, "float32": torch.float32, "float64": torch.float64,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


class Operator:
    """A def as an operator of PyTorch: call it with the def's parameters, in the order of the text or by name.

    An in-out tensor is one more argument, after the parameters; the operator returns an updated copy of it. `overload`
    is what torch.ops has. A pickled operator is registered anew where it arrives.
    """

    digest = ""
    _made_by: tuple[Any, ...] = ()

    def __init__(self, program: Program, entry: str, name: str, gradient: "Callable[[], _Gradient | str]",
                 has_derived_gradient: bool = True) -> None:
        self.program = program
        self.entry = entry
        self.name = f"{_NAMESPACE}::{name}"
        self.signature: Signature = program[entry].signature
        self._updated = [r for r in self.signature.results if r.role == "inout"]
        self._function = program[entry]
        self.arguments = [p.name for p in [*self.signature.parameters, *self._updated]]
        self._words = {name: _word(name) for name in self.arguments}
        self.__signature__ = inspect.Signature([
            inspect.Parameter(_word(p.name), inspect.Parameter.POSITIONAL_OR_KEYWORD,
                              annotation=p.dtype if p.role == "scalar" else torch.Tensor)
            for p in [*self.signature.parameters, *self._updated]])
        self.results = [r.name for r in self.signature.results]
        _library.define(name + self._schema(), tags=(torch.Tag.pt2_compliant_tag,))
        for key in ("CPU", "CUDA"):
            _library.impl(name, self._run, key)
        for key in ("AutocastCPU", "AutocastCUDA"):
            _library.impl(name, functools.partial(self._run_cast, torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))),
                          key)
        torch.library.register_fake(self.name, self._infer, lib=_library)
        if has_derived_gradient:  # a gradient that is given is of the def without a batch
            self._batched: dict[frozenset[str], tuple[Operator, set[str]]] = {}
            torch.library.register_vmap(self.name, self._run_batch, lib=_library)
        torch.library.register_autograd(self.name, _backward(self, gradient),
                                        setup_context=_save(self, gradient), lib=_library)
        self.overload: Callable[..., Any] = getattr(getattr(torch.ops, _NAMESPACE), name).default

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if not torch.compiler.is_compiling() and forward_ad._current_level >= 0:
            _check_no_tangent([*args, *kwargs.values()], self.name)
        return self.overload(*args, **{self._words.get(name, name): value for name, value in kwargs.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._made_by:
            raise TypeError(f"cannot pickle {self.name}, the gradient of an operator: pickle that")
        return self._made_by

    def __repr__(self) -> str:
        return f"<tensorc.torch.Operator {self.overload}>"

    def _schema(self) -> str:
        words = {"scalar": lambda p: "Scalar" if p.type_variable else "bool" if p.dtype == "bool" else "float" if "float" in p.dtype else "int"}
        parameters = [f"{words.get(p.role, lambda _: 'Tensor')(p)} {_word(p.name)}"
                      for p in [*self.signature.parameters, *self._updated]]
        results = ", ".join("Tensor" for _ in self.signature.results)
        return f"({', '.join(parameters)}) -> {results if len(self.signature.results) == 1 else f'({results})'}"

    def _run(self, *args: Any) -> Any:
        count = len(self.signature.parameters)
        if not self._updated:
            return self._function(*args)
        copies = {p.name: a.clone(memory_format=torch.contiguous_format)
                  for p, a in zip(self._updated, args[count:])}
        return self._function(*args[:count], out=[copies.get(r.name) for r in self.signature.results])

    def _run_cast(self, keys: Any, *args: Any) -> Any:
        """Under torch.autocast: with floating arguments of the types that the text says, and of one type for each type
        variable. Those of float64 stay as they are, as PyTorch's own operators leave them."""
        with torch._C._ExcludeDispatchKeyGuard(keys):
            return self.overload(*self._cast(args))

    def _cast(self, args: tuple[Any, ...]) -> list[Any]:
        arguments = list(zip([*self.signature.parameters, *self._updated], args))
        floating = [isinstance(a, torch.Tensor) and a.is_floating_point() and a.dtype != torch.float64
                    for _, a in arguments]
        widest: dict[str, torch.dtype] = {}
        for (p, a), is_cast in zip(arguments, floating):
            if is_cast and p.type_variable:
                widest[p.type_variable] = torch.promote_types(a.dtype, widest.get(p.type_variable, a.dtype))
        return [a.to(widest.get(p.type_variable, _DTYPES[p.dtype])) if is_cast and _DTYPES[p.dtype].is_floating_point else a
                for (p, a), is_cast in zip(arguments, floating)]

    def _run_batch(self, info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """Under torch.vmap: the operator of the def that has one index more."""
        moved = [a if d is None else a.movedim(d, 0) for a, d in zip(args, in_dims)]
        operator, wide = self._over_batch(frozenset(
            name for name, d in zip(self.arguments, in_dims) if d is not None))
        dims = tuple(0 if name in wide else None for name in self.results)
        if info.batch_size == 0:
            results = self._run_no_batch(moved, in_dims, dims)
            return (results, dims) if len(dims) > 1 else (results[0], dims[0])
        # What an update makes is of the whole batch.
        moved = [a.expand(info.batch_size, *a.shape) if d is None and name in wide else a
                 for name, a, d in zip(self.arguments, moved, in_dims)]
        return operator.overload(*moved), dims if len(dims) > 1 else dims[0]

    def _run_no_batch(self, args: list[Any], in_dims: tuple[int | None, ...],
                      dims: tuple[int | None, ...]) -> tuple[Any, ...]:
        """The results over a batch of 0 elements, in whose place zeros stand here: no range of a def is empty."""
        elements = [a if d is None else a.new_zeros(a.shape[1:]) for a, d in zip(args, in_dims)]
        made = self.overload(*elements) if None in dims else self._infer(*elements)
        # Nothing is added to nothing, and each argument has a gradient of zeros.
        parts = [a.flatten()[:0].sum() for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
        results = []
        for result, dim in zip(made if isinstance(made, tuple) else (made,), dims):
            none = result if dim is None else result.new_empty((0, *result.shape))
            results.append(none + sum(parts) if dim is not None and parts and result.is_floating_point() else none)
        return tuple(results)

    def _over_batch(self, names: frozenset[str]) -> "tuple[Operator, set[str]]":
        with _registering:
            if names not in self._batched:
                text, wide = _batch.batched(self.program.source, self.entry, names)
                # Options are for shapes without a batch.
                given = self.program._arguments
                strict = [given[kind] is not None and given[kind].strict for kind in ("options", "mapping")]
                tf32, fast = [given["mapping"] is not None and getattr(given["mapping"], name)
                              for name in ("tf32", "fast_accumulation")]
                operator = op(text, self.entry, check_bounds=given["check_bounds"],
                              options=CpuOptions(strict=strict[0], **said_checks(given["options"])),
                              mapping=MappingOptions(strict=strict[1], tf32=tf32, fast_accumulation=fast,
                                                     **said_checks(given["mapping"])))
                self._batched[names] = operator, wide
            return self._batched[names]

    def _infer(self, *args: Any) -> Any:
        shapes = self._symbolic_shapes(args) or self._shapes(args)
        like = next((a for a in args if isinstance(a, torch.Tensor)), None)
        device = like.device if like is not None else "cpu"
        results = [torch.empty(shape, dtype=dtype, device=device)
                   for dtype, shape in zip(self._dtypes(args), shapes)]
        return results[0] if len(results) == 1 else tuple(results)

    def _dtypes(self, args: tuple[Any, ...]) -> list[torch.dtype]:
        """Of the results: those of a generic def are its instance's, which the arguments decide."""
        signature = self.signature
        if signature.type_variables:
            arguments = zip([*signature.parameters, *self._updated], args)
            types = {p.type_variable: _NAMES[a.dtype] for p, a in arguments if p.role != "scalar"}
            instance = f"{self.entry}<{','.join(types[variable] for variable in signature.type_variables)}>"
            signature = self.program._engine.signature(instance)
        return [_DTYPES[r.dtype] for r in signature.results]

    def _shapes(self, args: tuple[Any, ...]) -> list[tuple[int, ...]]:
        """As the compiler infers them, which also checks the arguments."""
        parameters = self.signature.parameters
        specs = [_spec(a) for p, a in zip(parameters, args) if p.role != "scalar"]
        scalars = {p.name: a for p, a in zip(parameters, args) if p.role == "scalar" and p.compiled_in}
        updated = {p.name: _spec(a) for p, a in zip(self._updated, args[len(parameters):])}
        outputs = [updated.get(r.name) for r in self.signature.results]
        _, inferred = self.program.infer(self.entry, inputs=specs, outputs=outputs, scalars=scalars)
        return [spec.shape for spec in inferred]

    def _symbolic_shapes(self, args: tuple[Any, ...]) -> list[list[Any]] | None:
        """Extents as expressions of those of the arguments, while these are symbols; None if that does not suffice."""
        tensors = [(p, a) for p, a in zip([*self.signature.parameters, *self._updated], args) if p.role != "scalar"]
        if not any(isinstance(extent, torch.SymInt) for _, a in tensors for extent in a.shape):
            return None
        values: dict[str, Any] = {p.name: a for p, a in zip(self.signature.parameters, args) if p.role == "scalar"}
        for parameter, array in tensors:
            if len(parameter.shape) != array.dim():
                return None
            values.update({text: extent for text, extent in zip(parameter.shape, array.shape) if text.isidentifier()})
        return _extents.evaluate([r.shape for r in self.signature.results], values)


def _check_no_tangent(values: list[Any], name: str) -> None:
    """PyTorch would take the tangent of an operator's result for zero."""
    if any(forward_ad.unpack_dual(v).tangent is not None for v in values if isinstance(v, torch.Tensor)):
        raise RuntimeError(f"{name} has no derivative in forward mode (torch.func.jvp, torch.autograd.forward_ad)")


class _Gradient:
    """A def that computes the gradients of another's parameters.

    Its parameters are named like parameters or results of the other, or d_NAME for the gradient of a result; its
    results are d_NAME for the gradient of a parameter. Of a tensor that the other updates, NAME is what it is
    afterwards, old_NAME what it was before. The derived gradient of a def that has such names itself begins them with
    d2_ (d3_, ...) and old2_.
    """

    def __init__(self, forward: Signature, backward: Signature, register: Callable[[], Operator],
                 derived: bool) -> None:
        self.parameters = [p.name for p in backward.parameters]
        self.results = [r.name for r in backward.results]
        self.scalars = {p.name for p in backward.parameters if p.role == "scalar"}
        self.derived = derived
        inputs = [p.name for p in forward.parameters if p.role != "scalar"]
        updated = [r.name for r in forward.results if r.role == "inout"]
        results = [r.name for r in forward.results]
        self.old = {name: _old_name(name, self.parameters + self.results, inputs) for name in updated}
        known = [p.name for p in forward.parameters] + results + list(self.old.values())
        sources = inputs + list(self.old.values())
        self.prefix = next((prefix for prefix in ("d_", *(f"d{n}_" for n in range(2, 100))) if derived and all(
            name.startswith(prefix) and name[len(prefix):] in sources for name in self.results)), "d_")
        grads = [self.prefix + name for name in results]
        for name in self.parameters:
            if name not in known and name not in grads:
                raise Error(f"the gradient '{backward.entry}' takes '{name}', which is neither a parameter nor a "
                            f"result of '{forward.entry}' ({', '.join(known)}), nor the gradient of a result "
                            f"({', '.join(grads)})")
        _check_has_tensors(backward)
        wanted = [self.prefix + name for name in sources]
        for name in self.results:
            if name not in wanted:
                raise Error(f"the gradient '{backward.entry}' makes '{name}', which is not the gradient of a tensor "
                            f"parameter of '{forward.entry}' ({', '.join(wanted)})")
        self.backward = register()

    def of(self, name: str) -> str:
        """What the gradient of an argument is called."""
        return self.prefix + self.old.get(name, name)


def _old_name(name: str, among: list[str], taken: list[str]) -> str:
    """What an updated tensor's values before the call are called: old_NAME, or old2_NAME where the def has that, ..."""
    pattern = re.compile(rf"(?:d\d*_)?(old\d*_{re.escape(name)})")
    found = [match[1] for match in map(pattern.fullmatch, among) if match and match[1] not in taken]
    return found[0] if found else f"old_{name}"


def _save(forward: Operator, gradient: Callable[[], _Gradient | str]) -> Callable[..., None]:
    """Keeps what the gradient's def takes."""
    def save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        made = gradient()
        wanted = made.parameters if isinstance(made, _Gradient) else []
        outputs = output if isinstance(output, (tuple, list)) else (output,)
        given = dict(zip(forward.arguments, inputs))
        # A result that is an updated argument has the argument's name; the gradient's def means the result.
        values = {**given, **dict(zip(forward.results, outputs))}
        if isinstance(made, _Gradient):
            values.update({old: given[name] for name, old in made.old.items()})
        tensors = [name for name in wanted if isinstance(values.get(name), torch.Tensor)]
        ctx.save_for_backward(*[values[name] for name in tensors])
        ctx.tensors = tensors
        ctx.scalars = {name: values[name] for name in wanted if name in values and name not in tensors}

    return save


def _backward(forward: Operator, gradient: Callable[[], _Gradient | str]) -> Callable[..., Any]:
    """The gradient, or why there is none."""
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        made = gradient()
        if isinstance(made, str):
            raise RuntimeError(f"{forward.name} has no gradient; {made}")
        values = {**ctx.scalars, **dict(zip(ctx.tensors, ctx.saved_tensors))}
        values.update({made.prefix + name: grad.contiguous() for name, grad in zip(forward.results, grads)
                       if made.prefix + name in made.parameters})
        # A gradient that is merged of two instances has T where a result of narrow inputs is wider than they are.
        tensors = [p for p in made.backward.signature.parameters if p.role != "scalar" and p.type_variable]
        types = {p.type_variable: values[p.name].dtype for p in tensors if p.name in ctx.tensors}
        for p in tensors:
            values[p.name] = values[p.name].to(types.get(p.type_variable, values[p.name].dtype))
        slopes = made.backward(*[_as_parameter(made, name, values[name]) for name in made.parameters])
        by_name = dict(zip(made.results, slopes if isinstance(slopes, (tuple, list)) else (slopes,)))
        missing = [name for name, needed in zip(forward.arguments, ctx.needs_input_grad)
                   if needed and made.of(name) not in by_name]
        if missing and not made.derived:
            raise RuntimeError(f"{made.backward.name} does not make the gradient of {', '.join(missing)}")
        return tuple(by_name.get(made.of(name)) for name in forward.arguments)

    return backward


def _as_parameter(gradient: _Gradient, name: str, value: Any) -> Any:
    """A tensor without dimensions is one element for the gradient's def, whose scalars have no derivatives."""
    if not isinstance(value, torch.Tensor) or value.dim() > 0:
        return value
    if name not in gradient.scalars:
        return value.reshape(1)
    if torch.is_grad_enabled() and value.requires_grad:
        raise RuntimeError(f"{gradient.backward.name} takes '{name}' as a number, which has no derivative: declare it "
                           f"as a tensor of one element, float(1) {name}")
    return value


def _word(name: str) -> str:
    """A name that a schema may have."""
    return f"{name}_" if keyword.iskeyword(name) or name in ("self", "out") else name


def _spec(array: torch.Tensor) -> TensorSpec:
    if array.dtype not in _NAMES:
        raise Error(f"PyTorch's {array.dtype} is no type of the language")
    return TensorSpec(_NAMES[array.dtype], [int(extent) for extent in array.shape])


def _only_entry(program: Program, entry: str) -> str:
    if entry or len(program) == 1:
        program._engine.signature(entry)  # raises for a name that the text does not have
        return entry or next(iter(program))
    raise Error(f"the text has {len(program)} defs; name one: {', '.join(program)}")


def _check_types_are_decided(signature: Signature) -> None:
    """PyTorch makes the results: it has to know their types from the arguments."""
    arguments = [p for p in signature.parameters if p.role != "scalar"]
    arguments += [r for r in signature.results if r.role == "inout"]
    for variable in signature.type_variables:
        if all(a.type_variable != variable for a in arguments):
            raise Error(f"no argument of '{signature.entry}' decides its type variable '{variable}', which is the type "
                        "of results only: write a type in its place")


def _check_has_tensors(signature: Signature) -> None:
    if all(p.role == "scalar" for p in signature.parameters) and all(r.role != "inout" for r in signature.results):
        raise Error(f"'{signature.entry}' takes no tensor: PyTorch would not know on which device its operator runs")


def _gradient(program: Program, entry: str, name: str, backward: str | None, backward_entry: str,
              how: dict[str, Any], advice: str) -> _Gradient | str:
    """That of the text given, or the derived one; or the sentence why none can be derived, after the advice."""
    try:
        text = backward if backward is not None else program._engine.gradient(entry)
        derived = Program(text, name=f"{name}_backward", **how)
        made = _only_entry(derived, backward_entry)
        _check_types_are_decided(derived[made].signature)
    except Error as error:
        if backward is not None:
            raise
        return f"{advice} {error}"
    name = f"{name}_backward"

    @functools.cache
    def second() -> _Gradient | str:
        # Derived when somebody differentiates the gradient, which most never do.
        with _registering:
            return _gradient(derived, made, name, None, "", how, "it is a gradient itself:")

    def register() -> Operator:
        if name in _operators:
            raise Error(f"there is an operator {_NAMESPACE}::{name} already, the name that this one's gradient needs")
        _operators[name] = Operator(derived, made, name, second)
        return _operators[name]

    return _Gradient(program[entry].signature, derived[made].signature, register, derived=backward is None)


def op(source: str, entry: str = "", *, backward: str | None = None, backward_entry: str = "",
       name: str | None = None, options: CpuOptions | None = None, mapping: MappingOptions | None = None,
       check_bounds: bool | None = None) -> Operator:
    """Registers a def as an operator of PyTorch, torch.ops.tensorc.NAME.

    `backward` is the text of a def that computes gradients: its parameters are named like parameters or results of the
    first, or d_NAME for the gradient of a result; its results are d_NAME for the gradients of parameters. Of a tensor C
    that the first updates, C is what it becomes, old_C what it was, and d_old_C the gradient by that. Without `backward`
    the gradient is derived (tensorc.gradient); where it cannot be, a backward pass through the operator is an error that
    says why. Second derivatives are those of the gradient's def, derived when they are asked for (create_graph=True).
    `name` is by default the def's with a digest of the text; the same text and options give the same operator.
    `check_bounds` is as in tensorc.define().

    Under torch.autocast, floating arguments are cast to the types that the text says, and those of one type variable to
    the widest of them. torch.vmap runs the def with one index more, which is another operator; one with `backward=` runs
    for one element of the batch after the other. Raises Error.

    >>> import torch
    >>> tensorc.torch.op("def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }")(torch.ones(3), 2.0)
    tensor([2., 2., 2.])
    """
    how = dict(options=options, mapping=mapping, check_bounds=check_bounds)
    made_by = functools.partial(op, entry=entry, backward=backward, backward_entry=backward_entry, name=name,
                                **how), (source,)
    program = Program(source, name=name or "tc", **how)
    entry = _only_entry(program, entry)
    _check_has_tensors(program[entry].signature)
    _check_types_are_decided(program[entry].signature)
    if name is not None and not name.isidentifier():
        raise Error(f"an operator cannot be called {name!r}: letters, digits and underscores make a name")
    # PyTorch keeps compiled graphs on disk by the names of their operators: what changes one has to be in its name.
    parts = (__version__, source, entry, backward, backward_entry, options, mapping, check_bounds)
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:8]
    full = name or f"{entry}_{digest}"
    with _registering:
        if full in _operators:
            if _operators[full].digest != digest:
                raise Error(f"there is an operator {_NAMESPACE}::{full} of another text already")
            return _operators[full]
        gradient = _gradient(program, entry, full, backward, backward_entry, how,
                             "give tensorc.torch.op() the TC that computes it, as backward=.")
        operator = Operator(program, entry, full, lambda: gradient, backward is None)
        operator.digest, operator._made_by = digest, made_by
        _operators[full] = operator
        return operator
