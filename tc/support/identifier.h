#pragma once

#include <cctype>
#include <string>
#include <string_view>

namespace tc {

/// A name as an identifier of C, for symbols: "softmax<float16>" becomes "softmax_float16".
inline std::string identifier_of(std::string_view name) {
  std::string identifier;
  for (const char c : name) {
    if (c == '>') continue;
    identifier += c == '_' || std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }
  return identifier;
}

}  // namespace tc
