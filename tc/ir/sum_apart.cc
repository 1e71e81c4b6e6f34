#include "tc/ir/sum_apart.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tc/ir/choice.h"
#include "tc/ir/combine.h"
#include "tc/ir/factors.h"
#include "tc/ir/in_place.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/names.h"
#include "tc/ir/reads.h"
#include "tc/ir/single_writes.h"
#include "tc/ir/specialise.h"
#include "tc/ir/whole_tensor.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

bool may_be_apart(const Statement& statement) {
  const auto is_known = [](const Index& index) {
    return index.is_reduction || (index.begin.defined() && index.end.defined());
  };
  const bool sums =
      std::any_of(statement.indices.begin(), statement.indices.end(), [](const Index& i) { return i.is_reduction; });
  return sums && statement.reduces() && !statement.guard.defined() && tells_map_indices(statement) &&
         std::all_of(statement.indices.begin(), statement.indices.end(), is_known);
}

SumApart sum_apart(const Program& program, const Statement& statement) {
  const Tensor& tensor = program.tensor(statement.tensor);
  SumApart result;
  Tensor& sums = result.sums;
  sums.name = fresh_name(program, tensor.name + "_sum");
  sums.type = statement.accumulator;
  sums.role = Role::kTemporary;
  sums.declared = tensor.declared;

  Statement& store = result.store;
  store.tensor = tensor.name;
  store.subscripts = statement.subscripts;
  store.accumulator = tensor.type;
  store.range = statement.range;
  store.accesses.push_back({tensor.name, store.subscripts, Expr(), true, false, statement.range});
  std::vector<Expr> at;
  for (const Index& index : statement.indices) {
    if (index.is_reduction) continue;
    store.indices.push_back(index);
    sums.extents.push_back(simplify_index(index.end - index.begin, program.sizes));
    at.push_back(simplify_index(index_variable(index.name) - index.begin, program.sizes));
  }
  const auto converted = [](const Expr& e, Halide::Type to) { return e.type() == to ? e : hi::Cast::make(to, e); };
  Expr total = read_in(store, sums, at);
  if (!statement.initialises) {
    const Expr before = read_in(store, tensor, store.subscripts);
    total = combine(statement.assign, converted(before, sums.type), total);
  }
  store.value = converted(total, tensor.type);

  result.sum = statement;
  result.sum.tensor = sums.name;
  result.sum.subscripts = at;
  result.sum.initialises = true;
  for (Access& access : result.sum.accesses) {
    if (!access.is_write) continue;
    access.tensor = sums.name;
    access.subscripts = at;
  }
  return result;
}

namespace {

/// A choice of products that is the same for all terms of a sum, or the sum's identity.
std::optional<Choice> choice_of_sum(const Program& program, const Statement& s) {
  if (!may_be_apart(s)) return std::nullopt;
  std::optional<Choice> choice = choice_of(s.value);
  if (!choice || !choice->is_select || factors_of(choice->yes).size() < 2) return std::nullopt;
  const Expr identity = hi::simplify(identity_of(s.assign, s.accumulator));
  if (!hi::equal(hi::simplify(choice->no), identity)) return std::nullopt;
  const bool depends = std::any_of(s.indices.begin(), s.indices.end(), [&](const Index& index) {
    return index.is_reduction && mentions(choice->condition, index.name);
  });
  const std::vector<const hi::Call*> reads = reads_in(program, s.value);
  const bool reads_own =
      std::any_of(reads.begin(), reads.end(), [&](const auto* read) { return read->name == s.tensor; });
  if (depends || reads_own) return std::nullopt;
  choice->no = identity;
  return choice;
}

/// With a choice in the place of what is read of a tensor.
Expr chosen(const Expr& value, const std::string& tensor, const Choice& choice) {
  struct Chooser : hi::IRMutator {
    Chooser(const std::string& tensor, const Choice& choice) : tensor(tensor), choice(choice) {}
    const std::string& tensor;
    const Choice& choice;
    using IRMutator::visit;
    Expr visit(const hi::Call* op) override {
      return op->name == tensor ? hi::Select::make(choice.condition, op, choice.no) : IRMutator::visit(op);
    }
  };
  return Chooser(tensor, choice).mutate(value);
}

/// With the statements of which `apart_of` makes sums apart, as far as these are wanted.
template <typename ApartOf>
Program with_sums_apart(const Program& program, const IsPutApart& is_put_apart, const char* suffix, ApartOf apart_of) {
  Names names = Names::among_statements(program);
  Program result = program;
  result.statements.clear();
  for (const Statement& s : program.statements) {
    std::optional<SumApart> apart = apart_of(result, s);
    if (apart) apart->store.id = names.fresh(s.id + suffix);
    if (!apart || !is_put_apart(program, s, *apart)) {
      result.statements.push_back(s);
      continue;
    }
    result.tensors.push_back(std::move(apart->sums));
    result.statements.push_back(std::move(apart->sum));
    result.statements.push_back(std::move(apart->store));
  }
  return result;
}

}  // namespace

Program choices_behind_sums(Program program, const IsPutApart& is_put_apart) {
  return with_sums_apart(program, is_put_apart, "_choice",
                         [](const Program& result, const Statement& s) -> std::optional<SumApart> {
                           const std::optional<Choice> choice = choice_of_sum(result, s);
                           if (!choice) return std::nullopt;
                           SumApart apart = sum_apart(result, s);
                           apart.sum.value = choice->yes;
                           apart.sum.accesses.clear();
                           apart.store.value = chosen(apart.store.value, apart.sums.name, *choice);
                           apart.store.accesses.clear();
                           return apart;
                         });
}

Program sums_apart(Program program, const IsPutApart& is_put_apart) {
  return with_sums_apart(program, is_put_apart, "_store",
                         [](const Program& result, const Statement& s) -> std::optional<SumApart> {
                           if (left_is_identity(s) || !may_be_apart(s)) return std::nullopt;
                           return sum_apart(result, s);
                         });
}

}  // namespace tc::ir
