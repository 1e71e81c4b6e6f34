#pragma once

#include <cstdint>
#include <string>

/// Random defs `f` of the shapes on which kernels have been wrong before, over sizes N and M of at least 6.
namespace tc::testing {

/// Statements that choose between inputs and tensors that the def writes.
std::string random_choices(uint64_t seed);

/// Statements on parts of tensors that other statements read, also through subscripts in a tensor J.
std::string random_parts(uint64_t seed);

}  // namespace tc::testing
