"""Searches, short ones."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest

import tensorc
from tensorc import _tune

MATMUL = "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
SIZES = {"M": 40, "N": 40, "K": 40}
SHORT = dict(sizes=SIZES, generations=1, population=3, search="random", threads=1)


def check(tuned, tmp_path):
    assert tuned.best_us > 0 and tuned.default_us > 0 and tuned.history and tuned.reference == "the interpreter"
    assert {record.outcome for record in tuned.history} & {"done", "hopeless"}
    A = np.ones((40, 40), "float32")
    assert (tensorc.define(MATMUL, options=tuned.options).matmul(A, A) == 40).all()


def test_by_workers_of_its_own(tmp_path):
    seen = []
    tuned = tensorc.tune(MATMUL, **SHORT, cache=tmp_path / "kernels.db", progress=seen.append)
    check(tuned, tmp_path)
    assert seen and seen[-1].done <= seen[-1].planned and seen[-1].best_us == pytest.approx(tuned.best_us, rel=1)
    assert seen[-1].rejected == tuned.rejected
    again = tensorc.define(MATMUL, cache=tmp_path / "kernels.db")
    A = np.ones((40, 40), "float32")
    assert (again.matmul(A, A) == 40).all() and again.statistics["file_hits"] == 1


def test_a_cache_that_breaks_costs_a_warning(tmp_path):
    file = tmp_path / "kernels.db"
    with pytest.warns(UserWarning, match="not all of it is in the cache: the cache .*: it is not a cache"):
        tuned = tensorc.tune(MATMUL, **SHORT, cache=file, progress=lambda _: file.write_bytes(b"x" * 4096))
    check(tuned, tmp_path)


def test_by_an_executor(tmp_path):
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        check(tensorc.tune(MATMUL, **SHORT, executor=executor), tmp_path)


def test_by_dask(tmp_path):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed for this Python")
    with distributed.Client(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
                            local_directory=str(tmp_path)) as client:
        check(tensorc.tune(MATMUL, **SHORT, executor=client.get_executor(pure=False), folder=tmp_path), tmp_path)


def test_by_ray(tmp_path):
    ray = pytest.importorskip("ray", reason="Ray is not installed for this Python")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        class OnRay(concurrent.futures.Executor):
            def submit(self, function, *arguments):
                return ray.remote(function).remote(*arguments).future()

        check(tensorc.tune(MATMUL, **SHORT, executor=OnRay(), folder=tmp_path), tmp_path)
    finally:
        ray.shutdown()


def test_options_that_no_gpu_can_follow_are_rejected():
    tuned = tensorc.tune(MATMUL, sizes={"M": 8, "N": 8, "K": 8}, backend="sim", generations=1, population=40,
                         search="random", threads=1)
    assert tuned.rejected > 0 and tuned.device == "simulator"


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


def test_ctrl_c_ends_a_search(tmp_path):
    from test_compile import interrupted
    prepare = f"import sqlite3; text = {MATMUL!r}; path = {str(tmp_path / 'kernels.db')!r}"
    call = f"tensorc.tune(text, sizes={SIZES}, generations=50, threads=1, cache=path, progress=False)"
    measured = "sqlite3.connect(path).execute('SELECT COUNT(*) FROM measurements').fetchone()[0]"
    assert not interrupted(prepare, call, f"{measured} > 50 * 16", after=3)


class SilentExecutor(concurrent.futures.Executor):
    """As Dask's: its futures do not say that they run."""

    def submit(self, function, *arguments):
        future = concurrent.futures.Future()

        def work():
            try:
                future.set_result(function(*arguments))
            except Exception as error:
                future.set_exception(error)

        threading.Thread(target=work).start()
        return future


def test_a_job_that_hangs_or_crashes_costs_itself(monkeypatch):
    """Workers that say hello and then answer nothing, or end."""
    futures = _tune._Futures(SilentExecutor())
    worker = f"{sys.executable} -m tensorc.worker"
    monkeypatch.setattr(_tune, "_WORKER", ["sh", "-c", f"sleep 1000 | {worker}"])
    futures.submit(7, -1, b"job", 0.2)
    assert futures.wait(60) == [(7, 2, b"took longer than 200 ms")]
    monkeypatch.setattr(_tune, "_WORKER", ["sh", "-c", f"{worker} </dev/null; exit 3"])
    futures.submit(8, -1, b"job", 60)
    assert futures.wait(60) == [(8, 1, b"exited with code 3")]
    monkeypatch.setattr(_tune, "_WORKER", ["/nowhere/worker"])
    futures.submit(9, -1, b"job", 60)
    ((number, loss, reply),) = futures.wait(60)
    assert (number, loss) == (9, 1) and b"/nowhere/worker" in reply
    assert futures.wait(0) == []


def test_errors():
    with pytest.raises(ValueError, match="there is no search 'best'; there are genetic and random"):
        tensorc.tune(MATMUL, sizes=SIZES, search="best")
    with pytest.raises(tensorc.Error, match="size 'K' of 'matmul' has no value"):
        tensorc.tune(MATMUL, sizes={"M": 4, "N": 4})
    for wrong in (dict(generations="1"), dict(population=2.5), dict(seed=-1), dict(threads=None), dict(time_limit="1"),
                  dict(devices=["cuda"]), dict(search=1)):
        with pytest.raises(TypeError, match=f"'{next(iter(wrong))}' cannot be "):
            tensorc.tune(MATMUL, sizes=SIZES, **wrong)
    for wrong, sentence in ((dict(generations=-1), "-1 generations"), (dict(threads=-1), "-1 threads"),
                            (dict(time_limit=-1), "a time limit of -1 s"),
                            (dict(time_limit=float("nan")), "a time limit of nan s"),
                            (dict(device=-1), "device -1: they are numbered from 0"),
                            (dict(devices=[0, -1]), "device -1: they are numbered from 0")):
        with pytest.raises(tensorc.Error, match=sentence):
            tensorc.tune(MATMUL, sizes=SIZES, **wrong)


def test_a_cache_is_given_as_elsewhere(tmp_path):
    path = tmp_path / "kernels.db"
    tensorc.tune(MATMUL, **SHORT, cache=tensorc.Cache(path))
    A = np.ones((40, 40), "float32")
    assert (tensorc.define(MATMUL, cache=tensorc.Cache(path, production=True)).matmul(A, A) == 40).all()
    for cache in (tensorc.Cache(path, read_only=True), tensorc.Cache(path, production=True)):
        with pytest.raises(ValueError, match="a search writes to its cache"):
            tensorc.tune(MATMUL, **SHORT, cache=cache)


def test_workers_run_the_callers_package(tmp_path):
    """Found through sys.path alone, and not in the working directory, where something else has its name."""
    (tmp_path / "tensorc.py").write_text("raise SystemExit('not this one')")
    home = pathlib.Path(tensorc.__file__).absolute().parent.parent
    program = (f"import os, sys; sys.path.insert(0, os.path.relpath({str(home)!r})); import tensorc; os.chdir({str(tmp_path)!r})\n"
               f"print(tensorc.tune({MATMUL!r}, sizes={SIZES}, generations=1, population=1, threads=1).ending)")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.stdout == "finished\n", done.stderr


def test_the_shown_line_ends_however_the_search_does(monkeypatch, capsys):
    def search(text, request, config, progress):
        progress(Shown)
        raise KeyboardInterrupt

    class Shown:
        done, planned, best_us, default_us, failed = 3, 17, 2.0, 3.0, {"refused": 1}

    monkeypatch.setattr(_tune._core, "tune", search)
    with pytest.raises(KeyboardInterrupt):
        tensorc.tune(MATMUL, sizes=SIZES, progress=True)
    assert capsys.readouterr().err == "\r3/17 best 2.0 us, 1.50x, 1 failed\033[K\n"
    monkeypatch.undo()
    monkeypatch.setattr(sys, "stderr", None)  # as where there is no console
    assert tensorc.tune(MATMUL, sizes=SIZES, generations=0).ending == "finished"
