#include "tc/cuda/launch_plan.h"

#include <algorithm>

#include "tc/cuda/names.h"
#include "tc/cuda/print.h"
#include "tc/support/check.h"

namespace tc::cuda {
namespace {

template <typename Named>
int index_of(const std::vector<Named>& list, const std::string& name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const Named& n) { return n.name == name; });
  return found == list.end() ? -1 : static_cast<int>(found - list.begin());
}

int64_t bytes_of(const tile::Tensor& tensor) { return tensor.elements() * tile::element_bytes(tensor.type); }

/// The bytes of the widest vector that one instruction copies to or from the tensor.
int alignment_of(const tile::Kernel& kernel, const tile::Tensor& tensor) {
  int elements = 1;
  tile::for_each_node(kernel.body, [&](const tile::Node& node) {
    const auto* move = std::get_if<tile::Move>(&node.node);
    if (move && (move->source == tensor.name || move->destination == tensor.name)) {
      elements = std::max(elements, move->elements);
    }
  });
  return elements * static_cast<int>(tile::element_bytes(tensor.type));
}

KernelArgument tensor_argument(LaunchPlan& plan, const tile::Kernel& kernel, const tile::Tensor& tensor) {
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
  argument.alignment = std::max(argument.alignment, alignment_of(kernel, tensor));
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
    launch.waits = !plan.kernels.empty();
    const int64_t shared_bytes = kernel.shared_bytes();
    launch.dynamic_shared_bytes = shared_bytes > kStaticSharedLimit ? shared_bytes : 0;
    for (const tile::Tensor& tensor : kernel.tensors) launch.arguments.push_back(tensor_argument(plan, kernel, tensor));
    for (const tile::Scalar& scalar : kernel.scalars) launch.arguments.push_back(scalar_argument(plan, scalar));
    plan.kernels.push_back(std::move(launch));
  }
  return plan;
}

}  // namespace tc::cuda
