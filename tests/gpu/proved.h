#pragma once

#include "tests/gpu/simulated.h"

namespace tc::testing {

/// What the verifier and the certificates of a program find wrong or cannot prove, a line each; "" if nothing.
std::string unproved(const tile::Program& program);

/// "" if the mapping without options agrees with the oracle, and the verifier and the certificate prove all of it.
std::string faults_of(const ir::Program& program, const gpu::Device& device = {});

}  // namespace tc::testing
