#pragma once

#include <set>
#include <string>
#include <vector>

#include "tc/gpu/atoms/device.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// What a launch is expected to take, in microseconds, and what of: a rough model of the tile program, from the
/// device's figures alone. Each term is what the launch would take if nothing else limited it.
struct Estimate {
  double us = 0;
  double memory_us = 0;          ///< bytes that memory has to deliver, at its rate
  double cache_us = 0;           ///< sectors that go through the L2 cache
  double shared_us = 0;          ///< bytes from and to shared memory
  double issue_us = 0;           ///< instructions of all warps
  double tensor_us = 0;          ///< products by tensor cores
  double latency_us = 0;         ///< reads that wait for each other, and barriers, of all waves of blocks
  double blocks_us = 0;          ///< to start all blocks, one after the other
  double compute_us = 0;         ///< operations, at the device's rate: with memory_us, what no code for them goes below
  double bytes = 0;              ///< of memory
  double operations = 0;         ///< on floats
  double tensor_operations = 0;  ///< those of them by tensor cores
  double waves = 0;              ///< blocks, of those that the device holds at once
  double occupancy = 0;          ///< threads of a processor, of 2048

  /// "memory", "cache", "shared memory", "instructions", "tensor cores", "latency", "blocks" that are started, or
  /// "the launch", which takes a microsecond.
  const char* limit() const;
};

/// What a device computes on floats in a microsecond, without tensor cores: two operations of each lane in a cycle.
double operations_per_us(const Device& device);
/// The same by tensor cores, of 16-bit floats.
double tensor_operations_per_us(const Device& device);

/// What a recipe knows of its kernel that the tile program does not say.
struct Expected {
  double planned_us = 0;  ///< the recipe's own estimate, which then stands for what the processors do; 0: it has none
  /// Tensors of which each block goes through a part of its own, there and back. What the L2 cache does not hold of the
  /// parts of all blocks that run at once comes from memory again.
  std::set<std::string> in_passes = {};
  /// A processor's own cache holds what its blocks read several times: so many times the bytes of memory go through
  /// the L2 cache, 1 if no two blocks ask for the same. 0: as many as threads ask for.
  double asked_again = 0;
  double unknown_trips = 4;  ///< how often loops run of which neither constants nor blocks say it
};

Estimate estimate(const tile::Kernel& kernel, const Device& device, const Expected& expected = {});

}  // namespace tc::gpu
