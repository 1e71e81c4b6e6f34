#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tc/poly/scop.h"
#include "tests/poly/programs.h"

namespace tc::poly::test {

/// The Scop of a program, in a context of its own.
Scop scop_of(const ProgramPtr& program);
/// The same, scheduled.
Scop scheduled(const ProgramPtr& program, options::Fusion fusion);
/// Every program of programs.h, at small sizes, by name.
std::vector<std::pair<std::string, ProgramPtr>> all_programs();

}  // namespace tc::poly::test
