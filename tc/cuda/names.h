#pragma once

#include <map>
#include <set>
#include <string>

#include "tc/tile/program.h"

namespace tc::cuda {

/// The identifiers of one kernel's text. The user's names are kept unless C++ or the text itself needs them, or a
/// tensor and a variable share one: then a suffix tells them apart.
class Names {
 public:
  explicit Names(const tile::Kernel& kernel);

  const std::string& tensor(const std::string& name) const;
  /// Of a loop variable, a let, a scalar argument, or one of tile::kBlock and tile::kThread.
  const std::string& variable(const std::string& name) const;
  /// Of a tensor map.
  const std::string& map(const std::string& name) const;

 private:
  void add(std::map<std::string, std::string>& to, const std::string& name);

  std::map<std::string, std::string> tensors_;
  std::map<std::string, std::string> variables_;
  std::map<std::string, std::string> maps_;
  std::set<std::string> taken_;
};

/// The name of a kernel in its module.
std::string symbol_of(const tile::Kernel& kernel);

}  // namespace tc::cuda
