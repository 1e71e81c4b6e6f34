#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tc/gpu/strategy/coverage.h"
#include "tc/interp/compare.h"
#include "tc/tile/build.h"
#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Streamed chains whose blocks leave out slabs that a mask hides.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

const options::MappingOptions kChained{.split_reduction = 1, .copy_operands = false, .chain = true};

/// A device without products of warpgroups.
const gpu::Device kWarps = [] {
  gpu::Device device;
  device.architecture = 80;
  device.accelerated = false;
  return device;
}();

/// An H100 on which nothing is worth doing by mma.sync.
const gpu::Device kWarpgroups = [] {
  gpu::Device device;
  device.shared_bytes = 227 * 1024;
  device.tensor_products = 1;
  return device;
}();

/// 64 rows of one warpgroup, 16 columns of the second product, slabs of 64, and stages.
options::MappingOptions by_warpgroups(int64_t stages) {
  options::MappingOptions options = kChained;
  options.tensor_cores = true;
  options.tile = {64, 16, 64};
  options.register_tile = {2, 4};
  options.map_to_threads = {4, 32, 1};
  options.copy_stages = stages;
  return options;
}

/// 16 rows of each of two warps, slabs of 32.
const options::MappingOptions kByWarps = [] {
  options::MappingOptions options = kChained;
  options.tensor_cores = true;
  options.tile = {32, 16, 32};
  options.register_tile = {2, 4};
  options.map_to_threads = {4, 16, 1};
  options.copy_stages = 3;
  return options;
}();

struct Case {
  const char* name;
  std::string text;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// The points of attention between the two products.
std::string attention(const std::string& points) {
  return R"(
def f(half(N,D) Q, half(N,D) K, half(N,E) V, bool(N) keep, float(N) bias) -> (float(N,E) O, float(N) total) {
  float S(n,m) +=! Q(n,d) * K(m,d)
)" + points +
         R"(
  float total(n) +=! float(P(n,m))
  float A(n,e) +=! P(n,m) * V(m,e)
  O(n,e) = total(n) == 0.0 ? 0.0 : A(n,e) / total(n)
})";
}

std::string masked(const std::string& condition, const std::string& number) {
  return attention("  S(n,m) = " + condition + " ? S(n,m) : " + number + R"(
  top(n) max=! S(n,m)
  half P(n,m) = half(exp((S(n,m) - top(n)) * 0.25)))");
}

/// The row's sum has operands of its own, as a product has.
constexpr char kPowersTwice[] = R"(
def f(half(N,D) Q, half(N,D) K, half(N,E) V, bool(N) keep, float(N) bias) -> (float(N,E) O, float(N) total) {
  float S(n,m) +=! Q(n,d) * K(m,d)
  S(n,m) = m <= n ? S(n,m) : -1e30
  top(n) max=! S(n,m)
  total(n) +=! exp(S(n,m) - top(n))
  float A(n,e) +=! half(exp(S(n,m) - top(n))) * V(m,e)
  O(n,e) = A(n,e) / total(n)
})";

const Case kCases[] = {
    {"Infinity", masked("m <= n", "-inf")},
    {"Number", masked("m <= n", "-1e30")},
    {"NumberThatCounts", masked("m <= n", "-2.0")},
    {"TurnedRound", attention(R"(
  T(n,m) = n < m ? -inf : S(n,m) * 0.25
  top(n) max=! T(n,m)
  half P(n,m) = half(exp(T(n,m) - top(n))))")},
    {"Upwards", masked("m >= n", "-inf")},
    {"Window", masked("abs(m - n) <= 20", "-inf")},
    {"WindowOfTwo", masked("m <= n && m > n - 40", "-1e30")},
    {"AndData", masked("m <= n && keep(m)", "-inf")},
    {"Bias", attention(R"(
  S(n,m) = m <= n ? S(n,m) + bias(m) : -1e30
  top(n) max=! S(n,m)
  half P(n,m) = half(exp((S(n,m) - top(n)) * 0.25)))")},
    {"Least", attention(R"(
  T(n,m) = m <= n ? -0.25 * S(n,m) : 1e30
  least(n) min=! T(n,m)
  half P(n,m) = half(exp(least(n) - T(n,m))))")},
    {"NoMaximum", attention(R"(
  half P(n,m) = m <= n ? half(fmax(S(n,m), 0.0)) : half(0.0))")},
    {"FarRows", masked("m + 100 <= n", "-inf")},
    {"FarRowsOfNumbers", masked("m + 100 <= n", "-1e30")},
    {"PowersTwice", kPowersTwice},
};

const Sizes kSizes = {{"N", 200}, {"D", 32}, {"E", 16}};

struct Kind {
  const char* name;
  gpu::Device device;
  options::MappingOptions options;
};
const Kind kKinds[] = {
    {"Warps", kWarps, kByWarps},
    {"Warpgroups", kWarpgroups, by_warpgroups(2)},
    {"Overlapped", kWarpgroups, by_warpgroups(3)},
};

class IdleSlabs : public ::testing::TestWithParam<std::tuple<Case, int>> {
 protected:
  ir::Program program() const { return specialised_from(std::get<0>(GetParam()).text, kSizes); }
  const Kind& kind() const { return kKinds[std::get<1>(GetParam())]; }
};

/// Whether blocks have numbers of slabs of their own.
bool leaves_slabs(const gpu::Mapping& mapping) {
  bool result = false;
  tile::for_each_node(mapping.program.kernels[0].body, [&](const tile::Node& node) {
    const auto* let = std::get_if<tile::Let>(&node.node);
    result = result || (let && (let->name == "slabs" || let->name == "first_slab"));
  });
  return result;
}

TEST_P(IdleSlabs, AreLeftOut) {
  const Result<gpu::Mapping> mapping = mapped(program(), kind().options, kind().device);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_TRUE(leaves_slabs(*mapping)) << gpu::report(*mapping);
}

TEST_P(IdleSlabs, AgreeWithTheOracle) { EXPECT_EQ(difference(program(), kind().options, 1, kind().device), ""); }

TEST_P(IdleSlabs, AreProved) {
  const ir::Program own = program();
  const Result<gpu::Mapping> mapping = mapped(own, kind().options, kind().device);
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ(unproved(mapping->program), "");
  bool leaves_idle = false;
  for (const tile::Coverage& coverage : gpu::cover(*mapping)) {
    EXPECT_EQ(coverage.faults, std::vector<std::string>());
    for (const tile::Coverage::Item& item : coverage.items) {
      EXPECT_TRUE(item.complete) << item.name;
      leaves_idle = leaves_idle || item.leaves_idle;
    }
  }
  EXPECT_TRUE(leaves_idle);
}

INSTANTIATE_TEST_SUITE_P(Masks, IdleSlabs, ::testing::Combine(::testing::ValuesIn(kCases), ::testing::Range(0, 3)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + kKinds[std::get<1>(info.param)].name;
                         });

/// Infinities and NaN of operands: rows whose other points are all -inf have the mask's number as their maximum.
TEST(IdleSlab, InfinitiesAndNaN) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* number : {"-inf", "-1e30"}) {
    const ir::Program program =
        specialised_from(attention(std::string("  S(n,m) = m <= n ? S(n,m) + bias(m) : ") + number + R"(
  top(n) max=! S(n,m)
  half P(n,m) = half(exp((S(n,m) - top(n)) * 0.25)))"),
                         kSizes);
    for (const Kind& kind : kKinds) {
      const Result<gpu::Mapping> mapping = mapped(program, kind.options, kind.device);
      ASSERT_TRUE(mapping) << mapping.error().to_string();
      ASSERT_TRUE(leaves_slabs(*mapping));
      for (const double first : {-inf, -3e38, inf, nan, -1e30}) {
        interp::Environment data = data_for(program, 1);
        std::vector<double>& bias = data.at("bias").floats;
        for (size_t m = 0; m < 70; ++m) bias[m] = first == inf || std::isnan(first) ? 0 : first;
        bias[40] = first;
        const Result<interp::BoundedEnvironment> oracle = interp::run_bounded(program, data);
        ASSERT_TRUE(oracle) << oracle.error().to_string();
        const Result<interp::Environment> results = simulated(program, *mapping, data);
        ASSERT_TRUE(results) << results.error().to_string();
        for (const interp::Comparison& comparison : interp::compare(*results, *oracle)) {
          EXPECT_TRUE(comparison.agrees) << kind.name << " " << number << " " << first << ": " << comparison.sentence;
          EXPECT_GT(comparison.elements, comparison.undecidable * 2) << comparison.sentence;
        }
      }
    }
  }
}

/// Masks under which hidden points count, and a maximum of what no mask hides.
TEST(IdleSlab, AreDoneWhereTheyCount) {
  for (const std::string& text : {
           attention(R"(
  top(n) max=! S(n,m)
  half P(n,m) = m <= n ? half(exp((S(n,m) - top(n)) * 0.25)) : half(0.0))"),
           attention(R"(
  half P(n,m) = m <= n ? half(fmax(S(n,m), 0.0)) : half(1.0))"),
           attention(R"(
  half T(n,m) = half(m <= n ? S(n,m) : -1e30)
  top(n) max=! T(n,m)
  half P(n,m) = half(exp(T(n,m) - top(n))))"),
           masked("keep(m)", "-inf"),
       }) {
    const ir::Program program = specialised_from(text, kSizes);
    for (const Kind& kind : kKinds) {
      const Result<gpu::Mapping> mapping = mapped(program, kind.options, kind.device);
      if (!mapping) continue;
      EXPECT_FALSE(leaves_slabs(*mapping)) << text;
      EXPECT_EQ(difference(program, kind.options, 1, kind.device), "") << text;
    }
  }
}

/// A kernel that leaves out a slab more is refused.
TEST(IdleSlab, NoOthersAreLeftOut) {
  const ir::Program program = specialised_from(masked("m <= n && m > n - 70", "-inf"), kSizes);
  for (const Kind& kind : kKinds) {
    const Result<gpu::Mapping> right = mapped(program, kind.options, kind.device);
    ASSERT_TRUE(right) << right.error().to_string();
    for (const std::string name : {"slabs", "first_slab"}) {
      gpu::Mapping mutant = *right;
      const std::function<tile::NodePtr(const tile::NodePtr&)> change = [&](const tile::NodePtr& node) {
        if (!node) return node;
        const tile::NodePtr inner = tile::map_children(node, change);
        const auto* let = std::get_if<tile::Let>(&inner->node);
        if (!let || let->name != name) return inner;
        return tile::build::let(name, let->value + Halide::Expr(name == "slabs" ? -1 : 1), let->body);
      };
      mutant.program.kernels[0].body = change(mutant.program.kernels[0].body);
      EXPECT_FALSE(gpu::cover(mutant)[0].faults.empty()) << kind.name << " " << name;
    }
  }
}

}  // namespace
}  // namespace tc::testing
