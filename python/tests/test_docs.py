"""help() of every public name, and the stubs that editors and type checkers read beside it."""
import ast
import doctest
import inspect
import pathlib
import re

import pytest

import tensorc
from tensorc import _cache, _core, _defaults, _kernel, _schedule, _tune

STUBS = pathlib.Path(tensorc.__file__).with_name("_core.pyi")


def text_of(thing):
    """In words; nanobind puts a function's signature in a line above."""
    return " ".join(re.sub(r"^\w+\(.*\) -> .*\n", "", inspect.getdoc(thing) or "").split())


def public(thing):
    return [name for name in vars(thing) if not name.startswith("_")]


@pytest.mark.parametrize("name", tensorc.__all__)
def test_every_public_name_has_help(name):
    thing = getattr(tensorc, name)
    assert text_of(thing)
    if inspect.isclass(thing) and thing.__module__.startswith("tensorc") and thing is not tensorc.Fusion:
        fields = getattr(thing, "__dataclass_fields__", ())
        assert not [member for member in public(thing) if member not in fields and not text_of(getattr(thing, member))]


def test_stubs_say_what_help_says():
    classes = {node.name: node for node in ast.parse(STUBS.read_text()).body if isinstance(node, ast.ClassDef)}
    for name, stub in classes.items():
        thing = getattr(_core, name)
        assert " ".join((ast.get_docstring(stub) or "").split()) == text_of(thing), name
        if name in ("Engine", "Schedule", "Tuned", "Fusion"):  # no public names, or without members to describe
            continue
        stubs = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef) and node.name[0] != "_"}
        assert sorted(stubs) == sorted(public(thing)), name
        for member, node in stubs.items():
            assert " ".join((ast.get_docstring(node) or "").split()) == text_of(getattr(thing, member)), (name, member)


@pytest.mark.parametrize("module", [tensorc, _cache, _defaults, _kernel, _schedule, _tune])
def test_examples(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testmod(module, extraglobs={"tensorc": tensorc})
    assert failed == 0 and tried > 0


def test_examples_of_operators():
    pytest.importorskip("torch", reason="PyTorch is not installed for this Python")
    import tensorc.torch
    failed, tried = doctest.testmod(tensorc.torch, extraglobs={"tensorc": tensorc})
    assert failed == 0 and tried > 0


def test_functions_have_a_signature():
    tc = tensorc.define("""
def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }
def two(float(N) in, float a) -> (y, z) { y(i) = a * in(i) z(i) = in(i) }""")
    assert str(inspect.signature(tc.mv)) == "(A: 'float32(M, K)', x: 'float32(K)', *, out=None, stream=None) -> 'float32(M)'"
    assert inspect.signature(tc.two).return_annotation == "tuple[float32(N), float32(N)]"
    assert list(inspect.signature(tc.two).parameters) == ["in_", "a", "out", "stream"]  # `in` is a word of Python's
    kernel = tensorc.compile("def f(float(N) x) -> (y) { y(i) = x(i) }", sizes={"N": 4})
    assert list(inspect.signature(kernel).parameters) == ["x", "out", "stream"]


def test_dir_has_public_names_only():
    assert {name for name in dir(tensorc) if not name.startswith("_")} - {"jax", "torch"} == set(tensorc.__all__)


def test_dir_of_operators_has_public_names_only():
    pytest.importorskip("torch", reason="PyTorch is not installed for this Python")
    import tensorc.torch
    assert {name for name in dir(tensorc.torch) if not name.startswith("_")} == set(tensorc.torch.__all__)
    op = tensorc.torch.op("def mv(float(M,K) A, float(K) x, float a) -> (y) { y(m) +=! a * A(m,k) * x(k) }")
    assert str(inspect.signature(op)) == "(A: torch.Tensor, x: torch.Tensor, a: 'float32')"


def test_values_show_themselves():
    import numpy as np
    function = tensorc.define("def f(float(M,K) A, int32 n) -> (s) { s(m) +=! A(m,k) }").f
    assert repr(function) == "<tensorc.Function f(float32(M, K) A, int32 n) -> (float32(M) s)>"
    assert repr(function.signature.parameters[1]) == "<tensorc.Argument int32 n>"
    assert repr(function.signature) == "<tensorc.Signature f(float32(M, K) A, int32 n) -> (float32(M) s)>"
    assert repr(function.compile(np.ones((4, 5), "float32"), 1)) == (
        "<tensorc.Kernel f(float32(4, 5)) -> (float32(4)) on cpu>")
