#pragma once

#include <functional>
#include <string>

#include "tc/ir/program.h"

namespace tc::gpu {

/// Lets a temporary that is made of another one, element by element, take its place, where nobody else reads that:
///     S(n,m) +=! Q(n,d) * K(m,d)                            S(n,m) +=! Q(n,d) * K(m,d)
///     T(n,m) = m <= n ? S(n,m) * 0.125 : -inf     ==>       S(n,m) = m <= n ? S(n,m) * 0.125 : -inf
///     top(n) max=! T(n,m)                                   top(n) max=! S(n,m)
/// So what is done to a product's results is done where they are, and not again by each reader. Of those that
/// `is_of_product` says are made of a product; `may_go` says whether nobody asks for the first one by its name. Of a
/// specialised Program, before recompute_temporaries().
ir::Program reuse_temporaries(ir::Program program,
                              const std::function<bool(const ir::Program&, const std::string& tensor)>& is_of_product,
                              const std::function<bool(const std::string& tensor)>& may_go);

}  // namespace tc::gpu
