#include "tc/cache/rename_to_new.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace tc::cache {
namespace {

/// Takes the name with an empty file, then replaces that. False, and errno, if it cannot.
bool take_and_replace(const char* from, const char* to) {
  const int taken = ::open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (taken < 0) return false;
  ::close(taken);
  if (::rename(from, to) == 0) return true;
  const int error = errno;
  ::unlink(to);
  errno = error;
  return false;
}

}  // namespace

Result<void> rename_to_new(const std::string& from, const std::string& to) {
  // FAT and some network file systems have no hard links, others (NFS) no such rename; a few have neither.
  if (::link(from.c_str(), to.c_str()) == 0) {
    ::unlink(from.c_str());
    return {};
  }
  if (errno != EEXIST && ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno != EEXIST && take_and_replace(from.c_str(), to.c_str())) return {};
  return fail("the file {} cannot be made: {}", to, std::generic_category().message(errno));
}

}  // namespace tc::cache
