#include <gtest/gtest.h>

#include <map>

#include "tc/ir/print.h"
#include "tests/common/program.h"
#include "tests/errors/error_files.h"

namespace tc::ir {
namespace {

/// The results with their shapes, and how many preconditions a call must meet.
struct Expected {
  std::string results;
  size_t preconditions;
};

const std::map<std::string, Expected> kExpected = {
    {"argmin.tc", {"float32(N) least, int32(N) position", 0}},
    {"attention.tc", {"float32(B,H,N,E) O", 0}},
    {"avgpool.tc", {"float32(B,C,(H - KH) / KH + 1,(W - KW) / KW + 1) out", 4}},
    {"batched_matmul.tc", {"float32(B,N,K) Z", 0}},
    {"batchnorm.tc",
     {"float32(N,C,H,W) O, float32(C) running_mean, float32(C) running_var, float32(C) mean, float32(C) var", 0}},
    {"conv2d.tc", {"float32(B,OP,H - KH + 1,W - KW + 1) out", 2}},
    {"fcrelu.tc", {"float32(B,O) out", 0}},
    {"gather.tc", {"float32(A,B) Z", 0}},
    {"group_convolution.tc", {"float32(N,G,F,H - KH + 1,W - KW + 1) O", 2}},
    {"group_norm.tc", {"float32(N,G,D,H,W) O, float32(N,G) mean, float32(N,G) var", 0}},
    {"histogram.tc", {"int32(bins) H", 1}},
    {"kronecker.tc", {"float32(M,D0,D1,D2) Y, float32(M,N0,D1,D2) XW1, float32(M,N0,N1,D2) XW2", 0}},
    {"layernorm.tc", {"float32(N,D) O", 0}},
    {"maxpool2x2.tc", {"float32(B,C,H / 2,W / 2) out", 2}},
    {"mlp1.tc", {"float32(B,N) O1", 0}},
    {"mlp3.tc", {"float32(B,O) O2, float32(B,P) O3, float32(B,Q) O4", 0}},
    {"moments.tc", {"float32(N) mean, float32(N) var", 0}},
    {"mv.tc", {"float32(M) C", 0}},
    {"mv_two_statements.tc", {"float32(M) C", 0}},
    {"outer_product_mm.tc", {"float32(P,S,Q,T) O", 0}},
    {"padded_conv_copy.tc", {"float32(H - KH + 3) O, float32(H + 2) P", 2}},
    {"padded_conv_guard.tc", {"float32(H - KH + 3) O", 1}},
    {"prefix_sum.tc", {"float32(N) O", 1}},
    {"sconv2d.tc", {"float32(N,F,(H - KH) / sh + 1,(W - KW) / sw + 1) O", 4}},
    {"sgemm.tc", {"float32(N,K) C", 0}},
    {"softmax.tc", {"float32(N,D) O", 0}},
    {"transposed_matmul.tc", {"float32(M,N) C", 0}},
    {"two_lut.tc", {"float32(B,D) O1, float32(B,D) O2", 0}},
    {"wavenet.tc", {"float32(B,D,T) z, float32(B,R,T) res, float32(B,S,T) skip", 2}},
};

TEST(Examples, HaveTheirWellKnownShapes) {
  size_t seen = 0;
  for (const auto& path : testing::tc_files("examples")) {
    SCOPED_TRACE(path.filename().string());
    const Program program = testing::program_from(testing::read_text(path));
    const auto expected = kExpected.find(path.filename().string());
    if (expected == kExpected.end()) continue;
    ++seen;
    const std::string signature = signature_text(program);
    EXPECT_EQ(signature.substr(signature.find(" -> ")), " -> (" + expected->second.results + ")");
    EXPECT_EQ(program.preconditions.size(), expected->second.preconditions) << report(program);
  }
  EXPECT_EQ(seen, kExpected.size());
}

/// Every size 6 and every integer scalar 2 suits them all.
TEST(Examples, Specialise) {
  for (const auto& path : testing::tc_files("examples")) {
    SCOPED_TRACE(path.filename().string());
    const Program program = testing::program_from(testing::read_text(path));
    std::map<std::string, int64_t> sizes, scalars;
    for (const std::string& size : program.sizes) sizes[size] = 6;
    for (const Scalar& scalar : program.scalars) {
      if (scalar.specialised) scalars[scalar.name] = 2;
    }
    const auto bindings = bind_sizes(program, sizes, scalars);
    ASSERT_TRUE(bindings.has_value()) << bindings.error().to_string();
    const auto specialised = specialise(program, *bindings);
    ASSERT_TRUE(specialised.has_value()) << specialised.error().to_string();
    EXPECT_TRUE(specialised->sizes.empty());
    for (const Tensor& tensor : specialised->tensors)
      EXPECT_EQ(constant_shape(tensor), shape_of(program.tensor(tensor.name), *bindings));
  }
}

}  // namespace
}  // namespace tc::ir
