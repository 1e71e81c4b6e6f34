#include "tc/api/device_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "tests/common/temporary_folder.h"

namespace tc::api {
namespace {

using options::Backend;

/// The folder for temporary files is another one for the time of a test.
class DeviceLocks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    ::setenv("TMPDIR", folder_.path().c_str(), 1);
  }
  void TearDown() override { before_ ? ::setenv("TMPDIR", before_->c_str(), 1) : ::unsetenv("TMPDIR"); }

  const testing::TemporaryFolder folder_;

 private:
  std::optional<std::string> before_;
};

constexpr std::chrono::milliseconds kShort{20};

TEST_F(DeviceLocks, OneAtATimeForEachDevice) {
  std::optional<DeviceLock> first(std::in_place, Backend::kCuda, 0, kShort);
  EXPECT_TRUE(first->is_held());
  EXPECT_FALSE(DeviceLock(Backend::kCuda, 0, kShort).is_held()) << "who waits too long does without";
  EXPECT_TRUE(DeviceLock(Backend::kCuda, 1, kShort).is_held());
  EXPECT_TRUE(DeviceLock(Backend::kCpu, 0, kShort).is_held());
  first.reset();
  EXPECT_TRUE(DeviceLock(Backend::kCuda, 0, kShort).is_held());
}

TEST_F(DeviceLocks, TheSimulatorHasNone) {
  EXPECT_FALSE(DeviceLock(Backend::kSimulator, 0).is_held());
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(DeviceLocks, WithoutAFolderThereIsNoneAndNoFile) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  ::setenv("TMPDIR", folder_.path("missing").c_str(), 1);
  EXPECT_FALSE(DeviceLock(Backend::kCpu, 0, kShort).is_held());
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "a file in the working directory";
}

}  // namespace
}  // namespace tc::api
