#pragma once

#include <functional>
#include <mutex>
#include <optional>

#include "tc/api/call.h"
#include "tc/api/explain.h"
#include "tc/api/runner.h"
#include "tc/api/tc.h"
#include "tc/compile/pipeline.h"

namespace tc::api {

/// The kernel that takes what another one cannot: tensors that are aligned to their elements only.
class ElementAligned {
 public:
  using Make = std::function<Result<CompiledKernel>()>;
  /// Before anybody has the other kernel. One that compiles fails once and for all; one that only looks the kernel up
  /// may find it later.
  void made_by(Make make, bool compiles) {
    make_ = std::move(make);
    compiles_ = compiles;
  }
  bool exists() const { return make_ != nullptr; }
  /// Whether get() answers without making anything.
  bool is_known() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return made_.has_value();
  }
  /// Made by the first call, whose error is that of all calls if it has compiled.
  Result<CompiledKernel> get();

 private:
  Make make_;
  bool compiles_ = false;
  mutable std::mutex mutex_;
  std::optional<Result<CompiledKernel>> made_;
};

/// A loaded kernel and all that a call needs to know of it. Immutable but for
/// what calls for unaligned tensors add.
struct CompiledKernel::Impl {
  /// Of a compilation that has run all passes.
  Impl(const compile::Settings& settings, const compile::Compilation& compilation);
  /// Of an entry for the settings, whose slots fit_program() says fit.
  Impl(const compile::Settings& settings, const ir::Program& program, const ir::Bindings& bindings,
       const cache::Entry& entry, std::unique_ptr<const Runner> loaded);

  Result<void> run(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs,
                   std::span<const Scalar> scalars, void* stream) const;

  Signature signature;
  Specs specs;
  CallPlan plan;
  std::vector<PassTime> times;
  Provenance provenance;
  size_t code_bytes = 0;
  std::unique_ptr<const Runner> runner;
  mutable ElementAligned element_aligned;
  /// Of an engine's kernel; set before anybody has it.
  mutable std::function<Result<Explanation>()> explain;

 private:
  void fill_plan(const compile::Settings& settings);  ///< all but the slots
};

/// The kernel of a compilation that has run all passes.
CompiledKernel kernel_of(const compile::Settings& settings, const compile::Compilation& compilation);

/// The kernel of an entry that was made for the settings of this symbolic Program, and the options that its key names;
/// `measured` as in Provenance.
/// Errors: code that this machine cannot run; an entry of another program.
Result<CompiledKernel> kernel_of(const compile::Settings& settings, const ir::Program& program,
                                 const cache::Entry& entry, const std::string& options, bool measured = false);

}  // namespace tc::api
