"""What a program means, by NumPy: each statement at once, over arrays that have an axis for each index.

The rules are those of docs/language.md, by their numbers; no line of the compiler is used.
"""
from __future__ import annotations

import numpy as np

from . import program as p


class OutOfBounds(Exception):
    """A read or a write outside its tensor: the program has no meaning."""


def dtype_of(type: str) -> np.dtype:
    return np.dtype("bool" if type == "bool" else type)


def cast(array: np.ndarray, type: str) -> np.ndarray:
    """T6: integers keep their low bits; a float loses its fraction and saturates, and a NaN becomes 0."""
    target = dtype_of(type)
    if array.dtype == target:
        return array
    if type == "bool":
        return array != 0
    if array.dtype.kind != "f" or target.kind == "f":
        return array.astype(target)
    low, high = p.least(type), p.greatest(type)
    wide = np.trunc(array.astype(np.float64))
    inside = (wide >= float(low)) & (wide < float(high + 1))  # both are powers of two, or 0: exact
    whole = np.where(inside, wide, 0.0)
    result = whole.astype(np.uint64 if type == "uint64" else np.int64).astype(target)
    result = np.where(wide >= float(high + 1), target.type(high), result)
    return np.where(wide < float(low), target.type(low), result)


def floor_divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """R8: toward minus infinity, and 0 by 0. The least number by -1 wraps."""
    safe = np.where((b == 0) | _minus_one(b), np.ones_like(b), b)
    quotient = np.where(_minus_one(b), np.zeros_like(a) - a, np.floor_divide(a, safe))
    return np.where(b == 0, np.zeros_like(quotient), quotient)


def floor_modulo(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    safe = np.where((b == 0) | _minus_one(b), np.ones_like(b), b)
    rest = np.mod(a, safe)
    return np.where((b == 0) | _minus_one(b), np.zeros_like(rest), rest)


def _minus_one(b: np.ndarray) -> np.ndarray:
    return b == -1 if b.dtype.kind == "i" else np.zeros(b.shape, bool)


_ARITHMETIC = {"+": np.add, "-": np.subtract, "*": np.multiply}
_COMPARISON = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal,
               "!=": np.not_equal}
_UPDATE = {"+=": np.add, "*=": np.multiply, "min=": np.minimum, "max=": np.maximum}


def arithmetic(op: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of two operands of one type."""
    if op in _ARITHMETIC:
        return _ARITHMETIC[op](a, b)
    if a.dtype.kind == "f":
        return np.divide(a, b)
    return floor_divide(a, b) if op == "/" else floor_modulo(a, b)


def identity(op: str, type: str):
    """C2."""
    if op == "+=":
        return 0
    if op == "*=":
        return 1
    if p.is_float(type):
        return np.inf if op == "min=" else -np.inf
    return p.greatest(type) if op == "min=" else p.least(type)


def accumulator(op: str, type: str) -> str:
    """T3."""
    return "int32" if op in ("+=", "*=") and p.is_integer(type) and p.bits(type) < 32 else type


class Evaluator:
    """Runs a program's statements one after the other on arrays by name."""

    def __init__(self, program: p.Program, data: dict[str, np.ndarray]):
        self.program = program
        self.state = {name: np.array(array) for name, array in data.items()}
        for tensor in program.tensors.values():  # R5: what the caller does not give begins with zeros
            if tensor.name not in self.state:
                self.state[tensor.name] = np.zeros(program.shape(tensor.name), dtype_of(tensor.type))

    def run(self) -> dict[str, np.ndarray]:
        with np.errstate(all="ignore"):
            for statement in self.program.statements:
                self.state[statement.tensor] = self._execute(statement)
        return {t.name: self.state[t.name] for t in self.program.results()}

    def _execute(self, s: p.Statement) -> np.ndarray:
        """The statement's tensor afterwards. C3: everything is read from the state before."""
        ranges = [(r.name, self.program.size(r.low), self.program.size(r.high)) for r in s.ranges]
        if any(low >= high for _, low, high in ranges):  # C10
            raise OutOfBounds(f"an empty range in {self.program.statement_text(s)}")
        axes = len(ranges)
        self.grid = {name: np.arange(low, high, dtype=np.int64).reshape((1,) * a + (-1,) + (1,) * (axes - 1 - a))
                     for a, (name, low, high) in enumerate(ranges)}
        self.lets = dict(s.lets)
        points = tuple(high - low for _, low, high in ranges)
        shape = self.state[s.tensor].shape
        before = self.state[s.tensor].reshape(shape or 1)  # a single element is at 0
        type = self.program.tensors[s.tensor].type
        own = accumulator(s.op, type)
        everywhere = np.ones(points, bool)
        if s.op in ("+=", "*="):
            value = self._widened(s.value, own, everywhere)
        else:
            value = cast(self.value(s.value, everywhere), type)
        value = np.broadcast_to(value, points).reshape(-1)
        subscripts = [np.broadcast_to(self.index(e, everywhere), points).reshape(-1)
                      for e in s.subscripts or (p.Number(0),)]
        for at, extent in zip(subscripts, before.shape):
            if at.size and (at.min() < 0 or at.max() >= extent):
                raise OutOfBounds(f"{s.tensor}: {at.min()} to {at.max()} of {extent}")
        at = tuple(subscripts)
        after = before.copy()
        if not s.reduces:
            after[at] = value
            return after.reshape(shape)
        sums = cast(before, own).copy()
        written = np.zeros(before.shape, bool)
        written[at] = True
        if s.fresh:
            sums[np.ones_like(written) if s.scatters_by_data() else written] = identity(s.op, own)
            if s.scatters_by_data():
                written[...] = True
        _UPDATE[s.op].at(sums, at, value)
        after[written] = cast(sums, type)[written]
        return after.reshape(shape)

    def _widened(self, node, own: str, mask: np.ndarray) -> np.ndarray:
        """T3: + - * and unary - of narrow integers, in the value of a sum or a product, are the accumulator's, or those
        of the wider type that they stand in."""
        node = self._without_let(node)
        if node.type == "bool":
            return cast(self.value(node, mask), own)
        within = own if p.is_integer(node.type) and p.bits(node.type) < 32 else node.type
        if isinstance(node, p.Unary) and node.op == "-":
            return cast(-self._widened(node.operand, within, mask), own)
        if isinstance(node, p.Select):
            chosen = np.broadcast_to(self.value(node.condition, mask), mask.shape)
            return cast(np.where(chosen, self._widened(node.if_true, within, mask & chosen),
                                 self._widened(node.if_false, within, mask & ~chosen)), own)
        if isinstance(node, p.Binary) and node.op in _ARITHMETIC:
            return cast(_ARITHMETIC[node.op](self._widened(node.left, within, mask),
                                             self._widened(node.right, within, mask)), own)
        return cast(self.value(node, mask), own)

    def _without_let(self, node):
        while isinstance(node, p.Let):
            node = node.value
        return node

    def value(self, node, mask: np.ndarray) -> np.ndarray:
        """The values of a node at all points; where the mask does not hold they are anything (R6)."""
        if isinstance(node, p.Let):
            return self.value(node.value, mask)
        if isinstance(node, p.Constant):
            return np.array(node.value, dtype_of(node.type))
        if isinstance(node, p.Named):
            return np.array({"inf": np.inf, "nan": np.nan, "pi": np.pi}[node.name], np.float32)
        if isinstance(node, p.FromIndex):
            return self.index(node.expr, mask).astype(dtype_of(node.type))
        if isinstance(node, p.Scalar):
            return np.array(self.program.scalars[node.name][1]).astype(dtype_of(node.type))
        if isinstance(node, p.Read):
            return self._read(node, mask)
        if isinstance(node, p.Unary):
            operand = self.value(node.operand, mask)
            return ~operand if node.op == "!" else np.negative(operand)
        if isinstance(node, p.Binary):
            left, right = (cast(self.value(n, mask), node.type) for n in (node.left, node.right))
            return arithmetic(node.op, left, right)
        if isinstance(node, p.Compare):
            type = node.left.type if node.left.type == "bool" else p.meet(node.left.type, node.right.type)
            left, right = (cast(self.value(n, mask), type) for n in (node.left, node.right))
            return _COMPARISON[node.op](left, right)
        if isinstance(node, p.CompareIndices):
            return _COMPARISON[node.op](self.index(node.left, mask), self.index(node.right, mask))
        if isinstance(node, p.Logic):
            left = np.broadcast_to(self.value(node.left, mask), mask.shape)
            if node.op == "&&":
                return left & self.value(node.right, mask & left)
            return left | self.value(node.right, mask & ~left)
        if isinstance(node, p.Select):
            chosen = np.broadcast_to(self.value(node.condition, mask), mask.shape)
            left = self.value(node.if_true, mask & chosen)
            right = self.value(node.if_false, mask & ~chosen)
            return np.where(chosen, cast(left, node.type), cast(right, node.type))
        if isinstance(node, p.Cast):
            return cast(self.value(node.operand, mask), node.type)
        return self._call(node, mask)

    def _read(self, node: p.Read, mask: np.ndarray) -> np.ndarray:
        tensor = self.state[node.tensor]
        at = []
        for subscript, extent in zip(node.subscripts, tensor.shape):
            where = self.index(subscript, mask)
            outside = (where < 0) | (where >= extent)
            if outside.any():
                if (mask & outside).any():
                    raise OutOfBounds(f"{p.text_of(node)}: {where.min()} to {where.max()} of {extent}")
                where = np.where(outside, 0, where)
            at.append(where)
        return tensor[tuple(at)] if at else tensor[()].reshape(())

    def _call(self, node: p.Call, mask: np.ndarray) -> np.ndarray:
        name = node.name
        values = [self.value(a, mask) for a in node.arguments]
        if name.startswith("shift_"):
            return _shift(name, values[0], values[1])
        if name == "popcount":
            pattern = values[0].astype(np.int64).view(np.uint64) if values[0].dtype.kind == "i" else values[0].astype(np.uint64)
            pattern = pattern & np.uint64((1 << p.bits(node.arguments[0].type)) - 1)
            return sum(((pattern >> np.uint64(b)) & np.uint64(1)).astype(np.int32) for b in range(64)).astype(np.int32)
        if name in ("isnan", "isinf"):
            return (np.isnan if name == "isnan" else np.isinf)(values[0])
        values = [cast(v, node.type) for v in values]
        x = values[0]
        if name == "min" or name == "max":
            for other in values[1:]:
                x = (np.minimum if name == "min" else np.maximum)(x, other)
            return x
        if name == "clamp":
            return np.minimum(np.maximum(x, values[1]), values[2])
        if name == "relu":
            return np.maximum(x, np.zeros_like(x))
        if name == "abs":
            return np.where(x < 0, np.negative(x), x) if x.dtype.kind != "f" else np.abs(x)
        if name == "sign":
            one, zero = np.ones_like(x), np.zeros_like(x)
            less = np.negative(one) if x.dtype.kind != "u" else zero
            signs = np.where(x > 0, one, np.where(x < 0, less, zero))
            return np.where(np.isnan(x), x, signs) if x.dtype.kind == "f" else signs
        if name in ("floor", "ceil", "trunc", "rint"):
            return getattr(np, name)(x)
        if name == "tf32":
            pattern = np.ascontiguousarray(x, np.float32).view(np.uint32)
            rounded = ((pattern + np.uint32(0x1000)) & np.uint32(0xffffe000)).view(np.float32).reshape(x.shape)
            return np.where(np.isnan(x), x, rounded)
        if name == "bitwise_not":
            return ~x
        return {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}[name](x, values[1])

    def index(self, node, mask: np.ndarray) -> np.ndarray:
        """Index arithmetic, in int64."""
        if isinstance(node, p.Index):
            return self.grid[node.name]
        if isinstance(node, (p.Number, p.Size, p.ScalarIndex)):
            return np.array(self.program.size(node), np.int64)
        if isinstance(node, p.Element):
            return self._read(node.read, mask).astype(np.int64)
        left, right = self.index(node.left, mask), self.index(node.right, mask)
        if isinstance(node, p.IndexCall):
            return (np.minimum if node.name == "min" else np.maximum)(left, right)
        return arithmetic(node.op, left, right)


def _shift(name: str, value: np.ndarray, amount: np.ndarray) -> np.ndarray:
    """Amounts are not negative; from the type's width on everything has left."""
    width = value.dtype.itemsize * 8
    amount = np.broadcast_to(amount, np.broadcast_shapes(value.shape, amount.shape)).astype(np.int64)
    inside = np.minimum(amount, width - 1).astype(value.dtype)
    if name == "shift_left":
        return np.where(amount < width, np.left_shift(value, inside), np.zeros_like(value))
    shifted = np.right_shift(value, inside)
    if value.dtype.kind == "i":  # copies of the sign come in
        return shifted
    return np.where(amount < width, shifted, np.zeros_like(value))


def evaluate(program: p.Program, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The results of a program on inputs and initial results. Raises OutOfBounds."""
    return Evaluator(program, data).run()


def differences(got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Where two arrays differ. A NaN agrees with a NaN alone."""
    if expected.dtype.kind == "f":
        return ~((got == expected) | (np.isnan(got) & np.isnan(expected)))
    return got != expected
