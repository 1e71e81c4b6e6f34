"""What inspect.signature() and editors show of a def."""
from __future__ import annotations

import inspect
import keyword
from typing import Any

from ._core import Argument, Signature

_Parameter = inspect.Parameter


def _type_of(argument: Argument) -> str:
    """"float32(M, K)" of "<tensorc.Argument float32(M, K) A>"."""
    return repr(argument).removeprefix("<tensorc.Argument ").removesuffix(f" {argument.name}>")


def signature_of(function: Any) -> inspect.Signature:
    """The parameters of a Function or Kernel. A name that Python has (`in`) can be given by position only; it and those
    before it are shown so, with a line behind it."""
    signature: Signature = function.signature
    words = [p.name for p in signature.parameters if keyword.iskeyword(p.name) or p.name in ("out", "stream")]
    last = max((i for i, p in enumerate(signature.parameters) if p.name in words), default=-1)
    parameters = [
        _Parameter(p.name + ("_" if p.name in words else ""),
                   _Parameter.POSITIONAL_ONLY if i <= last else _Parameter.POSITIONAL_OR_KEYWORD,
                   annotation=_type_of(p))
        for i, p in enumerate(signature.parameters)]
    parameters += [_Parameter(name, _Parameter.KEYWORD_ONLY, default=None) for name in ("out", "stream")]
    results = [_type_of(r) for r in signature.results]
    return inspect.Signature(parameters,
                             return_annotation=results[0] if len(results) == 1 else f"tuple[{', '.join(results)}]")
