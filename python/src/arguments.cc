#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>

#include "errors.h"
#include "function.h"

namespace nb = nanobind;

namespace tc::python {
namespace {

std::string names_of(const api::Signature& signature) {
  std::string text;
  for (const api::Argument& parameter : signature.parameters) text += (text.empty() ? "" : ", ") + parameter.name;
  return text.empty() ? "none" : text;
}

/// A size that no tensor has as an extent, if there is one: only a call gives it.
std::string size_to_give(const api::Signature& signature) {
  for (const std::string& size : signature.sizes) {
    const auto has = [&](const api::Argument& parameter) {
      return std::ranges::find(parameter.shape, size) != parameter.shape.end();
    };
    if (std::ranges::none_of(signature.parameters, has)) return size;
  }
  return signature.sizes.front();
}

std::string text_of(nb::handle string) { return nb::cast<std::string>(string); }

/// A call's arguments by what they are for, before any is read.
struct Given {
  std::vector<nb::handle> parameters;
  std::vector<nb::object> results;  ///< kept: those of a list go when somebody changes it during the call
  nb::handle stream;
  bool has_stream = false;

  explicit Given(const api::Signature& signature)
      : parameters(signature.parameters.size()), results(signature.results.size()) {}
};

/// None leaves it to be made.
void take_result(const api::Signature& signature, size_t result, nb::handle array, Given& given) {
  if (array.is_none()) return;
  if (given.results[result].is_valid()) {
    raise_type_error(signature.entry + "() is given '" + signature.results[result].name + "' twice");
  }
  given.results[result] = nb::borrow(array);
}

void take_out(const api::Signature& signature, nb::handle out, Given& given) {
  if (out.is_none()) return;
  if (given.results.size() == 1 && !PyTuple_Check(out.ptr()) && !PyList_Check(out.ptr())) {
    return take_result(signature, 0, out, given);
  }
  if ((!PyTuple_Check(out.ptr()) && !PyList_Check(out.ptr())) || nb::len(out) != given.results.size()) {
    raise_type_error(signature.entry + "() has " + std::to_string(given.results.size()) +
                     (given.results.size() == 1 ? " result" : " results") +
                     ": out= takes as many arrays, None for those to be made");
  }
  for (size_t r = 0; r < given.results.size(); ++r) {
    const nb::handle array = PyTuple_Check(out.ptr()) ? PyTuple_GetItem(out.ptr(), static_cast<Py_ssize_t>(r))
                                                      : PyList_GetItem(out.ptr(), static_cast<Py_ssize_t>(r));
    take_result(signature, r, array, given);
  }
}

int64_t size_of(const std::string& name, nb::handle value) {
  int64_t size = 0;
  if (nb::try_cast<int64_t>(value, size)) return size;
  raise_type_error("'" + name + "' is a size, and takes an integer, not " + nb::cast<std::string>(nb::repr(value)));
}

/// What the def itself names comes before `out` and `stream`.
void take_keyword(const std::string& name, nb::handle value, Arguments& arguments, Given& given) {
  const api::Signature& signature = arguments.signature;
  for (size_t p = 0; p < signature.parameters.size(); ++p) {
    if (signature.parameters[p].name != name) continue;
    if (given.parameters[p].is_valid()) raise_type_error(signature.entry + "() is given '" + name + "' twice");
    given.parameters[p] = value;
    return;
  }
  if (name == "out") return take_out(signature, value, given);
  for (size_t r = 0; r < signature.results.size(); ++r) {
    if (signature.results[r].name != name) continue;
    return take_result(signature, r, value, given);
  }
  for (size_t s = 0; s < signature.sizes.size(); ++s) {
    if (signature.sizes[s] != name) continue;
    arguments.sizes.emplace_back(s, size_of(name, value));
    return;
  }
  if (name == "stream") {
    given.stream = value;
    given.has_stream = !value.is_none();
    return;
  }
  const bool means_sizes = (name == "sizes" || name == "size") && !signature.sizes.empty();
  raise_type_error(signature.entry + "() has no argument '" + name + "'; " +
                   (means_sizes ? "each size is an argument by its name: " + size_to_give(signature) + "=8"
                                : "its parameters are " + names_of(signature)));
}

Given sort(Arguments& arguments, nb::args args, nb::kwargs kwargs) {
  const api::Signature& signature = arguments.signature;
  Given given(signature);
  if (args.size() > given.parameters.size()) {
    raise_type_error(signature.entry + "() takes " + std::to_string(given.parameters.size()) + " arguments (" +
                     names_of(signature) + "); " + std::to_string(args.size()) + " are given");
  }
  for (size_t p = 0; p < args.size(); ++p) {
    given.parameters[p] = PyTuple_GetItem(args.ptr(), static_cast<Py_ssize_t>(p));
  }
  if (kwargs.is_valid() && PyDict_Size(kwargs.ptr()) > 0) {
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    Py_ssize_t place = 0;
    while (PyDict_Next(kwargs.ptr(), &place, &key, &value)) take_keyword(text_of(key), value, arguments, given);
  }
  for (size_t p = 0; p < given.parameters.size(); ++p) {
    if (given.parameters[p].is_valid()) continue;
    raise_type_error(signature.entry + "() misses '" + signature.parameters[p].name + "'; its parameters are " +
                     names_of(signature));
  }
  return given;
}

/// An integer, or an object of PyTorch's (cuda_stream) or CuPy's (ptr).
void* stream_of(nb::handle stream) {
  if (nb::hasattr(stream, "cuda_stream")) return stream_of(stream.attr("cuda_stream"));
  if (nb::hasattr(stream, "ptr")) return stream_of(stream.attr("ptr"));
  if (!PyLong_Check(stream.ptr())) raise_type_error("stream= takes a stream of PyTorch or CuPy, or its address");
  return reinterpret_cast<void*>(nb::cast<uintptr_t>(stream));
}

/// 1 is the driver's other word for the legacy default stream, which null is.
bool is_same_stream(void* a, void* b) {
  const auto plain = [](void* stream) { return reinterpret_cast<uintptr_t>(stream) == 1 ? nullptr : stream; };
  return plain(a) == plain(b);
}

template <typename Use>
void for_each_view(const Arguments& arguments, Use use) {
  for (size_t i = 0; i < arguments.num_inputs; ++i) {
    if (!arguments.inputs[i].empty()) use(arguments.inputs[i]);
  }
  for (size_t r = 0; r < arguments.signature.results.size(); ++r) {
    if (!arguments.outputs[r].empty()) use(arguments.outputs[r]);
  }
}

/// PyTorch's stream of now, if one of the arrays is PyTorch's; else that of the first array's library; else the first
/// that an array itself names. The others that arrays name are waited for.
void choose_stream(const Given& given, Arguments& arguments) {
  const Framework* chosen = arguments.framework;
  void* named = nullptr;
  for_each_view(arguments, [&](const View& view) {
    if (chosen && !chosen->exchange && view.framework().exchange) chosen = &view.framework();
    if (!named) named = view.stream();
  });
  if (given.has_stream) {
    arguments.stream = stream_of(given.stream);
  } else if (chosen && chosen->protocol == Protocol::kCudaInterface) {
    arguments.stream = named;
  } else if (chosen) {
    arguments.stream = current_stream(*chosen, arguments.device);
  }
  if (!named) return;
  for_each_view(arguments, [&](const View& view) {
    if (!view.stream() || is_same_stream(view.stream(), arguments.stream)) return;
    if (std::ranges::count(arguments.awaited, view.stream()) == 0) arguments.awaited.push_back(view.stream());
  });
}

/// A GPU among the arrays decides; pinned memory is within everybody's reach.
void note_device(Arguments& arguments, DLDevice device) {
  if (arguments.device.device_type != kDLCPU || device.device_type == kDLCPU || device.device_type == kDLCUDAHost)
    return;
  arguments.device = device;
  if (device.device_type == kDLCUDAManaged) arguments.device.device_type = kDLCUDA;
}

/// Calls `use` with each of the caller's arrays, after its name, in the order of the signature.
template <typename Use>
void for_each_array(const api::Signature& signature, const Given& given, Use use) {
  for (size_t p = 0; p < given.parameters.size(); ++p) {
    if (signature.parameters[p].role != api::Role::kScalar) use(signature.parameters[p].name, given.parameters[p]);
  }
  for (size_t r = 0; r < given.results.size(); ++r) {
    if (given.results[r].is_valid()) use(signature.results[r].name, given.results[r]);
  }
}

/// Reads the arrays that lend themselves without being told of a stream, or all others.
void read_arrays(Arguments& arguments, const Given& given, bool ordered) {
  const api::Signature& signature = arguments.signature;
  const auto read = [&](View& view, const std::string& name, nb::handle array) {
    const Framework& framework = framework_of(array);
    if ((framework.protocol == Protocol::kDlpack) != ordered) return;
    view.read(name, array, framework, arguments.stream);
    note_device(arguments, view.tensor.device);
  };
  size_t next = 0;
  for (size_t p = 0; p < given.parameters.size(); ++p) {
    if (signature.parameters[p].role == api::Role::kScalar) continue;
    read(arguments.inputs[next++], signature.parameters[p].name, given.parameters[p]);
  }
  for (size_t r = 0; r < given.results.size(); ++r) {
    if (!given.results[r].is_valid()) continue;
    read(arguments.outputs[r], signature.results[r].name, given.results[r]);
    if (arguments.outputs[r].empty() || !arguments.outputs[r].read_only()) continue;
    raise_value_error("'" + signature.results[r].name + "' is written, and the array for it is read-only");
  }
}

/// The library of the first array, and the devices of those that have to be asked: the stream, which they are then
/// taken on, depends on both.
void note_owners(Arguments& arguments, const Given& given) {
  for_each_array(arguments.signature, given, [&](const std::string& name, nb::handle array) {
    const Framework& framework = framework_of(array);
    if (!arguments.framework) arguments.framework = &framework;
    if (framework.protocol != Protocol::kDlpack) return;
    note_device(arguments, dlpack_device_of(name, array));
  });
}

/// Invalid for what is no integer; PyTorch's and NumPy's arrays of one element say that only when they are asked.
nb::object integer_of(nb::handle value) {
  if (!PyIndex_Check(value.ptr())) return {};
  nb::object integer = nb::steal(PyNumber_Index(value.ptr()));
  if (integer.is_valid()) return integer;
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
  PyErr_Clear();
  return {};
}

}  // namespace

Arguments::Arguments(const api::Signature& of) : signature(of), outputs(new View[of.results.size()]) {
  for (const api::Argument& parameter : of.parameters) num_inputs += parameter.role != api::Role::kScalar;
  inputs.reset(new View[num_inputs]);
}

api::Scalar scalar_of(const std::string& name, nb::handle value) {
  if (PyBool_Check(value.ptr())) return api::Scalar(value.ptr() == Py_True);
  if (PyFloat_Check(value.ptr())) return api::Scalar(PyFloat_AsDouble(value.ptr()));
  if (const nb::object integer = integer_of(value); integer.is_valid()) {
    int overflow = 0;
    const long long small = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
    if (overflow == 0) return api::Scalar(int64_t{small});
    const unsigned long long large = PyLong_AsUnsignedLongLong(integer.ptr());
    if (!PyErr_Occurred()) return api::Scalar(uint64_t{large});
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) throw nb::python_error();
    PyErr_Clear();  // no integer type holds it, but a float may
  }
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1.0 && PyErr_Occurred()) {
    // PyTorch's for an array of several elements is a RuntimeError.
    if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError) &&
        !PyErr_ExceptionMatches(PyExc_RuntimeError)) {
      throw nb::python_error();
    }
    PyErr_Clear();
    raise_type_error("'" + name + "' is a scalar, and takes a number, not a " +
                     nb::cast<std::string>(value.type().attr("__name__")));
  }
  return api::Scalar(number);
}

void read_arguments(Arguments& arguments, nb::args args, nb::kwargs kwargs) {
  const Given given = sort(arguments, args, kwargs);
  for (size_t p = 0; p < given.parameters.size(); ++p) {
    const api::Argument& parameter = arguments.signature.parameters[p];
    if (parameter.role != api::Role::kScalar) continue;
    arguments.scalars.push_back(scalar_of(parameter.name, given.parameters[p]));
  }
  read_arrays(arguments, given, /*ordered=*/false);
  note_owners(arguments, given);
  choose_stream(given, arguments);
  read_arrays(arguments, given, /*ordered=*/true);
}

}  // namespace tc::python
