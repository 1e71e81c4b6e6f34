"""Subscripts that stay in their tensors, and left sides."""
from __future__ import annotations

from . import program as p
from .choices import Choices, Context, Extent, Ranged, minus


class Subscripts(Choices):
    NAMES = ("i", "j", "k", "l", "m", "n")

    def add_index(self, context: Context, name: str, extent: Extent, whole: bool = False) -> Ranged:
        """An index over an extent, or over a part of it."""
        low, high = 0, extent.value
        low_expr: p.IndexExpr = p.Number(0)
        high_expr = extent.expr
        if not whole and self.chance(40):
            low = self.random.randint(0, min(4, high - 1))
            low_expr = p.Number(low)
            cut = self.random.randint(0, min(4, high - 1 - low))
            high, high_expr = high - cut, minus(high_expr, cut)
            if "q" in self.scalars and self.scalars["q"][1] < high and self.chance(15):
                low, low_expr = self.scalars["q"][1], p.ScalarIndex("q")
            elif high // 2 > low and self.chance(10):
                high, high_expr = high // 2, p.IndexBinary("/", high_expr, p.Number(2))
        index = Ranged(name, low, high, extent.expr, low_expr, high_expr)
        context.indices.append(index)
        return index

    def plain(self, context: Context, shape: list[Extent], whole: bool) -> tuple:
        all_whole = whole or self.chance(45)
        return tuple(p.Index(self.add_index(context, name, extent, all_whole).name)
                     for name, extent in zip(self.NAMES, shape))

    def placed(self, context: Context, shape: list[Extent]) -> tuple:
        """Left subscripts of `=` that are expressions (C7), by which no element is written twice."""
        left = []
        names = list(self.NAMES)
        for d, extent in enumerate(shape):
            size = extent.value
            kind = self.weighted(plain=25, number=20, plus=20, reverse=15, spread=15, tiled=10, unfolded=10)
            if kind == "number":
                left.append(p.Number(self.random.randint(0, size - 1) if isinstance(extent.expr, p.Number) else 0))
                continue
            if kind == "unfolded" and d + 2 == len(shape) and isinstance(shape[d + 1].expr, p.Number):
                index = self.counted(context, names.pop(0), size * shape[d + 1].value) if isinstance(extent.expr, p.Number) else None
                if index:
                    by = shape[d + 1].expr
                    return (*left, p.IndexBinary("/", index, by), p.IndexBinary("%", index, by))
            if kind == "plus" and size > 1:
                c = self.random.randint(1, min(3, size - 1))
                high = minus(extent.expr, c)
                context.indices.append(Ranged(names[0], 0, size - c, extent.expr, p.Number(0), high))
                left.append(p.IndexBinary("+", p.Index(names.pop(0)), p.Number(c)))
            elif kind == "spread" and isinstance(extent.expr, p.Number) and size > 3:
                c = self.random.randint(2, 3)
                first = self.random.randint(0, c - 1)
                index = self.counted(context, names.pop(0), (size - first + c - 1) // c)
                left.append(p.IndexBinary("+", p.IndexBinary("*", p.Number(c), index), p.Number(first)))
            elif kind == "tiled" and isinstance(extent.expr, p.Number) and size > 3:
                c = self.pick((2, 3, 4))
                outer = self.counted(context, names.pop(0), max(1, size // c))
                inner = self.counted(context, names.pop(0), min(c, size))
                left.append(p.IndexBinary("+", p.IndexBinary("*", p.Number(c), outer), inner))
            else:
                index = self.add_index(context, names.pop(0), extent, self.chance(60))
                i = p.Index(index.name)
                left.append(p.IndexBinary("-", minus(extent.expr, 1), i) if kind == "reverse" else i)
        return tuple(left)

    def counted(self, context: Context, name: str, count: int) -> p.Index:
        """An index from 0 to below a number."""
        context.indices.append(Ranged(name, 0, count, p.Number(count), p.Number(0), p.Number(count)))
        return p.Index(name)

    def scattered(self, context: Context, shape: list[Extent]) -> tuple:
        """Left subscripts that are expressions, within the tensor."""
        count = self.random.randint(1, 2) if len(shape) < 3 else 2
        for name in self.NAMES[:count]:
            room = max(1, self.limits.points // self.points(context))
            fitting = [e for e in self.extents if e.value <= room] or [Extent(p.Number(1), 1)]
            own = [e for e in shape if e in fitting]
            self.add_index(context, name, self.pick(own if own and self.chance(70) else fitting), self.chance(50))
        left = tuple(self.subscript(context, extent, plain=25, data=25) for extent in shape)
        # An index that the left side does not have would be reduced over; that is as well.
        return left

    def fits(self, index: Ranged, extent: Extent) -> bool:
        """Whether subscripts that are made of an index can be compared with an extent: of one size, or of numbers."""
        return self.numeric or index.base == extent.expr or (isinstance(index.base, p.Number) and isinstance(extent.expr, p.Number))

    def subscript(self, context: Context, extent: Extent, plain: int = 55, data: int = 10, depth: int = 1):
        """Index arithmetic from 0 to below the extent."""
        size = extent.value
        fitting = [i for i in context.indices if self.fits(i, extent)]
        if fitting and self.chance(plain):
            inside = [i for i in fitting if i.high <= size]
            if inside:
                return p.Index(self.pick(inside).name)
        if depth > 0 and self.chance(data):
            tables = [t for t in self.tensors.values() if t.data == "below" and t.below <= size]
            if tables:
                return p.Element(self.read(context, self.pick(tables), depth - 1))
        for _ in range(6):
            made = self.affine(context, fitting, extent)
            if made is not None:
                return made
        return self.reduced(context, extent)

    def affine(self, context: Context, fitting: list, extent: Extent):
        """One try at something else than a bare index; None where it would leave the tensor."""
        size = extent.value
        if not fitting or self.chance(8):
            return p.Number(self.random.randint(0, min(3, size - 1))) if self.numeric or size > 0 and isinstance(extent.expr, p.Number) else p.Number(0)
        index = self.pick(fitting)
        i = p.Index(index.name)
        kind = self.weighted(plus=20, minus=20, reverse=16, half=14, times=8, sum=8, clamp=8, reduced=6)
        if kind == "plus":
            c = self.random.randint(1, 3)
            return p.IndexBinary("+", i, p.Number(c)) if index.high - 1 + c < size else None
        if kind == "minus":
            c = self.random.randint(1, 3)
            return p.IndexBinary("-", i, p.Number(c)) if index.low >= c and index.high <= size else None
        if kind == "reverse":
            return p.IndexBinary("-", minus(extent.expr, 1), i) if index.high <= size else None
        if kind == "half":
            c = self.pick((2, 2, 3, 4, 8))
            return p.IndexBinary("/", i, p.Number(c)) if index.high <= size or (self.numeric and (index.high - 1) // c < size) else None
        if kind == "times":
            c = self.random.randint(2, 3)
            if not self.numeric or c * (index.high - 1) + 1 >= size:
                return None
            return p.IndexBinary("+", p.IndexBinary("*", p.Number(c), i), p.Number(self.random.randint(0, 1)))
        if kind == "sum":
            other = self.pick(context.indices)
            if not self.numeric:
                return None
            total = p.IndexBinary("+", i, p.Index(other.name))
            if index.high + other.high - 2 < size:
                return total
            return p.IndexBinary("/", total, p.Number(2)) if (index.high + other.high - 2) // 2 < size else None
        if kind == "clamp":
            c = self.random.randint(1, 2)
            if self.chance(50):
                return p.IndexCall("min", p.IndexBinary("+", i, p.Number(c)), minus(extent.expr, 1))
            return p.IndexCall("max", p.IndexBinary("-", i, p.Number(c)), p.Number(0)) if index.high - c <= size else None
        return self.reduced(context, extent)

    def reduced(self, context: Context, extent: Extent):
        """Something modulo the extent, or modulo a number that is no larger."""
        if not context.indices:
            return p.Number(0)
        i = p.Index(self.pick(context.indices).name)
        if self.chance(30) and len(context.indices) > 1:
            i = p.IndexBinary("+", i, p.Index(self.pick(context.indices).name))
        elif self.chance(50):
            i = p.IndexBinary("+", p.IndexBinary("*", i, p.Number(self.random.randint(1, 3))), p.Number(self.random.randint(0, 3)))
        by = extent.expr
        if (self.numeric or isinstance(by, p.Number)) and extent.value > 2 and self.chance(40):
            by = p.Number(self.random.randint(2, extent.value))
        return p.IndexBinary("%", i, by)

    def read(self, context: Context, tensor: p.Tensor, depth: int = 1) -> p.Read:
        extents = [Extent(e, self.value_of(e)) for e in tensor.extents]
        return p.Read(tensor.name, tuple(self.subscript(context, e, depth=depth) for e in extents), tensor.type)
