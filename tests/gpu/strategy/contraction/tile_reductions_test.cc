#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <regex>

#include "tc/gpu/strategy/coverage.h"
#include "tc/tile/print.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"
#include "tests/random/warpgroup_products.h"

/// Reductions of a product's results, which its blocks carry out while the results are in registers.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

const Sizes kLarge = {{"M", 512}, {"N", 512}, {"K", 512}};

struct Case {
  const char* name;
  const char* head;
  const char* body;    ///< behind the product C(m,n)
  const char* stored;  ///< by the product's kernel, but for partial results
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"RowSums", ") -> (R", "R(m) +=! float(C(m,n))", ""},
    {"RowSumsBesideTheProduct", ") -> (C, R", "R(m) +=! float(C(m,n))", "C"},
    {"ColumnMaxima", ") -> (Q", "Q(n) max=! C(m,n)", ""},
    {"ColumnMinimaOfSums", ", real(N) b) -> (Q", "C(m,n) += b(n)  Q(j) min=! C(i,j)", ""},
    {"ScalarSum", ") -> (L", "L +=! float(C(m,n))", ""},
    {"ScalarSumIntoAVector", ") -> (L", "L(0) +=! float(C(m,n))", ""},
    {"ScalarSumOfWhatIsThere", ", float L) -> (float S", "S = L  S += float(C(m,n))", ""},
    {"Signs", ") -> (R", "R(m) *=! float(C(m,n) > 0 ? 1 : -1)", ""},
    {"CrossEntropy", ", real(M,N) T) -> (L",
     "P(m,n) = 1 / (1 + exp(-float(C(m,n))))  "
     "L +=! -(float(T(m,n)) * log(P(m,n) + 1e-6) + (1 - float(T(m,n))) * log(1 - P(m,n) + 1e-6))",
     ""},
    {"Distance", ", real(M,N) T) -> (C, L", "L +=! (float(C(m,n)) - float(T(m,n))) * (float(C(m,n)) - float(T(m,n)))",
     "C"},
    {"OfTheTransposed", ") -> (D, R", "D(n,m) = C(m,n)  R(n) +=! float(D(n,m))", "D"},
};

std::string text_of(const Case& c, const std::string& type) {
  const std::string text =
      fmt::format("def f(real(M,K) A, real(K,N) B{}) {{ C(m,n) +=! A(m,k) * B(k,n)  {} }}", c.head, c.body);
  return std::regex_replace(text, std::regex("real"), type);
}

/// An H200.
gpu::Device hopper() { return gpu::device_of_architecture(90); }

gpu::Device without_warpgroups() {
  gpu::Device device = hopper();
  device.warpgroup_products = 0;
  return device;
}

/// What a kernel writes, but for partial results.
std::string written_by(const tile::Kernel& kernel) {
  std::vector<std::string> names;
  for (const tile::Tensor& tensor : kernel.tensors) {
    if (tensor.written && tensor.name.find("_parts") == std::string::npos) names.push_back(tensor.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// What is wrong with a mapping: results, proofs of order and bounds, coverage.
std::string wrong_with(const ir::Program& program, const options::MappingOptions& options, const gpu::Device& device) {
  const Result<gpu::Mapping> mapping = mapped(program, options, device);
  if (!mapping) return mapping.error().to_string();
  std::string wrong = unproved(mapping->program);
  for (const tile::Coverage& coverage : gpu::cover(*mapping)) {
    for (const std::string& fault : coverage.faults) wrong += fault + "\n";
    for (const tile::Coverage::Item& item : coverage.items) {
      if (!item.complete) wrong += fmt::format("{} is not covered\n", item.name);
    }
  }
  return wrong + difference_of_mapping(program, *mapping);
}

class TileReductions : public ::testing::TestWithParam<Case> {};

TEST_P(TileReductions, TakeOneSmallLaunchMore) {
  for (const char* type : {"float", "half"}) {
    for (const gpu::Device& device : {hopper(), without_warpgroups()}) {
      const std::string text = text_of(GetParam(), type);
      const Result<gpu::Mapping> mapping = mapped(specialised_from(text, kLarge), {.copy_operands = false}, device);
      ASSERT_TRUE(mapping) << mapping.error().to_string();
      ASSERT_EQ(mapping->kernels.size(), 2U) << text << gpu::report(*mapping);
      EXPECT_EQ(mapping->kernels[0].recipe, gpu::Recipe::kContraction) << text;
      EXPECT_EQ(written_by(mapping->program.kernels[0]), GetParam().stored) << text << gpu::report(*mapping);
    }
  }
}

TEST_P(TileReductions, AgreeWithTheOracleAndAreProved) {
  for (const char* type : {"float", "half"}) {
    for (const Sizes& sizes : {Sizes{{"M", 72}, {"N", 130}, {"K", 24}}, Sizes{{"M", 150}, {"N", 36}, {"K", 40}}}) {
      const std::string text = text_of(GetParam(), type);
      EXPECT_EQ(wrong_with(specialised_from(text, sizes), {}, without_warpgroups()), "") << text;
    }
  }
}

/// Tiles of warpgroups, some of them partial, some in clusters.
TEST_P(TileReductions, OfWarpgroupsAgreeWithTheOracleAndAreProved) {
  const std::string text = text_of(GetParam(), "half");
  const ir::Program program = specialised_from(text, {{"M", 150}, {"N", 136}, {"K", 72}});
  options::MappingOptions in_clusters = warpgroup_tile(1, 32, 2);
  in_clusters.cluster = {2, 1};
  for (const options::MappingOptions& options : {warpgroup_tile(2, 64, 2), warpgroup_tile(1, 24, 3), in_clusters}) {
    const Result<gpu::Mapping> mapping = mapped(program, options, hopper());
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(mapping->kernels.size(), 2U) << text << gpu::report(*mapping);
    EXPECT_EQ(mapping->program.kernels[0].block[0] % 128, 32) << "warpgroups and a warp that copies";
    EXPECT_EQ(wrong_with(program, options, hopper()), "") << text << options::to_text(options);
  }
}

/// Groups of threads that share points; threads along an axis that are no power of two, or part of a warp.
TEST_P(TileReductions, OfElementsAgreeWithTheOracleAndAreProved) {
  const std::string text = text_of(GetParam(), "float");
  const ir::Program program = specialised_from(text, {{"M", 37}, {"N", 70}, {"K", 24}});
  for (const options::MappingOptions& options :
       {options::MappingOptions{.tile = {16, 16, 8}, .map_to_threads = {8, 4, 1}, .register_tile = {4, 2}},
        {.tile = {16, 16, 8}, .map_to_threads = {8, 4, 2}, .register_tile = {4, 2}},
        {.tile = {8, 8, 8}, .map_to_threads = {4, 4, 2}, .register_tile = {2, 2}},
        {.tile = {16, 64, 8}, .map_to_threads = {32, 8, 1}, .register_tile = {2, 2}},
        {.tile = {12, 10, 8}, .map_to_threads = {5, 6, 1}, .register_tile = {2, 2}}}) {
    const Result<gpu::Mapping> mapping = mapped(program, options);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(mapping->kernels.size(), 2U) << text << gpu::report(*mapping);
    EXPECT_EQ(wrong_with(program, options, {}), "") << text << options::to_text(options);
  }
}

TEST_P(TileReductions, OptionsAskForTheSameKernels) {
  const ir::Program program = specialised_from(text_of(GetParam(), "half"), kLarge);
  const Result<gpu::Mapping> mapping = mapped(program, {}, hopper());
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const Result<gpu::Mapping> again = mapped(program, mapping->kernels[0].chosen, hopper());
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(tile::to_text(again->program.kernels[0]), tile::to_text(mapping->program.kernels[0]));
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Cases, TileReductions, ::testing::ValuesIn(kCases), name_of);

/// How many launches a def has, and what the first one writes.
std::pair<size_t, std::string> launches_of(const std::string& text, const Sizes& sizes,
                                           const options::MappingOptions& options = {}) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, sizes), options, without_warpgroups());
  if (!mapping) return {0, mapping.error().to_string()};
  return {mapping->kernels.size(), written_by(mapping->program.kernels[0])};
}

using Launches = std::pair<size_t, std::string>;

TEST(ReduceInTiles, OfOneBlockNeedNoParts) {
  const char* text = "def f(float(M,K) A, float(K,N) B) -> (R) { C(m,n) +=! A(m,k) * B(k,n)  R(m) +=! C(m,n) }";
  const Sizes sizes = {{"M", 512}, {"N", 16}, {"K", 512}};
  const options::MappingOptions options{.tile = {16, 16, 32}, .split_reduction = 1};
  EXPECT_EQ(launches_of(text, sizes, options), Launches(1, "R"));
  EXPECT_EQ(wrong_with(specialised_from(text, {{"M", 40}, {"N", 16}, {"K", 64}}), options, {}), "");
}

TEST(ReduceInTiles, SeveralOfOneProduct) {
  const char* text = R"(
def f(float(M,K) A, float(K,N) B) -> (R, Q, L) {
  C(m,n) +=! A(m,k) * B(k,n)
  R(m) +=! C(m,n)
  Q(n) max=! C(m,n)
  L +=! C(m,n) * C(m,n)
})";
  EXPECT_EQ(launches_of(text, kLarge).second, "");
  EXPECT_EQ(wrong_with(specialised_from(text, {{"M", 72}, {"N", 130}, {"K", 24}}), {}, without_warpgroups()), "");
}

TEST(ReduceInTiles, OverSomeAxesOfSeveral) {
  const char* text = R"(
def f(float(M,P,K) A, float(K,N) B) -> (R, Q) {
  C(m,p,n) +=! A(m,p,k) * B(k,n)
  R(p) +=! C(m,p,n)
  Q(n,m) max=! C(m,p,n)
})";
  EXPECT_EQ(wrong_with(specialised_from(text, {{"M", 20}, {"P", 6}, {"N", 50}, {"K", 24}}), {}, without_warpgroups()),
            "");
}

/// Where another kernel goes through the results anyway, it reduces them; products do not count.
TEST(ReduceInTiles, NotWhereResultsAreReadAnyway) {
  const std::string product = "def f(float(M,K) A, float(K,N) B{}) -> ({}) {{ C(m,n) +=! A(m,k) * B(k,n)  {} }}";
  const std::string softmax = fmt::format(fmt::runtime(product), "", "O",
                                          "top(m) max=! C(m,n)  E(m,n) = exp(C(m,n) - top(m))  sum(m) +=! E(m,n)  "
                                          "O(m,n) = E(m,n) / sum(m)");
  EXPECT_EQ(launches_of(softmax, kLarge), Launches(2, "C"));
  const std::string another =
      fmt::format(fmt::runtime(product), ", float(N,J) H", "R, G", "R(m) +=! C(m,n)  G(m,j) +=! C(m,n) * H(n,j)");
  const Sizes sizes = {{"M", 512}, {"N", 512}, {"K", 512}, {"J", 512}};
  EXPECT_EQ(launches_of(another, sizes), Launches(3, "C"));
  EXPECT_EQ(wrong_with(specialised_from(another, {{"M", 40}, {"N", 70}, {"K", 24}, {"J", 33}}), {}, {}), "");
}

TEST(ReduceInTiles, NotWhereTheOptionsSayOtherwise) {
  const ir::Program program = specialised_from(
      "def f(float(M,K) A, float(K,N) B) -> (R) { C(m,n) +=! A(m,k) * B(k,n)  R(m) +=! C(m,n) }", kLarge);
  const auto reduces = [&](const options::MappingOptions& options) {
    const Result<gpu::Mapping> mapping = mapped(program, options, without_warpgroups());
    EXPECT_TRUE(mapping) << mapping.error().to_string();
    const std::vector<tile::Tensor>& tensors = mapping->program.kernels[0].tensors;
    return std::any_of(tensors.begin(), tensors.end(), [](const tile::Tensor& t) { return t.name == "R_parts"; });
  };
  EXPECT_TRUE(reduces({}));
  EXPECT_TRUE(reduces({.split_reduction = 1}));
  EXPECT_FALSE(reduces({.split_reduction = 2}));
  options::MappingOptions strict;
  strict.strict = true;
  EXPECT_FALSE(reduces(strict));
  options::KernelOptions own;
  own.writes = "R";
  own.split_reduction = 2;
  options::MappingOptions of_kernel;
  of_kernel.kernel = {own};
  EXPECT_FALSE(reduces(of_kernel));
}

/// Sums are the same on every run, unless the options allow otherwise.
TEST(ReduceInTiles, ByAtomicUpdatesOnRequest) {
  const ir::Program program =
      specialised_from("def f(float(M,K) A, float(K,N) B) -> (R) { C(m,n) +=! A(m,k) * B(k,n)  R(m) +=! C(m,n) }",
                       {{"M", 6}, {"N", 3000}, {"K", 24}});
  const auto atomics = [&](const options::MappingOptions& options) {
    const Result<gpu::Mapping> mapping = mapped(program, options);
    EXPECT_TRUE(mapping) << mapping.error().to_string();
    int count = 0;
    for (const tile::Kernel& kernel : mapping->program.kernels) {
      tile::for_each_node(kernel.body, [&](const tile::Node& node) {
        count += std::holds_alternative<tile::Atomic>(node.node) ? 1 : 0;
      });
    }
    return count;
  };
  EXPECT_EQ(atomics({}), 0);
  const options::MappingOptions by_atomics{.atomic_reduction = true};
  EXPECT_GT(atomics(by_atomics), 0);
  EXPECT_EQ(difference(program, by_atomics), "");
}

}  // namespace
}  // namespace tc::testing
