#include "tc/gpu/strategy/contraction/rolled.h"

#include <numeric>

#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/gpu/strategy/contraction/warpgroup_cost.h"

namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;
using tile::Tensor;

int64_t rolled_groups(const Contraction& c, const ContractionPlan& plan, const Device& device) {
  constexpr double kShort = 1500;                  // instructions: a gelu of 52 results, or more than a bias of 192
  constexpr int64_t kQuad = 4, kRowsOfThread = 2;  // of an instruction's results
  constexpr int64_t kResults = 16;                 // of an iteration; with 32 the registers are too few for a gelu
  if (!plan.ping_pong || !plan.store_boxes) return 0;
  if (c.instructions * static_cast<double>(plan.registers()) <= kShort) return 0;
  if (!finishes_meanwhile(c, plan, device)) return 0;
  const int64_t group = plan.parallel[plan.tensor_cores->columns[0]].group;
  const int64_t all = staged_columns(c, plan) / (kQuad * group), most = kResults / (kRowsOfThread * group);
  return std::gcd(all, most);
}

const Tensor& ContractionBuilder::sums_in_registers() const { return columns_.name.empty() ? sum_ : columns_; }

void ContractionBuilder::start_piece(const std::vector<int64_t>& extents, std::vector<Expr> at) {
  piece_ = Piece{.at = std::move(at)};
  for (const ContractionBuilder* product : sums()) {
    const Tensor& from = product->sums_in_registers();
    Tensor piece = build::registers(names_.fresh(from.name + "_piece"), from.type, row_major(extents));
    piece.written = true;
    piece_->sums.emplace(from.name, std::move(piece));
  }
}

/// Of one result, at the values that variables for registers have.
NodePtr ContractionBuilder::copy_to_piece(const std::map<std::string, Expr>& registers) const {
  std::vector<Expr> at = sum_subscripts();
  for (Expr& e : at) e = hi::simplify(hi::substitute(registers, e));
  std::vector<NodePtr> parts;
  for (const ContractionBuilder* product : sums()) {
    const Tensor& from = product->sums_in_registers();
    parts.push_back(build::store(piece_->sums.at(from.name), piece_->at, build::read(from, at)));
  }
  return build::sequence(std::move(parts));
}

/// Copies of each piece, behind a test of the number. A loop over the pieces around the test would be no loop for NVVM,
/// which puts the number in the place of its variable, and the sums in local memory. Of tests that are no chain it
/// makes a selection for each sum of each piece.
NodePtr ContractionBuilder::choose_piece(const Expr& number, int64_t pieces,
                                         const std::function<NodePtr(int piece)>& copies) const {
  auto piece = static_cast<int>(pieces) - 1;
  NodePtr result = copies(piece);
  while (piece-- > 0) result = build::if_then(number == piece, copies(piece), result);
  return result;
}

NodePtr ContractionBuilder::with_piece(NodePtr body) {
  for (const auto& [from, piece] : piece_->sums) body = build::allocate(piece, body);
  piece_.reset();
  return body;
}

}  // namespace tc::gpu
