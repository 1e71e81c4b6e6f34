#include "benchmarks/gpu/on_device.h"

#include <algorithm>
#include <cstddef>

#include "tc/api/elements.h"
#include "tc/ir/specialise.h"
#include "tc/support/result.h"
#include "tests/gpu/simulated.h"

namespace tc::testing {
namespace {

/// A tensor in the GPU's memory.
struct DeviceTensor {
  cuda::Buffer buffer;
  std::vector<int64_t> shape, strides;
  DLTensor view = {};
};

/// Behind `elements_before` elements of which nothing is known.
Result<std::unique_ptr<DeviceTensor>> upload(const std::shared_ptr<const cuda::Context>& context, const ir::Tensor& of,
                                             const interp::Value& value, int64_t elements_before) {
  std::vector<std::byte> bytes = packed(of, value);
  const auto before = static_cast<size_t>(elements_before * bytes_of(value.type));
  bytes.insert(bytes.begin(), before, std::byte{0xff});
  TC_TRY(buffer, cuda::Buffer::allocate(context, static_cast<int64_t>(bytes.size())));
  TC_TRY_VOID(buffer.copy_from(bytes.data(), buffer.bytes()));
  auto tensor = std::make_unique<DeviceTensor>(DeviceTensor{std::move(buffer), value.shape, of.strides, {}});
  tensor->view = {.data = reinterpret_cast<void*>(tensor->buffer.address()),
                  .device = {kDLCUDA, 0},
                  .ndim = static_cast<int>(tensor->shape.size()),
                  .dtype = api::to_dlpack(value.type),
                  .shape = tensor->shape.data(),
                  .strides = of.strides.empty() ? nullptr : tensor->strides.data(),
                  .byte_offset = before};
  return tensor;
}

api::Scalar scalar_of(const interp::Value& value) {
  if (is_float(value.type)) return value.floats.at(0);
  if (value.type == ScalarType::kUInt64) return static_cast<uint64_t>(value.integers.at(0));
  return value.integers.at(0);
}

}  // namespace

Result<OnDevice> OnDevice::compile(const std::string& text, const ir::Program& program,
                                   const std::map<std::string, int64_t>& sizes,
                                   const std::map<std::string, int64_t>& scalars,
                                   const options::MappingOptions& options) {
  TC_TRY(engine, api::Engine::create(text));
  api::Request request;
  request.entry = program.name;
  request.backend = api::Backend::kCuda;
  request.mapping = options;
  request.sizes = sizes;
  for (const auto& [name, value] : scalars) request.scalars.emplace(name, value);
  const auto spec_of = [&](const std::string& name) {
    const ir::Tensor& tensor = program.tensor(name);
    return api::TensorSpec{
        .type = ir::from_halide(tensor.type), .shape = ir::constant_shape(tensor), .strides = tensor.strides};
  };
  for (const std::string& name : program.parameters) {
    if (!program.find_scalar(name)) request.inputs.push_back(spec_of(name));
  }
  for (const std::string& name : program.results) request.outputs.push_back(spec_of(name));
  TC_TRY(kernel, engine.compile(request));
  TC_TRY(context, cuda::Context::open(0));
  return OnDevice(std::move(kernel), program.tensors, scalars, std::move(context));
}

const ir::Tensor& OnDevice::tensor_of(const std::string& name) const {
  return *std::find_if(tensors_.begin(), tensors_.end(), [&](const ir::Tensor& t) { return t.name == name; });
}

Result<interp::Environment> OnDevice::run(const interp::Environment& data, int64_t elements_before) const {
  std::vector<std::unique_ptr<DeviceTensor>> tensors;
  std::vector<const DLTensor*> inputs;
  std::vector<DLTensor*> outputs;
  std::vector<api::Scalar> scalars;
  for (const api::Argument& parameter : kernel_.signature().parameters) {
    const auto given = data.find(parameter.name);
    if (parameter.role == api::Role::kScalar) {
      // One that is compiled in is part of the program, not of its data.
      const auto compiled_in = compiled_in_.find(parameter.name);
      scalars.push_back(compiled_in != compiled_in_.end() ? api::Scalar(compiled_in->second)
                                                          : scalar_of(given->second));
      continue;
    }
    TC_TRY(tensor, upload(context_, tensor_of(parameter.name), given->second, elements_before));
    inputs.push_back(&tensor->view);
    tensors.push_back(std::move(tensor));
  }
  const size_t first_output = tensors.size();
  for (const api::Argument& result : kernel_.signature().results) {
    TC_TRY(tensor, upload(context_, tensor_of(result.name), data.at(result.name), elements_before));
    outputs.push_back(&tensor->view);
    tensors.push_back(std::move(tensor));
  }
  TC_TRY_VOID(kernel_.run(inputs, outputs, scalars));
  interp::Environment results;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const cuda::Buffer& buffer = tensors[first_output + o]->buffer;
    std::vector<std::byte> bytes(static_cast<size_t>(buffer.bytes()));
    TC_TRY_VOID(buffer.copy_to(bytes.data(), buffer.bytes()));
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(outputs[o]->byte_offset));
    const std::string& name = kernel_.signature().results[o].name;
    if (!is_intact_between(tensor_of(name), bytes)) return fail("something is written between elements of '{}'", name);
    results.emplace(name, unpacked(tensor_of(name), bytes, data.at(name)));
  }
  return results;
}

}  // namespace tc::testing
