"""Defs in Python's functions: what `tensorc.kernel` is."""
from __future__ import annotations

import functools
import inspect
import os
import re
import textwrap
from typing import Any, Callable, Mapping, overload

from . import _core
from ._cache import Cache
from ._core import CpuOptions, Function, Kernel, MappingOptions
from ._defaults import defaults
from ._tune import Tuned, tune

_DEF = re.compile(r"^[ \t]*def\s+\w+\s*(<[^>]*>)?\s*\(", re.M)

# Of a search on the first call of a shape, unless the caller says otherwise.
_SEARCH: Mapping[str, Any] = {"generations": 5, "population": 16, "time_limit": 60}


class Autotuner:
    """Makes the kernels of a def by a search for each shape."""

    def __init__(self, source: str, options: CpuOptions, mapping: MappingOptions, element_aligned: bool,
                 cache: Cache | str | os.PathLike[str] | None, search: Mapping[str, Any],
                 engine: _core.Engine) -> None:
        self._source = source
        self._how: dict[str, Any] = dict(options=options, mapping=mapping, element_aligned=element_aligned)
        self._cache = cache
        self._search = {**_SEARCH, **search}
        self._engine = engine
        self.tuned: list[Tuned] = []

    def __call__(self, request: dict[str, Any]) -> Kernel:
        wanted = {**request, **self._how}
        if self._cache is not None:
            known = self._engine.compile(wanted)
            if known.measured:
                return known
            if isinstance(self._cache, Cache) and self._cache.production:
                return known  # nothing is compiled there, so nothing is searched
        search: dict[str, Any] = {"cache": "" if self._cache is None else self._cache, **self._search}
        found = tune(self._source, **wanted, **search)
        self.tuned.append(found)
        # What the options say of meaning rather than speed is none of the search's findings.
        kind = "options" if request["backend"] == "cpu" else "mapping"
        given = self._how[kind]
        meaning = ("strict", "check_bounds") + (("tf32", "fast_accumulation") if kind == "mapping" else ())
        wanted[kind] = found.options.replace(**{name: getattr(given, name) for name in meaning})
        return self._engine.compile(wanted)


def _text_of(function: Callable[..., Any]) -> str:
    """The def in a function's docstring, from its first line on, or the text that the function returns."""
    doc = inspect.cleandoc(function.__doc__ or "")
    found = _DEF.search(doc)
    if found:
        return textwrap.dedent(doc[found.start():])
    try:
        text = function()
    except TypeError as error:
        raise TypeError(f"'{function.__name__}' has no def in its docstring, and is called without arguments for its "
                        f"text: {error}") from error
    if not isinstance(text, str):
        raise TypeError(f"'{function.__name__}' has no def in its docstring, and returns {text!r}, not a text")
    return text


def _check_names(function: Callable[..., Any], made: Function) -> None:
    """The function's parameters, if it has any, are those of the def: they are what editors show."""
    given = list(inspect.signature(function).parameters)
    wanted = [p.name for p in made.signature.parameters]
    if given and [name.rstrip("_") for name in given] != [name.rstrip("_") for name in wanted]:
        raise TypeError(f"'{function.__name__}' has the parameters {', '.join(given)}; the def has {', '.join(wanted)}")


@overload
def kernel(function: Callable[..., Any], /) -> Function: ...
@overload
def kernel(*, entry: str = "", backend: str | None = None, options: CpuOptions | None = None,
           mapping: MappingOptions | None = None, element_aligned: bool = False,
           cache: Cache | str | os.PathLike[str] | None = None, check_bounds: bool | None = None,
           autotune: bool | Mapping[str, Any] = False) -> Callable[[Callable[..., Any]], Function]: ...


def kernel(function: Callable[..., Any] | None = None, /, *, entry: str = "", backend: str | None = None,
           options: CpuOptions | None = None, mapping: MappingOptions | None = None, element_aligned: bool = False,
           cache: Cache | str | os.PathLike[str] | None = None, check_bounds: bool | None = None,
           autotune: bool | Mapping[str, Any] = False) -> Any:
    """Makes a Python function one of arrays, by the def in its docstring or the text that it returns.

    A docstring may explain the function before the def. A function that returns a text has no def in its docstring, and
    is called once, without arguments. Where the text has several defs, `entry`, else the function's own name, says
    which. Parameters that the function declares are those of the def. The result is a Function; its `text` is the
    text, its `program` the Program.

    With `autotune` the first call of a shape searches for the fastest options, by tune() with the arguments of the
    dictionary given, or for at most a minute. Later calls use them; with a cache, other processes do so too. `tuned`
    lists the searches. The other arguments are those of define(). Raises Error, and TypeError for a function without a
    text.

    >>> import numpy as np
    >>> @tensorc.kernel
    ... def scale(x, a):
    ...     '''Multiplies by a number.
    ...
    ...     def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }
    ...     '''
    >>> scale(np.ones(3, "float32"), 2)
    array([2., 2., 2.], dtype=float32)
    """
    if function is None:
        return functools.partial(kernel, entry=entry, backend=backend, options=options, mapping=mapping,
                                 element_aligned=element_aligned, cache=cache, check_bounds=check_bounds,
                                 autotune=autotune)
    from . import Program  # which this module is a part of
    if not callable(function):
        raise TypeError(f"'kernel' takes a function, not {function!r}")
    if not isinstance(autotune, (bool, Mapping)):
        raise TypeError(f"'autotune' takes a bool or a dict of tune()'s arguments, not {autotune!r}")
    text = _text_of(function)
    chosen = defaults._chosen(cache)
    maker = None
    program = Program(text, name=function.__name__, backend=backend, options=options, mapping=mapping,
                      element_aligned=element_aligned, cache="" if chosen is None else chosen,
                      check_bounds=check_bounds)
    name = entry or (function.__name__ if function.__name__ in program or len(program) > 1 else next(iter(program)))
    made = program[name]
    if autotune is not False:
        search = autotune if isinstance(autotune, Mapping) else {}
        maker = Autotuner(text, program._options, program._mapping, element_aligned, chosen, search, program._engine)
        made = Function(program._engine, name, backend, program._options, program._mapping, element_aligned, maker)
        made.tuned = maker.tuned  # type: ignore[attr-defined]
    _check_names(function, made)
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(made, attribute, getattr(function, attribute, None))
    made.text, made.program = text, program  # type: ignore[attr-defined]
    return made
