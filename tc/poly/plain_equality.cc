#include "tc/poly/plain_equality.h"

#include <isl/aff.h>
#include <isl/map.h>
#include <isl/mat.h>

#include <memory>
#include <optional>
#include <vector>

#include "tc/poly/isl_ext.h"

namespace tc::poly {
namespace {

/// What the equations of a basic relation { S[x] -> T[y] } say of its outputs one by one.
struct Outputs {
  isl::multi_aff value;     ///< { S[x] -> T[y] }; 0 where it is not known
  std::vector<bool> known;  ///< by output
};

/// The row's output as a function of inputs alone: y = ±(a · x + c) from ±y + a · x + c = 0; nothing for other
/// equations.
struct Equation {
  int output;
  isl::aff value;
};
std::optional<Equation> solved(isl_mat* rows, int row, const isl::space& domain, int inputs, int outputs) {
  const int constant = isl_mat_cols(rows) - 1;
  auto element = [&](int column) { return isl::manage(isl_mat_get_element_val(rows, row, column)); };
  int output = -1;
  for (int c = inputs; c < constant; ++c) {
    if (element(c).is_zero()) continue;
    if (output >= 0 || c >= inputs + outputs) return std::nullopt;
    output = c - inputs;
  }
  if (output < 0) return std::nullopt;
  const isl::val factor = element(inputs + output);
  if (!factor.abs().is_one()) return std::nullopt;
  const isl::val sign = factor.neg();
  isl_aff* value = isl_aff_val_on_domain_space(domain.copy(), element(constant).mul(sign).release());
  for (int i = 0; i < inputs; ++i) {
    value = isl_aff_set_coefficient_val(value, isl_dim_in, i, element(i).mul(sign).release());
  }
  return Equation{output, isl::manage(value)};
}

Outputs outputs_of(const isl::basic_map& map) {
  struct Free {
    void operator()(isl_mat* matrix) const { isl_mat_free(matrix); }
  };
  const std::unique_ptr<isl_mat, Free> rows(
      isl_basic_map_equalities_matrix(map.get(), isl_dim_in, isl_dim_out, isl_dim_param, isl_dim_div, isl_dim_cst));
  const isl::space space = isl::manage(isl_basic_map_get_space(map.get()));
  const int inputs = static_cast<int>(isl_space_dim(space.get(), isl_dim_in));
  const int outputs = static_cast<int>(isl_space_dim(space.get(), isl_dim_out));
  Outputs result{isl::manage(isl_multi_aff_zero(space.copy())), std::vector<bool>(static_cast<size_t>(outputs), false)};
  for (int r = 0; r < isl_mat_rows(rows.get()); ++r) {
    const std::optional<Equation> equation = solved(rows.get(), r, space.domain(), inputs, outputs);
    if (!equation) continue;
    result.known[static_cast<size_t>(equation->output)] = true;
    result.value = isl::manage(isl_multi_aff_set_at(result.value.release(), equation->output, equation->value.copy()));
  }
  return result;
}

bool same(const isl::aff& a, const isl::aff& b) { return isl_aff_plain_is_equal(a.get(), b.get()) == isl_bool_true; }

std::vector<isl::basic_map> basic_maps_of(const isl::map& map) {
  std::vector<isl::basic_map> result;
  map.foreach_basic_map([&](const isl::basic_map& part) { result.push_back(part); });
  return result;
}

/// The schedule of one statement, if it is one expression for all instances.
std::optional<isl::aff> plain_value(const isl::union_pw_aff& schedule, const isl::space& statement) {
  isl_space* space = isl_space_add_dims(isl_space_from_domain(statement.copy()), isl_dim_out, 1);
  const isl::pw_aff value = isl::manage(isl_union_pw_aff_extract_pw_aff(schedule.get(), space));
  if (!value.isa_aff()) return std::nullopt;
  return value.as_aff();
}

bool equal_in(const isl::union_pw_aff& member, const isl::map& map, const Outputs& outputs) {
  const std::optional<isl::aff> earlier = plain_value(member, map.space().domain());
  const std::optional<isl::aff> later = plain_value(member, map.space().range());
  if (!earlier || !later) return false;
  for (size_t j = 0; j < outputs.known.size(); ++j) {
    if (!outputs.known[j] && isl_aff_involves_dims(later->get(), isl_dim_in, static_cast<unsigned>(j), 1)) return false;
  }
  return same(later->pullback(outputs.value), *earlier);
}

}  // namespace

bool plainly_equal(const isl::map& map, int i, int j) {
  for (const isl::basic_map& part : basic_maps_of(map)) {
    const Outputs outputs = outputs_of(part);
    if (!outputs.known[static_cast<size_t>(j)]) return false;
    if (!same(outputs.value.at(j), variable(map.space().domain(), i))) return false;
  }
  return true;
}

SplitByEquality split_plainly_equal(const isl::union_map& umap, const isl::multi_union_pw_aff& schedule) {
  const isl::union_map none = isl::union_map::empty(umap.ctx());
  SplitByEquality result{none, none};
  const auto members = static_cast<int>(schedule.size());
  for (const isl::map& map : maps_of(umap)) {
    bool equal = members > 0;
    for (const isl::basic_map& part : basic_maps_of(map)) {
      if (!equal) break;
      const Outputs outputs = outputs_of(part);
      for (int m = 0; m < members && equal; ++m) equal = equal_in(schedule.at(m), map, outputs);
    }
    isl::union_map& side = equal ? result.equal : result.rest;
    side = side.unite(map.to_union_map());
  }
  return result;
}

}  // namespace tc::poly
