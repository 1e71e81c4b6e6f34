#include "tc/gpu/rewrite/recompute_products.h"

#include <algorithm>
#include <optional>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/names.h"
#include "tc/ir/reads.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

bool is_product(const ir::Program& program, const ir::Statement& s) {
  return s.assign == ir::Assign::kAdd && s.initialises && shares_operands(program, s);
}

/// A reduction that goes through a tensor, each element once.
bool reduces_results(const ir::Program& program, const ir::Statement& s) {
  return s.reduces() && !shares_operands(program, s);
}

std::set<std::string> tensors_read(const ir::Program& program, const ir::Statement& s) {
  std::set<std::string> result;
  std::vector<Expr> all = s.subscripts;
  all.push_back(s.value);
  if (s.guard.defined()) all.push_back(s.guard);
  for (const Expr& e : all) {
    for (const hi::Call* read : ir::reads_in(program, e)) result.insert(read->name);
  }
  return result;
}

/// The expression with reads of one tensor as reads of another.
Expr reading(const Expr& e, const std::string& from, const std::string& to) {
  class Renamer : public hi::IRMutator {
   public:
    Renamer(const std::string& from, const std::string& to) : from_(from), to_(to) {}

   private:
    using IRMutator::visit;
    Expr visit(const hi::Call* op) override {
      const Expr inner = IRMutator::visit(op);
      const auto* call = inner.as<hi::Call>();
      if (!call || call->name != from_) return inner;
      return hi::Call::make(call->type, to_, call->args, call->call_type);
    }
    const std::string &from_, &to_;
  } renamer(from, to);
  return e.defined() ? renamer.mutate(e) : e;
}

ir::Statement reading(ir::Statement s, const std::string& from, const std::string& to) {
  s.value = reading(s.value, from, to);
  s.guard = reading(s.guard, from, to);
  for (Expr& subscript : s.subscripts) subscript = reading(subscript, from, to);
  s.accesses.clear();
  return s;
}

/// Where a product's results are made, and where they may be made again.
struct Place {
  std::vector<size_t> writers;
  size_t reader = 0;  ///< the first that goes on with the results behind a reduction of them
};

std::optional<Place> place_of(const ir::Program& program, size_t product) {
  const std::vector<ir::Statement>& all = program.statements;
  const std::string& tensor = all[product].tensor;
  if (program.tensor(tensor).role != ir::Role::kTemporary || !is_product(program, all[product])) return std::nullopt;
  Place place{{product}};
  bool is_reduced = false;
  for (size_t s = 0; s < product; ++s) {
    if (all[s].tensor == tensor) return std::nullopt;
  }
  for (size_t s = product + 1; s < all.size(); ++s) {
    const bool reads = tensors_read(program, all[s]).count(tensor) > 0;
    if (all[s].tensor == tensor) {
      if (is_reduced || all[s].reduces() || place.reader > 0) return std::nullopt;
      place.writers.push_back(s);
    } else if (reads && reduces_results(program, all[s])) {
      is_reduced = true;
    } else if (reads && place.reader == 0) {
      if (!is_reduced || all[s].reduces()) return std::nullopt;
      place.reader = s;
    }
  }
  if (place.reader == 0) return std::nullopt;
  // A later product reads what becomes of the results, else nothing is streamed to it.
  const bool any_product =
      std::any_of(all.begin() + static_cast<long>(place.reader), all.end(),
                  [&](const ir::Statement& s) { return s.reduces() && shares_operands(program, s); });
  if (!any_product) return std::nullopt;
  std::set<std::string> read;
  for (const size_t writer : place.writers) {
    const std::set<std::string> own = tensors_read(program, all[writer]);
    read.insert(own.begin(), own.end());
  }
  for (size_t s = product; s < place.reader; ++s) {
    if (all[s].tensor != tensor && read.count(all[s].tensor) > 0) return std::nullopt;
  }
  return place;
}

}  // namespace

ir::Program recompute_products(
    ir::Program program,
    const std::function<bool(const ir::Program& before, const ir::Program& after, const MadeAgain& made)>& gains) {
  for (size_t s = 0; s < program.statements.size(); ++s) {
    const std::optional<Place> place = place_of(program, s);
    if (!place) continue;
    ir::Program after = program;
    ir::Names names = ir::Names::among_statements(program);
    ir::Tensor copy = program.tensor(program.statements[s].tensor);
    const std::string from = copy.name;
    copy.name = names.fresh(from + "_again");
    after.tensors.push_back(copy);
    for (size_t r = place->reader; r < after.statements.size(); ++r) {
      after.statements[r] = reading(std::move(after.statements[r]), from, copy.name);
    }
    std::vector<ir::Statement> made;
    MadeAgain ids;
    for (const size_t writer : place->writers) {
      made.push_back(reading(program.statements[writer], from, copy.name));
      ids.statements.insert(made.back().id);
      made.back().tensor = copy.name;
      made.back().id = names.fresh(made.back().id + "_again");
      ids.again.insert(made.back().id);
    }
    after.statements.insert(after.statements.begin() + static_cast<long>(place->reader), made.begin(), made.end());
    if (gains(program, after, ids)) program = std::move(after);
  }
  return program;
}

}  // namespace tc::gpu
