#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tc/gpu/strategy/tunables.h"
#include "tc/ir/layouts.h"
#include "tc/tile/print.h"
#include "tc/tile/verify.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/random/layouts.h"
#include "tests/random/products.h"
#include "tests/random/warpgroup_products.h"

/// Strided tensors: what each strategy makes of them, and that nobody writes between their elements.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

const gpu::Device kDevice = gpu::device_of_architecture(90);
const options::MappingOptions kByTensorCores = {.tensor_cores = true};

constexpr const char* kProduct =
    "def f(float16(M,K) A, float16(K,N) B) -> (float16(M,N) C) "
    "{ C(m,n) +=! A(m,k) * B(k,n) }";
constexpr const char* kBatch =
    "def f(float16(H,M,K) A, float16(H,K,N) B) -> (float16(H,M,N) C) "
    "{ C(h,m,n) +=! A(h,m,k) * B(h,k,n) }";

/// What kernels are made of.
struct Parts {
  int warpgroup_products = 0, warp_products = 0, box_copies = 0, box_stores = 0, vectors = 0;
};

Parts parts_of(const tile::Program& program) {
  Parts result;
  for (const tile::Kernel& kernel : program.kernels) {
    tile::for_each_node(kernel.body, [&](const tile::Node& node) {
      const auto* move = std::get_if<tile::Move>(&node.node);
      result.warpgroup_products += std::holds_alternative<tile::WarpgroupMatMul>(node.node);
      result.warp_products += std::holds_alternative<tile::MatMul>(node.node);
      result.box_copies += std::holds_alternative<tile::BoxCopy>(node.node);
      result.box_stores += std::holds_alternative<tile::BoxStore>(node.node);
      result.vectors += move != nullptr && move->elements > 1;
    });
  }
  return result;
}

ir::Program strided(const std::string& text, const Sizes& sizes, const ir::Layouts& layouts) {
  return ir::with_layouts(specialised_from(text, sizes), layouts);
}

/// The compiler's own choice for a large product, which is not run.
gpu::Mapping large(const ir::Layouts& layouts, Sizes sizes = {{"M", 4096}, {"N", 4096}, {"K", 4096}}) {
  Result<gpu::Mapping> mapping = mapped(strided(kProduct, sizes, layouts), {}, kDevice);
  EXPECT_TRUE(mapping) << mapping.error().to_string();
  return mapping ? *std::move(mapping) : gpu::Mapping();
}

const tile::TensorMap& map_of(const tile::Kernel& kernel, const std::string& tensor) {
  for (const tile::TensorMap& map : kernel.maps) {
    if (map.tensor == tensor) return map;
  }
  ADD_FAILURE() << "no map of " << tensor;
  static const tile::TensorMap none;
  return none;
}

/// A transposed view is the other major: the kernel is that of the text that has it so.
TEST(Strided, TransposedViewsAreTheOtherMajor) {
  for (const ir::Layouts& layouts : {ir::Layouts{{"A", {1, 2048}}}, ir::Layouts{{"B", {1, 2048}}},
                                     ir::Layouts{{"A", {1, 2048}}, {"B", {1, 2048}}}}) {
    const gpu::Mapping mapping = large(layouts, {{"M", 2048}, {"N", 2048}, {"K", 2048}});
    ASSERT_EQ(mapping.program.kernels.size(), 1);
    EXPECT_EQ(mapping.program.kernels[0].maps.size(), parts_of(mapping.program).box_stores > 0 ? 3 : 2);
    EXPECT_GE(parts_of(mapping.program).warpgroup_products, 1);
  }
}

/// C.T += A * B is C += B.T * A.T.
TEST(Strided, ATransposedResultHasTheKernelOfTheTransposedText) {
  const gpu::Mapping view = large({{"C", {1, 4096}}});
  const ir::Program text =
      specialised_from("def f(float16(M,K) A, float16(K,N) B) -> (float16(N,M) C) { C(n,m) +=! A(m,k) * B(k,n) }",
                       {{"M", 4096}, {"N", 4096}, {"K", 4096}});
  const Result<gpu::Mapping> transposed = mapped(text, {}, kDevice);
  ASSERT_TRUE(transposed) << transposed.error().to_string();
  EXPECT_EQ(tile::to_text(view.program), tile::to_text(transposed->program));
}

/// Slices of columns: boxes step by the pitch and end with the view. Its result's rows are no multiple of 16 bytes, so
/// boxes would write beyond them.
TEST(Strided, SlicesOfColumnsAreBoxesOfTheirPitch) {
  const gpu::Mapping slice = large({{"A", {4096, 1}}, {"C", {4096, 1}}}, {{"M", 4096}, {"N", 4090}, {"K", 4090}});
  const gpu::Mapping& whole = slice;
  ASSERT_FALSE(whole.program.kernels.empty());
  const tile::Kernel& product = slice.program.kernels.back();
  EXPECT_GE(parts_of(slice.program).warpgroup_products, 1);
  EXPECT_EQ(parts_of(slice.program).box_stores, 0);
  const tile::TensorMap& map = map_of(product, "A");
  EXPECT_EQ(map.extents, (std::vector<int64_t>{4090, 4096}));
  EXPECT_EQ(map.strides, (std::vector<int64_t>{1, 4096}));
}

/// Rows of an odd pitch are copied to another one, as dense rows of odd length are.
TEST(Strided, OddPitchesAreCopied) {
  const gpu::Mapping mapping = large({{"A", {4097, 1}}, {"B", {1, 4099}}});
  EXPECT_GE(parts_of(mapping.program).warpgroup_products, 1);
  EXPECT_GE(mapping.program.kernels.size(), 2);
}

/// A block of a larger matrix takes box stores, where the compiler chooses or is asked for them.
TEST(Strided, BlocksOfLargerMatricesTakeBoxStores) {
  options::MappingOptions options = warpgroup_tile(1, 64, 2);
  options.store_boxes = true;
  const ir::Program program =
      strided(kProduct, {{"M", 100}, {"N", 120}, {"K", 100}}, {{"A", {112, 1}}, {"B", {136, 1}}, {"C", {200, 1}}});
  const Result<gpu::Mapping> mapping = mapped(program, options, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(parts_of(mapping->program).box_stores, 1);
  EXPECT_EQ(difference(program, options, 1, kDevice), "");
  EXPECT_EQ(unproved(mapping->program), "");
  // Rows of 236 bytes in rows of 400: a box would write the 4 bytes behind them. Rows that begin anywhere.
  for (const auto& [columns, row] : {std::pair<int64_t, int64_t>{118, 200}, {120, 125}}) {
    const ir::Program other = strided(kProduct, {{"M", 100}, {"N", columns}, {"K", 104}}, {{"C", {row, 1}}});
    const Result<gpu::Mapping> refused = mapped(other, options, kDevice);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().to_string(),
              "error: 'store_boxes' is true, but no kernel follows it: only products by warpgroups do\n");
    EXPECT_EQ(difference(other, warpgroup_tile(1, 64, 2), 1, kDevice), "");
  }
}

/// A batch that shares one matrix: a stride of 0 is no dimension.
TEST(Strided, ABatchMayShareAMatrix) {
  const Sizes sizes = {{"H", 3}, {"M", 70}, {"N", 64}, {"K", 96}};
  for (const ir::Layouts& layouts : {ir::Layouts{{"B", {0, 64, 1}}}, ir::Layouts{{"A", {0, 96, 1}}},
                                     ir::Layouts{{"B", {0, 1, 96}}}, ir::Layouts{{"A", {96, 288, 1}}}}) {
    const ir::Program program = strided(kBatch, sizes, layouts);
    EXPECT_EQ(difference(program, kByTensorCores, 1, kDevice), "");
    const Result<gpu::Mapping> mapping = mapped(program, kByTensorCores, kDevice);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    const Parts parts = parts_of(mapping->program);
    EXPECT_GE(parts.warpgroup_products + parts.warp_products, 1);
    EXPECT_EQ(unproved(mapping->program), "");
  }
}

/// A batch stride that is no multiple of 16 bytes leaves boxes out, not products of tensor cores.
TEST(Strided, BatchStridesMayBeOdd) {
  const Sizes sizes = {{"H", 3}, {"M", 64}, {"N", 64}, {"K", 64}};
  for (const int64_t batch : {64 * 64 + 1, 64 * 64 + 2, 64 * 64 + 8}) {
    const ir::Program program = strided(kBatch, sizes, {{"A", {batch, 64, 1}}, {"C", {batch, 64, 1}}});
    EXPECT_EQ(difference(program, kByTensorCores, 1, kDevice), "") << batch;
    const Result<gpu::Mapping> mapping = mapped(program, kByTensorCores, kDevice);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    const Parts parts = parts_of(mapping->program);
    EXPECT_GE(parts.warpgroup_products + parts.warp_products, 1) << batch;
  }
}

/// Vectors where rows begin at multiples of them, single elements elsewhere.
TEST(Strided, VectorsNeedRowsThatBeginAtThem) {
  const char* text = "def f(float(M,N) A) -> (B) { B(m,n) = A(m,n) + 1 }";
  const Sizes sizes = {{"M", 512}, {"N", 1024}};
  const auto vectors = [&](const ir::Layouts& layouts) {
    const ir::Program program = strided(text, sizes, layouts);
    EXPECT_EQ(difference(program), "");
    const Result<gpu::Mapping> mapping = mapped(program);
    return mapping ? parts_of(mapping->program).vectors : -1;
  };
  EXPECT_GT(vectors({}), 0);
  EXPECT_GT(vectors({{"A", {1028, 1}}, {"B", {1100, 1}}}), 0);
  EXPECT_GT(vectors({{"A", {1, 512}}, {"B", {1, 516}}}), 0);  // both are read and written along m
  EXPECT_EQ(vectors({{"A", {1025, 1}}}), 0);
  EXPECT_EQ(vectors({{"A", {2048, 2}}}), 0);
}

/// Tensors whose neighbours lie apart are served by the same strategies.
TEST(Strided, NeighboursMayLieApart) {
  const auto recipes = [](const char* text, const Sizes& sizes, const ir::Layouts& layouts) {
    const Result<gpu::Mapping> mapping = mapped(strided(text, sizes, layouts), {}, kDevice);
    std::vector<gpu::Recipe> result;
    for (const gpu::Kernel& kernel : mapping->kernels) result.push_back(kernel.recipe);
    return result;
  };
  const std::vector<gpu::Recipe> contraction = {gpu::Recipe::kContraction};
  const Sizes large = {{"M", 1024}, {"N", 1024}, {"K", 1024}};
  EXPECT_EQ(recipes(kProduct, large, {{"C", {2048, 2}}}), contraction);
  EXPECT_EQ(recipes(kProduct, large, {{"C", {2, 4096}}}), contraction);
  const char* bias =
      "def f(float(M,K) A, float(K,N) B, float(N) b) -> (C) "
      "{ C(m,n) +=! A(m,k) * B(k,n)  C(m,n) = fmax(C(m,n) + b(n), 0) }";
  EXPECT_EQ(recipes(bias, large, {{"C", {2048, 2}}, {"b", {3}}}), contraction);
  const ir::Program small = strided(bias, {{"M", 65}, {"N", 72}, {"K", 40}}, {{"C", {150, 2}}, {"b", {3}}});
  EXPECT_EQ(difference(small, {}, 1, kDevice), "");
  const char* sums = "def f(float(M,N) A) -> (s) { s(m) +=! A(m,n) }";
  const Sizes rows = {{"M", 1000}, {"N", 4000}};
  for (const ir::Layouts& layouts : {ir::Layouts{{"s", {7}}}, ir::Layouts{{"A", {8000, 2}}}}) {
    EXPECT_EQ(recipes(sums, rows, layouts).front(), gpu::Recipe::kRows);
  }
  const char* sum = "def f(float(M,N) A, float(N) b) -> (B) { B(m,n) = A(m,n) + b(n) }";
  EXPECT_EQ(recipes(sum, rows, {{"A", {8000, 2}}, {"B", {12000, 3}}}), std::vector{gpu::Recipe::kElements});
  EXPECT_EQ(difference(strided(sum, {{"M", 30}, {"N", 90}}, {{"A", {180, 2}}, {"B", {270, 3}}})), "");
  EXPECT_EQ(difference(strided(sums, {{"M", 30}, {"N", 900}}, {{"A", {1800, 2}}, {"s", {2}}})), "");
}

/// Programs of each strategy, on strides of all kinds.
TEST(Strided, EachStrategyAgrees) {
  const std::vector<std::pair<const char*, Sizes>> programs = {
      {"def f(float(M,N) A, float(N) b) -> (B) { B(m,n) = A(m,n) * b(n) }", {{"M", 33}, {"N", 40}}},
      {"def f(float(M,N) A) -> (B) { B(n,m) = A(m,n) }", {{"M", 70}, {"N", 66}}},
      {"def f(float(M,N) A) -> (s) { s(m) +=! A(m,n) }", {{"M", 20}, {"N", 600}}},
      {"def f(float(M,N) A) -> (s) { s(n) max=! A(m,n) }", {{"M", 300}, {"N", 40}}},
      {"def f(float(M,N) A) -> (s, B) { s(m) max=! A(m,n)  B(m,n) = A(m,n) - s(m) }", {{"M", 12}, {"N", 260}}},
      {"def f(half(M,N) A) -> (half(M,N) B, half(M) s) { B(m,n) = A(m,n) * A(m,n)  s(m) +=! B(m,n) }",
       {{"M", 17}, {"N", 129}}},
      {"def f(float(M,N) A) -> (s) { s() +=! A(m,n) }", {{"M", 100}, {"N", 70}}},
      {"def f(int32(N) I, float(N,D) A) -> (float(V,D) B) { B(v,d) = 0 where v in 0:V  B(I(n),d) += A(n,d) }",
       {{"N", 40}, {"D", 12}, {"V", 10}}},
      {"def f(float(V,D) W, int32(N) I) -> (B) { B(n,d) = W(I(n),d) }", {{"N", 40}, {"D", 64}, {"V", 10}}},
      {"def f(float(H,W) I) -> (T, B) { T(i,j) = I(i,j) + I(i + 1,j)  B(i,j) = T(i,j) + T(i,j + 1) }",
       {{"H", 40}, {"W", 50}}},
      {"def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", {{"M", 65}, {"N", 72}, {"K", 40}}},
      {"def f(float(N,C,H,W) I, float(F,C,3,3) K) -> (R) { R(n,f,h,w) +=! I(n,c,h + p,w + q) * K(f,c,p,q) }",
       {{"N", 2}, {"C", 4}, {"H", 12}, {"W", 14}, {"F", 8}}},
  };
  int strided_tensors = 0;
  for (const auto& [text, sizes] : programs) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const ir::Program program = specialised_from(text, sizes);
      const ir::Layouts layouts = random_layouts(program, seed);
      strided_tensors += static_cast<int>(layouts.size());
      const ir::Program view = ir::with_layouts(program, layouts);
      EXPECT_EQ(difference(view, {}, seed), "") << text << "\nstrides of seed " << seed;
      EXPECT_EQ(difference(view, {.strict = true}, seed), "") << text << "\nstrict, strides of seed " << seed;
      const Result<gpu::Mapping> mapping = mapped(view);
      ASSERT_TRUE(mapping) << text << mapping.error().to_string();
      const bool is_proved = std::string(text).find("I(n)") == std::string::npos;  // data choose no element
      if (seed == 1 && is_proved) EXPECT_EQ(unproved(mapping->program), "") << text;
    }
  }
  EXPECT_GT(strided_tensors, 60);
}

/// Layouts and tensor maps that step by something else, or begin elsewhere.
TEST(Strided, WrongPitchesAreNoticed) {
  options::MappingOptions options = warpgroup_tile(1, 64, 2);
  options.store_boxes = true;
  const ir::Program program =
      strided(kProduct, {{"M", 72}, {"N", 72}, {"K", 72}}, {{"A", {96, 1}}, {"B", {1, 80}}, {"C", {88, 1}}});
  const Result<gpu::Mapping> mapping = mapped(program, options, kDevice);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  const interp::Environment data = data_for(program, 1);
  const Result<interp::Environment> right = simulated(program, *mapping, data);
  ASSERT_TRUE(right) << right.error().to_string();
  int mutants = 0;
  const auto expect_noticed = [&](const std::function<void(tile::Kernel&)>& change) {
    ++mutants;
    gpu::Mapping changed = *mapping;
    change(changed.program.kernels[0]);
    if (!tile::verify(changed.program).holds()) return;
    const Result<interp::Environment> result = simulated(program, changed, data);
    EXPECT_TRUE(!result || result->at("C").floats != right->at("C").floats) << tile::to_text(changed.program);
  };
  for (size_t t = 0; t < mapping->program.kernels[0].tensors.size(); ++t) {
    for (const int64_t by : {-8, 8}) {
      expect_noticed([&](tile::Kernel& kernel) {
        const tile::Layout& layout = kernel.tensors[t].layout;
        kernel.tensors[t].layout =
            tile::Layout({layout[0].size(), layout[1].size()}, {layout[0](1) + by, layout[1](1)});
      });
    }
  }
  for (size_t m = 0; m < mapping->program.kernels[0].maps.size(); ++m) {
    expect_noticed([&](tile::Kernel& kernel) { kernel.maps[m].strides[1] += 8; });
    expect_noticed([&](tile::Kernel& kernel) { kernel.maps[m].strides[1] -= 8; });
    expect_noticed([&](tile::Kernel& kernel) { kernel.maps[m].extents[0] += 8; });
    expect_noticed([&](tile::Kernel& kernel) { kernel.maps[m].extents[1] -= 1; });
    expect_noticed([&](tile::Kernel& kernel) { kernel.maps[m].offset += 8; });
  }
  EXPECT_EQ(mutants, 3 * 2 + 3 * 5);
}

TEST(Strided, KernelsForElementAlignedTensorsAgree) {
  const ir::Program program =
      strided(kProduct, {{"M", 66}, {"N", 72}, {"K", 64}}, {{"A", {80, 1}}, {"B", {1, 72}}, {"C", {1, 88}}});
  const Result<gpu::Mapping> mapping = mapped(program, {}, kDevice, true);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_TRUE(mapping->program.kernels[0].maps.empty());
  const interp::Environment data = data_for(program, 1);
  const Result<interp::Environment> result = simulated(program, *mapping, data);
  ASSERT_TRUE(result) << result.error().to_string();
  const Result<interp::Environment> oracle = interp::run(program, data);
  ASSERT_TRUE(oracle) << oracle.error().to_string();
  EXPECT_EQ(result->at("C").floats, oracle->at("C").floats);
}

/// By default, and by plans of tensor cores that a search would try.
TEST(Strided, RandomProductsAgree) {
  int by_tiles = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const RandomProduct product = random_product(seed);
    const ir::Program dense = specialised_from(product.text, product.sizes);
    const ir::Program program = ir::with_layouts(dense, random_layouts(dense, seed));
    std::vector<options::MappingOptions> all = {{}};
    if (const auto plans = gpu::top(program, kByTensorCores, kDevice, 8)) {
      if (!plans->empty()) all.push_back((*plans)[seed % plans->size()].options);
    }
    for (const options::MappingOptions& options : all) {
      const std::string what = fmt::format("{}\n{}{}", seed, product.text, options::to_text(options));
      const Result<gpu::Mapping> mapping = mapped(program, options, kDevice);
      ASSERT_TRUE(mapping) << what << mapping.error().to_string();
      by_tiles += parts_of(mapping->program).warp_products + parts_of(mapping->program).warpgroup_products > 0;
      EXPECT_EQ(difference(program, options, seed, kDevice), "") << what;
      if (seed % 4 == 0) EXPECT_EQ(unproved(mapping->program), "") << what;
    }
  }
  EXPECT_GE(by_tiles, 2);
}

/// On asked tiles; where strides leave no boxes, the refusal says why and the compiler's choice is run.
TEST(Strided, RandomProductsOfWarpgroupsAgree) {
  int by_boxes = 0;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    const WarpgroupProduct tile = seed % 2 == 0 ? random_warpgroup_product(seed) : random_boxed_product(seed);
    const ir::Program dense = specialised_from(tile.text, tile.sizes);
    const ir::Program program = ir::with_layouts(dense, random_layouts(dense, seed));
    const std::string what = fmt::format("{}\n{}\n{}", seed, tile.text, options::to_text(tile.options));
    const Result<gpu::Mapping> asked = mapped(program, tile.options, kDevice);
    const options::MappingOptions options = asked ? tile.options : options::MappingOptions();
    const Result<gpu::Mapping> mapping = mapped(program, options, kDevice);
    ASSERT_TRUE(mapping) << what << mapping.error().to_string();
    by_boxes += asked && parts_of(mapping->program).box_copies > 0;
    EXPECT_EQ(difference(program, options, seed, kDevice), "") << what;
    if (seed % 4 == 0) EXPECT_EQ(unproved(mapping->program), "") << what;
  }
  EXPECT_GE(by_boxes, 4);
}

}  // namespace
}  // namespace tc::testing
