#include "tc/gpu/rewrite/flatten_dims.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/layouts.h"
#include "tc/ir/names.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// The dimension, with the one after it, of a tensor that is to go.
using Site = std::pair<std::string, size_t>;

/// Two indices that become one.
struct Pair {
  std::string outer, inner;
  bool operator==(const Pair&) const = default;
};

/// The accesses of a statement, and how often its values name each variable outside of them.
struct Uses {
  std::vector<std::pair<std::string, std::vector<Expr>>> accesses;
  std::map<std::string, int> variables;  ///< all occurrences
};

class UseFinder : public hi::IRVisitor {
 public:
  UseFinder(const ir::Program& program, Uses& uses) : program_(program), uses_(uses) {}

 private:
  using IRVisitor::visit;
  void visit(const hi::Call* op) override {
    if (ir::is_tensor_read(program_, op)) uses_.accesses.emplace_back(op->name, op->args);
    IRVisitor::visit(op);
  }
  void visit(const hi::Variable* op) override { ++uses_.variables[op->name]; }
  const ir::Program& program_;
  Uses& uses_;
};

Uses uses_of(const ir::Program& program, const ir::Statement& statement) {
  Uses uses;
  UseFinder finder(program, uses);
  uses.accesses.emplace_back(statement.tensor, statement.subscripts);
  for (const Expr& e : statement.subscripts) e.accept(&finder);
  statement.value.accept(&finder);
  if (statement.guard.defined()) statement.guard.accept(&finder);
  return uses;
}

/// The index that an expression is, if it runs over [0, extent).
const ir::Index* whole_index(const ir::Statement& statement, const Expr& e, int64_t extent) {
  const auto* variable = e.as<hi::Variable>();
  if (variable == nullptr) return nullptr;
  for (const ir::Index& index : statement.indices) {
    if (index.name != variable->name) continue;
    const bool whole = hi::is_const_zero(index.begin) && *ir::constant_int(index.end) == extent;
    return whole ? &index : nullptr;
  }
  return nullptr;
}

/// What merging one site brings with it: other sites, and the indices of each statement.
struct Merge {
  std::set<Site> sites;
  std::vector<std::vector<Pair>> pairs;  ///< per statement
};

class Merger {
 public:
  explicit Merger(const ir::Program& program) : program_(program) {
    for (const ir::Statement& s : program.statements) uses_.push_back(uses_of(program, s));
  }

  /// Nothing if some statement uses one of the indices in another way.
  std::optional<Merge> merge_at(const Site& first) {
    Merge merge;
    merge.pairs.resize(program_.statements.size());
    std::vector<Site> open = {first};
    while (!open.empty()) {
      const Site site = open.back();
      open.pop_back();
      if (!merge.sites.insert(site).second) continue;
      for (size_t s = 0; s < program_.statements.size(); ++s) {
        if (!add(merge, s, site, open)) return std::nullopt;
      }
    }
    for (size_t s = 0; s < program_.statements.size(); ++s) {
      for (const Pair& pair : merge.pairs[s]) {
        if (!only_together(merge, s, pair)) return std::nullopt;
      }
    }
    return merge;
  }

 private:
  /// The pair of one access at a site.
  std::optional<Pair> pair_at(size_t s, const std::vector<Expr>& subscripts, const Site& site) const {
    const ir::Shape shape = ir::constant_shape(program_.tensor(site.first));
    const std::vector<int64_t> strides = ir::strides_of(program_.tensor(site.first));
    if (strides[site.second] != shape[site.second + 1] * strides[site.second + 1]) return std::nullopt;
    const ir::Statement& statement = program_.statements[s];
    const ir::Index* outer = whole_index(statement, subscripts[site.second], shape[site.second]);
    const ir::Index* inner = whole_index(statement, subscripts[site.second + 1], shape[site.second + 1]);
    if (outer == nullptr || inner == nullptr || outer == inner || outer->is_reduction != inner->is_reduction) {
      return std::nullopt;
    }
    return Pair{outer->name, inner->name};
  }

  /// Takes in a statement's accesses at the site, and all other places of their indices.
  bool add(Merge& merge, size_t s, const Site& site, std::vector<Site>& open) const {
    for (const auto& [tensor, subscripts] : uses_[s].accesses) {
      if (tensor != site.first) continue;
      const std::optional<Pair> pair = pair_at(s, subscripts, site);
      if (!pair) return false;
      if (std::count(merge.pairs[s].begin(), merge.pairs[s].end(), *pair) > 0) continue;
      merge.pairs[s].push_back(*pair);
      for (const auto& [other, at] : uses_[s].accesses) {
        for (size_t d = 0; d + 1 < at.size(); ++d) {
          if (is(at[d], pair->outer) && is(at[d + 1], pair->inner)) open.push_back({other, d});
        }
      }
    }
    return true;
  }

  static bool is(const Expr& e, const std::string& name) {
    const auto* variable = e.as<hi::Variable>();
    return variable != nullptr && variable->name == name;
  }

  /// Whether each occurrence of the two indices is at a site of the merge, side by side.
  bool only_together(const Merge& merge, size_t s, const Pair& pair) const {
    int together = 0;
    for (const auto& [tensor, at] : uses_[s].accesses) {
      for (size_t d = 0; d + 1 < at.size(); ++d) {
        together += merge.sites.count({tensor, d}) > 0 && is(at[d], pair.outer) && is(at[d + 1], pair.inner);
      }
    }
    const auto count = [&](const std::string& name) {
      const auto found = uses_[s].variables.find(name);
      return found == uses_[s].variables.end() ? 0 : found->second;
    };
    return count(pair.outer) == together && count(pair.inner) == together;
  }

  const ir::Program& program_;
  std::vector<Uses> uses_;
};

/// Rewrites one statement's accesses.
class Rewriter : public hi::IRMutator {
 public:
  Rewriter(const Merge& merge, std::map<std::string, std::string> names) : merge_(merge), names_(std::move(names)) {}

  std::vector<Expr> subscripts(const std::string& tensor, const std::vector<Expr>& old) {
    std::vector<Expr> result;
    for (size_t d = 0; d < old.size(); ++d) {
      if (merge_.sites.count({tensor, d}) == 0) {
        result.push_back(mutate(old[d]));
        continue;
      }
      const auto* variable = old[d].as<hi::Variable>();
      result.push_back(hi::Variable::make(ir::index_type(), names_.at(variable->name)));
      ++d;
    }
    return result;
  }

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* op) override {
    if (std::none_of(merge_.sites.begin(), merge_.sites.end(),
                     [&](const Site& site) { return site.first == op->name; })) {
      return IRMutator::visit(op);
    }
    return hi::Call::make(op->type, op->name, subscripts(op->name, op->args), op->call_type);
  }

  const Merge& merge_;
  std::map<std::string, std::string> names_;  ///< of the new index, by the outer one
};

ir::Statement rewritten(ir::Statement s, const Merge& merge, const std::vector<Pair>& pairs, ir::Names& names) {
  if (pairs.empty()) return s;
  std::map<std::string, std::string> new_names;
  for (const Pair& pair : pairs) {
    new_names[pair.outer] = names.fresh(pair.outer + "_" + pair.inner);
    const auto named = [&](const std::string& name) {
      return std::find_if(s.indices.begin(), s.indices.end(), [&](const ir::Index& i) { return i.name == name; });
    };
    const auto inner = named(pair.inner), outer = named(pair.outer);
    outer->name = new_names[pair.outer];
    outer->end = hi::simplify(outer->end * inner->end);
    s.indices.erase(inner);
  }
  Rewriter rewriter(merge, new_names);
  s.subscripts = rewriter.subscripts(s.tensor, s.subscripts);
  s.value = rewriter.mutate(s.value);
  if (s.guard.defined()) s.guard = rewriter.mutate(s.guard);
  s.accesses.clear();
  return s;
}

ir::Program applied(ir::Program program, const Merge& merge) {
  ir::Names names(program);
  for (const ir::Statement& s : program.statements) {
    for (const ir::Index& i : s.indices) names.add(i.name);
  }
  for (size_t s = 0; s < program.statements.size(); ++s) {
    program.statements[s] = rewritten(std::move(program.statements[s]), merge, merge.pairs[s], names);
  }
  for (ir::Tensor& tensor : program.tensors) {
    std::vector<Expr> extents;
    std::vector<int64_t> strides;
    for (size_t d = 0; d < tensor.extents.size(); ++d) {
      const bool merged = merge.sites.count({tensor.name, d}) > 0;
      extents.push_back(merged ? hi::simplify(tensor.extents[d] * tensor.extents[d + 1]) : tensor.extents[d]);
      if (merged) ++d;
      if (!tensor.strides.empty()) strides.push_back(tensor.strides[d]);
    }
    tensor.extents = std::move(extents);
    tensor.strides = std::move(strides);
  }
  return program;
}

/// Whether a tensor has two sites that overlap.
bool overlaps(const std::set<Site>& sites) {
  return std::any_of(sites.begin(), sites.end(), [&](const Site& site) {
    return sites.count({site.first, site.second + 1}) > 0;
  });
}

std::optional<Merge> first_merge(const ir::Program& program) {
  Merger merger(program);
  for (const ir::Tensor& tensor : program.tensors) {
    for (size_t d = 0; d + 1 < tensor.extents.size(); ++d) {
      std::optional<Merge> merge = merger.merge_at({tensor.name, d});
      const bool used = merge && std::any_of(merge->pairs.begin(), merge->pairs.end(),
                                             [](const std::vector<Pair>& pairs) { return !pairs.empty(); });
      if (used && !overlaps(merge->sites)) return merge;
    }
  }
  return std::nullopt;
}

/// Dimensions of one element that every access subscripts by 0, but for a tensor's only one. The last one of a strided
/// tensor says that neighbours along the others lie apart.
std::set<Site> unit_dims(const ir::Program& program) {
  std::set<Site> units;
  for (const ir::Tensor& tensor : program.tensors) {
    const ir::Shape shape = ir::constant_shape(tensor);
    size_t kept = shape.size();
    for (size_t d = 0; d < shape.size() && kept > 1; ++d) {
      if (!tensor.strides.empty() && d + 1 == shape.size()) continue;
      if (shape[d] == 1 && units.insert({tensor.name, d}).second) --kept;
    }
  }
  for (const ir::Statement& s : program.statements) {
    for (const auto& [tensor, at] : uses_of(program, s).accesses) {
      for (size_t d = 0; d < at.size(); ++d) {
        if (!hi::is_const_zero(at[d])) units.erase({tensor, d});
      }
    }
  }
  return units;
}

ir::Program without_units(ir::Program program) {
  const std::set<Site> units = unit_dims(program);
  if (units.empty()) return program;
  program = with_subscripts(std::move(program), [&](const std::string& tensor, const std::vector<Expr>& old) {
    std::vector<Expr> kept;
    for (size_t d = 0; d < old.size(); ++d) {
      if (units.count({tensor, d}) == 0) kept.push_back(old[d]);
    }
    return kept;
  });
  for (ir::Tensor& tensor : program.tensors) {
    std::vector<Expr> extents;
    std::vector<int64_t> strides;
    for (size_t d = 0; d < tensor.extents.size(); ++d) {
      if (units.count({tensor.name, d}) > 0) continue;
      extents.push_back(tensor.extents[d]);
      if (!tensor.strides.empty()) strides.push_back(tensor.strides[d]);
    }
    tensor.extents = std::move(extents);
    tensor.strides = std::move(strides);
  }
  return program;
}

}  // namespace

ir::Program flatten_dims(ir::Program program) {
  program = without_units(std::move(program));
  while (const std::optional<Merge> merge = first_merge(program)) program = applied(std::move(program), *merge);
  return program;
}

}  // namespace tc::gpu
