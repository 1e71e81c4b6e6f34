"""How large values can be, so that floats stay exact: multiples of a power of two of which a float holds each."""
from __future__ import annotations

from dataclasses import dataclass

from . import program as p


@dataclass(frozen=True)
class Bound:
    """Values from low to high, multiples of 2^-fraction, and, if `special`, infinities and NaNs too."""
    low: int
    high: int
    fraction: int = 0
    special: bool = False

    def join(self, other: "Bound") -> "Bound":
        return Bound(min(self.low, other.low), max(self.high, other.high), max(self.fraction, other.fraction),
                     self.special or other.special)

    def size(self) -> int:
        return max(abs(self.low), abs(self.high))


def of_type(type: str) -> Bound:
    return Bound(0, 1) if type == "bool" else Bound(p.least(type), p.greatest(type))


def is_exact(bound: Bound, type: str) -> bool:
    """Whether a float type holds all such values, and sums of a few."""
    return bound.size() << bound.fraction <= 1 << (22 if type == "float32" else 50)


def wrapped(bound: Bound, type: str) -> Bound:
    """Of an integer type: what is outside wraps around, and may be anything."""
    whole = of_type(type)
    return bound if whole.low <= bound.low and bound.high <= whole.high else whole


def binary(op: str, a: Bound, b: Bound, type: str) -> Bound:
    fraction, special = max(a.fraction, b.fraction), a.special or b.special
    if op == "+":
        bound = Bound(a.low + b.low, a.high + b.high, fraction, special)
    elif op == "-":
        bound = Bound(a.low - b.high, a.high - b.low, fraction, special)
    elif op == "*":
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        bound = Bound(min(corners), max(corners), a.fraction + b.fraction, special)
    elif op == "/":  # of integers: no larger than the dividend, but for -1
        bound = Bound(-a.size(), a.size())
    else:
        bound = Bound(-b.size(), b.size())
    return bound if p.is_float(type) else wrapped(bound, type)
