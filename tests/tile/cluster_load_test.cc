#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <numeric>

#include "../common/tile_mutants.h"
#include "rings.h"
#include "tc/tile/certificate.h"
#include "tc/tile/verify.h"

/// Blocks of a cluster that read each other's shared memory.
namespace tc::tile {
namespace {

using namespace build;
using Sentences = std::vector<std::string>;

/// C(round, i) = the sum of A(round, r, i) over r: each block of a cluster puts one row into its shared memory, and
/// adds up a part of the columns of all.
struct ClusterSum {
  int blocks = 2;    ///< of a cluster
  int clusters = 2;  ///< each for columns of its own
  int vector = 4;
  int rounds = 1;
};
constexpr int kThreads = 64;

Program program_of(const ClusterSum& shape) {
  const int columns = kThreads * shape.vector, all = columns * shape.clusters;
  const Halide::Type type = Halide::Float(32);
  const Tensor a = global("A", type, Layout::row_major({shape.rounds, shape.blocks, all}));
  const Tensor c = global("C", type, Layout::row_major({shape.rounds, all}), true);
  const Tensor row = shared("row", type, Layout::row_major({kThreads, shape.vector}));
  const Tensor total = registers("total", type, Layout::row_major({shape.vector}));
  const Tensor part = registers("part", type, Layout::row_major({shape.vector}));
  const Expr rank = block_x() % shape.blocks, first = block_x() / shape.blocks * columns, t = thread_x();
  const int threads = kThreads / shape.blocks;
  std::vector<NodePtr> parts;
  for (int round = 0; round < shape.rounds; ++round) {
    const auto name = [&](const char* of) { return fmt::format("{}{}", of, round); };
    const Expr slot = rank * threads + t, j = var(name("j"));
    const NodePtr add = unrolled(name("j"), 0, shape.vector, store(total, {j}, read(total, {j}) + read(part, {j})));
    const NodePtr sum = sequence({
        cluster_load(total, {0}, row, {slot, 0}, shape.vector, 0),
        for_loop(name("r"), 1, shape.blocks,
                 sequence({cluster_load(part, {0}, row, {slot, 0}, shape.vector, var(name("r"))), add})),
        move(c, {round, first + slot * shape.vector}, total, {0}, shape.vector),
    });
    parts.push_back(move(row, {t, 0}, a, {round, rank, first + t * shape.vector}, shape.vector));
    parts.insert(parts.end(), {arrive_in_cluster(), wait_for_cluster(), if_then(t < threads, sum)});
    parts.insert(parts.end(), {arrive_in_cluster(), wait_for_cluster()});
  }
  Kernel kernel;
  kernel.name = "cluster_sum";
  kernel.grid = {shape.blocks * shape.clusters, 1, 1};
  kernel.cluster = {shape.blocks, 1, 1};
  kernel.block = {kThreads, 1, 1};
  kernel.tensors = {a, c};
  kernel.body = allocate(row, allocate(total, allocate(part, sequence(parts))));
  return {"cluster_sum", {kernel}, {}, ""};
}

/// What a run finds wrong; "" if nothing.
std::string complaint_of(const ClusterSum& shape, const Program& program, uint64_t seed) {
  const int all = kThreads * shape.vector * shape.clusters;
  std::vector<float> a(static_cast<size_t>(shape.rounds * shape.blocks * all)),
      c(static_cast<size_t>(shape.rounds * all));
  std::iota(a.begin(), a.end(), 1.0f);
  std::vector<float> expected(c.size(), 0);
  for (int round = 0; round < shape.rounds; ++round) {
    for (int r = 0; r < shape.blocks; ++r) {
      for (int i = 0; i < all; ++i) {
        expected[static_cast<size_t>(round * all + i)] += a[static_cast<size_t>((round * shape.blocks + r) * all + i)];
      }
    }
  }
  Arguments arguments;
  arguments.tensors["A"] = std::as_writable_bytes(std::span(a));
  arguments.tensors["C"] = std::as_writable_bytes(std::span(c));
  const Result<Report> report = simulate(program, arguments, {.seed = seed});
  if (!report) return "it does not run";
  for (const Finding& finding : report->findings) return finding.sentence;
  return c == expected ? "" : "the sums are wrong";
}

TEST(ClusterLoad, SumsAreRightAndCertified) {
  for (const int blocks : {2, 4, 8}) {
    for (const int vector : {1, 2, 4}) {
      for (const int rounds : {1, 2}) {
        const ClusterSum shape = {.blocks = blocks, .vector = vector, .rounds = rounds};
        const Program program = program_of(shape);
        EXPECT_EQ(refusal_of(program), "") << blocks << vector << rounds;
        for (uint64_t seed = 1; seed < 6; ++seed) {
          EXPECT_EQ(complaint_of(shape, program, seed), "") << blocks << vector << rounds;
        }
      }
    }
  }
}

/// Leaves out an arrival and the wait behind it.
void leave_out_barrier(Program& program, int which) {
  change_node<Sequence>(program, [&](Sequence& n) {
    int seen = 0;
    for (size_t i = 0; i < n.children.size(); ++i) {
      const ClusterStep* step = cluster_step_of(*n.children[i]);
      if (!step || step->kind != ClusterStep::Kind::kArrive || seen++ != which) continue;
      n.children.erase(n.children.begin() + static_cast<long>(i), n.children.begin() + static_cast<long>(i) + 2);
      return true;
    }
    return false;
  });
}

/// Moves what lies behind a wait before it, or what lies before an arrival behind it.
void exchange_with(Program& program, ClusterStep::Kind kind, int which) {
  change_node<Sequence>(program, [&](Sequence& n) {
    int seen = 0;
    for (size_t i = 0; i < n.children.size(); ++i) {
      const ClusterStep* step = cluster_step_of(*n.children[i]);
      if (!step || step->kind != kind || seen++ != which) continue;
      const size_t other = kind == ClusterStep::Kind::kArrive ? i - 1 : i + 1;
      std::swap(n.children[i], n.children[other]);
      return true;
    }
    return false;
  });
}

TEST(ClusterLoad, WrongKernelsAreCaught) {
  using Kind = ClusterStep::Kind;
  using Change = std::function<void(Program&)>;
  const auto change_load = [](std::function<void(ClusterLoad&)> change) {
    return [=](Program& program) {
      change_node<ClusterLoad>(program, [&](ClusterLoad& n) {
        change(n);
        return true;
      });
    };
  };
  const ClusterSum shape = {.blocks = 4, .rounds = 2};
  const Program program = program_of(shape);
  const std::vector<std::pair<std::string, Change>> in_time = {
      {"no barrier before the first reads", [](Program& p) { leave_out_barrier(p, 0); }},
      {"no barrier between reads and the next writes", [](Program& p) { leave_out_barrier(p, 1); }},
      {"no barrier at the end", [](Program& p) { leave_out_barrier(p, 3); }},
      {"reads before the wait", [](Program& p) { exchange_with(p, Kind::kWait, 0); }},
      {"writes behind the arrival", [](Program& p) { exchange_with(p, Kind::kArrive, 0); }},
      {"reads behind the arrival", [](Program& p) { exchange_with(p, Kind::kArrive, 1); }},
      {"writes before the wait", [](Program& p) { exchange_with(p, Kind::kWait, 1); }},
      {"reads behind the last arrival", [](Program& p) { exchange_with(p, Kind::kArrive, 3); }},
      {"a block that there is not", change_load([](ClusterLoad& n) { n.block = 4; })},
      {"an element too far", change_load([](ClusterLoad& n) { n.source_subscripts[0] = n.source_subscripts[0] + 64; })},
      {"half a vector further", change_load([](ClusterLoad& n) { n.source_subscripts[1] = 2; })},
  };
  for (const auto& [what, change] : in_time) {
    Program changed = program;
    change(changed);
    EXPECT_NE(refusal_of(changed), "") << what;
    if (verify(changed).checked_promises) EXPECT_NE(complaint_of(shape, changed, 1), "") << what;
  }
  // In order, and of the wrong block: the sums are wrong.
  Program changed = program;
  change_load([](ClusterLoad& n) { n.block = 1; })(changed);
  EXPECT_EQ(refusal_of(changed), "");
  EXPECT_EQ(complaint_of(shape, changed, 1), "the sums are wrong");
}

TEST(ClusterLoad, SaysWhatIsNotOrdered) {
  Program program = program_of({});
  leave_out_barrier(program, 1);
  const std::string of_row = "(0 +: 4) = row(block_x % 2 * 32 + thread_x, 0 +: 4) of block ";
  const std::string ended = " of the cluster' may read a block that has ended";
  EXPECT_EQ(certify(program.kernels[0]).unproved,
            (Sentences{"cluster_sum: 'total" + of_row + "0" + ended, "cluster_sum: 'part" + of_row + "r0" + ended}));
}

/// Barriers of a cluster take turns, outside of loops and branches.
TEST(ClusterLoad, StepsTakeTurns) {
  const std::vector<Mutant> all = mutants(program_of({}));
  EXPECT_GE(all.size(), 4u);
  for (const Mutant& mutant : all) EXPECT_NE(refusal_of(mutant.program), "") << mutant.what;
  Program program = program_of({});
  program.kernels[0].body = if_then(block_x() < 4, program.kernels[0].body);
  EXPECT_NE(refusal_of(program).find("is in a loop or branch"), std::string::npos) << refusal_of(program);
}

TEST(ClusterLoad, MutantsOfOperationsAreCaught) {
  const ClusterSum shape = {.blocks = 4};
  for (const Mutant& mutant : mutants_of_operations(program_of(shape))) {
    EXPECT_NE(complaint_of(shape, mutant.program, 1), "") << mutant.what;
  }
}

}  // namespace
}  // namespace tc::tile
