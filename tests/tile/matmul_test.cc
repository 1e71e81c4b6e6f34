#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "../common/tile_mutants.h"
#include "kernels.h"
#include "tc/interp/bounded.h"
#include "tc/tile/atoms.h"
#include "tc/tile/certificate.h"
#include "tc/tile/verify.h"

namespace tc::tile {
namespace {

using namespace build;
using Sentences = std::vector<std::string>;

TEST(MatMul, LayoutsOfAtomsReachEachElementOnce) {
  for (const MatMulAtom& atom : matmul_atoms()) {
    const std::vector<std::pair<Layout, int>> tiles = {
        {atom.a, atom.m * atom.k}, {atom.b, atom.k * atom.n}, {atom.d, atom.m * atom.n}};
    for (const auto& [layout, elements] : tiles) {
      std::set<int64_t> reached;
      for (int64_t thread = 0; thread < 32; ++thread) {
        for (int64_t value = 0; value < layout[1].size(); ++value) reached.insert(layout({thread, value}));
      }
      EXPECT_EQ(static_cast<int>(reached.size()), elements) << atom.name;
      EXPECT_EQ(*reached.rbegin(), elements - 1) << atom.name;
    }
  }
}

/// PTX ISA: the row and column of element a4 of thread 13, and so on.
TEST(MatMul, LayoutsAreThoseOfTheInstruction) {
  const MatMulAtom& atom = *find_matmul_atom(ScalarType::kFloat16, ScalarType::kFloat32, 90);
  EXPECT_EQ(atom.a({13, 0}), 3 + 16 * 2);
  EXPECT_EQ(atom.a({13, 3}), 11 + 16 * 3);
  EXPECT_EQ(atom.a({13, 4}), 3 + 16 * 10);
  EXPECT_EQ(atom.b({13, 1}), 3 + 16 * 3);
  EXPECT_EQ(atom.b({13, 2}), 10 + 16 * 3);
  EXPECT_EQ(atom.d({13, 1}), 3 + 16 * 3);
  EXPECT_EQ(atom.d({13, 2}), 11 + 16 * 2);
}

TEST(MatMul, LayoutsOfTf32AreThoseOfTheInstruction) {
  const MatMulAtom& atom = *find_matmul_atom(ScalarType::kFloat32, ScalarType::kFloat32, 80);
  EXPECT_EQ(atom.a({13, 0}), 3 + 16 * 1);
  EXPECT_EQ(atom.a({13, 1}), 11 + 16 * 1);
  EXPECT_EQ(atom.a({13, 2}), 3 + 16 * 5);
  EXPECT_EQ(atom.b({13, 0}), 1 + 8 * 3);
  EXPECT_EQ(atom.b({13, 1}), 5 + 8 * 3);
  EXPECT_EQ(atom.d({13, 1}), 3 + 16 * 3);
  EXPECT_EQ(atom.d({13, 2}), 11 + 16 * 2);
}

TEST(MatMul, Tf32IgnoresLowBits) {
  EXPECT_EQ(tf32_part(1 + std::ldexp(1.0F, -10)), 1 + std::ldexp(1.0F, -10));
  EXPECT_EQ(tf32_part(-1 - std::ldexp(2047.0F, -21)), -1);
  EXPECT_EQ(tf32_part(std::ldexp(1.0F, -126)), std::ldexp(1.0F, -126));
  const MatMulAtom& atom = *find_matmul_atom(ScalarType::kFloat32, ScalarType::kFloat32, 80);
  std::vector<float> rows(128), columns(64), sums(128);
  rows[0] = 3 + std::ldexp(1.0F, -12);
  rows[16] = 1;
  columns[0] = 5;
  columns[1] = 7 + std::ldexp(1.0F, -10);
  multiply(atom, rows.data(), columns.data(), sums.data());
  EXPECT_EQ(sums[0], 22);
}

TEST(MatMul, AtomsBelongToArchitectures) {
  EXPECT_NE(find_matmul_atom(ScalarType::kBFloat16, ScalarType::kFloat32, 80), nullptr);
  EXPECT_EQ(find_matmul_atom(ScalarType::kBFloat16, ScalarType::kFloat32, 75), nullptr);
  EXPECT_EQ(find_matmul_atom(ScalarType::kFloat64, ScalarType::kFloat64, 90), nullptr);
}

/// One element of d, whose row of a and column of b begin with these values.
float product_of(const std::vector<float>& a, const std::vector<float>& b, float d) {
  const MatMulAtom& atom = *find_matmul_atom(ScalarType::kFloat16, ScalarType::kFloat32, 90);
  std::vector<float> rows(static_cast<size_t>(atom.m * atom.k)), columns(static_cast<size_t>(atom.k * atom.n));
  std::vector<float> sums(static_cast<size_t>(atom.m * atom.n));
  for (size_t k = 0; k < a.size(); ++k) rows[16 * k] = a[k];
  for (size_t k = 0; k < b.size(); ++k) columns[k] = b[k];
  sums[0] = d;
  multiply(atom, rows.data(), columns.data(), sums.data());
  return sums[0];
}

TEST(MatMul, SumsAreCutAndProductsExact) {
  EXPECT_EQ(product_of({3, 4}, {5, 6}, 7), 46.0F);
  EXPECT_EQ(product_of({}, {}, -0.5F), -0.5F);
  const float tiny = std::ldexp(1.0F, -14);
  // Half a last place is dropped, of either sign.
  EXPECT_EQ(product_of({tiny}, {std::ldexp(1.0F, -10)}, 1.0F), 1.0F);
  EXPECT_EQ(product_of({-tiny}, {std::ldexp(1.0F, -10)}, -1.0F), -1.0F);
  // Two of them, 2 bits below the last place, are kept.
  EXPECT_EQ(product_of({tiny, tiny}, {std::ldexp(1.0F, -10), std::ldexp(1.0F, -10)}, 1.0F),
            1.0F + std::ldexp(1.0F, -23));
  // What lies deeper is cut before it is added.
  const float deep = std::ldexp(1.0F, -12);
  EXPECT_EQ(product_of(std::vector<float>(16, tiny), std::vector<float>(16, deep), 1.0F), 1.0F);
}

/// The sum of so many products of 8-bit floats by instructions for 32 each, in parts that are added in float32.
float sum_in_parts(const std::vector<float>& a, const std::vector<float>& b, size_t part) {
  constexpr size_t kProducts = 32;
  const SumPlaces places = sum_places(ScalarType::kFloat8E4M3);
  float total = 0;
  for (size_t begin = 0; begin < a.size(); begin += part) {
    float sum = 0;
    for (size_t k = begin; k < begin + part; k += kProducts) sum = add_products(&a[k], &b[k], kProducts, sum, places);
    total += sum;
  }
  return total;
}

/// 13 bits are left behind the leading one. Where parts of 128 are added in float32 the error stays within the oracle's
/// bound, and where they are not it does not.
TEST(MatMul, SumsOfFloat8NeedParts) {
  const std::vector<float> ones(32, 1), odd = {8191, 5};
  const SumPlaces places = sum_places(ScalarType::kFloat8E5M2);
  EXPECT_EQ(add_products(ones.data(), odd.data(), 2, 8191, places), 16386);
  EXPECT_EQ(add_products(ones.data(), ones.data(), 1, 16384, places), 16384);
  std::vector<float> a, b;
  interp::BoundedSum sum;
  sum.start({0, 0});
  for (int k = 0; k < 4096; ++k) {
    a.push_back(1 + static_cast<float>(k * 5 % 8) / 8);
    b.push_back(1 + static_cast<float>(k * 7 / 3 % 8) / 8);
    sum.add({static_cast<double>(a.back()) * static_cast<double>(b.back()), 0});
  }
  const interp::Bounded oracle = sum.result(ScalarType::kFloat32, interp::SumKind::kFloat8Products);
  const auto error = [&](size_t part) {
    return std::abs(static_cast<double>(sum_in_parts(a, b, part)) - oracle.value);
  };
  EXPECT_GT(error(128), 0);
  EXPECT_LE(error(128), oracle.error / 4);
  EXPECT_GT(error(4096), oracle.error);
}

TEST(MatMul, InfinitiesAndNaNsAsEverywhere) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(product_of({infinity, 1}, {2, 3}, 1), infinity);
  EXPECT_TRUE(std::isnan(product_of({infinity, infinity}, {1, -1}, 0)));
  EXPECT_TRUE(std::isnan(product_of({infinity}, {0}, 0)));
  EXPECT_TRUE(std::isnan(product_of({1}, {1}, std::numeric_limits<float>::quiet_NaN())));
}

TEST(MatMul, ProductsOfMatricesAreRightHoweverTheyLie) {
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      const Sample sample = tensor_core_product({.a_transposed = a_transposed, .b_transposed = b_transposed});
      EXPECT_EQ(complaint(sample), "");
      const Verification verified = verify(sample.program);
      EXPECT_EQ(verified.faults, Sentences{});
      EXPECT_EQ(verified.unproved, Sentences{});
      EXPECT_EQ(certify(sample.program.kernels[0]).races, Sentences{});
    }
  }
}

TEST(MatMul, MutantsAreCaught) {
  const Sample sample = tensor_core_product({});
  const std::vector<Mutant> all = mutants(sample.program);
  EXPECT_EQ(all.size(), 2U);
  for (const Mutant& mutant : all) {
    Sample changed = sample;
    changed.program = mutant.program;
    EXPECT_NE(complaint(changed), "") << mutant.what;
    EXPECT_FALSE(certify(mutant.program.kernels[0]).races.empty()) << mutant.what;
  }
}

/// The first fault of the product, changed.
template <typename Change>
std::string fault(Change change, const Limits& limits = {}) {
  Program program = tensor_core_product({}).program;
  change(program.kernels[0]);
  const Verification result = verify(program, limits);
  return result.faults.empty() ? "" : result.faults[0];
}

TEST(MatMul, InstructionsAreThoseOfTheArchitecture) {
  EXPECT_EQ(fault([](Kernel&) {}, Limits{.architecture = 80}), "");
  EXPECT_EQ(fault([](Kernel&) {}, Limits{.architecture = 75}),
            "tensor_core_product: it has instructions of sm_80, but is for sm_75");
}

TEST(MatMul, WarpsAreWhole) {
  const std::string text = fault([](Kernel& kernel) { kernel.block = {48, 1, 1}; });
  EXPECT_NE(text.find("is done by whole warps, but the last one of a block is not full"), std::string::npos) << text;
}

/// Changes the first node of a kind.
template <typename Kind, typename Change>
NodePtr with_changed(const NodePtr& node, Change change, bool& done) {
  if (!node || done) return node;
  if (const auto* found = std::get_if<Kind>(&node->node)) {
    Kind changed = *found;
    change(changed);
    done = true;
    return std::make_shared<const Node>(Node{changed, ""});
  }
  return map_children(node, [&](const NodePtr& child) { return with_changed<Kind>(child, change, done); });
}

TEST(MatMul, AcceleratedInstructionsAreOfOneArchitecture) {
  MatMulAtom atom = matmul_atoms()[0];
  atom.accelerated = true;
  atom.architecture = 90;
  const auto replace = [&](Kernel& kernel) {
    bool done = false;
    kernel.body = with_changed<MatMul>(
        kernel.body, [&](MatMul& n) { n.atom = &atom; }, done);
  };
  EXPECT_EQ(fault(replace), "");
  EXPECT_EQ(fault(replace, Limits{.architecture = 90, .accelerated = false}),
            "tensor_core_product: it has instructions of sm_90a, but is for sm_90");
  EXPECT_EQ(fault(replace, Limits{.architecture = 100}),
            "tensor_core_product: it has instructions of sm_90a, but is for sm_100a");
}

template <typename Kind, typename Change>
std::string fault_of(Change change) {
  bool done = false;
  return fault([&](Kernel& kernel) { kernel.body = with_changed<Kind>(kernel.body, change, done); });
}

TEST(MatMul, FragmentsAreRegistersOfTheAtom) {
  const std::string few = fault_of<MatMul>([](MatMul& n) { n.a.values.pop_back(); });
  EXPECT_NE(few.find("takes 7 values of 'a_reg', of 8"), std::string::npos) << few;
  const std::string type = fault_of<MatMul>([](MatMul& n) { n.a.tensor = "a_tile"; });
  EXPECT_NE(type.find("'a_tile' has 2 dimensions but 1 subscripts"), std::string::npos) << type;
  const std::string bfloat =
      fault_of<MatMul>([](MatMul& n) { n.atom = find_matmul_atom(ScalarType::kBFloat16, ScalarType::kFloat32, 90); });
  EXPECT_NE(bfloat.find("takes 'a_reg' as bfloat16, but it is float16"), std::string::npos) << bfloat;
}

TEST(MatMul, RowsLieInSharedMemoryAndAreAligned) {
  const std::string global = fault_of<MatrixLoad>([](MatrixLoad& n) { n.source = "A"; });
  EXPECT_NE(global.find("has rows in 'A', which is not shared"), std::string::npos) << global;
  const std::string crooked = fault_of<MatrixLoad>([](MatrixLoad& n) { n.source_subscripts[1] = 4; });
  EXPECT_NE(crooked.find("is no multiple of 8"), std::string::npos) << crooked;
  const std::string three = fault_of<MatrixLoad>([](MatrixLoad& n) { n.destination.values.resize(6); });
  EXPECT_NE(three.find("is of 3 matrices"), std::string::npos) << three;
}

/// A warp does them together, or not at all.
TEST(MatMul, WarpsStayTogether) {
  bool done = false;
  Sample sample = tensor_core_product({});
  Kernel& kernel = sample.program.kernels[0];
  std::function<NodePtr(const NodePtr&)> guard = [&](const NodePtr& node) -> NodePtr {
    if (!node || done) return node;
    if (std::holds_alternative<MatMul>(node->node)) {
      done = true;
      return if_then(thread_x() < 16, node);
    }
    return map_children(node, guard);
  };
  kernel.body = guard(kernel.body);
  EXPECT_NE(complaint(sample).find("does not reach the product"), std::string::npos) << complaint(sample);
  const Verification result = verify(sample.program);
  ASSERT_FALSE(result.faults.empty());
  EXPECT_NE(result.faults[0].find("is reached by some threads of a warp only"), std::string::npos) << result.faults[0];
}

}  // namespace
}  // namespace tc::tile
