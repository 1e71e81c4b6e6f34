#include "tc/cuda/print.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>

#include "tc/cuda/expr_text.h"
#include "tc/tile/build.h"
#include "tc/tile/promise.h"
#include "tests/cuda/hand_written.h"

namespace tc::cuda {
namespace {

using namespace tile::build;
using Halide::Float;
using Halide::Int;
using Halide::UInt;
using Halide::Internal::Call;
using tile::IntTuple;
using tile::Layout;
using tile::Tensor;
namespace hi = Halide::Internal;

/// Compares with tests/cuda/golden/NAME.cu; TC_UPDATE_GOLDEN=1 rewrites the file.
void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(TC_SOURCE_DIR) + "/tests/cuda/golden/" + name + ".cu";
  if (std::getenv("TC_UPDATE_GOLDEN")) std::ofstream(path) << text;
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << " is missing";
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(text, expected.str());
}

TEST(Print, Golden) {
  tile::Program add = hand_written::vector_add(4096);
  add.header = "def vector_add(float(N) A, float(N) B) -> (C) {\n  C(i) = A(i) + B(i)\n}\nN = 4096\\";
  expect_golden("vector_add", print(add));
  expect_golden("row_sum", print(hand_written::row_sum(64, 1000)));
  expect_golden("matmul", print(hand_written::matmul(128, 192, 256)));
  expect_golden("scatter", print(hand_written::scatter(1000, 10)));
  expect_golden("scale_and_reverse", print(hand_written::scale_and_reverse(1000)));
  // What the first kernel reads the second writes: neither order of accesses may change.
  expect_golden("scale_after_reverse", print(hand_written::scale_after_reverse(1000)));
  expect_golden("large_shared", print(hand_written::large_shared()));
  expect_golden("with_maps", print(hand_written::with_maps(64, 128)));
}

TEST(Print, TheSameProgramGivesTheSameText) {
  EXPECT_EQ(print(hand_written::matmul(128, 128, 64)), print(hand_written::matmul(128, 128, 64)));
}

/// A kernel of one thread with tensors of several types, to print expressions in.
struct Workbench {
  tile::Kernel kernel;
  Tensor f = global("F", Float(32), Layout::row_major({8, 16}));
  Tensor d = global("D", Float(64), Layout::row_major({8}));
  Tensor h = global("H", Float(16), Layout::row_major({8}));
  Tensor b = global("B", Halide::BFloat(16), Layout::row_major({8}));
  Tensor i = global("I", Int(32), Layout::row_major({8}));
  Tensor l = global("L", Int(64), Layout::row_major({8}));
  Tensor c = global("C", Int(8), Layout::row_major({8}));
  Tensor u = global("U", UInt(32), Layout::row_major({8}));
  Tensor flag = global("P", UInt(1), Layout::row_major({8}));

  Workbench() {
    kernel.name = "k";
    kernel.block = {32, 1, 1};
    kernel.tensors = {f, d, h, b, i, l, c, u, flag};
    kernel.scalars = {{"alpha", Float(16)}, {"n", Int(32)}};
    kernel.body = sequence({});
  }
  std::string value(const Expr& e) const { return ExprText(kernel).value(e); }
  std::string index(const Expr& e) const { return ExprText(kernel).index(e); }
};

/// The text of a loop over two values whose only statement sets neighbours in registers, from the second pair on.
std::string text_of_pair(const Tensor& to, const std::function<Expr(const Tensor& bytes, const Expr& i)>& value) {
  Workbench w;
  Tensor bytes = registers("V", Int(8), Layout::row_major({2}));
  const Expr i = var("i");
  const tile::NodePtr loop = unrolled("i", 0, 2, store(to, {i + 2}, value(bytes, i)));
  w.kernel.body = allocate(bytes, allocate(to, loop));
  tile::Program program{.name = "k", .kernels = {w.kernel}};
  const std::string text = print(program);
  return text.substr(text.find("extern"));
}

/// Two float32 are rounded at once.
TEST(Print, NeighboursAreRoundedAtOnce) {
  const Workbench w;
  const auto rounded = [&](const Halide::Type& type) {
    const Tensor to = registers("R", type, Layout::row_major({4}));
    return text_of_pair(to, [&](const Tensor& v, const Expr& i) {
      return hi::Cast::make(type, hi::Cast::make(Float(32), read(v, {i})));
    });
  };
  const std::string half = rounded(Float(16)), bfloat = rounded(Halide::BFloat(16));
  EXPECT_NE(half.find("split(float16_pair(float(V[0]), float(V[1])), R[2], R[3]);"), std::string::npos) << half;
  EXPECT_NE(bfloat.find("split(bfloat16_pair(float(V[0]), float(V[1])), R[2], R[3]);"), std::string::npos) << bfloat;
}

/// Two neighbouring float16 are computed by packed instructions, which round as the single ones do; where there is
/// nothing for these to do, and of other types, one after the other.
TEST(Print, NeighboursOfFloat16AreComputedAtOnce) {
  const Workbench w;
  const auto packed = [](const std::string& text) { return text.find("split(") != std::string::npos; };
  const auto as_half = [](const Expr& e) { return hi::Cast::make(Float(16), e); };
  const Tensor half = registers("R", Float(16), Layout::row_major({4}));
  const std::string scaled =
      text_of_pair(half, [&](const Tensor& v, const Expr& i) { return as_half(read(v, {i})) * read(w.h, {3}); });
  EXPECT_NE(scaled.find("split(mul_pair(pair_from(&V[0]), both_of(H[3])), R[2], R[3]);"), std::string::npos) << scaled;
  const std::string mixed = text_of_pair(half, [&](const Tensor&, const Expr& i) {
    return read(w.h, {i}) - as_half(hi::Cast::make(Float(32), read(w.i, {i})));
  });
  EXPECT_NE(mixed.find("split(sub_pair(pair_of(H[0], H[1]), "), std::string::npos) << mixed;
  EXPECT_FALSE(packed(text_of_pair(half, [&](const Tensor&, const Expr& i) { return read(w.h, {i}); })));
  EXPECT_FALSE(
      packed(text_of_pair(half, [&](const Tensor&, const Expr& i) { return read(half, {i}) + read(w.h, {i}); })));
  const Tensor brain = registers("R", Halide::BFloat(16), Layout::row_major({4}));
  EXPECT_FALSE(
      packed(text_of_pair(brain, [&](const Tensor&, const Expr& i) { return read(w.b, {i}) * read(w.b, {i}); })));
}

TEST(Expressions, FloatConstantsAreExact) {
  const Workbench w;
  const auto imm = [](int bits, double v) { return hi::FloatImm::make(Float(bits), v); };
  EXPECT_EQ(w.value(imm(32, 0.1f)), "0.1f");
  EXPECT_EQ(w.value(imm(32, 1.0)), "1.0f");
  EXPECT_EQ(w.value(imm(32, -2.5)), "-2.5f");
  EXPECT_EQ(w.value(imm(32, -0.0)), "-0.0f");
  EXPECT_EQ(w.value(imm(32, 1e-45f)), "1e-45f");
  EXPECT_EQ(w.value(imm(64, 0.1)), "0.1");
  EXPECT_EQ(w.value(imm(32, std::numeric_limits<float>::infinity())), "__int_as_float(0x7f800000)");
  EXPECT_EQ(w.value(imm(64, -std::numeric_limits<double>::infinity())), "-__longlong_as_double(0x7ff0000000000000ll)");
  EXPECT_EQ(w.value(imm(32, std::nan(""))), "__int_as_float(0x7fc00000)");
}

TEST(Expressions, FloatConstantsReadBackAsTheyWere) {
  const Workbench w;
  uint32_t state = 1;
  for (int n = 0; n < 20000; ++n) {
    state = state * 1664525u + 1013904223u;
    float x;
    std::memcpy(&x, &state, sizeof x);
    if (!std::isfinite(x)) continue;
    const std::string text = w.value(hi::FloatImm::make(Float(32), x));
    ASSERT_EQ(text.back(), 'f');
    // However wide the reader's first rounding is.
    ASSERT_EQ(static_cast<float>(std::strtold(text.c_str(), nullptr)), x) << text;
    ASSERT_EQ(static_cast<float>(std::strtod(text.c_str(), nullptr)), x) << text;
    ASSERT_EQ(std::strtof(text.c_str(), nullptr), x) << text;
  }
}

TEST(Expressions, ParenthesesKeepTheTree) {
  const Workbench w;
  const Expr x = read(w.f, {0, 1}), y = read(w.f, {1, 0}), z = read(w.d, {2});
  EXPECT_EQ(w.value(x + y * x), "F[1] + F[16] * F[1]");
  EXPECT_EQ(w.value((x + y) * x), "(F[1] + F[16]) * F[1]");
  EXPECT_EQ(w.value(hi::Add::make(x, hi::Add::make(y, x))), "F[1] + (F[16] + F[1])");
  EXPECT_EQ(w.value(hi::Sub::make(x, hi::Sub::make(y, x))), "F[1] - (F[16] - F[1])");
  EXPECT_EQ(w.value(hi::Div::make(z, hi::Mul::make(z, z))), "D[2] / (D[2] * D[2])");
  EXPECT_EQ(w.value(hi::Select::make(x < y, x, hi::Select::make(y < x, y, x))),
            "F[1] < F[16] ? F[1] : F[16] < F[1] ? F[16] : F[1]");
  EXPECT_EQ(w.value(hi::Mul::make(hi::Select::make(x < y, x, y), x)), "(F[1] < F[16] ? F[1] : F[16]) * F[1]");
}

TEST(Expressions, IntegerValuesWrapAndIndicesDoNot) {
  const Workbench w;
  const Expr x = read(w.i, {0}), l = read(w.l, {0});
  EXPECT_EQ(w.value(x + x * x), "wrap_add(I[0], wrap_mul(I[0], I[0]))");
  EXPECT_EQ(w.value(l - l), "wrap_sub(L[0], L[0])");
  EXPECT_EQ(w.value(read(w.u, {0}) * read(w.u, {1})), "U[0] * U[1]");
  EXPECT_EQ(w.value(read(w.c, {0}) + read(w.c, {1})), "int8(C[0] + C[1])");
  EXPECT_EQ(w.index(thread_x() * 4 + 1), "thread_x * 4 + 1");
  EXPECT_EQ(w.value(read(w.f, {thread_x() / 16, thread_x() % 16})), "F[thread_x / 16 * 16 + thread_x % 16]");
}

TEST(Expressions, ProductsOfSixteenBitsAreNoInts) {
  const Workbench k;
  const auto element = [&](Halide::Type type) { return hi::Cast::make(type, read(k.i, {0})); };
  const auto product = [&](Halide::Type type) { return k.value(hi::Mul::make(element(type), element(type))); };
  EXPECT_EQ(product(UInt(16)), "uint16(1u * uint16(I[0]) * uint16(I[0]))");
  EXPECT_EQ(product(Int(16)), "int16(int16(I[0]) * int16(I[0]))");
}

TEST(Expressions, DivisionRoundsDown) {
  const Workbench w;
  const Expr x = read(w.i, {0});
  EXPECT_EQ(w.value(hi::Div::make(x, 4)), "floor_div<int>(I[0], 4)");
  EXPECT_EQ(w.value(hi::Mod::make(x, 3)), "floor_mod<int>(I[0], 3)");
  EXPECT_EQ(w.value(Call::make(Int(64), "tc.floor_div", {read(w.l, {0}), read(w.l, {1})}, Call::PureExtern)),
            "floor_div<int64>(L[0], L[1])");
  EXPECT_EQ(w.value(hi::Div::make(read(w.u, {0}), hi::UIntImm::make(UInt(32), 3))), "U[0] / 3u");
  EXPECT_EQ(w.index((thread_x() - 1) / 2), "floor_div<int>(thread_x - 1, 2)");
  EXPECT_EQ(w.index((thread_x() + 1) / 2), "(thread_x + 1) / 2");
}

TEST(Expressions, SixteenBitFloatsAreRoundedAfterEachOperation) {
  const Workbench w;
  const Expr h = read(w.h, {0}), b = read(w.b, {0});
  EXPECT_EQ(w.value(hi::Add::make(h, h)), "round_float16(to_float(H[0]) + to_float(H[0]))");
  EXPECT_EQ(w.value(hi::Cast::make(Float(32), h)), "(to_float(H[0]))");
  EXPECT_EQ(w.value(hi::Cast::make(Halide::BFloat(16), read(w.d, {0}))), "round_bfloat16(float_odd(D[0]))");
  EXPECT_EQ(w.value(hi::Cast::make(Halide::BFloat(16), read(w.i, {0}))), "round_bfloat16(float_odd(I[0]))");
  EXPECT_EQ(w.value(hi::Cast::make(Float(16), read(w.i, {0}))), "round_float16(float(I[0]))");
  EXPECT_EQ(w.value(hi::Cast::make(Float(64), b)), "double(to_float(B[0]))");
  EXPECT_EQ(w.value(Call::make(Halide::BFloat(16), "nextafter", {b, b}, Call::PureExtern)),
            "next_bfloat16(to_float(B[0]), to_float(B[0]))");
  EXPECT_EQ(w.value(hi::Variable::make(Float(16), "alpha")), "to_float(alpha)");
}

TEST(Expressions, T8_EightBitFloatsAreConvertedByTheirBits) {
  const Workbench w;
  const Halide::Type e4m3 = Float(8), e5m2 = Halide::BFloat(8);
  const Expr f = read(w.f, {0, 0});
  EXPECT_EQ(w.value(hi::Cast::make(e4m3, f)), "e4m3_from_float(F[0])");
  EXPECT_EQ(w.value(hi::Cast::make(e5m2, read(w.d, {0}))), "e5m2_from_float(float_odd(D[0]))");
  EXPECT_EQ(w.value(hi::Cast::make(Float(32), hi::Cast::make(e5m2, f))), "float_from_e5m2(e5m2_from_float(F[0]))");
  EXPECT_EQ(w.value(Call::make(Float(32), "tf32", {f}, Call::PureExtern)), "round_tf32(F[0])");
}

TEST(Expressions, ANaNWins) {
  const Workbench w;
  EXPECT_EQ(w.value(hi::Max::make(read(w.f, {0, 0}), hi::FloatImm::make(Float(32), 0))), "max_nan(F[0], 0.0f)");
  EXPECT_EQ(w.value(hi::Min::make(read(w.i, {0}), hi::IntImm::make(Int(32), 1))), "min(I[0], 1)");
}

/// ptxas loses signs where it joins such extrema (tests/compile/ptx_test.cc).
TEST(Expressions, IntegersThatAreOneOfTwoAreOpaque) {
  const Workbench w;
  const Expr a = read(w.i, {0}), b = read(w.i, {1});
  EXPECT_EQ(w.value(hi::Min::make(a, b)), "opaque(min(I[0], I[1]))");
  EXPECT_EQ(w.value(hi::Select::make(a < b, a, b)), "opaque(I[0] < I[1] ? I[0] : I[1])");
  EXPECT_EQ(w.value(hi::Select::make(a < 3, a, 3)), "I[0] < 3 ? I[0] : 3");
  const Expr f = read(w.f, {0, 0});
  EXPECT_EQ(w.value(hi::Select::make(a < b, f, f)), "I[0] < I[1] ? F[0] : F[0]");
}

TEST(Expressions, SixteenBitExtremaStayAsTheyStandInMemory) {
  const Workbench w;
  const Expr h = read(w.h, {0});
  EXPECT_EQ(ExprText(w.kernel).value_in_memory(hi::Max::make(h, h)), "max_nan(H[0], H[0])");
  EXPECT_EQ(ExprText(w.kernel).value_in_memory(hi::Min::make(h, hi::FloatImm::make(Float(16), 1))),
            "to_float16(min_nan(to_float(H[0]), 1.0f))");
}

TEST(Expressions, WhatManyAreDividedByHasOneReciprocal) {
  const Workbench w;
  const Expr a = read(w.f, {0, 0}), b = read(w.f, {0, 1});
  EXPECT_EQ(w.value(hi::Call::make(Float(32), tile::kQuotient, {a, b}, hi::Call::PureExtern)), "quotient(F[0], F[1])");
  EXPECT_EQ(w.value(hi::Div::make(a, b)), "F[0] / F[1]");
}

TEST(Expressions, BoolsAreBytesInMemory) {
  const Workbench w;
  const Expr p = read(w.flag, {0});
  EXPECT_EQ(w.value(p && !p), "P[0] != 0 && !(P[0] != 0)");
  EXPECT_EQ(w.value(hi::Cast::make(Int(32), p)), "int(P[0] != 0)");
}

TEST(Expressions, NestedLayoutsAndSwizzles) {
  Workbench w;
  const Tensor nested = global("N", Float(32), Layout({{4, 8}, 2}, {{1, 8}, 4}));
  Tensor swizzled = global("Z", Float(32), Layout::row_major({8, 64}));
  swizzled.swizzle = tile::Swizzle{3, 3, 3};
  w.kernel.tensors.push_back(nested);
  w.kernel.tensors.push_back(swizzled);
  EXPECT_EQ(w.value(read(nested, {thread_x(), 1})), "N[thread_x % 4 + thread_x / 4 * 8 + 4]");
  EXPECT_EQ(w.value(read(swizzled, {1, thread_x()})), "Z[(64 + thread_x) ^ (((64 + thread_x) >> 3) & 56)]");
}

/// Whole patterns, and places within the pieces that a swizzle moves, stand beside it.
TEST(Expressions, SwizzlesMoveWhatTheyMayChange) {
  Workbench w;
  Tensor swizzled = global("Z", Float(32), Layout::row_major({64, 64}));
  swizzled.swizzle = tile::Swizzle{3, 3, 3};
  w.kernel.tensors.push_back(swizzled);
  EXPECT_EQ(w.value(read(swizzled, {thread_x() * 8 + 1, block_x() * 8 + 3})),
            "Z[3 + (thread_x * 512 + ((64 + block_x * 8) ^ (((64 + block_x * 8) >> 3) & 56)))]");
}

TEST(Expressions, OffsetsBeyondInt32AreWide) {
  Workbench w;
  const Tensor huge = global("G", Float(32), Layout::row_major({1 << 20, 1 << 13}));
  w.kernel.tensors.push_back(huge);
  EXPECT_EQ(w.value(read(huge, {thread_x(), 5})), "G[int64(thread_x) * 8192ll + 5ll]");
}

TEST(Names, TheUsersNamesSurviveUnlessTheTextNeedsThem) {
  const Tensor in = global("float", Float(32), Layout::row_major({8}));
  const Tensor out = global("out", Float(32), Layout::row_major({8}), true);
  tile::Program program;
  program.kernels.resize(1);
  tile::Kernel& kernel = program.kernels[0];
  kernel.name = "template";
  kernel.tensors = {in, out};
  kernel.body = for_loop("out", 0, 8, store(out, {var("out")}, read(in, {var("out")})));
  const std::string text = print(tile::promise(program));
  EXPECT_NE(text.find("template_(\n    const float* __restrict__ float_,\n    float* __restrict__ out\n) {\n"
                      "  for (int out_2 = 0; out_2 < 8; ++out_2) {\n    out[out_2] = float_[out_2];\n  }\n}\n"),
            std::string::npos)
      << text;
}

TEST(Print, ReadOnlyCacheOnlyForTensorsThatAreNotWritten) {
  const std::string with = print(hand_written::vector_add(4096));
  EXPECT_NE(with.find("__ldg((const float4*)&A[first])"), std::string::npos) << with;
  EXPECT_EQ(with.find("__ldg((const float4*)&C"), std::string::npos) << with;
  const std::string without = print(tile::promise(hand_written::vector_add(4096), {.readonly_cache = false}));
  EXPECT_EQ(without.find("__ldg"), std::string::npos) << without;
  EXPECT_NE(without.find("const float* A,"), std::string::npos) << without;
}

/// A __restrict__ pointer would let the compiler make one load through the read-only cache of the two.
TEST(Print, AnInputThatIsChosenBesideAWrittenTensorIsLoadedByInstructionsOfItsOwn) {
  const auto text_of = [](Halide::Type type) {
    const Tensor in = global("in", type, Layout::row_major({64}));
    const Tensor out = global("out", type, Layout::row_major({64}), true);
    tile::Program program;
    program.kernels.resize(1);
    tile::Kernel& kernel = program.kernels[0];
    kernel.name = "k";
    kernel.block = {64, 1, 1};
    kernel.tensors = {in, out};
    const Expr either = Halide::Internal::Call::make(
        type, Halide::Internal::Call::if_then_else,
        {thread_x() < 7, read(in, {thread_x()}), read(out, {63 - thread_x()})}, Halide::Internal::Call::PureIntrinsic);
    kernel.body = store(out, {thread_x()}, either);
    return print(tile::promise(program));
  };
  const std::string text = text_of(Int(32));
  EXPECT_NE(text.find("const int* in,\n    int* __restrict__ out\n"), std::string::npos) << text;
  EXPECT_NE(text.find("thread_x < 7 ? __ldg(&in[thread_x]) : out[63 - thread_x]"), std::string::npos) << text;
  const std::string half = text_of(Halide::Float(16));
  EXPECT_NE(half.find("to_float(__ldg(&in[thread_x]))"), std::string::npos) << half;
}

/// Else the compiler may read what another thread writes before the barrier that orders the two.
TEST(Print, WhatThreadsPassOnIsNotRestrict) {
  const Tensor in = global("in", Int(32), Layout::row_major({64}));
  const Tensor passed = global("passed", Int(32), Layout::row_major({64}), true);
  const Tensor out = global("out", Int(32), Layout::row_major({64}), true);
  tile::Program program;
  program.kernels.resize(1);
  tile::Kernel& kernel = program.kernels[0];
  kernel.name = "k";
  kernel.block = {64, 1, 1};
  kernel.tensors = {in, passed, out};
  kernel.body = sequence({store(passed, {thread_x()}, read(in, {thread_x()})), barrier(),
                          store(out, {thread_x()}, read(passed, {63 - thread_x()}))});
  const std::string text = print(tile::promise(program));
  EXPECT_NE(text.find("const int* __restrict__ in,\n    int* passed,\n    int* __restrict__ out\n"), std::string::npos)
      << text;
}

/// Else the compiler may move a thread's store behind the barrier, and another's to the same element.
TEST(Print, WhatIsWrittenOnBothSidesOfABarrierIsNotRestrict) {
  const Tensor twice = global("twice", Int(32), Layout::row_major({64}), true);
  const Tensor again = global("again", Int(32), Layout::row_major({64}), true);
  const Tensor once = global("once", Int(32), Layout::row_major({64}), true);
  tile::Program program;
  program.kernels.resize(1);
  tile::Kernel& kernel = program.kernels[0];
  kernel.name = "k";
  kernel.block = {64, 1, 1};
  kernel.tensors = {twice, again, once};
  kernel.body =
      sequence({store(twice, {thread_x()}, 0),
                for_loop("i", 0, 3, sequence({barrier(), store(again, {63 - thread_x()}, var("i"))})),
                store(twice, {63 - thread_x()}, 1), store(once, {thread_x()}, 2), store(once, {thread_x()}, 3)});
  const std::string text = print(tile::promise(program));
  EXPECT_NE(text.find("k(\n    int* twice,\n    int* again,\n    int* __restrict__ once\n"), std::string::npos) << text;
}

/// Every thread comes there, and what it does before is of no concern to the kernels before.
TEST(Print, AKernelWaitsWhereItFirstTouchesWhatThoseBeforeDo) {
  const Tensor in = global("in", Int(32), Layout::row_major({64}));
  const Tensor passed = global("passed", Int(32), Layout::row_major({64}), true);
  const Tensor own = global("own", Int(32), Layout::row_major({64}), true);
  const auto text_of_second = [&](const tile::NodePtr& body) {
    tile::Program program;
    program.kernels.resize(2);
    for (tile::Kernel& kernel : program.kernels) kernel.block = {64, 1, 1};
    program.kernels[0].name = "first";
    program.kernels[0].tensors = {in, passed};
    program.kernels[0].body = store(passed, {thread_x()}, read(in, {thread_x()}));
    program.kernels[1].name = "second";
    program.kernels[1].tensors = {in, passed, own};
    program.kernels[1].body = body;
    const std::string text = print(tile::promise(program));
    return text.substr(text.find("int thread_x", text.find("second(")));
  };
  const tile::NodePtr before = store(own, {thread_x()}, read(in, {thread_x()}));
  const tile::NodePtr update = atomic(passed, {var("i")}, tile::Atomic::Op::kAdd, 1);
  EXPECT_EQ(text_of_second(sequence({before, for_loop("i", 0, thread_x(), update)})),
            "int thread_x = int(threadIdx.x);\n"
            "  own[thread_x] = in[thread_x];\n"
            "  wait_for_kernels_before();\n"
            "  passed = unpromised(passed);\n"
            "  for (int i = 0; i < thread_x; ++i) {\n"
            "    atomic_add(&passed[i], 1);\n"
            "  }\n"
            "}\n");
  const std::string in_let = text_of_second(let("i", read(passed, {thread_x()}), store(own, {thread_x()}, var("i"))));
  EXPECT_LT(in_let.find("wait_for_kernels_before"), in_let.find("passed[")) << in_let;
  EXPECT_EQ(text_of_second(before),
            "int thread_x = int(threadIdx.x);\n"
            "  own[thread_x] = in[thread_x];\n"
            "  wait_for_kernels_before();\n"
            "}\n");
}

TEST(Print, SiblingLetsOfOneNameDoNotMeet) {
  const Tensor out = global("out", Int(32), Layout::row_major({8}), true);
  tile::Program program;
  program.kernels.resize(1);
  tile::Kernel& kernel = program.kernels[0];
  kernel.name = "k";
  kernel.tensors = {out};
  const auto put = [&](int at) { return let("i", thread_x() + at, store(out, {var("i")}, at)); };
  kernel.body = sequence({put(1), put(2), put(3)});
  const std::string text = print(tile::promise(program));
  EXPECT_NE(
      text.find("  {\n    const int i = thread_x + 1;\n    out[i] = 1;\n  }\n  {\n    const int i = thread_x + 2;\n"
                "    out[i] = 2;\n  }\n  const int i = thread_x + 3;\n  out[i] = 3;\n}\n"),
      std::string::npos)
      << text;
}

TEST(LaunchPlan, TensorsWorkspaceAndScalars) {
  const LaunchPlan plan = launch_plan(hand_written::scale_and_reverse(1000));
  ASSERT_EQ(plan.tensors.size(), 2u);
  EXPECT_EQ(plan.tensors[0].name, "X");
  EXPECT_EQ(plan.tensors[0].bytes, 4000);
  EXPECT_FALSE(plan.tensors[0].written);
  EXPECT_EQ(plan.tensors[1].name, "Y");
  EXPECT_TRUE(plan.tensors[1].written);
  ASSERT_EQ(plan.scalars.size(), 1u);
  EXPECT_EQ(plan.scalars[0].bytes, 4);
  EXPECT_EQ(plan.workspace_bytes(), 4000);
  ASSERT_EQ(plan.kernels.size(), 2u);
  EXPECT_EQ(plan.kernels[0].arguments.size(), 3u);
  EXPECT_FALSE(plan.kernels[0].waits);
  EXPECT_TRUE(plan.kernels[1].waits);
  EXPECT_EQ(plan.kernels[1].arguments[0].kind, KernelArgument::Kind::kWorkspace);
  EXPECT_EQ(launch_plan(hand_written::large_shared()).kernels[0].dynamic_shared_bytes, 65536);
  EXPECT_EQ(launch_plan(hand_written::row_sum(4, 4)).kernels[0].dynamic_shared_bytes, 0);
}

TEST(LaunchPlan, MapsAndClusters) {
  const LaunchPlan plan = launch_plan(hand_written::with_maps(64, 128));
  using Kind = KernelArgument::Kind;
  ASSERT_EQ(plan.maps.size(), 2u);
  EXPECT_EQ(plan.maps[0], (MapArgument{.of = {Kind::kTensor, 0},
                                       .byte_offset = 64,
                                       .type = 6,
                                       .extents = {96, 64},
                                       .byte_strides = {256},
                                       .box = {32, 64},
                                       .swizzle = 64}));
  EXPECT_EQ(
      plan.maps[1],
      (MapArgument{.of = {Kind::kWorkspace, 0}, .type = 6, .extents = {64 * 128}, .byte_strides = {}, .box = {256}}));
  ASSERT_EQ(plan.kernels.size(), 2u);
  EXPECT_EQ(plan.kernels[0].arguments.back(), (KernelArgument{Kind::kMap, 0}));
  EXPECT_EQ(plan.kernels[1].arguments.back(), (KernelArgument{Kind::kMap, 1}));
  EXPECT_EQ(plan.kernels[1].cluster, (std::array<int64_t, 3>{2, 1, 1}));
  EXPECT_EQ(plan.tensors[0].alignment, 16);
  EXPECT_EQ(plan.tensors[1].alignment, 2);
}

}  // namespace
}  // namespace tc::cuda
