"""Runs a program on a backend and says what is wrong with the results."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import options, program as p
from .compiler import Case, Outcome
from .evaluate import differences, evaluate
from .data import make_data


@dataclass(frozen=True)
class Verdict:
    """`kind` is right, wrong, or that of an Outcome which is not ok."""
    case: Case
    kind: str
    text: str = ""


def cases_of(seed: int, backends: tuple[str, ...], draws: int = 1) -> list[Case]:
    """How the program of a seed is run: by default options, by random ones, and for some seeds strictly."""
    cases = []
    for backend in backends:
        cases.append(Case(backend))
        if backend == "interp":
            continue
        draw = options.cpu if backend == "cpu" else options.gpu
        for n in range(draws):
            drawn = draw(seed * 16 + n)
            if drawn:
                cases.append(Case(backend, drawn, f"options '{drawn}'"))
        if seed % 4 == 0:
            cases.append(Case(backend, "strict: true", "strict"))
        if seed % 8 == 1 and backend != "cpu":
            cases.append(Case(backend, options.SINGLE_THREAD, "one thread"))
    return cases


def judge(program: p.Program, case: Case, compiler, expected: dict[str, np.ndarray] | None = None,
          data: dict[str, np.ndarray] | None = None) -> Verdict:
    """Compares one run with the reference. Raises OutOfBounds for a program without a meaning."""
    data = make_data(program) if data is None else data
    expected = evaluate(program, data) if expected is None else expected
    outcome: Outcome = compiler.run(program, data, case)
    if outcome.kind != "ok":
        return Verdict(case, outcome.kind, outcome.text)
    report = []
    for name, right in expected.items():
        got = outcome.results[name]
        where = differences(got, right)
        if where.any():
            at = tuple(int(x[0]) for x in np.nonzero(np.atleast_1d(where)))
            one, other = np.atleast_1d(got)[at], np.atleast_1d(right)[at]
            place = ", ".join(map(str, at)) if right.shape else ""
            report.append(f"'{name}' differs in {int(where.sum())} of {where.size} elements: {name}({place}) is {one} "
                          f"and should be {other}")
    return Verdict(case, "wrong" if report else "right", "\n".join(report))


def is_fault(verdict: Verdict) -> bool:
    """Whether something is wrong with the compiler. Options may be refused; programs may not."""
    return verdict.kind not in ("right", "refused") or (verdict.kind == "refused" and not verdict.case.options)
