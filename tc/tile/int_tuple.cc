#include "tc/tile/int_tuple.h"

#include "tc/support/check.h"

namespace tc::tile {

int64_t IntTuple::value() const {
  TC_CHECK(is_leaf_, "{} is a tuple, not an integer", to_string(*this));
  return value_;
}

const std::vector<IntTuple>& IntTuple::modes() const {
  TC_CHECK(!is_leaf_, "{} is an integer, not a tuple", value_);
  return modes_;
}

const IntTuple& IntTuple::operator[](int i) const {
  TC_CHECK(i >= 0 && i < rank(), "{} has no mode {}", to_string(*this), i);
  return is_leaf_ ? *this : modes_[i];
}

bool IntTuple::operator==(const IntTuple& other) const {
  if (is_leaf_ != other.is_leaf_) return false;
  return is_leaf_ ? value_ == other.value_ : modes_ == other.modes_;
}

int64_t product(const IntTuple& tuple) {
  if (tuple.is_leaf()) return tuple.value();
  int64_t result = 1;
  for (const IntTuple& mode : tuple.modes()) result *= product(mode);
  return result;
}

std::vector<int64_t> flatten(const IntTuple& tuple) {
  if (tuple.is_leaf()) return {tuple.value()};
  std::vector<int64_t> result;
  for (const IntTuple& mode : tuple.modes()) {
    const std::vector<int64_t> leaves = flatten(mode);
    result.insert(result.end(), leaves.begin(), leaves.end());
  }
  return result;
}

bool congruent(const IntTuple& a, const IntTuple& b) {
  if (a.is_leaf() || b.is_leaf()) return a.is_leaf() && b.is_leaf();
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (!congruent(a[i], b[i])) return false;
  }
  return true;
}

std::string to_string(const IntTuple& tuple) {
  if (tuple.is_leaf()) return std::to_string(tuple.value());
  std::string result = "(";
  for (int i = 0; i < tuple.rank(); ++i) {
    if (i > 0) result += ',';
    result += to_string(tuple[i]);
  }
  return result + ")";
}

}  // namespace tc::tile
