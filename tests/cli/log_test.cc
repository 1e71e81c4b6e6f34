#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <sstream>

#include "tests/cli/process.h"

namespace tc::cli {
namespace {

using testing::Folder;
using testing::Output;

/// The tool's log, in a folder with scaled.tc.
class ToolLog : public ::testing::Test {
 protected:
  ToolLog() { folder_.write("scaled.tc", "def scaled(float(N) a) -> (b) { b(n) = a(n) * 2.0 }"); }

  /// Standard error of a good run; each line's time, thread and place are cut off: "I engine: compiled ...".
  std::vector<std::string> lines_of(std::vector<std::string> flags) {
    std::vector<std::string> words = {"run", "scaled.tc", "--sizes=N=8", "--output_dir=", "--cache=k.tcc"};
    words.insert(words.end(), flags.begin(), flags.end());
    const Output output = folder_.run(words);
    EXPECT_EQ(output.code, 0) << output.err;
    return short_lines(output.err);
  }

  static std::vector<std::string> short_lines(const std::string& log) {
    static const std::regex kPrefix(R"(^([IWE])\d{8} \d\d:\d\d:\d\d\.\d+ +\d+ (\w+)\.cc:\d+\] )"),
        kTime(R"(\d+\.\d+ ms)");
    std::vector<std::string> lines;
    std::istringstream text(log);
    for (std::string line; std::getline(text, line);) {
      lines.push_back(std::regex_replace(std::regex_replace(line, kPrefix, "$1 $2: "), kTime, "T ms"));
    }
    return lines;
  }

  static bool has(const std::vector<std::string>& lines, const std::string& line) {
    return std::ranges::find(lines, line) != lines.end();
  }

  Folder folder_;
};

TEST_F(ToolLog, IsQuietByDefault) {
  EXPECT_EQ(lines_of({}), std::vector<std::string>());
  EXPECT_EQ(folder_.files(), (std::vector<std::string>{"k.tcc", "scaled.tc"}));
}

TEST_F(ToolLog, GoesToStandardErrorByLevels) {
  const std::string compiled = "I engine: compiled 'scaled' for N=8 on cpu in T ms";
  EXPECT_EQ(lines_of({"--logtostderr"}), std::vector<std::string>{compiled});
  folder_.run({"cache", "prune", "k.tcc", "--older_than_days=0"});
  std::filesystem::remove(folder_.path("k.tcc"));
  const std::vector<std::string> first = lines_of({"--v=1"});
  EXPECT_TRUE(has(first, compiled));
  EXPECT_TRUE(has(first, "I pipeline: scaled: pass object took T ms"));
  EXPECT_TRUE(has(first, "I engine: 'scaled' for N=8 on cpu: not in the cache k.tcc"));
  const std::vector<std::string> second = lines_of({"-v", "2"});
  EXPECT_FALSE(has(second, compiled));
  EXPECT_TRUE(has(second, "I engine: 'scaled' for N=8 on cpu: in the cache k.tcc"));
  EXPECT_TRUE(std::ranges::any_of(second, [](const std::string& line) {
    return line.starts_with("I kernel_store: the cache k.tcc has a kernel of 'scaled' for 8 on ");
  }));
}

TEST_F(ToolLog, ModulesHaveLevelsOfTheirOwn) {
  for (const char* flag : {"--vmodule=engine=1", "--vmodule=eng*=1,pipeline=0", "--vmodule=pipeline=0,*=1"}) {
    std::filesystem::remove(folder_.path("k.tcc"));
    const std::vector<std::string> lines = lines_of({flag});
    EXPECT_EQ(lines, (std::vector<std::string>{"I engine: checked 'scaled.tc' in T ms; its defs: scaled",
                                               "I engine: 'scaled' for N=8 on cpu: not in the cache k.tcc",
                                               "I engine: compiled 'scaled' for N=8 on cpu in T ms"}))
        << flag;
  }
}

TEST_F(ToolLog, LeastLevelDropsMessages) {
  EXPECT_EQ(lines_of({"--v=1", "--minloglevel=1"}), std::vector<std::string>());
}

TEST_F(ToolLog, GoesToFilesOfAFolder) {
  std::filesystem::create_directory(folder_.path("logs"));
  EXPECT_EQ(lines_of({"--v=1", "--log_dir=logs"}), std::vector<std::string>());
  const std::vector<std::string> lines = short_lines(folder_.read("logs/tensorc.INFO"));
  EXPECT_TRUE(has(lines, "I engine: compiled 'scaled' for N=8 on cpu in T ms"));
  const Output none = folder_.run({"run", "scaled.tc", "--sizes=N=8", "--output_dir=", "--log_dir=nowhere"});
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.err, "error: '--log_dir' is 'nowhere', which is no folder\n");
}

TEST_F(ToolLog, ASearchAndItsWorkers) {
  const Output output = folder_.run({"tune", "scaled.tc", "--sizes=N=8", "--generations=1", "--population=1",
                                     "--vmodule=tun*=1,worker_pool=1,pipeline=1"});
  ASSERT_EQ(output.code, 0) << output.err;
  const std::vector<std::string> lines = short_lines(output.err);
  EXPECT_TRUE(
      has(lines, "I tune: search for options of 'scaled' begins: up to 2 candidates, 0 of them measured before"));
  const auto some = [&](const std::string& pattern) {
    return std::ranges::any_of(lines,
                               [&](const std::string& line) { return std::regex_match(line, std::regex(pattern)); });
  };
  EXPECT_TRUE(some(R"(I tuner: candidate 1 of 2: done in \d+\.\d+ us; its options: the compiler's own)")) << output.err;
  EXPECT_TRUE(some(R"(I worker_pool: worker \d+: I.* pipeline\.cc:\d+\] scaled: pass object took T ms)")) << output.err;
  EXPECT_TRUE(some(R"(I tune: search for options of 'scaled' ends: \d candidates, the best .* by default)"))
      << output.err;
}

TEST_F(ToolLog, HelpListsItsFlags) {
  const Output output = folder_.run({"help", "logging"});
  EXPECT_EQ(output.code, 0);
  for (const char* flag : {"v=0", "vmodule=", "minloglevel=0", "logtostderr", "log_dir="}) {
    EXPECT_NE(output.out.find("\n  --" + std::string(flag) + "\n"), std::string::npos) << flag;
  }
  EXPECT_EQ(folder_.run({"run", "scaled.tc", "--vmodul=2"}).err,
            "error: 'tensorc run' has no flag '--vmodul'; did you mean '--vmodule'?\n");
}

}  // namespace
}  // namespace tc::cli
