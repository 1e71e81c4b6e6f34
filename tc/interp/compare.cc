#include "tc/interp/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tc/interp/scalar.h"
#include "tc/support/check.h"
#include "tc/support/plural.h"

namespace tc::interp {
namespace {

std::vector<int64_t> coordinates(int64_t flat, const std::vector<int64_t>& shape) {
  std::vector<int64_t> result(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    result[d] = flat % shape[d];
    flat /= shape[d];
  }
  return result;
}

/// Error over bound: at most 1 where they agree; infinite for a NaN or an infinity on one side only.
double share_of(double result, double oracle, double bound) {
  if (result == oracle || (std::isnan(result) && std::isnan(oracle))) return 0;
  if (!std::isfinite(result) || !std::isfinite(oracle) || bound == 0) return INFINITY;
  return std::fabs(result - oracle) / bound;
}

class Comparer {
 public:
  Comparer(const std::string& name, const Value& result, const BoundedValue& oracle)
      : name_(name), result_(result), oracle_(oracle) {}

  Comparison run() {
    comparison_.elements = result_.elements();
    for (int64_t at = 0; at < comparison_.elements; ++at) {
      if (std::isinf(oracle_.errors[at])) {
        ++comparison_.undecidable;
      } else {
        element(at);
      }
    }
    comparison_.agrees = comparison_.mismatches == 0;
    if (worst_ >= 0) comparison_.worst = coordinates(worst_, result_.shape);
    comparison_.sentence = sentence();
    return comparison_;
  }

 private:
  void element(int64_t at) {
    double share = 0;
    if (is_float(result_.type)) {
      const double oracle = oracle_.value.floats[at];
      const double result = result_.floats[at];
      share = share_of(result, oracle, oracle_.errors[at]);
      measure(result, oracle);
    } else {
      share = result_.integers[at] == oracle_.value.integers[at] ? 0 : INFINITY;
    }
    if (share > 1) ++comparison_.mismatches;
    if (worst_ < 0 || share > comparison_.largest_share) {
      worst_ = at;
      comparison_.largest_share = share;
    }
  }

  void measure(double result, double oracle) {
    if (!std::isfinite(result) || !std::isfinite(oracle) || result == oracle) return;
    const double difference = std::fabs(result - oracle);
    comparison_.max_ulp = std::max(comparison_.max_ulp, difference / ulp(result_.type, oracle));
    if (oracle != 0) comparison_.max_relative = std::max(comparison_.max_relative, difference / std::fabs(oracle));
  }

  std::string element_text(const Value& value) const {
    if (is_float(value.type)) return fmt::format("{}", value.floats[worst_]);
    if (value.type == ScalarType::kUInt64) return fmt::format("{}", static_cast<uint64_t>(value.integers[worst_]));
    return fmt::format("{}", value.integers[worst_]);
  }

  std::string sentence() const {
    const Comparison& c = comparison_;
    if (c.elements > 0 && c.undecidable == c.elements) {
      return fmt::format("'{}' is not compared: rounding decides every one of its elements ({})", name_, c.elements);
    }
    const std::string left_out =
        c.undecidable == 0 ? "" : fmt::format(", {} not compared because rounding decides", c.undecidable);
    const std::string all = plural(c.elements, "element");
    if (c.mismatches > 0) {
      return fmt::format("'{}' differs in {} of {}{}: at ({}) it is {}, the oracle has {} with a bound of {:.3g}",
                         name_, c.mismatches, all, left_out, fmt::join(c.worst, ", "), element_text(result_),
                         element_text(oracle_.value), oracle_.errors[worst_]);
    }
    if (c.max_ulp == 0) return fmt::format("'{}' agrees exactly: {}{}", name_, all, left_out);
    // Near zero an error of many ULP is within the bound, so the share of the bound comes first.
    return fmt::format("'{}' agrees: {}{}, largest error {:.3g} of the bound at ({}): {:.3g} ULP, {:.3g} relative",
                       name_, all, left_out, c.largest_share, fmt::join(c.worst, ", "), c.max_ulp, c.max_relative);
  }

  const std::string& name_;
  const Value& result_;
  const BoundedValue& oracle_;
  Comparison comparison_;
  int64_t worst_ = -1;
};

}  // namespace

Comparison compare(const std::string& name, const Value& result, const BoundedValue& oracle) {
  TC_CHECK(result.type == oracle.value.type && result.shape == oracle.value.shape,
           "'{}' and the oracle's differ in type or shape", name);
  return Comparer(name, result, oracle).run();
}

std::vector<Comparison> compare(const Environment& results, const BoundedEnvironment& oracle) {
  TC_CHECK(results.size() == oracle.size(), "{} results are compared with {} of the oracle", results.size(),
           oracle.size());
  std::vector<Comparison> comparisons;
  for (const auto& [name, value] : oracle) {
    const auto found = results.find(name);
    TC_CHECK(found != results.end(), "there is no result '{}' to compare", name);
    comparisons.push_back(compare(name, found->second, value));
  }
  return comparisons;
}

}  // namespace tc::interp
