#pragma once

#include <string>
#include <vector>

#include "tc/options/mapping.h"
#include "tc/options/options.h"

namespace tc::options {

/// A value out of its bounds: the field's name in its message, which of a repeated field's values (0 otherwise)
/// and the sentence.
struct Fault {
  std::string field;
  int index = 0;
  std::string sentence;
  int kernel = -1;  ///< of which of MappingOptions::kernel; -1: of the def
};

/// All that validate() objects to, in the order of the fields.
std::vector<Fault> faults_of(const CpuOptions& options);
std::vector<Fault> faults_of(const MappingOptions& options);

}  // namespace tc::options
