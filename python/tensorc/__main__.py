"""What the command `tensorc` does to texts, for those who have the Python package only: python -m tensorc --help"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import tempfile
from typing import Any, Iterator, Sequence

import tensorc

from . import _editor


def assignments(text: str) -> dict[str, str]:
    """"A=1,B=2" as a dict."""
    pairs = [part.partition("=") for part in text.split(",") if part]
    if not all(name and sign and value for name, sign, value in pairs):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE,...")
    return {name: value for name, _, value in pairs}


def numbers(text: str) -> dict[str, int]:
    try:
        return {name: int(value) for name, value in assignments(text).items()}
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=NUMBER,...") from None


def read(path: str) -> tuple[str, str]:
    """(text, name for messages) of a file; of standard input for "-"."""
    data = sys.stdin.buffer.read() if path == "-" else pathlib.Path(path).read_bytes()
    try:
        return data.decode(), "standard input" if path == "-" else path
    except UnicodeDecodeError as error:
        raise OSError(f"'{path}' is not UTF-8: byte {error.start}") from None


def write(path: str, text: str) -> None:
    """Replaces a file in one step, links in its place followed and its mode kept."""
    target = pathlib.Path(path).resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name + ".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
        os.chmod(name, target.stat().st_mode & 0o7777)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def lines_of(report: dict[str, Any]) -> Iterator[str]:
    """Each def with the ranges of its indices and what sets them."""
    for definition in _editor.defs_of(report):
        if not definition["ok"]:
            continue
        yield definition["signature"]
        for statement in definition["statements"]:
            for index in statement["indices"] if statement["of_text"] else ():
                by = index["end_by"]
                cause = f", ends by {by['cause']} ({by['rule']})" if by and by["rule"] else ""
                yield f"  {index['kind']} {index['name']} in {index['begin']}:{index['end']}{cause}"
        yield from (f"  a call needs: {one['sentence']}" for one in definition["preconditions"])


def diagnostics_of(report: dict[str, Any]) -> Iterator[str]:
    """A line for each error and note, as compilers print them and editors read them."""
    def place(thing: dict[str, Any]) -> str:
        at = thing["range"] and thing["range"]["begin"]
        return f"{report['file']}:{at['line']}:{at['column']}" if at else report["file"]

    for one in report["diagnostics"]:
        yield f"{place(one)}: {one['severity']}: {one['message']}"
        yield from (f"{place(note) if note['range'] else place(one)}: note: {note['message']}" for note in one["notes"])


def check(given: argparse.Namespace) -> int:
    text, name = read(given.file)
    report = tensorc.diagnose(text, name=name, sizes=given.sizes, scalars=given.scalars, types=given.types,
                              time_limit_ms=given.time_limit_ms)
    if given.json:
        print(json.dumps(report))
    else:
        print("".join(line + "\n" for line in lines_of(report)), end="")
        print("".join(line + "\n" for line in diagnostics_of(report)), end="", file=sys.stderr)
    return 0 if report["ok"] else 1


def fmt(given: argparse.Namespace) -> int:
    if given.file == "-" and given.in_place:
        raise OSError("standard input cannot be formatted in place")
    text, name = read(given.file)
    canonical = tensorc.format(text, name=name)
    if given.check:
        if canonical != text:
            print(f"'{name}' is not in canonical form; 'python -m tensorc fmt -i' puts it there", file=sys.stderr)
        return 0 if canonical == text else 1
    if given.in_place:
        if canonical != text:
            write(given.file, canonical)
        return 0
    sys.stdout.buffer.write(canonical.encode())
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tensorc", allow_abbrev=False,
                                     description="Checks and formats TC texts. Exit codes: 0 done, 1 errors, 2 wrong flags.")
    parser.add_argument("--version", action="version", version=f"tensorc {tensorc.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("check", help="print shapes, ranges and errors", allow_abbrev=False)
    one.add_argument("file", help="a TC text, or - for standard input")
    one.add_argument("--json", action="store_true", help="print one JSON object")
    one.add_argument("--sizes", type=numbers, metavar="NAME=NUMBER,...", help="values of sizes")
    one.add_argument("--scalars", type=numbers, metavar="NAME=NUMBER,...", help="values of scalars that are compiled in")
    one.add_argument("--types", type=assignments, metavar="VARIABLE=TYPE,...", help="an instance of generic defs")
    one.add_argument("--time_limit_ms", type=int, default=60_000, metavar="MS", help="bound on the check's time")
    one.set_defaults(run=check)
    one = commands.add_parser("fmt", help="print a text in canonical form", allow_abbrev=False)
    one.add_argument("file", help="a TC text, or - for standard input")
    how = one.add_mutually_exclusive_group()
    how.add_argument("-i", "--in_place", action="store_true", help="write the file instead")
    how.add_argument("--check", action="store_true", help="print nothing, and fail if the form is another")
    one.set_defaults(run=fmt)
    commands.add_parser("lsp", help="start the language server; python -m tensorc.lsp has its flags",
                        allow_abbrev=False).set_defaults(run=lambda _: serve())
    given = parser.parse_args(arguments)
    try:
        return given.run(given)
    except (tensorc.Error, ValueError, OSError) as error:
        print(f"python -m tensorc: {error}" if not isinstance(error, tensorc.Error) else str(error), file=sys.stderr)
        return 1


def serve() -> int:
    from .lsp import main as serve_editor
    serve_editor([])
    return 0


if __name__ == "__main__":
    sys.exit(main())
