#pragma once

#include <Halide.h>

#include <vector>

#include "tc/cpu/object.h"
#include "tc/cpu/statement_body.h"
#include "tc/ir/layouts.h"
#include "tc/poly/scop.h"

namespace tc::cpu {

/// One more mark than those of poly::Scop: below "separate" stand tiles of which those at the edges may be partial.
/// The loops below become `if (every tile is full) fast code else code for any tile`. A mark "vector" or "unroll" that
/// is below no such mark does the same for itself.
inline constexpr char kSeparateMark[] = "separate";
/// The same, and the points that a partial tile lacks may be computed like the others: every statement below writes to
/// buffers promoted below, and what those hold for such points is never copied out. What such points read from
/// elsewhere is held inside of its tensor. So partial tiles stay in registers too.
inline constexpr char kPadMark[] = "pad";

struct FromPolyOptions {
  ir::Layouts layouts;
  int vector_bits = 256;  ///< of the target's vector registers
};

/// A scheduled Scop as loops.
struct KernelStmt {
  Halide::Internal::Stmt body;
  /// Buffers and scalars in the order of the call: the def's parameters, then those results that are not
  /// parameters. Scalars that were specialised are not arguments.
  std::vector<KernelArgument> arguments;
};

/// Turns a Scop whose schedule tree has been decided into loops, those of poly::generate_loops(): marks say which are
/// parallel, vectors, unrolled or have buffers of their own. Temporaries without a buffer are allocated around
/// everything.
KernelStmt from_poly(const poly::Scop& scop, const FromPolyOptions& options);

}  // namespace tc::cpu
