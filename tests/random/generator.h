#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tc/interp/interpreter.h"
#include "tc/ir/specialise.h"
#include "tc/support/scalar_type.h"

/// Random valid programs with concrete sizes, and data for them: the same for a seed on every machine.
namespace tc::testing {

/// A program as text, in pieces that a shrinker can drop.
struct RandomProgram {
  uint64_t seed = 0;
  std::vector<std::string> parameters;         ///< "float32(N0, 3) A0"
  std::map<std::string, std::string> results;  ///< tensors that may be results, with their declaration
  std::vector<std::string> targets;            ///< the tensor that each statement writes
  std::vector<std::string> statements;
  std::map<std::string, int64_t> sizes;
  std::map<std::string, int64_t> compiled_in;   ///< integer scalars of ranges and subscripts
  std::map<std::string, int64_t> index_bounds;  ///< of integer tensors used as subscripts: elements are in [0, bound)

  /// The def. Results are the tensors of `results` that a statement writes.
  std::string source() const;
  /// source() and the sizes, for a person.
  std::string describe() const;
  ir::Given given() const;
};

RandomProgram generate_program(uint64_t seed);

enum class DataKind {
  kSmallIntegers,  ///< floats too: arithmetic on them is mostly exact
  kReals,          ///< floats are normally distributed; integers take their whole range now and then
  kSpecials,       ///< reals with infinities and NaNs among them
};

/// Inputs, in-outs, scalars and initial results of a specialised program.
interp::Environment generate_data(const RandomProgram& source, const ir::Program& program, DataKind kind,
                                  uint64_t seed);

}  // namespace tc::testing
