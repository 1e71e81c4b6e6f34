#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tc/api/tensor.h"
#include "tc/ir/program.h"

namespace tc::api {

/// Bounds of random integers, half-open.
struct IntegerRange {
  int64_t begin = 0;
  int64_t end = 1;
};

/// Fills a dense tensor with random elements that depend only on the seed, the tensor's name, and the element's place.
///
/// Element i is drawn from the i-th output of SplitMix64 (Steele, Lea, Flood 2014) started at a hash (FNV-1a) of the
/// name plus the seed. Floats are uniform in [-1, 1): 53 random bits, rounded to the type. Integers are uniform in
/// `range`; without one in [-8, 8), or [0, 16) for an unsigned type. A bool is true half of the time.
void fill_random(const std::string& name, uint64_t seed, std::optional<IntegerRange> range, Tensor& tensor);

/// For each integer input that a data-dependent subscript reads, the elements for which all those subscripts stay
/// within their tensors (an interval from 0 on, as large as interval arithmetic can show).
std::map<std::string, IntegerRange> subscript_ranges(const ir::Program& specialised);

}  // namespace tc::api
