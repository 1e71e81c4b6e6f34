#include "tc/cuda/bounds.h"

#include <algorithm>

namespace tc::cuda {
namespace {

namespace hi = Halide::Internal;
using MaybeBounds = std::optional<Bounds>;

/// Beyond it nothing is claimed: so small that sums of such numbers do not overflow.
constexpr __int128 kFar = __int128{1} << 61;

MaybeBounds checked(__int128 least, __int128 greatest) {
  if (least < -kFar || greatest > kFar) return std::nullopt;
  return Bounds{static_cast<int64_t>(least), static_cast<int64_t>(greatest)};
}

MaybeBounds product(Bounds a, Bounds b) {
  const __int128 corners[] = {__int128{a.least} * b.least, __int128{a.least} * b.greatest,
                              __int128{a.greatest} * b.least, __int128{a.greatest} * b.greatest};
  return checked(*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4));
}

class Walk {
 public:
  explicit Walk(const VariableBounds& variables) : variables_(variables) {}

  MaybeBounds of(const Halide::Expr& e) const {
    if (!e.type().is_int() && !e.type().is_uint()) return std::nullopt;
    if (const auto* value = e.as<hi::IntImm>()) return Bounds{value->value, value->value};
    if (const auto* variable = e.as<hi::Variable>()) {
      const auto found = variables_.find(variable->name);
      return found == variables_.end() ? std::nullopt : MaybeBounds(found->second);
    }
    if (const auto* cast = e.as<hi::Cast>()) return of_cast(*cast);
    if (const auto* op = e.as<hi::Add>())
      return of_binary(*op, [](Bounds a, Bounds b) {
        return checked(__int128{a.least} + b.least, __int128{a.greatest} + b.greatest);
      });
    if (const auto* op = e.as<hi::Sub>())
      return of_binary(*op, [](Bounds a, Bounds b) {
        return checked(__int128{a.least} - b.greatest, __int128{a.greatest} - b.least);
      });
    if (const auto* op = e.as<hi::Mul>()) return of_binary(*op, product);
    if (const auto* op = e.as<hi::Min>())
      return of_binary(*op, [](Bounds a, Bounds b) {
        return MaybeBounds(Bounds{std::min(a.least, b.least), std::min(a.greatest, b.greatest)});
      });
    if (const auto* op = e.as<hi::Max>())
      return of_binary(*op, [](Bounds a, Bounds b) {
        return MaybeBounds(Bounds{std::max(a.least, b.least), std::max(a.greatest, b.greatest)});
      });
    if (const auto* op = e.as<hi::Div>())
      return of_binary(*op, [](Bounds a, Bounds b) {
        if (a.least < 0 || b.least <= 0) return MaybeBounds();
        return MaybeBounds(Bounds{a.least / b.greatest, a.greatest / b.least});
      });
    if (const auto* op = e.as<hi::Mod>())
      return of_binary(*op, [](Bounds a, Bounds b) {
        if (a.least < 0 || b.least <= 0) return MaybeBounds();
        return MaybeBounds(Bounds{0, std::min(a.greatest, b.greatest - 1)});
      });
    if (e.as<hi::Call>() && e.type() == Halide::Int(32)) return Bounds{INT32_MIN, INT32_MAX};
    return std::nullopt;
  }

 private:
  MaybeBounds of_cast(const hi::Cast& cast) const {
    const MaybeBounds inner = of(cast.value);
    if (!inner || cast.type.bits() < 32 || cast.type.is_uint()) return std::nullopt;
    if (cast.type.bits() == 32 && (inner->least < INT32_MIN || inner->greatest > INT32_MAX)) return std::nullopt;
    return inner;
  }

  template <typename Node, typename Combine>
  MaybeBounds of_binary(const Node& node, Combine combine) const {
    const MaybeBounds a = of(node.a);
    if (!a) return std::nullopt;
    const MaybeBounds b = of(node.b);
    return b ? combine(*a, *b) : std::nullopt;
  }

  const VariableBounds& variables_;
};

}  // namespace

std::optional<Bounds> bounds_of(const Halide::Expr& expr, const VariableBounds& variables) {
  return Walk(variables).of(expr);
}

}  // namespace tc::cuda
