#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace tc {

/// "1 dimension", "2 dimensions".
inline std::string plural(int64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace tc
