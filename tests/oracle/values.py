"""Values, each with a bound of what it can be."""
from __future__ import annotations

from dataclasses import replace

from . import bounds, program as p
from .bounds import Bound
from .choices import Context, Extent, minus
from .subscripts import Subscripts


class Values(Subscripts):
    def right_side(self, context: Context, type: str, op: str, count: int, old: Bound | None = None, scalar: bool = False):
        """A value for a tensor of a type, and a bound of what the tensor then holds where it is written. `count`: how
        many values meet in an element, at most; `old`: what they meet there."""
        if type == "bool":
            return self.condition(context, 2), Bound(0, 1)
        if self.chance(4):
            number = self.random.randint(0, 9)
            value, bound = p.Constant(type, float(number) if p.is_float(type) else number, bare=True), Bound(number, number)
        elif type in ("int32", "int64") and context.indices and op != "*=" and self.chance(50 if scalar else 25 if op[0] == "m" else 10):
            value, bound = self.bare_index(context)  # `T min=! k`
        elif self.chance(20) and (read := self.streamed(context, type)):  # A(i), nothing else
            value, bound = read, self.bounds[read.tensor]
        else:
            self.maybe_let(context)
            source = type
            if p.is_integer(type) and self.chance(15):
                source = self.pick([t for t in p.INTEGERS if p.widens(t, type)])
            value, bound = self.value(context, source, self.random.choices((0, 1, 2, 3), (25, 30, 30, 15))[0])
        if not p.is_float(type) or op == "=":
            return value, bound
        return self.tamed(value, bound, type, op, count, old)

    def streamed(self, context: Context, type: str):
        """A read by bare indices, or None."""
        reads = []
        for tensor in self.readable(type):
            indices = []
            for extent in tensor.extents:
                fitting = [i for i in context.indices if self.fits(i, Extent(extent, 0)) and i.high <= self.value_of(extent)
                           and i.name not in indices]
                if fitting:
                    indices.append(self.pick(fitting).name)
            if tensor.extents and len(indices) == len(tensor.extents):
                reads.append(p.Read(tensor.name, tuple(p.Index(n) for n in indices), type))
        return self.pick(reads) if reads else None

    def tamed(self, value, bound: Bound, type: str, op: str, count: int, old: Bound | None):
        """A value of which so many sum up, or multiply, exactly."""
        if op in ("min=", "max="):
            return value, bound.join(old) if old else bound
        start = old or Bound(1 if op == "*=" else 0, 1 if op == "*=" else 0)
        for limit in (None, 2, 1):
            if limit is not None:
                tame = p.Call("clamp", (p.Call("rint", (value,)), self.number(type, -limit), self.number(type, limit)))
                value, bound = tame, Bound(-limit, limit, 0, bound.special)
            if op == "+=":
                total = Bound(start.low + min(0, count * bound.low), start.high + max(0, count * bound.high),
                              max(bound.fraction, start.fraction), bound.special or start.special)
            else:
                if limit is None and (count > 4 or bound.fraction):
                    continue
                if bound.size() > 1 and count > 4:
                    continue
                most = start.size() * max(1, bound.size()) ** count
                total = Bound(-most, most, start.fraction, bound.special or start.special)
            if bounds.is_exact(total, type):
                return value, total
        # Not even so: what it meets is too large already. A number that changes nothing remains.
        neutral = 1 if op == "*=" else 0
        return self.number(type, neutral), start

    def bare_index(self, context: Context):
        index = context.indices[-1] if self.chance(50) else self.pick(context.indices)
        expr = p.Index(index.name)
        if self.chance(20):
            return p.FromIndex(p.IndexBinary("/", expr, p.Number(2))), Bound(0, index.high)
        return p.FromIndex(expr), Bound(index.low, index.high)

    def maybe_let(self, context: Context) -> None:
        if self.chance(8):
            value, bound = self.value(context, self.pick(context.types), 1)
            let = p.Let(f"x{len(self.statements)}", value)
            if not is_pure(value):
                context.lets.append(let)
                self.bounds[let.name] = bound

    def value(self, context: Context, type: str, depth: int):
        if depth <= 0:
            return self.leaf(context, type)
        kind = self.weighted(leaf=22, binary=30, unary=5, select=13, guarded=8, call=12, cast=12)
        made = getattr(self, f"value_{kind}")(context, type, depth)
        if made is None:
            return self.leaf(context, type)
        node, bound = made
        if p.is_float(type) and not bounds.is_exact(bound, type):
            return self.leaf(context, type)
        return node, bound

    def value_leaf(self, context: Context, type: str, depth: int):
        return self.leaf(context, type)

    def leaf(self, context: Context, type: str):
        lets = [let for let in context.lets if let.type == type]
        if lets and self.chance(40):
            let = self.pick(lets)
            return let, self.bounds[let.name]
        tensors = self.readable(type)
        if tensors and self.chance(82):
            tensor = self.pick(tensors)
            return self.read(context, tensor), self.bounds[tensor.name]
        if self.chance(25):
            others = [t for t in self.types if t != type and self.readable(t)]
            if others:
                made = self.converted(context, type, self.pick(others), 0)
                if made:
                    return made
        named = [(name, value) for name, (own, value) in self.scalars.items() if own == type]
        if named and self.chance(40):
            name, value = self.pick(named)
            return p.Scalar(name, type), Bound(int(value), int(value))
        if context.indices and self.chance(35):
            node, bound = self.bare_index(context)
            if type == "int32":
                return node, bound
            if type == "int64" and self.chance(50):
                return p.FromIndex(node.expr, "int64"), bound
            return p.Cast(type, node), bounds.wrapped(bound, type) if p.is_integer(type) else bound
        if p.is_float(type):
            if self.has("constants") and self.has("saturate") and self.chance(12):
                return self.named_constant(type)
            if self.chance(20):
                return p.Constant(type, self.pick((0.5, 1.5, 0.25)), type == "float32"), Bound(0, 2, 2)
            value = self.random.randint(-3, 4)
        else:
            value = self.pick((0, 1, 2, 3, 5, 100, p.greatest(type) if p.bits(type) < 64 else 7))
            if p.is_signed(type) and self.chance(30):
                value = -value
        bare = type in ("int32", "float32") and abs(value) <= 100 and self.chance(50)
        return p.Constant(type, float(value) if p.is_float(type) else value, bare), Bound(value, value)

    def named_constant(self, type: str):
        """inf, nan, and of pi the whole part."""
        name = self.pick(("inf", "nan", "pi"))
        constant = p.Named(name)
        node = constant if type == "float32" else p.Cast(type, constant)
        if name == "pi":
            return p.Call("floor", (node,)), Bound(3, 3)
        return (p.Unary("-", node) if name == "inf" and self.chance(40) else node), Bound(0, 0, 0, True)

    def operands(self, context: Context, type: str, depth: int, second: bool = True):
        """Two values whose types meet at a type (T1)."""
        types = [type, type]
        if self.chance(18):
            at = self.random.randint(0, 1)
            pool = [t for t in p.TYPES if p.meet(t, type) == type and (t in self.types or self.chance(25))]
            if pool:
                types[at] = self.pick(pool)
        if self.chance(5) and p.is_signed(type) and p.bits(type) > 8:  # int8 and uint8 meet at int16
            half = p.bits(type) // 2
            types = [f"uint{half}", f"int{half}"]
            self.random.shuffle(types)
        made = [self.value(context, t, depth - 1) for t in types]
        if p.is_float(type) and any(p.is_integer(t) and not bounds.is_exact(b, type) for t, (_, b) in zip(types, made)):
            return None
        return made

    def value_binary(self, context: Context, type: str, depth: int):
        made = self.operands(context, type, depth)
        if made is None:
            return None
        (left, a), (right, b) = made
        op = self.pick("+-*") if p.is_float(type) or self.chance(70) else self.pick("/%")
        if p.is_float(type) and self.chance(12):
            return self.quotient(context, type, left, a)
        node = p.Binary(op, left, right)
        if is_pure(node):
            return left, a
        return node, bounds.binary(op, a, b, type)

    def quotient(self, context: Context, type: str, left, a: Bound):
        """Of floats: by a power of two, or by -1, 0 or 1 of an integer, which makes infinities and NaNs."""
        if left.type != type:
            return None
        if self.chance(60) or not self.has("saturate"):
            power = self.random.randint(1, 2)
            return p.Binary("/", left, p.Constant(type, float(1 << power))), replace(a, fraction=a.fraction + power)
        integers = [t for t in p.SIGNED if self.readable(t)]
        if not integers:
            return None
        divisor, _ = self.leaf(context, self.pick(integers))
        if is_pure(divisor):
            return None
        return p.Binary("/", left, p.Cast(type, p.Call("sign", (divisor,)))), Bound(-a.size(), a.size(), a.fraction, True)

    def value_unary(self, context: Context, type: str, depth: int):
        node, bound = self.value(context, type, depth - 1)
        if is_pure(node):
            return node, bound
        negated = Bound(-bound.high, -bound.low, bound.fraction, bound.special)
        return p.Unary("-", node), negated if p.is_float(type) else bounds.wrapped(negated, type)

    def value_select(self, context: Context, type: str, depth: int):
        condition = self.condition(context, min(depth, 2) - 1)
        made = self.operands(context, type, depth)
        if made is None:
            return None
        (left, a), (right, b) = made
        node = p.Select(condition, left, right, self.chance(15))
        if node.type != type or is_pure(left) or is_pure(right):
            return left, a
        return node, a.join(b)

    def value_guarded(self, context: Context, type: str, depth: int):
        """A read that leaves its tensor where its guard does not hold (R6)."""
        tensors = [t for t in self.readable(type) if t.extents]
        if not tensors:
            return None
        tensor = self.pick(tensors)
        shift = self.random.randint(-3, 3)
        at = self.random.randrange(len(tensor.extents))
        extent = Extent(tensor.extents[at], self.value_of(tensor.extents[at]))
        fitting = [i for i in context.indices if self.fits(i, extent)]
        if not fitting:
            return None
        index = self.pick(fitting)
        read = self.read(context, tensor)
        subscript = p.IndexBinary("+" if shift >= 0 else "-", p.Index(index.name), p.Number(abs(shift)))
        read = replace(read, subscripts=read.subscripts[:at] + (subscript,) + read.subscripts[at + 1:])
        guards = []
        if index.low + shift < 0 or self.chance(20):
            guards.append(p.CompareIndices(">=", p.Index(index.name), p.Number(-shift)) if shift < 0 and self.chance(50)
                          else p.CompareIndices("<=", p.Number(0), subscript))
        if index.high - 1 + shift >= extent.value or self.chance(20):
            guards.append(p.CompareIndices("<", subscript, extent.expr))
        if not guards:
            guards.append(p.CompareIndices("<", p.Index(index.name), minus(extent.expr, 1)))
        condition = guards[0] if len(guards) == 1 else p.Logic("&&", guards[0], guards[1])
        other, bound = self.value(context, type, depth - 1)
        if is_pure(other):
            return None
        return p.Select(condition, read, other), bound.join(self.bounds[tensor.name])

    def value_call(self, context: Context, type: str, depth: int):
        x, a = self.value(context, type, depth - 1)
        if is_pure(x):
            return x, a
        name = self.pick(("min", "max", "abs", "sign", "clamp", "relu") + (
            ("floor", "ceil", "trunc", "rint") + (("tf32", ) if type == "float32" else ()) if p.is_float(type) else
            ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right", "popcount")))
        if name == "popcount":
            return (p.Call(name, (x,)), Bound(0, 64)) if type == "int32" else None
        if name in ("abs", "relu", "bitwise_not") or name in ("floor", "ceil", "trunc", "rint"):
            bound = Bound(-a.size(), a.size() + 1, 0 if name in ("floor", "ceil", "trunc", "rint") else a.fraction, a.special)
            return p.Call(name, (x,)), bound if p.is_float(type) else bounds.of_type(type)
        if name == "tf32":  # a multiple of the same fraction, or of a greater one
            most = a.size() + a.size() // 1024 + 1
            return p.Call(name, (x,)), Bound(-most, most, a.fraction, a.special)
        if name == "sign":
            return p.Call(name, (x,)), Bound(-1 if p.is_float(type) or p.is_signed(type) else 0, 1, 0, a.special)
        if name == "clamp":
            low, high = sorted((self.random.randint(0, 3), self.random.randint(0, 6)))
            return p.Call(name, (x, self.number(type, low), self.number(type, high))), Bound(low, high, a.fraction, a.special)
        if name.startswith("shift_"):
            amount = p.Constant(type, self.random.randint(0, min(p.bits(type) + 2, 66)))
            return p.Call(name, (x, amount)), bounds.of_type(type)
        if name == "bitwise_not":
            return p.Call(name, (x,)), bounds.of_type(type)
        made = self.operands(context, type, depth)
        if made is None:
            return None
        y, b = made[0] if made[0][0].type == type else made[1]
        if y.type != type or is_pure(y):
            return x, a
        return p.Call(name, (x, y)), a.join(b) if name in ("min", "max") else bounds.of_type(type)

    def value_cast(self, context: Context, type: str, depth: int):
        return self.converted(context, type, self.pick(p.TYPES if self.chance(30) else self.types), depth - 1)

    def converted(self, context: Context, type: str, source: str, depth: int):
        if source == type:
            return None
        if self.chance(5):
            return p.Cast(type, self.condition(context, 1)), Bound(0, 1)
        node, bound = self.value(context, source, depth)
        if isinstance(node, p.Constant) and node.bare:  # a number in a cast is a number of that type, which has to hold it
            return None
        if p.is_float(type):
            if not bounds.is_exact(bound, type):
                return None
            return p.Cast(type, node), bound
        if p.is_integer(source):
            return p.Cast(type, node), bounds.wrapped(bound, type)
        whole = Bound(bound.low, bound.high)
        if bounds.wrapped(whole, type) == whole and not bound.special:
            return p.Cast(type, node), whole
        return (p.Cast(type, node), bounds.of_type(type)) if self.has("saturate") else None

    def condition(self, context: Context, depth: int):
        kind = self.weighted(values=40, indices=35, logic=12, negation=5, bools=8)
        bools = self.readable("bool")
        if kind == "bools" and bools:
            return self.read(context, self.pick(bools))
        if kind == "logic" and depth > 0:
            return p.Logic(self.pick(("&&", "||")), self.condition(context, depth - 1), self.condition(context, depth - 1))
        if kind == "negation":
            return p.Unary("!", self.condition(context, depth - 1)) if depth > 0 else self.condition(context, 0)
        op = self.pick(("<", "<=", ">", ">=", "==", "!="))
        if kind == "indices" and context.indices:
            return self.index_condition(context, op)
        type = self.pick(context.types)
        left, _ = self.value(context, type, max(0, depth - 1))
        right, _ = self.leaf(context, type)
        if is_pure(left) or is_pure(right):
            tensors = [t for t in self.readable(type)]
            if not tensors:
                return self.index_condition(context, op) if context.indices else p.Constant("bool", self.chance(50))
            left = self.read(context, self.pick(tensors))
            right = p.Constant(type, 1.0 if p.is_float(type) else 1)
        return p.Compare(op, left, right)

    def index_condition(self, context: Context, op: str):
        index = self.pick(context.indices)
        i = p.Index(index.name)
        kind = self.weighted(remainder=30, pair=30, number=30, scalar=10)
        if kind == "remainder":
            return p.CompareIndices(self.pick(("==", "!=")), p.IndexBinary("%", i, p.Number(self.pick((2, 3, 4)))), p.Number(0))
        if kind == "pair":
            return p.CompareIndices(op, i, p.Index(self.pick(context.indices).name))
        if kind == "scalar" and "q" in self.scalars:
            return p.CompareIndices(op, i, p.ScalarIndex("q"))
        return p.CompareIndices(op, i, p.Number(self.random.randint(0, max(1, index.high))))


def is_pure(node) -> bool:
    """Whether a value is made of indices and bare numbers only: then the language computes it as index arithmetic."""
    if isinstance(node, p.FromIndex):
        return True
    if isinstance(node, p.Constant):
        return node.bare
    if isinstance(node, (p.Unary, p.Binary, p.Select, p.Call)):
        parts = p.children(node)[1:] if isinstance(node, p.Select) else p.children(node)
        return all(is_pure(part) for part in parts)
    return False
