#pragma once

#include <vector>

#include "tests/random/generator.h"

/// Programs whose values are arithmetic on constants, which no backend may do wider than their type.
namespace tc::testing {

/// Every integer operator on the ends of the narrower integer types, about 20 results a program. The wider ones are
/// tried on the tile program (tests/tile/constants_test.cc).
std::vector<RandomProgram> constant_programs();

}  // namespace tc::testing
