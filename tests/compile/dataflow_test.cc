#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

namespace tc::compile {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path << " cannot be read";
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// docs/dataflow.md quotes golden files: a comment names the file, the block after it stands there line by line.
TEST(Dataflow, QuotesGoldenFiles) {
  const std::filesystem::path root = TC_SOURCE_DIR;
  const std::string page = read(root / "docs/dataflow.md");
  const std::regex quote("<!-- (tests/golden/[^ ]+) -->\n```text\n([^`]*)```");
  int quotes = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), quote), end; it != end; ++it, ++quotes) {
    const std::string golden = fmt::format("\n{}", read(root / (*it)[1].str()));
    const std::string quoted = fmt::format("\n{}", (*it)[2].str());
    EXPECT_NE(golden.find(quoted), std::string::npos)
        << (*it)[1] << " does not hold what docs/dataflow.md quotes from it:" << quoted;
  }
  EXPECT_GE(quotes, 5);
}

}  // namespace
}  // namespace tc::compile
