#pragma once

#include <map>
#include <set>
#include <string>

#include "tc/cuda/prelude.h"
#include "tc/tile/program.h"

namespace tc::cuda {

struct KernelText {
  std::string text;
  std::set<Helper> helpers;                     ///< that it uses
  std::map<std::string, std::string> products;  ///< functions of warpgroups' products that it uses, by name
};

KernelText kernel_text(const tile::Kernel& kernel);

/// Whether a kernel takes its shared memory dynamically. Only there a tensor may lie where another one does.
bool has_dynamic_memory(const tile::Kernel& kernel);

}  // namespace tc::cuda
