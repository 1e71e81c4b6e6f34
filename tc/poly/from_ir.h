#pragma once

#include <memory>

#include "tc/poly/scop.h"

namespace tc::poly {

/// The Scop of a specialised Program: domains, accesses, dependences, and the schedule in canonical form.
///
/// Every statement with op=! becomes two: `Sx_init`, which stores the identity to each element that Sx writes, and
/// `Sx`. The canonical schedule is a sequence over the statements in program order, each under a band that is the
/// identity over its indices (paper 2018, figure 3a).
/// Errors: the context's budget.
Result<Scop> from_ir(std::shared_ptr<const ir::Program> program, std::shared_ptr<Context> context);

/// The same without dependences, which take most of the time: what its instances are, read and write.
Result<Scop> accesses_from_ir(std::shared_ptr<const ir::Program> program, std::shared_ptr<Context> context);

/// The schedule in canonical form, of any Scop.
isl::schedule canonical_schedule(const Scop& scop);

}  // namespace tc::poly
