#include "errors.h"

namespace nb = nanobind;

namespace tc::python {
namespace {

struct Exceptions {
  PyObject* error = nullptr;
  PyObject* budget = nullptr;
  PyObject* cancelled = nullptr;
  PyObject* internal = nullptr;
};
// Types live as long as the interpreter.
Exceptions exceptions;

PyObject* add(nb::module_& module, const char* name, PyObject* base, const char* doc) {
  const std::string full = std::string("tensorc.") + name;
  PyObject* type = PyErr_NewExceptionWithDoc(full.c_str(), doc, base, nullptr);
  if (!type) throw nb::python_error();
  module.attr(name) = nb::handle(type);
  return type;
}

PyObject* type_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUser:
      return exceptions.error;
    case ErrorKind::kBudget:
      return exceptions.budget;
    case ErrorKind::kCancelled:
      return exceptions.cancelled;
    case ErrorKind::kInternal:
      return exceptions.internal;
  }
  return exceptions.internal;
}

nb::list diagnostics_of(const Error& error) {
  nb::list list;
  for (const Diagnostic& diagnostic : error.diagnostics()) {
    nb::object line = nb::none();
    nb::object column = nb::none();
    if (diagnostic.range && error.source()) {
      const LineColumn place = error.source()->position(diagnostic.range->begin);
      line = nb::int_(place.line);
      column = nb::int_(place.column);
    }
    list.append(nb::make_tuple(line, column, nb::str(diagnostic.message.c_str(), diagnostic.message.size())));
  }
  return list;
}

}  // namespace

void bind_errors(nb::module_& module) {
  exceptions.error =
      add(module, "Error", PyExc_ValueError,
          "What is wrong with a text, its sizes, tensors or options. str() is the whole message, with "
          "the line and a marker under the place; `diagnostics` lists (line, column, sentence), the first two None "
          "where there is no place.");
  exceptions.budget =
      add(module, "BudgetError", exceptions.error, "A compilation would take more than its budget allows.");
  exceptions.cancelled = add(module, "CancelledError", exceptions.error, "A compilation was asked to stop.");
  exceptions.internal = add(module, "InternalError", exceptions.error, "A fault of the compiler: please report it.");
}

void raise(const Error& error) {
  std::string text = error.to_string();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  // Python prints the exception's name in front of a text that begins without a place.
  if (constexpr std::string_view kPrefix = "error: "; text.starts_with(kPrefix)) text.erase(0, kPrefix.size());
  nb::object exception = nb::handle(type_of(error.kind()))(nb::str(text.c_str(), text.size()));
  exception.attr("diagnostics") = diagnostics_of(error);
  PyErr_SetObject(type_of(error.kind()), exception.ptr());
  throw nb::python_error();
}

void raise_type_error(const std::string& sentence) {
  PyErr_SetString(PyExc_TypeError, sentence.c_str());
  throw nb::python_error();
}

void raise_value_error(const std::string& sentence) {
  PyErr_SetString(PyExc_ValueError, sentence.c_str());
  throw nb::python_error();
}

}  // namespace tc::python
