#include "tc/cuda/executable.h"

#include <algorithm>
#include <array>

#include "tc/cuda/streams.h"
#include "tc/support/profiled_range.h"

namespace tc::cuda {
namespace {

constexpr int kMaxDynamicShared = 8;       // CUfunction_attribute
constexpr uintptr_t kPerThreadStream = 2;  // CU_STREAM_PER_THREAD

/// CUpointer_attribute and CUmemorytype.
constexpr int kMemoryType = 2, kIsManaged = 8, kOrdinal = 9;
constexpr unsigned kHostMemory = 1;

constexpr int kClusterDimension = 4, kProgrammaticStreamSerialization = 6;  // CUlaunchAttributeID
constexpr int kFirstOverlapping = 90;    // compute capability that has griddepcontrol
constexpr int kFirstCapturable = 12030;  // driver whose graphs have such edges

}  // namespace

Result<std::shared_ptr<Executable>> Executable::load(std::shared_ptr<const Context> context, Arch arch,
                                                     const std::string& cubin, LaunchPlan plan, ModuleCache& modules) {
  const DeviceInfo& device = context->device();
  if (!runs_on(arch, device.capability)) {
    return fail("the code is for {}, but {} is an sm_{}", to_string(arch), device.name, device.capability);
  }
  const std::shared_ptr<Executable> result(new Executable());
  result->context_ = context;
  result->plan_ = std::move(plan);
  int version = 0;
  TC_TRY_VOID(context->driver().check(context->driver().version(&version), "asking for the driver's version"));
  result->overlaps_ = arch.number >= kFirstOverlapping && version >= kFirstCapturable && context->driver().launch_with;
  TC_TRY_VOID(result->check_driver(version));
  TC_TRY_VOID(result->check_limits());
  TC_TRY(module, modules.load(context, cubin));
  TC_TRY_VOID(result->load_kernels(*module));
  result->module_ = std::move(module);
  if (!result->plan_.workspace.empty()) TC_TRY_VOID(result->add_workspace(std::nullopt));
  if (!result->plan_.maps.empty()) {
    result->maps_ = std::make_unique<TensorMaps>(context->driver(), result->plan_);
  }
  result->known_ = std::make_unique<std::atomic<Address>[]>(result->plan_.tensors.size());
  return result;
}

Result<void> Executable::check_driver(int version) const {
  const Driver& driver = context_->driver();
  const std::string is_for = fmt::format("this one is made for CUDA {}.{}", version / 1000, version % 1000 / 10);
  if (!plan_.maps.empty() && !driver.encode_map) {
    return fail("the kernels take tensor maps, which NVIDIA's driver has from CUDA 12.0 on; {}", is_for);
  }
  for (const KernelLaunch& launch : plan_.kernels) {
    if (launch.in_clusters() && !driver.launch_with) {
      return fail("'{}' runs in clusters, which NVIDIA's driver has from CUDA 11.8 on; {}", launch.symbol, is_for);
    }
  }
  return {};
}

Result<void> Executable::check_limits() const {
  const DeviceInfo& device = context_->device();
  for (const KernelLaunch& launch : plan_.kernels) {
    const int64_t threads = launch.block[0] * launch.block[1] * launch.block[2];
    if (threads > device.threads_per_block) {
      return fail("'{}' has blocks of {} threads; {} allows {}", launch.symbol, threads, device.name,
                  device.threads_per_block);
    }
    for (int d = 0; d < 3; ++d) {
      if (launch.block[d] > device.block_limits[d]) {
        return fail("'{}' has blocks of {} threads in {}; {} allows {}", launch.symbol, launch.block[d], "xyz"[d],
                    device.name, device.block_limits[d]);
      }
      if (launch.grid[d] > device.grid_limits[d]) {
        return fail("'{}' has a grid of {} blocks in {}; {} allows {}", launch.symbol, launch.grid[d], "xyz"[d],
                    device.name, device.grid_limits[d]);
      }
    }
    if (launch.dynamic_shared_bytes > device.shared_bytes_per_block) {
      return fail("'{}' needs {} bytes of shared memory per block; {} has {}", launch.symbol,
                  launch.dynamic_shared_bytes, device.name, device.shared_bytes_per_block);
    }
    if (launch.arguments.size() > kMaxArguments) {
      return fail("'{}' has {} arguments; {} is the most", launch.symbol, launch.arguments.size(), kMaxArguments);
    }
    const auto maps = std::ranges::count(launch.arguments, KernelArgument::Kind::kMap, &KernelArgument::kind);
    if (static_cast<size_t>(maps) > kMaxMaps) {
      return fail("'{}' takes {} tensor maps; {} is the most", launch.symbol, maps, kMaxMaps);
    }
  }
  return {};
}

Result<void> Executable::load_kernels(const Module& module) {
  const Driver& driver = context_->driver();
  const CurrentContext current(*context_);
  for (const KernelLaunch& launch : plan_.kernels) {
    TC_TRY(function, module.function(launch.symbol));
    if (launch.dynamic_shared_bytes > 0) {
      const int bytes = static_cast<int>(launch.dynamic_shared_bytes);
      TC_TRY_VOID(driver.check(driver.set_attribute(function, kMaxDynamicShared, bytes),
                               fmt::format("giving '{}' {} bytes of shared memory", launch.symbol, bytes)));
    }
    TC_TRY(attributes, module.attributes(function));
    attributes_.push_back(attributes);
    kernels_.push_back({function, &launch});
  }
  return {};
}

Result<void> Executable::prepare(Stream stream) {
  const CurrentContext current(*context_);
  const std::lock_guard<std::mutex> lock(mutex_);
  TC_TRY_VOID(workspace(stream));
  return {};
}

Result<const Address*> Executable::workspace(Stream stream) {
  if (plan_.workspace.empty()) return nullptr;
  const StreamOfThread of = StreamOfThread::of(stream);
  for (const std::unique_ptr<Workspace>& one : workspaces_) {
    if (!one->stream) one->stream = of;
    if (*one->stream == of) return one->addresses.data();
  }
  TC_TRY(captured, is_captured(context_->driver(), stream));
  if (captured) return fail("the stream is being captured, and its workspace is not prepared: call prepare() before");
  TC_TRY_VOID(add_workspace(of));
  return workspaces_.back()->addresses.data();
}

Executable::StreamOfThread Executable::StreamOfThread::of(Stream stream) {
  const bool is_per_thread = reinterpret_cast<uintptr_t>(stream) == kPerThreadStream;
  return {stream, is_per_thread ? std::this_thread::get_id() : std::thread::id()};
}

Result<void> Executable::add_workspace(std::optional<StreamOfThread> stream) {
  TC_TRY(buffer, Buffer::allocate(context_, plan_.workspace_bytes()));
  std::vector<Address> addresses;
  for (const WorkspaceBuffer& part : plan_.workspace) addresses.push_back(buffer.address() + part.byte_offset);
  workspaces_.push_back(std::make_unique<Workspace>(Workspace{stream, std::move(buffer), std::move(addresses)}));
  return {};
}

Result<void> Executable::run(Stream stream, std::span<const Address> tensors, std::span<const void* const> scalars) {
  if (tensors.size() != plan_.tensors.size() || scalars.size() != plan_.scalars.size()) {
    return fail("{} tensors and {} scalars are given; there are {} and {}", tensors.size(), scalars.size(),
                plan_.tensors.size(), plan_.scalars.size());
  }
  const CurrentContext current(*context_);
  TC_TRY_VOID(check_tensors(tensors));
  // Two runs on one stream share a workspace: the launches of one come before those of the other.
  std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
  if (!plan_.workspace.empty()) lock.lock();
  TC_TRY(workspace_addresses, workspace(stream));
  bool any_before = false;
  for (const Kernel& kernel : kernels_) {
    const std::array<int64_t, 3>& grid = kernel.launch->grid;
    // A launch of no block does nothing; the driver would refuse it.
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) continue;
    // The first kernel waits for all that is on the stream, those behind it for the kernels before them alone.
    const bool knows_before = &kernel == &kernels_.front() || any_before;
    const bool early = overlaps_ && knows_before && kernel.launch->waits;
    TC_TRY_VOID(launch(kernel, early, stream, tensors, scalars, workspace_addresses));
    any_before = true;
  }
  return {};
}

Result<void> Executable::read_workspace(Stream stream, std::span<const int> buffers, std::span<int64_t> to) {
  const CurrentContext current(*context_);
  const std::lock_guard<std::mutex> lock(mutex_);
  TC_TRY(addresses, workspace(stream));
  const Driver& driver = context_->driver();
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto buffer = static_cast<size_t>(buffers[i]);
    const auto bytes = static_cast<size_t>(std::min<int64_t>(plan_.workspace[buffer].bytes, 8));
    to[i] = 0;
    TC_TRY_VOID(driver.check(driver.copy_to_host(&to[i], addresses[buffer], bytes, stream), "reading the workspace"));
  }
  return driver.check(driver.synchronize_stream(stream), "waiting for the stream");
}

Driver::Status Executable::launch_with_attributes(const Kernel& kernel, bool early, Stream stream,
                                                  void** arguments) const {
  std::array<Driver::LaunchAttribute, 2> attributes;
  Driver::LaunchConfig config = {};
  if (early) attributes[config.attribute_count++] = {kProgrammaticStreamSerialization, 0, {1}};
  if (kernel.launch->in_clusters()) {
    const auto blocks = [&](int d) { return static_cast<int>(kernel.launch->cluster[d]); };
    attributes[config.attribute_count++] = {kClusterDimension, 0, {blocks(0), blocks(1), blocks(2)}};
  }
  for (int d = 0; d < 3; ++d) {
    config.grid[d] = static_cast<unsigned>(kernel.launch->grid[d]);
    config.block[d] = static_cast<unsigned>(kernel.launch->block[d]);
  }
  config.shared_bytes = static_cast<unsigned>(kernel.launch->dynamic_shared_bytes);
  config.stream = stream;
  config.attributes = attributes.data();
  return context_->driver().launch_with(&config, kernel.function, arguments, nullptr);
}

Result<void> Executable::launch(const Kernel& kernel, bool early, Stream stream, std::span<const Address> tensors,
                                std::span<const void* const> scalars, const Address* workspace) const {
  const KernelLaunch& launch = *kernel.launch;
  const ProfiledRange range(launch.symbol.c_str());
  std::array<void*, kMaxArguments> arguments;
  std::array<EncodedMap, kMaxMaps> maps;  // the driver reads them while it launches, other threads their own
  size_t count = 0, map_count = 0;
  const auto address = [&](const KernelArgument& argument) {
    return argument.kind == KernelArgument::Kind::kTensor ? &tensors[argument.index] : &workspace[argument.index];
  };
  for (const KernelArgument& argument : launch.arguments) {
    const void* place = nullptr;
    if (argument.kind == KernelArgument::Kind::kScalar) {
      place = scalars[argument.index];
    } else if (argument.kind == KernelArgument::Kind::kMap) {
      EncodedMap& map = maps[map_count++];
      const auto index = static_cast<size_t>(argument.index);
      TC_TRY_VOID(maps_->copy(index, *address(plan_.maps[index].of), map));
      place = &map;
    } else {
      place = address(argument);
    }
    arguments[count++] = const_cast<void*>(place);  // the driver reads them only
  }
  const Driver& driver = context_->driver();
  const auto size = [](int64_t n) { return static_cast<unsigned>(n); };
  const Driver::Status status =
      early || launch.in_clusters()
          ? launch_with_attributes(kernel, early, stream, arguments.data())
          : driver.launch(kernel.function, size(launch.grid[0]), size(launch.grid[1]), size(launch.grid[2]),
                          size(launch.block[0]), size(launch.block[1]), size(launch.block[2]),
                          size(launch.dynamic_shared_bytes), stream, arguments.data(), nullptr);
  if (status != 0) [[unlikely]]
    return tl::unexpected(driver.error(status, fmt::format("launching '{}'", launch.symbol)));
  return {};
}

Result<void> Executable::check_tensors(std::span<const Address> tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorArgument& argument = plan_.tensors[i];
    if (argument.bytes == 0) continue;
    if (tensors[i] == 0)
      return fail("the tensor '{}' has {} bytes, but its address is null", argument.name, argument.bytes);
    if (tensors[i] % static_cast<Address>(argument.alignment) != 0) {
      return fail(
          "the tensor '{}' is at address {:#x}, which is no multiple of {}: its kernel copies {} bytes at a time",
          argument.name, tensors[i], argument.alignment, argument.alignment);
    }
    if (known_[i].load(std::memory_order_relaxed) != tensors[i]) TC_TRY_VOID(check_memory(i, tensors[i]));
  }
  return check_overlap(tensors);
}

Result<void> Executable::check_overlap(std::span<const Address> tensors) const {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!plan_.tensors[i].written || plan_.tensors[i].bytes == 0) continue;
    for (size_t j = 0; j < tensors.size(); ++j) {
      const bool apart =
          tensors[i] + plan_.tensors[i].bytes <= tensors[j] || tensors[j] + plan_.tensors[j].bytes <= tensors[i];
      if (i == j || apart || plan_.tensors[j].bytes == 0) continue;
      return fail("the tensor '{}', which is written, overlaps '{}' in memory", plan_.tensors[i].name,
                  plan_.tensors[j].name);
    }
  }
  return {};
}

Result<void> Executable::check_memory(size_t index, Address address) {
  const Driver& driver = context_->driver();
  unsigned type = 0;
  int ordinal = -1;
  unsigned managed = 0;
  int attributes[] = {kMemoryType, kOrdinal, kIsManaged};
  void* values[] = {&type, &ordinal, &managed};
  TC_TRY_VOID(driver.check(driver.pointer_attributes(3, attributes, values, address), "asking where a tensor lives"));
  const std::string& name = plan_.tensors[index].name;
  if (type == 0) {
    return fail("the tensor '{}' is at {:#x}, in host memory that the GPU cannot reach: copy it to the device first",
                name, address);
  }
  if (type != kHostMemory && !managed && ordinal != context_->device().ordinal) {
    return fail("the tensor '{}' is on device {}, but the kernel runs on device {}", name, ordinal,
                context_->device().ordinal);
  }
  known_[index].store(address, std::memory_order_relaxed);
  return {};
}

}  // namespace tc::cuda
