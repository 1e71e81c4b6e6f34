#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// JSON as text. Values are texts that are JSON already.
namespace tc {

/// A text as a JSON string, with its quotes. A byte that is no UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);

/// {"name": value, ...} of pairs of names and JSON values.
std::string json_object(const std::vector<std::pair<std::string, std::string>>& members);

/// A list of JSON values, one a line, and a newline.
std::string json_list(const std::vector<std::string>& values);

/// A list of JSON values in one line.
std::string json_array(const std::vector<std::string>& values);

}  // namespace tc
