#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tc/ir/program.h"

namespace tc::gpu {

/// Makes one statement of several that set neighbouring parts of a tensor's range:
///     y(t,d) = x(t,d) * c(t,d) - x(t,d + 64) * s(t,d)   where d in 0:64
///     y(t,d) = x(t,d) * c(t,d) + x(t,d - 64) * s(t,d)   where d in 64:128
/// ==> y(t,d) = d < 64 ? x(t,d) * c(t,d) - ... : x(t,d) * c(t,d) + ...   where d in 0:128
/// The parts differ in one dimension. They join where the choice costs little: neighbours along the last dimension read
/// neighbours, and a boundary within rows is between vectors of 16 bytes, or the parts have fewer than `small` elements
/// together. They stay apart where one reads a tensor that the program makes and the other does not, or where a later
/// statement reads less than the joined range: these share launches with others. A part that is set again becomes a
/// choice, too; what changes a part of a product's results goes through all of them:
///     y(t,d) = x(t,d)
///     y(t,0) = 0                              ==>   y(t,d) = d < 1 ? 0 : x(t,d)
///     C(m,n) +=! A(m,k) * B(k,n)                    C(m,n) +=! A(m,k) * B(k,n)
///     C(m,n) = max(C(m,n), 0) where m in 0:9  ==>   C(m,n) = m < 9 ? max(C(m,n), 0) : C(m,n)
/// `is_product` says whether a statement is a product by itself; `may_go`, whether nobody asks for the kernels of a
/// tensor's statements by their number. Of a specialised Program.
using IsProduct = std::function<bool(const ir::Program&, const ir::Statement&)>;
using MayGo = std::function<bool(const std::string& tensor)>;
ir::Program join_ranges(ir::Program program, int64_t small, const IsProduct& is_product, const MayGo& may_go);

}  // namespace tc::gpu
