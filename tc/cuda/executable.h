#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tc/cuda/arch.h"
#include "tc/cuda/launch_plan.h"
#include "tc/cuda/module.h"
#include "tc/cuda/tensor_maps.h"

namespace tc::cuda {

/// A printed and compiled tile program on one device, ready to run: its kernels with everything that does not change
/// from call to call.
class Executable {
 public:
  /// `cubin` is the code for `arch` of the text whose launches `plan` tells. Refuses code that the device cannot run,
  /// and launches beyond its limits.
  static Result<std::shared_ptr<Executable>> load(std::shared_ptr<const Context> context, Arch arch,
                                                  const std::string& cubin, LaunchPlan plan, ModuleCache& modules);

  const LaunchPlan& plan() const { return plan_; }
  const Context& context() const { return *context_; }
  /// In order of the plan's kernels.
  const std::vector<KernelAttributes>& attributes() const { return attributes_; }

  /// Makes the workspace that run() needs on a stream, one per stream, so that runs on two streams do not meet. That of
  /// the first stream is made by load(), those of others by run(), which cannot while the stream is being captured.
  Result<void> prepare(Stream stream);

  /// Launches all kernels on the caller's stream and returns. `tensors` are addresses in order of plan().tensors,
  /// `scalars` point at values in order of plan().scalars. Nothing is allocated but as prepare() says; safe in graph
  /// capture; thread-safe. Everything that can be checked is checked before the first launch: an address is null,
  /// misaligned, in host memory or on another device; a written tensor overlaps another.
  Result<void> run(Stream stream, std::span<const Address> tensors, std::span<const void* const> scalars = {});

  /// Waits for what runs on a stream, and copies buffers of its workspace to the host, at most eight bytes of each.
  Result<void> read_workspace(Stream stream, std::span<const int> buffers, std::span<int64_t> to);

 private:
  /// Driver arguments of one launch live on the stack of run().
  static constexpr size_t kMaxArguments = 64, kMaxMaps = 16;

  struct Kernel {
    Driver::Function function;
    const KernelLaunch* launch;
  };
  /// A handle names one stream, but for that of each thread's own default stream.
  struct StreamOfThread {
    Stream stream = nullptr;
    std::thread::id thread{};  ///< of such a stream

    static StreamOfThread of(Stream stream);
    bool operator==(const StreamOfThread&) const = default;
  };
  struct Workspace {
    std::optional<StreamOfThread> stream;  ///< none until one comes
    Buffer buffer;
    std::vector<Address> addresses;  ///< of the plan's buffers
  };

  Executable() = default;
  Result<void> check_limits() const;
  Result<void> check_driver(int version) const;
  Result<void> load_kernels(const Module& module);
  Result<void> check_tensors(std::span<const Address> tensors);
  Result<void> check_overlap(std::span<const Address> tensors) const;
  Result<void> check_memory(size_t index, Address address);
  Result<void> add_workspace(std::optional<StreamOfThread> stream);
  Result<const Address*> workspace(Stream stream);  ///< under mutex_
  Result<void> launch(const Kernel& kernel, bool early, Stream stream, std::span<const Address> tensors,
                      std::span<const void* const> scalars, const Address* workspace) const;
  Driver::Status launch_with_attributes(const Kernel& kernel, bool early, Stream stream, void** arguments) const;

  std::shared_ptr<const Context> context_;
  std::shared_ptr<const Module> module_;
  LaunchPlan plan_;
  bool overlaps_ = false;  ///< kernels that wait by themselves are launched before those before them end
  std::vector<Kernel> kernels_;
  std::vector<KernelAttributes> attributes_;
  /// Per tensor the last address that was found to be this device's: asking the driver costs more than a launch may.
  std::unique_ptr<std::atomic<Address>[]> known_;
  std::unique_ptr<TensorMaps> maps_;  ///< null where the plan has none
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> workspaces_;
};

}  // namespace tc::cuda
