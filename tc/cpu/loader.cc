#include "tc/cpu/loader.h"

#include <llvm/ExecutionEngine/JITSymbol.h>
#include <llvm/ExecutionEngine/RTDyldMemoryManager.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Object/SymbolSize.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tc/cpu/codegen.h"
#include "tc/cpu/llvm_compat.h"
#include "tc/cpu/perf_map.h"
#include "tc/cpu/runtime.h"
#include "tc/cpu/target.h"
#include "tc/support/check.h"

namespace tc::cpu {
namespace {

/// One mapping for all sections of an object, so that they reach each other with 32-bit displacements: code first,
/// then constants, then data, each from a page boundary.
class Mapping : public llvm::RTDyldMemoryManager {
 public:
  ~Mapping() override {
    if (base_) munmap(base_, size_);
  }

  bool needsToReserveAllocationSpace() override { return true; }
  void reserveAllocationSpace(uintptr_t code_size, SectionAlignment, uintptr_t constants_size, SectionAlignment,
                              uintptr_t data_size, SectionAlignment) override {
    // The table of far functions' addresses is not counted in: 8 bytes for each of the runtime's functions at most.
    constexpr size_t kFarFunctions = 4096;
    size_t code = pages(code_size), constants = pages(constants_size), data = pages(data_size + kFarFunctions);
    size_ = code + constants + data;
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    base_ = static_cast<uint8_t*>(memory);
    code_ = {base_, base_, base_ + code};
    constants_ = {code_.end, code_.end, code_.end + constants};
    data_ = {constants_.end, constants_.end, constants_.end + data};
  }
  uint8_t* allocateCodeSection(uintptr_t size, unsigned alignment, unsigned, llvm::StringRef) override {
    return code_.take(size, alignment);
  }
  uint8_t* allocateDataSection(uintptr_t size, unsigned alignment, unsigned, llvm::StringRef,
                               bool is_read_only) override {
    return (is_read_only ? constants_ : data_).take(size, alignment);
  }
  bool finalizeMemory(std::string* error) override {
    bool done = base_ && mprotect(base_, code_.end - base_, PROT_READ | PROT_EXEC) == 0 &&
                (constants_.begin == constants_.end ||
                 mprotect(constants_.begin, constants_.end - constants_.begin, PROT_READ) == 0);
    if (!done && error) *error = "the system refuses executable memory";
    return !done;
  }
  /// Nothing is thrown through a kernel.
  void registerEHFrames(uint8_t*, uint64_t, size_t) override {}
  void deregisterEHFrames() override {}

 private:
  struct Region {
    uint8_t* begin = nullptr;
    uint8_t* next = nullptr;
    uint8_t* end = nullptr;

    uint8_t* take(size_t size, size_t alignment) {
      if (alignment == 0) alignment = 16;
      auto address = (reinterpret_cast<uintptr_t>(next) + alignment - 1) / alignment * alignment;
      auto* place = reinterpret_cast<uint8_t*>(address);
      if (!begin || place + size > end) return nullptr;
      next = place + size;
      return place;
    }
  };

  static size_t pages(size_t bytes) {
    size_t page = sysconf(_SC_PAGESIZE);
    // RuntimeDyld's sums leave out some padding between sections.
    return bytes == 0 ? 0 : (bytes + page + page - 1) / page * page;
  }

  uint8_t* base_ = nullptr;
  size_t size_ = 0;
  Region code_, constants_, data_;
};

/// Symbols come from the runtime's table alone, never from whatever else the process has.
class RuntimeSymbols : public llvm::LegacyJITSymbolResolver {
 public:
  std::vector<std::string> missing;

  llvm::JITSymbol findSymbol(const std::string& name) override {
    void* address = runtime_symbol(name);
    if (!address) missing.push_back(name);
    return llvm::JITSymbol(reinterpret_cast<uintptr_t>(address), llvm::JITSymbolFlags::Exported);
  }
  llvm::JITSymbol findSymbolInLogicalDylib(const std::string&) override { return nullptr; }
};

/// "tc_mlp.loop0" as "tensorc: mlp.loop0 [M=4, K=5]".
std::string profiled_name(llvm::StringRef symbol, const std::string& kernel, const std::string& instance) {
  const bool is_entry = symbol.consume_front("tc_kernel_");
  if (symbol.startswith(kernel)) symbol.consume_front("tc_");
  return "tensorc: " + symbol.str() + (is_entry ? ".entry" : "") + (instance.empty() ? "" : " [" + instance + "]");
}

/// An object's functions, where they were loaded.
std::vector<NamedCode> named_code(const llvm::object::ObjectFile& file,
                                  const llvm::RuntimeDyld::LoadedObjectInfo& loaded, const std::string& kernel,
                                  const std::string& instance) {
  std::vector<NamedCode> code;
  for (const auto& [symbol, bytes] : llvm::object::computeSymbolSizes(file)) {
    auto type = symbol.getType();
    auto name = symbol.getName();
    auto address = symbol.getAddress();
    auto section = symbol.getSection();
    const bool is_known = type && name && address && section;
    if (is_known && *type == llvm::object::SymbolRef::ST_Function && bytes > 0 && *section != file.section_end()) {
      const uint64_t begin = loaded.getSectionLoadAddress(**section) + *address - (*section)->getAddress();
      code.push_back({begin, bytes, profiled_name(*name, kernel, instance)});
    }
    llvm::consumeError(type.takeError()), llvm::consumeError(name.takeError());
    llvm::consumeError(address.takeError()), llvm::consumeError(section.takeError());
  }
  return code;
}

}  // namespace

struct Loaded::Image {
  Mapping mapping;
};

Loaded::Loaded(std::unique_ptr<Image> image, int (*entry)(void* const*)) : image_(std::move(image)), entry_(entry) {}
Loaded::~Loaded() = default;

Result<std::shared_ptr<const Loaded>> load_object(const Object& object, const std::string& instance) {
  TC_TRY(target, parse_target(object.target));
  if (!host_can_run(target)) {
    return fail("kernel '{}' was compiled for {}, which this processor cannot run", object.name, object.target);
  }
  auto broken = [&](const std::string& why) {
    return fail("the object code of kernel '{}' cannot be loaded: {}", object.name, why);
  };
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object.bytes, object.name));
  if (!file) return broken(llvm::toString(file.takeError()));
  if (!(*file)->isRelocatableObject() || (*file)->getArch() != llvm::Triple::x86_64) {
    return broken("it is not a relocatable x86-64 object");
  }
  auto image = std::make_unique<Loaded::Image>();
  RuntimeSymbols symbols;
  llvm::RuntimeDyld linker(image->mapping, symbols);
  const auto loaded = linker.loadObject(**file);
  linker.resolveRelocations();
  if (!symbols.missing.empty()) return broken(fmt::format("this version has no function '{}'", symbols.missing[0]));
  if (linker.hasError()) return broken(linker.getErrorString().str());
  std::string error;
  if (image->mapping.finalizeMemory(&error)) return broken(error);
  llvm::JITEvaluatedSymbol entry = linker.getSymbol(entry_symbol(object.name));
  if (!entry) return broken("it has no entry");
  if (loaded && wants_perf_map()) add_to_perf_map(named_code(**file, *loaded, object.name, instance));
  auto* function = reinterpret_cast<int (*)(void* const*)>(entry.getAddress());
  return std::shared_ptr<const Loaded>(new Loaded(std::move(image), function));
}

}  // namespace tc::cpu
