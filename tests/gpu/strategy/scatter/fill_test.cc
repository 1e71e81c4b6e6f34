#include "tc/gpu/strategy/scatter/fill.h"

#include <gtest/gtest.h>

#include "tests/common/program.h"
#include "tests/gpu/proved.h"

/// Reductions of a product's results, which the product's launch prepares.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

std::string product(const std::string& results, const std::string& then) {
  return "def f(float(M,K) A, float(K,N) B) -> (C, " + results + ") {\n C(m,n) +=! A(m,k) * B(k,n)\n " + then + " }";
}

size_t launches_of(const std::string& text, const options::MappingOptions& options = {}) {
  const Result<gpu::Mapping> mapping = mapped(specialised_from(text, {{"M", 2048}, {"N", 1024}, {"K", 256}}), options);
  return mapping ? mapping->kernels.size() : 0;
}

TEST(Fill, ReductionsAfterAProductAreOneLaunchMore) {
  EXPECT_EQ(launches_of(product("x", "x(n) max=! C(m,n)")), 2U);
  EXPECT_EQ(launches_of(product("x", "x(n) min=! C(m,n)")), 2U);
  EXPECT_EQ(launches_of(product("r", "r(m) +=! C(m,n)")), 2U);
  EXPECT_EQ(launches_of(product("s", "s max=! C(m,n)")), 2U);
  // Partial sums of tiles are added up in order: by atomic updates only where somebody asks for them.
  EXPECT_EQ(launches_of(product("s", "s +=! C(m,n)")), 2U);
  const options::MappingOptions atomic{.atomic_reduction = true};
  EXPECT_EQ(launches_of(product("s", "s +=! C(m,n)"), atomic), 2U);
  EXPECT_EQ(launches_of(product("x", "x(n) +=! C(m,n)"), atomic), 2U);
  EXPECT_EQ(launches_of(product("x", "x(n) = 1\n x(n) max= C(m,n)"), atomic), 2U);
}

/// A device on which a few thousand instances are worth a launch.
gpu::Device small_device() {
  gpu::Device device;
  device.processors = 8;
  device.instances_of_launch = 512;
  return device;
}

TEST(Fill, AgreesWithTheOracleAndIsProved) {
  for (const char* results : {"x", "s", "r"}) {
    for (const char* op : {"max", "min", "+"}) {
      const std::string left = *results == 'x' ? "x(n) " : *results == 's' ? "s " : "r(m) ";
      const std::string text = product(results, left + op + "=! C(m,n)");
      SCOPED_TRACE(text);
      for (const Sizes& sizes :
           std::vector<Sizes>{{{"M", 96}, {"N", 64}, {"K", 8}}, {{"M", 61}, {"N", 35}, {"K", 5}}}) {
        const ir::Program program = specialised_from(text, sizes);
        EXPECT_EQ(faults_of(program, small_device()), "");
        const options::MappingOptions options{.split_reduction = 4, .atomic_reduction = true};
        const Result<gpu::Mapping> mapping = mapped(program, options, small_device());
        if (!mapping) continue;  // rows need no parts
        EXPECT_EQ(unproved(mapping->program), "");
        EXPECT_EQ(difference_of_mapping(program, *mapping), "");
      }
    }
  }
}

TEST(Fill, StaysApartWhereTheLaunchBeforeUsesTheResult) {
  const std::string text = R"(def f(float(M,K) A, float(K,N) B, float(N) w) -> (C, x) {
 x(n) = w(n) * 2
 C(m,n) = x(n)
 C(m,n) += A(m,k) * B(k,n)
 x(n) max=! C(m,n) })";
  const ir::Program program = specialised_from(text, {{"M", 96}, {"N", 64}, {"K", 8}});
  EXPECT_EQ(faults_of(program, small_device()), "");
}

}  // namespace
}  // namespace tc::testing
