#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tc/support/scalar_type.h"
#include "tc/tile/build.h"
#include "tc/tile/simulate.h"

/// Products by warpgroups that read a ring of shared buffers, written by hand.
namespace tc::tile {

/// C = A B of 16-bit or 8-bit floats, C float32: a block of 2 warpgroups and a thread that fills the ring each 128 x n.
struct RingProduct {
  int m = 128, n = 64, k = 192;
  int tile_n = 64;
  int stages = 3;
  bool a_transposed = false, b_transposed = false;  ///< in global memory: A is (k, m), B is (n, k)
  ScalarType a = ScalarType::kFloat16, b = ScalarType::kFloat16;
  bool two_levels = false;    ///< the products of a turn start a sum of their own, which is then added in float32
  bool holds_a = false;       ///< threads load A themselves, to registers; each product ends before the next one starts
  bool releases_late = true;  ///< a turn when the products of the next one have been started
  bool releases_last = true;  ///< as a cluster's blocks do anyway
  int tiles = 1;              ///< of a block, one after the other along n
  bool ping_pong = false;     ///< the warpgroups have tiles by turns: one each, with all rows
  int first_turns = 0;        ///< if not 0: of a loop of its own before the other turns of a tile
  int cluster_m = 1, cluster_n = 1;  ///< blocks of a cluster, which share boxes

  int row() const { return 128 / bytes_of(a); }  ///< elements of 128 bytes along k, those of a turn
  int turns() const { return (k + row() - 1) / row(); }
};

struct RingSample {
  Program program;
  std::vector<std::byte> a, b;
  std::vector<float> expected;
};
Program ring_product_program(const RingProduct& shape);
RingSample ring_product(const RingProduct& shape);

struct RingOutcome {
  std::vector<float> output;
  Report report;
};
RingOutcome run(const RingSample& sample, const SimulatorOptions& options = {});
/// "" if the output is as expected and there are no findings; otherwise what is wrong.
std::string complaint(const RingSample& sample, const SimulatorOptions& options = {});

/// What the simulator has to say of a program, for a few seeds.
std::string complaint_of(const RingSample& sample, const Program& program);
/// Why verify() or certify() refuses a program.
std::string refusal_of(const Program& program);

/// Changes the first node of a kind.
template <typename Kind, typename Change>
NodePtr with_changed(const NodePtr& node, Change change, bool& done) {
  if (!node || done) return node;
  if (const auto* found = std::get_if<Kind>(&node->node)) {
    Kind changed = *found;
    if (change(changed)) {
      done = true;
      return std::make_shared<const Node>(Node{changed, ""});
    }
  }
  return map_children(node, [&](const NodePtr& child) { return with_changed<Kind>(child, change, done); });
}

/// Changes the first node of a kind that `change` accepts.
template <typename Kind, typename Change>
void change_node(Program& program, Change change) {
  bool done = false;
  program.kernels[0].body = with_changed<Kind>(program.kernels[0].body, change, done);
  EXPECT_TRUE(done);
}

/// The step of a kind, changed.
inline auto change_step(RingStep::Kind kind, std::function<void(RingStep&)> change) {
  return [=](Program& program) {
    change_node<RingStep>(program, [&](RingStep& n) {
      if (n.kind != kind) return false;
      change(n);
      return true;
    });
  };
}

}  // namespace tc::tile
