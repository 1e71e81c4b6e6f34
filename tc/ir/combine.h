#pragma once

#include "tc/ir/program.h"

namespace tc::ir {

/// old_value `assign` value: what an element is after a statement has given it a value. Of a kSet that is the value.
Halide::Expr combine(Assign assign, const Halide::Expr& old_value, const Halide::Expr& value);

}  // namespace tc::ir
