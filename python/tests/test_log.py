"""The library's log as records of the logger "tensorc"."""
import logging
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tensorc

TEXT = "def scaled(float(N) a) -> (b) { b(n) = a(n) * 2.0 }"


@pytest.fixture
def logger():
    logger = logging.getLogger("tensorc")
    yield logger
    logger.setLevel(logging.NOTSET)
    tensorc.compile(TEXT, sizes={"N": 1})  # the library hears of it at its next work


def messages(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "tensorc"]


def test_quiet_by_default(caplog):
    tensorc.define(TEXT).scaled(np.ones(4, "float32"))
    assert messages(caplog) == []


def test_nothing_is_printed_without_a_handler(tmp_path):
    (tmp_path / "k.tcc").write_bytes(b"no cache" * 1000)
    code = f"import warnings; warnings.simplefilter('ignore'); import tensorc; tensorc.define({TEXT!r}, cache='k.tcc')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stderr.count("\n") <= 1 or "Traceback" in done.stderr
    assert "WARNING" not in done.stderr


def test_information_is_a_line_for_each_kernel(caplog, logger):
    logger.setLevel(logging.INFO)
    scaled = tensorc.define(TEXT).scaled
    for _ in range(2):
        scaled(np.ones(8, "float32"))
    lines = messages(caplog)
    assert len(lines) == 1 and lines[0].startswith("compiled 'scaled' for N=8 on cpu in ")
    record = caplog.records[0]
    assert record.levelname == "INFO" and record.filename == "engine.cc" and record.lineno > 0
    assert abs(record.created - time.time()) < 60 and 0 <= record.msecs < 1000


def test_details_are_passes(caplog, logger, tmp_path):
    caplog.set_level(logging.DEBUG, "tensorc")
    tensorc.define(TEXT, cache=tmp_path / "k.tcc").scaled(np.ones(8, "float32"))
    lines = messages(caplog)
    assert f"'scaled' for N=8 on cpu: not in the cache {tmp_path / 'k.tcc'}" in lines
    assert any(line.startswith("scaled: pass schedule took ") for line in lines)
    caplog.clear()
    caplog.set_level(5, "tensorc")
    tensorc.define(TEXT, cache=tmp_path / "k.tcc").scaled(np.ones(8, "float32"))
    lines = messages(caplog)
    assert any(line.startswith(f"the cache {tmp_path / 'k.tcc'} has a kernel of 'scaled' for 8 on ") for line in lines)
    assert {record.levelno for record in caplog.records} == {5, 10}


def test_level_of_the_root_holds(caplog, logger):
    caplog.set_level(logging.INFO)  # of the root
    tensorc.compile(TEXT, sizes={"N": 9})
    assert [line[:31] for line in messages(caplog)] == ["compiled 'scaled' for N=9 on cp"]
    caplog.clear()
    logger.setLevel(logging.WARNING)
    tensorc.compile(TEXT, sizes={"N": 10})
    assert messages(caplog) == []


def test_warnings_are_in_the_log_too(caplog, logger, tmp_path):
    caplog.set_level(logging.WARNING, "tensorc")
    path = tmp_path / "k.tcc"
    tensorc.compile(TEXT, sizes={"N": 9}, cache=path)
    with open(path, "r+b") as file:
        file.truncate(100)
    with pytest.warns(RuntimeWarning) as warned:
        tensorc.compile(TEXT, sizes={"N": 9}, cache=path)
    assert messages(caplog) == [str(one.message) for one in warned]


def test_a_handler_that_raises_stops_nothing(logger, capsys, monkeypatch):
    class Broken(logging.Handler):
        def handle(self, record):
            raise ValueError("of the user's")

    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    handler = Broken()
    logger.addHandler(handler)
    try:
        logger.setLevel(logging.INFO)
        kernel = tensorc.compile(TEXT, sizes={"N": 9})
    finally:
        logger.removeHandler(handler)
    assert kernel(np.ones(9, "float32")).sum() == 18
    assert [str(one.exc_value) for one in unraisable] == ["of the user's"]


def test_threads(caplog, logger):
    caplog.set_level(logging.DEBUG, "tensorc")
    program = tensorc.define(TEXT)
    threads = [threading.Thread(target=program.scaled, args=(np.ones(20 + n, "float32"),)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = messages(caplog)
    for n in range(6):
        assert sum(line.startswith(f"compiled 'scaled' for N={20 + n} on cpu in ") for line in lines) == 1


def test_a_search_logs_while_it_runs(caplog, logger):
    caplog.set_level(logging.DEBUG, "tensorc")
    seen = []
    tensorc.tune(TEXT, sizes={"N": 64}, generations=1, population=2, progress=lambda _: seen.append(len(messages(caplog))))
    lines = messages(caplog)
    assert lines[-1].startswith("search for options of 'scaled' ends: ") or any(
        line.startswith("search for options of 'scaled' ends: ") for line in lines)
    assert any(line.startswith("candidate 1 of 3: done in ") for line in lines)
    assert seen and seen[-1] > 0
