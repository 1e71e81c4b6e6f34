#pragma once

#include <functional>
#include <vector>

#include "tc/options/options.h"
#include "tc/poly/scop.h"
#include "tc/support/result.h"

namespace tc::gpu {

/// Takes a part of a schedule apart that no recipe fits, into launches that a recipe does fit: neighbours in program
/// order stay together as long as they share loops and `fits` accepts them. Empty if a statement fits by itself
/// neither.
///     band [d]                      band [n, d]  e = ...       threads along d, where memory runs
///       band [n] e(n,d) = ...  ==>  band [p, d]  s_parts ...   likewise
///       band [p, r] s_parts(p,d) += e(...)
/// Errors: the context's budget.
Result<std::vector<poly::Scop>> fission(const poly::Scop& part, const options::SchedulerOptions& options,
                                        const std::function<bool(const poly::Scop&)>& fits);

}  // namespace tc::gpu
