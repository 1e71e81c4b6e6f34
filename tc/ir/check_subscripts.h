#pragma once

#include <string>
#include <vector>

#include "tc/ir/program.h"
#include "tc/support/result.h"

namespace tc::ir {

/// A data-dependent subscript of a def (C8), and the result that says which value it took.
struct SubscriptCheck {
  std::string statement;  ///< its id
  std::string tensor;
  int dimension = 0;
  int64_t extent = 0;                    ///< the subscript has to be in [0, extent)
  ScalarType type = ScalarType::kInt64;  ///< of the subscript
  SourceRange range;                     ///< of the access
  /// The result: a scalar of the type's width, the greatest of all values taken as unsigned, in which order every value
  /// outside comes behind those inside.
  std::string found;
};

struct CheckedProgram {
  Program program;
  std::vector<SubscriptCheck> checks;  ///< in the order of the text
};

/// Bounds on the checks of one def, so that a call needs no memory for what they find.
inline constexpr size_t kMaxSubscriptChecks = 64;

/// Makes a specialised Program check its data-dependent subscripts itself, on every backend alike.
///
///     Z(i) = X(I(i))   ==>   found max=! uint32(I(i))
///                            Z(i) = X(clamp(I(i), 0, N - 1))
///
/// Whatever data hold, nothing outside a tensor is touched: reads are clamped into their tensors, and an update that
/// would leave its tensor updates an element inside by the operator's identity. Results are those of the Program if
/// violation() finds nothing; otherwise they mean nothing.
/// Errors: more than kMaxSubscriptChecks different subscripts.
Result<CheckedProgram> check_subscripts(Program specialised);

/// How many values of the indices are tried at most.
inline constexpr int64_t kMaxIndexValues = int64_t{1} << 22;

/// The checks alone of subscripts that compute with indices and need no data, by intrinsics of which nothing is proved:
/// bitwise_xor(i, 1). Running it decides whether they stay inside. Conditions that need data count as true, and those
/// with other indices than the subscript's where these would make more than kMaxIndexValues values.
CheckedProgram checks_without_data(const Program& specialised);

/// The sentence for a check whose subscript has left its tensor, from the bits of its result; "" if it has not.
std::string violation(const SubscriptCheck& check, int64_t found);

}  // namespace tc::ir
