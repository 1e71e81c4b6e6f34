#pragma once

#include <Halide.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tc/cuda/bounds.h"
#include "tc/cuda/names.h"
#include "tc/cuda/prelude.h"
#include "tc/tile/program.h"

namespace tc::cuda {

/// Expressions of one kernel in CUDA C++.
///
/// Integer arithmetic over variables and constants alone is index arithmetic: proved to fit its type, printed with
/// plain operators. Where a tensor is read, or in a value that is stored, signed arithmetic wraps around (as on every
/// backend), which C++ must be told.
class ExprText {
 public:
  explicit ExprText(const tile::Kernel& kernel);

  /// A value that a statement stores.
  std::string value(const Halide::Expr& e);
  /// A subscript, bound, condition or let.
  std::string index(const Halide::Expr& e);
  /// "A[m * 64 + k]".
  std::string element(const std::string& tensor, const std::vector<Halide::Expr>& subscripts);
  /// Where that is in the tensor, in elements.
  Halide::Expr offset(const tile::Tensor& tensor, const std::vector<Halide::Expr>& subscripts);
  /// The first element of a box or a tile, from which its swizzle counts.
  std::string first_of_tile(const std::string& tensor, const std::vector<Halide::Expr>& subscripts);
  /// An element as it is loaded: "__ldg(&A[m * 64 + k])" of a read-only tensor of which the compiler cannot tell so.
  std::string loaded(const std::string& tensor, const std::vector<Halide::Expr>& subscripts);
  /// A value of an element's type as it stands in memory: "to_float16(x)".
  std::string to_memory(Halide::Type type, const std::string& text);
  /// A value that a statement stores, as it stands in memory.
  std::string value_in_memory(const Halide::Expr& e);

  void declare(const std::string& variable, Halide::Type type, std::optional<Bounds> bounds);
  void declare(const tile::Tensor& tensor) { tensors_[tensor.name] = &tensor; }

  const tile::Tensor& tensor(const std::string& name) const;
  bool has_tensor(const std::string& name) const { return tensors_.count(name) > 0; }
  const Names& names() const { return names_; }
  const VariableBounds& bounds() const { return bounds_; }
  void need(Helper helper) { helpers_.insert(helper); }
  const std::set<Helper>& helpers() const { return helpers_; }
  /// Which of tile::kBlock and tile::kThread occur, by name.
  const std::set<std::string>& places() const { return places_; }
  /// True if an intrinsic or tensor read lies below.
  bool reads(const Halide::Expr& e) const;

 private:
  /// A text and how tightly its outermost operator binds.
  struct Text {
    std::string text;
    int level;
  };

  Text print(const Halide::Expr& e);
  std::string at(const Halide::Expr& e, int level);
  Text literal(Halide::Type type, int64_t value);
  Text float_literal(Halide::Type type, double value);
  Text variable(const Halide::Internal::Variable& v);
  Text cast(const Halide::Internal::Cast& c);
  Text cast_float8(Halide::Type from, Halide::Type to, const std::string& text);
  Text cast_to_float(Halide::Type from, Halide::Type to, const std::string& text);
  Text arithmetic(Halide::Type type, char op, const Halide::Expr& a, const Halide::Expr& b);
  Text negated(const Halide::Expr& e);
  Text division(const Halide::Expr& e, const Halide::Expr& a, const Halide::Expr& b, bool modulo);
  Text extremum(Halide::Type type, const char* name, const Halide::Expr& a, const Halide::Expr& b);
  Text opaque_one_of(const Halide::Expr& a, const Halide::Expr& b, const Text& text);
  Text infix(const char* op, int level, const Halide::Expr& a, const Halide::Expr& b);
  Text choice(const Halide::Expr& c, const Halide::Expr& a, const Halide::Expr& b);
  Text call(const Halide::Internal::Call& c);
  Text read(const Halide::Internal::Call& c);
  Text integer_call(const Halide::Internal::Call& c);
  Text float_call(const Halide::Internal::Call& c);
  std::string arguments(const std::vector<Halide::Expr>& args);
  /// A result of C++'s promoted type as one of `type`: narrow integers and 16-bit floats are rounded back.
  Text narrowed(Halide::Type type, Text text);
  std::string swizzled(const Halide::Expr& place, const tile::Swizzle& swizzle);

  Names names_;
  std::map<std::string, const tile::Tensor*> tensors_;
  std::map<std::string, Halide::Type> types_;
  std::set<std::string> half_scalars_;
  std::set<std::string> bool_scalars_;
  VariableBounds bounds_;
  std::set<Helper> helpers_;
  std::set<std::string> places_;
  bool wraps_ = false;
};

}  // namespace tc::cuda
