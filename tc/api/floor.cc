#include "tc/api/floor.h"

#include <algorithm>

#include "tc/cpu/object.h"
#include "tc/cpu/runtime.h"
#include "tc/ir/least_work.h"

namespace tc::api {

using options::Backend;

namespace {

/// What a machine does in a microsecond, at most.
struct Peak {
  double lane_bits = 0;    ///< of updates: lanes that finish one, times their width
  double store_bytes = 0;  ///< to the fastest memory
};

/// 6 GHz; two vectors of fused multiply-adds a cycle, whose lanes may be as narrow as their operands; two vectors
/// stored.
Peak peak_of_cpu(const compile::Settings& settings) {
  const double cycles = 6e3 * std::max(cpu::thread_count(), settings.threads);
  const double vector_bits = cpu::vector_bits(settings.target);
  return {.lane_bits = cycles * 2 * vector_bits, .store_bytes = cycles * 2 * vector_bits / 8};
}

/// 2.2 GHz; the tensor cores of a processor finish 4096 products of 16 bits a cycle, more than all its other units; 128
/// bytes a cycle are stored.
Peak peak_of_gpu(const compile::Settings& settings) {
  const double cycles = 2.2e3 * static_cast<double>(settings.gpu.device.processors);
  return {.lane_bits = cycles * 4096 * 16, .store_bytes = cycles * 128};
}

}  // namespace

double floor_us(const ir::Program& program, const compile::Settings& settings) {
  if (settings.backend == Backend::kSimulator) return 0;
  const ir::LeastWork work = ir::least_work(program);
  const Peak peak = settings.backend == Backend::kCpu ? peak_of_cpu(settings) : peak_of_gpu(settings);
  return std::max(work.updates * work.lane_bits / peak.lane_bits, work.result_bytes / peak.store_bytes);
}

}  // namespace tc::api
