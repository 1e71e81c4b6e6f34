#pragma once

#include <nanobind/nanobind.h>

namespace tc::python {

/// Adds to the module what tensorc.jax needs: the handler that XLA calls, and a number for each kernel that it runs.
void bind_jax(nanobind::module_& module);

}  // namespace tc::python
