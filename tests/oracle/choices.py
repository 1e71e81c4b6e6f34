"""What all parts of the generator have in common: random choices, and what the program at work has so far."""
from __future__ import annotations

import random
from dataclasses import dataclass, field

from . import program as p
from .bounds import Bound

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 20, 31, 32, 33, 40, 64, 65, 100, 127, 128)
POWERS = (2, 4, 8, 16, 32, 64, 128)
SMALL = 20


# saturate: casts of floats beyond an integer type, of infinities and NaNs (T6). sums: sums of narrow integers in a tensor
# of no stated type (T6). placed: expressions on the left of `=` (C7). constants: inf, nan and pi.
RULES = ("saturate", "sums", "placed", "constants")


@dataclass(frozen=True)
class Limits:
    """How large programs are, and which rules they use."""
    points: int = 8192  # of a statement's domain, and elements of a tensor
    statements: int = 8
    without: frozenset = frozenset()  # rules that a compiler does not have yet, of RULES


@dataclass
class Extent:
    expr: p.IndexExpr
    value: int


@dataclass
class Ranged:
    """An index of the statement at work."""
    name: str
    low: int
    high: int
    base: p.IndexExpr  # the extent that its range was made from
    low_expr: p.IndexExpr
    high_expr: p.IndexExpr


@dataclass
class Context:
    """What the right side of the statement at work may use."""
    indices: list = field(default_factory=list)
    lets: list = field(default_factory=list)
    types: tuple = ()


def minus(expr: p.IndexExpr, number: int) -> p.IndexExpr:
    if number == 0:
        return expr
    if isinstance(expr, p.Number):
        return p.Number(expr.value - number)
    return p.IndexBinary("-" if number > 0 else "+", expr, p.Number(abs(number)))


class Choices:
    def __init__(self, seed: int, limits: Limits = Limits()):
        self.seed = seed
        self.limits = limits
        self.random = random.Random(seed)
        self.tensors: dict[str, p.Tensor] = {}
        self.bounds: dict[str, Bound] = {}
        self.written: set[str] = set()
        self.sizes: dict[str, int] = {}
        self.scalars: dict[str, tuple] = {}
        self.statements: list[p.Statement] = []

    # Choices.

    def chance(self, percent: float) -> bool:
        return self.random.random() * 100 < percent

    def pick(self, things):
        return self.random.choice(list(things))

    def has(self, rule: str) -> bool:
        return rule not in self.limits.without

    def weighted(self, **weights):
        return self.random.choices(list(weights), list(weights.values()))[0]

    def value_of(self, expr) -> int:
        return p.Program(0, self.sizes, self.scalars, {}, ()).size(expr)

    def readable(self, type: str) -> list[p.Tensor]:
        return [t for t in self.tensors.values() if t.type == type and self.is_readable(t)]

    def is_readable(self, tensor: p.Tensor) -> bool:
        """A temporary has to be written first; so has a result whose shape only its statements say."""
        return tensor.role == "input" or tensor.name in self.written or (tensor.role == "result" and tensor.annotated)

    def number(self, type: str, value: int) -> p.Constant:
        bare = type in ("int32", "float32") and self.chance(50)
        return p.Constant(type, float(value) if p.is_float(type) else value, bare)
