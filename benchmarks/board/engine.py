"""tensorc through its C interface, by ctypes: kernels on arrays of NumPy and tensors of PyTorch."""
import ctypes
import hashlib
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Element types as DLPack numbers them: code and bits.
DLPACK = {
    "float": (2, 32), "half": (2, 16), "bfloat16": (4, 16), "float8_e4m3": (10, 8), "int": (0, 32), "int8": (0, 8)
}


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


class Refused(Exception):
    """What the compiler or a kernel says against a request; the text is its own."""


def address(array):
    return array.data_ptr() if hasattr(array, "data_ptr") else array.ctypes.data


def view(array, tensor, device):
    """A DLTensor over a dense array, which must outlive it, with the element type that `tensor` of a row has."""
    shape = (ctypes.c_int64 * len(tensor.shape))(*tensor.shape)
    code, bits = DLPACK[tensor.type]
    return DLTensor(address(array), device, len(tensor.shape), code, bits, 1, shape, None, 0)


def default_library():
    """What $TENSORC_LIBRARY says; beside this folder, as a bundle puts it; or where the build does."""
    if os.environ.get("TENSORC_LIBRARY"):
        return pathlib.Path(os.environ["TENSORC_LIBRARY"])
    for path in (HERE.parent / "libtensorc.so", HERE.parents[1] / "build" / "libtensorc.so"):
        if path.exists():
            return path
    raise FileNotFoundError("no libtensorc.so in build/ or beside the board; say --library=PATH")


def open_library(path):
    """The library, and before it what it needs and this machine lacks: what lies in lib/ beside it."""
    path = pathlib.Path(path)
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
    calls = ctypes.CDLL(str(path))
    calls.tc_last_error.restype = ctypes.c_char_p
    calls.tc_version.restype = ctypes.c_char_p
    calls.tc_kernel_options.restype = ctypes.c_char_p
    calls.tc_kernel_pass.restype = ctypes.c_char_p
    return calls


class Library:

    def __init__(self, path=""):
        self.path = pathlib.Path(path) if path else default_library()
        self.calls = open_library(self.path)
        self.version = self.calls.tc_version().decode()

    def digest(self):
        """Of the library's file: two builds of one revision differ in it."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()[:12]

    def check(self, name, *arguments):
        if getattr(self.calls, name)(*arguments) != 0:
            raise Refused(self.calls.tc_last_error().decode().strip())

    def create_engine(self, text, name, cache, keep, engine):
        if cache:
            read_only = ctypes.c_int(not keep)
            self.check("tc_engine_create_cached", text, name, str(cache).encode(), read_only, engine)
        else:
            self.check("tc_engine_create", text, name, engine)

    def compile(self, row, device, options="", cache="", keep=False, limit_s=60):
        """A row's kernel for a CPU, device (1, 0), or GPU number i, (2, i), with `options` as text, or the fastest that
        the file `cache` knows for the row, which gets the kernel if `keep`. Those of the row come in addition. Raises
        Refused."""
        text, name = row.source.encode(), (row.file or row.entry + ".tc").encode()
        engine, request, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        device = DLDevice(*device)
        try:
            self.create_engine(text, name, cache, keep, ctypes.byref(engine))
            self.check("tc_request_create", row.entry.encode(), ctypes.byref(request))
            self.check("tc_request_device", request, device)
            self.check("tc_request_budget", request, ctypes.c_uint64(200_000_000), ctypes.c_int64(int(limit_s * 1e3)))
            if device.device_type == 2 and row.mapping and row.mapping not in options:
                options = f"{row.mapping}\n{options}"
            if options:
                kind = "tc_request_mapping" if device.device_type == 2 else "tc_request_options"
                self.check(kind, request, options.encode())
            for kind, tensors in (("input", row.inputs), ("output", row.outputs)):
                for position, tensor in enumerate(tensors):
                    shape = (ctypes.c_int64 * len(tensor.shape))(*tensor.shape)
                    code, bits = DLPACK[tensor.type]
                    described = DLTensor(None, device, len(tensor.shape), code, bits, 1, shape, None, 0)
                    self.check(f"tc_request_{kind}", request, ctypes.c_size_t(position), ctypes.byref(described))
            self.check("tc_compile", engine, request, ctypes.byref(kernel))
        finally:
            self.calls.tc_request_destroy(request)
            self.calls.tc_engine_destroy(engine)
        return Kernel(self, kernel, row, device)


class Kernel:

    def __init__(self, library, handle, row, device):
        self.library, self.handle, self.row, self.device = library, handle, row, device

    def __del__(self):
        self.library.calls.tc_kernel_destroy(self.handle)

    @property
    def from_cache(self):
        return self.library.calls.tc_kernel_from_cache(self.handle) == 1

    @property
    def options(self):
        """As text; "" if the compiler chose all."""
        return self.library.calls.tc_kernel_options(self.handle).decode()

    def pass_times(self):
        """Milliseconds of the passes of the compilation by name."""
        times, ms = {}, ctypes.c_double()
        while name := self.library.calls.tc_kernel_pass(self.handle, ctypes.c_size_t(len(times)), ctypes.byref(ms)):
            times[name.decode()] = ms.value
        return times

    def prepare(self, stream):
        self.library.check("tc_kernel_prepare", self.handle, ctypes.c_void_p(stream))

    def call(self, inputs, outputs, stream=None):
        """A function that runs on these arrays; with a stream, it returns when the kernels have been launched."""
        views = [[view(array, tensor, self.device)
                  for array, tensor in zip(arrays, tensors, strict=True)]
                 for arrays, tensors in ((inputs, self.row.inputs), (outputs, self.row.outputs))]
        lists = [(ctypes.POINTER(DLTensor) * len(v))(*[ctypes.pointer(x) for x in v]) for v in views]
        scalars = (Scalar * max(1, len(self.row.scalars)))(*[Scalar(1, 0, x) for x in self.row.scalars])
        rest = (lists[0], ctypes.c_size_t(len(inputs)), lists[1], ctypes.c_size_t(len(outputs)), scalars,
                ctypes.c_size_t(len(self.row.scalars)))
        calls, handle = self.library.calls, self.handle
        if stream is None:
            function, arguments = calls.tc_run, (handle, *rest)
        else:
            function, arguments = calls.tc_run_on_stream, (handle, ctypes.c_void_p(stream), *rest)

        def launch(keep=(self, inputs, outputs, views)):  # all of them live as long as the call
            if function(*arguments) != 0:
                raise Refused(calls.tc_last_error().decode().strip())

        launch.function, launch.arguments = function, arguments
        return launch
