#include "tc/tile/promise.h"

#include <gtest/gtest.h>

#include <numeric>

#include "kernels.h"
#include "tc/tile/print.h"
#include "tc/tile/promise_faults.h"
#include "tc/tile/verify.h"

namespace tc::tile {
namespace {

using namespace build;
using Halide::Int;
using Sentences = std::vector<std::string>;

Layout line() { return Layout::row_major({64}); }
Tensor input(const std::string& name) { return global(name, Int(32), line()); }
Tensor output(const std::string& name) { return global(name, Int(32), line(), true); }

Kernel kernel_of(const std::string& name, std::vector<Tensor> tensors, NodePtr body) {
  Kernel kernel;
  kernel.name = name;
  kernel.block = {64, 1, 1};
  kernel.tensors = std::move(tensors);
  kernel.body = std::move(body);
  return kernel;
}

Program program_of(std::vector<Kernel> kernels) {
  Program program;
  program.name = "p";
  program.kernels = std::move(kernels);
  return program;
}

/// "x: read_only restricted, y: restricted" of a kernel.
std::string promises(const Kernel& kernel) {
  std::string text;
  for (const Tensor& tensor : kernel.tensors) {
    text += (text.empty() ? "" : ", ") + tensor.name + ":";
    if (tensor.read_only) text += " read_only";
    if (tensor.restricted) text += " restricted";
  }
  return text;
}

std::string promises(std::vector<Tensor> tensors, NodePtr body) {
  const Program made = promise(program_of({kernel_of("k", std::move(tensors), std::move(body))}));
  EXPECT_EQ(promise_faults(made), Sentences{});
  return promises(made.kernels[0]);
}

const Halide::Expr kHere = thread_x(), kThere = 63 - thread_x();

TEST(Promise, AWrittenTensorThatIsNotLoadedLeavesInputsRestricted) {
  const Tensor x = input("x"), y = output("y");
  EXPECT_EQ(promises({x, y}, store(y, {kHere}, read(x, {kThere}))), "x: read_only restricted, y: restricted");
}

Halide::Expr choice(const Halide::Expr& a, const Halide::Expr& b) {
  return Halide::Internal::Call::make(a.type(), Halide::Internal::Call::if_then_else, {thread_x() < 7, a, b},
                                      Halide::Internal::Call::PureIntrinsic);
}

/// A load of y may be merged with one of x, which is then one through the read-only path of either.
TEST(Promise, AWrittenTensorThatIsLoadedIsMixedWithNone) {
  const Tensor x = input("x"), y = output("y"), z = output("z");
  const auto here = [](const Tensor& tensor) { return read(tensor, {kHere}); };
  EXPECT_EQ(promises({x, y}, store(y, {kHere}, choice(here(x), here(y)))), "x: read_only, y: restricted");
  EXPECT_EQ(promises({x, y}, store(y, {kHere}, choice(here(y), 1) + here(x))), "x: read_only, y: restricted");
  EXPECT_EQ(promises({x, y, z}, store(y, {kHere}, choice(here(z), here(y)))), "x: read_only restricted, y:, z:");
  const NodePtr put = store(y, {kHere}, here(x)), change = store(y, {kHere}, here(y) + 1);
  EXPECT_EQ(promises({x, y}, if_then(kHere < 7, put, change)), "x: read_only, y: restricted");
  EXPECT_EQ(promises({x, y}, sequence({if_then(kHere < 7, put), if_then(kHere > 9, change)})),
            "x: read_only, y: restricted");
  EXPECT_EQ(promises({x, y}, if_then(kHere < 7, put, atomic(y, {kHere}, Atomic::Op::kAdd, 1))),
            "x: read_only, y: restricted");
}

/// Where both loads run, or have different widths, they stay two.
TEST(Promise, LoadsThatCannotBeMergedStayRestricted) {
  const Tensor x = input("x"), y = output("y"), wide = global("wide", Int(64), line());
  const Halide::Expr sum = read(x, {kHere}) + read(y, {kHere});
  EXPECT_EQ(promises({x, y}, store(y, {kHere}, sum)), "x: read_only restricted, y: restricted");
  EXPECT_EQ(promises({x, y}, if_then(kHere < 7, for_loop("i", 0, kHere, store(y, {kHere}, sum)))),
            "x: read_only restricted, y: restricted");
  EXPECT_EQ(promises({wide, y}, store(y, {kHere}, choice(Halide::cast<int>(read(wide, {kHere})), read(y, {kHere})))),
            "wide: read_only restricted, y: restricted");
}

TEST(Promise, WhatThreadsPassOnIsNotRestricted) {
  const Tensor x = input("x"), y = output("y"), z = output("z");
  const NodePtr body = sequence({store(y, {kHere}, read(x, {kHere})), barrier(), store(z, {kHere}, read(y, {kThere}))});
  EXPECT_EQ(promises({x, y, z}, body), "x: read_only restricted, y:, z: restricted");
}

TEST(Promise, WithoutTheReadOnlyCacheThereIsNone) {
  const Tensor x = input("x"), y = output("y");
  const Program made =
      promise(program_of({kernel_of("k", {x, y}, store(y, {kHere}, read(x, {kHere})))}), {.readonly_cache = false});
  EXPECT_EQ(promises(made.kernels[0]), "x:, y:");
}

/// y = x, then z = y reversed; `body` of the second kernel.
Program two_kernels(const NodePtr& body) {
  const Tensor x = input("x"), y = output("y"), y_read = input("y"), z = output("z");
  return program_of(
      {kernel_of("first", {x, y}, store(y, {kHere}, read(x, {kHere}))), kernel_of("second", {x, y_read, z}, body)});
}

TEST(Promise, AKernelWaitsBeforeItTouchesWhatThoseBeforeTouch) {
  const Tensor x = input("x"), y = input("y"), z = output("z");
  const Program made = promise(two_kernels(sequence(
      {store(z, {kHere}, read(x, {kHere})), for_loop("i", 0, thread_x(), store(z, {kHere}, read(y, {var("i")})))})));
  EXPECT_EQ(promise_faults(made), Sentences{});
  EXPECT_EQ(promises(made.kernels[1]), "x: read_only, y:, z: restricted");
  EXPECT_EQ(to_text(made.kernels[1]),
            "kernel second grid (1,1,1) block (64,1,1)\n"
            "  global int32 x (64):(1) read_only\n"
            "  global int32 y (64):(1)\n"
            "  global int32 z (64):(1) written restricted\n"
            "  z(thread_x) = x(thread_x)\n"
            "  wait for kernels before\n"
            "  for i in 0:thread_x\n"
            "    z(thread_x) = y(i)\n");
  EXPECT_NE(to_text(made.kernels[0]).find("  start next kernel\n"), std::string::npos);
}

TEST(Promise, AKernelThatTouchesNothingOfThoseBeforeWaitsAtItsEnd) {
  const Tensor x = input("x"), z = output("z");
  const Program made = promise(two_kernels(store(z, {kHere}, read(x, {kHere}))));
  EXPECT_EQ(promise_faults(made), Sentences{});
  EXPECT_TRUE(to_text(made.kernels[1]).ends_with("  z(thread_x) = x(thread_x)\n  wait for kernels before\n"));
}

/// y = x reversed, by a box of x in shared memory.
Kernel copying_kernel(const std::string& name, const Tensor& x, const Tensor& y) {
  const Tensor rows = shared("rows", Int(32), line());
  const TensorMap map = {.name = x.name + "_map", .tensor = x.name, .extents = {64}, .strides = {1}, .box = {64}};
  const NodePtr reads = sequence({await("ring", 0), store(y, {kHere}, read(rows, {kThere}))});
  const NodePtr copies =
      sequence({acquire("ring", 0), box_copy(map, {0}, rows, {0}, "ring", 0), commit("ring", 0, 256)});
  const NodePtr roles = if_then(thread_x() < 64, reads, if_then(thread_x() == 64, copies));
  Kernel kernel = kernel_of(name, {x, y}, allocate(rows, ring("ring", 1, 2, roles)));
  kernel.block = {96, 1, 1};
  kernel.maps = {map};
  return kernel;
}

/// y = x reversed, then z = y reversed.
Program two_copies() {
  return program_of(
      {copying_kernel("first", input("x"), output("y")), copying_kernel("second", input("y"), output("z"))});
}

TEST(Promise, AFirstKernelThatReadsBoxesStartsEarly) {
  const Program made = promise(program_of({copying_kernel("k", input("x"), output("y"))}), {.processors = 2});
  EXPECT_EQ(promise_faults(made), Sentences{});
  EXPECT_TRUE(verify(made).holds());
  EXPECT_EQ(promises(made.kernels[0]), "x:, y:");
  const std::string text = to_text(made.kernels[0]);
  const auto at = [&](const char* line) { return text.find(line); };
  EXPECT_LT(at("wait for kernels before"), at("start next kernel")) << text;
  EXPECT_LT(at("wait for kernels before"), at("acquire")) << text;
  const Program late = promise(program_of({copying_kernel("k", input("x"), output("y"))}));
  EXPECT_EQ(to_text(late.kernels[0]).find("kernel before"), std::string::npos);
}

TEST(Promise, AFirstKernelOfTwoLetsTheSecondOneStartBehindItsWait) {
  const Program made = promise(two_copies(), {.processors = 2});
  EXPECT_EQ(promise_faults(made), Sentences{});
  const std::string first = to_text(made.kernels[0]), second = to_text(made.kernels[1]);
  EXPECT_NE(first.find("  wait for kernels before\n"), std::string::npos);
  EXPECT_LT(first.find("wait for kernels before"), first.find("start next kernel")) << first;
  EXPECT_LT(second.find("wait for kernels before"), second.find("start next kernel")) << second;
}

TEST(Promise, AKernelThatLeavesFewProcessorsIdleOrMostOfThemLetsTheNextOneStart) {
  const auto starts = [](int64_t blocks) {
    Program program = program_of({copying_kernel("k", input("x"), output("y"))});
    program.kernels[0].grid = {blocks, 1, 1};
    const Program made = promise(program, {.processors = 132});
    EXPECT_NE(to_text(made.kernels[0]).find("wait for kernels before"), std::string::npos);
    return to_text(made.kernels[0]).find("start next kernel") != std::string::npos;
  };
  EXPECT_TRUE(starts(66));
  EXPECT_FALSE(starts(67));
  EXPECT_FALSE(starts(113));
  EXPECT_TRUE(starts(114));
  EXPECT_TRUE(starts(1000));
}

/// Blocks of 64 steps or more that all run at once keep the places in which they come, unless they are in clusters.
TEST(Promise, AKernelOfManyStepsLetsTheNextOneStartAtItsEnd) {
  const auto starts = [](int steps, int64_t blocks, int64_t cluster) {
    Program program = program_of({copying_kernel("k", input("x"), output("y"))});
    Kernel& kernel = program.kernels[0];
    kernel.grid = {blocks, 1, 1};
    kernel.cluster = {cluster, 1, 1};
    kernel.body = for_loop("step", 0, steps, kernel.body);
    const Program made = promise(program, {.processors = 132});
    EXPECT_NE(to_text(made.kernels[0]).find("wait for kernels before"), std::string::npos);
    return to_text(made.kernels[0]).find("start next kernel") != std::string::npos;
  };
  EXPECT_TRUE(starts(63, 128, 1));
  EXPECT_FALSE(starts(64, 128, 1));
  EXPECT_TRUE(starts(64, 128, 2));
  EXPECT_TRUE(starts(64, 133, 1));
}

/// The compiler may move loads of a tensor that is promised to be read only to before the wait.
TEST(Promise, AFirstKernelThatLoadsByOrdinaryInstructionsDoesNotStartEarly) {
  const Tensor x = input("x"), y = output("y");
  const Program made =
      promise(program_of({kernel_of("k", {x, y}, store(y, {kHere}, read(x, {kThere})))}), {.processors = 2});
  EXPECT_EQ(promise_faults(made), Sentences{});
  EXPECT_EQ(promises(made.kernels[0]), "x: read_only restricted, y: restricted");
  const std::string text = to_text(made.kernels[0]);
  EXPECT_EQ(text.find("wait for kernels before"), std::string::npos) << text;
  EXPECT_EQ(text.find("start next kernel"), std::string::npos) << text;
}

// --- what is promised and does not hold ---------------------------------------------------------------------------

TEST(PromiseFaults, AFirstKernelThatWaitsTouchesNothingBefore) {
  Program early = promise(program_of({copying_kernel("k", input("x"), output("y"))}), {.processors = 2});
  Kernel& kernel = early.kernels[0];
  const NodePtr body = kernel.body;
  kernel.body = sequence({store(output("y"), {thread_x() % 64}, 0), body});
  EXPECT_EQ(promise_faults(early),
            Sentences{"k: 'y(thread_x % 64) = 0' writes 'y' before it has waited for the kernels "
                      "before, which write it"});
  kernel.body = body;
  kernel.tensors[0].read_only = true;
  EXPECT_EQ(promise_faults(early),
            Sentences{"k: 'x' is promised to be read only, but a kernel before writes it, and may still run"});
}

TEST(PromiseFaults, AFirstKernelLetsTheSecondOneStartBehindItsWait) {
  Program early = promise(two_copies(), {.processors = 2});
  early.kernels[0].body = sequence({start_next_kernel(), early.kernels[0].body});
  EXPECT_EQ(promise_faults(early),
            Sentences{"first: it lets the next kernel start before it has waited for those before it"});
  early = promise(two_copies(), {.processors = 2});
  early.kernels[1].body = sequence({start_next_kernel(), early.kernels[1].body});
  EXPECT_EQ(promise_faults(early),
            Sentences{"second: it lets the next kernel start before it has waited for those before it"});
}

TEST(PromiseFaults, AReadOnlyTensorIsWrittenByNobody) {
  Tensor y = output("y");
  y.read_only = true;
  EXPECT_EQ(promise_faults(program_of({kernel_of("k", {y}, store(y, {kHere}, 1))})),
            Sentences{"k: 'y' is promised to be read only, but the kernel writes it"});
  Program two = promise(two_kernels(store(output("z"), {kHere}, read(input("y"), {kThere}))));
  two.kernels[1].tensors[1].read_only = true;
  EXPECT_EQ(promise_faults(two),
            Sentences{"second: 'y' is promised to be read only, but a kernel before writes it, and may still run"});
}

/// The program that was wrong on a GPU: a choice of an input and a written tensor, both restricted.
TEST(PromiseFaults, LoadsOfARestrictedTensorAreNotMerged) {
  Tensor x = input("x"), y = output("y");
  x.read_only = x.restricted = true;
  const NodePtr body = store(y, {kHere}, choice(read(x, {kHere}), read(y, {kHere})));
  EXPECT_EQ(promise_faults(program_of({kernel_of("k", {x, y}, body)})),
            Sentences{"k: 'x' is promised to be restricted, but its loads may be merged with those of 'y'"});
}

TEST(PromiseFaults, ARestrictedTensorIsNotExchanged) {
  Tensor y = output("y");
  const Tensor z = output("z");
  y.restricted = true;
  const auto faults = [&](const NodePtr& body) { return promise_faults(program_of({kernel_of("k", {y, z}, body)})); };
  const NodePtr write = store(y, {kHere}, 1);
  EXPECT_EQ(faults(sequence({write, store(z, {kHere}, 0), barrier()})), Sentences{});
  EXPECT_EQ(faults(sequence({write, barrier(), store(y, {kThere}, 2)})),
            Sentences{"k: 'y' is promised to be restricted, but 'y(63 - thread_x) = 2' may see or replace what another "
                      "thread's 'y(thread_x) = 1' wrote before a barrier"});
  EXPECT_EQ(faults(for_loop("i", 0, 3, sequence({write, barrier()}))).size(), 1u);
}

TEST(PromiseFaults, EveryThreadWaitsBeforeItsFirstTouchAndBeforeItsEnd) {
  const Tensor x = input("x"), y = input("y"), z = output("z");
  const NodePtr reads = store(z, {kHere}, read(y, {kThere}));
  EXPECT_EQ(promise_faults(two_kernels(sequence({wait_for_kernels(), reads}))), Sentences{});
  EXPECT_EQ(promise_faults(two_kernels(sequence({reads, wait_for_kernels()}))),
            Sentences{"second: 'z(thread_x) = y(63 - thread_x)' reads 'y' before it has waited for the kernels before, "
                      "which write it"});
  EXPECT_EQ(promise_faults(two_kernels(if_then(thread_x() < 32, wait_for_kernels()))),
            Sentences{"second: some thread ends without having waited for the kernels before"});
  EXPECT_FALSE(verify(two_kernels(sequence({reads, wait_for_kernels()}))).holds());
}

// --- what the simulator finds of it -------------------------------------------------------------------------------

Sentences found(const Program& program) {
  std::vector<int32_t> x(64, 1), y(64), z(64);
  Arguments arguments;
  arguments.tensors["x"] = std::as_writable_bytes(std::span(x));
  arguments.tensors["y"] = std::as_writable_bytes(std::span(y));
  arguments.tensors["z"] = std::as_writable_bytes(std::span(z));
  const Result<Report> report = simulate(program, arguments);
  if (!report) return {report.error().to_string()};
  Sentences result;
  for (const Finding& finding : report->findings) result.push_back(finding.sentence);
  return result;
}

TEST(SimulatedPromises, WhatIsTouchedTooEarlyIsFound) {
  const NodePtr reads = store(output("z"), {kHere}, read(input("y"), {kThere}));
  EXPECT_EQ(found(promise(two_kernels(reads))), Sentences{});
  const Sentences early = found(two_kernels(sequence({reads, wait_for_kernels()})));
  ASSERT_EQ(early.size(), 1u);
  EXPECT_EQ(early[0],
            "second: thread (0,0,0) of block (0,0,0) reads y(63) in 'z(thread_x) = y(63 - thread_x)' before it has "
            "waited for the kernels before, which write it");
  const Sentences never = found(two_kernels(sequence({if_then(thread_x() < 32, wait_for_kernels())})));
  ASSERT_EQ(never.size(), 1u);
  EXPECT_EQ(never[0], "second: thread (32,0,0) of block (0,0,0) ends without having waited for the kernels before");
}

TEST(SimulatedPromises, WhatAFirstKernelTouchesTooEarlyIsFound) {
  const Program made = promise(two_copies(), {.processors = 2});
  EXPECT_EQ(found(made), Sentences{});
  Program early = made;
  early.kernels[0].body = sequence({store(output("y"), {thread_x() % 64}, 0), barrier(), made.kernels[0].body});
  const Sentences sentences = found(early);
  ASSERT_FALSE(sentences.empty());
  EXPECT_EQ(sentences[0],
            "first: thread (0,0,0) of block (0,0,0) writes y(0) in 'y(thread_x % 64) = 0' before it has waited for the "
            "kernels before, which write it");
}

TEST(SimulatedPromises, AWrittenBufferOverlapsNoOther) {
  std::vector<int32_t> x(100);
  Arguments arguments;
  arguments.tensors["x"] = std::as_writable_bytes(std::span(x)).first(256);
  arguments.tensors["y"] = std::as_writable_bytes(std::span(x)).subspan(144);
  const Tensor in = input("x"), out = output("y");
  const Result<Report> report =
      simulate(program_of({kernel_of("k", {in, out}, store(out, {kHere}, read(in, {kHere})))}), arguments);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().to_string(), "error: the buffer of 'y', which is written, overlaps that of 'x'\n");
}

}  // namespace
}  // namespace tc::tile
