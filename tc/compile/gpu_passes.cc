#include "tc/compile/gpu_passes.h"
#include "tc/compile/cached.h"

#include <fmt/format.h>

#include <set>

#include "tc/compile/cached.h"
#include "tc/compile/interface.h"
#include "tc/cuda/nvrtc.h"
#include "tc/cuda/print.h"
#include "tc/gpu/strategy/coverage.h"
#include "tc/gpu/strategy/prepare.h"
#include "tc/gpu/strategy/schedule_pieces.h"
#include "tc/gpu/strategy/tree_text.h"
#include "tc/ir/print.h"
#include "tc/support/check.h"
#include "tc/tile/print.h"
#include "tc/tile/proof.h"

namespace tc::compile {
namespace {

// --- prepare: reductions as a GPU wants them --------------------------------------------------------------------

Result<void> prepare(const Settings& settings, Compilation& c) {
  TC_TRY(prepared, gpu::prepare(*c.checked, settings.mapping, settings.gpu.device, settings.element_aligned));
  c.prepared = std::make_shared<const ir::Program>(std::move(prepared.program));
  c.mapping_options = std::move(prepared.options);
  return {};
}

Result<std::string> dump_prepare(const Settings&, const Compilation& c) { return ir::to_text(*c.prepared); }

// --- schedule: contractions with plans, schedule trees of the rest -----------------------------------------------

Result<void> schedule(const Settings& settings, Compilation& c) {
  const std::stop_callback forward(settings.cancel, [&] { c.scop->context->cancel(); });
  TC_TRY(pieces, gpu::schedule_pieces(*c.scop, c.mapping_options, settings.gpu.device));
  c.pieces = std::move(pieces);
  return {};
}

Result<std::string> dump_schedule(const Settings&, const Compilation& c) { return gpu::to_text(*c.pieces); }

Result<void> verify_schedule(Compilation& c) {
  const Result<void> checked = gpu::check_pieces(*c.scop, *c.pieces);
  if (!checked && checked.error().ended_early()) return checked;
  TC_CHECK(checked, "{}\n{}", checked.error().to_string(), gpu::to_text(*c.pieces));
  return {};
}

// --- map: launches, blocks, threads, buffers, barriers ------------------------------------------------------------

Result<void> map(const Settings& settings, Compilation& c) {
  const std::stop_callback forward(settings.cancel, [&] { c.scop->context->cancel(); });
  TC_TRY(mapping, gpu::map_pieces(*c.pieces, *c.scop, c.mapping_options, settings.gpu.device));
  c.mapping = std::move(mapping);
  return {};
}

Result<std::string> dump_map(const Settings&, const Compilation& c) {
  return gpu::report(*c.mapping) + "\n" + gpu::tree_text(*c.mapping);
}

Result<void> verify_map(Compilation& c) {
  const Result<void> checked = gpu::check_launches(*c.scop, *c.mapping);
  if (!checked && checked.error().ended_early()) return checked;
  TC_CHECK(checked, "{}\n{}", checked.error().to_string(), gpu::tree_text(*c.mapping));
  return {};
}

// --- tile: the kernels as a tile program --------------------------------------------------------------------------

std::string shapes_of(const ir::Program& program) {
  std::string text;
  for (const ir::Tensor& tensor : program.tensors) {
    if (tensor.role == ir::Role::kTemporary) continue;
    text += fmt::format("{}{}({})", text.empty() ? "" : ", ", tensor.name, fmt::join(ir::constant_shape(tensor), ", "));
    if (!tensor.strides.empty()) text += fmt::format(" strides ({})", fmt::join(tensor.strides, ", "));
  }
  return text + "\n";
}

std::string header_of(const Settings& settings, const Compilation& c) {
  const char* alignment = settings.element_aligned ? "for tensors that are aligned to their elements only\n" : "";
  return source_of(*c.file, c.program->name) + shapes_of(*c.specialised) + alignment + gpu::report(*c.mapping);
}

/// What checks of subscripts find is nobody's tensor, but lives in the workspace.
void keep_in_workspace(const std::vector<ir::SubscriptCheck>& checks, tile::Program& program) {
  std::set<std::string> names;
  for (const ir::SubscriptCheck& check : checks) names.insert(check.found);
  for (const tile::Kernel& kernel : program.kernels) {
    for (const tile::Tensor& tensor : kernel.tensors) {
      if (names.erase(tensor.name) > 0) program.workspace.push_back(tensor);
    }
  }
}

Result<void> tile(const Settings& settings, Compilation& c) {
  const std::stop_callback forward(settings.cancel, [&] { c.scop->context->cancel(); });
  TC_TRY(lowered, gpu::lower(*std::move(c.mapping), *c.scop, c.mapping_options, settings.gpu.device));
  c.mapping = std::move(lowered);
  keep_in_workspace(c.checks, c.mapping->program);
  for (const tile::Kernel& kernel : c.mapping->program.kernels) {
    TC_CHECK(kernel.shared_bytes() <= settings.gpu.device.shared_bytes,
             "{} takes {} bytes of shared memory, of {} that the device has", kernel.name, kernel.shared_bytes(),
             settings.gpu.device.shared_bytes);
  }
  c.mapping->program.header = header_of(settings, c);
  return {};
}

Result<std::string> dump_tile(const Settings&, const Compilation& c) { return tile::to_text(c.mapping->program); }

Result<void> verify_tile(Compilation& c) {
  const tile::Program& program = c.mapping->program;
  tile::Proof proof = gpu::prove(*c.scop, *c.mapping);
  const tile::Verification& verification = proof.verification;
  TC_CHECK(verification.holds(), "{}\n{}", fmt::join(verification.faults, "\n"), tile::to_text(program));
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    const std::vector<std::string>& races = proof.certificates[k].races;
    TC_CHECK(races.empty(), "{}\n{}", fmt::join(races, "\n"), tile::to_text(program.kernels[k]));
  }
  for (const tile::Coverage& coverage : proof.coverages) {
    TC_CHECK(coverage.holds(), "{}\n{}", fmt::join(coverage.faults, "\n"), tile::to_text(program));
  }
  c.proof = std::move(proof);
  return {};
}

// --- cuda: the same as text -------------------------------------------------------------------------------------

Result<void> cuda(const Settings&, Compilation& c) {
  c.cuda_text = cuda::print(c.mapping->program);
  return {};
}

Result<std::string> dump_cuda(const Settings&, const Compilation& c) { return c.cuda_text; }

// --- cubin: PTX and machine code --------------------------------------------------------------------------------

Result<void> cubin(const Settings& settings, Compilation& c) {
  TC_TRY(nvrtc, cuda::Nvrtc::get());
  const cuda::CompileOptions options = {.strict = settings.mapping.strict, .stop = stop_of(settings, c)};
  TC_TRY(compiled, nvrtc->compile(c.cuda_text, settings.gpu.arch, options));
  // Who asks for a kernel has others to ask for. What the compiler chooses has to run with every version of NVRTC.
  const bool is_chosen = options_text(settings).empty();
  for (const auto& [kernel, resources] : compiled.resources) {
    if (!resources.serialised || is_chosen) continue;
    return fail(
        "kernel '{}' would be slow: NVIDIA's assembler lets its products of warpgroups wait for each other. Other "
        "options may not, or none, which leave the choice to the compiler",
        kernel);
  }
  c.compiled = std::move(compiled);
  return {};
}

Result<std::string> dump_cubin(const Settings&, const Compilation& c) { return c.compiled->cubin; }

// --- load: into a device ----------------------------------------------------------------------------------------

Result<void> load(const Settings& settings, Compilation& c) {
  TC_TRY(context, cuda::Context::open(settings.gpu.ordinal));
  cuda::ModuleCache modules;
  Result<std::shared_ptr<cuda::Executable>> executable = cuda::Executable::load(
      context, c.compiled->arch, c.compiled->cubin, cuda::launch_plan(c.mapping->program), modules);
  if (!executable) {
    TC_TRY(nvrtc, cuda::Nvrtc::get());
    int driver_version = 0;
    context->driver().version(&driver_version);
    return fail("{}{}", executable.error().diagnostics().at(0).message,
                cuda::version_remark(driver_version, nvrtc->version()));
  }
  c.executable = std::move(*executable);
  return {};
}

Result<std::string> dump_load(const Settings&, const Compilation& c) {
  const cuda::LaunchPlan& plan = c.executable->plan();
  std::string text;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const cuda::KernelAttributes& attributes = c.executable->attributes()[k];
    text += fmt::format("{}: {} registers, {} bytes of local and {} of shared memory\n", plan.kernels[k].symbol,
                        attributes.registers, attributes.local_bytes,
                        attributes.static_shared_bytes + plan.kernels[k].dynamic_shared_bytes);
  }
  return text + fmt::format("workspace: {} bytes\n", plan.workspace_bytes());
}

}  // namespace

Pass gpu_prepare_pass() {
  return {"prepare", "reductions as a GPU wants them: partial results of lanes", prepare, dump_prepare, nullptr};
}
Pass gpu_schedule_pass() {
  return {"schedule", "contractions with plans, the rest with schedule trees", schedule, dump_schedule,
          verify_schedule};
}
Pass map_pass() { return {"map", "launches, blocks and threads, buffers, barriers", map, dump_map, verify_map}; }
Pass tile_pass() { return {"tile", "the kernels as a tile program", tile, dump_tile, verify_tile}; }
Pass cuda_pass() { return {"cuda", "the same as CUDA text", cuda, dump_cuda, nullptr}; }
Pass cubin_pass() { return {"cubin", "machine code, by NVIDIA's compiler", cubin, dump_cubin, nullptr}; }
Pass gpu_load_pass() { return {"load", "into a device", load, dump_load, nullptr}; }

}  // namespace tc::compile
