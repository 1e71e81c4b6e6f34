#include "tc/ir/in_place.h"

#include <algorithm>
#include <set>

#include "tc/ir/index_expr.h"
#include "tc/ir/prover.h"
#include "tc/ir/whole_tensor.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

class RenameReads : public hi::IRMutator {
 public:
  RenameReads(const std::string& from, const std::string& to) : from_(from), to_(to) {}

 private:
  using hi::IRMutator::visit;
  Expr visit(const hi::Call* op) override {
    const Expr inside = hi::IRMutator::visit(op);
    const auto* call = inside.as<hi::Call>();
    if (call->name != from_ || call->call_type != hi::Call::PureExtern) return inside;
    return hi::Call::make(call->type, to_, call->args, hi::Call::PureExtern);
  }

  const std::string& from_;
  const std::string& to_;
};

bool same_subscripts(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return hi::equal(x, y); });
}

bool needs_snapshot(const Statement& s) {
  const bool once = (left_is_identity(s) || s.assign == Assign::kSet) && !s.initialises &&
                    std::none_of(s.indices.begin(), s.indices.end(), [](const Index& i) { return i.is_reduction; });
  return std::any_of(s.accesses.begin(), s.accesses.end(), [&](const Access& a) {
    if (a.is_write || a.exists_only || a.tensor != s.tensor) return false;
    return !once || !same_subscripts(a.subscripts, s.subscripts);
  });
}

/// True where the statement alone writes every element, whatever the sizes.
bool covers(const Statement& s, const Tensor& tensor) {
  if (!left_is_identity(s) || s.guard.defined()) return false;
  for (int d = 0; d < tensor.rank(); ++d) {
    const auto index = std::find_if(s.indices.begin(), s.indices.end(),
                                    [&](const Index& i) { return i.name == s.subscripts[d].as<hi::Variable>()->name; });
    if (constant_value(index->begin) != 0 || !hi::is_const_zero(hi::simplify(index->end - tensor.extents[d])))
      return false;
  }
  return s.assign == Assign::kSet || s.initialises;
}

/// True where the statement writes elements, without a look at what they hold, at places that no data decides.
bool sets_elements(const Statement& s) {
  return (s.assign == Assign::kSet || s.initialises) && !s.guard.defined() &&
         std::none_of(s.subscripts.begin(), s.subscripts.end(), is_data_dependent) &&
         std::all_of(s.indices.begin(), s.indices.end(), [](const Index& i) { return i.begin.defined(); });
}

/// True where several statements together write every element, whatever the sizes: halves that meet, odd and even
/// places.
bool cover(const Program& program, const std::vector<const Statement*>& writers, const Tensor& tensor,
           const Deadline& deadline) {
  return writers.size() >= 2 && Prover(program, deadline).write_all(writers, tensor.extents);
}

bool reads(const Statement& s, const std::string& tensor) {
  if (s.tensor == tensor && s.assign != Assign::kSet && !s.initialises) return true;
  return std::any_of(s.accesses.begin(), s.accesses.end(),
                     [&](const Access& a) { return !a.is_write && !a.exists_only && a.tensor == tensor; });
}

/// True where every element is written before the first is read.
bool written_before_read(const Program& program, const Tensor& tensor, const Deadline& deadline) {
  std::vector<const Statement*> writers;
  for (const Statement& s : program.statements) {
    if (reads(s, tensor.name)) return cover(program, writers, tensor, deadline);
    if (s.tensor != tensor.name) continue;
    if (covers(s, tensor)) return true;
    if (sets_elements(s)) writers.push_back(&s);
  }
  return cover(program, writers, tensor, deadline);
}

bool is_read(const Program& program, const Tensor& tensor) {
  return std::any_of(program.statements.begin(), program.statements.end(),
                     [&](const Statement& s) { return reads(s, tensor.name); });
}

}  // namespace

bool writes_all(const Program& program, const std::string& tensor, const Deadline& deadline) {
  try {
    return written_before_read(program, program.tensor(tensor), deadline);
  } catch (const OutOfTime&) {
    return false;
  }
}

bool left_is_identity(const Statement& statement) {
  std::set<std::string> used;
  for (const Expr& e : statement.subscripts) {
    const auto* variable = e.as<hi::Variable>();
    if (!variable || !used.insert(variable->name).second) return false;
  }
  return std::all_of(statement.indices.begin(), statement.indices.end(),
                     [&](const Index& i) { return i.is_reduction != used.contains(i.name); });
}

Program fill_scattered(Program program) {
  std::vector<Statement> statements;
  for (Statement& s : program.statements) {
    const bool scattered = std::any_of(s.subscripts.begin(), s.subscripts.end(), is_data_dependent);
    if (scattered && s.initialises) {
      Statement fill = whole_tensor_set(program, program.tensor(s.tensor), s.range);
      fill.value = identity_of(s.assign, fill.accumulator);
      statements.push_back(std::move(fill));
      s.initialises = false;
    }
    statements.push_back(std::move(s));
  }
  program.statements = std::move(statements);
  return program;
}

Program snapshot_own_reads(Program program) {
  std::vector<Statement> statements;
  for (Statement& s : program.statements) {
    if (needs_snapshot(s)) {
      Tensor old = program.tensor(s.tensor);
      old.name = fresh_name(program, old.name + "_old");
      old.role = Role::kTemporary;
      Statement copy = whole_tensor_set(program, old, s.range);
      copy.value = read_in(copy, program.tensor(s.tensor), copy.subscripts);
      RenameReads rename(s.tensor, old.name);
      transform_expressions(s, [&](const Expr& e) { return rename.mutate(e); });
      for (Access& a : s.accesses) {
        if (!a.is_write && a.tensor == s.tensor) a.tensor = old.name;
      }
      program.tensors.push_back(std::move(old));
      statements.push_back(std::move(copy));
    }
    statements.push_back(std::move(s));
  }
  program.statements = std::move(statements);
  return program;
}

Program fill_temporaries(Program program, const Deadline& deadline) {
  std::vector<Statement> fills;
  for (const Tensor& tensor : program.tensors) {
    if (tensor.role != Role::kTemporary || !is_read(program, tensor)) continue;
    if (written_before_read(program, tensor, deadline)) continue;
    fills.push_back(whole_tensor_set(program, tensor, tensor.declared));
    fills.back().value = zero_of(tensor.type);
  }
  program.statements.insert(program.statements.begin(), fills.begin(), fills.end());
  return program;
}

}  // namespace tc::ir
