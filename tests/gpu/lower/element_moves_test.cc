#include <gtest/gtest.h>

#include <set>

#include "tc/interp/compare.h"
#include "tc/tile/certificate.h"
#include "tc/tile/verify.h"
#include "tests/common/program.h"
#include "tests/gpu/simulated.h"

/// Kernels for tensors that are aligned to their elements only.
namespace tc::testing {
namespace {

/// The most elements that one instruction copies to or from a tensor of the caller's.
int widest(const tile::Program& program) {
  int most = 1;
  for (const tile::Kernel& kernel : program.kernels) {
    std::set<std::string> callers;
    for (const tile::Tensor& tensor : kernel.tensors) callers.insert(tensor.name);
    for (const tile::Tensor& own : program.workspace) callers.erase(own.name);
    tile::for_each_node(kernel.body, [&](const tile::Node& node) {
      const auto* move = std::get_if<tile::Move>(&node.node);
      if (move != nullptr && callers.count(move->source) + callers.count(move->destination) > 0) {
        most = std::max(most, move->elements);
      }
    });
  }
  return most;
}

struct Case {
  const char* name;
  const char* text;
  std::map<std::string, int64_t> sizes;
};

class ElementMoves : public ::testing::TestWithParam<Case> {};

TEST_P(ElementMoves, NeedNoVectorsAndComputeTheSame) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  gpu::Device device;
  device.processors = 1;       // for which few elements are enough for vectors
  device.accelerated = false;  // threads copy and store, not boxes
  const Result<gpu::Mapping> by_vectors = mapped(program, {}, device);
  ASSERT_TRUE(by_vectors) << by_vectors.error().to_string();
  EXPECT_GT(widest(by_vectors->program), 1);
  const Result<gpu::Mapping> mapping = mapped(program, {}, device, true);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(widest(mapping->program), 1);
  const tile::Verification verification = tile::verify(mapping->program);
  EXPECT_TRUE(verification.holds()) << fmt::format("{}", fmt::join(verification.faults, "\n"));
  for (const tile::Kernel& kernel : mapping->program.kernels) {
    const tile::Certificate certificate = tile::certify(kernel);
    EXPECT_TRUE(certificate.races.empty()) << fmt::format("{}", fmt::join(certificate.races, "\n"));
  }
  const interp::Environment data = data_for(program, 7);
  const Result<interp::BoundedEnvironment> oracle = interp::run_bounded(program, data);
  const Result<interp::Environment> results = simulated(program, *mapping, data);
  ASSERT_TRUE(results) << results.error().to_string();
  for (const interp::Comparison& comparison : interp::compare(*results, *oracle)) {
    EXPECT_TRUE(comparison.agrees) << comparison.sentence;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Recipes, ElementMoves,
    ::testing::Values(
        Case{"elements", "def f(float(N) x) -> (y) { y(i) = x(i) * 2 }", {{"N", 4096}}},
        Case{"halves", "def f(half(N) x) -> (y) { y(i) = x(i) }", {{"N", 4096}}},
        Case{"bytes", "def f(int8(N) x) -> (y) { y(i) = x(i) }", {{"N", 4096}}},
        Case{"rows", "def f(float(N,D) x) -> (m) { m(n) max=! x(n,d) }", {{"N", 64}, {"D", 1024}}},
        Case{"contraction",
             "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
             {{"M", 64}, {"N", 64}, {"K", 64}}},
        // Loads by vectors cannot be merged with those of C, which the kernel writes; by elements they can.
        Case{"in_out",
             "def f(float(M,K) A, float(K,N) B) -> (float(M,N) C) { C(m,n) += A(m,k) * B(k,n)\n"
             "  C(m,n) = C(m,n) > 0.0 ? C(m,n) : 0.5 }",
             {{"M", 256}, {"N", 256}, {"K", 256}}},
        Case{"contraction_of_halves",
             "def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
             {{"M", 64}, {"N", 64}, {"K", 64}}},
        // Copies by vectors have predicates, those by elements are not asynchronous.
        Case{"tensor_cores_in_steps",
             "def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
             {{"M", 256}, {"N", 256}, {"K", 512}}}),
    [](const auto& info) { return std::string(info.param.name); });

const gpu::Device kHopper = [] {
  gpu::Device device;
  device.shared_bytes = 227 * 1024;
  device.tensor_products = 1;  // so nothing is worth doing by mma.sync
  return device;
}();

/// Boxes begin at multiples of 16 bytes. Copies of the operands do, and so warpgroups multiply them.
TEST(TensorsAtAnyAddress, AreCopiedForWarpgroups) {
  const ir::Program product =
      specialised_from("def f(half(M,K) A, half(K,N) B) -> (half(M,N) C) { C(m,n) +=! A(m,k) * B(k,n) }",
                       {{"M", 192}, {"N", 136}, {"K", 208}});
  const ir::Program attention = specialised_from(R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V) -> (half(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  top(n) max=! S(n,m)
  half P(n,m) = half(exp((S(n,m) - top(n)) * 0.25))
  float total(n) +=! float(P(n,m))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = half(A(n,e) / total(n))
})",
                                                 {{"N", 64}, {"M", 136}, {"D", 16}, {"E", 16}});
  for (const ir::Program* program : {&product, &attention}) {
    const options::MappingOptions options = {.split_reduction = 1, .tensor_cores = true, .copy_operands = true};
    const Result<gpu::Mapping> mapping = mapped(*program, options, kHopper, true);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(widest(mapping->program), 1);
    std::set<std::string> boxed;
    for (const tile::Kernel& kernel : mapping->program.kernels) {
      for (const tile::TensorMap& map : kernel.maps) boxed.insert(map.tensor);
    }
    EXPECT_GE(boxed.size(), 2U);
    for (const std::string& tensor : boxed) {
      const ir::Tensor* own = program->find_tensor(tensor);
      EXPECT_TRUE(own == nullptr || own->role == ir::Role::kTemporary) << tensor;
    }
    EXPECT_TRUE(tile::verify(mapping->program).holds());
    EXPECT_EQ(difference_of_mapping(*program, *mapping, 3), "");
  }
}

/// Nothing may copy boxes of what begins at any address: the pass that takes vectors apart would leave them.
TEST(TensorsAtAnyAddress, HaveNoBoxes) {
  const ir::Program program =
      specialised_from("def f(half(M,K) A, half(K,N) B) -> (half(M,N) C) { C(m,n) +=! A(m,k) * B(k,n) }",
                       {{"M", 192}, {"N", 136}, {"K", 208}});
  for (const bool element_aligned : {false, true}) {
    const Result<gpu::Mapping> mapping =
        mapped(program, {.split_reduction = 1, .tensor_cores = true, .copy_operands = false}, kHopper, element_aligned);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    size_t maps = 0;
    for (const tile::Kernel& kernel : mapping->program.kernels) maps += kernel.maps.size();
    EXPECT_EQ(maps > 0, !element_aligned);
  }
}

}  // namespace
}  // namespace tc::testing
