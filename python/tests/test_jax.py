"""Functions of JAX's arrays, on the CPU."""
import doctest

import numpy as np
import pytest

import tensorc

jax = pytest.importorskip("jax", reason="JAX is not installed for this Python")
import jax.numpy as jnp  # noqa: E402

import tensorc.jax  # noqa: E402

MV = "def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }"


def small(*shape):
    return jnp.asarray(np.random.default_rng(len(shape)).integers(-4, 5, shape).astype("float32"))


def test_calls_and_graphs():
    mv, A, x = tensorc.jax.op(MV), small(4, 5), small(5)
    assert (mv(A, x) == A @ x).all() and (mv(x=x, A=A) == A @ x).all()
    both = jax.jit(lambda A, x: mv(A + 1, x) * 2)
    for rows in (4, 6):
        assert (both(small(rows, 5), x) == (small(rows, 5) + 1) @ x * 2).all()
    assert (jax.jit(mv)(A.T.T, x) == A @ x).all()


def test_numbers_are_part_of_what_is_compiled():
    f = tensorc.jax.op("def f(float(N) x, float a, int k) -> (y) { y(i) = a * x(i) where i in 0:k }")
    run = jax.jit(f, static_argnums=(1, 2))
    assert (run(jnp.ones(9), 2.0, 4) == 2 * jnp.ones(4)).all() and (run(jnp.ones(9), 3.0, 5) == 3 * jnp.ones(5)).all()
    with pytest.raises(TypeError, match="'a' is a number of what is compiled, and is traced here"):
        jax.jit(f, static_argnums=(2,))(jnp.ones(9), 2.0, 4)


def test_several_results_and_elements_that_nobody_writes():
    f = tensorc.jax.op("def f(float(N) x) -> (s, float(N,N) D) { s +=! x(i) D(i,i) = x(i) }")
    s, D = jax.jit(f)(jnp.arange(4.0))
    assert s == 6 and (D == jnp.diag(jnp.arange(4.0))).all()


def test_gradients_to_the_second_order():
    mv, A, x = tensorc.jax.op(MV), small(4, 5), small(5)
    found = jax.jit(jax.grad(lambda A, x: (mv(A, x) ** 2).sum(), argnums=(0, 1)))(A, x)
    wanted = jax.grad(lambda A, x: ((A @ x) ** 2).sum(), argnums=(0, 1))(A, x)
    assert all(jnp.array_equal(f, w) for f, w in zip(found, wanted))
    cube = tensorc.jax.op("def cube(float(N) x) -> (s) { s +=! x(i) * x(i) * x(i) }")
    second = jax.grad(lambda x: jax.grad(cube)(x).sum())(jnp.arange(4.0))
    assert second.tolist() == [0, 6, 12, 18]
    gather = tensorc.jax.op("def gather(float(N) x, int(M) at) -> (y) { y(i) = x(at(i)) }")
    at = jnp.array([1, 1, 0], dtype=jnp.int32)
    assert jax.grad(lambda x: gather(x, at).sum())(jnp.ones(3)).tolist() == [1, 2, 0]


def test_the_gradient_of_a_generic_def_whose_result_is_wider_than_its_inputs():
    op = tensorc.jax.op("def f<T: float>(T(N) x) -> (y) { y(i) = x(i) * x(i) * 1.5 }")
    for dtype in ("float16", "bfloat16", "float32"):
        found = jax.jit(jax.grad(lambda x: op(x).sum()))(jnp.array([1, 2, 3], dtype))
        assert found.dtype == dtype and found.tolist() == [3, 6, 9]


@pytest.mark.parametrize("dims, equation", [((None, 0), "mk,bk->bm"), ((1, 0), "mbk,bk->bm"), ((2, None), "mkb,k->bm")])
def test_batches(dims, equation):
    extents = {"m": 3, "k": 5, "b": 7}
    A, x = (small(*[extents[e] for e in part]) for part in equation.split("->")[0].split(","))
    mv = jax.vmap(tensorc.jax.op(MV), dims)
    assert jnp.array_equal(jax.jit(mv)(A, x), jnp.einsum(equation, A, x))
    found = jax.grad(lambda x: mv(A, x).sum())(x)
    assert jnp.array_equal(found, jax.grad(lambda x: jnp.einsum(equation, A, x).sum())(x))


def test_batches_of_none():
    mv = jax.vmap(tensorc.jax.op(MV), (None, 0))
    A, x = small(4, 5), small(0, 5)
    assert mv(A, x).shape == jax.jit(mv)(A, x).shape == (0, 4)
    assert jax.grad(lambda A: mv(A, x).sum())(A).tolist() == jnp.zeros((4, 5)).tolist()
    two = jax.vmap(tensorc.jax.op("def two(float(N) x, float(N) z) -> (y, s) { y(i) = x(i)  s +=! z(i) }"), (0, None))
    y, s = two(small(0, 3), jnp.ones(3))
    assert y.shape == (0, 3) and s.shape == (0,)


def test_scalars_are_told_apart_by_their_bits():
    scale = tensorc.jax.op("def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }")
    assert [str(scale(jnp.ones(1), a)[0]) for a in (0.0, -0.0)] == ["0.0", "-0.0"]
    for a in (2.0, np.float32(2), np.array(2.0), jnp.float32(2), jnp.bfloat16(2)):
        assert scale(jnp.ones(2), a).tolist() == [2, 2]
    assert jnp.isnan(scale(jnp.ones(1), float("nan"))).all() and jnp.isnan(scale(jnp.ones(1), np.float32("nan"))).all()
    assert len(scale._numbers) == 4  # of 0.0, -0.0, 2.0 and NaN


def test_types():
    copy = tensorc.jax.op("def copy<T>(T(N) x) -> (T(N) y) { y(i) = x(i) }")
    for dtype in ("float32", "float16", "bfloat16", "int32", "int8", "uint8", "bool", "float8_e4m3fn", "float8_e5m2"):
        x = jnp.arange(4).astype(dtype)
        assert copy(x).dtype == x.dtype and (copy(x) == x).all()


def test_errors():
    mv = tensorc.jax.op(MV)
    with pytest.raises(tensorc.Error, match="'K'|extent"):
        mv(small(4, 5), small(6))
    scale = tensorc.jax.op("def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }")
    with pytest.raises(TypeError, match="'a' is a scalar, and takes a number, not a list"):
        scale(jnp.ones(1), [2.0])
    with pytest.raises(TypeError, match=r"mv\(\) takes A, x"):
        mv(small(4, 5))
    with pytest.raises(tensorc.Error, match="'f' updates 'C', and JAX's arrays do not change"):
        tensorc.jax.op("def f(float(N) x) -> (C) { C(i) += x(i) }")
    gather = tensorc.jax.op("def gather(float(N) x, int(M) at) -> (y) { y(i) = x(at(i)) }")
    with pytest.raises(Exception, match=r"subscript 0 of 'x' is 7, outside \[0, 3\)"):
        jax.jit(gather)(jnp.ones(3), jnp.array([7], dtype=jnp.int32)).block_until_ready()


def test_examples():
    failed, tried = doctest.testmod(tensorc.jax, extraglobs={"tensorc": tensorc})
    assert failed == 0 and tried > 0
    assert {name for name in dir(tensorc.jax) if not name.startswith("_")} == set(tensorc.jax.__all__)
