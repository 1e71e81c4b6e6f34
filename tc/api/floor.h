#pragma once

#include "tc/compile/pipeline.h"

namespace tc::api {

/// The least that one run of a specialised def can take on the machine at hand, in microseconds: least_work() at rates
/// that no processor of today exceeds. So a time below it was not measured. 0: not known.
double floor_us(const ir::Program& program, const compile::Settings& settings);

}  // namespace tc::api
