"""The oracle itself against tables that were worked out by hand. No compiler takes part."""

import pytest

from .infer import Analysis, Refused, components
from .syntax import definition_text, parse, to_text

DILATED = "def f(int dil, float(T) X, float(K) W) -> (O) { O(t) +=! (t >= dil * k) ? X(t - dil * k) * W(k) : 0.0 }"
MIRRORED = """def f(int dil, float(T) X, float(K) W) -> (O) {
  O(t) +=! (t >= dil * (K - 1 - k) ? X(t - dil * (K - 1 - k)) : 0.0) * W(k) where t in 0:T }"""
PADDED = """def f(int s, int p, float(H) X, float(KH) W) -> (O) {
  O(h) +=! (s * h + k >= p && s * h + k - p < H ? X(s * h + k - p) : 0.0) * W(k) where h in 0:(H+2*p-KH)/s+1 }"""
INTERLEAVED = "def f(float(D) X) -> (%s) { Y(i) = i %% 2 == 0 ? -X(i+1) : X(i-1) }"
HALVES = "def f(float(D) X) -> (%s) { Y(i) = i < D / 2 ? -X(i + D / 2) : X(i - D / 2) }"


def infer(text, sizes, scalars=None):
    return Analysis(parse(text)[-1]).infer(sizes, scalars or {})


def refusal(text, sizes, scalars=None):
    with pytest.raises(Refused) as caught:
        infer(text, sizes, scalars)
    return caught.value.rule


@pytest.mark.parametrize(
    "t, k, dil", [(1, 1, 1), (9, 1, 3), (9, 3, 1), (9, 3, 2), (17, 3, 3), (17, 3, 2), (2, 3, 2), (1, 4, 1)]
)
def test_a_dilated_convolution_has_all_taps_and_all_of_t(t, k, dil):
    answer = infer(DILATED, {"T": t, "K": k}, {"dil": dil})
    assert answer.ranges == [{"t": (0, t), "k": (0, k)}]
    assert answer.extents["O"] == (t,)


@pytest.mark.parametrize("t, k, dil", [(9, 3, 1), (9, 3, 2), (17, 3, 3), (2, 3, 2)])
def test_the_mirror_image_has_all_taps(t, k, dil):
    assert infer(MIRRORED, {"T": t, "K": k}, {"dil": dil}).ranges == [{"t": (0, t), "k": (0, k)}]


@pytest.mark.parametrize(
    "h, kh, s, p, extent",
    [(9, 3, 1, 1, 9), (9, 3, 2, 1, 5), (9, 3, 3, 2, 4), (8, 3, 2, 1, 4), (8, 5, 1, 2, 8), (3, 3, 2, 0, 1), (1, 3, 1, 1, 1)],
)
def test_a_padded_strided_convolution_has_all_taps(h, kh, s, p, extent):
    answer = infer(PADDED, {"H": h, "KH": kh}, {"s": s, "p": p})
    assert answer.ranges == [{"h": (0, extent), "k": (0, kh)}]
    assert answer.extents["O"] == (extent,)


def test_a_convolution_that_does_not_fit_is_refused():
    assert refusal(PADDED, {"H": 1, "KH": 3}, {"s": 1, "p": 0}) == "C10"


def test_interleaved_pairs():
    # Of 8: 7 reads X(6), 8 would read X(9). Of 9: 8 would read X(9), and 9, which could read X(8), is beyond the gap.
    assert infer(INTERLEAVED % "Y", {"D": 8}).ranges == [{"i": (0, 8)}]
    assert infer(INTERLEAVED % "Y", {"D": 9}).ranges == [{"i": (0, 8)}]
    assert infer(INTERLEAVED % "float(D) Y", {"D": 8}).ranges == [{"i": (0, 8)}]
    assert refusal(INTERLEAVED % "float(D) Y", {"D": 9}) == "R6"


def test_halves():
    # Of 8: i < 4 reads up to X(7), and the others read X(i - 4), which 11 does last.
    assert infer(HALVES % "Y", {"D": 8}).ranges == [{"i": (0, 12)}]
    assert infer(HALVES % "float(D) Y", {"D": 8}).ranges == [{"i": (0, 8)}]
    assert infer(HALVES % "float(D) Y", {"D": 9}).ranges == [{"i": (0, 9)}]


def test_R1_a_shift_alone_starts_elsewhere():
    answer = infer("def f(float(N) A) -> (B) { B(i) = A(i - 1) }", {"N": 5})
    assert answer.ranges == [{"i": (1, 6)}] and answer.extents["B"] == (6,)


def test_R2_rounds():
    text = "def f(float(N) K, float(M) I) -> (O) { O(i) +=! K(x) * I(i + x) }"
    assert infer(text, {"N": 3, "M": 8}).ranges == [{"i": (0, 6), "x": (0, 3)}]
    assert infer("def f(float(N) A) -> (O) { O(i) = A(2 * i) }", {"N": 7}).ranges == [{"i": (0, 4)}]
    assert infer("def f(float(N) A) -> (O) { O(i) = A(i / 2) }", {"N": 3}).ranges == [{"i": (0, 6)}]
    assert infer("def f(float(N) A) -> (O) { O(i) = A(N - 1 - i) }", {"N": 4}).ranges == [{"i": (0, 4)}]
    assert infer("def f(float(N) A, float(M) B) -> (O) { O(i) = A(i) + B(i) }", {"N": 4, "M": 2}).ranges == [{"i": (0, 2)}]


def test_R3_extents_of_other_statements_and_of_annotations():
    text = """def f(float(B,I) in, float(O,I) weight, float(O) bias) -> (out) {
      out(i,j) = bias(j)
      out(b,o) += in(b,i) * weight(o,i) }"""
    answer = infer(text, {"B": 2, "I": 3, "O": 4})
    assert answer.ranges[0] == {"i": (0, 2), "j": (0, 4)}
    assert answer.origins[0] == {"i": "R3", "j": "read"}
    text = "def f(float(N) A) -> (float(N,7) O) { O(i,j) = A(i) }"
    assert infer(text, {"N": 2}).ranges == [{"i": (0, 2), "j": (0, 7)}]


def test_R4_no_answer_and_more_than_one():
    assert refusal("def f(float(M) I) -> (O) { O(i) +=! I(i + j) }", {"M": 4}) == "R4"
    assert refusal("def f(float(N) A) -> (O) { O(i,j) = A(i) }", {"N": 4}) == "R4"
    assert refusal("def f(float(N) A, float(M) B) -> (O) { O(i) = A(i) where i in 0:M }", {"N": 2, "M": 3}) == "R7"


def test_R5_extents():
    text = "def f(float(H) I) -> (P) { P(h) = I(h - 1) where h in 1:H+1 }"
    assert infer(text, {"H": 3}).extents["P"] == (4,)
    assert refusal("def f(float(N) A) -> (float(4) O) { O(i) = A(i) }", {"N": 5}) == "R5"
    assert refusal("def f(float(N) A) -> (O) { O(i) = 1.0 where i in -1:N }", {"N": 5}) == "R5"


def test_R6_a_guard_that_is_too_weak():
    assert refusal("def f(float(H) I) -> (P) { P(h) = h >= 1 ? I(h) : 0.0 where h in 0:H+2 }", {"H": 4}) == "R6"


def test_R6_an_unguarded_read_is_not_narrowed():
    text = "def f(float(H) X) -> (O) { O(i) = (i < 1 ? X(i) : X(i + 1)) + X(i) }"
    assert infer(text, {"H": 1}).ranges == [{"i": (0, 1)}]
    assert refusal(text, {"H": 3}) == "R6"


def test_R6_guarded_reads_alone_bound():
    text = "def f(float(N) A) -> (O) { O(i) = i >= 1 ? A(i - 1) : 0.0 }"
    assert infer(text, {"N": 4}).ranges == [{"i": (0, 5)}]
    text = "def f(float(N) A, float(M) B) -> (O) { O(i) = i < N ? A(i) : B(i - N) }"
    assert infer(text, {"N": 4, "M": 3}).ranges == [{"i": (0, 7)}]


def test_R6_an_index_waits_for_its_unguarded_read():
    text = """def f(float(M) A, float(H) B) -> (O, P) {
      O(i) = i < M ? A(i) : A(i - M)
      P(i) = O(i) + (i >= 2 && i < 9 && i < H + 2 ? B(i - 2) : 0.0) }"""
    assert infer(text, {"M": 2, "H": 1}).ranges == [{"i": (0, 4)}, {"i": (0, 4)}]


def test_R6_guards_that_end_nothing_leave_the_extent():
    answer = infer("def f(float(N) I) -> (O) { O(i) +=! j <= i ? I(j) : 0.0 where i in 0:N }", {"N": 4})
    assert answer.ranges == [{"i": (0, 4), "j": (0, 4)}] and answer.notes == {"beside guards"}


def test_R6_lazy_logic_guards_its_right_side():
    text = "def f(float(N) A) -> (float(N) O) { O(i) = (i >= 1 && A(i - 1) > 0.0) ? A(i) : 0.0 }"
    assert infer(text, {"N": 4}).ranges == [{"i": (0, 4)}]
    text = "def f(float(N) A) -> (float(N) O) { O(i) = (i >= 1 || A(i - 1) > 0.0) ? A(i) : 0.0 }"
    assert refusal(text, {"N": 4}) == "R6"


def test_R6_a_guard_that_reads_data_proves_nothing():
    text = "def f(float(N) A) -> (float(N) O) { O(i) = A(i) > 0.0 ? A(i + 1) : 0.0 }"
    assert refusal(text, {"N": 4}) == "R6"
    text = "def f(float(N) A) -> (float(N) O) { O(i) = A(i) > 0.0 && i < N - 1 ? A(i + 1) : 0.0 }"
    assert infer(text, {"N": 4}).ranges == [{"i": (0, 4)}]


def test_R8_division_rounds_down_and_by_zero_is_zero():
    text = "def f(float(N) A) -> (float(N) O) { O(i) = (i - 1) / 2 >= 0 ? A(i - 1) : 0.0 }"
    assert infer(text, {"N": 4}).ranges == [{"i": (0, 4)}]
    text = "def f(int s, float(N) A) -> (float(N) O) { O(i) = A(i / s) + A(i % s) }"
    assert infer(text, {"N": 4}, {"s": 0}).ranges == [{"i": (0, 4)}]


def test_R10_a_declared_result_is_written_in_full():
    text = "def f(float(N) A) -> (float(N + 1) O) { O(i) = A(i) }"
    assert refusal(text, {"N": 4}) == "R10"
    text = "def f(float(N) A) -> (float(N + 1) O) { O(i) = A(i) where i in 0:N }"
    assert infer(text, {"N": 4}).ranges == [{"i": (0, 4)}]
    text = "def f(float(N) A) -> (float(N + 1) O) { O(i) = 0.0\n O(i) = A(i) }"
    assert infer(text, {"N": 4}).ranges == [{"i": (0, 5)}, {"i": (0, 4)}]


def test_C7_no_element_is_written_twice():
    text = "def f(float(N) A) -> (float(2 * N + 1) O) { O(2 * i + 1) = A(i) where i in 0:N }"
    assert infer(text, {"N": 4}).ranges == [{"i": (0, 4)}]
    assert refusal("def f(float(N) A) -> (float(N) O) { O(i / 2) = A(i) }", {"N": 4}) == "C7"
    text = "def f(int s, float(N) A) -> (float(3 * N) O) { O(s * i) = A(i) where i in 0:N }"
    assert refusal(text, {"N": 4}, {"s": 0}) == "C7"


def test_C8_data_dependent_subscripts_are_promises():
    text = "def f(float(N) X, int(A) I) -> (Z) { Z(i) = X(I(i)) }"
    assert infer(text, {"N": 1, "A": 6}).ranges == [{"i": (0, 6)}]


def test_C10_clauses():
    assert refusal("def f(float(N) A) -> (O) { O(i) = A(i) where i in 2:N }", {"N": 2}) == "C10"
    text = "def f(float(N) A, float(M) B) -> (O) { O(i) = A(i) where exists B(i + 1) }"
    assert infer(text, {"N": 4, "M": 3}).ranges == [{"i": (0, 2)}]
    assert infer(text.replace("B(i + 1)", "B(i + 1), i in 0:N"), {"N": 4, "M": 3}).ranges == [{"i": (0, 4)}]
    text = "def f(float(N) A) -> (O) { O(i) = A(x) where x = i + 1, i in 0:N-1 }"
    assert infer(text, {"N": 4}).ranges == [{"i": (0, 3)}]
    assert infer("def f() -> (float(3) O) { O(i) +=! 1.0 where k in 0:5 }", {}).ranges == [{"i": (0, 3), "k": (0, 5)}]


def test_components():
    import numpy as np

    assert components(np.array([1, 1, 0, 1], dtype=bool)) == [(0, 2), (3, 4)]
    assert components(np.array([0, 0], dtype=bool)) == []


def test_printed_text_is_parsed_as_the_same():
    for text in (DILATED, MIRRORED, PADDED, INTERLEAVED % "Y", HALVES % "float(D) Y"):
        once = parse(definition_text(parse(text)[-1]))[-1]
        assert definition_text(once) == definition_text(parse(text)[-1])
        assert to_text(once.statements[0].right) == to_text(parse(text)[-1].statements[0].right)
