#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tc/ir/program.h"

/// What subscripts are as functions of indices.
namespace tc::gpu {

struct LinearForm {
  std::vector<int64_t> coefficients;  ///< of the names
  int64_t constant = 0;
};

/// The index that a subscript is, but for a constant.
struct ShiftedIndex {
  size_t index = 0;
  int64_t constant = 0;
};

/// An expression as constant + the sum of coefficient * index, if it is one.
std::optional<LinearForm> linear(const Halide::Expr& e, const std::vector<std::string>& names);

/// An expression as index + constant, if it is one.
std::optional<ShiftedIndex> shifted(const Halide::Expr& e, const std::vector<std::string>& names);

}  // namespace tc::gpu
