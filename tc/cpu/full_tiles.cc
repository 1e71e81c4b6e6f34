#include "tc/cpu/full_tiles.h"

#include <algorithm>

namespace tc::cpu {

using Halide::Expr;
namespace hi = Halide::Internal;

/// A condition is linear in each loop variable, so it holds for all values of a tile's variables if it does for the
/// first and the last.
void FullTiles::require(const Expr& condition) {
  std::vector<Expr> cases{condition};
  for (const auto& [name, last] : tile_variables_) {
    if (!hi::expr_uses_var(condition, name)) continue;
    std::vector<Expr> both;
    for (const Expr& c : cases) {
      both.push_back(hi::substitute(name, 0, c));
      both.push_back(hi::substitute(name, static_cast<int>(last), c));
    }
    cases = std::move(both);
  }
  for (const Expr& c : cases) {
    Expr simple = hi::simplify(c);
    if (hi::is_const_one(simple)) continue;
    bool inner = hi::is_const_zero(simple);
    for (const std::string& name : other_variables_) inner = inner || hi::expr_uses_var(simple, name);
    if (inner) expressible_ = false;
    const bool known = std::any_of(conditions_.begin(), conditions_.end(),
                                   [&](const Expr& other) { return hi::equal(other, simple); });
    if (!known) conditions_.push_back(simple);
  }
}

std::optional<Expr> FullTiles::condition(LoopFacts around) const {
  if (!expressible_) return std::nullopt;
  Expr result = hi::const_true();
  for (size_t i = 0; i < conditions_.size(); ++i) {
    LoopFacts rest = around;
    for (size_t j = i + 1; j < conditions_.size(); ++j) rest.assume(conditions_[j]);
    if (rest.imply(conditions_[i])) continue;
    around.assume(conditions_[i]);
    result = hi::is_const_one(result) ? conditions_[i] : result && conditions_[i];
  }
  return result;
}

}  // namespace tc::cpu
