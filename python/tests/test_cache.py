"""Files of compiled kernels."""
import warnings

import numpy as np
import pytest

import tensorc

MATMUL = "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
A, B = np.ones((8, 10), "float32"), np.ones((10, 9), "float32")


def test_a_file_serves_another_program(tmp_path):
    path = tmp_path / "kernels.db"
    first = tensorc.define(MATMUL, cache=path)
    assert (first.matmul(A, B) == 10).all()
    assert first.statistics == {"memory_hits": 0, "file_hits": 0, "reproved": 0, "compiled": 1}
    second = tensorc.define(MATMUL, cache=tensorc.Cache(path, read_only=True))
    assert (second.matmul(A, B) == 10).all()
    assert second.statistics["file_hits"] == 1 and second.statistics["compiled"] == 0
    assert (tensorc.compile(MATMUL, inputs=[A, B], cache=path)(A, B) == 10).all()


def test_production_compiles_nothing(tmp_path):
    path = tmp_path / "kernels.db"
    tensorc.define(MATMUL, cache=path).matmul(A, B)
    shipped = tensorc.define(MATMUL, cache=tensorc.Cache(path, production=True))
    assert (shipped.matmul(A, B) == 10).all()
    with pytest.raises(tensorc.Error):
        shipped.matmul(A[:4], B)
    with pytest.raises(tensorc.Error):
        tensorc.define(MATMUL, cache=tensorc.Cache(tmp_path / "none.db", production=True))


def test_a_program_that_checks_takes_no_kernel_without_checks(tmp_path):
    path = tmp_path / "kernels.db"
    text = "def gather(float(N) x, int(M) at) -> (y) { y(i) = x(at(i)) }"
    x, good, bad = np.ones(3, "float32"), np.array([0, 1, 2, 2], "int32"), np.array([0, 1, 2, 70], "int32")
    for how, counted in ((False, "compiled"), (True, "compiled"), (True, "file_hits"), (False, "file_hits")):
        tc = tensorc.define(text, cache=path, check_bounds=how)
        assert (tc.gather(x, good) == 1).all()
        assert tc.statistics[counted] == 1, (how, counted)
        if how:
            with pytest.raises(tensorc.Error, match="subscript 0 of 'x' is 70,"):
                tc.gather(x, bad)
    for how in (True, False):  # nothing to check: one kernel serves both
        matmul = tensorc.define(MATMUL, cache=path, check_bounds=how)
        assert (matmul.matmul(A, B) == 10).all()
    assert matmul.statistics["file_hits"] == 1


def test_elements_that_nobody_writes_are_zero_from_a_file_too(tmp_path):
    text = "def pad(float(H) I) -> (P) { P(h) = I(h - 1) where h in 1:H+1 }"
    for _ in range(2):
        pad = tensorc.define(text, cache=tmp_path / "kernels.db").pad
        for seed in range(20):
            assert pad(np.full(50, seed, "float32"))[0] == 0


def test_warnings_are_given_in_the_line_that_called(tmp_path):
    path = tmp_path / "kernels.db"
    path.write_text("something else\n" * 1000)
    with pytest.warns(RuntimeWarning) as seen:
        tensorc.define(MATMUL, cache=path)
    assert [warning.filename for warning in seen] == [__file__]
    path.unlink()
    program = tensorc.define(MATMUL, cache=path)
    path.write_bytes(b"something else " * (path.stat().st_size // 15))
    with pytest.warns(RuntimeWarning) as seen:
        assert (program.matmul(A, B) == 10).all()
    assert {warning.filename for warning in seen} == {__file__}
    path.write_text("something else\n" * 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="not a cache"):
            tensorc.define(MATMUL, cache=path)


def test_a_file_that_is_no_cache_costs_a_warning_and_stays(tmp_path):
    path, text = tmp_path / "text", "something else\n" * 1000
    path.write_text(text)
    with pytest.warns(RuntimeWarning, match="not a cache"):
        program = tensorc.define(MATMUL, cache=path)
    assert (program.matmul(A, B) == 10).all()
    assert path.read_text() == text
    with pytest.raises(tensorc.Error):
        tensorc.define(MATMUL, cache=tensorc.Cache(path, production=True))


def test_paths_of_every_kind(tmp_path):
    path = tmp_path / "kernels.db"
    for one in (path, str(path), bytes(path)):
        assert (tensorc.define(MATMUL, cache=one).matmul(A, B) == 10).all()
    for wrong in (f"{tmp_path}/a\0b", b"a\0b"):
        with pytest.raises(ValueError, match="null character in the path"):
            tensorc.define(MATMUL, cache=tensorc.Cache(wrong))
    assert [file.name for file in tmp_path.iterdir()] == ["kernels.db"]
    with pytest.raises(TypeError, match="expected str, bytes or os.PathLike object, not int"):
        tensorc.define(MATMUL, cache=5)


def test_flags_of_another_type_are_named(tmp_path):
    for flag in ("read_only", "nearest", "keep_text", "production"):
        with pytest.raises(TypeError, match=f"'{flag}' takes a bool, not 'no'"):
            tensorc.define(MATMUL, cache=tensorc.Cache(tmp_path / "kernels.db", **{flag: "no"}))
    with pytest.raises(ValueError, match="a Cache without a path"):
        tensorc.define(MATMUL, cache=tensorc.Cache("", production=True))
