#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tc/lang/ast.h"
#include "tc/support/error.h"
#include "tc/support/scalar_type.h"
#include "tc/support/source.h"

/// The tree after analysis: every name is resolved, every expression has a type, every promotion is an
/// explicit Cast. The rules C1-C11 and T1-T4 hold, as far as they can be known without ranges and sizes.
///
/// Two kinds of integers meet in it:
///   - *Index arithmetic*, type int64 and exact: subscripts, bounds of ranges, dimensions, and in values every
///     largest expression made only of indices, sizes, extents and integer literals (at least one of them not a
///     literal). Integer scalars and tensor reads inside a subscript are cast to int64.
///   - *Values*. Index arithmetic that enters a value passes through one implicit Cast to int32, whose operand
///     must be shown to fit; `int64(i)` in the source passes exactly. Comparisons of two such expressions
///     (`h - 1 >= 0`), integer scalars among their operands too, compare the exact numbers, without a cast.
namespace tc::lang {

struct TypedExpr;
/// Shared: the uses of a let point at the same tree (see Let).
using TypedExprPtr = std::shared_ptr<const TypedExpr>;

/// An integer of the expression's type (also 0 and 1 for bool).
struct IntegerConstant {
  int64_t value;
};
/// A float of the expression's type, which `value` holds exactly: a float32 literal is rounded to float32.
struct FloatConstant {
  double value;
};
/// TypedStatement::indices[index]; int64
struct IndexRef {
  int index;
};
/// TypedDefinition::sizes[size]; int64
struct SizeRef {
  int size;
};
/// TypedDefinition::scalars[scalar]
struct ScalarRef {
  int scalar;
};
/// The extent of a dimension of TypedDefinition::tensors[tensor]; int64
struct ExtentRef {
  int tensor;
  int dimension;
};
/// A read of TypedDefinition::tensors[tensor]; one int64 subscript for each dimension. Of an 8-bit float it is the
/// operand of an implicit Cast to float32 (T8), and so is a Cast to one.
struct Read {
  int tensor;
  std::vector<TypedExprPtr> subscripts;
};
struct TypedUnary {
  UnaryOp op;
  TypedExprPtr operand;
};
/// Operands of one type: the result's for arithmetic, bool for && and ||, any for comparisons.
struct TypedBinary {
  BinaryOp op;
  TypedExprPtr left;
  TypedExprPtr right;
};
/// `?:` and `select`. A bool, and two values of the result's type.
struct Select {
  TypedExprPtr condition;
  TypedExprPtr if_true;
  TypedExprPtr if_false;
};
/// An intrinsic by its canonical name (tc/lang/intrinsics.h), with arguments converted to what it takes. `min`
/// and `max` have two arguments or more of the result's type.
struct Intrinsic {
  std::string name;
  std::vector<TypedExprPtr> arguments;
};
/// A conversion to the expression's type. Implicit ones never narrow, but for int64 index arithmetic to int32.
struct Cast {
  TypedExprPtr operand;
  bool implicit;
};
/// A use of TypedStatement::lets[let]. `value` is what it stands for, typed for the context of this use (index
/// arithmetic inside a subscript), so a reader that wants no lets goes on with `value`.
struct LetRef {
  int let;
  TypedExprPtr value;
};

struct TypedExpr {
  using Node = std::variant<IntegerConstant, FloatConstant, IndexRef, SizeRef, ScalarRef, ExtentRef, Read, TypedUnary,
                            TypedBinary, Select, Intrinsic, Cast, LetRef>;
  Node node;
  ScalarType type;
  SourceRange range;
};

/// A symbolic size, in order of first appearance in the signature (parameters, then results).
struct Size {
  std::string name;
  SourceRange range;        ///< first appearance
  bool bound_by_parameter;  ///< stands alone in a dimension of a parameter, so every call gives its value
};

/// A parameter without dimensions.
struct Scalar {
  std::string name;
  ScalarType type;
  SourceRange range;
  bool compiled_in;  ///< an integer used in a subscript or a range (C11): specialised to its value
};

enum class Role : uint8_t { kInput, kResult, kInOut, kTemporary };
std::string_view name_of(Role role);

struct Tensor {
  std::string name;
  ScalarType type;
  int rank;
  Role role;
  /// Inputs and annotated results: one for each dimension, int64 over SizeRef and IntegerConstant with + - * /
  /// (floor division) and unary minus.
  std::optional<std::vector<TypedExprPtr>> dimensions;
  SourceRange range;  ///< the name where it is declared, or first written
};

/// A parameter in the caller's order.
struct Argument {
  bool is_scalar;
  int id;  ///< into scalars or tensors
};

enum class IndexKind : uint8_t { kMap, kReduction };

/// `where i in low:high`, half-open. Over sizes, extents, integer scalars and literals; int64.
struct IndexRange {
  TypedExprPtr low;
  TypedExprPtr high;
  SourceRange range;
};

struct Index {
  std::string name;
  IndexKind kind;
  SourceRange range;                ///< first appearance
  std::optional<IndexRange> given;  ///< by a where clause
};

struct Let {
  std::string name;
  TypedExprPtr value;  ///< typed as a value
  SourceRange range;
};

struct TypedStatement {
  int tensor;  ///< written
  AssignOp op;
  std::vector<TypedExprPtr> subscripts;  ///< of the left side; int64. With kSet they read no tensor (C7)
  TypedExprPtr right;                    ///< of the tensor's type; float32 where `op` reduces 8-bit floats
  std::vector<Index> indices;            ///< map indices, then reduction indices, each by first appearance
  int map_indices;                       ///< how many of `indices` are map indices
  std::vector<Let> lets;
  std::vector<TypedExprPtr> exists;  ///< their reads take part in range inference only (C10)
  SourceRange range;
  SourceRange left_range;
};

struct TypedDefinition {
  std::string name;
  SourceRange range;  ///< of the name
  std::vector<Size> sizes;
  std::vector<Scalar> scalars;
  std::vector<Tensor> tensors;  ///< inputs, then results (in-outs among them), then temporaries
  std::vector<Argument> arguments;
  std::vector<int> results;  ///< into tensors, in the order of the signature; kResult or kInOut
  std::vector<TypedStatement> statements;
  std::vector<Note> remarks;  ///< what `check` tells of a def that means something else than it may seem to
};

struct TypedProgram {
  SourcePtr source;
  std::vector<TypedDefinition> definitions;
};

}  // namespace tc::lang
