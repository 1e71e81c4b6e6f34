"""Arrays of every kind that a caller may come with, and processes that do more than call."""
import array
import copy
import ctypes
import multiprocessing
import pickle
import subprocess
import sys
import weakref

import numpy as np
import pytest

import tensorc

MATMUL = "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
NEGATE = "def negate(float(N) x) -> (y) { y(i) = -x(i) }"


@pytest.fixture(scope="module")
def matmul():
    return tensorc.define(MATMUL).matmul


@pytest.fixture(scope="module")
def negate():
    return tensorc.define(NEGATE).negate


def test_arrays_without_elements(matmul):
    for m, k, n in ((0, 4, 5), (3, 0, 5), (3, 4, 0), (0, 0, 0)):
        C = matmul(np.ones((m, k), "float32"), np.ones((k, n), "float32"))
        assert C.shape == (m, n) and (C == k).all()


def test_read_only_arguments(negate):
    x = np.arange(5, dtype="float32")
    x.flags.writeable = False
    assert (negate(x) == -x).all()
    assert (negate(np.broadcast_to(np.float32(3), (4,))) == -3).all()
    assert (negate(np.frombuffer(b"\0\0\x80?" * 3, "float32")) == -1).all()


def test_views(negate):
    x = np.arange(12, dtype="float32")
    for view in (x[::3], x[5:5], x.reshape(3, 4).T[1], x.reshape(3, 4)[:, 2]):
        assert (negate(view) == -view).all()
    whole = np.zeros(12, "float32")
    negate(x[:4], out=whole[::3])
    assert (whole[::3] == -x[:4]).all()
    with pytest.raises(tensorc.Error, match="negative strides are not supported, a copy of the tensor is needed"):
        negate(x[::-1])


def test_subclasses_give_plain_arrays(negate):
    class Named(np.ndarray):
        pass

    y = negate(np.arange(3, dtype="float32").view(Named))
    assert type(y) is np.ndarray and (y == [0, -1, -2]).all()


@pytest.mark.parametrize("dtype", [">f4", "O", "S4", "U1", "datetime64[s]", "longdouble", "complex128", "V4",
                                   [("a", "f4")]])
def test_elements_of_other_types(negate, dtype):
    with pytest.raises(TypeError, match="is no type of the language"):
        negate(np.zeros(3, dtype))


def test_a_result_of_a_type_that_numpy_does_not_have():
    narrow = tensorc.define("def narrow(float(N) x) -> (bfloat16(N) y) { y(i) = bfloat16(x(i)) }").narrow
    x = np.array([1, 2, 3 + 2.0 ** -9], "float32")
    try:
        import ml_dtypes
    except ImportError:
        with pytest.raises(TypeError, match="numpy has no element type bfloat16 without the package ml_dtypes"):
            narrow(x)
        return
    y = narrow(x)
    assert y.dtype == ml_dtypes.bfloat16 and y.tolist() == [1, 2, 3]
    copy_of = tensorc.define("def copy(bfloat16(N) x) -> (y) { y(i) = x(i) }").copy
    assert copy_of(y[::2]).tolist() == [1, 3]
    with pytest.raises(TypeError, match="float8_e4m3b11fnuz is no type of the language"):
        copy_of(y.astype(ml_dtypes.float8_e4m3b11fnuz))


@pytest.mark.parametrize("name, of_numpy", [("float8_e4m3", "float8_e4m3fn"), ("float8_e5m2", "float8_e5m2")])
def test_eight_bit_floats(name, of_numpy):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, of_numpy))
    codes = np.arange(256, dtype="uint8").view(dtype)
    read = tensorc.define(f"def read({name}(N) A) -> (O) {{ O(i) = A(i) }}").read
    assert np.array_equal(read(codes), codes.astype("float32"), equal_nan=True)
    write = tensorc.define(f"def write(float(N) A) -> ({name}(N) O) {{ O(i) = A(i) }}").write
    largest = float(ml_dtypes.finfo(dtype).max)
    x = np.random.default_rng(0).uniform(-largest, largest, 10000).astype("float32")
    x *= (2.0 ** np.random.default_rng(1).integers(-20, 0, 10000)).astype("float32")
    written = write(x)
    assert written.dtype == dtype and (written.view("uint8") == x.astype(dtype).view("uint8")).all()
    beyond = np.array([1e9, -1e9, np.inf, -np.inf], "float32")
    assert write(beyond).astype("float32").tolist() == [largest, -largest, largest, -largest]
    with pytest.raises(tensorc.Error, match=f"is of uint8; the text says {name}"):
        read(codes.view("uint8"))


def test_anything_with_a_buffer(negate):
    x = np.arange(6, dtype="float32")
    single = (ctypes.c_float * 6)(*range(6))
    for buffer in (memoryview(x), array.array("f", range(6)), single):
        y = negate(buffer)
        assert isinstance(y, np.ndarray) and (y == -x).all()
        taken = array.array("f", bytes(24))
        assert negate(buffer, out=taken) is taken and list(taken) == list(-x)
    bytes_of = tensorc.define("def bytes_of(uint8(M,N) x) -> (y) { y(i,j) = x(i,j) }").bytes_of
    assert bytes_of(memoryview(b"abcdef").cast("B", (2, 3))).tolist() == [[97, 98, 99], [100, 101, 102]]
    with pytest.raises(ValueError, match="'y' is written, and the array for it is read-only"):
        negate(x, out=memoryview(bytes(24)).cast("f"))
    with pytest.raises(TypeError, match="'x' has a buffer of the format 'c', which is no type of the language"):
        negate(memoryview(b"abc").cast("c"))
    with pytest.raises(tensorc.Error, match="is of uint8; the text says float32"):
        negate(bytearray(b"abc"))
    assert tensorc.compile(NEGATE, inputs=[array.array("f", [1, 2])]).inputs[0].shape == (2,)


@pytest.mark.parametrize("field, value, wanted", [
    ("shape", 3, "a tuple of integers"), ("shape", ("a",), "a tuple of integers"), ("typestr", 4, "a string"),
    ("data", 0, "a tuple of an integer and a bool"), ("strides", "ab", "a tuple of integers"), ("stream", 1.5, "an integer")])
def test_a_cuda_array_interface_with_fields_of_other_types(negate, field, value, wanted):
    class Array:
        __cuda_array_interface__ = {"typestr": "<f4", "shape": (3,), "data": (256, False), "version": 3, field: value}
    with pytest.raises(TypeError, match=f"'x' has a __cuda_array_interface__ whose '{field}' is .*, not {wanted}"):
        negate(Array())


@pytest.mark.parametrize("value", [np.float32(1), 1.0, None, "x", [1.0], object(),
                                   np.ma.masked_array(np.ones(3, "float32"), [1, 0, 0])])
def test_what_is_no_array(negate, value):
    with pytest.raises(TypeError, match="'x' is a tensor, and takes an array"):
        negate(value)


def test_arrays_without_memory(negate):
    """As the tracers of jax.jit and jax.grad are."""
    class Tracer:
        @property
        def __dlpack_device__(self):
            raise AttributeError("a tracer has no memory")

        def __dlpack__(self, **_):
            raise AssertionError

    for arguments in ((Tracer(), None), (np.ones(3, "float32"), Tracer())):
        with pytest.raises(TypeError, match="'[xy]' cannot be read in memory: a tracer has no memory"):
            negate(arguments[0], out=arguments[1])
    with pytest.raises(TypeError, match="'inputs' cannot be read in memory"):
        tensorc.compile(NEGATE, inputs=[Tracer()])


def test_functions_and_kernels_are_weakly_referenceable(negate):
    """Caches of frameworks ask for that."""
    kernel = negate.compile(np.ones(3, "float32"))
    for one in (negate, kernel):
        assert weakref.ref(one)() is one
    gone = weakref.ref(kernel)
    del one, kernel
    assert gone() is None


def test_arrays_of_rank_zero():
    double = tensorc.define("def double_(float(N) x) -> (s) { s +=! x(i) }").double_
    s = double(np.ones(3, "float32"))
    assert type(s) is np.ndarray and s.shape == () and s == 3
    with pytest.raises(tensorc.Error, match="'x' has 1 dimension in 'double_', but the tensor given has 0"):
        double(np.array(1, "float32"))


def test_numbers_of_every_kind():
    scale = tensorc.define("def scale(float a, int32 n, bool f, float(N) x) -> (y) "
                           "{ y(i) = f ? a * x(i) + float(n) : x(i) }").scale
    x = np.ones(2, "float32")
    for a, n, f in ((np.float64(2), np.int8(3), np.True_), (np.float16(2), np.uint64(3), True), (2, 3, 1),
                    (np.array(2.0), np.array(3), np.array(True))):
        assert (scale(a, n, f, x) == 5).all()
    assert (scale(10 ** 30, 0, True, x) == np.float32(1e30)).all()
    for wrong, sentence in ((2 ** 31, "2147483648"), (2.5, "2.5"), (2 ** 64, "1.8446744"), (-2 ** 64, "-1.8446744")):
        with pytest.raises(tensorc.Error, match=f"'n'.*{sentence}"):
            scale(2, wrong, True, x)
    with pytest.raises(TypeError, match="'a' is a scalar, and takes a number, not a complex"):
        scale(2j, 3, True, x)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_what_a_number_raises_is_raised(error):
    class Number:
        def __float__(self):
            raise error

    with pytest.raises(error):
        tensorc.define("def scale(float a, float(N) x) -> (y) { y(i) = a * x(i) }").scale(Number(), np.ones(2, "float32"))


def test_what_is_not_pickled_says_so(matmul):
    A = np.ones((2, 2), "float32")
    for one in (matmul, matmul.compile(A, A)):
        with pytest.raises(TypeError, match="cannot pickle .*(Function|Kernel)"):
            pickle.dumps(one)
        with pytest.raises(TypeError, match="cannot pickle .*(Function|Kernel)"):
            copy.copy(one)
    with pytest.raises(tensorc.Error) as caught:
        tensorc.check("def f(")
    error = pickle.loads(pickle.dumps(caught.value))
    assert type(error) is tensorc.Error and str(error) == str(caught.value)
    assert error.diagnostics == caught.value.diagnostics


def squares(function, A, queue):
    queue.put([bool((function(A, A) == A @ A).all()) for _ in range(20)])


@pytest.mark.parametrize("compiled", [True, False])
def test_a_forked_process_computes(compiled):
    """With threads of its own: those of its parent do not come along."""
    function = tensorc.define(MATMUL).matmul
    A = np.ones((200, 200), "float32")
    other = tensorc.define(NEGATE).negate
    (function if compiled else other)(*([A, A] if compiled else [A[0]]))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=squares, args=(function, A, queue))
    child.start()
    try:
        assert all(queue.get(timeout=60))
    finally:
        child.kill()
        child.join()
    assert (function(A, A) == 200).all()


EXITS = {
    "with kernels in globals": "",
    "with a thread that calls": """
import threading
def work():
    while True: f(x)
threading.Thread(target=work, daemon=True).start()
import time; time.sleep(0.2)
""",
    "by an exception in a call's thread": """
import threading
threading.Thread(target=lambda: f(x, x)).start()
""",
    "in a cycle": """
class Node: pass
node = Node(); node.me, node.f, node.kernel = node, f, f.compile(x)
""",
}


@pytest.mark.parametrize("how", EXITS)
def test_the_interpreter_exits(how):
    program = (f"import numpy as np, tensorc\nf = tensorc.define({NEGATE!r}).negate\n"
               "x = np.ones(100000, 'float32')\nf(x)\n")
    done = subprocess.run([sys.executable, "-c", program + EXITS[how] + "\nprint('end')"], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "end\n", done.stderr
    assert "nanobind" not in done.stderr
