#include "frameworks.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <unordered_map>

#include "errors.h"

namespace nb = nanobind;

namespace tc::python {
namespace {

constexpr const char* kExchangeAttribute = "__dlpack_c_exchange_api__";
constexpr const char* kExchangeCapsule = "dlpack_exchange_api";

/// The table of a type, of the major version that is known here.
const ExchangeApi* exchange_of(nb::handle type) {
  const nb::object capsule = nb::getattr(type, kExchangeAttribute, nb::none());
  if (!PyCapsule_CheckExact(capsule.ptr())) return nullptr;
  auto* header = static_cast<ExchangeHeader*>(PyCapsule_GetPointer(capsule.ptr(), kExchangeCapsule));
  if (!header) PyErr_Clear();
  while (header && header->version.major != 1) header = header->previous;
  const auto* api = reinterpret_cast<const ExchangeApi*>(header);
  return api && api->view_of_object ? api : nullptr;
}

/// Of a class of a module; false while nobody has imported that.
bool is_subclass(nb::handle type, const char* module, const char* name) {
  PyObject* const found = PyDict_GetItemString(PyImport_GetModuleDict(), module);
  if (!found) return false;
  const int is = PyObject_IsSubclass(type.ptr(), nb::handle(found).attr(name).ptr());
  if (is < 0) throw nb::python_error();
  return is == 1;
}

Framework describe(nb::handle object) {
  const nb::handle type = object.type();
  Framework framework;
  const std::string module = nb::cast<std::string>(nb::str(nb::getattr(type, "__module__", nb::str(""))));
  framework.module = module.substr(0, module.find('.'));
  framework.exchange = exchange_of(type);
  framework.torch = is_subclass(type, "torch", "Tensor");
  if (is_subclass(type, "numpy.ma", "MaskedArray")) return framework;  // the mask would be lost
  if (framework.exchange) {
    framework.protocol = Protocol::kExchange;
  } else if (is_subclass(type, "numpy", "ndarray")) {
    framework.module = "numpy";
    framework.protocol = Protocol::kBuffer;
  } else if (nb::hasattr(type, "__dlpack__")) {
    framework.protocol = Protocol::kDlpack;
  } else if (nb::hasattr(type, "__cuda_array_interface__")) {
    framework.protocol = Protocol::kCudaInterface;
  } else if (PyObject_CheckBuffer(object.ptr()) && !is_subclass(type, "numpy", "generic")) {
    framework.protocol = Protocol::kBuffer;  // memoryview, array.array, ctypes; numbers of NumPy are none
  }
  return framework;
}

/// Element types as buffers write them: one letter of the struct module. {0, 0, 0} for others.
DLDataType type_of_letter(char letter, int64_t bytes) {
  const auto bits = static_cast<uint8_t>(8 * bytes);
  switch (letter) {
    case '?':
      return {TC_DLPACK_BOOL, 8, 1};
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
      return {kDLInt, bits, 1};
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
      return {kDLUInt, bits, 1};
    case 'e':
    case 'f':
    case 'd':
      return {kDLFloat, bits, 1};
    default:
      return {0, 0, 0};
  }
}

/// As __cuda_array_interface__ writes them: "<f4".
DLDataType type_of_typestr(const std::string& text) {
  if (text.size() < 3 || text[0] == '>') return {0, 0, 0};
  const auto bits = static_cast<uint8_t>(8 * std::atoi(text.c_str() + 2));
  switch (text[1]) {
    case 'b':
      return {TC_DLPACK_BOOL, 8, 1};
    case 'i':
      return {kDLInt, bits, 1};
    case 'u':
      return {kDLUInt, bits, 1};
    case 'f':
      return {kDLFloat, bits, 1};
    default:
      return {0, 0, 0};
  }
}

/// By the names of the package ml_dtypes. {0, 0, 0} for others.
DLDataType type_of_ml_dtypes(const std::string& name) {
  if (name == "bfloat16") return {kDLBfloat, 16, 1};
  if (name == "float8_e4m3fn") return {TC_DLPACK_FLOAT8_E4M3FN, 8, 1};
  if (name == "float8_e5m2") return {TC_DLPACK_FLOAT8_E5M2, 8, 1};
  return {0, 0, 0};
}

std::string word_for_type(nb::handle object) { return nb::cast<std::string>(object.type().attr("__name__")); }

/// What an array says of itself by __cuda_array_interface__, a dictionary that anybody may have filled.
class CudaInterface {
 public:
  CudaInterface(const std::string& name, nb::handle array)
      : name_(name), fields_(array.attr("__cuda_array_interface__")) {
    if (!nb::isinstance<nb::dict>(fields_)) {
      raise_type_error("'" + name_ + "' has a __cuda_array_interface__ that is no dictionary");
    }
  }

  bool has(const char* field) const { return !fields_.attr("get")(field).is_none(); }

  template <typename T>
  T get(const char* field, const char* wanted) const {
    const nb::object value = fields_.attr("get")(field);
    T result;
    if (nb::try_cast<T>(value, result)) return result;
    raise_type_error("'" + name_ + "' has a __cuda_array_interface__ whose '" + field + "' is " +
                     nb::cast<std::string>(nb::repr(value)) + ", not " + wanted);
  }

 private:
  std::string name_;
  nb::object fields_;
};

nb::tuple tuple_of(const std::vector<int64_t>& values) {
  nb::list list;
  for (int64_t value : values) list.append(value);
  return nb::tuple(list);
}

/// A library's word for an element type.
nb::object dtype_of(const nb::object& module, ScalarType type) {
  // Of PyTorch and ml_dtypes: the variant without infinities.
  const std::string name(type == ScalarType::kFloat8E4M3 ? "float8_e4m3fn" : name_of(type));
  if (nb::hasattr(module, name.c_str())) return module.attr(name.c_str());
  if (type == ScalarType::kBool) return module.attr("bool_");
  try {
    return nb::module_::import_("ml_dtypes").attr(name.c_str());  // for NumPy
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ImportError)) throw;
  }
  raise_type_error(nb::cast<std::string>(module.attr("__name__")) + " has no element type " + name +
                   " without the package ml_dtypes: pass an array for the result as out=");
}

/// NumPy, which makes the results for its own arrays and for buffers.
nb::object numpy_for(const std::string& module) {
  try {
    return nb::module_::import_("numpy");
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ImportError)) throw;
  }
  raise_type_error("there is no NumPy to make an array beside one of " + module + "'s: pass one as out=");
}

/// Keeps the first line of what PyTorch says, which goes on with where in its sources it was thrown.
[[noreturn]] void raise_unreadable(const std::string& name, nb::python_error error) {
  const std::string text = nb::cast<std::string>(nb::str(nb::object(nb::borrow(error.value()))));
  const std::string sentence = "'" + name + "' cannot be read in memory: " + text.substr(0, text.find('\n'));
  nb::raise_from(error, PyExc_TypeError, "%s", sentence.c_str());
  throw nb::python_error();
}

/// PyTorch: negation of a view may be left to who reads it, which the view's memory does not show.
void check_is_not_negated(const std::string& name, nb::handle array) {
  static PyObject* const method = PyUnicode_InternFromString("is_neg");
  const nb::object negated = nb::steal(PyObject_CallMethodObjArgs(array.ptr(), method, nullptr));
  if (!negated.is_valid()) throw nb::python_error();
  if (negated.ptr() != Py_True) return;
  raise_value_error("'" + name +
                    "' is a view whose elements PyTorch negates as it reads them: pass tensor.resolve_neg()");
}

/// PyTorch: a call by hand would cut the graph that gradients flow along.
void check_needs_no_gradient(const std::string& name, nb::handle array) {
  static PyObject* const attribute = PyUnicode_InternFromString("requires_grad");
  const nb::object needed = nb::steal(PyObject_GetAttr(array.ptr(), attribute));
  if (!needed.is_valid()) {
    PyErr_Clear();
    return;
  }
  if (needed.ptr() != Py_True) return;
  if (!nb::cast<bool>(nb::module_::import_("torch").attr("is_grad_enabled")())) return;
  raise_value_error("'" + name +
                    "' requires gradients, which do not flow through this call: use tensorc.torch.op(), or pass "
                    "tensor.detach(), or call under torch.no_grad()");
}

}  // namespace

const Framework& framework_of(nb::handle object) {
  // Types are kept, so that none of another framework comes to stand at the same address.
  static auto* const known = new std::unordered_map<PyTypeObject*, Framework>();
  PyTypeObject* type = Py_TYPE(object.ptr());
  const auto found = known->find(type);
  if (found != known->end()) return found->second;
  Framework described = describe(object);
  Py_INCREF(reinterpret_cast<PyObject*>(type));
  return known->emplace(type, std::move(described)).first->second;
}

int64_t* View::extents(int rank) {
  if (rank <= kInlineRank) return inline_extents_;
  large_extents_ = std::make_unique<int64_t[]>(2 * static_cast<size_t>(rank));
  return large_extents_.get();
}

void View::release() {
  if (buffer_.obj) PyBuffer_Release(&buffer_);
  if (managed_ && managed_->deleter) managed_->deleter(managed_);
  if (versioned_ && versioned_->deleter) versioned_->deleter(versioned_);
}

void View::read(const std::string& name, nb::handle array, const Framework& framework, void* stream) {
  framework_ = &framework;
  array_ = nb::borrow(array);
  switch (framework.protocol) {
    case Protocol::kExchange:
      check_needs_no_gradient(name, array);
      if (framework.torch) check_is_not_negated(name, array);
      if (framework.exchange->view_of_object(array.ptr(), &tensor) != 0) raise_unreadable(name, nb::python_error());
      return;
    case Protocol::kBuffer:
      return read_buffer(name);
    case Protocol::kDlpack:
      check_needs_no_gradient(name, array);
      if (framework.torch) {
        check_is_not_negated(name, array);
        array_ = array.attr("detach")();  // without gradients PyTorch still lends none that could have one
      }
      read_dlpack(name, stream);
      array_ = nb::borrow(array);
      return;
    case Protocol::kCudaInterface:
      return read_cuda_interface(name);
    case Protocol::kNone:
      raise_type_error("'" + name + "' is a tensor, and takes an array of NumPy, PyTorch, CuPy, JAX or anything with " +
                       "__dlpack__ or a buffer, not a " + word_for_type(array));
  }
}

/// The buffer's and its element type; type {0, 0, 0} for one that is not the language's.
DLDataType View::open_buffer() {
  if (PyObject_GetBuffer(array_.ptr(), &buffer_, PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0) {
    // Types that came to NumPy later have no letter: of ours those of the package ml_dtypes.
    if (!PyErr_ExceptionMatches(PyExc_ValueError) || framework_->module != "numpy") throw nb::python_error();
    PyErr_Clear();
    const DLDataType type = type_of_ml_dtypes(nb::cast<std::string>(nb::str(nb::object(array_.attr("dtype")))));
    if (type.bits == 0) return type;
    if (PyObject_GetBuffer(array_.ptr(), &buffer_, PyBUF_STRIDED_RO) != 0) throw nb::python_error();
    return type;
  }
  const char* format = buffer_.format ? buffer_.format : "B";
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  return *format != '\0' && format[1] == '\0' ? type_of_letter(*format, buffer_.itemsize) : DLDataType{0, 0, 0};
}

void View::read_buffer(const std::string& name) {
  tensor.dtype = open_buffer();
  if (tensor.dtype.bits == 0 && framework_->module != "numpy") {
    raise_type_error("'" + name + "' has a buffer of the format '" + buffer_.format +
                     "', which is no type of the language");
  }
  if (tensor.dtype.bits == 0) {
    raise_type_error("NumPy's " + nb::cast<std::string>(nb::str(nb::object(array_.attr("dtype")))) +
                     " is no type of the language");
  }
  tensor.data = buffer_.buf;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = buffer_.ndim;
  read_only_ = buffer_.readonly != 0;
  int64_t* shape = extents(buffer_.ndim);
  int64_t* strides = shape + buffer_.ndim;
  tensor.shape = shape;
  for (int d = 0; d < buffer_.ndim; ++d) shape[d] = buffer_.shape[d];
  if (!buffer_.strides) return;  // dense: ctypes says no more, whatever it is asked for
  for (int d = 0; d < buffer_.ndim; ++d) {
    strides[d] = buffer_.strides[d] / buffer_.itemsize;
    if (buffer_.strides[d] % buffer_.itemsize != 0 && shape[d] > 1) {
      raise_value_error("an array with strides of " + std::to_string(buffer_.strides[d]) +
                        " bytes, which its elements of " + std::to_string(buffer_.itemsize) +
                        " do not divide, has to be copied first");
    }
  }
  tensor.strides = strides;
}

void View::read_dlpack(const std::string& name, void* stream) {
  const DLDeviceType kind = dlpack_device_of(name, array_).device_type;
  nb::dict keywords;
  // 1 is DLPack's word for CUDA's legacy default stream.
  if (kind == kDLCUDA) keywords["stream"] = stream ? nb::int_(reinterpret_cast<uintptr_t>(stream)) : nb::int_(1);
  nb::object capsule;
  try {
    nb::dict versioned = nb::borrow<nb::dict>(keywords.attr("copy")());
    versioned["max_version"] = nb::make_tuple(1, 0);
    capsule = array_.attr("__dlpack__")(**versioned);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    capsule = array_.attr("__dlpack__")(**keywords);
  }
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    versioned_ = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    if (versioned_->version.major != 1) {
      raise_value_error("an array speaks DLPack " + std::to_string(versioned_->version.major) + ", not 1");
    }
    read_only_ = (versioned_->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
    tensor = versioned_->dl_tensor;
    return;
  }
  managed_ = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (!managed_) throw nb::python_error();
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  tensor = managed_->dl_tensor;
}

void View::read_cuda_interface(const std::string& name) {
  const CudaInterface interface(name, array_);
  tensor.dtype = type_of_typestr(interface.get<std::string>("typestr", "a string"));
  if (tensor.dtype.bits == 0) raise_type_error("'" + name + "' has elements of no type of the language");
  const auto [data, read_only] = interface.get<std::pair<uintptr_t, bool>>("data", "a tuple of an integer and a bool");
  tensor.data = reinterpret_cast<void*>(data);
  read_only_ = read_only;
  // 1 and 2, the default streams, are words of the driver's too.
  if (interface.has("stream")) stream_ = reinterpret_cast<void*>(interface.get<uintptr_t>("stream", "an integer"));
  // The interface does not name the device; its makers keep to the current one.
  tensor.device = {kDLCUDA, 0};
  const auto given = interface.get<std::vector<int64_t>>("shape", "a tuple of integers");
  tensor.ndim = static_cast<int>(given.size());
  int64_t* shape = extents(tensor.ndim);
  std::ranges::copy(given, shape);
  tensor.shape = shape;
  if (!interface.has("strides")) return;
  const auto strides = interface.get<std::vector<int64_t>>("strides", "a tuple of integers");
  if (strides.size() != given.size()) {
    raise_type_error("'" + name + "' has a __cuda_array_interface__ of " + std::to_string(given.size()) +
                     " dimensions and " + std::to_string(strides.size()) + " strides");
  }
  tensor.strides = shape + tensor.ndim;
  for (int d = 0; d < tensor.ndim; ++d) tensor.strides[d] = strides[static_cast<size_t>(d)] / (tensor.dtype.bits / 8);
}

Maker::Maker(const View& like, const api::TensorSpec& spec, bool zeroed) : framework_(&like.framework()) {
  nb::object module;
  const char* verb = zeroed ? "zeros" : "empty";
  shape_ = tuple_of(spec.shape);
  if (framework_->protocol == Protocol::kBuffer) {
    module = numpy_for(framework_->module);
  } else if (framework_->torch) {
    module = nb::module_::import_("torch");
    device_ = like.array().attr("device");
    if (!zeroed) {  // a third faster than empty
      verb = "empty_strided";
      strides_ = tuple_of(spec.strides);
    }
  } else if (framework_->module == "cupy") {  // made on the current device; there is no other way to say which
    module = nb::module_::import_("cupy");
  } else if (nb::hasattr(like.array(), "__array_namespace__")) {
    module = like.array().attr("__array_namespace__")();
    device_ = like.array().attr("device");
  } else {
    raise_type_error("there is no way known to make an array of " + framework_->module + "'s: pass one as out=");
  }
  function_ = module.attr(verb);
  dtype_ = dtype_of(module, spec.type);
  names_ = device_.is_valid() ? nb::make_tuple("dtype", "device") : nb::make_tuple("dtype");
}

nb::object Maker::make() const {
  PyObject* arguments[5] = {nullptr};
  size_t count = 1;
  for (const nb::object* argument : {&shape_, &strides_, &dtype_, &device_}) {
    if (argument->is_valid()) arguments[count++] = argument->ptr();
  }
  const size_t positional = strides_.is_valid() ? 2 : 1;
  PyObject* made =
      PyObject_Vectorcall(function_.ptr(), arguments + 1, positional | PY_VECTORCALL_ARGUMENTS_OFFSET, names_.ptr());
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

DLDevice dlpack_device_of(const std::string& name, nb::handle array) {
  try {
    const auto [kind, number] = nb::cast<std::pair<int, int>>(array.attr("__dlpack_device__")());
    return {static_cast<DLDeviceType>(kind), number};
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_AttributeError)) throw;
    raise_unreadable(name, error);
  }
}

void note_written(const View& view) {
  if (!view.framework().torch) return;
  static const nb::handle increment =
      nb::object(nb::module_::import_("torch.autograd.graph").attr("increment_version")).release();
  increment(view.array());
}

void* current_stream(const Framework& framework, DLDevice device) {
  if (device.device_type != kDLCUDA) return nullptr;
  if (framework.exchange) {
    void* stream = nullptr;
    if (framework.exchange->current_stream(device.device_type, device.device_id, &stream) != 0) {
      throw nb::python_error();
    }
    return stream;
  }
  if (framework.torch) {
    const nb::object stream = nb::module_::import_("torch").attr("cuda").attr("current_stream")(device.device_id);
    return reinterpret_cast<void*>(nb::cast<uintptr_t>(stream.attr("cuda_stream")));
  }
  if (framework.module == "cupy") {
    const nb::object stream = nb::module_::import_("cupy").attr("cuda").attr("get_current_stream")();
    return reinterpret_cast<void*>(nb::cast<uintptr_t>(stream.attr("ptr")));
  }
  return nullptr;
}

bool wants_finished_arrays(const Framework& framework) {
  return framework.module == "jax" || framework.module == "jaxlib";
}

}  // namespace tc::python
