#include "warnings.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "gil.h"

namespace nb = nanobind;

namespace tc::python {
namespace {

thread_local std::vector<std::string>* kept = nullptr;

bool is_ours(nb::handle frame) {
  const nb::object globals = frame.attr("f_globals");
  PyObject* const module = PyDict_GetItemString(globals.ptr(), "__name__");
  if (!module || !PyUnicode_Check(module)) return false;
  const auto name = nb::cast<std::string>(nb::handle(module));
  return name == "tensorc" || name.starts_with("tensorc.");
}

/// How far up the stack the frame is that called this package.
int level_of_caller() {
  int level = 1;
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  for (; frame.is_valid() && !frame.is_none() && is_ours(frame); ++level) frame = frame.attr("f_back");
  return level;
}

bool is_given(const std::string& sentence) {
  return PyErr_WarnEx(PyExc_RuntimeWarning, sentence.c_str(), level_of_caller()) == 0;
}

}  // namespace

void on_warning(const std::string& sentence) {
  if (kept) {
    kept->push_back(sentence);
    return;
  }
  const GilHeld held;
  if (!is_given(sentence)) PyErr_WriteUnraisable(nullptr);
}

KeptWarnings::KeptWarnings(std::vector<std::string>& list) { kept = &list; }
KeptWarnings::~KeptWarnings() { kept = nullptr; }

void warn(const std::vector<std::string>& list) {
  for (const std::string& sentence : list) {
    if (!is_given(sentence)) throw nb::python_error();
  }
}

}  // namespace tc::python
