#pragma once

#include <string>

#include "tc/tile/program.h"

namespace tc::tile {

/// A tile program as text, for people and golden files: the kernels with their grids and blocks, tensors with their
/// layouts written shape:stride (a swizzle in front: "Sw<3,4,3> o (8,64):(64,1)"), then the statements.
std::string to_text(const Program& program);
std::string to_text(const Kernel& kernel);

/// A node on one line, without its children: "A_s(thread_y, thread_x) = A(m, k)", "for k".
std::string node_text(const Node& node);

/// "float32 A_s Sw<3,4,3> o (8,64):(64,1)".
std::string to_text(const Tensor& tensor);
std::string to_text(const TensorMap& map);

}  // namespace tc::tile
