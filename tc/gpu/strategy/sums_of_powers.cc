#include "tc/gpu/strategy/sums_of_powers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tc/gpu/rewrite/exponential.h"
#include "tc/gpu/rewrite/recompute.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/powers_of_two.h"
#include "tc/ir/reads.h"
#include "tc/tile/program.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

/// Names the power of two that is zero where it is far too small for a float16, or beside 1.
class ShortPowers : public hi::IRMutator {
  using IRMutator::visit;
  Expr visit(const hi::Call* op) override {
    if (op->name != "exp2" || op->type != Halide::Float(32)) return IRMutator::visit(op);
    return hi::Call::make(op->type, tile::kExp2ForFloat16, {mutate(op->args[0])}, op->call_type);
  }
};

bool is_index(const Expr& e, const std::string& name) {
  const auto* variable = e.as<hi::Variable>();
  return variable != nullptr && variable->name == name;
}

bool mentions_any(const std::vector<Expr>& exprs, const std::string& name) {
  return std::any_of(exprs.begin(), exprs.end(), [&](const Expr& e) { return hi::expr_uses_var(e, name); });
}

/// What an extreme is of, over the indices of a statement that reads it at `place`: its reduction indices are those
/// that the place does not have, in order. Undefined if ranges differ.
Expr value_over(const ir::Statement& extreme, const ir::Statement& reader, const std::vector<Expr>& place) {
  std::map<std::string, Expr> names;
  const auto take = [&](const ir::Index& own, const ir::Index& there) {
    if (begin_of(own) != begin_of(there) || extent_of(own) != extent_of(there)) return false;
    names[own.name] = index_variable(there.name);
    return true;
  };
  std::vector<const ir::Index*> others;
  for (const ir::Index& i : reader.indices) {
    if (!mentions_any(place, i.name)) others.push_back(&i);
  }
  size_t next = 0;
  for (const ir::Index& i : extreme.indices) {
    if (i.is_reduction) {
      if (next >= others.size() || !take(i, *others[next++])) return Expr();
      continue;
    }
    const auto at = std::find_if(extreme.subscripts.begin(), extreme.subscripts.end(),
                                 [&](const Expr& e) { return is_index(e, i.name); });
    if (at == extreme.subscripts.end()) return Expr();
    const Expr& there = place[static_cast<size_t>(at - extreme.subscripts.begin())];
    const auto index = std::find_if(reader.indices.begin(), reader.indices.end(),
                                    [&](const ir::Index& r) { return is_index(there, r.name); });
    if (index == reader.indices.end() || !take(i, *index)) return Expr();
  }
  return next == others.size() ? hi::substitute(names, extreme.value) : Expr();
}

/// Whether an extreme of floats is complete where a statement reads it, and its values are what they were.
bool is_known(const ir::Program& program, size_t at, size_t extreme_at) {
  const ir::Statement &s = program.statements[at], &extreme = program.statements[extreme_at];
  const Halide::Type type = program.tensor(extreme.tensor).type;
  const bool is_extreme = extreme.assign == ir::Assign::kMax || extreme.assign == ir::Assign::kMin;
  if (!is_extreme || extreme.guard.defined() || s.guard.defined() || !type.is_float() || type.bits() > 32 ||
      extreme.accumulator != type) {
    return false;
  }
  for (size_t i = extreme_at + 1; i < at; ++i) {
    const std::string& written = program.statements[i].tensor;
    if (written == extreme.tensor || reads_tensor(extreme.value, written)) return false;
  }
  return true;
}

/// The extreme that a statement reads, as a variable over the statement's indices; nothing if it reads several places,
/// or does not go over all values of one.
std::optional<Extreme> extreme_read(const ir::Program& program, const ir::Statement& s, const ir::Statement& extreme) {
  std::vector<Expr> place;
  for (const hi::Call* read : ir::reads_in(program, s.value)) {
    if (read->name != extreme.tensor) continue;
    if (!place.empty() && !std::equal(place.begin(), place.end(), read->args.begin(), read->args.end(),
                                      [](const Expr& a, const Expr& b) { return hi::equal(a, b); })) {
      return std::nullopt;
    }
    place = read->args;
  }
  const Expr own = place.empty() ? Expr() : value_over(extreme, s, place);
  if (!own.defined()) return std::nullopt;
  return Extreme{kExtremeValue, own, extreme.assign == ir::Assign::kMax};
}

/// A value as a bounded exponential of its distance from the extreme; nothing if it is none.
std::optional<Exponential> form_of(const Expr& value, const ir::Statement& of, const Extreme& extreme) {
  const Expr variable = hi::Variable::make(of.accumulator, kExtremeValue);
  const auto form = exponential_in(with_reads_as(value, of.tensor, variable), extreme);
  return form && form->factor != 0 && !form->present.defined() ? form : std::nullopt;
}

/// Whether all powers that read the extreme are bounded.
bool has_bounded_powers(const Expr& value, const ir::Statement& of, const Extreme& extreme) {
  bool found = false, all = true;
  reads(value, [&](const hi::Call* call) {
    if (call->name != "exp" || !reads_tensor(Expr(call), of.tensor)) return false;
    found = true;
    all = all && form_of(Expr(call), of, extreme).has_value();
    return false;
  });
  return found && all;
}

bool is_narrow(Halide::Type type) { return type.is_float() && type.bits() == 16; }

constexpr double kLeast = 1e-6;  ///< that the greatest power is, beside what powers lose

/// Whether a value is a power times a constant. A weight may be zero where the greatest power is.
bool is_power(const Expr& e) {
  if (const auto* cast = e.as<hi::Cast>()) return is_power(cast->value);
  if (const auto* product = e.as<hi::Mul>()) {
    return (constant_number(product->a) && is_power(product->b)) ||
           (constant_number(product->b) && is_power(product->a));
  }
  if (const auto* quotient = e.as<hi::Div>()) return constant_number(quotient->b) && is_power(quotient->a);
  const auto* call = e.as<hi::Call>();
  return call && (call->name == "exp" || call->name == "exp2");
}

/// Whether a sum has all powers of its extreme, and nothing else: it is no less than the greatest of them.
bool is_whole_sum(const ir::Program& program, const ir::Statement& s, const ir::Statement& extreme,
                  const Exponential& form) {
  if (!is_power(s.value) || !(form.most >= kLeast) || !std::isfinite(form.most)) return false;
  const auto reads = ir::reads_in(program, s.value);
  return s.assign == ir::Assign::kAdd && s.accumulator == Halide::Float(32) &&
         std::all_of(reads.begin(), reads.end(), [&](const hi::Call* read) {
           return read->name == extreme.tensor || reads_tensor(extreme.value, read->name);
         });
}

/// What reads a temporary: sums over it alone, 16-bit floats, or others.
enum class Readers { kSums, kNarrow, kOthers };

Readers readers_of(const ir::Program& program, const ir::Statement& definition) {
  const bool is_temporary = program.tensor(definition.tensor).role == ir::Role::kTemporary;
  if (!is_temporary || definition.assign != ir::Assign::kSet) return Readers::kOthers;
  Readers result = Readers::kSums;
  for (const ir::Statement& s : program.statements) {
    if (!reads_tensor(s, definition.tensor)) continue;
    const auto places_by = [&](const Expr& e) { return reads_tensor(e, definition.tensor); };
    if (s.guard.defined() || std::any_of(s.subscripts.begin(), s.subscripts.end(), places_by)) return Readers::kOthers;
    const auto* read = s.value.as<hi::Call>();
    const bool sums = s.assign == ir::Assign::kAdd && s.accumulator == Halide::Float(32) && read != nullptr &&
                      read->name == definition.tensor && s.indices.size() == definition.indices.size();
    if (sums) continue;
    const bool narrow = is_narrow(program.tensor(s.tensor).type) && !s.reduces();
    if (!narrow || compares_floats(s.value, definition.tensor)) return Readers::kOthers;
    result = Readers::kNarrow;
  }
  return result;
}

/// The value of a statement that reads an extreme, with powers of two.
struct Replacement {
  size_t at = 0;
  Expr value;
  bool is_sum = false;     ///< of nothing but such powers
  bool is_seen = false;    ///< something may see the difference
  bool has_short = false;  ///< what is added beside the greatest power is no less than a float's least
};

/// Nothing if the statement has no powers of its distance from the extreme.
std::optional<Replacement> replacement_at(const ir::Program& program, size_t at, size_t extreme_at) {
  const ir::Statement &s = program.statements[at], &extreme = program.statements[extreme_at];
  if (!reads_tensor(s.value, extreme.tensor)) return std::nullopt;
  const std::optional<Extreme> variable =
      is_known(program, at, extreme_at) ? extreme_read(program, s, extreme) : std::nullopt;
  if (!variable || !has_bounded_powers(s.value, extreme, *variable)) return std::nullopt;
  const std::optional<Exponential> form = form_of(s.value, extreme, *variable);
  Readers readers = form ? readers_of(program, s) : Readers::kOthers;
  if (is_narrow(program.tensor(s.tensor).type) && !s.reduces()) readers = Readers::kNarrow;
  if (form && is_whole_sum(program, s, extreme, *form)) readers = Readers::kSums;
  const bool sums = readers == Readers::kSums;
  return Replacement{at, with_powers_of_two(s.value, {extreme.tensor}), sums, readers == Readers::kOthers,
                     sums && form->most >= kLeast && std::isfinite(form->most)};
}

/// Replaces the powers of one extreme. Where a row's powers may be computed once for all statements, they stay the
/// same.
void replace_powers(ir::Program& program, size_t extreme) {
  std::vector<Replacement> all;
  for (size_t at = extreme + 1; at < program.statements.size(); ++at) {
    if (auto found = replacement_at(program, at, extreme)) all.push_back(*std::move(found));
  }
  const auto every = [&](bool Replacement::*what) {
    return std::all_of(all.begin(), all.end(), [&](const Replacement& r) { return r.*what; });
  };
  const bool any_seen =
      std::any_of(all.begin(), all.end(), [](const Replacement& replacement) { return replacement.is_seen; });
  const bool apart = !runs_along_reduction(program, program.statements[extreme]);
  if (any_seen && !apart) return;
  for (const Replacement& r : all) {
    if (r.is_seen) continue;
    const bool is_short = r.has_short && (apart || every(&Replacement::is_sum));
    program.statements[r.at].value = is_short ? ShortPowers().mutate(r.value) : r.value;
  }
}

}  // namespace

ir::Program sums_of_powers(ir::Program program,
                           const std::function<bool(const ir::Program&, const std::string&)>& is_apart) {
  for (size_t of = 0; of < program.statements.size(); ++of) {
    const auto reads = ir::reads_in(program, program.statements[of].value);
    const bool apart =
        std::any_of(reads.begin(), reads.end(), [&](const hi::Call* r) { return is_apart(program, r->name); });
    if (!apart) replace_powers(program, of);
  }
  return program;
}

}  // namespace tc::gpu
