#pragma once

#include "tc/lang/intrinsics.h"
#include "tc/lang/literals.h"
#include "tc/lang/scope.h"

namespace tc::lang {

/// Types the expressions of one statement: T1, T2, T4, C8, C11. Functions return null after a reported error.
class Typing {
 public:
  /// Marks scalars as compiled in. `statement` has its indices and lets.
  Typing(Scope& scope, const StatementScope& statement, Report& report)
      : scope_(scope),
        names_(statement),
        report_(report),
        value_lets_(statement.lets.size()),
        index_lets_{value_lets_, value_lets_} {}

  /// As a value.
  TypedExprPtr value(const Expr& expr);
  /// As a value of a type that it must have by itself, or widen to.
  TypedExprPtr value_of_type(const Expr& expr, ScalarType type, int tensor);
  /// As index arithmetic, int64. `what` names its place: "a subscript".
  TypedExprPtr index(const Expr& expr, std::string_view what);
  /// As a value, once for each let.
  TypedExprPtr let_value(int let);

 private:
  TypedExprPtr make(TypedExpr::Node node, ScalarType type, const Expr& at) const;
  TypedExprPtr widen(TypedExprPtr expr, ScalarType type) const;
  /// widen() where a number of the source meets another; looks for quotients that lose their fraction.
  TypedExprPtr promote(TypedExprPtr typed, ScalarType type, const Expr& expr);
  /// Adds a remark for each quotient of integers in `expr`, which is about to become a float.
  void note_whole_quotients(const Expr& expr, ScalarType type);
  bool loses_a_fraction(const Binary& quotient);
  std::string_view text(const Expr& expr) const { return report_.source()->text(expr.range); }

  TypedExprPtr name(const NameUse& use, const Expr& at);
  TypedExprPtr apply(const Apply& apply, const Expr& at);
  TypedExprPtr read(int tensor, const std::vector<ExprPtr>& subscripts, const Expr& at);
  TypedExprPtr unary(const Unary& unary, const Expr& at);
  TypedExprPtr binary(const Binary& binary, const Expr& at);
  TypedExprPtr compare(const Binary& binary, const Expr& at);
  TypedExprPtr cast(const CastTo& cast, const Expr& at);
  TypedExprPtr float8_constant(const LiteralValue& value, const CastTo& cast);
  TypedExprPtr select(const Expr& condition, const Expr& if_true, const Expr& if_false, const Expr& at,
                      std::string_view of);
  TypedExprPtr intrinsic(const Apply& apply, const Expr& at);
  TypedExprPtr call(const IntrinsicInfo& info, const Apply& apply, std::vector<TypedExprPtr> arguments, const Expr& at);
  TypedExprPtr condition(const Expr& expr, std::string_view of);
  /// A value that is no bool (T4).
  TypedExprPtr number(const Expr& expr, std::string_view of);
  bool numbers(const std::vector<ExprPtr>& exprs, std::string_view of, std::vector<TypedExprPtr>& typed);

  TypedExprPtr index_name(const NameUse& use, const Expr& at, std::string_view what);
  TypedExprPtr index_apply(const Apply& apply, const Expr& at, std::string_view what);
  TypedExprPtr index_select(const Expr& condition, const Expr& if_true, const Expr& if_false, const Expr& at,
                            std::string_view what);
  TypedExprPtr extent(const ExtentUse& use, const Expr& at);
  /// A value inside index arithmetic: an integer, which becomes int64.
  TypedExprPtr integer_value(const Expr& expr, std::string_view what);
  void compile_in(const TypedExpr& value);

  std::nullptr_t undefined(const Name& name);

  Scope& scope_;
  const StatementScope& names_;
  Report& report_;
  bool compiles_in_ = true;  ///< index arithmetic compiles its scalars in (C11)
  std::vector<TypedExprPtr> value_lets_;
  std::vector<TypedExprPtr> index_lets_[2];  ///< those whose scalars stay values, and those that compile them in
};

}  // namespace tc::lang
