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

  /// The same for what is put among a program's statements.
  static Names among_statements(const ir::Program& program) {
    Names names(program);
    for (const ir::Statement& statement : program.statements) {
      names.add(statement.id);
      for (const ir::Index& index : statement.indices) names.add(index.name);
    }
    return names;
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
