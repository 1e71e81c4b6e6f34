"""Highlighting of texts in editors: generated files, the compiler's words, and all examples, by both grammars."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from tensorc import _core

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").rglob("*.tc"))
WORDS = json.loads(_core.words())
GRAMMAR = json.loads((ROOT / "editors/vscode/syntaxes/tc.tmLanguage.json").read_text())
# Texts that use words as names, and what the examples lack.
CORNERS = """def f<T, U: integer>(T(N) in, U(N) at, float8_e5m2(N) q) -> (float(N) out, where) { # in where
  out(i) = in(i) + 2.5e-3 where exists at(i), i in 0:N, v = in.0
  out(min) max=! fmaxf(in(min), -inf)*pi where min in 1:N-1
  where(i) += (i % 2 == 0 ? in(i) : 1.0) →
}
"""


def scopes_of(line):
    """(text, scope) of a line's pieces, as VS Code cuts it: the rule that matches first, and of these the first."""
    rules = [GRAMMAR["repository"][one["include"][1:]] for one in GRAMMAR["patterns"]]
    at, pieces = 0, []
    while at < len(line):
        found = [(match.start(), number, match) for number, rule in enumerate(rules)
                 if (match := re.compile(rule["match"]).search(line, at)) and match.end() > match.start()]
        if not found:
            break
        _, number, match = min(found, key=lambda one: one[:2])
        group = 1 if "captures" in rules[number] else 0
        pieces.append((match[group], rules[number].get("name") or rules[number]["captures"]["1"]["name"]))
        at = match.end()
    return pieces


def kinds_of(text):
    return [(piece, scope.split(".")[0]) for line in text.splitlines() for piece, scope in scopes_of(line)]


def test_files_are_current():
    done = subprocess.run([sys.executable, ROOT / "editors/generate", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text, scope", [
    *((word["name"], "storage") for word in WORDS["types"]),
    *((word["name"], "constant") for word in WORDS["constants"]),
    *((symbol, "keyword") for symbol in WORDS["symbols"] if symbol not in "(){},."),
])
def test_words_stand_alone(text, scope):
    assert kinds_of(text) == [(text, scope)]


@pytest.mark.parametrize("name", [name for word in WORDS["intrinsics"] for name in (word["name"], word["alias"]) if name])
def test_intrinsics_are_functions(name):
    assert kinds_of(f"{name}(x)") == [(name, "support"), ("x", "variable")]
    assert kinds_of(f"y{name}(x)")[0] == (f"y{name}", "variable")


KEYWORDS = {"def": "def f(", "where": "x where i", "exists": "where exists A(i)", "in": "where i in 0:N",
            "min": "y min=! x", "max": "y max= x", "integer": "<T: integer>"}


def test_keywords_are_all_here():
    assert set(KEYWORDS) == {word["name"] for word in WORDS["keywords"]}


@pytest.mark.parametrize("word", KEYWORDS)
def test_keywords_where_the_grammar_expects_them(word):
    scopes = dict((re.sub(r"=!?$", "", piece), scope) for piece, scope in kinds_of(KEYWORDS[word]))
    assert scopes[word] in ("keyword", "storage")


def test_words_as_names():
    kinds = kinds_of(CORNERS)
    assert kinds[:6] == [("def", "keyword"), ("f", "entity"), ("<", "keyword"), ("T", "variable"), ("U", "variable"),
                         (":", "keyword")]
    assert [kind for piece, kind in kinds if piece == "in"] == [
        "variable", "variable", "keyword", "variable", "variable", "keyword", "variable"]
    assert [kind for piece, kind in kinds if piece == "where"] == ["variable", "keyword", "keyword", "variable"]
    assert ("fmaxf", "support") in kinds and ("inf", "constant") in kinds and ("2.5e-3", "constant") in kinds
    assert ("# in where", "comment") in kinds and ("max=!", "keyword") in kinds and ("float8_e5m2", "storage") in kinds


def is_of(word, kind):
    return any(word in (one["name"], one.get("alias")) for one in WORDS[kind])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples(path):
    """Every character but white space and punctuation has a scope, and every word the one of its table."""
    text = path.read_text()
    for line in text.splitlines():
        pieces = scopes_of(line)
        rest = line
        for piece, scope in pieces:
            before, found, rest = rest.partition(piece)
            assert found and not before.strip(" \t(){},."), (line, before)
            if scope.startswith("comment"):
                continue
            if re.fullmatch(r"[A-Za-z_]\w*", piece):
                wanted = "storage" if is_of(piece, "types") else "constant" if is_of(piece, "constants") else \
                    "support" if is_of(piece, "intrinsics") and rest.lstrip().startswith("(") else None
                assert wanted is None or scope.startswith(wanted), (line, piece, scope)
                assert wanted or not scope.startswith(("storage", "constant", "support")), (line, piece, scope)
            elif piece[0].isdigit():
                assert scope == "constant.numeric.tc"
        assert not rest.strip(" \t(){},."), (line, rest)
    assert sum(scope == "entity" for _, scope in kinds_of(text)) == len(re.findall(r"^\s*def\s", text, re.M))


# Of Vim's groups, the first part of the scope that VS Code gives.
SCOPES = {"tcComment": "comment", "tcDefName": "entity", "tcDef": "keyword", "tcArrow": "keyword", "tcAssignment": "keyword",
          "tcClause": "keyword", "tcRange": "keyword", "tcRestriction": "storage", "tcType": "storage",
          "tcConstant": "constant", "tcIntrinsic": "support", "tcName": "variable", "tcNumber": "constant",
          "tcOperator": "keyword", "": None}
SHOW = """
for name in {names}
  execute "edit " . name
  syntax sync fromstart
  for line in range(1, line("$"))
    let text = getline(line)
    let groups = map(range(1, len(text)), "synIDattr(synID(line, v:val, 1), 'name')")
    call writefile([json_encode(groups)], {out}, "a")
  endfor
endfor
quitall!
"""


@pytest.mark.skipif(not shutil.which("vim"), reason="there is no Vim")
def test_vim_agrees(tmp_path):
    """Each byte of all examples has the same kind in Vim and in VS Code."""
    version = subprocess.run(["vim", "--version"], capture_output=True, text=True).stdout
    if "+syntax" not in version or "+eval" not in version:
        pytest.skip("this Vim has no highlighting")
    corners = tmp_path / "corners.tc"
    corners.write_text(CORNERS)
    files = [*EXAMPLES, corners]
    out = tmp_path / "groups"
    (tmp_path / "show.vim").write_text(SHOW.format(names=json.dumps([str(path) for path in files]), out=json.dumps(str(out))))
    subprocess.run(["vim", "-u", "NONE", "-i", "NONE", "-n", "-es", "--cmd", f"set runtimepath^={ROOT}/editors/vim nocompatible",
                    "--cmd", "filetype plugin on | syntax on", "-S", str(tmp_path / "show.vim")],
                   timeout=120, stdin=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TERM": "dumb"})
    shown = [json.loads(line) for line in out.read_text().splitlines()]
    lines = [line for path in files for line in path.read_text().splitlines()]
    assert len(shown) == len(lines)
    for line, groups in zip(lines, shown):
        at, data = 0, line.encode()
        for piece, scope in scopes_of(line):
            begin = data.index(piece.encode(), at)
            at = begin + len(piece.encode())
            found = {SCOPES[group] for group in groups[begin:at]}
            assert found == {scope.split(".")[0]}, (line, piece, scope, groups[begin:at])
