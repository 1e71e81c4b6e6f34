"""Extents as the compiler writes them ("H - KH + 1"), evaluated on numbers or on symbols that behave like numbers."""
from __future__ import annotations

import ast
import operator
from typing import Any, Mapping, Sequence

_OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
               ast.FloorDiv: operator.floordiv}


class _Unknown(Exception):
    pass


def _value(node: ast.AST, values: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name) and node.id in values:
        return values[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, values)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.left, values), _value(node.right, values))
    raise _Unknown


def evaluate(shapes: Sequence[Sequence[str]], values: Mapping[str, Any]) -> list[list[Any]] | None:
    """Shapes of texts, on the values of the names in them; None if one cannot be read or has a name without a value."""
    try:
        return [[_value(ast.parse(text, mode="eval").body, values) for text in shape] for shape in shapes]
    except (_Unknown, SyntaxError):
        return None
