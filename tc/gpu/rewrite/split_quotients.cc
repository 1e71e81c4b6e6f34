#include "tc/gpu/rewrite/split_quotients.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/names.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// (index + constant) / divisor, or the remainder.
struct Quotient {
  std::string index;
  int64_t constant = 0;
  int64_t divisor = 1;
};

/// The quotients and remainders in an expression.
class Quotients : public hi::IRVisitor {
 public:
  std::vector<Quotient> found;  ///< those of an index and a constant
  int count = 0;                ///< of all

 private:
  using IRVisitor::visit;
  void visit(const hi::Div* op) override { add(op); }
  void visit(const hi::Mod* op) override { add(op); }
  template <typename Operation>
  void add(const Operation* op) {
    ++count;
    IRVisitor::visit(op);
    const std::optional<ir::LinearForm> form = ir::linear_form(op->a);
    const int64_t* divisor = ir::constant_int(op->b);
    if (!form || divisor == nullptr || *divisor < 2) return;
    if (form->coefficients.size() != 1 || form->coefficients.begin()->second != 1) return;
    found.push_back({form->coefficients.begin()->first, form->constant, *divisor});
  }
};

Quotients quotients_of(const std::vector<Expr>& subscripts) {
  Quotients result;
  for (const Expr& subscript : subscripts) subscript.accept(&result);
  return result;
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// One statement. Indices get names that no other index of it has.
class Splitter {
 public:
  Splitter(const ir::Program& program, const ir::Statement& statement) : program_(program), statement_(statement) {}

  ir::Statement run() {
    if (std::any_of(statement_.subscripts.begin(), statement_.subscripts.end(),
                    [&](const Expr& subscript) { return reads_tensor(program_, subscript); })) {
      return std::move(statement_);
    }
    for (bool again = true; again;) {
      again = false;
      for (const Quotient& quotient : quotients_of(statement_.subscripts).found) {
        std::optional<ir::Statement> other = split(quotient);
        if (!other) continue;
        statement_ = *std::move(other);
        again = true;
        break;
      }
    }
    return std::move(statement_);
  }

 private:
  std::optional<ir::Statement> split(const Quotient& quotient) const {
    const auto at = std::find_if(statement_.indices.begin(), statement_.indices.end(),
                                 [&](const ir::Index& index) { return index.name == quotient.index; });
    if (at == statement_.indices.end() || at->is_reduction) return std::nullopt;
    const int64_t first = begin_of(*at) + quotient.constant, end = first + extent_of(*at);
    const int64_t begin = floor_div(first, quotient.divisor), last = floor_div(end - 1, quotient.divisor);
    if (end <= first) return std::nullopt;

    ir::Statement result = statement_;
    ir::Index& whole = result.indices[static_cast<size_t>(at - statement_.indices.begin())];
    ir::Index rest = make_index(fresh(quotient.index + "_rest"), quotient.divisor, false);
    whole.begin = index_constant(begin);
    whole.end = index_constant(last + 1);
    const Expr index = index_variable(whole.name) * index_constant(quotient.divisor) + index_variable(rest.name) -
                       index_constant(quotient.constant);
    result.indices.push_back(rest);
    ir::transform_expressions(result, [&](const Expr& e) {
      return ir::substitute_variables(e, {{quotient.index, index}});
    });
    for (Expr& subscript : result.subscripts) subscript = simplify_indices(subscript, result.indices);
    if (quotients_of(result.subscripts).count >= quotients_of(statement_.subscripts).count) return std::nullopt;
    result.value = simplify_indices(result.value, result.indices);
    const bool is_kept = std::any_of(result.subscripts.begin(), result.subscripts.end(),
                                     [&](const Expr& e) { return ir::mentions(e, rest.name); });
    if (!is_kept && !result.reduces()) return std::nullopt;
    place_rest(result, !is_kept);
    const bool is_whole = first % quotient.divisor == 0 && end % quotient.divisor == 0;
    if (!is_whole && (is_kept || !combine_outside(result, index, *at))) return std::nullopt;
    result.accesses.clear();
    result.index_values.clear();
    return result;
  }

  /// Map indices come first, the quotient in the place of the index.
  static void place_rest(ir::Statement& s, bool is_reduction) {
    ir::Index rest = std::move(s.indices.back());
    s.indices.pop_back();
    rest.is_reduction = is_reduction;
    const auto reduction =
        std::find_if(s.indices.begin(), s.indices.end(), [](const ir::Index& index) { return index.is_reduction; });
    s.indices.insert(reduction, std::move(rest));
  }

  /// Lets instances whose index lies outside of its range combine the identity.
  bool combine_outside(ir::Statement& s, const Expr& index, const ir::Index& range) const {
    const Expr inside = hi::simplify(index >= range.begin) && hi::simplify(index < range.end);
    if (s.value.type() != s.accumulator) return false;
    s.value = hi::Call::make(s.value.type(), hi::Call::if_then_else,
                             {hi::simplify(inside), s.value, ir::identity_of(s.assign, s.value.type())},
                             hi::Call::PureIntrinsic);
    return true;
  }

  std::string fresh(const std::string& wish) const {
    ir::Names names(program_);
    for (const ir::Index& index : statement_.indices) names.add(index.name);
    return names.fresh(wish);
  }

  const ir::Program& program_;
  ir::Statement statement_;
};

}  // namespace

ir::Program split_quotients(ir::Program program) {
  for (size_t s = 0; s < program.statements.size(); ++s) {
    program.statements[s] = Splitter(program, program.statements[s]).run();
  }
  return program;
}

}  // namespace tc::gpu
