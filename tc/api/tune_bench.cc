#include "tc/api/tune_bench.h"

#include <algorithm>

#include "tc/api/call.h"
#include "tc/api/device_lock.h"
#include "tc/api/elements.h"
#include "tc/api/kernel.h"
#include "tc/support/clock.h"
#include "tc/support/result.h"

namespace tc::api {
namespace {

Result<std::vector<Tensor>> copies_of(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& tensor : tensors) {
    TC_TRY(copy, copy_of(tensor));
    copies.push_back(std::move(copy));
  }
  return copies;
}

class CpuBench : public Bench {
 public:
  CpuBench(const TuneSetup& setup, TuneData data, std::vector<Tensor> scratch, interp::BoundedEnvironment expected)
      : setup_(setup), data_(std::move(data)), scratch_(std::move(scratch)), expected_(std::move(expected)) {}

  Result<std::string> check(const Candidate& candidate) override {
    TC_TRY(outputs, copies_of(data_.outputs));
    {
      const DeviceLock lock(Backend::kCpu, 0);
      TC_TRY_VOID(candidate.kernel->run(data_.inputs, outputs, data_.scalars));
    }
    return mismatch(setup_, outputs, expected_);
  }

  tune::Subject subject(const Candidate& candidate) override {
    const CompiledKernel& kernel = *candidate.kernel;
    return {.hot = [this, &kernel](int runs) -> Result<double> {
              const Clock::time_point begin = Clock::now();
              for (int i = 0; i < runs; ++i) TC_TRY_VOID(kernel.run(data_.inputs, scratch_, data_.scalars));
              return us_since(begin);
            },
            .cold = [this, &kernel]() -> Result<double> {
              // More than the caches of the processors at hand.
              flushed_.resize(size_t{96} << 20);
              for (size_t i = 0; i < flushed_.size(); i += 64) ++flushed_[i];
              const Clock::time_point begin = Clock::now();
              TC_TRY_VOID(kernel.run(data_.inputs, scratch_, data_.scalars));
              return us_since(begin);
            }};
  }

 private:
  const TuneSetup& setup_;
  TuneData data_;
  std::vector<Tensor> scratch_;  ///< outputs of which nothing is kept
  interp::BoundedEnvironment expected_;
  std::vector<char> flushed_;
};

class SimulatedBench : public Bench {
 public:
  SimulatedBench(const TuneSetup& setup, TuneData data, interp::BoundedEnvironment expected)
      : setup_(setup), data_(std::move(data)), expected_(std::move(expected)) {}

  Result<std::string> check(const Candidate& candidate) override {
    TC_TRY(outputs, copies_of(data_.outputs));
    TC_TRY(report, tile::simulate(*candidate.simulated, arguments(outputs)));
    candidate.simulated_us = modelled_us(report);
    if (!report.findings.empty()) return "the simulator finds: " + report.findings[0].sentence;
    return mismatch(setup_, outputs, expected_);
  }

  tune::Subject subject(const Candidate& candidate) override {
    return {.hot = [this, &candidate](int runs) -> Result<double> {
              if (!candidate.simulated_us) TC_TRY_VOID(check(candidate));
              return *candidate.simulated_us * runs;
            },
            .cold = {}};
  }

 private:
  tile::Arguments arguments(std::vector<Tensor>& outputs) const {
    tile::Arguments arguments;
    const auto add = [&](const std::string& name, const Tensor& tensor) {
      arguments.tensors[name] = {tensor.data_as<std::byte>(), static_cast<size_t>(tensor.spec().span_bytes())};
    };
    size_t input = 0, scalar = 0;
    for (const Argument& parameter : setup_.signature.parameters) {
      if (parameter.role != Role::kScalar) {
        add(parameter.name, data_.inputs[input++]);
        continue;
      }
      const int64_t bits = *scalar_bits(data_.scalars[scalar++], parameter.type);
      if (parameter.compiled_in) continue;
      if (is_float(parameter.type)) arguments.scalars[parameter.name] = load_float(parameter.type, &bits);
      if (!is_float(parameter.type)) arguments.scalars[parameter.name] = load_integer(parameter.type, &bits);
    }
    for (size_t o = 0; o < outputs.size(); ++o) add(setup_.signature.results[o].name, outputs[o]);
    return arguments;
  }

  const TuneSetup& setup_;
  TuneData data_;
  interp::BoundedEnvironment expected_;
};

}  // namespace

double modelled_us(const tile::Report& report) {
  // Per microsecond.
  constexpr double kSectors = 4.25e6 / 32, kWavefronts = 132 * 1.7e3, kOperations = 132 * 4 * 32 * 1.7e3,
                   kBarriers = 132 * 1.7e3 / 30;
  double us = 0;
  for (const tile::Counters& c : report.counters) {
    us += 1 + std::max({static_cast<double>(c.global_sectors) / kSectors,
                        static_cast<double>(c.shared_wavefronts) / kWavefronts,
                        static_cast<double>(c.thread_operations) / kOperations,
                        static_cast<double>(c.barriers) / kBarriers});
  }
  return us;
}

Result<std::unique_ptr<Bench>> make_bench(const TuneSetup& setup, int device, std::stop_token cancel) {
  TC_TRY(data, make_data(setup));
  TC_TRY(expected, expected_results(setup, data, cancel));
  if (setup.settings.backend == Backend::kCuda) {
    return make_cuda_bench(setup, std::move(data), std::move(expected), device);
  }
  if (setup.settings.backend == Backend::kSimulator) {
    return std::make_unique<SimulatedBench>(setup, std::move(data), std::move(expected));
  }
  TC_TRY(scratch, copies_of(data.outputs));
  return std::make_unique<CpuBench>(setup, std::move(data), std::move(scratch), std::move(expected));
}

}  // namespace tc::api
