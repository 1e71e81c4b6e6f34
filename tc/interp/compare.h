#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tc/interp/interpreter.h"

namespace tc::interp {

/// How a backend's tensor compares with the oracle's.
struct Comparison {
  bool agrees = false;  ///< no mismatch among the elements that are compared
  int64_t elements = 0;
  int64_t mismatches = 0;   ///< farther from the oracle than the bound, or a NaN on one side only
  int64_t undecidable = 0;  ///< not compared, because rounding decides them (by a comparison of two equal sums, say)

  // Over the elements that are compared and finite on both sides; 0 for integers that agree.
  double max_ulp = 0;          ///< |result - oracle| in units in the last place of the oracle's value
  double max_relative = 0;     ///< |result - oracle| / |oracle|
  double largest_share = 0;    ///< |result - oracle| / bound: above 1 is a mismatch
  std::vector<int64_t> worst;  ///< where a mismatch is worst, or else the largest share; empty if nothing is compared
  std::string sentence;        ///< one line, with the numbers above
};

/// Compares a result with the oracle's, element by element: |result - oracle| <= the oracle's bound. Where that is
/// zero (integers; floats computed from small integers) the elements must be equal. A NaN must meet a NaN; an infinity
/// the same infinity, unless the bound leaves open whether the computation overflows.
/// The two have one type and shape.
Comparison compare(const std::string& name, const Value& result, const BoundedValue& oracle);

/// All results at once, by name; they must have the same names.
std::vector<Comparison> compare(const Environment& results, const BoundedEnvironment& oracle);

}  // namespace tc::interp
