#pragma once

#include <set>
#include <string>

#include "tc/cuda/prelude.h"
#include "tc/cuda/print.h"
#include "tc/tile/program.h"

namespace tc::cuda {

struct KernelText {
  std::string text;
  std::set<Helper> helpers;  ///< that it uses
};

/// The kernels of a program that are launched before and after one.
struct Neighbours {
  bool before = false, after = false;
  std::set<std::string> touched;  ///< tensors that those before read or write
  std::set<std::string> written;  ///< that they write
};

/// A kernel with others before it waits until they have ended before it touches what they do, or at its end; one with
/// others after it lets the next start at once.
KernelText kernel_text(const tile::Kernel& kernel, const PrintOptions& options, const Neighbours& neighbours = {});

}  // namespace tc::cuda
