#pragma once

#include <string>
#include <vector>

#include "tc/gpu/strategy/map.h"
#include "tc/ir/program.h"

namespace tc::gpu {

/// A field of MappingOptions and the values that are worth trying, each a list: of one number for a scalar, 0 or 1 for
/// a bool, a fusion strategy's number; the empty list leaves the choice to the compiler.
struct Tunable {
  std::string field;
  std::vector<std::vector<int64_t>> values;
  options::KernelOptions of = {};  ///< the address of the kernel that has the field; nothing is written: the def
};

/// The options with a field set to one of a Tunable's values.
options::MappingOptions with(options::MappingOptions options, const std::string& field,
                             const std::vector<int64_t>& value);

/// The same, with a field of the Tunable's kernel.
options::MappingOptions with(options::MappingOptions options, const Tunable& tunable,
                             const std::vector<int64_t>& value);

/// What is open to a search for a specialised def: of the recipes that make its kernels under these options, the fields
/// that steer them, with legal and sensible values. Not every combination is legal. Where options
/// can address kernels, each has fields of its own, and the def's have no values but those of texts that a search
/// reads. Errors: those of map().
Result<std::vector<Tunable>> tunables(const ir::Program& program, const options::MappingOptions& options,
                                      const Device& device);

/// Maps a specialised def as a compilation would, up to the tile program: some milliseconds. The error says why these
/// options are not legal here.
Result<Mapping> map_program(const ir::Program& program, const options::MappingOptions& options, const Device& device,
                            bool element_aligned = false);

struct Candidate {
  options::MappingOptions options;
  double us = 0;  ///< estimated
};

/// The `count` options of least estimated time that agree with `options` in what these set, best first. Where options
/// can address kernels, each kernel's best are found with the others by default, then combined.
Result<std::vector<Candidate>> top(const ir::Program& program, const options::MappingOptions& options,
                                   const Device& device, size_t count);

}  // namespace tc::gpu
