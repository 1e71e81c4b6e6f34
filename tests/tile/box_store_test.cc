#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <numeric>

#include "../common/tile_mutants.h"
#include "rings.h"
#include "tc/ir/program.h"
#include "tc/support/check.h"
#include "tc/tile/certificate.h"
#include "tc/tile/verify.h"

namespace tc::tile {
namespace {

using namespace build;
using Sentences = std::vector<std::string>;

/// C = A of 16-bit or 32-bit elements, through staging buffers of 64 rows of `row` bytes. Two warpgroups of a block
/// each go through the slabs of their rows.
struct StagedCopy {
  int rows = 200, columns = 192;
  Halide::Type type = Halide::UInt(16);
  int row_bytes = 128;      ///< of a slab: swizzled, but for 16
  int buffers = 2;          ///< a warpgroup's
  bool waits_first = true;  ///< for the buffer of the next slab, before the barrier of this one
  bool waits_last = true;   ///< for all, at the end
  bool fences = true;
  bool orders_wait = true;  ///< where it waits behind its store: by a barrier behind the wait

  int slab() const { return row_bytes / type.bytes(); }
};

Program program_of(const StagedCopy& shape) {
  constexpr int kGroup = 128, kRows = 64;
  const int slab = shape.slab(), slabs = shape.columns / slab;
  const Tensor a = global("A", shape.type, Layout::row_major({shape.rows, shape.columns}));
  const Tensor c = global("C", shape.type, Layout::row_major({shape.rows, shape.columns}), true);
  Tensor staged = shared("staged", shape.type, Layout::row_major({2, shape.buffers, kRows, slab}));
  const auto exponent = [](int of) {
    int result = 0;
    while (1 << (result + 1) <= of) ++result;
    return result;
  };
  const int swizzle = shape.row_bytes > 16 ? shape.row_bytes : 0;
  if (swizzle > 0) {
    staged.swizzle = Swizzle{.bits = exponent(swizzle) - 4, .base = 4 - exponent(shape.type.bytes()), .shift = 3};
  }
  const TensorMap map = {.name = "C_map",
                         .tensor = "C",
                         .extents = {shape.columns, shape.rows},
                         .strides = {1, shape.columns},
                         .box = {slab, kRows},
                         .swizzle = swizzle};
  const Expr t = thread_x(), group = t / kGroup, buffer = var("j") % shape.buffers;
  const Expr row0 = block_x() * 2 * kRows + group * kRows, column0 = var("j") * slab;
  const Expr element = var("e") * kGroup + t % kGroup, row = element / slab, column = element % slab;
  const NodePtr write =
      for_loop("e", 0, kRows * slab / kGroup,
               if_then(row0 + row < shape.rows,
                       store(staged, {group, buffer, row, column}, read(a, {row0 + row, column0 + column})),
                       store(staged, {group, buffer, row, column}, Halide::Internal::make_zero(shape.type))));
  std::vector<NodePtr> parts = {write};
  if (shape.fences) parts.push_back(fence_boxes());
  if (shape.waits_first) parts.push_back(wait_boxes_read(shape.buffers - 2));
  parts.push_back(barrier(Barrier::Scope::kWarpgroup));
  parts.push_back(if_then(t % kGroup == 0,
                          sequence({box_store(map, {column0, row0}, staged, {group, buffer, 0, 0}), commit_boxes()})));
  if (!shape.waits_first) {
    parts.push_back(wait_boxes_read(shape.buffers - 1));
    if (shape.orders_wait) parts.push_back(barrier(Barrier::Scope::kWarpgroup));
  }
  NodePtr body = for_loop("j", 0, slabs, sequence(parts));
  if (shape.waits_last) body = sequence({body, wait_boxes_read(0)});
  Kernel kernel;
  kernel.name = "staged_copy";
  kernel.grid = {(shape.rows + 2 * kRows - 1) / (2 * kRows), 1, 1};
  kernel.block = {2 * kGroup, 1, 1};
  kernel.tensors = {a, c};
  kernel.maps = {map};
  kernel.body = allocate(staged, body);
  Program program;
  program.name = kernel.name;
  program.kernels = {kernel};
  return program;
}

/// What the simulator has to say, for some seeds.
std::string complaint_of(const StagedCopy& shape, const Program& program, int seeds = 4) {
  const auto count = static_cast<size_t>(shape.rows * shape.columns * shape.type.bytes());
  std::vector<std::byte> input(count), output(count);
  for (size_t i = 0; i < count; ++i) input[i] = static_cast<std::byte>(i * 37 % 251);
  for (int seed = 1; seed <= seeds; ++seed) {
    Arguments arguments;
    arguments.tensors["A"] = input;
    arguments.tensors["C"] = output;
    arguments.undefined.insert("C");
    const Result<Report> report = simulate(program, arguments, {.seed = static_cast<uint64_t>(seed)});
    TC_CHECK(report.has_value(), "{}", report.error().to_string());
    if (!report->findings.empty()) return report->findings[0].sentence;
    if (input != output) return "wrong results";
  }
  return "";
}

std::vector<StagedCopy> shapes() {
  std::vector<StagedCopy> result;
  for (const int row_bytes : {16, 32, 64, 128}) {
    for (const Halide::Type type : {Halide::UInt(16), Halide::Float(32)}) {
      result.push_back({.columns = 128, .type = type, .row_bytes = row_bytes});
    }
  }
  result.push_back({.columns = 320, .buffers = 3});
  result.push_back({.columns = 320, .buffers = 4});
  result.push_back({.buffers = 1, .waits_first = false});
  result.push_back({.columns = 320, .buffers = 2, .waits_first = false});
  return result;
}

TEST(BoxStores, StagedResultsAreRightAndProved) {
  for (const StagedCopy& shape : shapes()) {
    const std::string what = fmt::format("{} bytes, {} buffers", shape.row_bytes, shape.buffers);
    const Program program = program_of(shape);
    EXPECT_EQ(complaint_of(shape, program), "") << what;
    const Verification verified = verify(program);
    EXPECT_EQ(verified.faults, Sentences{}) << what;
    EXPECT_EQ(verified.unproved, Sentences{}) << what;
    const Certificate certificate = certify(program.kernels[0]);
    EXPECT_EQ(certificate.races, Sentences{}) << what;
    EXPECT_EQ(certificate.unproved, Sentences{}) << what;
  }
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "expected: " << part << "\ngot: " << text;
}

/// The three mistakes of hand-written kernels, and their mended forms.
TEST(BoxStores, AKernelWithoutAFenceIsRefused) {
  StagedCopy shape = {.fences = false};
  expect_part(complaint_of(shape, program_of(shape)), "has no fence for box stores behind it");
  expect_part(refusal_of(program_of(shape)), "with no fence for box stores behind it");
  shape.fences = true;
  EXPECT_EQ(complaint_of(shape, program_of(shape)), "");
  EXPECT_EQ(refusal_of(program_of(shape)), "");
}

TEST(BoxStores, ABufferOverwrittenAfterOneThreadHasWaitedIsRefused) {
  StagedCopy shape = {.buffers = 1, .waits_first = false, .orders_wait = false};
  EXPECT_NE(complaint_of(shape, program_of(shape)), "");
  expect_part(refusal_of(program_of(shape)), "may not have read 'staged' when");
  shape.orders_wait = true;
  EXPECT_EQ(complaint_of(shape, program_of(shape)), "");
  EXPECT_EQ(refusal_of(program_of(shape)), "");
}

TEST(BoxStores, AKernelThatEndsBeforeItsLastStoreIsReadIsRefused) {
  for (const bool waits_first : {false, true}) {
    StagedCopy shape = {.waits_first = waits_first, .waits_last = false};
    expect_part(complaint_of(shape, program_of(shape)), "which may not have read yet");
    expect_part(refusal_of(program_of(shape)), "a block may end before");
    shape.waits_last = true;
    EXPECT_EQ(complaint_of(shape, program_of(shape)), "");
    EXPECT_EQ(refusal_of(program_of(shape)), "");
  }
}

TEST(BoxStores, MutantsAreCaught) {
  for (const StagedCopy& shape :
       {StagedCopy{.columns = 320}, StagedCopy{.columns = 320, .buffers = 3},
        StagedCopy{.columns = 320, .buffers = 1, .waits_first = false, .waits_last = false}}) {
    const Program program = program_of(shape);
    std::vector<Mutant> all = mutants(program);
    for (Mutant& mutant : mutants_of_operations(program)) all.push_back(std::move(mutant));
    for (const Mutant& mutant : all) {
      EXPECT_NE(complaint_of(shape, mutant.program), "") << mutant.what;
      const bool is_order = mutant.what.find("box of") == std::string::npos;
      if (is_order) EXPECT_NE(refusal_of(mutant.program), "") << mutant.what;
    }
  }
}

template <typename Kind, typename Change>
std::string fault_of(Change change) {
  Program program = program_of({});
  change_node<Kind>(program, [&](Kind& n) {
    change(n);
    return true;
  });
  const Verification result = verify(program);
  return result.faults.empty() ? "" : result.faults[0];
}
std::string fault_of_map(const std::function<void(TensorMap&)>& change) {
  Program program = program_of({});
  change(program.kernels[0].maps[0]);
  const Verification result = verify(program);
  return result.faults.empty() ? "" : result.faults[0];
}

TEST(BoxStores, Structure) {
  const auto box = [](auto change) { return fault_of<BoxStore>(change); };
  expect_part(box([](BoxStore& n) { n.map = "no"; }), "'no' in");
  expect_part(box([](BoxStore& n) { n.tensor = "A"; }), "but is not marked as written");
  expect_part(box([](BoxStore& n) { n.coordinates.pop_back(); }), "has 2 dimensions but 1 subscripts");
  expect_part(box([](BoxStore& n) { n.coordinates[0] = n.coordinates[0] + 4; }), "the first coordinate");
  expect_part(box([](BoxStore& n) { n.source_subscripts[2] = 8; }), "does not lie like 'staged'");
  expect_part(box([](BoxStore& n) { n.source_subscripts[1] = var("j"); }), "leaves [0, 2)");
  expect_part(box([](BoxStore& n) { n.source_extents = {1, 2, 64, 64}; }), "does not lie like 'staged'");
  expect_part(box([](BoxStore& n) { n.box[1] = 32; }), "has not the dimensions of its map's box");
  expect_part(fault_of_map([](TensorMap& m) { m.swizzle = 0; }), "does not lie like 'staged'");
  expect_part(fault_of_map([](TensorMap& m) { m.extents[1] = 100; }), "stores to a map that is not all of 'C'");
  expect_part(fault_of<BoxStep>([](BoxStep& n) { n.pending = 1; }), "leaves 1 groups");
  expect_part(fault_of<BoxStep>([](BoxStep& n) { n = {BoxStep::Kind::kWait, -1}; }), "leaves -1 groups");
  expect_part(fault_of<Barrier>([](Barrier&) {}), "");
}

/// A GPU clips rows at 16 bytes. In a view of a larger matrix, those behind the view's are somebody else's.
TEST(BoxStores, RowsThatEndWithinSixteenBytesAreRefused) {
  const StagedCopy shape;
  for (const int columns : {188, 184}) {
    Program program = program_of(shape);
    program.kernels[0].tensors[1].layout = Layout({shape.rows, columns}, {shape.columns, 1});
    program.kernels[0].maps[0].extents[0] = columns;
    const Verification verified = verify(program);
    std::vector<uint16_t> input(static_cast<size_t>(shape.rows * shape.columns)), output(input.size(), 7);
    std::iota(input.begin(), input.end(), uint16_t{100});
    Arguments arguments;
    arguments.tensors["A"] = std::as_writable_bytes(std::span(input));
    arguments.tensors["C"] = std::as_writable_bytes(std::span(output));
    const Result<Report> report = simulate(program, arguments);
    ASSERT_TRUE(report) << report.error().to_string();
    const auto row = static_cast<size_t>(shape.columns), end = static_cast<size_t>(columns);
    for (size_t r = 0; r < 2; ++r) {
      EXPECT_EQ(output[r * row + end - 1], input[r * row + end - 1]);
      EXPECT_EQ(output[r * row + end], columns == 188 ? input[r * row + end] : 7);
    }
    if (columns == 184) EXPECT_EQ(verified.faults, Sentences{});
    if (columns == 188) expect_part(verified.faults.at(0), "stores rows of 376 bytes, which end within 16 that are");
  }
}

/// Box stores begin behind the wait for earlier kernels, and what they write is waited for as well.
TEST(BoxStores, WritesAreLate) {
  const StagedCopy shape = {.columns = 64};
  const auto then_reads = [&](const NodePtr& wait) {
    Program program = program_of(shape);
    Kernel& kernel = program.kernels[0];
    const Tensor& c = kernel.tensors[1];
    const Tensor value = registers("value", shape.type, Layout::row_major({1}));
    const Expr row = block_x() * 128 + thread_x() / 128 * 64;
    const NodePtr reads =
        if_then(thread_x() % 128 == 0 && row < shape.rows, allocate(value, store(value, {0}, read(c, {row, 0}))));
    kernel.body = map_children(kernel.body, [&](const NodePtr& body) { return sequence({body, wait, reads}); });
    return program;
  };
  EXPECT_EQ(complaint_of(shape, then_reads(wait_boxes(0))), "");
  EXPECT_EQ(refusal_of(then_reads(wait_boxes(0))), "");
  EXPECT_NE(complaint_of(shape, then_reads(sequence({}))), "");
  EXPECT_NE(refusal_of(then_reads(sequence({}))), "");
}

/// A barrier of a warpgroup orders its threads, and no others.
TEST(BoxStores, BarriersOfWarpgroups) {
  const auto exchange = [](int apart) {
    const Tensor values = shared("values", Halide::Int(32), Layout::row_major({256}));
    const Tensor out = global("C", Halide::Int(32), Layout::row_major({256}), true);
    const Expr t = thread_x();
    Kernel kernel;
    kernel.name = "exchange";
    kernel.block = {256, 1, 1};
    kernel.tensors = {out};
    kernel.body = allocate(values, sequence({store(values, {t}, t), barrier(Barrier::Scope::kWarpgroup),
                                             store(out, {t}, read(values, {(t + apart) % 256}))}));
    Program program;
    program.name = kernel.name;
    program.kernels = {kernel};
    return program;
  };
  const auto complaint = [](const Program& program) -> std::string {
    std::vector<int32_t> output(256);
    Arguments arguments;
    arguments.tensors["C"] = std::as_writable_bytes(std::span(output));
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const Result<Report> report = simulate(program, arguments, {.seed = seed});
      TC_CHECK(report.has_value(), "{}", report.error().to_string());
      if (!report->findings.empty()) return report->findings[0].sentence;
    }
    return "";
  };
  Program within = exchange(0);
  change_node<Store>(within, [](Store& n) {
    if (n.tensor != "C") return false;
    n.value =
        Halide::Internal::Call::make(Halide::Int(32), "values", {thread_x() / 128 * 128 + (thread_x() + 64) % 128},
                                     Halide::Internal::Call::PureExtern);
    return true;
  });
  EXPECT_EQ(complaint(within), "");
  EXPECT_EQ(refusal_of(within), "");
  EXPECT_NE(complaint(exchange(128)), "");
  EXPECT_NE(refusal_of(exchange(128)), "");
  Program part = within;
  part.kernels[0].body = if_then(thread_x() < 64, part.kernels[0].body);
  EXPECT_NE(refusal_of(part).find("is reached by some threads of a warpgroup only"), std::string::npos);
}

}  // namespace
}  // namespace tc::tile
