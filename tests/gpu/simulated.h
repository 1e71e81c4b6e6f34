#pragma once

#include <string>

#include "tc/gpu/strategy/map.h"
#include "tc/interp/interpreter.h"
#include "tc/tile/simulate.h"

/// Programs through the mapping, on the simulator and on the oracle.
namespace tc::testing {

/// The Mapping of a specialised program.
Result<gpu::Mapping> mapped(const ir::Program& program, const options::MappingOptions& options = {},
                            const gpu::Device& device = {}, bool element_aligned = false);

/// Runs a mapping's tile program on inputs, in-outs, scalars and initial results; results and in-outs, or an Error
/// that quotes what the simulator found wrong.
Result<interp::Environment> simulated(const ir::Program& program, const gpu::Mapping& mapping,
                                      const interp::Environment& data, uint64_t seed = 1,
                                      tile::Report* counted = nullptr);

/// Random data that the program can be run on: small integers, index tensors within what they index.
interp::Environment data_for(const ir::Program& program, uint64_t seed);

/// Maps and simulates a program; what is wrong in comparison with the oracle, or nothing.
std::string difference(const ir::Program& program, const options::MappingOptions& options = {}, uint64_t seed = 1,
                       const gpu::Device& device = {});

}  // namespace tc::testing
