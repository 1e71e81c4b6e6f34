"""The language server, as a process that editors talk to."""
import itertools
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time

import pytest

import tensorc

pytest.importorskip("pygls", reason="pygls is not installed for this Python")
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
GOOD = """# é: two bytes, one unit
def mm(float(M,K) A, float(K,N) B) -> (C) {
  C(m,n) +=! A(m,k) * B(k,n)
}
"""
BAD = GOOD.replace("A(m,k)", "Aa(m,k)")
WIDE = "def f(float(N) x) -> (y) { y(i) = x(i) } é𝄞 def g(float(N) x) -> (y) { y(i) = x(i) }"
# The numbers that isl works with grow without a bound here.
HARD = """def f(float(N,M) A) -> (O) {
  O(i) +=! (((i*3+j*7)/5)%3 < 2 && (i/2+j/3)%7 >= 1 && ((i*4+j*8+1)/6)%4 < 3 && (i/3+j/4)%8 >= 1) ?
    A((i*3+j)/5, (i+j*7)/11%3) : 0.0 where i in 0:N, j in 0:M
}
"""


class Client:
    """Speaks the protocol, and keeps what the server sends."""

    def __init__(self, *flags, related=True, encodings=None):
        self.process = subprocess.Popen([sys.executable, "-m", "tensorc.lsp", *flags], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.received = queue.Queue()
        self.notes = []
        self.errors = []
        self.ids = 0
        self.uri = "file:///nowhere/f.tc"
        self.versions = {}
        threading.Thread(target=self.read, daemon=True).start()
        threading.Thread(target=lambda: self.errors.extend(self.process.stderr), daemon=True).start()
        general = {"general": {"positionEncodings": encodings}} if encodings else {}
        self.capabilities = self.ask("initialize", processId=None, rootUri=None, capabilities={
            "textDocument": {"publishDiagnostics": {"relatedInformation": related}}, **general})["capabilities"]
        self.tell("initialized")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def read(self):
        while header := self.process.stdout.readline():
            length = int(header.split(b":")[1])
            while self.process.stdout.readline().strip():
                pass
            self.received.put(json.loads(self.process.stdout.read(length)))
        self.received.put(None)

    def send_bytes(self, body):
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def send(self, message):
        self.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def tell(self, method, **params):
        self.send({"method": method, "params": params})

    def answer_to(self, number, seconds=60):
        end = time.monotonic() + seconds
        while True:
            message = self.received.get(timeout=max(end - time.monotonic(), 0.01))
            assert message is not None, b"".join(self.errors).decode()
            if message.get("id") == number:
                return message
            self.notes.append(message)

    def ask(self, method, **params):
        self.ids += 1
        self.send({"id": self.ids, "method": method, "params": params})
        answer = self.answer_to(self.ids)
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, text, uri=None):
        uri = self.uri if uri is None else uri
        self.versions[uri] = 1
        self.tell("textDocument/didOpen", textDocument={"uri": uri, "languageId": "tc", "version": 1, "text": text})

    def change(self, text, uri=None):
        uri = self.uri if uri is None else uri
        self.versions[uri] += 1
        self.tell("textDocument/didChange", textDocument={"uri": uri, "version": self.versions[uri]},
                  contentChanges=[{"text": text}])

    def diagnostics(self, uri=None, seconds=60):
        """Those that are published next, of the last version."""
        uri = self.uri if uri is None else uri
        version = self.versions.get(uri)
        end = time.monotonic() + seconds
        while True:
            for message in self.notes:
                params = message.get("params", {})
                if message.get("method") == "textDocument/publishDiagnostics" and params["uri"] == uri and \
                        params.get("version") == version:
                    self.notes.remove(message)
                    return params["diagnostics"]
            message = self.received.get(timeout=max(end - time.monotonic(), 0.01))
            assert message is not None, b"".join(self.errors).decode()
            self.notes.append(message)

    def at(self, method, line, character, uri=None):
        uri = self.uri if uri is None else uri
        return self.ask(method, textDocument={"uri": uri}, position={"line": line, "character": character})

    def hover(self, line, character):
        found = self.at("textDocument/hover", line, character)
        return found and found["contents"]["value"]

    def format(self, uri=None):
        uri = self.uri if uri is None else uri
        return self.ask("textDocument/formatting", textDocument={"uri": uri}, options={"tabSize": 4, "insertSpaces": True})

    def quit(self):
        assert self.ask("shutdown") is None
        self.tell("exit")
        return self.process.wait(timeout=30)


NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def shared():
    """One process for most tests: it takes a second or two to start."""
    with Client() as client:
        yield client
        assert client.quit() == 0


@pytest.fixture
def client(shared):
    """A file of its own."""
    shared.uri = f"file:///nowhere/{next(NUMBERS)}.tc"
    shared.notes.clear()
    return shared


def span(begin_line, begin, end_line, end):
    return {"start": {"line": begin_line, "character": begin}, "end": {"line": end_line, "character": end}}


def test_errors_come_and_go(client):
    client.open(BAD)
    [error] = client.diagnostics()
    assert error["range"] == span(2, 13, 2, 15) and error["severity"] == 1 and error["source"] == "tensorc"
    assert "'Aa' is neither a tensor nor an intrinsic" in error["message"]
    client.change(GOOD)
    assert client.diagnostics() == []
    client.change("")
    [error] = client.diagnostics()
    assert error["message"] == "expected 'def', not the end of the file"
    client.tell("textDocument/didClose", textDocument={"uri": client.uri})
    del client.versions[client.uri]
    assert client.diagnostics() == []  # nothing stays marked


def test_notes_are_related_places(client):
    client.open(GOOD.replace("A(m,k)", "A(m,k,n)"))
    [error] = client.diagnostics()
    assert error["message"] == "'A' has 2 dimensions but is indexed with 3"
    assert error["relatedInformation"] == [
        {"location": {"uri": client.uri, "range": span(1, 18, 1, 19)}, "message": "'A' is declared here"}]


def test_an_editor_with_bytes_and_without_related_places():
    with Client(related=False, encodings=["utf-8"]) as client:
        client.open(GOOD.replace("A(m,k)", "A(m,k,n)"))
        [error] = client.diagnostics()
        assert error["message"] == "'A' has 2 dimensions but is indexed with 3\nnote: 'A' is declared here"
        assert "relatedInformation" not in error
        client.change(WIDE)
        assert client.diagnostics()[0]["range"]["end"]["character"] == 47


def test_hover_shows_ranges_and_types(client):
    client.open(GOOD)
    assert client.hover(2, 4) == "```tc\nm in 0:M\n```\nindex of the left side\n\n" \
                                 "- begins by the start of all indices (R1)\n- ends by `A(m,k)` (R2)"
    assert client.hover(2, 17) == "```tc\nk in 0:K\n```\nindex that is reduced over\n\n" \
                                  "- begins by the start of all indices (R1)\n- ends by `A(m,k)` (R2)"
    assert client.hover(2, 2) == "```tc\nfloat32(M, N) C\n```\nresult"
    assert client.hover(1, 18) == "```tc\nfloat32(M, K) A\n```\ninput"
    assert client.hover(1, 15) == "```tc\nK\n```\na size: dimension 1 of `A`, dimension 0 of `B`"
    assert client.hover(1, 4).startswith("```tc\ndef mm(float32(M,K) A, float32(K,N) B) -> (float32(M,N) C)\n```")
    assert client.hover(1, 9) == "```tc\nfloat32\n```\nelement type of 32 bits"
    assert client.hover(0, 4) is None  # a comment
    assert client.at("textDocument/hover", 2, 4)["range"] == span(2, 4, 2, 5)


def test_hover_of_all_kinds_of_names(client):
    client.open("""def f<T: float>(T(N) x, int d, float a) -> (y) {
  y(i) = T(v * exp(float(x(i + d)))) where v = a * pi, i in 0:N - d
}
""")
    assert client.diagnostics() == []
    assert "a type that the arrays of a call decide; ranges and types here are those of `float32`" in client.hover(0, 6)
    assert client.hover(0, 28) == "```tc\nint32 d\n```\nscalar argument; its value is compiled in, because a shape, " \
                                  "range or subscript depends on it"
    assert client.hover(0, 37) == "```tc\nfloat32 a\n```\nscalar argument"
    assert client.hover(1, 11) == "```tc\nfloat32 v\n```\nname of a value, by `where`"
    assert client.hover(1, 15).startswith("```tc\nexp(x)\n```\n")
    assert "by its 'where' (C10)" in client.hover(1, 4)
    assert client.hover(1, 38).startswith("```tc\nwhere\n```\nkeyword: ")
    assert client.hover(1, 52).startswith("```tc\npi\n```\nconstant")


def test_hover_in_a_text_with_errors_uses_what_was_known(client):
    client.open(GOOD)
    client.diagnostics()
    client.change(GOOD.replace("}", "  C(m,n) ="))
    assert client.hover(2, 4).startswith("```tc\nm in 0:M\n```")  # errors of syntax
    client.change(BAD)
    assert client.hover(2, 4).startswith("```tc\nm in 0:M\n```")  # an unknown name
    client.change(GOOD.replace("A(m,k)", "A(m+q,k)"))
    assert client.hover(2, 4) == "```tc\nm\n```\nindex of the left side; its range is not known, because of errors"


def test_places_count_units_of_the_editor(client):
    text = "def f(float(N) x) -> (y) { # 𝄞é\n  y(i) = x(i) } # 𝄞 no\n# 𝄞 \r\ndef g(float(N) x) -> (y) { y(i) = z(i) }"
    client.open(text)
    assert [one["range"] for one in client.diagnostics()] == [span(3, 34, 3, 35)]
    assert client.capabilities["positionEncoding"] == "utf-16"
    client.change(WIDE)
    assert client.diagnostics()[0]["range"]["end"]["character"] == 44


def test_formatting_is_that_of_the_compiler(client):
    ugly = "# one\ndef f( float(N) x ) -> (y)\n{ y(i) = (2*x(i)) }\n# two\n"
    client.open(ugly)
    [edit] = client.format()
    lines = ugly.splitlines(keepends=True)
    begin, end = edit["range"]["start"], edit["range"]["end"]
    assert begin["character"] == end["character"] == 0
    assert "".join(lines[:begin["line"]]) + edit["newText"] + "".join(lines[end["line"]:]) == tensorc.format(ugly)
    client.change(tensorc.format(ugly))
    assert client.format() == []
    client.change("def f(")
    assert client.format() is None


def test_formatting_a_text_without_a_last_newline(client):
    client.open("def f(float32(N) x) -> (y) {\n  y(i) = x(i)\n}")
    assert client.format() == [{"range": span(2, 0, 2, 1), "newText": "}\n"}]


def test_symbols(client):
    client.open(GOOD + "def two(float(N) x) -> (y) { t(i) = x(i)\n y(i) = t(i) }\n")
    first, second = client.ask("textDocument/documentSymbol", textDocument={"uri": client.uri})
    assert first["name"] == "mm" and first["range"] == span(1, 0, 3, 1) and first["selectionRange"] == span(1, 4, 1, 6)
    assert [child["name"] for child in first["children"]] == ["M", "K", "A", "N", "B", "C"]
    assert [child["name"] for child in second["children"]] == ["N", "x", "y", "t"]
    client.change(GOOD + "def two(")
    symbols = client.ask("textDocument/documentSymbol", textDocument={"uri": client.uri})
    assert [one["name"] for one in symbols] == ["mm", "two"]


def test_definition(client):
    client.open(GOOD)
    where = client.at("textDocument/definition", 2, 13)
    assert where == {"uri": client.uri, "range": span(1, 18, 1, 19)}
    assert client.at("textDocument/definition", 2, 24)["range"] == span(2, 17, 2, 18)  # k, first here
    assert client.at("textDocument/definition", 0, 0) is None


def test_completion(client):
    client.open(GOOD)
    client.diagnostics()
    items = {item["label"]: item for item in client.at("textDocument/completion", 2, 2)}
    assert items["A"]["detail"] == "input float32(M, K) A" and items["M"]["detail"] == "size"
    assert {"exp", "where", "float16", "pi"} <= set(items)


def test_misspelt_names_have_a_fix(client):
    client.open("def f(float(N) weight) -> (y) { y(i) = wieght(i) }")
    [error] = client.diagnostics()
    [fix] = client.ask("textDocument/codeAction", textDocument={"uri": client.uri}, range=error["range"],
                       context={"diagnostics": [error]})
    assert fix["title"] == "Change to 'weight'" and fix["kind"] == "quickfix"
    assert fix["edit"]["changes"][client.uri] == [{"range": span(0, 39, 0, 45), "newText": "weight"}]


def test_only_the_last_of_quick_changes_is_checked(client):
    client.open(GOOD)
    client.diagnostics()
    for _ in range(20):
        client.change(BAD)
    client.change(GOOD)
    assert client.diagnostics() == []
    published = [one for one in client.notes if one.get("method") == "textDocument/publishDiagnostics"]
    assert published == []


def test_slow_checks():
    with Client("--time_limit_ms=300", "--debounce_ms=1") as client:
        client.open(HARD)
        [error] = client.diagnostics()
        assert error["severity"] == 2 and error["range"] == span(0, 4, 0, 5)
        assert error["message"] == "this def needs more than the compile budget of 300 ms"
        assert client.hover(1, 2) == "```tc\nfloat32(?) O\n```\nresult"
        for _ in range(6):  # more than there are threads
            client.change(HARD)
            time.sleep(0.05)
        begin = time.monotonic()
        client.change(GOOD)
        assert client.diagnostics() == []
        assert time.monotonic() - begin < 10
        client.change(HARD)
        client.process.stdin.close()  # in the middle of a check
        client.process.wait(timeout=30)


def test_examples_are_checked_quickly(client):
    """The time that the server takes, from the change to what it publishes, less its pause."""
    slow = {}
    for path in sorted(EXAMPLES.glob("*.tc")):
        uri = path.as_uri()
        best = None
        for _ in range(2):
            begin = time.monotonic()
            client.open(path.read_text(), uri)
            errors = [one for one in client.diagnostics(uri) if one["severity"] == 1]
            took = time.monotonic() - begin
            best = min(best or took, took)
            assert errors == [], path.name
        slow[path.name] = best
    print({name: round(1000 * took) for name, took in slow.items()})
    # A build without optimisation takes several times the time that users see.
    assert sorted(slow.values())[len(slow) // 2] < 0.5, slow


def test_bad_input_leaves_the_server_running(client):
    client.send_bytes(b"this is no JSON")
    client.send_bytes(b'{"jsonrpc": "2.0"}')
    client.send_bytes(b"[1, 2]")
    client.send_bytes(b"\xff\xfe")
    client.send({"id": 1000, "method": "no/such/method", "params": {}})
    assert client.answer_to(1000)["error"]["code"] == -32601
    client.send({"id": 1001, "method": "textDocument/hover", "params": {"textDocument": 5}})
    client.tell("no/such/notification")
    client.tell("textDocument/didChange", textDocument={"uri": "file:///never/opened.tc", "version": 3},
                contentChanges=[{"text": "def"}])
    client.tell("textDocument/didClose", textDocument={"uri": "file:///never/opened.tc"})
    for uri in ("file:///never/opened.tc", "untitled:x", ""):
        assert client.at("textDocument/hover", 3, 5, uri) is None
        assert client.format(uri) is None
    client.open("def f(float(N) x) -> (y) { y(i) = x(i) } # \ud800 half\0 \u2028 \x0c\x85")  # half a character
    assert client.diagnostics() == []
    for line, character in ((0, 10**6), (10**6, 0), (0, 0)):
        client.at("textDocument/hover", line, character)
    client.change("\0\x01def")
    assert client.diagnostics() != []
    client.change("(" * 100_000)
    assert client.diagnostics() != []


def test_help_and_wrong_flags():
    run = lambda *flags: subprocess.run([sys.executable, "-m", "tensorc.lsp", *flags], capture_output=True, text=True)  # noqa: E731
    assert "--time_limit_ms" in run("--help").stdout
    assert run("--version").stdout == f"tensorc-lsp {tensorc.__version__}\n"
    wrong = run("--time_limit_ms=0")
    assert wrong.returncode == 2 and "0 is not at least 1" in wrong.stderr


def test_says_what_is_missing(tmp_path):
    (tmp_path / "pygls.py").write_text("raise ModuleNotFoundError('no pygls', name='pygls')\n")
    done = subprocess.run([sys.executable, "-m", "tensorc.lsp"], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"})
    assert done.returncode == 1
    assert done.stderr == "tensorc-lsp: the Python package 'pygls' is not installed: pip install 'tensorc[lsp]'\n"
