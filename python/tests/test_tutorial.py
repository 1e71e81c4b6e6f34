import pathlib
import runpy

TUTORIAL = pathlib.Path(__file__).resolve().parent.parent / "examples/tutorial.py"


def test_runs_to_its_end(capsys):
    runpy.run_path(str(TUTORIAL), run_name="__main__")
    printed = capsys.readouterr().out
    assert "y is float32(64, 100); 1 kernel" in printed
    assert "sums.tc:2:12: error: 'A' has 2 dimensions but is indexed with 3" in printed
    assert "'file_hits': 1, 'reproved': 0, 'compiled': 0" in printed
    assert "x by CpuOptions(" in printed
    assert "d_A(m, k) +=! d_C(m, n) * B(k, n)" in printed
    assert "schedule:" in printed and "// def layer(" in printed
