#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "tc/interp/bounded.h"
#include "tc/ir/program.h"
#include "tc/support/result.h"

/// The oracle: runs a specialised Program by walking its expressions, sequentially and in float64, and shares no code
/// with any backend. What it defines where the language leaves a choice:
///   - A cast of a float to an integer rounds toward zero; NaN gives 0 and what does not fit the nearest integer of
///     the type, as in CUDA. To bool: whether it is not zero (a NaN is not).
///   - Integers wrap around at their type's width. Shifts: see tc/interp/scalar.h.
///   - `?:`, `&&` and `||` evaluate only what they need, so that a guarded read outside its tensor never happens (R6).
///   - `op=!` first sets every element that a map instance names to the identity, even where the reduction is empty,
///     and then accumulates. A guard that a reduction index enters does not keep an element from being set.
namespace tc::interp {

/// A dense row-major tensor as the interpreter holds it. Floats of any type are held as float64, integers and bools as
/// int64 (uint64 by bit pattern). A scalar has rank 0 and one element.
struct Value {
  ScalarType type = ScalarType::kFloat32;
  std::vector<int64_t> shape;
  std::vector<double> floats;     ///< used iff is_float(type)
  std::vector<int64_t> integers;  ///< used otherwise

  int64_t elements() const;
  /// A tensor of zeros.
  static Value zeros(ScalarType type, std::vector<int64_t> shape);
};

using Environment = std::map<std::string, Value>;  ///< tensors and scalars by name

struct RunOptions {
  /// Rounds every store to the tensor's type, as a strict backend does. Otherwise temporaries and accumulators keep
  /// float64, and only what is handed back is rounded.
  bool exact = false;
  std::stop_token cancel{};  ///< ends the run, as ErrorKind::kCancelled
};

/// Runs on the given inputs, in-outs and scalars; returns results and in-outs. Results that the environment also
/// holds start from what it holds (R5), from zero otherwise.
/// Errors: an unknown or missing name, a wrong shape or type, a tensor too large to hold, a data-dependent subscript
/// out of bounds (with the tensor, subscript, extent, statement and index values).
Result<Environment> run(const ir::Program& program, const Environment& inputs, const RunOptions& options = {});

/// A tensor with a bound on how far a correct backend's elements may be from it.
struct BoundedValue {
  Value value;                 ///< floats as computed in float64, not rounded to the type
  std::vector<double> errors;  ///< absolute; infinite where a rounding error decides, so that nothing can be said
};
using BoundedEnvironment = std::map<std::string, BoundedValue>;

/// run() with running error analysis (tc/interp/bounded.h): about five times slower.
Result<BoundedEnvironment> run_bounded(const ir::Program& program, const Environment& inputs,
                                       const AccuracyTable& accuracy = default_accuracy, std::stop_token cancel = {});

}  // namespace tc::interp
