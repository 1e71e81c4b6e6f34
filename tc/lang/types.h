#pragma once

#include <cstdint>

#include "tc/support/scalar_type.h"

namespace tc::lang {

/// T1: the type at which two numbers meet. The float if one is a float; the wider float, and float32 for bfloat16
/// with float16; the wider integer, signed if either is signed and then wide enough for both where int64 is.
/// Neither is bool.
ScalarType meet(ScalarType a, ScalarType b);

/// T2: whether a value becomes `to` without a cast in the source: the types meet at `to`, or are both bool.
bool widens(ScalarType from, ScalarType to);

}  // namespace tc::lang
