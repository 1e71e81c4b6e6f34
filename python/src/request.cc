#include "request.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include "errors.h"
#include "frameworks.h"
#include "function.h"

namespace nb = nanobind;

namespace tc::python {
namespace {

/// An array, a TensorSpec or None as what is compiled for.
std::optional<api::TensorSpec> spec_of(const std::string& name, nb::handle given) {
  if (given.is_none()) return std::nullopt;
  if (nb::isinstance<api::TensorSpec>(given)) return nb::cast<api::TensorSpec>(given);
  View view;
  view.read(name, given, framework_of(given), nullptr);
  return value_of(api::spec_of(view.tensor));
}

}  // namespace

static const char* name_of(api::Backend backend) {
  if (backend == api::Backend::kCpu) return "cpu";
  return backend == api::Backend::kCuda ? "cuda" : "sim";
}

api::Backend backend_of(const std::string& name) {
  if (name == "cpu") return api::Backend::kCpu;
  if (name == "cuda") return api::Backend::kCuda;
  if (name == "sim") return api::Backend::kSimulator;
  raise_value_error("there is no backend '" + name + "'; there are cpu, cuda and sim");
}

api::Request request_of(nb::dict fields) {
  api::Request request;
  const auto take = [&](const char* name, auto use) {
    if (fields.contains(name) && !fields[name].is_none()) use(nb::object(fields[name]));
  };
  take("entry", [&](nb::object value) { request.entry = cast_argument<std::string>("entry", value); });
  take("inputs", [&](nb::object value) {
    for (nb::handle one : value) request.inputs.push_back(spec_of("inputs", one));
  });
  take("outputs", [&](nb::object value) {
    for (nb::handle one : value) request.outputs.push_back(spec_of("outputs", one));
  });
  take("sizes",
       [&](nb::object value) { request.sizes = cast_argument<std::map<std::string, int64_t>>("sizes", value); });
  take("scalars", [&](nb::object value) {
    for (const auto& [key, scalar] : nb::cast<nb::dict>(value)) {
      const auto name = cast_argument<std::string>("scalars", key);
      request.scalars.emplace(name, scalar_of(name, scalar));
    }
  });
  take("backend",
       [&](nb::object value) { request.backend = backend_of(cast_argument<std::string>("backend", value)); });
  take("device", [&](nb::object value) { request.device = cast_argument<int>("device", value); });
  take("options", [&](nb::object value) { request.options = cast_argument<options::CpuOptions>("options", value); });
  take("mapping",
       [&](nb::object value) { request.mapping = cast_argument<options::MappingOptions>("mapping", value); });
  take("element_aligned",
       [&](nb::object value) { request.element_aligned = cast_argument<bool>("element_aligned", value); });
  return request;
}

nb::dict fields_of(const api::Request& request) {
  const auto list = [](const std::vector<std::optional<api::TensorSpec>>& specs) {
    nb::list result;
    for (const std::optional<api::TensorSpec>& spec : specs) result.append(spec ? nb::cast(*spec) : nb::none());
    return result;
  };
  nb::dict scalars;
  for (const auto& [name, value] : request.scalars) {
    const bool is_float = value.kind() == api::Scalar::Kind::kFloat;
    const bool is_signed = value.kind() == api::Scalar::Kind::kSigned;
    scalars[nb::str(name.c_str())] = is_float    ? nb::cast(value.floating())
                                     : is_signed ? nb::cast(value.integer())
                                                 : nb::cast(static_cast<uint64_t>(value.integer()));
  }
  nb::dict fields;
  fields["entry"] = request.entry;
  fields["inputs"] = list(request.inputs);
  fields["outputs"] = list(request.outputs);
  fields["sizes"] = request.sizes;
  fields["scalars"] = scalars;
  fields["backend"] = name_of(request.backend);
  fields["device"] = request.device;
  return fields;
}

}  // namespace tc::python
