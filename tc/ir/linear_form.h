#pragma once

#include <Halide.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tc::ir {

/// constant + the sum of coefficient * variable. Variables with coefficient zero are left out.
struct LinearForm {
  std::map<std::string, int64_t> coefficients;
  int64_t constant = 0;
};

/// The expression as a linear form over Variables, or nothing if it is not one.
std::optional<LinearForm> linear_form(const Halide::Expr& expr);

/// a - b.
LinearForm difference(const LinearForm& a, const LinearForm& b);

}  // namespace tc::ir
