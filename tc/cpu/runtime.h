#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tc::cpu {

/// What a kernel's call returns beside 0 and the codes of its own AssertStmts (which must be positive).
inline constexpr int kOutOfMemory = -11;

/// How many threads run a parallel loop, the caller's included. The default is the number of cores that this
/// process may use (its affinity mask, and its cgroup's quota rounded up). At least 1.
int thread_count();
/// Sets it, for loops that begin afterwards; 0 restores the default. Safe at any time, from any thread.
void set_thread_count(int count);

/// Runs body(context, i) for i in [begin, begin + extent), in any order and by any of the threads, and returns 0,
/// or the first non-zero result seen (iterations that have not begun are then skipped). May be called
/// from many threads at once and from inside a body.
int parallel_for(int begin, int extent, int (*body)(void* context, int i), void* context);

/// Scratch memory, aligned to 64 bytes, for the calling thread; kept for its next use when it is not large.
/// May be released by another thread. Null if there is no memory.
void* allocate_scratch(std::size_t bytes);
void release_scratch(void* pointer);
/// Gives back what the calling thread keeps.
void trim_scratch();

/// The address of a function that kernels may call, or null.
void* runtime_symbol(std::string_view name);

}  // namespace tc::cpu
