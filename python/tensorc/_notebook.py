"""Programs, kernels and searches in notebooks: as HTML, and by the cell magic %%tc."""
from __future__ import annotations

import argparse
import builtins
import collections
import html
import itertools
import json
import keyword
import math
import re
import shlex
import sys
from typing import TYPE_CHECKING, Any, Iterable, Sequence

from . import _core, _editor

if TYPE_CHECKING:
    from . import Program
    from ._schedule import Schedule
    from ._tune import Tuned

TIME_LIMIT_MS = 2000  # of the check behind a display
PIECES = re.compile(r"(?P<comment>#[^\n]*)|(?P<name>[A-Za-z_]\w*)|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)", re.A)
# Colours of JupyterLab's theme, and others where there is none.
COLOURS = {"comment": ("comment", "#608b4e"), "keyword": ("keyword", "#a626a4"), "type": ("builtin", "#0b7285"),
           "constant": ("number", "#986801"), "number": ("number", "#986801"), "intrinsic": ("def", "#4078f2")}


def coloured(text: str) -> str:
    """A text as HTML, its words in colours."""
    words = _editor.words()
    out, at = [], 0
    for match in PIECES.finditer(text):
        out.append(html.escape(text[at:match.start()]))
        piece, at = match[0], match.end()
        kind = match.lastgroup
        if kind == "name":
            kind = words[piece]["kind"] if piece in words else None
            called = text[at:].lstrip(" ").startswith("(")
            if kind == "intrinsic" and not called or kind == "keyword" and piece != "def" and called:
                kind = None  # a name that the text gives
        if kind in COLOURS:
            theme, other = COLOURS[kind]
            piece = f'<span style="color:var(--jp-mirror-editor-{theme}-color,{other})">{html.escape(piece)}</span>'
        else:
            piece = html.escape(piece)
        out.append(piece)
    return "".join([*out, html.escape(text[at:])])


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    def row(tag: str, cells: Sequence[Any]) -> str:
        return "<tr>" + "".join(f'<{tag} style="text-align:left">{html.escape(str(cell))}</{tag}>' for cell in cells) + "</tr>"

    return f"<table><thead>{row('th', heads)}</thead><tbody>{''.join(row('td', cells) for cells in rows)}</tbody></table>"


def range_rows(definition: _editor.Json) -> list[tuple[str, str, str, str]]:
    """(statement, index, range, what ends it) for each index of the text."""
    rows = []
    for statement in definition["statements"]:
        left = f"{statement['tensor']}({', '.join(statement['subscripts'])})" if statement["subscripts"] else statement["tensor"]
        for index in statement["indices"] if statement["of_text"] else ():
            by = index["end_by"]
            kind = "reduced" if index["kind"] == "reduce" else ""
            rows.append((left, index["name"], kind, f"{index['begin']}:{index['end']}",
                         f"{by['cause']} ({by['rule']})" if by and by["rule"] else ""))
    return rows


def html_of_program(program: Program) -> str:
    """The text in colours, and below it what was inferred of each def."""
    parts = [f"<pre>{coloured(program.source.strip())}</pre>"] if program.source.strip() else []
    production = getattr(program._arguments["cache"], "production", False)  # there the front end does not run
    try:
        known = parts and not production
        report = json.loads(_core.check(program.source, "tc", {}, {}, {}, True, TIME_LIMIT_MS)) if known else {}
    except _core.Error:
        report = {}
    shown_defs = list(_editor.defs_of(report))
    is_open = " open" if len(shown_defs) <= 2 else ""
    for definition in shown_defs:
        name = definition["generic"] or definition["def"]
        shown = "" if not definition["generic"] else f" (ranges of <code>{html.escape(definition['def'])}</code>)"
        tensors = table(["tensor", "role", "type", "shape"],
                        [(tensor["name"], tensor["role"], tensor["type"], f"({', '.join(['?'] if tensor['extents'] is None else tensor['extents'])})")
                         for tensor in definition["tensors"]])
        ranges = table(["statement", "index", "", "range", "ends by"], range_rows(definition))
        needs = "".join(f"<li>a call needs: {html.escape(one['sentence'])}</li>" for one in definition["preconditions"])
        parts.append(f"<details{is_open}><summary><code>{html.escape(name)}</code>{shown}</summary>{tensors}{ranges}"
                     f"{f'<ul>{needs}</ul>' if needs else ''}</details>")
    for one in report.get("diagnostics", ()):
        parts.append(f"<p>{html.escape(one['severity'])}: {html.escape(one['message'])}</p>")
    return "".join(parts) or html.escape(repr(program))


def html_of_function(function: _core.Function) -> str:
    signature = function.signature
    rows = [(argument.name, argument.role, argument.dtype, f"({', '.join(argument.shape)})" if argument.role != "scalar" else "")
            for argument in (*signature.parameters, *signature.results)]
    return f"<code>{html.escape(signature.entry)}</code>{table(['argument', 'role', 'type', 'shape'], rows)}"


def html_of_kernel(kernel: _core.Kernel) -> str:
    """Types, shapes and strides of what it takes and gives, and how long its compilation took."""
    signature = kernel.signature
    tensors = [argument for argument in signature.parameters if argument.role != "scalar"]
    specs = [*zip(tensors, kernel.inputs), *zip(signature.results, kernel.outputs)]
    rows = [(argument.name, argument.role, spec.dtype, spec.shape, spec.strides) for argument, spec in specs]
    rows += [(argument.name, "scalar", argument.dtype, "", "") for argument in signature.parameters if argument.role == "scalar"]
    total = sum(ms for _, ms in kernel.pass_times)
    passes = table(["pass", "ms"], [(name, f"{ms:.2f}") for name, ms in kernel.pass_times])
    compiled = f"<details><summary>compiled in {total:.0f} ms</summary>{passes}</details>" if kernel.pass_times else \
        "<p>from a cache</p>"
    return (f"<code>{html.escape(signature.entry)}</code> on {html.escape(kernel.device)}"
            f"{table(['argument', 'role', 'type', 'shape', 'strides'], rows)}{compiled}")


def html_of_schedule(schedule: Schedule) -> str:
    """The loop nest as print() shows it: what was done to a loop in bold, statements in colours."""
    head, *loops = str(schedule).splitlines()
    lines = []
    for line in loops:
        loop, mark, done = line.partition("  # ")
        lines.append(coloured(loop) + (f"  <b># {html.escape(done)}</b>" if mark else ""))
    return f"<code>{html.escape(head)}</code><pre>{chr(10).join(lines)}</pre>"


# --- searches ---------------------------------------------------------------------------------------------------


def display_of_notebook() -> Any:
    """IPython's display(), or None outside of notebooks."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    return ipython.display.display if shell and hasattr(shell, "kernel") else None


class Bar:
    """A search's progress below a notebook's cell."""

    def __init__(self, shown: Any) -> None:
        self.shown = shown  # IPython's handle of what is displayed

    @staticmethod
    def of_notebook() -> Bar | None:
        """None outside of notebooks: in a terminal's IPython too."""
        display = display_of_notebook()
        return display and Bar(display(Html("", ""), display_id=True))

    def show(self, progress: _core.Progress) -> None:
        from ._tune import progress_text
        text = progress_text(progress)
        left = progress.seconds_left
        rest = "" if left is None else f", {left:.0f} s left"
        self.shown.update(Html(
            f'<progress value="{progress.done}" max="{max(progress.planned, 1)}"></progress> {html.escape(text + rest)}',
            text + rest))


class Waiting:
    """A compilation that takes long, below a notebook's cell."""

    def __init__(self, shown: Any, name: str) -> None:
        self.shown, self.name = shown, name

    @staticmethod
    def of_notebook(name: str) -> Waiting | None:
        """None outside of notebooks."""
        display = display_of_notebook()
        return display and Waiting(display(Html("", ""), display_id=True), name)

    def show(self, seconds: float) -> None:
        text = f"compiling '{self.name}': {seconds:.0f} s"
        self.shown.update(Html(f"<progress></progress> {html.escape(text)}", text))

    def end(self) -> None:
        self.shown.update(Html("", ""))


class Html:
    """What is shown as HTML where that can be, else as text."""

    def __init__(self, shown: str, text: str) -> None:
        self.shown, self.text = shown, text

    def _repr_html_(self) -> str:
        return self.shown

    def __repr__(self) -> str:
        return self.text


def plot(times_us: Sequence[float]) -> str:
    """Times of candidates in their order as dots, the best so far as a line; upwards is slower, by factors."""
    width, height, edge = 480, 120, 6
    least, most = min(times_us), max(times_us)
    span = math.log(most / least) or 1.0

    def x(number: int) -> float:
        return edge + (width - 2 * edge) * number / max(len(times_us) - 1, 1)

    def y(us: float) -> float:
        return height - edge - (height - 2 * edge) * math.log(us / least) / span

    dots = "".join(f'<circle cx="{x(number):.1f}" cy="{y(us):.1f}" r="2" fill="currentColor" opacity="0.4">'
                   f"<title>{us:.2f} us</title></circle>" for number, us in enumerate(times_us))
    best = itertools.accumulate(times_us, min)
    line = " ".join(f"{x(number):.1f},{y(us):.1f}" for number, us in enumerate(best))
    return (f'<svg width="{width}" height="{height}" role="img">{dots}'
            f'<polyline points="{line}" fill="none" stroke="#0b7285" stroke-width="1.5"></polyline></svg>')


def html_of_search(tuned: Tuned) -> str:
    """The best and what it is compared with, each candidate's time, and the options."""
    times = [record.us for record in tuned.history if record.us > 0]
    outcomes = collections.Counter(record.outcome for record in tuned.history)
    rows = [("best", f"{tuned.best_us:.2f} us"), ("chosen by the compiler", f"{tuned.default_us:.2f} us"),
            ("speed-up", f"{tuned.speedup:.2f}x"), ("device", tuned.device), ("ending", tuned.ending),
            ("candidates", ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())) or "none")]
    if tuned.noise:
        rows.append(("noise", tuned.noise))
    options = str(tuned.options) or "the compiler's own"
    return (table(["search", ""], rows) + (plot(times) if times else "") +
            f"<details><summary>options</summary><pre>{html.escape(options)}</pre></details>")


# --- the cell magic ---------------------------------------------------------------------------------------------


class Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise ValueError(f"{message}\n{self.format_usage().strip()}")


def arguments_of(line: str) -> argparse.Namespace:
    parser = Arguments(prog="%%tc", add_help=False, allow_abbrev=False)
    parser.add_argument("name", nargs="?")
    parser.add_argument("--backend", choices=["cpu", "cuda", "sim"])
    parser.add_argument("--check_bounds", action="store_const", const=True)  # spelt as the tool's flags are
    parser.add_argument("--nocheck_bounds", dest="check_bounds", action="store_const", const=False)
    parser.add_argument("--cache")
    return parser.parse_args(shlex.split(line))


def is_free(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and not hasattr(builtins, name)


def run_cell(line: str, cell: str, namespace: dict[str, Any]) -> Program:
    """Defines the text of a cell, and gives its defs names. Raises ValueError, Error among them."""
    from . import define
    given = arguments_of(line)
    if given.name is not None and not is_free(given.name):
        raise ValueError(f"'{given.name}' cannot name a program in Python; write another name after %%tc")
    program = define(cell, backend=given.backend, check_bounds=given.check_bounds, cache=given.cache)
    if given.name is not None:
        namespace[given.name] = program
        return program
    for name in program:
        if not is_free(name):
            raise ValueError(f"'{name}' is a word of Python's: name the program, as in '%%tc program', and call "
                             f"program['{name}']")
    namespace.update({name: program[name] for name in program})
    return program


def register(shell: Any) -> None:
    """Adds the cell magic %%tc to an IPython shell."""
    from IPython.core.error import UsageError

    def tc(line: str, cell: str) -> Program:
        """Defines the TC text of a cell: %%tc [NAME] [--backend=cpu|cuda|sim] [--[no]check_bounds] [--cache=FILE]

        Its defs become functions of their names; with NAME, the program gets that name instead. The cell shows the
        program: shapes, ranges and what bounds them.
        """
        try:
            return run_cell(line, cell, shell.user_ns)
        except (ValueError, OSError) as error:  # a traceback would hide the place in the text
            raise UsageError(str(error)) from None

    shell.register_magic_function(tc, magic_kind="cell", magic_name="tc")
