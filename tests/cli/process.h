#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

/// The built tool as a process, in a folder of its own.
namespace tc::testing {

struct Output {
  int code = -1;
  std::string out;
  std::string err;
};

/// A folder that goes away with its test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tensorc-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Names of all files, sorted; those in folders as "folder/name".
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      if (entry.is_regular_file()) names.push_back(std::filesystem::relative(entry.path(), path_).string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  /// Runs the tool here.
  Output run(const std::vector<std::string>& words, const std::string& input = "") const {
    const Folder pipes;  // not in the folder that tests look at
    pipes.write("in", input);
    const pid_t child = ::fork();
    if (child == 0) {
      if (::chdir(path_.c_str()) != 0 || !std::freopen(pipes.path("in").c_str(), "r", stdin) ||
          !std::freopen(pipes.path("out").c_str(), "w", stdout) ||
          !std::freopen(pipes.path("err").c_str(), "w", stderr)) {
        ::_exit(127);
      }
      std::vector<char*> arguments = {const_cast<char*>(TC_TOOL)};
      for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
      arguments.push_back(nullptr);
      ::execv(TC_TOOL, arguments.data());
      ::_exit(127);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), pipes.read("out"), pipes.read("err")};
  }

 private:
  std::filesystem::path path_;
};

}  // namespace tc::testing
