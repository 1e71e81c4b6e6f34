#include <gtest/gtest.h>

#include "tc/gpu/strategy/coverage.h"
#include "tc/tile/build.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"
#include "tests/random/streams.h"

/// Streamed chains by products of warpgroups: one thread copies slabs to a ring, and what a warpgroup makes of the
/// first product's sums is the operand of the second one, in registers.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

const options::MappingOptions kChained{.split_reduction = 1, .copy_operands = false, .chain = true};

/// An H100 on which nothing is worth doing by mma.sync.
const gpu::Device kDevice = [] {
  gpu::Device device;
  device.shared_bytes = 227 * 1024;
  device.tensor_products = 1;
  return device;
}();

/// Its blocks go through several tiles of rows.
const gpu::Device kOneProcessor = [] {
  gpu::Device device = kDevice;
  device.processors = 1;
  return device;
}();

struct Case {
  const char* name;
  const char* text;
  Sizes sizes;
  options::MappingOptions options = kChained;
  const gpu::Device& device = kDevice;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr char kRelu[] = R"(
def f(half(B,N,D) Q, half(B,M,D) K, half(B,M,E) V) -> (float(B,N,E) O) {
  float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)
  half P(b,n,m) = half(fmax(S(b,n,m), 0.0) * 0.5)
  O(b,n,e) +=! P(b,n,m) * V(b,m,e)
})";

/// No batches, keys and values in columns, a bias of each column, and results that follow the second product.
constexpr char kTransposed[] = R"(
def f(bfloat16(D,N) Q, bfloat16(D,M) K, bfloat16(E,M) V, float(M) bias, float(E) c) -> (bfloat16(N,E) O) {
  float S(n,m) +=! Q(d,n) * K(d,m)
  bfloat16 P(n,m) = bfloat16(fmax(S(n,m) + bias(m), 0.0))
  float A(n,e) +=! P(n,m) * V(e,m)
  O(n,e) = bfloat16(A(n,e) * 0.5 + c(e))
})";

constexpr char kCausal[] = R"(
def f(half(N,D) Q, half(N,D) K, half(N,E) V) -> (float(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  S(n,m) = m <= n ? S(n,m) : 0.0
  half P(n,m) = half(S(n,m))
  O(n,e) +=! P(n,m) * V(m,e)
})";

constexpr char kRowSums[] = R"(
def f(half(N,D) Q, half(M,D) K, half(M,E) V) -> (float(N,E) O, float(N) most) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  half P(n,m) = half(fmax(S(n,m), 0.0))
  total(n) +=! float(P(n,m))
  most(n) max=! P(n,m)
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = A(n,e) - total(n)
})";

/// Several rows of queries share keys and values.
constexpr char kShared[] = R"(
def f(half(B,R,N,D) Q, half(B,M,D) K, half(B,M,E) V) -> (half(B,R,N,E) O) {
  float S(b,r,n,m) +=! Q(b,r,n,d) * K(b,m,d)
  half P(b,r,n,m) = half(fmin(S(b,r,n,m), 64.0))
  float A(b,r,n,e) +=! P(b,r,n,m) * V(b,m,e)
  O(b,r,n,e) = half(A(b,r,n,e) * 0.125)
})";

/// Rows that lie apart.
constexpr char kTwoAxes[] = R"(
def f(half(R,B,N,D) Q, half(B,M,D) K, half(B,M,E) V) -> (half(B,R,N,E) O) {
  float S(b,r,n,m) +=! Q(r,b,n,d) * K(b,m,d)
  half P(b,r,n,m) = half(fmin(S(b,r,n,m), 64.0))
  float A(b,r,n,e) +=! P(b,r,n,m) * V(b,m,e)
  O(b,r,n,e) = half(A(b,r,n,e) * 0.125)
})";

/// The maxima go on over the slabs, and correct the sums.
constexpr char kAttention[] = R"(
def f(half(B,N,D) Q, half(B,M,D) K, half(B,M,E) V) -> (half(B,N,E) O) {
  float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)
  top(b,n) max=! S(b,n,m)
  half P(b,n,m) = half(exp((S(b,n,m) - top(b,n)) * rsqrt(float(D))))
  float total(b,n) +=! float(P(b,n,m))
  float A(b,n,e) +=! P(b,n,m) * V(b,m,e)
  O(b,n,e) = half(A(b,n,e) / total(b,n))
})";

constexpr char kCausalAttention[] = R"(
def f(half(N,D) Q, half(N,D) K, half(N,E) V) -> (half(N,E) O, float(N) top) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  S(n,m) = m <= n ? S(n,m) : -1e30
  top(n) max=! S(n,m)
  half P(n,m) = half(exp((S(n,m) - top(n)) * rsqrt(float(D))))
  float total(n) +=! float(P(n,m))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = half(A(n,e) / total(n))
})";

/// Those of a plan by warpgroups: tiles of the batch, rows and columns of the second product, a slab, and stages.
options::MappingOptions sizes_of(const std::vector<int64_t>& batch, int64_t rows, int64_t columns, int64_t slab,
                                 int64_t stages) {
  options::MappingOptions options = kChained;
  options.tensor_cores = true;
  options.tile = batch;
  options.tile.insert(options.tile.end(), {rows, columns, slab});
  options.register_tile = batch;
  options.register_tile.insert(options.register_tile.end(), {2, columns / 4});
  options.map_to_threads = {4, rows / 2, 1};
  options.copy_stages = stages;
  return options;
}

options::MappingOptions persistent(options::MappingOptions options) {
  options.persistent = true;
  return options;
}

/// Rows of two axes: 16 of each of 4.
const options::MappingOptions kOfTwoAxes = [] {
  options::MappingOptions options = sizes_of({1}, 64, 32, 64, 2);
  options.tile = {1, 4, 16, 32, 64};
  options.register_tile = {1, 1, 2, 8};
  return options;
}();

const Case kCases[] = {
    {"Whole", kRelu, {{"B", 2}, {"N", 64}, {"D", 32}, {"M", 192}, {"E", 32}}, sizes_of({1}, 64, 32, 64, 2)},
    {"PartialRowsAndColumns",
     kRelu,
     {{"B", 1}, {"N", 45}, {"D", 24}, {"M", 1034}, {"E", 40}},
     sizes_of({1}, 64, 40, 64, 3)},
    {"SeveralBoxesOfAStep",
     kRelu,
     {{"B", 1}, {"N", 70}, {"D", 136}, {"M", 272}, {"E", 72}},
     sizes_of({1}, 64, 72, 128, 2)},
    {"TwoWarpgroups", kRelu, {{"B", 2}, {"N", 130}, {"D", 64}, {"M", 264}, {"E", 64}}, sizes_of({1}, 128, 64, 64, 3)},
    {"ThreeWarpgroups", kRelu, {{"B", 1}, {"N", 200}, {"D", 40}, {"M", 200}, {"E", 32}}, sizes_of({1}, 192, 32, 64, 2)},
    {"OfTwoDimensions", kTransposed, {{"N", 56}, {"D", 48}, {"M", 168}, {"E", 24}}, sizes_of({}, 64, 24, 64, 2)},
    {"Guarded", kCausal, {{"N", 136}, {"D", 16}, {"E", 8}}, sizes_of({}, 64, 8, 64, 3)},
    {"RowSums", kRowSums, {{"N", 64}, {"D", 32}, {"M", 128}, {"E", 16}}},
    {"RowSumsOfPartialSlabs", kRowSums, {{"N", 19}, {"D", 16}, {"M", 90}, {"E", 24}}},
    {"SharedKeys",
     kShared,
     {{"B", 2}, {"R", 4}, {"N", 20}, {"D", 32}, {"M", 80}, {"E", 32}},
     sizes_of({1}, 64, 32, 64, 2)},
    {"RowsOfTwoAxes", kTwoAxes, {{"B", 2}, {"R", 4}, {"N", 20}, {"D", 32}, {"M", 80}, {"E", 32}}, kOfTwoAxes},
    {"Attention", kAttention, {{"B", 2}, {"N", 70}, {"D", 32}, {"M", 200}, {"E", 32}}, sizes_of({1}, 64, 32, 64, 2)},
    {"OverlappedAttention",
     kAttention,
     {{"B", 1}, {"N", 130}, {"D", 64}, {"M", 256}, {"E", 64}},
     sizes_of({1}, 128, 64, 64, 3)},
    {"CausalAttention", kCausalAttention, {{"N", 136}, {"D", 32}, {"E", 16}}, sizes_of({}, 64, 16, 64, 3)},
    {"Persistent",
     kRelu,
     {{"B", 6}, {"N", 70}, {"D", 32}, {"M", 136}, {"E", 32}},
     persistent(sizes_of({1}, 64, 32, 64, 2)),
     kOneProcessor},
    {"PersistentAttention",
     kAttention,
     {{"B", 6}, {"N", 70}, {"D", 24}, {"M", 130}, {"E", 40}},
     persistent(sizes_of({1}, 64, 40, 64, 2)),
     kOneProcessor},
    {"PersistentOverlapped",
     kAttention,
     {{"B", 4}, {"N", 130}, {"D", 64}, {"M", 200}, {"E", 64}},
     persistent(sizes_of({1}, 128, 64, 64, 3)),
     kOneProcessor},
    {"OddDepth", kRelu, {{"B", 1}, {"N", 64}, {"D", 48}, {"M", 136}, {"E", 16}}, sizes_of({1}, 64, 16, 64, 2)},
};

/// Each case where the first product's operand stays in registers, and where it stays in shared memory.
std::vector<Case> cases_of_both() {
  std::vector<Case> result;
  for (const Case& c : kCases) {
    for (const bool shared : {false, true}) {
      if (c.options.persistent && !shared) continue;  // threads hold the operand of one tile
      Case& one = result.emplace_back(c);
      (shared ? one.options.use_shared_memory : one.options.use_private_memory) = true;
    }
  }
  return result;
}

bool by_warpgroups(const gpu::Mapping& mapping) {
  bool result = false;
  tile::for_each_node(mapping.program.kernels.back().body, [&](const tile::Node& node) {
    const tile::WarpgroupMatMul* product = tile::warpgroup_product_of(node);
    result = result || (product && product->held);
  });
  return result;
}

int rings_of(const gpu::Mapping& mapping) {
  int result = 0;
  tile::for_each_node(mapping.program.kernels.back().body,
                      [&](const tile::Node& node) { result += tile::ring_of(node) ? 1 : 0; });
  return result;
}

class WarpgroupStreams : public ::testing::TestWithParam<Case> {
 protected:
  ir::Program program() const { return specialised_from(GetParam().text, GetParam().sizes); }
  const options::MappingOptions& options() const { return GetParam().options; }
  const gpu::Device& device() const { return GetParam().device; }
};

TEST_P(WarpgroupStreams, AreOneLaunch) {
  const Result<gpu::Mapping> mapping = mapped(program(), options(), device());
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(mapping->kernels.size(), 1U) << gpu::report(*mapping);
  EXPECT_TRUE(by_warpgroups(*mapping)) << gpu::report(*mapping);
  EXPECT_TRUE(mapping->program.workspace.empty());
  EXPECT_EQ(rings_of(*mapping), options().use_shared_memory ? 2 : 1);
  if (options().persistent) EXPECT_LT(mapping->program.kernels[0].grid[0], 8);
}

TEST_P(WarpgroupStreams, AgreeWithTheOracle) {
  for (const uint64_t seed : {1, 2}) EXPECT_EQ(difference(program(), options(), seed, device()), "");
}

TEST_P(WarpgroupStreams, AreProved) {
  const ir::Program own = program();
  const Result<gpu::Mapping> mapping = mapped(own, options(), device());
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(unproved(mapping->program), "");
  for (const tile::Coverage& coverage : gpu::cover(*mapping)) {
    EXPECT_EQ(coverage.faults, std::vector<std::string>());
    for (const tile::Coverage::Item& item : coverage.items) EXPECT_TRUE(item.complete) << item.name;
  }
}

TEST_P(WarpgroupStreams, OptionsGiveThemAgain) {
  const ir::Program own = program();
  const Result<gpu::Mapping> first = mapped(own, options(), device());
  ASSERT_TRUE(first) << first.error().to_string();
  const options::MappingOptions chosen = gpu::options_for(*first, 0);
  const Result<gpu::Mapping> again = mapped(own, chosen, device());
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(gpu::report(*again), gpu::report(*first));
}

INSTANTIATE_TEST_SUITE_P(Products, WarpgroupStreams, ::testing::ValuesIn(cases_of_both()), [](const auto& info) {
  return std::string(info.param.name) + (info.param.options.use_shared_memory ? "Shared" : "Held");
});

/// With three stages and registers enough a warpgroup multiplies while it makes the next points.
TEST(WarpgroupStream, OverlapsProductsAndPoints) {
  const ir::Program program = specialised_from(kRelu, {{"B", 1}, {"N", 64}, {"D", 32}, {"M", 192}, {"E", 32}});
  for (const int64_t stages : {2, 3}) {
    const Result<gpu::Mapping> mapping = mapped(program, sizes_of({1}, 64, 32, 64, stages), kDevice);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    int most = 0;  // groups of products that a wait leaves
    tile::for_each_node(mapping->program.kernels[0].body, [&](const tile::Node& node) {
      if (const tile::MatMulWait* wait = tile::matmul_wait_of(node)) most = std::max(most, wait->pending);
    });
    EXPECT_EQ(most, stages == 3 ? 1 : 0);
  }
}

/// Operands whose rows boxes do not take, and devices without such products.
TEST(WarpgroupStream, LeavesOthersToWarps) {
  const ir::Program odd = specialised_from(kRelu, {{"B", 1}, {"N", 64}, {"D", 36}, {"M", 192}, {"E", 32}});
  const ir::Program whole = specialised_from(kRelu, {{"B", 1}, {"N", 64}, {"D", 32}, {"M", 192}, {"E", 32}});
  gpu::Device older = kDevice;
  older.architecture = 80;
  older.accelerated = false;
  for (const auto& [program, device] : {std::pair{odd, kDevice}, std::pair{whole, older}}) {
    const Result<gpu::Mapping> mapping = mapped(program, kChained, device);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_FALSE(by_warpgroups(*mapping));
    EXPECT_EQ(difference_of_mapping(program, *mapping), "");
  }
}

/// What the report says of a def of one kernel, as options of the def. Its sizes are those of flattened axes.
TEST(WarpgroupStream, IsChosenAgainByOptionsOfTheDef) {
  constexpr char kHeads[] = R"(
def f(half(B,H,N,D) Q, half(B,H,N,D) K, half(B,H,N,D) V) -> (half(B,H,N,D) O) {
  float S(b,h,n,m) +=! Q(b,h,n,d) * K(b,h,m,d)
  top(b,h,n) max=! S(b,h,n,m)
  P(b,h,n,m) = exp(S(b,h,n,m) - top(b,h,n))
  float total(b,h,n) +=! P(b,h,n,m)
  float A(b,h,n,d) +=! half(P(b,h,n,m)) * V(b,h,m,d)
  O(b,h,n,d) = half(A(b,h,n,d) / total(b,h,n))
})";
  gpu::Device device;
  device.shared_bytes = 227 * 1024;
  const ir::Program program = specialised_from(kHeads, {{"B", 16}, {"H", 16}, {"N", 384}, {"D", 64}});
  const Result<gpu::Mapping> first = mapped(program, {}, device);
  ASSERT_TRUE(first) << first.error().to_string();
  ASSERT_EQ(first->kernels.size(), 1U) << gpu::report(*first);
  const Result<gpu::Mapping> again = mapped(program, first->kernels[0].chosen, device);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(gpu::report(*again), gpu::report(*first));
}

/// Two warpgroups have more registers than their share at the start.
TEST(WarpgroupStream, GivesRegistersOfTheCopyingWarpsToOthers) {
  const ir::Program program = specialised_from(kRelu, {{"B", 64}, {"N", 4096}, {"D", 128}, {"M", 4096}, {"E", 128}});
  gpu::Device device;
  device.shared_bytes = 227 * 1024;
  const Result<gpu::Mapping> mapping = mapped(program, sizes_of({1}, 128, 128, 128, 3), device);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_TRUE(by_warpgroups(*mapping)) << gpu::report(*mapping);
  std::optional<tile::RegisterShares> shares;
  tile::for_each_node(mapping->program.kernels[0].body, [&](const tile::Node& node) {
    if (const tile::Ring* ring = tile::ring_of(node)) shares = ring->registers;
  });
  EXPECT_EQ(shares, (tile::RegisterShares{240, 24}));
  EXPECT_EQ(mapping->program.kernels[0].block[0], 384);
}

TEST(WarpgroupStream, RandomProgramsAgree) {
  int streamed = 0;
  for (uint64_t seed = 101; seed <= 124; ++seed) {
    const RandomProduct random = random_stream(seed);
    const ir::Program program = specialised_from(random.text, random.sizes);
    const Result<gpu::Mapping> mapping = mapped(program, kChained, kDevice);
    if (!mapping || !by_warpgroups(*mapping)) continue;
    ++streamed;
    EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "") << seed << "\n" << random.text;
    EXPECT_EQ(unproved(mapping->program), "") << seed << "\n" << random.text;
  }
  EXPECT_GE(streamed, 8);
}

TEST(WarpgroupStream, RandomProgramsAgreeByPersistentBlocks) {
  int persist = 0;
  for (uint64_t seed = 201; seed <= 260; ++seed) {
    RandomProduct random = random_stream(seed);
    if (random.sizes.count("B") == 0) continue;  // one tile
    random.sizes["B"] = 9;
    const ir::Program program = specialised_from(random.text, random.sizes);
    const Result<gpu::Mapping> mapping = mapped(program, persistent(kChained), kOneProcessor);
    if (!mapping || !by_warpgroups(*mapping)) continue;
    ++persist;
    EXPECT_EQ(difference_of_mapping(program, *mapping, seed), "") << seed << "\n" << random.text;
    EXPECT_EQ(unproved(mapping->program), "") << seed << "\n" << random.text;
    for (const tile::Coverage& coverage : gpu::cover(*mapping)) {
      EXPECT_EQ(coverage.faults, std::vector<std::string>()) << seed << "\n" << random.text;
    }
  }
  EXPECT_GE(persist, 4);
}

/// Boxes bring whole rows of 64 values. Where rows run along the slab, it has a multiple of these.
/// Rows of 577 are no boxes. The second product alone would take a copy of them with rows of 584; in the chain nobody
/// stores them.
TEST(WarpgroupStream, IsChosenBeforeCopiesOfWhatAProductMakes) {
  constexpr char kAttention[] = R"(
def f(half(B,N,D) Q, half(B,N,D) K, half(B,N,D) V) -> (half(B,N,D) O) {
  float S(b,n,m) +=! Q(b,n,d) * K(b,m,d)
  top(b,n) max=! S(b,n,m)
  half P(b,n,m) = half(exp(S(b,n,m) - top(b,n)))
  float total(b,n) +=! float(P(b,n,m))
  float A(b,n,d) +=! P(b,n,m) * V(b,m,d)
  O(b,n,d) = half(A(b,n,d) / total(b,n))
})";
  gpu::Device device;
  device.shared_bytes = 227 * 1024;
  const ir::Program program = specialised_from(kAttention, {{"B", 128}, {"N", 577}, {"D", 128}});
  const auto launches = [&](const options::MappingOptions& options) {
    const Result<gpu::Mapping> mapping = mapped(program, options, device);
    EXPECT_TRUE(mapping) << mapping.error().to_string();
    return mapping ? mapping->kernels.size() : 0;
  };
  EXPECT_EQ(launches({}), 1U);
  EXPECT_GT(launches({.chain = false}), 2U);
  EXPECT_GT(launches({.copy_operands = true}), 2U);
}

TEST(WarpgroupStream, SlabsHaveWholeRows) {
  const char* text = R"(
def f(half(N,D) Q, half(M,D) K, half(E,M) V) -> (half(N,E) O) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  half P(n,m) = half(fmax(S(n,m), 0.0))
  float A(n,e) +=! P(n,m) * V(e,m)
  O(n,e) = half(A(n,e))
})";
  const ir::Program program = specialised_from(text, {{"N", 64}, {"M", 136}, {"D", 16}, {"E", 16}});
  EXPECT_FALSE(mapped(program, sizes_of({}, 64, 16, 96, 2), kDevice));
  for (const int64_t slab : {64, 128}) {
    const Result<gpu::Mapping> mapping = mapped(program, sizes_of({}, 64, 16, slab, 2), kDevice);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_TRUE(by_warpgroups(*mapping));
    EXPECT_EQ(difference_of_mapping(program, *mapping), "");
  }
}

using Change = std::function<tile::NodePtr(const tile::NodePtr&)>;

/// The tree with every node replaced, from the leaves up.
tile::NodePtr changed(const tile::NodePtr& node, const Change& change) {
  if (!node) return node;
  return change(tile::map_children(node, [&](const tile::NodePtr& child) { return changed(child, change); }));
}

/// The certificate refuses each of these, or the simulator finds it.
TEST(WarpgroupStream, WrongWaitsAreCaught) {
  const Case& c = kCases[3];
  const ir::Program program = specialised_from(c.text, c.sizes);
  const Result<gpu::Mapping> right = mapped(program, c.options, kDevice);
  ASSERT_TRUE(right) << right.error().to_string();
  const auto without_wait = [](const std::string& sum) -> Change {
    return [=](const tile::NodePtr& node) {
      const tile::MatMulWait* wait = tile::matmul_wait_of(*node);
      const bool is_it = wait && std::find(wait->sums.begin(), wait->sums.end(), sum) != wait->sums.end();
      return is_it ? tile::build::sequence({}) : node;
    };
  };
  const auto without_step = [](tile::RingStep::Kind kind) -> Change {
    return [=](const tile::NodePtr& node) {
      const tile::RingStep* step = tile::ring_step_of(*node);
      return step && step->kind == kind ? tile::build::sequence({}) : node;
    };
  };
  const Change leaves_operand = [](const tile::NodePtr& node) {
    const tile::MatMulWait* wait = tile::matmul_wait_of(*node);
    if (!wait || wait->sums.size() < 2) return node;
    return tile::build::matmul_wait(wait->pending, {wait->sums[0]});
  };
  const std::vector<std::pair<const char*, Change>> mutants = {
      {"no wait for the first sums", without_wait("S_sum")},
      {"no wait for the second sums", without_wait("O_sum")},
      {"a wait that leaves the operand", leaves_operand},
      {"no await", without_step(tile::RingStep::Kind::kAwait)},
      {"no release", without_step(tile::RingStep::Kind::kRelease)},
      {"no acquire", without_step(tile::RingStep::Kind::kAcquire)},
  };
  EXPECT_EQ(unproved(right->program), "");
  for (const auto& [name, change] : mutants) {
    tile::Program mutant = right->program;
    mutant.kernels[0].body = changed(mutant.kernels[0].body, change);
    EXPECT_NE(unproved(mutant), "") << name;
  }
}

/// The same of the ring whose one turn has the first product's operand.
TEST(WarpgroupStream, WrongTurnsOfItsOwnRingAreCaught) {
  const ir::Program program = specialised_from(kCases[3].text, kCases[3].sizes);
  options::MappingOptions options = kCases[3].options;
  options.use_shared_memory = true;
  const Result<gpu::Mapping> right = mapped(program, options, kDevice);
  ASSERT_TRUE(right) << right.error().to_string();
  const auto is_once = [](const tile::NodePtr& node, tile::RingStep::Kind kind) {
    const tile::RingStep* step = tile::ring_step_of(*node);
    return step && step->kind == kind && step->ring == "once_ring";
  };
  const auto without = [&](tile::RingStep::Kind kind) -> Change {
    return [=](const tile::NodePtr& node) { return is_once(node, kind) ? tile::build::sequence({}) : node; };
  };
  const auto into_other_ring = [](const tile::NodePtr& node) {
    const tile::BoxCopy* box = tile::box_of(*node);
    if (!box || box->ring != "once_ring") return node;
    tile::BoxCopy changed = *box;
    changed.ring = "ring";
    return std::make_shared<const tile::Node>(tile::Node{changed, ""});
  };
  const auto behind_slabs = [&](const tile::NodePtr& node) {
    const auto* sequence = std::get_if<tile::Sequence>(&node->node);
    if (!sequence) return node;
    std::vector<tile::NodePtr> children = sequence->children;
    const auto acquires = [&](const tile::NodePtr& child) {
      bool result = false;
      tile::for_each_node(child, [&](const tile::Node& n) {
        const tile::RingStep* step = tile::ring_step_of(n);
        result |= step && step->kind == tile::RingStep::Kind::kAcquire && step->ring == "once_ring";
      });
      return result;
    };
    const auto first = std::find_if(children.begin(), children.end(), acquires);
    const auto loop = std::find_if(first, children.end(), [](const tile::NodePtr& child) {
      return std::holds_alternative<tile::For>(child->node);
    });
    if (loop == children.end()) return node;
    std::rotate(first, loop, std::next(loop));
    return tile::build::sequence(std::move(children));
  };
  EXPECT_EQ(unproved(right->program), "");
  const std::vector<std::pair<const char*, Change>> mutants = {
      {"no await", without(tile::RingStep::Kind::kAwait)},
      {"no acquire", without(tile::RingStep::Kind::kAcquire)},
      {"no commit", without(tile::RingStep::Kind::kCommit)},
      {"a box of the other ring", into_other_ring},
      {"filled behind the slabs, which readers hold until then", behind_slabs},
  };
  for (const auto& [name, change] : mutants) {
    gpu::Mapping mutant = *right;
    mutant.program.kernels[0].body = changed(mutant.program.kernels[0].body, change);
    EXPECT_NE(unproved(mutant.program), "") << name;
    if (std::string(name) != "no acquire") EXPECT_NE(difference_of_mapping(program, mutant), "") << name;
  }
}

/// Of blocks that go through several tiles.
TEST(WarpgroupStream, WrongTurnsOverTilesAreCaught) {
  const auto case_named = [](const std::string& name) {
    return *std::find_if(std::begin(kCases), std::end(kCases), [&](const Case& c) { return name == c.name; });
  };
  const Case c = case_named("PersistentAttention");
  const ir::Program program = specialised_from(c.text, c.sizes);
  options::MappingOptions options = c.options;
  options.use_shared_memory = true;
  const Result<gpu::Mapping> right = mapped(program, options, c.device);
  ASSERT_TRUE(right) << right.error().to_string();
  EXPECT_EQ(unproved(right->program), "");
  using Kind = tile::RingStep::Kind;
  const auto with_step = [](const char* ring, Kind kind, const auto& change) -> Change {
    return [=](const tile::NodePtr& node) {
      const tile::RingStep* step = tile::ring_step_of(*node);
      return step && step->kind == kind && step->ring == ring ? change(*step) : node;
    };
  };
  const auto nothing = [](const tile::RingStep&) { return tile::build::sequence({}); };
  const auto of_first_tile = [](const tile::RingStep& step) {
    tile::RingStep changed = step;
    changed.turn = Halide::Internal::substitute("tiles_before", Halide::Expr(0), step.turn);
    return std::make_shared<const tile::Node>(tile::Node{changed, ""});
  };
  const auto at_every_slab = [](const tile::NodePtr& node) {
    const auto* choice = std::get_if<tile::If>(&node->node);
    const tile::RingStep* step = choice && choice->then_case ? tile::ring_step_of(*choice->then_case) : nullptr;
    return step && step->ring == "once_ring" ? choice->then_case : node;
  };
  const std::vector<std::pair<const char*, Change>> mutants = {
      {"what all slabs read is never released", with_step("once_ring", Kind::kRelease, nothing)},
      {"it is released by each slab", at_every_slab},
      {"it is awaited in the first tile's turn", with_step("once_ring", Kind::kAwait, of_first_tile)},
      {"it is filled in the first tile's turn", with_step("once_ring", Kind::kAcquire, of_first_tile)},
      {"slabs are awaited in the first tile's turns", with_step("ring", Kind::kAwait, of_first_tile)},
      {"slabs are released in the first tile's turns", with_step("ring", Kind::kRelease, of_first_tile)},
  };
  for (const auto& [name, change] : mutants) {
    gpu::Mapping wrong = *right;
    wrong.program.kernels[0].body = changed(right->program.kernels[0].body, change);
    EXPECT_NE(unproved(wrong.program), "") << name;
  }
}

}  // namespace
}  // namespace tc::testing
