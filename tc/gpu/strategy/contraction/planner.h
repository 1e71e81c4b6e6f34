#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tc/gpu/strategy/contraction/layout.h"
#include "tc/gpu/strategy/contraction/plan.h"
#include "tc/gpu/strategy/contraction/plan_search.h"
#include "tc/gpu/strategy/contraction/requested_tile.h"
#include "tc/gpu/strategy/contraction/shapes.h"
#include "tc/gpu/strategy/contraction/tensor_cores.h"
#include "tc/gpu/strategy/contraction/warpgroup_cost.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"

namespace tc::gpu {

inline constexpr size_t kLaidOut = 48;     ///< plans that are laid out of those that were planned roughly
inline constexpr int64_t kAtomStages = 4;  ///< the most buffers of a plan by atoms, unless options ask for more
/// Buffers of a plan by warpgroups, unless options ask for others: one is given back when the next one's products have
/// started.
inline constexpr int64_t kFewestBuffers = 2, kMostBuffers = 8;

/// Finds the plans of one contraction: planner.cc those by elements and what all have in common, plan_tensor_cores.cc
/// those by tensor cores, plan_transpositions.cc those of transpositions.
class Planner {
 public:
  /// Plans that take longer than `most_cycles` need not be found. `joined`: by warpgroups, further products have this
  /// operand, too, and are multiplied in the same steps.
  Planner(const Contraction& contraction, const options::MappingOptions& options, const Device& device,
          double most_cycles = kNoLimit, std::optional<size_t> joined = {})
      : c_(contraction),
        options_(options),
        device_(device),
        most_cycles_(most_cycles),
        joined_(joined),
        request_(requested_tile(contraction, options)),
        bytes_(bytes_of_product(contraction)) {
    classify();
    choose_main();
  }
  std::vector<ContractionPlan> best(size_t count) const;
  std::vector<ContractionPlan> laid_out(std::vector<ContractionPlan> plans, size_t count) const;
  std::vector<ContractionPlan> transpositions() const;
  /// None if the options leave tensor cores out.
  std::vector<ContractionPlan> by_tensor_cores(size_t count) const;
  std::optional<ContractionPlan> by_warpgroups() const;
  std::optional<ContractionPlan> in_steps_of(const ContractionPlan& first) const;
  std::optional<ContractionPlan> by_warps(double most_cycles) const;
  /// Those by atoms, or else by elements, for a block that has all values of all axes but `rows`, with one group of
  /// threads; of some of them, `kept` is in shared memory. Not laid out.
  std::vector<ContractionPlan> in_chain(const std::vector<size_t>& rows, std::optional<size_t> kept);
  std::vector<ContractionPlan> in_chain_by_atoms(const TensorCores& cores, const std::vector<size_t>& rows) const;
  std::vector<ContractionPlan> in_chain_by_elements(const std::vector<size_t>& rows) const;
  /// The one by atoms of a shape; registers hold the operand `kept` already. Not laid out.
  std::optional<ContractionPlan> in_stream(const AtomShape& shape, std::optional<size_t> kept);
  /// The one by warpgroups, with so many values of the reduction in a step. `holds`: registers hold the operand `a`.
  /// Estimates no cycles, and chooses no stages.
  std::optional<ContractionPlan> in_stream(const WarpgroupShape& shape, const TensorCores& cores, int64_t chunk,
                                           bool holds);
  /// What by_elements() and by_atoms() choose from, for as long as the planner and `cores` live.
  BoundedShapes shapes_by_elements(bool sparing) const;
  BoundedShapes shapes_by_atoms(const TensorCores& cores) const;
  std::optional<TensorCores> tensor_cores() const { return tensor_cores_of(c_, classes_, device_, options_.tf32); }
  /// What multiplies by warpgroups, if the device and the options have it.
  std::optional<TensorCores> warpgroup_cores() const;
  const RequestedTile& request() const { return request_; }
  size_t main() const { return main_; }
  Tiles tiles_of_chain(const std::vector<size_t>& rows, int64_t block_rows, int64_t row_registers,
                       int64_t column_registers) const;
  /// Whether a block has all values of all axes but some.
  bool is_whole(const ContractionPlan& plan, const std::vector<size_t>& rows) const;
  void lay_out_apart(ContractionPlan& plan) const { lay_out_all(plan, Rows::kApart); }
  Result<void> fault() const;
  const std::string& why_not() const { return why_not_; }

 private:
  void classify();
  void choose_main();
  std::optional<ContractionPlan> tiled(const Shape& shape) const;
  std::optional<ContractionPlan> tiled(const AtomShape& shape, const TensorCores& cores) const;
  /// Whether the options leave it to the estimate whether tensor cores multiply, or ask for it.
  bool may_multiply() const;
  std::optional<ContractionPlan> plan(const Shape& shape) const;
  std::optional<ContractionPlan> plan(const AtomShape& shape, const TensorCores& cores) const;
  std::optional<ContractionPlan> plan(const WarpgroupShape& shape, const TensorCores& cores, double most_cycles) const;
  std::optional<ContractionPlan> tiled(const WarpgroupShape& shape, const TensorCores& cores,
                                       std::vector<int64_t> chunks) const;
  std::optional<WarpgroupWork> lay_out_boxes(ContractionPlan& plan) const;
  bool exceeds(ContractionPlan& plan, const WarpgroupWork& work, const WarpgroupShape& shape, double most_cycles) const;
  bool choose_stages(ContractionPlan& plan, const WarpgroupWork& work) const;
  double most_of(size_t count, const std::vector<ContractionPlan>& found) const;
  bool finish_atoms(ContractionPlan& plan) const;
  std::vector<ContractionPlan> by_elements(size_t count, double most_cycles) const;
  std::vector<AtomShape> different_atoms(const TensorCores& cores) const;
  std::vector<ContractionPlan> by_atoms(const TensorCores& cores, size_t count, double most_cycles) const;
  std::vector<ContractionPlan> best_of(const BoundedShapes& shapes, size_t count, double most_cycles) const;
  /// Whether some shape has a plan.
  static bool has_plan(const BoundedShapes& shapes) {
    for (size_t shape = 0; shape < shapes.count; ++shape) {
      if (shapes.plan(shape)) return true;
    }
    return false;
  }
  std::vector<int64_t> step_chunks() const;
  int64_t multiplied_by_step() const;
  double least_cycles_of(std::optional<ContractionPlan> tiled) const;
  double least_laid_out_cycles(const ContractionPlan& rough) const;
  int64_t most_unrolled(const ContractionPlan& plan) const;
  std::vector<std::pair<int64_t, int64_t>> requested_clusters(const TensorCores& cores) const;
  void add_clusters(const TensorCores& cores, const ContractionPlan& alone, WarpgroupShape shape, size_t count,
                    std::vector<ContractionPlan>& found) const;
  /// Whether some option is followed by warpgroups alone.
  bool asks_for_warpgroups() const {
    return request_.says_clusters() || options_.store_boxes.value_or(false) || options_.persistent.value_or(false) ||
           options_.ping_pong.value_or(false);
  }
  bool may_be_dealt_out(const ContractionPlan& plan) const;
  /// Of tiles of a shape: how many there are, their steps and their results.
  struct TileCounts {
    int64_t tiles = 1, steps = 1, points = 1;
  };
  TileCounts counts_of(const WarpgroupShape& shape, const TensorCores& cores) const;
  double least_cycles_of(const WarpgroupShape& shape, const TensorCores& cores) const;
  std::vector<int64_t> parts_of(const WarpgroupShape& shape, const TensorCores& cores) const;
  bool make_persistent(ContractionPlan& plan) const;
  bool may_have_row_atoms(const ContractionPlan& plan) const;
  bool may_stage_across(const TensorCores& cores) const;
  void add_ping_pong(const TensorCores& cores, const std::vector<WarpgroupShape>& shapes, size_t count,
                     std::vector<ContractionPlan>& found) const;
  static bool takes_turns(WarpgroupShape& shape);
  void add_stored_by_boxes(const TensorCores& cores, std::vector<std::pair<double, WarpgroupShape>> shapes,
                           size_t count, std::vector<ContractionPlan>& found) const;
  std::vector<ContractionPlan> warpgroups(TensorCores cores, size_t count) const;
  std::vector<TensorCores> sides_of(TensorCores cores) const;
  void add_warpgroups(const TensorCores& cores, size_t count, std::vector<ContractionPlan>& plans) const;
  std::optional<ContractionPlan> transposed(int64_t tile) const;
  std::optional<ContractionPlan> transposed_by_vectors(int64_t tile, int64_t threads) const;
  std::optional<ContractionPlan> transposed_by_runs() const;
  bool prefers_vectors() const;
  void order_transposed(ContractionPlan& plan) const;
  bool finish(ContractionPlan& plan) const;
  bool wants_another_stage(ContractionPlan plan) const;
  void lay_out_all(ContractionPlan& plan, Rows rows) const;
  void lay_out_within(ContractionPlan& plan) const;
  void distribute(const std::vector<size_t>& axes, int64_t points, int64_t registers, ContractionPlan& plan) const;
  bool follow(ContractionPlan& plan) const;
  bool has_threads(const ContractionPlan& plan) const;
  bool has_steps(const ContractionPlan& plan) const;
  bool has_blocks(const ContractionPlan& plan) const;
  bool has_room(const ContractionPlan& plan) const;
  bool fits(const ContractionPlan& plan) const;
  /// False, for the reason that is given.
  template <typename... Args>
  bool no(fmt::format_string<Args...> reason, Args&&... args) const {
    if (why_not_.empty()) why_not_ = fmt::format(reason, std::forward<Args>(args)...);
    return false;
  }

  const Contraction& c_;
  const options::MappingOptions& options_;
  const Device& device_;
  double most_cycles_;
  std::optional<size_t> joined_;
  RequestedTile request_;
  ProductBytes bytes_;
  mutable std::string why_not_;  ///< why the first plan that was tried is none
  mutable bool sparing_ = true;  ///< few enough registers that nothing is spilled, several blocks on a processor
  Classes classes_;
  size_t main_ = 0;
  std::vector<int64_t> chunk_;              ///< of the other reduction axes
  bool outer_steps_ = false;                ///< some of them run around the main one
  mutable std::vector<OperandPlan> ideal_;  ///< as least_cycles_of() has them
  std::optional<size_t> kept_;              ///< operand that another product has left in shared memory
};

}  // namespace tc::gpu
