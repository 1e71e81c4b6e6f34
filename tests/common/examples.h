#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace tc::testing {

/// The repository's examples, sorted by name.
inline std::vector<std::filesystem::path> examples() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(TC_SOURCE_DIR) / "examples")) {
    if (entry.path().extension() == ".tc") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// A file's contents; one that cannot be read fails the test.
inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace tc::testing
