#include "tc/gpu/strategy/split_exponentials.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tc/gpu/rewrite/exponential.h"
#include "tc/gpu/rewrite/parts.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/reads.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

constexpr int64_t kFewParts = 256;  ///< that one thread puts together

/// A sum of exponentials of an extreme, with its indices named as the extreme's.
struct ExponentialSum {
  size_t at = 0;
  ir::Statement statement;
  double factor = 0;  ///< its terms are exp(factor * R) times something that R is no part of
};

/// One statement with its indices named as the other's; nothing if their ranges differ.
std::optional<ir::Statement> renamed_as(ir::Statement s, const ir::Statement& other) {
  if (s.indices.size() != other.indices.size()) return std::nullopt;
  std::map<std::string, Expr> names;
  for (size_t i = 0; i < s.indices.size(); ++i) {
    const ir::Index &own = s.indices[i], &wanted = other.indices[i];
    if (own.is_reduction != wanted.is_reduction || begin_of(own) != begin_of(wanted) ||
        extent_of(own) != extent_of(wanted)) {
      return std::nullopt;
    }
    names[own.name] = index_variable(wanted.name);
  }
  s.indices = other.indices;
  s.value = hi::substitute(names, s.value);
  for (Expr& e : s.subscripts) e = hi::substitute(names, e);
  s.accesses.clear();
  return s;
}

bool has_float_type(const ir::Program& program, const ir::Statement& s) {
  const Halide::Type type = program.tensor(s.tensor).type;
  return type.is_float() && type.bits() <= 32 && s.accumulator == type;
}

/// Whether none of the statements between an extreme and a sum writes what the sum reads, but for the extreme, which
/// may go on.
bool reads_unchanged(const ir::Program& program, size_t extreme, size_t sum) {
  const ir::Statement& of = program.statements[extreme];
  for (size_t i = extreme + 1; i < sum; ++i) {
    const ir::Statement& s = program.statements[i];
    const bool goes_on = s.tensor == of.tensor && s.assign == of.assign && !s.initialises;
    if (!goes_on && reads_tensor(program.statements[sum].value, s.tensor)) return false;
  }
  return true;
}

std::optional<ExponentialSum> sum_at(const ir::Program& program, size_t at, size_t of) {
  const ir::Statement &s = program.statements[at], &extreme = program.statements[of];
  if (s.assign != ir::Assign::kAdd || s.accumulator != Halide::Float(32) || !may_be_cut(program, s) ||
      shares_operands(program, s) || !reads_tensor(s.value, extreme.tensor) || !reads_unchanged(program, of, at)) {
    return std::nullopt;
  }
  std::optional<ir::Statement> renamed = renamed_as(s, extreme);
  if (!renamed) return std::nullopt;
  for (const hi::Call* read : ir::reads_in(program, renamed->value)) {
    const bool is_own =
        std::equal(read->args.begin(), read->args.end(), extreme.subscripts.begin(), extreme.subscripts.end(),
                   [](const Expr& a, const Expr& b) { return hi::equal(a, b); });
    if (read->name == extreme.tensor && !is_own) return std::nullopt;
  }
  const Expr variable = hi::Variable::make(extreme.accumulator, kExtremeValue);
  const Expr value = with_reads_as(renamed->value, extreme.tensor, variable);
  const auto form = exponential_in(value, {kExtremeValue, extreme.value, extreme.assign == ir::Assign::kMax});
  if (!form || form->factor == 0 || form->present.defined()) return std::nullopt;
  return ExponentialSum{at, *std::move(renamed), form->factor};
}

bool is_extreme_of_numbers(const ir::Program& program, const ir::Statement& s) {
  return (s.assign == ir::Assign::kMax || s.assign == ir::Assign::kMin) && may_be_cut(program, s) &&
         has_float_type(program, s);
}

Expr read_of(const ir::Statement& of, const std::vector<Expr>& at) {
  return hi::Call::make(of.accumulator, of.tensor, at, hi::Call::PureExtern);
}

/// Puts statements behind those at some places.
std::vector<ir::Statement> replaced(const std::vector<ir::Statement>& statements,
                                    const std::map<size_t, std::vector<ir::Statement>>& instead) {
  std::vector<ir::Statement> result;
  for (size_t i = 0; i < statements.size(); ++i) {
    const auto found = instead.find(i);
    if (found == instead.end()) {
      result.push_back(statements[i]);
    } else {
      result.insert(result.end(), found->second.begin(), found->second.end());
    }
  }
  return result;
}

/// Splits an extreme and its sums; the ids of the reductions over parts, and of those that put these together.
std::pair<std::vector<std::string>, std::vector<std::string>> split(ir::Program& program, size_t extreme_at,
                                                                    const std::vector<ExponentialSum>& sums,
                                                                    const std::vector<Parts>& cuts) {
  const ir::Statement extreme = program.statements[extreme_at];
  const bool is_maximum = extreme.assign == ir::Assign::kMax;
  std::pair<std::vector<std::string>, std::vector<std::string>> ids;
  std::map<size_t, std::vector<ir::Statement>> instead;
  const auto add_together = [&](size_t at, const PartStatements& parts) {
    ids.first.push_back(parts.of_parts.id);
    ids.second.push_back(parts.together.id);
    instead[at].push_back(parts.together);
    if (parts.left) {
      ids.first.push_back(parts.left->id);
      instead[at].push_back(*parts.left);
    }
  };
  const PartStatements of_extreme = part_statements(program, extreme, cuts);
  instead[extreme_at].push_back(of_extreme.of_parts);
  for (const ExponentialSum& sum : sums) {
    PartStatements parts = part_statements(program, sum.statement, cuts);
    const Expr top_of_part = read_of(of_extreme.of_parts, parts.of_parts.subscripts);
    const Expr number = number_of_extreme(top_of_part, is_maximum);
    parts.of_parts.value = with_reads_as(parts.of_parts.value, extreme.tensor, number);
    instead[extreme_at].push_back(parts.of_parts);
    const Halide::Type type = Halide::Float(32);
    const Expr rise = Halide::cast(type, read_of(extreme, extreme.subscripts)) - Halide::cast(type, top_of_part);
    const Expr exponent = rise * hi::FloatImm::make(type, sum.factor);
    parts.together.value = parts.together.value * hi::Call::make(type, "exp", {exponent}, hi::Call::PureExtern);
    add_together(sum.at, parts);
  }
  add_together(extreme_at, of_extreme);
  program.statements = replaced(program.statements, instead);
  return ids;
}

}  // namespace

ExponentialSplit split_exponentials(ir::Program program, const Device& device,
                                    const std::function<bool(const ir::Program&, const std::string&)>& is_apart) {
  ExponentialSplit result{std::move(program), {}};
  ir::Program& changed = result.program;
  for (size_t i = 0; i < changed.statements.size(); ++i) {
    const ir::Statement& extreme = changed.statements[i];
    const auto reads = ir::reads_in(changed, extreme.value);
    if (!is_extreme_of_numbers(changed, extreme) || result.whole.count(extreme.id) > 0 ||
        std::any_of(reads.begin(), reads.end(), [&](const hi::Call* r) { return is_apart(changed, r->name); })) {
      continue;
    }
    const std::vector<Parts> cuts = busy_parts(changed, extreme, device);
    std::vector<ExponentialSum> sums;
    for (size_t s = i + 1; s < changed.statements.size() && !cuts.empty(); ++s) {
      if (auto sum = sum_at(changed, s, i)) sums.push_back(*std::move(sum));
    }
    if (sums.empty()) continue;
    int64_t parts = 1;
    for (const Parts& cut : cuts) parts *= cut.count;
    const auto [over_parts, together] = split(changed, i, sums, cuts);
    result.whole.insert(over_parts.begin(), over_parts.end());
    if (parts <= kFewParts) result.whole.insert(together.begin(), together.end());
  }
  return result;
}

}  // namespace tc::gpu
