#pragma once

#include <Halide.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tc::cuda {

/// All integers in [least, greatest].
struct Bounds {
  int64_t least;
  int64_t greatest;
};
using VariableBounds = std::map<std::string, Bounds>;

/// The values of an integer expression, from those of its variables; none where nothing is known. Used only to choose
/// the shorter of two right texts: `a / 32` for a floor division of what cannot be negative.
std::optional<Bounds> bounds_of(const Halide::Expr& expr, const VariableBounds& variables);

}  // namespace tc::cuda
