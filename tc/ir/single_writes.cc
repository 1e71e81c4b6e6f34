#include "tc/ir/single_writes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <vector>

#include "tc/ir/index_expr.h"
#include "tc/ir/interval.h"

namespace tc::ir {

using Halide::Expr;

bool tells_all_indices(const Statement& statement) {
  std::set<std::string> open;
  for (const Index& index : statement.indices) open.insert(index.name);
  bool progress = true;
  while (progress && !open.empty()) {
    progress = false;
    for (const Expr& subscript : statement.subscripts) {
      std::vector<std::string> unknown;
      for (const std::string& name : variables_of(subscript)) {
        if (open.contains(name)) unknown.push_back(name);
      }
      if (unknown.size() != 1) continue;
      const Expr factor = coefficient_of(subscript, unknown[0]);
      if (!factor.defined() || constant_value(factor).value_or(0) == 0) continue;
      open.erase(unknown[0]);
      progress = true;
    }
  }
  return open.empty();
}

bool may_set_twice(const Statement& statement) {
  return statement.assign == Assign::kSet && !tells_all_indices(statement);
}

namespace {

std::string instance_text(const Statement& statement, const std::vector<int64_t>& values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", statement.indices[i].name, values[i]);
  }
  return text;
}

}  // namespace

std::string collision_text(const Statement& statement, const std::optional<Collision>& collision) {
  if (!collision) return "may write an element twice";
  std::string text =
      fmt::format("writes {}({}) twice, for {} and for {}", statement.tensor, fmt::join(collision->element, ", "),
                  instance_text(statement, collision->first), instance_text(statement, collision->second));
  size_t written = 0;
  for (const auto& [name, value] : collision->sizes) {
    const char* const link = written == 0 ? ", where " : written + 1 == collision->sizes.size() ? " and " : ", ";
    text += fmt::format("{}{} is {}", link, name, value);
    ++written;
  }
  return text;
}

std::string written_twice(std::string_view left, const Statement& statement,
                          const std::optional<Collision>& collision) {
  return fmt::format(
      "with '=' each element is written once, but {} {}: write '+=!' to sum, or leave instances out with 'where'", left,
      collision_text(statement, collision));
}

}  // namespace tc::ir
