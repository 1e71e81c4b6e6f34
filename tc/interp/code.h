#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tc/interp/functions.h"
#include "tc/ir/program.h"

/// A statement's expressions as a flat graph of nodes, made once and evaluated for each instance.
namespace tc::interp {

/// What a node computes, from operands a, b, c (nodes, evaluated lazily) or the fields named here. A node's type says
/// whether it gives a float or an integer (bools are integers); operands have the node's type unless said otherwise.
enum class Op : uint8_t {
  kConstant,  ///< integer, or real
  kIndex,     ///< the index variable in slot `payload`
  kLocal,     ///< what the kLet with slot `payload` bound
  kScalar,    ///< scalar `payload` of the program
  kRead,      ///< accesses[payload]
  kConvert,   ///< a, of any type, to the node's type
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,  ///< of integers: toward minus infinity, zero divisor gives 0
  kModulo,  ///< of integers
  kMin,
  kMax,  ///< of floats: a NaN wins
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,  ///< a and b of one type, to bool
  kAnd,
  kOr,  ///< b is evaluated where a does not decide
  kNot,
  kSelect,           ///< a ? b : c; only one of b and c is evaluated
  kLet,              ///< binds a to slot `payload`, gives b
  kRealFunction,     ///< real_function of the operands lists[payload]
  kRealPredicate,    ///< predicate of a, a float
  kIntegerFunction,  ///< integer_function of the operands lists[payload], in the type of the first
  kMixedFunction,    ///< mixed_function of a, a float, and b, an integer
};

struct Node {
  Op op = Op::kConstant;
  ScalarType type = ScalarType::kInt64;
  bool is_float = false;
  int memo = -1;  ///< a slot that keeps the value of an instance, for a node with several users; or -1
  int a = -1;
  int b = -1;
  int c = -1;
  int payload = -1;
  int64_t integer = 0;
  double real = 0;
  union {
    const RealFunction* real_function = nullptr;
    const RealPredicate* predicate;
    const IntegerFunction* integer_function;
    const MixedFunction* mixed_function;
  };
};

/// One subscript of an access: constant + sum of factor * index, or a node where it is not of that form.
struct Subscript {
  struct Term {
    int slot;
    int64_t factor;
  };
  int64_t constant = 0;
  std::vector<Term> terms;
  int node = -1;
  bool depends_on_data = false;  ///< reads a tensor, so that being in bounds is not proved but promised (C8)
  int64_t extent = 0;
  int64_t stride = 0;  ///< in elements
};

struct Access {
  int tensor = -1;  ///< into Program::tensors
  std::vector<Subscript> subscripts;
};

/// A loop over [begin, end); the bounds may use the slots of the loops around it.
struct Loop {
  int begin = -1;  ///< a node
  int end = -1;
};

/// target op= value, for all values of the loops, outermost first; slot i belongs to loop i. The target depends on map
/// indices only.
struct Code {
  std::vector<Node> nodes;
  std::vector<std::vector<int>> lists;  ///< operands of functions
  std::vector<Access> accesses;
  int locals = 0;  ///< slots of lets
  int memos = 0;
  std::vector<Loop> loops;  ///< map indices, then reduction indices
  int map_loops = 0;
  Access target;
  int value = -1;
  int guard = -1;      ///< of an instance; -1 if there is none
  int map_guard = -1;  ///< the part of it that no reduction index enters: for the initialisation
  bool sums_float8_products = false;
};

/// For a specialised program: every extent is a constant. The extents of a tensor, and strides of row-major storage,
/// are taken from it.
Code compile(const ir::Program& program, const ir::Statement& statement);

/// The constant extents of a tensor of a specialised program.
std::vector<int64_t> constant_extents(const ir::Tensor& tensor);

}  // namespace tc::interp
