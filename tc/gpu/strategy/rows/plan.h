#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/mapping/limits.h"
#include "tc/gpu/mapping/row_access.h"
#include "tc/gpu/strategy/rows/recomputed.h"

namespace tc::gpu {

/// A tensor of a part that lanes hold in registers or shared memory, by what its subscripts are.
struct RowTensor {
  const GroupStatement* user = nullptr;                   ///< a statement that accesses it
  const std::vector<Halide::Expr>* subscripts = nullptr;  ///< there
  std::set<size_t> users;                                 ///< statements that access it there, and nowhere else
  bool of_elements = false;  ///< it has an element for each of the row's, else one for the row
  bool written = false;
  bool read_before = false;  ///< it is read before the part writes it
  size_t last_write = 0;     ///< statement, if it is written
  size_t last_read = 0;      ///< statement, if it is read
  int buffer = -1;           ///< of RowsPlan::buffers; none: it is not kept in shared memory

  size_t first_use() const { return *users.begin(); }
  /// Whether statements pass its elements on, or read them twice.
  bool is_used_again() const { return of_elements && last_read > first_use(); }
};

/// `lanes` threads share a row: an iteration of the shared members. Its elements, the instances of a statement's inner
/// indices, are dealt to lanes in vectors. A block has `rows` rows, along the member `beside`.
struct RowsPlan {
  std::shared_ptr<const RowsPart> part;  ///< whose statements are used instead of the given part's; null: none
  std::vector<RowWork> work;             ///< per statement
  std::map<std::string, RowTensor> tensors;
  int64_t vector = 1;
  int64_t lanes = 1;  ///< a power of two
  int64_t rows = 1;
  int beside = -1;              ///< none
  int64_t unroll = 4;           ///< vectors of a lane in flight at once
  bool holds_elements = false;  ///< each lane's elements fit its registers, and are read once
  int64_t kept = 0;  ///< chunks of a row, a vector of each lane, that stay in shared memory; the rest is read again
  /// Rows of this tensor may begin between vectors, which then begin so many elements before a row. Empty: they do not.
  std::string shifted_by;
  std::vector<Halide::Type> buffers;  ///< in shared memory; tensors that are not needed at once share one

  /// In the vectors of a row of so many elements: more than these, where rows begin between vectors.
  int64_t positions(int64_t elements) const;
  /// Whether tensors of elements are read from memory again.
  bool rereads() const;
  /// Whether none of a tensor that has a buffer is in memory.
  bool keeps_all() const;
};

/// Nothing where there is no reduction inside, where one statement's elements are not another's, where neighbouring
/// lanes would read far apart, or where that is not what the options say, which `reasons` then tells:
///     map_to_threads  x: lanes, a power of two; y: rows
///     tile            rows of a block, at the member `beside`, else 1
///     register_tile   1 for each member
///     unroll          vectors of a lane that are laid out
std::optional<RowsPlan> plan_rows(const FusedGroup& part, const options::MappingOptions& options, const Device& device,
                                  Reasons& reasons);

/// The same where neighbouring lanes may read far apart, element by element.
std::optional<RowsPlan> plan_rows_read_apart(const FusedGroup& part, const options::MappingOptions& options,
                                             const Device& device);

/// Plans that keep rows in shared memory, or as much of them as fits:
///     max_shared_memory  the most bytes of a block
/// Empty where there is nothing to keep.
std::vector<RowsPlan> plan_kept_rows(const FusedGroup& part, const options::MappingOptions& options,
                                     const Device& device);

/// The options that ask for a plan.
options::MappingOptions options_of(const RowsPlan& plan, const FusedGroup& part);

}  // namespace tc::gpu
