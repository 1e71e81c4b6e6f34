"""Derived gradients in float16 and bfloat16 against PyTorch's in float32, within a bound that is computed for each.

What a def computes is written once more for PyTorch, with `r` around every value that the narrow type holds. With
r(x) = x that is the reference. For the bound, r lets a value and its gradient, in float64, be off by a part δ of
themselves (and of the least normal number), each δ at most the type's unit roundoff u: to the first order an element g
of a gradient is off by at most u * sum |dg/dδ|. Twice that stands for terms of higher orders and for sums in float32.
"""
import pytest

import tensorc

torch = pytest.importorskip("torch", reason="PyTorch is not installed for this Python")
import tensorc.torch  # noqa: E402


class Backward(torch.autograd.Function):
    """x, whose gradient is off by a part δ."""

    @staticmethod
    def forward(ctx, x, delta, least):
        ctx.save_for_backward(delta)
        ctx.least = least
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        (delta, ) = ctx.saved_tensors
        return gradient + delta * (gradient.detach().abs() + ctx.least), None, None


class Rounding:
    """r, and the δ of all that it was called for."""

    def __init__(self, dtype):
        self.u, self.least, self.deltas = torch.finfo(dtype).eps / 2, torch.finfo(dtype).smallest_normal, []

    def delta(self, shape):
        self.deltas.append(torch.zeros(shape, dtype=torch.float64, requires_grad=True))
        return self.deltas[-1]

    def __call__(self, x):
        x = x + self.delta(x.shape) * (x.detach().abs() + self.least)
        return Backward.apply(x, self.delta(x.shape), self.least)

    def bounds(self, gradients):
        return [self.bound(gradient) for gradient in gradients]

    def bound(self, gradient):
        slopes = [sum(float(slope.abs().sum()) for slope in
                      torch.autograd.grad(g, self.deltas, retain_graph=True, allow_unused=True) if slope is not None)
                  for g in gradient.flatten()]
        own = gradient.detach().abs() + self.least  # the element is rounded too
        return 2 * self.u * (torch.tensor(slopes).reshape(gradient.shape) + own)


def softmax(r, I):
    e = r(torch.exp(r(I - torch.amax(I, 1, keepdim=True))))
    return r(e / r(e.sum(1, keepdim=True)))


def layernorm(r, I, gamma):
    count = I.shape[1]
    centered = r(I - r(r(I.sum(1, keepdim=True)) / count))
    variance = r((centered * centered).sum(1, keepdim=True))
    return r(r(gamma * centered) * r(torch.rsqrt(r(r(variance / count) + 1))))


def perceptron(r, x, w, b, v):
    return r(r(torch.relu(r(r(x @ w.T) + b - 4))) @ v.T)


def convolutions(r, x, w):
    t = r(torch.conv1d(x[None, None], w[None, None]))
    return r(torch.conv1d(r(torch.tanh(t)), w[None, None]))[0, 0]


def functions(r, x, y):
    return r(r(torch.tanh(r(r(torch.exp(-x)) * r(torch.log(y))))) + r(r(torch.sqrt(x)) * r(torch.sin(y)))
             - r(r(torch.sigmoid(x)) / r(torch.cos(x))) + r(x ** y) + torch.maximum(x, y) + r(torch.rsqrt(x)))


# A text over T, what it computes, and shapes of its inputs with the size of their elements.
PROGRAMS = {
    "matmul": ("def f(T(M,K) A, T(K,N) B) -> (T(M,N) C) { C(m,n) +=! A(m,k) * B(k,n) }",
               lambda r, A, B: r(A @ B), [((5, 6), 1), ((6, 7), 1)]),
    "sum of products": ("def f(T(N) x, T(N) y, T(N) z) -> (T(N) w) { w(i) = x(i) * y(i) - x(i) * z(i) }",
                        lambda r, x, y, z: r(r(x * y) - r(x * z)), [((9,), 1), ((9,), 1), ((9,), 1)]),
    "quotient": ("def f(T(N) x, T(N) y) -> (T(N) z) { z(i) = x(i) / y(i) }",
                 lambda r, x, y: r(x / y), [((9,), 300), ((9,), 300)]),
    "one divisor": ("def f(T(N) x, T(1) y) -> (T(N) z) { z(i) = x(i) / y(0) }",
                    lambda r, x, y: r(x / y), [((60,), 1), ((1,), 300)]),
    "functions": ("def f(T(N) x, T(N) y) -> (T(N) z) { z(i) = T(tanh(exp(-x(i)) * log(y(i))) + sqrt(x(i)) * "
                  "sin(y(i)) - sigmoid(x(i)) / cos(x(i)) + pow(x(i), y(i)) + fmax(x(i), y(i)) + rsqrt(x(i))) }",
                  functions, [((9,), 0.7), ((9,), 0.7)]),
    "softmax": ("""def f(T(N,D) I) -> (T(N,D) O) {
                  m(n) max=! I(n,d)
                  O(n,d) = exp(I(n,d) - m(n))
                  s(n) +=! O(n,d)
                  O(n,d) = O(n,d) / s(n)
                }""", softmax, [((1, 300), 0.1)]),
    "layernorm": ("""def f(T(N,D) I, T(D) gamma) -> (T(N,D) O) {
                    sum(n) +=! I(n,d)
                    mean(n) = T(sum(n) / float(6))
                    var(n) +=! (I(n,d) - mean(n)) * (I(n,d) - mean(n))
                    O(n,d) = gamma(d) * (I(n,d) - mean(n)) * rsqrt(T(var(n) / float(6) + 1.0))
                  }""", layernorm, [((5, 6), 1), ((6,), 1)]),
    "perceptron": ("""def f(T(B,N) x, T(M,N) w, T(M) b, T(K,M) v) -> (T(B,K) z) {
                     y(i,m) +=! x(i,n) * w(m,n)
                     y(i,m) = relu(y(i,m) + b(m) - T(4))
                     z(i,k) +=! y(i,m) * v(k,m)
                   }""", perceptron, [((5, 6), 1), ((7, 6), 1), ((7,), 1), ((8, 7), 1)]),
    "sum in float32": ("""def f(T(M,K) A, T(K,N) B, T(N) b) -> (T(M,N) C) {
                         float S(m,n) +=! A(m,k) * B(k,n)
                         C(m,n) = T(S(m,n) + b(n)) }""",
                       lambda r, A, B, b: r(A @ B + b), [((5, 6), 1), ((6, 7), 1), ((7,), 1)]),
    "convolutions": ("""def f(T(N) x, T(K) w) -> (z) {
                       t(i) +=! x(i + k) * w(k)
                       u(i) = tanh(t(i))
                       z(i) +=! u(i + k) * w(k)
                     }""", convolutions, [((12,), 0.3), ((3,), 0.3)]),
    "broadcast": ("def f(T(N,D) x, T(D) a) -> (T(N,D) y) { y(n,d) = exp(x(n,d) * a(d)) }",
                  lambda r, x, a: r(torch.exp(r(x * a))), [((12, 5), 1), ((5,), 1)]),
    "part of a range": ("def f(T(N) x) -> (T(3) y) { y(i) = sigmoid(x(i + 2)) where i in 0:3 }",
                        lambda r, x: r(torch.sigmoid(x[2:5])), [((9,), 1)]),
}


def narrow(shape, size, seed, dtype):
    values = torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (size * (values + 0.5)).to(dtype)


def gradients(function, inputs, dtype, weights=None, create_graph=False):
    inputs = [x.detach().to(dtype).requires_grad_() for x in inputs]
    output = function(*inputs)
    weights = narrow(output.shape, 1, 99, weights or dtype).to(dtype)
    return torch.autograd.grad(output, inputs, weights, create_graph=create_graph)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_narrow_gradients(name, dtype):
    text, reference, shapes = PROGRAMS[name]
    inputs = [narrow(*shape, seed, dtype) for seed, shape in enumerate(shapes)]
    op = tensorc.torch.op(text.replace("T(", f"{str(dtype)[6:]}("))
    found = gradients(op, inputs, dtype)
    wanted = gradients(lambda *x: reference(lambda y: y, *x), inputs, torch.float32, dtype)
    rounding = Rounding(dtype)
    exact = gradients(lambda *x: reference(rounding, *x), inputs, torch.float64, dtype, create_graph=True)
    for f, w, bound in zip(found, wanted, rounding.bounds(exact)):
        assert f.dtype == dtype
        worst = ((f.double() - w.double()).abs() / bound).max()
        assert worst <= 1, f"off by {worst:.2f} times the bound"
