#include "tc/lang/inferred_ranges.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "tc/lang/format.h"
#include "tc/lang/parser.h"
#include "tc/lang/typed_text.h"
#include "tc/lang/walk.h"

namespace tc::lang {
namespace {

/// Larger coefficients are not looked at: sums of a few of them fit int64.
constexpr int64_t kLargest = int64_t{1} << 40;

/// constant + sum of coefficient * atom. Atoms are texts that no arithmetic is known of.
struct LinearForm {
  std::map<std::string, int64_t> terms;
  int64_t constant = 0;

  void add(const LinearForm& other, int64_t factor) {
    constant += factor * other.constant;
    for (const auto& [atom, coefficient] : other.terms) {
      if ((terms[atom] += factor * coefficient) == 0) terms.erase(atom);
    }
  }
  std::optional<int64_t> value() const { return terms.empty() ? std::optional(constant) : std::nullopt; }
  bool is_small() const {
    return std::abs(constant) < kLargest &&
           std::ranges::all_of(terms, [](const auto& term) { return std::abs(term.second) < kLargest; });
  }
};

LinearForm atom(std::string text) { return {{{std::move(text), 1}}, 0}; }

LinearForm linear_form(const Expr& expr) {
  if (const auto* literal = std::get_if<IntegerLiteral>(&expr.node)) {
    if (literal->value < kLargest) return {{}, literal->value};
  } else if (const auto* unary = std::get_if<Unary>(&expr.node); unary && unary->op == UnaryOp::kNegate) {
    LinearForm form;
    form.add(linear_form(*unary->operand), -1);
    return form;
  } else if (const auto* binary = std::get_if<Binary>(&expr.node)) {
    LinearForm left = linear_form(*binary->left);
    const LinearForm right = linear_form(*binary->right);
    if (binary->op == BinaryOp::kAdd || binary->op == BinaryOp::kSub) {
      left.add(right, binary->op == BinaryOp::kAdd ? 1 : -1);
      if (left.is_small()) return left;
    } else if (binary->op == BinaryOp::kMul && (left.value() || right.value())) {
      LinearForm product;
      const int64_t factor = left.value() ? *left.value() : *right.value();
      product.add(left.value() ? right : left, std::abs(factor) < 1024 ? factor : 0);
      if (std::abs(factor) < 1024 && product.is_small()) return product;
    }
  }
  return atom(format(expr));
}

LinearForm linear_form(const std::string& text) {
  const auto file = parse(std::make_shared<const Source>("extent", "def f() -> (o) { o = " + text + " }"));
  if (!file) return atom(text);
  return linear_form(*file->definitions[0].statements[0].right);
}

/// A subscript as a linear form of the statement's indices and of what does not change in it.
struct Affine {
  std::map<int, int64_t> steps;  ///< of indices
  LinearForm rest;
};

bool has_index(const TypedExpr& expr) {
  return std::visit(Overloaded{
                        [](const IndexRef&) { return true; },
                        [](const TypedUnary& unary) { return has_index(*unary.operand); },
                        [](const TypedBinary& binary) { return has_index(*binary.left) || has_index(*binary.right); },
                        [](const Cast& cast) { return has_index(*cast.operand); },
                        [](const LetRef& let) { return has_index(*let.value); },
                        [](const SizeRef&) { return false; },
                        [](const ScalarRef&) { return false; },
                        [](const ExtentRef&) { return false; },
                        [](const IntegerConstant&) { return false; },
                        [](const auto&) { return true; },
                    },
                    expr.node);
}

std::optional<Affine> affine(const Access& access, const TypedExpr& expr) {
  if (const auto* index = std::get_if<IndexRef>(&expr.node)) return Affine{{{index->index, 1}}, {}};
  if (const auto* let = std::get_if<LetRef>(&expr.node)) return affine(access, *let->value);
  if (!has_index(expr)) {
    const TypedStatement& statement = access.definition.statements[access.statement];
    return Affine{{}, linear_form(index_text(access.definition, statement, expr))};
  }
  const auto* binary = std::get_if<TypedBinary>(&expr.node);
  if (!binary) return std::nullopt;
  std::optional<Affine> left = affine(access, *binary->left);
  const std::optional<Affine> right = affine(access, *binary->right);
  if (!left || !right) return std::nullopt;
  const auto combine = [](Affine a, const Affine& b, int64_t factor) {
    for (const auto& [index, step] : b.steps) {
      if ((a.steps[index] += factor * step) == 0) a.steps.erase(index);
    }
    a.rest.add(b.rest, factor);
    return a;
  };
  if (binary->op == BinaryOp::kAdd) return combine(*left, *right, 1);
  if (binary->op == BinaryOp::kSub) return combine(*left, *right, -1);
  if (binary->op != BinaryOp::kMul) return std::nullopt;
  const auto times = [&](const Affine& number, const Affine& other) -> std::optional<Affine> {
    const std::optional<int64_t> factor = number.steps.empty() ? number.rest.value() : std::nullopt;
    if (!factor || std::abs(*factor) >= 1024) return std::nullopt;
    return combine({}, other, *factor);
  };
  const std::optional<Affine> product = times(*left, *right);
  return product ? product : times(*right, *left);
}

/// The least and the greatest value of a subscript.
std::pair<LinearForm, LinearForm> interval(const Access& access, const Affine& subscript,
                                           const InferredRanges& inferred) {
  LinearForm least = subscript.rest, greatest = subscript.rest;
  for (const auto& [index, step] : subscript.steps) {
    const auto& [low, high] = inferred.indices[access.statement][static_cast<size_t>(index)];
    const LinearForm first = linear_form(low);
    LinearForm last = linear_form(high);
    last.constant -= 1;
    least.add(step > 0 ? first : last, step);
    greatest.add(step > 0 ? last : first, step);
  }
  return {least, greatest};
}

LinearForm difference(LinearForm a, const LinearForm& b) {
  a.add(b, -1);
  return a;
}

}  // namespace

bool reads_elements(const TypedExpr& expr) {
  return std::visit(
      Overloaded{
          [](const Read&) { return true; },
          [](const TypedUnary& unary) { return reads_elements(*unary.operand); },
          [](const TypedBinary& binary) { return reads_elements(*binary.left) || reads_elements(*binary.right); },
          [](const Select& select) {
            return reads_elements(*select.condition) || reads_elements(*select.if_true) ||
                   reads_elements(*select.if_false);
          },
          [](const Intrinsic& call) {
            return std::ranges::any_of(call.arguments, [](const auto& a) { return reads_elements(*a); });
          },
          [](const Cast& cast) { return reads_elements(*cast.operand); },
          [](const LetRef& let) { return reads_elements(*let.value); },
          [](const auto&) { return false; },
      },
      expr.node);
}

bool is_plain(const std::vector<TypedExprPtr>& subscripts) {
  std::set<int> seen;
  return std::ranges::all_of(subscripts, [&](const TypedExprPtr& subscript) {
    const auto* index = std::get_if<IndexRef>(&subscript->node);
    return index && seen.insert(index->index).second;
  });
}

bool meets_all(const Access& access, const InferredRanges& inferred) {
  return is_plain(access.subscripts) && covers(access, inferred);
}

bool covers(const Access& access, const InferredRanges& inferred) {
  std::set<int> seen;
  for (size_t d = 0; d < access.subscripts.size(); ++d) {
    const std::optional<Affine> subscript = affine(access, *access.subscripts[d]);
    if (!subscript) return false;
    for (const auto& [index, step] : subscript->steps) {
      if (step != 1 || !seen.insert(index).second) return false;
    }
    const auto [least, greatest] = interval(access, *subscript, inferred);
    LinearForm left = linear_form(inferred.extents[static_cast<size_t>(access.tensor)][d]);
    left.add(greatest, -1);
    if (least.value() != 0 || left.value() != 1) return false;
  }
  return true;
}

bool are_apart(const Access& a, const Access& b, const InferredRanges& inferred) {
  for (size_t d = 0; d < a.subscripts.size(); ++d) {
    const std::optional<Affine> of_a = affine(a, *a.subscripts[d]);
    const std::optional<Affine> of_b = affine(b, *b.subscripts[d]);
    if (!of_a || !of_b) continue;
    const auto [least_a, greatest_a] = interval(a, *of_a, inferred);
    const auto [least_b, greatest_b] = interval(b, *of_b, inferred);
    if (difference(least_b, greatest_a).value().value_or(0) > 0) return true;
    if (difference(least_a, greatest_b).value().value_or(0) > 0) return true;
    int64_t step = 0;
    for (const Affine& subscript : {*of_a, *of_b}) {
      for (const auto& term : subscript.steps) step = std::gcd(step, term.second);
    }
    const std::optional<int64_t> offset = difference(of_a->rest, of_b->rest).value();
    if (step > 1 && offset && *offset % step != 0) return true;
  }
  return false;
}

}  // namespace tc::lang
