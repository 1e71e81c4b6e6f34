#pragma once

#include <isl/cpp.h>
#include <isl/ctx.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tc/poly/scop.h"
#include "tc/support/result.h"

/// What isl can do and its C++ bindings cannot: each function here is one C call (or a few) with its errors thrown as
/// isl::exception, like those of the bindings.
namespace tc::poly {

// --- budget ---------------------------------------------------------------------------------------------------

/// What an isl::exception means: an Error for a budget that has run out; anything else is rethrown as InternalError.
Error budget_error(const Context& context, const isl::exception& exception);

template <typename T>
struct ResultOf {
  using type = Result<T>;
};
template <typename T>
struct ResultOf<Result<T>> {
  using type = Result<T>;
};

/// Runs `work`, which uses isl, and turns a budget that runs out inside into its Error; nothing of isl's gets out.
///     TC_TRY(scop, within_budget(*context, [&] { return tile(...); }));
template <typename Work>
auto within_budget(const Context& context, Work&& work) -> typename ResultOf<std::invoke_result_t<Work>>::type {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Work>>) {
      work();
      return {};
    } else {
      return work();
    }
  } catch (const isl::exception& exception) {
    return tl::unexpected<Error>(budget_error(context, exception));
  }
}

/// What `work` gives, or nothing if it takes more than so many operations of isl: for an answer that one can do
/// without. The compilation's own count begins anew.
template <typename Work>
auto within_operations(isl::ctx ctx, unsigned long most, Work&& work) -> std::optional<std::invoke_result_t<Work>> {
  const unsigned long budget = isl_ctx_get_max_operations(ctx.get());
  const auto restart = [&](unsigned long operations) {
    isl_ctx_reset_operations(ctx.get());
    isl_ctx_set_max_operations(ctx.get(), operations);
  };
  std::optional<std::invoke_result_t<Work>> result;
  restart(most);
  try {
    result = work();
  } catch (const isl::exception_quota&) {
    isl_ctx_reset_error(ctx.get());
  }
  restart(budget);
  return result;
}

// --- spaces, sets, maps ---------------------------------------------------------------------------------------

isl::id make_id(isl::ctx ctx, const std::string& name);
/// { name[d0, ..., dn-1] }, without parameters.
isl::space named_space(isl::ctx ctx, const std::string& name, int dimensions);
/// The expression d_i on the space of a set.
isl::aff variable(const isl::space& space, int position);
isl::aff constant(const isl::space& space, int64_t value);
isl::val make_val(isl::ctx ctx, int64_t value);
/// The number as int64; TC_CHECKs that it is an integer that fits.
int64_t to_int64(const isl::val& value);
std::string tuple_name(const isl::set& set);
std::string domain_name(const isl::map& map);
std::string range_name(const isl::map& map);
isl::set name_dimensions(isl::set set, const std::vector<std::string>& names);
isl::set rename_tuple(isl::set set, const std::string& name);
/// Forgets the dimension's value: every integer is possible.
isl::map eliminate_output(isl::map map, int position);
isl::map subtract_range(isl::map map, const isl::set& range);
isl::set project_out(isl::set set, int first, int count);
isl::map project_out_inputs(isl::map map, int first, int count);
/// The coordinates of a point.
std::vector<int64_t> coordinates(const isl::point& point);
/// { [x] -> [y] : x + low <= y <= x + high }
isl::map interval(isl::ctx ctx, int64_t low, int64_t high);
isl::map lex_lt(const isl::space& set_space);
std::vector<isl::map> maps_of(const isl::union_map& umap);
std::vector<isl::set> sets_of(const isl::union_set& uset);
std::vector<isl::pw_aff> pw_affs_of(const isl::union_pw_aff& upa);
/// How many values the one-dimensional range of a relation may have for one element of its domain, at most; from its
/// bounds and its stride.
int64_t range_extent(const isl::map& map);
/// Pairs { x -> y } of `umap` with mupa(x) > mupa(y) in lexicographic order.
isl::union_map lex_gt_at(isl::union_map umap, const isl::multi_union_pw_aff& mupa);
isl::union_map lex_lt_at(isl::union_map umap, const isl::multi_union_pw_aff& mupa);

/// The equalities implied by a relation, one row each: coefficients of inputs, outputs, and the constant, summing to 0.
std::vector<std::vector<int64_t>> implied_equalities(const isl::map& map);

// --- schedules ------------------------------------------------------------------------------------------------

/// A band's schedule from rows of expressions, one per statement, each on the statement's own space.
isl::multi_union_pw_aff band_schedule(isl::ctx ctx, const std::vector<std::vector<isl::aff>>& rows);
isl::schedule sequence(const isl::schedule& first, const isl::schedule& second);
/// Inserts a band above everything below the domain node.
isl::schedule insert_band(const isl::schedule& schedule, const isl::multi_union_pw_aff& partial);
/// The instances at a node; at a filter, those that pass it; at the root, all.
isl::union_set node_domain(const isl::schedule_node& node);
/// All that the schedule of the node's tree orders.
isl::union_set scheduled_domain(const isl::schedule_node& node);
std::string mark_name(const isl::schedule_node& node);
isl::schedule_node delete_node(const isl::schedule_node& node);
isl::schedule_node cut(const isl::schedule_node& node);
isl::schedule_node band_sink(const isl::schedule_node& node);
isl::schedule insert_mark(const isl::schedule& schedule, const std::string& name);
isl::multi_val band_sizes(const isl::schedule_node_band& band, std::span<const int64_t> sizes);
int schedule_depth(const isl::schedule_node& node);
/// Path from the root: child positions, outermost first. Survives a change of the tree below or beside it.
std::vector<int> path_of(const isl::schedule_node& node);
isl::schedule_node node_at(const isl::schedule& schedule, std::span<const int> path);
isl::union_set union_of(isl::ctx ctx, const std::vector<isl::set>& sets);

}  // namespace tc::poly
