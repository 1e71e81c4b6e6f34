"""Searches, short ones."""
import concurrent.futures

import numpy as np
import pytest

import tensorc

MATMUL = "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
SIZES = {"M": 40, "N": 40, "K": 40}
SHORT = dict(sizes=SIZES, generations=1, population=3, search="random", threads=1)


def check(tuned, tmp_path):
    assert tuned.best_us > 0 and tuned.default_us > 0 and tuned.history
    assert {record.outcome for record in tuned.history} & {"done", "hopeless"}
    A = np.ones((40, 40), "float32")
    assert (tensorc.define(MATMUL, options=tuned.options).matmul(A, A) == 40).all()


def test_by_workers_of_its_own(tmp_path):
    seen = []
    tuned = tensorc.tune(MATMUL, **SHORT, cache=tmp_path / "kernels.db", progress=seen.append)
    check(tuned, tmp_path)
    assert seen and seen[-1].done <= seen[-1].planned and seen[-1].best_us == pytest.approx(tuned.best_us, rel=1)
    again = tensorc.define(MATMUL, cache=tmp_path / "kernels.db")
    A = np.ones((40, 40), "float32")
    assert (again.matmul(A, A) == 40).all() and again.statistics["file_hits"] == 1


def test_by_an_executor(tmp_path):
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        check(tensorc.tune(MATMUL, **SHORT, executor=executor), tmp_path)


def test_an_executor_that_fails_is_an_error():
    executor = concurrent.futures.ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(tensorc.Error, match="the executor fails: .*after shutdown"):
        tensorc.tune(MATMUL, **SHORT, executor=executor)


def test_what_progress_raises_ends_the_search():
    def fail(progress):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        tensorc.tune(MATMUL, **SHORT, progress=fail)


def test_errors():
    with pytest.raises(ValueError, match="there is no search 'best'; there are genetic and random"):
        tensorc.tune(MATMUL, sizes=SIZES, search="best")
    with pytest.raises(tensorc.Error, match="size 'K' of 'matmul' has no value"):
        tensorc.tune(MATMUL, sizes={"M": 4, "N": 4})
