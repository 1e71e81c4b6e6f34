#!/usr/bin/env python3
"""How good is what the compiler chooses, and how good are the first 16 candidates of a search?

For each of the board's rows one genetic search of ten times 16 candidates. Its first 16, what the compiler chooses by
itself among them, are those that a search of 16 measures. Times within a search are comparable: each candidate runs in
turn with the best of its time, the best of all in turn with the default. "default / best" and "16 / best" are the best
time of the whole search over that of the compiler's choice, and over the best of the first 16.

    benchmarks/tuning.py [--backend=cpu|cuda|sim] [--rows=4,5,10] [--candidates=160] [--minutes=N] [--jobs=N]

With --minutes the rows share that time: a search that has used up its part ends with what it has found by then. With
--jobs several searches run at once and take turns on the device (on a GPU the oracle and the compilers of one then run
while another measures; on the CPU it would disturb). Prints a Markdown table, row by row and at the end as a whole, and
the geometric means of rows whose search was complete: goals are 16 candidates >= 0.96, the default >= 0.85. Ctrl-C ends
all searches; the rows that are done are shown. The backend sim, to try this where there is no GPU, has the GPU's rows
at the sizes of tests.
"""
import argparse
import concurrent.futures
import csv
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "board"))

import rows as board  # noqa: E402
from run import chosen  # noqa: E402
from searches import Searches  # noqa: E402
from tune import command_of, default_tool, environment_of  # noqa: E402

FIRST = 16
HEAD = "| row | default | first 16 | best | default / best | 16 / best | failed | best options |\n" + "|---" * 8 + "|"


def rows_of(arguments):
    """Those that the compiler can express; those whose oracle takes longest come first."""
    rows = [row for row in chosen(arguments, "cpu" if arguments.device == "cpu" else "cuda") if not row.refused]
    if arguments.device == "sim":
        small = {entry.row().title: entry.row(small=True) for entry in board.GPU}
        rows = [small[row.title] for row in rows]
    return sorted(rows, key=lambda row: -(row.flops + row.bytes))


def tune(searches, arguments, row, seconds):
    """The history of one search, as rows of the CSV, or what the tool complains of."""
    with tempfile.TemporaryDirectory() as folder:
        program, history = pathlib.Path(folder) / "row.tc", pathlib.Path(folder) / "history.csv"
        program.write_text(row.source, encoding="utf-8")
        command = command_of(row, program, seconds, arguments) + [f"--history={history}", "--measure_limit=120"]
        try:
            done = searches.run(command, env=environment_of(arguments.tool), timeout=seconds + 60 if seconds else None,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except subprocess.TimeoutExpired:
            return f"took longer than {seconds + 60} s"
        if done is None:
            return "stopped"
        if done.returncode != 0:
            return (done.stderr.strip() or f"ended with {done.returncode}").splitlines()[-1]
        with open(history, newline="", encoding="utf-8") as lines:
            return list(csv.DictReader(lines))


def line_of(name, history, shares, least):
    """A row of the table; adds its shares to those of the others if the search had `least` candidates: where time cut
    it off early, the first 16 are the best by construction."""
    if isinstance(history, str):
        return f"| {name} | {history} | | | | | | |"
    right = [one for one in history if one["outcome"] == "done"]
    first_right = [one for one in history[:FIRST] if one["outcome"] == "done"]
    default, first, best = (min(float(one["us"]) for one in part) for part in (right[:1], first_right, right))
    if len(history) >= least:
        shares["default"].append(best / default)
        shares["first"].append(best / first)
    options = min(right, key=lambda one: float(one["us"]))["options"] or "the compiler's"
    failed = sum(one["outcome"] not in ("done", "hopeless") for one in history)
    return (f"| {name} | {default:.4g} µs | {first:.4g} µs | {best:.4g} µs | {best / default:.2f} | "
            f"{best / first:.2f} | {failed} of {len(history)} | `{options}` |")


def closing_line(shares, rows):
    goals = {"default": 0.85, "first": 0.96}
    short = {what: sum(share < goals[what] for share in shares[what]) for what in goals}
    count = len(shares["first"])
    if count == 0:
        return f"\nNo search of {rows} rows was complete: no means."
    return (f"\nGeometric means of {count} of {rows} rows, those whose search was complete: default "
            f"{statistics.geometric_mean(shares['default']):.3f} ({short['default']} below 0.85), 16 candidates "
            f"{statistics.geometric_mean(shares['first']):.3f} ({short['first']} below 0.96).")


def run_rows(arguments, rows):
    """Name and history of each row as it ends. The time that is left is shared by the rows that have not begun."""
    end = time.monotonic() + 60 * arguments.minutes
    waiting = len(rows)

    def run(row):
        nonlocal waiting
        left = end - time.monotonic()
        seconds = max(5, int(min(left, left * arguments.jobs / waiting))) if arguments.minutes else 0
        waiting -= 1
        return row.title, tune(searches, arguments, row, seconds)

    with Searches(arguments.jobs) as searches:
        for done in concurrent.futures.as_completed([searches.submit(run, row) for row in rows]):
            if not searches.stopped:
                yield done.result()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default="", help="tensorc; default: beside libtensorc.so")
    parser.add_argument("--backend", dest="device", default="cpu", choices=("cpu", "cuda", "sim"))
    parser.add_argument("--rows", default="", help="as those of board/run.py; default: all")
    parser.add_argument("--candidates", type=int, default=10 * FIRST)
    parser.add_argument("--minutes", type=float, default=0, help="for all rows together; 0: as long as it takes")
    parser.add_argument("--jobs", type=int, default=1, help="searches at once")
    arguments = parser.parse_args()
    arguments.tool = arguments.tool or default_tool()
    arguments.population, arguments.generations, arguments.cache = FIRST, -(-arguments.candidates // FIRST), ""
    rows = rows_of(arguments)
    shares = {"default": [], "first": []}
    lines, well = {}, 0
    print(HEAD, flush=True)
    stopped = ""
    try:
        for name, history in run_rows(arguments, rows):
            well += not isinstance(history, str)
            lines[name] = line_of(name, history, shares, arguments.candidates if arguments.minutes else 0)
            print(lines[name], flush=True)
    except KeyboardInterrupt:
        stopped = "tuning.py: stopped\n"
    print("\n" + HEAD)
    print("\n".join(lines[row.title] for row in rows if row.title in lines))
    print(closing_line(shares, len(rows)))
    sys.stderr.write(stopped)
    return 0 if well == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
