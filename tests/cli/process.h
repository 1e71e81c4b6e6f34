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

#include "tests/common/temporary_folder.h"

/// The built tool as a process, in a folder of its own.
namespace tc::testing {

struct Output {
  int code = -1;
  std::string out;
  std::string err;
};

/// A folder to run the tool in.
class Folder : public TemporaryFolder {
 public:
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
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path())) {
      if (entry.is_regular_file()) names.push_back(std::filesystem::relative(entry.path(), path()).string());
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
      if (::chdir(path().c_str()) != 0 || !std::freopen(pipes.path("in").c_str(), "r", stdin) ||
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
};

}  // namespace tc::testing
