#!/usr/bin/env python3
"""A tour of tensorc from Python, top to bottom. Each cell (`# %%`) runs by itself in an editor that knows them; the
whole runs as a script, and does so in the tests."""

# %% Define: what every element of a result is. No index is declared, no range is given, no result has a shape.
import numpy as np

import tensorc

SOURCE = """
def layer(float(B,I) x, float(O,I) W, float(O) b) -> (y) {
  y(b0,o) +=! x(b0,i) * W(o,i)
  y(b0,o) = relu(y(b0,o) + b(o))
}
"""
tc = tensorc.define(SOURCE)
print(tc, [p.name for p in tc.layer.signature.parameters])

# %% Run: a call compiles for the shapes at hand once, and runs where the arrays are.
rng = np.random.default_rng(0)
x, W, b = (rng.standard_normal(shape, dtype="float32") for shape in ((64, 300), (100, 300), (100,)))
y = tc.layer(x, W, b)
np.testing.assert_allclose(y, np.maximum(x @ W.T + b, 0), rtol=1e-4, atol=1e-4)
tc.layer(x, W, b, out=y)  # into an array that is there
print(f"y is {y.dtype}{y.shape}; {tc.layer.kernels} kernel")

# %% Mistakes: exceptions with the place, the names and the numbers.
try:
    tensorc.check("def f(float(M,K) A) -> (s) {\n  s(m) +=! A(m,k,n)\n}", name="sums.tc")
except tensorc.Error as error:
    print(error)
try:
    tc.layer(x, W.T, b)
except tensorc.Error as error:
    print(error)

# %% Look: every stage of the compilation is a text.
sizes = {"B": 64, "I": 300, "O": 100}
print(tc.emit("schedule", sizes=sizes))
print(tc.emit("cuda", sizes=sizes, arch="sm_90a")[:400], "...")

# %% Choose: what the compiler decides by itself can be decided by hand. What is given is part of what is compiled.
by_hand = tensorc.define(SOURCE, options=tensorc.CpuOptions(tile=[16, 32, 32], parallel=False))
np.testing.assert_allclose(by_hand.layer(x, W, b), y, rtol=1e-4, atol=1e-4)

# %% Tune: candidates are compiled and measured by worker processes; a wrong or crashing one costs only itself.
tuned = tensorc.tune(SOURCE, sizes=sizes, generations=1, population=3, progress=False)
print(f"{tuned.speedup:.2f}x by {tuned.options!r}")

# %% Keep: a cache is a file of compiled kernels. The next process that asks for the same gets them without compiling.
import pathlib  # noqa: E402
import tempfile  # noqa: E402

folder = pathlib.Path(tempfile.mkdtemp())
for _ in range(2):
    cached = tensorc.define(SOURCE, cache=folder / "kernels.db")
    cached.layer(x, W, b)
    print(cached.statistics)

# %% Ship: in production nothing is compiled. The file is all that the other machine needs beside the package.
shipped = tensorc.define(SOURCE, cache=tensorc.Cache(folder / "kernels.db", production=True))
np.testing.assert_allclose(shipped.layer(x, W, b), y, rtol=1e-4, atol=1e-4)
try:
    shipped.layer(x[:3], W, b)
except tensorc.Error as error:
    print(error)

# %% Differentiate: maps and sums have gradients that the compiler writes, as a def of its own.
print(tensorc.gradient("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"))
