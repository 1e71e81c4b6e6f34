"""check, compile, emit and options."""
import pickle

import numpy as np
import pytest

import tensorc

MATMUL = "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
SIZES = {"M": 8, "N": 9, "K": 10}


def test_check_gives_signatures():
    (signature,) = tensorc.check(MATMUL)
    assert signature.entry == "matmul" and signature.sizes == ["M", "K", "N"]
    assert [(p.name, p.role, p.dtype, p.shape) for p in signature.parameters] == [
        ("A", "input", "float32", ["M", "K"]), ("B", "input", "float32", ["K", "N"])]
    assert [(r.name, r.role, r.shape) for r in signature.results] == [("C", "result", ["M", "N"])]
    with pytest.raises(tensorc.Error, match="error"):
        tensorc.check("def f(")


def test_compile_by_sizes_specs_or_arrays():
    A, B = np.ones((8, 10), "float32"), np.ones((10, 9), "float32")
    specs = [tensorc.TensorSpec("float32", (8, 10)), tensorc.TensorSpec("float32", (10, 9))]
    for kernel in (tensorc.compile(MATMUL, sizes=SIZES), tensorc.compile(MATMUL, inputs=specs),
                   tensorc.compile(MATMUL, inputs=[A, B]), tensorc.compile(MATMUL, inputs=[A, None], sizes={"N": 9})):
        assert kernel.outputs[0].shape == (8, 9) and kernel.device == "cpu"
        assert (kernel(A, B) == 10).all()
    with pytest.raises(tensorc.Error, match="input 'A' has shape .* the kernel was compiled for"):
        kernel(B, A)
    assert [name for name, ms in kernel.pass_times][0] == "parse"


def test_a_function_compiles_without_running():
    function = tensorc.define(MATMUL).matmul
    kernel = function.compile(np.ones((2, 3), "float32"), np.ones((3, 4), "float32"))
    assert kernel.inputs == [tensorc.TensorSpec("float32", [2, 3], [3, 1]), tensorc.TensorSpec("float32", [3, 4], [4, 1])]
    assert function.kernels == 1


def test_infer():
    inputs, outputs = tensorc.define(MATMUL).infer(sizes=SIZES)
    assert [s.shape for s in inputs] == [(8, 10), (10, 9)] and [s.shape for s in outputs] == [(8, 9)]


def test_emit_every_stage():
    starts = {"ast": "definition matmul\n", "program": "program matmul\n", "schedule": "schedule:\n", "tile": "program",
              "cuda": "// def matmul("}
    for stage, start in starts.items():
        assert tensorc.emit(MATMUL, stage, sizes=SIZES).startswith(start), stage
    assert "tc_matmul:" in tensorc.emit(MATMUL, "object", sizes=SIZES)
    assert "size M" in tensorc.emit(MATMUL, "program")
    with pytest.raises(tensorc.Error, match="there is no stage 'cud'; did you mean 'cuda'?"):
        tensorc.emit(MATMUL, "cud", sizes=SIZES)
    with pytest.raises(tensorc.Error, match="'sm90' is no GPU architecture"):
        tensorc.emit(MATMUL, "cuda", sizes=SIZES, arch="sm90")
    with pytest.raises(tensorc.Error, match="size 'M' of 'matmul' has no value"):
        tensorc.emit(MATMUL, "cuda")


def test_options_are_values():
    options = tensorc.CpuOptions(tile=[8, 8], strict=True)
    assert options == tensorc.CpuOptions(strict=True, tile=[8, 8]) != tensorc.CpuOptions()
    assert hash(options) == hash(options.replace())
    assert options.replace(strict=False).tile == [8, 8] and options.strict
    assert repr(options) == "CpuOptions(tile=[8, 8], strict=True)"
    assert str(options) == "tile: [8, 8]\nstrict: true\n"
    assert tensorc.CpuOptions.from_text(str(options)) == options == pickle.loads(pickle.dumps(options))
    with pytest.raises(TypeError, match="CpuOptions has no option 'tiles'"):
        tensorc.CpuOptions(tiles=[8])
    with pytest.raises(TypeError, match="'tile' cannot be 'x'"):
        tensorc.CpuOptions(tile="x")
    with pytest.raises(tensorc.Error):
        tensorc.CpuOptions(tile=[0])


def test_mapping_options():
    mapping = tensorc.MappingOptions(map_to_threads=[32, 4], use_shared_memory=True,
                                     outer_schedule_options=tensorc.SchedulerOptions(fusion=tensorc.Fusion.MIN))
    assert mapping.outer_schedule_options.fusion == tensorc.Fusion.MIN
    assert tensorc.MappingOptions.from_text(str(mapping)) == mapping == pickle.loads(pickle.dumps(mapping))
    assert tensorc.MappingOptions.preset("naive").tile == [32, 32, 32]
    with pytest.raises(ValueError, match="there is no preset 'fast'; there are naive, "):
        tensorc.MappingOptions.preset("fast")
    text = tensorc.emit(MATMUL, "tile", sizes=SIZES, mapping=tensorc.MappingOptions.preset("single_thread"))
    assert text != tensorc.emit(MATMUL, "tile", sizes=SIZES)


def test_options_reach_the_compiler():
    A = np.ones((8, 10), "float32")
    with pytest.raises(tensorc.Error, match="outside"):
        gather = tensorc.define("def g(float(N) x, int32(K) at) -> (y) { y(k) = x(at(k)) }",
                                options=tensorc.CpuOptions(check_bounds=True)).g
        gather(A[0], np.array([3, 10], "int32"))


def test_programs_list_their_defs():
    program = tensorc.define(MATMUL + "\ndef copy(float(N) x) -> (y) { y(i) = x(i) }")
    assert list(program) == ["matmul", "copy"] and len(program) == 2 and "copy" in dir(program)
    assert program["copy"] is program.copy
    with pytest.raises(AttributeError, match="the text has no def 'sort'; there are matmul, copy"):
        program.sort
