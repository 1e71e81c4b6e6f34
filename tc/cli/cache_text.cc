#include "tc/cli/cache_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>

namespace tc::cli {

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      const bool number = !row[c].empty() && row[c].find_first_not_of("0123456789.") == std::string::npos;
      line += number ? fmt::format("{:>{}}  ", row[c], widths[c]) : fmt::format("{:<{}}  ", row[c], widths[c]);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

const char* name_of(cache::Measurement::State state) {
  using State = cache::Measurement::State;
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kRefused:
      return "refused";
    case State::kWrong:
      return "wrong";
    case State::kCrashed:
      return "crashed";
    case State::kTimeLimit:
      return "time limit";
    case State::kTooSlow:
      return "too slow";
  }
  return "";
}

const char* name_of(cache::Backend backend) { return backend == cache::Backend::kCpu ? "cpu" : "cuda"; }

std::vector<std::pair<std::string, std::string>> json_members(const cache::Problem& problem) {
  return {{"program", json_string(problem.program)},
          {"sizes", fmt::format("[{}]", fmt::join(problem.sizes, ", "))},
          {"scalars", fmt::format("[{}]", fmt::join(problem.scalars, ", "))},
          {"strided", problem.strided.empty() ? "false" : "true"},
          {"strict", problem.strict ? "true" : "false"},
          {"check_bounds", problem.check_bounds ? "true" : "false"},
          {"tf32", problem.tf32 ? "true" : "false"},
          {"fast_accumulation", problem.fast_accumulation ? "true" : "false"},
          {"element_aligned", problem.element_aligned ? "true" : "false"},
          {"backend", json_string(name_of(problem.backend))},
          {"target", json_string(problem.target)}};
}

std::string json_of(const cache::Measurement& measurement) {
  return json_object({{"options", json_string(measurement.options)},
                      {"device", json_string(measurement.device)},
                      {"state", json_string(name_of(measurement.state))},
                      {"time_us", fmt::format("{}", measurement.time_us)},
                      {"spread_us", fmt::format("{}", measurement.spread_us)},
                      {"date", fmt::format("{}", measurement.date)},
                      {"compiler", json_string(measurement.compiler)},
                      {"remark", json_string(measurement.remark)}});
}

std::string options_line(const std::string& options) {
  if (options.empty()) return "the compiler's";
  std::string line = options;
  while (line.ends_with('\n')) line.pop_back();
  std::ranges::replace(line, '\n', ' ');
  return line;
}

std::string date_text(int64_t seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

}  // namespace tc::cli
