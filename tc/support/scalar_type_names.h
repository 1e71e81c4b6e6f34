#pragma once

#include <string_view>
#include <vector>

#include "tc/support/scalar_type.h"

namespace tc {

/// A name that a text may use for an element type.
struct ScalarTypeName {
  std::string_view name;
  ScalarType type;
};

/// All names that scalar_type_from_name() knows: canonical ones first, then aliases ("float", "half").
std::vector<ScalarTypeName> all_scalar_type_names();

}  // namespace tc
