#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tc/ir/program.h"

/// What a specialised Program's statements read, and where.
namespace tc::ir {

/// The values [begin, begin + extent) of an index.
struct Range {
  int64_t begin = 0;
  int64_t extent = 1;
  bool operator==(const Range&) const = default;
};

/// The reads of tensors in an expression, in order.
std::vector<const Halide::Internal::Call*> reads_in(const Program& program, const Halide::Expr& expr);

/// Of a subscript that grows by one with the index: the largest number known to divide the subscript where the index is
/// 0 (0: it is always 0 there). Nothing for any other subscript.
std::optional<int64_t> offset_divisor(const Halide::Expr& subscript, const std::string& index);

/// Of a subscript that neighbours share, such as k / 128: how many of them at least, counted from a multiple of that
/// number on. Nothing for any other subscript.
std::optional<int64_t> sharing_neighbours(const Halide::Expr& subscript, const std::string& index);

}  // namespace tc::ir
