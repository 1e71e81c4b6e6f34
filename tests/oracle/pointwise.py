"""The same meaning once more, one element at a time, in Python's own integers and floats.

Slow, and written apart from evaluate.py: a test compares the two. Integers are unbounded until a type wraps them; floats
are float64 until a type rounds them.
"""
from __future__ import annotations

import itertools
import math
import struct

import numpy as np

from . import program as p
from .evaluate import OutOfBounds


def wrap(value: int, type: str) -> int:
    """An integer's low bits, as a type has them."""
    low = value & ((1 << p.bits(type)) - 1)
    return low - (1 << p.bits(type)) if low > p.greatest(type) else low


def rounded(value: float, type: str) -> float:
    return struct.unpack("f", struct.pack("f", value))[0] if type == "float32" and math.isfinite(value) else value


def converted(value, source: str, target: str):
    if source == target:
        return value
    if target == "bool":
        return value != 0
    if p.is_float(target):
        return rounded(float(value), target)
    if not p.is_float(source):
        return wrap(int(value), target)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return p.greatest(target) if value > 0 else p.least(target)
    return min(max(math.trunc(value), p.least(target)), p.greatest(target))


def divided(a: int, b: int) -> int:
    return a // b if b else 0


def remainder(a: int, b: int) -> int:
    return a % b if b else 0


def less(a, b):
    """The smaller of two; a NaN wins."""
    return a if a != a else b if b != b else min(a, b)


def more(a, b):
    return a if a != a else b if b != b else max(a, b)


def combined(op: str, a, b, type: str):
    """Two values of a type by an operator."""
    if op == "min":
        return less(a, b)
    if op == "max":
        return more(a, b)
    if p.is_float(type):
        if op == "/":
            if b == 0:
                return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
            return rounded(a / b, type)
        return rounded({"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b}[op](), type)
    exact = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: divided(a, b),
             "%": lambda: remainder(a, b)}[op]()
    return wrap(exact, type)


def compared(op: str, a, b) -> bool:
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[op]


class Point:
    """One instance of a statement."""

    def __init__(self, program: p.Program, state: dict, at: dict[str, int]):
        self.program = program
        self.state = state
        self.at = at

    def index(self, node) -> int:
        if isinstance(node, p.Index):
            return self.at[node.name]
        if isinstance(node, (p.Number, p.Size, p.ScalarIndex)):
            return self.program.size(node)
        if isinstance(node, p.Element):
            return int(self.read(node.read))
        a, b = self.index(node.left), self.index(node.right)
        if isinstance(node, p.IndexCall):
            return min(a, b) if node.name == "min" else max(a, b)
        return {"+": a + b, "-": a - b, "*": a * b, "/": divided(a, b), "%": remainder(a, b)}[node.op]

    def read(self, node: p.Read):
        place = tuple(self.index(s) for s in node.subscripts)
        if place not in self.state[node.tensor]:
            raise OutOfBounds(f"{node.tensor}{place}")
        return self.state[node.tensor][place]

    def value(self, node):
        if isinstance(node, p.Let):
            return self.value(node.value)
        if isinstance(node, p.Constant):
            return bool(node.value) if node.type == "bool" else node.value if p.is_integer(node.type) else float(node.value)
        if isinstance(node, p.Named):
            return {"inf": math.inf, "nan": math.nan, "pi": 3.1415927410125732}[node.name]
        if isinstance(node, p.FromIndex):
            return self.index(node.expr)
        if isinstance(node, p.Scalar):
            return self.program.scalars[node.name][1]
        if isinstance(node, p.Read):
            return self.read(node)
        if isinstance(node, p.Unary):
            value = self.value(node.operand)
            return (not value) if node.op == "!" else -value if p.is_float(node.type) else wrap(-value, node.type)
        if isinstance(node, p.Binary):
            return combined(node.op, self.as_type(node.left, node.type), self.as_type(node.right, node.type), node.type)
        if isinstance(node, p.Compare):
            type = "bool" if node.left.type == "bool" else p.meet(node.left.type, node.right.type)
            return compared(node.op, self.as_type(node.left, type), self.as_type(node.right, type))
        if isinstance(node, p.CompareIndices):
            return compared(node.op, self.index(node.left), self.index(node.right))
        if isinstance(node, p.Logic):
            left = self.value(node.left)
            return (left and self.value(node.right)) if node.op == "&&" else (left or self.value(node.right))
        if isinstance(node, p.Select):
            return self.as_type(node.if_true if self.value(node.condition) else node.if_false, node.type)
        if isinstance(node, p.Cast):
            return converted(self.value(node.operand), node.operand.type, node.type)
        return self.call(node)

    def as_type(self, node, type: str):
        return converted(self.value(node), node.type, type)

    def call(self, node: p.Call):
        type = node.type
        if node.name.startswith("shift_"):
            value, amount = self.value(node.arguments[0]), self.value(node.arguments[1])
            return wrap(value << amount if node.name == "shift_left" else value >> amount, type)
        if node.name == "popcount":
            operand = node.arguments[0]
            return bin(self.value(operand) & ((1 << p.bits(operand.type)) - 1)).count("1")
        values = [self.as_type(a, type) for a in node.arguments]
        x = values[0]
        if node.name in ("min", "max"):
            for other in values[1:]:
                x = combined(node.name, x, other, type)
            return x
        if node.name == "clamp":
            return less(more(x, values[1]), values[2])
        if node.name == "relu":
            return more(x, 0)
        if node.name == "abs":
            return abs(x) if p.is_float(type) else wrap(abs(x), type)
        if node.name == "sign":
            return x if x != x else (x > 0) - (x < 0)
        if node.name in ("floor", "ceil", "trunc", "rint"):
            function = {"floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "rint": round}[node.name]
            return float(function(x)) if math.isfinite(x) else x
        if node.name == "tf32":
            if x == 0 or not math.isfinite(x):
                return x
            exponent = max(math.frexp(x)[1], -125) - 11  # of the last bit that is kept
            rounded = math.ldexp(math.floor(math.ldexp(abs(x), -exponent) + 0.5), exponent)
            return math.copysign(rounded if rounded < 2.0**128 else math.inf, x)
        if node.name == "bitwise_not":
            return wrap(~x, type)
        y = values[1]
        return wrap({"bitwise_and": x & y, "bitwise_or": x | y, "bitwise_xor": x ^ y}[node.name], type)

    def summand(self, node, own: str):
        """T3: a value as the accumulator has it."""
        while isinstance(node, p.Let):
            node = node.value
        if node.type == "bool":
            return converted(self.value(node), node.type, own)
        within = own if p.is_integer(node.type) and p.bits(node.type) < 32 else node.type
        if isinstance(node, p.Unary) and node.op == "-":
            negated = -self.summand(node.operand, within)
            return converted(wrap(negated, within) if p.is_integer(within) else negated, within, own)
        if isinstance(node, p.Select):
            return converted(self.summand(node.if_true if self.value(node.condition) else node.if_false, within), within,
                             own)
        if isinstance(node, p.Binary) and node.op in "+-*":
            return converted(combined(node.op, self.summand(node.left, within), self.summand(node.right, within), within),
                             within, own)
        return converted(self.value(node), node.type, own)


IDENTITY = {"+=": lambda t: 0, "*=": lambda t: 1,
            "min=": lambda t: math.inf if p.is_float(t) else p.greatest(t),
            "max=": lambda t: -math.inf if p.is_float(t) else p.least(t)}


def run_statement(program: p.Program, s: p.Statement, state: dict) -> None:
    type = program.tensors[s.tensor].type
    sums = s.op in ("+=", "*=")
    own = "int32" if sums and p.is_integer(type) and p.bits(type) < 32 else type
    names = [r.name for r in s.ranges]
    domain = itertools.product(*(range(program.size(r.low), program.size(r.high)) for r in s.ranges))
    updates = []  # C3: all are read before one is written
    for values in domain:
        point = Point(program, state, dict(zip(names, values)))
        place = tuple(point.index(e) for e in s.subscripts)
        if place not in state[s.tensor]:
            raise OutOfBounds(f"{s.tensor}{place}")
        updates.append((place, point.summand(s.value, own) if sums else point.as_type(s.value, type)))
    tensor = state[s.tensor]
    if s.op == "=":
        for place, value in updates:
            tensor[place] = value
        return
    touched = {place for place, _ in updates}
    if s.fresh and s.scatters_by_data():
        touched = set(tensor)
    held = {place: IDENTITY[s.op](own) if s.fresh else converted(tensor[place], type, own) for place in touched}
    op = {"+=": "+", "*=": "*", "min=": "min", "max=": "max"}[s.op]
    for place, value in updates:
        held[place] = combined(op, held[place], value, own)
    for place, value in held.items():
        tensor[place] = converted(value, own, type)


def evaluate(program: p.Program, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    state = {}
    for tensor in program.tensors.values():
        shape = program.shape(tensor.name)
        given = data.get(tensor.name)
        zero = False if tensor.type == "bool" else 0
        state[tensor.name] = {at: given[at].item() if given is not None else zero for at in np.ndindex(*shape)}
    for statement in program.statements:
        run_statement(program, statement, state)
    results = {}
    for tensor in program.results():
        array = np.zeros(program.shape(tensor.name), np.dtype(tensor.type))
        for at, value in state[tensor.name].items():
            array[at] = value
        results[tensor.name] = array
    return results
