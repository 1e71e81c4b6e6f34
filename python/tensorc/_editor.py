"""What editors show of a text: places, words, hovers. tensorc.lsp is the server that says it by protocol."""
from __future__ import annotations

import bisect
import functools
import json
import re
from typing import Any, Iterator

from . import _core

Json = dict[str, Any]

NAME = re.compile(r"[A-Za-z_]\w*", re.A)
LINE_END = re.compile(r"\r\n|\n|\r")
DEF = re.compile(r"^[^#\n\r]*?\bdef\s+([A-Za-z_]\w*)", re.A | re.M)


def whole(text: str) -> str:
    """The text with halves of characters replaced: JSON may bring them, UTF-8 has none."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Places:
    """Places of a text as editors count them: lines from 0, and code units of an encoding from the line's start.

    The compiler counts bytes of UTF-8 from the start of the text.
    """

    def __init__(self, text: str, unit: str = "utf-16") -> None:
        self.bytes = text.encode()
        self.unit = unit
        self.text = text
        ends = [len(text[:match.end()].encode()) for match in LINE_END.finditer(text)] if not text.isascii() else \
            [match.end() for match in LINE_END.finditer(text)]
        self.starts = [0, *ends]  # bytes

    def position(self, offset: int) -> tuple[int, int]:
        """(line, unit) of a byte."""
        offset = min(max(offset, 0), len(self.bytes))
        line = bisect.bisect_right(self.starts, offset) - 1
        return line, self._units(self.bytes[self.starts[line]:offset].decode(errors="ignore"))

    def offset(self, line: int, unit: int) -> int:
        """The byte of (line, unit); the nearest that there is."""
        if line < 0 or line >= len(self.starts):
            return 0 if line < 0 else len(self.bytes)
        end = self.starts[line + 1] if line + 1 < len(self.starts) else len(self.bytes)
        text = self.bytes[self.starts[line]:end].decode().rstrip("\r\n")
        at = 0
        for character in text:
            width = self._units(character)
            if unit < width:
                break
            unit -= width
            at += len(character.encode())
        return self.starts[line] + at

    def _units(self, text: str) -> int:
        if self.unit == "utf-8":
            return len(text.encode())
        return len(text) if self.unit == "utf-32" or text.isascii() else len(text.encode("utf-16-le")) // 2

    def name_at(self, offset: int) -> tuple[str, int, int] | None:
        """(name, begin, end) of the name at a byte or just before it; none in a comment."""
        line = bisect.bisect_right(self.starts, offset) - 1
        end = self.starts[line + 1] if line + 1 < len(self.starts) else len(self.bytes)
        text = self.bytes[self.starts[line]:end].split(b"#")[0].decode("latin-1")  # a character for each byte
        for match in NAME.finditer(text):
            begin, stop = self.starts[line] + match.start(), self.starts[line] + match.end()
            if begin <= offset <= stop:
                return match[0], begin, stop
        return None


def contains(place: Json | None, offset: int) -> bool:
    return bool(place) and place["begin"]["offset"] <= offset <= place["end"]["offset"]


@functools.cache
def words() -> Json:
    """Words of the language by name: {"exp": {"kind": "intrinsic", ...}}."""
    tables = json.loads(_core.words())
    found: Json = {}
    for kind in ("keyword", "type", "constant", "intrinsic"):
        for word in tables[kind + "s"]:
            # `min` is a keyword beside '=', and else an intrinsic.
            for name in filter(None, (word["name"], word.get("alias"))):
                found[name] = {**word, "kind": kind}
    return found


def defs_of(report: Json) -> Iterator[Json]:
    """Each def once: of a generic one the first instance without errors, else the first."""
    by_place: dict[tuple[str, int], Json] = {}
    for one in report.get("defs", ()):
        place = name_of(one), one["name_range"]["begin"]["offset"]
        if place not in by_place or (one["ok"] and not by_place[place]["ok"]):
            by_place[place] = one
    yield from by_place.values()


def name_of(definition: Json) -> str:
    return definition["def"].split("<")[0]


def find_def(report: Json | None, offset: int) -> Json | None:
    """The def at a byte."""
    return next((one for one in defs_of(report or {}) if contains(one["range"], offset)), None)


def find_older(report: Json, places: Places, offset: int) -> Json | None:
    """The def in a report on an older text, whose name the text has above the byte."""
    above = DEF.findall(places.bytes[:offset].decode(errors="ignore") + "\n") or DEF.findall(places.text)[:1]
    return next((one for one in defs_of(report) if above and name_of(one) == above[-1]), None)


def statements_at(definition: Json, offset: int, fresh: bool) -> list[Json]:
    """Those of the text, the one at a byte first."""
    own = [one for one in definition["statements"] if one["of_text"]]
    return sorted(own, key=lambda one: not (fresh and contains(one["range"], offset)))


def shape_text(tensor: Json) -> str:
    """"float32(M, K) A"."""
    extents = tensor["extents"]
    if extents is None:
        extents = ["?"] * tensor["rank"]
    shape = f"({', '.join(extents)})" if extents else ""
    return f"{tensor['type']}{shape} {tensor['name']}"


def code(text: str) -> str:
    return f"```tc\n{text}\n```"


def end_text(word: str, bound: Json | None) -> str | None:
    if not bound or not bound["rule"]:
        return None
    return f"{word} by `{bound['cause']}` ({bound['rule']})" if bound["reads"] and "`" not in bound["cause"] else \
        f"{word} by {bound['cause']} ({bound['rule']})"


def index_hover(index: Json) -> str:
    kind = {"map": "index of the left side", "reduce": "index that is reduced over"}[index["kind"]]
    if index["begin"] is None:
        return f"{code(index['name'])}\n{kind}; its range is not known, because of errors"
    lines = [code(f"{index['name']} in {index['begin']}:{index['end']}"), kind, ""]
    if "?" in (index["begin"], index["end"]):
        lines.append("- the range depends on scalars that are compiled in")
    for text in (end_text("begins", index["begin_by"]), end_text("ends", index["end_by"])):
        if text:
            lines.append(f"- {text}")
    return "\n".join(lines)


def symbol_hover(definition: Json, symbol: Json) -> str:
    name = symbol["name"]
    if symbol["kind"] == "size":
        where = [f"dimension {number} of `{tensor['name']}`" for tensor in definition["tensors"]
                 for number, extent in enumerate(tensor["extents"] or ()) if extent == name and tensor["role"] != "temporary"]
        return f"{code(name)}\na size{': ' if where else ''}{', '.join(where[:4])}"
    if symbol["kind"] == "type":
        restricted = f": {symbol['restriction']}" if symbol["restriction"] else ""
        return f"{code(name + restricted)}\na type that the arrays of a call decide; ranges and types here are those of " \
               f"`{symbol['type']}`"
    compiled_in = "; its value is compiled in, because a shape, range or subscript depends on it"
    return f"{code(symbol['type'] + ' ' + name)}\nscalar argument{compiled_in if symbol['compiled_in'] else ''}"


def def_hover(definition: Json) -> str:
    lines = [code(definition["signature"] or "def " + definition["def"])]
    if definition["generic"]:
        lines.append(f"one instance of `{definition['generic']}`")
    lines += [f"- a call needs: {one['sentence']}" for one in definition["preconditions"]]
    lines += [f"- checked at a call: 0 <= `{one['subscript']}` < `{one['extent']}`"
              for one in definition["run_time_checks"]]
    return "\n".join(lines)


def word_hover(name: str) -> str | None:
    word = words().get(name)
    if not word:
        return None
    if word["kind"] == "keyword":
        return f"{code(name)}\nkeyword: {word['meaning']}"
    if word["kind"] == "type":
        return f"{code(word['type'])}\nelement type of {word['bits']} bits"
    if word["kind"] == "constant":
        return f"{code(name)}\nconstant of type float32, unless it is cast"
    least, most = word["min_arguments"], word["max_arguments"]
    arguments = "x, y, z, w"[:3 * least - 2] + (", ..." if most > least else "")
    return f"{code(f'{name}({arguments})')}\n{word['meaning']}  \ntypes: {word['types']}"


def hover(report: Json | None, older: Json, places: Places, offset: int) -> tuple[str, int, int] | None:
    """(Markdown, begin, end) for the name at a byte. `older` is asked where the report has not the byte's def."""
    found = places.name_at(offset)
    if not found:
        return None
    name, begin, end = found
    definition = find_def(report, begin)
    text = _name_hover(definition, name, begin, True) if definition else \
        _name_hover(find_older(older, places, begin), name, begin, False)
    return (text, begin, end) if text else None


def _name_hover(definition: Json | None, name: str, offset: int, fresh: bool) -> str | None:
    if definition:
        if name == name_of(definition) and (not fresh or contains(definition["name_range"], offset)):
            return def_hover(definition)
        for statement in statements_at(definition, offset, fresh):
            for let in statement["lets"]:
                if let["name"] == name:
                    return f"{code(let['type'] + ' ' + name)}\nname of a value, by `where`"
            for index in statement["indices"]:
                if index["name"] == name:
                    return index_hover(index)
        for tensor in definition["tensors"]:
            if tensor["name"] == name:
                return f"{code(shape_text(tensor))}\n{tensor['role']}"
        for symbol in definition["symbols"]:
            if symbol["name"] == name:
                return symbol_hover(definition, symbol)
    return word_hover(name)


def declaration(report: Json | None, places: Places, offset: int) -> Json | None:
    """The range where the name at a byte is declared or first used. The report must be on this text."""
    found = places.name_at(offset)
    definition = find_def(report, offset)
    if not found or not definition:
        return None
    for statement in statements_at(definition, offset, True)[:1]:
        if contains(statement["range"], offset):
            for one in (*statement["lets"], *statement["indices"]):
                if one["name"] == found[0]:
                    return one["range"]
    for one in (*definition["tensors"], *definition["symbols"]):
        if one["name"] == found[0]:
            return one["range"]
    return None


def lines_of(text: str) -> list[str]:
    """Lines with their ends, as editors count them."""
    return re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z", text)


def changed_lines(old: str, new: str) -> tuple[int, int, str] | None:
    """The lines [first, last) of a text to replace, and by what; None if nothing differs."""
    if old == new:
        return None
    before, after = lines_of(old), lines_of(new)
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return head, len(before) - tail, "".join(after[head:len(after) - tail])
