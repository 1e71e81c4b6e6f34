"""What kernels and programs say of themselves."""
import json

import numpy as np
import pytest

import tensorc

MATMUL = "def matmul(float(M,K) A, float(K,N) B) -> (C) {\n  C(m,n) +=! A(m,k) * B(k,n)\n}"
SIZES = {"M": 64, "K": 32, "N": 48}


@pytest.fixture
def kernel():
    return tensorc.compile(MATMUL, sizes=SIZES)


def test_a_kernel_explains_itself(kernel):
    explanation = kernel.explain()
    assert isinstance(explanation, tensorc.Explanation)
    assert str(explanation).startswith("def matmul(float32(64,32) A, float32(32,48) B) -> (float32(64,48) C)\n")
    assert repr(explanation) == str(explanation)
    known = explanation.to_dict()
    assert known == json.loads(explanation.json())
    assert known["sizes"] == SIZES and known["cache"] is None
    k = known["statements"][-1]["indices"][2]
    assert (k["name"], k["kind"], k["end"], k["end_value"], k["end_by"]["rule"]) == ("k", "reduce", "K", 32, "R2")


def test_a_call_has_a_kernel_to_explain():
    program = tensorc.define(MATMUL)
    kernel = program.matmul.compile(np.ones((4, 5), "float32"), np.ones((5, 6), "float32"))
    assert kernel.explain().to_dict()["sizes"] == {"M": 4, "K": 5, "N": 6}


def test_options_say_where_they_come_from():
    options = tensorc.CpuOptions(tile=[8, 16])
    known = tensorc.compile(MATMUL, sizes=SIZES, options=options).explain().to_dict()
    assert known["options"] == {"origin": "user", "text": "tile: [8, 16]\n"}


def test_a_cache_has_the_kernel_or_not(tmp_path):
    cache = tmp_path / "kernels.tcc"
    assert tensorc.compile(MATMUL, sizes=SIZES, cache=cache).explain().to_dict()["cache"]["hit"] is False
    known = tensorc.compile(MATMUL, sizes=SIZES, cache=cache).explain().to_dict()["cache"]
    assert known == {"file": str(cache), "hit": True, "measured_us": None}
    program = tensorc.define(MATMUL, cache=tensorc.Cache(cache, production=True))
    with pytest.raises(tensorc.Error, match="production compiles nothing, and has nothing to explain of 'matmul'"):
        program.explain(sizes=SIZES)


def test_a_program_explains_a_gpu_that_is_not_here():
    known = tensorc.define(MATMUL).explain(sizes=SIZES, backend="cuda", arch="sm_80").to_dict()
    assert known["target"] == "sm_80" and known["kernels"][0]["strategy"] == "contraction"
    assert "__global__" in known["code"]


def test_what_is_missing_is_an_error():
    program = tensorc.define(MATMUL)
    with pytest.raises(tensorc.Error, match="sizes 'M', 'K', 'N' of 'matmul' have no value"):
        program.explain()
    with pytest.raises(tensorc.Error, match="'matmul'"):
        program.explain("matmull", sizes=SIZES)
    with pytest.raises(TypeError, match="arch"):
        program.explain(sizes=SIZES, arch=80)


def test_a_schedule_by_hand_is_no_engines(kernel):
    by_hand = tensorc.Schedule(MATMUL, sizes=SIZES).compile()
    with pytest.raises(tensorc.Error, match="the kernel of 'matmul' is from a schedule by hand"):
        by_hand.explain()


def test_it_is_saved_by_the_name_of_the_file(kernel, tmp_path):
    explanation = kernel.explain()
    for name, text in {"x.html": explanation.html(), "x.json": explanation.json(), "x.txt": str(explanation)}.items():
        explanation.save(tmp_path / name)
        assert (tmp_path / name).read_text() == text
    with pytest.raises(ValueError, match="ends with .html, .json or .txt, not as 'x.pdf' does"):
        explanation.save(tmp_path / "x.pdf")


def test_a_notebook_shows_the_page_in_a_frame(kernel):
    shown = kernel.explain()._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;') and "<style" not in shown
