#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <tc/support/error.h>

#include <string>
#include <utility>

/// Errors of the library as Python's exceptions.
namespace tc::python {

/// Adds Error and its subclasses to the module.
void bind_errors(nanobind::module_& module);

/// Throws a tensorc.Error whose text is error.to_string(); its `diagnostics` are (line, column, message), the first two
/// None where there is no place. Needs the GIL.
[[noreturn]] void raise(const Error& error);

/// Throws a TypeError or a ValueError.
[[noreturn]] void raise_type_error(const std::string& sentence);
[[noreturn]] void raise_value_error(const std::string& sentence);

/// A Python value as a T. Throws a TypeError that names the argument and shows the value.
template <typename T>
T cast_argument(const std::string& name, nanobind::handle value) {
  T result{};
  if (nanobind::try_cast<T>(value, result)) return result;
  raise_type_error("'" + name + "' cannot be " + nanobind::cast<std::string>(nanobind::repr(value)));
}

template <typename T>
T value_of(Result<T> result) {
  if (!result) raise(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace tc::python
