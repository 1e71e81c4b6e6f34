#include "tc/ir/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tc/ir/expr_text.h"
#include "tc/ir/unproved_checks.h"
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
  const std::string strides =
      tensor.strides.empty() ? "" : fmt::format(" strides ({})", fmt::join(tensor.strides, ","));
  return fmt::format("{}({}) {}{}", type_text(tensor.type), list_text(tensor.extents, ","), tensor.name, strides);
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

/// "      h ends by I(h + kh) (R2)": which rule set each end of an inferred range. A start at 0 goes without saying.
std::string index_text(const Program& program, const Statement& s, const Index& index) {
  if (!index.begin.defined() || index.end_by.rule == RangeRule::kWholeTensor) return "";
  const auto by = [&](const RangeEnd& end) {
    return fmt::format("{} ({})", cause_text(program, s, end), rule_text(end.rule));
  };
  if (index.end_by.rule == RangeRule::kWhere)
    return fmt::format("      {} is given by {}\n", index.name, by(index.end_by));
  const bool starts_later = index.begin_by.rule != RangeRule::kStart;
  return fmt::format("      {} {}ends by {}\n", index.name,
                     starts_later ? fmt::format("starts by {}, ", by(index.begin_by)) : "", by(index.end_by));
}

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
    text += fmt::format("  {} {}{}\n", scalar.specialised ? "constant" : "scalar", scalar_text(scalar),
                        scalar.value ? fmt::format(" = {}", *scalar.value) : "");
  }
  for (const Tensor& tensor : program.tensors) {
    text += fmt::format("  {} {}\n", role_text(tensor.role), tensor_text(tensor));
  }
  for (const Statement& s : program.statements) {
    text += fmt::format("  {}: {}\n", s.id, statement_text(s));
    const std::string ranges = ranges_text(s);
    if (!ranges.empty()) text += fmt::format("      {}\n", ranges);
    if (s.guard.defined()) text += fmt::format("      if {}\n", to_text(s.guard));
    if (s.accumulator != program.tensor(s.tensor).type) text += fmt::format("      in {}\n", type_text(s.accumulator));
  }
  for (const Precondition& p : program.preconditions) text += fmt::format("  precondition {}\n", precondition_text(p));
  return text;
}

std::string statement_text(const Statement& statement) {
  return fmt::format("{} {} {}", left_text(statement), assign_text(statement), to_text(statement.value));
}

std::string rule_text(RangeRule rule) {
  switch (rule) {
    case RangeRule::kStart:
      return "R1";
    case RangeRule::kWhere:
      return "C10";
    case RangeRule::kReads:
      return "R2";
    case RangeRule::kGuardedReads:
    case RangeRule::kBesideGuards:
      return "R6";
    case RangeRule::kAnnotation:
    case RangeRule::kOtherExtent:
      return "R3";
    case RangeRule::kWholeTensor:
      return "";
  }
  TC_CHECK(false, "unknown rule");
}

std::string cause_text(const Program& program, const Statement& statement, const RangeEnd& by) {
  std::string reads;
  for (const SourceRange& read : by.reads) {
    reads += fmt::format("{}{}", reads.empty() ? "" : " and ", program.source->text(read));
  }
  switch (by.rule) {
    case RangeRule::kStart:
      return "the start of all indices";
    case RangeRule::kWhere:
      return "its 'where'";
    case RangeRule::kReads:
      return reads;
    case RangeRule::kGuardedReads:
      return reads.empty() ? "the guards of its reads" : fmt::format("the guard of {}", reads);
    case RangeRule::kBesideGuards:
      return reads.empty() ? "its reads without their guards" : fmt::format("{} without its guard", reads);
    case RangeRule::kAnnotation:
      return fmt::format("the declared extent of '{}'", statement.tensor);
    case RangeRule::kOtherExtent:
      return fmt::format("the extent of '{}'", statement.tensor);
    case RangeRule::kWholeTensor:
      return fmt::format("all of '{}'", statement.tensor);
  }
  TC_CHECK(false, "unknown rule");
}

namespace {

/// What a call must fulfil, not the complaint of one that does not.
std::string requirement_line(const Precondition& p) {
  const std::string sentence = precondition_text(p);
  constexpr std::string_view kNeeds = ": it needs ";
  const size_t at = sentence.find(kNeeds);
  if (at == std::string::npos) return fmt::format("  {}\n", sentence);
  return fmt::format("  a call needs {}: otherwise {}\n", sentence.substr(at + kNeeds.size()), sentence.substr(0, at));
}

}  // namespace

std::string report(const Program& program) {
  std::string text = signature_text(program) + "\n";
  for (const Tensor& tensor : program.tensors) {
    if (tensor.role == Role::kTemporary || tensor.role == Role::kInOut) {
      text += fmt::format("  {} {}\n", role_text(tensor.role), tensor_text(tensor));
    }
  }
  for (const Scalar& scalar : program.scalars) {
    if (scalar.specialised && scalar.value) text += fmt::format("  {} is {}\n", scalar.name, *scalar.value);
    if (scalar.specialised && !scalar.value && program.open) {
      text += fmt::format("  the ranges depend on '{0}': give it with --scalars={0}=...\n", scalar.name);
    }
  }
  for (const Statement& s : program.statements) {
    const std::string ranges = ranges_text(s);
    text += fmt::format("  {} {} ...{}{}\n", left_text(s), assign_text(s), ranges.empty() ? "" : "  ", ranges);
    for (const Index& index : s.indices) text += index_text(program, s, index);
  }
  for (const Precondition& p : program.preconditions) text += requirement_line(p);
  for (const RunTimeCheck& c : unproved_checks(program)) {
    text += fmt::format("  with --check_bounds: 0 <= {} < {} in {}\n", to_text(c.subscript), to_text(c.extent),
                        program.source->text(c.range));
  }
  return text;
}

}  // namespace tc::ir
