#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tc/support/result.h"

/// Tests of error messages, word for word. A file tests/errors/<layer>/<name>.tc holds a program with errors; lines
/// that begin with `#|` are comments to the compiler and, one after the other, the text it must print:
///
///     def f(float(N) A) -> (O) {
///       O(i) = A(i, j)
///     #| f.tc:2:10: error: 'A' has 1 dimension but is indexed with 2
///     #|       O(i) = A(i, j)
///     #|              ^~~~~~~
///     ...
///
/// A layer's test calls check_error_files with a function that compiles up to that layer. With TC_UPDATE_ERRORS in the
/// environment the expectations are written instead, each under its line; read the difference before keeping it.
namespace tc::testing {

/// Compiles a source as far as the layer goes; the error, if there is one.
using CompileFails = std::function<std::optional<Error>(SourcePtr)>;

inline constexpr std::string_view kExpectationMark = "#|";

inline std::vector<std::filesystem::path> tc_files(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(TC_SOURCE_DIR) / folder)) {
    if (entry.path().extension() == ".tc") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline SourcePtr source_of(const std::filesystem::path& path) {
  return std::make_shared<const Source>(path.filename().string(), read_text(path));
}

inline void compare_error_file(const std::filesystem::path& path, const CompileFails& compile) {
  std::string expected;
  for (const std::string& line : lines_of(read_text(path))) {
    if (!line.starts_with(kExpectationMark)) continue;
    const size_t text = std::min(line.size(), kExpectationMark.size() + 1);
    expected += line.substr(text) + "\n";
  }
  const auto error = compile(source_of(path));
  ASSERT_TRUE(error.has_value()) << path << " compiles";
  std::string printed;
  for (const std::string& line : lines_of(error->to_string())) {
    const size_t end = line.find_last_not_of(' ');
    printed += (end == std::string::npos ? "" : line.substr(0, end + 1)) + "\n";
  }
  EXPECT_EQ(printed, expected) << path;
}

/// Writes the expectations: they move the lines below them, so until nothing changes.
inline void update_error_file(const std::filesystem::path& path, const CompileFails& compile) {
  std::map<int, std::vector<std::string>> under;  // by line without expectations, from 1
  for (int round = 0; round < 10; ++round) {
    std::string text;
    std::vector<int> plain_line = {0};  // of each line of the text
    int plain = 0;
    for (const std::string& line : lines_of(read_text(path))) {
      if (line.starts_with(kExpectationMark)) continue;
      ++plain;
      text += line + "\n";
      plain_line.push_back(plain);
      const auto block = under.find(plain);
      if (block == under.end()) continue;
      for (const std::string& expected : block->second) {
        text += expected + "\n";
        plain_line.push_back(plain);
      }
    }
    std::ofstream(path, std::ios::binary) << text;
    const auto error = compile(source_of(path));
    ASSERT_TRUE(error.has_value()) << path << " compiles";
    std::map<int, std::vector<std::string>> now;
    for (const Diagnostic& diagnostic : error->diagnostics()) {
      const size_t line = diagnostic.range ? error->source()->position(diagnostic.range->begin).line : 1;
      auto& block = now[line < plain_line.size() ? plain_line[line] : plain];
      for (const std::string& printed : lines_of(Error(error->source(), {diagnostic}).to_string())) {
        const size_t end = printed.find_last_not_of(' ');
        block.push_back(
            fmt::format("{} {}", kExpectationMark, end == std::string::npos ? "" : printed.substr(0, end + 1)));
      }
    }
    if (now == under) return;
    under = std::move(now);
  }
  FAIL() << path << ": the expectations do not settle";
}

/// Checks every file of tests/errors/<layer>.
inline void check_error_files(const std::string& layer, const CompileFails& compile) {
  const auto files = tc_files("tests/errors/" + layer);
  EXPECT_FALSE(files.empty());
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename().string());
    if (std::getenv("TC_UPDATE_ERRORS")) update_error_file(path, compile);
    compare_error_file(path, compile);
  }
}

}  // namespace tc::testing
