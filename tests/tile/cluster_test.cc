#include <gtest/gtest.h>

#include "../common/tile_mutants.h"
#include "rings.h"
#include "tc/tile/accesses.h"
#include "tc/tile/certificate.h"
#include "tc/tile/verify.h"

/// Rings whose boxes come to several blocks of a cluster.
namespace tc::tile {
namespace {

using namespace build;
using Sentences = std::vector<std::string>;

std::vector<RingProduct> shapes() {
  std::vector<RingProduct> result;
  for (const auto& [m, n] : {std::pair(2, 1), std::pair(1, 2), std::pair(2, 2), std::pair(4, 1), std::pair(2, 4)}) {
    for (const bool transposed : {false, true}) {
      const RingProduct shape = {.m = 128 * m,
                                 .n = 64 * n * 2,
                                 .k = 64 * 5 - 8,
                                 .a_transposed = transposed,
                                 .b_transposed = !transposed,
                                 .cluster_m = m,
                                 .cluster_n = n};
      result.push_back(shape);
      result.push_back(shape);
      result.back().m *= 2;
      result.back().tile_n = 128;
      result.back().b_transposed = transposed;
    }
  }
  return result;
}

TEST(Cluster, ProductsAreRightAndCertified) {
  uint64_t seed = 1;
  for (const RingProduct& shape : shapes()) {
    const RingSample sample = ring_product(shape);
    EXPECT_EQ(complaint(sample, {.seed = seed++}), "") << shape.cluster_m << shape.cluster_n << shape.tile_n;
    EXPECT_EQ(refusal_of(sample.program), "") << shape.cluster_m << shape.cluster_n << shape.tile_n;
  }
}

TEST(Cluster, NeverHangs) {
  for (int stages = 2; stages <= 4; ++stages) {
    for (int turns = 1; turns <= 9; turns += 2) {
      const RingSample sample =
          ring_product({.m = 256, .n = 128, .k = 64 * turns, .stages = stages, .cluster_m = 2, .cluster_n = 2});
      EXPECT_EQ(complaint_of(sample, sample.program), "") << stages << turns;
    }
  }
  EXPECT_NE(complaint(ring_product({.m = 256, .stages = 1, .cluster_m = 2})).find("never ends"), std::string::npos);
}

TEST(Cluster, LargeProductsAreCertified) {
  const RingProduct large = {
      .m = 4096, .n = 4096, .k = 4096, .tile_n = 256, .stages = 4, .cluster_m = 2, .cluster_n = 2};
  EXPECT_EQ(certify(ring_product_program(large).kernels[0]).unproved, Sentences{});
}

auto change_box(const std::string& of, std::function<void(BoxCopy&)> change) {
  return [=](Program& program) {
    change_node<BoxCopy>(program, [&](BoxCopy& n) {
      if (n.destination != of) return false;
      change(n);
      return true;
    });
  };
}

auto change_ring(std::function<void(Ring&)> change) {
  return [=](Program& program) {
    change_node<Ring>(program, [&](Ring& n) {
      change(n);
      return true;
    });
  };
}

/// Loops over turns run less often in every second block.
void end_early(Program& program) {
  for (int role = 0; role < 2; ++role) {
    change_node<For>(program, [&](For& n) {
      if (n.variable != "t" || !Halide::Internal::is_const(n.end)) return false;
      n.end = n.end - block_x() % 2;
      return true;
    });
  }
}

TEST(Cluster, WrongKernelsAreCaught) {
  using Change = std::function<void(Program&)>;
  using Kind = RingStep::Kind;
  const BlockGroup rows = {.stride = 1, .count = 2}, columns = {.stride = 2, .count = 2};
  const std::vector<std::pair<std::string, Change>> changes = {
      {"a part to its own block alone", change_box("B_shared", [](BoxCopy& n) { n.group = {}; })},
      {"a part to the wrong blocks", change_box("B_shared", [&](BoxCopy& n) { n.group = columns; })},
      {"the same part from both blocks", change_box("B_shared", [](BoxCopy& n) { n.destination_subscripts[1] = 0; })},
      {"parts that overlap",
       change_box("A_shared", [](BoxCopy& n) { n.destination_subscripts[1] = block_y() % 2 * 32; })},
      {"bytes of the block's own boxes", change_step(Kind::kCommit, [](RingStep& n) { n.bytes /= 2; })},
      {"16 bytes less", change_step(Kind::kCommit, [](RingStep& n) { n.bytes -= 16; })},
      {"no releases for a peer", change_ring([&](Ring& n) { n.groups = {rows}; })},
      {"no releases for any", change_ring([&](Ring& n) { n.groups = {}; })},
      {"releases for the wrong blocks", change_ring([](Ring& n) { n.groups[0] = {.stride = 1, .count = 4}; })},
      {"not drained",
       [](Program& p) {
         change_node<Sequence>(p, [](Sequence& n) {
           const RingStep* last = ring_step_of(*n.children.back());
           const bool drains = last && last->kind == Kind::kDrain;
           if (drains) n.children.pop_back();
           return drains;
         });
       }},
      {"drained of all but two turns", change_step(Kind::kDrain, [](RingStep& n) { n.turn = n.turn - 2; })},
      {"drained of more turns than there are", change_step(Kind::kDrain, [](RingStep& n) { n.turn = n.turn + 1; })},
      {"drained by a thread that reads",
       [](Program& p) { change_step(Kind::kRelease, [](RingStep& n) { n.kind = Kind::kDrain; })(p); }},
      {"last turn not released",
       [](Program& p) {
         change_node<Sequence>(p, [](Sequence& n) {
           const RingStep* last = ring_step_of(*n.children.back());
           const bool releases = last && last->kind == Kind::kRelease && Halide::Internal::is_const(last->turn);
           if (releases) n.children.pop_back();
           return releases;
         });
       }},
      {"no cluster",
       [](Program& p) {
         p.kernels[0].cluster = {1, 1, 1};
       }},
      {"a cluster of rows",
       [](Program& p) {
         p.kernels[0].cluster = {2, 1, 1};
       }},
      {"fewer turns in a block", [](Program& p) { end_early(p); }},
  };
  const RingSample sample =
      ring_product({.m = 256, .n = 128, .k = 64 * 7, .b_transposed = true, .cluster_m = 2, .cluster_n = 2});
  for (const auto& [what, change] : changes) {
    Program changed = sample.program;
    change(changed);
    EXPECT_NE(refusal_of(changed), "") << what;
    // What the structure forbids means nothing to the simulator.
    if (verify(changed).checked_promises) EXPECT_NE(complaint_of(sample, changed), "") << what;
  }
}

TEST(Cluster, MutantsAreCaught) {
  const RingSample sample = ring_product({.m = 256, .k = 64 * 5, .cluster_m = 2});
  std::vector<Mutant> all = mutants(sample.program);
  for (Mutant& mutant : mutants_of_operations(sample.program)) all.push_back(std::move(mutant));
  for (const Mutant& mutant : all) {
    EXPECT_NE(complaint_of(sample, mutant.program), "") << mutant.what;
    if (mutant.what.find("wgmma") == std::string::npos) EXPECT_NE(refusal_of(mutant.program), "") << mutant.what;
  }
}

}  // namespace
}  // namespace tc::tile
