#include "tc/gpu/strategy/contraction/affine_subscript.h"
#include "tc/ir/halide_compat.h"

#include <algorithm>

namespace tc::gpu {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

std::optional<LinearForm> scaled(std::optional<LinearForm> a, int64_t by) {
  if (!a) return std::nullopt;
  for (int64_t& c : a->coefficients) c *= by;
  a->constant *= by;
  return a;
}

}  // namespace

std::optional<LinearForm> linear(const Expr& e, const std::vector<std::string>& names) {
  LinearForm result{std::vector<int64_t>(names.size(), 0), 0};
  if (const int64_t* value = ir::constant_int(e)) {
    result.constant = *value;
    return result;
  }
  if (const auto* variable = e.as<hi::Variable>()) {
    const auto at = std::find(names.begin(), names.end(), variable->name);
    if (at == names.end()) return std::nullopt;
    result.coefficients[static_cast<size_t>(at - names.begin())] = 1;
    return result;
  }
  if (const auto* op = e.as<hi::Mul>()) {
    if (const int64_t* by = ir::constant_int(op->b)) return scaled(linear(op->a, names), *by);
    if (const int64_t* by = ir::constant_int(op->a)) return scaled(linear(op->b, names), *by);
    return std::nullopt;
  }
  const auto* add = e.as<hi::Add>();
  const auto* sub = e.as<hi::Sub>();
  if (!add && !sub) return std::nullopt;
  const std::optional<LinearForm> a = linear(add ? add->a : sub->a, names);
  const std::optional<LinearForm> b = scaled(linear(add ? add->b : sub->b, names), add ? 1 : -1);
  if (!a || !b) return std::nullopt;
  result.constant = a->constant + b->constant;
  for (size_t i = 0; i < names.size(); ++i) result.coefficients[i] = a->coefficients[i] + b->coefficients[i];
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
