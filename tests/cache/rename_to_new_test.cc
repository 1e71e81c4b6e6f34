#include "tc/cache/rename_to_new.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "tests/cache/values.h"

namespace {

/// What the file system under test cannot do.
struct Lacks {
  int link = 0;    ///< errno of each hard link; 0: it is made
  int rename = 0;  ///< of each rename that replaces nothing
} lacks;

}  // namespace

// In this program these stand before those of the C library.
extern "C" int link(const char* from, const char* to) noexcept {
  if (lacks.link != 0) return errno = lacks.link, -1;
  return static_cast<int>(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
extern "C" int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  if (lacks.rename != 0) return errno = lacks.rename, -1;
  return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

namespace tc::cache::test {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// With what a file system may lack: nothing, hard links (FAT), such renames (NFS), both.
class RenameToNew : public ::testing::TestWithParam<Lacks> {
 protected:
  RenameToNew() { lacks = GetParam(); }
  ~RenameToNew() override { lacks = {}; }
};
INSTANTIATE_TEST_SUITE_P(Lacking, RenameToNew,
                         ::testing::Values(Lacks{}, Lacks{EPERM, 0}, Lacks{0, EINVAL}, Lacks{EPERM, EINVAL}));

TEST_P(RenameToNew, ReplacesNothing) {
  const Folder folder;
  const std::string from = folder.path("from"), to = folder.path("to");
  std::ofstream(from) << "first";
  ASSERT_TRUE(rename_to_new(from, to));
  EXPECT_EQ(text_of(to), "first");
  EXPECT_FALSE(std::filesystem::exists(from));
  std::ofstream(from) << "second";
  EXPECT_EQ(rename_to_new(from, to).error().to_string(), "error: the file " + to + " cannot be made: File exists\n");
  EXPECT_EQ(text_of(to), "first");
  EXPECT_EQ(text_of(from), "second");
}

TEST_P(RenameToNew, SaysWhyItCannot) {
  const Folder folder;
  const std::string from = folder.path("from"), to = folder.path("no/folder");
  std::ofstream(from) << "text";
  EXPECT_EQ(rename_to_new(from, to).error().to_string(),
            "error: the file " + to + " cannot be made: No such file or directory\n");
  EXPECT_EQ(text_of(from), "text");
  // Where the last way fails half way, the name is free again.
  EXPECT_FALSE(rename_to_new(folder.path("missing"), folder.path("to")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("to")));
}

TEST_P(RenameToNew, Exports) {
  const Folder folder;
  auto cache = value_of(Cache::open(folder.path("c")));
  ASSERT_TRUE(cache->put(key_of(0), entry_of(0)));
  const std::string path = folder.path("exported");
  ASSERT_TRUE(cache->export_to(path, {}));
  EXPECT_FALSE(cache->export_to(path, {}));
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0444));
  EXPECT_TRUE(value_of(value_of(Cache::open(path, {.mode = Mode::kReadOnly}))->find(key_of(0))));
  const auto files = std::filesystem::directory_iterator(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 2);
}

}  // namespace
}  // namespace tc::cache::test
