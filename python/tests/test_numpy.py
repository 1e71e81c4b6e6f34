"""Calls with NumPy's arrays."""
import gc
import threading
import weakref

import numpy as np
import pytest

import tensorc

MATMUL = "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
SCALE = "def scale(float a, float(N) x) -> (y) { y(i) = a * x(i) }"
STRIDE = "def stride(int32 s, float(N) x) -> (y) { y(i) = x(s * i) where i in 0:2 }"
ACCUMULATE = "def accumulate(float(N) x) -> (s) { s(i) += x(i) }"
TWO = "def two(float(N) x) -> (sum, twice) { sum +=! x(i)\n twice(i) = 2 * x(i) }"


def small(*shape, dtype="float32", seed=0):
    """Small integers: sums of products of them are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


@pytest.fixture(scope="module")
def matmul():
    return tensorc.define(MATMUL).matmul


def test_matmul_equals_numpy(matmul):
    A, B = small(17, 9), small(9, 23, seed=1)
    C = matmul(A, B)
    assert type(C) is np.ndarray and C.dtype == np.float32
    assert (C == A @ B).all()


def test_compiles_once_for_each_shape():
    function = tensorc.define(MATMUL).matmul
    A, B = small(4, 5), small(5, 6)
    for _ in range(3):
        function(A, B)
    assert function.kernels == 1
    function(A.copy(), B, out=np.empty((4, 6), "float32"))
    assert function.kernels == 1
    function(small(7, 5), B)
    function(np.asfortranarray(A), B)
    assert function.kernels == 3
    function.clear()
    assert function.kernels == 0


SCALE_ANY = "def scale<T>(T(N) x, T a) -> (y) { y(i) = a * x(i) }"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "int64", "uint16"])
def test_arrays_pick_the_instance_of_a_generic_def(dtype):
    scale = tensorc.define(SCALE_ANY).scale
    x = np.arange(5, dtype=dtype)
    y = scale(x, 3)
    assert y.dtype == x.dtype and (y == 3 * x).all()
    assert scale.kernels == 1


def test_a_result_that_is_read_before_all_of_it_is_written_starts_from_zero():
    function = tensorc.define("""def f(float(N) A, float(N) B) -> (O, Q) {
      O(i) = A(i) where i in 0:2
      Q(i) = O(i) where i in 0:N
      O(i) = B(i)
    }""").f
    for _ in range(10):
        used = [np.full(1000, 7, "float32") for _ in range(4)]
        del used
        O, Q = function(np.ones(1000, "float32"), np.full(1000, 3, "float32"))
        assert (O == 3).all() and (Q[:2] == 1).all() and not Q[2:].any()


def test_a_generic_def_says_what_its_variables_are():
    signature = tensorc.check("def norm<T: float>(T(N) x) -> (y) { y(i) = x(i) }")[0]
    assert signature.type_variables == {"T": "float"}
    assert [a.type_variable for a in [*signature.parameters, *signature.results]] == ["T", "T"]
    assert repr(signature) == "<tensorc.Signature norm<T: float>(T(N) x) -> (T|float32(N) y)>"
    assert signature.results[0].widens_float8  # elements of 8-bit floats are read as float32
    declared = tensorc.check("def norm<T: float>(T(N) x) -> (T(N) y) { y(i) = x(i) }")[0]
    assert repr(declared) == "<tensorc.Signature norm<T: float>(T(N) x) -> (T(N) y)>"


def test_a_generic_def_has_no_variable_for_a_result_that_differs_from_it():
    function = tensorc.define("def f<T>(T(N) x) -> (y) { y(i) = x(i) * 1.5 }").f
    assert function.signature.results[0].type_variable == ""
    for dtype, wanted in ("float16", "float32"), ("int64", "float32"), ("float64", "float64"):
        assert function(np.ones(3, dtype)).dtype == wanted


def test_a_result_decides_a_type_that_no_input_has():
    cast = tensorc.define("def cast<T>(float(N) x) -> (T(N) y) { y(i) = T(x(i)) }").cast
    x = np.array([1.5, 2.5, -3.5], "float32")
    for dtype in ("float64", "int32", "float64"):
        y = np.zeros(3, dtype)
        assert cast(x, out=y) is y and (y == x.astype(dtype)).all()
    assert cast.kernels == 2
    with pytest.raises(tensorc.Error, match="nothing decides the type variable 'T' of 'cast'"):
        cast(x)


def test_arrays_of_one_type_variable_agree():
    add = tensorc.define("def add<T: float>(T(N) x, T(N) y) -> (z) { z(i) = x(i) + y(i) }").add
    with pytest.raises(tensorc.Error, match="'x' is of float32 and 'y' of float64; both have the type 'T' of 'add'"):
        add(np.zeros(3, "float32"), np.zeros(3, "float64"))
    with pytest.raises(tensorc.Error, match="restricted to float types; 'x' is int32"):
        add(np.zeros(3, "int32"), np.zeros(3, "int32"))
    z = np.zeros(3)
    assert add(np.ones(3), np.ones(3), out=z) is z and (z == 2).all()


def test_the_gradient_of_a_generic_def_is_generic():
    text = tensorc.gradient("def square<T: float>(T(N) x) -> (y) { y(i) = x(i) * x(i) }")
    derived = tensorc.define(text).square_gradient
    assert derived.signature.type_variables == {"T": "float"}
    for dtype in ("float16", "float32", "float64"):
        x = np.arange(4, dtype=dtype)
        assert (derived(x, np.ones(4, dtype)) == 2 * x).all() and derived(x, x).dtype == x.dtype


def test_strides_are_honoured(matmul):
    A, B = small(12, 10)[::2, ::2], small(8, 5, seed=2).T
    assert (matmul(A, B) == A @ B).all()


def test_out_is_written_in_place_and_returned(matmul):
    A, B = small(3, 4), small(4, 5)
    whole = np.zeros((3, 10), "float32")
    assert matmul(A, B, out=whole[:, ::2]).base is whole
    assert (whole[:, ::2] == A @ B).all() and not whole[:, 1::2].any()
    C = np.empty((3, 5), "float32")
    assert matmul(A, B, C=C) is C


def test_a_list_of_outs_may_change_during_the_call():
    scale, x, outs = tensorc.define(SCALE).scale, small(5), []

    class Out(np.ndarray):
        pass

    class Scalar:
        def __float__(self):
            outs.clear()  # as another thread may
            gone.append(out() is None)
            return 3.0

    gone, outs[:] = [], [np.empty(5, "float32").view(Out)]
    out = weakref.ref(outs[0])
    assert (scale(Scalar(), x, out=outs) == 3 * x).all() and gone == [False]


def test_arguments_by_name(matmul):
    A, B = small(3, 4), small(4, 5)
    assert (matmul(B=B, A=A) == A @ B).all()
    assert (matmul(A, B=B) == A @ B).all()


def test_several_results_and_several_outs():
    two = tensorc.define(TWO).two
    x = small(7)
    total, twice = two(x)
    assert total.shape == () and total == x.sum() and (twice == 2 * x).all()
    given = np.empty(7, "float32")
    assert two(x, out=(None, given))[1] is given
    with pytest.raises(TypeError, match=r"two\(\) has 2 results: out= takes as many arrays"):
        two(x, out=given)


def test_out_gives_a_size_that_no_input_has():
    halves = tensorc.define("def halves(float(N) A) -> (float(K) T) { T(i/2) +=! A(i) where i in 0:N }").halves
    x = small(8)
    for size in (4, 6):
        given = np.full(size, 9, "float32")
        halves(x, out=given)
        assert (given[:4] == x[::2] + x[1::2]).all() and (given[4:] == 9).all()
    assert halves.kernels == 2
    with pytest.raises(tensorc.Error, match="size 'K' of 'halves' has no value"):
        halves(x)


def test_scalars():
    scale, x = tensorc.define(SCALE).scale, small(5)
    for value in (3, 3.0, np.float32(3), np.int64(3), True):
        assert (scale(value, x) == float(value) * x).all()
    assert scale.kernels == 1
    with pytest.raises(TypeError, match="'a' is a scalar, and takes a number, not a str"):
        scale("3", x)


def test_compiled_in_scalars_are_part_of_the_shape():
    stride, x = tensorc.define(STRIDE).stride, small(9)
    assert (stride(3, x) == x[:4:3]).all()
    assert (stride(2, x) == x[:3:2]).all()
    assert stride.kernels == 2


def test_in_out_needs_the_array_that_it_updates():
    accumulate, x = tensorc.define(ACCUMULATE).accumulate, small(5)
    with pytest.raises(TypeError, match=r"'s' of accumulate\(\) is read before it is written: .* out="):
        accumulate(x)
    s = np.ones(5, "float32")
    accumulate(x, out=s)
    accumulate(x, s=s)
    assert (s == 1 + 2 * x).all()


def test_elements_that_nobody_writes_are_zero():
    pad = tensorc.define("def pad(float(H) I) -> (P) { P(h) = I(h - 1) where h in 1:H+1 }").pad
    for seed in range(20):
        x = small(50, seed=seed) + 9
        assert pad(x)[0] == 0 and (pad(x)[1:] == x).all()


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                                   "float16", "float32", "float64"])
def test_element_types(dtype):
    copy = tensorc.define(f"def copy({dtype}(N) x) -> (y) {{ y(i) = x(i) }}").copy
    x = np.array([0, 1, 1, 0], dtype)
    y = copy(x)
    assert y.dtype == x.dtype and (y == x).all()


def test_sizes_that_no_tensor_determines():
    iota = tensorc.define("def iota(float(N) x) -> (float(K) y) { y(k) = x(0) where k in 0:K }").iota
    assert iota(small(3) * 0 + 2, K=5).tolist() == [2.0] * 5


def test_sizes_of_a_kernel_are_fixed():
    kernel = tensorc.define("def iota(float(N) x) -> (float(K) y) { y(k) = x(0) where k in 0:K }").iota.compile(
        small(3), K=5)
    assert kernel(small(3)).shape == kernel(small(3), K=5, N=3).shape == (5,)
    for size, known in (("K", 5), ("N", 3)):
        with pytest.raises(ValueError, match=f"the size '{size}' is 7; the kernel was compiled for {known}"):
            kernel(small(3), **{size: 7})


def test_names_of_the_def_come_before_those_of_every_call():
    add = tensorc.define("def add(float(N) out, float(N) stream) -> (y) { y(i) = out(i) + stream(i) }").add
    assert (add(out=small(5), stream=small(5)) == 2 * small(5)).all()
    same = tensorc.define("def same(float(N) x) -> (out) { out(i) = x(i) }").same
    for given in (np.empty(5, "float32"), [np.empty(5, "float32")]):
        assert (same(small(5), out=given) == small(5)).all()


def test_no_array_is_copied_or_kept(matmul):
    class Traced(np.ndarray):
        pass

    A = small(3, 4).view(Traced)
    gone = weakref.ref(A)
    matmul(A, small(4, 5))
    del A
    gc.collect()
    assert gone() is None


def test_rank_zero_to_twelve():
    text = "def s(float x) -> (y) { y(i) = x where i in 0:1 }"
    assert tensorc.define(text).s(2.5, out=np.empty(1, "float32")).tolist() == [2.5]
    names = ",".join(f"N{d}" for d in range(12))
    indices = ",".join(f"i{d}" for d in range(12))
    copy = tensorc.define(f"def copy(float({names}) x) -> (y) {{ y({indices}) = x({indices}) }}").copy
    x = small(*([1, 2] * 6))
    assert (copy(x) == x).all()


def test_many_threads_compile_a_shape_once():
    program = tensorc.define(MATMUL)
    function = program.matmul
    A, B = small(31, 32), small(32, 33)
    results, start = [], threading.Barrier(8)

    def work():
        start.wait()
        for _ in range(20):
            results.append((function(A, B) == A @ B).all())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 160 and all(results) and function.kernels == 1 and program.statistics["compiled"] == 1


def test_simulator(matmul):
    simulated = tensorc.define(MATMUL, backend="sim").matmul
    A, B = small(5, 6), small(6, 7)
    assert (simulated(A, B) == A @ B).all()


class TestErrors:
    def test_of_the_text_show_the_place(self):
        with pytest.raises(tensorc.Error) as caught:
            tensorc.define("def f(float(N) x) -> (y) {\n  y(i) = x(i, i)\n}", name="f.tc")
        assert str(caught.value).splitlines()[:3] == [
            "f.tc:2:10: error: 'x' has 1 dimension but is indexed with 2", "      y(i) = x(i, i)", "             ^~~~~~~"]
        assert caught.value.diagnostics == [(2, 10, "'x' has 1 dimension but is indexed with 2")]

    def test_of_shapes(self, matmul):
        with pytest.raises(tensorc.Error, match="dimension 0 of 'B' is 5, but it must be 4"):
            matmul(small(3, 4), small(5, 5))
        with pytest.raises(tensorc.Error, match="output 'C' has shape"):
            matmul(small(3, 4), small(4, 5), out=np.empty((5, 3), "float32"))

    def test_of_types(self, matmul):
        with pytest.raises(tensorc.Error, match=r"^input 'A' is of float64; the text says float32: cast it, as in "
                                                r"A.astype\('float32'\), or write 'def \w+<T>\(T\(...\) A\)' for both$"):
            matmul(small(3, 4, dtype="float64"), small(4, 5))
        with pytest.raises(tensorc.Error, match=r"'B' is of int64; the text says float32: cast it, or write 'def"):
            matmul(small(3, 4), memoryview(small(4, 5, dtype="int64")))
        with pytest.raises(TypeError, match="complex64 is no type of the language"):
            matmul(small(3, 4, dtype="complex64"), small(4, 5))

    def test_failures_are_not_kept(self):
        function = tensorc.define(MATMUL).matmul
        for _ in range(2):
            with pytest.raises(tensorc.Error):
                function(small(3, 4), small(5, 5))
        assert function.kernels == 0

    def test_of_what_is_no_array(self, matmul):
        with pytest.raises(TypeError, match="'A' is a tensor, and takes an array of NumPy, .* not a list"):
            matmul([[1.0]], small(4, 5))

    def test_of_counts_and_names(self, matmul):
        with pytest.raises(TypeError, match=r"matmul\(\) misses 'B'; its parameters are A, B"):
            matmul(small(3, 4))
        with pytest.raises(TypeError, match=r"matmul\(\) takes 2 arguments \(A, B\); 3 are given"):
            matmul(small(3, 4), small(4, 5), small(3, 5))
        with pytest.raises(TypeError, match=r"matmul\(\) has no argument 'D'"):
            matmul(small(3, 4), small(4, 5), D=1)
        histogram = tensorc.define("def histogram(int(N) x) -> (int(BINS) h) { h(x(i)) +=! 1 }").histogram
        with pytest.raises(TypeError, match=r"no argument 'sizes'; each size is an argument by its name: BINS=8$"):
            histogram(np.zeros(3, "int32"), sizes={"BINS": 4})
        with pytest.raises(TypeError, match=r"matmul\(\) is given 'A' twice"):
            matmul(small(3, 4), small(4, 5), A=small(3, 4))
        C = small(3, 5)
        with pytest.raises(TypeError, match=r"matmul\(\) is given 'C' twice"):
            matmul(small(3, 4), small(4, 5), out=C, C=C.copy())
        assert matmul(small(3, 4), small(4, 5), out=C, C=None) is C
        with pytest.raises(TypeError, match=r"matmul\(\) has 1 result: out= takes as many arrays"):
            matmul(small(3, 4), small(4, 5), out=[C, C])

    @pytest.mark.parametrize("value", [5.0, "5", 2 ** 70, [5]])
    def test_of_sizes(self, matmul, value):
        with pytest.raises(TypeError, match="'M' is a size, and takes an integer, not "):
            matmul(small(3, 4), small(4, 5), M=value)

    def test_of_read_only_results(self, matmul):
        C = np.empty((3, 5), "float32")
        C.flags.writeable = False
        with pytest.raises(ValueError, match="'C' is written, and the array for it is read-only"):
            matmul(small(3, 4), small(4, 5), out=C)

    def test_of_results_that_overlap(self, matmul):
        A = small(4, 4)
        with pytest.raises(tensorc.Error, match="output 'C' and input 'A' share memory"):
            matmul(A, small(4, 4), out=A)

    def test_of_bytes_between_elements(self, matmul):
        records = np.zeros((3, 4), dtype=[("a", "f4"), ("b", "i1")])["a"]
        with pytest.raises(ValueError, match="has to be copied first"):
            matmul(records, small(4, 5))


def test_a_file_in_place_of_a_text():
    with pytest.raises(ValueError) as caught:
        tensorc.define("examples/softmax.tc")
    assert str(caught.value) == ("'examples/softmax.tc' is the name of a file, and a text is expected: "
                                 "define(open('examples/softmax.tc').read())")


def test_an_update_that_was_meant_to_begin_at_zero():
    total = tensorc.define("def total(float(N) x) -> (s) { s += x(i) }").total
    with pytest.raises(TypeError) as caught:
        total(np.ones(3, "float32"))
    assert str(caught.value) == ("'s' of total() is read before it is written: pass the array that it updates as out=, "
                                 "or write '+=!' instead of '+=' to begin at zero")


def test_errors_do_not_say_error_twice():
    mv = tensorc.define("def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }").mv
    with pytest.raises(tensorc.Error) as caught:
        mv(np.ones((3, 4), "float32"), np.ones(5, "float32"))
    assert str(caught.value) == "dimension 0 of 'x' is 5, but it must be 4: 'K' is 4 by dimension 1 of 'A'"
