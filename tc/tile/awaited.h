#pragma once

#include <optional>
#include <string>

#include "tc/tile/accesses.h"

namespace tc::tile {

/// Whether two places lie in different branches of one test.
bool are_apart(const std::vector<Halide::Expr>& conditions, const std::vector<Halide::Expr>& others);

/// The ring whose boxes fill a tensor; "": none.
std::string ring_that_fills(const Kernel& kernel, const std::string& tensor);

/// The turn of a ring that a thread has awaited last when it comes to a leaf of the flow. None if the text does not
/// say.
std::optional<Halide::Expr> turn_awaited(const Flow& flow, int leaf, const std::string& ring);

}  // namespace tc::tile
