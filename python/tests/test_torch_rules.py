"""What an operator does under torch.vmap and torch.autocast."""
import warnings

import pytest

import tensorc

torch = pytest.importorskip("torch", reason="PyTorch is not installed for this Python")
import tensorc.torch  # noqa: E402
from tensorc import _batch  # noqa: E402

MV = "def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }"


def small(*shape):
    return torch.randint(-4, 5, shape, generator=torch.Generator().manual_seed(len(shape))).float()


class TestBatches:
    @pytest.mark.parametrize("dims, equation", [((None, 0), "mk,bk->bm"), ((1, 0), "mbk,bk->bm"), ((2, None), "mkb,k->bm"),
                                                ((0, 1), "bmk,kb->bm")])
    def test_one_kernel_runs_the_batch(self, dims, equation):
        extents = {"m": 3, "k": 5, "b": 7}
        A, x = (small(*[extents[e] for e in part]) for part in equation.split("->")[0].split(","))
        mv = tensorc.torch.op(MV)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # PyTorch warns of a loop
            y = torch.vmap(mv, in_dims=dims)(A, x)
        assert torch.equal(y, torch.einsum(equation, A, x))

    @pytest.mark.parametrize("text", [
        "def f(float(N) where, float(N) in) -> (y) { y(i) = 2 * where(i) + in(i) }",
        "def f(float(N) in, float(N) where) -> (y) { y(i) = 2 * v + where(i) where i in 0:N, v = in(i), exists in(i) }",
        "def f(float(N) where, float(N) in) -> (y) { t(i) = 2 * where(i) where i in 0:N  y(i) = in(i) + t(i) }",
        "def f(float(N) x, float(N) w) -> (in) { where(i) = 2 * x(i)  in(i) = where(i) + w(i) where i in 0:N }"])
    def test_tensors_with_names_of_words(self, text):
        x, w = small(7, 4), small(7, 4)
        f = tensorc.torch.op(text)
        assert torch.equal(torch.vmap(f)(x, w), 2 * x + w)
        assert torch.equal(torch.vmap(f, (0, None))(x, w[0]), 2 * x + w[0])

    def test_batches_of_batches(self):
        A, X = small(4, 5), small(3, 7, 5)
        mv = torch.vmap(torch.vmap(tensorc.torch.op(MV), (None, 0)), (None, 0))
        assert torch.equal(mv(A, X), X @ A.T)

    def test_gradients(self):
        A, X = small(4, 5).requires_grad_(), small(7, 5).requires_grad_()
        torch.vmap(tensorc.torch.op(MV), (None, 0))(A, X).square().sum().backward()
        found = A.grad, X.grad
        A.grad = X.grad = None
        (X @ A.T).square().sum().backward()
        assert torch.equal(found[0], A.grad) and torch.equal(found[1], X.grad)

    def test_a_batch_of_gradients(self):
        A, x = small(4, 5), small(5).requires_grad_()
        y = tensorc.torch.op(MV)(A, x)
        (jacobian,) = torch.autograd.grad(y, x, torch.eye(4), is_grads_batched=True)
        assert torch.equal(jacobian, A)

    def test_what_does_not_depend_on_the_batch(self):
        f = tensorc.torch.op("def f(float(N) x, float(N) w) -> (s, z, c) { s +=! x(i) z(i) = w(i) + 1 c(i) += x(i) }")
        x, w, c = small(6, 3), small(3), small(3)
        s, z, updated = torch.vmap(f, (0, None, None))(x, w, c)
        assert torch.equal(s, x.sum(1)) and torch.equal(z, (w + 1).expand(6, 3)) and torch.equal(updated, c + x)
        assert torch.equal(c, small(3))

    def test_a_gradient_that_is_given_is_run_for_each_element(self):
        given = tensorc.torch.op(MV, backward=tensorc.gradient(MV), name="given_gradient_in_a_batch")
        A, X = small(4, 5), small(7, 5)
        with pytest.warns(UserWarning, match="performance drop"):
            y = torch.vmap(given, (None, 0))(A, X)
        assert torch.equal(y, X @ A.T)

    def test_in_a_graph(self):
        A, X = small(4, 5), small(7, 5)
        assert torch.equal(torch.compile(torch.vmap(tensorc.torch.op(MV), (None, 0)), backend="eager")(A, X), X @ A.T)

    @pytest.mark.parametrize("text, names, wide", [
        ("def f(float(N) x) -> (s, float(N) y) { s +=! x(i) # sum\n"
         " float t = s * 2  y(i) = v + s where v = x(i) * t, i in 0:x.0 }", {"x"}, {"x", "s", "t", "y"}),
        ("def f<T: float>(T(N,D) E, int(M) I) -> (R, q) { T u(n,d) = E(n,d)  R(m,d) = u(I(m), d)  q(m) = float(I(m)) }",
         {"I"}, {"I", "R", "q"}),
        ("def f<T: float>(T(N,D) E, int(M) I) -> (R, q) { T u(n,d) = E(n,d)  R(m,d) = u(I(m), d)  q(m) = float(I(m)) }",
         {"E"}, {"E", "u", "R"}),
        ("def f(float(B) x, float(B) b) -> (y) { y(i) = x(i)  y(i) += b(i) }", {"b"}, {"b", "y"}),
        ("def f(float(N) x) -> (m) { m max=! x(i) == 3.0 ? 1.0 : .5e1 where i in 1:N }", {"x"}, {"x", "m"}),
    ])
    def test_the_text_of_a_batch(self, text, names, wide):
        batched, found = _batch.batched(f"def g(float(N) x) -> (y) {{ y(i) = x(i) }}\n{text}", "f", names)
        assert found == wide
        (before,), (after,) = tensorc.check(text), tensorc.check(batched)
        for old, new in zip([*before.parameters, *before.results], [*after.parameters, *after.results]):
            assert len(new.shape) == len(old.shape) + (old.name in wide), batched


class TestAutocast:
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_arguments_become_what_the_text_says(self, dtype):
        A, x = small(4, 5), small(5)
        mv = tensorc.torch.op(MV)
        with pytest.raises(tensorc.Error, match="the text says float32"):
            mv(A.to(dtype), x)
        with torch.autocast("cpu", dtype=dtype):
            y = mv(A.to(dtype), x)
            assert y.dtype == torch.float32 and torch.equal(y, (A.double() @ x.double()).float())

    def test_one_type_for_a_type_variable(self):
        add = tensorc.torch.op("def add<T>(T(N) a, T(N) b, int(N) n) -> (c) { c(i) = a(i) + b(i) + T(n(i)) }")
        n = torch.ones(3, dtype=torch.int32)
        half, single = torch.ones(3, dtype=torch.bfloat16), torch.ones(3)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert add(half, single, n).dtype == torch.float32
            assert add(half, half, n).dtype == torch.bfloat16

    def test_gradients_are_of_the_arguments_types(self):
        A, x = small(4, 5).bfloat16().requires_grad_(), small(5).requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            tensorc.torch.op(MV)(A, x).sum().backward()
        assert A.grad.dtype == torch.bfloat16 and torch.equal(x.grad, A.detach().float().sum(0))

    def test_float64_stays(self):
        with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(tensorc.Error, match="is of float64"):
            tensorc.torch.op(MV)(small(4, 5).double(), small(5))

    def test_in_a_graph(self):
        A, x = small(4, 5), small(5)
        mv = tensorc.torch.op(MV)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = torch.compile(lambda a, b: mv(a @ torch.eye(5), b), backend="aot_eager", fullgraph=True)(A, x)
        assert torch.equal(y, A @ x)


def test_second_derivatives():
    """Of sums of cubes, through the derived gradient's own gradient."""
    cube = tensorc.torch.op("def cube(double(N) x) -> (y) { y(i) = x(i) * x(i) * x(i) }")
    x = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(cube(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    assert first.tolist() == [3, 12, 27] and second.tolist() == [6, -12, 18] and third.tolist() == [6, 6, 6]
    assert torch.autograd.gradgradcheck(cube, (x,))
