#pragma once

#include <string>
#include <vector>

#include "tc/cache/cache.h"
#include "tc/support/json.h"

/// What `tensorc cache` prints.
namespace tc::cli {

/// Lines of columns, each as wide as its longest cell; numbers are set to the right. The first row is the heading.
std::string table(const std::vector<std::vector<std::string>>& rows);

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
