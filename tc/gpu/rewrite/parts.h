#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/rewrite/part_statements.h"
#include "tc/ir/program.h"
#include "tc/options/mapping.h"
#include "tc/support/result.h"

namespace tc::gpu {

struct Prepared {
  ir::Program program;
  options::MappingOptions options;  ///< with what has been decided: into how many parts the one reduction is cut
};

/// Of a statement that may be cut: its longest reduction index, and how much there is to do.
struct Reduction {
  size_t longest = 0;
  int64_t extent = 0;    ///< of that index
  int64_t elements = 1;  ///< results
  int64_t work = 1;      ///< instances for each
};

/// Nothing of a statement that may not be cut.
std::optional<Reduction> reduction_of(const ir::Program& program, const ir::Statement& statement);

/// Cuts of a reduction whose operands nobody shares into as many parts as keep the device busy; none: it stays whole.
std::vector<Parts> busy_parts(const ir::Program& program, const ir::Statement& statement, const Device& device);

/// What knows the kernels of contractions: whether a statement is one, and into which parts, if any, it is cut.
struct ContractionParts {
  std::function<bool(const ir::Program&, const ir::Statement&)> is_contraction;
  std::function<std::optional<Parts>(const ir::Program&, const ir::Statement&, const Reduction&)> choose;
};

/// Cuts reductions that have too few results to keep the device busy into parts, for recipes by which blocks work on
/// one part each; or into as many as the options say, where a reduction has twice as many instances. Of contractions
/// `contractions` decides where the options do not.
///     s(m) +=! x(m, k)   ==>   s_parts(m, k_part) +=! x(m, 1000 * k_part + k_rest)
///                              s(m) +=! s_parts(m, k_part)
///                              s(m) += x(m, 9000 + k)                               what is left over, if any
/// Statements whose ids are in `whole` are left as they are. The order is changed, but the same on every run. Errors:
/// the options ask for parts, and there are none.
Result<Prepared> split_into_parts(ir::Program program, const options::MappingOptions& options, const Device& device,
                                  const ContractionParts& contractions, const std::set<std::string>& whole = {});

}  // namespace tc::gpu
