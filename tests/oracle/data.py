"""What a program runs on."""
from __future__ import annotations

import zlib

import numpy as np

from . import bounds, program as p
from .bounds import Bound


def data_bound(tensor: p.Tensor) -> Bound:
    if tensor.type == "bool":
        return Bound(0, 1)
    if tensor.below:
        return Bound(0, tensor.below - 1)
    if p.is_float(tensor.type):
        return Bound(-4, 5, 0, tensor.data == "special")
    if tensor.data == "full":
        return bounds.of_type(tensor.type)
    return Bound(-4 if p.is_signed(tensor.type) else 0, 5)


def make_data(program: p.Program, salt: int = 0) -> dict[str, np.ndarray]:
    """Inputs, and what results hold before. Elements that no statement reads are garbage, NaN in floats."""
    read = {r.tensor for s in program.statements for e in (s.value, *s.subscripts) for r in p.reads_of(e)}
    read |= {s.tensor for s in program.statements if s.reduces and not s.fresh}
    data = {}
    for tensor in program.tensors.values():
        shape = program.shape(tensor.name)
        if tensor.role != "temporary":
            garbage = tensor.role == "result" and tensor.name not in read
            random = np.random.default_rng((program.seed, salt, zlib.crc32(tensor.name.encode())))
            data[tensor.name] = elements(random, tensor, shape, garbage)
    return data


def elements(random: np.random.Generator, tensor: p.Tensor, shape: tuple, garbage: bool) -> np.ndarray:
    if tensor.type == "bool":
        return random.integers(0, 2, shape).astype(bool)
    type = np.dtype(tensor.type)
    if p.is_float(tensor.type):
        if garbage:
            return np.full(shape, np.nan, type)
        values = np.asarray(random.integers(-4, 6, shape)).astype(type)
        if tensor.data == "special":
            chosen = random.choice(np.array([np.nan, np.inf, -np.inf, 0.0]), size=shape)
            values = np.where(random.random(shape) < 0.2, chosen, values).astype(type)
        return np.asarray(values)
    bound = data_bound(tensor)
    if garbage:
        bound = bounds.of_type(tensor.type)
    values = np.asarray(random.integers(bound.low, bound.high, size=shape, dtype=type, endpoint=True))
    if bound == bounds.of_type(tensor.type):  # the ends come more often than by chance
        ends = np.array([bound.low, bound.high, 0, 1], dtype=type)
        values = np.where(random.random(shape) < 0.2, ends[random.integers(0, 4, shape)], values)
    return np.asarray(values).astype(type)
