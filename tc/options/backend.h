#pragma once

namespace tc::options {

/// What runs a kernel.
enum class Backend {
  kCpu,        ///< this machine's processor
  kCuda,       ///< a GPU of NVIDIA's
  kSimulator,  ///< the kernels of a GPU, on the CPU, slowly: races and accesses out of bounds are found
};

}  // namespace tc::options
