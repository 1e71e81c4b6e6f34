"""python -m tensorc, for those who have no tool."""
import io
import json
import pathlib
import stat
import subprocess
import sys

import pytest

import tensorc
from tensorc.__main__ import main

GOOD = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }\n"
BAD = "def f(float(M,K) A) -> (y) { y(i) = A(i) }\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.tc").write_text(GOOD)
    (tmp_path / "bad.tc").write_text(BAD)
    return tmp_path


def run(capsys, *words):
    code = main(words)
    out, error = capsys.readouterr()
    return code, out, error


def test_check(folder, capsys):
    assert run(capsys, "check", "good.tc") == (0, """def mm(float32(M,K) A, float32(K,N) B) -> (float32(M,N) C)
  map m in 0:M, ends by A(m,k) (R2)
  map n in 0:N, ends by B(k,n) (R2)
  reduce k in 0:K, ends by A(m,k) (R2)
""", "")
    code, out, error = run(capsys, "check", "bad.tc")
    assert (code, out) == (1, "")
    assert error == "bad.tc:1:37: error: 'A' has 2 dimensions but is indexed with 1\nbad.tc:1:18: note: 'A' is declared here\n"


def test_check_as_json(folder, capsys):
    code, out, error = run(capsys, "check", "--json", "bad.tc")
    assert (code, error) == (1, "") and json.loads(out) == tensorc.diagnose(BAD, name="bad.tc")
    code, out, _ = run(capsys, "check", "good.tc", "--json", "--sizes=M=4,K=5,N=6")
    assert code == 0 and json.loads(out)["defs"][0]["tensors"][2]["shape"] == [4, 6]


def test_fmt(folder, capsysbinary):
    assert main(["fmt", "good.tc"]) == 0
    assert capsysbinary.readouterr().out == tensorc.format(GOOD).encode()
    assert main(["fmt", "--check", "good.tc"]) == 1 and (folder / "good.tc").read_text() == GOOD
    (folder / "good.tc").chmod(0o640)
    (folder / "link.tc").symlink_to("good.tc")
    assert main(["fmt", "-i", "link.tc"]) == 0
    assert (folder / "good.tc").read_text() == tensorc.format(GOOD) and (folder / "link.tc").is_symlink()
    assert stat.S_IMODE((folder / "good.tc").stat().st_mode) == 0o640
    assert main(["fmt", "--check", "good.tc"]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["bad.tc", "good.tc", "link.tc"]


def test_standard_input(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    assert "standard input:1:37: error: " in run(capsys, "check", "-")[2]
    assert run(capsys, "fmt", "-i", "-")[0] == 1


@pytest.mark.parametrize("words, told", [
    (["check", "none.tc"], "No such file"), (["fmt", "."], "Is a directory"), (["fmt", "half.tc"], "is not UTF-8: byte 1"),
    (["fmt", "words.tc"], "words.tc:1:1: error: expected 'def'"),
    (["check", "good.tc", "--types=T=int"], "types are given for generic defs"),
    (["check", "good.tc", "--time_limit_ms=0"], "time limit is 0 ms"),
])
def test_what_is_wrong_is_one_sentence(folder, capsys, words, told):
    (folder / "half.tc").write_bytes(b"#\xff")
    (folder / "words.tc").write_text("softmax")
    code, out, error = run(capsys, *words)
    assert code == 1 and out == "" and told in error and "Traceback" not in error


@pytest.mark.parametrize("words", [[], ["tune"], ["check"], ["check", "a", "--sizes=M"], ["check", "a", "--sizes=M=x"],
                                   ["fmt", "a", "-i", "--check"]])
def test_wrong_flags(words, capsys):
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2 and "usage: python -m tensorc" in capsys.readouterr().err


def test_as_a_process():
    done = subprocess.run([sys.executable, "-m", "tensorc", "--version"], capture_output=True, text=True)
    assert done.stdout == f"tensorc {tensorc.__version__}\n"


@pytest.mark.parametrize("path", sorted((pathlib.Path(__file__).resolve().parents[2] / "examples").glob("*.tc")),
                         ids=lambda path: path.name)
def test_examples(path, capsys):
    code, out, _ = run(capsys, "check", str(path))
    assert code == 0 and out.startswith("def ")
