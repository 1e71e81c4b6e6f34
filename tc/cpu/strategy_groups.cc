#include "tc/cpu/strategy_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::cpu {

namespace {

/// Operands of contractions that a group may reread in every iteration of its shared loops.
constexpr double kSharedOperandBytes = 1 << 20;

/// Makes the dimension cover a statement's index too.
void cover(Dim& dim, const StatementInfo& info, int position) {
  int64_t begin = info.begin[static_cast<size_t>(position)];
  int64_t end = begin + info.extent[static_cast<size_t>(position)];
  if (!dim.position.empty()) {
    end = std::max(end, dim.begin + dim.extent);
    begin = std::min(begin, dim.begin);
  }
  dim.begin = begin;
  dim.extent = end - begin;
  dim.rest = dim.extent;
  dim.position[info.id()] = position;
}

Unit unit_of(const Analysis& analysis, int number) {
  const StatementInfo& info = analysis.statements[static_cast<size_t>(number)];
  Unit unit;
  unit.statements = {number};
  for (size_t i = 0; i < info.parallel.size(); ++i) {
    if (!info.parallel[i]) continue;
    Dim dim;
    cover(dim, info, static_cast<int>(i));
    unit.dims.push_back(dim);
  }
  return unit;
}

/// The index of statement b at which it agrees with every dependence from the statements of `from` along a dimension.
std::optional<int> matching_index(const Analysis& analysis, const std::vector<int>& from, const Dim& dim, int b,
                                  const std::vector<bool>& taken) {
  const StatementInfo& info = analysis.statements[static_cast<size_t>(b)];
  for (size_t j = 0; j < info.parallel.size(); ++j) {
    if (!info.parallel[j] || taken[j]) continue;
    bool agrees = std::all_of(from.begin(), from.end(), [&](int a) {
      if (!analysis.depends(a, b)) return true;
      int i = dim.position.at(analysis.statements[static_cast<size_t>(a)].id());
      return analysis.equal_along(a, i, b, static_cast<int>(j));
    });
    if (agrees) return static_cast<int>(j);
  }
  return std::nullopt;
}

/// For each dimension, the index of statement b that goes with it; -1 for none.
std::vector<int> match(const Analysis& analysis, const std::vector<int>& from, const std::vector<Dim>& dims, int b) {
  std::vector<bool> taken(analysis.statements[static_cast<size_t>(b)].parallel.size(), false);
  std::vector<int> result;
  for (const Dim& dim : dims) {
    std::optional<int> index = matching_index(analysis, from, dim, b, taken);
    if (index) taken[static_cast<size_t>(*index)] = true;
    result.push_back(index.value_or(-1));
  }
  return result;
}

bool depends_on_any(const Analysis& analysis, const std::vector<int>& from, int b) {
  return std::any_of(from.begin(), from.end(), [&](int a) { return analysis.depends(a, b); });
}

/// Adds statement b to the unit if all its parallel indices correspond to the unit's dimensions.
bool join_unit(const Analysis& analysis, Unit& unit, int b) {
  const StatementInfo& info = analysis.statements[static_cast<size_t>(b)];
  if (info.statement->kind == poly::Statement::Kind::kInit) return false;
  bool unit_reduces = std::any_of(unit.statements.begin(), unit.statements.end(),
                                  [&](int a) { return analysis.statements[static_cast<size_t>(a)].reduces(); });
  if (info.reduces() && (unit_reduces || unit.statements.size() > 1)) return false;
  if (!depends_on_any(analysis, unit.statements, b)) return false;
  auto parallel = static_cast<size_t>(std::count(info.parallel.begin(), info.parallel.end(), true));
  if (parallel != unit.dims.size()) return false;
  std::vector<int> indices = match(analysis, unit.statements, unit.dims, b);
  if (std::count(indices.begin(), indices.end(), -1) > 0) return false;
  unit.statements.push_back(b);
  for (size_t d = 0; d < indices.size(); ++d) cover(unit.dims[d], info, indices[d]);
  return true;
}

std::vector<int> statements_of(const Group& group) {
  std::vector<int> result;
  for (const Unit& unit : group.units) {
    result.insert(result.end(), unit.statements.begin(), unit.statements.end());
  }
  return result;
}

double iterations(const std::vector<Dim>& dims) {
  double result = 1;
  for (const Dim& dim : dims) result *= static_cast<double>(dim.extent);
  return result;
}

/// True if the unit writes consecutive elements along a dimension.
bool writes_along(const Analysis& analysis, const Unit& unit, const Dim& dim) {
  for (int s : unit.statements) {
    const StatementInfo& info = analysis.statements[static_cast<size_t>(s)];
    const std::string& index = info.statement->indices[static_cast<size_t>(dim.position.at(info.id()))];
    for (const Reference& reference : info.references) {
      if (!reference.is_write) continue;
      if (memory_step(*analysis.scop->program, analysis.layouts, reference, index) == 1) return true;
    }
  }
  return false;
}

/// Bytes that the unit's reductions read again in every iteration of the shared dimensions.
double reread_bytes(const Analysis& analysis, const Unit& unit, const std::vector<Dim>& shared) {
  double bytes = 0;
  for (int s : unit.statements) {
    const StatementInfo& info = analysis.statements[static_cast<size_t>(s)];
    for (const Reference& reference : info.references) {
      bool rereads = !reference.is_write && std::none_of(shared.begin(), shared.end(), [&](const Dim& dim) {
        auto position = dim.position.find(info.id());
        return position != dim.position.end() &&
               reference.depends_on(info.statement->indices[static_cast<size_t>(position->second)]);
      });
      if (!rereads) continue;
      const ir::Tensor& tensor = analysis.scop->program->tensor(reference.tensor);
      double elements = 1;
      for (int64_t e : constant_extents(tensor)) elements *= static_cast<double>(e);
      bytes += elements * tensor.type.bytes();
    }
  }
  return bytes;
}

const std::string& index_of(const StatementInfo& info, const Dim& dim) {
  return info.statement->indices[static_cast<size_t>(dim.position.at(info.id()))];
}

/// Bytes of a tensor for one point of the dimensions on which both references depend.
double bytes_for_both(const Analysis& analysis, const StatementInfo& info, const Unit& unit, const Reference& one,
                      const Reference& other) {
  const ir::Tensor& tensor = analysis.scop->program->tensor(one.tensor);
  double bytes = tensor.type.bytes();
  for (int64_t e : constant_extents(tensor)) bytes *= static_cast<double>(e);
  for (const Dim& dim : unit.dims) {
    const std::string& index = index_of(info, dim);
    if (one.depends_on(index) && other.depends_on(index)) bytes /= static_cast<double>(dim.extent);
  }
  return bytes;
}

/// True for a contraction with large operands whose rows and columns are both among the shared dimensions: within one
/// iteration of those, neither operand can be packed.
bool loses_packing(const Analysis& analysis, const Unit& unit, const std::vector<Dim>& shared) {
  for (int s : unit.statements) {
    const StatementInfo& info = analysis.statements[static_cast<size_t>(s)];
    if (!info.reduces()) continue;
    auto reads_along_one = [&](const Reference& one, const Reference& other) {
      return !one.is_write && !other.is_write && std::any_of(shared.begin(), shared.end(), [&](const Dim& dim) {
        return dim.position.count(info.id()) > 0 && one.depends_on(index_of(info, dim)) &&
               !other.depends_on(index_of(info, dim));
      });
    };
    for (const Reference& a : info.references) {
      for (const Reference& b : info.references) {
        if (!reads_along_one(a, b) || !reads_along_one(b, a)) continue;
        double bytes = std::min(bytes_for_both(analysis, info, unit, a, b), bytes_for_both(analysis, info, unit, b, a));
        if (bytes >= kSharedOperandBytes) return true;
      }
    }
  }
  return false;
}

/// The dimensions that the group and the unit can share.
std::vector<Dim> shared_dims(const Analysis& analysis, const Group& group, const Unit& unit) {
  std::vector<int> from = statements_of(group);
  std::vector<Dim> result;
  for (const Dim& dim : group.shared) {
    for (const Dim& own : unit.dims) {
      bool agrees = std::all_of(unit.statements.begin(), unit.statements.end(), [&](int b) {
        const StatementInfo& info = analysis.statements[static_cast<size_t>(b)];
        int j = own.position.at(info.id());
        for (const Dim& taken : result) {
          auto found = taken.position.find(info.id());
          if (found != taken.position.end() && found->second == j) return false;
        }
        return std::all_of(from.begin(), from.end(), [&](int a) {
          if (!analysis.depends(a, b)) return true;
          int i = dim.position.at(analysis.statements[static_cast<size_t>(a)].id());
          return analysis.equal_along(a, i, b, j);
        });
      });
      if (!agrees) continue;
      Dim both = dim;
      for (int b : unit.statements) {
        const StatementInfo& info = analysis.statements[static_cast<size_t>(b)];
        cover(both, info, own.position.at(info.id()));
      }
      result.push_back(both);
      break;
    }
  }
  return result;
}

/// Why sharing the dimensions would cost more than it gains; nothing if it does not.
std::optional<std::string> cost_of_sharing(const Analysis& analysis, const Group& group, const Unit& unit,
                                           const std::vector<Dim>& shared, const GroupOptions& options) {
  double wanted = std::min({iterations(group.shared), iterations(unit.dims), 4.0 * options.threads});
  if (iterations(shared) < wanted) {
    return fmt::format("the loops that it could share have {:.0f} iterations, too few for {} threads",
                       iterations(shared), options.threads);
  }
  // Sharing what is contiguous in memory, but not all, would leave strided inner loops.
  auto keeps_runs = [&](const Unit& u) {
    if (shared.size() == u.dims.size()) return true;
    return std::none_of(shared.begin(), shared.end(), [&](const Dim& dim) {
      return dim.position.count(analysis.statements[static_cast<size_t>(u.statements[0])].id()) > 0 &&
             u.dims.size() > 1 && writes_along(analysis, u, dim);
    });
  };
  if (!keeps_runs(unit) || !std::all_of(group.units.begin(), group.units.end(), keeps_runs)) {
    return "inside of the loops that it could share, elements would no longer be neighbours in memory";
  }
  auto packs = [&](const Unit& u) { return !loses_packing(analysis, u, shared); };
  if (!packs(unit) || !std::all_of(group.units.begin(), group.units.end(), packs)) {
    return "operands of a product could no longer be packed";
  }
  double bytes = reread_bytes(analysis, unit, shared);
  for (const Unit& other : group.units) bytes += reread_bytes(analysis, other, shared);
  if (bytes <= kSharedOperandBytes) return std::nullopt;
  return fmt::format("each iteration of the loops that it could share would read {:.3g} MB again, more than {:.3g} MB",
                     bytes / 1e6, kSharedOperandBytes / 1e6);
}

/// Adds the unit to the group if that is legal and the shared loops are still worth having; else why not.
std::optional<std::string> join_group(const Analysis& analysis, Group& group, const Unit& unit,
                                      const GroupOptions& options) {
  if (!options.fuse_units) return "the fusion strategy MIN merges no statements";
  std::vector<int> from = statements_of(group);
  bool related = std::any_of(unit.statements.begin(), unit.statements.end(),
                             [&](int b) { return depends_on_any(analysis, from, b); });
  if (!related) return "it uses no value that the statements before it make";
  std::vector<Dim> shared = shared_dims(analysis, group, unit);
  if (shared.empty()) return "it uses values in other iterations than those that make them";
  if (options.weigh) {
    if (std::optional<std::string> cost = cost_of_sharing(analysis, group, unit, shared, options)) return cost;
  }
  group.shared = std::move(shared);
  group.units.push_back(unit);
  return std::nullopt;
}

/// Sets every remainder to the whole index.
void start_remainders(const Analysis& analysis, Dim& dim) {
  dim.rest = dim.extent;
  for (const StatementInfo& info : analysis.statements) {
    auto position = dim.position.find(info.id());
    if (position == dim.position.end()) continue;
    isl::space space = info.domain.space();
    isl::aff index = poly::variable(space, position->second);
    dim.remainder[info.id()] = index.sub(poly::constant(space, dim.begin));
  }
}

struct Grouping {
  std::vector<Group> groups;
  std::vector<Refusal> refusals;
};

Grouping grouping_of(const Analysis& analysis, const GroupOptions& options) {
  std::vector<Unit> units;
  for (int s = 0; s < static_cast<int>(analysis.statements.size()); ++s) {
    if (options.fuse_statements && !units.empty() && join_unit(analysis, units.back(), s)) continue;
    units.push_back(unit_of(analysis, s));
  }
  Grouping result;
  std::vector<Group>& groups = result.groups;
  for (const Unit& unit : units) {
    if (!groups.empty()) {
      std::optional<std::string> refused = join_group(analysis, groups.back(), unit, options);
      if (!refused) continue;
      result.refusals.push_back({groups.size(), *std::move(refused)});
    }
    groups.push_back({{unit}, unit.dims});
  }
  for (Group& group : groups) {
    for (Dim& dim : group.shared) start_remainders(analysis, dim);
    for (Unit& unit : group.units) {
      for (Dim& dim : unit.dims) start_remainders(analysis, dim);
    }
  }
  return result;
}

}  // namespace

std::vector<Group> make_groups(const Analysis& analysis, const GroupOptions& options) {
  return grouping_of(analysis, options).groups;
}

std::vector<Refusal> why_apart(const Analysis& analysis, const GroupOptions& options) {
  return grouping_of(analysis, options).refusals;
}

}  // namespace tc::cpu
