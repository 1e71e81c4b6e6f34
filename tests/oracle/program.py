"""Programs as trees, and their text.

A program is built by generate.py, evaluated by evaluate.py (arrays) and by pointwise.py (one element at a time), and
printed here. Nothing is ever parsed: the compiler alone reads the text.
"""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Iterator, Union

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float32", "float64")
TYPES = INTEGERS + FLOATS


def is_float(type: str) -> bool:
    return type in FLOATS


def is_integer(type: str) -> bool:
    return type in INTEGERS


def is_signed(type: str) -> bool:
    return type in SIGNED


def bits(type: str) -> int:
    return 8 if type == "bool" else int("".join(c for c in type if c.isdigit()))


def least(type: str) -> int:
    return -(1 << (bits(type) - 1)) if is_signed(type) else 0


def greatest(type: str) -> int:
    return (1 << (bits(type) - (1 if is_signed(type) else 0))) - 1


def meet(a: str, b: str) -> str:
    """The type of two operands (T1)."""
    if a == b:
        return a
    if is_float(a) or is_float(b):
        floats = [t for t in (a, b) if is_float(t)]
        return max(floats, key=bits)
    if is_signed(a) == is_signed(b):
        return max(a, b, key=bits)
    signed, unsigned = (a, b) if is_signed(a) else (b, a)
    wanted = max(bits(signed), min(64, 2 * bits(unsigned)))
    return f"int{wanted}"


def widens(source: str, target: str) -> bool:
    """Whether a value enters a tensor of another type without a cast (T2): an integer one that holds all its values."""
    return source == target or (is_integer(source) and is_integer(target)
                                and least(target) <= least(source) and greatest(source) <= greatest(target))


# Index arithmetic: exact integers.


@dataclass(frozen=True)
class Index:
    name: str


@dataclass(frozen=True)
class Number:
    value: int


@dataclass(frozen=True)
class Size:
    name: str


@dataclass(frozen=True)
class ScalarIndex:
    """An integer scalar in index arithmetic."""
    name: str


@dataclass(frozen=True)
class IndexBinary:
    op: str  # + - * / %
    left: "IndexExpr"
    right: "IndexExpr"


@dataclass(frozen=True)
class IndexCall:
    name: str  # min or max
    left: "IndexExpr"
    right: "IndexExpr"


@dataclass(frozen=True)
class Element:
    """An element of an integer tensor as a subscript."""
    read: "Read"


IndexExpr = Union[Index, Number, Size, ScalarIndex, IndexBinary, IndexCall, Element]

# Values.


@dataclass(frozen=True)
class Constant:
    type: str
    value: float  # an int for integers
    bare: bool = False  # printed without a cast: int32 and float32 only


@dataclass(frozen=True)
class Named:
    """inf, nan or pi."""
    name: str
    type: str = "float32"


@dataclass(frozen=True)
class FromIndex:
    """Index arithmetic that enters a value: an int32, or exactly by int64(...)."""
    expr: IndexExpr
    type: str = "int32"


@dataclass(frozen=True)
class Scalar:
    name: str
    type: str


@dataclass(frozen=True)
class Read:
    tensor: str
    subscripts: tuple
    type: str


@dataclass(frozen=True)
class Let:
    name: str
    value: "Value"

    @property
    def type(self) -> str:
        return self.value.type


@dataclass(frozen=True)
class Unary:
    op: str  # - or !
    operand: "Value"

    @property
    def type(self) -> str:
        return self.operand.type


@dataclass(frozen=True)
class Binary:
    op: str  # + - * / %
    left: "Value"
    right: "Value"

    @property
    def type(self) -> str:
        return meet(self.left.type, self.right.type)


@dataclass(frozen=True)
class Compare:
    op: str
    left: "Value"
    right: "Value"
    type: str = "bool"


@dataclass(frozen=True)
class CompareIndices:
    """A comparison of index arithmetic, which is exact."""
    op: str
    left: IndexExpr
    right: IndexExpr
    type: str = "bool"


@dataclass(frozen=True)
class Logic:
    op: str  # && or ||
    left: "Value"
    right: "Value"
    type: str = "bool"


@dataclass(frozen=True)
class Select:
    condition: "Value"
    if_true: "Value"
    if_false: "Value"
    call: bool = False  # printed as select(c, a, b)

    @property
    def type(self) -> str:
        if self.if_true.type == "bool":
            return "bool"
        return meet(self.if_true.type, self.if_false.type)


@dataclass(frozen=True)
class Cast:
    type: str
    operand: "Value"


@dataclass(frozen=True)
class Call:
    name: str
    arguments: tuple

    @property
    def type(self) -> str:
        if self.name == "popcount":
            return "int32"
        if self.name.startswith("shift_"):
            return self.arguments[0].type
        if self.name in ("isnan", "isinf"):
            return "bool"
        type = self.arguments[0].type
        for argument in self.arguments[1:]:
            type = meet(type, argument.type)
        return type


Value = Union[Constant, Named, FromIndex, Scalar, Read, Let, Unary, Binary, Compare, CompareIndices, Logic, Select, Cast, Call]


def children(node) -> tuple:
    """The parts of a value or of index arithmetic, without those of a let."""
    if isinstance(node, (Binary, Compare, CompareIndices, Logic, IndexBinary, IndexCall)):
        return node.left, node.right
    if isinstance(node, (Unary, Cast)):
        return (node.operand,)
    if isinstance(node, Select):
        return node.condition, node.if_true, node.if_false
    if isinstance(node, Call):
        return node.arguments
    if isinstance(node, Read):
        return node.subscripts
    if isinstance(node, FromIndex):
        return (node.expr,)
    if isinstance(node, Element):
        return (node.read,)
    if isinstance(node, Let):
        return (node.value,)
    return ()


def with_children(node, parts):
    """A node of the same kind with other parts."""
    parts = tuple(parts)
    if isinstance(node, (Binary, Compare, CompareIndices, Logic, IndexBinary, IndexCall)):
        return replace(node, left=parts[0], right=parts[1])
    if isinstance(node, (Unary, Cast)):
        return replace(node, operand=parts[0])
    if isinstance(node, Select):
        return replace(node, condition=parts[0], if_true=parts[1], if_false=parts[2])
    if isinstance(node, Call):
        return replace(node, arguments=parts)
    if isinstance(node, Read):
        return replace(node, subscripts=parts)
    if isinstance(node, FromIndex):
        return replace(node, expr=parts[0])
    if isinstance(node, Element):
        return replace(node, read=parts[0])
    if isinstance(node, Let):
        return replace(node, value=parts[0])
    return node


def walk(node) -> Iterator:
    """A node and all below it."""
    yield node
    for part in children(node):
        yield from walk(part)


def reads_of(node) -> list[Read]:
    return [n for n in walk(node) if isinstance(n, Read)]


def indices_of(node) -> set[str]:
    return {n.name for n in walk(node) if isinstance(n, Index)}


def reads_data(node) -> bool:
    """Whether index arithmetic depends on a tensor's elements."""
    return any(isinstance(n, Element) for n in walk(node))


# Text.

_PRECEDENCE = {"||": 1, "&&": 2, "<": 3, "<=": 3, ">": 3, ">=": 3, "==": 3, "!=": 3, "+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
_UNARY = 6
_PRIMARY = 7


def constant_text(constant: Constant) -> str:
    value = constant.value
    if is_float(constant.type):
        number = repr(float(value))
    else:
        number = str(int(value))
    if constant.type == "bool":
        return "(0 < 1)" if value else "(1 < 0)"
    return number if constant.bare else f"{constant.type}({number})"


def text_of(node, level: int = 0, full: bool = False) -> str:
    """The text of a value or of index arithmetic, in parentheses where a context of that level needs them; `full`:
    around every operation."""
    text, own = _text(node, full)
    return f"({text})" if own < level or (full and own < _PRIMARY and level > 0) else text


def _text(node, full: bool) -> tuple[str, int]:
    def sub(part, level: int) -> str:
        return text_of(part, level, full)

    if isinstance(node, (Index, Size, ScalarIndex, Scalar, Let, Named)):
        return node.name, _PRIMARY
    if isinstance(node, Number):
        return str(node.value), _PRIMARY if node.value >= 0 else _UNARY
    if isinstance(node, Constant):
        return constant_text(node), _PRIMARY if not node.bare or node.value >= 0 else _UNARY
    if isinstance(node, FromIndex):
        if node.type == "int64":
            return f"int64({sub(node.expr, 0)})", _PRIMARY
        return _text(node.expr, full)
    if isinstance(node, Read):
        if not node.subscripts:
            return node.tensor, _PRIMARY
        return f"{node.tensor}({','.join(sub(s, 0) for s in node.subscripts)})", _PRIMARY
    if isinstance(node, Element):
        return _text(node.read, full)
    if isinstance(node, IndexCall):
        return f"{node.name}({sub(node.left, 0)},{sub(node.right, 0)})", _PRIMARY
    if isinstance(node, Call):
        return f"{node.name}({','.join(sub(a, 0) for a in node.arguments)})", _PRIMARY
    if isinstance(node, Cast):
        return f"{node.type}({sub(node.operand, 0)})", _PRIMARY
    if isinstance(node, Unary):
        return node.op + sub(node.operand, _UNARY), _UNARY
    if isinstance(node, Select):
        if node.call:
            return f"select({sub(node.condition, 0)},{sub(node.if_true, 0)},{sub(node.if_false, 0)})", _PRIMARY
        return f"{sub(node.condition, 1)} ? {sub(node.if_true, 1)} : {sub(node.if_false, 1)}", 0
    if isinstance(node, (Binary, Compare, CompareIndices, Logic, IndexBinary)):
        own = _PRECEDENCE[node.op]
        left = own + 1 if own == 3 else own  # comparisons do not chain
        return f"{sub(node.left, left)} {node.op} {sub(node.right, own + 1)}", own
    raise TypeError(f"no text of {node!r}")


# Programs.


@dataclass(frozen=True)
class Range:
    """The half-open range of an index."""
    name: str
    low: IndexExpr
    high: IndexExpr
    stated: bool = True  # by a `where`; if not, the compiler has to infer it


@dataclass(frozen=True)
class Statement:
    tensor: str
    subscripts: tuple
    op: str  # = += *= min= max=
    fresh: bool  # with a !
    value: Value
    ranges: tuple
    type: str | None = None  # stated before the left side
    lets: tuple = ()
    exists: tuple = ()

    @property
    def reduces(self) -> bool:
        return self.op != "="

    def scatters_by_data(self) -> bool:
        return any(reads_data(s) for s in self.subscripts)


@dataclass(frozen=True)
class Tensor:
    name: str
    type: str
    extents: tuple  # of Size and Number
    role: str  # input, result or temporary
    annotated: bool = True  # a result whose type and extents the header states
    below: int = 0  # elements are from 0 to this, less one: what it indexes needs that; 0: any
    data: str = "small"  # small, full (of an integer's type) or special (infinities and NaNs)


@dataclass(frozen=True)
class Program:
    seed: int
    sizes: dict
    scalars: dict  # name -> (type, value)
    tensors: dict  # name -> Tensor
    statements: tuple
    full_parentheses: bool = False
    features: tuple = field(default=(), compare=False)  # what it was made to contain

    def shape(self, tensor: str) -> tuple[int, ...]:
        return tuple(self.size(e) for e in self.tensors[tensor].extents)

    def size(self, expr: IndexExpr) -> int:
        """The value of index arithmetic without indices."""
        if isinstance(expr, Number):
            return expr.value
        if isinstance(expr, Size):
            return self.sizes[expr.name]
        if isinstance(expr, ScalarIndex):
            return self.scalars[expr.name][1]
        if isinstance(expr, IndexCall):
            return (min if expr.name == "min" else max)(self.size(expr.left), self.size(expr.right))
        left, right = self.size(expr.left), self.size(expr.right)
        return {"+": left + right, "-": left - right, "*": left * right, "/": left // right if right else 0,
                "%": left % right if right else 0}[expr.op]

    def inputs(self) -> list[Tensor]:
        return [t for t in self.tensors.values() if t.role == "input"]

    def results(self) -> list[Tensor]:
        return [t for t in self.tensors.values() if t.role == "result"]

    def text(self) -> str:
        def declared(tensor: Tensor) -> str:
            if not tensor.annotated:
                return tensor.name
            dims = f"({','.join(text_of(e) for e in tensor.extents)})" if tensor.extents else ""
            return f"{tensor.type}{dims} {tensor.name}"

        parameters = [declared(t) for t in self.inputs()]
        parameters += [f"{type} {name}" for name, (type, _) in self.scalars.items()]
        results = ", ".join(declared(t) for t in self.results())
        lines = [f"def f({', '.join(parameters)}) -> ({results}) {{"]
        lines += [f"  {self.statement_text(s)}" for s in self.statements]
        return "\n".join(lines + ["}", ""])

    def statement_text(self, s: Statement) -> str:
        left = f"{s.tensor}({','.join(text_of(e, 0, self.full_parentheses) for e in s.subscripts)})" if s.subscripts else s.tensor
        clauses = [f"{name} = {text_of(value, 0, self.full_parentheses)}" for name, value in s.lets]
        clauses += [f"{r.name} in {text_of(r.low)}:{text_of(r.high)}" for r in s.ranges if r.stated]
        clauses += [f"exists {text_of(e)}" for e in s.exists]
        where = f" where {', '.join(clauses)}" if clauses else ""
        op = s.op + ("!" if s.fresh else "")
        return f"{s.type + ' ' if s.type else ''}{left} {op} {text_of(s.value, 0, self.full_parentheses)}{where}"
