#pragma once

#include <vector>

#include "tc/ir/bounds.h"

namespace tc::ir {

/// The checks of subscripts that compute with indices and need no data, by intrinsics of which nothing is proved:
/// bitwise_xor(i, 1). Conditions that need data are left out: they count as true. So are those with other indices than
/// the subscript's where these would make more than kMaxIndexValues values.
std::vector<RunTimeCheck> checks_to_try(const Program& program);

/// Whether the indices of a check take few enough values for all of them to be tried. Of a symbolic Program, where only
/// a call can say: true.
bool can_be_tried(const Program& program, const RunTimeCheck& check);

/// What is left of run_time_checks() when the others have been tried: what only a run can check.
std::vector<RunTimeCheck> unproved_checks(const Program& program);

}  // namespace tc::ir
