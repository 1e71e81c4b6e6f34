#pragma once

#include <string>
#include <vector>

#include "tc/cache/cache.h"

/// What `tensorc cache` prints.
namespace tc::cli {

/// Lines of columns, each as wide as its longest cell; numbers are set to the right. The first row is the heading.
std::string table(const std::vector<std::vector<std::string>>& rows);

/// A text as a JSON string, with its quotes.
std::string json_string(const std::string& text);

/// {"name": value, ...} of pairs of names and JSON values.
std::string json_object(const std::vector<std::pair<std::string, std::string>>& members);
/// A list of JSON values, one a line.
std::string json_list(const std::vector<std::string>& values);

/// Members of an object that tells all of a problem, of a measurement.
std::vector<std::pair<std::string, std::string>> json_members(const cache::Problem& problem);
std::string json_of(const cache::Measurement& measurement);

/// Options in one line; "the compiler's" for none.
std::string options_line(const std::string& options);

/// "2026-11-21 16:05" in UTC.
std::string date_text(int64_t seconds);

const char* name_of(cache::Measurement::State state);
const char* name_of(cache::Backend backend);

}  // namespace tc::cli
