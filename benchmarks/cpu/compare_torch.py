#!/usr/bin/env python3
"""Times kernels of programs.tc against PyTorch on the CPU, in one process, turn by turn: A B A B ...

    benchmarks/cpu/compare_torch.py [path of libtensorc.so]

Both sides use all cores and the same memory, and their results are compared before anything is timed. Without
PyTorch it says so and ends well.
"""
import ctypes
import pathlib
import statistics
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("compare_torch: PyTorch is not installed for this Python; nothing compared")
    sys.exit(0)

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = HERE.parent.parent / "build" / "libtensorc.so"
TURNS = 15
TURN_SECONDS = 0.1
SETTLE_SECONDS = 0.25  # the other side's worker threads spin for a while after their last task


class DLTensor(ctypes.Structure):
    """DLTensor of DLPack, float32 in host memory."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def view(tensor):
    """A DLTensor over a dense float32 torch tensor, which must outlive it."""
    shape = (ctypes.c_int64 * tensor.dim())(*tensor.shape)
    return DLTensor(tensor.data_ptr(), 1, 0, tensor.dim(), 2, 32, 1, shape, None, 0)


class Library:
    """What is needed of tc_c.h."""

    def __init__(self, path):
        self.calls = ctypes.CDLL(str(path))
        self.calls.tc_last_error.restype = ctypes.c_char_p
        self.engine = ctypes.c_void_p()
        text = (HERE / "programs.tc").read_bytes()
        self.call("tc_engine_create", text, b"programs.tc", ctypes.byref(self.engine))

    def call(self, name, *arguments):
        if getattr(self.calls, name)(*arguments) != 0:
            sys.exit(f"compare_torch: {name}: {self.calls.tc_last_error().decode()}")

    def prepare(self, entry, inputs, output):
        """Compiles an entry for these torch tensors; a function that runs it."""
        request, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("tc_request_create", entry.encode(), ctypes.byref(request))
        views = [view(tensor) for tensor in inputs]
        for position, tensor in enumerate(views):
            self.call("tc_request_input", request, ctypes.c_size_t(position), ctypes.byref(tensor))
        self.call("tc_compile", self.engine, request, ctypes.byref(kernel))
        self.calls.tc_request_destroy(request)
        result = view(output)
        pointers = (ctypes.POINTER(DLTensor) * len(views))(*[ctypes.pointer(tensor) for tensor in views])
        results = (ctypes.POINTER(DLTensor) * 1)(ctypes.pointer(result))
        count = ctypes.c_size_t(len(views))

        def run():
            self.call("tc_run", kernel, pointers, count, results, ctypes.c_size_t(1), None, ctypes.c_size_t(0))

        return run


def mlp3(x, w1, b1, w2, b2, w3, b3):
    return F.linear(F.relu(F.linear(F.relu(F.linear(x, w1, b1)), w2, b2)), w3, b3)


# entry, PyTorch's function, shapes of the inputs, how many times PyTorch's speed is asked for.
CASES = [
    ("softmax", lambda x: torch.softmax(x, 1), [(4096, 1024)], 1.0),
    ("softmax", lambda x: torch.softmax(x, 1), [(128, 100)], 1.0),
    ("layernorm", lambda x, g, b: F.layer_norm(x, x.shape[1:], g, b), [(4096, 1024), (1024,), (1024,)], 1.0),
    ("layernorm", lambda x, g, b: F.layer_norm(x, x.shape[1:], g, b), [(128, 768), (768,), (768,)], 1.0),
    ("mlp3", mlp3, [(128, 784), (128, 784), (128,), (64, 128), (64,), (10, 64), (10,)], 1.0),
    ("mlp3", mlp3, [(1024, 512), (512, 512), (512,), (256, 512), (256,), (64, 256), (64,)], 1.0),
    ("conv3x3", F.conv2d, [(8, 64, 58, 58), (64, 64, 3, 3)], 0.5),
    ("conv3x3", F.conv2d, [(1, 128, 30, 30), (128, 128, 3, 3)], 0.5),
]


def time_turn(run):
    """Microseconds of a call, the best of one turn."""
    time.sleep(SETTLE_SECONDS)
    run()
    best, end = float("inf"), time.perf_counter() + TURN_SECONDS
    while time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    return best * 1e6


def main():
    library = Library(sys.argv[1] if len(sys.argv) > 1 else LIBRARY)
    torch.manual_seed(0)
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads; medians of {TURNS} turns")
    print(f"{'':28} {'ours, us':>10} {'torch, us':>10} {'torch/ours':>10} {'asked':>6}")
    missed = 0
    for entry, reference, shapes, asked in CASES:
        inputs = [torch.rand(shape) - 0.5 for shape in shapes]
        with torch.inference_mode():
            expected = reference(*inputs)
            output = torch.zeros_like(expected, memory_format=torch.contiguous_format)
            ours = library.prepare(entry, inputs, output)
            ours()
            torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-4)
            turns = [(time_turn(ours), time_turn(lambda: reference(*inputs))) for _ in range(TURNS)]
        ours_us, torch_us = (statistics.median(times) for times in zip(*turns))
        ratio = torch_us / ours_us
        missed += ratio < asked
        shape = "x".join(map(str, shapes[0]))
        print(f"{entry + ' ' + shape:28} {ours_us:10.1f} {torch_us:10.1f} {ratio:10.2f} {asked:6.1f}"
              f"{'' if ratio >= asked else '  MISSED'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
