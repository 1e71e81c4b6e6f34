#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tc/ir/program.h"
#include "tc/support/result.h"

namespace tc::interp {

/// A dense row-major tensor as the interpreter holds it. Floats of any type are held as float64 (rounded to their
/// type whenever stored), integers and bools as int64 (uint64 by bit pattern).
struct Value {
  ScalarType type = ScalarType::kFloat32;
  std::vector<int64_t> shape;
  std::vector<double> floats;      ///< used iff is_float(type)
  std::vector<int64_t> integers;   ///< used otherwise

  int64_t elements() const;
};

using Environment = std::map<std::string, Value>;  ///< tensors and scalars (rank 0) by name

/// Runs a specialised Program on the given inputs, in-outs and scalars; returns results and in-outs. Results that the
/// environment also holds start from what it holds (R5), from zero otherwise.
///
/// Sequential, in float64, by walking the Program's expressions: slow and obvious, the oracle of every backend.
/// With `exact` false (the default for oracles) temporaries and accumulators keep float64; with `exact` true every
/// store rounds to the tensor's type.
/// Errors: an unknown or missing tensor, a wrong shape or type, a data-dependent subscript out of bounds (with the
/// statement, index values and subscript).
Result<Environment> run(const ir::Program& program, const Environment& inputs);

}  // namespace tc::interp
