#pragma once

#include <Halide.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tc/support/result.h"
#include "tc/support/scalar_type.h"
#include "tc/support/source.h"

namespace tc::ir {

/// Halide's type of an element type; bool is UInt(1), stored in one byte. float8_e4m3 and float8_e5m2 are Float(8) and
/// BFloat(8), which no operation takes: an expression of such a type is an element's bits, read, chosen or converted.
Halide::Type to_halide(ScalarType type);
inline bool is_float8(Halide::Type type) { return type.is_float() && type.bits() == 8; }
ScalarType from_halide(Halide::Type type);

/// Index variables, subscripts, extents and sizes are expressions of this type.
inline Halide::Type index_type() { return Halide::Int(64); }

enum class Role {
  kInput,      ///< given by the caller, never written
  kResult,     ///< written here, handed back
  kInOut,      ///< given by the caller, read, written and handed back
  kTemporary,  ///< written and read here only; the compiler owns it
};

/// A tensor of a def.
struct Tensor {
  std::string name;
  Halide::Type type;
  std::vector<Halide::Expr> extents;  ///< Int(64) over size names; constants in a specialised Program
  Role role = Role::kInput;
  SourceRange declared;    ///< for messages
  bool annotated = false;  ///< its extents are declared in the text
  /// In a specialised Program for a GPU, of a caller's tensor that is not dense: in elements, one for each dimension.
  /// Empty: dense, row-major. A CPU has the strides of Layouts (layouts.h).
  std::vector<int64_t> strides{};
  /// In a specialised Program for a GPU, of a caller's tensor: its address is a multiple of its elements' size, and
  /// need not be one of a vector's.
  bool at_any_address = false;

  int rank() const { return static_cast<int>(extents.size()); }
};

/// A scalar argument: a value of one element type, given at each run. Integer scalars that decide a shape, a range, a
/// subscript or a guard that bounds a read are `specialised`: constants of a compilation, like sizes (C11).
struct Scalar {
  std::string name;
  Halide::Type type;
  bool specialised = false;
  SourceRange declared;
  std::optional<int64_t> value{};  ///< of a specialised one: the number that stands in its place everywhere
};

/// How a statement combines its value with what the element holds.
enum class Assign { kSet, kAdd, kMul, kMin, kMax };

/// The rule that set one end of a range.
enum class RangeRule {
  kStart,         ///< R1: indices start at 0
  kWhere,         ///< C10: a `where` clause
  kReads,         ///< R2: unguarded reads
  kGuardedReads,  ///< R6: the guards of reads
  kBesideGuards,  ///< R6: reads, as if they had no guard, because their guards bound nothing
  kAnnotation,    ///< R3: the declared extent of the left side
  kOtherExtent,   ///< R3: the extent that the left side has from other statements, or from the caller
  kWholeTensor,   ///< a statement of the compiler's own, over all elements
};

/// What set one end of a range.
struct RangeEnd {
  RangeRule rule = RangeRule::kWholeTensor;
  std::vector<SourceRange> reads{};  ///< the reads concerned, for the rules about reads
};

/// An iteration variable of one statement: all integers in [begin, end).
struct Index {
  std::string name;  ///< as in the source; unique within its statement
  Halide::Expr begin;
  Halide::Expr end;
  bool is_reduction = false;
  bool given = false;  ///< by a `where i in lo:hi`, so not inferred
  SourceRange range;   ///< first appearance, or the where clause
  RangeEnd begin_by{};
  RangeEnd end_by{};
};

/// One access of a statement to a tensor, kept beside the expression for proofs and messages.
struct Access {
  std::string tensor;
  std::vector<Halide::Expr> subscripts;  ///< of index_type()
  Halide::Expr guard;  ///< undefined, or the conjunction of the `?:` conditions under which it happens (R6)
  bool is_write = false;
  bool exists_only = false;  ///< named by `exists`: takes part in range inference, is never executed
  SourceRange range;
};

/// Index arithmetic that enters a value as int32: the program has a meaning only if it fits.
struct IndexValue {
  Halide::Expr value;  ///< of index_type(), before the cast
  Halide::Expr guard;  ///< as in Access
  SourceRange range;
};

/// tensor(subscripts) <assign> value, for all values of the indices.
///
/// The value is an expression over the index variables (Variable of index_type(), by name), sizes and specialised
/// scalars (Variable of index_type()), other scalars (Variable of their own type), tensor reads (PureExtern calls by
/// tensor name, subscripts of index_type()) and intrinsics (PureExtern calls by intrinsic name). All promotions are
/// explicit casts. `min`, `max`, `relu` and `clamp` have become Min and Max nodes.
///
/// A choice (`c ? a : b`) is one of two nodes. A Halide Select evaluates both branches, which never read out of bounds.
/// The intrinsic `Call::if_then_else` (PureIntrinsic, three arguments) must evaluate the chosen branch only, or clamp
/// the subscripts of reads in the other: they may be out of bounds there (R6). from_lang() uses the second wherever a
/// branch reads a tensor; specialise() turns it into a Select where all those reads are proved in bounds anyway.
/// After from_lang() no value reads an element of its own left side that another instance of the
/// statement writes (C3): such a program has been given a snapshot temporary.
struct Statement {
  std::string id;      ///< "S0", "S1", ... in program order
  std::string tensor;  ///< the left side
  std::vector<Halide::Expr> subscripts;
  Assign assign = Assign::kSet;
  bool initialises = false;    ///< op=! : every element written starts from the operator's identity
  std::vector<Index> indices;  ///< map indices in order of the left side, then reduction indices
  Halide::Expr guard;          ///< undefined, or a bool over indices: instances where it is false do not exist
  Halide::Expr value;          ///< of accumulator type
  Halide::Type accumulator;    ///< T3: the type in which a reduction is summed; the tensor's type otherwise
  SourceRange range;
  std::vector<Access> accesses;          ///< the write, then the reads in order of the text
  std::vector<IndexValue> index_values;  ///< all Cast(Int(32), index arithmetic) that the source implies

  bool reduces() const { return assign != Assign::kSet; }
};

/// What must hold of sizes and specialised scalars for the Program to have a meaning (R7).
struct Precondition {
  /// Bool over sizes and specialised scalars. Undefined: specialise() decides it, for the sizes given.
  Halide::Expr condition;
  /// With {N}-like places for the values of sizes and scalars: "A(i + x) needs N <= M, but N is {N} and M is {M}".
  std::string sentence;
  SourceRange range;
  std::string written_in_full{};  ///< R10: an undefined condition is about this result
};

/// One def: what every element of every tensor is, in the order of its statements.
struct Program {
  std::string name;
  std::vector<std::string> sizes;       ///< in order of first appearance; empty in a specialised Program
  std::vector<Scalar> scalars;          ///< in order of parameters
  std::vector<Tensor> tensors;          ///< inputs in order of parameters, results in order, temporaries
  std::vector<std::string> parameters;  ///< names of tensors and scalars in order of the def's parameters
  std::vector<std::string> results;     ///< names of results in order
  std::vector<Statement> statements;
  std::vector<Precondition> preconditions;
  SourcePtr source;
  /// The ranges depend on specialised scalars that have no value yet: indices without a `where`, and extents that
  /// nobody declares, are undefined.
  bool open = false;

  const Tensor* find_tensor(const std::string& name) const;
  const Tensor& tensor(const std::string& name) const;  ///< TC_CHECKs that it exists
  const Scalar* find_scalar(const std::string& name) const;
  /// True where a specialised scalar has no value yet.
  bool waits_for_scalars() const;
};

/// 0 in any element type; Halide has no constants of 8-bit floats.
Halide::Expr zero_of(Halide::Type type);

/// The identity of a reducing operator in a type: 0, 1, +inf (or the largest integer), -inf (or the smallest).
Halide::Expr identity_of(Assign assign, Halide::Type type);

/// True for a call that reads a tensor of the program (rather than an intrinsic).
bool is_tensor_read(const Program& program, const Halide::Internal::Call* call);

}  // namespace tc::ir
