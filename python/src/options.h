#pragma once

#include <nanobind/nanobind.h>

/// Fusion, SchedulerOptions, CpuOptions, MappingOptions.
namespace tc::python {

void bind_options(nanobind::module_& module);

}  // namespace tc::python
