#include "tc/gpu/strategy/contraction/pooled.h"

#include <algorithm>
#include <map>
#include <set>

#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/affine_subscript.h"
#include "tc/gpu/strategy/contraction/points.h"
#include "tc/ir/reads.h"
#include "tc/ir/specialise.h"
#include "tc/poly/isl_ext.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kLongestRun = 8;

class Finder {
 public:
  Finder(const poly::Scop& scop, Contraction contraction)
      : scop_(scop), c_(std::move(contraction)), domains_(poly::statement_domains(scop)) {
    for (const Axis& axis : c_.parallel) names_.push_back(axis.name);
    for (const auto* statements : {&c_.before, &c_.after}) {
      for (const poly::Statement& s : *statements) elements_.try_emplace(s.tensor, s.subscripts);
    }
    elements_[c_.update.tensor] = c_.update.subscripts;
    for (const Contraction& product : c_.further)
      elements_.try_emplace(product.update.tensor, product.update.subscripts);
    for (size_t s = c_.first; s < c_.last; ++s) touch(scop.statements[s]);
  }

  Contraction run() {
    Contraction result = c_;
    for (size_t s = result.last; s < scop_.statements.size(); ++s) {
      const poly::Statement& statement = scop_.statements[s];
      // An identity is placed as the update that follows.
      const bool starts = statement.kind == poly::Statement::Kind::kInit && s + 1 < scop_.statements.size();
      if (!add(statement, starts ? scop_.statements[s + 1] : statement)) break;
      if (statement.kind == poly::Statement::Kind::kInit) continue;
      result.pooled = c_.pooled;
      result.run = c_.run;
      result.last = s + 1;
    }
    return result;
  }

 private:
  /// Which index of a statement is each axis; along the last one it counts runs.
  using Placement = std::vector<std::optional<size_t>>;

  void touch(const poly::Statement& s) {
    touched_.insert(s.tensor);
    for (const hi::Call* read : ir::reads_in(*scop_.program, s.value)) touched_.insert(read->name);
  }

  bool is_pooled(const std::string& tensor) const {
    return std::any_of(c_.pooled.begin(), c_.pooled.end(),
                       [&](const Pooled& p) { return p.statement.tensor == tensor; });
  }

  bool add(const poly::Statement& statement, const poly::Statement& placed_by) {
    const isl::set* domain = domain_of(domains_, statement.id);
    if (domain == nullptr || statement.guard.defined() || touched_.count(statement.tensor) > 0) return false;
    if (statement.accumulator != scop_.program->tensor(statement.tensor).type) return false;
    const std::optional<std::vector<Axis>> box = box_of(*domain, statement.indices);
    const std::optional<Placement> placement = box ? placement_of(placed_by) : std::nullopt;
    if (!placement || placed_by.subscripts.size() != statement.subscripts.size()) return false;
    std::optional<Pooled> pooled = over_axes(statement, *box, *placement);
    if (!pooled || !keeps_to_runs(statement, *pooled)) return false;
    c_.pooled.push_back(*std::move(pooled));
    return true;
  }

  /// Where the first read of the group's results places a statement; elsewhere, what it writes or reads of a pooled
  /// tensor.
  std::optional<Placement> placement_of(const poly::Statement& s) {
    for (const hi::Call* read : ir::reads_in(*scop_.program, s.value)) {
      const auto element = elements_.find(read->name);
      if (element == elements_.end()) continue;
      Placement result(c_.parallel.size());
      for (size_t d = 0; d < read->args.size(); ++d) {
        const std::optional<ShiftedIndex> axis = shifted(element->second[d], names_);
        const std::optional<LinearForm> form = linear(hi::simplify(read->args[d]), s.indices);
        if (!axis || !form) return std::nullopt;
        for (size_t i = 0; i < s.indices.size(); ++i) {
          if (form->coefficients[i] == 0 || (i < s.is_reduction.size() && s.is_reduction[i])) continue;
          const bool along = axis->index + 1 == c_.parallel.size();
          if (result[axis->index] || (!along && form->coefficients[i] != 1)) return std::nullopt;
          result[axis->index] = i;
          if (!along) continue;
          if (c_.run > 1 && form->coefficients[i] != c_.run) return std::nullopt;
          c_.run = form->coefficients[i];
        }
      }
      return result;
    }
    std::optional<Placement> result = placed_as_pooled(s, s.tensor, s.subscripts);
    for (const hi::Call* read : ir::reads_in(*scop_.program, s.value)) {
      if (!result) result = placed_as_pooled(s, read->name, read->args);
    }
    return result;
  }

  /// Where these subscripts, over the statement's indices, are of a pooled tensor.
  std::optional<Placement> placed_as_pooled(const poly::Statement& s, const std::string& tensor,
                                            const std::vector<Expr>& subscripts) const {
    for (const Pooled& p : c_.pooled) {
      if (p.statement.tensor != tensor) continue;
      Placement result(c_.parallel.size());
      for (size_t d = 0; d < subscripts.size(); ++d) {
        const auto axis = shifted(p.statement.subscripts[d], names_), own = shifted(subscripts[d], s.indices);
        if (!axis || !own || axis->constant != own->constant) return std::nullopt;
        result[axis->index] = own->index;
      }
      return result;
    }
    return std::nullopt;
  }

  /// The statement over the axes, if it has one instance (or a short reduction) for each run.
  std::optional<Pooled> over_axes(const poly::Statement& s, const std::vector<Axis>& box, const Placement& placement) {
    if (c_.run < 2 || c_.run > kLongestRun) return std::nullopt;
    ir::Substitution names;
    for (size_t a = 0; a < placement.size(); ++a) {
      if (!placement[a] || *placement[a] >= box.size()) return std::nullopt;
      const Axis &own = box[*placement[a]], &axis = c_.parallel[a];
      const bool along = a + 1 == placement.size();
      if (own.begin != (along ? 0 : axis.begin) || own.extent * (along ? c_.run : 1) != axis.extent)
        return std::nullopt;
      if (along && axis.begin != 0) return std::nullopt;
      if (!names.emplace(own.name, ir::index_variable(axis.name)).second) return std::nullopt;
    }
    Pooled result{s, {}};
    std::set<std::string> taken(names_.begin(), names_.end());
    for (size_t i = 0; i < box.size(); ++i) {
      if (names.count(box[i].name) > 0) continue;
      if (i >= s.is_reduction.size() || !s.is_reduction[i] || box[i].extent > kLongestRun) return std::nullopt;
      Axis reduced = box[i];
      while (!taken.insert(reduced.name).second) reduced.name += "_";
      names.emplace(box[i].name, ir::index_variable(reduced.name));
      result.reduction.push_back(std::move(reduced));
    }
    if (result.reduction.size() > 1) return std::nullopt;
    result.statement.value = ir::substitute_variables(s.value, names);
    for (Expr& subscript : result.statement.subscripts) {
      subscript = hi::simplify(ir::substitute_variables(subscript, names));
    }
    return result;
  }

  /// Whether a statement sets an element of its own for each run, and reads, of what the kernel writes, its own run.
  bool keeps_to_runs(const poly::Statement& own, const Pooled& pooled) const {
    const poly::Statement& s = pooled.statement;
    std::set<size_t> used;
    for (const Expr& subscript : s.subscripts) {
      const std::optional<ShiftedIndex> axis = shifted(subscript, names_);
      if (!axis || !used.insert(axis->index).second) return false;
    }
    if (used.size() != names_.size()) return false;
    const bool old = own.kind == poly::Statement::Kind::kUpdate || reads_tensor(own.value, own.tensor);
    if (old && !is_pooled(s.tensor)) return false;
    for (const Pooled& before : c_.pooled) {
      if (!is_pooled(s.tensor) && reads_tensor(before.statement.value, s.tensor)) return false;
      if (before.statement.tensor == s.tensor && !is_same(before.statement.subscripts, s.subscripts)) return false;
    }
    const auto reads = ir::reads_in(*scop_.program, s.value);
    return std::all_of(reads.begin(), reads.end(), [&](const hi::Call* read) {
      if (elements_.count(read->name) > 0) return is_in_run(*read, pooled);
      const auto written = std::find_if(c_.pooled.begin(), c_.pooled.end(),
                                        [&](const Pooled& p) { return p.statement.tensor == read->name; });
      if (written == c_.pooled.end()) return read->name != s.tensor && !is_operand(read->name);
      return is_same(written->statement.subscripts, read->args);
    });
  }

  /// Copies of operands may take dimensions of theirs for one.
  bool is_operand(const std::string& tensor) const {
    const auto has = [&](const Contraction& product) {
      return std::any_of(product.operands.begin(), product.operands.end(),
                         [&](const Operand& operand) { return operand.tensor == tensor; });
    };
    return has(c_) || std::any_of(c_.further.begin(), c_.further.end(), has);
  }

  static bool is_same(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Expr& x, const Expr& y) { return hi::equal(hi::simplify(x), hi::simplify(y)); });
  }

  /// Whether a read of the group's results is of the statement's own run.
  bool is_in_run(const hi::Call& read, const Pooled& pooled) const {
    std::vector<std::string> names = names_;
    for (const Axis& axis : pooled.reduction) names.push_back(axis.name);
    const std::vector<Expr>& element = elements_.at(read.name);
    for (size_t d = 0; d < read.args.size(); ++d) {
      const std::optional<ShiftedIndex> axis = shifted(element[d], names_);
      const std::optional<LinearForm> form = linear(hi::simplify(read.args[d]), names);
      if (!axis || !form) return false;
      const bool along = axis->index + 1 == names_.size();
      for (size_t i = 0; i < names_.size(); ++i) {
        if (form->coefficients[i] != (i != axis->index ? 0 : along ? c_.run : 1)) return false;
      }
      int64_t least = form->constant - axis->constant, greatest = least;
      for (size_t r = 0; r < pooled.reduction.size(); ++r) {
        const int64_t by = form->coefficients[names_.size() + r];
        if (by < 0) return false;
        least += by * pooled.reduction[r].begin;
        greatest += by * (pooled.reduction[r].begin + pooled.reduction[r].extent - 1);
      }
      if (least < 0 || greatest >= (along ? c_.run : 1)) return false;
    }
    return true;
  }

  const poly::Scop& scop_;
  Contraction c_;
  std::vector<isl::set> domains_;
  std::vector<std::string> names_;                     ///< of the axes
  std::map<std::string, std::vector<Expr>> elements_;  ///< per tensor that the group writes: that of a point
  std::set<std::string> touched_;                      ///< tensors of the group
};

}  // namespace

Contraction with_pooled(const poly::Scop& scop, Contraction contraction) {
  if (contraction.selection) return contraction;  // results of rows with other slices pass through the registers
  return Finder(scop, std::move(contraction)).run();
}

bool has_runs(const Contraction& contraction, const ContractionPlan& plan) {
  const size_t last = contraction.parallel.size() - 1;
  const AxisPlan& a = plan.parallel[last];
  return plan.order[0] == last && a.group % contraction.run == 0 && contraction.parallel[last].extent % a.group == 0 &&
         (a.blocks == 1 || a.tile % a.group == 0);
}

}  // namespace tc::gpu
