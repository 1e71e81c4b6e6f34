#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

/// What the PTX of a kernel does that our text must not let it do. It shares nothing with what prints the text.
namespace tc::testing {

/// A load through the read-only path (ld.global.nc).
struct ReadOnlyLoad {
  std::string text;
  std::set<int> parameters;  ///< that its address can come from
};

struct PtxKernel {
  std::set<int> written;  ///< parameters that stores, atomics and reductions go to
  std::vector<ReadOnlyLoad> read_only_loads;
};

/// By name. Every register holds what any instruction puts into it: what comes out is too much rather than too little.
std::map<std::string, PtxKernel> kernels_of_ptx(const std::string& ptx);

/// Loads through the read-only path that can read what their kernel writes, or whose address comes from no parameter,
/// a sentence each.
std::vector<std::string> stale_loads(const std::string& ptx);

/// Minima and maxima of signed integers of 16 or 32 bits of which one operand is another of the same kind, neither of
/// them with a constant. A sentence each. ptxas 12.9 to 13.2 make one instruction of the two, and lose the sign of an
/// operand.
std::vector<std::string> joined_extrema(const std::string& ptx);

}  // namespace tc::testing
