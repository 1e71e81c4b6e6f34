"""Turns expressions into functions over grids of points: every index is an array, and arrays broadcast.

An integer that depends on data, on a float or on a type that wraps is *unknown*. A condition is a pair (may be true,
may be false); one that depends on something unknown may be both.
"""

import numpy as np

from .syntax import children

UNKNOWN = None
EXACT_CASTS = {"int32", "int", "int64"}


def floor_divide(a, b):
    """R8: rounds toward minus infinity; a zero divisor gives 0."""
    zero = np.equal(b, 0)
    return np.where(zero, 0, np.floor_divide(a, np.where(zero, 1, b)))


def floor_mod(a, b):
    zero = np.equal(b, 0)
    return np.where(zero, 0, np.mod(a, np.where(zero, 1, b)))


ARITHMETIC = {"+": "({} + {})", "-": "({} - {})", "*": "({} * {})", "/": "div({}, {})", "%": "mod({}, {})"}
COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
FUNCTIONS = {"max": "maximum({}, {})", "min": "minimum({}, {})"}


class Coder:
    """Writes Python for the expressions of one def. `numbers` are the names that have values: indices, sizes and
    integer scalars."""

    def __init__(self, numbers):
        self.numbers = numbers

    def integer(self, e):
        """Python for an integer, or UNKNOWN."""
        kind = e[0]
        if kind == "int":
            return str(e[1])
        if kind == "name":
            return f"v[{e[1]!r}]" if e[1] in self.numbers else UNKNOWN
        if kind == "extent":
            return f"v[{(e[1], e[2])!r}]"
        if kind == "cast":
            return self.integer(e[2]) if e[1] in EXACT_CASTS else UNKNOWN
        if kind == "neg":
            inner = self.integer(e[1])
            return inner and f"(-{inner})"
        if kind == "call":
            return self.function(e[1], [self.integer(c) for c in e[2]])
        if kind == "?":
            condition, yes, no = self.condition(e[1]), self.integer(e[2]), self.integer(e[3])
            known = condition != ("True", "True") and yes and no
            return f"where({condition[0]}, {yes}, {no})" if known and not self.doubtful(e[1]) else UNKNOWN
        if kind in ARITHMETIC:
            a, b = self.integer(e[1]), self.integer(e[2])
            return a and b and ARITHMETIC[kind].format(a, b)
        return UNKNOWN

    @staticmethod
    def function(name, arguments):
        if not all(arguments):
            return UNKNOWN
        if name in FUNCTIONS and len(arguments) >= 2:
            result = arguments[0]
            for argument in arguments[1:]:
                result = FUNCTIONS[name].format(result, argument)
            return result
        if name == "abs":
            return f"abs({arguments[0]})"
        if name == "clamp":
            return f"minimum(maximum({arguments[0]}, {arguments[1]}), {arguments[2]})"
        return UNKNOWN

    def doubtful(self, condition):
        """True if part of a condition is unknown."""
        if condition[0] in COMPARISONS:
            return not (self.integer(condition[1]) and self.integer(condition[2]))
        if condition[0] in ("&&", "||", "not"):
            return any(self.doubtful(c) for c in children(condition))
        return True

    def condition(self, e):
        """Python for (may be true, may be false)."""
        kind = e[0]
        if kind == "not":
            may, may_not = self.condition(e[1])
            return may_not, may
        if kind in ("&&", "||"):
            a, b = self.condition(e[1]), self.condition(e[2])
            both, either = ("&", "|") if kind == "&&" else ("|", "&")
            return f"({a[0]} {both} {b[0]})", f"({a[1]} {either} {b[1]})"
        if kind in COMPARISONS:
            a, b = self.integer(e[1]), self.integer(e[2])
            if a and b:
                return f"({a} {kind} {b})", f"({a} {OPPOSITE[kind]} {b})"
        return "True", "True"

    def compile_integer(self, e):
        code = self.integer(e)
        return code and compiled(code)

    def compile_guard(self, guard):
        """A function that says where a path of (condition, wanted) may be taken, None for a path without conditions."""
        parts = [self.condition(c)[0 if wanted else 1] for c, wanted in guard]
        return compiled(" & ".join(parts)) if parts else None


def compiled(code):
    names = {"div": floor_divide, "mod": floor_mod, "where": np.where, "maximum": np.maximum, "minimum": np.minimum}
    return eval(f"lambda v: {code}", {**names, "abs": np.abs, "__builtins__": {}})  # noqa: S307
