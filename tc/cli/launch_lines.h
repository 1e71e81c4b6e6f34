#pragma once

#include <string>

#include "tc/cuda/launch_plan.h"
#include "tc/support/result.h"

namespace tc::cli {

/// The plan of CUDA text by hand: the compiler's, with the numbers of the text's lines
///     // launch NAME grid X Y Z block X Y Z cluster X Y Z shared BYTES
/// in the place of its own. Tensor maps stay those of the plan. No kernel waits for those before it by itself, for all
/// that is known of the text.
Result<cuda::LaunchPlan> with_launch_lines(cuda::LaunchPlan plan, const std::string& text);

}  // namespace tc::cli
