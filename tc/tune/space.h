#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tc/options/backend.h"
#include "tc/support/error.h"

namespace tc::tune {

/// A field of CpuOptions or MappingOptions that may be tuned, and the values worth trying.
struct Parameter {
  /// As in the message, through dots: "vector_width", "scheduler.fusion_strategy"; "kernel[H].tile" of the kernel that
  /// writes H, "kernel[H 2].tile" with an occurrence. Parameters of one repeated field
  /// ("tile") stand for its elements in order; what follows an absent one is absent.
  std::string field;
  /// As in the text form; "" for absent: the compiler chooses. "[64, 32]": all elements of a repeated field at once.
  std::vector<std::string> values;
  bool is_list() const;  ///< some value is one of all elements
  bool operator==(const Parameter&) const = default;
};

/// A point of the space: for each parameter the number of its value.
using Candidate = std::vector<uint16_t>;

/// What is searched.
struct Space {
  options::Backend backend = options::Backend::kCpu;
  std::string base{};  ///< options as text that every candidate has ("strict: true"); no parameter names their fields
  std::vector<Parameter> parameters{};

  /// How many points, as a floating number: it may be large.
  double size() const;
};

/// The options of a candidate as text, in the canonical form of tc/options.
/// Errors: a field or value that the options do not have.
Result<std::string> text_of(const Space& space, const Candidate& candidate);

/// The candidate that a text of options is. A value that its parameter does not list is added to the list.
/// Errors: not such a text; a field that is set to something else than in `base`, and which no parameter names.
Result<Candidate> candidate_of(Space& space, const std::string& text);

/// What a text of options says of a field, as a parameter has it; "" if nothing. Of a repeated field all elements.
/// Errors: not such a text; no such field.
Result<std::string> value_in(options::Backend backend, const std::string& text, const std::string& field);

/// All parameters at their first value.
Candidate first_candidate(const Space& space);

}  // namespace tc::tune
