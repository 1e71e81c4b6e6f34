#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tc/gpu/strategy/map.h"
#include "tc/interp/interpreter.h"
#include "tc/tile/simulate.h"

/// Programs through the mapping, on the simulator and on the oracle.
namespace tc::testing {

/// A GPU without the instructions of one architecture: tensor cores by mma.sync alone.
gpu::Device ampere();

/// The Mapping of a specialised program.
Result<gpu::Mapping> mapped(const ir::Program& program, const options::MappingOptions& options = {},
                            const gpu::Device& device = {}, bool element_aligned = false);

/// The bytes of a tensor that lies as its strides say, from its first element to its last, with NaNs between elements.
std::vector<std::byte> packed(const ir::Tensor& tensor, const interp::Value& value);
/// The elements that such bytes hold, in a value of the same type and shape.
interp::Value unpacked(const ir::Tensor& tensor, const std::vector<std::byte>& bytes, interp::Value value);
/// Whether nobody has written between the elements.
bool is_intact_between(const ir::Tensor& tensor, const std::vector<std::byte>& bytes);

/// The data as the tensors of a program hold them: elements that share an address are the same.
interp::Environment as_held(const ir::Program& program, interp::Environment data);

/// Runs a mapping's tile program on inputs, in-outs, scalars and initial results; results and in-outs, or an Error
/// that quotes what the simulator found wrong. Tensors lie as their strides say, with NaNs between their elements,
/// which nobody may write.
Result<interp::Environment> simulated(const ir::Program& program, const gpu::Mapping& mapping,
                                      const interp::Environment& data, uint64_t seed = 1,
                                      tile::Report* counted = nullptr);

/// Random data that the program can be run on: small integers, index tensors within what they index. As the tensors
/// hold them.
interp::Environment data_for(const ir::Program& program, uint64_t seed);

/// Maps and simulates a program; what is wrong in comparison with the oracle, or nothing.
std::string difference(const ir::Program& program, const options::MappingOptions& options = {}, uint64_t seed = 1,
                       const gpu::Device& device = {});

/// Simulates a program's mapping; what is wrong in comparison with the oracle, or nothing.
std::string difference_of_mapping(const ir::Program& program, const gpu::Mapping& mapping, uint64_t seed = 1);

}  // namespace tc::testing
