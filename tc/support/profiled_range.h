#pragma once

#include <atomic>
#include <string>
#include <type_traits>

/// Ranges that profilers show beside what they measure: NVIDIA's Nsight Systems and others that speak NVTX, version 3.
///
/// A profiler names a library of its own in NVTX_INJECTION64_PATH, which is opened for the first range. Without one a
/// range costs a load and a branch. Nothing of CUDA is needed, here or there.
namespace tc {

/// What a profiler has put into our tables; null where there is none.
struct ProfilerCalls;

/// Null until somebody has looked, then those of a profiler, or `no_profiler`.
extern std::atomic<const ProfilerCalls*> profiler_calls;
extern const ProfilerCalls* const no_profiler;

/// Looks for a profiler, once.
const ProfilerCalls* find_profiler() noexcept;

/// A range of the calling thread, in the domain "tensorc", from here to the end of the scope.
class ProfiledRange {
 public:
  explicit ProfiledRange(const char* name) noexcept {
    if (is_profiled()) [[unlikely]]
      begin(name);
  }
  /// `make_name` is called only if there is a profiler.
  template <typename MakeName>
  requires std::is_invocable_r_v<std::string, MakeName>
  explicit ProfiledRange(MakeName make_name) {
    if (is_profiled()) [[unlikely]]
      begin(make_name().c_str());
  }
  ~ProfiledRange() {
    if (calls_) [[unlikely]]
      end();
  }
  ProfiledRange(const ProfiledRange&) = delete;
  ProfiledRange& operator=(const ProfiledRange&) = delete;

 private:
  static bool is_profiled() noexcept {
    const ProfilerCalls* calls = profiler_calls.load(std::memory_order_acquire);
    if (!calls) [[unlikely]]
      calls = find_profiler();
    return calls != no_profiler;
  }
  void begin(const char* name) noexcept;
  void end() noexcept;

  const ProfilerCalls* calls_ = nullptr;
};

}  // namespace tc
