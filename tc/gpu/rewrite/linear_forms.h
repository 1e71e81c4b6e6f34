#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tc/ir/linear_form.h"
#include "tc/ir/names.h"
#include "tc/ir/program.h"

namespace tc::gpu {

/// An expression over a statement's indices as a function of the largest linear forms in it, each a dimension of its
/// own:
///     I(c, clamp(x + r - 1, 0, W - 1))   ==>   I(d0, clamp(d1 - 1, 0, W - 1))     at (c, x + r)
/// A temporary over the dimensions holds each of the expression's values once. Forms that differ by a constant or in
/// sign share a dimension.
class LinearForms {
 public:
  /// The indices of dimensions are the first of `variables`, which gets more from `names` where they are too few.
  LinearForms(const ir::Statement& statement, ir::Names& names, std::vector<std::string>& variables)
      : statement_(statement), names_(names), variables_(variables) {}

  /// May be called for several expressions, which share dimensions then.
  Halide::Expr over_dimensions(const Halide::Expr& expr);

  std::vector<ir::Index> indices() const;  ///< of the dimensions, from 0 on
  std::vector<Halide::Expr> at() const;    ///< where an instance of the statement is, per dimension
  int64_t elements() const;                ///< INT64_MAX where there are more

 private:
  struct Dimension {
    std::map<std::string, int64_t> coefficients;
    int64_t begin = 0, extent = 1;
  };
  class Mutator;

  bool is_form(const ir::LinearForm& form) const;
  Halide::Expr value_of(const ir::LinearForm& form);
  void add_dimension(const std::map<std::string, int64_t>& coefficients);

  const ir::Statement& statement_;
  ir::Names& names_;
  std::vector<std::string>& variables_;
  std::vector<Dimension> dimensions_;
};

/// Clamps subscripts that may leave their tensors for some values of the indices. Values that the statement reads stay;
/// the others become arbitrary: a guard hides them, or its forms do not vary by themselves. Tensors have elements.
Halide::Expr within_tensors(const ir::Program& program, const Halide::Expr& expr,
                            const std::vector<ir::Index>& indices);

}  // namespace tc::gpu
