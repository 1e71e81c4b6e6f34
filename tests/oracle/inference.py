"""Ranges that the compiler has to infer, in the simple cases that programs leave to it (R2, R3)."""
from __future__ import annotations

from . import program as p


def unguarded_reads(node) -> list[p.Read]:
    """Reads that happen at every point of the domain."""
    if isinstance(node, p.Select):
        return unguarded_reads(node.condition)
    if isinstance(node, p.Logic):
        return unguarded_reads(node.left)
    own = [node] if isinstance(node, p.Read) else []
    return own + [r for part in p.children(node) for r in unguarded_reads(part)]


def is_shifted(subscript) -> bool:
    """i, i + c or i - c."""
    return isinstance(subscript, p.Index) or (isinstance(subscript, p.IndexBinary) and subscript.op in "+-"
                                              and isinstance(subscript.left, p.Index) and isinstance(subscript.right, p.Number))


def evaluate_at(expr, name: str, value: int, size) -> int:
    """Index arithmetic of one index."""
    if isinstance(expr, p.Index):
        return value
    if isinstance(expr, (p.IndexBinary, p.IndexCall)):
        left, right = (evaluate_at(e, name, value, size) for e in (expr.left, expr.right))
        if isinstance(expr, p.IndexCall):
            return min(left, right) if expr.name == "min" else max(left, right)
        return {"+": left + right, "-": left - right, "*": left * right, "/": left // right if right else 0,
                "%": left % right if right else 0}[expr.op]
    return size(expr)
