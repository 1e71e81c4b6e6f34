"""Which workloads at which sizes stand on the board, and what is asked of them. `small` are sizes for tests."""
import workloads as w
from workloads import Entry

LEAST_1, LEAST_3 = ("ratio", 1.0), ("ratio", 3.0)
GEMM = dict(m=7, n=10, k=12)


def square(size):
    return dict(m=size, n=size, k=size)


def mnk(m, n, k):
    return dict(m=m, n=n, k=k)


def products():
    rows = [Entry(w.gemm, "1", f"gemm f16 {s}³", square(s), GEMM, LEAST_1) for s in (8192, 4096, 2048)]
    odd = [(4095, 4095, 4095), (4104, 4104, 4104), (1000, 1000, 1000), (333, 777, 555), (2048, 96, 4096),
           (16384, 64, 4096), (128, 8192, 8192), (64, 12288, 4096), (5000, 3000, 200)]
    rows += [
        Entry(w.gemm, "1b", "gemm f16 " + "×".join(map(str, s)), mnk(*s), GEMM, LEAST_3 if s[0] == 4095 else LEAST_1)
        for s in odd
    ]
    rows += [Entry(w.gemm_tf32, "1c", f"gemm TF32 {s}³", square(s), GEMM, LEAST_1) for s in (4096, 8192)]
    rows += [
        Entry(w.gemm_tf32, "1c", "gemm TF32 rounded 4096³",
              square(4096) | {"rounded": True}, GEMM, LEAST_1),
        Entry(w.gemm_fp8, "1c", "gemm fp8 e4m3 8192³", square(8192), mnk(16, 16, 32), LEAST_1),
        Entry(w.gemm_fp8, "1c", "gemm fp8 e4m3 fast sums 8192³",
              square(8192) | {"fast": True},
              mnk(16, 16, 32) | {"fast": True}, LEAST_1),
        Entry(w.gemm, "1c", "gemm bf16 4096³",
              square(4096) | {"type": "bfloat16"}, GEMM, LEAST_1),
        Entry(w.gemm, "2", "gemm f16 1024³", square(1024), GEMM, ("us", 5.0)),
        Entry(w.gemm, "2", "tmm f16 128×1024×1024",
              mnk(128, 1024, 1024) | {"transposed": True}, GEMM, ("us", 3.0))
    ]
    rows += [
        Entry(w.gemm_epilogue, "3", f"gemm f16 5376×5376×2048 + {name}",
              mnk(5376, 5376, 2048) | {"epilogue": name.replace("+", "_")}, GEMM, LEAST_1)
        for name in ("bias", "relu", "bias+relu", "bias+gelu")
    ]
    rows += [
        Entry(w.gemm, "4", f"tmm f32 {m}×{k}×{n}",
              mnk(m, n, k) | {"type": "float", "transposed": True}, GEMM, ("us", goal))
        for m, k, n, goal in ((128, 32, 256, 2.2), (128, 1024, 1024, 8), (128, 4096, 16384, 335))
    ]
    return rows + [
        Entry(w.gemm, "5", "gemm f32 1024³",
              square(1024) | {"type": "float"}, GEMM, ("us", 50)),
        Entry(w.tbmm, "6", "tbmm f32 500×26×72×26", dict(b=500, n=26, m=72, k=26), dict(b=3, n=5, m=7, k=4), ("us", 4))
    ]


def images():
    rows = [
        Entry(w.group_convolution, "7", f"group conv f32 C=F={c} H=W={s}", dict(n=32, g=32, c=c, size=s),
              dict(n=2, g=3, c=2, size=7), LEAST_3) for c, s in ((4, 56), (8, 28), (16, 14), (32, 7))
    ]
    return rows + [
        Entry(w.depthwise, "8", "depthwise f32 NCHW", dict(n=32, c=256, size=56), dict(n=2, c=5, size=9), ("us", 80)),
        Entry(w.depthwise, "8", "depthwise f32 NHWC", dict(n=32, c=256, size=56, nhwc=True), dict(n=2, c=5, size=9),
              ("us", 60))
    ]


def layers():
    rows = [
        Entry(w.lut, "9", "2LUT batch 128", dict(tables=2, entries=10_000_000, batch=128, looks=50),
              dict(entries=50, batch=4, looks=6), ("us", 6)),
        Entry(w.lut, "9", "LUT batch 65536", dict(tables=1, entries=10_000_000, batch=65536, looks=50),
              dict(entries=50, batch=4, looks=6), ("us", 250)),
        Entry(w.gemm, "10", "C3 f32 128×1024×1000",
              mnk(128, 1000, 1024) | {"type": "float", "transposed": True}, GEMM, ("us", 8)),
        Entry(w.mlp1, "10", "MLP1 f32 128×2000×128", dict(b=128, n=128, m=2000), dict(b=5, n=6, m=9), ("us", 6)),
        Entry(w.mlp3, "10", "MLP3 f32 128-128-64-32-2", dict(b=128, n=128, o=64, p=32, q=2), dict(b=5, n=9, o=7, p=6),
              ("us", 5))
    ]
    rows += [
        Entry(w.chain, "11", f"MLP chain f16 4096×128, {n} layer{'s'[:n > 1]}", dict(rows=4096, width=128, layers=n),
              dict(rows=5, width=8, layers=min(n, 3)), ("us", 25) if n == 20 else LEAST_1) for n in (1, 4, 10, 20)
    ]
    rows += [
        Entry(w.gpt_mlp, "12", f"GPT-3 MLP f16, {b} row{'s'[:b > 1]}", dict(b=b, d=12288, f=6144),
              dict(b=3, d=12, f=10), ("us", 230) if b == 512 else LEAST_1) for b in (1, 256, 512, 2048)
    ]
    rows += [
        Entry(w.llama_mlp, "13", f"LLaMA MLP f16, {b} row{'s'[:b > 1]}", dict(b=b, d=8192, f=2816), dict(b=3,
                                                                                                         d=12,
                                                                                                         f=10),
              ("ratio", 1.1)) for b in (1, 256, 2048)
    ]
    return rows + [
        Entry(w.lstm_like, "14", "LSTM-like cell f16 4096×1024×1024", mnk(4096, 1024, 1024), GEMM, ("us", 30)),
        Entry(w.bce, "15", "BCE of a gemm f16 4096×8192×1024", mnk(4096, 8192, 1024), GEMM, ("us", 125))
    ]


def whole_rows():
    small = dict(n=6, d=11)
    rows = [
        Entry(w.softmax, "16", "softmax f16 32768×4096", dict(n=32768, d=4096), small, ("us", 140)),
        Entry(w.softmax, "16", "softmax f16 4096×4096", dict(n=4096, d=4096), small, ("us", 20)),
        Entry(w.softmax, "16", "softmax f16 32768×4096, first dimension", dict(n=32768, d=4096, axis=0), small,
              ("us", 200)),
        Entry(w.softmax, "16b", "softmax f16 4096×50257", dict(n=4096, d=50257), small, ("us", 215)),
        Entry(w.log_softmax_at, "16b", "log-softmax f16 4096×50257 at labels", dict(n=4096, d=50257), small, LEAST_1)
    ]
    rows += [
        Entry(w.layernorm, "17", f"layernorm f16 {n}×{d}", dict(n=n, d=d), small, LEAST_1)
        for n, d in ((32768, 4096), (12288, 1024), (4096, 1024))
    ]
    rows += [
        Entry(w.rmsnorm, "17", f"rmsnorm f16 {n}×{d}", dict(n=n, d=d), small, LEAST_1)
        for n, d in ((32768, 4096), (4096, 4096))
    ]
    rows += [
        Entry(w.attention, "18", f"{'causal ' if causal else ''}attention f16 {b}×{h}×{n}×{d}",
              dict(b=b, h=h, n=n, d=d, causal=causal), dict(b=2, h=2, n=7, d=8), LEAST_1)
        for b, h, n, d, causal in ((32, 16, 384, 64, False), (4, 16, 4096, 128, False), (4, 16, 4096, 128, True))
    ]
    return rows


def last():
    rows = [
        Entry(w.conv_pair, "19", f"conv pair f16 {n}×{c}×{s}²", dict(n=n, c=c, size=s), dict(n=1, c=3, size=6),
              ("ratio", 1.3)) for n, c, s in ((1, 64, 56), (4, 128, 28), (8, 256, 14), (16, 512, 7))
    ]
    return rows + [
        Entry(w.einsum, "19b", "einsum f16 abcd,dbef→acef", dict(a=64, b=32, c=32, d=64, e=32, f=64),
              dict(a=3, b=4, c=5, d=6, e=2, f=7), ("us", 38)),
        Entry(w.batchnorm, "20", "batchnorm f32 32×256×56²", dict(n=32, c=256, size=56), dict(n=3, c=4, size=5),
              ("us", 80)),
        Entry(w.moments, "20", "moments f32 64×10⁶", dict(n=64, k=1_000_000), dict(n=3, k=50), ("us", 64)),
        Entry(w.transpose, "20", "transpose f32 8192²", dict(m=8192, n=8192), dict(m=6, n=9), ("us", 129)),
        Entry(w.window_sum, "20", "window sum f32 10⁸", dict(n=100_000_000), dict(n=20), ("us", 190)),
        Entry(w.copy, "20", "copy f32 10⁸", dict(n=100_000_000), dict(n=20), ("us", 190))
    ]


def convolutions():
    sizes = [(3, c, c, s) for c, s in ((64, 56), (128, 28), (256, 14), (512, 7))] + [(1, 256, 64, 56), (7, 3, 64, 224)]
    return [
        Entry(w.convolution, "21", f"conv {k}×{k} f16 {'NHWC' if nhwc else 'NCHW'} 32×{c}×{s}² → {f}",
              dict(n=32, c=c, f=f, size=s, kernel=k, nhwc=nhwc), dict(n=2, c=3, f=4, size=8),
              ("ratio", 1.5 if not nhwc else 2.0 if k == 7 else 1.1)) for nhwc in (True, False) for k, c, f, s in sizes
    ]


def batches_and_weights():
    rows = [
        Entry(w.bmm, "22", f"bmm f16 {b} × ({m}×{k}×{n})", dict(b=b, m=m, k=k, n=n), dict(b=3, m=7, k=12, n=10),
              ("ratio", 1.05)) for b, m, k, n in ((512, 512, 64, 512), (64, 128, 2048, 128), (4096, 64, 64, 64))
    ]
    rows += [
        Entry(w.int8_groups, "23", f"int8 weights f16 8192×8192, {m} row{'s'[:m > 1]}", mnk(m, 8192, 8192),
              mnk(3, 10, 256), ("us", goal)) for m, goal in ((1, 20), (16, 21), (256, 52))
    ]
    return rows + [
        Entry(w.experts, "24", "64 experts bf16, 4096 tokens, 2048→1408", dict(tokens=4096, experts=64, k=2048, n=1408),
              dict(tokens=12, experts=4, k=16, n=8), ("us", 125))
    ]


def several_statements_and_factors():
    turned, small = dict(b=8, t=2048, h=32, d=128), dict(b=2, t=3, h=2, d=8)
    return [
        Entry(w.blur, "25", "separable blur 3×3 f32 8192²", dict(size=8192), dict(size=9), ("ratio", 1.2)),
        Entry(w.rotary, "25", "rotary embedding f16 8×2048×32×128 by ?:", turned, small, LEAST_1),
        Entry(w.rotary, "25", "rotary embedding f16 8×2048×32×128 by halves",
              turned | {"halves": True}, small, LEAST_1),
        Entry(w.bilinear, "26", "bilinear f32 512×64×64→32", dict(b=512, i=64, j=64, o=32), dict(b=6, i=5, j=7, o=4),
              LEAST_1),
        Entry(w.covariance, "26", "covariance f32 100000×64", dict(n=100_000, d=64), dict(n=50, d=6), LEAST_1)
    ]


GPU = (products() + images() + layers() + whole_rows() + last() + convolutions() + batches_and_weights() +
       several_statements_and_factors())

FLOAT = {"type": "float"}
CPU = [
    Entry(w.gemm, "C1", "sgemm 1024³",
          square(1024) | FLOAT, GEMM, ("ratio", 0.7), "cpu"),
    Entry(w.gemm, "C1", "sgemm 1024³, second operand by columns",
          square(1024) | FLOAT | {"transposed": True}, GEMM, ("ratio", 0.7), "cpu"),
    Entry(w.softmax, "C2", "softmax f32 4096×1024",
          dict(n=4096, d=1024) | FLOAT, dict(n=6, d=11), LEAST_1, "cpu"),
    Entry(w.softmax, "C2", "softmax f32 128×100",
          dict(n=128, d=100) | FLOAT, dict(n=6, d=11), LEAST_1, "cpu"),
    Entry(w.layernorm, "C3", "layernorm f32 4096×1024",
          dict(n=4096, d=1024) | FLOAT, dict(n=6, d=11), LEAST_1, "cpu"),
    Entry(w.layernorm, "C3", "layernorm f32 128×768",
          dict(n=128, d=768) | FLOAT, dict(n=6, d=11), LEAST_1, "cpu"),
    Entry(w.mlp3, "C4", "MLP3 f32 128: 784-128-64-10", dict(b=128, n=784, o=128, p=64, q=10), dict(b=5, n=9, o=7, p=6),
          LEAST_1, "cpu"),
    Entry(w.mlp3, "C4", "MLP3 f32 1024: 512-512-256-64", dict(b=1024, n=512, o=512, p=256, q=64),
          dict(b=5, n=9, o=7, p=6), LEAST_1, "cpu"),
    Entry(w.conv3x3, "C5", "conv 3×3 f32 8×64×58² → 64", dict(n=8, c=64, f=64, size=58), dict(n=2, c=3, f=4, size=7),
          ("ratio", 0.5), "cpu"),
    Entry(w.conv3x3, "C5", "conv 3×3 f32 1×128×30² → 128", dict(n=1, c=128, f=128, size=30),
          dict(n=2, c=3, f=4, size=7), ("ratio", 0.5), "cpu"),
]
