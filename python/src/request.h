#pragma once

#include <nanobind/nanobind.h>
#include <tc/api/tc.h>

/// What is to be compiled, in Python's words.
namespace tc::python {

/// The fields of a Request by name: entry, inputs, outputs (arrays, TensorSpecs or None), sizes, scalars, backend,
/// device, options, mapping. Those that are absent or None keep their defaults.
api::Request request_of(nanobind::dict fields);

/// "cpu", "cuda" or "sim". Throws ValueError.
api::Backend backend_of(const std::string& name);

/// The same fields of a request: those that a call decides.
nanobind::dict fields_of(const api::Request& request);

}  // namespace tc::python
