#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tc/support/scalar_type.h"
#include "tests/random/generator.h"
#include "tests/random/random.h"

/// What the generator of random programs knows while it writes one.
namespace tc::testing {

/// An extent: as written, and its value.
struct Extent {
  std::string text;
  int64_t value;
};

struct RandomTensor {
  std::string name;
  ScalarType type;
  std::vector<Extent> shape;
};

/// An index of the statement being made. A plain one runs over an extent that inference finds, because it stands alone
/// in a subscript of that extent; the others have a where clause.
struct RandomIndex {
  std::string name;
  int64_t begin;
  int64_t end;
  std::string end_text;
  bool plain;
  bool anchored = false;  ///< a plain one that has occurred in a subscript of its extent
};

enum class Kind { kFloat, kInteger, kBool };

Kind kind_of(ScalarType type);

/// `where name = value`.
struct RandomLet {
  std::string name;
  Kind kind;
  std::string value;
  bool used = false;
};

/// The names that a statement may use, and the program so far.
struct Scope {
  explicit Scope(uint64_t seed) : random(seed) { program.seed = seed; }

  Random random;
  RandomProgram program;
  std::vector<RandomTensor> readable;
  std::vector<RandomTensor> scalars;
  std::vector<RandomTensor> strides;  ///< integer scalars for subscripts; program.compiled_in has their values
  std::vector<RandomIndex> indices;   ///< of the statement being made
  std::vector<RandomLet> lets;
  int inputs = 0;

  ScalarType random_float();
  ScalarType random_float_of_scalar();
  ScalarType random_integer();
  /// "A0", and so on.
  std::string new_input_name();
  void add_parameter(const RandomTensor& tensor);
  /// A parameter of `value` integers, in [0, bound), for subscripts.
  RandomTensor add_index_tensor(const std::string& extent, int64_t value, int64_t bound);
};

/// "(N0, 3)"; nothing for a scalar.
std::string shape_text(const std::vector<Extent>& shape);
/// A cast; of a constant that does not fit, the language refuses it.
std::string cast(ScalarType type, const std::string& text);

}  // namespace tc::testing
