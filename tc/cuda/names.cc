#include "tc/cuda/names.h"

#include "tc/cuda/intrinsics.h"
#include "tc/cuda/prelude.h"
#include "tc/support/check.h"
#include "tc/support/cpp_words.h"

namespace tc::cuda {
namespace {

/// What CUDA or the text around a kernel has.
const std::set<std::string>& cuda_words() {
  static const std::set<std::string> words = {
      "threadIdx",     "blockIdx",   "blockDim", "gridDim", "warpSize",     "float2",    "float4",
      "double2",       "int2",       "int4",     "uint2",   "uint4",        "longlong2", "main",
      "shared_memory", "warp_lanes", "min",      "max",     "asm_volatile", "signbit",   "NULL"};
  return words;
}

bool is_reserved(const std::string& name) {
  return is_cpp_word(name) || is_c_macro(name) || cuda_words().count(name) || is_prelude_name(name) ||
         is_device_function(name) || name.starts_with("__") || name.starts_with("multiply_f16_m64") ||
         name.starts_with("multiply_bf16_m64") ||
         (name.size() > 1 && name[0] == '_' && name[1] >= 'A' && name[1] <= 'Z');
}

std::string as_identifier(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    result += letter ? c : '_';
  }
  if (result.empty() || (result[0] >= '0' && result[0] <= '9')) result = "v" + result;
  // What begins like a macro does so still with a line behind it.
  while (is_reserved(result)) result = result[0] == '_' || is_c_macro(result) ? "v" + result : result + "_";
  return result;
}

}  // namespace

Names::Names(const tile::Kernel& kernel) {
  for (const auto* names : {&tile::kBlock, &tile::kThread}) {
    for (const char* name : *names) add(variables_, name);
  }
  for (const tile::Tensor& tensor : kernel.tensors) add(tensors_, tensor.name);
  for (const tile::Scalar& scalar : kernel.scalars) add(variables_, scalar.name);
  for (const tile::TensorMap& map : kernel.maps) add(maps_, map.name);
  tile::for_each_node(kernel.body, [&](const tile::Node& node) {
    if (const tile::Tensor* tensor = tile::allocated_tensor(node)) add(tensors_, tensor->name);
  });
  tile::for_each_node(kernel.body, [&](const tile::Node& node) {
    if (const std::string* variable = tile::bound_variable(node)) add(variables_, *variable);
    if (const tile::Ring* ring = tile::ring_of(node)) add(variables_, ring->name);
  });
}

void Names::add(std::map<std::string, std::string>& to, const std::string& name) {
  if (to.count(name)) return;
  const std::string base = as_identifier(name);
  std::string unique = base;
  for (int n = 2; taken_.count(unique); ++n) unique = base + "_" + std::to_string(n);
  taken_.insert(unique);
  to[name] = unique;
}

const std::string& Names::tensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  TC_CHECK(found != tensors_.end(), "'{}' is no tensor of the kernel", name);
  return found->second;
}

const std::string& Names::variable(const std::string& name) const {
  const auto found = variables_.find(name);
  TC_CHECK(found != variables_.end(), "'{}' is no variable of the kernel", name);
  return found->second;
}

const std::string& Names::map(const std::string& name) const {
  const auto found = maps_.find(name);
  TC_CHECK(found != maps_.end(), "'{}' is no tensor map of the kernel", name);
  return found->second;
}

std::string symbol_of(const tile::Kernel& kernel) { return as_identifier(kernel.name); }

}  // namespace tc::cuda
