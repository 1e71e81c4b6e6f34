"""check, compile, emit and options."""
import concurrent.futures
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

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
    with pytest.raises(tensorc.Error, match="sizes 'M', 'K', 'N' of 'matmul' have no value"):
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
    own = mapping.replace(kernel=[tensorc.KernelOptions(writes="C", tile=[16, 32, 8])])
    assert tensorc.MappingOptions.from_text(str(own)) == own == pickle.loads(pickle.dumps(own)) != mapping
    assert own.kernel[0].tile == [16, 32, 8]
    with pytest.raises(tensorc.Error, match="has no 'writes'"):
        tensorc.KernelOptions(tile=[8])
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


def test_subscripts_are_checked_unless_one_says_no():
    text = "def g(float(N) x, int32(K) at) -> (y) { y(k) = x(at(k)) }"
    x, outside, inside = np.arange(4, dtype="float32"), np.array([3, -1], "int32"), np.array([3, 0], "int32")
    with pytest.raises(tensorc.Error, match="subscript 0 of 'x' is -1, outside"):
        tensorc.define(text).g(x, outside)
    with pytest.raises(tensorc.Error, match="subscript 0 of 'x' is -1, outside"):
        tensorc.compile(text, inputs=[x, outside])(x, outside)
    with pytest.raises(tensorc.Error, match="subscript 0 of 'x' is -1, outside"):
        tensorc.define(text, backend="sim", check_bounds=True).g(x, outside)
    for program in (tensorc.define(text), tensorc.define(text, check_bounds=False)):
        assert list(program.g(x, inside)) == [3, 0]
    with pytest.raises(TypeError, match="'check_bounds' takes a bool"):
        tensorc.define(text, check_bounds=1)


def test_options_that_say_no_checks_win_over_the_default():
    text = "def g(float(N) x, int32(K) at) -> (y) { y(k) = x(at(k)) }"
    no = tensorc.CpuOptions(check_bounds=False)
    unsaid = (None, tensorc.CpuOptions(), tensorc.CpuOptions(strict=True), tensorc.CpuOptions.from_text("strict: true"))
    said = (no, no.replace(strict=True), tensorc.CpuOptions(strict=True).replace(check_bounds=False),
            tensorc.CpuOptions.from_text("check_bounds: false"), pickle.loads(pickle.dumps(no)))
    for options in unsaid:
        assert tensorc.define(text, options=options)._options.check_bounds
    for options in said:
        assert not tensorc.define(text, options=options)._options.check_bounds, options
        assert tensorc.define(text, options=options, check_bounds=True)._options.check_bounds
    assert repr(no) == "CpuOptions(check_bounds=False)" and no == tensorc.CpuOptions()
    assert repr(no.replace(strict=True)) == "CpuOptions(strict=True, check_bounds=False)"
    assert repr(tensorc.CpuOptions(check_bounds=True)) == "CpuOptions(check_bounds=True)"
    x, inside = np.arange(4, dtype="float32"), np.array([3, 0], "int32")
    assert list(tensorc.define(text, options=no).g(x, inside)) == [3, 0]


def test_kernels_for_tensors_that_are_not_aligned_to_vectors():
    text = "def f(float(N,D) x) -> (s) { s(n) +=! x(n,d) }"
    numbers = np.arange(64 * 1024 + 1, dtype="float32") % 8
    x, sizes = numbers[1:].reshape(64, 1024), {"N": 64, "D": 1024}
    for element_aligned, compiled in ((False, 2), (True, 1)):
        program = tensorc.define(text, backend="sim", element_aligned=element_aligned)
        assert (program.f(x) == x.sum(1)).all()
        assert program.statistics["compiled"] == compiled
    assert (tensorc.compile(text, inputs=[x], backend="sim", element_aligned=True)(x) == x.sum(1)).all()
    assert "float4" in tensorc.emit(text, "cuda", sizes=sizes)
    assert "float4" not in tensorc.emit(text, "cuda", sizes=sizes, element_aligned=True)


def test_programs_list_their_defs():
    program = tensorc.define(MATMUL + "\ndef copy(float(N) x) -> (y) { y(i) = x(i) }")
    assert list(program) == ["matmul", "copy"] and len(program) == 2 and "copy" in dir(program)
    assert program["copy"] is program.copy
    with pytest.raises(AttributeError, match="the text has no def 'sort'; there are matmul, copy"):
        program.sort


@pytest.mark.parametrize("wrong", [dict(sizes={"M": 2.5}), dict(sizes={"M": "2"}), dict(sizes={1: 2}), dict(entry=1),
                                   dict(device="cuda:0"), dict(options=tensorc.MappingOptions()), dict(backend=1),
                                   dict(mapping=tensorc.CpuOptions()), dict(element_aligned="no"), dict(scalars={1: 2})])
def test_arguments_of_another_type_are_named(wrong):
    for function in (tensorc.compile, tensorc.tune):
        with pytest.raises(TypeError, match=f"'{next(iter(wrong))}' (cannot be|takes a) "):
            function(MATMUL, **wrong)


def test_arguments_of_define_of_another_type_are_named():
    for wrong in (dict(source=5), dict(name=5), dict(options=tensorc.MappingOptions()), dict(options={}),
                  dict(mapping=tensorc.CpuOptions()), dict(mapping=()), dict(element_aligned=1)):
        (name, ) = wrong
        with pytest.raises(TypeError, match=f"'{name}' takes a "):
            tensorc.define(**dict(dict(source=MATMUL), **wrong))
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        tensorc.check("def \udc80")
    with pytest.raises(TypeError, match="'stage' takes a str, not 1"):
        tensorc.emit(MATMUL, 1)
    with pytest.raises(KeyError, match="the text has no def 'sort'; there are matmul"):
        tensorc.define(MATMUL)["sort"]


def chain(statements):
    """Statements that use each other's results; the more, the longer their scheduling."""
    return "def slow(float(N,N) x0) -> (y) {\n" + "".join(
        f"  x{i + 1}(i,j) +=! x{i}(i,k) * x{i}(k,j)\n" for i in range(statements)) + f"  y(i,j) = x{statements}(i,j)\n}}"


SLOW = chain(100)  # seconds: Ctrl-C comes after half of one
INTERRUPTED = """
import os, signal, sys, threading
import numpy as np
import tensorc
# Who runs the tests in the background may have told processes to ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
{prepare}
try:
    threading.Timer({after}, os.kill, (os.getpid(), signal.SIGINT)).start()
    {call}
    print("was not interrupted")
except KeyboardInterrupt:
    print("interrupted", {ended})
"""


def interrupted(prepare, call, ended, after=0.5):
    """Whether what was called had come to its end (`ended`, an expression) when Ctrl-C was raised, in a process of its
    own."""
    program = INTERRUPTED.format(prepare=prepare, call=call, ended=ended, after=after)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.stdout in ("interrupted True\n", "interrupted False\n"), done.stdout + done.stderr
    return done.stdout == "interrupted True\n"


@pytest.mark.parametrize("call", ["program.slow(x)", "program.slow.compile(x)", "engine.compile(dict(inputs=[x]))"])
def test_ctrl_c_ends_a_compilation(call):
    prepare = f"program = tensorc.define({SLOW!r}); engine = program._engine; x = np.ones((64, 64), 'float32')"
    assert not interrupted(prepare, call, "engine.statistics()['compiled'] > 0")


def test_ctrl_c_ends_the_check_of_a_schedule():
    """The interpreter alone takes longer than that."""
    prepare = ("import time; begin = time.monotonic(); s = tensorc.Schedule('def mm(float(M,K) A, float(K,N) B) -> (C) "
               "{ C(i,j) +=! A(i,k) * B(k,j) }', sizes=dict(M=800, N=800, K=800))")
    assert not interrupted(prepare, "s.check()", "time.monotonic() - begin > 10", after=1)


def test_ctrl_c_is_raised_by_an_emission():
    prepare = f"text = {SLOW!r}; emitted = []"
    assert not interrupted(prepare, "emitted.append(tensorc.emit(text, 'object', sizes={'N': 64}))", "bool(emitted)")


class Interrupted(Exception):
    pass


def test_an_interrupted_compilation_may_be_begun_again():
    program = tensorc.define(chain(40))
    x = np.zeros((8, 8), "float32")

    def interrupt():
        while program.slow.kernels == 0:  # until it is being compiled
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGALRM)

    def interrupted(*_):
        raise Interrupted

    handler = signal.signal(signal.SIGALRM, interrupted)
    thread = threading.Thread(target=interrupt)
    try:
        with pytest.raises(Interrupted):
            thread.start()
            program.slow(x)
    finally:
        thread.join()
        signal.signal(signal.SIGALRM, handler)
    assert program.slow.kernels == 0 and program.statistics["compiled"] == 0
    assert (program.slow(x) == 0).all() and program.slow.kernels == 1


def test_who_waits_for_a_compilation_may_be_interrupted():
    """It stays that of the thread which compiles, and serves those who still wait."""
    program = tensorc.define(chain(40))
    x, results = np.zeros((8, 8), "float32"), []
    others = [threading.Thread(target=lambda: results.append(program.slow(x))) for _ in range(3)]

    def interrupted(*_):
        raise Interrupted

    handler = signal.signal(signal.SIGALRM, interrupted)
    try:
        for thread in others:
            thread.start()
        while program.slow.kernels == 0:
            time.sleep(0.001)
        with pytest.raises(Interrupted):
            threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGALRM)).start()
            program.slow(x)
            time.sleep(60)  # a machine that is too fast
        assert program.slow.kernels == 1
    finally:
        for thread in others:
            thread.join()
        signal.signal(signal.SIGALRM, handler)
    assert len(results) == 3 and program.slow.kernels == 1 and program.statistics["compiled"] == 1


def test_threads_share_a_compilation():
    program = tensorc.define(MATMUL)
    function = program.matmul
    A, B = np.ones((8, 10), "float32"), np.ones((10, 9), "float32")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all((C == 10).all() for C in pool.map(lambda _: function(A, B), range(8)))
        assert function.kernels == 1 and program.statistics["compiled"] == 1
        refused = pool.map(lambda _: pytest.raises(tensorc.Error, function, A, A).match("dimension 0 of 'B' is 8"), range(4))
        assert all(refused)
    assert function.kernels == 1


def test_values_are_pickled_and_hashed():
    spec = tensorc.TensorSpec("float32", [2, 3])
    scheduler = tensorc.SchedulerOptions(fusion=tensorc.Fusion.MIN)
    for value in (spec, scheduler, tensorc.MappingOptions(outer_schedule_options=scheduler, tile=[4]),
                  tensorc.Cache("kernels.db", production=True)):
        copy = pickle.loads(pickle.dumps(value))
        assert copy == value and hash(copy) == hash(value) and repr(copy) == repr(value)
    assert len({spec, tensorc.TensorSpec("float32", (2, 3))}) == 1


def test_programs_are_pickled(tmp_path):
    program = tensorc.define(MATMUL, name="mm.tc", options=tensorc.CpuOptions(strict=True), cache=tmp_path / "c.db")
    copy = pickle.loads(pickle.dumps(program))
    A, B = np.ones((8, 10), "float32"), np.ones((10, 9), "float32")
    assert (program.matmul(A, B) == 10).all() and (copy.matmul(A, B) == 10).all()
    assert copy.statistics["file_hits"] == 1, "the options and the cache come along"
