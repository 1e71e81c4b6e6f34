"""What users of PyTorch, cuBLASLt, cuDNN, FlashAttention, Triton, CuPy and OpenBLAS would run in a row's place.

A peer is a name and a function prepare(row, sets), sets being lists of PyTorch's tensors, that returns launch(i): it
runs on set i and gives the results, of which the first are the row's. It raises Missing where it cannot take part.
"""
import functools

import torch
import torch.nn.functional as F

import openblas
from cublaslt import EPILOGUES, CublasLt, Missing
from workloads import transposed

COMPILE_MODE = "max-autotune-no-cudagraphs"


def gelu(x):
    return F.gelu(x, approximate="tanh")


def group_convolution(x, w, bias):
    y = F.conv2d(x.flatten(1, 2), w.flatten(0, 1), bias.flatten(), groups=w.shape[0])
    return y.unflatten(1, w.shape[:2])


def depthwise(x, w):
    return F.conv2d(x, w.unsqueeze(1), groups=w.shape[0])


def depthwise_nhwc(x, w):
    return depthwise(x.permute(0, 3, 1, 2), w).permute(0, 2, 3, 1)


def convolution(row):
    """PyTorch numbers the dimensions of NHWC as NCHW too; the strides say how an image lies."""
    settings = {"stride": row.facts["stride"], "padding": row.facts["border"]}
    if row.family == "convolution_nchw":
        return lambda x, w: F.conv2d(x, w, **settings)
    return lambda x, w: F.conv2d(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), **settings).permute(0, 2, 3, 1)


def conv_pair(x, w1, w2):
    return F.conv2d(F.relu(F.conv2d(x, w1, padding=1)), w2, padding=1)


def lookup(table, indices):
    return F.embedding_bag(indices, table, mode="sum")


def mlp3(x, w2, b2, w3, b3, w4, b4):
    y = F.relu(F.linear(x, w2, b2))
    z = F.relu(F.linear(y, w3, b3))
    return y, z, F.relu(F.linear(z, w4, b4))


def chain(x, w, bias):
    for i in range(w.shape[0]):
        x = F.relu(F.linear(x, w[i], bias[i]))
    return x


def moments(x):
    var, mean = torch.var_mean(x, 1, correction=0)
    return mean, var


def covariance(x):
    """torch.cov waits for the device, so a graph cannot capture it."""
    x = x - x.mean(0)
    return x.t() @ x / (x.shape[0] - 1)


def blur(x):
    x = (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) / 3
    return (x[:-2] + x[1:-1] + x[2:]) / 3


def rotary(x, cosine, sine):
    low, high = x.chunk(2, 3)
    cosine, sine = cosine[:, None], sine[:, None]
    return torch.cat([low * cosine - high * sine, high * cosine + low * sine], 3)


def dequantised(w, scales):
    return (w.unflatten(1, (scales.shape[1], -1)) * scales[:, :, None]).flatten(1)


def ends_of_groups(chosen, experts):
    return torch.searchsorted(chosen, torch.arange(experts, device=chosen.device, dtype=chosen.dtype), right=True,
                              out_int32=True)


def grouped_mm(x, w, ends):
    if not hasattr(torch, "_grouped_mm"):
        raise Missing("this PyTorch has no _grouped_mm")
    return torch._grouped_mm(x, w, offs=ends)


def scaled_mm(a, b, fast=False):
    one = torch.ones((), device=a.device)
    return torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.float16, use_fast_accum=fast)


FUNCTIONS = {
    "gemm_tf32": lambda a, b: a @ b,
    "gemm_fp8": scaled_mm,
    "gemm_fp8_fast": lambda a, b: scaled_mm(a, b, fast=True),
    "gemm_bias": lambda a, b, bias: torch.addmm(bias, a, b),
    "gemm_relu": lambda a, b: F.relu(a @ b),
    "gemm_bias_relu": lambda a, b, bias: F.relu(torch.addmm(bias, a, b)),
    "gemm_bias_gelu": lambda a, b, bias: gelu(torch.addmm(bias, a, b)),
    "gemm_bce": lambda a, b, t: F.binary_cross_entropy_with_logits((a @ b).float(), t.float()),
    "einsum_abcd_dbef_acef": lambda x, y: torch.einsum("abcd,dbef->acef", x, y),
    "bmm": torch.bmm,
    "int8_groups": lambda x, w, scales: F.linear(x, dequantised(w, scales)),
    "experts": lambda x, w, chosen: grouped_mm(x, w, ends_of_groups(chosen, w.shape[0])),
    "bilinear": lambda x, w, y: torch.einsum("bi,oij,bj->bo", x, w, y),
    "covariance": covariance,
    "tbmm": lambda x, y: torch.bmm(x, y.transpose(1, 2)),
    "mlp1": lambda x, w, bias: F.relu(F.linear(x, w, bias)),
    "mlp3": mlp3,
    "chain": chain,
    "gpt_mlp": lambda x, w1, w2: F.linear(gelu(F.linear(x, w1)), w2),
    "llama_mlp": lambda x, w1, w3, w2: F.linear(F.silu(F.linear(x, w1)) * F.linear(x, w3), w2),
    "lstm_like": lambda x, h, w, u, bias: F.relu(torch.addmm(F.linear(x, w, bias), h, u.t())),
    "log_softmax_at": lambda x, label: torch.log_softmax(x, 1).gather(1, label.long()[:, None])[:, 0],
    "layernorm": lambda x, gamma, beta: F.layer_norm(x, x.shape[1:], gamma, beta),
    "rmsnorm": lambda x, gamma: F.rms_norm(x, x.shape[1:], gamma, 1e-5),
    "group_convolution": group_convolution,
    "depthwise": depthwise,
    "depthwise_nhwc": depthwise_nhwc,
    "conv3x3": lambda x, w: F.conv2d(x, w),
    "conv_pair": conv_pair,
    "batchnorm": lambda x, gamma, beta: torch.native_batch_norm(x, gamma, beta, None, None, True, 0.1, 1e-5),
    "lut": lookup,
    "two_lut": lambda a, i, b, j: (lookup(a, i), lookup(b, j)),
    "moments": moments,
    "transpose": lambda a: a.t().contiguous(),
    "window_sum": lambda a: a[:-2] + a[1:-1] + a[2:],
    "blur": blur,
    "rotary": rotary,
    "copy": torch.clone,
}

# Calls of PyTorch's that compute all of a row, by its family: a peer's name, and the call.
CALLS = {
    "bilinear": ("bilinear", lambda x, w, y: F.bilinear(x, y, w)),
    "blur": ("avg_pool2d", lambda x: F.avg_pool2d(x[None], 3, 1)[0]),
}


def function_of(row):
    """PyTorch's program for a row."""
    if row.family == "gemm":
        return (lambda a, b: a @ b.t()) if transposed(row) else (lambda a, b: a @ b)
    if row.family.startswith("convolution_"):
        return convolution(row)
    if row.family == "softmax":
        return lambda x: torch.softmax(x, row.facts["axis"])
    if row.family == "attention":
        return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=row.facts["causal"])
    return FUNCTIONS[row.family]


def over(function, sets):
    return lambda i: function(*sets[i])


def eager(row, sets):
    return over(function_of(row), sets)


def compiled(row, sets):
    torch._dynamo.reset()
    function = torch.compile(function_of(row), mode=COMPILE_MODE, dynamic=False)
    function(*sets[0])
    return over(function, sets)


@functools.cache
def cublaslt():
    return CublasLt(torch)


def cublaslt_best(row, sets):
    epilogue = row.family.removeprefix("gemm_")
    epilogue = epilogue if epilogue in EPILOGUES else ""
    calls, algorithm = [], None
    for a, b, *bias in sets:
        call, algorithm = cublaslt().product(a, b, transposed(row), epilogue, bias[0] if bias else None,
                                             row.peak == "tf32", torch.float16 if row.peak == "fp8" else None,
                                             row.family == "gemm_fp8_fast", algorithm)
        calls.append(call)
    return lambda i: calls[i]()


def addmm_activation(row, sets):
    if row.family == "chain":

        def layers(x, w, bias):
            for i in range(w.shape[0]):
                x = torch._addmm_activation(bias[i], x, w[i].t())
            return x

        return over(layers, sets)
    if row.family == "mlp1":
        return over(lambda x, w, bias: torch._addmm_activation(bias, x, w.t()), sets)
    use_gelu = row.family == "gemm_bias_gelu"
    return over(lambda a, b, bias: torch._addmm_activation(bias, a, b, use_gelu=use_gelu), sets)


def channels_last(row, sets):
    """The same with images and weights by channels, which is not timed."""
    last = {"memory_format": torch.channels_last}
    if row.family == "group_convolution":
        flat = [(x.flatten(1, 2).contiguous(**last), w.flatten(0, 1).contiguous(**last), b.flatten())
                for x, w, b in sets]
        groups = sets[0][1].shape[0]
        return over(lambda x, w, b: F.conv2d(x, w, b, groups=groups).unflatten(1, (groups, -1)), flat)
    if row.family == "depthwise":
        return over(depthwise, [(x.contiguous(**last), w) for x, w in sets])
    return over(function_of(row), [[tensor.contiguous(**last) for tensor in tensors] for tensors in sets])


def dequantised_before(row, sets):
    """A plain product; the weights become float16 before, which is not timed."""
    return over(F.linear, [(x, dequantised(w, scales)) for x, w, scales in sets])


def grouped_before(row, sets):
    """The groups' ends are known before, which is not timed."""
    return over(grouped_mm, [(x, w, ends_of_groups(chosen, w.shape[0])) for x, w, chosen in sets])


def pinned_attention(backend):

    def prepare(row, sets):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        chosen, function = getattr(SDPBackend, backend), function_of(row)

        def attend(q, k, v):
            with sdpa_kernel(chosen):
                return function(q, k, v)

        return over(attend, sets)

    return prepare


def triton_kernel(row, sets):
    try:
        import triton_kernels
    except ImportError as fault:
        raise Missing("Triton is not installed") from fault
    if row.family != "gemm":
        return over(getattr(triton_kernels, row.family), sets)
    tiles = triton_kernels.best_tiles(*sets[0], transposed(row))
    return over(lambda a, b: triton_kernels.gemm_with(tiles, a, b, transposed(row)), sets)


def cupy_kernel(row, sets):
    try:
        import cupy
    except ImportError as fault:
        raise Missing("CuPy is not installed") from fault
    window = cupy.ElementwiseKernel("raw float32 a", "float32 b", "b = a[i] + a[i + 1] + a[i + 2]", "window_sum")
    functions = {
        "copy": lambda a, b: cupy.copyto(b, a), "transpose": lambda a, b: cupy.copyto(b, a.T), "window_sum": window
    }
    function, shape = functions[row.family], row.outputs[0].shape
    outputs = [torch.empty(shape, device="cuda") for _ in sets]
    arrays = [[cupy.from_dlpack(tensor) for tensor in (*tensors, output)] for tensors, output in zip(sets, outputs)]

    def launch(i):
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            function(*arrays[i])
        return outputs[i]

    return launch


def batchnorm_results(results):
    y, mean, inverse = results
    return y, mean, 1 / (inverse.double() * inverse) - 1e-5


def results_of(row, launched):
    """A peer's results as the row's."""
    if row.family == "batchnorm":
        return batchnorm_results(launched)
    return list(launched) if isinstance(launched, (tuple, list)) else [launched]


def peers_of(row, device):
    """The peers of a row by name, in the order in which they take turns."""
    found = {"eager": eager, "compile": compiled}
    if device == "cpu":
        return found | openblas.peers_of(row)
    if row.family in CALLS:
        name, call = CALLS[row.family]
        found[name] = lambda row, sets: over(call, sets)
    if row.family == "int8_groups":
        found["dequantised"] = dequantised_before
    if row.family == "experts":
        found["grouped_mm"] = grouped_before
    if row.family == "bmm" or (row.entry.startswith("gemm_") and row.family != "gemm_bce"):
        found["cublasLt"] = cublaslt_best
    if row.family in ("gemm_bias_relu", "gemm_bias_gelu", "chain", "mlp1"):
        found["addmm_activation"] = addmm_activation
    if row.family in ("group_convolution", "depthwise", "conv_pair", "conv3x3"):
        found["channels_last"] = channels_last
    if row.family == "attention":
        found |= {"cuDNN": pinned_attention("CUDNN_ATTENTION"), "FlashAttention": pinned_attention("FLASH_ATTENTION")}
    if row.family in ("layernorm", "rmsnorm") or row.facts.get("axis") == 1 or (row.family == "gemm"
                                                                                and row.peak == "half"):
        found["Triton"] = triton_kernel
    if row.family in ("copy", "transpose", "window_sum"):
        found["CuPy"] = cupy_kernel
    return found
