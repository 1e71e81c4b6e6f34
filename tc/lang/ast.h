#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tc/support/scalar_type.h"
#include "tc/support/source.h"

/// The tree as it was written: what the parser makes and the formatter prints. Names are not resolved and
/// nothing has a type; parentheses are in the shape of the tree. tc/lang/typed_ast.h is what the later
/// layers read.
namespace tc::lang {

enum class UnaryOp : uint8_t { kNegate, kNot };
enum class BinaryOp : uint8_t { kOr, kAnd, kEq, kNe, kLt, kLe, kGt, kGe, kAdd, kSub, kMul, kDiv, kMod };
enum class AssignOp : uint8_t { kSet, kSum, kProduct, kMin, kMax, kSumInit, kProductInit, kMinInit, kMaxInit };

std::string_view spelling_of(UnaryOp op);
std::string_view spelling_of(BinaryOp op);
std::string_view spelling_of(AssignOp op);
/// == != < <= > >=
bool is_comparison(BinaryOp op);
/// && ||
bool is_logic(BinaryOp op);
/// All but `=`.
bool is_reducing(AssignOp op);
/// The operators with `!`, which start from the operator's identity (C2).
bool starts_from_identity(AssignOp op);

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

/// A name with the place where it stands.
struct Name {
  std::string text;
  SourceRange range;
};

/// 12. Fits int64.
struct IntegerLiteral {
  int64_t value;
};
/// 1.5e-3, or the name of a constant: the spelling, and its value as the nearest float64.
struct FloatLiteral {
  double value;
  std::string spelling;
};
/// A bare name: size, scalar, index, let, or a tensor without dimensions.
struct NameUse {
  std::string name;
};
/// name(arguments): a tensor read or an intrinsic.
struct Apply {
  Name name;
  std::vector<ExprPtr> arguments;
};
/// T.0: the extent of a dimension of a tensor.
struct ExtentUse {
  Name tensor;
  int64_t dimension;
};
struct Unary {
  UnaryOp op;
  ExprPtr operand;
};
struct Binary {
  BinaryOp op;
  ExprPtr left;
  ExprPtr right;
};
/// condition ? if_true : if_false
struct Conditional {
  ExprPtr condition;
  ExprPtr if_true;
  ExprPtr if_false;
};
/// type(operand)
struct CastTo {
  ScalarType type;
  ExprPtr operand;
  std::string type_variable{};  ///< in place of `type`, if not empty (T7)
};

struct Expr {
  using Node =
      std::variant<IntegerLiteral, FloatLiteral, NameUse, Apply, ExtentUse, Unary, Binary, Conditional, CastTo>;
  Node node;
  SourceRange range;
  int height = 1;  ///< of the tree; at most kMaxHeight
};

/// ID 'in' low ':' high, half-open
struct RangeClause {
  Name index;
  ExprPtr low;
  ExprPtr high;
};
/// ID '=' value
struct LetClause {
  Name name;
  ExprPtr value;
};
/// 'exists' expression
struct ExistsClause {
  ExprPtr expression;
};
struct Clause {
  std::variant<RangeClause, LetClause, ExistsClause> node;
  SourceRange range;
};

struct Statement {
  std::optional<ScalarType> type;  ///< `float f(i) = ...`
  std::string type_variable{};     ///< in place of `type`, if not empty (T7)
  Name tensor;
  std::vector<ExprPtr> subscripts;  ///< empty for a tensor without dimensions
  AssignOp op;
  ExprPtr right;
  std::vector<Clause> clauses;
  SourceRange range;       ///< from the type or name to the last token
  SourceRange left_range;  ///< the name with its subscripts
  SourceRange op_range;
};

struct Parameter {
  ScalarType type;
  std::string type_variable{};                     ///< in place of `type`, if not empty (T7)
  std::optional<std::vector<ExprPtr>> dimensions;  ///< none for a scalar
  Name name;
  SourceRange range;
};

/// Any part of the annotation may be missing: (O), (float O), (float(N) O).
struct ResultDeclaration {
  std::optional<ScalarType> type;
  std::string type_variable{};  ///< in place of `type`, if not empty (T7)
  std::optional<std::vector<ExprPtr>> dimensions;
  Name name;
  SourceRange range;
};

/// A type that the tensors of a call decide (T7).
struct TypeVariable {
  enum class Restriction : uint8_t { kNone, kFloat, kInteger };
  Name name;
  Restriction restriction = Restriction::kNone;
};

/// "float", "integer", or nothing.
std::string_view name_of(TypeVariable::Restriction restriction);

struct Definition {
  Name name;
  std::vector<TypeVariable> type_variables{};  ///< none: the def is not generic
  std::vector<Parameter> parameters;
  std::vector<ResultDeclaration> results;
  std::vector<Statement> statements;
  SourceRange body;  ///< from '{' to '}', both included
  SourceRange range;
};

/// A comment, from its `#` to the end of its line (without the newline).
struct Comment {
  SourceRange range;
};

/// A parsed file.
struct File {
  SourcePtr source;
  std::vector<Definition> definitions;  ///< at least one
  std::vector<Comment> comments;        ///< in order
};

}  // namespace tc::lang
