#include "tc/gpu/rewrite/split_digits.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tc/gpu/rewrite/reshape_temporaries.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/reads.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

using IsContraction = std::function<bool(const ir::Program&, const ir::Statement&)>;

/// A dimension of a tensor, and what to cut it by.
struct Cut {
  std::string tensor;
  size_t dimension = 0;
  int64_t divisor = 1;
};

const ir::Index* find_index(const ir::Statement& s, const std::string& name) {
  const auto at = std::find_if(s.indices.begin(), s.indices.end(), [&](const ir::Index& i) { return i.name == name; });
  return at == s.indices.end() ? nullptr : &*at;
}

/// The largest divisor of an index in a subscript that divides its number of values; 0: there is none.
class FindDivisor : public hi::IRVisitor {
 public:
  explicit FindDivisor(const ir::Index& index) : index_(index) {}
  int64_t divisor = 0;

 private:
  using IRVisitor::visit;
  void visit(const hi::Div* op) override { look(op); }
  void visit(const hi::Mod* op) override { look(op); }
  template <typename Division>
  void look(const Division* op) {
    IRVisitor::visit(op);
    const auto* variable = op->a.template as<hi::Variable>();
    const int64_t* by = ir::constant_int(op->b);
    if (variable == nullptr || variable->name != index_.name || by == nullptr || *by < 2) return;
    if (extent_of(index_) % *by == 0) divisor = std::max(divisor, *by);
  }

  const ir::Index& index_;
};

/// The cuts that the quotients and remainders of a product's indices ask for.
std::vector<Cut> cuts_for_quotients(const ir::Program& program, const ir::Statement& s) {
  std::vector<Cut> cuts;
  const std::vector<const hi::Call*> reads = ir::reads_in(program, s.value);
  for (const ir::Index& index : s.indices) {
    if (index.is_reduction) continue;
    FindDivisor find(index);
    for (const hi::Call* read : reads) {
      for (const Expr& e : read->args) e.accept(&find);
    }
    if (find.divisor == 0) continue;
    for (size_t d = 0; d < s.subscripts.size(); ++d) {
      const auto* variable = s.subscripts[d].as<hi::Variable>();
      if (variable != nullptr && variable->name == index.name) cuts.push_back({s.tensor, d, find.divisor});
    }
  }
  return cuts;
}

/// The coefficient of one of two indices that a subscript adds up, where the other has as many values at most.
int64_t divisor_of_sum(const ir::Statement& s, const Expr& subscript) {
  const std::optional<ir::LinearForm> form = ir::linear_form(hi::simplify(subscript));
  if (!form || form->coefficients.size() != 2) return 0;
  int64_t divisor = 0, values = 0;
  for (const auto& [name, coefficient] : form->coefficients) {
    const ir::Index* index = find_index(s, name);
    if (index == nullptr || coefficient < 1) return 0;
    (coefficient == 1 ? values : divisor) = coefficient == 1 ? extent_of(*index) : coefficient;
  }
  return values <= divisor ? divisor : 0;
}

void add_cuts_of_sums(const ir::Statement& s, const std::string& tensor, const std::vector<Expr>& subscripts,
                      std::vector<Cut>& cuts) {
  for (size_t d = 0; d < subscripts.size(); ++d) {
    if (const int64_t divisor = divisor_of_sum(s, subscripts[d]); divisor > 1) cuts.push_back({tensor, d, divisor});
  }
}

/// The dimensions with sums of two indices, of what a statement writes and reads.
std::vector<Cut> cuts_of_sums(const ir::Program& program, const ir::Statement& s) {
  std::vector<Cut> cuts;
  add_cuts_of_sums(s, s.tensor, s.subscripts, cuts);
  for (const hi::Call* read : ir::reads_in(program, s.value)) add_cuts_of_sums(s, read->name, read->args, cuts);
  return cuts;
}

/// A cut of sums by a divisor that some statement asks for.
std::optional<ir::Program> with_sum_cut(const ir::Program& program, int64_t divisor) {
  for (const ir::Statement& s : program.statements) {
    for (const Cut& cut : cuts_of_sums(program, s)) {
      if (cut.divisor != divisor) continue;
      if (auto result = cut_dimension(program, cut.tensor, cut.dimension, divisor)) return result;
    }
  }
  return std::nullopt;
}

constexpr int kMostCuts = 16;  ///< one after the other: texts that ask for more are none that this is for

/// The program with a cut, and with cuts of the sums that it brings.
std::optional<ir::Program> with_cut(const ir::Program& program, const Cut& first) {
  std::optional<ir::Program> result = cut_dimension(program, first.tensor, first.dimension, first.divisor);
  for (int cuts = 1; result; ++cuts) {
    std::optional<ir::Program> next = with_sum_cut(*result, first.divisor);
    if (!next) break;
    if (cuts == kMostCuts) return std::nullopt;
    result = std::move(next);
  }
  return result;
}

std::vector<bool> contractions_of(const ir::Program& program, const IsContraction& is_contraction) {
  std::vector<bool> result;
  for (const ir::Statement& s : program.statements) result.push_back(s.reduces() && is_contraction(program, s));
  return result;
}

/// The program with a cut that the statement's quotients or sums ask for.
std::optional<ir::Program> with_cut_for(const ir::Program& program, const ir::Statement& s) {
  std::vector<Cut> cuts = cuts_for_quotients(program, s);
  add_cuts_of_sums(s, s.tensor, s.subscripts, cuts);
  for (const Cut& cut : cuts) {
    if (auto result = with_cut(program, cut)) return result;
  }
  return std::nullopt;
}

/// The program with cuts that make a contraction of a statement, and of no other less.
std::optional<ir::Program> with_contraction(const ir::Program& program, size_t at,
                                            const IsContraction& is_contraction) {
  const std::vector<bool> before = contractions_of(program, is_contraction);
  std::optional<ir::Program> result = with_cut_for(program, program.statements[at]);
  for (int cuts = 1; result; ++cuts) {
    std::optional<ir::Program> next = with_cut_for(*result, result->statements[at]);
    if (!next) break;
    if (cuts == kMostCuts) return std::nullopt;
    result = std::move(next);
  }
  if (!result) return std::nullopt;
  const std::vector<bool> after = contractions_of(*result, is_contraction);
  for (size_t s = 0; s < before.size(); ++s) {
    if (before[s] && !after[s]) return std::nullopt;
  }
  return after[at] ? result : std::nullopt;
}

/// Whether a statement has two factors at least, and is no contraction.
bool may_become_contraction(const ir::Program& program, const ir::Statement& s, const IsContraction& is_contraction) {
  return s.reduces() && !s.guard.defined() && ir::reads_in(program, s.value).size() > 1 && !is_contraction(program, s);
}

}  // namespace

ir::Program split_digits(ir::Program program, const IsContraction& is_contraction) {
  for (size_t at = 0; at < program.statements.size(); ++at) {
    if (!may_become_contraction(program, program.statements[at], is_contraction)) continue;
    if (std::optional<ir::Program> split = with_contraction(program, at, is_contraction)) program = *std::move(split);
  }
  return program;
}

}  // namespace tc::gpu
