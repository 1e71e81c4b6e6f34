#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstring>
#include <numeric>

#include "../common/tile_mutants.h"
#include "rings.h"
#include "tc/tile/verify.h"

/// Matrices that the threads of a warp store together.
namespace tc::tile {
namespace {

using namespace build;

constexpr int kThreads = 32;

struct Stored {
  int matrices = 4;
  bool transposed = false;
  bool has_barrier = true;
};

/// Thread t has A(t, v). The warp stores its matrices one below the other, then each thread reads a row that another
/// one has named.
Program program_of(const Stored& shape) {
  const Halide::Type type = Halide::Float(16);
  const int values = 2 * shape.matrices, rows = kMatrixRow * shape.matrices;
  const Tensor a = global("A", type, Layout::row_major({kThreads, values}));
  const Tensor c = global("C", type, Layout::row_major({rows, kMatrixRow}), true);
  const Tensor tile = shared("tile", type, Layout::row_major({rows, 2 * kMatrixRow}));
  const Tensor held = registers("held", type, Layout::row_major({values}));
  const Expr t = thread_x(), next = (t + 1) % rows, v = var("v"), e = var("e");
  Fragment matrices{held.name, {}};
  for (int i = 0; i < values; ++i) matrices.values.push_back({i});
  std::vector<NodePtr> parts = {unrolled("v", 0, values, store(held, {v}, read(a, {t, v}))),
                                matrix_store(tile, {t % rows, 0}, matrices, shape.transposed)};
  if (shape.has_barrier) parts.push_back(barrier(Barrier::Scope::kWarp));
  parts.push_back(if_then(t < rows, unrolled("e", 0, kMatrixRow, store(c, {next, e}, read(tile, {next, e})))));
  Kernel kernel;
  kernel.name = "matrices";
  kernel.block = {kThreads, 1, 1};
  kernel.tensors = {a, c};
  kernel.body = allocate(tile, allocate(held, sequence(parts)));
  return {"matrices", {kernel}, {}, ""};
}

/// What a run finds wrong; "" if nothing.
std::string complaint_of(const Stored& shape) {
  const int values = 2 * shape.matrices;
  std::vector<uint16_t> a(static_cast<size_t>(kThreads * values)),
      c(static_cast<size_t>(shape.matrices * kMatrixRow * kMatrixRow), 0xFFFF);
  for (size_t i = 0; i < a.size(); ++i) a[i] = Halide::float16_t(static_cast<float>(i)).to_bits();
  std::vector<uint16_t> expected(c.size());
  for (int t = 0; t < kThreads; ++t) {
    for (int v = 0; v < values; ++v) {  // PTX ISA, "stmatrix"
      const int row = shape.transposed ? 2 * (t % 4) + v % 2 : t / 4;
      const int element = shape.transposed ? t / 4 : 2 * (t % 4) + v % 2;
      expected[static_cast<size_t>((v / 2 * kMatrixRow + row) * kMatrixRow + element)] =
          a[static_cast<size_t>(t * values + v)];
    }
  }
  Arguments arguments;
  arguments.tensors["A"] = std::as_writable_bytes(std::span(a));
  arguments.tensors["C"] = std::as_writable_bytes(std::span(c));
  const Result<Report> report = simulate(program_of(shape), arguments, {.seed = 1});
  if (!report) return "it does not run";
  for (const Finding& finding : report->findings) return finding.sentence;
  return c == expected ? "" : "elements are in other places";
}

TEST(MatrixStore, PutsElementsWhereLoadsTakeThem) {
  for (const int matrices : {1, 2, 4}) {
    for (const bool transposed : {false, true}) {
      const Stored shape = {.matrices = matrices, .transposed = transposed};
      EXPECT_EQ(refusal_of(program_of(shape)), "") << matrices << transposed;
      EXPECT_EQ(complaint_of(shape), "") << matrices << transposed;
    }
  }
}

TEST(MatrixStore, IsSeenByOtherThreadsBehindABarrier) {
  const Stored shape = {.has_barrier = false};
  EXPECT_NE(refusal_of(program_of(shape)).find("no barrier"), std::string::npos) << refusal_of(program_of(shape));
  EXPECT_NE(complaint_of(shape), "");
}

TEST(MatrixStore, WrongOnesAreRefused) {
  const auto refusal = [](int matrices, const std::function<void(MatrixStore&)>& change) {
    Program program = program_of({.matrices = matrices});
    change_node<MatrixStore>(program, [&](MatrixStore& n) {
      change(n);
      return true;
    });
    return refusal_of(program);
  };
  const auto expect = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(refusal(4, [](MatrixStore& n) { n.destination = "C"; }), "has rows in 'C', which is not shared");
  expect(refusal(4, [](MatrixStore& n) { n.source.values.resize(6); }), "is of 3 matrices");
  expect(refusal(4, [](MatrixStore& n) { n.destination_subscripts[1] = 4; }), "is no multiple of 8");
  expect(refusal(4, [](MatrixStore& n) { n.destination_subscripts[0] = thread_x() + 1; }), "leaves");
  // Two threads that name one row.
  EXPECT_NE(refusal(4, [](MatrixStore& n) { n.destination_subscripts[0] = thread_x() / 2; }), "");
  Program crooked = program_of({.matrices = 2});
  crooked.kernels[0].block = {16, 2, 1};
  expect(refusal_of(crooked), "no whole warps along x");
  Program older = program_of({});
  EXPECT_EQ(older.kernels[0].architecture(), 90);
}

}  // namespace
}  // namespace tc::tile
