#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/mapping/limits.h"
#include "tc/gpu/strategy/rows/row_access.h"

namespace tc::gpu {

/// A tensor of a part that lanes hold in registers, by what its subscripts are.
struct RowTensor {
  const GroupStatement* user = nullptr;                   ///< a statement that accesses it
  const std::vector<Halide::Expr>* subscripts = nullptr;  ///< there
  bool of_elements = false;  ///< it has an element for each of the row's, else one for the row
  bool written = false;
  bool read_before = false;  ///< it is read before the part writes it
};

/// `lanes` threads share a row: an iteration of the shared members. Its elements, the instances of a statement's inner
/// indices, are dealt to lanes in vectors. A block has `rows` rows, along the member `beside`.
struct RowsPlan {
  std::vector<RowWork> work;  ///< per statement
  std::map<std::string, RowTensor> tensors;
  int64_t vector = 1;
  int64_t lanes = 1;  ///< a power of two
  int64_t rows = 1;
  int beside = -1;              ///< none
  int64_t unroll = 4;           ///< vectors of a lane in flight at once
  bool holds_elements = false;  ///< each lane's elements fit its registers, and are read once
};

/// Nothing where there is no reduction inside, where one statement's elements are not another's, where neighbouring
/// lanes would read far apart, or where that is not what the options say, which `reasons` then tells:
///     map_to_threads  x: lanes, a power of two; y: rows
///     tile            rows of a block, at the member `beside`, else 1
///     register_tile   1 for each member
///     unroll          vectors of a lane that are laid out
std::optional<RowsPlan> plan_rows(const FusedGroup& part, const options::MappingOptions& options, const Device& device,
                                  Reasons& reasons);

/// The options that ask for a plan.
options::MappingOptions options_of(const RowsPlan& plan, const FusedGroup& part);

}  // namespace tc::gpu
