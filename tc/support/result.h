#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "tc/support/error.h"

namespace tc {

/// return fail("the file '{}' has {} bytes", name, size);
template <typename... Args>
tl::unexpected<Error> fail(fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error(fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace tc

/// Evaluates a Result; returns its error from the enclosing function, or goes on with `name` bound to the value.
#define TC_TRY(name, expression)                                                   \
  auto name##_or_error = (expression);                                             \
  if (!name##_or_error) return tl::unexpected(std::move(name##_or_error).error()); \
  auto name = std::move(*name##_or_error)

/// The same for a Result<void>.
#define TC_TRY_VOID(expression)                                                  \
  do {                                                                           \
    auto void_or_error = (expression);                                           \
    if (!void_or_error) return tl::unexpected(std::move(void_or_error).error()); \
  } while (false)
