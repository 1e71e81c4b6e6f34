#include <gtest/gtest.h>

#include "../common/tile_mutants.h"
#include "rings.h"
#include "tc/tile/verify.h"

namespace tc::tile {
namespace {

using namespace build;
using Sentences = std::vector<std::string>;

TEST(Ring, ProductsOfMatricesAreRightHoweverTheyLie) {
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      for (const ScalarType operand : {ScalarType::kFloat16, ScalarType::kBFloat16}) {
        for (const int k : {192, 168, 40}) {
          const RingSample sample =
              ring_product({.k = k, .a_transposed = a_transposed, .b_transposed = b_transposed, .operand = operand});
          EXPECT_EQ(complaint(sample), "") << a_transposed << b_transposed << k;
        }
      }
    }
  }
  EXPECT_EQ(complaint(ring_product({.m = 256, .n = 256, .k = 128, .tile_n = 128})), "");
}

TEST(Ring, NeverHangs) {
  for (int stages = 1; stages <= 4; ++stages) {
    for (int turns = 1; turns <= 9; ++turns) {
      const RingSample sample = ring_product(
          {.k = 64 * turns, .stages = stages, .releases_late = stages > 1, .releases_last = turns % 2 == 0});
      for (uint64_t seed = 1; seed <= 3; ++seed) EXPECT_EQ(complaint(sample, {.seed = seed}), "") << stages << turns;
    }
  }
  EXPECT_NE(complaint(ring_product({.stages = 1})).find("never ends"), std::string::npos);
}

TEST(Ring, ProductsAreVerified) {
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      const Verification result = verify(
          ring_product({.m = 256, .n = 256, .tile_n = 128, .a_transposed = a_transposed, .b_transposed = b_transposed})
              .program);
      EXPECT_EQ(result.faults, Sentences{});
      EXPECT_EQ(result.unproved, Sentences{});
    }
  }
}

/// Changes the first node of a kind.
template <typename Kind, typename Change>
NodePtr with_changed(const NodePtr& node, Change change, bool& done) {
  if (!node || done) return node;
  if (const auto* found = std::get_if<Kind>(&node->node)) {
    Kind changed = *found;
    if (change(changed)) {
      done = true;
      return std::make_shared<const Node>(Node{changed, ""});
    }
  }
  return map_children(node, [&](const NodePtr& child) { return with_changed<Kind>(child, change, done); });
}

/// The first fault of a kernel of which one node is changed.
template <typename Kind, typename Change>
std::string fault_of(Change change) {
  Program program = ring_product({}).program;
  bool done = false;
  program.kernels[0].body = with_changed<Kind>(
      program.kernels[0].body,
      [&](Kind& n) {
        change(n);
        return true;
      },
      done);
  const Verification result = verify(program);
  return result.faults.empty() ? "" : result.faults[0];
}

template <typename Change>
std::string fault_of_kernel(Change change) {
  Program program = ring_product({}).program;
  change(program.kernels[0]);
  const Verification result = verify(program);
  return result.faults.empty() ? "" : result.faults[0];
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "expected: " << part << "\ngot: " << text;
}

TEST(Ring, StructureOfRings) {
  expect_part(fault_of<Ring>([](Ring& n) { n.stages = 0; }), "the ring 'ring' has 0 stages");
  expect_part(fault_of<Ring>([](Ring& n) { n.readers = 10; }), "is read by 10 warps, but a block has 9");
  expect_part(fault_of<Ring>([](Ring& n) { n.name = "other"; }),
              "'ring' in 'await turn t of ring' is no ring around it");
  expect_part(fault_of<RingStep>([](RingStep& n) { n.turn = 1.0F; }),
              "the turn in 'await turn 1.0 of ring' is float32");
  expect_part(fault_of<RingStep>([](RingStep& n) { n.bytes = 16; }), "has 16 bytes");
  expect_part(fault_of_kernel([](Kernel& k) { k.body = for_loop("i", 0, 2, k.body); }), "is made in a loop or branch");
  expect_part(fault_of<RingStep>([](RingStep& n) { n.turn = n.turn + thread_x() % 32; }),
              "differs between threads of a warp");
  expect_part(fault_of<If>([](If& n) { n.condition = thread_x() < 250; }), "is reached by some threads of a warp only");
}

TEST(Ring, StructureOfBoxes) {
  const auto box = [](auto change) { return fault_of<BoxCopy>(change); };
  const auto map = [](auto change) { return fault_of_kernel([&](Kernel& k) { change(k.maps[0]); }); };
  expect_part(box([](BoxCopy& n) { n.map = "no"; }), "'no' in");
  expect_part(box([](BoxCopy& n) { n.tensor = "B"; }), "is of 'A', not of 'B'");
  expect_part(box([](BoxCopy& n) { n.coordinates.pop_back(); }), "has 1 coordinates for 2 dimensions");
  expect_part(box([](BoxCopy& n) { n.coordinates[0] = n.coordinates[0] + 4; }), "the first coordinate");
  expect_part(box([](BoxCopy& n) { n.destination_subscripts[1] = 8; }), "the place in");
  expect_part(box([](BoxCopy& n) { n.destination_subscripts[0] = var("t") + 1; }), "leaves [0, 3)");
  expect_part(box([](BoxCopy& n) { n.ring = "no"; }), "'no' in");
  expect_part(map([](TensorMap& m) { m.swizzle = 0; }), "does not lie like 'A_shared'");
  expect_part(map([](TensorMap& m) { m.swizzle = 64, m.box[0] = 32; }), "does not lie like 'A_shared'");
  expect_part(map([](TensorMap& m) { m.box[0] = 32; }), "has rows of 64 bytes, but swizzles 128");
  expect_part(map([](TensorMap& m) { m.box[1] = 96; }), "does not lie like 'A_shared'");
  expect_part(fault_of_kernel([](Kernel& k) { k.tensors[0].written = true; }), "which the kernel writes");
  expect_part(fault_of<Allocate>([](Allocate& n) { n.tensor.swizzle.reset(); }), "no matrix descriptor");
}

TEST(Ring, StructureOfProducts) {
  const auto product = [](auto change) { return fault_of<WarpgroupMatMul>(change); };
  expect_part(product([](WarpgroupMatMul& n) { n.atom.n = 60; }), "has 60 columns");
  expect_part(product([](WarpgroupMatMul& n) { n.atom.n = 128; }), "is not 64 registers of float32");
  expect_part(product([](WarpgroupMatMul& n) { n.atom.operand = ScalarType::kBFloat16; }), "as bfloat16");
  expect_part(product([](WarpgroupMatMul& n) { n.a.k_dimension = 1; }), "takes dimensions 1 and 1");
  expect_part(product([](WarpgroupMatMul& n) { n.slices = 5; }), "no matrix descriptor describes");
  expect_part(product([](WarpgroupMatMul& n) { n.a.mn_dimension = 0; }), "no matrix descriptor");
  expect_part(product([](WarpgroupMatMul& n) { n.a.subscripts[1] = n.a.subscripts[1] + 8; }), "leaves [0, 128)");
  expect_part(product([](WarpgroupMatMul& n) { n.a.subscripts[1] = thread_x() / 128 * 60; }), "the tile in");
  expect_part(product([](WarpgroupMatMul& n) { n.a.subscripts[1] = thread_x() / 64 % 2 * 64; }),
              "the tile in 'sum += A_shared(t % 3, thread_x / 64 % 2 * 64, 0) * B_shared(t % 3, 0, 0) by "
              "wgmma.m64n64k16 of float16, 4 times' differs between threads of a warpgroup");
  expect_part(product([](WarpgroupMatMul& n) { n.slices = 2, n.a.subscripts[2] = 8; }), "the tile's k in");
  expect_part(fault_of<If>([](If& n) { n.condition = thread_x() < 192; }), "is reached by some threads of a warpgroup");
  expect_part(fault_of_kernel([](Kernel& k) {
                bool done = false;
                k.body = with_changed<If>(
                    k.body, [](If& n) { return n.condition = thread_x() < 288, true; }, done);
                done = false;
                k.body = with_changed<WarpgroupMatMul>(
                    k.body, [](WarpgroupMatMul& n) { return n.a.subscripts[1] = 0, true; }, done);
              }),
              "whose warpgroup is not full");
  expect_part(fault_of<MatMulWait>([](MatMulWait& n) { n.sums = {"A"}; }), "which is no register tensor");
}

/// What the simulator has to say of a program, for a few seeds.
std::string complaint_of(const RingSample& sample, const Program& program) {
  RingSample changed = sample;
  changed.program = program;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    if (std::string text = complaint(changed, {.seed = seed}); !text.empty()) return text;
  }
  return "";
}

TEST(Ring, MutantsAreCaught) {
  const RingSample sample = ring_product({.m = 128, .n = 64, .k = 64 * 5, .releases_last = false});
  std::vector<Mutant> all = mutants(sample.program);
  for (Mutant& mutant : mutants_of_operations(sample.program)) all.push_back(std::move(mutant));
  for (const Mutant& mutant : all) {
    const std::string text = complaint_of(sample, mutant.program);
    EXPECT_NE(text, "") << mutant.what;
  }
}

}  // namespace
}  // namespace tc::tile
