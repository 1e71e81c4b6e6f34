#pragma once

#include <Halide.h>

#include <string>
#include <vector>

namespace tc::cuda {

/// One intrinsic on one choice of types.
struct IntrinsicUse {
  std::string name;
  std::vector<Halide::Type> arguments;
  Halide::Type result;
};

/// Every intrinsic of the language that reaches a tile program as a call, on every type that it takes.
std::vector<IntrinsicUse> all_intrinsic_uses();

}  // namespace tc::cuda
