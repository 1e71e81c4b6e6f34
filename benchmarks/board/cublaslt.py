"""The best of the algorithms that cuBLASLt's heuristics propose for a matrix product, by ctypes.

cuBLAS takes matrices by columns, so C = A B by rows is computed as Cᵀ = Bᵀ Aᵀ: its first operand is our second.
Numbers of enumerations are those of cublasLt.h and library_types.h of CUDA 11 to 13.
"""
import ctypes
import glob
import os
import pathlib

COMPUTE_32F, COMPUTE_TF32 = 68, 77
REAL = {"float32": 0, "float16": 2, "bfloat16": 14, "float8_e4m3fn": 28}
OP_N, OP_T = 0, 1
DESC_TRANSA, DESC_TRANSB, DESC_EPILOGUE, DESC_BIAS, DESC_A_SCALE, DESC_B_SCALE, DESC_FAST_ACCUM = 3, 4, 7, 8, 17, 18, 25
EPILOGUES = {"": 1, "relu": 2, "bias": 4, "bias_relu": 6, "bias_gelu": 36}
PREFERENCE_WORKSPACE = 1
LAYOUT_BATCH_COUNT, LAYOUT_BATCH_STRIDE = 5, 6
MOST_ALGORITHMS = 16
WORKSPACE_BYTES = 64 << 20


class Missing(Exception):
    """A peer that this machine does not have, or that does not take this row; the text says which."""


class Algorithm(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64 * 8)]


class HeuristicResult(ctypes.Structure):
    _fields_ = [("algorithm", Algorithm), ("workspace", ctypes.c_size_t), ("state", ctypes.c_int),
                ("waves", ctypes.c_float), ("reserved", ctypes.c_int * 4)]


def open_cublaslt():
    """The copy that PyTorch loaded, else that of the system."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        loaded = [line.split()[-1] for line in maps if "libcublasLt.so" in line]
    names = loaded + ["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"]
    names += sorted(glob.glob("/usr/local/cuda*/targets/*/lib/libcublasLt.so.*"))
    for path in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        names += [str(p) for p in pathlib.Path(path or ".").glob("libcublasLt.so.1*")]
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise Missing("libcublasLt is not found")


class CublasLt:
    """One handle and one workspace for all products of a process."""

    def __init__(self, torch):
        self.torch, self.calls = torch, open_cublaslt()
        self.handle = ctypes.c_void_p()
        self.check("cublasLtCreate", ctypes.byref(self.handle))
        self.workspace = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")

    def check(self, name, *arguments):
        status = getattr(self.calls, name)(*arguments)
        if status != 0:
            raise Missing(f"{name} says {status}")

    def layout(self, tensor):
        """Of a tensor by rows, read as one by columns: its last dimension first. Three dimensions are a batch."""
        *batch, rows, columns = tensor.shape
        made = ctypes.c_void_p()
        self.check("cublasLtMatrixLayoutCreate", ctypes.byref(made), ctypes.c_int(self.real(tensor)),
                   ctypes.c_uint64(columns), ctypes.c_uint64(rows), ctypes.c_int64(columns))
        for count in batch:
            for attribute, value in ((LAYOUT_BATCH_COUNT, ctypes.c_int32(count)),
                                     (LAYOUT_BATCH_STRIDE, ctypes.c_int64(rows * columns))):
                self.check("cublasLtMatrixLayoutSetAttribute", made, ctypes.c_int(attribute), ctypes.byref(value),
                           ctypes.c_size_t(ctypes.sizeof(value)))
        return made

    @staticmethod
    def real(tensor):
        return REAL[str(tensor.dtype).removeprefix("torch.")]

    def describe(self, compute, attributes):
        made = ctypes.c_void_p()
        self.check("cublasLtMatmulDescCreate", ctypes.byref(made), ctypes.c_int(compute), ctypes.c_int(REAL["float32"]))
        for attribute, value in attributes.items():
            self.check("cublasLtMatmulDescSetAttribute", made, ctypes.c_int(attribute), ctypes.byref(value),
                       ctypes.c_size_t(ctypes.sizeof(value)))
        return made

    def proposals(self, description, layouts):
        preference = ctypes.c_void_p()
        self.check("cublasLtMatmulPreferenceCreate", ctypes.byref(preference))
        most = ctypes.c_uint64(WORKSPACE_BYTES)
        self.check("cublasLtMatmulPreferenceSetAttribute", preference, ctypes.c_int(PREFERENCE_WORKSPACE),
                   ctypes.byref(most), ctypes.c_size_t(8))
        results, found = (HeuristicResult * MOST_ALGORITHMS)(), ctypes.c_int()
        self.check("cublasLtMatmulAlgoGetHeuristic", self.handle, description, *layouts, layouts[-1], preference,
                   ctypes.c_int(MOST_ALGORITHMS), results, ctypes.byref(found))
        self.calls.cublasLtMatmulPreferenceDestroy(preference)
        return [result for result in results[:found.value] if result.state == 0]

    def product(self, a, b, transposed, epilogue="", bias=None, tf32=False, out_type=None,
                fast_accumulation=False, algorithm=None):
        """C = A B, or A Bᵀ if `transposed`, of matrices or batches of them. Returns (call, algorithm): call() launches
        it on PyTorch's current stream and returns C; the algorithm is the fastest, or the given one, which a call for
        the same shapes returned."""
        torch = self.torch
        fp8 = a.element_size() == 1
        c = torch.empty(*a.shape[:-1], b.shape[-2 if transposed else -1], dtype=out_type or a.dtype, device=a.device)
        attributes = {
            DESC_TRANSA: ctypes.c_int32(OP_T if transposed else OP_N), DESC_TRANSB: ctypes.c_int32(OP_N), DESC_EPILOGUE:
            ctypes.c_int32(EPILOGUES[epilogue])
        }
        if bias is not None:
            attributes[DESC_BIAS] = ctypes.c_void_p(bias.data_ptr())
        ones = torch.ones(1, device=a.device)
        if fp8:
            attributes |= {
                DESC_A_SCALE: ctypes.c_void_p(ones.data_ptr()), DESC_B_SCALE: ctypes.c_void_p(ones.data_ptr()),
                DESC_FAST_ACCUM: ctypes.c_int8(fast_accumulation)
            }
        description = self.describe(COMPUTE_TF32 if tf32 else COMPUTE_32F, attributes)
        layouts = [self.layout(tensor) for tensor in (b, a, c)]
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        function, handle = self.calls.cublasLtMatmul, self.handle

        def launch(result, keep=(a, b, c, bias, ones, self.workspace)):
            status = function(handle, description, ctypes.byref(one), ctypes.c_void_p(b.data_ptr()), layouts[0],
                              ctypes.c_void_p(a.data_ptr()), layouts[1], ctypes.byref(zero),
                              ctypes.c_void_p(c.data_ptr()), layouts[2], ctypes.c_void_p(c.data_ptr()), layouts[2],
                              ctypes.byref(result.algorithm), ctypes.c_void_p(self.workspace.data_ptr()),
                              ctypes.c_size_t(WORKSPACE_BYTES),
                              ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
            if status != 0:
                raise Missing(f"cublasLtMatmul says {status}")

        best = algorithm or self.fastest(launch, self.proposals(description, layouts))

        def call():
            launch(best)
            return c

        return call, best

    def fastest(self, launch, proposals, rounds=5):
        """By the least of some rounds of event times, interleaved."""
        if not proposals:
            raise Missing("cuBLASLt proposes no algorithm")
        torch, least = self.torch, {}
        for _ in range(rounds):
            for number, result in enumerate(proposals):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                try:
                    begin.record()
                    launch(result)
                    launch(result)
                    end.record()
                except Missing:
                    continue
                end.synchronize()
                least[number] = min(least.get(number, float("inf")), begin.elapsed_time(end))
        if not least:
            raise Missing("cuBLASLt runs none of the algorithms that it proposes")
        return proposals[min(least, key=least.get)]
