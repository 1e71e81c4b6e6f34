#include <gtest/gtest.h>

#include <algorithm>

#include "tc/gpu/strategy/tunables.h"
#include "tests/common/examples.h"
#include "tests/common/program.h"
#include "tests/gpu/simulated.h"

/// Devices that offer less than any that is sold: every recipe stays within what is there.
namespace tc::testing {
namespace {

gpu::Device small_device() {
  gpu::Device device;
  device.threads_per_block = 64;
  device.block = {64, 16, 2};
  device.grid = {500, 7, 3};
  device.shared_bytes = 2048;
  device.processors = 2;
  return device;
}

/// What of the launches goes beyond the device, or "".
std::string beyond(const gpu::Mapping& mapping, const gpu::Device& device) {
  std::string text;
  for (const tile::Kernel& kernel : mapping.program.kernels) {
    const int64_t threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
    bool fits = threads <= device.threads_per_block && kernel.shared_bytes() <= device.shared_bytes;
    for (size_t axis = 0; axis < 3; ++axis) {
      fits = fits && kernel.block[axis] <= device.block[axis] && kernel.grid[axis] <= device.grid[axis];
    }
    if (fits) continue;
    text += fmt::format("{}: grid ({}), block ({}), {} bytes of shared memory\n", kernel.name,
                        fmt::join(kernel.grid, ", "), fmt::join(kernel.block, ", "), kernel.shared_bytes());
  }
  return text;
}

class SmallDevice : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(SmallDevice, IsEnough) {
  const std::string text = text_of(GetParam());
  const ir::Program symbolic = program_from(text);
  const gpu::Device device = small_device();
  for (const int64_t size : {5, 40, 600}) {
    std::map<std::string, int64_t> sizes, scalars;
    int large = 0;
    for (const std::string& name : symbolic.sizes) {
      const bool is_window = name.starts_with("K") && name.size() == 2;
      sizes[name] = is_window ? 3 : large++ < 2 ? size : 5;
    }
    for (const ir::Scalar& scalar : symbolic.scalars) {
      if (scalar.specialised) scalars[scalar.name] = 2;
    }
    const Result<ir::Program> program = try_specialised(text, sizes, scalars);
    if (!program) continue;
    const Result<gpu::Mapping> mapping = mapped(*program, {}, device);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    EXPECT_EQ(beyond(*mapping, device), "");
    if (size < 600) {
      EXPECT_EQ(difference_of_mapping(*program, *mapping), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, SmallDevice, ::testing::ValuesIn(examples()),
                         [](const auto& info) { return info.param.stem().string(); });

using Sizes = std::map<std::string, int64_t>;

struct Case {
  const char* name;
  const char* text;
  Sizes large;        ///< millions of blocks
  Sizes small;        ///< more than the device takes, but few enough to be simulated
  bool grows = true;  ///< with the sizes; else blocks are as many as the processors hold
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.text; }

class SmallGrid : public ::testing::TestWithParam<Case> {};

/// On a device that takes 500 blocks in x, a few in y and in z.
TEST_P(SmallGrid, IsNotExceeded) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().large);
  const Result<gpu::Mapping> mapping = mapped(program, {}, small_device());
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(beyond(*mapping, small_device()), "");
}

TEST_P(SmallGrid, DoesAllThatALargeOneWould) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().small);
  gpu::Device large = small_device();
  large.grid = gpu::Device().grid;
  const Result<gpu::Mapping> ample = mapped(program, {}, large), mapping = mapped(program, {}, small_device());
  ASSERT_TRUE(ample) << ample.error().to_string();
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(beyond(*ample, small_device()) != "", GetParam().grows);
  EXPECT_EQ(beyond(*mapping, small_device()), "");
  EXPECT_EQ(difference(program, {}, 1, small_device()), "");
}

TEST_P(SmallGrid, OffersATunerNoLargerBlocks) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().small);
  const Result<std::vector<gpu::Tunable>> tunables = gpu::tunables(program, {}, small_device());
  ASSERT_TRUE(tunables) << tunables.error().to_string();
  const bool has_kernels =
      std::any_of(tunables->begin(), tunables->end(), [](const gpu::Tunable& t) { return !t.of.writes.empty(); });
  for (const gpu::Tunable& t : *tunables) {
    // Where kernels have fields of their own, the def's are for texts that a search reads.
    const bool is_open = !t.of.writes.empty() || !has_kernels;
    EXPECT_GE(t.values.size(), is_open ? 2U : 1U) << t.field;
    if (t.field != "map_to_threads") continue;
    for (const std::vector<int64_t>& threads : t.values) {
      int64_t all = 1;
      for (size_t axis = 0; axis < threads.size(); ++axis) {
        EXPECT_LE(threads[axis], small_device().block[axis]);
        all *= threads[axis];
      }
      EXPECT_LE(all, small_device().threads_per_block);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Recipes, SmallGrid,
    ::testing::Values(
        Case{"elements", "def f(float(N) x) -> (y) { y(i) = 2 * x(i) }", {{"N", 50000000}}, {{"N", 150000}}},
        Case{"rows",
             "def f(float(N,D) x) -> (m) { m(n) max=! x(n,d) }",
             {{"N", 5000000}, {"D", 64}},
             {{"N", 20000}, {"D", 64}}},
        Case{"contraction",
             "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
             {{"M", 20000}, {"N", 20000}, {"K", 64}},
             {{"M", 500}, {"N", 300}, {"K", 8}}},
        Case{"transposition",
             "def f(float(M,N) A) -> (B) { B(n,m) = A(m,n) }",
             {{"M", 20000}, {"N", 20000}},
             {{"M", 300}, {"N", 270}}},
        Case{"batches",
             "def f(float(B,M,K) X, float(B,K,N) Y) -> (Z) { Z(b,m,n) +=! X(b,m,k) * Y(b,k,n) }",
             {{"B", 40000}, {"M", 26}, {"N", 26}, {"K", 72}},
             {{"B", 600}, {"M", 10}, {"N", 10}, {"K", 9}}},
        Case{"scatter",
             "def f(int32(N) I) -> (H) { H(b) = 0 where b in 0:9\n H(I(i)) += 1 }",
             {{"N", 100000000}},
             {{"N", 40000}},
             false},
        Case{"sum", "def f(float(N) x) -> (s) { s +=! x(i) }", {{"N", 100000000}}, {{"N", 40000}}, false}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tc::testing
