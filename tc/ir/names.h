#pragma once

#include <set>
#include <string>

#include "tc/ir/program.h"

namespace tc::ir {

/// Hands out names that nothing in a Program has yet.
class Names {
 public:
  /// Takes the names of the tensors and scalars.
  explicit Names(const Program& program) {
    for (const Tensor& tensor : program.tensors) taken_.insert(tensor.name);
    for (const Scalar& scalar : program.scalars) taken_.insert(scalar.name);
  }

  /// Takes the names of the statements and their indices too.
  static Names among_statements(const Program& program) {
    Names names(program);
    for (const Statement& statement : program.statements) {
      names.add(statement.id);
      for (const Index& index : statement.indices) names.add(index.name);
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

}  // namespace tc::ir
