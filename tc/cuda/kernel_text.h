#pragma once

#include <set>
#include <string>

#include "tc/cuda/prelude.h"
#include "tc/tile/program.h"

namespace tc::cuda {

struct KernelText {
  std::string text;
  std::set<Helper> helpers;  ///< that it uses
};

KernelText kernel_text(const tile::Kernel& kernel);

}  // namespace tc::cuda
