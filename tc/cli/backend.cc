#include "tc/cli/backend.h"

#include <gflags/gflags.h>

#include "tc/cli/files.h"
#include "tc/cli/flags.h"
#include "tc/cuda/device.h"
#include "tc/cuda/nvrtc.h"
#include "tc/options/presets.h"
#include "tc/support/nearest.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

bool gpu_is_ready() {
  const Result<std::vector<cuda::DeviceInfo>> devices = cuda::devices();
  return devices && !devices->empty() && cuda::Nvrtc::get();
}

}  // namespace

Result<std::optional<api::Backend>> backend_of_flags() {
  using api::Backend;
  if (FLAGS_backend == "cpu") return Backend::kCpu;
  if (FLAGS_backend == "cuda") return Backend::kCuda;
  if (FLAGS_backend == "sim") return Backend::kSimulator;
  if (FLAGS_backend == "interp") return std::nullopt;
  if (FLAGS_backend == "auto") return gpu_is_ready() ? Backend::kCuda : Backend::kCpu;
  return fail("there is no backend '{}'; there are auto, cpu, cuda, interp and sim", FLAGS_backend);
}

Result<std::string> processor_of_flags(api::Backend backend) {
  if (backend == api::Backend::kCpu || gflags::GetCommandLineFlagInfoOrDie("target").is_default) return FLAGS_target;
  return fail("'--target={}' names a processor, and this compiles for a GPU, which '--arch={}' names", FLAGS_target,
              FLAGS_arch);
}

Result<options::MappingOptions> mapping_of_flags() {
  options::MappingOptions options;
  if (!FLAGS_options.empty() && !FLAGS_preset.empty()) return fail("'--options' and '--preset' exclude each other");
  if (!FLAGS_options.empty()) {
    TC_TRY(text, read_file(FLAGS_options, kMaxOptionsBytes));
    TC_TRY(read, options::mapping_options_from_text(text, FLAGS_options));
    options = std::move(read);
  } else if (!FLAGS_preset.empty()) {
    const std::optional<options::MappingOptions> preset = options::find_preset(FLAGS_preset);
    if (!preset) {
      std::vector<std::string> names;
      for (const auto& [name, value] : options::presets()) names.push_back(name);
      return fail("there is no preset '{}'; there are {}", FLAGS_preset, fmt::join(names, ", "));
    }
    options = *preset;
  }
  options.strict = options.strict || FLAGS_strict;
  options.check_bounds = options.check_bounds || FLAGS_check_bounds;
  options.tf32 = options.tf32 || FLAGS_tf32;
  options.fast_accumulation = options.fast_accumulation || FLAGS_fast_accumulation;
  return options;
}

}  // namespace tc::cli
