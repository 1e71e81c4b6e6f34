"""The compiler against the oracle: every example, programs that were once wrong, and random ones.

TC_RANGES_FIRST and TC_RANGES_COUNT are other seeds and another number of random programs; scripts/range_oracle shows
more of them and makes them small.
"""

import os
import random
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from .compare import compare, difference, judge, points_of
from .compiler import Reply
from .generate import generate
from .infer import Analysis, Refused
from .minimise import minimise
from .syntax import SyntaxProblem, parse

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.tc"))
SCALARS = {"KH": (1, 2, 3), "KW": (2,), "sh": (1, 2, 3), "sw": (1, 2), "bins": (1, 5), "dilation": (0, 1, 3)}
FIRST = int(os.environ.get("TC_RANGES_FIRST", 0))
COUNT = int(os.environ.get("TC_RANGES_COUNT", 500))
POINTS = 8
COUNT_OF_TEXTS = 500

REGRESSIONS = {
    "a dilation as a scalar": (
        "def f(int d, float(T) X, float(K) W) -> (O) { O(t) +=! (t >= d * k) ? X(t - d * k) * W(k) : 0.0 }",
        {"d": (0, 1, 2, 3)},
    ),
    "a dilation as a scalar, with a where": (
        """def f(int d, float(T) X, float(K) W) -> (O) {
          O(t) +=! (t >= d * k) ? X(t - d * k) * W(k) : 0.0 where t in 0:T }""",
        {"d": (0, 1, 2, 3)},
    ),
    "the mirror image": (
        """def f(int d, float(T) X, float(K) W) -> (O) {
          O(t) +=! (t >= d * (K - 1 - k) ? X(t - d * (K - 1 - k)) : 0.0) * W(k) where t in 0:T }""",
        {"d": (0, 1, 2, 3)},
    ),
    "a padded strided convolution": (
        """def f(int s, int p, float(H) X, float(KH) W) -> (O) {
          O(h) +=! (s * h + k >= p && s * h + k - p < H ? X(s * h + k - p) : 0.0) * W(k)
            where h in 0:(H + 2 * p - KH) / s + 1 }""",
        {"s": (1, 2, 3), "p": (0, 1, 2)},
    ),
    "interleaved pairs": ("def f(float(D) X) -> (float(D) Y) { Y(i) = i % 2 == 0 ? -X(i + 1) : X(i - 1) }", {}),
    "halves": ("def f(float(D) X) -> (float(D) Y) { Y(i) = i < D / 2 ? -X(i + D / 2) : X(i - D / 2) }", {}),
    "a let over a scalar in a comparison": (
        """def f(int d, float(K) X, float(M) W) -> (float(K) O) {
          O(t) +=! (x <= K - 1 ? X(x) : 0.0) * W(k) where x = t + k * d, t in 0:K }""",
        {"d": (1, 2)},
    ),
    "a guarded read before the extent of an unguarded one is known": (
        """def f(float(M) A, float(H) B) -> (O, P) {
          O(i) = i < M ? A(i) : A(i - M)
          P(i) = O(i) + (i >= 2 && i < H + 2 ? B(i - 2) : 0.0) }""",
        {},
    ),
    "an unguarded subscript that is not monotone": (
        """def f(float(N) A, float(H) B) -> (O) {
          O(i) = (i - (N + 2) < 0 && i >= 2 ? A(i - 2) : 0.0) + B(i + i % 2) }""",
        {},
    ),
    "halves of rows": (
        """def f(float(S,D) X, float(S,E) C) -> (float(S,D) O) {
          O(s,i) = i < E ? X(s,i) * C(s,i) : X(s,i - E) * C(s,i - E) }""",
        {},
    ),
}


def unequal(comparison):
    """Findings that no choice of the rules allows."""
    return [f for f in comparison.findings if f.kind in ("fault", "wrong", "unequal")]


def report(text, findings):
    return "\n".join([text, *(f"{f.kind} at {f.sizes} {f.scalars}: {f.why}; {f.detail}" for f in findings[:5])])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples(worker, path):
    text = path.read_text()
    comparison = compare(worker, text, SCALARS, random.Random(1), 18)
    assert not comparison.findings, report(text, comparison.findings)
    assert comparison.points["agree"] >= 3


@pytest.mark.parametrize("name", REGRESSIONS)
def test_regressions(worker, name):
    text, scalars = REGRESSIONS[name]
    comparison = compare(worker, text, scalars, random.Random(1), 100)
    assert not comparison.findings, report(text, comparison.findings)
    assert comparison.points["agree"] > 0


def test_random_programs(worker):
    """None is wrong, and most of what the oracle accepts the compiler accepts."""
    points, wrong = Counter(), []
    for seed in range(FIRST, FIRST + COUNT):
        program = generate(seed)
        comparison = compare(worker, program.text, program.scalars, random.Random(seed), POINTS)
        points.update(comparison.points)
        if unequal(comparison):
            wrong.append(report(f"seed {seed}\n{program.text}", unequal(comparison)))
    print(dict(points), file=sys.stderr)
    assert not wrong, f"{len(wrong)} of {COUNT} programs:\n\n" + "\n\n".join(wrong[:5])
    accepted = points["agree"] + points["over-strict"]
    assert points["over-strict"] <= OVER_STRICT * accepted, dict(points)


# Of the points that the oracle accepts, the part that the compiler may refuse.
OVER_STRICT = 0.2


def test_a_wrong_range_is_found():
    analysis = Analysis(parse("def f(float(N) A) -> (O) { O(i) = A(i) }")[-1])
    for begin, end in ((1, 4), (0, 3), (0, 5)):
        reply = Reply(statements=[("O", {"i": (begin, end)})], extents={"A": (4,), "O": (4,)})
        assert judge(analysis, {"N": 4}, {}, reply)[0] == "wrong"
    right = Reply(statements=[("O", {"i": (0, 4)})], extents={"A": (4,), "O": (4,)})
    assert judge(analysis, {"N": 4}, {}, right)[0] == "agree"
    right.extents["O"] = (5,)
    assert "O has extents (5,)" in difference(analysis, analysis.infer({"N": 4}, {}), right)
    assert judge(analysis, {"N": 4}, {}, Reply(error="no"))[0] == "over-strict"
    assert judge(analysis, {"N": 4}, {}, Reply(error="oops", is_fault=True))[0] == "fault"


def test_an_accepted_error_is_found():
    analysis = Analysis(parse("def f(float(N) A) -> (float(N + 1) O) { O(i) = A(i) }")[-1])
    accepted = Reply(statements=[("O", {"i": (0, 4)})], extents={"A": (4,), "O": (5,)})
    assert judge(analysis, {"N": 4}, {}, accepted)[:2] == ("wrong", "accepted against R10")


def test_points_are_all_sizes_where_there_are_few():
    assert len(list(points_of(["N", "M"], {"s": (1, 2)}, random.Random(0), 200))) == 162
    assert len(list(points_of(["N", "M", "K"], {}, random.Random(0), 50))) <= 50


def test_generated_programs_are_the_same_for_the_same_seed_and_can_be_read():
    texts = set()
    for seed in range(200):
        program = generate(seed)
        assert program.text == generate(seed).text
        texts.add(program.text)
        try:
            Analysis(parse(program.text)[-1])
        except SyntaxProblem as problem:
            pytest.fail(f"{problem}\n{program.text}")
    assert len(texts) > 190


@pytest.mark.parametrize(
    "feature",
    [
        r"s \* t|t \* s",
        r"d \* k|k \* d",
        r"- p\)",
        r"% 2",
        r"% s",
        r"/ 2",
        r"/ s",
        r"where \w in [^:]*[sdp]\b",
        r"where .*, \w in ",
        r"where x = |, x = ",
        r"exists",
        r"float\([^)]*\) O",
        r"O1\(i\) = .*O0\(i",
        r"\+= ",
        r"\?.*\(.*\?",
        r"&&",
        r"\|\|",
        r"!\(",
        r"max\(|min\(|clamp\(",
        r"- 1 - k",
        r"O\d\([^,)]*[+*/][^)]*\) \+?=",
    ],
)
def test_generated_programs_have(feature):
    assert sum(bool(re.search(feature, generate(seed).text)) for seed in range(COUNT_OF_TEXTS)) >= 5


class WrongAboutRemainders:
    """In place of the compiler: every range is one too short if the text has a remainder."""

    def define(self, name, text):
        self.analysis = Analysis(parse(text)[-1])
        self.lost = 1 if "%" in text else 0

    def at(self, sizes, scalars):
        try:
            answer = self.analysis.infer(sizes, scalars)
        except Refused as refused:
            return Reply(error=str(refused))
        loops = zip(self.analysis.loops, answer.ranges)
        statements = [(l.tensor, {i: (b, e - self.lost) for i, (b, e) in r.items()}) for l, r in loops]
        return Reply(statements=statements, extents=answer.extents)


def test_a_finding_is_made_small():
    text = """def f(int s, float(N) A, float(M) B) -> (O, P) {
      P(i) = B(i) * 2.0 + (i >= 1 ? B(i - 1) : 0.0)
      O(i) = (i < N && i % 2 == 0 ? A(i) : 0.0) * 3.0 + A(i) where i in 0:N / s, exists A(i)
    }"""
    scalars = {"s": (1, 2)}
    fake = WrongAboutRemainders()
    finding = compare(fake, text, scalars, random.Random(0), 12).worst()
    assert finding.kind == "wrong"
    small, again = minimise(fake, text, scalars, finding)
    assert (again.kind, again.why) == (finding.kind, finding.why)
    assert "%" in small and "P(" not in small and "?" not in small and len(small) < 100, small


def test_half_of_generated_programs_mean_something():
    """A generator whose programs are all refused would test nothing."""
    accepted = 0
    for seed in range(200):
        program = generate(seed)
        analysis = Analysis(parse(program.text)[-1])
        scalars = {s: program.scalars[s][-1] for s in analysis.scalars}
        try:
            analysis.infer({s: 6 for s in analysis.sizes}, scalars)
            accepted += 1
        except Refused:
            pass
    assert accepted >= 80
