#include "tc/api/tune_problem.h"

#include "proto/tune.pb.h"

namespace tc::api {
namespace {

void write(const std::vector<std::optional<TensorSpec>>& specs,
           google::protobuf::RepeatedPtrField<proto::TuneTensor>* to) {
  for (const auto& spec : specs) {
    proto::TuneTensor& tensor = *to->Add();
    if (!spec) continue;
    tensor.set_type(static_cast<int>(spec->type) + 1);
    tensor.mutable_shape()->Add(spec->shape.begin(), spec->shape.end());
    tensor.mutable_strides()->Add(spec->strides.begin(), spec->strides.end());
  }
}

std::vector<std::optional<TensorSpec>> read(const google::protobuf::RepeatedPtrField<proto::TuneTensor>& from) {
  std::vector<std::optional<TensorSpec>> specs;
  for (const proto::TuneTensor& tensor : from) {
    specs.emplace_back();
    if (tensor.type() == 0) continue;
    specs.back() = TensorSpec{.type = static_cast<ScalarType>(tensor.type() - 1),
                              .shape = {tensor.shape().begin(), tensor.shape().end()},
                              .strides = {tensor.strides().begin(), tensor.strides().end()}};
  }
  return specs;
}

proto::TuneScalar write(const Scalar& scalar) {
  proto::TuneScalar message;
  switch (scalar.kind()) {
    case Scalar::Kind::kSigned:
      message.set_integer(scalar.integer());
      break;
    case Scalar::Kind::kUnsigned:
      message.set_natural(static_cast<uint64_t>(scalar.integer()));
      break;
    case Scalar::Kind::kFloat:
      message.set_floating(scalar.floating());
      break;
  }
  return message;
}

Scalar read(const proto::TuneScalar& message) {
  if (message.has_natural()) return Scalar(message.natural());
  if (message.has_floating()) return Scalar(message.floating());
  return Scalar(message.integer());
}

}  // namespace

std::string to_bytes(const TuneProblem& problem) {
  const Request& request = problem.program.request;
  proto::TuneProblem message;
  message.set_text(problem.program.text);
  message.set_name(problem.program.name);
  message.set_entry(request.entry);
  write(request.inputs, message.mutable_inputs());
  write(request.outputs, message.mutable_outputs());
  // Sorted, so that one problem is one sequence of bytes.
  for (const auto& [name, value] : request.sizes) {
    message.add_size_names(name);
    message.add_sizes(value);
  }
  for (const auto& [name, value] : request.scalars) {
    message.add_scalar_names(name);
    *message.add_scalars() = write(value);
  }
  message.set_backend(static_cast<int>(request.backend));
  message.set_element_aligned(request.element_aligned);
  message.set_device(request.device);
  message.set_arch(problem.arch);
  message.set_isl_operations(request.budget.isl_operations);
  message.set_compile_limit_ms(request.budget.wall_clock_ms);
  message.set_seed(problem.seed);
  message.set_folder(problem.folder);
  message.set_data_given(problem.data_given);
  return message.SerializeAsString();
}

std::optional<TuneProblem> tune_problem_from(const std::string& bytes) {
  proto::TuneProblem message;
  if (!message.ParseFromString(bytes) || message.backend() < 0 ||
      message.backend() > static_cast<int>(Backend::kSimulator) || message.sizes_size() != message.size_names_size() ||
      message.scalars_size() != message.scalar_names_size()) {
    return std::nullopt;
  }
  TuneProblem problem{.program = {.text = message.text(), .name = message.name()},
                      .arch = message.arch(),
                      .seed = message.seed(),
                      .folder = message.folder(),
                      .data_given = message.data_given()};
  Request& request = problem.program.request;
  request.entry = message.entry();
  request.inputs = read(message.inputs());
  request.outputs = read(message.outputs());
  for (int i = 0; i < message.sizes_size(); ++i) request.sizes[message.size_names(i)] = message.sizes(i);
  for (int i = 0; i < message.scalars_size(); ++i) {
    request.scalars.emplace(message.scalar_names(i), read(message.scalars(i)));
  }
  request.backend = static_cast<Backend>(message.backend());
  request.element_aligned = message.element_aligned();
  request.device = message.device();
  request.budget = {.isl_operations = message.isl_operations(), .wall_clock_ms = message.compile_limit_ms()};
  return problem;
}

}  // namespace tc::api
