"""Calls with PyTorch's tensors on the CPU, and operators."""
import concurrent.futures
import copy
import pickle
import subprocess
import sys
import warnings

import numpy as np
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

    def test_a_view_that_is_to_be_negated_is_refused(self):
        """Its memory holds the numbers as they were."""
        negate = tensorc.define("def negate(float(N) x) -> (y) { y(i) = -x(i) }").negate
        view = torch.complex(small(3), small(3, seed=1)).conj().imag
        for arguments in (dict(x=view), dict(x=small(3), out=view)):
            with pytest.raises(ValueError, match=r"PyTorch negates as it reads them: pass tensor.resolve_neg\(\)"):
                negate(**arguments)
        assert torch.equal(negate(view.resolve_neg()), -view)
        assert torch.equal(tensorc.torch.op("def negate(float(N) x) -> (y) { y(i) = -x(i) }")(view), -view)

    @pytest.mark.skipif(not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"), reason="this PyTorch has no exchange")
    def test_what_has_no_memory_is_refused_in_a_line(self):
        negate = tensorc.define("def negate(float(N) x) -> (y) { y(i) = -x(i) }").negate
        for x in (torch.empty(3, device="meta"), small(3).to_sparse()):
            with pytest.raises(TypeError, match="'x' cannot be read in memory: Cannot .*") as caught:
                negate(x)
            assert "\n" not in str(caught.value) and isinstance(caught.value.__cause__, RuntimeError | BufferError)
        with pytest.raises(TypeError, match="'x' cannot be read in memory"):
            torch.vmap(negate)(small(2, 3))

    def test_autograd_sees_what_is_written(self):
        negate = tensorc.define("def negate(float(N) x) -> (y) { y(i) = -x(i) }").negate
        w, saved = small(3).requires_grad_(), small(3, seed=1)
        total = (w * saved).sum()
        negate(small(3), out=saved)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            total.backward()
        with torch.inference_mode():
            negate(small(3), out=torch.empty(3))

    def test_tensors_of_versions_without_an_exchange(self, monkeypatch):
        class Older(torch.Tensor):
            __dlpack_c_exchange_api__ = None

        matmul = tensorc.define(MATMUL).matmul
        A, B = small(5, 6).as_subclass(Older), small(6, 7).as_subclass(Older)
        C = matmul(A, B)
        assert isinstance(C, torch.Tensor) and torch.equal(C, A @ B)
        assert matmul(A, B, out=C) is C and C._version == 1
        assert isinstance(matmul(A, B.numpy()), torch.Tensor), "the first array's library makes the result"
        with torch.no_grad():
            assert torch.equal(matmul(A.detach().requires_grad_(), B), C)
        with pytest.raises(ValueError, match="'A' requires gradients"):
            matmul(A.detach().requires_grad_(), B)
        with pytest.raises(ValueError, match="resolve_neg"):
            matmul(torch._neg_view(A), B)

        class OnGpu(Older):
            def __dlpack_device__(self):
                return 2, 3

            def __dlpack__(self, *, stream, **_):
                raise LookupError(stream)

        class Stream:
            cuda_stream = 0x70

        monkeypatch.setattr(torch.cuda, "current_stream", lambda device: {3: Stream}[device])
        with pytest.raises(LookupError, match=str(0x70)):
            matmul(small(5, 6).as_subclass(OnGpu), small(6, 7).as_subclass(OnGpu))
        fill = tensorc.define("def fill(float a) -> (float(N) y) { y(i) = a }").fill
        with pytest.raises(LookupError, match=str(0x70)):
            fill(1.0, out=small(5).as_subclass(OnGpu))

    def test_tensors_of_one_element_are_scalars(self):
        scale = tensorc.define("def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }").scale
        for a in (torch.tensor(2.5), torch.tensor(2), np.float32(2.5), np.array(2.5)):
            assert torch.equal(scale(small(5), a), float(a) * small(5))
        with pytest.raises(TypeError, match="'a' is a scalar, and takes a number, not a Tensor"):
            scale(small(5), small(5))

    def test_threads_with_arrays_of_two_libraries(self):
        matmul = tensorc.define(MATMUL).matmul
        A, B = small(5, 6), small(6, 7)
        C = matmul(A, B)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            made = list(pool.map(lambda i: matmul(A, B) if i % 2 else matmul(A.numpy(), B.numpy()), range(400)))
        assert all(isinstance(c, torch.Tensor if i % 2 else np.ndarray) for i, c in enumerate(made))
        assert all((torch.as_tensor(c) == C).all() for c in made)

    def test_elements_that_nobody_writes_are_zero(self):
        pad = tensorc.define("def pad(float(H) I) -> (P) { P(h) = I(h - 1) where h in 1:H+1 }").pad
        assert pad(torch.ones(4)).tolist() == [0, 1, 1, 1, 1]


class Layer(torch.nn.Module):
    """One that has an operator."""

    def __init__(self):
        super().__init__()
        self.weight, self.op = torch.nn.Parameter(small(6, 7)), tensorc.torch.op(MATMUL, backward=GRADIENT)

    def forward(self, x):
        return self.op(x, self.weight)


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

    def test_names_that_cannot_be(self):
        for name in ("a-b", "a::b", "1a", ""):
            with pytest.raises(tensorc.Error, match="an operator cannot be called"):
                tensorc.torch.op(MATMUL, name=name)
        tensorc.torch.op(MATMUL, name="taken_backward")
        with pytest.raises(tensorc.Error, match="there is an operator tensorc::taken_backward already"):
            tensorc.torch.op(MATMUL, name="taken")
        tensorc.torch.op(MATMUL, name="taker")
        with pytest.raises(tensorc.Error, match="there is an operator tensorc::taker_backward of another text"):
            tensorc.torch.op(MATMUL, name="taker_backward")

    def test_what_fails_leaves_nothing_registered(self):
        for wrong, sentence in (("def g(float(N) q) -> (d_x) { d_x(i) = q(i) }", "'q', which is neither"),
                                ("def g(float(N) d_y) -> (z) { z(i) = d_y(i) }", "'z', which is not the gradient")):
            with pytest.raises(tensorc.Error, match=sentence):
                tensorc.torch.op("def f(float(N) x) -> (y) { y(i) = -x(i) }", name="again", backward=wrong)
        op = tensorc.torch.op("def f(float(N) x) -> (y) { y(i) = -x(i) }", name="again",
                              backward="def g(float(N) d_y) -> (d_x) { d_x(i) = -d_y(i) }")
        assert torch.equal(op(small(3)), -small(3))

    def test_a_def_without_tensors_is_refused(self):
        with pytest.raises(tensorc.Error, match="'fill' takes no tensor: PyTorch would not know on which device"):
            tensorc.torch.op("def fill(float a, int32 n) -> (y) { y(i) = a where i in 0:n }")

    def test_arguments_by_name(self):
        op, A, B = tensorc.torch.op(MATMUL), small(5, 6), small(6, 7)
        assert torch.equal(op(A, B=B), A @ B) and torch.equal(op(B=B, A=A), A @ B)
        keyword = tensorc.torch.op("def f(float(N) in, float self) -> (out) { out(i) = self * in(i) }")
        assert torch.equal(keyword(**{"in": A[0], "self": 2.0}), 2 * A[0])
        compiled = torch.compile(lambda A, B: op(A, B=B) + 1, fullgraph=True, dynamic=False)
        assert torch.equal(compiled(A, B), A @ B + 1)

    def test_modules_with_operators_are_copied_and_pickled(self):
        layer, x = Layer(), small(5, 6)
        for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            assert other.op is layer.op and torch.equal(other(x), layer(x))
        program = "import pickle, sys; op = pickle.load(sys.stdin.buffer); import torch; print(op(*[torch.ones(2, 2)] * 2))"
        done = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(layer.op), capture_output=True)
        assert done.stdout.decode() == "tensor([[2., 2.],\n        [2., 2.]])\n", done.stderr.decode()

    def test_many_threads_register_one(self):
        text = "def threads(float(N) x) -> (y) { y(i) = 3.0 * x(i) }"
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert len({id(one) for one in pool.map(lambda _: tensorc.torch.op(text), range(32))}) == 1

    def test_second_and_third_derivatives(self):
        op = tensorc.torch.op("def wave(double(N) x, double(N) y) -> (z) { z(i) = sin(x(i)) * x(i) * y(i) }")
        x, y = positive(4).requires_grad_(), positive(4, seed=1).requires_grad_()
        assert torch.autograd.gradcheck(op, (x, y))
        assert torch.autograd.gradgradcheck(op, (x, y))
        slopes = []
        for function in (op, lambda x, y: torch.sin(x) * x * y):
            slope = function(x, y).sum()
            for _ in range(3):
                (slope,) = torch.autograd.grad(slope.sum(), x, create_graph=True)
            slopes.append(slope.detach())
        torch.testing.assert_close(*slopes)

    def test_second_derivatives_through_results_that_are_kept(self):
        """The gradient's def takes the result `m`, which depends on A itself."""
        op = tensorc.torch.op("def lse(double(N,D) A) -> (m, y) { m(n) max=! A(n,d)\n s(n) +=! exp(A(n,d) - m(n))\n"
                              " y(n) = log(s(n)) + m(n) }")
        A = positive(3, 4).requires_grad_()
        assert torch.autograd.gradgradcheck(lambda A: op(A)[1], A)

    def test_second_derivatives_of_what_has_no_dimensions(self):
        """As a number, the gradient of a loss would have no derivative."""
        op = tensorc.torch.op("def cubes(double(N) x) -> (s) { s +=! x(i) * x(i) * x(i) }")
        x = positive(4).requires_grad_()
        assert torch.autograd.gradcheck(op, x) and torch.autograd.gradgradcheck(op, x)
        updated = tensorc.torch.op("def f(double(N) x) -> (double s) { s += x(i) * x(i) * s }")
        s = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(updated, (x, s)) and torch.autograd.gradgradcheck(updated, (x, s))
        given = tensorc.torch.op("def f(double(N) x) -> (s) { s +=! x(i) * x(i) }",
                                 backward="def g(double(N) x, double d_s) -> (d_x) { d_x(i) = 2.0 * d_s * x(i) }")
        assert torch.autograd.gradcheck(given, x)
        slope = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
        with pytest.raises(RuntimeError, match="takes 'd_s' as a number, which has no derivative: declare it"):
            torch.autograd.grad(given(x), x, slope, create_graph=True)

    def test_gradients_of_what_is_updated(self):
        op = tensorc.torch.op("def step(double(N) x) -> (double(N) C) { C(i) = C(i) * C(i) * x(i)\n C(i) += x(i) }")
        x, C = positive(4).requires_grad_(), positive(4, seed=1).requires_grad_()
        torch.testing.assert_close(op(x, C), C * C * x + x)
        assert torch.autograd.gradcheck(op, (x, C)) and torch.autograd.gradgradcheck(op, (x, C))
        named = tensorc.torch.op("def f(double(N) old_C) -> (double(N) C) { C(i) = C(i) * C(i) * old_C(i) }")
        assert torch.autograd.gradcheck(named, (x, C)) and torch.autograd.gradgradcheck(named, (x, C))
        given = tensorc.torch.op("def f(double(N) x) -> (double(N) C) { C(i) = C(i) * x(i) }", backward="""
            def g(double(N) x, double(N) old_C, double(N) d_C) -> (d_x, d_old_C) {
              d_x(i) = d_C(i) * old_C(i)
              d_old_C(i) = d_C(i) * x(i) }""")
        assert torch.autograd.gradcheck(given, (x, C)) and torch.autograd.gradgradcheck(given, (x, C))

    def test_a_parameter_that_only_chooses_has_no_slope(self):
        op = tensorc.torch.op("def f(double(N) x, double(N) c) -> (y) { y(i) = c(i) > 0.7 ? x(i) * x(i) : x(i) }")
        x, c = positive(4).requires_grad_(), positive(4, seed=1).requires_grad_()
        of_x, of_c = torch.autograd.grad(op(x, c).sum(), (x, c), allow_unused=True)
        assert of_c is None
        assert torch.equal(of_x, torch.where(c > 0.7, 2 * x, 1.0))

    def test_forward_mode_is_refused(self):
        """PyTorch alone would say that the tangent is zero."""
        op, A, B = tensorc.torch.op(MATMUL), small(5, 6), small(6, 7)
        with pytest.raises(RuntimeError, match="has no derivative in forward mode"), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of PyTorch for itself
            torch.func.jvp(op, (A, B), (A, B))
        with torch.autograd.forward_ad.dual_level():
            assert torch.equal(op(A, B), A @ B)
            with pytest.raises(RuntimeError, match="has no derivative in forward mode"):
                op(A, B=torch.autograd.forward_ad.make_dual(B, B))

    def test_vmap_and_inference(self):
        op, A, B = tensorc.torch.op(MATMUL), small(3, 5, 6), small(6, 7)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it goes through the batch one by one
            assert torch.equal(torch.vmap(op, (0, None))(A, B), A @ B)
        with torch.inference_mode():
            assert torch.equal(op(A[0], B), A[0] @ B)

    def test_vmap_of_none(self):
        op, A, B = tensorc.torch.op(MATMUL), small(0, 5, 6), small(6, 7).requires_grad_()
        C = torch.vmap(op, (0, None))(A, B)
        assert C.shape == (0, 5, 7) and C.dtype == torch.float32
        assert torch.autograd.grad(C.sum(), B)[0].equal(torch.zeros(6, 7))
        two = tensorc.torch.op("def two(float(N) x, float(N) z) -> (y, s) { y(i) = x(i)  s +=! z(i) }")
        y, s = torch.vmap(two, (0, None))(small(0, 3), torch.ones(3))
        assert y.shape == (0, 3) and s.shape == (0,)
        add = tensorc.torch.op("def add(float(N) x) -> (y) { y(i) += x(i) }")
        assert torch.vmap(add)(small(0, 3), small(0, 3)).shape == (0, 3)

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
        op = tensorc.torch.op("def f(float(N) x) -> (y) { y(i) = lgamma(x(i)) }")
        y = op(small(4).requires_grad_())
        with pytest.raises(RuntimeError, match="tensorc::f_[0-9a-f]{8} has no gradient; give (.|\n)*"
                                               "no gradient is derived through 'lgamma'"):
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


def gradients(function, inputs, weights):
    inputs = [x.detach().clone().requires_grad_(x.is_floating_point()) for x in inputs]
    outputs = function(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    total = sum((o * weights(o.shape, seed)).sum() for seed, o in enumerate(outputs))
    return torch.autograd.grad(total, [x for x in inputs if x.requires_grad])


def positive(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.5


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x * 2 ** -0.5))


# A text over double, what it computes, and shapes of its inputs.
DERIVED = {
    "matmul": ("def f(double(M,K) A, double(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
               lambda A, B: A @ B, [(5, 6), (6, 7)]),
    "batched": ("def f(double(Z,M,K) A, double(Z,N,K) B) -> (C) { C(z,m,n) +=! A(z,m,k) * B(z,n,k) }",
                lambda A, B: A @ B.transpose(1, 2), [(2, 5, 6), (2, 7, 6)]),
    "bias": ("def f(double(M,N) A, double(N) b) -> (C) { C(m,n) = relu(A(m,n) + b(n) - 2.0) }",
             lambda A, b: torch.relu(A + b - 2), [(5, 6), (6,)]),
    "square": ("def f(double(N) x) -> (y) { y(i) = x(i) * x(i) / (1.0 + x(i)) }", lambda x: x * x / (1 + x), [(9,)]),
    "outer": ("def f(double(N) x) -> (y) { y(i,j) = x(i) * x(j) }", lambda x: x[:, None] * x[None, :], [(5,)]),
    "functions": ("def f(double(N) x, double(N) y) -> (z) { z(i) = tanh(exp(-x(i)) * log(y(i))) + sqrt(x(i)) * "
                  "sin(y(i)) - sigmoid(x(i)) / cos(0.1 * y(i)) + pow(x(i), y(i)) + fmax(x(i), y(i)) + rsqrt(x(i)) }",
                  lambda x, y: torch.tanh(torch.exp(-x) * torch.log(y)) + torch.sqrt(x) * torch.sin(y)
                  - torch.sigmoid(x) / torch.cos(float(torch.tensor(0.1, dtype=torch.float32)) * y) + x ** y
                  + torch.maximum(x, y) + torch.rsqrt(x), [(9,), (9,)]),
    "choice": ("def f(double(N) x) -> (y) { y(i) = x(i) > 1.0 ? 3.0 * x(i) : -x(i) }",
               lambda x: torch.where(x > 1, 3 * x, -x), [(9,)]),
    "convolution": ("def f(double(N,C,H,W) I, double(M,C,KH,KW) K) -> (O) "
                    "{ O(n,m,h,w) +=! I(n,c,h + kh,w + kw) * K(m,c,kh,kw) }",
                    torch.nn.functional.conv2d, [(2, 3, 8, 9), (4, 3, 3, 2)]),
    "two results": ("def f(double(M,K) A, double(K) x) -> (y, s) { y(m) +=! A(m,k) * x(k)\n s(k) = 3.0 * x(k) }",
                    lambda A, x: (A @ x, 3 * x), [(5, 6), (6,)]),
    "softmax": ("""def f(double(N,D) I) -> (O) {
                  m(n) max=! I(n,d)
                  O(n,d) = exp(I(n,d) - m(n))
                  s(n) +=! O(n,d)
                  O(n,d) = O(n,d) / s(n)
                }""", lambda I: torch.softmax(I, 1), [(5, 6)]),
    "layernorm": ("""def f(double(N,D) I, double(D) gamma) -> (O) {
                    sum(n) +=! I(n,d)
                    mean(n) = sum(n) / double(6)
                    var(n) +=! (I(n,d) - mean(n)) * (I(n,d) - mean(n))
                    O(n,d) = gamma(d) * (I(n,d) - mean(n)) * rsqrt(var(n) / double(6) + double(1))
                  }""", lambda I, gamma: torch.nn.functional.layer_norm(I, (6,), gamma, eps=1), [(5, 6), (6,)]),
    "perceptron": ("""def f(double(B,N) x, double(M,N) w, double(M) b, double(K,M) v, double(K) c) -> (y, z) {
                     y(i,m) +=! x(i,n) * w(m,n)
                     y(i,m) = relu(y(i,m) + b(m) - double(4))
                     z(i,k) +=! y(i,m) * v(k,m)
                     z(i,k) += c(k)
                   }""", lambda x, w, b, v, c: (torch.relu(x @ w.T + b - 4), torch.relu(x @ w.T + b - 4) @ v.T + c),
                   [(5, 6), (7, 6), (7,), (8, 7), (8,)]),
    "convolutions": ("""def f(double(N) x, double(K) w) -> (z) {
                       t(i) +=! x(i + k) * w(k)
                       z(i) +=! tanh(t(i + k)) * w(k)
                     }""", lambda x, w: torch.conv1d(torch.tanh(torch.conv1d(x[None, None], w[None, None])),
                                                     w[None, None])[0, 0], [(12,), (3,)]),
    "largest and least": ("def f(double(M,K) A) -> (m, n) { m(i) max=! A(i,k)\n n(k) min=! A(i,k) }",
                          lambda A: (torch.amax(A, 1), torch.amin(A, 0)), [(5, 6)]),
    "part of a range": ("def f(double(N) x) -> (y) { y(i) = x(i + 2) where i in 0:3 }", lambda x: x[2:5], [(9,)]),
}


@pytest.mark.parametrize("name", DERIVED)
def test_derived_gradients(name):
    text, reference, shapes = DERIVED[name]
    inputs = [positive(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    op = tensorc.torch.op(text)

    def weights(shape, seed):
        return positive(*shape, seed=10 + seed)

    for found, wanted in zip(gradients(op, inputs, weights), gradients(reference, inputs, weights)):
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)


def test_an_operator_of_a_generic_def():
    op = tensorc.torch.op("def norm<T: float>(T(N,D) x) -> (y) { T s(n) +=! x(n,d) * x(n,d)\n"
                          "  y(n,d) = T(x(n,d) * rsqrt(s(n) + T(0.5))) }")
    for dtype in (torch.float32, torch.float64):
        x = positive(3, 5).to(dtype).requires_grad_()
        def reference(x):
            return x * torch.rsqrt((x * x).sum(1, keepdim=True) + 0.5)
        assert op(x).dtype == dtype and torch.compile(op, fullgraph=True)(x).dtype == dtype
        torch.testing.assert_close(op(x), reference(x))
        found, wanted = (torch.autograd.grad((f(x) * x.detach()).sum(), x)[0] for f in (op, reference))
        torch.testing.assert_close(found, wanted)


def test_the_results_of_a_generic_def_have_the_types_of_its_instance():
    op = tensorc.torch.op("def f<T>(T(N) x) -> (y) { y(i) = x(i) * 1.5 }")
    for dtype, wanted in ((torch.float16, torch.float32), (torch.int64, torch.float32), (torch.float64, torch.float64)):
        x = torch.ones(3, dtype=dtype)
        with torch._subclasses.FakeTensorMode() as mode:
            assert op(mode.from_tensor(x)).dtype == wanted
        assert op(x).dtype == wanted


def test_the_gradient_of_a_generic_def_whose_result_is_wider_than_its_inputs():
    op = tensorc.torch.op("def f<T: float>(T(N) x) -> (y) { y(i) = x(i) * x(i) * 1.5 }")
    for dtype in (torch.float16, torch.float32, torch.float64):
        x = torch.tensor([1.0, 2, 3], dtype=dtype, requires_grad=True)
        (found,) = torch.autograd.grad(op(x).sum(), x)
        assert torch.equal(found, torch.tensor([3.0, 6, 9], dtype=dtype))


def test_an_operator_has_to_know_the_types_of_its_results():
    with pytest.raises(tensorc.Error, match="no argument of 'cast' decides its type variable 'T', which is the type of "
                                            "results only: write a type in its place"):
        tensorc.torch.op("def cast<T>(float(N) x) -> (T(N) y) { y(i) = T(x(i)) }")


def test_the_largest_share_the_gradient():
    op = tensorc.torch.op("def f(float(N,D) A) -> (m) { m(n) max=! A(n,d) }")
    A = torch.tensor([[1.0, 3, 3], [2, 0, 1], [5, 5, 5]], requires_grad=True)
    assert torch.equal(torch.autograd.grad(op(A).sum(), A)[0], torch.autograd.grad(torch.amax(A, 1).sum(), A)[0])


def test_derived_gradients_of_half_precision_and_gathers():
    text = """def lookup(float16(E,D) table, int32(B,L) at) -> (O) {
      O(b,d) +=! table(at(b,l),d) }"""
    op = tensorc.torch.op(text)
    table = (small(7, 4) / 4).half().requires_grad_()
    at = torch.randint(0, 7, (3, 5), generator=torch.Generator().manual_seed(0), dtype=torch.int32)
    (found,) = torch.autograd.grad(op(table, at).sum(), table)
    (wanted,) = torch.autograd.grad(table[at.long()].sum(1).sum(), table)
    assert torch.equal(found, wanted)


def test_derived_gradients_in_a_graph():
    op = tensorc.torch.op("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }")
    compiled = torch.compile(lambda A, B: torch.relu(op(A, B)), fullgraph=True, dynamic=False)
    A, B = small(5, 6).requires_grad_(), small(6, 7).requires_grad_()
    found = torch.autograd.grad(compiled(A, B).sum(), (A, B))
    for a, b in zip(found, torch.autograd.grad(torch.relu(A @ B).sum(), (A, B))):
        assert torch.equal(a, b)
