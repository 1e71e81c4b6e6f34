#pragma once

#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "tc/api/tc.h"
#include "tc/ir/program.h"

namespace tc::api {

/// A request for a def as bytes: equal for requests that lead to the same kernel, made without the compiler's help. Two
/// that say the same in other words (a size by its name, or by a tensor) may differ. Of a GPU's kernel they tell the
/// context too that the calling thread would have it loaded into.
std::string request_bytes(const Request& request, const ir::Program& program);

/// Kernels by the bytes of their requests, the recently used ones. Thread-safe.
class MemoryCache {
 public:
  explicit MemoryCache(size_t limit_bytes) : limit_(limit_bytes) {}

  std::optional<CompiledKernel> find(const std::string& request);
  /// Makes room by forgetting what has not been used for longest; one that is larger than the limit is not kept.
  void put(const std::string& request, const CompiledKernel& kernel, size_t code_bytes);

 private:
  struct Item {
    std::string request;
    CompiledKernel kernel;
    size_t bytes;
  };
  std::mutex mutex_;
  size_t limit_;
  size_t bytes_ = 0;
  std::list<Item> items_;  ///< most recently used first
  std::unordered_map<std::string_view, std::list<Item>::iterator> places_;
};

}  // namespace tc::api
