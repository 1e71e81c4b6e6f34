#pragma once

#include <nanobind/nanobind.h>

/// check(), format(), words(), Cancellation: what editors ask of a text.
namespace tc::python {

void bind_editor(nanobind::module_& module);

}  // namespace tc::python
