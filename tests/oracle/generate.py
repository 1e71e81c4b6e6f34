"""Random programs, each with what it takes to evaluate it: ranges, extents and types are the generator's own choice.

A program means something only if every access is in its tensor, every float it computes is exact, and no value needs a
rule that the language does not state. The generator builds such programs; it does not filter them. It knows each
index's range before it writes a subscript. It leaves a `where` out only in the simple cases of R2 and R3, in which the
range that has to be inferred follows from one look.
"""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from . import bounds, program as p
from .bounds import Bound
from .choices import EXTENTS, POWERS, SMALL, Context, Extent, Limits, Ranged, minus
from .data import data_bound
from .inference import evaluate_at, is_shifted, unguarded_reads
from .values import Values


class Generator(Values):
    # Programs.

    def make(self) -> p.Program:
        self.numeric = self.chance(40)
        self.make_extents()
        self.make_types()
        self.make_inputs()
        self.make_scalars()
        self.make_results()
        count = self.random.choices(range(1, 9), (20, 22, 18, 12, 10, 8, 5, 5))[0]
        for _ in range(min(count, self.limits.statements)):
            self.add_statement()
        for name in [t.name for t in self.tensors.values() if t.role == "result"]:
            if name not in self.written:
                if self.read_anywhere(name) or not any(t.role == "result" and t.name in self.written
                                                       for t in self.tensors.values()):
                    self.add_statement(name)
                else:
                    del self.tensors[name]
        self.show_temporaries()
        self.drop_unused()
        return p.Program(self.seed, dict(self.sizes), dict(self.scalars), dict(self.tensors), tuple(self.statements),
                         self.chance(30))

    def read_anywhere(self, name: str) -> bool:
        return any(r.tensor == name for s in self.statements for e in (s.value, *s.subscripts, *s.exists, *(v for _, v in s.lets))
                   for r in p.reads_of(e))

    def show_temporaries(self) -> None:
        """A temporary that nothing reads would hide what it holds: it becomes a result."""
        for tensor in list(self.tensors.values()):
            if tensor.role == "temporary" and not self.read_anywhere(tensor.name):
                self.tensors[tensor.name] = replace(tensor, role="result")

    def drop_unused(self) -> None:
        """Inputs that nothing reads, unless they give a size its value, and scalars that nothing uses."""
        used = {n.name for s in self.statements
                for e in (s.value, *s.subscripts, *(v for _, v in s.lets), *(x for r in s.ranges for x in (r.low, r.high)))
                for n in p.walk(e) if isinstance(n, (p.Scalar, p.ScalarIndex))}
        self.scalars = {name: value for name, value in self.scalars.items() if name in used}
        for tensor in list(self.tensors.values()):
            if tensor.role == "input" and not self.read_anywhere(tensor.name) and self.chance(80):
                rest = [t for t in self.tensors.values() if t.name != tensor.name and (t.role == "input" or t.annotated)
                        and t.role != "temporary"]
                given = {e.name for t in rest for e in t.extents if isinstance(e, p.Size)}
                if all(not isinstance(e, p.Size) or e.name in given for e in tensor.extents):
                    del self.tensors[tensor.name]
        named = {e.name for t in self.tensors.values() if t.role != "temporary" and (t.role == "input" or t.annotated)
                 for e in t.extents if isinstance(e, p.Size)}
        self.sizes = {name: value for name, value in self.sizes.items() if name in named}

    def make_extents(self) -> None:
        most = SMALL if self.chance(50) else EXTENTS[-1]

        def extent(most: int) -> int:
            return self.pick([e for e in (POWERS if most > 1 and self.chance(45) else EXTENTS) if e <= most])

        first = extent(most)
        second = first if self.chance(25) else extent(most)
        if first * second > self.limits.points:
            second = extent(max(1, min(SMALL, self.limits.points // first)))
        values = [first, second, extent(17)]
        self.random.shuffle(values)
        self.extents = []
        for name, value in zip(("N", "M", "K"), values):
            if self.numeric:
                self.extents.append(Extent(p.Number(value), value))
            else:
                self.sizes[name] = value
                self.extents.append(Extent(p.Size(name), value))

    def make_types(self) -> None:
        """A few types for the whole program, so that its tensors meet."""
        pools = ((p.INTEGERS, 60), (p.FLOATS, 25), (p.TYPES, 15))
        pool = self.random.choices([x for x, _ in pools], [w for _, w in pools])[0]
        self.types = tuple({self.pick(pool) for _ in range(self.random.randint(1, 3))})
        if self.chance(35):
            self.types = tuple({*self.types, "int32"})
        self.types = tuple(sorted(self.types))

    def shape(self, most: int = 3) -> tuple[Extent, ...]:
        rank = min(most, self.random.choices((0, 1, 2, 3), (14, 36, 40, 10))[0])
        extents: list[Extent] = []
        for _ in range(rank):
            fitting = [e for e in self.extents if e.value * int(np.prod([x.value for x in extents])) <= self.limits.points]
            extents.append(self.pick(fitting or [min(self.extents, key=lambda e: e.value)]))
        while int(np.prod([x.value for x in extents])) > self.limits.points:
            extents.pop()
        return tuple(extents)

    def make_inputs(self) -> None:
        for n in range(self.random.randint(1, 4)):
            type = self.pick(self.types) if self.chance(85) else self.pick(p.TYPES)
            name = "ABCDE"[n]
            shape = self.shape() or (self.pick(self.extents),)
            if self.chance(6):
                type = "bool"
            self.add_input(name, type, shape, self.data_kind(type))
        while not self.numeric and any(not self.is_given(name) for name in self.sizes):
            name = next(n for n in self.sizes if not self.is_given(n))
            used = len([t for t in self.tensors if t.startswith("X")])
            self.add_input(f"X{used}", self.pick(self.types), (Extent(p.Size(name), self.sizes[name]),), "small")
        for n in range(self.random.choices((0, 1, 2), (45, 40, 15))[0]):
            type = self.pick(("int32",) * 4 + ("int64", "uint8", "int16", "uint32"))
            below = min(self.pick(self.extents).value, 120)
            name = f"J{n}" if n else "J"
            self.add_input(name, type, (self.pick(self.extents),), "below", below)

    def is_given(self, size: str) -> bool:
        return any(p.Size(size) in t.extents for t in self.tensors.values() if t.role == "input")

    def data_kind(self, type: str) -> str:
        if p.is_integer(type):
            return self.weighted(small=45, full=55)
        return "special" if p.is_float(type) and self.chance(12) else "small"

    def add_input(self, name: str, type: str, shape: tuple, data: str, below: int = 0) -> None:
        self.tensors[name] = p.Tensor(name, type, tuple(e.expr for e in shape), "input", True, below, data)
        self.bounds[name] = data_bound(self.tensors[name])

    def make_scalars(self) -> None:
        if self.chance(25):
            type = self.pick(self.types)
            value = self.random.randint(1, 4) if not p.is_signed(type) else self.random.randint(-4, 4)
            self.scalars["a"] = (type, float(value) if p.is_float(type) else value)
        if self.chance(20):
            self.scalars["q"] = ("int32", self.random.randint(0, 3))

    def make_results(self) -> None:
        for n in range(self.random.choices((1, 2, 3), (55, 30, 15))[0]):
            type = "bool" if self.chance(4) else self.pick(self.types)
            shape = self.shape()
            if not shape and self.chance(50):
                type = "int32"
            self.add_result(f"T{n}", type, shape, annotated=True)

    def add_result(self, name: str, type: str, shape: tuple, annotated: bool) -> None:
        data = "full" if p.is_integer(type) and self.chance(40) else "small"
        self.tensors[name] = p.Tensor(name, type, tuple(e.expr for e in shape), "result", annotated, 0, data)
        self.bounds[name] = data_bound(self.tensors[name])

    # Statements.

    def add_statement(self, name: str | None = None) -> None:
        target = self.tensors[name] if name else self.choose_target()
        if target is None:
            self.add_new_tensor()
            return
        self.statements.append(self.statement(target))
        self.written.add(target.name)

    def choose_target(self) -> p.Tensor | None:
        if self.chance(22):
            return None
        return self.pick([t for t in self.tensors.values() if t.role != "input"])

    def add_new_tensor(self) -> None:
        """A temporary, or a result whose shape the header does not say, with the statement that writes it first."""
        count = sum(t.role == "temporary" for t in self.tensors.values())
        is_result = self.chance(50)
        name = f"R{sum(not t.annotated for t in self.tensors.values() if t.role == 'result')}" if is_result else f"t{count}"
        type = self.pick(self.types)
        role = "result" if is_result else "temporary"
        narrow = [t for t in self.types if p.is_integer(t) and p.bits(t) < 32]
        if narrow and self.has("sums") and self.chance(15):
            statement = self.narrow_sum(name, self.pick(narrow), role)
            self.statements.append(statement)
            self.written.add(name)
            return
        if self.chance(45):
            statement = self.shaping_scatter(name, type, role)
        else:
            shape = self.shape()
            self.tensors[name] = p.Tensor(name, type, tuple(e.expr for e in shape), role, False)
            self.bounds[name] = Bound(0, 0)
            statement = self.statement(self.tensors[name], whole=True)
        if self.is_typed_by_its_value(statement) and self.chance(50):
            statement = replace(statement, type=None)
        else:
            statement = replace(statement, type=type)
        self.statements.append(statement)
        self.written.add(name)

    def is_typed_by_its_value(self, s: p.Statement) -> bool:
        """T2, where nothing else has a say."""
        type = self.tensors[s.tensor].type
        narrow_sum = s.op in ("+=", "*=") and p.is_integer(type) and p.bits(type) < 32  # T6
        reads = p.reads_of(s.value)
        return (s.value.type == type and not narrow_sum and bool(reads)
                and isinstance(s.value, (p.Read, p.Binary)) and all(r.tensor != s.tensor for r in reads))

    def narrow_sum(self, name: str, source: str, role: str) -> p.Statement:
        """`t(i) +=! A(i,k)` over narrow integers, where nothing states the type of t: it is int32, or uint32 (T6)."""
        type = "int32" if p.is_signed(source) else "uint32"
        shape = self.shape()
        self.tensors[name] = p.Tensor(name, type, tuple(e.expr for e in shape), role, False)
        self.bounds[name] = bounds.of_type(type)
        context = Context(types=self.types)
        left = self.plain(context, list(shape), whole=True)
        self.add_reductions(context)
        value, _ = self.value(context, source, self.random.randint(1, 2))
        reads = p.reads_of(value)
        typed = value.type == source and reads and all(r.tensor != name for r in reads)
        op = self.pick(("+=", "*="))
        return replace(self.finished(name, left, op, True, value, context), type=None if typed else type)

    def shaping_scatter(self, name: str, type: str, role: str) -> p.Statement:
        """`T(i/2) +=! ...`, whose largest subscript gives T its extent (R5). Every element is written."""
        context = Context(types=self.types)
        index = self.add_index(context, "i", self.pick(self.extents), whole=True)
        i = p.Index(index.name)
        kind = self.weighted(half=4, remainder=2, reversed=2, same=1)
        if kind == "half":
            by = self.pick((2, 2, 3, 4, 8))
            left, extent = p.IndexBinary("/", i, p.Number(by)), (index.high - 1) // by + 1
        elif kind == "remainder" and self.numeric:
            by = min(self.pick((2, 3, 4)), index.high)
            left, extent = p.IndexBinary("%", i, p.Number(by)), by
        elif kind == "reversed":
            left, extent = p.IndexBinary("-", minus(index.base, 1), i), index.high
        else:
            left, extent = i, index.high
        self.tensors[name] = p.Tensor(name, type, (p.Number(extent),), role, False)
        self.bounds[name] = bounds.of_type(type)
        op = self.pick(("+=", "+=", "min=", "max=", "*="))
        value, bound = self.right_side(context, type, op, index.high)
        if p.is_float(type):
            self.bounds[name] = bound
        return self.finished(name, (left,), op, True, value, context)

    def statement(self, target: p.Tensor, whole: bool = False) -> p.Statement:
        """A statement that writes a tensor; `whole`: all of it, by `=` or `op=!`."""
        context = Context(types=self.types)
        shape = [Extent(e, p.Program(0, self.sizes, self.scalars, {}, ()).size(e)) for e in target.extents]
        is_bool = target.type == "bool"
        reduces = not is_bool and self.chance(65)
        scatters = reduces and not whole and bool(shape) and self.chance(40)
        ops = ("min=", "max=", "+=") if not shape and self.chance(50) else ("+=", "+=", "+=", "min=", "max=", "*=")
        op = self.pick(ops) if reduces else "="
        fresh = reduces and (whole or (target.role == "temporary" and target.name not in self.written) or self.chance(55))
        if scatters:
            left = self.scattered(context, shape)
        elif not reduces and not whole and shape and self.has("placed") and self.chance(30):
            left = self.placed(context, shape)
        else:
            left = self.plain(context, shape, whole)
            if not reduces and not whole and len(shape) == 2 and shape[0] == shape[1] and self.chance(15):
                context.indices.pop()
                left = (left[0], left[0])  # the diagonal
        written_points = self.points(context)
        if reduces:
            self.add_reductions(context)
        per_element = self.points(context) // (1 if scatters else written_points)
        value, bound = self.right_side(context, target.type, op, max(1, per_element),
                                       None if fresh else self.bounds[target.name], not shape)
        statement = self.finished(target.name, left, op, fresh, value, context)
        # A bound of all that the tensor may hold now. What is not written stays.
        old = Bound(0, 0) if whole else self.bounds[target.name]
        if reduces and not p.is_float(target.type):
            bound = bounds.of_type(target.type)
        self.bounds[target.name] = old.join(bound)
        return statement

    def points(self, context: Context) -> int:
        return int(np.prod([i.high - i.low for i in context.indices], dtype=np.int64))

    def add_reductions(self, context: Context) -> None:
        for _ in range(self.random.choices((0, 1, 2), (25, 60, 15))[0]):
            room = max(1, self.limits.points // self.points(context))
            fitting = [e for e in self.extents if e.value <= room]
            if not fitting:
                return
            self.add_index(context, self.NAMES[len(context.indices)], self.pick(fitting), self.chance(60))

    def finished(self, tensor: str, left: tuple, op: str, fresh: bool, value, context: Context) -> p.Statement:
        ranges = tuple(p.Range(i.name, i.low_expr, i.high_expr) for i in context.indices)
        used = {n.name for n in p.walk(value) if isinstance(n, p.Let)}
        lets = tuple((let.name, let.value) for let in context.lets if let.name in used)
        statement = p.Statement(tensor, left, op, fresh, value, ranges, None, lets)
        if self.chance(6):
            statement = replace(statement, exists=tuple(self.extra_reads(context)))
        return self.without_some_ranges(statement, context)

    def extra_reads(self, context: Context):
        names = [t for t in self.tensors.values() if t.role == "input" and t.extents]
        if names:
            yield self.read(context, self.pick(names), depth=0)

    # Ranges that have to be inferred.

    def without_some_ranges(self, s: p.Statement, context: Context) -> p.Statement:
        """Leaves out ranges that R2 or R3 gives."""
        ranges = []
        for index, stated in zip(context.indices, s.ranges):
            inferred = self.inferred(s, index)
            ranges.append(replace(stated, stated=not (inferred == (index.low, index.high) and self.chance(60))))
        return replace(s, ranges=tuple(ranges))

    def inferred(self, s: p.Statement, index: Ranged):
        """The range that an index takes from subscripts in which it is alone; None where it states the range instead."""
        name = index.name
        constraints = []  # subscript, extent of its tensor
        for read in unguarded_reads(s.value) + [r for e in s.exists for r in p.reads_of(e)]:
            for subscript, extent in zip(read.subscripts, self.tensors[read.tensor].extents):
                if name in p.indices_of(subscript):
                    constraints.append((subscript, extent))
        everywhere = [e for e in (s.value, *s.subscripts, *(v for _, v in s.lets)) if name in p.indices_of(e)]
        if any(name in p.indices_of(v) for _, v in s.lets):
            return None
        if not constraints:
            # R3: the extent of the left side's dimension, which the header states.
            tensor = self.tensors[s.tensor]
            at = [extent for subscript, extent in zip(s.subscripts, tensor.extents) if subscript == p.Index(name)]
            if len(at) != 1 or not tensor.annotated or len([e for e in s.subscripts if name in p.indices_of(e)]) != 1:
                return None
            if any(name in p.indices_of(x) for r in p.reads_of(s.value) for x in r.subscripts):
                return None
            return 0, self.value_of(at[0])
        if not everywhere or any(
                p.indices_of(c) != {name} or p.reads_data(c) or any(isinstance(n, p.IndexCall) for n in p.walk(c))
                for c, _ in constraints):
            return None
        if not self.numeric and len({extent for _, extent in constraints}) != 1:
            return None
        if not self.numeric and any(not is_shifted(c) for c, _ in constraints):
            return None
        good = [v for v in range(0, 300)
                if all(0 <= evaluate_at(c, name, v, self.value_of) < self.value_of(extent) for c, extent in constraints)]
        if not good or good[-1] == 299 or good != list(range(good[0], good[-1] + 1)):
            return None
        tensor = self.tensors[s.tensor]
        for subscript, extent in zip(s.subscripts, tensor.extents):  # R10: it is written in full, or a `where` says
            if name in p.indices_of(subscript):
                if subscript == p.Index(name) and (good[0], good[-1] + 1) != (0, self.value_of(extent)):
                    return None
                if subscript != p.Index(name) and (tensor.annotated or p.indices_of(subscript) != {name}):
                    return None
        return good[0], good[-1] + 1


def generate(seed: int, limits: Limits = Limits()) -> p.Program:
    return Generator(seed, limits).make()
