"""Calls with PyTorch's tensors on the CPU, and operators."""
import pytest

import tensorc

torch = pytest.importorskip("torch", reason="PyTorch is not installed for this Python")
import tensorc.torch  # noqa: E402

MATMUL = "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
GRADIENT = """
def matmul_gradient(float(M,K) A, float(K,N) B, float(M,N) d_C) -> (d_A, d_B) {
  d_A(m,k) +=! d_C(m,n) * B(k,n)
  d_B(k,n) +=! d_C(m,n) * A(m,k)
}"""


def small(*shape, seed=0):
    return torch.randint(-4, 5, shape, generator=torch.Generator().manual_seed(seed)).float()


class TestCalls:
    def test_results_are_tensors(self):
        matmul = tensorc.define(MATMUL).matmul
        A, B = small(5, 6), small(6, 7)
        C = matmul(A, B)
        assert isinstance(C, torch.Tensor) and torch.equal(C, A @ B)
        assert torch.equal(matmul(A, B, out=torch.empty(5, 7)), A @ B)
        assert matmul.kernels == 1
        assert torch.equal(matmul(A.T.contiguous().T, B), A @ B)
        assert matmul.kernels == 2

    def test_arrays_of_several_libraries(self):
        matmul = tensorc.define(MATMUL).matmul
        A, B = small(5, 6), small(6, 7)
        assert torch.equal(matmul(A, B.numpy()), A @ B)
        assert (matmul(A.numpy(), B) == (A @ B).numpy()).all()
        assert matmul.kernels == 1

    @pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16",
                                       "float32", "float64"])
    def test_element_types(self, dtype):
        copy = tensorc.define(f"def copy({dtype}(N) x) -> (y) {{ y(i) = x(i) }}").copy
        x = torch.tensor([0, 1, 1, 0]).to(getattr(torch, dtype))
        assert torch.equal(copy(x), x)

    def test_a_call_does_not_hide_from_autograd(self):
        matmul = tensorc.define(MATMUL).matmul
        A, B = small(5, 6).requires_grad_(), small(6, 7)
        with pytest.raises(ValueError, match="'A' requires gradients, which do not flow through this call"):
            matmul(A, B)
        with torch.no_grad():
            assert torch.equal(matmul(A, B), A @ B)
        assert torch.equal(matmul(A.detach(), B), A @ B)

    def test_elements_that_nobody_writes_are_zero(self):
        pad = tensorc.define("def pad(float(H) I) -> (P) { P(h) = I(h - 1) where h in 1:H+1 }").pad
        assert pad(torch.ones(4)).tolist() == [0, 1, 1, 1, 1]


class TestOperators:
    def test_is_registered(self):
        op = tensorc.torch.op(MATMUL)
        assert op is tensorc.torch.op(MATMUL)
        A, B = small(5, 6), small(6, 7)
        assert torch.equal(op(A, B), A @ B)
        torch.library.opcheck(op.overload, (A, B))

    def test_opcheck_with_gradients(self):
        op = tensorc.torch.op(MATMUL, backward=GRADIENT)
        torch.library.opcheck(op.overload, (small(5, 6).requires_grad_(), small(6, 7).requires_grad_()))

    def test_names(self):
        op = tensorc.torch.op(MATMUL, name="named_matmul")
        assert op.name == "tensorc::named_matmul"
        with pytest.raises(tensorc.Error, match="there is an operator tensorc::named_matmul of another text"):
            tensorc.torch.op(MATMUL + " ", name="named_matmul")
        keyword = tensorc.torch.op("def f(float(N) in, float self) -> (out) { out(i) = self * in(i) }")
        assert torch.equal(keyword(small(3), 2.0), 2 * small(3))

    def test_compiles_without_a_break(self):
        op = tensorc.torch.op(MATMUL, backward=GRADIENT)

        def model(A, B):
            return torch.relu(op(A + 1, B)) * 2

        compiled = torch.compile(model, fullgraph=True, dynamic=False)
        A, B = small(5, 6).requires_grad_(), small(6, 7).requires_grad_()
        expected = model(A, B)
        wanted = torch.autograd.grad(expected.sum(), (A, B))
        found = compiled(A, B)
        assert torch.equal(found, expected)
        for a, b in zip(torch.autograd.grad(found.sum(), (A, B)), wanted):
            assert torch.equal(a, b)

    def test_compiles_for_symbolic_shapes(self):
        op = tensorc.torch.op(MATMUL)
        frames = torch._dynamo.testing.CompileCounter()
        compiled = torch.compile(lambda A, B: op(A, B) + 1, fullgraph=True, dynamic=True, backend=frames)
        for m, k, n in ((5, 6, 7), (8, 9, 10), (11, 3, 4)):
            A, B = small(m, k), small(k, n)
            assert torch.equal(compiled(A, B), A @ B + 1)
        assert frames.frame_count == 1

    def test_gradients(self):
        op = tensorc.torch.op(MATMUL, backward=GRADIENT)
        A, B = small(5, 6).requires_grad_(), small(6, 7).requires_grad_()
        weights = small(5, 7, seed=1)
        wanted = torch.autograd.grad(((A @ B) * weights).sum(), (A, B))
        for a, b in zip(torch.autograd.grad((op(A, B) * weights).sum(), (A, B)), wanted):
            assert torch.equal(a, b)
        assert torch.equal(torch.autograd.grad(op(A, B).sum(), A)[0], torch.autograd.grad((A @ B).sum(), A)[0])

    def test_gradients_of_results_and_scalars(self):
        op = tensorc.torch.op(
            "def f(float a, float(N) x) -> (y) { y(i) = exp(a * x(i)) }",
            backward="def g(float a, float(N) y, float(N) d_y) -> (d_x) { d_x(i) = a * y(i) * d_y(i) }")
        x = (small(9) / 8).requires_grad_()
        op(0.5, x).sum().backward()
        torch.testing.assert_close(x.grad, 0.5 * torch.exp(0.5 * x.detach()))

    def test_a_missing_gradient_is_an_error(self):
        op = tensorc.torch.op("def f(float(N) x) -> (y) { y(i) = 3 * x(i) }")
        y = op(small(4).requires_grad_())
        with pytest.raises(RuntimeError, match="tensorc::f_[0-9a-f]{8} has no gradient: give tensorc.torch.op"):
            y.sum().backward()

    def test_gradients_have_to_fit(self):
        with pytest.raises(tensorc.Error, match="the gradient 'g' takes 'z', which is neither"):
            tensorc.torch.op(MATMUL, backward="def g(float(N) z) -> (d_A) { d_A(i) = z(i) }")
        with pytest.raises(tensorc.Error, match="the gradient 'g' makes 'd_D', which is not the gradient"):
            tensorc.torch.op(MATMUL, backward="def g(float(M,K) A) -> (d_D) { d_D(i, j) = A(i, j) }")

    def test_updates_return_a_copy(self):
        op = tensorc.torch.op("def accumulate(float(N) x) -> (s) { s(i) += x(i) }")
        x, s = small(5), torch.ones(5)
        assert torch.equal(op(x, s), 1 + x) and torch.equal(s, torch.ones(5))
        torch.library.opcheck(op.overload, (x, s))

    def test_several_results(self):
        op = tensorc.torch.op("def two(float(N) x) -> (sum, twice) { sum +=! x(i)\n twice(i) = 2 * x(i) }")
        x = small(7)
        total, twice = torch.compile(op, fullgraph=True)(x)
        assert total == x.sum() and torch.equal(twice, 2 * x)

    def test_wrong_shapes_are_errors_in_a_graph_too(self):
        op = tensorc.torch.op(MATMUL)
        with pytest.raises(tensorc.Error, match="dimension 0 of 'B' is 5, but it must be 4"):
            op(small(3, 4), small(5, 5))
