#include "tc/gpu/strategy/contraction/affine_subscript.h"

#include <algorithm>

#include "tc/ir/linear_form.h"

namespace tc::gpu {

using Halide::Expr;

std::optional<LinearForm> linear(const Expr& e, const std::vector<std::string>& names) {
  const std::optional<ir::LinearForm> form = ir::linear_form(e);
  if (!form) return std::nullopt;
  LinearForm result{std::vector<int64_t>(names.size(), 0), form->constant};
  for (const auto& [name, by] : form->coefficients) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) return std::nullopt;
    result.coefficients[static_cast<size_t>(at - names.begin())] = by;
  }
  return result;
}

std::optional<ShiftedIndex> shifted(const Expr& e, const std::vector<std::string>& names) {
  const std::optional<LinearForm> value = linear(e, names);
  if (!value) return std::nullopt;
  std::optional<ShiftedIndex> result;
  for (size_t i = 0; i < names.size(); ++i) {
    if (value->coefficients[i] == 0) continue;
    if (value->coefficients[i] != 1 || result) return std::nullopt;
    result = ShiftedIndex{i, value->constant};
  }
  return result;
}

}  // namespace tc::gpu
