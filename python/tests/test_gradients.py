"""Derived gradients in float64 against finite differences, and against PyTorch's where it is installed.

PROGRAMS maps a name to a text, the values of its parameters and, where PyTorch has the function, an expression for it.
A gradient's def is a program like any other: its own gradient is derived from it and checked in the same way.
"""
import functools
import pathlib

import numpy as np
import pytest

import tensorc

try:
    import torch
except ImportError:
    torch = None

STEP = 1e-5


@functools.cache
class Def:
    """The only def of a text, called with a dictionary of values. An in-out tensor C takes its values from `old_C`."""

    def __init__(self, text, **options):
        program = tensorc.define(text, **options)
        self.function = program[next(iter(program))]
        self.signature = self.function.signature

    def __call__(self, values):
        def argument(parameter):
            value = values[parameter.name]
            # A result without dimensions is a parameter of one element for the gradient.
            return value if parameter.role == "scalar" or np.ndim(value) else np.reshape(value, 1)

        results = self.signature.results
        updated = [values[f"old_{r.name}"].copy() if r.role == "inout" else None for r in results]
        out = {"out": updated} if any(u is not None for u in updated) else {}
        made = self.function(*map(argument, self.signature.parameters), **out)
        return {r.name: np.asarray(m) for r, m in zip(results, made if isinstance(made, (tuple, list)) else [made])}


def prefix_of(gradient, inputs):
    """d_, or d2_, ... of the gradient of a gradient."""
    names = [r.name for r in gradient.signature.results]
    for prefix in ["d_"] + [f"d{n}_" for n in range(2, 9)]:
        if all(name.startswith(prefix) and name[len(prefix):] in inputs for name in names):
            return prefix
    raise AssertionError(f"no prefix fits {names}")


def weights_of(results, seed):
    generator = np.random.default_rng(seed)
    return {name: np.array(generator.uniform(0.5, 1.5, np.shape(r)) * generator.choice([-1, 1], np.shape(r)))
            for name, r in results.items() if r.dtype == np.float64}


def differences(function, values, name, weights):
    """The slope of the weighted sum of the results by each element of an input, by differences to both sides."""
    def loss(x):
        results = function({**values, name: x})
        return sum(float((w * results[r]).sum()) for r, w in weights.items())

    x = values[name]
    slopes = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        above, below = x.copy(), x.copy()
        above[at] += STEP
        below[at] -= STEP
        slopes[at] = (loss(above) - loss(below)) / (above[at] - below[at])
    return slopes


def check(text, values, order, seed=0, tolerance=2e-7):
    """Holds the derived gradient against differences, and its own gradient, up to the order given."""
    function = Def(text)
    results = function(values)
    weights = weights_of(results, seed)
    derived = tensorc.gradient(text)
    gradient = Def(derived)
    inputs = {p.name for p in function.signature.parameters if p.role != "scalar" and p.dtype == "float64"}
    inputs |= {f"old_{r.name}" for r in function.signature.results if r.role == "inout" and r.dtype == "float64"}
    prefix = prefix_of(gradient, inputs)
    given = {**values, **results, **{prefix + name: w for name, w in weights.items()}}
    made = gradient(given)
    for name in sorted(inputs):
        wanted = differences(function, values, name, weights)
        found = made.get(prefix + name, np.zeros_like(wanted))
        scale = max(1.0, np.abs(wanted).max(initial=0.0))
        assert np.isfinite(found).all(), f"d {name} is not finite, by\n{derived}"
        worst = np.abs(found - wanted).max(initial=0.0)
        assert worst <= tolerance * scale, f"d {name} is off by {worst:.3g}:\n{found}\n{wanted}\nby\n{derived}"
    if order > 1:
        taken = {p.name for p in gradient.signature.parameters}
        check(derived, {name: value for name, value in given.items() if name in taken}, order - 1, seed + 1,
              tolerance * 10)
    return made, weights, prefix


def n(*shape, seed=1):
    """Numbers of both signs, none near 0 nor near each other's negative."""
    generator = np.random.default_rng(sum(shape) * 31 + seed)
    return generator.uniform(0.3, 1.7, shape) * generator.choice([-1, 1], shape)


def p(*shape, seed=2):
    return np.abs(n(*shape, seed=seed))


def u(*shape, seed=3):
    """Inside of (-0.8, 0.8)."""
    return 0.47 * n(*shape, seed=seed)


def i(*items):
    return np.array(items, np.int32)


# name: (text, {parameter: value}, the same of PyTorch's tensors or None, order)
PROGRAMS = {
    # Sums and products of elements.
    "matmul": ("def f(double(M,K) A, double(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
               dict(A=n(3, 4), B=n(4, 2)), lambda A, B: A @ B, 2),
    "matmul transposed": ("def f(double(M,K) A, double(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }",
                          dict(A=n(3, 4), B=n(2, 4)), lambda A, B: A @ B.T, 2),
    "bilinear": ("def f(double(N,I) x, double(O,I,J) w, double(N,J) y) -> (z) "
                 "{ z(n,o) +=! x(n,i) * w(o,i,j) * y(n,j) }",
                 dict(x=n(2, 3), w=n(2, 3, 2), y=n(2, 2)), lambda x, w, y: torch.einsum("ni,oij,nj->no", x, w, y), 2),
    "outer product": ("def f(double(M) a, double(N) b) -> (C) { C(m,n) = a(m) * b(n) }",
                      dict(a=n(3), b=n(4)), lambda a, b: torch.outer(a, b), 2),
    "trace": ("def f(double(N,N) A) -> (s) { s +=! A(i,i) * A(i,i) }", dict(A=n(3, 3)),
              lambda A: (A.diagonal()**2).sum(), 2),
    "diagonal": ("def f(double(N) x) -> (double(N,N) D) { D(i,i) = x(i) * x(i) }", dict(x=n(3)),
                 lambda x: torch.diag(x * x), 2),
    "quotient": ("def f(double(N) x, double(N) y) -> (z) { z(i) = x(i) / y(i) }", dict(x=n(4), y=p(4)),
                 lambda x, y: x / y, 3),
    "broadcast": ("def f(double(N,D) x, double(D) a) -> (y) { y(n,d) = exp(x(n,d) * a(d)) }",
                  dict(x=n(3, 2), a=n(2)), lambda x, a: torch.exp(x * a), 2),
    "scalars": ("def f(double a, double(N) x, int k) -> (y) { y(i) = a * x(i) * x(i) + x(i) * k }",
                dict(a=0.7, x=n(4), k=3), lambda a, x, k: a * x * x + x * k, 2),
    "let": ("def f(double(N) x) -> (y) { y(i) = v * v + v where v = sin(x(i)) * x(i) }", dict(x=n(4)),
            lambda x: (x.sin() * x)**2 + x.sin() * x, 2),
    "sum of nothing of its index": ("def f(double(M) b) -> (y) { y(m) +=! b(m) * b(m) where k in 0:5 }",
                                    dict(b=n(3)), lambda b: 5 * b * b, 2),
    "a negated difference": ("def f(double(N) x, double(N) y) -> (z) { z(i) = -(x(i) - y(i)) * x(i) }",
                             dict(x=n(4), y=n(4, seed=5)), lambda x, y: -(x - y) * x, 2),
    # Convolutions, windows, padding.
    "convolution": ("def f(double(W) I, double(K) w) -> (O) { O(x) +=! I(x + k) * w(k) }",
                    dict(I=n(7), w=n(3)), lambda I, w: torch.conv1d(I[None, None], w[None, None])[0, 0], 2),
    "strided convolution": ("def f(int s, double(W) I, double(K) w) -> (O) { O(x) +=! I(s * x + k) * w(k) }",
                            dict(s=2, I=n(8), w=n(3)),
                            lambda s, I, w: torch.conv1d(I[None, None], w[None, None], stride=s)[0, 0], 2),
    "dilated convolution": ("def f(double(W) I, double(K) w) -> (O) { O(x) +=! I(x + 2 * k) * w(k) }",
                            dict(I=n(8), w=n(3)),
                            lambda I, w: torch.conv1d(I[None, None], w[None, None], dilation=2)[0, 0], 2),
    "padded by a guard": ("def f(double(H) I, double(K) w) -> (O) { O(h) +=! "
                          "(h + k >= 1 && h + k <= H ? I(h + k - 1) : 0.0) * w(k) where h in 0:H + 3 - K }",
                          dict(I=n(6), w=n(3)),
                          lambda I, w: torch.conv1d(I[None, None], w[None, None], padding=1)[0, 0], 2),
    "padded by a copy": ("def f(double(H) I, double(K) w) -> (O, P) { P(h) = double(0) where h in 0:H + 2\n"
                         "P(h) = I(h - 1) where h in 1:H + 1\n O(h) +=! P(h + k) * w(k) }",
                         dict(I=n(6), w=n(3)),
                         lambda I, w: (torch.conv1d(I[None, None], w[None, None], padding=1)[0, 0],
                                       torch.nn.functional.pad(I, (1, 1))), 2),
    "padded by a part": ("def f(double(H) I, double(K) w) -> (O) { P(h) = I(h - 1) where h in 1:H + 1\n"
                         " O(i) +=! P(i + k) * w(k) }", dict(I=n(6), w=n(3)), None, 2),
    "transposed convolution": ("def f(double(N) x, double(K) w) -> (O) { O(i + k) +=! x(i) * w(k) }",
                               dict(x=n(5), w=n(3)),
                               lambda x, w: torch.conv_transpose1d(x[None, None], w[None, None])[0, 0], 2),
    "average pool": ("def f(double(H,W) x) -> (y) { y(i,j) +=! x(2 * i + k, 2 * j + l) * x(2 * i + k, 2 * j + l) "
                     "where k in 0:2, l in 0:2 }", dict(x=n(4, 5)),
                     lambda x: 4 * torch.nn.functional.avg_pool2d((x * x)[None], 2)[0], 2),
    "causal shift": ("def f(double(N) x) -> (y) { y(i) = i >= 2 ? x(i - 2) * x(i) : x(i) where i in 0:N }",
                     dict(x=n(5)), lambda x: torch.cat([x[:2], x[:-2] * x[2:]]), 2),
    "prefix sum": ("def f(double(N) x) -> (y) { y(i) +=! j <= i ? x(j) * x(j) : 0.0 where i in 0:N }", dict(x=n(5)),
                   lambda x: (x * x).cumsum(0), 2),
    "reversed": ("def f(double(N) x, double(N) y) -> (z) { z(i) = x(N - 1 - i) * y(i) where i in 0:N }",
                 dict(x=n(5), y=n(5, seed=8)), lambda x, y: x.flip(0) * y, 2),
    "part of a range": ("def f(double(N) x) -> (double(3) y) { y(i) = sigmoid(x(i + 2)) where i in 0:3 }",
                        dict(x=n(7)), lambda x: torch.sigmoid(x[2:5]), 2),
    # Gathers and scatters.
    "gather": ("def f(double(N) x, int(M) at) -> (y) { y(i) = x(at(i)) * x(at(i)) }",
               dict(x=n(4), at=i(3, 0, 3, 1, 1)), lambda x, at: x[at.long()]**2, 2),
    "guarded gather": ("def f(double(N) x, int(M) at) -> (y) { y(i) = at(i) >= 0 ? x(at(i)) * x(at(i)) : 0.0 "
                       "where i in 0:M }", dict(x=n(3), at=i(1, -1000000, 2, 1)), None, 2),
    "rows of a table": ("def f(double(E,D) table, int(B,L) at) -> (O) { O(b,d) +=! table(at(b,l), d) * "
                        "table(at(b,l), d) }", dict(table=n(4, 2), at=np.array([[0, 3, 3], [1, 0, 2]], np.int32)),
                        lambda table, at: (table[at.long()]**2).sum(1), 2),
    "scatter": ("def f(double(N) x, int(N) at) -> (double(4) H) { H(at(i)) +=! x(i) * x(i) }",
                dict(x=n(5), at=i(2, 0, 2, 1, 0)),
                lambda x, at: torch.zeros(4, dtype=x.dtype).index_add(0, at.long(), x * x), 2),
    "scatter, then square": ("def f(double(N) x, int(N) at) -> (double(4) H) { H(at(i)) +=! x(i)\n"
                             " H(j) = H(j) * H(j) }", dict(x=n(5), at=i(2, 0, 2, 1, 0)),
                             lambda x, at: torch.zeros(4, dtype=x.dtype).index_add(0, at.long(), x)**2, 2),
    "every second": ("def f(double(N) x) -> (y) { y(2 * i) +=! x(i) * x(i) }", dict(x=n(4)),
                     None, 2),
    "pairs": ("def f(double(N) x) -> (y) { y(i / 2) +=! x(i) * x(i) }", dict(x=n(6)),
              lambda x: (x * x).reshape(-1, 2).sum(1), 2),
    # Functions of one and more numbers.
    "functions": ("def f(double(N) x) -> (y) { y(i) = tanh(x(i)) + sin(x(i)) * cos(x(i)) + sigmoid(x(i)) + "
                  "exp(-x(i)) + erf(x(i)) + sinh(x(i)) + atan(x(i)) + abs(x(i)) + expm1(x(i)) + exp2(x(i)) }",
                  dict(x=n(4)),
                  lambda x: x.tanh() + x.sin() * x.cos() + x.sigmoid() + (-x).exp() + x.erf() + x.sinh() + x.atan() +
                  x.abs() + x.expm1() + x.exp2(), 3),
    "functions of positive numbers": ("def f(double(N) x) -> (y) { y(i) = log(x(i)) + sqrt(x(i)) + rsqrt(x(i)) + "
                                      "log1p(x(i)) * log2(x(i)) + log10(x(i)) + cbrt(x(i)) + rcbrt(x(i)) + "
                                      "fdivide(double(1.0), x(i)) + y0(x(i)) + y1(x(i)) + yn(2, x(i)) }",
                                      dict(x=p(4)), None, 2),
    "functions near zero": ("def f(double(N) x) -> (y) { y(i) = asin(x(i)) + acos(x(i)) * atanh(x(i)) + asinh(x(i)) "
                            "+ tan(x(i)) + erfinv(x(i)) + acosh(x(i) + 2.0) + erfcinv(x(i) + 1.0) + "
                            "normcdfinv(x(i) * 0.5 + 0.5) }",
                            dict(x=u(4)), None, 2),
    "special functions": ("def f(double(N) x) -> (y) { y(i) = j0(x(i)) + j1(x(i)) + jn(2, x(i)) + erfc(x(i)) + "
                          "erfcx(x(i)) + normcdf(x(i)) + cyl_bessel_i0(x(i)) * cyl_bessel_i1(x(i)) + sinpi(x(i)) * "
                          "cospi(x(i)) + exp10(x(i)) }", dict(x=n(4)), None, 2),
    "functions of two": ("def f(double(N) x, double(N) y) -> (z) { z(i) = atan2(x(i), y(i)) + hypot(x(i), y(i)) + "
                         "rhypot(x(i), y(i)) + fdim(x(i), y(i)) + fma(x(i), y(i), x(i)) + fmod(x(i), y(i)) + "
                         "copysign(x(i), y(i)) + remainder(x(i), y(i)) + ldexp(x(i), 3) }",
                         dict(x=n(5), y=n(5, seed=9)), None, 2),
    "lengths": ("def f(double(N) x, double(N) y, double(N) z) -> (w) { w(i) = norm3d(x(i), y(i), z(i)) + "
                "rnorm3d(x(i), y(i), z(i)) + norm4d(x(i), y(i), z(i), x(i)) + rnorm4d(y(i), x(i), z(i), z(i)) }",
                dict(x=n(3), y=n(3, seed=4), z=n(3, seed=6)), None, 2),
    "steps": ("def f(double(N) x) -> (y) { y(i) = x(i) * (floor(x(i)) + ceil(x(i)) + round(x(i)) + trunc(x(i)) + "
              "rint(x(i)) + sign(x(i)) + logb(x(i)) + double(int(x(i)))) }", dict(x=n(5)), None, 2),
    "powers": ("def f(double(N) x, double(N) y) -> (z) { z(i) = pow(x(i), y(i)) + pow(x(i), 3.0) + pow(2.5, y(i)) }",
               dict(x=p(4), y=n(4)), lambda x, y: x**y + x**3 + 2.5**y, 3),
    "clamp": ("def f(double(N) x, double(N) lo, double(N) hi) -> (y) { y(i) = clamp(x(i), lo(i), hi(i)) * x(i) }",
              dict(x=n(6), lo=n(6, seed=12) - 0.9, hi=n(6, seed=13) + 0.8),
              lambda x, lo, hi: torch.clamp(x, lo, hi) * x, 2),
    "the largest of three": ("def f(double(N) x, double(N) y, double(N) z) -> (w) { w(i) = max(x(i), y(i) * z(i), "
                             "z(i)) + min(x(i), y(i), z(i)) * fmax(x(i), z(i)) }",
                             dict(x=n(6), y=n(6, seed=4), z=n(6, seed=6)),
                             lambda x, y, z: torch.stack([x, y * z, z]).amax(0) +
                             torch.stack([x, y, z]).amin(0) * torch.maximum(x, z), 2),
    "choices": ("def f(double(N) x, double(N) y) -> (z) { z(i) = x(i) > 0.0 ? log(x(i)) * y(i) : "
                "select(y(i) < 0.0, x(i) * x(i), y(i)) }", dict(x=n(6), y=n(6, seed=4)), None, 2),
    # Maxima and minima.
    "maximum": ("def f(double(M,K) A) -> (m) { m(i) max=! A(i,k) }", dict(A=n(3, 4)), lambda A: A.amax(1), 2),
    "maximum of squares": ("def f(double(M,K) A) -> (m) { m(i) max=! A(i,k) * A(i,k) - A(i,k) }", dict(A=n(3, 4)),
                           lambda A: (A * A - A).amax(1), 2),
    "minimum of distances": ("def f(double(N,D) x, double(K,D) c) -> (nearest) { d(n,k) +=! "
                             "(x(n,j) - c(k,j)) * (x(n,j) - c(k,j))\n nearest(n) min=! d(n,k) }",
                             dict(x=n(3, 2), c=n(4, 2)), lambda x, c: torch.cdist(x, c).pow(2).amin(1), 2),
    "maximum of a masked input": ("def f(double(M,K) A, bool(M,K) mask) -> (m) { m(i) max=! mask(i,k) ? A(i,k) : "
                                  "-1.0 / 0 }",
                                  dict(A=n(3, 4), mask=n(3, 4, seed=7) > -1), lambda A, mask: torch.where(
                                      mask, A, -torch.inf).amax(1), 2),
    "maximum of two tensors": ("def f(double(M,K) A, double(M,K) B) -> (m) { m(i) max=! A(i,k)\n"
                               " m(i) max= B(i,k) * B(i,k) }", dict(A=n(3, 4), B=n(3, 4, seed=8)),
                               lambda A, B: torch.maximum(A.amax(1), (B * B).amax(1)), 2),
    "maximum in chosen places": ("def f(double(N) x, int(N) at) -> (double(3) y) { y(at(i)) max=! x(i) * x(i) }",
                                 dict(x=n(6), at=i(2, 0, 2, 1, 0, 2)), None, 2),
    "max pool": ("def f(double(H,W) x) -> (y) { y(i,j) max=! exp(x(2 * i + k, 2 * j + l)) where k in 0:2, l in 0:2 }",
                 dict(x=n(4, 5)), lambda x: torch.nn.functional.max_pool2d(x.exp()[None], 2)[0], 2),
    "maximum of a part": ("def f(double(N) x) -> (y) { y(i) = x(i)\n y(i) max=! 2.0 * x(i + k) where i in 1:3, "
                          "k in 0:2 }", dict(x=n(6)), None, 2),
    "softmax": ("def f(double(N,D) I) -> (O) { m(n) max=! I(n,d)\n O(n,d) = exp(I(n,d) - m(n))\n s(n) +=! O(n,d)\n"
                " O(n,d) = O(n,d) / s(n) }", dict(I=n(2, 4)), lambda I: I.softmax(1), 2),
    "masked softmax": ("def f(double(N,D) x, bool(N,D) mask, double a) -> (O) {\n"
                       " S(n,d) = mask(n,d) ? x(n,d) * a : -1.0 / 0\n m(n) max=! S(n,d)\n"
                       " O(n,d) = exp(S(n,d) - m(n))\n s(n) +=! O(n,d)\n O(n,d) = O(n,d) / s(n) }",
                       dict(x=n(2, 4), mask=np.array([[True, False, True, True], [True, True, False, True]]), a=0.7),
                       lambda x, mask, a: torch.where(mask, x * a, -torch.inf).softmax(1), 2),
    "log of a sum of exponentials": ("def f(double(N,D) x) -> (y) { m(n) max=! x(n,d) * 0.5\n "
                                     "s(n) +=! exp(x(n,d) * 0.5 - m(n))\n y(n) = log(s(n)) + m(n) }",
                                     dict(x=n(2, 3)), lambda x: (x * 0.5).logsumexp(1), 2),
    # Products of elements.
    "product": ("def f(double(M,K) A) -> (q) { q(i) *=! A(i,k) }", dict(A=n(3, 4)), lambda A: A.prod(1), 3),
    "product with a zero": ("def f(double(M,K) A) -> (q) { q(i) *=! A(i,k) }",
                            dict(A=np.array([[1.5, 0, -2, 0.5], [0, 0, 3, 1], [0, 0, 0, 1]])), lambda A: A.prod(1), 3),
    "product of sums": ("def f(double(M,K) A, double(K) b) -> (q) { q(i) *=! A(i,k) + sin(b(k)) }",
                        dict(A=n(3, 3), b=n(3)), lambda A, b: (A + b.sin()).prod(1), 2),
    "product of all": ("def f(double(M,K) A) -> (q) { q *=! A(i,k) }", dict(A=n(2, 3)), lambda A: A.prod(), 2),
    "product in chosen places": ("def f(double(N) x, int(N) at) -> (double(3) q) { q(at(i)) *=! x(i) }",
                                 dict(x=np.array([1.5, 0, 2, 0.5, 0, -1]), at=i(2, 0, 2, 1, 0, 2)), None, 2),
    "product of neighbours": ("def f(double(N) x) -> (q) { q(i) *=! x(i + k) where k in 0:3 }", dict(x=n(6)),
                              lambda x: x.unfold(0, 3, 1).prod(1), 2),
    "product into a tensor": ("def f(double(M,K) A, double(M) s) -> (q) { q(i) = s(i) * s(i)\n q(i) *= A(i,k) }",
                              dict(A=n(2, 3), s=n(2)), lambda A, s: s * s * A.prod(1), 2),
    # Tensors that are written more than once.
    "overwritten": ("def f(double(N) x) -> (y) { y(i) = exp(x(i))\n y(i) = y(i) * y(i)\n y(i) = sin(y(i)) }",
                    dict(x=u(4)), lambda x: ((x.exp())**2).sin(), 2),
    "overwritten in part": ("def f(double(N) x) -> (y) { y(i) = x(i) * x(i)\n y(i) = y(i + 1) * 2.0 where i in 1:3 }",
                            dict(x=n(5)), None, 2),
    "summed after a maximum": ("def f(double(M,K) A) -> (m) { m(i) max=! A(i,k)\n m(i) += A(i,k) * A(i,k) }",
                               dict(A=n(2, 3)), lambda A: A.amax(1) + (A * A).sum(1), 2),
    "read between sums": ("def f(double(N) x) -> (y, z) { y(i) = x(i) * x(i)\n z(i) = y(i) * y(i)\n y(i) += z(i) }",
                          dict(x=n(4)), lambda x: (x**2 + x**4, x**4), 2),
    "a sum of itself": ("def f(double(N) x) -> (y) { y(i) = x(i) * x(i)\n y(i) += y(N - 1 - i) * x(i) }",
                        dict(x=n(4)), lambda x: x * x + (x * x).flip(0) * x, 2),
    "results that are read": ("def f(double(N) x) -> (y, z) { y(i) = 2.0 * x(i)\n z(i) = y(i) * y(i + 1) }",
                              dict(x=n(4)), lambda x: (2 * x, 4 * x[:-1] * x[1:]), 2),
    "halves that lie apart": ("def f(double(N) x, double(N) y) -> (z) { z(i) = x(i) * y(i) where i in 0:2\n"
                              " z(i) = x(i) + y(i) * y(i) where i in 2:N }", dict(x=n(5), y=n(5, seed=4)),
                              lambda x, y: torch.cat([(x * y)[:2], (x + y * y)[2:]]), 2),
    # Left sides with '=' that are affine.
    "rotary embedding": ("def f(double(S,2*E) x, double(S,E) c, double(S,E) s) -> (double(S,2*E) O) {\n"
                         " O(t,d) = x(t,d) * c(t,d) - x(t,d + E) * s(t,d) where d in 0:E\n"
                         " O(t,d + E) = x(t,d + E) * c(t,d) + x(t,d) * s(t,d) where d in 0:E }",
                         dict(x=n(2, 4), c=n(2, 2), s=n(2, 2, seed=6)),
                         lambda x, c, s: x * torch.cat([c, c], 1) + torch.cat([-x[:, 2:], x[:, :2]], 1) *
                         torch.cat([s, s], 1), 2),
    "interleaved": ("def f(double(N) x) -> (y) { y(2 * i) = x(i)\n y(2 * i + 1) = x(i) * x(i) }", dict(x=n(4)),
                    lambda x: torch.stack([x, x * x], 1).flatten(), 2),
    "written from the end": ("def f(double(N) x) -> (double(N) y) { y(N - 1 - i) = x(i) * x(i) where i in 0:N }",
                             dict(x=n(4)), lambda x: (x * x).flip(0), 2),
    "every second overwritten": ("def f(double(N) x) -> (double(N) y) { y(i) = x(i) * x(i)\n"
                                 " y(2 * i + 1) = y(2 * i) * x(i) where i in 0:2 }", dict(x=n(5)), None, 2),
    "shifted in place": ("def f(double(N) x) -> (double(N) y) { y(i + 1) = x(i) * y(i) where i in 0:N - 1 }",
                         dict(x=n(4), old_y=n(4, seed=4)), lambda x, y: torch.cat([y[:1], (x * y)[:-1]]), 2),
    # In-out tensors.
    "accumulated": ("def f(double(M,K) A, double(K,N) B) -> (double(M,N) C) { C(m,n) += A(m,k) * B(k,n) }",
                    dict(A=n(2, 3), B=n(3, 2), old_C=n(2, 2)), lambda A, B, C: C + A @ B, 2),
    "sgemm": ("def f(double a, double b, double(N,M) A, double(M,K) B) -> (C) { C(i,j) = b * C(i,j)\n"
              " C(i,j) += a * A(i,k) * B(k,j) }", dict(a=0.7, b=-1.3, A=n(2, 3), B=n(3, 2), old_C=n(2, 2)),
              lambda a, b, A, B, C: b * C + a * A @ B, 2),
    "running mean": ("def f(double momentum, double(N,C) x) -> (mean, running) { mean(c) +=! x(n,c)\n"
                     " mean(c) = mean(c) / N\n running(c) = (1.0 - momentum) * running(c) + momentum * mean(c) * "
                     "mean(c) }", dict(momentum=0.1, x=n(3, 2), old_running=n(2)),
                     lambda momentum, x, running: (x.mean(0), 0.9 * running + 0.1 * x.mean(0)**2), 2),
    "squared in place": ("def f(double(N) s) -> (double(N) y) { y(i) = y(i) * y(i) * s(i) }",
                         dict(s=n(3), old_y=n(3, seed=4)), lambda s, y: y * y * s, 2),
    "updated in part": ("def f(double(N) s) -> (double(N) y) { y(i) = y(i) * y(i + 1) * s(i) where i in 1:3 }",
                        dict(s=n(5), old_y=n(5, seed=4)), None, 2),
    "maximum with the caller's": ("def f(double(M,K) A) -> (double(M) m) { m(i) max= A(i,k) * A(i,k) }",
                                  dict(A=n(3, 3), old_m=p(3)), lambda A, m: torch.maximum(m, (A * A).amax(1)), 2),
    "a sum in place": ("def f(double(N) x) -> (double s) { s += x(i) * x(i) * s }",
                       dict(x=n(3), old_s=np.array(0.7)), lambda x, s: s + (x * x).sum() * s, 2),
    "a maximum in place": ("def f(double(N) x) -> (double m) { m max= x(i) * x(i) }",
                           dict(x=n(3), old_m=np.array(0.2)), lambda x, m: torch.maximum(m, (x * x).amax()), 2),
    "multiplied in place": ("def f(double(M,K) A) -> (double(M) q) { q(i) *= A(i,k) }",
                            dict(A=np.array([[0, 2, 1.5], [1, -1, 0.5]]), old_q=n(2)),
                            lambda A, q: q * A.prod(1), 2),
    # What networks are made of.
    "layer normalisation": ("def f(double eps, double(N,D) I, double(D) gamma, double(D) beta) -> (O) {\n"
                            " mean(n) +=! I(n,d)\n mean(n) = mean(n) / D\n"
                            " var(n) +=! (I(n,d) - mean(n)) * (I(n,d) - mean(n))\n var(n) = var(n) / D\n"
                            " O(n,d) = (I(n,d) - mean(n)) * rsqrt(var(n) + eps) * gamma(d) + beta(d) }",
                            dict(eps=1e-3, I=n(2, 3), gamma=n(3), beta=n(3, seed=5)),
                            lambda eps, I, gamma, beta: torch.nn.functional.layer_norm(I, (3, ), gamma, beta, eps), 2),
    "two layers": ("def f(double(B,N) x, double(M,N) w, double(M) b, double(K,M) v) -> (z) {\n"
                   " y(i,m) +=! x(i,n) * w(m,n)\n y(i,m) = relu(y(i,m) + b(m))\n z(i,k) +=! y(i,m) * v(k,m) }",
                   dict(x=n(2, 3), w=n(3, 3), b=n(3), v=n(2, 3)),
                   lambda x, w, b, v: torch.relu(x @ w.T + b) @ v.T, 2),
    "single head attention": ("def f(double(N,D) Q, double(M,D) K, double(M,E) V) -> (O) {\n"
                              " S(n,m) +=! Q(n,d) * K(m,d)\n S(n,m) = S(n,m) * rsqrt(double(D))\n"
                              " top(n) max=! S(n,m)\n P(n,m) = exp(S(n,m) - top(n))\n total(n) +=! P(n,m)\n"
                              " O(n,e) +=! P(n,m) * V(m,e)\n O(n,e) = O(n,e) / total(n) }",
                              dict(Q=n(2, 2), K=n(3, 2), V=n(3, 2)),
                              lambda Q, K, V: torch.softmax(Q @ K.T / 2**0.5, 1) @ V, 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_against_differences(name):
    text, values, _, order = PROGRAMS[name]
    check(text, values, order)


@pytest.mark.parametrize("name", ["maximum of squares", "masked softmax", "maximum in chosen places",
                                  "product with a zero", "overwritten in part", "sgemm"])
def test_the_simulated_gpu_agrees(name):
    """The elements that equal a maximum are found by kernels of a GPU, too."""
    text, values, _, _ = PROGRAMS[name]
    derived = tensorc.gradient(text)
    results = Def(text)(values)
    given = {**values, **results, **{f"d_{r}": w for r, w in weights_of(results, 0).items()}}
    for result, wanted in Def(derived)(given).items():
        np.testing.assert_allclose(Def(derived, backend="sim")(given)[result], wanted, rtol=1e-12, atol=1e-12)


def by_pytorch(expression, values, weights):
    tensors = [torch.tensor(v, requires_grad=v.dtype == np.float64) if isinstance(v, np.ndarray) else v
               for v in values.values()]
    results = expression(*tensors)
    results = results if isinstance(results, tuple) else (results, )
    wanted = [t for t in tensors if isinstance(t, torch.Tensor) and t.requires_grad]
    return torch.autograd.grad(results, wanted, [torch.tensor(w) for w in weights.values()])


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed for this Python")
@pytest.mark.parametrize("name", [name for name, program in PROGRAMS.items() if program[2]])
def test_against_pytorch(name):
    text, values, expression, _ = PROGRAMS[name]
    function, gradient = Def(text), Def(tensorc.gradient(text))
    results = function(values)
    weights = weights_of(results, 0)
    made = gradient({**values, **results, **{f"d_{name}": w for name, w in weights.items()}})
    inputs = [k for k, v in values.items() if isinstance(v, np.ndarray) and v.dtype == np.float64]
    for key, wanted in zip(inputs, by_pytorch(expression, values, weights)):
        np.testing.assert_allclose(made[f"d_{key}"], wanted.numpy(), rtol=1e-12, atol=1e-12, err_msg=key)


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed for this Python")
@pytest.mark.parametrize("axis", ["max", "min"])
@pytest.mark.parametrize("value", ["A(n,d)", "2.0 * A(n,d) + 1.0"])
def test_the_best_share_alike(axis, value):
    """As PyTorch's amax has it, not its max, which takes one of the best: no order of the elements decides."""
    text = f"def f(double(N,D) A) -> (m) {{ m(n) {axis}=! {value} }}"
    A = np.array([[1.0, 3, 3], [2, 0, 0], [5, 5, 5]])
    made = Def(tensorc.gradient(text))({"A": A, "m": Def(text)({"A": A})["m"], "d_m": np.array([1.0, 2, 3])})["d_A"]
    x = torch.tensor(A, requires_grad=True)
    best = {"max": torch.amax, "min": torch.amin}[axis](x if value == "A(n,d)" else 2 * x + 1, 1)
    (wanted,) = torch.autograd.grad(best, x, torch.tensor([1.0, 2, 3], dtype=torch.float64))
    np.testing.assert_array_equal(made, wanted.numpy())


def test_a_masked_row_without_an_element_keeps_its_neighbours_finite():
    text = PROGRAMS["maximum of a masked input"][0]
    values = {"A": n(2, 3), "mask": np.array([[False] * 3, [True, False, True]])}
    made = Def(tensorc.gradient(text))({**values, **Def(text)(values), "d_m": np.ones(2)})["d_A"]
    assert np.isfinite(made).all() and made[1].sum() == 1


def test_a_product_of_zeros_divides_by_none():
    text = PROGRAMS["product"][0]
    A = np.array([[0.0, 2, 3], [0, 0, 3], [0, 0, 0]])
    made = Def(tensorc.gradient(text))({"A": A, "d_q": np.ones(3)})["d_A"]
    np.testing.assert_array_equal(made, [[6, 0, 0], [0, 0, 0], [0, 0, 0]])


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed for this Python")
def test_attention_as_pytorch_has_it():
    text = (pathlib.Path(__file__).parents[2] / "examples/attention.tc").read_text().replace("float(", "double(")
    values = dict(Q=n(1, 2, 3, 4), K=n(1, 2, 5, 4), V=n(1, 2, 5, 3))
    weights = {"O": n(1, 2, 3, 3, seed=8)}
    made = Def(tensorc.gradient(text))({**values, **Def(text)(values), "d_O": weights["O"]})
    wanted = by_pytorch(torch.nn.functional.scaled_dot_product_attention, values, weights)
    for name, slope in zip(values, wanted):
        np.testing.assert_allclose(made[f"d_{name}"], slope.numpy(), rtol=1e-12, atol=1e-14)


def test_of_the_examples_one_has_no_gradient():
    """That one counts."""
    refused = {}
    for path in sorted((pathlib.Path(__file__).parents[2] / "examples").glob("*.tc")):
        try:
            tensorc.define(tensorc.gradient(path.read_text()))
        except tensorc.Error as error:
            refused[path.name] = str(error).splitlines()[0]
    assert refused == {"histogram.tc": "tc:2:5: error: 'histogram' has no gradient; there is nothing to differentiate "
                                       "by: no tensor among its inputs is of floats"}
