"""Compares the ranges of random programs with the oracle's. Ends with 1 if the compiler is wrong anywhere."""

import argparse
import random
import sys
import time
from collections import Counter

from .compare import compare
from .compiler import Worker
from .generate import generate
from .minimise import minimise

WORST_FIRST = ("fault", "wrong", "unequal", "open", "lenient", "over-strict", "invalid")


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/range_oracle", description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--count", type=int, default=500, help="how many programs")
    parser.add_argument("--first", type=int, default=0, help="seed of the first program")
    parser.add_argument("--seconds", type=float, default=0, help="stop after this time; 0: never")
    parser.add_argument("--points", type=int, default=80, help="how many sizes and scalars at most for each program")
    parser.add_argument("--show", type=int, default=1, help="how many programs to print of each class of findings")
    parser.add_argument("--kinds", default="fault,wrong", help="kinds of findings to print, or all")
    parser.add_argument("--no-minimise", action="store_true", help="print programs as they were made")
    parser.add_argument("--print", type=int, metavar="SEED", help="print one program and its findings")
    parser.add_argument("--worker", default="build/tests/ranges_worker", help="the program that compiles")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser.parse_args()


class Summary:
    """Counts findings by kind and class, in programs, and keeps the first programs of each."""

    def __init__(self, show):
        self.show, self.points, self.programs, self.first = show, Counter(), Counter(), {}
        self.kinds = Counter()

    def add(self, program, comparison):
        self.points.update(comparison.points)
        self.kinds.update({f.kind for f in comparison.findings})
        for key in {(f.kind, f.why) for f in comparison.findings}:
            self.programs[key] += 1
            finding = next(f for f in comparison.findings if (f.kind, f.why) == key)
            kept = self.first.setdefault(key, [])
            if len(kept) < self.show:
                kept.append((program, finding))

    def wrong(self):
        return self.kinds["wrong"] + self.kinds["fault"] + self.kinds["unequal"]

    def print_classes(self):
        for key, count in sorted(self.programs.items(), key=lambda i: (WORST_FIRST.index(i[0][0]), -i[1])):
            print(f"{count:6} programs  {key[0]}: {key[1]} (first seed {self.first[key][0][0].seed})")


def show(worker, program, finding, smaller):
    text = program.text
    if smaller:
        text, finding = minimise(worker, text, program.scalars, finding)
    at = ", ".join(f"{n} = {v}" for n, v in {**finding.sizes, **finding.scalars}.items())
    print(f"\nseed {program.seed}: {finding.kind}, {finding.why}\n{text}at {at}: {finding.detail}")


def progress(done, began, summary):
    line = f"{done} programs, {time.monotonic() - began:.0f} s, {summary.wrong()} wrong"
    print(f"\r{line}", end="", file=sys.stderr, flush=True)


def main():
    options = arguments()
    began = time.monotonic()
    with Worker(options.worker) as worker:
        if options.print is not None:
            return print_one(worker, options)
        summary, done = Summary(options.show), 0
        for seed in range(options.first, options.first + options.count):
            if options.seconds and time.monotonic() - began > options.seconds:
                break
            program = generate(seed)
            comparison = compare(worker, program.text, program.scalars, random.Random(seed), options.points)
            summary.add(program, comparison)
            done += 1
            if not options.quiet and done % 10 == 0:
                progress(done, began, summary)
        if not options.quiet:
            print(file=sys.stderr)
        for (kind, _), kept in sorted(summary.first.items(), key=lambda i: WORST_FIRST.index(i[0][0])):
            if options.kinds == "all" or kind in options.kinds.split(","):
                for program, finding in kept:
                    show(worker, program, finding, not options.no_minimise)
        print()
        summary.print_classes()
        points = ", ".join(f"{count} {kind}" for kind, count in summary.points.most_common())
        print(f"{done} programs in {time.monotonic() - began:.0f} s: {summary.wrong()} wrong. Points: {points}.")
        return 1 if summary.wrong() else 0


def print_one(worker, options):
    program = generate(options.print)
    print(program.text, end="")
    for finding in compare(worker, program.text, program.scalars, random.Random(options.print), options.points).findings:
        print(finding)
    return 0


if __name__ == "__main__":
    sys.exit(main())
