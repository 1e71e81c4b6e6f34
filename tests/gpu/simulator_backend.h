#pragma once

#include "tests/random/differential.h"

/// The simulator of GPU kernels as a backend of random programs.
namespace tc::testing {

/// Maps a program under options that the seed chooses, for a device that it chooses.
Backend simulator_backend(uint64_t seed);

/// The same of a program whose tensors have strides that the seed chooses.
Backend strided_backend(uint64_t seed);

/// Writes a program's loops by verbs of a schedule that the seed chooses; verbs that are refused are left out. A
/// schedule that no kernel carries out counts as one that agrees, if the refusal says why. On strided tensors for every
/// fourth seed.
Backend schedule_backend(uint64_t seed);

}  // namespace tc::testing
