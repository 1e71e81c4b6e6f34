#include "tc/gpu/strategy/elements/together.h"

#include <algorithm>

#include "tc/gpu/mapping/row_access.h"
#include "tc/gpu/rewrite/exponential.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/reads.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

bool is_extreme(const poly::Statement& s) { return s.assign == ir::Assign::kMax || s.assign == ir::Assign::kMin; }

/// Replaces reads of a tensor by a variable, and what number_of_extreme() makes of them too.
class ReadsOfExtreme : public hi::IRMutator {
 public:
  explicit ReadsOfExtreme(const std::string& tensor) : tensor_(tensor) {}
  bool alone = false;  ///< some read is no number_of_extreme()

  Expr mutate(const Expr& e) override {
    const auto of_extreme = [&](const auto* bounded) {
      const auto* read = bounded == nullptr ? nullptr : bounded->a.template as<hi::Call>();
      return read != nullptr && read->name == tensor_ && is_number_of_extreme(e) ? read : nullptr;
    };
    const hi::Call* read = of_extreme(e.as<hi::Max>());
    if (read == nullptr) read = of_extreme(e.as<hi::Min>());
    return read == nullptr ? IRMutator::mutate(e) : hi::Variable::make(e.type(), kExtremeValue);
  }

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* op) override {
    if (op->name != tensor_) return IRMutator::visit(op);
    alone = true;
    return hi::Variable::make(op->type, kExtremeValue);
  }
  const std::string& tensor_;
};

class Finder {
 public:
  Finder(const FusedGroup& part, const std::set<std::string>& held)
      : part_(part), program_(*part.scop->program), held_(held) {}

  std::optional<Together> from(size_t first) {
    if (!is_reduction(part_.statements[first])) return std::nullopt;
    add(first, {});
    std::vector<size_t> pending;
    for (size_t next = first + 1; next < part_.statements.size(); ++next) {
      const GroupStatement& s = part_.statements[next];
      const bool is_new = written_.count(s.statement->tensor) == 0;
      if (read_.count(s.statement->tensor) > 0) break;  // as it is before
      if (s.statement->kind == poly::Statement::Kind::kInit && is_new && held_.count(s.statement->tensor) > 0) {
        pending.push_back(next);
        continue;
      }
      if (!is_new || !is_reduction(s) || !same_loops(s, *found_.reductions[0].statement)) break;
      const std::optional<ReducedTogether> reduction = beside_others(s, pending);
      if (!reduction) break;
      found_.starts.insert(found_.starts.end(), pending.begin(), pending.end());
      pending.clear();
      add(next, *reduction);
    }
    if (found_.reductions.size() < 2) return std::nullopt;
    find_shared();
    return found_;
  }

 private:
  bool is_reduction(const GroupStatement& s) const {
    return held_.count(s.statement->tensor) > 0 && work_of(s) == RowWork::kReduce;
  }

  void add(size_t number, ReducedTogether reduction) {
    reduction.statement = &part_.statements[number];
    found_.reductions.push_back(reduction);
    written_.insert(reduction.statement->statement->tensor);
    for (const hi::Call* read : ir::reads_in(program_, reduction.statement->statement->value)) read_.insert(read->name);
    found_.end = number + 1;
  }

  /// How a statement depends on those before; nothing if it has to wait for them.
  std::optional<ReducedTogether> beside_others(const GroupStatement& s, const std::vector<size_t>& pending) {
    std::set<std::string> reads;
    for (const hi::Call* read : ir::reads_in(program_, s.statement->value)) {
      const bool starts = std::any_of(pending.begin(), pending.end(),
                                      [&](size_t p) { return part_.statements[p].statement->tensor == read->name; });
      if (starts) return std::nullopt;
      if (written_.count(read->name) > 0) reads.insert(read->name);
    }
    if (reads.empty()) return ReducedTogether{};
    if (reads.size() > 1) return std::nullopt;
    size_t extreme = 0;
    while (found_.reductions[extreme].statement->statement->tensor != *reads.begin()) ++extreme;
    if (found_.extreme.value_or(extreme) != extreme) return std::nullopt;
    std::optional<ReducedTogether> result = corrected(s, *found_.reductions[extreme].statement);
    if (result) found_.extreme = extreme;
    return result;
  }

  /// A sum that begins with zero.
  bool is_fresh_sum(const GroupStatement& s) const {
    const poly::Statement& sum = *s.statement;
    const Halide::Type type = program_.tensor(sum.tensor).type;
    bool starts = false, others = false;
    for (const GroupStatement* before = part_.statements.data(); before != &s; ++before) {
      if (before->statement->tensor != sum.tensor) continue;
      const bool is_start = before->statement->kind == poly::Statement::Kind::kInit;
      starts = starts || is_start;
      others = others || !is_start;
    }
    return sum.assign == ir::Assign::kAdd && type == Halide::Float(32) && sum.accumulator == type && starts && !others;
  }

  std::optional<ReducedTogether> corrected(const GroupStatement& s, const GroupStatement& extreme) const {
    const poly::Statement& of = *extreme.statement;
    const Halide::Type type = program_.tensor(of.tensor).type;
    if (!is_extreme(of) || of.accumulator != type || !type.is_float() || type.bits() > 32 || !is_fresh_sum(s)) {
      return std::nullopt;
    }
    ReadsOfExtreme reads(of.tensor);
    const Expr value = signature_of(s, {reads.mutate(s.statement->value)})[0];
    const Expr own = signature_of(extreme, {of.value})[0];
    const Extreme variable{kExtremeValue, own, of.assign == ir::Assign::kMax};
    const std::optional<Exponential> form = exponential_in(value, variable);
    if (!form || form->factor == 0 || form->present.defined()) return std::nullopt;
    return ReducedTogether{nullptr, form->factor, reads.alone};
  }

  void find_shared() {
    std::map<std::string, Signature> places;
    std::map<std::string, std::set<const GroupStatement*>> readers;
    std::set<std::string> others;
    for (const ReducedTogether& reduction : found_.reductions) {
      const GroupStatement& s = *reduction.statement;
      for (const hi::Call* read : ir::reads_in(program_, s.statement->value)) {
        const Signature place = signature_of(s, read->args);
        const bool is_chosen =
            std::any_of(read->args.begin(), read->args.end(), [&](const Expr& e) { return reads_tensor(program_, e); });
        const bool known = !places.emplace(read->name, place).second;
        if (known && !is_same(places[read->name], place)) others.insert(read->name);
        if (is_chosen || part_.writes(read->name) || reads_under_condition(s, read->name) ||
            count_loops(place, loops_of(s).size()) == 0) {
          others.insert(read->name);
        }
        readers[read->name].insert(&s);
        if (&s == found_.reductions[0].statement) found_.shared[read->name] = read->args;
      }
    }
    std::erase_if(found_.shared, [&](const auto& tensor) {
      return others.count(tensor.first) > 0 || readers[tensor.first].size() < 2;
    });
  }

  const FusedGroup& part_;
  const ir::Program& program_;
  const std::set<std::string>& held_;
  Together found_;
  std::set<std::string> written_, read_;  ///< by the reductions that are found
};

}  // namespace

std::optional<Together> reductions_together(const FusedGroup& part, size_t first, const std::set<std::string>& held) {
  return Finder(part, held).from(first);
}

}  // namespace tc::gpu
