#pragma once

#include <cstdint>
#include <map>
#include <string>

/// Random defs `f` around products of tensors, large enough for what multiplies tiles.
namespace tc::testing {

struct RandomProduct {
  std::string text;
  std::map<std::string, int64_t> sizes;
};

/// A sum of products of two float16, bfloat16 or float32 operands: batches, several indices on a side, in any order,
/// windows with borders of 0, results of another type; factors that are functions of operands, factors that no
/// reduction index changes, two products in one value. Then statements on its results, perhaps a second product, one of
/// the result with another tensor, its transposition, its reductions over some of its indices or all.
/// Extents are small multiples of those of tiles, or odd.
RandomProduct random_product(uint64_t seed);

}  // namespace tc::testing
