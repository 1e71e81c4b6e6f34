#include "tc/cuda/driver.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "tc/cuda/device.h"
#include "tc/cuda/library.h"

namespace tc::cuda {
namespace {

std::string message_of(const Error& error) { return error.diagnostics()[0].message; }

TEST(Library, SaysWhereItLooked) {
  const Result<Library> none = Library::open("NVRTC", {"/nowhere/a.so", "libnowhere.so.7"});
  ASSERT_FALSE(none);
  EXPECT_EQ(message_of(none.error()), "NVRTC is not found (looked for /nowhere/a.so, libnowhere.so.7)");
}

TEST(Library, AFileThatDoesNotLoadIsWorthASentence) {
  const std::string file = std::string(TC_SOURCE_DIR) + "/CMakeLists.txt";
  const Result<Library> none = Library::open("NVRTC", {"/nowhere/a.so", file});
  ASSERT_FALSE(none);
  EXPECT_TRUE(message_of(none.error()).starts_with("NVRTC cannot be loaded: " + file + ": "))
      << message_of(none.error());
}

TEST(Library, AMissingFunctionIsNamed) {
  const Result<Library> libc = Library::open("the C library", {"libc.so.6"});
  ASSERT_TRUE(libc);
  int (*abs_of)(int) = nullptr;
  ASSERT_TRUE(libc->bind(abs_of, "abs"));
  EXPECT_EQ(abs_of(-3), 3);
  const Result<void> missing = libc->bind(abs_of, "cuInit");
  ASSERT_FALSE(missing);
  EXPECT_EQ(message_of(missing.error()), "the C library (libc.so.6) has no function 'cuInit': it is too old");
}

TEST(Status, AnOldDriverIsNamedWhereCodeDoesNotLoad) {
  EXPECT_EQ(version_remark(12040, {13, 0}), "; the driver is made for CUDA 12.4, the code by NVRTC 13.0");
  EXPECT_EQ(version_remark(12040, {12, 9}), "");  // minor versions are compatible
  EXPECT_EQ(version_remark(13000, {12, 9}), "");
}

TEST(Status, TheSentences) {
  EXPECT_EQ(status_text(1, "CUDA_ERROR_INVALID_VALUE", "invalid argument", "launching 'k'"),
            "launching 'k': CUDA_ERROR_INVALID_VALUE (invalid argument)");
  EXPECT_EQ(status_text(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered", "copying"),
            "copying: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered); a kernel that ran before "
            "has failed, and the device's context is lost to this process");
  EXPECT_EQ(status_text(400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle", "launching 'k'"),
            "launching 'k': CUDA_ERROR_INVALID_HANDLE (invalid resource handle); does the stream belong to another "
            "device or context?");
  EXPECT_EQ(status_text(12345, "", "", "launching 'k'"), "launching 'k': the driver's error 12345");
  EXPECT_TRUE(is_sticky(719));
  EXPECT_FALSE(is_sticky(2));  // out of memory
}

TEST(Driver, WithoutOneEverythingSaysSo) {
  const Result<const Driver*> driver = Driver::get();
  if (driver) GTEST_SKIP() << "this machine has a driver: what is said without one is not tested";
  const std::string message = message_of(driver.error());
  EXPECT_TRUE(message.starts_with("NVIDIA's driver")) << message;
  EXPECT_EQ(message_of(devices().error()), message);
  EXPECT_EQ(message_of(Context::open(0).error()), message);
}

TEST(Device, ArchitectureToCompileFor) {
  DeviceInfo device;
  device.capability = 86;
  EXPECT_EQ(to_string(device.arch()), "sm_86");
  device.capability = 90;
  EXPECT_EQ(to_string(device.arch()), "sm_90a");
}

}  // namespace
}  // namespace tc::cuda
