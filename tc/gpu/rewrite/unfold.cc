#include "tc/gpu/rewrite/unfold.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tc/gpu/rewrite/operand_order.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/guarded_read.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/names.h"
#include "tc/ir/reads.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

const ir::Index* find_index(const ir::Statement& statement, const std::string& name) {
  const auto is_it = [&](const ir::Index& index) { return index.name == name; };
  const auto found = std::find_if(statement.indices.begin(), statement.indices.end(), is_it);
  return found == statement.indices.end() ? nullptr : &*found;
}

/// The values that a linear form takes.
ir::Range values_of(const ir::Statement& statement, const ir::LinearForm& form) {
  int64_t least = form.constant, greatest = form.constant;
  for (const auto& [name, by] : form.coefficients) {
    const ir::Index& index = *find_index(statement, name);
    const int64_t first = by * begin_of(index), last = by * (begin_of(index) + extent_of(index) - 1);
    least += std::min(first, last);
    greatest += std::max(first, last);
  }
  return {least, greatest - least + 1};
}

Expr expr_of(const ir::LinearForm& form, const ir::Substitution& values) {
  Expr result = index_constant(form.constant);
  for (const auto& [name, by] : form.coefficients) result = result + values.at(name) * index_constant(by);
  return hi::simplify(result);
}

/// A read of a product, with its guard: a node of the value, which the copy's read takes the place of.
struct Site {
  const hi::Call* node = nullptr;
  const hi::Call* read = nullptr;
  std::vector<ir::Inside> inside;  ///< per dimension; empty: there is no guard
  std::vector<ir::LinearForm> subscripts;
};

/// The reads of a value; nothing where one is not of linear forms of the statement's indices, or under a guard that
/// says something else than where the tensor ends.
std::optional<std::vector<Site>> sites_of(const ir::Program& program, const ir::Statement& statement) {
  class Finder : public hi::IRVisitor {
   public:
    explicit Finder(const ir::Program& program) : program_(program) {}
    std::vector<Site> sites;
    bool sound = true;

   private:
    using IRVisitor::visit;
    void visit(const hi::Call* op) override {
      if (op->is_intrinsic(hi::Call::if_then_else)) {
        const std::optional<ir::GuardedRead> guarded = ir::guarded_read(program_, op);
        if (!guarded || !hi::is_const_zero(hi::simplify(guarded->otherwise))) {
          sound = false;
          return;
        }
        sites.push_back({op, guarded->read, guarded->inside, {}});
      } else if (ir::is_tensor_read(program_, op)) {
        sites.push_back({op, op, {}, {}});
      } else {
        IRVisitor::visit(op);
      }
    }
    void visit(const hi::Select*) override { sound = false; }
    const ir::Program& program_;
  } finder(program);
  statement.value.accept(&finder);
  if (!finder.sound || finder.sites.size() != 2) return std::nullopt;
  for (Site& site : finder.sites) {
    for (const Expr& e : site.read->args) {
      std::optional<ir::LinearForm> form = ir::linear_form(e);
      if (!form) return std::nullopt;
      const bool known = std::all_of(form->coefficients.begin(), form->coefficients.end(),
                                     [&](const auto& term) { return find_index(statement, term.first) != nullptr; });
      if (!known) return std::nullopt;
      site.subscripts.push_back(*std::move(form));
    }
  }
  return std::move(finder.sites);
}

/// Makes the copies of one statement.
class Unfolder {
 public:
  Unfolder(const ir::Program& program, const ir::Statement& statement, const Unfolding& unfolding)
      : statement_(statement), unfolding_(unfolding), names_(ir::Names::among_statements(program)) {
    for (const std::string& name : unfolding.indices) unfolded_.insert(name);
    along_ = names_.fresh("j");
  }

  std::optional<Unfolded> run(const std::vector<Site>& sites) {
    Unfolded result{.product = statement_};
    std::map<const hi::Call*, Expr> instead;
    for (const Site& site : sites) {
      if (!uses_all(site)) return std::nullopt;
      Expr read = copy(site, result);
      if (site.node->type != read.type()) read = hi::Cast::make(site.node->type, read);
      instead[site.node] = read;
    }
    result.product.value = replaced(statement_.value, instead);
    result.product.accesses.clear();
    std::erase_if(result.product.indices, [&](const ir::Index& index) { return unfolded_.count(index.name) > 0; });
    result.product.indices.push_back(make_index(along_, unfolding_.row, true));
    const auto uses = [&](const Expr& e) {
      return e.defined() && std::any_of(unfolded_.begin(), unfolded_.end(),
                                        [&](const std::string& name) { return hi::expr_uses_var(e, name); });
    };
    if (uses(result.product.value) || uses(statement_.guard)) return std::nullopt;
    return result;
  }

 private:
  bool is_unfolded(const ir::LinearForm& form) const {
    return std::any_of(form.coefficients.begin(), form.coefficients.end(),
                       [&](const auto& term) { return unfolded_.count(term.first) > 0; });
  }

  bool uses_all(const Site& site) const {
    return std::all_of(unfolded_.begin(), unfolded_.end(), [&](const std::string& name) {
      return std::any_of(site.subscripts.begin(), site.subscripts.end(),
                         [&](const ir::LinearForm& form) { return form.coefficients.count(name) > 0; });
    });
  }

  static Expr replaced(const Expr& value, const std::map<const hi::Call*, Expr>& instead) {
    class Mutator : public hi::IRMutator {
     public:
      explicit Mutator(const std::map<const hi::Call*, Expr>& instead) : instead_(instead) {}

     private:
      using IRMutator::visit;
      Expr visit(const hi::Call* op) override {
        const auto found = instead_.find(op);
        return found == instead_.end() ? IRMutator::visit(op) : found->second;
      }
      const std::map<const hi::Call*, Expr>& instead_;
    } mutator(instead);
    return mutator.mutate(value);
  }

  /// What the unfolded indices are at a value of the new one.
  void add_digits(ir::Substitution& values) const {
    int64_t stride = 1;
    for (auto name = unfolding_.indices.rbegin(); name != unfolding_.indices.rend(); ++name) {
      const ir::Index& index = *find_index(statement_, *name);
      Expr digit = index_variable(along_);
      if (stride > 1) digit = digit / index_constant(stride);
      if (std::next(name) != unfolding_.indices.rend()) digit = digit % index_constant(extent_of(index));
      values[*name] = hi::simplify(digit + index_constant(begin_of(index)));
      stride *= extent_of(index);
    }
  }

  int64_t unfolded_values() const {
    int64_t result = 1;
    for (const std::string& name : unfolding_.indices) result *= extent_of(*find_index(statement_, name));
    return result;
  }

  /// Adds the copy of an operand; returns the product's read of it.
  Expr copy(const Site& site, Unfolded& result) {
    ir::Statement copy;
    std::vector<Expr> at;       // of the product's read
    ir::Substitution values;    // of the product's indices, in the copy
    std::map<size_t, Expr> of;  // dimensions of the tensor that are dimensions of the copy
    const auto add = [&](const std::string& wish, int64_t extent) {
      const auto taken = [&](const ir::Index& index) { return index.name == wish; };
      const bool is_free = std::none_of(copy.indices.begin(), copy.indices.end(), taken);
      copy.indices.push_back(make_index(is_free ? wish : names_.fresh(wish), extent, false));
      return index_variable(copy.indices.back().name);
    };
    for (size_t d = 0; d < site.subscripts.size(); ++d) {
      const ir::LinearForm& form = site.subscripts[d];
      if (!is_unfolded(form)) {
        const ir::Range range = values_of(statement_, form);
        const bool single = form.coefficients.size() == 1;
        of[d] = hi::simplify(add(single ? form.coefficients.begin()->first : names_.fresh("d"), range.extent) +
                             index_constant(range.begin));
        at.push_back(hi::simplify(site.read->args[d] - index_constant(range.begin)));
        continue;
      }
      for (const auto& [name, by] : form.coefficients) {
        if (unfolded_.count(name) > 0 || values.count(name) > 0) continue;
        const ir::Index& index = *find_index(statement_, name);
        values[name] = hi::simplify(add(name, extent_of(index)) + index_constant(begin_of(index)));
        at.push_back(hi::simplify(index_variable(name) - index_constant(begin_of(index))));
      }
    }
    copy.indices.push_back(make_index(along_, unfolding_.row, false));
    at.push_back(index_variable(along_));
    add_digits(values);
    std::vector<Expr> from;
    Expr is_there;
    if (unfolded_values() < unfolding_.row) is_there = index_variable(along_) < index_constant(unfolded_values());
    for (size_t d = 0; d < site.subscripts.size(); ++d) {
      from.push_back(of.count(d) > 0 ? of.at(d) : expr_of(site.subscripts[d], values));
      if (site.inside.empty()) continue;
      const ir::Inside& inside = site.inside[d];
      if (inside.least) is_there = ir::conjunction(is_there, from[d] >= index_constant(*inside.least));
      if (inside.greatest) is_there = ir::conjunction(is_there, from[d] <= index_constant(*inside.greatest));
    }
    for (const ir::Index& index : copy.indices) copy.subscripts.push_back(index_variable(index.name));
    const Halide::Type type = site.read->type;
    copy.id = operand_copy_id(statement_.id, names_);
    copy.tensor = names_.fresh(site.read->name + "_copy");
    copy.value = hi::Call::make(type, site.read->name, from, site.read->call_type);
    if (is_there.defined()) {
      copy.value = hi::Call::make(type, hi::Call::if_then_else, {is_there, copy.value, ir::zero_of(type)},
                                  hi::Call::PureIntrinsic);
    }
    copy.accumulator = type;
    copy.range = statement_.range;
    result.tensors.push_back(temporary_over(copy.tensor, type, copy.indices));
    const std::string name = copy.tensor;
    result.copies.push_back(std::move(copy));
    return hi::Call::make(type, name, at, site.read->call_type);
  }

  const ir::Statement& statement_;
  const Unfolding& unfolding_;
  ir::Names names_;
  std::set<std::string> unfolded_;
  std::string along_;  ///< the new index
};

}  // namespace

std::optional<Unfolded> unfold(const ir::Program& program, const ir::Statement& statement, const Unfolding& unfolding) {
  if (statement.assign != ir::Assign::kAdd) return std::nullopt;
  const auto sums_over = [&](const std::string& name) {
    const ir::Index* index = find_index(statement, name);
    return index != nullptr && index->is_reduction;
  };
  if (!std::all_of(unfolding.indices.begin(), unfolding.indices.end(), sums_over)) return std::nullopt;
  const std::optional<std::vector<Site>> sites = sites_of(program, statement);
  return sites ? Unfolder(program, statement, unfolding).run(*sites) : std::nullopt;
}

ir::Program unfold_products(ir::Program program, const ChooseUnfolding& choose) {
  size_t first = 0;  // behind the copies of inputs
  for (size_t s = 0; s < program.statements.size(); ++s) {
    const std::optional<Unfolding> unfolding = choose(program, program.statements[s]);
    std::optional<Unfolded> unfolded = unfolding ? unfold(program, program.statements[s], *unfolding) : std::nullopt;
    if (!unfolded) continue;
    program.statements[s] = std::move(unfolded->product);
    for (size_t i = 0; i < unfolded->copies.size(); ++i) {
      const std::string source = ir::reads_in(program, unfolded->copies[i].value).at(0)->name;
      const bool is_written = std::any_of(program.statements.begin(), program.statements.end(),
                                          [&](const ir::Statement& other) { return other.tensor == source; });
      const size_t place = is_written ? place_of_copy(program, s, source) : first++;
      program.tensors.push_back(std::move(unfolded->tensors[i]));
      program.statements.insert(program.statements.begin() + static_cast<long>(place), std::move(unfolded->copies[i]));
      ++s;
    }
  }
  return program;
}

}  // namespace tc::gpu
