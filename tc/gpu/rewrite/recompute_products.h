#pragma once

#include <functional>
#include <set>
#include <string>

#include "tc/ir/program.h"

namespace tc::gpu {

/// The ids of a product and of what changes its results, and those of the statements that do the same again.
struct MadeAgain {
  std::set<std::string> statements, again;
};

/// Makes the results of a product again where a reduction of them stands between the product and what is done to them:
///     S(m,n) +=! A(m,k) * B(k,n)            S(m,n) +=! A(m,k) * B(k,n)
///     top(m) max=! S(m,n)                   top(m) max=! S(m,n)
///     P(m,n) = f(S(m,n), top(m))    ==>     S_again(m,n) +=! A(m,k) * B(k,n)
///                                           P(m,n) = f(S_again(m,n), top(m))
/// Then neither launch has to store them. Statements that only change elements of S go along. Nothing that they read
/// may be written in between. `gains` says of each such program, which comes second, whether it is to take the place of
/// the first.
ir::Program recompute_products(
    ir::Program program,
    const std::function<bool(const ir::Program& before, const ir::Program& after, const MadeAgain& made)>& gains);

}  // namespace tc::gpu
