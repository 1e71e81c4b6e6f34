#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <random>

#include "tc/gpu/strategy/coverage.h"
#include "tc/tile/certificate.h"
#include "tc/tile/verify.h"
#include "tests/common/examples.h"
#include "tests/common/program.h"
#include "tests/common/tile_mutants.h"
#include "tests/gpu/simulated.h"

/// Every kernel made of the examples is proved right, and is wrong without any one of its barriers, guards, copies and
/// products of tiles: verifier, certificate or simulator notices.
namespace tc::testing {
namespace {

/// The example at sizes that leave tiles and warps partial.
Result<ir::Program> small_program(const std::filesystem::path& path) {
  const std::string text = text_of(path);
  const ir::Program symbolic = program_from(text);
  constexpr int64_t kSizes[] = {7, 11, 9, 5};
  std::map<std::string, int64_t> sizes, scalars;
  size_t next = 0;
  for (const std::string& name : symbolic.sizes) {
    const bool is_window = name.starts_with("K") && name.size() == 2;
    sizes[name] = is_window ? 3 : kSizes[next++ % 4];
  }
  for (const ir::Scalar& scalar : symbolic.scalars) {
    if (scalar.specialised) scalars[scalar.name] = 2;
  }
  return try_specialised(text, sizes, scalars);
}

bool same(const interp::Environment& a, const interp::Environment& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.floats == y.second.floats && x.second.integers == y.second.integers;
  });
}

/// The same with infinities in all floats, so that a product with a missing zero is a NaN.
interp::Environment infinite(interp::Environment data) {
  for (auto& [name, tensor] : data) {
    std::fill(tensor.floats.begin(), tensor.floats.end(), std::numeric_limits<double>::infinity());
  }
  return data;
}

/// Proves a mapping's kernels, and expects something to notice each of their mutants. How many there were.
int expect_that_nothing_is_in_vain(const ir::Program& program, const gpu::Mapping& mapping) {
  const tile::Verification verification = tile::verify(mapping.program);
  EXPECT_TRUE(verification.holds()) << verification.faults.at(0) << "\n" << tile::to_text(mapping.program);
  for (const tile::Kernel& kernel : mapping.program.kernels) {
    const tile::Certificate certificate = tile::certify(kernel);
    EXPECT_TRUE(certificate.races.empty()) << certificate.races.at(0) << "\n" << tile::to_text(kernel);
  }
  for (const tile::Coverage& coverage : gpu::cover(mapping)) {
    EXPECT_TRUE(coverage.holds()) << coverage.faults.at(0) << "\n" << tile::to_text(mapping.program);
  }
  const interp::Environment data = data_for(program, 1);
  const Result<interp::Environment> right = simulated(program, mapping, data);
  EXPECT_TRUE(right) << right.error().to_string();
  const Result<interp::Environment> unbounded = simulated(program, mapping, infinite(data));
  EXPECT_TRUE(unbounded) << unbounded.error().to_string();
  int mutants = 0;
  std::vector<tile::Mutant> all = tile::mutants(mapping.program);
  std::ranges::move(tile::mutants_of_operations(mapping.program), std::back_inserter(all));
  for (const tile::Mutant& mutant : all) {
    ++mutants;
    gpu::Mapping changed = mapping;
    changed.program = mutant.program;
    bool caught = !tile::verify(changed.program).holds();
    if (!caught) {
      const Result<interp::Environment> result = simulated(program, changed, data);
      caught = !result || !same(*result, *right);
    }
    if (!caught && same(*unbounded, *unbounded)) {  // no NaN, which differs from all
      const Result<interp::Environment> result = simulated(program, changed, infinite(data));
      caught = !result || !same(*result, *unbounded);
    }
    for (size_t k = 0; k < changed.program.kernels.size() && !caught; ++k) {
      caught = !tile::certify(changed.program.kernels[k]).races.empty();
    }
    EXPECT_TRUE(caught) << "survives: " << mutant.what;
  }
  return mutants;
}

class GpuMutants : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(GpuMutants, KernelsAreProvedAndNothingIsInVain) {
  const Result<ir::Program> program = small_program(GetParam());
  ASSERT_TRUE(program) << program.error().to_string();
  const Result<gpu::Mapping> mapping = mapped(*program);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  RecordProperty("mutants", expect_that_nothing_is_in_vain(*program, *mapping));
}

/// Small integers, whose sums no order changes.
TEST(AtomicSumMutants, KernelsAreProvedAndNothingIsInVain) {
  using Sizes = std::map<std::string, int64_t>;
  for (const auto& [text, sizes] :
       {std::pair<const char*, Sizes>("def f(float(M,N) x) -> (s) { s(m) +=! x(m,n) }", {{"M", 3}, {"N", 301}}),
        {"def f(float(N,M) x, float(M) b) -> (s) { s(m) = b(m)\n s(m) max= x(n,m) }", {{"M", 300}, {"N", 30}}},
        {"def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
         {{"M", 17}, {"K", 64}, {"N", 20}}}}) {
    SCOPED_TRACE(text);
    const ir::Program program = specialised_from(text, sizes);
    const Result<gpu::Mapping> mapping =
        mapped(program, options::MappingOptions{.split_reduction = 4, .atomic_reduction = true});
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_GT(expect_that_nothing_is_in_vain(program, *mapping), 0);
  }
}

/// Products that share a kernel, one group of threads or several.
TEST(SharedKernelMutants, KernelsAreProvedAndNothingIsInVain) {
  const char* gated = R"(
def f(float(M,K) A, float(K,N) B, float(M,L) H, float(L,N) G) -> (O) {
  P(m,n) +=! A(m,k) * B(k,n)
  Q(m,n) +=! H(m,l) * G(l,n)
  O(m,n) = P(m,n) - Q(m,n)
})";
  const ir::Program program = specialised_from(gated, {{"M", 20}, {"N", 24}, {"K", 21}, {"L", 33}});
  for (const int64_t groups : {1, 2}) {
    const options::MappingOptions options{
        .tile = {8, 8, 8}, .map_to_threads = {4, 4, groups}, .register_tile = {2, 2}, .copy_stages = 2};
    const Result<gpu::Mapping> mapping = mapped(program, options);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    ASSERT_EQ(mapping->kernels.size(), 1U);
    EXPECT_GT(expect_that_nothing_is_in_vain(program, *mapping), 0);
  }
}

/// Products of tiles whose steps leave a rest, one of them of guarded rows.
TEST(TensorCoreMutants, KernelsAreProvedAndNothingIsInVain) {
  const char* product = R"(
def f(half(M,K) A, half(K,N) B) -> (O) {
  O(m,n) +=! float(A(m,k)) * float(B(k,n))
})";
  const char* padded = R"(
def f(half(H,C) X, half(C,F,3) W) -> (O) {
  O(h,f) +=! float(h + r >= 1 && h + r <= H ? X(h + r - 1, c) : half(0.0)) * float(W(c,f,r)) where h in 0:H, r in 0:3
})";
  using Sizes = std::map<std::string, int64_t>;
  const options::MappingOptions by_default{.tensor_cores = true};
  const options::MappingOptions in_steps{.tile = {32, 32, 16}, .register_tile = {4, 4}, .tensor_cores = true};
  for (const auto& [text, sizes, options] : {std::tuple(product, Sizes{{"M", 40}, {"N", 40}, {"K", 72}}, in_steps),
                                             {product, {{"M", 20}, {"N", 24}, {"K", 70}}, by_default},
                                             {padded, {{"H", 40}, {"C", 32}, {"F", 24}}, by_default}}) {
    SCOPED_TRACE(text);
    const ir::Program program = specialised_from(text, sizes);
    const Result<gpu::Mapping> mapping = mapped(program, options, gpu::device_of_architecture(80));
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_GT(expect_that_nothing_is_in_vain(program, *mapping), 0);
  }
}

/// Reductions of a product's tiles: in registers, lanes and shared memory, one group of threads or several.
TEST(TileReductionMutants, KernelsAreProvedAndNothingIsInVain) {
  const char* text = R"(
def f(float(M,K) A, float(K,N) B) -> (R, Q) {
  C(m,n) +=! A(m,k) * B(k,n)
  R(m) +=! C(m,n)
  Q(n) max=! C(m,n)
})";
  const ir::Program program = specialised_from(text, {{"M", 20}, {"N", 36}, {"K", 16}});
  for (const int64_t groups : {1, 2}) {
    const options::MappingOptions options{
        .tile = {8, 16, 8}, .map_to_threads = {8, 4, groups}, .register_tile = {2, 2}, .copy_stages = 2};
    const Result<gpu::Mapping> mapping = mapped(program, options);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_GT(expect_that_nothing_is_in_vain(program, *mapping), 0);
  }
}

/// Products one after the other, whose copies go on from one to the next or, of odd rows, do not.
TEST(ChainMutants, KernelsAreProvedAndNothingIsInVain) {
  const char* text = R"(
def f(half(M,K) A, half(N,K) W, half(P,N) V, half(Q,P) U) -> (half(M,Q) O) {
  float S(m,n) +=! A(m,k) * W(n,k)
  half H(m,n) = half(fmax(S(m,n), 0.0))
  float T(m,p) +=! H(m,n) * V(p,n)
  half I(m,p) = half(fmax(T(m,p), 0.0))
  float R(m,q) +=! I(m,p) * U(q,p)
  O(m,q) = half(R(m,q))
})";
  using Sizes = std::map<std::string, int64_t>;
  for (const Sizes& sizes : {Sizes{{"M", 13}, {"K", 40}, {"N", 24}, {"P", 24}, {"Q", 24}},
                             Sizes{{"M", 13}, {"K", 21}, {"N", 19}, {"P", 19}, {"Q", 19}}}) {
    const ir::Program program = specialised_from(text, sizes);
    const Result<gpu::Mapping> mapping = mapped(program, {.split_reduction = 1, .chain = true});
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    ASSERT_EQ(mapping->kernels.size(), 1U);
    EXPECT_GT(expect_that_nothing_is_in_vain(program, *mapping), 0);
  }
}

TEST(ChainMutants, StreamedKernelsAreProvedAndNothingIsInVain) {
  const ir::Program program = specialised_from(R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V) -> (float(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  half P(n,m) = half(fmax(S(n,m), 0.0))
  total(n) +=! float(P(n,m))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = A(n,e) + total(n)
})",
                                               {{"N", 13}, {"D", 24}, {"M", 40}, {"E", 16}});
  const Result<gpu::Mapping> mapping = mapped(program, {.split_reduction = 1, .chain = true});
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->kernels.size(), 1U);
  EXPECT_GT(expect_that_nothing_is_in_vain(program, *mapping), 0);
}

INSTANTIATE_TEST_SUITE_P(Examples, GpuMutants, ::testing::ValuesIn(examples()),
                         [](const auto& info) { return info.param.stem().string(); });

}  // namespace
}  // namespace tc::testing
