"""tc_c.h for torch tensors of a GPU, by ctypes."""
import ctypes
import pathlib
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
KINDS = {torch.float32: (2, 32), torch.float64: (2, 64), torch.float16: (2, 16), torch.int32: (0, 32),
         torch.int64: (0, 64)}


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Scalar(ctypes.Structure):
    _fields_ = [("is_float", ctypes.c_int), ("integer", ctypes.c_int64), ("floating", ctypes.c_double)]


def device_of(tensor):
    return DLDevice(2 if tensor.device.type == "cuda" else 1, tensor.device.index or 0)


def view(tensor):
    """A DLTensor over a dense torch tensor, which must outlive it."""
    assert tensor.is_contiguous(), "kernels of a GPU take dense tensors"
    shape = (ctypes.c_int64 * tensor.dim())(*tensor.shape)
    code, bits = KINDS[tensor.dtype]
    return DLTensor(tensor.data_ptr(), device_of(tensor), tensor.dim(), code, bits, 1, shape, None, 0)


def open_library(path):
    """The library, and before it what it needs and this machine lacks: what lies in lib/ beside it."""
    path = pathlib.Path(path) if path else HERE / "libtensorc.so"
    systems = ("libstdc++", "libgcc_s")  # which the process has already
    waiting = [p for p in sorted((path.parent / "lib").glob("*.so*")) if not p.name.startswith(systems)]
    faults = {}
    while waiting:
        left = []
        for library in waiting:
            try:
                ctypes.CDLL(str(library))
            except OSError as fault:
                faults[library.name] = fault
                left.append(library)
        if len(left) == len(waiting):
            break
        waiting = left
    for library in waiting:
        print(f"{library.name} is not loaded: {faults[library.name]}", file=sys.stderr)
    return ctypes.CDLL(str(path))


class Kernel:
    def __init__(self, engine, handle, scalars):
        self.engine, self.handle, self.scalars = engine, handle, scalars

    def prepare(self, stream):
        self.engine.check("tc_kernel_prepare", self.handle, ctypes.c_void_p(stream))

    def call(self, inputs, outputs, stream):
        """A function that launches on these tensors and this stream."""
        views = [[view(x) for x in tensors] for tensors in (inputs, outputs)]
        lists = [(ctypes.POINTER(DLTensor) * len(v))(*[ctypes.pointer(x) for x in v]) for v in views]
        scalars = (Scalar * max(1, len(self.scalars)))(*[Scalar(1, 0, x) for x in self.scalars])
        arguments = (self.handle, ctypes.c_void_p(stream), lists[0], ctypes.c_size_t(len(inputs)), lists[1],
                     ctypes.c_size_t(len(outputs)), scalars, ctypes.c_size_t(len(self.scalars)))
        function = self.engine.calls.tc_run_on_stream

        def launch(keep=(inputs, outputs, views)):  # the tensors live as long as the call
            if function(*arguments) != 0:
                raise RuntimeError(self.engine.calls.tc_last_error().decode())

        return launch


class Engine:
    """A checked text: a file of defs, or one given in words."""

    def __init__(self, path, library="", text=None):
        self.library = library
        self.calls = open_library(library)
        self.calls.tc_last_error.restype = ctypes.c_char_p
        self.handle = ctypes.c_void_p()
        source = text.encode() if text else pathlib.Path(path).read_bytes()
        self.check("tc_engine_create", source, b"programs.tc", ctypes.byref(self.handle))

    def check(self, name, *arguments):
        if getattr(self.calls, name)(*arguments) != 0:
            raise RuntimeError(f"{name}: {self.calls.tc_last_error().decode()}")

    def compile(self, entry, inputs, outputs, scalars, mapping):
        """For the shapes of these tensors and the device they are on; `scalars` are floats, in order."""
        request, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.check("tc_request_create", entry.encode(), ctypes.byref(request))
        self.check("tc_request_device", request, device_of(inputs[0]))
        if mapping:
            self.check("tc_request_mapping", request, mapping.encode())
        for position, tensor in enumerate(inputs):
            self.check("tc_request_input", request, ctypes.c_size_t(position), ctypes.byref(view(tensor)))
        for position, tensor in enumerate(outputs):
            self.check("tc_request_output", request, ctypes.c_size_t(position), ctypes.byref(view(tensor)))
        try:
            self.check("tc_compile", self.handle, request, ctypes.byref(kernel))
        finally:
            self.calls.tc_request_destroy(request)
        return Kernel(self, kernel, scalars)
