#pragma once

#include "tc/poly/ranged.h"

/// Index arithmetic with proved ranges, which all code generators share, under the names that this layer uses.
namespace tc::cpu {

using poly::Ranged;

using poly::as_int32;
using poly::as_int64;
using poly::equal;
using poly::floor_div;
using poly::floor_mod;
using poly::less;
using poly::less_equal;
using poly::matched;
using poly::max;
using poly::min;
using poly::ranged;
using poly::unranged;

}  // namespace tc::cpu
