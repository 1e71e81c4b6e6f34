#include "tc/poly/box_loops.h"

#include <fmt/format.h>
#include <isl/schedule_node.h>

#include "tc/poly/box_member.h"
#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::poly {
namespace {

using Op = LoopExpr::Op;

/// The sum of a constant and multiples of loop variables, by dimension.
struct Affine {
  std::map<int, int64_t> factors;  ///< none 0
  int64_t constant = 0;

  bool operator==(const Affine&) const = default;
  bool is_constant() const { return factors.empty(); }
};

Affine plus(Affine a, int64_t factor, const Affine& b) {
  for (const auto& [dimension, value] : b.factors) {
    int64_t& sum = a.factors[dimension];
    sum += factor * value;
    if (sum == 0) a.factors.erase(dimension);
  }
  a.constant += factor * b.constant;
  return a;
}

Affine constant_affine(int64_t value) { return {{}, value}; }

/// a / divisor if that is exact for all values of the variables.
std::optional<Affine> exact_quotient(Affine a, int64_t divisor) {
  if (a.constant % divisor != 0) return std::nullopt;
  for (auto& [dimension, factor] : a.factors) {
    if (factor % divisor != 0) return std::nullopt;
    factor /= divisor;
  }
  a.constant /= divisor;
  return a;
}

std::string variable_of(int dimension) { return fmt::format("c{}", dimension); }

LoopExpr to_expr(const Affine& a) {
  std::optional<LoopExpr> sum;
  for (const auto& [dimension, factor] : a.factors) {
    LoopExpr term = LoopExpr::of_variable(variable_of(dimension));
    const int64_t size = sum ? std::abs(factor) : factor;
    if (size == -1) {
      term = LoopExpr::operation(Op::kSub, {LoopExpr::constant(0), term});
    } else if (size != 1) {
      term = LoopExpr::operation(Op::kMul, {LoopExpr::constant(size), term});
    }
    sum = sum ? LoopExpr::operation(factor < 0 ? Op::kSub : Op::kAdd, {*sum, term}) : term;
  }
  if (!sum) return LoopExpr::constant(a.constant);
  if (a.constant == 0) return *sum;
  return LoopExpr::operation(a.constant < 0 ? Op::kSub : Op::kAdd, {*sum, LoopExpr::constant(std::abs(a.constant))});
}

/// What is known of an index x at a place: x = base + r for 0 <= r < rest, and x lies in its box. Above the first loop
/// over the index, `rest` is 0 and any x is possible. All multiples of `rest` in the box are values of the base.
struct Index {
  Interval box;
  Affine base;
  int64_t rest = 0;
  std::map<int64_t, Affine> tiles;  ///< the bases above, by `rest`

  bool is_known() const { return rest == 1; }
};

/// The values of a dimension of the tree: first, first + step, ... up to the smallest of `last`; only `first` if there
/// is no `last`.
struct Values {
  Affine first;
  std::vector<Affine> last;
  int64_t step = 1;

  bool operator==(const Values&) const = default;
  bool once() const { return last.empty(); }
};

bool is_whole(const BoxMember& member, const Index& x) {
  return member.modulus == 0 || (x.box.first >= 0 && member.modulus > x.box.last);
}

/// How many of the index one step of the dimension's value counts.
int64_t unit(const BoxMember& member) { return member.scale == 1 ? member.size : 1; }

std::optional<Values> values_of_known(const BoxMember& member, const Index& x) {
  if (member.size == 1 && is_whole(member, x)) return Values{plus(x.base, 1, constant_affine(member.shift)), {}};
  if (!x.base.is_constant() || x.box.first < 0) return std::nullopt;
  const int64_t value = is_whole(member, x) ? x.base.constant : x.base.constant % member.modulus;
  return Values{constant_affine(value / member.size * member.scale), {}};
}

/// The values of a dimension that is this function of an index; nothing where they have another form.
std::optional<Values> values_of(const BoxMember& member, const Index& x) {
  if (x.is_known()) return values_of_known(member, x);
  const bool whole = is_whole(member, x);
  if (x.box.first != 0 && (x.rest != 0 || member.size != 1 || !whole)) return std::nullopt;
  if (!whole && member.modulus != x.rest) return std::nullopt;
  const bool at_zero = x.base == Affine{};
  const bool bounded = x.rest != 0 && x.rest <= x.box.last;  // by the tile around rather than the box
  if (bounded && x.rest % member.size != 0) return std::nullopt;
  const std::optional<Affine> base = exact_quotient(x.base, unit(member));
  if (!base) return std::nullopt;

  const Affine counted = plus(whole ? *base : Affine{}, 1, constant_affine(member.shift));
  Values result{plus(counted, 1, constant_affine(x.box.first)), {}, member.scale};
  const int64_t room = bounded ? x.rest - 1 : x.box.last;
  if (room - x.box.first < member.size) return result.step = 1, result;
  result.last.push_back(plus(counted, 1, constant_affine(room / unit(member))));
  if (at_zero || (x.box.last % x.rest) / member.size == room / member.size) return result;
  const Affine cut = plus(constant_affine(x.box.last / unit(member)), whole ? 0 : -1, *base);
  result.last.push_back(plus(cut, 1, constant_affine(member.shift)));
  if (result.last[1].is_constant()) std::swap(result.last[0], result.last[1]);
  return result;
}

/// What is known of the index where the dimension has a value.
Index below(const BoxMember& member, const Index& x, const Affine& value) {
  if (x.is_known()) return x;
  const Affine above = is_whole(member, x) ? Affine{} : x.base;
  const Affine steps = plus(value, 1, constant_affine(-member.shift));
  Index result{x.box, plus(above, unit(member), steps), member.size, x.tiles};
  result.tiles[result.rest] = result.base;
  return result;
}

/// A statement at a place of the tree.
struct Active {
  std::string statement;
  Box box;
  std::vector<Index> indices;  ///< of the box

  /// The value of a dimension; nothing if it is not known.
  std::optional<Affine> value(const Box::Dimension& dimension) const {
    const Index& index = indices.at(static_cast<size_t>(dimension.index));
    if (!index.is_known()) return std::nullopt;
    const int64_t vector = std::max(dimension.size, dimension.modulus);
    if (vector == 1) return index.base;
    const auto tile = index.tiles.find(vector);
    if (tile == index.tiles.end()) return std::nullopt;
    return dimension.size > 1 ? exact_quotient(tile->second, vector) : plus(index.base, -1, tile->second);
  }
};

struct State {
  std::vector<Active> active;
  std::vector<Affine> dimensions;  ///< of the tree, above
};

class BoxLoops {
 public:
  BoxLoops(const Scop& scop, const LoopOptions& options) : scop_(scop), options_(options) {}

  /// Null where the loops have another form.
  loops::NodePtr walk(const isl::schedule_node& node, const State& state) const {
    if (state.active.empty()) return loops::make_node(loops::Block{});
    if (node.isa<isl::schedule_node_leaf>()) return leaf(state);
    if (node.isa<isl::schedule_node_mark>()) return mark(node, state);
    if (node.isa<isl::schedule_node_band>()) return band(node.as<isl::schedule_node_band>(), state);
    if (node.isa<isl::schedule_node_filter>()) return filter(node.as<isl::schedule_node_filter>(), state);
    if (node.isa<isl::schedule_node_sequence>()) return sequence(node, state);
    return nullptr;
  }

 private:
  loops::NodePtr leaf(const State& state) const {
    if (state.active.size() != 1) return nullptr;
    loops::Instance result;
    result.statement = state.active[0].statement;
    for (const Box::Dimension& dimension : state.active[0].box.dimensions) {
      const std::optional<Affine> value = state.active[0].value(dimension);
      if (!value) return nullptr;
      result.indices.push_back(to_expr(*value));
    }
    if (options_.prefixes) result.prefix = prefix(state);
    return loops::make_node(std::move(result));
  }

  loops::NodePtr mark(const isl::schedule_node& node, const State& state) const {
    loops::Mark result;
    result.name = mark_name(node);
    result.depth = static_cast<int>(state.dimensions.size());
    const isl::schedule_node child = node.child(0);
    if (child.isa<isl::schedule_node_band>()) result.members = isl_schedule_node_band_n_member(child.get());
    for (const Promotion& promotion : scop_.promotions) {
      if (fmt::format("promote:{}", promotion.name) != result.name) continue;
      std::optional<std::vector<LoopExpr>> offsets = offsets_of(promotion, state);
      if (!offsets) return nullptr;
      result.offsets = std::move(*offsets);
      if (options_.prefixes) result.prefix = prefix(state);
    }
    result.child = walk(child, state);
    return result.child == nullptr ? nullptr : loops::make_node(std::move(result));
  }

  loops::NodePtr band(const isl::schedule_node_band& node, State state) const {
    const isl::multi_union_pw_aff partial = node.partial_schedule();
    std::vector<loops::For> nest;
    for (int m = 0, n = isl_schedule_node_band_n_member(node.get()); m < n; ++m) {
      const std::optional<Values> values = enter(partial.at(m), state);
      if (!values) return nullptr;
      if (values->once()) continue;
      loops::For loop;
      loop.dimension = static_cast<int>(state.dimensions.size()) - 1;
      loop.variable = variable_of(loop.dimension);
      loop.first = to_expr(values->first);
      loop.last = to_expr(values->last[0]);
      if (values->last.size() > 1) loop.last = LoopExpr::operation(Op::kMin, {loop.last, to_expr(values->last[1])});
      loop.step = values->step;
      nest.push_back(std::move(loop));
    }
    loops::NodePtr result = walk(node.child(0), state);
    for (auto loop = nest.rbegin(); loop != nest.rend() && result != nullptr; ++loop) {
      loop->body = result;
      result = loops::make_node(std::move(*loop));
    }
    return result;
  }

  /// Goes below one dimension. Nothing if it is of another form, or not the same for all statements.
  static std::optional<Values> enter(const isl::union_pw_aff& member, State& state) {
    std::map<std::string, isl::pw_aff> functions;
    for (const isl::pw_aff& function : pw_affs_of(member)) {
      functions.insert({isl::manage(isl_pw_aff_get_tuple_id(function.get(), isl_dim_in)).name(), function});
    }
    std::vector<BoxMember> members;
    std::optional<Values> result;
    for (const Active& active : state.active) {
      std::optional<BoxMember> form = box_member(functions.at(active.statement));
      if (form) form = of_index(*form, active.box);
      if (!form) return std::nullopt;
      const std::optional<Values> values = form->index < 0
                                               ? Values{constant_affine(form->shift), {}}
                                               : values_of(*form, active.indices.at(static_cast<size_t>(form->index)));
      if (!values || (result && *result != *values)) return std::nullopt;
      result = values;
      members.push_back(*form);
    }
    const auto dimension = static_cast<int>(state.dimensions.size());
    const Affine value = result->once() ? result->first : Affine{{{dimension, 1}}, 0};
    for (size_t s = 0; s < members.size(); ++s) {
      if (members[s].index < 0) continue;
      Index& index = state.active[s].indices[static_cast<size_t>(members[s].index)];
      index = below(members[s], index, value);
    }
    state.dimensions.push_back(value);
    return result;
  }

  loops::NodePtr sequence(const isl::schedule_node& node, const State& state) const {
    loops::Block result;
    for (int i = 0, n = static_cast<int>(node.n_children()); i < n; ++i) {
      const loops::NodePtr child = walk(node.child(i), state);
      if (child == nullptr) return nullptr;
      const auto* block = std::get_if<loops::Block>(&child->value);
      if (block == nullptr) result.children.push_back(child);
      if (block != nullptr) {
        result.children.insert(result.children.end(), block->children.begin(), block->children.end());
      }
    }
    return result.children.size() == 1 ? result.children[0] : loops::make_node(std::move(result));
  }

  loops::NodePtr filter(const isl::schedule_node_filter& node, const State& state) const {
    std::map<std::string, bool> passes;  // all instances
    for (const isl::set& set : sets_of(node.filter())) {
      passes[tuple_name(set)] = isl_set_plain_is_universe(set.get()) == isl_bool_true;
    }
    State inside{{}, state.dimensions};
    for (const Active& active : state.active) {
      const auto found = passes.find(active.statement);
      if (found == passes.end()) continue;
      if (!found->second) return nullptr;
      inside.active.push_back(active);
    }
    return walk(node.child(0), inside);
  }

  static std::vector<LoopExpr> prefix(const State& state) {
    std::vector<LoopExpr> result;
    for (const Affine& value : state.dimensions) result.push_back(to_expr(value));
    return result;
  }

  static std::optional<std::vector<LoopExpr>> offsets_of(const Promotion& promotion, const State& state) {
    const isl::multi_aff& offset = promotion.offset;
    if (isl_multi_aff_dim(offset.get(), isl_dim_in) != static_cast<int>(state.dimensions.size())) return std::nullopt;
    std::vector<LoopExpr> result;
    for (int i = 0, n = static_cast<int>(isl_multi_aff_dim(offset.get(), isl_dim_out)); i < n; ++i) {
      const isl::aff aff = offset.at(i);
      const isl::val denominator = isl::manage(isl_aff_get_denominator_val(aff.get()));
      if (isl_aff_dim(aff.get(), isl_dim_div) != 0 || !denominator.is_one()) return std::nullopt;
      Affine sum = constant_affine(to_int64(aff.constant_val()));
      for (size_t d = 0; d < state.dimensions.size(); ++d) {
        const isl::val factor = isl::manage(isl_aff_get_coefficient_val(aff.get(), isl_dim_in, static_cast<int>(d)));
        sum = plus(sum, to_int64(factor), state.dimensions[d]);
      }
      result.push_back(to_expr(sum));
    }
    return result;
  }

  const Scop& scop_;
  const LoopOptions& options_;
};

}  // namespace

std::optional<loops::NodePtr> box_loops(const Scop& scop, const isl::schedule_node& node, const LoopOptions& options) {
  State state;
  for (const isl::set& set : sets_of(node_domain(node))) {
    const std::optional<Box> box = box_of(set);
    if (!box) return std::nullopt;
    Active active{tuple_name(set), *box, {}};
    for (const Interval& interval : box->indices) {
      const bool known = interval.first == interval.last;
      active.indices.push_back({interval, constant_affine(known ? interval.first : 0), known ? 1 : 0, {}});
    }
    state.active.push_back(std::move(active));
  }
  loops::NodePtr result = BoxLoops(scop, options).walk(node, state);
  return result == nullptr ? std::nullopt : std::optional(std::move(result));
}

}  // namespace tc::poly
