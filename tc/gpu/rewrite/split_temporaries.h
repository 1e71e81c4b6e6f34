#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tc/ir/program.h"

namespace tc::gpu {

/// A program with ranges of temporaries in tensors of their own.
struct SplitTemporary {
  ir::Program program;
  std::vector<std::string> temporaries;  ///< those that are no more
  std::vector<std::string> parts;        ///< of the one in question, in order
};

/// Splits a temporary whose readers each look at one of several ranges of a dimension, with all statements that write
/// it:
///     H(m,n) +=! A(m,k) * B(k,n)                 H_1(m,n) +=! A(m,k) * B(k,n)            n in 0:N
///     H(m,n) += b(n)                             H_1(m,n) += b(n)
///     G(m,n) = f(H(m,n), H(m,n + N))     ==>     H_2(m,n) +=! A(m,k) * B(k,n + N)
///                                                H_2(m,n) += b(n + N)
///                                                G(m,n) = f(H_1(m,n), H_2(m,n))
/// Then readers go on with results of whole products, which may share their kernels. A range of one element is a tensor
/// without the dimension. Temporaries that the writers read part by part are split, too. What has to do with one part
/// alone comes together. Nothing if readers share ranges. Of a specialised Program.
std::optional<SplitTemporary> split_temporary(const ir::Program& program, const std::string& tensor);

}  // namespace tc::gpu
