#include "tc/ir/guarded_read.h"

#include <gtest/gtest.h>

#include "tests/common/program.h"

namespace tc::ir {
namespace {

namespace hi = Halide::Internal;

/// The guarded read in the first statement of `O(i) +=! (value) * W(k)`, with N = 10 and K = 3, as text: bounds of each
/// dimension, with a point for none.
std::string read_of(const std::string& value, const std::string& parameters = "float(N) X",
                    const std::string& where = "") {
  const Program program =
      testing::specialised_from("def f(" + parameters + ", float(K) W) -> (float(N) O) { O(i) +=! (" + value +
                                    ") * W(k) where i in 0:N" + where + " }",
                                {{"N", 10}, {"K", 3}});
  struct Visitor : hi::IRVisitor {
    explicit Visitor(const Program& p) : program(p) {}
    const Program& program;
    std::string text = "none";
    using hi::IRVisitor::visit;
    void visit(const hi::Call* op) override {
      if (const std::optional<GuardedRead> found = guarded_read(program, op)) {
        text = found->read->name;
        for (const Inside& inside : found->inside) {
          const auto bound = [](const std::optional<int64_t>& b) { return b ? std::to_string(*b) : "."; };
          text += " " + bound(inside.least) + ":" + bound(inside.greatest);
        }
      }
      hi::IRVisitor::visit(op);
    }
  } visitor(program);
  program.statements.back().value.accept(&visitor);
  return visitor.text;
}

TEST(GuardedRead, BoundsOfSubscriptsAreFound) {
  EXPECT_EQ(read_of("i + k >= 1 && i + k <= N ? X(i + k - 1) : 0.0"), "X 0:9");
  EXPECT_EQ(read_of("0 < i + k && i + k < N + 1 ? X(i + k - 1) : 0.0"), "X 0:9");
  EXPECT_EQ(read_of("i >= 2 * k ? X(i - 2 * k) : 0.0"), "X 0:.");
  EXPECT_EQ(read_of("2 * k <= i - 3 && i + k >= 3 ? X(i - 2 * k) : 0.0"), "none");
  EXPECT_EQ(read_of("i - k >= 2 && i - k < 7 ? X(i - k) : 1.5"), "X 2:6");
}

/// What lies outside of the tensor is never needed: a guard that lets it be read fails elsewhere.
TEST(GuardedRead, BoundsLieWithinTheTensor) {
  EXPECT_EQ(read_of("i - k >= -5 && i >= k && i - k < 20 ? X(i - k) : 0.0"), "X 0:9");
}

TEST(GuardedRead, OtherGuardsAreNone) {
  EXPECT_EQ(read_of("i % 2 == 0 ? X(i) : 0.0"), "none");
  EXPECT_EQ(read_of("i >= k || i == 0 ? X(i) : 0.0"), "none");
  EXPECT_EQ(read_of("X(i) > 0 ? X(i) : 0.0"), "none");
  EXPECT_EQ(read_of("k >= 1 ? X(i) : 0.0"), "none");
  EXPECT_EQ(read_of("i >= 1 ? X(i - 1) + 1 : 0.0"), "none");
}

TEST(GuardedRead, CastsBelongToIt) { EXPECT_EQ(read_of("i >= 1 ? float(X(i - 1)) : 0.0", "float16(N) X"), "X 0:."); }

}  // namespace
}  // namespace tc::ir
