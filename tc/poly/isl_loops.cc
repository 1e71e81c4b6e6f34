#include "tc/poly/isl_loops.h"

#include <isl/ast.h>
#include <isl/ast_build.h>
#include <isl/options.h>
#include <isl/schedule_node.h>
#include <isl/set.h>
#include <isl/space.h>

#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::poly {
namespace {

using Op = LoopExpr::Op;

constexpr char kMark[] = "mark";
constexpr char kLeaf[] = "leaf";

LoopExpr to_loop_expr(const isl::ast_expr& expr);

Op op_of(isl_ast_expr_op_type type) {
  switch (type) {
    case isl_ast_expr_op_add:
      return Op::kAdd;
    case isl_ast_expr_op_sub:
    case isl_ast_expr_op_minus:
      return Op::kSub;
    case isl_ast_expr_op_mul:
      return Op::kMul;
    case isl_ast_expr_op_max:
      return Op::kMax;
    case isl_ast_expr_op_min:
      return Op::kMin;
    case isl_ast_expr_op_div:
    case isl_ast_expr_op_fdiv_q:
    case isl_ast_expr_op_pdiv_q:
      return Op::kFloorDiv;
    case isl_ast_expr_op_pdiv_r:
    case isl_ast_expr_op_zdiv_r:  // only ever compared with zero, for which either rounding does
      return Op::kFloorMod;
    case isl_ast_expr_op_cond:
    case isl_ast_expr_op_select:
      return Op::kSelect;
    case isl_ast_expr_op_and:
    case isl_ast_expr_op_and_then:
      return Op::kAnd;
    case isl_ast_expr_op_or:
    case isl_ast_expr_op_or_else:
      return Op::kOr;
    case isl_ast_expr_op_eq:
      return Op::kEqual;
    case isl_ast_expr_op_le:
    case isl_ast_expr_op_ge:
      return Op::kLessEqual;
    case isl_ast_expr_op_lt:
    case isl_ast_expr_op_gt:
      return Op::kLess;
    default:
      TC_CHECK(false, "isl's operation {} in loops", static_cast<int>(type));
  }
}

LoopExpr operand(const isl::ast_expr& expr, int position) {
  return to_loop_expr(isl::manage(isl_ast_expr_get_op_arg(expr.get(), position)));
}

std::vector<LoopExpr> operands_from(const isl::ast_expr& expr, int first) {
  std::vector<LoopExpr> result;
  for (int i = first, n = static_cast<int>(isl_ast_expr_get_op_n_arg(expr.get())); i < n; ++i) {
    result.push_back(operand(expr, i));
  }
  return result;
}

LoopExpr to_loop_expr(const isl::ast_expr& expr) {
  if (expr.isa<isl::ast_expr_int>()) return LoopExpr::constant(to_int64(expr.as<isl::ast_expr_int>().val()));
  if (expr.isa<isl::ast_expr_id>()) return LoopExpr::of_variable(expr.as<isl::ast_expr_id>().id().name());
  const isl_ast_expr_op_type type = isl_ast_expr_get_op_type(expr.get());
  std::vector<LoopExpr> operands = operands_from(expr, 0);
  if (type == isl_ast_expr_op_minus) operands.insert(operands.begin(), LoopExpr::constant(0));
  if (type == isl_ast_expr_op_ge || type == isl_ast_expr_op_gt) std::swap(operands[0], operands[1]);
  return LoopExpr::operation(op_of(type), std::move(operands));
}

/// What the callbacks of one code generation share.
struct Generation {
  const Scop* scop;
  LoopOptions options;
  std::vector<loops::Mark> marks;
  std::vector<std::vector<LoopExpr>> prefixes;           ///< of leaves
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
std::vector<LoopExpr> dimension_expressions(const isl::union_map& dimensions, isl_ast_build* build) {
  std::vector<LoopExpr> result;
  isl_union_map* instances = isl_union_map_reverse(isl_ast_build_get_schedule(build));  // { [here] -> S[i] }
  isl_union_map* relation = isl_union_map_apply_range(instances, dimensions.copy());    // { [here] -> [x] }
  if (isl_union_map_is_empty(relation) == isl_bool_true) {
    isl_union_map_free(relation);
    return result;
  }
  isl_pw_multi_aff* values = isl_pw_multi_aff_from_map(isl_map_from_union_map(isl_union_map_coalesce(relation)));
  for (int i = 0, n = static_cast<int>(isl_pw_multi_aff_dim(values, isl_dim_out)); i < n; ++i) {
    isl_pw_aff* value = isl_pw_multi_aff_get_at(values, i);
    result.push_back(to_loop_expr(isl::manage(isl_ast_build_expr_from_pw_aff(build, value))));
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
std::vector<LoopExpr> offset_expressions(const isl::multi_aff& offset, const isl::schedule_node& mark,
                                         isl_ast_build* build) {
  std::vector<LoopExpr> result;
  isl::space here = isl::manage(isl_ast_build_get_schedule_space(build));
  auto depth = isl_space_dim(here.get(), isl_dim_set);
  bool same = depth == isl_multi_aff_dim(offset.get(), isl_dim_in);
  isl_pw_multi_aff* here_offset = same ? isl_pw_multi_aff_from_multi_aff(rename_prefix(offset, here))
                                       : relate_prefix(offset, mark.prefix_schedule_union_map(), build);
  for (int i = 0, n = static_cast<int>(isl_pw_multi_aff_dim(here_offset, isl_dim_out)); i < n; ++i) {
    isl_pw_aff* value = isl_pw_multi_aff_get_at(here_offset, i);
    result.push_back(to_loop_expr(isl::manage(isl_ast_build_expr_from_pw_aff(build, value))));
  }
  isl_pw_multi_aff_free(here_offset);
  return result;
}

isl_ast_node* place_mark(isl_ast_node* raw, isl_ast_build* build, void* user) {
  auto* generation = static_cast<Generation*>(user);
  isl_id* id = isl_ast_node_mark_get_id(raw);
  loops::Mark place;
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
  generation->marks.push_back(place);
  auto number = static_cast<intptr_t>(generation->marks.size());
  isl_id* annotation = isl_id_alloc(isl_ast_node_get_ctx(raw), kMark, reinterpret_cast<void*>(number));
  return isl_ast_node_set_annotation(raw, annotation);
}

std::string statement_of(const isl::ast_node_user& node) {
  return isl::manage(isl_ast_expr_get_op_arg(node.expr().get(), 0)).as<isl::ast_expr_id>().id().name();
}

isl_ast_node* place_leaf(isl_ast_node* raw, isl_ast_build* build, void* user) {
  auto* generation = static_cast<Generation*>(user);
  const std::string statement = statement_of(isl::manage_copy(raw).as<isl::ast_node_user>());
  generation->prefixes.push_back(dimension_expressions(generation->leaves.at(statement), build));
  const auto number = static_cast<intptr_t>(generation->prefixes.size());
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

/// isl's nodes as ours.
class Converter {
 public:
  explicit Converter(const Generation& generation) : generation_(generation) {}

  loops::NodePtr run(const isl::ast_node& node) const {
    if (node.isa<isl::ast_node_for>()) return loops::make_node(loop(node.as<isl::ast_node_for>()));
    if (node.isa<isl::ast_node_if>()) return loops::make_node(branch(node.as<isl::ast_node_if>()));
    if (node.isa<isl::ast_node_block>()) return loops::make_node(block(node.as<isl::ast_node_block>()));
    if (node.isa<isl::ast_node_mark>()) return loops::make_node(mark(node.as<isl::ast_node_mark>()));
    if (node.isa<isl::ast_node_user>()) return loops::make_node(instance(node.as<isl::ast_node_user>()));
    TC_CHECK(false, "a kind of node that isl does not have");
  }

 private:
  /// isl names its iterators c0, c1, ... by dimension, those counted that have no loop.
  loops::For loop(const isl::ast_node_for& node) const {
    loops::For result;
    result.variable = node.iterator().as<isl::ast_expr_id>().id().name();
    result.dimension = std::stoi(result.variable.substr(1));
    result.first = to_loop_expr(node.init());
    result.body = run(node.body());
    result.once = node.is_degenerate();
    if (result.once) return result;
    result.step = to_int64(node.inc().as<isl::ast_expr_int>().val());
    const isl::ast_expr condition = node.cond();
    const auto comparison = isl_ast_expr_get_op_type(condition.get());
    TC_CHECK(comparison == isl_ast_expr_op_le || comparison == isl_ast_expr_op_lt, "a loop that runs while {}",
             condition.to_C_str());
    result.last = operand(condition, 1);
    if (comparison == isl_ast_expr_op_lt) {
      result.last = LoopExpr::operation(Op::kSub, {result.last, LoopExpr::constant(1)});
    }
    return result;
  }

  loops::If branch(const isl::ast_node_if& node) const {
    loops::If result{to_loop_expr(node.cond()), run(node.then_node()), nullptr};
    if (node.has_else_node()) result.else_case = run(node.else_node());
    return result;
  }

  loops::Block block(const isl::ast_node_block& node) const {
    loops::Block result;
    const isl::ast_node_list children = node.children();
    for (int i = 0, n = static_cast<int>(isl_ast_node_list_size(children.get())); i < n; ++i) {
      result.children.push_back(run(children.at(i)));
    }
    return result;
  }

  loops::Mark mark(const isl::ast_node_mark& node) const {
    loops::Mark result = generation_.marks.at(static_cast<size_t>(annotation_of(node, kMark) - 1));
    result.child = run(node.node());
    return result;
  }

  loops::Instance instance(const isl::ast_node_user& node) const {
    loops::Instance result{statement_of(node), operands_from(node.expr(), 1), {}};
    if (!generation_.options.prefixes) return result;
    result.prefix = generation_.prefixes.at(static_cast<size_t>(annotation_of(node, kLeaf) - 1));
    return result;
  }

  const Generation& generation_;
};

}  // namespace

loops::NodePtr isl_loops(const Scop& scop, const isl::schedule& schedule, const LoopOptions& options) {
  isl_ctx* ctx = scop.context->get().get();
  isl_options_set_ast_build_atomic_upper_bound(ctx, 1);
  isl_options_set_ast_build_detect_min_max(ctx, 1);
  isl_options_set_ast_build_exploit_nested_bounds(ctx, 1);
  // A loop's variable is its dimension's value: offsets are functions of that.
  isl_options_set_ast_build_scale_strides(ctx, 0);
  // What one iteration runs stays in one piece: below a mark it may share a buffer.
  isl_options_set_ast_build_group_coscheduled(ctx, 1);
  Generation generation{&scop, options, {}, {}, {}, {}};
  isl::schedule noted =
      isl::manage(isl_schedule_map_schedule_node_bottom_up(schedule.copy(), &visit_node, &generation));
  isl_ast_build* build = isl_ast_build_alloc(ctx);
  if (options.prefixes) build = isl_ast_build_set_at_each_domain(build, &place_leaf, &generation);
  build = isl_ast_build_set_after_each_mark(build, &place_mark, &generation);
  const isl::ast_node root = isl::manage(isl_ast_build_node_from_schedule(build, noted.release()));
  isl_ast_build_free(build);
  return Converter(generation).run(root);
}

LoopExpr loop_expr(const isl::pw_aff& value) {
  isl_set* context = isl_set_universe(isl_space_params(isl_pw_aff_get_space(value.get())));
  isl_ast_build* build = isl_ast_build_from_context(context);
  const isl::ast_expr expr = isl::manage(isl_ast_build_expr_from_pw_aff(build, value.copy()));
  isl_ast_build_free(build);
  return to_loop_expr(expr);
}

}  // namespace tc::poly
