#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "tc/ir/program.h"

namespace tc::ir {

struct ReduceOnceOptions {
  bool strict = false;              ///< keeps the order of sums of floats
  int64_t least_instances = 1;      ///< that a statement has to save
  std::set<std::string> kept = {};  ///< tensors whose statements stay, as those that options address
};

/// Computes a reduction once for all results that have the same terms. The temporary lacks the indices that no term
/// depends on, and has quotients and remainders in place of those that count in no other way:
///     C(m,n) +=! A(m,k) * x(k)         ==>   C_once(m) +=! A(m,k) * x(k)
///                                            C(m,n) = C_once(m)
///     C(m,n) +=! A(m,n / 2,k)          ==>   C_once(m,n_once) +=! A(m,n_once,k)
///                                            C(m,n) = C_once(m,n / 2)
/// A factor that no reduction index changes is multiplied after a sum (T5) if the sum is computed once thereby:
///     C(m,n) +=! A(m,k) * s(n)         ==>   C_once(m) +=! A(m,k)
///                                            C(m,n) = C_once(m) * s(n)
/// It is an integer, or all factors are float16 or integers of 8 bits: no finite result becomes an infinity.
/// Of a specialised Program, first of a backend's passes.
Program reduce_once(Program program, const ReduceOnceOptions& options);

}  // namespace tc::ir
