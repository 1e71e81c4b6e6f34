#include "tc/cpu/runtime.h"

#include <math.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>

#include "tc/cpu/math.h"
#include "tc/cpu/thread_pool.h"

namespace tc::cpu {
namespace {

constexpr size_t kAlignment = 64;
/// A thread keeps at most so many free blocks of so many bytes together.
constexpr int kKeptBlocks = 8;
constexpr size_t kKeptBytes = size_t{64} << 20;

/// Beyond any machine's memory: asking for it would be refused, or end the process under a sanitizer.
constexpr size_t kMostBytes = (size_t{1} << 40) - 4096;

/// Stands before each block's bytes.
struct alignas(kAlignment) Header {
  size_t bytes;  // of the block without this header
};

/// The free blocks that a thread keeps, so that a kernel's next run finds its temporaries mapped.
class Scratch {
 public:
  ~Scratch() { trim(); }

  Header* take(size_t bytes) {
    Header** best = nullptr;
    for (Header*& block : blocks_) {
      if (block && block->bytes >= bytes && block->bytes / 2 <= bytes && (!best || block->bytes < (*best)->bytes)) {
        best = &block;
      }
    }
    if (!best) return nullptr;
    kept_bytes_ -= (*best)->bytes;
    return std::exchange(*best, nullptr);
  }

  bool keep(Header* block) {
    if (kept_bytes_ + block->bytes > kKeptBytes) return false;
    for (Header*& place : blocks_) {
      if (place) continue;
      place = block;
      kept_bytes_ += block->bytes;
      return true;
    }
    return false;
  }

  void trim() {
    for (Header*& block : blocks_) std::free(std::exchange(block, nullptr));
    kept_bytes_ = 0;
  }

 private:
  std::array<Header*, kKeptBlocks> blocks_{};
  size_t kept_bytes_ = 0;
};
thread_local Scratch scratch;

// What Halide's code generator calls.
int halide_do_par_for(void* context, ThreadPool::Body body, int begin, int extent, uint8_t* closure) {
  return ThreadPool::instance().run(begin, begin + extent, body, context, closure);
}
void* halide_malloc(void*, size_t bytes) { return allocate_scratch(bytes); }
void halide_free(void*, void* pointer) { release_scratch(pointer); }

// What passes of ours call (moves.h).
int copy_memory(void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  return 0;
}

template <typename F>
void* at(F* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

int thread_count() { return ThreadPool::instance().thread_count(); }
void set_thread_count(int count) { ThreadPool::instance().set_thread_count(count); }

int parallel_for(int begin, int extent, int (*body)(void* context, int i), void* context) {
  struct Closure {
    int (*body)(void*, int);
    void* context;
  } closure{body, context};
  auto call = [](void*, int i, uint8_t* bytes) {
    auto* c = reinterpret_cast<Closure*>(bytes);
    return c->body(c->context, i);
  };
  return ThreadPool::instance().run(begin, begin + extent, call, nullptr, reinterpret_cast<uint8_t*>(&closure));
}

void* allocate_scratch(size_t bytes) {
  if (bytes > kMostBytes) return nullptr;
  Header* block = scratch.take(bytes);
  if (!block) {
    size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    block = static_cast<Header*>(std::aligned_alloc(kAlignment, rounded + sizeof(Header)));
    if (!block) return nullptr;
    block->bytes = rounded;
  }
  return block + 1;
}

void release_scratch(void* pointer) {
  if (!pointer) return;
  Header* block = static_cast<Header*>(pointer) - 1;
  if (!scratch.keep(block)) std::free(block);
}

void trim_scratch() { scratch.trim(); }

void* runtime_symbol(std::string_view name) {
  static const std::unordered_map<std::string_view, void*> table = {
      {"halide_do_par_for", at(halide_do_par_for)},
      {"halide_malloc", at(halide_malloc)},
      {"halide_free", at(halide_free)},
      {"tc.copy", at(copy_memory)},
      {"memcpy", at<void*(void*, const void*, size_t)>(::memcpy)},
      {"memmove", at<void*(void*, const void*, size_t)>(::memmove)},
      {"memset", at<void*(void*, int, size_t)>(::memset)},
      // Instructions that processors before SSE4.1 or FMA lack.
      {"ceil", at<double(double)>(::ceil)},
      {"ceilf", at<float(float)>(::ceilf)},
      {"floor", at<double(double)>(::floor)},
      {"floorf", at<float(float)>(::floorf)},
      {"fma", at<double(double, double, double)>(::fma)},
      {"fmaf", at<float(float, float, float)>(::fmaf)},
      {"nearbyint", at<double(double)>(::nearbyint)},
      {"nearbyintf", at<float(float)>(::nearbyintf)},
      {"rint", at<double(double)>(::rint)},
      {"rintf", at<float(float)>(::rintf)},
      {"trunc", at<double(double)>(::trunc)},
      {"truncf", at<float(float)>(::truncf)},
  };
  auto it = table.find(name);
  return it != table.end() ? it->second : math_address(name);
}

}  // namespace tc::cpu
