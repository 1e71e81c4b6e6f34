#pragma once

#include <Halide.h>

#include <map>
#include <string>

namespace tc::cpu {

/// Keeps allocations of constant size out of the simplifier's sight: from an access that is surely outside of its
/// allocation the simplifier concludes that the place is never reached, and deletes what leads there, also where a
/// predicate switches the access off.
///
///     HiddenAllocations hidden;
///     s = hidden.restore(simplify(hidden.hide(s)));
///
/// While hidden, an allocation stands as the ProducerConsumer node of its name. Names must be unique.
class HiddenAllocations {
 public:
  Halide::Internal::Stmt hide(const Halide::Internal::Stmt& stmt);
  Halide::Internal::Stmt restore(const Halide::Internal::Stmt& stmt) const;

 private:
  std::map<std::string, Halide::Internal::Stmt> allocations_;  ///< as they were
};

}  // namespace tc::cpu
