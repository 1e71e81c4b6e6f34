#include "tc/api/call.h"

#include <fmt/format.h>

#include <algorithm>

#include "tc/api/elements.h"
#include "tc/support/check.h"
#include "tc/support/plural.h"
#include "tc/support/result.h"

namespace tc::api {
namespace {

const char* word_for(Role role) { return role == Role::kInput ? "input" : "output"; }

std::string name_of_argument(const TensorArgument& argument) {
  return fmt::format("{} '{}'", word_for(argument.role), argument.name);
}

/// Pinned and managed memory are within everybody's reach.
bool within_reach(const DLDevice& kernel, const DLDevice& tensor) {
  if (tensor.device_type == kDLCUDAHost || tensor.device_type == kDLCUDAManaged) return true;
  return tensor.device_type == kernel.device_type &&
         (kernel.device_type == kDLCPU || tensor.device_id == kernel.device_id);
}

std::string where(const DLDevice& device) {
  if (device.device_type == kDLCPU) return "in host memory";
  if (device.device_type == kDLCUDA) return fmt::format("on CUDA device {}", device.device_id);
  return fmt::format("on device {} of DLPack's device type {}", device.device_id, static_cast<int>(device.device_type));
}

std::string runs_on(const DLDevice& device) { return device.device_type == kDLCPU ? "on the CPU" : where(device); }

bool same_type(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

bool same_shape(const TensorArgument& argument, const DLTensor& tensor) {
  return std::equal(argument.spec.shape.begin(), argument.spec.shape.end(), tensor.shape);
}

/// Strides matter only in dimensions of several elements, of tensors that have elements.
bool same_strides(const TensorArgument& argument, const DLTensor& tensor) {
  if (argument.first_byte == argument.end_byte) return true;
  const std::vector<int64_t>& shape = argument.spec.shape;
  int64_t dense = 1;
  for (size_t d = shape.size(); d-- > 0; dense *= shape[d]) {
    if (shape[d] > 1 && argument.spec.strides[d] != (tensor.strides ? tensor.strides[d] : dense)) return false;
  }
  return true;
}

uintptr_t address_of(const DLTensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.data) + static_cast<uintptr_t>(tensor.byte_offset);
}

bool aligned(const TensorArgument& argument, const DLTensor& tensor) {
  return address_of(tensor) % static_cast<uintptr_t>(bytes_of(argument.spec.type)) == 0;
}

/// Why a tensor is not what the kernel was compiled for.
Error explain(const DLDevice& device, const TensorArgument& argument, const DLTensor* tensor) {
  const std::string name = name_of_argument(argument);
  const TensorSpec& spec = argument.spec;
  if (!tensor) return Error(fmt::format("{} is a null pointer", name));
  if (!within_reach(device, tensor->device)) {
    return Error(fmt::format("{} is {}; the kernel runs {}", name, where(tensor->device), runs_on(device)));
  }
  if (!same_type(argument.dtype, tensor->dtype)) {
    const Result<TensorSpec> given = spec_of(DLTensor{.data = nullptr,
                                                      .device = {},
                                                      .ndim = 0,
                                                      .dtype = tensor->dtype,
                                                      .shape = nullptr,
                                                      .strides = nullptr,
                                                      .byte_offset = 0});
    if (given)
      return Error(fmt::format("{} is of {}; the kernel takes {}", name, name_of(given->type), name_of(spec.type)));
    return Error(fmt::format("{} is of DLPack type code {}, {} bits, {} lanes; the kernel takes {}", name,
                             tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes, name_of(spec.type)));
  }
  const auto rank = static_cast<int>(spec.shape.size());
  if (tensor->ndim != rank) {
    return Error(fmt::format("{} has {}; the kernel takes {}", name, plural(tensor->ndim, "dimension"), rank));
  }
  const auto given = [rank](const int64_t* values) { return tuple_text({values, static_cast<size_t>(rank)}); };
  if (rank > 0 && !tensor->shape) return Error(fmt::format("{} has no shape", name));
  if (!same_shape(argument, *tensor)) {
    return Error(fmt::format("{} has shape {}; the kernel was compiled for {}", name, given(tensor->shape),
                             tuple_text(spec.shape)));
  }
  if (!same_strides(argument, *tensor)) {
    const std::vector<int64_t> dense = dense_strides(spec.shape);
    return Error(fmt::format("{} has strides {}; the kernel was compiled for {}", name,
                             given(tensor->strides ? tensor->strides : dense.data()), tuple_text(spec.strides)));
  }
  if (!tensor->data) return Error(fmt::format("{} has no data", name));
  return Error(fmt::format("{} is not aligned: its first element is {} bytes behind a multiple of the element size, {}",
                           name, address_of(*tensor) % static_cast<uintptr_t>(bytes_of(spec.type)),
                           bytes_of(spec.type)));
}

bool fits(const DLDevice& device, const TensorArgument& argument, const DLTensor* tensor) {
  if (!tensor || !within_reach(device, tensor->device) || !same_type(argument.dtype, tensor->dtype)) return false;
  if (tensor->ndim != static_cast<int>(argument.spec.shape.size()) || (tensor->ndim > 0 && !tensor->shape))
    return false;
  if (!same_shape(argument, *tensor) || !same_strides(argument, *tensor)) return false;
  return argument.first_byte == argument.end_byte || (tensor->data && aligned(argument, *tensor));
}

/// How many bytes two arguments may have in common, judged by the ranges that they span.
int64_t shared_bytes(const TensorArgument& a, const void* a_at, const TensorArgument& b, const void* b_at) {
  const auto a_base = reinterpret_cast<intptr_t>(a_at);
  const auto b_base = reinterpret_cast<intptr_t>(b_at);
  if (a.first_byte == a.end_byte || b.first_byte == b.end_byte) return 0;
  return std::min(a_base + a.end_byte, b_base + b.end_byte) - std::max(a_base + a.first_byte, b_base + b.first_byte);
}

tl::unexpected<Error> overlap(const TensorArgument& output, const TensorArgument& other, int64_t bytes) {
  return fail("{} and {} share memory: {} bytes lie in the ranges of both", name_of_argument(output),
              name_of_argument(other), bytes);
}

Result<void> check_apart(const CallPlan& plan, const CallFrame& frame) {
  for (size_t o = 0; o < plan.outputs.size(); ++o) {
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
      const int64_t bytes = shared_bytes(plan.outputs[o], frame.outputs[o], plan.inputs[i], frame.inputs[i]);
      if (bytes > 0) return overlap(plan.outputs[o], plan.inputs[i], bytes);
    }
    for (size_t p = 0; p < o; ++p) {
      const int64_t bytes = shared_bytes(plan.outputs[o], frame.outputs[o], plan.outputs[p], frame.outputs[p]);
      if (bytes > 0) return overlap(plan.outputs[o], plan.outputs[p], bytes);
    }
  }
  return {};
}

Result<void> take_scalars(const CallPlan& plan, std::span<const Scalar> scalars, CallFrame& frame) {
  for (size_t s = 0; s < plan.scalars.size(); ++s) {
    const ScalarArgument& argument = plan.scalars[s];
    const std::optional<int64_t> bits = scalar_bits(scalars[s], argument.type);
    if (!bits) {
      return fail("scalar '{}' is {}; {}", argument.name, scalars[s].to_string(), what_fits(argument.type));
    }
    if (argument.compiled_in && load_integer(argument.type, &*bits) != *argument.compiled_in) {
      return fail("scalar '{}' is {}; the kernel was compiled for {}", argument.name, scalars[s].to_string(),
                  *argument.compiled_in);
    }
    frame.scalars[s] = *bits;
  }
  return {};
}

Result<void> check_counts(const CallPlan& plan, size_t inputs, size_t outputs, size_t scalars) {
  const auto wrong = [](const char* what, size_t given, size_t wanted) {
    return fail("the call has {}; the kernel takes {}", plural(static_cast<int64_t>(given), what), wanted);
  };
  if (inputs != plan.inputs.size()) return wrong("input", inputs, plan.inputs.size());
  if (outputs != plan.outputs.size()) return wrong("output", outputs, plan.outputs.size());
  if (scalars != plan.scalars.size()) return wrong("scalar", scalars, plan.scalars.size());
  return {};
}

}  // namespace

TensorArgument tensor_argument(std::string name, Role role, const TensorSpec& spec) {
  TensorArgument argument{
      .name = std::move(name), .role = role, .spec = with_strides(spec), .dtype = to_dlpack(spec.type)};
  const std::optional<Reach> reach = reach_of(argument.spec.shape, argument.spec.strides);
  TC_CHECK(reach, "'{}' spans more than 64 bits can count", argument.name);
  argument.first_byte = reach->low * bytes_of(spec.type);
  argument.end_byte = (reach->high + 1) * bytes_of(spec.type);
  return argument;
}

Result<void> prepare_call(const CallPlan& plan, std::span<const DLTensor* const> inputs,
                          std::span<DLTensor* const> outputs, std::span<const Scalar> scalars, CallFrame& frame) {
  if (auto counts = check_counts(plan, inputs.size(), outputs.size(), scalars.size()); !counts) return counts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!fits(plan.device, plan.inputs[i], inputs[i])) {
      return tl::unexpected(explain(plan.device, plan.inputs[i], inputs[i]));
    }
    frame.inputs[i] = reinterpret_cast<void*>(address_of(*inputs[i]));
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (!fits(plan.device, plan.outputs[o], outputs[o])) {
      return tl::unexpected(explain(plan.device, plan.outputs[o], outputs[o]));
    }
    frame.outputs[o] = reinterpret_cast<void*>(address_of(*outputs[o]));
  }
  if (auto apart = check_apart(plan, frame); !apart) return apart;
  if (auto taken = take_scalars(plan, scalars, frame); !taken) return taken;
  for (size_t a = 0; a < plan.slots.size(); ++a) {
    const CallPlan::Slot slot = plan.slots[a];
    switch (slot.kind) {
      case CallPlan::Slot::Kind::kInput:
        frame.arguments[a] = frame.inputs[slot.index];
        break;
      case CallPlan::Slot::Kind::kOutput:
        frame.arguments[a] = frame.outputs[slot.index];
        break;
      case CallPlan::Slot::Kind::kScalar:
        frame.arguments[a] = &frame.scalars[slot.index];
        break;
      case CallPlan::Slot::Kind::kFault:
        frame.arguments[a] = &frame.fault[slot.index];
        break;
    }
  }
  return {};
}

}  // namespace tc::api
