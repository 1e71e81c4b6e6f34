#pragma once

#include <set>
#include <string>

#include "tc/ir/program.h"
#include "tc/tile/program.h"

namespace tc::gpu {

/// Hands out names that nothing in a kernel has yet.
class Names {
 public:
  explicit Names(const ir::Program& program) {
    for (const ir::Tensor& tensor : program.tensors) taken_.insert(tensor.name);
    for (const ir::Scalar& scalar : program.scalars) taken_.insert(scalar.name);
    taken_.insert(tile::kBlock.begin(), tile::kBlock.end());
    taken_.insert(tile::kThread.begin(), tile::kThread.end());
  }

  void add(const std::string& name) { taken_.insert(name); }

  std::string fresh(const std::string& wish) {
    std::string name = wish;
    for (int i = 1; !taken_.insert(name).second; ++i) name = wish + "_" + std::to_string(i);
    return name;
  }

 private:
  std::set<std::string> taken_;
};

}  // namespace tc::gpu
