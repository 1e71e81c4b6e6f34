#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "tc/compile/gpu_target.h"
#include "tc/cpu/from_poly.h"
#include "tc/cpu/loader.h"
#include "tc/cpu/object.h"
#include "tc/cuda/executable.h"
#include "tc/cuda/nvrtc.h"
#include "tc/gpu/strategy/map.h"
#include "tc/ir/check_subscripts.h"
#include "tc/ir/specialise.h"
#include "tc/lang/ast.h"
#include "tc/lang/typed_ast.h"
#include "tc/options/backend.h"
#include "tc/options/mapping.h"
#include "tc/options/options.h"
#include "tc/poly/scop.h"
#include "tc/support/result.h"
#include "tc/tile/proof.h"

/// The whole compiler, top to bottom: read pipeline.cc first.
namespace tc::compile {

using options::Backend;

/// What a compilation is told.
struct Settings {
  std::string entry;    ///< the def; may be empty if the text has one
  ir::Given given;      ///< shapes, sizes and compiled-in scalars
  ir::Layouts layouts;  ///< strides of tensors that are not dense
  Backend backend = Backend::kCpu;
  options::CpuOptions options;      ///< of the CPU
  options::MappingOptions mapping;  ///< of a GPU
  GpuTarget gpu;
  bool element_aligned = false;  ///< of a GPU: tensors are aligned to their elements, and need not be to vectors
  options::Budget budget;
  std::stop_token cancel;
  std::string target = "host";  ///< as cpu::ObjectOptions::target
  int threads = 0;              ///< that the kernel is made for; 0: those that the runtime has
  bool verify = false;          ///< run each pass's verifier

  bool checks_bounds() const { return backend == Backend::kCpu ? options.check_bounds : mapping.check_bounds; }
};

struct PassTime {
  std::string pass;
  double ms = 0;
};

/// What travels: each pass fills one member from those before it.
struct Compilation {
  SourcePtr source;
  std::shared_ptr<const lang::File> file;
  std::shared_ptr<const lang::TypedProgram> typed;
  std::shared_ptr<const ir::Program> program;   ///< for all sizes; for all values of scalars too, if there is one
  std::shared_ptr<const ir::Program> instance;  ///< `program` for the values of the compiled-in scalars (C11)
  std::shared_ptr<const ir::Program> specialised;
  std::shared_ptr<const ir::Program> checked;   ///< the same; with check_bounds it checks subscripts by itself
  std::vector<ir::SubscriptCheck> checks;       ///< of `checked`
  std::shared_ptr<const ir::Program> prepared;  ///< with statements and temporaries that the caller did not write
  std::optional<poly::Scop> scop;               ///< refined by schedule
  std::optional<cpu::KernelStmt> stmt;
  std::optional<cpu::Object> object;
  std::shared_ptr<const cpu::Loaded> loaded;
  // The GPU's, in place of the last three:
  options::MappingOptions mapping_options;  ///< those of the settings, with what `prepare` has decided
  std::optional<gpu::Pieces> pieces;
  std::optional<gpu::Mapping> mapping;
  std::optional<tile::Proof> proof;  ///< of the mapping's program; none unless Settings::verify
  std::string cuda_text;
  std::optional<cuda::Compiled> compiled;
  std::shared_ptr<cuda::Executable> executable;

  /// The Program of this compilation: the instance, once there is one.
  const ir::Program& concrete() const { return instance ? *instance : *program; }

  std::chrono::steady_clock::time_point deadline{};  ///< of the passes that run now
  std::chrono::steady_clock::duration spent{};       ///< by the passes before those
  size_t done = 0;                                   ///< how many passes have run
  std::vector<PassTime> times;                       ///< of those
};

/// The sizes and compiled-in scalars of the settings, for people: "K=5, M=4, N=6".
std::string instance_text(const Settings& settings, const ir::Program& program);

/// Whether a compilation is cancelled, or behind its deadline. Holds references to both.
Stop stop_of(const Settings& settings, const Compilation& compilation);

/// One step. Its name is also the name of its dump, of its timer, of --stop_after and of its golden file.
struct Pass {
  const char* name;
  const char* summary;
  Result<void> (*run)(const Settings& settings, Compilation& compilation);
  /// What the pass made, as text that is the same for the same input.
  Result<std::string> (*dump)(const Settings& settings, const Compilation& compilation);
  /// Checks what the pass made; null if there is nothing to check beyond what the pass does anyway.
  /// It may keep what it proved.
  Result<void> (*verify)(Compilation& compilation);
};

/// All passes of a backend in order. The first four are the same for all.
const std::vector<Pass>& passes(Backend backend = Backend::kCpu);

/// Runs the passes that have not run yet, up to and with `last` ("" for all). A fault of ours is thrown as
/// InternalError that begins with the pass's name; whatever a library throws becomes one.
/// Errors: the user's, by the pass that finds them; the budget; cancellation; no pass of that name.
Result<void> run_passes(const Settings& settings, Compilation& compilation, std::string_view last = {});

/// Makes the instance of a Program (C11) from the settings' values of compiled-in scalars. Leaves it as it is where one
/// of them has no value.
Result<void> fill_in_scalars(const Settings& settings, Compilation& compilation);

/// The dump of a pass that has run last, or is one of those before. Errors: as run_passes for a name.
Result<std::string> dump(const Settings& settings, const Compilation& compilation, std::string_view pass);

/// Place of a pass in passes(). Errors: no such pass, with the nearest that there is.
Result<size_t> find_pass(std::string_view name, Backend backend = Backend::kCpu);

}  // namespace tc::compile
