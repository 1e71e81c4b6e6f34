#include <algorithm>

#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/builder.h"
#include "tc/gpu/strategy/contraction/tensor_cores.h"

/// What products of a chain leave to each other in shared memory or registers.
namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;

/// Where shared memory has what the values of all axes read; `local` counts from the block's first values, `at` from
/// the step's. Of a tensor that is kept all of the reduction is there.
std::vector<Expr> ContractionBuilder::shared_position(size_t operand, const Expr& stage, const ReductionStep& step,
                                                      const std::vector<Expr>& local,
                                                      const std::vector<Expr>& at) const {
  std::vector<Expr> result;
  if (is_kept(operand)) {
    result = {0, 0};
    for (size_t d = 0; d < reads_->strides.size(); ++d) {
      const ChainLink::Dimension& dimension = reads_->link->dimensions[d];
      const size_t axis = dimension.read_by;
      const Expr place =
          dimension.is_row ? local[axis] : step.first[axis] + at[axis] - static_cast<int>(c_.reduction[axis].begin);
      Expr& to = result[dimension.is_row ? 0 : 1];
      to = to + place * static_cast<int>(reads_->strides[d]);
    }
  } else {
    result = merged(operand, box_position(operand, step, local, at));
    result.insert(result.begin(), operand == once_ ? Expr(0) : stage);
  }
  for (Expr& e : result) e = hi::simplify(e);
  return result;
}

/// The value of which a statement on points rounds the tensor's element to 16 bits, if that is all that writes it, and
/// sums of the element as float32 are all that reads it: nothing compares it (T5).
Expr ContractionBuilder::unrounded(const std::string& tensor) const {
  if (!fills_ || !fills_->is_read_unrounded || fills_->link->tensor != tensor) return {};
  for (const TileReduction& reduction : c_.reductions) {
    if (!reads_tensor(reduction.value, tensor)) continue;
    const auto* cast = reduction.value.as<hi::Cast>();
    const auto* element = cast == nullptr ? nullptr : cast->value.as<hi::Call>();
    if (reduction.statement.assign != ir::Assign::kAdd || element == nullptr || element->name != tensor) return {};
  }
  Expr result;
  for (const std::vector<poly::Statement>* points : {&c_.before, &c_.after}) {
    for (const poly::Statement& point : *points) {
      if (point.tensor != tensor) {
        if (reads_tensor(point.value, tensor)) return {};
        continue;
      }
      const auto* cast = point.value.as<hi::Cast>();
      if (result.defined() || cast == nullptr || cast->type.bits() != 16 || cast->value.type() != Halide::Float(32)) {
        return {};
      }
      result = cast->value;
    }
  }
  return result;
}

/// Where the point's result goes.
std::vector<Expr> ContractionBuilder::kept_position() const {
  if (fills_->maker) return sum_subscripts();
  std::vector<Expr> result = {0, 0};
  for (size_t d = 0; d < fills_->strides.size(); ++d) {
    const ChainLink::Dimension& dimension = fills_->link->dimensions[d];
    Expr& to = result[dimension.is_row ? 0 : 1];
    to = to + local(dimension.made_by) * static_cast<int>(fills_->strides[d]);
  }
  for (Expr& e : result) e = hi::simplify(e);
  return result;
}

/// Whether a thread's neighbours along its fastest axis are vectors of what it leaves, inside or outside as a whole.
bool ContractionBuilder::keeps_vectors() const {
  constexpr int64_t kVectorBytes = 16;
  if (!fills_ || fills_->maker) return false;
  const size_t axis = plan_.order[0];
  const int64_t group = plan_.parallel[axis].group, bytes = group * fills_->tile.type.bytes();
  if (group == 1 || bytes > kVectorBytes || kVectorBytes % bytes != 0) return false;
  if (c_.parallel[axis].extent % group != 0 || tile::flatten(fills_->tile.layout.stride())[0] % group != 0)
    return false;
  for (size_t d = 0; d < fills_->strides.size(); ++d) {
    const ChainLink::Dimension& dimension = fills_->link->dimensions[d];
    const bool along = dimension.made_by == axis;
    if (along && (dimension.is_row || fills_->strides[d] != 1)) return false;
    if (!along && !dimension.is_row && fills_->strides[d] % group != 0) return false;
  }
  return true;
}

NodePtr ContractionBuilder::keep_results() const {
  const tile::Tensor& result = results_.at(fills_->link->tensor);
  if (!keeps_vectors()) {
    Expr value = build::read(result, {result_lane()});
    if (value.type() != fills_->tile.type) value = hi::Cast::make(fills_->tile.type, value);
    return over_lanes(build::store(fills_->tile, kept_position(), value));
  }
  const auto axis = static_cast<size_t>(store_axis_);
  std::vector<Expr> first = kept_position();
  for (Expr& e : first) e = hi::simplify(hi::substitute(low_[axis], Expr(0), e));
  return build::move(fills_->tile, first, result, {0}, static_cast<int>(plan_.parallel[axis].group));
}

/// Of an operand in registers the fragment of the atom in row `rows` of a warp's: the sums of two atoms that lie beside
/// each other in the first product are one operand of the second.
tile::Fragment ContractionBuilder::fragment_of_link(int64_t rows, const std::vector<Expr>& at) const {
  const TensorCores& cores = *plan_.tensor_cores;
  const ContractionBuilder& maker = *reads_->maker;
  const TensorCores& before = *maker.plan_.tensor_cores;
  const tile::MatMulAtom& atom = *cores.atom;
  const Expr slice = hi::simplify(at[plan_.main] / atom.k);
  tile::Fragment result{reads_->tile.name, {}};
  for (int64_t v = 0; v < fragment_values(cores.a); ++v) {
    const int64_t element = atom.a({0, v}), row = element % atom.m, column = element / atom.m;
    // Neighbours are two in an atom's sums, and 8 columns make one.
    const Expr column_register = hi::simplify((slice * (atom.k / atom.n) + static_cast<int>(column / atom.n)) * 2 +
                                              static_cast<int>(column % 2));
    const std::vector<int64_t> row_registers = registers_of_point(before.rows, 2 * rows + row / 8, maker.plan_);
    std::vector<Expr>& subscripts = result.values.emplace_back();
    for (size_t axis : maker.all_axes()) {
      const auto of_row = std::find(before.rows.begin(), before.rows.end(), axis) - before.rows.begin();
      Expr subscript = 0;
      if (axis == before.columns[0]) subscript = column_register;
      if (of_row < static_cast<long>(before.rows.size())) {
        subscript = static_cast<int>(row_registers[static_cast<size_t>(of_row)]);
      }
      subscripts.push_back(subscript);
    }
  }
  return result;
}

/// What lies outside of the results is zero, so that it adds nothing to the sums of the next product.
NodePtr ContractionBuilder::keep_zeros() const {
  return over_lanes(build::store(fills_->tile, kept_position(), hi::make_zero(fills_->tile.type)));
}

}  // namespace tc::gpu
