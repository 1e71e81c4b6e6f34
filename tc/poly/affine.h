#pragma once

#include <Halide.h>

#include <isl/cpp.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tc::poly {

/// Expressions over the indices of one statement, as isl sees them.
///
/// Exact or nothing: an expression is affine here only if isl's unbounded integers compute what its own type does, so
/// arithmetic in narrow types counts only where the indices' ranges show that it cannot overflow.
class AffineScope {
 public:
  /// The indices' least and largest values, where known.
  using Range = std::optional<std::pair<int64_t, int64_t>>;

  /// `space` is { S[i] }; its dimensions are the variables named `indices`. Other variables are in no affine
  /// expression.
  AffineScope(isl::space space, std::vector<std::string> indices, std::vector<Range> ranges);

  /// The expression as a piecewise affine function { S[i] -> [x] }, or nothing if it is not one: products of indices,
  /// tensor reads, arithmetic that may overflow, floats.
  std::optional<isl::pw_aff> affine(const Halide::Expr& expr);

  /// Where a condition may hold, and where it may fail. Disjoint if the condition is affine as a whole.
  struct Truth {
    isl::set holds;
    isl::set fails;
  };
  Truth truth(const Halide::Expr& condition);

  const isl::space& space() const { return space_; }

  /// Runs `body` with the let's name bound to its value.
  void with_let(const std::string& name, const Halide::Expr& value, const std::function<void()>& body);

 private:
  struct Value {
    isl::pw_aff function;
    Range range;
  };
  std::optional<Value> value(const Halide::Expr& expr);
  std::optional<Value> variable_value(const Halide::Internal::Variable* variable);
  std::optional<Value> binary(const Halide::Expr& expr, const Halide::Expr& a, const Halide::Expr& b);
  std::optional<Value> product(const Halide::Type& type, const Value& a, const Value& b);
  std::optional<Value> checked(const Halide::Type& type, isl::pw_aff function, Range range) const;
  std::optional<Truth> comparison(const Halide::Expr& condition);

  isl::space space_;
  std::vector<std::string> indices_;
  std::vector<Range> ranges_;
  std::vector<std::pair<std::string, Halide::Expr>> lets_;
};

}  // namespace tc::poly
