#include "tc/cpu/perf_map.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/cpu/kernels.h"

namespace tc::cpu {
namespace {

struct Range {
  uintptr_t begin = 0, end = 0;
  bool holds(const Range& other) const { return begin <= other.begin && other.end <= end; }
};

/// Pages of this process that may be executed and are no file's.
std::vector<Range> executable_memory() {
  std::vector<Range> ranges;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    Range range;
    char dash = 0;
    std::string access, offset, device, inode, path;
    words >> std::hex >> range.begin >> dash >> range.end >> access >> offset >> device >> inode >> path;
    if (access.find('x') != std::string::npos && path.empty()) ranges.push_back(range);
  }
  return ranges;
}

class PerfMap : public ::testing::Test {
 protected:
  PerfMap() {
    std::filesystem::remove(path_);
    ::setenv("TENSORC_PERF_MAP", "1", 1);
  }
  ~PerfMap() override {
    std::filesystem::remove(path_);
    ::unsetenv("TENSORC_PERF_MAP");
  }

  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// By name. "7f00 1c tensorc: f [N=4]" is a line.
  std::map<std::string, Range> code() const {
    std::map<std::string, Range> code;
    std::istringstream lines(text());
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      uintptr_t begin = 0, bytes = 0;
      words >> std::hex >> begin >> bytes;
      std::string name;
      std::getline(words >> std::ws, name);
      EXPECT_TRUE(code.emplace(name, Range{begin, begin + bytes}).second) << name;
    }
    return code;
  }

  static std::shared_ptr<const Loaded> load(const Kernel& kernel, const std::string& instance) {
    Result<Object> object = compile_object(kernel);
    EXPECT_TRUE(object);
    return *load_object(*object, instance);
  }

  const std::string path_ = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
};

TEST_F(PerfMap, NamesTheFunctionsOfEachKernel) {
  Kernel kernel = matmul_kernel(12, 32, 8);
  kernel.name = "tc_mm";
  const auto one = load(kernel, "K=8, M=12, N=32"), other = load(kernel, "K=9, M=12, N=32");
  const std::map<std::string, Range> named = code();
  const std::vector<Range> memory = executable_memory();
  for (const char* name : {"tensorc: mm [K=8, M=12, N=32]", "tensorc: mm.entry [K=8, M=12, N=32]",
                           "tensorc: mm.loop0 [K=8, M=12, N=32]", "tensorc: mm.loop0 [K=9, M=12, N=32]"}) {
    ASSERT_TRUE(named.contains(name)) << name << "\n" << text();
  }
  for (const auto& [name, range] : named) {
    EXPECT_LT(range.begin, range.end) << name;
    EXPECT_TRUE(std::ranges::any_of(memory, [&](const Range& pages) { return pages.holds(range); })) << name;
    for (const auto& [other_name, other_range] : named) {
      const bool apart = range.end <= other_range.begin || other_range.end <= range.begin;
      EXPECT_TRUE(name == other_name || apart) << name << " and " << other_name;
    }
  }
}

TEST_F(PerfMap, IsForThoseWhoAskForIt) {
  for (const char* value : {"", "0"}) {
    ::setenv("TENSORC_PERF_MAP", value, 1);
    load(matmul_kernel(12, 32, 8), "");
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
  ::unsetenv("TENSORC_PERF_MAP");
  load(matmul_kernel(12, 32, 8), "");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(PerfMap, KeepsWhatOthersHaveWritten) {
  std::ofstream(path_) << "1000 10 of another compiler\n";
  load(matmul_kernel(12, 32, 8), "");
  EXPECT_TRUE(code().contains("of another compiler"));
  EXPECT_GT(code().size(), 1U);
}

TEST_F(PerfMap, ReplacesThatOfAnEarlierProcess) {
  std::ofstream(path_) << "1000 10 of a process that had this number\n";
  const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), long_ago, 0), 0);
  load(matmul_kernel(12, 32, 8), "");
  EXPECT_FALSE(code().contains("of a process that had this number"));
  EXPECT_GT(code().size(), 0U);
}

TEST_F(PerfMap, FollowsNoLink) {
  const std::string target = path_ + ".target";
  std::ofstream(target) << "precious";
  std::filesystem::create_symlink(target, path_);
  EXPECT_NE(load(matmul_kernel(12, 32, 8), ""), nullptr);
  EXPECT_EQ(std::filesystem::file_size(target), 8U);
  std::filesystem::remove(target);
}

}  // namespace
}  // namespace tc::cpu
