#include "tc/poly/box_member.h"

#include <isl/aff.h>
#include <isl/constraint.h>
#include <isl/set.h>
#include <isl/val.h>

#include <map>

#include "tc/poly/isl_ext.h"

namespace tc::poly {
namespace {

/// coefficient * floor(index / size)
struct Term {
  int index = 0;
  int64_t size = 1;
  int64_t coefficient = 0;
};

isl::val coefficient(const isl::aff& aff, isl_dim_type type, int position) {
  return isl::manage(isl_aff_get_coefficient_val(aff.get(), type, position));
}

/// { (index, coefficient) }
std::map<int, isl::val> input_coefficients(const isl::aff& aff) {
  std::map<int, isl::val> result;
  for (int i = 0, n = static_cast<int>(isl_aff_dim(aff.get(), isl_dim_in)); i < n; ++i) {
    const isl::val value = coefficient(aff, isl_dim_in, i);
    if (!value.is_zero()) result.insert({i, value});
  }
  return result;
}

/// An integer division whose argument is a multiple of one index by 1 / size.
std::optional<Term> division(const isl::aff& argument, int64_t factor) {
  const std::map<int, isl::val> inputs = input_coefficients(argument);
  if (inputs.size() != 1 || !argument.constant_val().is_zero()) return std::nullopt;
  for (int d = 0, n = static_cast<int>(isl_aff_dim(argument.get(), isl_dim_div)); d < n; ++d) {
    if (!coefficient(argument, isl_dim_div, d).is_zero()) return std::nullopt;
  }
  const isl::val size = inputs.begin()->second.inv();
  if (!size.is_int() || !size.is_pos()) return std::nullopt;
  return Term{inputs.begin()->first, to_int64(size), factor};
}

/// The terms of an expression, its constant left out.
std::optional<std::vector<Term>> terms_of(const isl::aff& aff) {
  std::vector<Term> result;
  for (const auto& [index, value] : input_coefficients(aff)) {
    if (!value.is_int()) return std::nullopt;
    result.push_back({index, 1, to_int64(value)});
  }
  for (int d = 0, n = static_cast<int>(isl_aff_dim(aff.get(), isl_dim_div)); d < n; ++d) {
    const isl::val factor = coefficient(aff, isl_dim_div, d);
    if (factor.is_zero()) continue;
    if (!factor.is_int()) return std::nullopt;
    const std::optional<Term> term = division(isl::manage(isl_aff_get_div(aff.get(), d)), to_int64(factor));
    if (!term) return std::nullopt;
    result.push_back(*term);
  }
  return result;
}

/// One constraint: the sum of coefficient * dimension, and a constant, is >= 0, or = 0.
struct Constraint {
  std::map<int, int64_t> coefficients;
  int64_t constant = 0;
  bool equality = false;
};

std::vector<Constraint> constraints_of(const isl::basic_set& set) {
  std::vector<Constraint> result;
  isl_constraint_list* list = isl_basic_set_get_constraint_list(set.get());
  for (int i = 0, n = static_cast<int>(isl_constraint_list_n_constraint(list)); i < n; ++i) {
    isl_constraint* constraint = isl_constraint_list_get_constraint(list, i);
    Constraint& row = result.emplace_back();
    for (int d = 0, rank = static_cast<int>(isl_basic_set_dim(set.get(), isl_dim_set)); d < rank; ++d) {
      const isl::val value = isl::manage(isl_constraint_get_coefficient_val(constraint, isl_dim_set, d));
      if (!value.is_zero()) row.coefficients.insert({d, to_int64(value)});
    }
    row.constant = to_int64(isl::manage(isl_constraint_get_constant_val(constraint)));
    row.equality = isl_constraint_is_equality(constraint) == isl_bool_true;
    isl_constraint_free(constraint);
  }
  isl_constraint_list_free(list);
  return result;
}

/// Intervals of which some ends may not be known yet.
struct Bounds {
  std::vector<std::optional<int64_t>> first, last;

  /// False if the constraint, on one dimension, has another form.
  bool apply(const Constraint& constraint) {
    const auto [dimension, factor] = *constraint.coefficients.begin();
    if (factor != 1 && factor != -1) return false;
    const auto at = static_cast<size_t>(dimension);
    const int64_t bound = -factor * constraint.constant;
    if (factor > 0 || constraint.equality) first[at] = std::max(bound, first[at].value_or(bound));
    if (factor < 0 || constraint.equality) last[at] = std::min(bound, last[at].value_or(bound));
    return true;
  }

  /// a + size * b <= last and 0 <= a imply the last b, which isl may leave out.
  void imply_last(const Constraint& constraint) {
    for (const auto& [dimension, factor] : constraint.coefficients) {
      std::optional<int64_t>& bound = last[static_cast<size_t>(dimension)];
      if (factor < -1 && !bound) bound = constraint.constant / -factor;
    }
  }
};

/// Joins a lane and a vector, of which a constraint says lane + size * vector <= last. False if it has another form.
bool join(Box& box, const Constraint& constraint) {
  if (constraint.equality) return false;
  const auto one = constraint.coefficients.begin(), other = std::next(one);
  const auto lane = one->second == -1 ? one : other, vector = one->second == -1 ? other : one;
  const int64_t size = -vector->second;
  Interval& lanes = box.indices[static_cast<size_t>(lane->first)];
  Interval& vectors = box.indices[static_cast<size_t>(vector->first)];
  Box::Dimension& lane_part = box.dimensions[static_cast<size_t>(lane->first)];
  if (lane->second != -1 || size < 2 || lanes.first != 0 || lanes.last != size - 1) return false;
  if (lane_part.modulus != 0 || vectors.first != 0 || vectors.last < constraint.constant / size) return false;
  if (constraint.constant < 0) return false;
  lane_part.modulus = size;
  box.dimensions[static_cast<size_t>(vector->first)] = {lane->first, size, 0};
  lanes = {0, constraint.constant};
  vectors = {0, 0};
  return true;
}

}  // namespace

std::optional<BoxMember> box_member(const isl::pw_aff& function) {
  if (isl_pw_aff_n_piece(function.get()) != 1) return std::nullopt;
  isl::aff aff;
  function.foreach_piece([&](const isl::set&, const isl::multi_aff& piece) { aff = piece.at(0); });
  const std::optional<std::vector<Term>> terms = terms_of(aff);
  if (!terms || !aff.constant_val().is_int()) return std::nullopt;
  BoxMember member;
  member.shift = to_int64(aff.constant_val());
  if (terms->empty()) return member;
  if (terms->size() > 2 || terms->front().index != terms->back().index) return std::nullopt;
  const bool in_order = terms->front().size <= terms->back().size;
  const Term& fine = in_order ? terms->front() : terms->back();
  member.index = fine.index;
  member.size = fine.size;
  member.scale = fine.coefficient;
  if (member.scale != 1 && member.scale != member.size) return std::nullopt;
  if (terms->size() == 2) {
    const Term& coarse = in_order ? terms->back() : terms->front();
    member.modulus = coarse.size;
    if (coarse.size % fine.size != 0) return std::nullopt;
    if (coarse.coefficient != -member.scale * (coarse.size / fine.size)) return std::nullopt;
  }
  if (member.shift != 0 && (member.size != 1 || member.modulus != 0)) return std::nullopt;
  return member;
}

std::optional<Box> box_of(const isl::set& set) {
  if (isl_set_n_basic_set(set.get()) != 1 || isl_set_dim(set.get(), isl_dim_param) != 0) return std::nullopt;
  const auto rank = static_cast<size_t>(isl_set_dim(set.get(), isl_dim_set));
  isl::basic_set only;
  set.foreach_basic_set([&](const isl::basic_set& part) { only = part; });
  if (isl_basic_set_dim(only.get(), isl_dim_div) != 0) return std::nullopt;
  Bounds bounds{std::vector<std::optional<int64_t>>(rank), std::vector<std::optional<int64_t>>(rank)};
  std::vector<Constraint> joins;
  for (const Constraint& constraint : constraints_of(only)) {
    if (constraint.coefficients.size() == 2) {
      joins.push_back(constraint);
    } else if (constraint.coefficients.size() != 1 || !bounds.apply(constraint)) {
      return std::nullopt;
    }
  }
  for (const Constraint& constraint : joins) bounds.imply_last(constraint);
  Box result;
  for (size_t i = 0; i < rank; ++i) {
    if (!bounds.first[i] || !bounds.last[i] || *bounds.first[i] > *bounds.last[i]) return std::nullopt;
    result.indices.push_back({*bounds.first[i], *bounds.last[i]});
    result.dimensions.push_back({static_cast<int>(i), 1, 0});
  }
  for (const Constraint& constraint : joins) {
    if (!join(result, constraint)) return std::nullopt;
  }
  return result;
}

std::optional<BoxMember> of_index(const BoxMember& member, const Box& box) {
  if (member.index < 0) return member;
  const Box::Dimension& dimension = box.dimensions.at(static_cast<size_t>(member.index));
  BoxMember result = member;
  result.index = dimension.index;
  if (dimension.size == 1 && dimension.modulus == 0) return result;
  if (member.shift != 0) return std::nullopt;
  if (dimension.size > 1) {
    if (member.scale != 1) return std::nullopt;
    result.size = member.size * dimension.size;
    result.modulus = member.modulus * dimension.size;
    return result;
  }
  const int64_t lanes = dimension.modulus;
  if (member.modulus == 0 || member.modulus >= lanes) {
    result.modulus = lanes;
  } else if (lanes % member.modulus != 0) {
    return std::nullopt;
  }
  if (result.modulus % member.size != 0) return std::nullopt;
  return result;
}

}  // namespace tc::poly
