#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/support/round.h"

/// What blocks of a cluster do that have the same tile, and each its part of the steps. When its sums are done, each
/// thread writes them to the shared memory of its block:
///     [group of columns, piece of 16 bytes or less, thread, column]
/// where neighbouring threads write neighbours. Behind a barrier of the cluster each block finishes its part of the
/// groups, thread by thread: it adds what all blocks have, its own first, then those of the next ranks. So sums are the
/// same from run to run.
namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;
using tile::Tensor;

namespace {

constexpr int64_t kPiece = 4;  // float32 numbers of 16 bytes

}  // namespace

/// Groups of neighbouring columns that a thread has the sums of.
int64_t ContractionBuilder::sum_groups() const { return plan_.registers() / plan_.parallel[plan_.order[0]].group; }
/// Those that a block finishes; the last blocks may have fewer.
int64_t ContractionBuilder::groups_of_block() const { return ceil_div(sum_groups(), plan_.cluster_parts); }

void ContractionBuilder::declare_cluster_sums() {
  const int64_t group = plan_.parallel[plan_.order[0]].group, piece = std::min(group, kPiece);
  share_ = names_.fresh("share");
  const std::string& name = c_.update.tensor;
  cluster_sums_ = build::shared(names_.fresh(name + "_of_steps"), c_.update.accumulator,
                                row_major({sum_groups(), group / piece, plan_.threads(), piece}));
  cluster_sums_.written = true;
  cluster_sums_.place_of = shared_[0].name;
  cluster_totals_ =
      build::registers(names_.fresh(name + "_totals"), c_.update.accumulator, row_major({groups_of_block(), group}));
  cluster_totals_.written = true;
}

/// Of a thread, from registers to shared memory.
NodePtr ContractionBuilder::put_cluster_sums() {
  const size_t column = plan_.order[0];
  const int64_t group = plan_.parallel[column].group, piece = std::min(group, kPiece);
  const std::string number = names_.fresh("piece"), lane = names_.fresh("in_piece");
  Tensor held = build::registers(names_.fresh(c_.update.tensor + "_piece"), c_.update.accumulator, row_major({piece}));
  held.written = true;
  Expr of = 0;  // the group's number
  for (const auto& [name, count] : group_digits()) of = of * static_cast<int>(count) + build::var(name);
  const Tensor& sums = columns_.name.empty() ? sum_ : columns_;
  std::vector<Expr> from = sum_subscripts();
  for (Expr& e : from) {
    e = hi::simplify(hi::substitute(low_[column], build::var(number) * static_cast<int>(piece) + build::var(lane), e));
  }
  const NodePtr one =
      build::sequence({build::unrolled(lane, 0, static_cast<int>(piece),
                                       build::store(held, {build::var(lane)}, build::read(sums, from))),
                       build::move(cluster_sums_, {hi::simplify(of), build::var(number), point_thread_, 0}, held, {0},
                                   static_cast<int>(piece))});
  const NodePtr pieces = build::unrolled(number, 0, static_cast<int>(group / piece), build::allocate(held, one));
  return over_registers(
      all_axes(), [&] { return pieces; }, static_cast<int>(column));
}

/// What counts the groups of a thread, the slowest first: loops over registers, of the first axis over its groups.
std::vector<std::pair<std::string, int64_t>> ContractionBuilder::group_digits() const {
  std::vector<std::pair<std::string, int64_t>> result;
  for (const size_t axis : all_axes()) {
    const AxisPlan& a = plan_.parallel[axis];
    if (a.registers > a.group) result.emplace_back(high_[axis], a.registers / a.group);
    if (a.group > 1 && axis != plan_.order[0]) result.emplace_back(low_[axis], a.group);
  }
  return result;
}

/// The groups that the block finishes, with the number of each along the axes.
NodePtr ContractionBuilder::over_groups(const NodePtr& body) const {
  const int64_t all = sum_groups(), each = groups_of_block();
  const Expr number = rank_ * static_cast<int>(each) + build::var(share_);
  NodePtr result = body;
  int64_t stride = 1;
  const std::vector<std::pair<std::string, int64_t>> digits = group_digits();
  for (size_t i = digits.size(); i-- > 0;) {
    const auto& [name, count] = digits[i];
    Expr digit = number / static_cast<int>(stride);
    if (stride * count < all) digit = digit % static_cast<int>(count);
    result = build::let(name, hi::simplify(digit), result);
    stride *= count;
  }
  if (each * plan_.cluster_parts != all) result = build::if_then(number < static_cast<int>(all), result);
  return build::unrolled(share_, 0, static_cast<int>(each), result);
}

/// What all blocks have of a thread's groups.
NodePtr ContractionBuilder::add_cluster_sums() {
  const int64_t group = plan_.parallel[plan_.order[0]].group, piece = std::min(group, kPiece);
  const int64_t all = sum_groups(), each = groups_of_block();
  const auto parts = static_cast<int>(plan_.cluster_parts), length = static_cast<int>(piece);
  const std::string number = names_.fresh("piece"), lane = names_.fresh("in_piece"), peer = names_.fresh("peer");
  Tensor other =
      build::registers(names_.fresh(c_.update.tensor + "_of_peer"), c_.update.accumulator, row_major({piece}));
  other.written = true;
  const Expr of = rank_ * static_cast<int>(each) + build::var(share_);
  const std::vector<Expr> from = {hi::simplify(of), build::var(number), point_thread_, 0};
  const auto at = [&](const Expr& l) {
    return std::vector<Expr>{build::var(share_), hi::simplify(build::var(number) * length + l)};
  };
  const Expr total = build::read(cluster_totals_, at(build::var(lane)));
  const NodePtr add =
      build::unrolled(lane, 0, length,
                      build::store(cluster_totals_, at(build::var(lane)),
                                   combine(c_.update.assign, total, build::read(other, {build::var(lane)}))));
  const NodePtr more = build::sequence(
      {build::cluster_load(other, {0}, cluster_sums_, from, length, (rank_ + build::var(peer)) % parts), add});
  const NodePtr one = build::sequence({build::cluster_load(cluster_totals_, at(0), cluster_sums_, from, length, rank_),
                                       build::unrolled(peer, 1, parts, build::allocate(other, more))});
  NodePtr result = build::unrolled(number, 0, static_cast<int>(group / piece), one);
  if (each * parts != all) result = build::if_then(of < static_cast<int>(all), result);
  return build::unrolled(share_, 0, static_cast<int>(each), result);
}

/// A kernel's body: sums that `sums_up` leaves in registers go to where the ring's buffers were, and are added up; then
/// come the results. A block ends when all others have read what it holds: they arrive before they store, and wait
/// behind that.
NodePtr ContractionBuilder::finish_in_cluster(const NodePtr& sums_up, const NodePtr& results) {
  const Expr is_mine = build::thread_x() < static_cast<int>(plan_.threads());
  const NodePtr body = build::sequence({
      sums_up,
      build::barrier(),
      build::if_then(is_mine, put_cluster_sums()),
      build::arrive_in_cluster(),
      build::wait_for_cluster(),
      build::if_then(is_mine, add_cluster_sums()),
      build::arrive_in_cluster(),
      build::if_then(is_mine, results),
      build::wait_for_cluster(),
  });
  return build::allocate(cluster_sums_, build::allocate(cluster_totals_, body));
}

}  // namespace tc::gpu
