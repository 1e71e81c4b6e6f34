"""Makes a program smaller while it still shows the same finding."""

import copy
import random

from .compare import compare
from .syntax import SyntaxProblem, children, definition_text, parse, rebuild


def smaller_expressions(e):
    """Expressions with one part of e taken away."""
    if e[0] == "int" and e[1] > 1:
        yield ("int", 1)
    if e[0] == "float" and e[1] != "0.0":
        yield ("float", "0.0")
    if e[0] not in ("call", "int", "float", "name", "extent"):
        yield from children(e)
    for n, child in enumerate(children(e)):
        for other in smaller_expressions(child):
            at = iter(range(len(children(e))))
            yield rebuild(e, lambda c, other=other, n=n, at=at: other if next(at) == n else c)


def smaller(definition):
    """Definitions with one thing taken away, those that lose most first."""
    for n in range(len(definition.statements)):
        if len(definition.statements) > 1:
            yield changed(definition, lambda d, n=n: d.statements.pop(n))
    for n, s in enumerate(definition.statements):
        for c in range(len(s.ranges)):
            yield changed(definition, lambda d, n=n, c=c: d.statements[n].ranges.pop(c))
        for right in smaller_expressions(s.right):
            yield changed(definition, lambda d, n=n, right=right: setattr(d.statements[n], "right", right))
        for c, (name, low, high) in enumerate(s.ranges):
            for bound in smaller_expressions(high):
                changing = (name, low, bound)
                yield changed(definition, lambda d, n=n, c=c, to=changing: d.statements[n].ranges.__setitem__(c, to))
    for name, tensor in definition.tensors.items():
        if tensor.is_result and tensor.dims is not None:
            yield changed(definition, lambda d, name=name: setattr(d.tensors[name], "dims", None))


def changed(definition, change):
    result = copy.deepcopy(definition)
    change(result)
    return result


def minimise(worker, text, scalar_values, finding, limit=400):
    """The smallest text found that has a finding of the same kind and class, and that finding."""
    best = text
    tries = 0

    def still_fails(candidate):
        try:
            found = compare(worker, candidate, scalar_values, random.Random(0), 12).findings
        except SyntaxProblem:
            return None
        return next((f for f in found if (f.kind, f.why) == (finding.kind, finding.why)), None)

    progress = True
    while progress and tries < limit:
        progress = False
        for candidate in smaller(parse(best)[-1]):
            tries += 1
            if tries > limit:
                break
            text = definition_text(candidate)
            if len(text) >= len(best):
                continue
            found = still_fails(text)
            if found:
                best, finding, progress = text, found, True
                break
    return best, finding
