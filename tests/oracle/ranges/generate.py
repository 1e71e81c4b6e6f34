"""Makes random programs whose ranges are not obvious: guards, scalars, remainders, divisions, padding, strides, windows.

A program is text; the same seed makes the same text. Most guards are right for their read, some are too weak or have
nothing to do with it.
"""

import random
from dataclasses import dataclass

SIZES = ("N", "M", "K", "H")
SCALARS = {"s": (1, 2, 3), "d": (1, 2, 3), "p": (0, 1, 2), "o": (0, 1, 3)}
IDENTITIES = {"+=!": "0.0", "max=!": "-1000.0", "min=!": "1000.0", "*=!": "1.0"}


@dataclass
class Program:
    seed: int
    text: str
    scalars: dict  # name -> values to try


class Generator:
    def __init__(self, seed):
        self.seed, self.rng = seed, random.Random(seed)
        self.used_scalars, self.inputs = set(), {}
        self.sizes = self.rng.sample(SIZES, self.rng.choice((1, 2, 2, 2, 3)))

    # Small choices.

    def pick(self, *choices):
        return self.rng.choice(choices)

    def chance(self, probability):
        return self.rng.random() < probability

    def scalar(self, name):
        self.used_scalars.add(name)
        return name

    def size(self):
        return self.rng.choice(self.sizes)

    def stride(self):
        return self.pick("1", "2", "3", self.scalar("s")) if self.chance(0.5) else self.pick("1", "2")

    def dilation(self):
        return self.scalar("d") if self.chance(0.5) else self.pick("1", "2", "3")

    def padding(self):
        return self.scalar("p") if self.chance(0.5) else self.pick("0", "1", "2")

    def offset(self):
        return self.scalar("o") if self.chance(0.4) else self.pick("1", "2", "3")

    def tensor(self, *dims):
        """An input of these extents: one that there is, or a new one."""
        for name, extents in self.inputs.items():
            if extents == dims and self.chance(0.6):
                return name
        name = f"X{len(self.inputs)}"
        self.inputs[name] = dims
        return name

    # Spelling: the same condition in many ways.

    def at_least(self, left, right):
        """left >= right."""
        form = self.rng.randrange(8)
        if form == 0:
            return f"{right} <= {left}"
        if form == 1:
            return f"!({left} < {right})"
        if form == 2:
            return f"{left} - {self.group(right)} >= 0"
        if form == 3:
            return f"{left} + 1 > {right}"
        if form == 4:
            return f"{left} > {right} - 1"
        return f"{left} >= {right}"

    def below(self, left, right):
        """left < right."""
        form = self.rng.randrange(8)
        if form == 0:
            return f"{right} > {left}"
        if form == 1:
            return f"!({left} >= {right})"
        if form == 2:
            return f"{left} <= {right} - 1"
        if form == 3:
            return f"{left} + 1 <= {right}"
        if form == 4:
            return f"{left} - {self.group(right)} < 0"
        return f"{left} < {right}"

    @staticmethod
    def group(text):
        return text if text.isalnum() else f"({text})"

    def guard(self, positive, negative, extent):
        """A condition for 0 <= positive - negative < extent, right as a rule."""
        low = self.at_least(positive, negative)
        if self.chance(0.5):
            high = self.below(f"{positive} - {self.group(negative)}" if negative != "0" else positive, extent)
        else:
            high = self.below(positive, f"{extent} + {self.group(negative)}" if negative != "0" else extent)
        form = self.rng.random()
        if form < 0.06:
            return low
        if form < 0.12:
            return high
        if form < 0.16:
            return f"{low} || {high}"
        if form < 0.22:
            return f"!(!({low}) || !({high}))"
        return f"{low} && {high}" if self.chance(0.7) else f"{high} && {low}"

    # Reads under their guards.

    def parts(self, index):
        """A subscript over one index, as (positive, negative): what it is and what is taken away."""
        form = self.rng.randrange(13)
        size = self.size()
        if form <= 1:
            return index, self.pick("1", "2", self.offset(), self.padding())
        if form == 2:
            return f"{index} + {self.offset()}", "0"
        if form == 3:
            return f"{self.stride()} * {index}", self.padding()
        if form == 4:
            return f"{self.stride()} * {index} + {self.offset()}", "0"
        if form == 5:
            return f"{size} - 1", index
        if form == 6:
            return f"{index} / 2", self.pick("0", "1")
        if form == 7:
            return f"({index} + {self.offset()}) / {self.pick('2', '3', self.scalar('s'))}", "0"
        if form == 8:
            return f"{index} + {index} % 2", self.pick("0", "1")
        if form == 9:
            return index, f"{size} / 2"
        if form == 10:
            return f"{index} + {size} / 2", "0"
        if form == 11:
            return f"{index} / {self.pick('2', self.scalar('s'))} + {index} % 2", "0"
        return index, "0"

    @staticmethod
    def join(parts):
        positive, negative = parts
        return positive if negative == "0" else f"{positive} - {Generator.group(negative)}"

    def parity(self, index):
        return self.pick(
            f"{index} % 2 == 0",
            f"{index} % 2 != 1",
            f"{index} % 2 < 1",
            f"{index} / 2 * 2 == {index}",
            f"{index} % 3 == {self.pick('0', '1', '2')}",
            f"{index} % {self.scalar('s')} == 0",
        )

    def other(self, index):
        """What a guard has in its other branch."""
        form = self.rng.random()
        if form < 0.7:
            return "0.0"
        return f"{self.tensor(self.size())}({index})"

    def guarded_read(self, index, depth=0):
        form = self.rng.random()
        size = self.size()
        if form < 0.12:  # interleaved pairs
            x = self.tensor(size)
            condition = self.parity(index)
            yes, no = self.pick(("+", "-"), ("-", "+"))
            return f"{condition} ? {x}({index} {yes} 1) : {x}({index} {no} 1)"
        if form < 0.24:  # halves
            x, half = self.tensor(size), self.pick(f"{size} / 2", f"({size} + 1) / 2", self.offset())
            return f"{self.below(index, half)} ? -{x}({index} + {half}) : {x}({index} - {self.group(half)})"
        if form < 0.32:  # two tensors one behind the other
            x, size2 = self.tensor(size), self.size()
            y = self.tensor(size2)
            return f"{self.below(index, size)} ? {x}({index}) : {y}({index} - {size})"
        if form < 0.42 and depth < 2:
            inner = self.guarded_read(index, depth + 1)
            condition = self.pick(self.parity(index), self.below(index, self.size()), self.at_least(index, self.offset()))
            branches = (f"({inner})", self.other(index))
            return f"{condition} ? {branches[0]} : {branches[1]}" if self.chance(0.6) else f"{condition} ? {branches[1]} : {branches[0]}"
        if form < 0.49:  # a subscript that is clamped or wraps needs no guard
            x = self.tensor(size)
            shifted = self.pick(f"{index} - {self.offset()}", f"{index} + {self.offset()}", index)
            wrapped = self.pick(f"max({shifted}, 0)", f"min({shifted}, {size} - 1)", f"({shifted}) % {size}",
                                f"clamp({shifted}, 0, {size} - 1)", f"max(min({shifted}, {size} - 1), 0)")
            return f"{self.parity(index)} ? {x}({wrapped}) : {self.other(index)}" if self.chance(0.3) else f"{x}({wrapped})"
        if form < 0.55:
            return f"{self.parity(index)} ? {self.tensor(size)}({self.join(self.parts(index))}) : {self.other(index)}"
        parts = self.parts(index)
        condition = self.guard(*parts, size)
        if self.chance(0.12):
            condition = f"{self.parity(index)} && ({condition})"
        if self.chance(0.08):
            return f"!({condition}) ? {self.other(index)} : {self.tensor(size)}({self.join(parts)})"
        return f"{condition} ? {self.tensor(size)}({self.join(parts)}) : {self.other(index)}"

    # Statements. Each returns (text of the statement, extent of its result in words, or None).

    def pointwise(self, result):
        index, size = "i", self.size()
        value = self.guarded_read(index)
        if self.chance(0.25):
            value = f"({value}) + {self.tensor(size)}({self.join(self.parts(index)) if self.chance(0.4) else index})"
        extent = None
        where = ""
        if self.chance(0.4):
            low, high = self.pick(
                ("0", size),
                ("0", size),
                ("1", f"{size} + 1"),
                ("0", f"{size} + 2 * {self.padding()}"),
                ("0", f"{size} / 2"),
                (self.padding(), size),
                ("0", f"2 * {size}"),
                ("0", f"({size} - 1) / {self.stride()} + 1"),
            )
            where, extent = f" where {index} in {low}:{high}", high
        if extent is None and self.chance(0.45):
            extent = self.pick(size, size, f"2 * {size}", f"{size} + 1", f"({size} + 1) / 2")
        if self.chance(0.1):
            where += f"{',' if where else ' where'} exists {self.tensor(self.size())}({self.join(self.parts(index))})"
        assign = self.pick("+=", "max=") if extent is not None and self.chance(0.08) else "="
        return f"{result}({index}) {assign} {value}{where}", extent

    def convolution(self, result):
        data, taps = self.size(), self.pick(self.size(), "3", "2")
        stride, dilation, padding = self.stride(), self.dilation(), self.padding()
        mirrored = self.chance(0.25)
        tap = "k" if not mirrored else f"({taps} - 1 - k)"
        reach = tap if dilation == "1" else self.pick(f"{dilation} * {tap}", f"{tap} * {dilation}")
        moved = "t" if stride == "1" else self.pick(f"{stride} * t", f"t * {stride}")
        causal = self.chance(0.4)
        if causal:
            positive, negative = moved, reach
        else:
            positive, negative = f"{moved} + {reach}", padding
        x, w = self.tensor(data), self.tensor(taps)
        read = f"{x}({self.join((positive, negative))})"
        guarded = self.chance(0.8)
        if guarded:
            condition = self.guard(positive, negative, data)
            if causal and stride == "1" and self.chance(0.5):
                condition = self.at_least(positive, negative)
            if self.chance(0.5):
                value = f"({condition} ? {read} : 0.0) * {w}(k)"
            else:
                value = f"{condition} ? {read} * {w}(k) : 0.0"
        else:
            value = f"{read} * {w}(k)"
        full = f"({data} + 2 * {padding} - {dilation} * ({taps} - 1) - 1) / {stride} + 1"
        simple = f"({data} + 2 * {padding} - {taps}) / {stride} + 1"
        clauses, extent = [], None
        if self.chance(0.55):
            extent = self.pick(full, full, simple, data) if not causal else self.pick(data, data, full)
            clauses.append(f"t in 0:{extent}")
        elif self.chance(0.5):
            extent = self.pick(full, data) if not causal else data
        if self.chance(0.15):
            clauses.append(f"k in 0:{taps}")
        if guarded and self.chance(0.15):
            subscript = self.join((positive, negative))
            value = value.replace(subscript, "x")
            clauses.append(f"x = {subscript}")
        where = f" where {', '.join(clauses)}" if clauses else ""
        assign = self.pick("+=!", "+=!", "+=!", "max=!", "min=!")
        return f"{result}(t) {assign} {value}{where}", extent

    def image(self, result):
        """A padded convolution in two dimensions."""
        h, w, kh, kw = self.size(), self.size(), self.pick("2", "3", self.size()), self.pick("2", "3")
        stride, padding = self.stride(), self.padding()
        x, f = self.tensor(h, w), self.tensor(kh, kw)
        rows, columns = f"{stride} * i + k", f"{stride} * j + l"
        condition = f"({self.guard(rows, padding, h)}) && ({self.guard(columns, padding, w)})"
        read = f"{x}({self.join((rows, padding))}, {self.join((columns, padding))})"
        extent = tuple(f"({n} + 2 * {padding} - {k}) / {stride} + 1" for n, k in ((h, kh), (w, kw)))
        where = f" where i in 0:{extent[0]}, j in 0:{extent[1]}" if self.chance(0.7) else ""
        return f"{result}(i,j) +=! ({condition} ? {read} : 0.0) * {f}(k,l){where}", extent if where else None

    def left_expression(self, result):
        """A left side that is no index: a concatenation, a scatter of windows, an upsampling."""
        size = self.size()
        x = self.tensor(size)
        form = self.rng.randrange(4)
        if form == 0:
            other = self.size()
            y = self.tensor(other)
            return f"{result}(i) = {x}(i)\n  {result}(i + {size}) = {y}(i)", f"{size} + {other}"
        if form == 1:
            stride = self.stride()
            return f"{result}({stride} * i + k) +=! {x}(i) where k in 0:{self.pick('2', '3')}", None
        if form == 2:
            return f"{result}(i / {self.pick('2', '3', self.scalar('s'))}) +=! {self.guarded_read('i')}", None
        return f"{result}({self.pick('2', self.scalar('s'))} * i + {self.offset()}) = {x}(i)", None

    def window(self, result):
        size, stride = self.size(), self.stride()
        width = self.pick("2", "3", self.offset(), "K" if "K" in self.sizes else "2")
        assign = self.pick("max=!", "+=!", "min=!")
        read = f"{self.tensor(size)}({stride} * i + k)"
        if self.chance(0.4):
            positive = f"{stride} * i + k"
            padding = self.padding()
            read = f"({self.guard(positive, padding, size)} ? {self.tensor(size)}({self.join((positive, padding))}) : {IDENTITIES[assign]})"
        extent, where = None, f" where k in 0:{width}"
        if self.chance(0.4):
            extent = self.pick(f"({size} - {width}) / {stride} + 1", f"({size} + {stride} - 1) / {stride}")
            where += f", i in 0:{extent}"
        return f"{result}(i) {assign} {read}{where}", extent

    def prefix(self, result):
        size = self.size()
        condition = self.pick("j <= i", "i >= j", "j < i", "!(j > i)", "i - j >= 0", f"i - j < {self.offset()} && j <= i")
        where = self.pick(f" where i in 0:{size}", f" where i in 0:{size}, j in 0:{size}", "")
        return f"{result}(i) +=! {condition} ? {self.tensor(size)}(j) : 0.0{where}", size if where else None

    def two_dimensions(self, result):
        a, b = self.size(), self.size()
        x = self.tensor(a, b)
        first, second = self.parts("i"), self.parts("j")
        condition = f"({self.guard(*first, a)}) && ({self.guard(*second, b)})"
        if self.chance(0.3):
            condition = self.pick("j <= i", "i + j < " + a, "i > j", "i * 2 >= j")
            first, second = ("i", "0"), ("j", "0")
        where = ""
        extent = None
        if self.chance(0.5):
            high = (self.pick(a, f"{a} + 2"), self.pick(b, f"{b} + 1"))
            where, extent = f" where i in 0:{high[0]}, j in 0:{high[1]}", high
        elif self.chance(0.5):
            extent = (self.pick(a, b), b)
        return f"{result}(i,j) = {condition} ? {x}({self.join(first)}, {self.join(second)}) : 0.0{where}", extent

    def reader(self, result, source, rank):
        """A statement that reads a result of another one."""
        if rank == 2:
            return f"{result}(i) +=! {source}(i,j)", None
        form = self.rng.randrange(5)
        if form == 0:
            return f"{result}(i) = {source}(i) * 2.0", None
        if form == 1:
            return f"{result}(i) = {self.at_least('i', '1')} ? {source}(i - 1) : 0.0", None
        if form == 2:
            return f"{result}(i) +=! {source}(i + k) where k in 0:2", None
        if form == 3:
            return f"{result}(i) = {self.parity('i')} ? {source}(i) : {self.other('i')}", None
        return f"{result}(i) = {source}(i) + ({self.guarded_read('i')})", None

    def program(self):
        statements, results, ranks = [], [], {}
        for n in range(self.pick(1, 1, 1, 1, 2, 2, 3)):
            name = f"O{n}"
            if n and self.chance(0.6):
                source = self.rng.choice(sorted(ranks))
                text, extent = self.reader(name, source, ranks[source])
                rank = 1
            else:
                make = self.rng.choices(
                    (
                        self.pointwise,
                        self.convolution,
                        self.window,
                        self.prefix,
                        self.two_dimensions,
                        self.image,
                        self.left_expression,
                    ),
                    (9, 9, 3, 2, 3, 2, 2),
                )[0]
                text, extent = make(name)
                rank = 2 if make in (self.two_dimensions, self.image) else 1
            ranks[name] = rank
            statements.append(text)
            results.append(self.annotated(name, extent))
            if self.chance(0.08) and " in " not in text:
                statements.append(self.update(name, rank))
        return self.finish(statements, results)

    def annotated(self, name, extent):
        if extent is None or self.chance(0.5):
            return name
        extent = extent if isinstance(extent, tuple) else (extent,)
        names = {w for e in extent for w in e.replace("(", " ").replace(")", " ").split()} & set(SCALARS)
        return name if names else f"float({', '.join(extent)}) {name}"

    def update(self, name, rank):
        """A second statement for a result."""
        left = f"{name}(i,j)" if rank == 2 else f"{name}(i)"
        if rank == 1 and self.chance(0.5):
            return f"{name}(i) += {self.guarded_read('i')}"
        return f"{left} = {left} * 2.0"

    def finish(self, statements, results):
        body = "\n".join(f"  {s}" for s in statements)
        words = set("".join(c if c.isalnum() else " " for c in " ".join([body, *results])).split())
        scalars = {name: values for name, values in SCALARS.items() if name in words}
        sizes = (set(SIZES) & words) | {
            s for n, dims in self.inputs.items() if n in words for d in dims for s in SIZES if s == d
        }
        inputs = [f"float({', '.join(dims)}) {n}" for n, dims in self.inputs.items() if n in words]
        known = {d for n, dims in self.inputs.items() if n in words for d in dims}
        inputs += [f"float({s}) A{s}" for s in SIZES if s in sizes - known]
        head = ", ".join([f"int {s}" for s in scalars] + inputs)
        return Program(self.seed, f"def f({head}) -> ({', '.join(results)}) {{\n{body}\n}}\n", scalars)


def generate(seed):
    return Generator(seed).program()
