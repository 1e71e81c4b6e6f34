"""Makes a program that fails smaller, as long as it fails in the same way."""
from __future__ import annotations

from dataclasses import replace
from typing import Callable, Iterator

from . import program as p
from .evaluate import OutOfBounds


def minimise(program: p.Program, fails: Callable[[p.Program], bool], steps: int = 400) -> p.Program:
    """The smallest program found within so many runs. `fails` says whether a candidate fails like the first; one that
    has no meaning raises OutOfBounds."""
    left = steps
    changed = True
    stated = replace(program, statements=tuple(replace(s, ranges=tuple(replace(r, stated=True) for r in s.ranges))
                                               for s in program.statements))
    # What is inferred depends on all of a statement: with every range stated, each part may change by itself.
    if stated != program and fails(stated):
        program = stated
    while changed and left > 0:
        changed = False
        for candidate in smaller(program):
            if left <= 0:
                break
            if not candidate.results():
                continue
            left -= 1
            try:
                if fails(candidate):
                    program, changed = candidate, True
                    break
            except (OutOfBounds, KeyError, ValueError, IndexError):
                continue
    return program


def smaller(program: p.Program) -> Iterator[p.Program]:
    """Programs that are simpler in one place, the greatest steps first."""
    yield from without_statements(program)
    yield from with_smaller_extents(program)
    for n, statement in enumerate(program.statements):
        if any(not r.stated for r in statement.ranges):
            continue
        for simpler in simpler_statements(statement):
            yield tidied(replace(program, statements=program.statements[:n] + (simpler,) + program.statements[n + 1:]))
    if program.full_parentheses:
        yield replace(program, full_parentheses=False)


def without_statements(program: p.Program) -> Iterator[p.Program]:
    count = len(program.statements)
    for length in sorted({count // 2, 1} - {0}, reverse=True):
        for n in range(0, count - length + 1):
            rest = program.statements[:n] + program.statements[n + length:]
            if rest:
                yield tidied(replace(program, statements=rest))


def tidied(program: p.Program) -> p.Program:
    """Without tensors, scalars and sizes that nothing uses."""
    nodes = [n for s in program.statements
             for e in (s.value, *s.subscripts, *s.exists, *(v for _, v in s.lets), *(x for r in s.ranges for x in (r.low, r.high)))
             for n in p.walk(e)]
    read = {n.tensor for n in nodes if isinstance(n, p.Read)}
    written = {s.tensor for s in program.statements}
    tensors = {name: t for name, t in program.tensors.items() if name in written or (name in read and t.role == "input")}
    sized = {e.name for t in tensors.values() if t.role != "temporary" and t.annotated for e in t.extents if isinstance(e, p.Size)}
    for tensor in program.tensors.values():  # a size needs a tensor that gives it its value
        extra = [e.name for e in tensor.extents if isinstance(e, p.Size) and e.name not in sized]
        used = {n.name for n in nodes if isinstance(n, p.Size)}
        if tensor.role == "input" and tensor.name not in tensors and any(e in used for e in extra):
            tensors[tensor.name] = tensor
            sized.update(extra)
    named = {n.name for n in nodes if isinstance(n, (p.Scalar, p.ScalarIndex))}
    return replace(program, tensors=tensors,
                   scalars={n: v for n, v in program.scalars.items() if n in named},
                   sizes={n: v for n, v in program.sizes.items() if n in sized})


def with_smaller_extents(program: p.Program) -> Iterator[p.Program]:
    for name, value in program.sizes.items():
        for less in sorted({1, 2, 4, value // 2, value - 1}):
            if 0 < less < value:
                yield with_size(program, name, less)
    numbers = sorted({e.value for t in program.tensors.values() for e in t.extents if isinstance(e, p.Number)}, reverse=True)
    for value in numbers:
        for less in sorted({1, 2, 4, value // 2, value - 1}):
            if 0 < less < value:
                yield with_number(program, value, less)


def with_size(program: p.Program, name: str, value: int) -> p.Program:
    return replace(program, sizes={**program.sizes, name: value})


def with_number(program: p.Program, old: int, new: int) -> p.Program:
    """Every extent of a number, and every upper end of a range that is made from it, becomes smaller."""
    def changed(expr):
        if expr == p.Number(old):
            return p.Number(new)
        parts = p.children(expr)
        return p.with_children(expr, [changed(part) for part in parts]) if parts else expr

    tensors = {n: replace(t, extents=tuple(changed(e) for e in t.extents), below=min(t.below, new) if t.below else 0)
               for n, t in program.tensors.items()}
    statements = tuple(replace(s, ranges=tuple(replace(r, high=p.Number(r.high.value - old + new)
                                                       if isinstance(r.high, p.Number) and old - 4 <= r.high.value <= old else r.high)
                                               for r in s.ranges)) for s in program.statements)
    return replace(program, tensors=tensors, statements=statements)


def simpler_statements(s: p.Statement) -> Iterator[p.Statement]:
    used = {name for e in (s.value, *s.subscripts, *(v for _, v in s.lets)) for name in p.indices_of(e)}
    for n, r in enumerate(s.ranges):
        if r.name not in used:
            yield replace(s, ranges=s.ranges[:n] + s.ranges[n + 1:])
        if r.low != p.Number(0):
            yield replace(s, ranges=s.ranges[:n] + (replace(r, low=p.Number(0)),) + s.ranges[n + 1:])
        if isinstance(r.high, p.IndexBinary):
            yield replace(s, ranges=s.ranges[:n] + (replace(r, high=r.high.left),) + s.ranges[n + 1:])
    if s.exists:
        yield replace(s, exists=())
    if s.lets:
        yield replace(s, lets=(), value=without_lets(s.value))
    for value in simpler(s.value):
        lets = {n.name for n in p.walk(value) if isinstance(n, p.Let)}
        yield replace(s, value=value, lets=tuple(let for let in s.lets if let[0] in lets))
    for n, subscript in enumerate(s.subscripts):
        for other in simpler(subscript):
            if s.reduces or p.indices_of(other) == p.indices_of(subscript):
                yield replace(s, subscripts=s.subscripts[:n] + (other,) + s.subscripts[n + 1:])


def without_lets(node):
    if isinstance(node, p.Let):
        return without_lets(node.value)
    parts = p.children(node)
    return p.with_children(node, [without_lets(part) for part in parts]) if parts else node


INDEX_NODES = (p.Index, p.Number, p.Size, p.ScalarIndex, p.IndexBinary, p.IndexCall, p.Element)


def simpler(node) -> Iterator:
    """Nodes that may take the place of one: numbers, its own parts of the same type, or itself with a simpler part."""
    if isinstance(node, INDEX_NODES):
        if not isinstance(node, (p.Index, p.Number)):
            yield p.Number(0)
        for part in p.children(node):
            if isinstance(part, INDEX_NODES):
                yield part
    elif not isinstance(node, p.Constant):
        if node.type == "bool":
            pass
        elif p.is_float(node.type):
            yield p.Constant(node.type, 1.0)
        else:
            yield p.Constant(node.type, 1)
        for part in p.walk(node):
            if part is not node and not isinstance(part, INDEX_NODES) and part.type == node.type:
                yield part
    if isinstance(node, p.Element):  # what it reads stays a read
        for n, subscript in enumerate(node.read.subscripts):
            for other in simpler(subscript):
                rest = node.read.subscripts
                yield p.Element(replace(node.read, subscripts=rest[:n] + (other,) + rest[n + 1:]))
        return
    parts = p.children(node)
    for n, part in enumerate(parts):
        for other in simpler(part):
            yield p.with_children(node, parts[:n] + (other,) + parts[n + 1:])
