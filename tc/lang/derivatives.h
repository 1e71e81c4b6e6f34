#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tc::lang {

/// The partial derivatives of an intrinsic of floats, one for each argument, as texts; "" where it is 0 wherever it
/// exists (`floor`), or where the argument is an integer. `arguments` are texts that need no parentheses; `type` is the
/// name of the function's type, which constants that float32 does not hold are cast to.
///     atan2 of y(i), x(i)   ==>   (x(i) / (y(i) * y(i) + x(i) * x(i))), (-y(i) / (y(i) * y(i) + x(i) * x(i)))
/// None for a function whose derivative the language cannot express, and for those that choose among their arguments.
std::optional<std::vector<std::string>> partial_derivatives(const std::string& name,
                                                            const std::vector<std::string>& arguments,
                                                            const std::string& type);

}  // namespace tc::lang
