#include "function.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cctype>
#include <chrono>

#include "errors.h"
#include "gil.h"
#include "interrupt.h"
#include "log.h"
#include "request.h"

namespace nb = nanobind;

namespace tc::python {
namespace {

bool is_dense(const DLTensor& tensor) {
  if (!tensor.strides) return true;
  int64_t dense = 1;
  for (int d = tensor.ndim; d-- > 0; dense *= tensor.shape[d]) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != dense) return false;
  }
  return true;
}

/// Everything of a tensor that a kernel is compiled for, as words of which no two different tensors have the same.
void append(std::vector<int64_t>& key, const DLTensor& tensor) {
  const bool dense = is_dense(tensor);
  key.push_back(int64_t{tensor.dtype.code} | int64_t{tensor.dtype.bits} << 8 | int64_t{tensor.dtype.lanes} << 16 |
                int64_t{dense} << 32 | int64_t{tensor.ndim} << 33);
  key.insert(key.end(), tensor.shape, tensor.shape + tensor.ndim);
  if (!dense) key.insert(key.end(), tensor.strides, tensor.strides + tensor.ndim);
}

/// Whether a dimension, as the text writes it, has the name in it.
bool mentions(const std::string& dimension, const std::string& name) {
  const auto is_part = [&](size_t at) {
    return at < dimension.size() && (std::isalnum(static_cast<unsigned char>(dimension[at])) || dimension[at] == '_');
  };
  for (size_t at = dimension.find(name); at != std::string::npos; at = dimension.find(name, at + 1)) {
    if ((at == 0 || !is_part(at - 1)) && !is_part(at + name.size())) return true;
  }
  return false;
}

/// Whether a result's extents need a size that no input has as an extent: the result that is given then tells it.
bool has_own_size(const api::Argument& result, const api::Signature& signature) {
  return std::ranges::any_of(signature.sizes, [&](const std::string& size) {
    const auto is_extent = [&](const api::Argument& parameter) {
      return std::ranges::find(parameter.shape, size) != parameter.shape.end();
    };
    return std::ranges::none_of(signature.parameters, is_extent) &&
           std::ranges::any_of(result.shape, [&](const std::string& dimension) { return mentions(dimension, size); });
  });
}

/// Whether a result's type is a variable that no input decides: the result that is given then does.
bool has_own_type(const api::Argument& result, const api::Signature& signature) {
  const auto decides = [&](const api::Argument& parameter) {
    return parameter.role != api::Role::kScalar && parameter.type_variable == result.type_variable;
  };
  return !result.type_variable.empty() && std::ranges::none_of(signature.parameters, decides);
}

api::TensorSpec spec_of(const View& view) {
  api::TensorSpec spec = value_of(api::spec_of(view.tensor));
  if (is_dense(view.tensor)) spec.strides.clear();
  return spec;
}

/// What a kernel is run with.
struct Frame {
  explicit Frame(const Arguments& arguments) {
    for (size_t i = 0; i < arguments.num_inputs; ++i) inputs.push_back(&arguments.inputs[i].tensor);
  }
  std::vector<const DLTensor*> inputs;
  std::vector<DLTensor*> outputs;
};

/// The array that decides of which framework the results are.
const View& model_of(const Arguments& arguments) {
  for (size_t i = 0; i < arguments.num_inputs; ++i) {
    if (&arguments.inputs[i].framework() == arguments.framework) return arguments.inputs[i];
  }
  for (size_t r = 0; r < arguments.signature.results.size(); ++r) {
    if (!arguments.outputs[r].empty()) return arguments.outputs[r];
  }
  raise_type_error(arguments.signature.entry + "() has no array among its arguments: pass its results as out=");
}

/// A kernel's sizes are those of its tensors, whatever a caller says.
void check_sizes(const Arguments& arguments, const api::CompiledKernel& kernel) {
  const api::Signature& signature = arguments.signature;
  const auto compare = [&](const api::Argument& argument, const api::TensorSpec& spec) {
    for (const auto& [size, value] : arguments.sizes) {
      for (size_t d = 0; d < argument.shape.size(); ++d) {
        if (argument.shape[d] != signature.sizes[size] || spec.shape[d] == value) continue;
        raise_value_error("the size '" + signature.sizes[size] + "' is " + std::to_string(value) +
                          "; the kernel was compiled for " + std::to_string(spec.shape[d]));
      }
    }
  };
  size_t next = 0;
  for (const api::Argument& parameter : signature.parameters) {
    if (parameter.role != api::Role::kScalar) compare(parameter, kernel.inputs()[next++]);
  }
  for (size_t r = 0; r < signature.results.size(); ++r) compare(signature.results[r], kernel.outputs()[r]);
}

/// A copy, since another thread may want arrays of another library while this one makes its own.
Maker maker_of(Compiled& compiled, size_t result, const Arguments& arguments) {
  const View& model = model_of(arguments);
  compiled.makers.resize(arguments.signature.results.size());
  Maker& maker = compiled.makers[result];
  if (!maker.makes_for(model)) {
    const api::CompiledKernel& kernel = *compiled.kernel;
    maker = Maker(model, kernel.outputs()[result], !kernel.writes_all(result));
  }
  return maker;
}

nb::object make_result(Compiled& compiled, size_t result, const Arguments& arguments, View& view) {
  const api::Argument& argument = arguments.signature.results[result];
  if (argument.role == api::Role::kInOut) {
    raise_type_error("'" + argument.name + "' of " + arguments.signature.entry +
                     "() is read before it is written: pass the array that it updates as out=, "
                     "or write '+=!' instead of '+=' to begin at zero");
  }
  nb::object made = maker_of(compiled, result, arguments).make();
  view.read(argument.name, made, framework_of(made), arguments.stream);
  return made;
}

/// The call that casts an array of a library: "A.astype('float32')"; "" where it is not known.
std::string cast_of(const std::string& array, const Framework& framework, ScalarType type) {
  const std::string name(name_of(type));
  // The library's name for one of ours.
  const std::string suffix = type == ScalarType::kFloat8E4M3 ? "fn" : "";
  if (framework.torch) return array + ".to(torch." + name + suffix + ")";
  const std::string& module = framework.module;
  const bool is_like_numpy = module == "numpy" || module == "cupy" || module == "jax" || module == "jaxlib";
  return is_like_numpy ? array + ".astype('" + name + suffix + "')" : "";
}

/// The engine finds a tensor of another type than the text's too, but does not know how to cast it.
void check_types(const api::Signature& signature, const Arguments& arguments) {
  size_t next = 0;
  for (const api::Argument& parameter : signature.parameters) {
    if (parameter.role == api::Role::kScalar) continue;
    const View& view = arguments.inputs[next++];
    const ScalarType given = spec_of(view).type;
    if (!parameter.type_variable.empty() || given == parameter.type) continue;
    const std::string cast = cast_of(parameter.name, view.framework(), parameter.type);
    raise(Error("input '" + parameter.name + "' is of " + std::string(name_of(given)) + "; the text says " +
                std::string(name_of(parameter.type)) + ": cast it" + (cast.empty() ? "" : ", as in " + cast) +
                ", or write 'def " + signature.entry.substr(0, signature.entry.find('<')) + "<T>(T(...) " +
                parameter.name + ")' for both"));
  }
}

/// What a notebook shows of a compilation that takes long.
class Waiting {
 public:
  explicit Waiting(const std::string& name) : name_(name) {}
  ~Waiting() {
    const nb::error_scope pending;
    try {
      if (shown_.is_valid() && !shown_.is_none()) shown_.attr("end")();
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("the progress of a compilation");
    }
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  void show() {
    constexpr double kBetween = 0.5;  // seconds
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
    if (seconds.count() < next_) return;
    next_ = seconds.count() + kBetween;
    try {
      if (!shown_.is_valid()) {
        shown_ = nb::none();  // unless it begins
        shown_ = nb::module_::import_("tensorc._notebook").attr("Waiting").attr("of_notebook")(name_);
      }
      if (!shown_.is_none()) shown_.attr("show")(seconds.count());
    } catch (nb::python_error& error) {
      if (error.matches(PyExc_KeyboardInterrupt)) throw;
      error.discard_as_unraisable("the progress of a compilation");
    }
  }

 private:
  std::string name_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double next_ = 1;  ///< in seconds: what is quicker shows nothing
  nb::object shown_;
};

}  // namespace

void Compiled::compile(const api::Engine& engine, api::Request request) {
  std::stop_source stop;
  request.cancel = stop.get_token();
  api::GpuContext context;
  if (request.backend == api::Backend::kCuda) context = api::GpuContext::current();
  std::optional<Result<api::CompiledKernel>> made;
  Waiting waiting(request.entry.empty() && engine.entries().size() == 1 ? engine.entries()[0] : request.entry);
  run_interruptibly(
      stop, [&] { context.enter([&] { made.emplace(engine.compile(request)); }); }, [&] { waiting.show(); });
  kernel = value_of(*std::move(made));
}

nb::object Compiled::run(const Arguments& arguments) {
  const size_t num_results = arguments.signature.results.size();
  Frame frame(arguments);
  std::vector<nb::object> results(num_results);
  const std::unique_ptr<View[]> made(new View[num_results]);
  for (size_t r = 0; r < num_results; ++r) {
    View& given = arguments.outputs[r];
    results[r] = given.empty() ? make_result(*this, r, arguments, made[r]) : nb::borrow(given.array());
    frame.outputs.push_back(given.empty() ? &made[r].tensor : &given.tensor);
  }
  const bool on_gpu = kernel->device().device_type == kDLCUDA;
  void* const stream = on_gpu ? arguments.stream : nullptr;
  Result<void> done;
  {
    const GilReleased released;
    for (void* other : arguments.awaited) {
      if (done && on_gpu) done = kernel->follow(stream, other);
    }
    if (done) done = kernel->run(frame.inputs, frame.outputs, arguments.scalars, stream);
    if (done && on_gpu && arguments.framework && wants_finished_arrays(*arguments.framework)) {
      done = kernel->wait(stream);
    }
  }
  pass_on_log();
  value_of(std::move(done));
  for (size_t r = 0; r < num_results; ++r) {
    if (!arguments.outputs[r].empty()) note_written(arguments.outputs[r]);
  }
  if (num_results == 1) return std::move(results[0]);
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(num_results)));
  for (size_t r = 0; r < num_results; ++r) {
    PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(r), results[r].release().ptr());
  }
  return tuple;
}

Function::Function(api::Engine engine, api::Signature signature, Choices choices)
    : engine_(std::move(engine)), signature_(std::move(signature)), choices_(std::move(choices)) {
  for (const api::Argument& result : signature_.results) {
    is_open_.push_back(result.role == api::Role::kInOut || has_own_size(result, signature_) ||
                       has_own_type(result, signature_));
  }
}

/// An output decides what is compiled if its extents or its type are open, or its strides are not what would be chosen.
bool Function::decides(size_t result, const View& view) const {
  return !view.empty() && (is_open_[result] || !is_dense(view.tensor));
}

size_t Function::Hash::operator()(const std::vector<int64_t>& words) const {
  uint64_t hash = words.size();
  for (int64_t word : words) {
    hash = (hash ^ static_cast<uint64_t>(word)) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29;
  }
  return hash;
}

void Function::make_key(const Arguments& arguments) {
  key_.clear();
  key_.push_back(int64_t{arguments.device.device_type} << 32 | int64_t{arguments.device.device_id});
  for (size_t i = 0; i < arguments.num_inputs; ++i) append(key_, arguments.inputs[i].tensor);
  for (size_t r = 0; r < signature_.results.size(); ++r) {
    const bool deciding = decides(r, arguments.outputs[r]);
    key_.push_back(deciding);
    if (deciding) append(key_, arguments.outputs[r].tensor);
  }
  size_t scalar = 0;
  for (const api::Argument& parameter : signature_.parameters) {
    if (parameter.role != api::Role::kScalar) continue;
    const api::Scalar& value = arguments.scalars[scalar++];
    if (!parameter.compiled_in) continue;
    key_.push_back(static_cast<int64_t>(value.kind()));
    key_.push_back(value.integer());
  }
  for (const auto& [size, value] : arguments.sizes) {
    key_.push_back(static_cast<int64_t>(size));
    key_.push_back(value);
  }
}

api::Request Function::request_of(const Arguments& arguments) const {
  api::Request request;
  request.entry = signature_.entry;
  for (size_t i = 0; i < arguments.num_inputs; ++i) request.inputs.emplace_back(spec_of(arguments.inputs[i]));
  for (size_t r = 0; r < signature_.results.size(); ++r) {
    if (decides(r, arguments.outputs[r])) {
      request.outputs.resize(r + 1);
      request.outputs[r] = spec_of(arguments.outputs[r]);
    }
  }
  size_t scalar = 0;
  for (const api::Argument& parameter : signature_.parameters) {
    if (parameter.role == api::Role::kScalar) request.scalars.emplace(parameter.name, arguments.scalars[scalar++]);
  }
  for (const auto& [size, value] : arguments.sizes) request.sizes[signature_.sizes[size]] = value;
  const bool on_gpu = arguments.device.device_type == kDLCUDA;
  request.backend = choices_.backend.value_or(on_gpu ? api::Backend::kCuda : api::Backend::kCpu);
  request.device = on_gpu ? arguments.device.device_id : 0;
  request.options = choices_.cpu;
  request.mapping = choices_.mapping;
  request.element_aligned = choices_.element_aligned;
  return request;
}

std::shared_ptr<Compiled> Function::find(const Arguments& arguments) {
  make_key(arguments);
  const auto known = kernels_.find(key_);
  if (known != kernels_.end() && known->second->kernel) return known->second;
  const std::vector<int64_t> key = key_;  // other threads' calls make theirs meanwhile
  while (true) {
    const auto found = kernels_.find(key);
    if (found == kernels_.end()) return compile_for(key, arguments);
    const std::shared_ptr<Compiled> other = found->second;
    if (other->kernel) return other;
    wait_while([&] {
      const auto entry = kernels_.find(key);
      return entry != kernels_.end() && entry->second == other && !other->kernel;
    });
  }
}

void Function::make(Compiled& compiled, const Arguments& arguments) const {
  const api::Request request = request_of(arguments);
  if (!choices_.maker.is_valid()) return compiled.compile(engine_, request);
  const nb::object made = choices_.maker(fields_of(request));
  if (!nb::isinstance<Kernel>(made)) raise_type_error("what makes the kernels of " + signature_.entry + "() made none");
  compiled.kernel = nb::cast<const Kernel&>(made).get();
}

/// With the GIL until others see that the kernel is being compiled.
std::shared_ptr<Compiled> Function::compile_for(const std::vector<int64_t>& key, const Arguments& arguments) {
  check_types(signature_, arguments);
  const auto compiled = std::make_shared<Compiled>();
  kernels_.emplace(key, compiled);
  try {
    make(*compiled, arguments);
  } catch (...) {
    const auto entry = kernels_.find(key);
    if (entry != kernels_.end() && entry->second == compiled) kernels_.erase(entry);
    throw;
  }
  return compiled;
}

nb::object Function::call(nb::args args, nb::kwargs kwargs) {
  Arguments arguments(signature_);
  read_arguments(arguments, args, kwargs);
  return find(arguments)->run(arguments);
}

std::shared_ptr<Compiled> Function::compile(nb::args args, nb::kwargs kwargs) {
  Arguments arguments(signature_);
  read_arguments(arguments, args, kwargs);
  return find(arguments);
}

nb::object Kernel::call(nb::args args, nb::kwargs kwargs) {
  Arguments arguments(compiled_->kernel->signature());
  read_arguments(arguments, args, kwargs);
  check_sizes(arguments, *compiled_->kernel);
  return compiled_->run(arguments);
}

}  // namespace tc::python
