#include "tc/ir/single_writes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "tc/ir/index_expr.h"
#include "tc/ir/interval.h"

namespace tc::ir {

using Halide::Expr;

namespace {

/// True where the subscripts of the left side tell the values of the indices in `open`.
bool tells(const Statement& statement, std::set<std::string> open) {
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

}  // namespace

bool tells_all_indices(const Statement& statement) {
  std::set<std::string> all;
  for (const Index& index : statement.indices) all.insert(index.name);
  return tells(statement, std::move(all));
}

bool tells_map_indices(const Statement& statement) {
  std::set<std::string> map, reduction;
  for (const Index& index : statement.indices) (index.is_reduction ? reduction : map).insert(index.name);
  return std::none_of(statement.subscripts.begin(), statement.subscripts.end(),
                      [&](const Expr& subscript) {
                        const std::set<std::string> names = variables_of(subscript);
                        return is_data_dependent(subscript) ||
                               std::any_of(names.begin(), names.end(),
                                           [&](const auto& name) { return reduction.contains(name); });
                      }) &&
         tells(statement, std::move(map));
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
