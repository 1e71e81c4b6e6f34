"""A notebook in a real kernel of Jupyter's: the cell magic, what is shown, progress."""
import html
import re

import pytest

pytest.importorskip("ipykernel", reason="ipykernel is not installed for this Python")
manager = pytest.importorskip("jupyter_client.manager", reason="jupyter_client is not installed for this Python")

MATMUL = "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
LONG = "def f(float(N) x) -> (y) { y(i) = %s }" % " + ".join(f"pow(x(i), {n}.5)" for n in range(400))


class Notebook:
    def __init__(self):
        self.manager, self.client = manager.start_new_kernel(kernel_name="python3")

    def run(self, cell):
        """The messages that a cell causes, by their kind; nothing fails."""
        messages = []
        self.client.execute_interactive(cell, timeout=120, output_hook=messages.append)
        errors = [m["content"]["evalue"] for m in messages if m["msg_type"] == "error"]
        assert not errors, errors
        return [(m["msg_type"], m["content"]) for m in messages]

    def html(self, cell):
        """The HTML of a cell's value."""
        return next(c["data"]["text/html"] for kind, c in self.run(cell) if kind == "execute_result")

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def notebook():
    notebook = Notebook()
    notebook.run("import numpy as np, tensorc\n%load_ext tensorc")
    yield notebook
    notebook.close()


def test_magic_and_what_is_shown(notebook):
    assert "A(m,k) (R2)" in notebook.html(f"%%tc\n{MATMUL}")
    call = "matmul.compile(np.ones((4, 5), 'float32'), np.ones((5, 6), 'float32'))"
    assert "compiled in " in notebook.html(call)
    assert "<td" in notebook.html("matmul")
    shown = notebook.html(f"tensorc.Schedule({MATMUL!r}, sizes=dict(M=4, K=5, N=6))")
    assert "for m in 0:4" in re.sub("<[^>]*>", "", shown)


def test_an_error_has_no_traceback(notebook):
    messages = notebook.run("%%tc\ndef f(float(N) x) -> (y) { y(i) = z(i) }")
    text = "".join(content.get("text", "") for kind, content in messages if kind == "stream")
    assert "'z' is neither a tensor nor an intrinsic" in text and "Traceback" not in text


def updates_of(messages):
    return [c["data"].get("text/html", "") for kind, c in messages if kind == "update_display_data"]


def test_a_search_has_a_bar(notebook):
    shown = updates_of(notebook.run(
        f"tuned = tensorc.tune({MATMUL!r}, sizes=dict(M=8, K=9, N=10), generations=1, population=2)"))
    assert shown and "<progress value=" in shown[-1]
    assert "<svg" in notebook.html("tuned")


def test_a_long_compilation_has_a_bar(notebook):
    shown = updates_of(notebook.run(f"kernel = tensorc.compile({LONG!r}, sizes=dict(N=64))"))
    if not shown:
        pytest.skip("this machine compiles it at once")
    assert "compiling 'f'" in html.unescape(shown[0]) and "compiling" not in shown[-1]
