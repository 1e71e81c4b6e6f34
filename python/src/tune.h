#pragma once

#include <nanobind/nanobind.h>

/// The tuner: tune, Progress, Record, Tuned, and what its workers run.
namespace tc::python {

void bind_tune(nanobind::module_& module);

}  // namespace tc::python
