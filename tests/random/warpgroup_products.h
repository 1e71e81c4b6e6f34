#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tc/options/mapping.h"

/// Random products for warpgroups, whose boxes need rows of whole 16 bytes.
namespace tc::testing {

struct WarpgroupProduct {
  std::string text;  ///< of a def `f`
  std::map<std::string, int64_t> sizes;
  options::MappingOptions options;  ///< that ask for warpgroups
};

/// A product of random types of 16 or 8 bits, sizes, orders of both operands, epilogue and reductions of its result, on
/// a random tile.
WarpgroupProduct random_warpgroup_product(uint64_t seed);

/// A product whose block is a box of several axes on either side: random numbers and orders of axes in both operands
/// and in the result, taps of a convolution with a border of zeros or without, batches.
WarpgroupProduct random_boxed_product(uint64_t seed);

/// A product in which data select the slice of an operand for each row: random types, sizes, orders of the weights,
/// one or two of them, epilogue, and type of what selects, which is in no order.
WarpgroupProduct random_selected_product(uint64_t seed);

/// The options of a tile of so many warpgroups, columns and buffers; tiles along the axes of the result before its last
/// two, and along the reduction's axes before its last one.
options::MappingOptions warpgroup_tile(int64_t warpgroups, int64_t columns, int64_t stages,
                                       std::vector<int64_t> before = {}, std::vector<int64_t> behind = {});

/// The options of tiles and registers along all axes of the result, of so many warpgroups.
options::MappingOptions warpgroup_box(int64_t warpgroups, std::vector<int64_t> tile, std::vector<int64_t> registers,
                                      int64_t stages);

}  // namespace tc::testing
