"""Defs in Python's functions, with a search on the first call; settings of the process."""
import inspect
import os
import subprocess
import sys

import numpy as np
import pytest

import tensorc

SCALE = "def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }"
ROW_SUM = "def row_sum(float(M,K) A) -> (s) { s(m) +=! A(m,k) }"
QUICK = {"generations": 1, "population": 2, "progress": False}


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    """As in a new process."""
    monkeypatch.delenv("TENSORC_CACHE", raising=False)
    monkeypatch.setattr(tensorc.defaults, "_is_set", False)
    monkeypatch.setattr(tensorc.defaults, "_cache", None)


class TestKernel:
    def test_a_docstring_is_the_text(self):
        @tensorc.kernel
        def scale(x, a):
            """Multiplies by a number.

            def scale(float(N) x, float a) -> (y) {
              y(i) = a * x(i)
            }
            """
        assert isinstance(scale, tensorc.Function)
        assert (scale(np.ones(3, "float32"), 2) == 2).all()
        assert scale.text.startswith("def scale(") and list(scale.program) == ["scale"]
        assert scale.__name__ == "scale" and scale.__doc__.startswith("Multiplies by a number.")
        assert scale.__module__ == __name__
        assert list(inspect.signature(scale).parameters) == ["x", "a", "out", "stream"]

    def test_a_returned_text(self):
        factor = 3

        @tensorc.kernel(check_bounds=False)
        def scale():
            """Its docstring defines nothing."""
            return f"def scale(float(N) x) -> (y) {{ y(i) = {factor} * x(i) }}"
        assert (scale(np.ones(3, "float32")) == 3).all()

    def test_the_function_names_one_of_several_defs(self):
        both = f"{SCALE}\n{ROW_SUM}"

        @tensorc.kernel
        def row_sum():
            return both

        @tensorc.kernel(entry="scale")
        def other():
            return both
        assert row_sum.signature.entry == "row_sum" and other.signature.entry == "scale"
        with pytest.raises(KeyError, match="the text has no def 'third'; there are scale, row_sum"):
            @tensorc.kernel
            def third():
                return both

    def test_a_generic_def(self):
        @tensorc.kernel
        def twice(x):
            """def twice<T>(T(N) x) -> (y) { y(i) = x(i) + x(i) }"""
        for dtype in ("float32", "float64", "int32"):
            assert twice(np.ones(3, dtype)).dtype == dtype

    def test_what_is_no_kernel(self):
        with pytest.raises(TypeError, match="'kernel' takes a function, not 'def f'"):
            tensorc.kernel("def f")
        with pytest.raises(TypeError, match="'f' has no def in its docstring, and returns None, not a text"):
            @tensorc.kernel
            def f():
                pass
        with pytest.raises(TypeError, match="'g' has no def in its docstring, and is called without arguments"):
            @tensorc.kernel
            def g(x):
                return SCALE
        with pytest.raises(TypeError, match="'scale' has the parameters a, x; the def has x, a"):
            @tensorc.kernel
            def scale(a, x):
                """def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }"""
        with pytest.raises(TypeError, match="'autotune' takes a bool or a dict"):
            tensorc.kernel(autotune=3)(lambda: SCALE)
        with pytest.raises(tensorc.Error, match="expected"):
            @tensorc.kernel
            def h():
                """def h(float(N) x -> (y) { y(i) = x(i) }"""

    def test_each_shape_is_tuned_on_its_first_call(self):
        @tensorc.kernel(autotune=QUICK)
        def row_sum():
            return ROW_SUM
        for shape, searches in (((8, 9), 1), ((8, 9), 1), ((5, 16), 2), ((8, 9), 2)):
            assert (row_sum(np.ones(shape, "float32")) == shape[1]).all()
            assert len(row_sum.tuned) == searches and row_sum.kernels == searches
        assert isinstance(row_sum.tuned[0], tensorc.Tuned)

    def test_scalars_decide_what_is_tuned(self):
        @tensorc.kernel(autotune=QUICK)
        def f():
            return "def f(float(N) x, float a, int k) -> (y) { y(i) = a * x(i) where i in 0:k }"
        assert (f(np.ones(9, "float32"), 0.5, 4) == 0.5).all()
        assert (f(np.ones(9, "float32"), 1.5, 4) == 1.5).all() and len(f.tuned) == 1
        assert f(np.ones(9, "float32"), 0.5, 5).shape == (5,) and len(f.tuned) == 2

    def test_a_cache_remembers(self, tmp_path):
        path = tmp_path / "kernels.tcc"
        A = np.ones((64, 90), "float32")
        tensorc.tune(ROW_SUM, inputs=[A], cache=path, **QUICK)
        assert tensorc.define(ROW_SUM, cache=path).row_sum.compile(A).measured

        @tensorc.kernel(autotune=QUICK, cache=path)
        def row_sum():
            return ROW_SUM
        assert (row_sum(A) == 90).all()
        assert row_sum.tuned == []

    def test_a_cache_remembers_that_the_compiler_s_choice_is_the_best(self, tmp_path):
        path = tmp_path / "kernels.tcc"
        A = np.ones((64, 90), "float32")
        compiled = tensorc.define(ROW_SUM, cache=path).row_sum.compile(A)
        assert not compiled.measured
        assert not tensorc.define(ROW_SUM, cache=path).row_sum.compile(A).measured  # from the file, which has no time
        only_default = {**QUICK, "generations": 0}
        for searches in (1, 0):
            row_sum = tensorc.kernel(autotune=only_default, cache=path)(lambda: ROW_SUM)
            assert (row_sum(A) == 90).all() and len(row_sum.tuned) == searches
        known = tensorc.define(ROW_SUM, cache=path).row_sum.compile(A)
        assert known.measured and known.options == ""

    def test_broadcast_arrays(self):
        A = np.broadcast_to(np.arange(5, dtype="float32"), (3, 5))
        row_sum = tensorc.kernel(autotune=QUICK)(lambda: ROW_SUM)
        assert row_sum(A).tolist() == [10, 10, 10] and len(row_sum.tuned) == 1
        assert tensorc.tune(ROW_SUM, inputs=[A], **QUICK).best_us > 0
        schedule = tensorc.Schedule(ROW_SUM, inputs=[A])
        schedule.check()

    def test_what_is_found_checks_bounds_as_asked(self):
        text = "def gather(float(N) x, int(M) at) -> (y) { y(i) = x(at(i)) }"
        outside = np.array([0, 7], "int32")
        gather = tensorc.kernel(autotune=QUICK)(lambda: text)
        with pytest.raises(tensorc.Error, match="outside"):
            gather(np.ones(3, "float32"), outside)
        assert len(gather.tuned) == 1

    def test_a_search_that_fails_is_the_call_s_error(self):
        @tensorc.kernel(autotune={"search": "none"})
        def row_sum():
            return ROW_SUM
        for _ in range(2):
            with pytest.raises(ValueError, match="there is no search 'none'"):
                row_sum(np.ones((2, 3), "float32"))
        assert row_sum.kernels == 0


class TestDefaults:
    def test_a_cache_for_all_calls(self, tmp_path):
        tensorc.defaults.cache = tmp_path / "kernels.tcc"
        x = np.ones(3, "float32")
        first, second = tensorc.define(SCALE), tensorc.define(SCALE)
        first.scale(x, 2), second.scale(x, 2)
        assert (first.statistics["compiled"], second.statistics["file_hits"]) == (1, 1)
        assert tensorc.compile(SCALE, inputs=[x]).from_cache
        without = tensorc.define(SCALE, cache="")
        without.scale(x, 2)
        assert without.statistics["compiled"] == 1

    def test_a_cache_object(self, tmp_path):
        tensorc.define(SCALE, cache=tmp_path / "kernels.tcc").scale(np.ones(3, "float32"), 2)
        tensorc.defaults.cache = tensorc.Cache(tmp_path / "kernels.tcc", production=True)
        program = tensorc.define(SCALE)
        program.scale(np.ones(3, "float32"), 2)
        with pytest.raises(tensorc.Error, match="production compiles nothing"):
            program.scale(np.ones(4, "float32"), 2)
        with pytest.raises(ValueError, match="a search writes to its cache"):
            tensorc.tune(SCALE, sizes={"N": 3}, scalars={"a": 1}, **QUICK)
        assert tensorc.gradient(SCALE) and tensorc.emit(SCALE, "ast") and tensorc.check(SCALE)  # they need none

    def test_the_variable(self, tmp_path, monkeypatch):
        path = tmp_path / "a" / "b" / "kernels.tcc"
        monkeypatch.setenv("TENSORC_CACHE", str(path))
        assert tensorc.defaults.cache == str(path)
        code = f"import tensorc, numpy as np; tensorc.define({SCALE!r}).scale(np.ones(3, 'float32'), 2)"
        subprocess.run([sys.executable, "-c", code], check=True,
                       env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(tensorc.__file__))})
        assert path.exists()
        program = tensorc.define(SCALE)
        program.scale(np.ones(3, "float32"), 2)
        assert program.statistics["file_hits"] == 1
        tensorc.defaults.cache = None  # a setting comes before the variable
        assert tensorc.defaults.cache is None and tensorc.define(SCALE).statistics["file_hits"] == 0

    def test_what_is_no_path(self):
        with pytest.raises(TypeError, match="'cache' takes a path, a Cache or None, not 3"):
            tensorc.defaults.cache = 3
        with pytest.raises(ValueError, match="null character"):
            tensorc.defaults.cache = "a\0b"
        with pytest.raises(AttributeError):
            tensorc.defaults.cash = "kernels.tcc"
        assert repr(tensorc.defaults) == "<tensorc.defaults cache=None>"


def test_production_searches_nothing(tmp_path):
    path = str(tmp_path / "kernels.tcc")
    x = np.ones(4, "float32")
    tensorc.define(SCALE, cache=path).scale(x, 2)
    scale = tensorc.kernel(autotune=QUICK, cache=tensorc.Cache(path, production=True))(lambda: SCALE)
    np.testing.assert_array_equal(scale(x, 2), 2 * x)
