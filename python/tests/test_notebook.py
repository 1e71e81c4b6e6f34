"""Programs and kernels in notebooks, and the cell magic."""
import html.parser
import re
import sys
import time

import numpy as np
import pytest

import tensorc
from tensorc import _notebook

MATMUL = "def matmul(float(M,K) A, float(K,N) B) -> (C) { # A & B\n  C(m,n) +=! A(m,k) * B(k,n)\n}"


class Checked(html.parser.HTMLParser):
    """The text of HTML; every tag has to be closed in its place."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text = [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def text_of(thing):
    return Checked(thing._repr_html_()).text


@pytest.fixture
def shell(monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # the shell puts its own module there
    pytest.importorskip("IPython", reason="IPython is not installed for this Python")
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "tensorc")
    yield shell
    shell.run_line_magic("reset", "-f")


def test_program_shows_text_and_ranges():
    text = text_of(tensorc.define(MATMUL))
    assert MATMUL in text
    assert "k" + "reduced" + "0:K" + "A(m,k) (R2)" in text
    assert "Cresultfloat32(M, N)" in text


def test_generic_program_shows_an_instance():
    text = text_of(tensorc.define("def f<T: float>(T(N) x) -> (y) { y(i) = T(2) * x(i) }"))
    assert "f<T: float> (ranges of f<float32>)" in text


def test_program_shows_a_result_without_dimensions():
    text = text_of(tensorc.define("def f(float(N) x) -> (s) { s +=! x(i) }"))
    assert "xinputfloat32(N)" in text and "sresultfloat32()" in text


def test_program_with_requirements_and_notes():
    text = text_of(tensorc.define("def f(float(N) x, float(M) k) -> (y) { y(i) +=! x(i + j) * k(j) }"))
    assert "a call needs: " in text


def test_function_shows_arguments():
    text = text_of(tensorc.define("def f(float(M,K) A, int32 n) -> (s) { s(m) +=! A(m,k) }").f)
    assert "Ainputfloat32(M, K)" in text and "nscalarint32" in text and "sresultfloat32(M)" in text


def test_kernel_shows_shapes_and_passes():
    function = tensorc.define(MATMUL).matmul
    text = text_of(function.compile(np.ones((4, 5), "float32"), np.ones((5, 6), "float32")))
    assert "matmul on cpu" in text and "Binputfloat32(5, 6)(6, 1)" in text and "Cresultfloat32(4, 6)" in text
    assert "compiled in " in text and "schedule" in text


def test_kernel_of_a_cache(tmp_path):
    make = lambda: tensorc.compile(MATMUL, sizes={"M": 4, "K": 5, "N": 6}, cache=tmp_path / "k.tcc")  # noqa: E731
    assert "compiled in" in text_of(make())
    assert "from a cache" in text_of(make())


def test_production_program(tmp_path):
    tensorc.compile(MATMUL, sizes={"M": 4, "K": 5, "N": 6}, cache=tmp_path / "k.tcc")
    program = tensorc.define("", cache=tensorc.Cache(tmp_path / "k.tcc", production=True))
    assert text_of(program) == "<tensorc.Program of matmul>"


def test_text_is_escaped():
    text = "def f(float(N) x) -> (y) { # <script>alert(1)</script> &amp;\n  y(i) = x(i) < 1 ? x(i) : 0 }"
    shown = tensorc.define(text)._repr_html_()
    assert "<script>" not in shown and text in Checked(shown).text


@pytest.mark.parametrize("text", ["", "exp", "exp(x) where in", "min max=! 1.5e-3 # é", "def\n\n", "a.0 < b && c"])
def test_colours_keep_the_text(text):
    assert Checked(_notebook.coloured(text)).text == text
    assert ("</span>" in _notebook.coloured("exp(x)")) and "</span>" not in _notebook.coloured("exp")


def test_schedule_shows_its_loops():
    schedule = tensorc.Schedule(MATMUL, sizes={"M": 64, "K": 8, "N": 16})
    outer, _ = schedule.split("m", 8)
    schedule.parallelize(outer)
    shown = schedule._repr_html_()
    head, _, loops = str(schedule).partition("\n")
    assert Checked(shown).text == head + loops
    assert "<b># parallel</b>" in shown


SHORT = dict(sizes={"M": 8, "K": 9, "N": 10}, generations=1, population=3, threads=1)


def test_search_shows_times_and_options():
    tuned = tensorc.tune(MATMUL, **SHORT, progress=False)
    shown = tuned._repr_html_()
    text = Checked(shown).text
    assert f"best{tuned.best_us:.2f} us" in text and "speed-up" in text and str(tuned.options) in text
    assert shown.count("<circle") == sum(record.us > 0 for record in tuned.history)


@pytest.mark.parametrize("times", [[1.0], [2.0, 2.0], [5.0, 3.0, 4.0]])
def test_plot_stays_within_its_frame(times):
    shown = _notebook.plot(times)
    Checked(shown)
    points = [tuple(map(float, point.split(","))) for point in re.search('points="(.*?)"', shown)[1].split()]
    assert len(points) == len(times) and all(0 <= x <= 480 and 0 <= y <= 120 for x, y in points)
    assert [y for _, y in points] == sorted(y for _, y in points)  # the best so far goes down only


def test_progress_is_a_bar_in_notebooks(shell, monkeypatch, capsys):
    import IPython
    shown = []

    class Handle:
        def update(self, thing):
            shown.append(thing)

    shell.kernel = object()
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    monkeypatch.setattr(IPython.display, "display", lambda thing, display_id: Handle())
    tensorc.tune(MATMUL, **SHORT)
    assert shown and "<progress value=" in shown[-1]._repr_html_() and " failed" in repr(shown[-1])
    assert Checked(shown[-1]._repr_html_()).text.strip() == repr(shown[-1])
    assert capsys.readouterr().err == ""


LONG = """def f(float(N) x) -> (y) { y(i) = %s }""" % " + ".join(f"pow(x(i), {n}.5)" for n in range(400))


def test_a_long_compilation_has_a_bar_in_notebooks(shell, monkeypatch):
    import IPython
    shown = []

    class Handle:
        def update(self, thing):
            shown.append(thing)

    shell.kernel = object()
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    monkeypatch.setattr(IPython.display, "display", lambda thing, display_id: Handle())
    tensorc.compile(MATMUL, sizes={"M": 4, "K": 5, "N": 6})  # usually below a second
    began = time.monotonic()
    tensorc.compile(LONG, sizes={"N": 64})
    if time.monotonic() - began < 1.5:
        pytest.skip("this machine compiles it at once")
    assert re.fullmatch(r"compiling 'f': \d+ s", repr(shown[-2])) and repr(shown[-1]) == ""
    assert "<progress></progress>" in shown[-2]._repr_html_()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_display_that_fails_stops_no_compilation(shell, monkeypatch):
    monkeypatch.setattr(_notebook, "display_of_notebook", lambda: 1 / 0)
    assert tensorc.compile(LONG, sizes={"N": 65}).device == "cpu"


def test_no_bar_in_a_terminal(shell, monkeypatch):
    import IPython
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    assert _notebook.Bar.of_notebook() is None
    assert _notebook.Waiting.of_notebook("f") is None


# --- the cell magic ---------------------------------------------------------------------------------------------


def test_magic_defines_functions(shell):
    done = shell.run_cell(f"%%tc\n{MATMUL}\ndef twice(float(N) x) -> (y) {{ y(i) = 2 * x(i) }}")
    assert done.success and "matmul" in text_of(done.result)
    done = shell.run_cell("import numpy as np\nmatmul(np.ones((4, 5), 'float32'), np.ones((5, 6), 'float32')).sum() + "
                          "twice(np.ones(1, 'float32'))[0]")
    assert done.success and done.result == 4 * 5 * 6 + 2
    html_text = shell.display_formatter.format(shell.user_ns["matmul"])[0]["text/html"]
    assert "Ainputfloat32(M, K)" in Checked(html_text).text


def test_magic_names_a_program(shell):
    assert shell.run_cell(
        f"%%tc linear --backend=cpu --nocheck_bounds\n{MATMUL}").success
    assert list(shell.user_ns["linear"]) == ["matmul"] and "matmul" not in shell.user_ns


@pytest.mark.parametrize("cell, told", [
    ("%%tc\ndef f(float(N) x) -> (y) { y(i) = z(i) }", "tc:1:35: error: 'z' is neither a tensor nor an intrinsic"),
    ("%%tc\ndef sum(float(N) x) -> (y) { y +=! x(i) }", "'sum' is a word of Python's: name the program"),
    ("%%tc lambda\ndef f(float(N) x) -> (y) { y +=! x(i) }", "'lambda' cannot name a program in Python"),
    ("%%tc --backend=tpu\ndef f(float(N) x) -> (y) { y +=! x(i) }", "invalid choice: 'tpu'"),
    ("%%tc a b\ndef f(float(N) x) -> (y) { y +=! x(i) }", "unrecognized arguments: b"),
    ("%%tc 'a\ndef f(float(N) x) -> (y) { y +=! x(i) }", "No closing quotation"),
    ("%%tc --cache=/no/such/folder/k.tcc\ndef f(float(N) x) -> (y) { y +=! x(i) }", "/no/such/folder/k.tcc"),
    ("%%tc\n# nothing", "expected 'def'"),
])
def test_magic_says_what_is_wrong_without_a_traceback(shell, capfd, cell, told):
    done = shell.run_cell(cell)
    out, error = capfd.readouterr()
    assert not done.success and told in out + error, out + error
    assert "Traceback" not in out + error
    assert not {"f", "sum", "a"} & set(shell.user_ns)
