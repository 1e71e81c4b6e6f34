#pragma once

#include <string>

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/lower/launch.h"
#include "tc/options/mapping.h"

namespace tc::gpu {

/// The classic mapping of a part of a scheduled tree (paper 2018, section 5), which serves every program: to blocks and
/// threads, with what is used again in shared memory and registers, and barriers where they are needed.
Launch classic(const poly::Scop& part, const options::MappingOptions& options, const Device& device,
               const std::string& name);

}  // namespace tc::gpu
