#pragma once

#include <isl/cpp.h>

#include <optional>

#include "tc/poly/loops.h"

namespace tc::poly {

/// generate_loops() below a node of a schedule tree above which there is no band, without isl's code generation, where
/// - the domain of each statement is a box with constant bounds, see Box,
/// - each dimension of the tree is the same for all statements below it, but for their indices' names: a constant, an
///   index plus a constant, or BoxMember's quotients and remainders, each a part of the tile that the last one made,
///   and counted in points below one that is,
/// - filters pass whole statements, and each leaf has one.
/// So are the loops of most programs of known sizes: permuted and tiled. Else nothing.
std::optional<loops::NodePtr> box_loops(const Scop& scop, const isl::schedule_node& node, const LoopOptions& options);

}  // namespace tc::poly
