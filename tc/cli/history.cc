#include "tc/cli/history.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "tc/cli/files.h"
#include "tc/cli/tune_report.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

using Row = std::vector<std::string>;

constexpr size_t kMaxHistoryBytes = size_t{64} << 20;
constexpr size_t kProblem = 0, kOutcome = 3, kTime = 4, kOptions = 10;

/// The rows of a CSV (RFC 4180).
std::vector<Row> rows_of(const std::string& text) {
  std::vector<Row> rows;
  Row row{""};
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      if (quoted && at + 1 < text.size() && text[at + 1] == '"') {
        row.back() += text[++at];
      } else {
        quoted = !quoted;
      }
    } else if (!quoted && c == ',') {
      row.emplace_back();
    } else if (!quoted && c == '\n') {
      rows.push_back(std::move(row));
      row = {""};
    } else {
      row.back() += c;
    }
  }
  if (row.size() > 1 || !row[0].empty()) rows.push_back(std::move(row));
  return rows;
}

/// A problem with its sizes and scalars in alphabetical order: the flags may name them in any.
std::string sorted(const std::string& problem) {
  std::istringstream words(problem);
  std::string result;
  for (std::string word; words >> word;) {
    std::vector<std::string> values;
    std::istringstream list(word);
    for (std::string value; std::getline(list, value, ',');) values.push_back(value);
    std::ranges::sort(values);
    result += fmt::format("{} ", fmt::join(values, ","));
  }
  return result;
}

}  // namespace

Result<std::vector<api::Explanation::Measurement>> read_history(const std::string& path, const std::string& problem) {
  TC_TRY(text, read_file(path, kMaxHistoryBytes));
  const std::vector<Row> rows = rows_of(text);
  const size_t columns = rows_of(history_header()).at(0).size();
  const auto is_short = [&](const Row& row) { return row.size() != columns; };
  if (!text.starts_with(history_header()) || std::ranges::any_of(rows, is_short)) {
    return fail("'{}' is no history of 'tensorc tune --history'", path);
  }
  std::vector<api::Explanation::Measurement> measurements;
  std::vector<std::string> others;
  const std::string wanted = sorted(problem);
  for (size_t r = 1; r < rows.size(); ++r) {
    const Row& row = rows[r];
    if (sorted(row[kProblem]) != wanted) {
      if (std::ranges::find(others, row[kProblem]) == others.end()) others.push_back(row[kProblem]);
      continue;
    }
    double us = 0;
    std::from_chars(row[kTime].data(), row[kTime].data() + row[kTime].size(), us);
    const std::string outcome = row[kOutcome] == "done" ? "ok" : row[kOutcome];
    measurements.push_back({.options = row[kOptions], .device = "", .outcome = outcome, .us = us});
  }
  if (measurements.empty()) {
    return fail("'{}' has no search of '{}'; it has {}", path, problem,
                others.empty() ? "none" : fmt::format("'{}'", fmt::join(others, "', '")));
  }
  return measurements;
}

}  // namespace tc::cli
