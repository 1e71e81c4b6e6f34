#include "tc/cpu/strategy_unit.h"

#include <isl/aff.h>

#include <algorithm>

#include "tc/cpu/from_poly.h"
#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"
#include "tc/support/round.h"

namespace tc::cpu {

namespace {

/// A buffer that may be promoted to registers, in vectors.
constexpr int64_t kMaxRegisterVectors = 64;
/// Lanes that one reduction of a vector may combine.
constexpr int64_t kMaxCombinedLanes = 128;

// --- footprints ---------------------------------------------------------------------------------------------------

/// One dimension of a footprint: base + the sum of coefficient * (schedule dimension), and how far it reaches.
struct Extent {
  std::map<int, int64_t> base;
  int64_t low = 0;
  int64_t high = 0;  ///< inclusive
};

Extent extent_of(const StatementInfo& info, const LinearForm& form, const std::vector<Dim>& dims) {
  Extent result;
  result.low = result.high = form.constant;
  for (const auto& [index, coefficient] : form.coefficients) {
    const auto& names = info.statement->indices;
    auto i = static_cast<size_t>(std::find(names.begin(), names.end(), index) - names.begin());
    TC_CHECK(i < names.size(), "'{}' is not an index of {}", index, info.id());
    int64_t first = info.begin[i];
    int64_t count = info.extent[i];
    for (const Dim& dim : dims) {
      auto position = dim.position.find(info.id());
      if (position == dim.position.end() || position->second != static_cast<int>(i)) continue;
      first = dim.begin;
      count = dim.rest;
      for (auto [depth, step] : dim.steps) result.base[depth] += coefficient * step;
    }
    int64_t a = coefficient * first;
    int64_t b = coefficient * (first + count - 1);
    result.low += std::min(a, b);
    result.high += std::max(a, b);
  }
  std::erase_if(result.base, [](const auto& term) { return term.second == 0; });
  return result;
}

isl::multi_aff make_offset(isl::ctx ctx, const std::string& tensor, int depth, const std::vector<Extent>& parts) {
  isl_space* prefix = isl_space_set_alloc(ctx.get(), 0, static_cast<unsigned>(depth));
  isl_space* range = poly::named_space(ctx, tensor, static_cast<int>(parts.size())).release();
  isl_multi_aff* result = isl_multi_aff_zero(isl_space_map_from_domain_and_range(isl_space_copy(prefix), range));
  for (size_t d = 0; d < parts.size(); ++d) {
    isl_local_space* local = isl_local_space_from_space(isl_space_copy(prefix));
    isl_aff* value = isl_aff_zero_on_domain(local);
    value = isl_aff_add_constant_val(value, poly::make_val(ctx, parts[d].low).release());
    for (auto [position, coefficient] : parts[d].base) {
      value = isl_aff_set_coefficient_val(value, isl_dim_in, position, poly::make_val(ctx, coefficient).release());
    }
    result = isl_multi_aff_set_at(result, static_cast<int>(d), value);
  }
  isl_space_free(prefix);
  return isl::manage(result);
}

}  // namespace

Footprint footprint(const Analysis& analysis, const std::vector<int>& statements, const std::string& tensor,
                    const std::vector<Dim>& dims, int depth) {
  std::vector<int64_t> bounds = constant_extents(analysis.scop->program->tensor(tensor));
  std::vector<Extent> parts(bounds.size());
  std::vector<bool> whole(bounds.size(), false);
  Footprint result;
  bool first = true;
  for (int s : statements) {
    const StatementInfo& info = info_of(analysis, s);
    for (const Reference& reference : info.references) {
      if (reference.tensor != tensor) continue;
      for (size_t d = 0; d < bounds.size(); ++d) {
        if (!reference.forms[d]) {
          whole[d] = true;
          continue;
        }
        Extent part = extent_of(info, *reference.forms[d], dims);
        if (first) {
          parts[d] = part;
        } else if (part.base != parts[d].base) {
          whole[d] = true;
        } else {
          parts[d].low = std::min(parts[d].low, part.low);
          parts[d].high = std::max(parts[d].high, part.high);
        }
      }
      first = false;
    }
  }
  for (size_t d = 0; d < bounds.size(); ++d) {
    if (whole[d]) {
      result.whole = true;
      parts[d] = {{}, 0, bounds[d] - 1};
    }
    result.extents.push_back(parts[d].high - parts[d].low + 1);
  }
  result.offset = make_offset(analysis.scop->context->get(), tensor, depth, parts);
  return result;
}

bool is_private(const Analysis& analysis, const std::vector<int>& statements, const std::string& tensor) {
  if (analysis.scop->program->tensor(tensor).role != ir::Role::kTemporary) return false;
  for (int s = 0; s < static_cast<int>(analysis.statements.size()); ++s) {
    if (std::find(statements.begin(), statements.end(), s) != statements.end()) continue;
    for (const Reference& reference : info_of(analysis, s).references) {
      if (reference.tensor == tensor) return false;
    }
  }
  return true;
}

std::string buffer_name(const std::string& tensor, const std::vector<poly::Promotion>& promotions) {
  auto taken = [&](const std::string& name) {
    return std::any_of(promotions.begin(), promotions.end(), [&](const auto& p) { return p.name == name; });
  };
  std::string name = tensor + "_tile";
  for (int i = 1; taken(name); ++i) name = tensor + "_tile" + std::to_string(i);
  return name;
}

namespace {

/// Builds the tree of one unit.
class UnitBuilder {
 public:
  UnitBuilder(const Analysis& analysis, const Unit& unit, const UnitPlan& plan, const UnitOptions& options,
              std::vector<poly::Promotion>& promotions)
      : analysis_(analysis), unit_(unit), plan_(plan), options_(options), promotions_(promotions) {}

  Tree build(int depth) {
    std::vector<std::map<std::string, isl::aff>> members;
    for (size_t d = 0; d < unit_.dims.size(); ++d) {
      if (unit_.dims[d].rest <= plan_.tile[d]) continue;
      members.push_back(cut(unit_.dims[d], plan_.tile[d], depth++));
    }
    Tree tree = points(depth);
    std::vector<poly::Promotion> buffers = promoted(depth);
    const bool pads = can_pad(buffers);
    for (poly::Promotion& promotion : buffers) {
      tree = mark("promote:" + promotion.name, std::move(tree));
      promotions_.push_back(std::move(promotion));
    }
    tree = mark(pads ? kPadMark : kSeparateMark, std::move(tree));
    while (!members.empty()) {
      tree = band(std::move(members.back()), std::move(tree));
      members.pop_back();
    }
    return tree;
  }

 private:
  bool reduces() const {
    return std::any_of(unit_.statements.begin(), unit_.statements.end(),
                       [&](int s) { return info_of(analysis_, s).reduces(); });
  }

  std::vector<std::vector<std::string>> leaves() const {
    std::vector<std::vector<std::string>> result;
    for (int s : unit_.statements) result.push_back({info_of(analysis_, s).id()});
    return result;
  }

  /// The points of one tile.
  Tree points(int depth) const {
    std::vector<Tree> parts;
    if (reduces()) {
      for (int s : unit_.statements) parts.push_back(reduction_loops(s, depth));
      return sequence(leaves(), std::move(parts));
    }
    parts.resize(unit_.statements.size());
    std::vector<std::string> all;
    for (int s : unit_.statements) all.push_back(info_of(analysis_, s).id());
    return point_loops(all, depth, sequence(leaves(), std::move(parts)));
  }

  /// The statement's own loops, outside of those over the tile's points.
  Tree reduction_loops(int s, int depth) const {
    const StatementInfo& info = info_of(analysis_, s);
    int loops = static_cast<int>(std::count(info.parallel.begin(), info.parallel.end(), false));
    Tree tree = point_loops({info.id()}, depth + loops, Tree{});
    for (size_t i = info.parallel.size(); i-- > 0;) {
      if (info.parallel[i]) continue;
      std::map<std::string, isl::aff> member;
      member.emplace(info.id(), poly::variable(info.domain.space(), static_cast<int>(i)));
      const bool innermost = tree.kind == Tree::Kind::kLeaf;
      tree = band(std::move(member), std::move(tree));
      if (innermost && combines_lanes(info, i)) tree = mark("vector", std::move(tree));
    }
    return tree;
  }

  /// True if the loop sums up the lanes of partial results, which one reduction of a vector does. All lanes must update
  /// the same element: in `T(i/2) += A(i)` only some of them do.
  bool combines_lanes(const StatementInfo& info, size_t index) const {
    const int64_t extent = info.extent[index];
    const auto* call = info.statement->value.as<Halide::Internal::Call>();
    if (options_.strict || call == nullptr || !ir::is_tensor_read(*analysis_.scop->program, call)) return false;
    if (extent > kMaxCombinedLanes || (extent & (extent - 1)) != 0 || info.references.size() != 2) return false;
    const std::string& name = info.statement->indices[index];
    if (info.references[0].depends_on(name)) return false;
    return memory_step(*analysis_.scop->program, analysis_.layouts, info.references[1], name) == 1;
  }

  static std::map<std::string, isl::aff> only(const std::map<std::string, isl::aff>& member,
                                              const std::vector<std::string>& statements) {
    std::map<std::string, isl::aff> result;
    for (const std::string& s : statements) result.emplace(s, member.at(s));
    return result;
  }

  Tree point_loops(const std::vector<std::string>& statements, int depth, Tree inner) const {
    std::vector<Dim> dims = unit_.dims;
    struct Level {
      std::map<std::string, isl::aff> member;
      const char* mark;
    };
    std::vector<Level> levels;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (static_cast<int>(d) == plan_.vector || dims[d].rest == 1) continue;
      levels.push_back({only(cut(dims[d], 1, depth++), statements), plan_.unrolled[d] ? "unroll" : nullptr});
    }
    if (plan_.vector >= 0) {
      Dim& dim = dims[static_cast<size_t>(plan_.vector)];
      if (dim.rest > plan_.lanes) levels.push_back({only(cut(dim, plan_.lanes, depth++), statements), "unroll"});
      if (plan_.lanes > 1) levels.push_back({only(cut(dim, 1, depth++), statements), "vector"});
    }
    while (!levels.empty()) {
      inner = band(std::move(levels.back().member), std::move(inner));
      if (levels.back().mark != nullptr) inner = mark(levels.back().mark, std::move(inner));
      levels.pop_back();
    }
    return inner;
  }

  /// Buffers for accumulators, and for temporaries that only this unit knows.
  std::vector<poly::Promotion> promoted(int depth) const {
    std::vector<poly::Promotion> result;
    if (!options_.promote) return result;
    std::set<std::string> written;
    for (int s : unit_.statements) {
      const std::string& tensor = info_of(analysis_, s).statement->tensor;
      if (!written.insert(tensor).second) continue;
      bool own = is_private(analysis_, unit_.statements, tensor);
      if (!own && !accumulates(tensor)) continue;
      poly::Promotion promotion = tile_of(tensor, depth);
      if (promotion.extents.empty() && analysis_.scop->program->tensor(tensor).rank() > 0) continue;
      promotion.copy_in = !own && !starts_complete(tensor);
      promotion.copy_out = !own;
      promotion.name = fresh_name(tensor, result);
      result.push_back(std::move(promotion));
    }
    return result;
  }

  std::string fresh_name(const std::string& tensor, const std::vector<poly::Promotion>& more) const {
    std::vector<poly::Promotion> all = promotions_;
    all.insert(all.end(), more.begin(), more.end());
    return buffer_name(tensor, all);
  }

  bool accumulates(const std::string& tensor) const {
    return std::any_of(unit_.statements.begin(), unit_.statements.end(), [&](int s) {
      const StatementInfo& info = info_of(analysis_, s);
      return info.statement->tensor == tensor && info.reduces();
    });
  }

  /// True if the points that a partial tile lacks may be computed too: all statements have the same points, and write
  /// to buffers of which nothing beyond those points is copied out.
  bool can_pad(const std::vector<poly::Promotion>& buffers) const {
    if (!reduces()) return false;
    for (int s : unit_.statements) {
      const StatementInfo& info = info_of(analysis_, s);
      if (!is_box(info) || info.statement->guard.defined()) return false;
      for (const Dim& dim : unit_.dims) {
        auto i = static_cast<size_t>(dim.position.at(info.id()));
        if (info.begin[i] != dim.begin || info.extent[i] != dim.extent) return false;
      }
      const std::string& tensor = info.statement->tensor;
      auto buffer = std::find_if(buffers.begin(), buffers.end(), [&](const auto& p) { return p.tensor == tensor; });
      if (buffer == buffers.end()) return false;
      if (buffer->copy_out && !writes_all_of(info, tensor)) return false;
    }
    return true;
  }

  /// The tile as a promotion, with room for all points of a partial one; without extents if it is not small.
  poly::Promotion tile_of(const std::string& tensor, int depth) const {
    std::vector<Dim> dims = unit_.dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      int64_t tile = plan_.tile[d];
      if (static_cast<int>(d) == plan_.vector) tile = round_up(std::min(dims[d].rest, tile), plan_.lanes);
      dims[d].rest = std::max(dims[d].rest, tile);
    }
    Footprint part = footprint(analysis_, unit_.statements, tensor, dims, depth);
    poly::Promotion promotion;
    promotion.tensor = tensor;
    promotion.offset = part.offset;
    int64_t bytes = analysis_.scop->program->tensor(tensor).type.bytes();
    bool small = !part.whole;
    for (int64_t e : part.extents) {
      small = small && !__builtin_mul_overflow(bytes, e, &bytes);
    }
    if (!small || bytes > kMaxRegisterVectors * options_.vector_bits / 8) return promotion;
    promotion.extents = part.extents;
    promotion.layout = layout_of(tensor, part.extents.size());
    promotion.in_registers = true;
    return promotion;
  }

  /// The dimension of the vectors innermost.
  std::vector<int> layout_of(const std::string& tensor, size_t rank) const {
    std::vector<int> layout;
    for (size_t d = 0; d < rank; ++d) layout.push_back(static_cast<int>(d));
    if (plan_.vector < 0) return layout;
    for (int s : unit_.statements) {
      const StatementInfo& info = info_of(analysis_, s);
      if (info.statement->tensor != tensor) continue;
      const std::string& index = index_name(info, unit_.dims[static_cast<size_t>(plan_.vector)]);
      const auto& forms = info.references.front().forms;
      for (size_t d = 0; d < rank; ++d) {
        if (!forms[d] || forms[d]->coefficients.count(index) == 0) continue;
        std::erase(layout, static_cast<int>(d));
        layout.push_back(static_cast<int>(d));
        return layout;
      }
    }
    return layout;
  }

  /// True if the first statement that touches the tensor writes every element that the tile has in the tensor.
  bool starts_complete(const std::string& tensor) const {
    for (int s : unit_.statements) {
      const StatementInfo& info = info_of(analysis_, s);
      bool touches = std::any_of(info.references.begin(), info.references.end(),
                                 [&](const Reference& r) { return r.tensor == tensor; });
      if (!touches) continue;
      if (info.statement->kind == poly::Statement::Kind::kUpdate || info.statement->guard.defined()) return false;
      auto references = std::count_if(info.references.begin(), info.references.end(),
                                      [&](const Reference& r) { return r.tensor == tensor; });
      return references == 1 && writes_all_of(info, tensor);
    }
    return false;
  }

  bool writes_all_of(const StatementInfo& info, const std::string& tensor) const {
    std::vector<int64_t> extents = constant_extents(analysis_.scop->program->tensor(tensor));
    std::set<std::string> used;
    for (size_t d = 0; d < extents.size(); ++d) {
      const auto& form = info.references.front().forms[d];
      if (!form || form->constant != 0 || form->coefficients.size() != 1) return false;
      auto [index, coefficient] = *form->coefficients.begin();
      if (coefficient != 1 || !used.insert(index).second) return false;
      const auto& names = info.statement->indices;
      auto i = static_cast<size_t>(std::find(names.begin(), names.end(), index) - names.begin());
      if (info.begin[i] != 0 || info.extent[i] != extents[d]) return false;
    }
    return info.references.front().tensor == tensor && is_box(info);
  }

  static bool is_box(const StatementInfo& info) {
    isl_set* box = isl_set_from_basic_set(isl_set_simple_hull(info.domain.copy()));
    for (size_t i = 0; i < info.begin.size(); ++i) {
      box = isl_set_drop_constraints_involving_dims(box, isl_dim_set, static_cast<unsigned>(i), 1);
      box = isl_set_lower_bound_val(box, isl_dim_set, static_cast<unsigned>(i),
                                    poly::make_val(info.domain.ctx(), info.begin[i]).release());
      box = isl_set_upper_bound_val(box, isl_dim_set, static_cast<unsigned>(i),
                                    poly::make_val(info.domain.ctx(), info.begin[i] + info.extent[i] - 1).release());
    }
    return isl::manage(box).is_subset(info.domain);
  }

  const Analysis& analysis_;
  Unit unit_;
  const UnitPlan& plan_;
  const UnitOptions& options_;
  std::vector<poly::Promotion>& promotions_;
};

}  // namespace

Tree unit_tree(const Analysis& analysis, const Unit& unit, const UnitPlan& plan, int depth, const UnitOptions& options,
               std::vector<poly::Promotion>& promotions) {
  return UnitBuilder(analysis, unit, plan, options, promotions).build(depth);
}

}  // namespace tc::cpu
