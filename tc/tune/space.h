#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tc/options/backend.h"
#include "tc/support/error.h"

namespace tc::tune {

/// A field of CpuOptions or MappingOptions that may be tuned, and the values worth trying.
struct Parameter {
  /// As in the message, through dots: "vector_width", "scheduler.fusion_strategy". Parameters of one repeated field
  /// ("tile") stand for its elements in order; what follows an absent one is absent.
  std::string field;
  std::vector<std::string> values;  ///< as in the text form; "" for absent: the compiler chooses
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

/// All parameters at their first value.
Candidate first_candidate(const Space& space);

}  // namespace tc::tune
