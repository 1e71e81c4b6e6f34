#pragma once

#include <map>
#include <string>
#include <vector>

#include "tc/poly/scop.h"

namespace tc::poly {

/// What is said of loops beside their names and ranges.
struct LoopNotes {
  std::map<std::string, std::string> loops;                 ///< behind the loop's line: "parallel"
  std::map<std::string, std::vector<std::string>> buffers;  ///< lines below it: "A in shared memory"
};

/// A tree with named loops (loop_tree.h) as a loop nest, a line for each loop, buffer and statement. A range is that of
/// all iterations of the loops around; one iteration of these may have fewer.
///     for i in 0:128  # parallel
///       S0_init: C(i, j) = 0
///       for k in 0:64
///         S0: C(i, j) += A(i, k) * B(k, j)
std::string loop_text(const Scop& scop, const LoopNotes& notes);

/// "A 8 x 16", of a tensor of which one iteration of a loop uses so much; "A", if that has no box of constant size.
std::string buffer_text(const Scop& scop, const std::string& tensor, const std::string& loop);

}  // namespace tc::poly
