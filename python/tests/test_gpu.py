"""Calls and operators on a GPU: PyTorch, CuPy and JAX, streams and graphs."""
import pytest

import tensorc

torch = pytest.importorskip("torch", reason="PyTorch is not installed for this Python")
import tensorc.torch  # noqa: E402

pytestmark = pytest.mark.gpu

MATMUL = "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
GRADIENT = """
def matmul_gradient(float(M,K) A, float(K,N) B, float(M,N) d_C) -> (d_A, d_B) {
  d_A(m,k) +=! d_C(m,n) * B(k,n)
  d_B(k,n) +=! d_C(m,n) * A(m,k)
}"""
SOFTMAX = """
def softmax(float(N,D) I) -> (O) {
  m(n) max=! I(n,d)
  e(n,d) = exp(I(n,d) - m(n))
  s(n) +=! e(n,d)
  O(n,d) = e(n,d) / s(n)
}"""
ADD = "def add(float(N) x, float(N) y) -> (z) { z(i) = x(i) + y(i) }"


def small(*shape, seed=0):
    return torch.randint(-4, 5, shape, generator=torch.Generator().manual_seed(seed)).float().cuda()


def test_results_are_on_the_gpu():
    matmul = tensorc.define(MATMUL).matmul
    A, B = small(65, 33), small(33, 70)
    C = matmul(A, B)
    assert C.is_cuda and torch.equal(C, (A.double() @ B.double()).float())
    assert torch.equal(matmul(A, B, out=torch.empty(65, 70, device="cuda")), C)
    assert torch.equal(matmul(A.cpu(), B.cpu()), C.cpu())
    assert matmul.kernels == 2


def test_arrays_of_two_devices_are_an_error():
    with pytest.raises(tensorc.Error, match="input 'B' is in host memory; the kernel runs on CUDA device 0"):
        tensorc.define(MATMUL).matmul(small(4, 5), small(5, 6).cpu())


def test_strides_are_honoured():
    matmul, op = tensorc.define(MATMUL).matmul, tensorc.torch.op(MATMUL)
    A, B = small(8, 9).T, small(8, 6)
    assert torch.equal(matmul(A, B), A @ B) and torch.equal(op(A, B), A @ B)
    rows, columns = small(18, 20)[::2, 3:11], small(12, 8).T[:, ::2]
    assert torch.equal(matmul(rows, columns), rows @ columns)
    repeated = small(1, 8).expand(9, 8)
    assert torch.equal(matmul(repeated, B), repeated @ B)


def test_a_block_of_a_larger_matrix_is_written_alone():
    whole, A, B = torch.full((40, 50), 7.0, device="cuda"), small(16, 9), small(9, 24)
    block = whole[4:20, 8:32]
    tensorc.define(MATMUL).matmul(A, B, out=block)
    assert torch.equal(block, A @ B)
    whole[4:20, 8:32] = 7
    assert torch.equal(whole, torch.full_like(whole, 7))


def test_slices_that_are_not_aligned_to_vectors():
    add = tensorc.define(ADD).add
    x, y = small(4098), small(4097, seed=1)
    for first in (0, 1, 2):
        z = torch.zeros_like(y)
        add(x[first:first + 4096], y[1:], out=z[1:])
        assert torch.equal(z[1:], x[first:first + 4096] + y[1:]) and z[0] == 0
    assert add.kernels == 1


def test_side_streams_order_the_work():
    add = tensorc.define(ADD).add
    x = torch.zeros(1 << 22, device="cuda")
    add(x, x)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        x.fill_(3)
        y = add(x, x)
    assert not stream.query(), "the call waited for the stream"
    stream.synchronize()
    assert (y == 6).all()
    stream = torch.cuda.Stream()
    z = torch.empty_like(x)
    add(x, x, out=z, stream=stream)
    stream.synchronize()
    assert (z == 6).all()


@pytest.mark.parametrize("text,shapes", [(ADD, [(1000,), (1000,)]), (SOFTMAX, [(300, 5000)]), (MATMUL, [(65, 33), (33, 70)])])
def test_graphs(text, shapes):
    program = tensorc.define(text)
    function = program[next(iter(program))]
    inputs = [small(*shape) for shape in shapes]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        expected = function(*inputs).clone()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        result = function(*inputs)
    result.zero_()
    graph.replay()
    assert torch.equal(result, expected)
    for x in inputs:
        x.neg_()
    graph.replay()
    assert torch.equal(result, function(*inputs))


def test_cupy():
    cupy = pytest.importorskip("cupy")
    matmul = tensorc.define(MATMUL).matmul
    A, B = cupy.asarray(small(30, 40)), cupy.asarray(small(40, 50))
    C = matmul(A, B)
    assert type(C) is cupy.ndarray and bool((C == A @ B).all())
    with cupy.cuda.Stream(non_blocking=True) as stream:
        C = matmul(A + 1, B)
        stream.synchronize()
    assert bool((C == (A + 1) @ B).all())
    mixed = matmul(A, torch.as_tensor(B, device="cuda"))
    assert type(mixed) is cupy.ndarray and bool((mixed == A @ B).all())


def test_cuda_array_interface():
    class Wrapped:
        def __init__(self, tensor):
            self.tensor = tensor
            self.__cuda_array_interface__ = tensor.__cuda_array_interface__

    Wrapped.__cuda_array_interface__ = None  # a class attribute says what instances have
    add = tensorc.define(ADD).add
    x, y, z = small(100), small(100, seed=1), torch.empty(100, device="cuda")
    add(Wrapped(x), Wrapped(y), out=Wrapped(z))
    assert torch.equal(z, x + y)
    with pytest.raises(TypeError, match="pass one as out="):
        add(Wrapped(x), Wrapped(y))


def test_the_stream_of_a_cuda_array_interface_is_used():
    class Wrapped:
        def __init__(self, tensor, stream):
            self.__cuda_array_interface__ = dict(tensor.__cuda_array_interface__, version=3, stream=stream.cuda_stream)

    Wrapped.__cuda_array_interface__ = None
    add = tensorc.define(ADD).add
    x, z, stream = torch.zeros(1 << 22, device="cuda"), torch.empty(1 << 22, device="cuda"), torch.cuda.Stream()
    add(x, x, out=z)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        x.fill_(3)
    array = Wrapped(x, stream)
    add(array, array, out=Wrapped(z, stream))
    stream.synchronize()
    assert (z == 6).all()


def test_jax():
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX sees no GPU")
    jnp = jax.numpy
    matmul = tensorc.define(MATMUL).matmul
    A, B = jnp.arange(12.0).reshape(3, 4), jnp.arange(20.0).reshape(4, 5)
    C = matmul(A + 1, B)
    assert isinstance(C, jax.Array) and bool((C == jnp.matmul(A + 1, B, precision="highest")).all())


def test_operators_compile_and_have_gradients():
    op = tensorc.torch.op(MATMUL, backward=GRADIENT)
    compiled = torch.compile(lambda A, B: torch.relu(op(A + 1, B)) * 2, fullgraph=True)
    A, B = small(65, 33).requires_grad_(), small(33, 70).requires_grad_()
    with torch.no_grad():
        expected = torch.relu((A.double() + 1) @ B.double()).float() * 2
    found = compiled(A, B)
    assert torch.equal(found, expected)
    exact = [a.detach().double().requires_grad_() for a in (A, B)]
    wanted = torch.autograd.grad((torch.relu((exact[0] + 1) @ exact[1]) * 2).sum(), exact)
    for a, b in zip(torch.autograd.grad(found.sum(), (A, B)), wanted):
        assert torch.equal(a, b.float())


def test_operators_in_reduced_overhead_mode():
    op = tensorc.torch.op(SOFTMAX)
    compiled = torch.compile(lambda x: op(x * 2) + 1, fullgraph=True, mode="reduce-overhead")
    x = torch.randn(64, 1000, device="cuda")
    for _ in range(4):
        torch.testing.assert_close(compiled(x), torch.softmax(x * 2, 1) + 1)
