#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tc/api/tc.h"
#include "tc/cache/cache.h"
#include "tc/compile/pipeline.h"

namespace tc::api {

/// The cache's file as an engine uses it: which of its kernels serves a request.
class KernelStore {
 public:
  struct Policy {
    bool production = false;  ///< take what any compiler version made for what this machine can run; prove nothing
    Reprove reprove = Reprove::kOtherCompiler;
    bool nearest = false;
    bool keep_text = false;
    std::function<void(const std::string&)> on_warning{};
  };
  KernelStore(std::shared_ptr<cache::Cache> file, Policy policy) : file_(std::move(file)), policy_(std::move(policy)) {}

  /// A def as the store needs it.
  struct Def {
    const ir::Program& program;  ///< symbolic; statements are not looked at
    const std::string& digest;
    bool has_run_time_checks;  ///< data-dependent subscripts
    /// The def's Compilation up to its Program, for proofs. Not called in production.
    std::function<Result<compile::Compilation>()> compilation;
  };

  /// What a request leads to.
  struct Found {
    std::optional<CompiledKernel> kernel;
    bool reproved = false;
    /// Where there is no kernel: what to compile, the best known options first. The last are those of the request.
    struct Candidate {
      compile::Settings settings;
      std::string origin;  ///< "the best known options", "those of the nearest shape, 64x64"; "" for the request's
    };
    std::vector<Candidate> to_compile;
  };

  /// Errors: of the request (as ir::bind); in production, that there is no kernel.
  Result<Found> find(const compile::Settings& settings, const Def& def) const;

  /// Keeps a compilation that has run all passes. What fails is a warning.
  void put(const compile::Settings& settings, const Def& def, const compile::Compilation& compilation) const;

  const std::shared_ptr<cache::Cache>& file() const { return file_; }
  void warn(const std::string& sentence) const;

 private:
  struct Search;
  Result<std::optional<CompiledKernel>> take(const Search& search, const cache::Key& key, bool measured,
                                             bool& reproved) const;
  Result<bool> prove(const Search& search, const cache::Key& key, const cache::Entry& entry) const;
  Result<std::optional<CompiledKernel>> find_options(const Search& search, const std::string& options, bool measured,
                                                     bool& reproved) const;
  Result<Found> find_problem(const Search& search) const;
  bool has_code_for(const cache::Problem& problem, int device) const;
  Result<std::vector<cache::Problem>> runnable_problems(const Search& search) const;
  tl::unexpected<Error> miss(const Search& search) const;

  std::shared_ptr<cache::Cache> file_;
  Policy policy_;
};

}  // namespace tc::api
