#include "tc/cuda/nvrtc.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/ranges.h>

#include "tc/cuda/library.h"

namespace tc::cuda {
namespace {

namespace fs = std::filesystem;

/// From NVRTC's documentation, "User Interface"; the library's header is not needed.
using Status = int;
using Handle = struct OpaqueProgram*;
constexpr Status kSuccess = 0;
constexpr Status kCompilationFailed = 6;

/// The newest first, so that the file names need no list of versions that grows old.
std::vector<std::string> libraries_in(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("libnvrtc.so")) found.push_back(entry.path().string());
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

void add_folder(std::vector<std::string>& candidates, const fs::path& root) {
  for (const char* below : {"", "lib64", "lib", "targets/x86_64-linux/lib"}) {
    for (std::string& library : libraries_in(root / below)) candidates.push_back(std::move(library));
  }
}

std::vector<std::string> toolkit_folders() {
  std::vector<std::string> folders;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/usr/local", error)) {
    if (entry.path().filename().string().starts_with("cuda")) folders.push_back(entry.path().string());
  }
  std::sort(folders.rbegin(), folders.rend());
  return folders;
}

}  // namespace

struct Nvrtc::Functions {
  Status (*version)(int*, int*);
  const char* (*error_string)(Status);
  Status (*supported_count)(int*);
  Status (*supported)(int*);
  Status (*create)(Handle*, const char*, const char*, int, const char* const*, const char* const*);
  Status (*destroy)(Handle*);
  Status (*compile)(Handle, int, const char* const*);
  Status (*ptx_size)(Handle, size_t*);
  Status (*ptx)(Handle, char*);
  Status (*cubin_size)(Handle, size_t*);
  Status (*cubin)(Handle, char*);
  Status (*log_size)(Handle, size_t*);
  Status (*log)(Handle, char*);
  Status (*set_flow_callback)(Handle, int (*)(void*, void*), void*) = nullptr;  ///< since 12.8

  Result<void> bind(const Library& library) {
    TC_TRY_VOID(library.bind(version, "nvrtcVersion"));
    TC_TRY_VOID(library.bind(error_string, "nvrtcGetErrorString"));
    TC_TRY_VOID(library.bind(supported_count, "nvrtcGetNumSupportedArchs"));
    TC_TRY_VOID(library.bind(supported, "nvrtcGetSupportedArchs"));
    TC_TRY_VOID(library.bind(create, "nvrtcCreateProgram"));
    TC_TRY_VOID(library.bind(destroy, "nvrtcDestroyProgram"));
    TC_TRY_VOID(library.bind(compile, "nvrtcCompileProgram"));
    TC_TRY_VOID(library.bind(ptx_size, "nvrtcGetPTXSize"));
    TC_TRY_VOID(library.bind(ptx, "nvrtcGetPTX"));
    TC_TRY_VOID(library.bind(cubin_size, "nvrtcGetCUBINSize"));
    TC_TRY_VOID(library.bind(cubin, "nvrtcGetCUBIN"));
    TC_TRY_VOID(library.bind(log_size, "nvrtcGetProgramLogSize"));
    TC_TRY_VOID(library.bind(log, "nvrtcGetProgramLog"));
    (void)library.bind(set_flow_callback, "nvrtcSetFlowCallback");
    return {};
  }

  /// A text or image of the program; empty where there is none.
  template <typename Size, typename Get>
  std::string fetch(Handle program, Size size_of, Get get) const {
    size_t size = 0;
    if (size_of(program, &size) != kSuccess) return "";
    std::string bytes(size, '\0');
    return get(program, bytes.data()) == kSuccess ? bytes : "";
  }
  /// The same of a text, which ends in a zero byte.
  template <typename Size, typename Get>
  std::string fetch_text(Handle program, Size size_of, Get get) const {
    std::string text = fetch(program, size_of, get);
    while (!text.empty() && text.back() == '\0') text.pop_back();
    return text;
  }
};

std::vector<std::string> Nvrtc::candidates() {
  std::vector<std::string> result;
  if (const char* given = std::getenv("TENSORC_NVRTC"); given && *given) {
    // Whoever names a library wants that one and no other.
    std::error_code error;
    if (!fs::is_directory(given, error)) return {given};
    result = libraries_in(given);
    if (result.empty()) result.push_back((fs::path(given) / "libnvrtc.so").string());
    return result;
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* root = std::getenv(variable); root && *root) add_folder(result, root);
  }
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) result.push_back(name);
  for (const std::string& folder : toolkit_folders()) add_folder(result, folder);
  return result;
}

Result<Nvrtc> Nvrtc::open() {
  TC_TRY(library, Library::open("NVRTC", candidates()));
  static Functions functions;
  TC_TRY_VOID(functions.bind(library));
  Nvrtc nvrtc;
  nvrtc.functions_ = &functions;
  nvrtc.path_ = library.path();
  functions.version(&nvrtc.version_.first, &nvrtc.version_.second);
  int count = 0;
  functions.supported_count(&count);
  nvrtc.architectures_.resize(count);
  functions.supported(nvrtc.architectures_.data());
  return nvrtc;
}

Result<const Nvrtc*> Nvrtc::get() {
  static const Result<Nvrtc> nvrtc = open();
  if (!nvrtc) return tl::unexpected(nvrtc.error());
  return &*nvrtc;
}

Result<Compiled> Nvrtc::compile_here(const std::string& text, Arch arch, const std::vector<std::string>& flags,
                                     const Stop& stops) const {
  std::vector<const char*> arguments;
  for (const std::string& flag : flags) arguments.push_back(flag.c_str());
  Handle program = nullptr;
  if (const Status status = functions_->create(&program, text.c_str(), "tensorc.cu", 0, nullptr, nullptr)) {
    return fail("NVRTC: {}", functions_->error_string(status));
  }
  if (functions_->set_flow_callback != nullptr) {
    const auto asks = [](void* stops, void*) -> int { return (*static_cast<const Stop*>(stops))() ? 1 : 0; };
    functions_->set_flow_callback(program, asks, const_cast<Stop*>(&stops));
  }
  const Status status = functions_->compile(program, static_cast<int>(arguments.size()), arguments.data());
  Compiled result;
  result.arch = arch;
  result.log = functions_->fetch_text(program, functions_->log_size, functions_->log);
  if (status == kSuccess) {
    result.ptx = functions_->fetch_text(program, functions_->ptx_size, functions_->ptx);
    result.cubin = functions_->fetch(program, functions_->cubin_size, functions_->cubin);
    result.resources = parse_resources(result.log);
  }
  functions_->destroy(&program);
  if (status != kSuccess && stops()) {
    return tl::unexpected(Error("the compilation was stopped").with_kind(ErrorKind::kCancelled));
  }
  if (status == kCompilationFailed) return fail("NVRTC refuses the text for {}:\n{}", to_string(arch), result.log);
  if (status != kSuccess) {
    return fail("NVRTC: {}{}{}", functions_->error_string(status), result.log.empty() ? "" : "\n", result.log);
  }
  if (result.cubin.empty()) return fail("NVRTC gave no code for {}", to_string(arch));
  return result;
}

namespace {

/// Whether the assembler's report is missed: NVRTC has a cache since 12.9 where there is a driver, which keeps code
/// without it. Only products of warpgroups are refused by what it says.
bool lacks_report(const Compiled& compiled, const std::string& text) {
  return compiled.resources.empty() && text.find("wgmma") != std::string::npos;
}

}  // namespace

Result<Compiled> Nvrtc::compile(const std::string& text, Arch arch, const CompileOptions& options) const {
  if (!std::binary_search(architectures_.begin(), architectures_.end(), arch.number)) {
    return fail("NVRTC {}.{} does not compile for {}; it knows sm_{}", version_.first, version_.second, to_string(arch),
                fmt::join(architectures_, ", sm_"));
  }
  std::vector<std::string> flags = {"--gpu-architecture=" + to_string(arch), "--std=c++17", "--ptxas-options=-v",
                                    options.strict ? "--fmad=false" : "--fmad=true"};
  if (options.line_info) flags.push_back("--generate-line-info");
  if (options.max_registers > 0) flags.push_back(fmt::format("--maxrregcount={}", options.max_registers));
  // A thread that is left alone may outlive this object, when the process ends.
  return abandonable<Compiled>(
      [nvrtc = *this, text, arch, flags](const Stop& stops) {
        Result<Compiled> compiled = nvrtc.compile_here(text, arch, flags, stops);
        if (!compiled || !lacks_report(*compiled, text)) return compiled;
        std::vector<std::string> afresh = flags;
        afresh.push_back("--no-cache");
        return nvrtc.compile_here(text, arch, afresh, stops);
      },
      options.stop);
}

}  // namespace tc::cuda
