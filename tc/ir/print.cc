#include "tc/ir/print.h"

#include <fmt/format.h>

#include <algorithm>

#include "tc/ir/bounds.h"
#include "tc/ir/expr_text.h"
#include "tc/support/check.h"

namespace tc::ir {

using Halide::Expr;

namespace {

std::string list_text(const std::vector<Expr>& expressions, const char* separator) {
  std::string text;
  for (const Expr& e : expressions) text += (text.empty() ? "" : separator) + to_text(e);
  return text;
}

std::string_view role_text(Role role) {
  switch (role) {
    case Role::kInput:
      return "input";
    case Role::kResult:
      return "result";
    case Role::kInOut:
      return "in-out";
    case Role::kTemporary:
      return "temporary";
  }
  TC_CHECK(false, "unknown role");
}

std::string assign_text(const Statement& s) {
  const char* bang = s.initialises ? "!" : "";
  switch (s.assign) {
    case Assign::kSet:
      return "=";
    case Assign::kAdd:
      return fmt::format("+={}", bang);
    case Assign::kMul:
      return fmt::format("*={}", bang);
    case Assign::kMin:
      return fmt::format("min={}", bang);
    case Assign::kMax:
      return fmt::format("max={}", bang);
  }
  TC_CHECK(false, "unknown assignment");
}

std::string tensor_text(const Tensor& tensor) {
  if (tensor.rank() == 0) return fmt::format("{} {}", type_text(tensor.type), tensor.name);
  return fmt::format("{}({}) {}", type_text(tensor.type), list_text(tensor.extents, ","), tensor.name);
}

std::string left_text(const Statement& s) {
  return s.subscripts.empty() ? s.tensor : fmt::format("{}({})", s.tensor, list_text(s.subscripts, ", "));
}

std::string range_text(const Index& index) {
  return fmt::format("{} in {}:{}", index.name, to_text(index.begin), to_text(index.end));
}

/// "map i in 0:N; reduce k in 0:K"
std::string ranges_text(const Statement& s) {
  std::string maps, reductions;
  for (const Index& index : s.indices) {
    std::string& list = index.is_reduction ? reductions : maps;
    list += (list.empty() ? "" : ", ") + range_text(index);
  }
  std::string text;
  if (!maps.empty()) text += fmt::format("map {}", maps);
  if (!reductions.empty()) text += fmt::format("{}reduce {}", text.empty() ? "" : "; ", reductions);
  return text;
}

std::string scalar_text(const Scalar& scalar) { return fmt::format("{} {}", type_text(scalar.type), scalar.name); }

/// "needs N <= M" without the values, which only a call has.
std::string precondition_text(const Precondition& p) { return p.sentence.substr(0, p.sentence.find(", but ")); }

}  // namespace

std::string signature_text(const Program& program) {
  std::string parameters, results;
  for (const std::string& name : program.parameters) {
    const Scalar* scalar = program.find_scalar(name);
    if (!parameters.empty()) parameters += ", ";
    parameters += scalar ? scalar_text(*scalar) : tensor_text(program.tensor(name));
  }
  for (const std::string& name : program.results) {
    if (!results.empty()) results += ", ";
    results += tensor_text(program.tensor(name));
  }
  return fmt::format("def {}({}) -> ({})", program.name, parameters, results);
}

std::string to_text(const Program& program) {
  std::string text = fmt::format("program {}\n", program.name);
  for (const std::string& size : program.sizes) text += fmt::format("  size {}\n", size);
  for (const Scalar& scalar : program.scalars) {
    text += fmt::format("  {} {}\n", scalar.specialised ? "constant" : "scalar", scalar_text(scalar));
  }
  for (const Tensor& tensor : program.tensors) {
    text += fmt::format("  {} {}\n", role_text(tensor.role), tensor_text(tensor));
  }
  for (const Statement& s : program.statements) {
    text += fmt::format("  {}: {} {} {}\n", s.id, left_text(s), assign_text(s), to_text(s.value));
    const std::string ranges = ranges_text(s);
    if (!ranges.empty()) text += fmt::format("      {}\n", ranges);
    if (s.guard.defined()) text += fmt::format("      if {}\n", to_text(s.guard));
    if (s.accumulator != program.tensor(s.tensor).type) text += fmt::format("      in {}\n", type_text(s.accumulator));
  }
  for (const Precondition& p : program.preconditions) text += fmt::format("  precondition {}\n", precondition_text(p));
  return text;
}

std::string report(const Program& program) {
  std::string text = signature_text(program) + "\n";
  for (const Tensor& tensor : program.tensors) {
    if (tensor.role == Role::kTemporary || tensor.role == Role::kInOut) {
      text += fmt::format("  {} {}\n", role_text(tensor.role), tensor_text(tensor));
    }
  }
  for (const Statement& s : program.statements) {
    const std::string ranges = ranges_text(s);
    text += fmt::format("  {} {} ...{}{}\n", left_text(s), assign_text(s), ranges.empty() ? "" : "  ", ranges);
  }
  for (const Precondition& p : program.preconditions) text += fmt::format("  checked: {}\n", precondition_text(p));
  for (const RunTimeCheck& c : run_time_checks(program)) {
    text += fmt::format("  with --check_bounds: 0 <= {} < {} in {}\n", to_text(c.subscript), to_text(c.extent),
                        program.source->text(c.range));
  }
  return text;
}

}  // namespace tc::ir
