"""Where tensors of a row live: NumPy's memory, or a device of PyTorch's. Both fill, allocate and compare alike."""
import math

import numpy as np

NUMPY_TYPES = {"float": np.float32, "half": np.float16, "int": np.int32, "int8": np.int8}
INTEGERS = ("int", "int8")


class Bfloat16:
    """NumPy has no bfloat16: arrays of its bits."""

    bits, nan = np.uint16, 0x7FFF

    @staticmethod
    def encode(values):
        """The upper halves of float32, rounded to the nearest."""
        bits = values.astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)

    @staticmethod
    def decode(bits):
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


class Float8E4M3:
    """NumPy has no 8-bit floats: arrays of the bits of e4m3fn (1 sign, 4 of exponent, 3 of fraction, no infinity)."""

    bits, nan = np.uint8, 0x7F
    # The 127 values that are not negative, in the order of their bits: subnormal numbers first. All ones is NaN.
    VALUES = np.array([(m / 8 * 2.0**-6) if e == 0 else (1 + m / 8) * 2.0**(e - 7) for e in range(16)
                       for m in range(8)][:127])

    @classmethod
    def encode(cls, values):
        """The nearest value, the even one of two; beyond 448 the largest."""
        size = np.minimum(abs(values), cls.VALUES[-1])
        above = np.minimum(np.searchsorted(cls.VALUES, size), 126)
        below = np.maximum(above - 1, 0)
        to_above, to_below = cls.VALUES[above] - size, size - cls.VALUES[below]
        code = np.where((to_above < to_below) | ((to_above == to_below) & (above % 2 == 0)), above, below)
        return (code | np.where(values < 0, 0x80, 0)).astype(np.uint8)

    @classmethod
    def decode(cls, bits):
        sizes = np.append(cls.VALUES, np.nan)[bits & 0x7F]
        return np.where(bits & 0x80, -sizes, sizes)


BITS = {"bfloat16": Bfloat16, "float8_e4m3": Float8E4M3}


def bounds(tensor):
    """Of its integers: the least, and one more than the largest."""
    return (-128, 128) if tensor.type == "int8" else (0, tensor.below)


class NumpyArrays:
    """On the CPU, without PyTorch. Floats that NumPy lacks are kept as bits."""

    device, xp = (1, 0), np

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)

    def make(self, tensor):
        if tensor.type in INTEGERS:
            values = self.random.integers(*bounds(tensor), size=tensor.shape, dtype=NUMPY_TYPES[tensor.type])
            return np.sort(values) if tensor.ascending else values
        values = self.random.random(tensor.shape) if tensor.uniform else self.random.standard_normal(tensor.shape)
        values = np.asarray(values * tensor.scale)
        return BITS[tensor.type].encode(values) if tensor.type in BITS else values.astype(NUMPY_TYPES[tensor.type])

    def empty(self, tensor):
        """Filled with what no right result is: NaN."""
        if tensor.type in BITS:
            return np.full(tensor.shape, BITS[tensor.type].nan, BITS[tensor.type].bits)
        return np.full(tensor.shape, np.nan, NUMPY_TYPES[tensor.type])

    def exact(self, array, tensor):
        if tensor.type in BITS:
            return BITS[tensor.type].decode(array)
        return array if tensor.type in INTEGERS else array.astype(np.float64)


class TorchArrays:
    """On a device of PyTorch's: "cuda" or "cpu"."""

    def __init__(self, device, seed=0):
        import torch
        torch.manual_seed(seed)
        self.xp = self.torch = torch
        self.place, self.device = device, (2, 0) if device == "cuda" else (1, 0)
        self.types = {
            "float": torch.float32, "half": torch.float16, "bfloat16": torch.bfloat16, "int": torch.int32,
            "int8": torch.int8, "float8_e4m3": getattr(torch, "float8_e4m3fn", None)
        }

    def make(self, tensor):
        if tensor.type in INTEGERS:
            values = self.torch.randint(*bounds(tensor), tensor.shape, device=self.place, dtype=self.types[tensor.type])
            return values.sort().values if tensor.ascending else values
        random = self.torch.rand if tensor.uniform else self.torch.randn
        values = random(tensor.shape, device=self.place)
        if tensor.scale != 1:
            values *= tensor.scale
        return values.to(self.types[tensor.type])

    def empty(self, tensor):
        type = self.types[tensor.type]
        poison = self.torch.iinfo(type).min if tensor.type in INTEGERS else math.nan
        return self.torch.full(tensor.shape, poison, device=self.place, dtype=type)

    def exact(self, array, tensor):
        return array if tensor.type in INTEGERS else array.double()


def worst_error(results, right):
    """The largest distance from the float64 results, as a part of the element's size and the root of the mean square of
    all of its tensor; NaN if there is one."""
    worst = 0.0
    for result, exact in zip(results, right, strict=True):
        if tuple(result.shape) != tuple(exact.shape):
            raise ValueError(f"a result has shape {tuple(result.shape)} instead of {tuple(exact.shape)}")
        scale = abs(exact) + (exact * exact).mean()**0.5 + 1e-30  # all may be zero
        error = float((abs(result - exact) / scale).max())
        worst = error if math.isnan(error) else max(worst, error)
    return worst
