"""The oracle itself: that its programs mean what it says, and that it would see a fault."""
from __future__ import annotations

import itertools
import pathlib
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from oracle import bounds, evaluate, generate, judge, minimise, options, pointwise, program as p
from oracle.compiler import Case, Outcome, Worker
from oracle.data import make_data as data_of

SMALL = generate.Limits(points=40)
SEEDS = range(300)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and not evaluate.differences(a, b).any()


def one(text_op: str, fresh: bool, value, ranges, tensors, subscripts=(), sizes=None, scalars=None, target="T") -> p.Program:
    """A program of one statement."""
    statement = p.Statement(target, tuple(subscripts), text_op, fresh, value, tuple(ranges))
    return p.Program(0, sizes or {}, scalars or {}, {t.name: t for t in tensors}, (statement,))


def tensor(name: str, type: str, *extents: int, role: str = "input") -> p.Tensor:
    return p.Tensor(name, type, tuple(p.Number(e) for e in extents), role)


def over(name: str, high: int, low: int = 0) -> p.Range:
    return p.Range(name, p.Number(low), p.Number(high))


I = p.Index("i")


def test_arrays_and_single_elements_agree():
    """evaluate.py and pointwise.py were written apart."""
    for seed in SEEDS:
        program = generate.generate(seed, SMALL)
        data = data_of(program)
        by_arrays, by_points = evaluate.evaluate(program, data), pointwise.evaluate(program, data)
        assert by_arrays.keys() == by_points.keys()
        for name in by_arrays:
            assert same(by_arrays[name], by_points[name]), f"seed {seed}: '{name}'\n{program.text()}"


def test_floats_are_exact():
    """In float64 a program of float32 gives the same numbers: nothing was rounded, so no order of sums matters."""
    compared = 0
    for seed in range(600):
        program = generate.generate(seed, SMALL)
        if not any(t.type == "float32" for t in program.tensors.values()) or "float64" in program.text():
            continue
        data = data_of(program)
        narrow = evaluate.evaluate(program, data)
        wide_data = {n: a.astype(np.float64) if a.dtype == np.float32 else a for n, a in data.items()}
        wide = evaluate.evaluate(in_float64(program), wide_data)
        for name in narrow:
            compared += 1
            assert not evaluate.differences(narrow[name].astype(wide[name].dtype), wide[name]).any(), f"seed {seed}\n{program.text()}"
    assert compared > 50


def in_float64(program: p.Program) -> p.Program:
    def node(n):
        n = p.with_children(n, [node(c) for c in p.children(n)])
        return replace(n, type="float64") if getattr(n, "type", "") == "float32" and isinstance(
            n, (p.Constant, p.Read, p.Cast, p.Scalar)) else n

    tensors = {name: replace(t, type="float64" if t.type == "float32" else t.type) for name, t in program.tensors.items()}
    scalars = {name: ("float64" if type == "float32" else type, v) for name, (type, v) in program.scalars.items()}
    statements = tuple(replace(s, value=node(s.value), subscripts=tuple(node(e) for e in s.subscripts),
                               lets=tuple((n, node(v)) for n, v in s.lets)) for s in program.statements)
    return replace(program, tensors=tensors, scalars=scalars, statements=statements)


def test_the_same_seed_gives_the_same_program_and_data():
    for seed in (1, 2, 3):
        first, second = generate.generate(seed), generate.generate(seed)
        assert first.text() == second.text()
        for name, array in data_of(first).items():
            assert array.tobytes() == data_of(second)[name].tobytes()


def test_what_programs_contain():
    """Each kind of thing that the oracle is for comes often enough that 300 programs have it."""
    seen = {key: 0 for key in ("partial range read back", "left /", "left %", "left reversed", "left constant", "scatter by data",
                               "in-out", "bare index into a scalar", "guard of input and written", "inferred range", "let",
                               "exists", "guarded read", "cast of a float to an integer", "infinity or NaN", "power of two",
                               "extent above 64", "eight statements", "undeclared result")}
    types = set()
    for seed in range(1, 1201):
        program = generate.generate(seed, generate.Limits(points=4096))
        seen["eight statements"] += len(program.statements) >= 8
        seen["undeclared result"] += any(not t.annotated for t in program.results())
        seen["infinity or NaN"] += any(t.data == "special" for t in program.tensors.values())
        types |= {t.type for t in program.tensors.values()}
        extents = {n for t in program.tensors for n in program.shape(t)}
        seen["power of two"] += any(n in (8, 16, 32, 64, 128) for n in extents)
        seen["extent above 64"] += any(n > 64 for n in extents)
        written: set[str] = set()
        partly: set[str] = set()
        for s in program.statements:
            values = list(p.walk(s.value))
            read = {r.tensor for r in p.reads_of(s.value)}
            seen["partial range read back"] += bool(read & partly)
            seen["in-out"] += bool((read | ({s.tensor} if s.reduces and not s.fresh else set())) - written
                                   & {t.name for t in program.results()}) and s.tensor not in written
            for e in s.subscripts:
                ops = {n.op for n in p.walk(e) if isinstance(n, p.IndexBinary)}
                seen["left /"] += "/" in ops
                seen["left %"] += "%" in ops
                seen["left reversed"] += isinstance(e, p.IndexBinary) and e.op == "-" and isinstance(e.right, p.Index)
                seen["left constant"] += isinstance(e, p.Number)
            seen["scatter by data"] += s.scatters_by_data()
            reduced = {r.name for r in s.ranges} - {n for e in s.subscripts for n in p.indices_of(e)}
            seen["bare index into a scalar"] += isinstance(s.value, p.FromIndex) and isinstance(s.value.expr, p.Index) and s.value.expr.name in reduced
            for n in values:
                if isinstance(n, p.Select):
                    left, right = ({r.tensor for r in p.reads_of(b)} for b in (n.if_true, n.if_false))
                    inputs = {t.name for t in program.inputs()}
                    seen["guard of input and written"] += bool((left & inputs and right - inputs) or (right & inputs and left - inputs))
                    seen["guarded read"] += isinstance(n.condition, (p.CompareIndices, p.Logic))
                seen["cast of a float to an integer"] += isinstance(n, p.Cast) and p.is_integer(n.type) and p.is_float(n.operand.type)
            seen["inferred range"] += any(not r.stated for r in s.ranges)
            seen["let"] += bool(s.lets)
            seen["exists"] += bool(s.exists)
            written.add(s.tensor)
            if any(r.low != p.Number(0) for r in s.ranges):
                partly.add(s.tensor)
    assert set(p.TYPES) <= types
    rare = {key: count for key, count in seen.items() if count < 12}
    assert not rare, rare


def test_every_access_is_in_its_tensor():
    for seed in SEEDS:
        program = generate.generate(seed)
        evaluate.evaluate(program, data_of(program))  # raises OutOfBounds


# The rules, one by one, on values by hand.


@pytest.mark.parametrize("a, b, quotient, rest", [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1),
                                                  (5, 0, 0, 0), (-128, -1, -128, 0), (-128, 1, -128, 0)])
def test_division_R8(a, b, quotient, rest):
    x, y = np.array([a], np.int8), np.array([b], np.int8)
    with np.errstate(all="ignore"):
        assert evaluate.floor_divide(x, y)[0] == quotient and evaluate.floor_modulo(x, y)[0] == rest
    assert pointwise.combined("/", a, b, "int8") == quotient and pointwise.combined("%", a, b, "int8") == rest


@pytest.mark.parametrize("value, type, expected", [
    (3.9, "int8", 3), (-3.9, "int8", -3), (300.0, "int8", 127), (-300.0, "int8", -128), (-1.0, "uint8", 0),
    (np.nan, "int32", 0), (np.inf, "int64", 2**63 - 1), (-np.inf, "int64", -2**63), (1e30, "uint64", 2**64 - 1),
    (2.0**63, "int64", 2**63 - 1), (2.0**31, "int32", 2**31 - 1), (-2.0**31, "int32", -2**31), (255.9, "uint8", 255)])
def test_casts_of_floats_T6(value, type, expected):
    with np.errstate(all="ignore"):
        assert int(evaluate.cast(np.array([value]), type)[0]) == expected
    assert pointwise.converted(value, "float64", type) == expected


@pytest.mark.parametrize("a, b, met", [("int8", "uint8", "int16"), ("int8", "uint32", "int64"), ("uint64", "int8", "int64"),
                                       ("int64", "float32", "float32"), ("float32", "float64", "float64"),
                                       ("uint8", "uint16", "uint16"), ("int32", "uint16", "int32")])
def test_types_meet_T1(a, b, met):
    assert p.meet(a, b) == met == p.meet(b, a)


def test_sums_of_narrow_integers_T3():
    """int8 products do not wrap in a sum, and do elsewhere."""
    product = p.Binary("*", p.Read("A", (I,), "int8"), p.Read("A", (I,), "int8"))
    tensors = [tensor("A", "int8", 1), tensor("T", "int32", 1, role="result")]
    data = {"A": np.array([100], np.int8), "T": np.array([5], np.int32)}
    summed = one("+=", True, product, [over("i", 1)], tensors, [I])
    stored = one("=", False, product, [over("i", 1)], tensors, [I])
    for run in (evaluate.evaluate, pointwise.evaluate):
        assert run(summed, data)["T"][0] == 10000 and run(stored, data)["T"][0] == 16


def test_narrow_integers_within_wider_values_T3():
    """So does one that is added to an int32, or multiplied with a float."""
    product = p.Binary("*", p.Read("A", (I,), "int8"), p.Read("A", (I,), "int8"))
    with_integer = p.Binary("+", p.Unary("-", product), p.Read("B", (I,), "int32"))
    with_float = p.Binary("*", product, p.Read("C", (I,), "float32"))
    data = {"A": np.array([100], np.int8), "B": np.array([7], np.int32), "C": np.array([0.5], np.float32)}
    inputs = [tensor("A", "int8", 1), tensor("B", "int32", 1), tensor("C", "float32", 1)]
    for value, type, expected in ((with_integer, "int32", -9993), (with_float, "float32", 5000)):
        summed = one("+=", True, value, [over("i", 1)], [*inputs, tensor("T", type, 1, role="result")], [I])
        for run in (evaluate.evaluate, pointwise.evaluate):
            assert run(summed, {**data, "T": np.array([5], type)})["T"][0] == expected


@pytest.mark.parametrize("value, expected", [
    (1 + 2.0**-11, 1 + 2.0**-10), (-1 - 2.0**-11, -1 - 2.0**-10), (1 + 2.0**-12, 1.0), (2047.5, 2048.0), (0.0, 0.0),
    (2.0**-149, 0.0), (2.0**-137, 2.0**-136), (2.0**-126 * (1 + 2.0**-11), 2.0**-126 * (1 + 2.0**-10)),
    (float(np.finfo(np.float32).max), np.inf), (-np.inf, -np.inf)])
def test_tf32_rounds_ties_away_from_zero_T8(value, expected):
    rounded = one("=", False, p.Call("tf32", (p.Read("A", (I,), "float32"), )), [over("i", 1)],
                  [tensor("A", "float32", 1), tensor("T", "float32", 1, role="result")], [I])
    data = {"A": np.array([value], np.float32), "T": np.array([7], np.float32)}
    for run in (evaluate.evaluate, pointwise.evaluate):
        assert run(rounded, data)["T"][0] == np.float32(expected)


def test_everything_is_read_first_C3():
    """`H(I(i)) +=! H(i)`, and C2: every element starts from the identity."""
    left = p.Element(p.Read("I", (I,), "int32"))
    program = one("+=", True, p.Read("H", (I,), "float32"), [over("i", 3)],
                  [tensor("I", "int32", 3), tensor("H", "float32", 4, role="result")], [left], target="H")
    data = {"I": np.array([0, 2, 2], np.int32), "H": np.array([5, 6, 7, 8], np.float32)}
    for run in (evaluate.evaluate, pointwise.evaluate):
        assert run(program, data)["H"].tolist() == [5, 0, 13, 0]


def test_only_written_elements_start_from_the_identity_C2():
    program = one("max=", True, p.Read("A", (I,), "int32"), [over("i", 3, 1)],
                  [tensor("A", "int32", 3), tensor("T", "int32", 3, role="result")],
                  [p.IndexBinary("-", p.Number(2), I)])
    data = {"A": np.array([1, 2, 3], np.int32), "T": np.array([9, 9, 9], np.int32)}
    for run in (evaluate.evaluate, pointwise.evaluate):
        assert run(program, data)["T"].tolist() == [3, 2, 9]


def test_a_guard_keeps_a_read_in_its_tensor_R6():
    read = p.Read("A", (p.IndexBinary("-", I, p.Number(1)),), "int32")
    guarded = p.Select(p.CompareIndices(">=", I, p.Number(1)), read, p.Constant("int32", 7))
    tensors = [tensor("A", "int32", 3), tensor("T", "int32", 3, role="result")]
    data = {"A": np.array([1, 2, 3], np.int32), "T": np.zeros(3, np.int32)}
    for run in (evaluate.evaluate, pointwise.evaluate):
        assert run(one("=", False, guarded, [over("i", 3)], tensors, [I]), data)["T"].tolist() == [7, 1, 2]
        with pytest.raises(evaluate.OutOfBounds):
            run(one("=", False, read, [over("i", 3)], tensors, [I]), data)


# Text.


def test_text():
    a, b, c = (p.Read(n, (I,), "int32") for n in "ABC")
    assert p.text_of(p.Binary("-", a, p.Binary("-", b, c))) == "A(i) - (B(i) - C(i))"
    assert p.text_of(p.Binary("-", p.Binary("-", a, b), c)) == "A(i) - B(i) - C(i)"
    assert p.text_of(p.Binary("*", p.Binary("+", a, b), c)) == "(A(i) + B(i)) * C(i)"
    assert p.text_of(p.Unary("-", p.Binary("*", a, b))) == "-(A(i) * B(i))"
    chosen = p.Select(p.Compare("<", a, b), a, p.Select(p.Compare("<", b, c), b, c))
    assert p.text_of(chosen) == "A(i) < B(i) ? A(i) : (B(i) < C(i) ? B(i) : C(i))"
    assert p.text_of(p.Binary("+", a, p.Binary("*", b, c)), full=True) == "A(i) + (B(i) * C(i))"
    assert p.text_of(p.Constant("uint8", 200)) == "uint8(200)"


# The runner.


class Lying:
    """A compiler that is right, but for one element of programs that have a given operator."""

    def __init__(self, op: str):
        self.op = op

    def run(self, program, data, case):
        results = evaluate.evaluate(program, data)
        if not results:
            return Outcome("refused", "no results")
        if any(isinstance(n, p.Binary) and n.op == self.op for s in program.statements for n in p.walk(s.value)):
            name, array = next(iter(results.items()))
            array = array.copy()
            flat = array.reshape(-1)
            flat[-1] = not flat[-1] if array.dtype == bool else (1 if flat[-1] != 1 else 2)
            results = {**results, name: array}
        return Outcome("ok", "", results)


def test_a_wrong_element_is_seen_and_the_program_becomes_small():
    found = 0
    for seed in range(60):
        program = generate.generate(seed, SMALL)
        compiler, case = Lying("%"), Case("cpu")
        verdict = judge.judge(program, case, compiler)
        if verdict.kind == "right":
            continue
        found += 1
        assert verdict.kind == "wrong" and "should be" in verdict.text and judge.is_fault(verdict)
        small = minimise.minimise(program, lambda c: judge.judge(c, case, compiler).kind == "wrong")
        assert len(small.statements) == 1, small.text()
        assert len(small.text()) <= len(program.text())
    assert found >= 3


def test_a_nan_that_should_not_be_there_is_seen():
    expected = np.array([1.0, np.nan, np.inf])
    assert evaluate.differences(np.array([np.nan, np.nan, np.inf]), expected).tolist() == [True, False, False]
    assert evaluate.differences(np.array([1.0, 2.0, -np.inf]), expected).tolist() == [False, True, True]


def test_a_refused_program_is_a_fault_and_refused_options_are_none():
    assert judge.is_fault(judge.Verdict(Case("cpu"), "refused"))
    assert not judge.is_fault(judge.Verdict(Case("sim", "unroll: 4"), "refused"))
    assert judge.is_fault(judge.Verdict(Case("sim", "unroll: 4"), "crash"))


def test_options_are_drawn_by_seed():
    assert options.cpu(5) == options.cpu(5)
    assert len({options.gpu(seed) for seed in range(50)}) > 25


def test_bounds_hold():
    """What a bound says of random operands holds for their results."""
    random = np.random.default_rng(0)
    for _ in range(2000):
        type = str(random.choice(["int8", "uint8", "float32"]))
        low, high = sorted(int(x) for x in random.integers(0 if type == "uint8" else -9, 9, 2))
        a = bounds.Bound(low, high)
        b = bounds.Bound(0, 5)
        op = str(random.choice(["+", "-", "*"] + ([] if type == "float32" else ["/", "%"])))
        bound = bounds.binary(op, a, b, type)
        x, y = int(random.integers(low, high + 1)), int(random.integers(0, 6))
        value = pointwise.combined(op, float(x) if type == "float32" else x, float(y) if type == "float32" else y, type)
        assert bound.low <= value <= bound.high, (type, op, x, y, value, bound)


# The process that compiles and runs. Here it is a script that does what a compiler might.


def worker_that(tmp_path, does: str, limit_s: float = 5.0) -> Worker:
    script = tmp_path / "worker"
    script.write_text(f"#!{sys.executable}\nimport os, sys, time\nhead = sys.stdin.buffer.readline()\n{does}\n")
    script.chmod(0o755)
    return Worker(str(script), limit_s)


A_PROGRAM = one("=", False, p.Constant("int32", 3), [over("i", 2)], [tensor("T", "int32", 2, role="result")], [I])
ITS_DATA = {"T": np.zeros(2, np.int32)}


def test_a_result_of_the_worker(tmp_path):
    worker = worker_that(tmp_path, "sys.stdout.buffer.write(b'ok 8\\n' + bytes([3, 0, 0, 0, 3, 0, 0, 0])); sys.stdout.flush()")
    assert judge.judge(A_PROGRAM, Case("cpu"), worker, data=ITS_DATA).kind == "right"
    worker.stop()
    worker = worker_that(tmp_path, "sys.stdout.buffer.write(b'ok 8\\n' + bytes([3, 0, 0, 0, 4, 0, 0, 0])); sys.stdout.flush()")
    verdict = judge.judge(A_PROGRAM, Case("cpu"), worker, data=ITS_DATA)
    assert verdict.kind == "wrong" and verdict.text == "'T' differs in 1 of 2 elements: T(1) is 4 and should be 3"
    worker.stop()


def test_a_crash_costs_one_program(tmp_path):
    worker = worker_that(tmp_path, "sys.stderr.write('LLVM ERROR: no\\n'); sys.stderr.flush(); os.abort()")
    for _ in range(2):
        outcome = worker.run(A_PROGRAM, ITS_DATA, Case("cpu"))
        assert outcome.kind == "crash" and "SIGABRT" in outcome.text and "LLVM ERROR: no" in outcome.text
    worker.stop()


def test_a_worker_that_hangs_is_ended(tmp_path):
    worker = worker_that(tmp_path, "time.sleep(60)", limit_s=0.5)
    assert worker.run(A_PROGRAM, ITS_DATA, Case("cpu")).kind == "timeout"
    assert worker.process is None


def test_programs_without_a_verdict_are_a_fault(tmp_path):
    killer = tmp_path / "killer"
    killer.write_text("#!/bin/sh\nkill -9 $PPID\n")
    killer.chmod(0o755)
    main = pathlib.Path(__file__).parent / "main.py"
    run = subprocess.run([sys.executable, main, "--count=3", "--jobs=1", "--points=40", f"--program={killer}"],
                         capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert "1 programs have no verdict: a process of the oracle ended with -9" in run.stdout


def test_an_error_of_the_worker(tmp_path):
    worker = worker_that(tmp_path, "sys.stdout.write('refused 9\\nerror: no'); sys.stdout.flush()")
    outcome = worker.run(A_PROGRAM, ITS_DATA, Case("cpu"))
    assert (outcome.kind, outcome.text) == ("refused", "error: no")
    worker.stop()


def test_the_request_holds_all_of_the_program():
    request = Worker("").request(A_PROGRAM, ITS_DATA, Case("sim", "unroll: 4"))
    assert request.startswith(b"run sim 30000 ") and A_PROGRAM.text().encode() in request and b"unroll: 4" in request
    assert request.endswith(b"int32 1 2 8\n" + bytes(8))


def test_smaller_programs_keep_their_meaning():
    """Each step of the minimiser gives a program that the references agree on, or that has no meaning."""
    steps = 0
    for seed in range(40):
        for candidate in itertools.islice(minimise.smaller(generate.generate(seed, SMALL)), 12):
            try:
                data = data_of(candidate)
                right = evaluate.evaluate(candidate, data)
            except (evaluate.OutOfBounds, KeyError):
                continue
            steps += 1
            for name, array in pointwise.evaluate(candidate, data).items():
                assert same(array, right[name]), candidate.text()
    assert steps > 200
