#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "tc/api/tune_data.h"
#include "tc/cache/entry.h"
#include "tc/tile/simulate.h"
#include "tc/tune/measure.h"

namespace tc::api {

/// A candidate that has been compiled.
struct Candidate {
  compile::Settings settings{};
  std::optional<CompiledKernel> kernel{};            ///< of the CPU and of CUDA
  std::shared_ptr<const tile::Program> simulated{};  ///< of the simulator
  mutable std::optional<double> simulated_us{};      ///< once it has run there
};

/// Where candidates run: a processor with the problem's data on it.
class Bench {
 public:
  virtual ~Bench() = default;
  /// Runs once on fresh data, and says what is wrong with the results; empty if nothing is. Errors: the run's.
  virtual Result<std::string> check(const Candidate& candidate) = 0;
  /// For the stopwatch; `candidate` must live as long.
  virtual tune::Subject subject(const Candidate& candidate) = 0;
  /// True if a candidate has cost the device's context: nothing more can run in this process.
  virtual bool is_lost() const { return false; }
};

/// The bench of a problem's backend. Errors: the data's, the oracle's, the device's.
Result<std::unique_ptr<Bench>> make_bench(const TuneSetup& setup, int device, std::stop_token cancel = {});
Result<std::unique_ptr<Bench>> make_cuda_bench(const TuneSetup& setup, TuneData data,
                                               interp::BoundedEnvironment expected, int device);

/// What kernels would take on a GPU by what the simulator counts, in microseconds: the sum over kernels of a launch and
/// the largest of memory traffic, shared memory, instructions and barriers, each at the rate of one H200's share. A
/// model to test a search with, not a prediction.
double modelled_us(const tile::Report& report);

}  // namespace tc::api
