#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tc/ir/guarded_read.h"
#include "tc/ir/layouts.h"
#include "tc/poly/scop.h"

namespace tc::gpu {

/// A loop of a contraction: all integers in [begin, begin + extent), by the index's name in the update.
struct Axis {
  std::string name;
  int64_t begin = 0;
  int64_t extent = 1;
};

/// constant + the sum of coefficient * index, over the parallel and the reduction axes.
struct Subscript {
  std::vector<int64_t> parallel;
  std::vector<int64_t> reduction;
  int64_t constant = 0;
};

/// Where rows are that data choose: E(I(i, j), 2 * k).
struct ChosenRow {
  std::vector<Halide::Expr> subscripts;  ///< of the tensor's element, over indices by name
  std::vector<std::string> indices;      ///< those that it uses
  int64_t unit = 1;                      ///< divides the offset of the least index in a row, and the length of rows
};

struct Operand;

/// What an operand's elements are that no memory has: a value over indices that are its subscripts, from 0 on.
struct ComputedOperand {
  Halide::Expr value;
  std::vector<Axis> indices;  ///< per dimension of the operand
  /// The one tensor of which each element is made of an element of its own, as the contraction would read it: D(n,k) =
  /// W(n,k) * S(n, k / 128) has W. Null: there is none, or several.
  std::shared_ptr<const Operand> source = nullptr;
  double instructions = 0;  ///< for an element, about, where a thread computes two neighbours
};

/// A read of the update, at affine subscripts. Of rows that data choose it is a tensor that there is not, over the
/// indices that the read uses: blocks look up which rows they copy.
struct Operand {
  std::string tensor;
  std::string placeholder;  ///< the Variable that stands for it in the update's value
  Halide::Type type;
  std::vector<Subscript> subscripts;
  std::vector<int64_t> extents;                  ///< of the tensor
  std::vector<int64_t> strides;                  ///< of the tensor, in elements; the last is 1
  bool at_any_address = false;                   ///< the tensor
  std::optional<ChosenRow> chosen_row = {};      ///< then `tensor` is what the rows are of
  std::optional<ComputedOperand> computed = {};  ///< then blocks compute what they would copy
  std::vector<ir::Inside> inside = {};           ///< per dimension, of a guarded read, which is 0 elsewhere; empty: all
  std::optional<size_t> selected = {};           ///< the dimension that the contraction's selection is a subscript of
  bool is_tf32 = false;                          ///< its elements are float32 numbers that TF32 holds

  int64_t pitch() const { return ir::pitch_of(strides, at_any_address); }
  int64_t row_divisor() const { return ir::row_divisor(extents, strides, at_any_address); }
};

/// A statement that makes one element of a run of neighbours among the results, or reduces over the run:
///     P(m,n) = max(C(m,2 * n), C(m,2 * n + 1))
///     P(m,n) max= C(m,2 * n + r)
struct Pooled {
  poly::Statement statement;    ///< over the parallel axes by name, of which the last counts runs
  std::vector<Axis> reduction;  ///< at most one
};

/// A statement that reduces what is made of results, over some of the parallel axes: within one block's tile, or within
/// parts that are as long as tiles:
///     R(m) +=! C(m,n)
///     R_parts(p,m) +=! C(m, 64 * p + n)
struct TileReduction {
  poly::Statement statement;          ///< over its own indices
  std::optional<std::string> start;   ///< the statement that sets its results to identities, right before it
  Halide::Expr value;                 ///< of the statement, over the parallel axes
  std::vector<bool> reduced;          ///< per parallel axis
  std::vector<std::string> index;     ///< per parallel axis: that which counts along it, or along a part of it
  std::vector<int64_t> shift;         ///< per parallel axis: the axis less that index, in the first part
  std::vector<std::string> part;      ///< per parallel axis: the index of its parts; empty: it has none
  std::vector<int64_t> part_extents;  ///< per parallel axis: values of a part, all of them where it has none
};

/// A tensor that a contraction leaves in memory.
struct StoredTensor {
  std::string tensor;
  Halide::Type type;
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;  ///< elements; the last is 1
  /// Per dimension the parallel axis that counts all of it, or a part of it that is a kernel's own
  /// (may_be_counted_by());
  /// "": another subscript.
  std::vector<std::string> axes;
  bool at_any_address = false;
  /// Elements from one value of a parallel axis to the next; none of an axis that is in no sum of multiples.
  std::map<std::string, int64_t> steps = {};

  /// Whether neighbours along an axis are neighbours in memory, or the same element.
  bool is_dense_along(const std::string& axis) const;
  /// Whether an axis counts dimension `d`, or a part of it that whole vectors of 16 bytes make.
  bool may_be_counted_by(const Axis& axis, size_t d) const;
  int64_t pitch() const { return ir::pitch_of(strides, at_any_address); }
  int64_t row_divisor() const { return ir::row_divisor(extents, strides, at_any_address); }
};

/// Statements on the points of a space of parallel axes, of which one, the update, reduces over more axes:
///     C(m,n) = b * C(m,n)            before; of other tensors too, if what comes later has to do with them
///     C(m,n) += A(m,k) * B(k,n)      update
///     C(m,n) = relu(C(m,n) + d(n))   after
///     C(m,n) *= s(m)                 after, as C(m,n) = C(m,n) * s(m)
/// Every dependence between them stays within one point, so points may run in any order and at once.
struct Contraction {
  size_t first = 0, last = 0;  ///< the statements [first, last) of the Scop
  /// What selects the slice of an operand that a row multiplies: E(t) of W(E(t),k,n), over parallel axes by name.
  std::optional<Halide::Expr> selection = {};
  std::vector<Axis> parallel;  ///< in order of the subscripts of the update's tensor
  std::vector<Axis> reduction;
  std::vector<Operand> operands;
  std::vector<poly::Statement> before, after;  ///< over the parallel axes by name
  poly::Statement update;                      ///< its value reads placeholders where an Operand says so
  std::vector<Pooled> pooled = {};             ///< behind all others
  std::vector<StoredTensor> stored = {};       ///< of all products
  double instructions = 0;                     ///< of a thread for one of its results, about
  int64_t run = 1;                             ///< the results of a run for `pooled`, along the last parallel axis

  std::vector<TileReduction> reductions = {};  ///< behind those

  /// Further products over the same points, in order. Of each only its reduction, operands and update count.
  std::vector<Contraction> further = {};
  size_t place = 0;                              ///< of a further product: so many of `after` come before it
  std::vector<std::string> read_elsewhere = {};  ///< tensors that other products or statements of the group touch
};

/// The product whose sum goes on in the registers of an earlier one, with nothing in between: 0 for the contraction
/// itself, then its further ones. Of others it is `product`.
size_t accumulator_of(const Contraction& contraction, size_t product);

/// The contraction whose statements are from `first` on, if there is one: a sum (product, minimum, maximum) over a
/// box, of operands that each have their elements used several times, with what is done to its results before and
/// after. With `several`, products that later statements bring together with the first are further ones:
///     P(m,n) += A(m,k) * B(k,n)
///     Q(m,n) += A(m,k) * G(k,n)              further
///     O(m,n) = P(m,n) * sigmoid(P(m,n)) * Q(m,n)
std::optional<Contraction> contraction_at(const poly::Scop& scop, size_t first, bool several = false);

/// The same of a product that uses elements too seldom to be worth a kernel, but whose operand another one may leave
/// in shared memory (chain.h).
std::optional<Contraction> small_contraction_at(const poly::Scop& scop, size_t first);

/// The contraction from `first` on with all statements up to `last`: those that are no reductions are on its points.
std::optional<Contraction> contraction_between(const poly::Scop& scop, size_t first, size_t last);

/// The one that a statement of a def is that copies an operand of a product (rewrite/operand_order.h).
std::optional<Contraction> transposed_copy_at(const poly::Scop& scop, size_t statement);

/// The contraction that one statement of a Program is by itself.
std::optional<Contraction> contraction_of(const ir::Program& program, const ir::Statement& statement);

/// Whether a statement of a Program is one by itself.
bool is_contraction(const ir::Program& program, const ir::Statement& statement);

/// A statement that reads some operand across its rows, as a transposition does, and what follows on its points:
///     B(i,j) = f(A(j,i))
/// Its update sets, over a reduction axis of one value; what it reads across is in `operands`.
std::optional<Contraction> transposition_at(const poly::Scop& scop, size_t statement);

}  // namespace tc::gpu
