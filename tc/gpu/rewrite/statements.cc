#include "tc/gpu/rewrite/statements.h"

#include <algorithm>
#include <cstdlib>

#include "tc/ir/halide_compat.h"
#include "tc/ir/reads.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

ir::Tensor temporary_over(const std::string& name, Halide::Type type, const std::vector<ir::Index>& indices) {
  ir::Tensor tensor;
  tensor.name = name;
  tensor.type = type;
  tensor.role = ir::Role::kTemporary;
  for (const ir::Index& index : indices) tensor.extents.push_back(index_constant(extent_of(index)));
  return tensor;
}

Expr subscript_of(const ir::Index& index) {
  const Expr value = index_variable(index.name);
  return begin_of(index) == 0 ? value : value - index.begin;
}

namespace {

/// Changes the subscripts of reads, innermost first.
class SubscriptChanger : public hi::IRMutator {
 public:
  SubscriptChanger(const ir::Program& program, const ChangeSubscripts& change) : program_(program), change_(change) {}

  std::vector<Expr> changed(const std::string& tensor, std::vector<Expr> subscripts) {
    for (Expr& e : subscripts) e = mutate(e);
    return change_(tensor, subscripts);
  }

  using IRMutator::mutate;

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* op) override {
    if (!ir::is_tensor_read(program_, op)) return IRMutator::visit(op);
    return hi::Call::make(op->type, op->name, changed(op->name, op->args), op->call_type);
  }

  const ir::Program& program_;
  const ChangeSubscripts& change_;
};

class ReadReplacer : public hi::IRMutator {
 public:
  ReadReplacer(const std::string& tensor, const Expr& value) : tensor_(tensor), value_(value) {}

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* op) override { return op->name == tensor_ ? value_ : IRMutator::visit(op); }

  const std::string& tensor_;
  const Expr& value_;
};

}  // namespace

ir::Program with_subscripts(ir::Program program, const ChangeSubscripts& change) {
  SubscriptChanger changer(program, change);
  for (ir::Statement& s : program.statements) {
    s.subscripts = changer.changed(s.tensor, s.subscripts);
    s.value = changer.mutate(s.value);
    if (s.guard.defined()) s.guard = changer.mutate(s.guard);
    s.accesses.clear();
  }
  return program;
}

Expr with_reads_as(const Expr& expr, const std::string& tensor, const Expr& value) {
  return ReadReplacer(tensor, value).mutate(expr);
}

ir::Statement left_over(ir::Statement statement, size_t index, int64_t done, const std::string& id) {
  ir::Index& cut = statement.indices[index];
  const Expr begin = hi::simplify(index_constant(done) + cut.begin);
  statement.id = id;
  statement.initialises = false;
  statement.value = hi::substitute(cut.name, index_variable(cut.name) + begin, statement.value);
  statement.accesses.clear();
  cut = make_index(cut.name, extent_of(cut) - done, true);
  return statement;
}

bool reads(const Expr& expr, const std::function<bool(const hi::Call*)>& is_it) {
  class Finder : public hi::IRVisitor {
   public:
    explicit Finder(const std::function<bool(const hi::Call*)>& is_it) : is_it_(is_it) {}
    bool found = false;

   private:
    using IRVisitor::visit;
    void visit(const hi::Call* call) override {
      found = found || is_it_(call);
      IRVisitor::visit(call);
    }
    const std::function<bool(const hi::Call*)>& is_it_;
  } finder(is_it);
  expr.accept(&finder);
  return finder.found;
}

bool reads_tensor(const ir::Program& program, const Expr& expr) {
  return reads(expr, [&](const hi::Call* call) { return ir::is_tensor_read(program, call); });
}

const ir::Index* index_named(const ir::Statement& statement, const std::string& name) {
  const auto at = std::find_if(statement.indices.begin(), statement.indices.end(),
                               [&](const ir::Index& index) { return index.name == name; });
  return at == statement.indices.end() ? nullptr : &*at;
}

bool same_range(const ir::Index& a, const ir::Index& b) {
  return begin_of(a) == begin_of(b) && extent_of(a) == extent_of(b);
}

bool reads_tensor(const ir::Statement& statement, const std::string& tensor) {
  const auto reads = [&](const Expr& e) { return e.defined() && reads_tensor(e, tensor); };
  return reads(statement.value) || reads(statement.guard) ||
         std::any_of(statement.subscripts.begin(), statement.subscripts.end(), reads);
}

bool reads_tensor(const Expr& expr, const std::string& tensor) {
  return reads(expr, [&](const hi::Call* call) { return call->name == tensor; });
}

bool reads_chosen_row(const ir::Program& program, const hi::Call* read) {
  return ir::is_tensor_read(program, read) && read->args.size() > 1 && !reads_tensor(program, read->args.back()) &&
         std::any_of(read->args.begin(), read->args.end(),
                     [&](const Expr& subscript) { return reads_tensor(program, subscript); });
}

bool shares_operands(const ir::Program& program, const ir::Statement& statement) {
  constexpr int64_t kOften = 8;
  int count = 0;
  const bool once = reads(statement.value, [&](const hi::Call* call) {
    if (!ir::is_tensor_read(program, call)) return false;
    ++count;
    return std::none_of(statement.indices.begin(), statement.indices.end(), [&](const ir::Index& index) {
      const auto uses = [&](const Expr& e) { return hi::expr_uses_var(e, index.name); };
      return !index.is_reduction && extent_of(index) >= kOften &&
             std::none_of(call->args.begin(), call->args.end(), uses);
    });
  });
  return !once && count > 1;
}

namespace {

/// Whether the next value of an index is in the same sector of memory, or may be.
bool steps_to_neighbour(const hi::Call* call, const ir::Index& index) {
  constexpr int64_t kSectorBytes = 32;
  const Expr& last = call->args.back();
  if (!hi::expr_uses_var(last, index.name)) return false;
  const Expr next = hi::substitute(index.name, index_variable(index.name) + index_constant(1), last);
  const Expr step = hi::simplify(next - last);
  const int64_t* constant = ir::constant_int(step);
  return constant == nullptr || std::abs(*constant) * call->type.bytes() < kSectorBytes;
}

}  // namespace

std::vector<const hi::Call*> largest_reads(const ir::Program& program, const ir::Statement& statement) {
  std::vector<const hi::Call*> result;
  double most = 0;
  for (const hi::Call* call : ir::reads_in(program, statement.value)) {
    double instances = 1;
    for (const ir::Index& index : statement.indices) {
      const bool used = std::any_of(call->args.begin(), call->args.end(),
                                    [&](const Expr& e) { return hi::expr_uses_var(e, index.name); });
      if (used) instances *= static_cast<double>(extent_of(index));
    }
    if (instances > most) result.clear();
    if (instances >= most) result.push_back(call);
    most = std::max(most, instances);
  }
  return result;
}

bool runs_along_reduction(const ir::Program& program, const ir::Statement& statement) {
  const std::vector<const hi::Call*> reads = largest_reads(program, statement);
  return std::any_of(reads.begin(), reads.end(), [&](const hi::Call* call) {
    if (call->args.empty()) return false;
    bool reduction = false, result = false;
    for (const ir::Index& index : statement.indices) {
      const bool used = steps_to_neighbour(call, index);
      reduction = reduction || (used && index.is_reduction);
      result = result || (used && !index.is_reduction);
    }
    return reduction && !result;
  });
}

}  // namespace tc::gpu
