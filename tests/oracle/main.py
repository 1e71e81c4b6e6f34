#!/usr/bin/env python3
"""Runs random programs through the compiler and compares the results with NumPy's, with ==.

Prints each program that is wrong, as small as it gets, with its data and how to repeat it. Ends with 0 if there is none.
"""
from __future__ import annotations

import argparse
import multiprocessing
import os
import queue
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

import numpy as np  # noqa: E402

from oracle import judge, program as p  # noqa: E402
from oracle.compiler import Case, Command, Worker, write_case  # noqa: E402
from oracle.evaluate import evaluate  # noqa: E402
from oracle.choices import RULES, Limits  # noqa: E402
from oracle.data import make_data  # noqa: E402
from oracle.generate import generate  # noqa: E402
from oracle.minimise import minimise  # noqa: E402

HERE = Path(__file__).resolve().parent
BACKENDS = ("cpu", "sim", "cuda", "interp")


@dataclass
class Report:
    """What became of one seed."""
    seed: int
    verdicts: list = field(default_factory=list)  # (backend, kind, whether it is a fault)
    text: str = ""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/numpy_oracle", description=__doc__)
    parser.add_argument("--backend", default="cpu", metavar="NAME,...", help=f"of {', '.join(BACKENDS)} (default cpu)")
    parser.add_argument("--count", type=int, default=20000, help="programs (default 20000)")
    parser.add_argument("--first", type=int, default=1, help="seed of the first program (default 1)")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no further program after so long")
    parser.add_argument("--jobs", type=int, help="processes (default: one for each core, at most 4 for a GPU)")
    parser.add_argument("--points", type=int, default=4096,
                        help="instances of a statement, and elements of a tensor, at most (default 4096)")
    parser.add_argument("--statements", type=int, default=8, help="of a program, at most (default 8)")
    parser.add_argument("--draws", type=int, default=1, help="random options for each program (default 1)")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one run (default 60)")
    parser.add_argument("--through", choices=("worker", "tensorc"), default="worker",
                        help="oracle_worker, which serves many programs, or the command tensorc, a process for each run")
    parser.add_argument("--program", help="path of that program (default: in build, or beside this folder in a bundle)")
    parser.add_argument("--keep", metavar="FOLDER", help="write each wrong program there, with its tensors as .npy files")
    parser.add_argument("--faults", type=int, default=20, help="end after so many (default 20)")
    parser.add_argument("--no-minimise", action="store_true", help="print programs as they were made")
    parser.add_argument("--without", default="", metavar="RULE,...",
                        help=f"for a compiler that lacks rules of the language, of {', '.join(RULES)}")
    parser.add_argument("--show", action="store_true", help="print the programs, run nothing")
    found = parser.parse_args()
    found.backends = tuple(found.backend.split(","))
    unknown = [name for name in found.backends if name not in BACKENDS]
    if unknown:
        parser.error(f"there is no backend '{unknown[0]}'; there are {', '.join(BACKENDS)}")
    if found.jobs is None:
        found.jobs = len(os.sched_getaffinity(0)) if "cuda" not in found.backends else min(4, len(os.sched_getaffinity(0)))
    missing = [name for name in found.without.split(",") if name and name not in RULES]
    if missing:
        parser.error(f"there is no rule '{missing[0]}'; there are {', '.join(RULES)}")
    if found.program is None:
        name = "oracle_worker" if found.through == "worker" else "tensorc"
        places = [HERE.parent / name, HERE.parent.parent / "build" / "tests" / name, HERE.parent.parent / "build" / name]
        found.program = next((str(place) for place in places if place.is_file()), None)
        if found.program is None and not found.show:
            parser.error(f"there is no {name} in {', '.join(str(place.parent) for place in places)}")
    return found


def limits_of(options: argparse.Namespace) -> Limits:
    return Limits(points=options.points, statements=options.statements, without=frozenset(options.without.split(",")) - {""})


def compiler_of(options: argparse.Namespace):
    return (Worker if options.through == "worker" else Command)(options.program, options.limit)


# One program.


def examine(seed: int, options: argparse.Namespace, compiler) -> Report:
    report = Report(seed)
    program = generate(seed, limits_of(options))
    data = make_data(program)
    expected = evaluate(program, data)
    for case in judge.cases_of(seed, options.backends, options.draws):
        verdict = judge.judge(program, case, compiler, expected, data)
        fault = judge.is_fault(verdict)
        report.verdicts.append((case.backend, verdict.kind, fault))
        if fault and not report.text:
            report.text = explained(program, verdict, compiler, options)
    return report


def explained(program: p.Program, verdict: judge.Verdict, compiler, options: argparse.Namespace) -> str:
    """The report of a fault: the smallest program that has it, the data, what differs, how to repeat it."""
    smallest, kind = program, verdict.kind
    if not options.no_minimise and kind not in ("timeout", "budget"):
        def fails(candidate: p.Program) -> bool:
            found = judge.judge(candidate, verdict.case, compiler)
            return found.kind == verdict.kind and headline(found) == headline(verdict)

        began = time.monotonic()
        smallest = minimise(program, lambda c: time.monotonic() - began < 2 * options.limit and fails(c))
        verdict = judge.judge(smallest, verdict.case, compiler)
    lines = [f"{kind.upper()}: seed {program.seed}, {verdict.case}"]
    if verdict.kind != kind:
        lines.append(f"not on every run: the last one was {verdict.kind}")
    lines += [described(smallest), verdict.text[:3000]]
    if verdict.kind == "wrong" and verdict.case.backend != "interp":
        lines.append(second_opinion(smallest, compiler))
    lines.append(f"repeat: scripts/numpy_oracle --first={program.seed} --count=1 --backend={verdict.case.backend} "
                 f"--points={options.points} --statements={options.statements}"
                 f"{f' --without={options.without}' if options.without else ''}")
    if options.keep:
        lines.append(f"kept in {keep(Path(options.keep), smallest, verdict.case)}")
    return "\n".join(line for line in lines if line)


def headline(verdict: judge.Verdict) -> str:
    """What has to stay the same while a program becomes smaller."""
    if verdict.kind not in ("refused", "internal", "run"):
        return ""
    line = verdict.text.splitlines()[0] if verdict.text else ""
    words = "".join(c for c in line.split("error:")[-1] if not c.isdigit()).split("'")
    return "".join(words[::2])  # without names and numbers


def second_opinion(program: p.Program, compiler) -> str:
    """Whether the interpreter, the compiler's own oracle, sees it."""
    kind = judge.judge(program, Case("interp"), compiler).kind
    if kind == "right":
        return "the interpreter is right: the fault is the backend's"
    return f"the interpreter is {kind} too: the fault is the front end's" if kind == "wrong" else f"interpreter: {kind}"


def described(program: p.Program) -> str:
    lines = [program.text().rstrip()]
    if program.sizes:
        lines.append("sizes: " + ", ".join(f"{n}={v}" for n, v in program.sizes.items()))
    if program.scalars:
        lines.append("scalars: " + ", ".join(f"{n}={v}" for n, (_, v) in program.scalars.items()))
    for name, array in make_data(program).items():
        if array.size <= 40:
            lines.append(f"{name} = {np.array2string(array, separator=', ', max_line_width=200).replace(chr(10), '')}")
    return "\n".join(lines)


def keep(folder: Path, program: p.Program, case: Case) -> Path:
    """Writes a program, its data, what its results should be, and the command that runs it."""
    place = folder / f"seed-{program.seed}-{case.backend}"
    place.mkdir(parents=True, exist_ok=True)
    data = make_data(program)
    command = write_case(place, program, data, case)
    (place / "expected").mkdir(exist_ok=True)
    for name, array in evaluate(program, data).items():
        np.save(place / "expected" / f"{name}.npy", array)
    (place / "command").write_text("tensorc " + " ".join(command) + "\n")
    return place


# All programs.


def work(number: int, options: argparse.Namespace, reports, taken) -> None:
    """One process of several: takes seeds until there are none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    compiler = compiler_of(options)
    deadline = options.began + options.seconds
    try:
        while time.time() < deadline:
            with taken.get_lock():
                at, taken.value = taken.value, taken.value + 1
            if at >= options.count:
                break
            try:
                reports.put(examine(options.first + at, options, compiler))
            except Exception as fault:  # of the oracle itself
                reports.put(Report(options.first + at, [("oracle", "broken", True)],
                                   f"ORACLE: seed {options.first + at}: {type(fault).__name__}: {fault}"))
    finally:
        compiler.stop()
        reports.put(None)


def main() -> int:
    options = arguments()
    if options.show:
        for seed in range(options.first, options.first + options.count):
            print(f"# seed {seed}\n{described(generate(seed, limits_of(options)))}\n")
        return 0
    options.began = time.time()
    taken = multiprocessing.Value("q", 0)
    reports = multiprocessing.Queue()
    processes = [multiprocessing.Process(target=work, args=(n, options, reports, taken)) for n in range(options.jobs)]
    for process in processes:
        process.start()
    seeds, faults, first_fault, counts, complete = 0, 0, None, Counter(), False
    said, running = time.monotonic(), len(processes)
    try:
        while running:
            try:
                report = reports.get(timeout=5)
            except queue.Empty:
                report = 0
                running = sum(process.is_alive() for process in processes)
            if report is None:
                running -= 1
            elif report:
                seeds += 1
                for backend, kind, _ in report.verdicts:
                    counts[backend, kind] += 1
                if report.text:
                    faults += 1
                    first_fault = report.seed if first_fault is None else min(first_fault, report.seed)
                    print(report.text + "\n", flush=True)
                    if faults >= options.faults:
                        print(f"ended after {faults} faults (--faults)")
                        break
            if time.monotonic() - said > 20:
                said = time.monotonic()
                print(f"{seeds} of {options.count} programs, {faults} faults, {time.time() - options.began:.0f} s",
                      file=sys.stderr, flush=True)
        else:
            complete = True
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        for process in processes:
            if process.is_alive() and running:
                process.terminate()
            process.join()
    lost = min(taken.value, options.count) - seeds if complete else 0
    if lost:
        codes = ", ".join(str(process.exitcode) for process in processes if process.exitcode)
        print(f"{lost} programs have no verdict: a process of the oracle ended with {codes or 'no message'}")
    print(f"{seeds} programs from seed {options.first}, {time.time() - options.began:.0f} s: "
          + (f"{faults} with faults, the first at seed {first_fault}" if faults else "none wrong"))
    for (backend, kind), count in sorted(counts.items()):
        print(f"  {backend:6} {kind:8} {count}")
    return 1 if faults or lost or not seeds else 0


if __name__ == "__main__":
    sys.exit(main())
