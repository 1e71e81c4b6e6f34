#include "tc/ir/canonical.h"

#include <fmt/format.h>

#include <map>

#include "tc/ir/expr_text.h"

namespace tc::ir {

using Halide::Expr;

namespace {

using Names = std::map<std::string, std::string>;

std::string replaced(const Names& names, const std::string& name) {
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

class Canonical {
 public:
  explicit Canonical(const Program& program) : program_(program) {
    for (size_t i = 0; i < program.sizes.size(); ++i) variables_[program.sizes[i]] = fmt::format("n{}", i);
    for (size_t i = 0; i < program.scalars.size(); ++i) variables_[program.scalars[i].name] = fmt::format("s{}", i);
    for (size_t i = 0; i < program.tensors.size(); ++i) tensors_[program.tensors[i].name] = fmt::format("t{}", i);
  }

  std::string text() const {
    std::string result;
    for (const std::string& p : program_.parameters) {
      result += fmt::format("parameter {}\n", replaced(program_.find_scalar(p) ? variables_ : tensors_, p));
    }
    for (const std::string& r : program_.results) result += fmt::format("result {}\n", replaced(tensors_, r));
    for (const Scalar& s : program_.scalars) {
      result += fmt::format("scalar {} {}\n", type_text(s.type), s.specialised ? "constant" : "argument");
    }
    for (const Tensor& t : program_.tensors) {
      result += fmt::format("tensor {} role {}", type_text(t.type), static_cast<int>(t.role));
      for (const Expr& e : t.extents) result += fmt::format(" {}", expression(e, variables_));
      result += "\n";
    }
    for (const Statement& s : program_.statements) result += statement(s);
    for (const Precondition& p : program_.preconditions) {
      if (p.condition.defined()) result += fmt::format("precondition {}\n", expression(p.condition, variables_));
    }
    return result;
  }

 private:
  std::string expression(const Expr& e, const Names& variables) const {
    TextStyle style;
    style.variable = [&](const std::string& name) { return replaced(variables, name); };
    style.tensor = [&](const std::string& name) { return replaced(tensors_, name); };
    style.exact = true;
    return to_text(e, style);
  }

  std::string statement(const Statement& s) const {
    Names variables = variables_;
    for (size_t i = 0; i < s.indices.size(); ++i) variables[s.indices[i].name] = fmt::format("i{}", i);
    std::string result = fmt::format("statement {} op {}{} in {}\n", replaced(tensors_, s.tensor),
                                     static_cast<int>(s.assign), s.initialises ? "!" : "", type_text(s.accumulator));
    for (const Expr& e : s.subscripts) result += fmt::format("  at {}\n", expression(e, variables));
    for (const Index& index : s.indices) {
      result += fmt::format("  {} {} {}\n", index.is_reduction ? "reduce" : "map", expression(index.begin, variables),
                            expression(index.end, variables));
    }
    if (s.guard.defined()) result += fmt::format("  if {}\n", expression(s.guard, variables));
    if (program_.waits_for_scalars()) result += inferred_from(s, variables);
    return result + fmt::format("  value {}\n", expression(s.value, variables));
  }

  /// What the ranges will be inferred from when the scalars have values.
  std::string inferred_from(const Statement& s, const Names& variables) const {
    std::string result;
    for (const Index& index : s.indices) result += index.given ? "  given\n" : "  inferred\n";
    for (const Access& a : s.accesses) {
      result += fmt::format("  {} {}", a.exists_only ? "exists" : "access", replaced(tensors_, a.tensor));
      for (const Expr& e : a.subscripts) result += fmt::format(" {}", expression(e, variables));
      result += fmt::format(" if {}\n", a.guard.defined() ? expression(a.guard, variables) : "true");
    }
    return result;
  }

  const Program& program_;
  Names variables_;
  Names tensors_;
};

}  // namespace

std::string canonical_form(const Program& program) { return Canonical(program).text(); }

Digest digest_of(const Program& program) { return Digest::of(canonical_form(program)); }

}  // namespace tc::ir
