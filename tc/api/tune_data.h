#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "tc/api/tune_problem.h"
#include "tc/compile/pipeline.h"
#include "tc/interp/interpreter.h"

/// What a worker prepares once for all candidates of a problem.
namespace tc::api {

/// A problem as the pipeline has it.
struct TuneSetup {
  TuneProblem problem{};
  compile::Settings settings{};        ///< without options
  compile::Compilation compilation{};  ///< specialised
  Signature signature{};
  Specs specs{};
};
/// Errors: the text's, the request's.
Result<TuneSetup> set_up(const TuneProblem& problem);

/// All arguments of a run, in the order of the text.
struct TuneData {
  std::vector<Tensor> inputs{};
  std::vector<Tensor> outputs{};  ///< as they are before a run
  std::vector<Scalar> scalars{};
};
/// The caller's tensors from the problem's folder, or random ones. Errors: a scalar without a value; the folder's.
Result<TuneData> make_data(const TuneSetup& setup);

/// Puts the caller's tensors there for make_data(). Errors: the folder's; tensors that are not those of the specs.
Result<void> write_data(const std::string& folder, const Specs& specs, std::span<const Tensor> inputs);

/// A tensor of the same layout with the same bytes.
Result<Tensor> copy_of(const Tensor& tensor);

/// True where the interpreter would take minutes, and the CPU's strict kernel stands in for it (tune.h).
bool has_stand_in(const TuneSetup& setup);

/// What results have to be: the oracle's, or the stand-in's (tune.h). Kept in the problem's folder, where there is one,
/// for the next worker, until another search takes the folder. Errors: the oracle's.
void forget_results(const std::string& folder);
Result<interp::BoundedEnvironment> expected_results(const TuneSetup& setup, const TuneData& data,
                                                    std::stop_token cancel = {});

/// What is wrong with results, in a sentence; empty if nothing is.
std::string mismatch(const TuneSetup& setup, std::span<const Tensor> outputs,
                     const interp::BoundedEnvironment& expected);

}  // namespace tc::api
