#pragma once

#include "tc/poly/footprint.h"

namespace tc::poly {

struct PromoteOptions {
  std::string name = {};         ///< of the buffer; empty: the tensor's, made unique
  std::vector<int> layout = {};  ///< storage order of the dimensions; empty: the tensor's own
  bool in_registers = false;
  int64_t max_elements = int64_t{1} << 24;  ///< a larger buffer is refused
};

/// Holds the part of a tensor that is used below a node in a buffer: inserts the mark "promote:<name>" above the node
/// (and above the marks of a band that stands there) and adds the Promotion. All accesses below go to the buffer.
///   copy_in   if some element may be read below before it is written there, or the box is written back and some of it
///             is not written below
///   copy_out  if something is written below, and the tensor is a result or in-out, or the value is used elsewhere
/// Insert promotions when the loops above are final: the offset is a function of them.
/// Errors: no box of constant size, a buffer over max_elements, a tensor not used there, written boxes that overlap
/// between iterations of a parallel loop above.
Result<Scop> promote(const Scop& scop, const NodeRef& node, const std::string& tensor,
                     const PromoteOptions& options = {});

/// Promotes every temporary whose values all stay within one iteration of some loops, at the deepest such place and
/// with neither copy: it then needs no storage but the buffer. A Promotion of a temporary with neither copy, below
/// which stand all its accesses, means just that (contracted()).
/// After all other changes of the tree; temporaries whose buffer would be the whole tensor stay as they are.
Scop contract_temporaries(const Scop& scop);

/// Whether the tensor lives in a Promotion's buffer alone.
bool contracted(const Scop& scop, const std::string& tensor);

/// Whether a copy of a box, { [prefix] -> T[x] }, to a buffer at the node reads values alone. Of a temporary or a
/// result these are the elements that are read below and were written in another iteration of the loops above, or
/// elsewhere: the others may hold nothing yet.
bool has_values_before(const Scop& scop, const isl::schedule_node& node, const isl::map& box);

/// Whether all values of the tensor that one statement passes to another are in the promotion's buffer meanwhile: both
/// stand below its mark, and each value is made and used within one iteration of the loops above.
bool holds_between(const Scop& scop, const Promotion& promotion, const std::string& from, const std::string& to);

/// What is wrong with the promotions of a Scop, if anything: a mark without promotion or the other way round, an access
/// that leaves its buffer, written boxes that overlap between iterations of a parallel loop above, a needed copy
/// left out. check_legal() and mark_parallel() ask this too.
std::optional<std::string> promotion_fault(const Scop& scop);

}  // namespace tc::poly
