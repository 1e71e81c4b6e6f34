#include "tc/support/profiled_range.h"

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>

#include "tc/support/write_log.h"

namespace tc {

// --- the binary interface of NVTX 3, as its headers nvtxTypes.h and nvToolsExt.h have it ---------------------------

namespace {

using Function = void (*)();
using Domain = void*;

struct EventAttributes {
  uint16_t version = 3;
  uint16_t size = sizeof(EventAttributes);
  uint32_t category = 0;
  int32_t color_type = 0;
  uint32_t color = 0;
  int32_t payload_type = 0;
  int32_t reserved = 0;
  uint64_t payload = 0;
  int32_t message_type = 1;  // characters
  const char* message = nullptr;
};
static_assert(sizeof(EventAttributes) == 48 && offsetof(EventAttributes, message) == 40);

// Modules of functions, and those of them that are used here.
constexpr unsigned kCore2 = 5, kModules = 7;
constexpr size_t kRangePush = 4, kRangePop = 5, kDomainCreate = 12;
/// How many places each module's table has; place 0 is no function's.
constexpr std::array<unsigned, kModules> kSizes = {0, 16, 9, 15, 7, 16, 7};
constexpr size_t kMostFunctions = 16;

/// Places for a profiler's functions, and a table for each module that leads to them.
struct Tables {
  std::array<std::array<Function, kMostFunctions>, kModules> functions{};
  std::array<std::array<Function*, kMostFunctions + 1>, kModules> places{};  // with a null behind the last
};

Tables& tables() {
  static Tables all;
  return all;
}

int module_table(unsigned module, Function*** table, unsigned* size) {
  if (module == 0 || module >= kModules) return 0;
  Tables& all = tables();
  for (unsigned f = 1; f < kSizes[module]; ++f) all.places[module][f] = &all.functions[module][f];
  if (table) *table = all.places[module].data();
  if (size) *size = kSizes[module];
  return 1;
}

struct CallbacksTable {
  size_t size = sizeof(CallbacksTable);
  int (*module_table)(unsigned, Function***, unsigned*) = tc::module_table;
};

struct VersionTable {
  size_t size = sizeof(VersionTable);
  uint32_t version = 3;
  uint32_t reserved = 0;
  void (*set_version)(uint32_t) = [](uint32_t) {};
};

const void* export_table(uint32_t id) {
  static const CallbacksTable callbacks;
  static const VersionTable version;
  return id == 1 ? static_cast<const void*>(&callbacks) : id == 3 ? &version : nullptr;
}

using Initialise = int (*)(const void* (*)(uint32_t));

}  // namespace

struct ProfilerCalls {
  int (*push)(Domain, const EventAttributes*) = nullptr;
  int (*pop)(Domain) = nullptr;
  Domain domain = nullptr;
};

namespace {

constinit ProfilerCalls absent;

/// The calls of the library that a profiler has named.
const ProfilerCalls* attach() {
  const char* const path = std::getenv("NVTX_INJECTION64_PATH");
  void* const library = path && *path ? ::dlopen(path, RTLD_LAZY) : nullptr;
  if (!library) {
    if (path && *path) TC_LOG(kWarning, "the profiler that NVTX_INJECTION64_PATH names does not load: {}", ::dlerror());
    return &absent;
  }
  const auto initialise = reinterpret_cast<Initialise>(::dlsym(library, "InitializeInjectionNvtx2"));
  if (!initialise || initialise(export_table) == 0) {
    ::dlclose(library);
    return &absent;
  }
  const auto& functions = tables().functions[kCore2];
  static ProfilerCalls calls;
  calls.push = reinterpret_cast<decltype(calls.push)>(functions[kRangePush]);
  calls.pop = reinterpret_cast<decltype(calls.pop)>(functions[kRangePop]);
  if (!calls.push || !calls.pop) return &absent;
  if (functions[kDomainCreate]) {
    calls.domain = reinterpret_cast<Domain (*)(const char*)>(functions[kDomainCreate])("tensorc");
  }
  return &calls;
}

}  // namespace

constinit std::atomic<const ProfilerCalls*> profiler_calls{nullptr};
constinit const ProfilerCalls* const no_profiler = &absent;

const ProfilerCalls* find_profiler() noexcept {
  static std::once_flag once;
  std::call_once(once, [] { profiler_calls.store(attach(), std::memory_order_release); });
  return profiler_calls.load(std::memory_order_acquire);
}

void ProfiledRange::begin(const char* name) noexcept {
  calls_ = profiler_calls.load(std::memory_order_acquire);
  EventAttributes event;
  event.message = name;
  calls_->push(calls_->domain, &event);
}

void ProfiledRange::end() noexcept { calls_->pop(calls_->domain); }

}  // namespace tc
