"""Compares the compiler's ranges and extents with the oracle's, at many sizes and scalars."""

import itertools
import re
from collections import Counter
from dataclasses import dataclass, field

from .compiler import Reply
from .infer import Analysis, Refused
from .syntax import definition_text, parse, with_numbers

# Where the text of the rules leaves the answer open (see README.md); a difference there is counted apart.
OPEN = {"tie", "beside guards", "R3 after guards", "left expression in part", "empty", "gaps"}


# A read or write in a sentence, with up to three levels of parentheses.
CALL = re.compile(r"\w+\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")


@dataclass
class Finding:
    kind: str  # fault, wrong, unequal, open, lenient, over-strict or invalid; README.md says what they mean
    why: str  # a class of findings: the same for the same cause, as far as one can tell
    sizes: dict
    scalars: dict
    detail: str


@dataclass
class Comparison:
    points: Counter = field(default_factory=Counter)  # how each point ended
    findings: list = field(default_factory=list)

    def add(self, kind, why, sizes, scalars, detail):
        self.points[kind] += 1
        if kind not in ("agree", "both refuse"):
            self.findings.append(Finding(kind, why, sizes, scalars, detail))

    def worst(self):
        for kind in ("fault", "wrong", "unequal", "open", "lenient", "over-strict"):
            if any(f.kind == kind for f in self.findings):
                return next(f for f in self.findings if f.kind == kind)
        return None


def points_of(sizes, scalar_values, rng, limit, largest=9):
    """All sizes from 1 to `largest` with all the scalars' values, or a sample of them."""
    names = list(sizes) + list(scalar_values)
    choices = [range(1, largest + 1)] * len(sizes) + [list(v) for v in scalar_values.values()]
    total = 1
    for c in choices:
        total *= len(c)
    if total <= limit:
        chosen = itertools.product(*choices)
    else:
        chosen = {tuple(rng.choice(c) for c in choices) for _ in range(limit)}
    for values in sorted(chosen):
        point = dict(zip(names, values))
        yield {s: point[s] for s in sizes}, {s: point[s] for s in scalar_values}


def class_of(sentence):
    """A sentence without its numbers and names."""
    sentence = sentence.split(" // ")[0].split(": it needs")[0]
    sentence = re.sub(r"'[^']*'", "'..'", sentence)
    sentence = CALL.sub("X(..)", sentence)
    return re.sub(r"-?\d+", "#", sentence)[:110]


def matched(loops, statements):
    """For each statement of the text the compiler's, which has others in between. None if one is missing."""
    result, at = [], 0
    for loop in loops:
        while at < len(statements):
            tensor, ranges = statements[at]
            at += 1
            if tensor in (loop.tensor, loop.tensor + "_sum") and set(ranges) == set(loop.indices):
                result.append(ranges)
                break
        else:
            return None
    return result


def difference(analysis, answer, reply):
    """What differs, or None."""
    statements = matched(analysis.loops, reply.statements)
    if statements is None:
        return f"statements {reply.statements}"
    for loop, ours, theirs in zip(analysis.loops, answer.ranges, statements):
        for index in loop.indices:
            if ours[index] != theirs[index]:
                a, b = ours[index], theirs[index]
                if a[0] >= a[1] and b[0] >= b[1]:
                    continue
                return f"{index} is {b[0]}:{b[1]}, the oracle says {a[0]}:{a[1]}, in {loop.text}"
    for tensor, extents in answer.extents.items():
        if reply.extents.get(tensor) != extents:
            return f"{tensor} has extents {reply.extents.get(tensor)}, the oracle says {extents}"
    return None


def judge(analysis, sizes, scalars, reply):
    """How one point ended: (kind, class, detail)."""
    if reply.is_fault:
        return "fault", class_of(reply.error), reply.error
    try:
        answer, refused = analysis.infer(sizes, scalars), None
    except Refused as error:
        answer, refused = None, error
    if refused:
        if reply.error:
            return "both refuse", "", ""
        kind = "lenient" if refused.rule in ("R4", "C10") else "wrong"
        notes = sorted(refused.notes & OPEN - {"gaps"})
        if notes:
            return "open", ", ".join(notes), f"{refused}; accepted with {reply.statements}"
        return kind, f"accepted against {refused.rule}", f"{refused}; accepted with {reply.statements}"
    notes = ", ".join(sorted(answer.notes & OPEN))
    if reply.error:
        if "empty" in answer.notes:
            return "both refuse", "", ""
        return "over-strict", class_of(reply.error) + (f" [{notes}]" if notes else ""), reply.error
    differs = difference(analysis, answer, reply)
    if not differs:
        return "agree", "", ""
    if notes and notes != "gaps":
        return "open", notes, differs
    return "wrong", "other range" + (f" [{notes}]" if notes else ""), differs


def compare(worker, text, scalar_values, rng, limit):
    """Compares one def at up to `limit` points. Raises SyntaxProblem for a text that the oracle cannot read."""
    definition = parse(text)[-1]
    analysis = Analysis(definition)
    result = Comparison()
    error = worker.define(definition.name, text)
    if error:
        result.add("invalid", class_of(error), {}, {}, error)
        return result
    values = {s: scalar_values[s] for s in analysis.scalars}
    replies = {}  # by the scalars: the sizes, and what the compiler says
    for sizes, scalars in points_of(analysis.sizes, values, rng, limit):
        reply = worker.at(sizes, scalars)
        kind, why, detail = judge(analysis, sizes, scalars, reply)
        result.add(kind, why, sizes, scalars, detail)
        if kind == "fault":
            return result
        replies.setdefault(tuple(scalars.items()), []).append((sizes, reply))
    for scalars in list(replies)[:: max(1, len(replies) // 2)] if values else ():
        compare_with_numbers(worker, definition, dict(scalars), replies[scalars], result)
    return result


def compare_with_numbers(worker, definition, scalars, replies, result):
    """C11: the same text with the numbers in place of the scalars has the same ranges and extents."""
    text = definition_text(with_numbers(definition, scalars))
    error, names = worker.define(definition.name, text), parse(text)[-1].sizes
    for sizes, reply in replies:
        other = Reply(error) if error else worker.at({s: v for s, v in sizes.items() if s in names}, {})
        if reply.error and other.error:
            result.points["equal with numbers"] += 1
        elif reply.error or other.error:
            which = "the scalar is refused" if reply.error else "the number is refused"
            result.add("unequal", f"C11: {which}", sizes, scalars, reply.error or other.error)
        elif reply.statements != other.statements:
            detail = f"{reply.statements} with scalars, {other.statements} with numbers"
            result.add("wrong", "C11: scalar and number differ", sizes, scalars, detail)
        else:
            result.points["equal with numbers"] += 1
