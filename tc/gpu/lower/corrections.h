#pragma once

#include <Halide.h>

#include "tc/poly/scop.h"

/// Sums that go on while R, a maximum or minimum that their terms read, still changes.
namespace tc::gpu {

/// The correction, as float32, of sums of exp(factor * R) when R changes. 1 if it does not: infinities stay as they
/// are.
Halide::Expr correction(double factor, const Halide::Expr& before, const Halide::Expr& after);

/// What points read as R: a number while R is the identity. Values that were the identity make zeros then, as they do
/// with any greater R.
Halide::Expr as_number(const poly::Statement& reduction, const Halide::Expr& value);

/// What sums are multiplied by at the end, as float32: 1, or NaN where R has stayed the identity, as points are then.
Halide::Expr last_correction(const poly::Statement& reduction, const Halide::Expr& value);

}  // namespace tc::gpu
