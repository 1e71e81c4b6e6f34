#include "tc/cpu/strategy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tc/cpu/explain.h"
#include "tc/cpu/from_poly.h"
#include "tc/cpu/prepare.h"
#include "tc/ir/print.h"
#include "tc/poly/dependences.h"
#include "tc/poly/from_ir.h"
#include "tests/common/program.h"
#include "tests/cpu/kernels.h"
#include "tests/poly/programs.h"

namespace tc::cpu {
namespace {

using poly::test::index;
using poly::test::ProgramBuilder;
using poly::test::ProgramPtr;

/// A program compiled for this machine, or as told.
struct Compiled {
  std::shared_ptr<const ir::Program> prepared;
  poly::Scop scop;
  KernelStmt stmt;
  std::shared_ptr<const Loaded> loaded;
};

Compiled compile(const ProgramPtr& program, const options::CpuOptions& cpu = {}, const ir::Layouts& layouts = {}) {
  const int bits = vector_bits("host");
  PrepareOptions prepare_options{.layouts = layouts, .vector_bits = bits, .threads = 2, .strict = cpu.strict};
  Compiled result;
  result.prepared = std::make_shared<const ir::Program>(prepare(*program, prepare_options));
  auto scop = poly::from_ir(result.prepared, std::make_shared<poly::Context>());
  if (!scop) throw std::runtime_error(scop.error().to_string());
  auto scheduled =
      schedule_for_cpu(*scop, {.cpu = cpu, .layouts = layouts, .vector_bits = bits, .threads = 2, .verify = true});
  if (!scheduled) throw std::runtime_error(scheduled.error().to_string());
  result.scop = *scheduled;
  result.stmt = from_poly(result.scop, {.layouts = layouts, .vector_bits = bits});
  result.loaded =
      build({.name = "kernel", .arguments = result.stmt.arguments, .body = result.stmt.body, .no_alias = true});
  return result;
}

ProgramPtr matmul(int64_t m, int64_t n, int64_t k) {
  ProgramBuilder b("matmul");
  b.input("A", {m, k}).input("B", {k, n}).result("C", {m, n});
  return b
      .sum("C", {index("i"), index("j")}, {{"i", m}, {"j", n}}, {{"k", k}},
           b.at("A", {index("i"), index("k")}) * b.at("B", {index("k"), index("j")}))
      .build();
}

std::vector<float> small_integers(int64_t count, int seed) {
  std::vector<float> result(static_cast<size_t>(count));
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<float>((i * 7 + static_cast<size_t>(seed)) % 11) - 5;
  return result;
}

void expect_matmul(int64_t m, int64_t n, int64_t k, const options::CpuOptions& options = {}) {
  Compiled kernel = compile(matmul(m, n, k), options);
  std::vector<float> a = small_integers(m * k, 1), b = small_integers(k * n, 2);
  std::vector<float> c(static_cast<size_t>(m * n), -99);
  void* arguments[] = {a.data(), b.data(), c.data()};
  ASSERT_EQ(kernel.loaded->call(arguments), 0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float expected = 0;
      for (int64_t q = 0; q < k; ++q) expected += a[static_cast<size_t>(i * k + q)] * b[static_cast<size_t>(q * n + j)];
      ASSERT_EQ(c[static_cast<size_t>(i * n + j)], expected) << m << "x" << n << "x" << k << " at " << i << ", " << j;
    }
  }
}

TEST(Strategy, ExplainsTheTilesThatItMakes) {
  auto scop = poly::from_ir(matmul(64, 96, 32), std::make_shared<poly::Context>());
  ASSERT_TRUE(scop);
  StrategyOptions options{.layouts = {}, .vector_bits = 256, .threads = 2};
  options.cpu.tile = {12, 32, 4, 16};
  options.cpu.parallel = true;
  const auto choice = explain_schedule(*scop, options);
  ASSERT_TRUE(choice);
  ASSERT_EQ(choice->groups.size(), 1U);
  ASSERT_EQ(choice->groups[0].units.size(), 1U);
  const std::vector<LoopChoice>& loops = choice->groups[0].units[0].loops;
  ASSERT_EQ(loops.size(), 2U);
  EXPECT_EQ(loops[0].index, "i");
  EXPECT_EQ(loops[0].extent, 64);
  EXPECT_EQ(loops[0].tile, 12);
  EXPECT_EQ(loops[0].registers, 4);
  EXPECT_EQ(loops[1].tile, 32);
  EXPECT_EQ(loops[1].registers, 16);
  EXPECT_EQ(loops[1].vector, 8);
  const GroupEstimate& estimate = choice->groups[0].estimate;
  EXPECT_EQ(estimate.operations, 2.0 * 64 * 96 * 32);
  EXPECT_EQ(estimate.bytes, 4.0 * (64 * 32 + 32 * 96 + 64 * 96));
}

TEST(Strategy, MultipliesMatricesOfAnyShape) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                         {5, 3, 2},
                         {17, 33, 7},
                         {64, 64, 64},
                         {100, 130, 37},
                         {1, 100, 50},
                         {100, 1, 50},
                         {31, 513, 1},
                         {33, 40, 3000},
                         {32, 48, 9000}}) {
    expect_matmul(m, n, k);
  }
}

TEST(Strategy, PacksTheOperandsOfALargeContraction) {
  Compiled kernel = compile(matmul(150, 200, 300));
  ASSERT_EQ(kernel.scop.promotions.size(), 3u);
  EXPECT_EQ(kernel.scop.promotions[0].tensor, "B");
  EXPECT_EQ(kernel.scop.promotions[1].tensor, "A");
  EXPECT_EQ(kernel.scop.promotions[2].tensor, "C");
  expect_matmul(150, 200, 300);
  expect_matmul(151, 203, 301);
}

TEST(Strategy, BlocksALargeContractionAsItIsTold) {
  Compiled kernel = compile(matmul(150, 200, 300), {.tile = {18, 40, 4, 16}, .vector_width = 8});
  ASSERT_EQ(kernel.scop.promotions.size(), 3u);
  const auto extents = [&](size_t p) { return kernel.scop.promotions[p].extents; };
  EXPECT_EQ(extents(0), (std::vector<int64_t>{300, 48})) << "B: a block of columns, in whole register tiles";
  EXPECT_EQ(extents(1), (std::vector<int64_t>{20, 300})) << "A: a block of rows";
  EXPECT_EQ(extents(2), (std::vector<int64_t>{4, 16})) << "C: a register tile";
  for (const std::vector<int64_t>& tile : std::vector<std::vector<int64_t>>{
           {18, 40, 4, 16}, {1, 1, 3, 8}, {64}, {400, 16, 1, 128}, {151, 203, 64, 128}, {7, 200, 6}}) {
    for (const int width : {4, 16})
      expect_matmul(151, 203, 301, {.tile = tile, .vector_width = width, .parallel = true});
  }
}

TEST(Strategy, RegisterTilesOfSmallContractionsAndSums) {
  for (const std::vector<int64_t>& tile :
       std::vector<std::vector<int64_t>>{{8, 16, 1, 1}, {8, 16, 5, 7}, {1, 1, 2}, {37, 41, 128, 128, 9}}) {
    expect_matmul(37, 41, 13, {.tile = tile});
    expect_matmul(40, 1, 33, {.tile = tile});
  }
}

TEST(Strategy, KeepsItsPromiseUnderOptions) {
  for (int64_t tile : {1, 3, 5, 16}) {
    for (int width : {1, 2, 8}) {
      options::CpuOptions options;
      options.tile = {tile, tile + 2};
      options.vector_width = width;
      options.unroll = 3;
      options.parallel = true;
      expect_matmul(37, 41, 13, options);
    }
  }
  options::CpuOptions plain;
  plain.promote = false;
  plain.parallel = false;
  plain.strict = true;
  expect_matmul(150, 200, 300, plain);
  options::CpuOptions skewed;
  skewed.scheduler.allow_skewing = true;
  expect_matmul(37, 41, 13, skewed);
}

TEST(Strategy, TransposesLargeMatrices) {
  // The last goes past the cache: only where its lines are whole lines of memory.
  for (auto [m, n] : {std::array<int64_t, 2>{1024, 1030}, {1030, 1025}, {9, 120'000}, {120'000, 9}, {2800, 3000}}) {
    ProgramBuilder b("transpose");
    b.input("X", {m, n}).result("Y", {n, m});
    b.set("Y", {index("j"), index("i")}, {{"j", n}, {"i", m}}, b.at("X", {index("i"), index("j")}));
    Compiled kernel = compile(b.build());
    std::vector<float> x(static_cast<size_t>(m * n)), room(x.size() + 17);
    std::iota(x.begin(), x.end(), 0.f);
    auto line = (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) % 64 / sizeof(float);
    for (size_t offset : {line, line + 1}) {
      std::fill(room.begin(), room.end(), -1.f);
      float* y = &room[offset];
      void* arguments[] = {x.data(), y};
      ASSERT_EQ(kernel.loaded->call(arguments), 0);
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t i = 0; i < m; ++i) {
          ASSERT_EQ(y[j * m + i], x[static_cast<size_t>(i * n + j)]) << i << ", " << j << " of " << m << "x" << n;
        }
      }
    }
  }
}

TEST(Strategy, SchedulesAreLegal) {
  for (auto fusion : {options::Fusion::kMin, options::Fusion::kPreserve3Coincident, options::Fusion::kMax}) {
    options::CpuOptions options;
    options.scheduler.fusion = fusion;
    options.parallel = true;
    Compiled kernel = compile(matmul(40, 50, 60), options);
    auto legal = poly::check_legal(kernel.scop, "schedule");
    EXPECT_TRUE(legal) << legal.error().to_string();
  }
}

ProgramPtr row_sum(int64_t rows, int64_t columns) {
  ProgramBuilder b("row_sum");
  b.input("X", {rows, columns}).result("S", {rows});
  return b.sum("S", {index("i")}, {{"i", rows}}, {{"j", columns}}, b.at("X", {index("i"), index("j")})).build();
}

/// C(i, j) +=! 3 * A(i, k) * B(j, k)
ProgramPtr scaled_matmul_transposed(int64_t m, int64_t n, int64_t k) {
  ProgramBuilder b("scaled");
  b.input("A", {m, k}).input("B", {n, k}).result("C", {m, n});
  return b
      .sum("C", {index("i"), index("j")}, {{"i", m}, {"j", n}}, {{"k", k}},
           Halide::Expr(3.0f) * b.at("A", {index("i"), index("k")}) * b.at("B", {index("j"), index("k")}))
      .build();
}

TEST(Prepare, MakesOperandsOnceInTheOrderOfVectors) {
  ir::Program made = prepare(*scaled_matmul_transposed(40, 50, 60), {.layouts = {}, .vector_bits = 256});
  ASSERT_EQ(made.statements.size(), 3u);
  EXPECT_EQ(made.statements[0].tensor, "C_operand");
  EXPECT_EQ(made.statements[1].tensor, "B_t");
  ASSERT_EQ(made.tensor("B_t").rank(), 2);
  EXPECT_EQ(*Halide::Internal::as_const_int(made.tensor("B_t").extents[1]), 50);
  // Too few uses of each element; too few vectors; a layout that is in order already.
  EXPECT_EQ(prepare_operands(*scaled_matmul_transposed(15, 50, 600), {}).find_tensor("B_t"), nullptr);
  EXPECT_EQ(prepare_operands(*scaled_matmul_transposed(500, 3, 60), {}).find_tensor("B_t"), nullptr);
  EXPECT_EQ(prepare_operands(*scaled_matmul_transposed(40, 50, 60), {.layouts = {{"B", {1, 50}}}}).find_tensor("B_t"),
            nullptr);
}

/// A scatter becomes a product with borders. Choices of two values that are both computed have none.
TEST(Prepare, ScattersBecomeProductsWithBorders) {
  const auto prepared = [](const std::string& text) {
    return ir::to_text(prepare(tc::testing::specialised_from("def f(" + text, {{"N", 16}, {"C", 4}, {"F", 8}}),
                               {.layouts = {}, .vector_bits = 256}));
  };
  EXPECT_NE(prepared("float(C,N) I, float(F,C,3) W) -> (O) { O(f,n+r) +=! I(c,n) * W(f,c,r) }").find("n_r"),
            std::string::npos);
  EXPECT_EQ(prepared("float(C,N) I, float(F,C,3) W) -> (O) { O(f,n+r) +=! (n % 2 == 0 ? I(c,n) : 0) * W(f,c,r) }")
                .find("n_r"),
            std::string::npos);
}

TEST(Prepare, ContractionsOfPreparedOperandsComputeTheSame) {
  for (bool strict : {false, true}) {
    for (auto [m, n, k] : {std::array<int64_t, 3>{40, 50, 60}, {33, 17, 101}, {150, 200, 300}}) {
      options::CpuOptions options;
      options.strict = strict;
      Compiled kernel = compile(scaled_matmul_transposed(m, n, k), options);
      EXPECT_NE(kernel.prepared->find_tensor("B_t"), nullptr);
      std::vector<float> a = small_integers(m * k, 1), b = small_integers(n * k, 2);
      std::vector<float> c(static_cast<size_t>(m * n), -99);
      void* arguments[] = {a.data(), b.data(), c.data()};
      ASSERT_EQ(kernel.loaded->call(arguments), 0);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          const float* row = &a[static_cast<size_t>(i * k)];
          float expected = 3 * std::inner_product(row, row + k, &b[static_cast<size_t>(j * k)], 0.f);
          ASSERT_EQ(c[static_cast<size_t>(i * n + j)], expected) << i << ", " << j;
        }
      }
    }
  }
}

/// A sum that no column changes is computed once for a row, and then copied: C(i,j) += A(i,k) * B(k).
TEST(Prepare, SumsThatColumnsShareAreComputedOnce) {
  const int64_t m = 24, n = 300, k = 70;
  ProgramBuilder b("row_sums");
  b.input("A", {m, k}).input("B", {k}).result("C", {m, n});
  const ProgramPtr program = b.sum("C", {index("i"), index("j")}, {{"i", m}, {"j", n}}, {{"k", k}},
                                   b.at("A", {index("i"), index("k")}) * b.at("B", {index("k")}))
                                 .build();
  for (const bool strict : {false, true}) {
    options::CpuOptions options;
    options.strict = strict;
    const Compiled kernel = compile(program, options);
    const auto& statements = kernel.prepared->statements;
    const auto sum = std::find_if(statements.begin(), statements.end(), [](const auto& s) { return s.reduces(); });
    ASSERT_NE(sum, statements.end());
    EXPECT_EQ(std::count_if(sum->indices.begin(), sum->indices.end(), [](const auto& i) { return i.name == "j"; }), 0);
    std::vector<float> a = small_integers(m * k, 1), x = small_integers(k, 2);
    std::vector<float> c(static_cast<size_t>(m * n), -99);
    void* arguments[] = {a.data(), x.data(), c.data()};
    ASSERT_EQ(kernel.loaded->call(arguments), 0);
    for (int64_t i = 0; i < m; ++i) {
      const float* row = &a[static_cast<size_t>(i * k)];
      const float expected = std::inner_product(row, row + k, x.begin(), 0.f);
      for (int64_t j = 0; j < n; ++j) ASSERT_EQ(c[static_cast<size_t>(i * n + j)], expected) << i << ", " << j;
    }
  }
}

TEST(Strategy, ReadsALargeOperandOnce) {
  // Each row of B serves all eight rows of A before the next is read.
  const int64_t m = 8, n = 700, k = 3000;
  Compiled kernel = compile(scaled_matmul_transposed(m, n, k));
  EXPECT_EQ(kernel.prepared->find_tensor("B_t"), nullptr);
  std::string loop;
  for (const Halide::Internal::Stmt* s = &kernel.stmt.body; loop.empty();) {
    if (const auto* allocate = s->as<Halide::Internal::Allocate>()) {
      s = &allocate->body;
    } else if (const auto* block = s->as<Halide::Internal::Block>()) {
      s = &block->rest;
    } else {
      const auto* outermost = s->as<Halide::Internal::For>();
      ASSERT_NE(outermost, nullptr);
      loop = outermost->name;
    }
  }
  EXPECT_EQ(loop, "j_tile");
}

TEST(Prepare, AnOperandThatIsOverwrittenIsCopiedAgain) {
  ProgramBuilder b("twice");
  b.input("A", {40, 40}).tensor("B", {40, 40}, ir::Role::kInOut).result("C", {40, 40}).result("D", {40, 40});
  std::vector<ProgramBuilder::Loop> points{{"i", 40}, {"j", 40}};
  auto product = [&] { return b.at("A", {index("i"), index("k")}) * b.at("B", {index("j"), index("k")}); };
  b.sum("C", {index("i"), index("j")}, points, {{"k", 40}}, product());
  b.set("B", {index("i"), index("j")}, points, b.at("B", {index("i"), index("j")}) + 1.0f);
  b.sum("D", {index("i"), index("j")}, points, {{"k", 40}}, product());
  ir::Program made = prepare_operands(*b.build(), {});
  std::vector<std::string> order;
  for (const ir::Statement& statement : made.statements) order.push_back(statement.tensor);
  EXPECT_EQ(order, (std::vector<std::string>{"B_t", "C", "B", "B_t_1", "D"}));
}

TEST(Prepare, SplitsAReductionAlongMemory) {
  ir::Program split = prepare(*row_sum(8, 1000), {.layouts = {}, .vector_bits = 256});
  ASSERT_EQ(split.statements.size(), 2u);
  EXPECT_EQ(split.statements[0].tensor, "S_lanes");
  EXPECT_EQ(*Halide::Internal::as_const_int(split.tensor("S_lanes").extents[1]), 32);
  ir::Program strict = prepare(*row_sum(8, 1000), {.layouts = {}, .vector_bits = 256, .strict = true});
  EXPECT_EQ(strict.statements.size(), 1u);
}

TEST(Prepare, SplitReductionsSumTheSame) {
  for (int64_t columns : {1, 31, 64, 65, 1000}) {
    Compiled kernel = compile(row_sum(3, columns));
    std::vector<float> x = small_integers(3 * columns, 3), s(3, -1);
    void* arguments[] = {x.data(), s.data()};
    ASSERT_EQ(kernel.loaded->call(arguments), 0);
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(s[static_cast<size_t>(i)], std::accumulate(x.begin() + i * columns, x.begin() + (i + 1) * columns, 0.f))
          << columns;
    }
  }
}

/// S(k) +=! X(i, j, k)
ProgramPtr plane_sum(int64_t n, int64_t m, int64_t k) {
  ProgramBuilder b("plane_sum");
  b.input("X", {n, m, k}).result("S", {k});
  return b.sum("S", {index("k")}, {{"k", k}}, {{"i", n}, {"j", m}}, b.at("X", {index("i"), index("j"), index("k")}))
      .build();
}

TEST(Prepare, CutsReductionsToFewElementsIntoPartsForThreads) {
  auto parts = [](const ProgramPtr& program, int threads) {
    ir::Program split = prepare(*program, {.layouts = {}, .vector_bits = 256, .threads = threads});
    const ir::Tensor& partial = split.tensor(split.statements[0].tensor);
    std::vector<int64_t> extents;
    for (const auto& extent : partial.extents) extents.push_back(*Halide::Internal::as_const_int(extent));
    return extents;
  };
  EXPECT_EQ(parts(plane_sum(100, 200, 16), 2), (std::vector<int64_t>{16, 16}));
  EXPECT_EQ(parts(row_sum(1, 1'000'000), 2), (std::vector<int64_t>{1, 16, 32}));
  EXPECT_EQ(parts(row_sum(2, 100'000), 2), (std::vector<int64_t>{2, 16, 32}));
  EXPECT_EQ(parts(row_sum(100, 100'000), 2), (std::vector<int64_t>{100, 32}));
  EXPECT_EQ(parts(row_sum(1, 1'000'000), 1), (std::vector<int64_t>{1, 32}));
  EXPECT_EQ(parts(plane_sum(10, 20, 16), 2), (std::vector<int64_t>{16}));
  EXPECT_EQ(parts(matmul(32, 32, 2000), 2), (std::vector<int64_t>{32, 32, 16}));
  EXPECT_EQ(parts(matmul(32, 32, 50'000), 2), (std::vector<int64_t>{32, 32, 25}));
  EXPECT_EQ(parts(matmul(100, 100, 2000), 2), (std::vector<int64_t>{100, 100}));
}

TEST(Prepare, SumsInPartsAreTheSame) {
  for (auto [n, m, k] : {std::array<int64_t, 3>{100, 200, 16}, {101, 97, 19}, {16, 8200, 1}, {7, 20'011, 3}}) {
    Compiled kernel = compile(plane_sum(n, m, k));
    EXPECT_GT(kernel.prepared->statements.size(), 1u);
    std::vector<float> x = small_integers(n * m * k, 3), s(static_cast<size_t>(k), -1);
    void* arguments[] = {x.data(), s.data()};
    ASSERT_EQ(kernel.loaded->call(arguments), 0);
    for (int64_t i = 0; i < k; ++i) {
      float expected = 0;
      for (size_t at = static_cast<size_t>(i); at < x.size(); at += static_cast<size_t>(k)) expected += x[at];
      EXPECT_EQ(s[static_cast<size_t>(i)], expected) << n << "x" << m << "x" << k << " at " << i;
    }
  }
}

TEST(FromPoly, HonoursStrides) {
  ProgramBuilder b("copy");
  b.input("X", {5, 7}).result("Y", {5, 7});
  b.set("Y", {index("i"), index("j")}, {{"i", 5}, {"j", 7}}, b.at("X", {index("i"), index("j")}));
  Compiled kernel = compile(b.build(), {}, {{"X", {1, 5}}, {"Y", {20, 2}}});
  std::vector<float> x(35), y(100, -1);
  std::iota(x.begin(), x.end(), 0.f);
  void* arguments[] = {x.data(), y.data()};
  ASSERT_EQ(kernel.loaded->call(arguments), 0);
  for (size_t i = 0; i < 5; ++i) {
    for (size_t j = 0; j < 7; ++j) EXPECT_EQ(y[i * 20 + j * 2], x[i + j * 5]);
    for (size_t gap = 14; gap < 20; ++gap) EXPECT_EQ(y[i * 20 + gap], -1);
  }
}

TEST(FromPoly, RunsPastTwoToTheThirtyFirst) {  // R9
  const int64_t count = (int64_t{1} << 31) + 77;
  ProgramBuilder b("increment");
  b.tensor("X", {count}, ir::Role::kInOut, Halide::UInt(8));
  b.set("X", {index("i")}, {{"i", count}}, b.at("X", {index("i")}) + Halide::cast<uint8_t>(1));
  ir::Program program = *b.build();
  program.parameters = {"X"};
  Compiled kernel = compile(std::make_shared<const ir::Program>(program));
  std::vector<uint8_t> x(static_cast<size_t>(count), 3);
  void* arguments[] = {x.data()};
  ASSERT_EQ(kernel.loaded->call(arguments), 0);
  EXPECT_EQ(x.front(), 4);
  EXPECT_EQ(x.back(), 4);
  EXPECT_EQ(std::count(x.begin(), x.end(), 4), count);
}

}  // namespace
}  // namespace tc::cpu
