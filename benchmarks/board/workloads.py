"""The board's rows: each a program in TC, tensors, a float64 reference, and what it must at least compute and move.

References are written for NumPy and PyTorch alike: `xp` is one of the two modules, arrays are float64 (integers as they
are). A row is made by a function of its sizes, so that tests can make the same row small.
"""
import dataclasses
import math
import pathlib
import re
from typing import Callable

TC = pathlib.Path(__file__).resolve().parent / "tc"
BYTES = {"float": 4, "half": 2, "bfloat16": 2, "float8_e4m3": 1, "int": 4, "int8": 1}
# How far a right result may be off, as a part of the element's size plus the root of the mean square of all elements:
# some roundings to the row's narrowest type, and what sums in float32 lose.
TOLERANCE = {"float": 1e-4, "half": 4e-3, "bfloat16": 3e-2, "float8_e4m3": 4e-3, "int": 0.0, "int8": 0.0}


@dataclasses.dataclass(frozen=True)
class Tensor:
    """One argument. Floats are normal with deviation `scale`, or uniform in [0, scale). Integers lie in [0, below), those
    of 8 bits anywhere. `ascending` sorts integers."""

    name: str
    shape: tuple
    type: str = "float"
    scale: float = 1.0
    uniform: bool = False
    below: int = 0
    ascending: bool = False

    @property
    def bytes(self):
        return math.prod(self.shape) * BYTES[self.type]


@dataclasses.dataclass(frozen=True)
class Row:
    """`flops` and `bytes` are what any implementation needs; `peak` names the arithmetic whose peak bounds it. A goal
    is ("us", most) or ("ratio", least times as fast as the best peer). `slack` multiplies the tolerance. `refused` says
    why no program expresses it. `mapping` are options of a GPU that say what results mean, as text."""

    number: str
    name: str
    file: str
    entry: str
    inputs: tuple
    outputs: tuple
    reference: Callable[..., tuple]
    flops: float = 0
    bytes: float = 0
    peak: str = "float"
    scalars: tuple = ()
    goal: tuple = ()
    family: str = ""
    slack: float = 1.0
    refused: str = ""
    mapping: str = ""
    text: str = ""
    facts: dict = dataclasses.field(default_factory=dict)

    @property
    def title(self):
        return f"{self.number} {self.name}"

    @property
    def source(self):
        return self.text or (TC / self.file).read_text(encoding="utf-8")

    def parameters(self):
        """The def's parameters as (type, dimensions, name)."""
        signature = re.search(rf"def {self.entry}\((.*?)\) *->", self.source, re.DOTALL)[1]
        found = re.findall(r"(\w+)(?:\(([^)]*)\))? +(\w+)", signature)
        return [(type, [dim.strip() for dim in dims.split(",") if dim.strip()], name) for type, dims, name in found]

    def sizes(self):
        """Values of the def's symbolic sizes, in their order."""
        tensors = {tensor.name: tensor.shape for tensor in self.inputs}
        return {dim: extent for _, dims, name in self.parameters() for dim, extent in zip(dims, tensors.get(name, ()))
                if dim.isidentifier()}

    def scalar_values(self):
        names = [name for _, dims, name in self.parameters() if not dims]
        return dict(zip(names, self.scalars, strict=True))

    @property
    def tolerance(self):
        if self.peak == "tf32":
            return TOLERANCE["half"]
        return self.slack * max(TOLERANCE[tensor.type] for tensor in self.inputs + self.outputs)


def transposed(row):
    """Whether a product's second operand lies by columns."""
    return row.entry == "gemm_fp8" or row.entry.endswith("_nt")


def row(number, name, file, entry, inputs, outputs, reference, **more):
    more.setdefault("bytes", sum(tensor.bytes for tensor in inputs + outputs))
    more.setdefault("family", entry)
    return Row(number, name, file, entry, tuple(inputs), tuple(outputs), reference, **more)


# Products.


def gelu(xp, x):
    return 0.5 * x * (1 + xp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def relu(xp, x):
    return x * (x > 0)


def gemm(number, name, m, n, k, type="half", transposed=False, **more):
    entry = {"half": "gemm_f16", "bfloat16": "gemm_bf16", "float": "gemm_f32"}[type] + ("_nt" if transposed else "")
    second = (n, k) if transposed else (k, n)
    return row(number, name, "products.tc", entry,
               [Tensor("A", (m, k), type), Tensor("B", second, type)], [Tensor("C", (m, n), type)], lambda xp, a, b:
               (a @ (b.T if transposed else b), ),
               **{"flops": 2 * m * n * k, "peak": "float" if type == "float" else "half", "family": "gemm"} | more)


def gemm_tf32(number, name, m, n, k, rounded=False, **more):
    """A product of float32 whose operands may be taken as TF32, as PyTorch's allow_tf32 does; or rounded by the text."""
    how = {"mapping": "tf32: true"}
    if rounded:
        how = {"entry": "gemm_tf32"}
    return dataclasses.replace(gemm(number, name, m, n, k, "float", peak="tf32", family="gemm_tf32", **more), **how)


def gemm_fp8(number, name, m, n, k, fast=False, **more):
    """Sums of parts in float32; `fast`: of all products in the tensor cores, which keep fewer bits. Peers do likewise."""
    if fast:
        more |= {"family": "gemm_fp8_fast", "mapping": "fast_accumulation: true"}
    operands = [Tensor("A", (m, k), "float8_e4m3"), Tensor("B", (n, k), "float8_e4m3")]
    return row(number,
               name,
               "gemm_fp8.tc",
               "gemm_fp8",
               operands, [Tensor("C", (m, n), "half")],
               lambda xp, a, b: (a @ b.T, ),
               flops=2 * m * n * k,
               peak="fp8",
               slack=8,  # tensor cores keep 14 bits of a sum of fp8 products
               **more)


EPILOGUES = {
    "bias": lambda xp, z, bias: z + bias,
    "relu": lambda xp, z: relu(xp, z),
    "bias_relu": lambda xp, z, bias: relu(xp, z + bias),
    "bias_gelu": lambda xp, z, bias: gelu(xp, z + bias),
}


def gemm_epilogue(number, name, m, n, k, epilogue, **more):
    inputs = [Tensor("A", (m, k), "half"), Tensor("B", (k, n), "half", k**-0.5)]
    if "bias" in epilogue:
        inputs.append(Tensor("bias", (n, ), "half"))
    return row(number,
               name,
               "products.tc",
               f"gemm_{epilogue}",
               inputs, [Tensor("C", (m, n), "half")],
               lambda xp, a, b, *bias: (EPILOGUES[epilogue](xp, a @ b, *bias), ),
               flops=2 * m * n * k,
               peak="half",
               **more)


def tbmm(number, name, b, n, m, k, **more):
    return row(number,
               name,
               "products.tc",
               "tbmm", [Tensor("X", (b, n, m)), Tensor("Y", (b, k, m))], [Tensor("Z", (b, n, k))],
               lambda xp, x, y: (xp.einsum("bnm,bkm->bnk", x, y), ),
               flops=2 * b * n * m * k,
               **more)


def einsum(number, name, a, b, c, d, e, f, **more):
    return row(number,
               name,
               "products.tc",
               "einsum_abcd_dbef_acef",
               [Tensor("X", (a, b, c, d), "half"), Tensor("Y",
                                                          (d, b, e, f), "half")], [Tensor("Z", (a, c, e, f), "half")],
               lambda xp, x, y: (xp.einsum("abcd,dbef->acef", x, y), ),
               flops=2 * a * b * c * d * e * f,
               peak="half",
               **more)


def bmm(number, name, b, m, k, n, **more):
    return row(number,
               name,
               "products.tc",
               "bmm_f16", [Tensor("X", (b, m, k), "half"), Tensor("Y", (b, k, n), "half")],
               [Tensor("Z", (b, m, n), "half")],
               lambda xp, x, y: (x @ y, ),
               flops=2 * b * m * n * k,
               peak="half",
               family="bmm",
               **more)


def int8_groups(number, name, m, n, k, **more):

    def reference(xp, x, w, scales):
        return (x @ (w.reshape(n, -1, 128) * scales[:, :, None]).reshape(n, k).T, )

    return row(number,
               name,
               "products.tc",
               "int8_groups", [
                   Tensor("X", (m, k), "half"),
                   Tensor("W", (n, k), "int8"),
                   Tensor("S", (n, k // 128), "half", 1 / 128, uniform=True)
               ], [Tensor("Y", (m, n), "half")],
               reference,
               flops=2 * m * n * k,
               peak="half",
               **more)


def experts(number, name, tokens, experts, k, n, **more):

    def reference(xp, x, w, chosen):
        return (xp.concatenate([x[chosen == expert] @ w[expert] for expert in range(experts)]), )

    return row(number,
               name,
               "products.tc",
               "experts", [
                   Tensor("X", (tokens, k), "bfloat16"),
                   Tensor("W", (experts, k, n), "bfloat16", k**-0.5),
                   Tensor("E", (tokens, ), "int", below=experts, ascending=True)
               ], [Tensor("Y", (tokens, n), "bfloat16")],
               reference,
               flops=2 * tokens * n * k,
               peak="half",
               **more)


def bilinear(number, name, b, i, j, o, **more):
    return row(number,
               name,
               "products.tc",
               "bilinear", [Tensor("X", (b, i)), Tensor("W", (o, i, j)), Tensor("Y", (b, j))], [Tensor("Z", (b, o))],
               lambda xp, x, w, y: (xp.einsum("boj,bj->bo", xp.einsum("bi,oij->boj", x, w), y), ),
               flops=2 * b * o * min(i, j) * (max(i, j) + 1),
               **more)


def covariance(number, name, n, d, **more):

    def reference(xp, x):
        x = x - x.mean(0)
        return (x.T @ x / (n - 1), )

    return row(number,
               name,
               "products.tc",
               "covariance", [Tensor("X", (n, d))], [Tensor("C", (d, d))],
               reference,
               flops=n * d * (d + 1),
               **more)


def bce(number, name, m, n, k, **more):

    def loss(xp, a, b, t):
        z = a @ b
        return ((z * (z > 0) - z * t + xp.log1p(xp.exp(-abs(z)))).mean(), )

    return row(
        number,
        name,
        "products.tc",
        "gemm_bce",
        [Tensor("A", (m, k), "half"),
         Tensor("B", (k, n), "half", k**-0.5),
         Tensor("T", (m, n), "half", uniform=True)], [Tensor("loss", ())],
        loss,
        flops=2 * m * n * k,
        peak="half",
        **more)


# Layers.


def linear(x, w, bias=0):
    return x @ w.T + bias


def mlp1(number, name, b, n, m, **more):
    return row(number,
               name,
               "layers.tc",
               "mlp1", [Tensor("I",
                               (b, m)), Tensor("W1", (n, m), scale=m**-0.5),
                        Tensor("B1", (n, ))], [Tensor("O1", (b, n))],
               lambda xp, x, w, bias: (relu(xp, linear(x, w, bias)), ),
               flops=2 * b * n * m,
               **more)


def mlp3(number, name, b, n, o, p, q, **more):

    def layers(xp, x, w2, b2, w3, b3, w4, b4):
        o2 = relu(xp, linear(x, w2, b2))
        o3 = relu(xp, linear(o2, w3, b3))
        return o2, o3, relu(xp, linear(o3, w4, b4))

    weights = []
    for layer, (rows, columns) in enumerate([(o, n), (p, o), (q, p)], 2):
        weights += [Tensor(f"W{layer}", (rows, columns), scale=columns**-0.5), Tensor(f"B{layer}", (rows, ))]
    return row(number,
               name,
               "layers.tc",
               "mlp3", [Tensor("I", (b, n))] + weights,
               [Tensor("O2", (b, o)), Tensor("O3",
                                             (b, p)), Tensor("O4", (b, q))],
               layers,
               flops=2 * b * (n * o + o * p + p * q),
               **more)


def chain_text(layers):
    """The chain as a program: one pair of statements for each layer, whose weights are one tensor."""
    lines = ["def chain(half(B,N) X0, half(L,N,N) W, half(L,N) bias) -> (half(B,N) Y) {"]
    for i in range(layers):
        result = "Y" if i == layers - 1 else f"half X{i + 1}"
        lines.append(f"  float S{i}(b,n) +=! X{i}(b,k) * W({i},n,k)")
        lines.append(f"  {result}(b,n) = half(relu(S{i}(b,n) + bias({i},n)))")
    return "\n".join(lines + ["}", ""])


def chain(number, name, rows, width, layers, **more):

    def reference(xp, x, w, bias):
        for i in range(layers):
            x = relu(xp, linear(x, w[i], bias[i]))
        return (x, )

    return row(number,
               name,
               "",
               "chain", [
                   Tensor("X0", (rows, width), "half"),
                   Tensor("W", (layers, width, width), "half", width**-0.5),
                   Tensor("bias", (layers, width), "half")
               ], [Tensor("Y", (rows, width), "half")],
               reference,
               flops=2 * rows * width * width * layers,
               peak="half",
               text=chain_text(layers),
               **more)


def gpt_mlp(number, name, b, d, f, **more):
    return row(
        number,
        name,
        "layers.tc",
        "gpt_mlp",
        [Tensor("X", (b, d), "half"),
         Tensor("W1", (f, d), "half", d**-0.5),
         Tensor("W2", (d, f), "half", f**-0.5)], [Tensor("Y", (b, d), "half")],
        lambda xp, x, w1, w2: (linear(gelu(xp, linear(x, w1)), w2), ),
        flops=4 * b * d * f,
        peak="half",
        **more)


def llama_mlp(number, name, b, d, f, **more):

    def layers(xp, x, w1, w3, w2):
        gate = linear(x, w1)
        return (linear(gate / (1 + xp.exp(-gate)) * linear(x, w3), w2), )

    return row(number,
               name,
               "layers.tc",
               "llama_mlp", [
                   Tensor("X", (b, d), "half"),
                   Tensor("W1", (f, d), "half", d**-0.5),
                   Tensor("W3", (f, d), "half", d**-0.5),
                   Tensor("W2", (d, f), "half", f**-0.5)
               ], [Tensor("Y", (b, d), "half")],
               layers,
               flops=6 * b * d * f,
               peak="half",
               **more)


def lstm_like(number, name, m, n, k, **more):
    return row(number,
               name,
               "layers.tc",
               "lstm_like", [
                   Tensor("X", (m, k), "half"),
                   Tensor("H", (m, k), "half"),
                   Tensor("W", (n, k), "half", k**-0.5),
                   Tensor("U", (n, k), "half", k**-0.5),
                   Tensor("bias", (n, ), "half")
               ], [Tensor("Y", (m, n), "half")],
               lambda xp, x, h, w, u, bias: (relu(xp,
                                                  linear(x, w) + linear(h, u) + bias), ),
               flops=4 * m * n * k,
               peak="half",
               **more)


# Whole rows.


def softmax_reference(xp, x, axis):
    e = xp.exp(x - xp.amax(x, axis, keepdims=True))
    return (e / e.sum(axis, keepdims=True), )


def softmax(number, name, n, d, axis=1, type="half", **more):
    entry = "softmax_first" if axis == 0 else "softmax" if type == "half" else "softmax_f32"
    return row(number,
               name,
               "rows.tc",
               entry, [Tensor("I", (n, d), type)], [Tensor("O", (n, d), type)],
               lambda xp, x: softmax_reference(xp, x, axis),
               family="softmax",
               facts={"axis": axis},
               **more)


def log_softmax_at(number, name, n, d, **more):

    def reference(xp, x, label):
        x = x - xp.amax(x, 1, keepdims=True)
        return (x[xp.arange(n), label] - xp.log(xp.exp(x).sum(1)), )

    return row(number,
               name,
               "rows.tc",
               "log_softmax_at", [Tensor("I", (n, d), "half"), Tensor("label", (n, ), "int", below=d)],
               [Tensor("O", (n, ), "half")],
               reference,
               **more)


def layernorm(number, name, n, d, type="half", **more):

    def reference(xp, x, gamma, beta):
        centred = x - x.mean(1, keepdims=True)
        return (centred / xp.sqrt((centred * centred).mean(1, keepdims=True) + 1e-5) * gamma + beta, )

    entry = "layernorm" if type == "half" else "layernorm_f32"
    return row(
        number,
        name,
        "rows.tc",
        entry,
        [Tensor("I",
                (n, d), type), Tensor("gamma", (d, ), type),
         Tensor("beta", (d, ), type)], [Tensor("O", (n, d), type)],
        reference,
        scalars=(1e-5, ),
        family="layernorm",
        **more)


def rmsnorm(number, name, n, d, **more):
    return row(number,
               name,
               "rows.tc",
               "rmsnorm", [Tensor("I", (n, d), "half"), Tensor("gamma", (d, ), "half")], [Tensor("O", (n, d), "half")],
               lambda xp, x, gamma: (x / xp.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * gamma, ),
               scalars=(1e-5, ),
               **more)


def attention(number, name, b, h, n, d, causal=False, **more):

    def reference(xp, q, k, v):
        s = xp.einsum("bhnd,bhmd->bhnm", q, k) / math.sqrt(d)
        if causal:
            s = s + xp.triu(xp.full((n, n), -1e30), 1) if xp.__name__ == "numpy" else s + xp.triu(
                xp.full((n, n), -1e30, dtype=s.dtype, device=s.device), 1)
        return (xp.einsum("bhnm,bhme->bhne", softmax_reference(xp, s, 3)[0], v), )

    heads = [Tensor(tensor, (b, h, n, d), "half") for tensor in "QKV"]
    return row(number,
               name,
               "rows.tc",
               "causal_attention" if causal else "attention",
               heads, [Tensor("O", (b, h, n, d), "half")],
               reference,
               flops=4 * b * h * n * n * d / (2 if causal else 1),
               peak="half",
               family="attention",
               facts={"causal": causal},
               slack=2 if causal else 1,  # the first rows average few values, which may cancel
               **more)


# Images.


def windows(x, kh, kw, height, width, stride):
    return ((i, j, x[..., i:i + stride * height:stride, j:j + stride * width:stride]) for i in range(kh)
            for j in range(kw))


def convolve(xp, spec, x, w, height, width, stride=1):
    """Sums einsums of `spec` over the window; both operands' last two dimensions are its."""
    kh, kw = w.shape[-2:]
    return sum(
        xp.einsum(spec, part, w[..., i, j]) for i, j, part in windows(x, kh, kw, height, width, stride))


def padded(xp, x, border):
    """With zeros around the last two dimensions."""
    zeros = xp.zeros_like(x[:, :, :border, :])
    x = xp.concatenate([zeros, x, zeros], 2)
    zeros = xp.zeros_like(x[:, :, :, :border])
    return xp.concatenate([zeros, x, zeros], 3)


def group_convolution(number, name, n, g, c, size, **more):
    out = size - 2

    def reference(xp, x, w, bias):
        return (convolve(xp, "ngchw,gfc->ngfhw", x, w, out, out) + bias[None, :, :, None, None], )

    return row(number,
               name,
               "images.tc",
               "group_convolution",
               [Tensor("I", (n, g, c, size, size)),
                Tensor("W1", (g, c, c, 3, 3)),
                Tensor("B", (g, c))], [Tensor("O", (n, g, c, out, out))],
               reference,
               flops=2 * n * g * c * c * 9 * out**2,
               **more)


def depthwise(number, name, n, c, size, nhwc=False, **more):
    out = size - 2

    def reference(xp, x, w):
        if nhwc:
            return (sum(x[:, i:i + out, j:j + out] * w[:, i, j] for i in range(3) for j in range(3)), )
        return (convolve(xp, "nchw,c->nchw", x, w, out, out), )

    image = (lambda edge: (n, edge, edge, c)) if nhwc else (lambda edge: (n, c, edge, edge))
    return row(number,
               name,
               "images.tc",
               "depthwise_nhwc" if nhwc else "depthwise",
               [Tensor("I", image(size)), Tensor("W1", (c, 3, 3))], [Tensor("O", image(out))],
               reference,
               flops=2 * n * c * 9 * out**2,
               **more)


def conv3x3(number, name, n, c, f, size, **more):
    out = size - 2
    return row(number,
               name,
               "images.tc",
               "conv3x3", [Tensor("x", (n, c, size, size)), Tensor("w", (f, c, 3, 3))], [Tensor("y", (n, f, out, out))],
               lambda xp, x, w: (convolve(xp, "nchw,fc->nfhw", x, w, out, out), ),
               flops=2 * n * c * f * 9 * out**2,
               **more)


def convolution(number, name, n, c, f, size, kernel, nhwc=False, **more):
    stride = 2 if kernel == 7 else 1
    out = size // stride

    def reference(xp, x, w):
        x, w = (xp.moveaxis(a, 3, 1) if nhwc else a for a in (x, w))
        y = convolve(xp, "nchw,fc->nfhw", padded(xp, x, kernel // 2), w, out, out, stride)
        return (xp.moveaxis(y, 1, 3) if nhwc else y, )

    def laid(images, channels, edge):
        return (images, edge, edge, channels) if nhwc else (images, channels, edge, edge)

    layout = "nhwc" if nhwc else "nchw"
    weights = Tensor("W1", laid(f, c, kernel), "half", (c * kernel**2)**-0.5)
    return row(number,
               name,
               "images.tc",
               f"conv{kernel}x{kernel}_{layout}", [Tensor("I", laid(n, c, size), "half"), weights],
               [Tensor("O", laid(n, f, out), "half")],
               reference,
               flops=2 * n * c * f * kernel**2 * out**2,
               peak="half",
               family=f"convolution_{layout}",
               facts={"stride": stride, "border": kernel // 2},
               **more)


def conv_pair(number, name, n, c, size, **more):

    def reference(xp, x, w1, w2):
        for w, last in ((w1, False), (w2, True)):
            x = convolve(xp, "nchw,fc->nfhw", padded(xp, x, 1), w, size, size)
            x = x if last else relu(xp, x)
        return (x, )

    weights = [Tensor(tensor, (c, c, 3, 3), "half", (9 * c)**-0.5) for tensor in ("W1", "W2")]
    return row(number,
               name,
               "images.tc",
               "conv_pair", [Tensor("I", (n, c, size, size), "half")] + weights,
               [Tensor("O", (n, c, size, size), "half")],
               reference,
               flops=4 * n * c * c * 9 * size**2,
               peak="half",
               **more)


def batchnorm(number, name, n, c, size, **more):

    def reference(xp, x, gamma, beta):

        def wide(per_channel):
            return per_channel[None, :, None, None]

        mean = x.mean((0, 2, 3))
        var = ((x - wide(mean))**2).mean((0, 2, 3))
        return (x - wide(mean)) / xp.sqrt(wide(var) + 1e-5) * wide(gamma) + wide(beta), mean, var

    image = (n, c, size, size)
    return row(number,
               name,
               "images.tc",
               "batchnorm",
               [Tensor("I", image), Tensor("gamma",
                                           (c, )), Tensor("beta", (c, ))],
               [Tensor("O", image), Tensor("mean",
                                           (c, )), Tensor("var", (c, ))],
               reference,
               scalars=(1e-5, ),
               bytes=3 * 4 * math.prod(image),
               **more)


# Memory.


def lut(number, name, tables, entries, batch, looks, width=64, **more):
    inputs, outputs = [], []
    for i in range(1, tables + 1):
        suffix = str(i) if tables > 1 else ""
        inputs += [Tensor("LUT" + suffix, (entries, width)), Tensor("I" + suffix, (batch, looks), "int", below=entries)]
        outputs.append(Tensor("O" + suffix, (batch, width)))

    def reference(xp, *inputs):
        return tuple(inputs[i][inputs[i + 1]].sum(1) for i in range(0, len(inputs), 2))

    return row(number,
               name,
               "memory.tc",
               "two_lut" if tables == 2 else "lut",
               inputs,
               outputs,
               reference,
               bytes=tables * batch * looks * width * 4,
               **more)


def moments(number, name, n, k, **more):

    def reference(xp, x):
        mean = x.mean(1)
        return mean, ((x - mean[:, None])**2).mean(1)

    return row(number, name, "memory.tc", "moments", [Tensor("I", (n, k))],
               [Tensor("mean", (n, )), Tensor("var", (n, ))], reference, **more)


def transpose(number, name, m, n, **more):
    return row(number, name, "memory.tc", "transpose", [Tensor("A", (m, n))], [Tensor("B", (n, m))], lambda xp, a:
               (a.T, ), **more)


def window_sum(number, name, n, **more):
    return row(number, name, "memory.tc", "window_sum", [Tensor("A", (n, ))], [Tensor("B", (n - 2, ))], lambda xp, a:
               (a[:-2] + a[1:-1] + a[2:], ), **more)


def blur(number, name, size, **more):

    def reference(xp, x):
        rows = (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) / 3
        return ((rows[:-2] + rows[1:-1] + rows[2:]) / 3, )

    return row(number, name, "memory.tc", "blur", [Tensor("I", (size, size))], [Tensor("O", (size - 2, size - 2))],
               reference, **more)


def rotary(number, name, b, t, h, d, halves=False, **more):

    def reference(xp, x, cosine, sine):
        low, high = x[..., :d // 2], x[..., d // 2:]
        cosine, sine = cosine[:, None], sine[:, None]
        return (xp.concatenate([low * cosine - high * sine, high * cosine + low * sine], 3), )

    return row(number,
               name,
               "memory.tc",
               "rotary_halves" if halves else "rotary", [
                   Tensor("X", (b, t, h, d), "half"),
                   Tensor("cosine", (t, d // 2), "half"),
                   Tensor("sine", (t, d // 2), "half")
               ], [Tensor("Y", (b, t, h, d), "half")],
               reference,
               family="rotary",
               **more)


def copy(number, name, n, **more):
    return row(number, name, "memory.tc", "copy", [Tensor("A", (n, ))], [Tensor("B", (n, ))], lambda xp, a: (a, ),
               **more)


@dataclasses.dataclass(frozen=True)
class Entry:
    """A line of the board: how to make it as it is measured, and how to make it small."""

    make: Callable[..., Row]
    number: str
    name: str
    sizes: dict
    small: dict
    goal: tuple = ()
    device: str = "cuda"

    def row(self, small=False) -> Row:
        sizes = self.sizes | (self.small if small else {})
        return self.make(self.number, self.name, **sizes, goal=self.goal)
