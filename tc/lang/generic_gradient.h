#pragma once

#include <functional>
#include <string>

#include "tc/lang/instantiate.h"

namespace tc::lang {

/// Derives the text of the gradient of one instance.
using InstanceGradient = std::function<Result<std::string>(const TypeArguments& types)>;

/// The gradient of a generic def (T7), as the text of a generic def NAME_gradient: the gradients of instances, merged
/// where only a variable's type tells them apart. An instance of it for integers, float32 and float64 is the gradient
/// of the instance; this is checked. For narrower floats it computes in these where the gradient of the instance is
/// wider.
/// Errors: those of the first instance that has a gradient at all; gradients that differ in more than types; a variable
/// that the gradient needs, but that is the type of none of its tensors.
Result<std::string> generic_gradient(const Definition& generic, const InstanceGradient& gradient_of);

}  // namespace tc::lang
