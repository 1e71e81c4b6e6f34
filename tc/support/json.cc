#include "tc/support/json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>

namespace tc {
namespace {

/// How many bytes a character of UTF-8 has that begins here; 0 if none does.
size_t length_of_character(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3 : 4;
  if (first < 0xC2 || first > 0xF4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0u) != 0x80) return 0;
  }
  // Longer than need be, a half of a pair of UTF-16, or beyond the last character.
  const unsigned second = byte(1);
  if (first == 0xE0 && second < 0xA0) return 0;
  if (first == 0xED && second >= 0xA0) return 0;
  if (first == 0xF0 && second < 0x90) return 0;
  if (first == 0xF4 && second >= 0x90) return 0;
  return length;
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const size_t length = length_of_character(text);
    const char c = text[0];
    if (length == 0) {
      quoted += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      quoted += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return quoted + '"';
}

std::string json_object(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string text;
  for (const auto& [name, value] : members) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", json_string(name), value);
  }
  return "{" + text + "}";
}

std::string json_list(const std::vector<std::string>& values) {
  return values.empty() ? "[]\n" : fmt::format("[{}]\n", fmt::join(values, ",\n "));
}

std::string json_array(const std::vector<std::string>& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

}  // namespace tc
