#pragma once

#include "tc/ir/layouts.h"
#include "tc/options/options.h"
#include "tc/poly/scop.h"
#include "tc/support/result.h"

namespace tc::cpu {

/// What a schedule is made for.
struct StrategyOptions {
  options::CpuOptions cpu;
  ir::Layouts layouts;
  int vector_bits = 256;
  int threads = 1;
  bool verify = false;  ///< a schedule of ours that is not legal is an InternalError
};

/// Decides the schedule tree of a Scop in canonical form: which statements share loops, tiles, what runs in parallel,
/// what is a vector, what has a buffer of its own.
///
/// Statements become units (an initialisation, its reduction and what follows at the same point), units become groups
/// (what passes between them stays within an iteration of shared loops); a group's outermost loop is parallel if
/// there is work enough, and each unit is tiled for the vector registers. Of the fusion strategies, kMin keeps every
/// statement to itself, kMax makes every legal group, and kPreserve3Coincident only those that are worth it, which is
/// also the default. With allow_skewing the tree is poly::schedule()'s instead, with its outer parallel loop marked.
/// Every schedule is proved legal; one that is not (a fault of ours) is replaced by the canonical order, or reported
/// with `verify`.
/// Errors: the context's budget.
Result<poly::Scop> schedule_for_cpu(const poly::Scop& scop, const StrategyOptions& options);

}  // namespace tc::cpu
