#include "tc/cache/key.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace tc::cache {
namespace {

/// A field as "name length:bytes", so that no two lists of fields read the same.
std::string field(const char* name, const std::string& value) {
  return fmt::format("{} {}:{}\n", name, value.size(), value);
}

std::string numbers(const std::vector<int64_t>& values) { return fmt::format("{}", fmt::join(values, " ")); }

std::string strides_text(const Problem& problem) {
  std::string text;
  for (const Strided& one : problem.strided) text += fmt::format("{}: {};", one.argument, fmt::join(one.strides, " "));
  return text;
}

}  // namespace

std::string canonical_text(const Problem& problem) {
  return field("program", problem.program) + field("sizes", numbers(problem.sizes)) +
         field("scalars", numbers(problem.scalars)) + field("strides", strides_text(problem)) +
         // "element" has stood for the usual class since the first files, which must keep their keys.
         field("alignment", problem.element_aligned ? "elements alone" : "element") +
         field("strict", problem.strict ? "1" : "0") + field("check_bounds", problem.check_bounds ? "1" : "0") +
         // Keys from before there were these must stay.
         (problem.tf32 ? field("tf32", "1") : "") + (problem.fast_accumulation ? field("fast_accumulation", "1") : "") +
         field("backend", fmt::format("{}", static_cast<int>(problem.backend))) + field("target", problem.target);
}

std::string canonical_text(const Key& key) {
  return canonical_text(key.problem) + field("options", key.options) + field("machine", key.machine) +
         field("compiler", key.compiler);
}

Digest digest_of(const Problem& problem) { return Digest::of(canonical_text(problem)); }
Digest digest_of(const Key& key) { return Digest::of(canonical_text(key)); }

std::string instance_text(const Problem& problem) {
  std::string text = fmt::format("{}", fmt::join(problem.sizes, "x"));
  if (!problem.scalars.empty()) text += fmt::format(" scalars {}", fmt::join(problem.scalars, ","));
  if (!problem.strided.empty()) text += " strided";
  if (problem.strict) text += " strict";
  if (problem.check_bounds) text += " checked";
  if (problem.tf32) text += " tf32";
  if (problem.fast_accumulation) text += " fast_accumulation";
  if (problem.element_aligned) text += " unaligned";
  return text;
}

double distance(const Problem& a, const Problem& b) {
  Problem same_but_sizes = b;
  same_but_sizes.sizes = a.sizes;
  if (a.sizes.size() != b.sizes.size() || !(same_but_sizes == a)) return -1;
  double sum = 0;
  for (size_t i = 0; i < a.sizes.size(); ++i) {
    const auto at_least_one = [](int64_t size) { return static_cast<double>(std::max<int64_t>(size, 1)); };
    sum += std::abs(std::log2(at_least_one(a.sizes[i]) / at_least_one(b.sizes[i])));
  }
  return sum;
}

}  // namespace tc::cache
