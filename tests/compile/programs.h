#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tc/compile/pipeline.h"

namespace tc::testing {

inline std::string read_whole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A compilation of a text, before any pass.
inline compile::Compilation compilation_of(const std::string& text, const std::string& name = "test.tc") {
  compile::Compilation compilation;
  compilation.source = std::make_shared<const Source>(name, text);
  return compilation;
}

/// Settings for sizes and compiled-in scalars, a target and a number of threads: the same on every machine.
inline compile::Settings settings_for(const std::map<std::string, int64_t>& sizes,
                                      const std::map<std::string, int64_t>& scalars = {}) {
  compile::Settings settings;
  settings.given.sizes = sizes;
  settings.given.scalars = scalars;
  settings.target = "x86-64-linux-avx-avx2-f16c-fma-sse41";
  settings.threads = 2;
  settings.verify = true;
  return settings;
}

}  // namespace tc::testing
