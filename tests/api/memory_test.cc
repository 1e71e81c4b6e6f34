#include "tc/api/memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/common/temporary_folder.h"

namespace tc::api {
namespace {

/// A machine's files.
class Memory : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  int64_t available() const { return available_memory_bytes(root_.path()); }

  const testing::TemporaryFolder root_;
};

TEST_F(Memory, IsWhatTheMachineHasFree) {
  EXPECT_EQ(available(), INT64_MAX);
  write("/proc/meminfo", "MemTotal: 100 kB\nMemAvailable:      64 kB\nBuffers: 3 kB\n");
  EXPECT_EQ(available(), 64 * 1024);
  write("/sys/fs/cgroup/memory.max", "max\n");
  write("/sys/fs/cgroup/memory.current", "1000\n");
  EXPECT_EQ(available(), 64 * 1024);
}

/// Of what a group uses, the pages of files that it has read are dropped for what is allocated.
TEST_F(Memory, IsWhatTheControlGroupHasLeft) {
  write("/proc/meminfo", "MemAvailable: 64 kB\n");
  write("/sys/fs/cgroup/memory.max", "10000\n");
  write("/sys/fs/cgroup/memory.current", "9000\n");
  EXPECT_EQ(available(), 1000);
  write("/sys/fs/cgroup/memory.stat",
        "anon 2000\ninactive_anon 500\nactive_file 3000\ninactive_file 4000\nslab_reclaimable 500\n");
  EXPECT_EQ(available(), 8500);
  write("/sys/fs/cgroup/memory.current", "12000\n");
  EXPECT_EQ(available(), 5500);
}

/// Under load the statistics come later than the use.
TEST_F(Memory, IsReadAgainWhereNothingSeemsLeft) {
  int readings = 0;
  EXPECT_EQ(settled_bytes([&] { return ++readings < 3 ? 0 : 7500; }), 7500);
  EXPECT_EQ(readings, 3);
  EXPECT_EQ(settled_bytes([&] { return 0; }), INT64_MAX);
}

TEST_F(Memory, IsNotKnownWhereNothingSeemsLeftForLong) {
  write("/sys/fs/cgroup/memory.max", "10000\n");
  write("/sys/fs/cgroup/memory.current", "12000\n");
  EXPECT_EQ(available(), INT64_MAX);
  write("/proc/meminfo", "MemAvailable: 64 kB\n");
  EXPECT_EQ(available(), 64 * 1024);
}

TEST_F(Memory, OfTheFirstVersionOfControlGroups) {
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "10000\n");
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "9000\n");
  write("/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 4000\ntotal_active_file 500\n");
  EXPECT_EQ(available(), 5500);
}

}  // namespace
}  // namespace tc::api
