#include "tc/cuda/launch_plan.h"

#include <algorithm>
#include <map>

#include "tc/cuda/kernel_text.h"
#include "tc/cuda/names.h"
#include "tc/cuda/print.h"
#include "tc/support/check.h"
#include "tc/tile/accesses.h"

namespace tc::cuda {
namespace {

template <typename Named>
int index_of(const std::vector<Named>& list, const std::string& name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const Named& n) { return n.name == name; });
  return found == list.end() ? -1 : static_cast<int>(found - list.begin());
}

int64_t bytes_of(const tile::Tensor& tensor) { return tensor.elements() * tile::element_bytes(tensor.type); }

/// The bytes of the widest vector that one instruction copies to or from each global tensor.
std::map<std::string, int> alignments_of(const tile::Flow& flow) {
  std::map<std::string, int> result;
  for (const tile::Leaf& leaf : flow.leaves) {
    for (const tile::ElementAccess& access : leaf.accesses) {
      int& bytes = result[access.tensor->name];
      bytes = std::max(bytes, access.elements * static_cast<int>(tile::element_bytes(access.tensor->type)));
    }
  }
  return result;
}

bool waits(const tile::Flow& flow) {
  return std::any_of(flow.leaves.begin(), flow.leaves.end(),
                     [](const tile::Leaf& leaf) { return tile::order_of(*leaf.node) == tile::Order::kKernels; });
}

KernelArgument tensor_argument(LaunchPlan& plan, const tile::Tensor& tensor, int alignment) {
  if (const int in_workspace = index_of(plan.workspace, tensor.name); in_workspace >= 0) {
    TC_CHECK(bytes_of(tensor) <= plan.workspace[in_workspace].bytes, "'{}' outgrows its workspace buffer", tensor.name);
    return {KernelArgument::Kind::kWorkspace, in_workspace};
  }
  int index = index_of(plan.tensors, tensor.name);
  if (index < 0) {
    index = static_cast<int>(plan.tensors.size());
    plan.tensors.push_back({tensor.name, 0, 1, false});
  }
  TensorArgument& argument = plan.tensors[index];
  argument.bytes = std::max(argument.bytes, bytes_of(tensor));
  argument.written |= tensor.written;
  argument.alignment = std::max({argument.alignment, alignment, static_cast<int>(tile::element_bytes(tensor.type))});
  return {KernelArgument::Kind::kTensor, index};
}

KernelArgument scalar_argument(LaunchPlan& plan, const tile::Scalar& scalar) {
  int index = index_of(plan.scalars, scalar.name);
  if (index < 0) {
    index = static_cast<int>(plan.scalars.size());
    plan.scalars.push_back({scalar.name, static_cast<int>(tile::element_bytes(scalar.type))});
  }
  return {KernelArgument::Kind::kScalar, index};
}

/// The CUtensorMapDataType of elements. Boxes are copied as they are, so a type without a code takes that of its bits.
int map_type(Halide::Type type) {
  if (type == Halide::Float(16)) return 6;
  if (type == Halide::Float(32)) return 7;
  if (type == Halide::Float(64)) return 8;
  if (type == Halide::BFloat(16)) return 9;
  switch (tile::element_bytes(type)) {
    case 1:
      return 0;
    case 2:
      return 1;
    case 4:
      return 2;
    default:
      return 4;
  }
}

/// `launch` has the kernel's tensors as its first arguments.
KernelArgument map_argument(LaunchPlan& plan, const tile::Kernel& kernel, const KernelLaunch& launch,
                            const tile::TensorMap& map) {
  const int tensor = index_of(kernel.tensors, map.tensor);
  TC_CHECK(tensor >= 0, "a map of '{}', which is no tensor of the kernel", map.tensor);
  const Halide::Type type = kernel.tensors[tensor].type;
  const int64_t bytes = tile::element_bytes(type);
  MapArgument argument{.of = launch.arguments[tensor],
                       .byte_offset = map.offset * bytes,
                       .type = map_type(type),
                       .extents = map.extents,
                       .byte_strides = {},
                       .box = map.box,
                       .swizzle = map.swizzle};
  for (size_t d = 1; d < map.strides.size(); ++d) argument.byte_strides.push_back(map.strides[d] * bytes);
  const auto place = std::find(plan.maps.begin(), plan.maps.end(), argument);
  const int index = static_cast<int>(place - plan.maps.begin());
  if (place == plan.maps.end()) plan.maps.push_back(std::move(argument));
  return {KernelArgument::Kind::kMap, index};
}

}  // namespace

LaunchPlan launch_plan(const tile::Program& program) {
  LaunchPlan plan;
  int64_t next = 0;
  for (const tile::Tensor& tensor : program.workspace) {
    plan.workspace.push_back({tensor.name, next, bytes_of(tensor)});
    next += (bytes_of(tensor) + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  }
  for (const tile::Kernel& kernel : program.kernels) {
    KernelLaunch launch;
    launch.symbol = symbol_of(kernel);
    launch.grid = kernel.grid;
    launch.block = kernel.block;
    launch.cluster = kernel.cluster;
    const tile::Flow flow = tile::flow_of(kernel);
    launch.waits = waits(flow);
    launch.dynamic_shared_bytes = has_dynamic_memory(kernel) ? kernel.shared_bytes() : 0;
    std::map<std::string, int> alignments = alignments_of(flow);
    for (const tile::TensorMap& map : kernel.maps) {
      alignments[map.tensor] = std::max(alignments[map.tensor], kMapAlignment);
    }
    for (const tile::Tensor& tensor : kernel.tensors) {
      launch.arguments.push_back(tensor_argument(plan, tensor, alignments[tensor.name]));
    }
    for (const tile::Scalar& scalar : kernel.scalars) launch.arguments.push_back(scalar_argument(plan, scalar));
    for (const tile::TensorMap& map : kernel.maps) {
      launch.arguments.push_back(map_argument(plan, kernel, launch, map));
    }
    plan.kernels.push_back(std::move(launch));
  }
  return plan;
}

}  // namespace tc::cuda
