#!/usr/bin/env python3
"""Defs with unusual subscripts or spellings beside plain defs that compute and move as much, on a GPU.

    twins.py [--only=WORD,...] [--turns=N] [--library=PATH]

Prints the median time of a launch of each def, and that of its plain twin. Behind these stand the time of PyTorch in
eager mode, and ratios. Every result is compared with float64. Launches are captured into CUDA graphs which events time,
as by time_options.py. Ends with 1 if a result is wrong. tests/gpu/twins_test.cc has the estimates of most of these.
"""
import argparse
import pathlib
import statistics
import sys

import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(folder / "board") for folder in (HERE, HERE.parent)]  # as a bundle has it; in the sources

from arrays import TorchArrays  # noqa: E402
from engine import Library, Refused  # noqa: E402
from measure import exact_results  # noqa: E402
from time_options import timed  # noqa: E402
from timing import Contestant, capture, event_us, first_line  # noqa: E402
from workloads import Row, Tensor  # noqa: E402

S = 1024
IMAGES, CHANNELS, EDGE = 16, 128, 28
ROWS = 4096
TILES = 512


def tensors(type, **shapes):
    return tuple(Tensor(name, shape, type) for name, shape in shapes.items())


def product(name, text, reference, type="half", plain="C(m,n) +=! A(m,k) * B(k,n)", shape=(S, S)):
    head = f"def f({type}(M,K) A, {type}(K,N) B) -> "
    return (name, tensors(type, A=(S, S), B=(S, S)), tensors(type, C=shape), head + text,
            head + f"(C) {{ {plain} }}", reference)


def image(name, text, reference, type="half", plain=None, border=1):
    head = f"def f({type}(B,C,H,W) I, {type}(F,C,3,3) G) -> (O) {{ O(b,f,y,x) +=! "
    guarded = ("(y + r >= 1 && y + r <= H && x + s >= 1 && x + s <= W ? I(b,c,y + r - 1,x + s - 1) : "
               f"{type}(0)) * G(f,c,r,s) where y in 0:H, x in 0:W")
    out = EDGE - 2 + 2 * border
    return (name, tensors(type, I=(IMAGES, CHANNELS, EDGE, EDGE), G=(CHANNELS, CHANNELS, 3, 3)),
            tensors(type, O=(IMAGES, CHANNELS, out, out)), head + text + " }", head + (plain or guarded) + " }", reference)


def around(mode):
    return lambda i, g: F.conv2d(F.pad(i, (1, 1, 1, 1), mode=mode), g)


SOFTMAX = "def f(float(N,D) X) -> ({}) {{ M(n) max=! X(n,d)  E(n,d) = exp(X(n,d) - M(n))  S(n) +=! E(n,d)  {} }}"


def softmax(name, store, reference, result="O", columns=ROWS):
    plain = SOFTMAX.format("O", "O(n,d) = E(n,d) / S(n)")
    return (name, tensors("float", X=(ROWS, ROWS)), tensors("float", O=(ROWS, columns)), SOFTMAX.format(result, store),
            plain, reference)


def row_sums(name, text, reference, extent=ROWS):
    return (name, tensors("float", X=(ROWS, ROWS)), tensors("float", S=(extent, )), "def f(float(N,D) X) -> " + text,
            "def f(float(N,D) X) -> (S) { S(n) +=! X(n,d) }", reference)


def tiles(name, text, reference, **inputs):
    return (name, tensors("float", **inputs), tensors("float", O=(TILES, TILES, 3, 3)), text,
            "def f(float(F,C,3,3) G, float(3) b) -> (O) { O(f,c,r,s) = G(f,c,r,s) + b(s) }", reference)


def first_column_zero(x):
    result = torch.softmax(x, 1)
    result[:, 0] = 0
    return result


def first_half_positive(a, b):
    result = a @ b
    result[:S // 2].clamp_(min=0)
    return result


TILE = (TILES, TILES, 3, 3)
HEADS = (64, 2048, 64)
QKV = "def f(half(B,N,D) Q, half(B,N,D) K, half(B,N,D) V) -> (O) { float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)  "
SUMMED = "O(b,n,e) +=! half(S(b,n,m)) * V(b,m,e) }"
IN_PLACE = QKV + ("S(b,n,m) = S(b,n,m) * 0.125  mx(b,n) max=! S(b,n,m)  P(b,n,m) = exp(S(b,n,m) - mx(b,n))  "
                  "L(b,n) +=! P(b,n,m)  float A(b,n,d) +=! half(P(b,n,m)) * V(b,m,d)  "
                  "O(b,n,d) = half(A(b,n,d) / L(b,n)) }")


def attention(name, text, reference, plain=IN_PLACE):
    shapes = tensors("half", Q=HEADS, K=HEADS, V=HEADS)
    return (name, shapes, tensors("half", O=HEADS), QKV + text, plain, reference)


def attended(causal):
    return lambda q, k, v: F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]


def elements(name, text, reference, **inputs):
    plain = "def f(half(N,D) X) -> (O) { O(n,d) = max(X(n,d), half(0)) }"
    return (name, tensors("half", **(inputs or {"X": (ROWS, ROWS)})), tensors("half", O=(ROWS, ROWS)),
            "def f(half(N,D) X) -> (O) { " + text + " }", plain, reference)


def moved(name, text, plain, reference, shape, out):
    return (name, tensors("half", X=shape), tensors("half", O=out), text, plain, reference)


def transposed(name, text, reference, kernel, edge, type="half", stride=2):
    """A transposed convolution beside a convolution with as many terms: each result of stride 2 has a fourth of them."""
    shapes = tensors(type, I=(IMAGES, CHANNELS, EDGE, EDGE), G=(CHANNELS, CHANNELS, kernel, kernel))
    terms = (kernel + stride - 1) // stride
    plain = (f"def f({type}(B,C,H,W) I, {type}({stride * stride},F,C,{terms},{terms}) G) -> (O) "
             "{ O(p,b,f,y,x) +=! I(b,c,y+r,x+s) * G(p,f,c,r,s) }")
    out = EDGE - terms + 1
    return (name, shapes, tensors(type, O=(IMAGES, CHANNELS, edge, edge)),
            f"def f({type}(B,C,H,W) I, {type}(C,F,{kernel},{kernel}) G) -> (O) {{ {type} O(b,f,{text} }}", plain,
            reference,
            tensors(type, I=shapes[0].shape, G=(stride * stride, CHANNELS, CHANNELS, terms, terms)),
            tensors(type, O=(stride * stride, IMAGES, CHANNELS, out, out)))


def overlapping(name, text, reference, shape, out, plain="I(i,j,k,l)"):
    return (name, tensors("float", I=shape), tensors("float", O=out), "def f(float(A,B,C,D) I) -> (O) { " + text + " }",
            f"def f(float(A,B,C,D) I) -> (O) {{ O(i,j,k,l) = {plain} }}", reference, tensors("float", I=shape),
            tensors("float", O=shape))


def pooled(name, text, reference, window):
    """A pool of images beside the largest of whole squares of two, which reads and writes as much."""
    shape, out = (64, 64, 112, 112), (64, 64, 56, 56)
    plain = "def f(half(B,C,H,W) I) -> (O) { O(b,c,y,x) max=! I(b,c,2 * y + r,2 * x + s) where r in 0:2, s in 0:2 }"
    return (name, tensors("half", I=shape), tensors("half", O=out),
            f"def f(half(B,C,H,W) I) -> (O) {{ O(b,c,y,x) max=! {text} where y in 0:56, x in 0:56, r in 0:{window}, "
            f"s in 0:{window} }}", plain, reference)


def causal(name, order, weights, reference):
    """A causal convolution along t by four weights for each of its channels, beside a product with one."""
    extents = {"b": 8, "t": 4096, "d": 2048}
    shape = tuple(extents[i] for i in order)
    element = "X({})".format(",".join("t - k" if i == "t" else i for i in order))
    sizes, indices = ",".join(order).upper(), ",".join(order)
    w = {"kd": (4, 2048), "dk": (2048, 4)}[weights]
    head = f"def f(half({sizes}) X, half({w[0]},{w[1]}) W) -> (O) {{ O({indices}) "
    return (name, tensors("half", X=shape, W=w), tensors("half", O=shape),
            head + f"+=! (t >= k ? {element} : half(0)) * W({','.join(weights)}) where t in 0:T }}",
            head + f"= X({indices}) * W({','.join('0' if i == 'k' else i for i in weights)}) }}", reference)


def filtered(name, subscripts, weights, type="float"):
    """Sums of a window times weights that are a tensor, beside a product with one of them."""
    size, rank = ",".join(str(extent) for extent in weights), len(weights)
    taps = ["k", "l"][:rank]
    down = weights[0] if "i + k" in subscripts else 1
    right = weights[-1] if rank == 2 or "j + k" in subscripts else 1
    shape, out = (8192, 8192), (8192 - down + 1, 8192 - right + 1)

    def reference(x, w):
        terms = [(a, b, w.reshape(down, right)[a, b]) for a in range(down) for b in range(right)]
        return sum(x[a:a + out[0], b:b + out[1]] * weight for a, b, weight in terms)

    head = f"def f({type}(N,M) X, {type}({size}) W) -> (Y) {{ Y(i,j) "
    shapes = tensors(type, X=shape, W=weights)
    return (name, shapes, tensors(type, Y=out), head + f"+=! X({subscripts}) * W({','.join(taps)}) }}",
            head + f"= X(i,j) * W({','.join('0' for _ in taps)}) }}", reference, shapes, tensors(type, Y=shape))


def causal_reference(x, w):
    """Of x(b,d,t), with w(d,k)."""
    return F.conv1d(F.pad(x, (3, 0)), w.flip(1)[:, None], groups=x.shape[1])


def weights_gradient(name, image, result, reference):
    """The gradient of a convolution's weights, beside a convolution that multiplies as often."""
    extents = {"b": IMAGES, "c": CHANNELS, "f": CHANNELS, "y": EDGE, "x": EDGE, "r": 3, "s": 3}
    at = {"c": "c", "f": "f", "b": "b", "y": "y + r - 1", "x": "x + s - 1"}
    cotangent = image.replace("c", "f")
    shapes = [tuple(extents[i] for i in order) for order in (image, cotangent, result)]
    sizes = [",".join(order).upper() for order in (image, cotangent)]
    border = "y + r >= 1 && y + r <= Y && x + s >= 1 && x + s <= X"
    head = "def f(half({}) I, half({}) D) -> (G) {{ ".format(*sizes)
    plain = f"def f(half({sizes[0]}) I, half({sizes[1]}) D, half({','.join(result).upper()}) G) -> (O) {{ "
    return (name, tensors("half", I=shapes[0], D=shapes[1]), tensors("half", G=shapes[2]),
            head + f"G({','.join(result)}) +=! ({border} ? I({','.join(at[i] for i in image)}) : half(0)) * "
            f"D({','.join(cotangent)}) where r in 0:3, s in 0:3 }}",
            plain + f"O({','.join(cotangent)}) +=! ({border} ? I({','.join(at[i] for i in image)}) : half(0)) * "
            f"G({','.join(result)}) where y in 0:Y, x in 0:X }}", reference,
            tensors("half", I=shapes[0], D=shapes[1], G=shapes[2]), tensors("half", O=shapes[1]))


def attended_with_logarithms(q, k, v):
    scores = (q @ k.transpose(1, 2)).to(torch.promote_types(q.dtype, torch.float32)) * 0.125
    return torch.softmax(scores, 2).to(q.dtype) @ v, torch.logsumexp(scores, 2)


def product_of_bytes(a, b):
    return a @ b if a.is_floating_point() else torch._int_mm(a, b)


SPATIAL = (IMAGES, CHANNELS, 56, 56)
INSIDE = "y+{0}-r >= 0 && (y+{0}-r)/2 < H && x+{0}-s >= 0 && (x+{0}-s)/2 < W"
EVEN = "y,x) +=! ((y+{0}-r) % 2 == 0 && (x+{0}-s) % 2 == 0 && " + INSIDE + (
    " ? I(b,c,(y+{0}-r)/2,(x+{0}-s)/2) : half(0)) * G(c,f,r,s) where y in 0:2*H, x in 0:2*W")
CASES = (
    elements("choice of the element", "O(n,d) = X(n,d) > half(0) ? X(n,d) : half(0.1) * X(n,d)",
             lambda x: F.leaky_relu(x, 0.0999755859375)),
    elements("triangle", "O(n,d) = d <= n ? X(n,d) : half(0)", torch.tril),
    moved("heads merged", "def f(half(B,H,T,64) X) -> (O) { O(b,t,64*h+d) = X(b,h,t,d) }",
          "def f(half(B,H,T,64) X) -> (O) { O(b,h,t,d) = X(b,h,t,d) }",
          lambda x: x.transpose(1, 2).reshape(8, 2048, 1024), (8, 16, 2048, 64), (8, 2048, 1024)),
    moved("enlarged", "def f(half(B,C,H,W) X) -> (O) { O(b,c,2*h+i,2*w+j) = X(b,c,h,w) where i in 0:2, j in 0:2 }",
          "def f(half(B,C,H,W) X) -> (O) { O(b,c,h,w) = X(b,c,h / 2,w / 2) where h in 0:2*H, w in 0:2*W }",
          lambda x: x.repeat_interleave(2, 2).repeat_interleave(2, 3), SPATIAL, (IMAGES, CHANNELS, 112, 112)),
    ("sum of row sums", tensors("float", X=(16384, S)), tensors("float", L=()),
     "def f(float(N,D) X) -> (L) { S(n) +=! X(n,d) * X(n,d)  L +=! S(n) }",
     "def f(float(N,D) X) -> (L) { L +=! X(n,d) * X(n,d) }", lambda x: (x * x).sum(1).sum()),
    ("one column", tensors("half", X=(65536, S), W=(S, 1)), tensors("half", Y=(65536, 1)),
     "def f(half(M,K) X, half(K,1) W) -> (Y) { Y(m,n) +=! X(m,k) * W(k,n) }",
     "def f(half(M,K) X, half(K,1) W) -> (half(M,1) Y) { Y(m,0) +=! X(m,k) * W(k,0) }", lambda x, w: x @ w),
    attention("attention, causal mask of its own",
              "T(b,n,m) = m <= n ? S(b,n,m) * 0.125 : -inf  mx(b,n) max=! T(b,n,m)  P(b,n,m) = exp(T(b,n,m) - mx(b,n))  "
              "L(b,n) +=! P(b,n,m)  float A(b,n,d) +=! half(P(b,n,m)) * V(b,m,d)  O(b,n,d) = half(A(b,n,d) / L(b,n)) }",
              attended(True)),
    attention("attention by the textbook",
              "T(b,n,m) = S(b,n,m) * 0.125  mx(b,n) max=! T(b,n,m)  L(b,n) +=! exp(T(b,n,m) - mx(b,n))  "
              "P(b,n,m) = half(exp(T(b,n,m) - mx(b,n)) / L(b,n))  half O(b,n,d) +=! P(b,n,m) * V(b,m,d) }",
              attended(False)),
    attention("attention by exponentials",
              "T(b,n,m) = S(b,n,m) * 0.125  mx(b,n) max=! T(b,n,m)  E(b,n,m) = exp(T(b,n,m) - mx(b,n))  "
              "L(b,n) +=! E(b,n,m)  P(b,n,m) = half(E(b,n,m) / L(b,n))  half O(b,n,d) +=! P(b,n,m) * V(b,m,d) }",
              attended(False)),
    attention("attention by reciprocals",
              "T(b,n,m) = S(b,n,m) * 0.125  mx(b,n) max=! T(b,n,m)  E(b,n,m) = exp(T(b,n,m) - mx(b,n))  "
              "L(b,n) +=! E(b,n,m)  R(b,n) = 1.0 / L(b,n)  P(b,n,m) = half(E(b,n,m) * R(b,n))  "
              "half O(b,n,d) +=! P(b,n,m) * V(b,m,d) }", attended(False)),
    ("attention, logarithms of sums", tensors("half", Q=HEADS, K=HEADS, V=HEADS),
     (*tensors("half", O=HEADS), *tensors("float", lse=HEADS[:2])),
     QKV.replace("(O)", "(O, lse)") +
     "T(b,n,m) = S(b,n,m) * 0.125  mx(b,n) max=! T(b,n,m)  E(b,n,m) = exp(T(b,n,m) - mx(b,n))  L(b,n) +=! E(b,n,m)  "
     "lse(b,n) = mx(b,n) + log(L(b,n))  float A(b,n,d) +=! half(E(b,n,m)) * V(b,m,d)  "
     "O(b,n,d) = half(A(b,n,d) / L(b,n)) }", IN_PLACE, attended_with_logarithms, tensors("half", Q=HEADS, K=HEADS,
                                                                                       V=HEADS), tensors("half", O=HEADS)),
    transposed("transposed convolution 4 x 4", EVEN.format(1),
               lambda i, g: F.conv_transpose2d(i, g, stride=2, padding=1), 4, 56),
    transposed("transposed convolution 3 x 3", EVEN.format(1),
               lambda i, g: F.conv_transpose2d(i, g, stride=2, padding=1, output_padding=1), 3, 56),
    transposed("transposed convolution 2 x 2", EVEN.format(0), lambda i, g: F.conv_transpose2d(i, g, stride=2), 2, 56),
    transposed("transposed convolution scattered", "2*y+r,2*x+s) +=! I(b,c,y,x) * G(c,f,r,s)",
               lambda i, g: F.conv_transpose2d(i, g, stride=2), 4, 58),
    transposed("transposed, scattered, odd", "2*y+r,2*x+s) +=! I(b,c,y,x) * G(c,f,r,s)",
               lambda i, g: F.conv_transpose2d(i, g, stride=2), 3, 57),
    transposed("transposed floats", "2*y+r,2*x+s) +=! I(b,c,y,x) * G(c,f,r,s)",
               lambda i, g: F.conv_transpose2d(i, g, stride=2), 4, 58, "float"),
    transposed("gradient scattered", "y+r,x+s) +=! I(b,c,y,x) * G(c,f,r,s)", F.conv_transpose2d, 3, 30, stride=1),
    overlapping("folded windows", "O(i,y+r) +=! I(i,r,y,k)", lambda i: F.fold(i[..., 0], (1, 2054), (1, 7))[:, 0, 0],
                (512, 7, 2048, 1), (512, 2054)),
    overlapping("overlapping frames", "O(i,64*j+k) +=! I(i,j,k,l)",
                lambda i: F.fold(i[..., 0].transpose(1, 2), (1, 65728), (1, 256), stride=(1, 64))[:, 0, 0],
                (64, 1024, 256, 1), (64, 65728)),
    overlapping("gradient of pooling", "O(i,j,2*k+r,2*l+s) +=! I(i,j,k,l) * 0.25 where r in 0:3, s in 0:3",
                lambda i: F.conv_transpose2d(i.view(-1, 1, EDGE, EDGE), i.new_full((1, 1, 3, 3), 0.25), stride=2).view(IMAGES, CHANNELS, 57, 57),
                (IMAGES, CHANNELS, EDGE, EDGE), (IMAGES, CHANNELS, 57, 57)),
    overlapping("product of polynomials", "O(i,j+k) +=! I(i,j,l,0) * I(i,k,l,1) where l in 0:1",
                lambda i: F.conv1d(i[None, :, :, 0, 0], i[:, None, :, 0, 1].flip(2), padding=2047, groups=64)[0],
                (64, 2048, 1, 2), (64, 4095)),
    ("bytes, k in columns", tensors("int8", A=(4096, 4096), B=(4096, 4096)), tensors("int", C=(4096, 4096)),
     "def f(int8(M,K) A, int8(K,N) B) -> (C) { int32 C(m,n) +=! A(m,k) * B(k,n) }",
     "def f(int8(M,K) A, int8(N,K) B) -> (C) { int32 C(m,n) +=! A(m,k) * B(n,k) }", product_of_bytes,
     tensors("int8", A=(4096, 4096), B=(4096, 4096)), tensors("int", C=(4096, 4096))),
    ("bytes, requantised", tensors("int8", A=(4096, 4096), B=(4096, 4096)), tensors("half", C=(4096, 4096)),
     "def f(int8(M,K) A, int8(N,K) B) -> (C) { int32 S(m,n) +=! A(m,k) * B(n,k)  C(m,n) = half(float(S(m,n)) * 0.0001) "
     "}", "def f(int8(M,K) A, int8(N,K) B) -> (C) { int32 C(m,n) +=! A(m,k) * B(n,k) }",
     lambda a, b: product_of_bytes(a, b.T).to(a.dtype if a.is_floating_point() else torch.float32) * 1e-4,
     tensors("int8", A=(4096, 4096), B=(4096, 4096)), tensors("int", C=(4096, 4096))),
    image("hidden by zeros",
          "y + r >= 1 && y + r <= H && x + s >= 1 && x + s <= W ? I(b,c,y + r - 1,x + s - 1) * G(f,c,r,s) : half(0) "
          "where y in 0:H, x in 0:W", lambda i, g: F.conv2d(i, g, padding=1)),
    image("gradient of a convolution",
          "(y+1-r >= 0 && y+1-r < H && x+1-s >= 0 && x+1-s < W ? I(b,c,y+1-r,x+1-s) : half(0)) * G(f,c,r,s) "
          "where y in 0:H, x in 0:W", lambda i, g: F.conv2d(i, g.flip(2, 3), padding=1)),
    product("rows of halves reversed", "(half(M,N) C) { C(M-1-m,n) +=! A(m,k) * B(k,n) }",
            lambda a, b: (a @ b).flip(0)),
    product("rows of floats reversed", "(float(M,N) C) { C(M-1-m,n) +=! A(m,k) * B(k,n) }",
            lambda a, b: (a @ b).flip(0), "float"),
    product("two parts of one tensor",
            "(half(M,2*N) C) { C(m,n) +=! A(m,k) * B(k,n) where n in 0:N  C(m,n+N) +=! A(m,k) * B(k,n) }",
            lambda a, b: torch.cat([a @ b, a @ b], 1), shape=(S, 2 * S)),
    product("some results clamped",
            "(C) { C(m,n) +=! A(m,k) * B(k,n)  C(m,n) = max(C(m,n), half(0)) where m in 0:M/2 }", first_half_positive),
    product("reduction reversed", "(C) { C(m,n) +=! A(m,K-1-k) * B(k,n) }", lambda a, b: a.flip(1) @ b),
    product("operand reversed", "(C) { C(m,n) +=! A(M-1-m,k) * B(k,n) }", lambda a, b: a.flip(0) @ b),
    image("outside first",
          "(y + r < 1 || y + r > H || x + s < 1 || x + s > W ? half(0) : I(b,c,y + r - 1,x + s - 1)) * G(f,c,r,s) "
          "where y in 0:H, x in 0:W", lambda i, g: F.conv2d(i, g, padding=1)),
    image("one condition after the other",
          "(y + r >= 1 && y + r <= H ? (x + s >= 1 && x + s <= W ? I(b,c,y + r - 1,x + s - 1) : half(0)) : half(0)) * "
          "G(f,c,r,s) where y in 0:H, x in 0:W", lambda i, g: F.conv2d(i, g, padding=1)),
    image("clamped", "I(b,c,clamp(y+r-1,0,H-1),clamp(x+s-1,0,W-1)) * G(f,c,r,s) where y in 0:H, x in 0:W",
          around("replicate")),
    image("circular", "I(b,c,(y+r-1+H)%H,(x+s-1+W)%W) * G(f,c,r,s) where y in 0:H, x in 0:W", around("circular")),
    image("reflected",
          "I(b,c,H-1-abs(H-1-abs(y+r-1)),W-1-abs(W-1-abs(x+s-1))) * G(f,c,r,s) where y in 0:H, x in 0:W",
          around("reflect")),
    image("clamped floats", "I(b,c,clamp(y+r-1,0,H-1),clamp(x+s-1,0,W-1)) * G(f,c,r,s) where y in 0:H, x in 0:W",
          around("replicate"), "float"),
    image("window flipped", "I(b,c,y+r,x+s) * G(f,c,2-r,2-s)", lambda i, g: F.conv2d(i, g.flip(2, 3)),
          plain="I(b,c,y+r,x+s) * G(f,c,r,s)", border=0),
    softmax("softmax reversed", "O(n,D-1-d) = E(n,d) / S(n)", lambda x: torch.softmax(x, 1).flip(1)),
    softmax("softmax, a column set", "O(n,d) = E(n,d) / S(n)  O(n,0) = 0.0 where n in 0:N", first_column_zero),
    softmax("softmax behind a margin", "O(n,d+8) = E(n,d) / S(n)  O(n,j) = 0.0 where j in 0:8, n in 0:N",
            lambda x: F.pad(torch.softmax(x, 1), (8, 0)), "float(N,D+8) O", ROWS + 8),
    row_sums("row sums reversed", "(float(N) S) { S(N-1-n) +=! X(n,d) }", lambda x: x.sum(1).flip(0)),
    row_sums("row sums behind a zero", "(float(N+1) S) { S(0) = 0.0  S(n+1) +=! X(n,d) }",
             lambda x: F.pad(x.sum(1), (1, 0)), ROWS + 1),
    product("masked product", "(C) { C(m,n) +=! n <= m ? A(m,k) * B(k,n) : half(0) }", lambda a, b: (a @ b).tril()),
    ("linear attention, causal", tensors("half", Q=HEADS, K=HEADS, V=HEADS), tensors("half", O=HEADS),
     QKV.replace("+=! Q(b,n,d) * K(b,m,d)", "+=! m <= n ? Q(b,n,d) * K(b,m,d) : 0.0") + SUMMED, QKV + SUMMED,
     lambda q, k, v: (q @ k.transpose(1, 2)).tril() @ v),
    pooled("pool of 3 x 3, padded",
           "2 * y + r >= 1 && 2 * y + r <= H && 2 * x + s >= 1 && 2 * x + s <= W ? I(b,c,2 * y + r - 1,2 * x + s - 1) : "
           "half(-65504)", lambda i: F.max_pool2d(i, 3, 2, 1), 3),
    pooled("pool of 2 x 2", "I(b,c,2 * y + r,2 * x + s)", lambda i: F.max_pool2d(i, 2), 2),
    causal("causal, channels last", "btd", "kd", lambda x, w: causal_reference(x.transpose(1, 2), w.T).transpose(1, 2)),
    causal("causal, rows of weights", "btd", "dk",
           lambda x, w: causal_reference(x.transpose(1, 2), w).transpose(1, 2)),
    causal("causal, time last", "bdt", "dk", causal_reference),
    filtered("seven weights down columns", "i + k,j", (7, )),
    filtered("seven weights along rows", "i,j + k", (7, )),
    filtered("nine weights", "i + k,j + l", (3, 3)),
    filtered("25 weights of halves", "i + k,j + l", (5, 5), "half"),
    weights_gradient("gradient of weights", "bcyx", "fcrs",
                     lambda i, d: torch.nn.grad.conv2d_weight(i, (CHANNELS, CHANNELS, 3, 3), d, padding=1)),
    weights_gradient("gradient of weights, channels last", "byxc", "frsc",
                     lambda i, d: torch.nn.grad.conv2d_weight(i.permute(0, 3, 1, 2), (CHANNELS, CHANNELS, 3, 3),
                                                              d.permute(0, 3, 1, 2), padding=1).permute(0, 2, 3, 1)),
    ("rows scaled and transposed", tensors("float", X=(ROWS, ROWS)), tensors("float", O=(ROWS, ROWS)),
     "def f(float(N,D) X) -> (O) { S(n) +=! X(n,d) * X(n,d)  O(d,n) = X(n,d) * rsqrt(S(n)) }",
     "def f(float(N,D) X) -> (O) { O(d,n) = X(n,d) * 0.5 }",
     lambda x: (x * (x * x).sum(1, keepdim=True).rsqrt()).T.contiguous()),
    tiles("tiles of 3 x 3 and their rows",
          "def f(float(F,C,3,3) G, float(F,C,3) B) -> (O) { O(f,c,r,s) = G(f,c,r,s) + B(f,c,s) }",
          lambda g, b: g + b[:, :, None, :], G=TILE, B=(TILES, TILES, 3)),
    tiles("tiles of 3 x 3 flipped",
          "def f(float(F,C,3,3) G) -> (O) { O(f,c,r,s) = G(f,c,2-r,2-s) where r in 0:3, s in 0:3 }",
          lambda g: g.flip(2, 3), G=TILE),
    tiles("tiles of 3 x 3 cut out", "def f(float(3*F,3*C) G) -> (float(F,C,3,3) O) { O(f,c,r,s) = G(3*f+r,3*c+s) }",
          lambda g: g.view(TILES, 3, TILES, 3).transpose(1, 2).contiguous(), G=(3 * TILES, 3 * TILES)),
)


def row_of(name, inputs, outputs, text, reference):
    def results(_, *arrays):
        result = reference(*arrays)
        return result if isinstance(result, tuple) else (result, )

    return Row("twin", name, "", "f", inputs, outputs, results, text=text)


def torch_us(row, inputs, stream, turns):
    contestant = Contestant("torch", lambda i: row.reference(torch, *inputs), 1)
    capture(torch, contestant, "hot", stream)
    graph, launches = contestant.graphs["hot"]
    return statistics.median([event_us(torch, stream, graph.replay) / launches for _ in range(turns + 2)][2:])


def plain_row(case):
    """The plain def on tensors of its own, with nothing to compare its result with."""
    name, inputs, outputs, _, text, _, *own = case
    if own:
        inputs, outputs = own
    elif name.startswith("tiles"):
        inputs = tensors("float", G=TILE, b=(3, ))
    elif name.startswith("heads"):
        outputs = tensors("half", O=inputs[0].shape)
    elif outputs[0].name == "C":
        outputs = tensors(outputs[0].type, C=(S, S))
    elif name.startswith("softmax"):
        outputs = tensors("float", O=(ROWS, ROWS))
    elif name.startswith("row sums"):
        outputs = tensors("float", S=(ROWS, ))
    return row_of(name, inputs, outputs, text, None)


def measure(case, library, stream, turns):
    """Microseconds of the def, of its twin, and of PyTorch; whether the result is right; launches of the def."""
    arrays = TorchArrays("cuda")
    name, inputs, outputs, text, _, reference, *_ = case
    row, plain = row_of(name, inputs, outputs, text, reference), plain_row(case)
    arguments = argparse.Namespace(turns=turns)
    with torch.inference_mode(), torch.cuda.stream(stream):
        data = [arrays.make(tensor) for tensor in row.inputs]
        right = [result.double() for result in exact_results(row, arrays, data)]
        us, error, _ = timed(row, library, "", data, right, stream, arguments)
        theirs = torch_us(row, data, stream, turns)
        data = [arrays.make(tensor) for tensor in plain.inputs]
        unknown = [torch.zeros(tensor.shape, dtype=torch.float64, device="cuda") for tensor in plain.outputs]
        plain_us, _, _ = timed(plain, library, "", data, unknown, stream, arguments)
    return us, plain_us, theirs, error <= row.tolerance


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--library", default="")
    arguments = parser.parse_args()
    words = arguments.only.split(",")
    library, stream, all_right = Library(arguments.library), torch.cuda.Stream(), True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    print(f"{'def':34} {'us':>9} {'plain':>9} {'times':>6} {'PyTorch':>9} {'faster':>6}")
    for case in CASES:
        if not any(word in case[0] for word in words):
            continue
        try:
            us, plain, theirs, is_right = measure(case, library, stream, arguments.turns)
        except Refused as refusal:
            print(f"{case[0]:34} refused: {first_line(refusal)}")
            all_right = False
            continue
        all_right = all_right and is_right
        print(f"{case[0]:34} {us:9.2f} {plain:9.2f} {us / plain:6.2f} {theirs:9.2f} {theirs / us:6.2f}"
              f"{'' if is_right else '  WRONG'}", flush=True)
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
