#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <tc/api/explain.h>
#include <tc/api/tc.h>

#include "editor.h"
#include "errors.h"
#include "function.h"
#include "gil.h"
#include "interrupt.h"
#include "jax.h"
#include "log.h"
#include "options.h"
#include "request.h"
#include "schedule.h"
#include "tune.h"
#include "warnings.h"

/// The module tensorc._core: what python/tensorc wraps.

namespace nb = nanobind;

namespace tc::python {
namespace {

ScalarType type_of(const std::string& name) {
  for (int i = 0; i < kScalarTypes; ++i) {
    if (name_of(static_cast<ScalarType>(i)) == name) return static_cast<ScalarType>(i);
  }
  raise_value_error("there is no element type '" + name + "'");
}

nb::tuple tuple_of(const std::vector<int64_t>& values) {
  nb::list list;
  for (int64_t value : values) list.append(value);
  return nb::tuple(list);
}

std::string device_of(const api::CompiledKernel& kernel) {
  const DLDevice device = kernel.device();
  return device.device_type == kDLCUDA ? "cuda:" + std::to_string(device.device_id) : std::string("cpu");
}

const char* role_name(api::Role role) {
  switch (role) {
    case api::Role::kInput:
      return "input";
    case api::Role::kResult:
      return "result";
    case api::Role::kInOut:
      return "inout";
    case api::Role::kScalar:
      return "scalar";
  }
  return "";
}

/// As the text would have it: "float32(M, K) A".
std::string text_of(const api::Argument& argument) {
  std::string text(argument.type_variable.empty() ? name_of(argument.type) : argument.type_variable);
  if (argument.widens_float8) text += "|float32";
  for (size_t d = 0; d < argument.shape.size(); ++d) text += (d == 0 ? "(" : ", ") + argument.shape[d];
  if (!argument.shape.empty()) text += ")";
  return text + " " + argument.name;
}

/// "matmul(float32(M, K) A, float32(K, N) B) -> (float32(M, N) C)"
std::string text_of(const api::Signature& signature) {
  const auto list = [](const std::vector<api::Argument>& arguments) {
    std::string text = "(";
    for (const api::Argument& argument : arguments) text += (text.size() == 1 ? "" : ", ") + text_of(argument);
    return text + ")";
  };
  std::string variables;
  for (const api::TypeVariable& variable : signature.type_variables) {
    variables += (variables.empty() ? "<" : ", ") + variable.name;
    if (!variable.restriction.empty()) variables += ": " + variable.restriction;
  }
  if (!variables.empty()) variables += ">";
  return signature.entry + variables + list(signature.parameters) + " -> " + list(signature.results);
}

/// "matmul(float32(4, 5), float32(5, 6)) -> (float32(4, 6)) on cpu"
std::string text_of(const api::CompiledKernel& kernel) {
  const auto list = [](const std::vector<api::TensorSpec>& specs) {
    std::string text = "(";
    for (const api::TensorSpec& spec : specs) text += (text.size() == 1 ? "" : ", ") + spec.to_string();
    return text + ")";
  };
  return kernel.signature().entry + list(kernel.inputs()) + " -> " + list(kernel.outputs()) + " on " +
         device_of(kernel);
}

void bind_signature(nb::module_& module) {
  nb::class_<api::Argument>(module, "Argument", "One argument of a def, as its text declares or implies it.")
      .def("__repr__", [](const api::Argument& self) { return "<tensorc.Argument " + text_of(self) + ">"; })
      .def_ro("name", &api::Argument::name, "The argument's name in the text.")
      .def_prop_ro(
          "role", [](const api::Argument& self) { return role_name(self.role); },
          "\"input\", \"result\", \"inout\" (a result whose old elements are read) or \"scalar\".")
      .def_prop_ro(
          "dtype", [](const api::Argument& self) { return std::string(name_of(self.type)); },
          "Type of its elements, by NumPy's name: \"float32\", \"int8\", ...")
      .def_ro("type_variable", &api::Argument::type_variable,
              "The type variable of a generic def's argument, which arrays decide; else empty.")
      .def_ro("widens_float8", &api::Argument::widens_float8,
              "Of a generic def's result: whether it is float32 where the variable is an 8-bit float (\"T|float32\").")
      .def_ro("shape", &api::Argument::shape,
              "Extents over names of sizes, outermost first: [\"N\", \"H - KH + 1\"]; [] of a scalar.")
      .def_ro("compiled_in", &api::Argument::compiled_in,
              "Of an integer scalar: its value decides a shape, a range or a subscript, and so what is compiled.");
  nb::class_<api::Signature>(module, "Signature", "The arguments of a def.")
      .def("__repr__", [](const api::Signature& self) { return "<tensorc.Signature " + text_of(self) + ">"; })
      .def_ro("entry", &api::Signature::entry, "The def's name.")
      .def_prop_ro(
          "type_variables",
          [](const api::Signature& self) {
            nb::dict variables;
            for (const api::TypeVariable& variable : self.type_variables) {
              variables[nb::str(variable.name.c_str())] = variable.restriction;
            }
            return variables;
          },
          "Of a generic def: its type variables, each with its restriction, \"float\", \"integer\" or \"\".")
      .def_ro("parameters", &api::Signature::parameters, "Inputs and scalars, in the order of the text.")
      .def_ro("results", &api::Signature::results, "Results and in-outs, in the order of the text.")
      .def_ro("sizes", &api::Signature::sizes, "Names of the sizes, by first appearance in the text.");
  nb::class_<api::TensorSpec>(
      module, "TensorSpec", "Type, shape and strides (in elements) of a tensor; without strides, dense and row-major.")
      .def(
          "__init__",
          [](api::TensorSpec* self, const std::string& dtype, std::vector<int64_t> shape,
             std::vector<int64_t> strides) {
            new (self)
                api::TensorSpec{.type = type_of(dtype), .shape = std::move(shape), .strides = std::move(strides)};
          },
          nb::arg("dtype"), nb::arg("shape"), nb::arg("strides") = std::vector<int64_t>())
      .def_prop_ro(
          "dtype", [](const api::TensorSpec& self) { return std::string(name_of(self.type)); },
          "Type of the elements, by NumPy's name: \"float32\", \"int8\", ...")
      .def_prop_ro(
          "shape", [](const api::TensorSpec& self) { return tuple_of(self.shape); },
          "Extents, in elements, outermost first.")
      .def_prop_ro(
          "strides", [](const api::TensorSpec& self) { return tuple_of(self.strides); },
          "Strides in elements, one for each dimension; () where it is dense and row-major.")
      .def("__eq__",
           [](const api::TensorSpec& self, nb::handle other) {
             return nb::isinstance<api::TensorSpec>(other) && self == nb::cast<const api::TensorSpec&>(other);
           })
      .def("__hash__",
           [](const api::TensorSpec& self) {
             return nb::hash(
                 nb::make_tuple(std::string(name_of(self.type)), tuple_of(self.shape), tuple_of(self.strides)));
           })
      .def("__getstate__",
           [](const api::TensorSpec& self) {
             return std::make_tuple(std::string(name_of(self.type)), self.shape, self.strides);
           })
      .def("__setstate__",
           [](api::TensorSpec& self, const std::tuple<std::string, std::vector<int64_t>, std::vector<int64_t>>& state) {
             new (&self) api::TensorSpec{
                 .type = type_of(std::get<0>(state)), .shape = std::get<1>(state), .strides = std::get<2>(state)};
           })
      .def("__repr__", [](const api::TensorSpec& self) { return "TensorSpec(" + self.to_string() + ")"; });
}

/// What `make` makes; its warnings are given behind it.
api::Engine made_by(const std::function<Result<api::Engine>()>& make) {
  const LogFollowed log;
  std::vector<std::string> warnings;
  Result<api::Engine> engine = [&] {
    const KeptWarnings kept(warnings);
    return make();
  }();
  warn(warnings);
  return value_of(std::move(engine));
}

/// What `explain` says, as text, JSON and HTML: what tensorc.Explanation is made of.
nb::object explained(const std::function<Result<api::Explanation>(std::stop_token)>& explain) {
  const std::stop_source stop;
  std::optional<Result<api::Explanation>> made;
  run_interruptibly(stop, [&] { made.emplace(explain(stop.get_token())); });
  const api::Explanation explanation = value_of(*std::move(made));
  return nb::module_::import_("tensorc._explain")
      .attr("Explanation")(api::to_text(explanation), api::to_json(explanation), api::to_html(explanation));
}

void bind_engine(nb::module_& module) {
  nb::class_<api::Engine>(module, "Engine", "A checked text.")
      .def("__init__",
           [](api::Engine* self, const std::string& text, const std::string& name, const std::string& cache,
              bool read_only, bool nearest, bool keep_text) {
             const std::stop_source stop;
             const api::EngineOptions options{.cache = cache,
                                              .read_only = read_only,
                                              .nearest = nearest,
                                              .keep_text = keep_text,
                                              .cancel = stop.get_token(),
                                              .on_warning = on_warning};
             std::optional<Result<api::Engine>> made;
             run_interruptibly(stop, [&] { made.emplace(api::Engine::create(text, name, options)); });
             new (self) api::Engine(value_of(*std::move(made)));
           })
      .def_static("production",
                  [](const std::string& cache, const std::string& text, const std::string& name) {
                    const api::ProductionOptions options{.text = text, .name = name, .on_warning = on_warning};
                    return made_by([&] { return api::Engine::production(cache, options); });
                  })
      .def("statistics",
           [](const api::Engine& self) {
             const api::EngineStatistics known = self.statistics();
             nb::dict counts;
             counts["memory_hits"] = known.memory_hits;
             counts["file_hits"] = known.file_hits;
             counts["reproved"] = known.reproved;
             counts["compiled"] = known.compiled;
             return counts;
           })
      .def("entries", &api::Engine::entries)
      .def("signature",
           [](const api::Engine& self, const std::string& entry) { return value_of(self.signature(entry)); })
      .def("gradient",
           [](const api::Engine& self, const std::string& entry) {
             const LogFollowed log;
             return value_of(self.gradient(entry));
           })
      .def("infer",
           [](const api::Engine& self, nb::dict request) {
             const LogFollowed log;
             api::Specs specs = value_of(self.infer(request_of(request)));
             return std::make_pair(std::move(specs.inputs), std::move(specs.outputs));
           })
      .def("compile",
           [](const api::Engine& self, nb::dict fields) {
             auto compiled = std::make_shared<Compiled>();
             compiled->compile(self, request_of(fields));
             return Kernel(std::move(compiled));
           })
      .def("explain",
           [](const api::Engine& self, nb::dict fields, const std::string& arch) {
             api::Request request = request_of(fields);
             return explained([&](std::stop_token cancel) {
               request.cancel = std::move(cancel);
               return self.explain(request, arch);
             });
           })
      .def("emit", [](const api::Engine& self, nb::dict fields, const std::string& stage, const std::string& arch) {
        std::stop_source stop;
        api::Request request = request_of(fields);
        request.cancel = stop.get_token();
        Result<std::string> text = std::string();
        run_interruptibly(stop, [&] { text = self.emit(request, stage, arch); });
        return value_of(std::move(text));
      });
}

/// For inspect.signature(). Imported when it is asked for: the package imports this module.
nb::object shown_signature(nb::handle function) {
  // Of the class itself there is none.
  return nb::module_::import_("tensorc._signature").attr("signature_of")(function);
}

/// For notebooks.
nb::object html_of(const char* what, nb::handle shown) {
  return nb::module_::import_("tensorc._notebook").attr(what)(shown);
}

void bind_function(nb::module_& module) {
  nb::class_<Function>(
      module, "Function", nb::is_weak_referenceable(), nb::dynamic_attr(),
      "A def as a function of arrays: it compiles once for each set of shapes, strides, types and devices.\n"
      "\n"
      "Arguments are the def's parameters in the order of the text, or by name. Results are new arrays of the first\n"
      "array's library, or those of `out=` (an array, or a list or tuple with None for those to be made) or given by "
      "name.\n"
      "`stream=` is a stream of PyTorch or CuPy, or its address; by default the current one. Sizes that no array "
      "determines\n"
      "are given by name. A def's own parameter of the name `out` or `stream` comes before these.\n"
      "\n"
      "Raises TypeError for what is no array, number or argument, ValueError for an array that cannot be used where it "
      "is,\n"
      "and Error for types, shapes, devices and values that do not fit the def.")
      .def(
          "__init__",
          [](Function* self, const api::Engine& engine, const std::string& entry, std::optional<std::string> backend,
             const options::CpuOptions& cpu, const options::MappingOptions& mapping, bool element_aligned,
             nb::object maker) {
            Choices choices{.backend = {}, .cpu = cpu, .mapping = mapping, .element_aligned = element_aligned};
            if (backend) choices.backend = backend_of(*backend);
            if (!maker.is_none()) choices.maker = std::move(maker);
            new (self) Function(engine, value_of(engine.signature(entry)), std::move(choices));
          },
          nb::arg("engine"), nb::arg("entry"), nb::arg("backend").none(), nb::arg("cpu"), nb::arg("mapping"),
          nb::arg("element_aligned"), nb::arg("maker").none() = nb::none())
      .def("__repr__", [](const Function& self) { return "<tensorc.Function " + text_of(self.signature()) + ">"; })
      .def_prop_ro("__signature__", [](nb::handle self) { return shown_signature(self); })
      .def("_repr_html_", [](nb::handle self) { return html_of("html_of_function", self); })
      .def("__call__", &Function::call, "Runs on arrays, in the order of the text or by name; out= takes the results.")
      .def(
          "compile",
          [](Function& self, nb::args args, nb::kwargs kwargs) { return Kernel(self.compile(args, kwargs)); },
          "The kernel that a call with these arguments runs.")
      .def_prop_ro("signature", &Function::signature, "The def's parameters and results.")
      .def_prop_ro("kernels", &Function::kernels, "The number of kernels held, including those in compilation.")
      .def("clear", &Function::clear, "Releases all kernels.");
  nb::class_<Kernel>(
      module, "Kernel", nb::is_weak_referenceable(),
      "A def compiled for fixed shapes, called like a Function with arrays of just these shapes and types.\n"
      "\n"
      "Raises what a Function raises, and never compiles but for tensors of a GPU that are not aligned to its vectors.")
      .def("__repr__", [](const Kernel& self) { return "<tensorc.Kernel " + text_of(self.get()) + ">"; })
      .def_prop_ro("__signature__", [](nb::handle self) { return shown_signature(self); })
      .def("_repr_html_", [](nb::handle self) { return html_of("html_of_kernel", self); })
      .def("__call__", &Kernel::call, "Runs on arrays of the shapes that were compiled for.")
      .def_prop_ro(
          "signature", [](const Kernel& self) { return self.get().signature(); }, "The def's parameters and results.")
      .def_prop_ro(
          "inputs", [](const Kernel& self) { return self.get().inputs(); },
          "Types, shapes and strides of the tensor parameters that it takes.")
      .def_prop_ro(
          "outputs", [](const Kernel& self) { return self.get().outputs(); },
          "Types, shapes and strides of the results that it writes.")
      .def_prop_ro(
          "device", [](const Kernel& self) { return device_of(self.get()); },
          "Where it runs: \"cpu\" (that of the simulator too) or \"cuda:0\".")
      .def(
          "prepare",
          [](const Kernel& self, uintptr_t stream) { value_of(self.get().prepare(reinterpret_cast<void*>(stream))); },
          "Allocates the temporaries for runs on a stream. Call it before a graph captures the first run. `stream` is "
          "the stream's address. Does nothing on the CPU. Raises Error if there is not enough memory.")
      .def(
          "explain",
          [](const Kernel& self) { return explained([&](const std::stop_token&) { return self.get().explain(); }); },
          "What the compiler made of the def, and why: ranges, kernels, options, tiles, floors and estimates. Raises "
          "Error for a kernel that was made by hand, or in production.")
      .def_prop_ro(
          "options", [](const Kernel& self) { return self.get().provenance().options; },
          "The options that it was made with, as text; \"\": chosen by the compiler; \"by hand ...\": none made it.")
      .def_prop_ro(
          "from_cache", [](const Kernel& self) { return self.get().provenance().from_file; },
          "Whether it was read from a cache's file rather than compiled.")
      .def_prop_ro(
          "measured", [](const Kernel& self) { return self.get().provenance().measured; },
          "Whether it is the fastest that a search has measured for the shape and device.")
      .def_prop_ro(
          "pass_times",
          [](const Kernel& self) {
            nb::list times;
            for (const api::PassTime& time : self.get().pass_times()) times.append(nb::make_tuple(time.pass, time.ms));
            return times;
          },
          "The passes of the compilation and their times in milliseconds; [] of one that a cache held.");
}

}  // namespace
}  // namespace tc::python

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false);  // operators of PyTorch's live until the process ends
  module.doc() = "The compiler's library. tensorc is what to import.";
  module.attr("__version__") = tc::api::version();
  tc::python::bind_errors(module);
  tc::python::bind_options(module);
  tc::python::bind_signature(module);
  tc::python::bind_engine(module);
  tc::python::bind_function(module);
  tc::python::bind_jax(module);
  tc::python::bind_schedule(module);
  tc::python::bind_tune(module);
  tc::python::bind_editor(module);
}
