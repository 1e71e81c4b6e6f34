#include "tc/cuda/library.h"

#include <dlfcn.h>

#include <filesystem>

namespace tc::cuda {

Result<Library> Library::open(const std::string& what, const std::vector<std::string>& candidates) {
  std::string tried;
  std::string reason;
  for (const std::string& candidate : candidates) {
    if (void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) return Library(what, candidate, handle);
    const char* message = dlerror();
    // That a file is missing is what the list says; that one is there and does not load is worth a sentence.
    std::error_code ignored;
    if (reason.empty() && message && std::filesystem::exists(candidate, ignored)) reason = message;
    tried += (tried.empty() ? "" : ", ") + candidate;
  }
  if (!reason.empty()) return fail("{} cannot be loaded: {}", what, reason);
  return fail("{} is not found (looked for {})", what, tried);
}

void* Library::find(const char* symbol) const { return dlsym(handle_, symbol); }

}  // namespace tc::cuda
