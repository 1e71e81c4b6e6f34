#pragma once

#include <Halide.h>

#include <map>
#include <set>
#include <string>

#include "tc/ir/program.h"
#include "tc/lang/typed_ast.h"

namespace tc::ir {

/// Integer scalars by name, with the numbers that stand in their place.
using ScalarValues = std::map<std::string, int64_t>;

/// The scalars of a def that are compiled in (C11).
struct CompiledIn {
  std::set<std::string> names;
  ScalarValues values;  ///< of some of them, or all
};

/// Turns the typed expressions of one statement into Halide expressions, and notes the accesses on the way.
/// Lets are replaced, casts are explicit, `T.d` becomes the declared extent, or the variable extent_variable(T, d)
/// where the extent is still to be inferred.
class Converter {
 public:
  /// `statement` may be null: for dimensions of parameters and results.
  Converter(const lang::TypedDefinition& definition, const lang::TypedStatement* statement, const CompiledIn& scalars)
      : definition_(definition), statement_(statement), scalars_(scalars) {}

  Halide::Expr convert(const lang::TypedExprPtr& expr);

  /// The right side of a sum or product, in its accumulator (T3). Narrow operands are widened before they are added
  /// or multiplied, not after, so that there is one rounding: at the end. Within a wider value they get its type.
  Halide::Expr widen(const lang::TypedExprPtr& expr, Halide::Type accumulator);

  std::vector<Access> accesses;          ///< reads, in order of the text
  std::vector<IndexValue> index_values;  ///< index arithmetic that became an int32

 private:
  Halide::Expr node(const lang::TypedExpr&, const lang::IntegerConstant&);
  Halide::Expr node(const lang::TypedExpr&, const lang::FloatConstant&);
  Halide::Expr node(const lang::TypedExpr&, const lang::IndexRef&);
  Halide::Expr node(const lang::TypedExpr&, const lang::SizeRef&);
  Halide::Expr node(const lang::TypedExpr&, const lang::ScalarRef&);
  Halide::Expr node(const lang::TypedExpr&, const lang::ExtentRef&);
  Halide::Expr node(const lang::TypedExpr&, const lang::Read&);
  Halide::Expr node(const lang::TypedExpr&, const lang::TypedUnary&);
  Halide::Expr node(const lang::TypedExpr&, const lang::TypedBinary&);
  Halide::Expr node(const lang::TypedExpr&, const lang::Select&);
  Halide::Expr node(const lang::TypedExpr&, const lang::Intrinsic&);
  Halide::Expr node(const lang::TypedExpr&, const lang::Cast&);
  Halide::Expr node(const lang::TypedExpr&, const lang::LetRef&);

  template <typename Branch>
  Halide::Expr choice(const lang::Select& select, Halide::Type type, Branch branch);

  /// A compiled-in scalar in a type: its number, or the variable of that name. Undefined for another expression.
  Halide::Expr compiled_in(const lang::TypedExpr& e, Halide::Type type) const;

  const lang::TypedDefinition& definition_;
  const lang::TypedStatement* statement_;
  const CompiledIn& scalars_;
  Halide::Expr guard_;  ///< of the `?:` around the expression at hand
};

}  // namespace tc::ir
