#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tc::tile {

/// An integer or a tuple of IntTuples: the shape or the stride of a hierarchical layout, or a coordinate in one.
class IntTuple {
 public:
  IntTuple() = default;                                                ///< the empty tuple
  IntTuple(int64_t value) : is_leaf_(true), value_(value) {}           // NOLINT: an integer is an IntTuple
  IntTuple(std::vector<IntTuple> modes) : modes_(std::move(modes)) {}  // NOLINT
  IntTuple(std::initializer_list<IntTuple> modes) : modes_(modes) {}

  bool is_leaf() const { return is_leaf_; }
  int64_t value() const;                       ///< of a leaf
  const std::vector<IntTuple>& modes() const;  ///< of a tuple
  /// How many modes; a leaf has one.
  int rank() const { return is_leaf_ ? 1 : static_cast<int>(modes_.size()); }
  /// The i-th mode; a leaf is its own only mode.
  const IntTuple& operator[](int i) const;

  bool operator==(const IntTuple& other) const;

 private:
  bool is_leaf_ = false;
  int64_t value_ = 0;
  std::vector<IntTuple> modes_;
};

/// The product of all leaves; 1 for the empty tuple.
int64_t product(const IntTuple& tuple);
/// All leaves, left to right.
std::vector<int64_t> flatten(const IntTuple& tuple);
/// True if both have the same nesting.
bool congruent(const IntTuple& a, const IntTuple& b);
/// "((4,8),2)".
std::string to_string(const IntTuple& tuple);

}  // namespace tc::tile
