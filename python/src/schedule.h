#pragma once

#include <nanobind/nanobind.h>

namespace tc::python {

/// Adds Schedule to the module: what tensorc.Schedule wraps.
void bind_schedule(nanobind::module_& module);

}  // namespace tc::python
