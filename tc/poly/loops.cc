#include "tc/poly/loops.h"

#include <isl/ast_build.h>
#include <isl/options.h>
#include <isl/schedule_node.h>

#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::poly {

using Halide::Expr;

namespace {

constexpr char kMark[] = "mark";
constexpr char kLeaf[] = "leaf";

/// What the callbacks of one code generation share.
struct Generation {
  const Scop* scop;
  LoopOptions options;
  LoopAst* loops;
  std::map<std::string, isl::schedule_node> promotions;  ///< by mark
  std::map<std::string, isl::union_map> leaves;          ///< by statement
};

constexpr intptr_t kMaxMembers = 256;

/// Notes what promotions and leaves stand below. A mark's id carries its depth and the number of members of the band
/// below it: code generation does not see bands.
isl_schedule_node* visit_node(isl_schedule_node* raw, void* user) {
  auto* generation = static_cast<Generation*>(user);
  isl::schedule_node node = isl::manage_copy(raw);
  if (node.isa<isl::schedule_node_leaf>()) {
    if (!generation->options.prefixes) return raw;
    const isl::union_map prefix = node.prefix_schedule_union_map();
    for (const isl::set& set : sets_of(node_domain(node))) generation->leaves.insert({tuple_name(set), prefix});
    return raw;
  }
  if (!node.isa<isl::schedule_node_mark>()) return raw;
  const std::string name = mark_name(node);
  if (name.rfind("promote:", 0) == 0) generation->promotions.insert({name, node});
  const isl::schedule_node child = node.child(0);
  intptr_t members = 0;
  if (child.isa<isl::schedule_node_band>()) members = isl_schedule_node_band_n_member(child.get());
  TC_CHECK(members < kMaxMembers, "a band of {} members", members);
  const intptr_t place = schedule_depth(node) * kMaxMembers + members;
  isl_id* id = isl_id_alloc(node.ctx().get(), name.c_str(), reinterpret_cast<void*>(place));
  node = isl::schedule_node();
  return isl_schedule_node_insert_mark(isl_schedule_node_delete(raw), id);
}

/// The values at a place of code generation of dimensions { S[i] -> [x] } that are fixed there.
std::vector<isl::ast_expr> dimension_expressions(const isl::union_map& dimensions, isl_ast_build* build) {
  std::vector<isl::ast_expr> result;
  isl_union_map* instances = isl_union_map_reverse(isl_ast_build_get_schedule(build));  // { [here] -> S[i] }
  isl_union_map* relation = isl_union_map_apply_range(instances, dimensions.copy());    // { [here] -> [x] }
  if (isl_union_map_is_empty(relation) == isl_bool_true) {
    isl_union_map_free(relation);
    return result;
  }
  isl_pw_multi_aff* values = isl_pw_multi_aff_from_map(isl_map_from_union_map(isl_union_map_coalesce(relation)));
  for (int i = 0, n = static_cast<int>(isl_pw_multi_aff_dim(values, isl_dim_out)); i < n; ++i) {
    result.push_back(isl::manage(isl_ast_build_expr_from_pw_aff(build, isl_pw_multi_aff_get_at(values, i))));
  }
  isl_pw_multi_aff_free(values);
  return result;
}

/// { [schedule dimensions here] -> tensor[o] }, from { [prefix] -> tensor[o] } where the two have the same dimensions.
isl_multi_aff* rename_prefix(const isl::multi_aff& offset, const isl::space& here) {
  isl_space* domain = isl_space_domain(offset.space().release());
  isl_multi_aff* rename = isl_multi_aff_zero(isl_space_map_from_domain_and_range(here.copy(), domain));
  for (int i = 0, n = static_cast<int>(isl_space_dim(here.get(), isl_dim_set)); i < n; ++i) {
    isl_aff* value = isl_aff_var_on_domain(isl_local_space_from_space(here.copy()), isl_dim_set, i);
    rename = isl_multi_aff_set_at(rename, i, value);
  }
  return isl_multi_aff_pullback_multi_aff(offset.copy(), rename);
}

/// The same where isl has left out dimensions that have one value here: through the statements' instances.
isl_pw_multi_aff* relate_prefix(const isl::multi_aff& offset, const isl::union_map& prefix, isl_ast_build* build) {
  isl_union_map* instances = isl_union_map_reverse(isl_ast_build_get_schedule(build));  // { [here] -> S[i] }
  isl_union_map* tile = isl_union_map_apply_range(
      prefix.copy(), isl_union_map_from_map(isl_map_from_multi_aff(offset.copy())));  // { S[i] -> tensor[o] }
  isl_union_map* relation = isl_union_map_coalesce(isl_union_map_apply_range(instances, tile));
  return isl_pw_multi_aff_from_map(isl_map_from_union_map(relation));
}

/// A promotion's offset as expressions over the loop variables above its mark.
std::vector<isl::ast_expr> offset_expressions(const isl::multi_aff& offset, const isl::schedule_node& mark,
                                              isl_ast_build* build) {
  std::vector<isl::ast_expr> result;
  isl::space here = isl::manage(isl_ast_build_get_schedule_space(build));
  auto depth = isl_space_dim(here.get(), isl_dim_set);
  bool same = depth == isl_multi_aff_dim(offset.get(), isl_dim_in);
  isl_pw_multi_aff* here_offset = same ? isl_pw_multi_aff_from_multi_aff(rename_prefix(offset, here))
                                       : relate_prefix(offset, mark.prefix_schedule_union_map(), build);
  for (int i = 0, n = static_cast<int>(isl_pw_multi_aff_dim(here_offset, isl_dim_out)); i < n; ++i) {
    isl_pw_aff* value = isl_pw_multi_aff_get_at(here_offset, i);
    result.push_back(isl::manage(isl_ast_build_expr_from_pw_aff(build, value)));
  }
  isl_pw_multi_aff_free(here_offset);
  return result;
}

isl_ast_node* place_mark(isl_ast_node* raw, isl_ast_build* build, void* user) {
  auto* generation = static_cast<Generation*>(user);
  isl_id* id = isl_ast_node_mark_get_id(raw);
  MarkPlace place;
  place.name = isl_id_get_name(id);
  const auto packed = reinterpret_cast<intptr_t>(isl_id_get_user(id));
  place.members = static_cast<int>(packed % kMaxMembers);
  place.depth = static_cast<int>(packed / kMaxMembers);
  for (const Promotion& promotion : generation->scop->promotions) {
    if ("promote:" + promotion.name != place.name) continue;
    const isl::schedule_node& mark = generation->promotions.at(place.name);
    place.offsets = offset_expressions(promotion.offset, mark, build);
    if (!generation->options.prefixes) continue;
    place.prefix = dimension_expressions(mark.prefix_schedule_union_map(), build);
  }
  isl_id_free(id);
  generation->loops->marks.push_back(place);
  auto number = static_cast<intptr_t>(generation->loops->marks.size());
  isl_id* annotation = isl_id_alloc(isl_ast_node_get_ctx(raw), kMark, reinterpret_cast<void*>(number));
  return isl_ast_node_set_annotation(raw, annotation);
}

isl_ast_node* place_leaf(isl_ast_node* raw, isl_ast_build* build, void* user) {
  auto* generation = static_cast<Generation*>(user);
  const std::string statement = instance_of(isl::manage_copy(raw).as<isl::ast_node_user>()).first;
  generation->loops->leaves.push_back(dimension_expressions(generation->leaves.at(statement), build));
  const auto number = static_cast<intptr_t>(generation->loops->leaves.size());
  isl_id* annotation = isl_id_alloc(isl_ast_node_get_ctx(raw), kLeaf, reinterpret_cast<void*>(number));
  return isl_ast_node_set_annotation(raw, annotation);
}

intptr_t annotation_of(const isl::ast_node& node, const char* kind) {
  isl_id* id = isl_ast_node_get_annotation(node.get());
  TC_CHECK(id != nullptr && std::string(isl_id_get_name(id)) == kind, "a node of the loops lost its place");
  auto number = reinterpret_cast<intptr_t>(isl_id_get_user(id));
  isl_id_free(id);
  return number;
}

Ranged operand(const isl::ast_expr& expr, int position, const Iterators& iterators) {
  return to_ranged(isl::manage(isl_ast_expr_get_op_arg(expr.get(), position)), iterators);
}

Expr condition_operand(const isl::ast_expr& expr, int position, const Iterators& iterators) {
  return to_condition(isl::manage(isl_ast_expr_get_op_arg(expr.get(), position)), iterators);
}

int64_t constant_operand(const isl::ast_expr& expr, int position, const Iterators& iterators) {
  Ranged value = operand(expr, position, iterators);
  TC_CHECK(value.is_constant(), "division by a value that is not constant");
  return value.min;
}

/// The smallest or largest of all operands.
Ranged extremum(const isl::ast_expr& expr, bool largest, const Iterators& iterators) {
  Ranged result = operand(expr, 0, iterators);
  for (int i = 1, n = static_cast<int>(isl_ast_expr_get_op_n_arg(expr.get())); i < n; ++i) {
    Ranged next = operand(expr, i, iterators);
    result = largest ? max(result, next) : min(result, next);
  }
  return result;
}

Ranged select(const isl::ast_expr& expr, const Iterators& iterators) {
  Expr condition = condition_operand(expr, 0, iterators);
  Ranged a = operand(expr, 1, iterators);
  Ranged b = operand(expr, 2, iterators);
  auto [x, y] = matched(a, b);
  return ranged(Halide::Internal::Select::make(condition, x, y), std::min(a.min, b.min), std::max(a.max, b.max));
}

Ranged operation_to_ranged(const isl::ast_expr& expr, const Iterators& iterators) {
  switch (isl_ast_expr_get_op_type(expr.get())) {
    case isl_ast_expr_op_add:
      return operand(expr, 0, iterators) + operand(expr, 1, iterators);
    case isl_ast_expr_op_sub:
      return operand(expr, 0, iterators) - operand(expr, 1, iterators);
    case isl_ast_expr_op_mul:
      return operand(expr, 0, iterators) * operand(expr, 1, iterators);
    case isl_ast_expr_op_minus:
      return ranged(0) - operand(expr, 0, iterators);
    case isl_ast_expr_op_max:
      return extremum(expr, true, iterators);
    case isl_ast_expr_op_min:
      return extremum(expr, false, iterators);
    case isl_ast_expr_op_div:
    case isl_ast_expr_op_fdiv_q:
    case isl_ast_expr_op_pdiv_q:
      return floor_div(operand(expr, 0, iterators), constant_operand(expr, 1, iterators));
    case isl_ast_expr_op_pdiv_r:
    case isl_ast_expr_op_zdiv_r:  // only ever compared with zero, for which either rounding does
      return floor_mod(operand(expr, 0, iterators), constant_operand(expr, 1, iterators));
    case isl_ast_expr_op_cond:
    case isl_ast_expr_op_select:
      return select(expr, iterators);
    default:
      TC_CHECK(false, "an operation of isl's in an index: {}", expr.to_C_str());
  }
}

}  // namespace

const MarkPlace& LoopAst::place_of(const isl::ast_node_mark& node) const {
  return marks.at(static_cast<size_t>(annotation_of(node, kMark) - 1));
}

const std::vector<isl::ast_expr>& LoopAst::prefix_of(const isl::ast_node_user& node) const {
  return leaves.at(static_cast<size_t>(annotation_of(node, kLeaf) - 1));
}

/// isl names its iterators c0, c1, ... by dimension, those counted that have no loop.
int LoopAst::depth_of(const isl::ast_node_for& node) {
  return std::stoi(node.iterator().as<isl::ast_expr_id>().id().name().substr(1));
}

LoopAst generate_loops(const Scop& scop, const LoopOptions& options) {
  isl_ctx* ctx = scop.context->get().get();
  isl_options_set_ast_build_atomic_upper_bound(ctx, 1);
  isl_options_set_ast_build_detect_min_max(ctx, 1);
  isl_options_set_ast_build_exploit_nested_bounds(ctx, 1);
  // A loop's variable is its dimension's value: offsets are functions of that.
  isl_options_set_ast_build_scale_strides(ctx, 0);
  // What one iteration runs stays in one piece: below a mark it may share a buffer.
  isl_options_set_ast_build_group_coscheduled(ctx, 1);
  LoopAst result;
  Generation generation{&scop, options, &result, {}, {}};
  isl::schedule schedule =
      isl::manage(isl_schedule_map_schedule_node_bottom_up(scop.schedule.copy(), &visit_node, &generation));
  isl_ast_build* build = isl_ast_build_alloc(ctx);
  if (options.prefixes) build = isl_ast_build_set_at_each_domain(build, &place_leaf, &generation);
  build = isl_ast_build_set_after_each_mark(build, &place_mark, &generation);
  result.root = isl::manage(isl_ast_build_node_from_schedule(build, schedule.release()));
  isl_ast_build_free(build);
  return result;
}

Ranged to_ranged(const isl::ast_expr& expr, const Iterators& iterators) {
  if (expr.isa<isl::ast_expr_int>()) return ranged(to_int64(expr.as<isl::ast_expr_int>().val()));
  if (expr.isa<isl::ast_expr_id>()) {
    std::string name = expr.as<isl::ast_expr_id>().id().name();
    auto found = iterators.find(name);
    TC_CHECK(found != iterators.end(), "loop variable '{}' is used outside its loop", name);
    return found->second;
  }
  return operation_to_ranged(expr, iterators);
}

Expr to_condition(const isl::ast_expr& expr, const Iterators& iterators) {
  if (expr.isa<isl::ast_expr_int>()) {
    return Halide::Internal::make_bool(to_int64(expr.as<isl::ast_expr_int>().val()) != 0);
  }
  switch (isl_ast_expr_get_op_type(expr.get())) {
    case isl_ast_expr_op_and:
    case isl_ast_expr_op_and_then:
      return condition_operand(expr, 0, iterators) && condition_operand(expr, 1, iterators);
    case isl_ast_expr_op_or:
    case isl_ast_expr_op_or_else:
      return condition_operand(expr, 0, iterators) || condition_operand(expr, 1, iterators);
    case isl_ast_expr_op_eq:
      return equal(operand(expr, 0, iterators), operand(expr, 1, iterators));
    case isl_ast_expr_op_le:
      return less_equal(operand(expr, 0, iterators), operand(expr, 1, iterators));
    case isl_ast_expr_op_lt:
      return less(operand(expr, 0, iterators), operand(expr, 1, iterators));
    case isl_ast_expr_op_ge:
      return less_equal(operand(expr, 1, iterators), operand(expr, 0, iterators));
    case isl_ast_expr_op_gt:
      return less(operand(expr, 1, iterators), operand(expr, 0, iterators));
    default:
      TC_CHECK(false, "an operation of isl's in a condition: {}", expr.to_C_str());
  }
}

std::pair<std::string, std::vector<isl::ast_expr>> instance_of(const isl::ast_node_user& node) {
  isl::ast_expr call = node.expr();
  std::pair<std::string, std::vector<isl::ast_expr>> result;
  result.first = isl::manage(isl_ast_expr_get_op_arg(call.get(), 0)).as<isl::ast_expr_id>().id().name();
  for (int i = 1, n = static_cast<int>(isl_ast_expr_get_op_n_arg(call.get())); i < n; ++i) {
    result.second.push_back(isl::manage(isl_ast_expr_get_op_arg(call.get(), i)));
  }
  return result;
}

void for_each_instance(
    const isl::ast_node& node,
    const std::function<void(const std::string& statement, const std::vector<isl::ast_expr>& indices)>& visit) {
  auto visit_node = [](isl_ast_node* raw, void* user) -> isl_bool {
    isl::ast_node inner = isl::manage_copy(raw);
    if (inner.isa<isl::ast_node_user>()) {
      auto [statement, indices] = instance_of(inner.as<isl::ast_node_user>());
      (*static_cast<decltype(&visit)>(user))(statement, indices);
    }
    return isl_bool_true;
  };
  isl_ast_node_foreach_descendant_top_down(node.get(), visit_node, const_cast<void*>(static_cast<const void*>(&visit)));
}

IteratorUse use_of(const isl::ast_expr& expr, const std::string& iterator) {
  if (expr.isa<isl::ast_expr_id>()) {
    return expr.as<isl::ast_expr_id>().id().name() == iterator ? IteratorUse::kPlain : IteratorUse::kNone;
  }
  if (!expr.isa<isl::ast_expr_op>()) return IteratorUse::kNone;
  IteratorUse result = IteratorUse::kNone;
  for (int i = 0, n = static_cast<int>(isl_ast_expr_get_op_n_arg(expr.get())); i < n; ++i) {
    result = std::max(result, use_of(isl::manage(isl_ast_expr_get_op_arg(expr.get(), i)), iterator));
  }
  bool scales = isl_ast_expr_get_op_type(expr.get()) == isl_ast_expr_op_mul;
  return scales && result == IteratorUse::kPlain ? IteratorUse::kScaled : result;
}

}  // namespace tc::poly
