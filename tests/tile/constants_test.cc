#include <gtest/gtest.h>

#include "kernels.h"
#include "tc/interp/scalar.h"
#include "tc/ir/program.h"

/// Arithmetic on constants wraps to its type, as that on elements does.
namespace tc::tile {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

struct Operation {
  const char* name;
  Expr (*make)(const Expr& a, const Expr& b);
  __int128 (*compute)(__int128 a, __int128 b);
};

const Operation kOperations[] = {
    {"+", [](const Expr& a, const Expr& b) { return hi::Add::make(a, b); },
     [](__int128 a, __int128 b) { return a + b; }},
    {"-", [](const Expr& a, const Expr& b) { return hi::Sub::make(a, b); },
     [](__int128 a, __int128 b) { return a - b; }},
    {"*", [](const Expr& a, const Expr& b) { return hi::Mul::make(a, b); },
     [](__int128 a, __int128 b) { return a * b; }},
};

/// A constant as the front end makes it.
Expr constant(Halide::Type type, int64_t value) {
  return type.is_uint() ? Expr(hi::UIntImm::make(type, static_cast<uint64_t>(value)))
                        : Expr(hi::IntImm::make(type, value));
}

/// What the simulator gives for an expression of constants, as 64 bits.
int64_t simulated(const Expr& value) {
  const Tensor out = build::global("out", Halide::Int(64), Layout::row_major({1}), true);
  Program program;
  program.kernels.resize(1);
  Kernel& kernel = program.kernels[0];
  kernel.name = "k";
  kernel.tensors = {out};
  kernel.body = build::store(out, {0}, hi::Cast::make(Halide::Int(64), value));
  std::vector<int64_t> result(1);
  Arguments arguments;
  arguments.tensors["out"] = std::as_writable_bytes(std::span(result));
  const Result<Report> report = simulate(program, arguments);
  EXPECT_TRUE(report && report->findings.empty());
  return result[0];
}

TEST(Constants, WrapToTheirType) {
  for (const ScalarType type : {ScalarType::kInt8, ScalarType::kInt16, ScalarType::kInt32, ScalarType::kInt64,
                                ScalarType::kUInt8, ScalarType::kUInt16, ScalarType::kUInt32, ScalarType::kUInt64}) {
    const int64_t most = interp::wrap(type, is_signed_integer(type) ? INT64_MAX >> (64 - bits_of(type)) : -1);
    const int64_t least = is_signed_integer(type) ? -most - 1 : 0;
    for (const int64_t a : {least, int64_t{0}, int64_t{1}, int64_t{100}, most}) {
      for (const int64_t b : {least, int64_t{1}, int64_t{3}, most}) {
        for (const Operation& op : kOperations) {
          const Expr x = constant(ir::to_halide(type), a), y = constant(ir::to_halide(type), b);
          const auto wide = static_cast<int64_t>(op.compute(a, b));
          const int64_t expected = interp::wrap(type, wide);
          EXPECT_EQ(simulated(op.make(x, y)), expected) << a << op.name << b << " in type " << static_cast<int>(type);
          // Behind the wrapped value nothing knows it wider.
          const Expr quotient = hi::Div::make(op.make(x, y), constant(ir::to_halide(type), 3));
          EXPECT_EQ(simulated(quotient), interp::floor_divide(type, expected, 3)) << a << op.name << b;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tc::tile
