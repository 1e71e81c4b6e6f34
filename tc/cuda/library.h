#pragma once

#include <span>
#include <string>
#include <vector>

#include "tc/support/result.h"

namespace tc::cuda {

/// A shared library opened at run time; it stays open for the life of the process.
class Library {
 public:
  /// The first of `candidates` (paths, or names that the dynamic linker looks up) that opens. The error names them
  /// all, with what the linker said of the first that exists.
  static Result<Library> open(const std::string& what, const std::vector<std::string>& candidates);

  /// Null where the library has no such function.
  void* find(const char* symbol) const;
  /// Sets `function` to the symbol, or says which is missing.
  template <typename Function>
  Result<void> bind(Function*& function, const char* symbol) const {
    function = reinterpret_cast<Function*>(find(symbol));
    if (!function) return fail("{} ({}) has no function '{}': it is too old", what_, path_, symbol);
    return {};
  }
  const std::string& path() const { return path_; }

 private:
  Library(std::string what, std::string path, void* handle)
      : what_(std::move(what)), path_(std::move(path)), handle_(handle) {}

  std::string what_;
  std::string path_;
  void* handle_;
};

}  // namespace tc::cuda
