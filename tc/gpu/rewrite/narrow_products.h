#pragma once

#include <functional>
#include <vector>

#include "tc/ir/program.h"

namespace tc::gpu {

/// A sum of products as products of two operands of 16 bits, or of TF32, each, which tensor cores take:
///     C(m, n) +=! exp(A(m, k)) * B(k, n)
///         ==>   C_operand(d0, d1) = exp(A(d0, d1))               operands
///               C(m, n) +=! C_operand(m, k) * B(k, n)            products
///     C(m, n) += s(m) * A(m, k) * B(k, n)
///         ==>   C_products(m, n) +=! A(m, k) * B(k, n)           products
///               C(m, n) += s(m) * C_products(m, n)               results
///     C(m, n) +=! x(m, k) * W(k, n) + h(m, k) * U(k, n)
///         ==>   C(m, n) +=! x(m, k) * W(k, n)                    products
///               C(m, n) += h(m, k) * U(k, n)
///     C(m, n) +=! A(m, k) * s(k) * B(k, n)
///         ==>   C_operand(m, k) = tf32(A(m, k) * s(k))           operands
///               C_operand_1(m, k) = tf32(A(m, k) * s(k) - tf32(A(m, k) * s(k)))
///               C(m, n) +=! C_operand(m, k) * B(k, n)            products
///               C(m, n) += C_operand_1(m, k) * B(k, n)
struct NarrowProducts {
  std::vector<ir::Tensor> temporaries;
  std::vector<ir::Statement> operands;
  std::vector<ir::Statement> products;
  std::vector<ir::Statement> results;
};

/// Whether the statements of the last argument take less time than one of the program's.
using IsFaster = std::function<bool(const ir::Program&, const ir::Statement&, const NarrowProducts&)>;

/// Makes operands of the factors of products, so that tensor cores may multiply them. A factor becomes an operand only
/// if its value is one of float16 or bfloat16 by the text (T3): a function of such a type, a cast to it, a choice
/// between such values, or an integer or float of 8 bits; or if the text rounds it to TF32. So every operand has the
/// value that the text gives it. A factor that no reduction index changes is multiplied after the sum. A number that
/// divides each term divides the sum. Neither makes a finite result overflow or underflow (T5). Sums of products of
/// float16 have less than 2^64, and no term less than 2^-48. Those of bfloat16 may overflow where a result
/// would not, so only their signs move. On a specialised Program, before recompute_temporaries(), which may put cheap
/// temporaries into operands.
ir::Program narrow_products(ir::Program program, const IsFaster& is_faster);

}  // namespace tc::gpu
