#include "tc/cli/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "tc/cli/npy.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

constexpr size_t kMaxSourceBytes = size_t{64} << 20;

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

/// A name beside `path` that no other process uses at this time.
std::string temporary_beside(const std::string& path) {
  const std::filesystem::path target(path);
  return (target.parent_path() / fmt::format(".{}.{}.tmp", target.filename().string(), ::getpid())).string();
}

/// A folder that was made for files goes again if they do not come.
struct NewFolder {
  std::string path;

  ~NewFolder() {
    std::error_code not_empty;
    if (!path.empty()) std::filesystem::remove(path, not_empty);
  }
};

/// Removes files that are not to stay, whatever way the scope is left.
class Temporaries {
 public:
  ~Temporaries() {
    for (const std::string& path : paths_) ::unlink(path.c_str());
  }
  void add(std::string path) { paths_.push_back(std::move(path)); }
  void keep_all() { paths_.clear(); }

 private:
  std::vector<std::string> paths_;
};

tl::unexpected<Error> cannot(const char* verb, const std::string& path) {
  return fail("cannot {} '{}': {}", verb, path, std::strerror(errno));
}

Result<void> write_to(const std::string& path, const std::string& text) {
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "wb"));
  if (!file) return cannot("create", path);
  if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() || std::fflush(file.get()) != 0) {
    return cannot("write", path);
  }
  return {};
}

}  // namespace

Result<std::string> read_file(const std::string& path, size_t limit) {
  std::unique_ptr<std::FILE, CloseFile> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file) return cannot("open", path);
  std::string bytes;
  char block[1 << 16];
  while (const size_t got = std::fread(block, 1, sizeof block, file.get())) {
    bytes.append(block, got);
    if (bytes.size() > limit) return fail("'{}' has more than {} bytes", path, limit);
  }
  if (std::ferror(file.get())) return cannot("read", path);
  return bytes;
}

Result<SourcePtr> read_source(const std::string& path) {
  TC_TRY(text, read_file(path, kMaxSourceBytes));
  return std::make_shared<const Source>(path == "-" ? "standard input" : path, std::move(text));
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

Result<void> check_printable(const std::string& bytes) {
  if (bytes.find('\0') == std::string::npos || ::isatty(STDOUT_FILENO) != 1) return {};
  return fail("machine code is not for a terminal: '--output=FILE' writes it to a file");
}

Result<void> replace_file(const std::string& path, const std::string& text) {
  struct stat status = {};
  // A terminal, a pipe or a device is written to, and stays what it is.
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return write_to(path, text);
  // Through a link to the file itself, whose mode it keeps.
  std::error_code error;
  const std::filesystem::path resolved = std::filesystem::canonical(path, error);
  const std::string target = error ? path : resolved.string();
  const std::string temporary = temporary_beside(target);
  Temporaries temporaries;
  temporaries.add(temporary);
  TC_TRY_VOID(write_to(temporary, text));
  if (::stat(target.c_str(), &status) == 0) ::chmod(temporary.c_str(), status.st_mode & 07777);
  if (std::rename(temporary.c_str(), target.c_str()) != 0) return cannot("replace", path);
  temporaries.keep_all();
  return {};
}

Result<void> check_replaceable(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) return {};
  const std::string temporary = temporary_beside(path);
  Temporaries temporaries;
  temporaries.add(temporary);
  return write_to(temporary, "") ? Result<void>() : cannot("create", path);
}

Result<void> print_all(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) return fail("cannot write to standard output");
  return {};
}

Result<void> write_tensors(const std::string& folder,
                           const std::vector<std::pair<std::string, const api::Tensor*>>& tensors,
                           const std::string& report) {
  std::error_code error;
  NewFolder new_folder;
  if (std::filesystem::create_directories(folder, error)) new_folder.path = folder;
  if (error) return fail("cannot create the folder '{}': {}", folder, error.message());
  Temporaries temporaries;
  std::vector<std::pair<std::string, std::string>> renames;
  for (const auto& [name, tensor] : tensors) {
    const std::string target = (std::filesystem::path(folder) / (name + ".npy")).string();
    if (std::filesystem::is_directory(target, error)) return fail("cannot replace '{}': it is a folder", target);
    const std::string temporary = temporary_beside(target);
    temporaries.add(temporary);
    TC_TRY_VOID(write_npy(temporary, *tensor));
    renames.emplace_back(temporary, target);
  }
  TC_TRY_VOID(print_all(report));
  for (const auto& [from, to] : renames) {
    if (std::rename(from.c_str(), to.c_str()) != 0) return cannot("replace", to);
  }
  temporaries.keep_all();
  return {};
}

}  // namespace tc::cli
