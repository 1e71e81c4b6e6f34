"""Schedules by hand: the verbs, what they refuse, and what becomes of the loops."""
import copy
import threading

import numpy as np
import pytest

import tensorc

MATMUL = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }"
SIZES = {"M": 21, "N": 37, "K": 20}


def integers(*shape):
    return (np.arange(np.prod(shape)) % 7 - 3).astype("float32").reshape(shape)


def tiled():
    """Tiles of 4 x 16 in registers."""
    s = tensorc.Schedule(MATMUL, sizes=SIZES)
    i_tile, j_tile, i, j = s.tile(["i", "j"], [4, 16])
    s.distribute(j)
    s.distribute(i)
    s.reorder("k", i, j)
    j, lanes = s.split(j, 8)
    s.unroll(i)
    s.unroll(j)
    s.vectorize(lanes)
    s.parallelize(i_tile)
    s.promote("C", j_tile, "registers")
    return s


def test_a_schedule_of_the_cpu_computes_the_product():
    A, B = integers(21, 20), integers(20, 37)
    s = tiled()
    assert (s.compile()(A, B) == A @ B).all()
    s.check()
    assert s.emit("stmt").count("parallel") == 1
    assert "tc_mm:" in s.emit("object")


def test_print_shows_the_loop_nest():
    assert str(tiled()) == """\
mm(float32(21,20) A, float32(20,37) B) -> (float32(21,37) C) on cpu
for i_outer in 0:6  # parallel
  for j_outer in 0:3
    buffer C 4 x 16 in registers
    for i_inner_S0_init in 0:4
      for j_inner_S0_init in 0:16
        S0_init: C(i, j) = 0.0
    for k in 0:20
      for i_inner in 0:4  # unrolled
        for j_inner_outer in 0:2  # unrolled
          for j_inner_inner in 0:8  # vector
            S0: C(i, j) += A(i, k) * B(k, j)"""
    assert repr(tiled()) == ("<tensorc.Schedule mm(float32(21,20) A, float32(20,37) B) -> (float32(21,37) C) on cpu>")


def test_violations_are_exceptions_with_two_instances():
    s = tensorc.Schedule(MATMUL, sizes=SIZES)
    with pytest.raises(tensorc.Error, match=r"iterations of 'k' at once: S0\[i = 0, j = 0, k = 0\] and "
                                            r"S0\[i = 0, j = 0, k = 1\] must not \(reduction dependence\)"):
        s.parallelize("k")
    with pytest.raises(tensorc.Error, match="there is no loop 'kk'; did you mean 'k'?"):
        s.split("kk", 4)
    with pytest.raises(tensorc.Error, match="a CPU has no blocks and threads: parallelize a loop"):
        s.bind("i", "block.x")
    with pytest.raises(ValueError, match="there is no axis 'blocks'; there are block.x, block.y, "):
        s.bind("i", "blocks")
    with pytest.raises(ValueError, match="there is no memory 'l1'; there are shared, registers, cache"):
        s.promote("A", "i", "l1")
    assert s.loops == ["i", "j", "k"]


def test_a_copy_has_loops_of_its_own():
    s = tensorc.Schedule(MATMUL, sizes=SIZES)
    for other in (s.copy(), copy.copy(s)):
        other.split("i", 4)
        assert other.loops == ["i_outer", "i_inner", "j", "k"]
    assert s.loops == ["i", "j", "k"]


def test_parts_of_a_reduction_run_on_cores():
    s = tensorc.Schedule("def f(float(N) x) -> (s) { s +=! x(k) }", sizes={"N": 100})
    loops = s.split_reduction("k", 7, cyclic=True)
    assert loops == ("k_part", "k_rest", "k_together", "s_parts", 7) and loops.partial == "s_parts"
    s.parallelize(loops.part)
    x = integers(100)
    assert s.compile()(x) == x.sum()


def test_statements_are_merged_and_sunk():
    text = "def f(float(N) x) -> (y, z) { y(i) = x(i) + 1 z(i) = y(i) * 2 }"
    options = tensorc.CpuOptions(scheduler=tensorc.SchedulerOptions(fusion=tensorc.Fusion.MIN))
    for fuse in (lambda s: s.merge("i", "i_1"), lambda s: s.sink("i", "i_1"), lambda s: s.sink("S0", "i_1")):
        s = tensorc.Schedule(text, sizes={"N": 10}, options=options)
        assert s.loops == ["i", "i_1"]
        fuse(s)
        y, z = s.compile()(np.zeros(10, "float32"))
        assert (y == 1).all() and (z == 2).all()


def test_a_schedule_of_a_gpu_runs_on_the_simulator():
    s = tensorc.Schedule(MATMUL, sizes=SIZES, backend="sim")
    s.tile(["i", "j"], [8, 16])
    for loop in ("j_inner", "i_inner"):
        s.distribute(loop)
    s.split("k", 8)
    s.reorder("k_outer", "i_inner", "j_inner", "k_inner")
    s.bind("i_outer", "block.y")
    s.bind("j_outer", "block.x")
    for part in ("", "_S0_init"):
        s.bind("i_inner" + part, "thread.y")
        s.bind("j_inner" + part, "thread.x")
    s.promote("A", "k_outer", "shared")
    s.promote("B", "k_outer", "shared", fetch="cooperative")
    s.stage("A", "k_outer", 2)
    assert "buffer A 8 x 8 in shared memory, 2 stages" in str(s)
    A, B = integers(21, 20), integers(20, 37)
    assert (s.compile()(A, B) == A @ B).all()
    s.check()
    assert s.count()["barriers"] > 0
    assert "__shared__" in s.emit("cuda") and s.emit("tile").startswith("program")


def test_a_schedule_is_kept_in_a_cache_and_found_there(tmp_path):
    path = tmp_path / "kernels.tcc"
    us = tiled().save(path)
    assert us > 0
    tc = tensorc.define(MATMUL, cache=path)
    A, B = integers(21, 20), integers(20, 37)
    assert (tc.mm(A, B) == A @ B).all()
    assert tc.statistics == {"memory_hits": 0, "file_hits": 1, "reproved": 0, "compiled": 0}
    served = tensorc.define(MATMUL, cache=tensorc.Cache(path, production=True))
    assert (served.mm(A, B) == A @ B).all()
    with pytest.raises(ValueError, match="is not to be written"):
        tiled().save(tensorc.Cache(path, read_only=True))
    with pytest.raises(tensorc.Error, match="a cache keeps no kernels of the simulator"):
        tensorc.Schedule(MATMUL, sizes=SIZES, backend="sim").save(path)


def test_threads_may_share_a_schedule():
    s = tensorc.Schedule(MATMUL, sizes=SIZES)
    failed = []

    def work():
        try:
            mine = s.copy()
            mine.split("i", 4)
            mine.compile()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_schedules_end_while_copies_step_in_another_thread():
    s = tiled()
    ended, failed = threading.Event(), []

    def step():
        try:
            while not ended.is_set():
                str(s)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=step)
    thread.start()
    for _ in range(30):
        copies = [s.copy() for _ in range(5)]
        for copy in copies:
            copy.split("k", 5)
        del copies, copy
    ended.set()
    thread.join()
    assert not failed


def test_arguments_that_are_none():
    with pytest.raises(TypeError, match="'source' takes a str"):
        tensorc.Schedule(3)
    with pytest.raises(tensorc.Error, match="sizes 'M', 'K', 'N' of 'mm' have no value"):
        tensorc.Schedule(MATMUL)
    with pytest.raises(TypeError):
        tensorc.Schedule(MATMUL, sizes=SIZES).split("i", "four")
