#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tc/poly/scop.h"

namespace tc::gpu {

/// The values [begin, begin + extent) of an index.
struct Range {
  int64_t begin = 0;
  int64_t extent = 1;
  bool operator==(const Range&) const = default;
};

struct PartStatement {
  const poly::Statement* statement = nullptr;
  std::vector<Range> ranges;  ///< per index
  std::vector<int> shared;    ///< per shared member: the index that it is
  std::vector<int> inner;     ///< the other indices, outermost first

  /// The index that an expression is, alone; -1 if it is none.
  int index_of(const Halide::Expr& expr) const;
  /// The shared member that an expression is, alone; -1 if it is none.
  int member_of(const Halide::Expr& expr) const;
  /// How many instances there are for one iteration of the shared members.
  int64_t inner_size() const;
};

/// A part of a scheduled tree whose statements share the coincident members of one outer band: for one iteration of
/// these, whatever order its statements' own instances run in, nothing depends on another iteration. Run in program
/// order, each is the original program's.
struct Part {
  const poly::Scop* scop = nullptr;
  std::vector<Range> members;  ///< none: all is one iteration
  std::vector<PartStatement> statements;

  bool writes(const std::string& tensor) const;
  /// Whether the caller or another part may look at the tensor.
  bool is_seen_outside(const std::string& tensor) const;
};

/// Nothing where domains are no boxes, ranges of shared members differ, or writes depend on data.
std::optional<Part> part_of(const poly::Scop& scop);

/// The reads of tensors in an expression, in order.
std::vector<const Halide::Internal::Call*> reads_in(const ir::Program& program, const Halide::Expr& expr);

/// Whether the expression depends on the index.
bool uses_index(const Halide::Expr& expr, const std::string& index);

/// Of a subscript that grows by one with the index: a number that divides all that it can be where the index is 0, the
/// largest known (0: it is always 0). Nothing for any other subscript.
std::optional<int64_t> offset_divisor(const Halide::Expr& subscript, const std::string& index);

}  // namespace tc::gpu
