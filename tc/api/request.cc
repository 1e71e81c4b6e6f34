#include "tc/api/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tc/api/call.h"
#include "tc/api/elements.h"
#include "tc/api/layout.h"
#include "tc/ir/in_place.h"
#include "tc/ir/index_expr.h"
#include "tc/support/nearest.h"
#include "tc/support/plural.h"

namespace tc::api {
namespace {

/// Notes one tensor that the caller describes.
Result<void> take_tensor(const char* word, const std::string& def, const ir::Tensor& tensor, const TensorSpec& spec,
                         compile::Settings& settings) {
  const std::string name = fmt::format("{} '{}'", word, tensor.name);
  const ScalarType declared = ir::from_halide(tensor.type);
  if (spec.type != declared) {
    return fail("{} is of {}; the text says {}: cast it, or write 'def {}<T>(T(...) {})' for both", name,
                name_of(spec.type), name_of(declared), def.substr(0, def.find('<')), tensor.name);
  }
  const auto negative = std::ranges::find_if(spec.shape, [](int64_t extent) { return extent < 0; });
  if (negative != spec.shape.end()) return fail("{} has an extent of {}", name, *negative);
  settings.given.shapes[tensor.name] = spec.shape;
  if (spec.strides.empty()) return {};
  if (spec.strides.size() != spec.shape.size()) {
    return fail("{} has {} but {}", name, plural(static_cast<int64_t>(spec.shape.size()), "dimension"),
                plural(static_cast<int64_t>(spec.strides.size()), "stride"));
  }
  const TensorSpec full = with_strides(spec);
  if (is_dense(full.shape, full.strides)) return {};
  if (std::ranges::any_of(full.strides, [](int64_t stride) { return stride < 0; })) {
    return fail("{} has strides {}; negative strides are not supported, a copy of the tensor is needed", name,
                tuple_text(spec.strides));
  }
  if (full.span_bytes() < 0) {
    return fail("{} of shape {} and strides {} spans more bytes than 64 bits can count", name, tuple_text(spec.shape),
                tuple_text(spec.strides));
  }
  if (tensor.role != ir::Role::kInput && !elements_are_apart(full.shape, full.strides)) {
    return fail("{} of shape {} has strides {}, which put several of its elements at one address", name,
                tuple_text(spec.shape), tuple_text(spec.strides));
  }
  settings.layouts[tensor.name] = full.strides;
  return {};
}

Result<void> take_tensors(const char* word, const std::vector<std::string>& names,
                          const std::vector<std::optional<TensorSpec>>& specs, const ir::Program& program,
                          compile::Settings& settings) {
  if (specs.size() > names.size()) {
    return fail("{} {}s are given; '{}' has {}", specs.size(), word, program.name, names.size());
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i]) continue;
    if (auto taken = take_tensor(word, program.name, program.tensor(names[i]), *specs[i], settings); !taken)
      return taken;
  }
  return {};
}

Result<void> take_scalar(const std::string& name, const Scalar& value, const ir::Program& program,
                         compile::Settings& settings) {
  const ir::Scalar* scalar = program.find_scalar(name);
  if (!scalar) {
    std::vector<std::string> names;
    for (const ir::Scalar& known : program.scalars) names.push_back(known.name);
    const std::string meant = nearest(name, names);
    if (!meant.empty()) return fail("'{}' has no scalar '{}'; did you mean '{}'?", program.name, name, meant);
    return fail("'{}' has no scalar '{}'", program.name, name);
  }
  const ScalarType type = ir::from_halide(scalar->type);
  const std::optional<int64_t> bits = scalar_bits(value, type);
  if (!bits) return fail("scalar '{}' is {}; {}", name, value.to_string(), what_fits(type));
  if (scalar->specialised) settings.given.scalars[name] = load_integer(type, &*bits);
  return {};
}

}  // namespace

std::vector<std::string> inputs_of(const ir::Program& program) {
  std::vector<std::string> names;
  for (const std::string& name : program.parameters) {
    if (!program.find_scalar(name)) names.push_back(name);
  }
  return names;
}

Result<compile::Settings> settings_of(const Request& request, const ir::Program& program) {
  if (auto valid = options::validate(request.options); !valid) return tl::unexpected(valid.error());
  if (auto valid = options::validate(request.mapping); !valid) return tl::unexpected(valid.error());
  if (request.backend != Backend::kCuda && request.device != 0) {
    return fail("device {} is asked for; only the backend cuda has several", request.device);
  }
  if (request.budget.isl_operations == 0) return fail("a budget of 0 isl operations lets nothing compile");
  if (request.budget.wall_clock_ms <= 0) {
    return fail("a budget of {} ms lets nothing compile", request.budget.wall_clock_ms);
  }
  compile::Settings settings;
  settings.entry = program.name;
  settings.backend = request.backend;
  settings.options = request.options;
  settings.mapping = request.mapping;
  settings.element_aligned = request.element_aligned && request.backend != Backend::kCpu;
  settings.budget = request.budget;
  settings.cancel = request.cancel;
  settings.verify = request.verify;
  settings.given.sizes = request.sizes;
  if (auto taken = take_tensors("input", inputs_of(program), request.inputs, program, settings); !taken) {
    return tl::unexpected(taken.error());
  }
  if (auto taken = take_tensors("output", program.results, request.outputs, program, settings); !taken) {
    return tl::unexpected(taken.error());
  }
  for (const auto& [name, value] : request.scalars) {
    if (auto taken = take_scalar(name, value, program, settings); !taken) return tl::unexpected(taken.error());
  }
  return settings;
}

Result<lang::TypeArguments> types_of(const Request& request, const lang::Definition& generic,
                                     const std::string& entry) {
  lang::TypeArguments given = request.types;
  if (entry != generic.name.text) {
    TC_TRY(all, lang::with_types_of_name(generic, entry, std::move(given)));
    given = std::move(all);
  }
  std::map<std::string, ScalarType> tensors;
  size_t next = 0;
  for (const lang::Parameter& parameter : generic.parameters) {
    if (!parameter.dimensions) continue;
    if (next < request.inputs.size() && request.inputs[next]) tensors[parameter.name.text] = request.inputs[next]->type;
    ++next;
  }
  for (size_t r = 0; r < std::min(generic.results.size(), request.outputs.size()); ++r) {
    if (request.outputs[r]) tensors[generic.results[r].name.text] = request.outputs[r]->type;
  }
  return lang::decide_types(generic, tensors, given);
}

std::vector<std::string> open_sizes(const compile::Settings& settings, const ir::Program& program) {
  std::set<std::string> known;
  for (const auto& [name, value] : settings.given.sizes) known.insert(name);
  for (const auto& [name, shape] : settings.given.shapes) {
    for (const Halide::Expr& extent : program.tensor(name).extents) known.merge(ir::variables_of(extent));
  }
  std::vector<std::string> open;
  for (const std::string& size : program.sizes) {
    if (!known.contains(size)) open.push_back(size);
  }
  return open;
}

Result<void> check_sizes(const compile::Settings& settings, const ir::Program& program) {
  const std::vector<std::string> open = open_sizes(settings, program);
  if (open.empty()) return {};
  return tl::unexpected(ir::no_values(program, open));
}

namespace {

Specs specs_of(const ir::Program& program, const ir::Bindings& bindings, const ir::Layouts& layouts,
               const ir::Deadline& deadline) {
  const auto spec = [&](const std::string& name) {
    const ir::Tensor& tensor = program.tensor(name);
    TensorSpec result{.type = ir::from_halide(tensor.type), .shape = ir::shape_of(tensor, bindings)};
    if (const auto strides = layouts.find(name); strides != layouts.end()) result.strides = strides->second;
    return with_strides(std::move(result));
  };
  Specs specs;
  for (const std::string& name : inputs_of(program)) specs.inputs.push_back(spec(name));
  for (const std::string& name : program.results) {
    specs.outputs.push_back(spec(name));
    specs.outputs_written.push_back(ir::writes_all(program, name, deadline));
  }
  return specs;
}

}  // namespace

Specs specs_of(const compile::Settings& settings, const compile::Compilation& compilation) {
  const ir::Deadline rest(settings.budget.wall_clock_ms, compilation.deadline, settings.cancel);
  return specs_of(*compilation.specialised, {}, settings.layouts, rest);
}

Specs specs_of(const compile::Settings& settings, const ir::Program& program, const ir::Bindings& bindings) {
  return specs_of(program, bindings, settings.layouts, ir::Deadline(settings.budget.wall_clock_ms, settings.cancel));
}

}  // namespace tc::api
