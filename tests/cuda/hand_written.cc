#include "tests/cuda/hand_written.h"

#include <fmt/format.h>

#include "tc/tile/build.h"
#include "tc/tile/promise.h"

namespace tc::cuda::hand_written {
namespace {

using namespace tile::build;
using Halide::Float;
using Halide::Int;
using Halide::Internal::Call;
using tile::IntTuple;
using tile::Kernel;
using tile::Layout;
using tile::NodePtr;
using tile::Program;
using tile::Tensor;

Layout line(int64_t n) { return Layout(IntTuple{n}, IntTuple{1}); }
Layout rows(int64_t m, int64_t n) { return Layout::row_major({m, n}); }

Program program_of(const std::string& name, std::vector<Kernel> kernels) {
  Program program;
  program.name = name;
  program.kernels = std::move(kernels);
  return tile::promise(std::move(program));
}

Kernel kernel_of(const std::string& name, std::array<int64_t, 3> grid, std::array<int64_t, 3> block,
                 std::vector<Tensor> tensors, NodePtr body) {
  Kernel kernel;
  kernel.name = name;
  kernel.grid = grid;
  kernel.block = block;
  kernel.tensors = std::move(tensors);
  kernel.body = std::move(body);
  return kernel;
}

/// total(0) += the same of the other lanes of the warp.
NodePtr warp_sum(const Tensor& total, const Tensor& other) {
  std::vector<NodePtr> steps;
  for (int mask = 16; mask > 0; mask /= 2) {
    steps.push_back(shuffle(other, {0}, tile::Shuffle::Kind::kXor, read(total, {0}), mask));
    steps.push_back(store(total, {0}, read(total, {0}) + read(other, {0})));
  }
  return sequence(std::move(steps));
}

}  // namespace

Program vector_add(int64_t n) {
  const Tensor a = global("A", Float(32), line(n));
  const Tensor b = global("B", Float(32), line(n));
  const Tensor c = global("C", Float(32), line(n), true);
  const Tensor a_r = registers("A_r", Float(32), line(4));
  const Tensor b_r = registers("B_r", Float(32), line(4));
  const Tensor c_r = registers("C_r", Float(32), line(4));
  const Expr first = var("first");
  const NodePtr add = unrolled("i", 0, 4, store(c_r, {var("i")}, read(a_r, {var("i")}) + read(b_r, {var("i")})));
  const NodePtr body =
      sequence({move(a_r, {0}, a, {first}, 4), move(b_r, {0}, b, {first}, 4), add, move(c, {first}, c_r, {0}, 4)});
  return program_of(
      "vector_add",
      {kernel_of("vector_add", {n / 1024, 1, 1}, {256, 1, 1}, {a, b, c},
                 let("first", block_x() * 1024 + thread_x() * 4, allocate(a_r, allocate(b_r, allocate(c_r, body)))))});
}

Program row_sum(int64_t m, int64_t k) {
  const Tensor a = global("A", Float(32), rows(m, k));
  const Tensor s = global("S", Float(32), line(m), true);
  const Tensor partial = shared("partial", Float(32), line(8));
  const Tensor total = registers("total", Float(32), line(1));
  const Tensor other = registers("other", Float(32), line(1));
  const Expr row = block_x();
  const NodePtr own = for_loop("k", thread_x(), Expr(static_cast<int>(k)),
                               store(total, {0}, read(total, {0}) + read(a, {row, var("k")})), 256);
  const NodePtr leave = if_then(thread_x() % 32 == 0, store(partial, {thread_x() / 32}, read(total, {0})));
  const NodePtr gather = unrolled("w", 0, 8, store(total, {0}, read(total, {0}) + read(partial, {var("w")})));
  const NodePtr last =
      if_then(thread_x() == 0, sequence({store(total, {0}, 0.0f), gather, store(s, {row}, read(total, {0}))}));
  const NodePtr body = sequence({store(total, {0}, 0.0f), own, with_comment("within the warp", warp_sum(total, other)),
                                 leave, barrier(), with_comment("across warps", last)});
  return program_of("row_sum", {kernel_of("row_sum", {m, 1, 1}, {256, 1, 1}, {a, s},
                                          allocate(partial, allocate(total, allocate(other, body))))});
}

Program matmul(int64_t m, int64_t n, int64_t k) {
  constexpr int kTile = 64, kDepth = 16, kPer = 4;
  const Tensor a = global("A", Float(32), rows(m, k));
  const Tensor b = global("B", Float(32), rows(k, n));
  const Tensor c = global("C", Float(32), rows(m, n), true);
  const Tensor a_s = shared("A_s", Float(32), Layout::row_major({2, kTile, kDepth}));
  const Tensor b_s = shared("B_s", Float(32), Layout::row_major({2, kDepth, kTile}));
  const Tensor c_r = registers("C_r", Float(32), rows(kPer, kPer));
  const int steps = static_cast<int>(k / kDepth);
  const Expr t = thread_x();
  const Expr m0 = block_y() * kTile, n0 = block_x() * kTile;
  const auto fetch = [&](const Expr& step) {
    const Expr stage = step % 2;
    return sequence({move(a_s, {stage, t / 4, t % 4 * 4}, a, {m0 + t / 4, step * kDepth + t % 4 * 4}, 4, true),
                     move(b_s, {stage, t / 16, t % 16 * 4}, b, {step * kDepth + t / 16, n0 + t % 16 * 4}, 4, true),
                     commit_group()});
  };
  const Expr i = var("i"), j = var("j"), kk = var("k"), step = var("k_tile");
  const Expr row = t / 16 * kPer, column = t % 16 * kPer;
  const NodePtr product = store(
      c_r, {i, j}, read(c_r, {i, j}) + read(a_s, {step % 2, row + i, kk}) * read(b_s, {step % 2, kk, column + j}));
  const NodePtr multiply = unrolled("k", 0, kDepth, unrolled("i", 0, kPer, unrolled("j", 0, kPer, product)));
  const NodePtr next = if_then(step + 1 < steps, sequence({fetch(step + 1), wait_group(1)}), wait_group(0));
  const NodePtr clear = unrolled("i", 0, kPer, unrolled("j", 0, kPer, store(c_r, {i, j}, 0.0f)));
  const NodePtr write = unrolled("i", 0, kPer, move(c, {m0 + row + i, n0 + column}, c_r, {i, 0}, kPer));
  const NodePtr body = sequence(
      {clear, fetch(0), for_loop("k_tile", 0, steps, sequence({next, barrier(), multiply, barrier()})), write});
  return program_of("matmul", {kernel_of("matmul", {n / kTile, m / kTile, 1}, {256, 1, 1}, {a, b, c},
                                         allocate(a_s, allocate(b_s, allocate(c_r, body))))});
}

Program scatter(int64_t n, int64_t bins) {
  const Tensor where = global("I", Int(32), line(n));
  const Tensor x = global("X", Float(32), line(n));
  const Tensor h = global("H", Int(32), line(bins), true);
  const Tensor l = global("L", Float(32), line(bins), true);
  const Expr i = var("i");
  const NodePtr update = sequence({atomic(h, {read(where, {i})}, tile::Atomic::Op::kAdd, 1),
                                   atomic(l, {read(where, {i})}, tile::Atomic::Op::kMax, read(x, {i}))});
  const NodePtr body = let("i", block_x() * 256 + thread_x(), if_then(i < static_cast<int>(n), update));
  return program_of("scatter", {kernel_of("scatter", {(n + 255) / 256, 1, 1}, {256, 1, 1}, {where, x, h, l}, body)});
}

namespace {

Program scale_and_reverse(int64_t n, bool swapped) {
  const Tensor x = global("X", Float(32), line(n));
  const Tensor t_written = global("T", Float(32), line(n), true);
  const Tensor t = global("T", Float(32), line(n));
  const Tensor y = global("Y", Float(32), line(n), true);
  const Expr i = var("i");
  const Expr alpha = Halide::Internal::Variable::make(Float(32), "alpha");
  const auto each = [&](const NodePtr& statement) {
    return let("i", block_x() * 100 + thread_x(), if_then(i < static_cast<int>(n), statement));
  };
  const std::array<int64_t, 3> grid = {(n + 99) / 100, 1, 1};
  Kernel scale =
      kernel_of("scale", grid, {100, 1, 1}, {x, t_written}, each(store(t_written, {i}, alpha * read(x, {i}))));
  scale.scalars.push_back({"alpha", Float(32)});
  const Kernel reverse =
      kernel_of("reverse", grid, {100, 1, 1}, {t, y}, each(store(y, {i}, read(t, {static_cast<int>(n - 1) - i}))));
  Program program =
      swapped ? program_of("scale_after_reverse", {reverse, scale}) : program_of("scale_and_reverse", {scale, reverse});
  program.workspace.push_back(t);
  return program;
}

}  // namespace

Program scale_and_reverse(int64_t n) { return scale_and_reverse(n, false); }
Program scale_after_reverse(int64_t n) { return scale_and_reverse(n, true); }

Program large_shared() {
  constexpr int kElements = 16384;
  const Tensor x = global("X", Float(32), line(kElements));
  const Tensor y = global("Y", Float(32), line(kElements), true);
  const Tensor buffer = shared("buffer", Float(32), line(kElements));
  const Expr i = var("i");
  const NodePtr in = for_loop("i", thread_x(), kElements, store(buffer, {i}, read(x, {i})), 256);
  const NodePtr out = for_loop("i", thread_x(), kElements, store(y, {i}, read(buffer, {kElements - 1 - i})), 256);
  return program_of("large_shared", {kernel_of("large_shared", {1, 1, 1}, {256, 1, 1}, {x, y},
                                               allocate(buffer, sequence({in, barrier(), out})))});
}

Program with_maps(int64_t m, int64_t n) {
  const Tensor x = global("X", Float(16), rows(m, n));
  const Tensor t_written = global("T", Float(16), rows(m, n), true);
  const Tensor t = global("T", Float(16), rows(m, n));
  const Tensor y = global("Y", Float(16), rows(m, n), true);
  const auto copy = [&](const std::string& name, const Tensor& to, const Tensor& from) {
    const NodePtr element = store(to, {block_x(), var("i")}, read(from, {block_x(), var("i")}));
    return kernel_of(name, {m, 1, 1}, {32, 1, 1}, {from, to},
                     for_loop("i", thread_x(), Expr(static_cast<int>(n)), element, 32));
  };
  Kernel first = copy("first", t_written, x);
  first.maps = {{.name = "X_map",
                 .tensor = "X",
                 .offset = 32,
                 .extents = {n - 32, m},
                 .strides = {1, n},
                 .box = {32, 64},
                 .swizzle = 64}};
  Kernel second = copy("second", y, t);
  second.maps = {{.name = "T_map", .tensor = "T", .extents = {m * n}, .strides = {1}, .box = {256}}};
  second.cluster = {2, 1, 1};
  Program program = program_of("with_maps", {first, second});
  program.workspace.push_back(t);
  return program;
}

Program intrinsic(const std::string& name, const std::vector<Halide::Type>& arguments, Halide::Type result, int64_t n) {
  std::vector<Tensor> tensors;
  std::vector<Expr> operands;
  const Expr i = var("i");
  for (size_t a = 0; a < arguments.size(); ++a) {
    tensors.push_back(global(fmt::format("X{}", a), arguments[a], line(n)));
    operands.push_back(read(tensors.back(), {i}));
  }
  const Tensor y = global("Y", result, line(n), true);
  tensors.push_back(y);
  const NodePtr statement = store(y, {i}, Call::make(result, name, operands, Call::PureExtern));
  return program_of("intrinsic_" + name,
                    {kernel_of("k_" + name, {(n + 127) / 128, 1, 1}, {128, 1, 1}, tensors,
                               let("i", block_x() * 128 + thread_x(), if_then(i < static_cast<int>(n), statement)))});
}

}  // namespace tc::cuda::hand_written
