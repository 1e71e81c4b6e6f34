"""Infers ranges and extents for given sizes and scalars by looking at every point. README.md says how it reads the rules.

Nothing here solves an inequality: an interval is found by asking for each of its points whether every read stays in its
tensor there.
"""

from dataclasses import dataclass, field

import numpy as np

from .points import Coder
from .syntax import children, names_in, substitute


class Refused(Exception):
    """The rules give no program. `rule` is the number of the one that says so."""

    def __init__(self, rule, reason):
        super().__init__(f"{rule}: {reason}")
        self.rule, self.reason = rule, reason
        self.notes = set()  # as in Answer, of what was inferred before


@dataclass
class Read:
    tensor: str
    subscripts: list  # compiled, or None if it depends on data
    indices: list  # for each subscript, the indices in it
    guard: object  # compiled, or None
    guard_indices: set
    inferred_only: bool = False  # C10: named by `exists`


@dataclass
class Loop:
    """A statement, made ready to be evaluated."""

    tensor: str
    left: list  # compiled subscripts
    left_indices: list
    plain: list  # for each left subscript, the index that it is, or None
    indices: list
    reads: list
    given: dict  # index -> (low, high), compiled
    given_extents: set  # (tensor, dimension) that the given ranges name
    assign: str
    text: str


@dataclass
class Answer:
    ranges: list  # for each statement, index -> (begin, end)
    extents: dict  # tensor -> tuple
    origins: list  # for each statement, index -> what set its range
    notes: set = field(default_factory=set)  # which choices the rules leave open took part


class Analysis:
    """One def, prepared for any sizes and scalars."""

    def __init__(self, definition):
        self.definition = definition
        self.sizes = definition.sizes
        self.scalars = [s for s, kind in definition.scalars.items() if kind in INTEGERS]
        self.ranks = {t.name: len(t.dims) for t in definition.tensors.values() if t.dims is not None}
        for s in definition.statements:
            self.ranks.setdefault(s.tensor, len(s.left))
        size_coder = Coder(set(self.sizes) | set(self.scalars))
        self.dims = {
            t.name: [size_coder.compile_integer(d) for d in t.dims]
            for t in definition.tensors.values()
            if t.dims is not None
        }
        self.inputs = {t.name for t in definition.tensors.values() if not t.is_result}
        self.loops = [self.prepare(s) for s in definition.statements]

    def prepare(self, s):
        lets = {}
        for name, e in s.lets:
            lets[name] = substitute(e, lets)
        right = substitute(s.right, lets)
        exists = [substitute(e, lets) for e in s.exists]
        left = [substitute(e, lets) for e in s.left]
        given = {name: (substitute(low, lets), substitute(high, lets)) for name, low, high in s.ranges}
        fixed = set(self.sizes) | set(self.definition.scalars) | set(self.ranks) | {"inf", "nan", "pi"}
        names = set().union(*(names_in(e) for e in [right, *exists, *left])) | set(given)
        indices = sorted(names - fixed)
        coder = Coder(set(self.sizes) | set(self.scalars) | set(indices))
        reads = []
        for e in [*left, right]:
            self.collect(e, (), coder, set(indices), reads)
        executed = len(reads)
        for e in exists:
            self.collect(e, (), coder, set(indices), reads)
        for read in reads[executed:]:
            read.inferred_only = True
        named = {(e[1], e[2]) for bounds in given.values() for b in bounds for e in walk(b) if e[0] == "extent"}
        return Loop(
            s.tensor,
            [coder.compile_integer(e) for e in left],
            [names_in(e) & set(indices) for e in left],
            [e[1] if e[0] == "name" and e[1] in indices else None for e in left],
            indices,
            reads,
            {i: tuple(coder.compile_integer(b) for b in bounds) for i, bounds in given.items()},
            named,
            s.assign,
            s.text,
        )

    def collect(self, e, guard, coder, indices, reads):
        """Appends the reads in an expression, each with the path to it through ?:, && and ||."""
        if e[0] == "?":
            self.collect(e[1], guard, coder, indices, reads)
            self.collect(e[2], (*guard, (e[1], True)), coder, indices, reads)
            self.collect(e[3], (*guard, (e[1], False)), coder, indices, reads)
            return
        if e[0] in ("&&", "||"):
            self.collect(e[1], guard, coder, indices, reads)
            self.collect(e[2], (*guard, (e[1], e[0] == "&&")), coder, indices, reads)
            return
        if e[0] == "call" and e[1] in self.ranks:
            code = coder.compile_guard(guard)
            used = set().union(*(names_in(c) for c, _ in guard)) & indices if code else set()
            subscripts = [coder.compile_integer(s) for s in e[2]]
            reads.append(Read(e[1], subscripts, [names_in(s) & indices for s in e[2]], code, used))
        for child in children(e):
            self.collect(child, guard, coder, indices, reads)

    def infer(self, sizes, scalars):
        """The ranges for these numbers. Raises Refused."""
        inference = Inference(self, {**sizes, **scalars})
        try:
            return inference.run()
        except Refused as refused:
            refused.notes = inference.notes
            raise


INTEGERS = {k for k in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 int uint".split()}


def walk(e):
    yield e
    for c in children(e):
        yield from walk(c)


def components(good):
    """The maximal intervals [begin, end) of True in an array of booleans."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], good.astype(np.int8), [0]))))
    return [(int(b), int(e)) for b, e in zip(edges[::2], edges[1::2])]


class Inference:
    def __init__(self, analysis, values):
        self.a, self.values = analysis, dict(values)
        self.cap = 6 * max([abs(v) for v in values.values()] + [3]) + 12
        self.extents = {name: [None] * rank for name, rank in analysis.ranks.items()}
        self.ranges = [{} for _ in analysis.loops]
        self.origins = [{} for _ in analysis.loops]
        self.notes = set()

    def take_declared(self):
        for name, dims in self.a.dims.items():
            for d, dim in enumerate(dims):
                extent = int(dim(self.values))
                if extent < 0:
                    raise Refused("R5", f"the extent of {name} in dimension {d} is {extent}")
                self.set_extent(name, d, extent)

    def set_extent(self, tensor, d, extent):
        self.extents[tensor][d] = extent
        self.values[tensor, d] = extent

    def run(self):
        self.take_declared()
        steps = (
            self.take_given,
            lambda: self.bound_by_reads(wait=True),
            lambda: self.finish_extents(all_writers=True),
            lambda: self.take_left(wait=True),
            lambda: self.finish_extents(all_writers=False),
            lambda: self.take_left(wait=False),
            lambda: self.bound_by_reads(wait=False),
            lambda: self.bound_by_guarded_reads(wait=True),
            lambda: self.bound_beside_guards(wait=True),
            lambda: self.bound_by_guarded_reads(wait=False),
            lambda: self.bound_beside_guards(wait=False),
        )
        while any(step() for step in steps):
            pass
        for loop, ranges in zip(self.a.loops, self.ranges):
            for index in loop.indices:
                if index not in ranges:
                    raise Refused("R4", f"nothing bounds {index}, or it is ambiguous")
        for tensor, extents in self.extents.items():
            if None in extents:
                raise Refused("R5", f"the extents of {tensor} are not determined")
        self.check_reads()
        self.check_writes()
        self.check_written_in_full()
        extents = {t: tuple(e) for t, e in self.extents.items()}
        return Answer(self.ranges, extents, self.origins, self.notes)

    # The steps. Each returns whether it found something.

    def take_given(self):
        progress = False
        for loop, ranges, origins in zip(self.a.loops, self.ranges, self.origins):
            for index, (low, high) in loop.given.items():
                if index in ranges or any(self.extents[t][d] is None for t, d in loop.given_extents):
                    continue
                begin, end = int(low(self.values)), int(high(self.values))
                if begin >= end:
                    raise Refused("C10", f"the range {index} in {begin}:{end} is empty or reversed")
                ranges[index], origins[index], progress = (begin, end), "where", True
        return progress

    def candidates(self, loop, ranges, index, guarded):
        """The subscripts that may bound an index: it is alone in them, with indices that have a range."""
        for read in loop.reads:
            if (read.guard is not None) != guarded:
                continue
            for d, used in enumerate(read.indices):
                if read.subscripts[d] and index in used and all(i in ranges for i in used - {index}):
                    yield read, d

    def allowed(self, ranges, index, subscripts, guards):
        """For each point up to the cap, whether all the subscripts are in bounds there."""
        good = np.ones(self.cap + 1, dtype=bool)
        for read, d in subscripts:
            used = read.indices[d] | (read.guard_indices if guards else set())
            good &= ~self.out_of_bounds(read, d, ranges, used, index if guards else index, guards)
        return good

    def out_of_bounds(self, read, d, ranges, used, index, guards):
        """For each point of `index`, whether some point of the others has the read outside its tensor. Indices without a
        range take every value up to the cap."""
        others = sorted(used - {index})
        v = dict(self.values)
        axes = [index, *others]
        for axis, name in enumerate(axes):
            low, high = ranges.get(name, (0, self.cap + 1)) if name != index else (0, self.cap + 1)
            v[name] = np.arange(low, high).reshape([-1 if a == axis else 1 for a in range(len(axes))])
        subscript = read.subscripts[d](v)
        bad = (subscript < 0) | (subscript >= self.extents[read.tensor][d])
        if guards and read.guard is not None:
            bad = bad & read.guard(v)
        bad = np.broadcast_to(bad, [v[name].size for name in axes])
        return bad.any(axis=tuple(range(1, len(axes))))

    def largest(self, good, index, tie_is_error):
        """The largest interval of allowed points, None if nothing ends it."""
        intervals = components(good)
        if not intervals:
            return (0, 0)
        bounded = [i for i in intervals if i[1] <= self.cap]
        if not bounded:
            return None
        length = max(end - begin for begin, end in bounded)
        longest = [i for i in bounded if i[1] - i[0] == length]
        if len(longest) > 1:
            if tie_is_error:
                raise Refused("R4", f"{index} has more than one largest range: {longest[:3]}")
            self.notes.add("tie")
        if len(intervals) > 1:
            self.notes.add("gaps")
        return longest[0]

    def bound_by_reads(self, wait):
        """R2, one round: unguarded reads."""
        return self.round("read", guarded=False, wait=wait)

    def bound_by_guarded_reads(self, wait):
        """R6, one round: indices that guarded reads only bound."""
        return self.round("guard", guarded=True, wait=wait)

    def round(self, origin, guarded, wait):
        found = []
        for s, (loop, ranges) in enumerate(zip(self.a.loops, self.ranges)):
            for index in loop.indices:
                if index in ranges or index in loop.given:
                    continue
                subscripts = list(self.candidates(loop, ranges, index, guarded))
                known = [(r, d) for r, d in subscripts if self.extents[r.tensor][d] is not None]
                if not known or (wait and (len(known) < len(subscripts) or self.waits(loop, ranges, index))):
                    continue
                interval = self.largest(self.allowed(ranges, index, known, guarded), index, not guarded)
                if interval:
                    found.append((s, index, interval))
        self.take(found, origin)
        return bool(found)

    def take(self, found, origin):
        for s, index, interval in found:
            if interval[0] >= interval[1]:
                self.notes.add("empty")
            self.ranges[s][index], self.origins[s][index] = interval, origin

    def waits(self, loop, ranges, index):
        """True if an unguarded read may bound an index once its tensor has an extent."""
        unguarded = self.candidates(loop, ranges, index, False)
        return any(self.extents[r.tensor][d] is None for r, d in unguarded)

    def ends_of_reads(self, ranges, index, subscripts):
        """One past the last point where a guard holds, if it is below the cap."""
        made = np.zeros(self.cap + 1, dtype=bool)
        for read, _ in subscripts:
            v, axes = dict(self.values), [index, *sorted(read.guard_indices - {index})]
            for axis, name in enumerate(axes):
                low, high = ranges.get(name, (0, self.cap + 1)) if name != index else (0, self.cap + 1)
                v[name] = np.arange(low, high).reshape([-1 if a == axis else 1 for a in range(len(axes))])
            holds = np.broadcast_to(read.guard(v), [v[name].size for name in axes])
            made |= holds.any(axis=tuple(range(1, len(axes))))
        return [] if made[-1] else [int(np.flatnonzero(made).max(initial=-1)) + 1]

    def bound_beside_guards(self, wait):
        """R6, where the guards hold every read in bounds however far an index goes: it ends where it would end without
        them, but not before the last read is made, and begins where they let it."""
        found = []
        for s, (loop, ranges) in enumerate(zip(self.a.loops, self.ranges)):
            for index in loop.indices:
                if index in ranges or index in loop.given or (wait and self.waits(loop, ranges, index)):
                    continue
                subscripts = [
                    (r, d)
                    for r, d in self.candidates(loop, ranges, index, True)
                    if self.extents[r.tensor][d] is not None
                ]
                if not subscripts:
                    continue
                plain = self.allowed(ranges, index, subscripts, False)
                ends = [end for _, end in components(plain) if end <= self.cap]
                ends += self.ends_of_reads(ranges, index, subscripts)
                if not ends:
                    continue
                begin = components(self.allowed(ranges, index, subscripts, True))[-1][0]
                found.append((s, index, (begin, max(ends))))
        if found:
            self.notes.add("beside guards")
        self.take(found, "beside guards")
        return bool(found)

    def take_left(self, wait):
        """R3: an index that is a left subscript takes the extent."""
        found = []
        for s, (loop, ranges) in enumerate(zip(self.a.loops, self.ranges)):
            for d, index in enumerate(loop.plain):
                extent = self.extents[loop.tensor][d]
                if index is None or index in ranges or index in loop.given or extent is None:
                    continue
                if wait and self.waits(loop, ranges, index):
                    continue
                found.append((s, index, (0, extent)))
        if found and any("guard" in o.values() for o in self.origins):
            self.notes.add("R3 after guards")
        self.take(found, "R3")
        return bool(found)

    def finish_extents(self, all_writers):
        """R5: one past the largest index written."""
        progress = False
        for tensor, extents in self.extents.items():
            for d in range(len(extents)):
                if extents[d] is not None:
                    continue
                writers = [
                    (loop, ranges)
                    for loop, ranges in zip(self.a.loops, self.ranges)
                    if loop.tensor == tensor and loop.left[d]
                ]
                ready = [(w, r) for w, r in writers if all(i in r for i in w.left_indices[d])]
                if not ready or (all_writers and len(ready) < len(writers)):
                    continue
                ends = [self.subscript_values(w.left[d], w.left_indices[d], r) for w, r in ready]
                self.set_extent(tensor, d, max(int(e.max()) + 1 if e.size else 0 for e in ends))
                progress = True
            if progress and not all_writers:
                return True
        return progress

    def subscript_values(self, code, used, ranges):
        v, names = dict(self.values), sorted(used)
        for axis, name in enumerate(names):
            v[name] = np.arange(*ranges[name]).reshape([-1 if a == axis else 1 for a in range(len(names))])
        return np.broadcast_to(code(v), [v[n].size for n in names])

    # The proofs, once all is known.

    def check_reads(self):
        for loop, ranges in zip(self.a.loops, self.ranges):
            for read in loop.reads:
                for d, code in enumerate(read.subscripts):
                    if code and not read.inferred_only and self.leaves(read, d, ranges):
                        raise Refused("R6" if read.guard else "R7", f"{read.tensor} is read out of bounds in {loop.text}")

    def leaves(self, read, d, ranges):
        names = sorted(read.indices[d] | read.guard_indices)
        v = dict(self.values)
        for axis, name in enumerate(names):
            v[name] = np.arange(*ranges[name]).reshape([-1 if a == axis else 1 for a in range(len(names))])
        subscript = read.subscripts[d](v)
        bad = (subscript < 0) | (subscript >= self.extents[read.tensor][d])
        if read.guard is not None:
            bad = bad & read.guard(v)
        return bool(np.broadcast_to(bad, [v[n].size for n in names]).any())

    def check_writes(self):
        for loop, ranges in zip(self.a.loops, self.ranges):
            for d, code in enumerate(loop.left):
                if not code:
                    continue
                written = self.subscript_values(code, loop.left_indices[d], ranges)
                if ((written < 0) | (written >= self.extents[loop.tensor][d])).any():
                    raise Refused("R5", f"{loop.tensor} is written out of bounds in {loop.text}")
            if loop.assign == "=" and None in loop.plain and None not in loop.left:
                self.check_written_once(loop, ranges)

    def check_written_once(self, loop, ranges):
        """C7: `=` writes no element twice."""
        written = np.zeros(self.extents[loop.tensor], dtype=bool)
        instances = self.mark_written(written, loop, ranges)
        if np.count_nonzero(written) < instances:
            raise Refused("C7", f"{loop.text} writes an element twice")

    def check_written_in_full(self):
        """R10, for results with declared extents."""
        for tensor in self.a.dims:
            if tensor in self.a.inputs:
                continue
            writers = [(i, loop) for i, loop in enumerate(self.a.loops) if loop.tensor == tensor]
            if any(None in loop.left for _, loop in writers):
                continue
            full = np.zeros(self.extents[tensor], dtype=bool)
            for i, loop in writers:
                self.mark_written(full, loop, self.ranges[i])
            if full.all():
                continue
            for i, loop in writers:
                for d, index in enumerate(loop.plain):
                    whole = index in self.ranges[i] and self.ranges[i][index] == (0, self.extents[tensor][d])
                    if index and not whole and self.origins[i][index] != "where":
                        raise Refused("R10", f"{tensor} is not written in full, and no where says so")
                if None in loop.plain:
                    self.notes.add("left expression in part")

    def mark_written(self, full, loop, ranges):
        """Sets the elements that a statement writes. Returns how many instances of its left indices there are."""
        names = sorted(set().union(*loop.left_indices)) if loop.left else []
        v = dict(self.values)
        for axis, name in enumerate(names):
            v[name] = np.arange(*ranges[name]).reshape([-1 if a == axis else 1 for a in range(len(names))])
        shape = [v[n].size for n in names]
        full[tuple(np.broadcast_to(code(v), shape) for code in loop.left)] = True
        return int(np.prod(shape))
