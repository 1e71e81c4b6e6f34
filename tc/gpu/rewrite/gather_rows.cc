#include "tc/gpu/rewrite/gather_rows.h"

#include <algorithm>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/names.h"
#include "tc/support/check.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

bool uses(const Expr& expr, const ir::Index& index) { return hi::expr_uses_var(expr, index.name); }

/// The reads of rows that data choose, at indices that are sure to exist.
class Finder : public hi::IRVisitor {
 public:
  explicit Finder(const ir::Program& program) : program_(program) {}
  std::vector<const hi::Call*> found;

 private:
  using IRVisitor::visit;
  void visit(const hi::Call* op) override {
    if (op->is_intrinsic(hi::Call::if_then_else)) return;  // what a branch reads may not be there otherwise
    if (reads_chosen_row(program_, op)) {
      found.push_back(op);
    } else {
      IRVisitor::visit(op);
    }
  }
  void visit(const hi::Select*) override {}
  const ir::Program& program_;
};

class Replacer : public hi::IRMutator {
 public:
  Replacer(Expr from, Expr to) : from_(std::move(from)), to_(std::move(to)) {}
  Expr mutate(const Expr& expr) override { return hi::equal(expr, from_) ? to_ : IRMutator::mutate(expr); }

 private:
  using IRMutator::mutate;
  Expr from_, to_;
};

/// rows(i, j, k) = read, over the indices that the read uses; nothing where they take more bytes.
std::optional<ir::Statement> rows_of(const ir::Statement& statement, const hi::Call* read, int64_t most_bytes,
                                     ir::Names& names) {
  ir::Statement rows;
  int64_t bytes = read->type.bytes();
  for (ir::Index index : statement.indices) {
    const int64_t extent = extent_of(index);
    if (!std::any_of(read->args.begin(), read->args.end(), [&](const Expr& e) { return uses(e, index); })) continue;
    if (extent == 0 || extent > most_bytes / bytes) return std::nullopt;
    bytes *= extent;
    index.is_reduction = false;
    rows.subscripts.push_back(subscript_of(index));
    rows.indices.push_back(std::move(index));
  }
  rows.id = names.fresh(statement.id + "_rows");
  rows.tensor = names.fresh(read->name + "_rows");
  rows.assign = ir::Assign::kSet;
  rows.value = read;
  rows.accumulator = read->type;
  rows.range = statement.range;
  return rows;
}

/// The program with all rows of one statement in temporaries, if that makes a contraction of it.
std::optional<ir::Program> gathered(const ir::Program& program, size_t at, int64_t most_bytes,
                                    const IsContraction& is_contraction) {
  const ir::Statement& statement = program.statements[at];
  if (!statement.reduces() || statement.guard.defined()) return std::nullopt;
  Finder finder(program);
  statement.value.accept(&finder);
  if (finder.found.empty()) return std::nullopt;
  ir::Program result = program;
  ir::Names names(program);
  for (const ir::Statement& s : program.statements) names.add(s.id);
  ir::Statement update = statement;
  update.accesses.clear();
  std::vector<ir::Statement> all;
  for (const hi::Call* read : finder.found) {
    if (std::any_of(all.begin(), all.end(), [&](const ir::Statement& s) { return hi::equal(s.value, read); })) continue;
    std::optional<ir::Statement> rows = rows_of(statement, read, most_bytes, names);
    if (!rows) return std::nullopt;
    result.tensors.push_back(temporary_over(rows->tensor, rows->accumulator, rows->indices));
    const Expr instead = hi::Call::make(read->type, rows->tensor, rows->subscripts, hi::Call::PureExtern);
    update.value = Replacer(read, instead).mutate(update.value);
    all.push_back(*std::move(rows));
  }
  if (!shares_operands(result, update) || !is_contraction(result, update)) return std::nullopt;
  all.push_back(std::move(update));
  result.statements.erase(result.statements.begin() + static_cast<long>(at));
  result.statements.insert(result.statements.begin() + static_cast<long>(at), all.begin(), all.end());
  return result;
}

}  // namespace

ir::Program gather_rows(ir::Program program, int64_t most_bytes, const IsContraction& is_contraction) {
  for (size_t at = 0; at < program.statements.size(); ++at) {
    const size_t before = program.statements.size();
    if (std::optional<ir::Program> changed = gathered(program, at, most_bytes, is_contraction)) {
      program = *std::move(changed);
      at += program.statements.size() - before;
    }
  }
  return program;
}

}  // namespace tc::gpu
