"""What editors ask of a text: diagnose(), format(), places, hovers."""
import pathlib
import re
import threading
import time

import pytest

import tensorc
from tensorc import _core, _editor

ROOT = pathlib.Path(__file__).resolve().parents[2]
DILATED = """def dilated(int d, float(T) X, float(K) W) -> (O) {
  O(t) +=! (t >= d * k ? X(t - d * k) : 0.0) * W(k)
}
"""


def piece(text, place):
    return text.encode()[place["begin"]["offset"]:place["end"]["offset"]].decode()


def test_a_good_text():
    text = "# é\ndef mm(float(M,K) A, float(K,N) B) -> (C) {\n  C(m,n) +=! A(m,k) * B(k,n)\n}\n"
    report = tensorc.diagnose(text, name="mm.tc")
    assert (report["version"], report["file"], report["ok"], report["diagnostics"]) == (1, "mm.tc", True, [])
    [one] = report["defs"]
    assert one["def"] == "mm" and one["generic"] is None and one["ok"] and one["errors"] == []
    assert piece(text, one["range"]) == text[4:-1] and piece(text, one["name_range"]) == "mm"
    assert one["name_range"]["begin"] == {"offset": 9, "line": 2, "column": 5}
    assert [(symbol["name"], symbol["kind"], piece(text, symbol["range"])) for symbol in one["symbols"]] == [
        ("M", "size", "M"), ("K", "size", "K"), ("N", "size", "N")]
    assert [(tensor["name"], tensor["role"], tensor["type"], tensor["extents"], tensor["shape"])
            for tensor in one["tensors"]] == [("A", "input", "float32", ["M", "K"], [None, None]),
                                              ("B", "input", "float32", ["K", "N"], [None, None]),
                                              ("C", "result", "float32", ["M", "N"], [None, None])]
    [statement] = one["statements"]
    assert piece(text, statement["range"]) == "C(m,n) +=! A(m,k) * B(k,n)" and statement["of_text"]
    k = statement["indices"][2]
    assert (k["name"], k["kind"], k["begin_value"], k["end"], k["end_value"]) == ("k", "reduce", 0, "K", None)
    assert k["begin_by"]["rule"] == "R1" and k["end_by"]["rule"] == "R2"
    assert [piece(text, read) for read in k["end_by"]["reads"]] == ["A(m,k)"]
    assert piece(text, k["range"]) == "k"


def test_numbers_take_the_places_of_sizes_and_scalars():
    assert tensorc.diagnose(DILATED)["defs"][0]["waits_for_scalars"]
    [one] = tensorc.diagnose(DILATED, sizes={"T": 9, "K": 3, "unknown": 1}, scalars={"d": 2})["defs"]
    assert one["sizes"] == {"T": 9, "K": 3} and one["scalars"] == {"d": 2} and not one["waits_for_scalars"]
    assert [tensor["shape"] for tensor in one["tensors"]] == [[9], [3], [9]]
    t = one["statements"][0]["indices"][0]
    assert t["end_value"] == 9 and t["end_by"]["rule"] == "R6" and t["end_by"]["cause"] == "the guard of X(t - d * k)"


def test_errors_of_syntax():
    text = "def f(float(N) x) -> (y) {\n  y(i) = x(i))\n}\ndef g(float(N) x) -> (y) { y(i) = }"
    report = tensorc.diagnose(text)
    assert not report["ok"] and report["defs"] == []
    assert [(one["severity"], one["kind"], one["range"]["begin"]["line"]) for one in report["diagnostics"]] == [
        ("error", "user", 2), ("error", "user", 4)]


def test_notes_have_their_places():
    text = "def f(float(M,K) A) -> (y) { y(i) = A(i) }"
    [error] = tensorc.diagnose(text)["diagnostics"]
    assert error["def"] == "f" and piece(text, error["range"]) == "A(i)"
    assert [(note["message"], piece(text, note["range"])) for note in error["notes"]] == [("'A' is declared here", "A")]


def test_errors_of_all_stages_of_all_defs_are_told_together():
    text = ("def f(float(N) x) -> (y) { y(i) = z(i) }\n"
            "def g(float(N) x) -> (y) { y(i) +=! x(i + j) }\n"
            "def h(int(N) x) -> (y) { y(i) = x(i) / 2 * 1.5 }\n")
    report = tensorc.diagnose(text)
    assert [(one["severity"], one["def"]) for one in report["diagnostics"]] == [("error", "f"), ("error", "g"), ("note", "h")]
    assert [(one["def"], one["ok"]) for one in report["defs"]] == [("g", False), ("h", True)]
    g = report["defs"][0]
    assert g["tensors"][0]["extents"] == ["N"] and g["tensors"][1]["extents"] is None and g["signature"] is None
    assert [index["end"] for index in g["statements"][0]["indices"]] == [None, None]
    assert g["errors"][0]["message"] == report["diagnostics"][1]["message"]


def test_instances_of_a_generic_def():
    text = "def f<T>(T(N) x) -> (T(N) y) { y(i) = exp(x(i)) }"
    report = tensorc.diagnose(text)
    assert report["ok"]
    assert {one["types"]["T"]: one["ok"] for one in report["defs"]}["float64"] is True
    assert {one["types"]["T"]: one["ok"] for one in report["defs"]}["int64"] is False
    [note] = report["diagnostics"]
    assert note["severity"] == "note" and note["message"].startswith("instances with errors: ")
    [one] = tensorc.diagnose(text, types={"T": "half"})["defs"]
    assert one["def"] == "f<float16>" and one["generic"] == "f<T>" and one["ok"]
    assert not tensorc.diagnose(text, types={"T": "int"})["ok"]
    with pytest.raises(tensorc.Error, match="types are given for generic defs"):
        tensorc.diagnose("def f(float(N) x) -> (y) { y(i) = x(i) }", types={"T": "int"})
    with pytest.raises(ValueError, match="there is no element type 'what'"):
        tensorc.diagnose(text, types={"T": "what"})


def test_statements_of_the_compiler_are_told_apart():
    report = tensorc.diagnose("def f(float(N) x) -> (y) { y(i) = x(i) y(i) = y(N - 1 - i) }")
    assert [(one["tensor"], one["of_text"]) for one in report["defs"][0]["statements"]] == [
        ("y", True), ("y_old", False), ("y", True)]


def test_preconditions_and_run_time_checks():
    report = tensorc.diagnose("def f(float(N) x, int(M) at) -> (y) { y(i) = x(at(i)) + x(i) }")
    [one] = report["defs"]
    assert [(check["subscript"], check["extent"]) for check in one["run_time_checks"]] == [("at(i)", "N")]
    window = "def g(float(N) x, float(M) k) -> (y) { y(i) +=! x(i + j) * k(j) }"
    [need] = tensorc.diagnose(window)["defs"][0]["preconditions"]
    assert need["holds"] is None and need["range"] is not None
    assert tensorc.diagnose(window, sizes={"N": 9, "M": 3})["defs"][0]["ok"]
    assert not tensorc.diagnose(window, sizes={"N": 2, "M": 3})["ok"]


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.tc")), ids=lambda path: path.name)
def test_examples(path):
    report = tensorc.diagnose(path.read_text())
    assert report["ok"] and report["defs"]
    for one in report["defs"]:
        for statement in one["statements"]:
            for index in statement["indices"]:
                assert index["begin_by"] and index["end_by"] and index["end"] is not None


def test_wrong_arguments():
    for wrong in (5, None, b"def"):
        with pytest.raises(TypeError):
            tensorc.diagnose(wrong)
        with pytest.raises(TypeError):
            tensorc.format(wrong)
    with pytest.raises(UnicodeEncodeError):
        tensorc.diagnose("\ud800")
    with pytest.raises(tensorc.Error, match="time limit is 0 ms"):
        tensorc.diagnose(DILATED, time_limit_ms=0)
    with pytest.raises(tensorc.Error, match="expected 'def'"):
        tensorc.format("softmax")
    assert not tensorc.diagnose("\0\x01")["ok"] and not tensorc.diagnose("x" * 2_000_000)["ok"]


def test_a_check_is_cancelled_from_another_thread():
    cancellation = _core.Cancellation()
    threading.Timer(0.1, cancellation.cancel).start()
    hard = (ROOT / "python/tests/test_lsp.py").read_text().split('HARD = """')[1].split('"""')[0]
    begin = time.monotonic()
    with pytest.raises(tensorc.CancelledError):
        _core.check(hard, "tc", {}, {}, {}, True, 5000, cancellation)
    assert time.monotonic() - begin < 20  # isl looks at its clock only


@pytest.mark.parametrize("unit", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("text", ["", "a", "a\n", "é𝄞a\r\n𝄞\rb\n\n", "\u2028\x0c\x85|\n|"])
def test_places_there_and_back(text, unit):
    places = _editor.Places(text, unit)
    at = 0
    for character in text:
        line, column = places.position(at)
        is_inside_an_end = character == "\n" and at and places.bytes[at - 1:at] == b"\r"
        if not is_inside_an_end:
            assert places.offset(line, column) == at
        at += len(character.encode())
    assert places.offset(*places.position(at)) == at == len(text.encode())
    assert places.offset(10**9, 0) == len(text.encode()) and places.offset(0, 10**9) <= len(text.encode())
    assert places.offset(-1, 0) == 0 and places.position(10**9) == places.position(at)


@pytest.mark.parametrize("old, new", [("", "a\n"), ("a\nb\nc\n", "a\nB\nc\n"), ("a\nb\n", "b\n"), ("a\na\n", "a\n"),
                                      ("a\r\nb", "a\nb"), ("a", "a\n"), ("a\x0cb\n", "a b\n")])
def test_changed_lines(old, new):
    first, last, text = _editor.changed_lines(old, new)
    lines = _editor.lines_of(old)
    assert "".join(lines) == old
    assert "".join(lines[:first]) + text + "".join(lines[last:]) == new
    assert _editor.changed_lines(new, new) is None


def test_every_word_has_a_hover():
    words = _editor.words()
    assert {"exp", "fmaxf", "where", "half", "pi"} <= set(words)
    for name in words:
        assert _editor.word_hover(name).startswith("```tc\n")
    assert _editor.word_hover("nothing") is None
    assert _editor.word_hover("fma").startswith("```tc\nfma(x, y, z)\n```")


def keys_in_page(heading):
    """The keys of the table below a heading of docs/editors.md, and those that its cells name."""
    page = (ROOT / "docs/editors.md").read_text().split("### The schema", 1)[1]
    rows = [line for line in page.split(heading, 1)[1].lstrip().split("\n\n")[0].splitlines() if line.startswith("| `")]
    keys = {key for row in rows for key in re.findall(r"`(\w+)`", row.split("|")[1])}
    named = {key: set(re.findall(r"`(\w+)`", row.split("|", 2)[2])) for row in rows
             for key in re.findall(r"`(\w+)`", row.split("|")[1])}
    return keys, named


def test_the_page_has_all_keys():
    text = ("def f<T: float>(T(N) x, int(M) at, int s, float a) -> (y) {\n"
            "  y(i) +=! v * x(at(i)) * x(s * i + j) where v = T(a), j in 0:2 }\n"
            "def g(float(N) x) -> (y) { y(i) = z(i) }")
    report = tensorc.diagnose(text)
    one = report["defs"][0]
    top, _ = keys_in_page("the end is behind the last character.")
    assert top == set(report)
    diagnostic, _ = keys_in_page("A *diagnostic*:")
    assert diagnostic == set(report["diagnostics"][0]) and set(report["diagnostics"][0]["notes"][0]) == {"message", "range"}
    of_def, named = keys_in_page("A *def*:")
    assert of_def == set(one)
    for key in ("symbols", "tensors", "preconditions", "run_time_checks"):
        assert one[key] or key == "preconditions", key
        assert {part for thing in one[key] for part in thing} <= named[key], key
    of_statement, named = keys_in_page("A *statement*:")
    assert of_statement == set(one["statements"][0])
    index = one["statements"][0]["indices"][0]
    assert set(index) <= named["indices"] and set(one["statements"][0]["lets"][0]) <= named["lets"]
    assert set(index["end_by"]) == {"rule", "cause", "reads"}
