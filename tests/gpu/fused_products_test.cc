#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/gpu/simulated.h"

/// Which statements share a launch with a product: however they are spelled, and as on the oracle.
namespace tc::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

/// The parameters and results of a def, and spellings of the same body.
struct Case {
  const char* name;
  const char* head;
  std::vector<const char*> bodies;
  size_t launches = 1;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const char* const kWithBias = "real(M,K) A, real(K,N) B, real(N) b) -> (C";
const char* const kPlain = "real(M,K) A, real(K,N) B) -> (C";

const Case kCases[] = {
    {"Bias",
     kWithBias,
     {"C(m,n) +=! A(m,k) * B(k,n)  C(m,n) = C(m,n) + b(n)", "C(m,n) +=! A(m,k) * B(k,n)  C(m,n) += b(n)",
      "C(i,j) +=! A(i,l) * B(l,j)  C(p,q) = b(q) + C(p,q)"}},
    {"AtLeastZero",
     kPlain,
     {"C(m,n) +=! A(m,k) * B(k,n)  C(m,n) max= 0", "C(m,n) +=! A(m,k) * B(k,n)  C(m,n) = fmax(C(m,n), 0)",
      "C(m,n) +=! A(m,k) * B(k,n)  C(i,j) = C(i,j) > 0 ? C(i,j) : 0"}},
    {"Scaled",
     "real(M,K) A, real(K,N) B, real(M) s) -> (C",
     {"C(m,n) +=! A(m,k) * B(k,n)  C(m,n) *= s(m)", "C(m,n) +=! A(m,k) * B(k,n)  C(m,n) = s(m) * C(m,n)",
      "C(j,i) +=! A(j,l) * B(l,i)  C(a,b) *= s(a)"}},
    {"ThreeInARow",
     "real(M,K) A, real(K,N) B, real(M) s, real(N) b) -> (C",
     {"C(m,n) +=! A(m,k) * B(k,n)  C(m,n) += b(n)  C(m,n) max= 0  C(m,n) *= s(m)",
      "C(m,n) +=! A(m,k) * B(k,n)  C(m,n) = C(m,n) + b(n)  C(m,n) max= 0  C(m,n) = C(m,n) * s(m)",
      "C(m,n) +=! A(m,k) * B(k,n)  C(i,j) += b(j)  C(m,n) = fmax(C(m,n), 0)  C(m,n) *= s(m)"}},
    {"BiasBefore",
     kWithBias,
     {"C(m,n) = b(n) where m in 0:M  C(m,n) += A(m,k) * B(k,n)",
      "C(i,j) = b(j) where i in 0:M  C(i,j) += A(i,k) * B(k,j)  C(i,j) max= 0",
      "C(m,n) = b(n) where m in 0:M  C(m,n) *= 2  C(m,n) += A(m,k) * B(k,n)"}},
    {"Residual",
     "real(M,K) A, real(K,N) B, real(N) b, real(M,N) R) -> (D",
     {"C(m,n) +=! A(m,k) * B(k,n)  D(m,n) = fmax(C(m,n) + b(n), 0) + R(m,n)",
      "C(m,n) +=! A(m,k) * B(k,n)  C(m,n) += b(n)  C(m,n) max= 0  D(m,n) = R(m,n)  D(m,n) += C(m,n)",
      "D(m,n) = R(m,n)  C(m,n) +=! A(m,k) * B(k,n)  C(i,j) = fmax(C(i,j) + b(j), 0)  D(p,q) += C(p,q)"}},
    {"TwoResults",
     "real(M,K) A, real(K,N) B, real(N) b) -> (C, D",
     {"C(m,n) +=! A(m,k) * B(k,n)  D(m,n) = fmax(C(m,n), 0)  C(m,n) += b(n)",
      "C(m,n) +=! A(m,k) * B(k,n)  D(m,n) = C(m,n)  D(m,n) max= 0  C(m,n) = C(m,n) + b(n)",
      "C(m,n) +=! A(m,k) * B(k,n)  D(j,i) = fmax(C(i,j), 0)  C(i,j) += b(j)"}},
    {"Transposed",
     kWithBias,
     {"D(m,n) +=! A(m,k) * B(k,n)  C(n,m) = D(m,n) + b(n)",
      "D(m,n) +=! A(m,k) * B(k,n)  D(m,n) += b(n)  C(j,i) = D(i,j)",
      "D(m,n) +=! A(m,k) * B(k,n)  C(n,m) = b(n) where m in 0:M  C(n,m) += D(m,n)"}},
};

std::string text_of(const Case& c, const char* body, const std::string& type) {
  const std::string text = fmt::format("def f({}) {{ {} }}", c.head, body);
  return std::regex_replace(text, std::regex("real"), type);
}

/// An H200.
gpu::Device hopper() {
  gpu::Device device;
  device.shared_bytes = 227 * 1024;
  device.gigahertz = 1.98;
  return device;
}

/// "" if it has so many launches, or what they are.
std::string other_than(size_t launches, const ir::Program& program) {
  const Result<gpu::Mapping> mapping = mapped(program, {}, hopper());
  if (!mapping) return mapping.error().to_string();
  return mapping->kernels.size() == launches ? "" : gpu::report(*mapping);
}

class FusedProducts : public ::testing::TestWithParam<Case> {};

TEST_P(FusedProducts, HaveSoManyLaunches) {
  for (const char* type : {"float", "half"}) {
    for (const char* body : GetParam().bodies) {
      const std::string text = text_of(GetParam(), body, type);
      const ir::Program program = specialised_from(text, {{"M", 512}, {"N", 512}, {"K", 512}});
      EXPECT_EQ(other_than(GetParam().launches, program), "") << text;
    }
  }
}

TEST_P(FusedProducts, AgreeWithTheOracleAndAreProved) {
  for (const char* type : {"float", "half"}) {
    for (const char* body : GetParam().bodies) {
      const std::string text = text_of(GetParam(), body, type);
      EXPECT_EQ(faults_of(specialised_from(text, {{"M", 36}, {"N", 34}, {"K", 21}}), hopper()), "") << text;
    }
  }
}

/// What the group reads elsewhere before it writes it is not the element of the point.
TEST(FusedProducts, ReadElsewhereWhatALaterStatementWrites) {
  const char* text = R"(
def f(float(M,K) A, float(K,N) B) -> (C, E, float(M,2*N) D) {
  C(m,n) +=! A(m,k) * B(k,n)
  E(m,n) = C(m,n) + D(m,n + N)
  D(m,n) = C(m,n) where n in 0:N
})";
  EXPECT_EQ(faults_of(specialised_from(text, {{"M", 68}, {"N", 66}, {"K", 37}})), "");
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Cases, FusedProducts, ::testing::ValuesIn(kCases), name_of);

}  // namespace
}  // namespace tc::testing
