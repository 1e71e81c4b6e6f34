#include "tc/gpu/strategy/piece_time.h"

#include <set>

#include "tc/ir/specialise.h"

namespace tc::gpu {

double estimated_us(const Piece& piece, const Device& device) {
  constexpr double kLaunchUs = 1, kOtherUs = 1.5;
  if (piece.contraction) {
    double cycles = 0;
    for (const ContractionPlan& plan : piece.chain ? piece.chain->plan.plans : piece.plans) cycles += plan.cycles;
    return kLaunchUs + cycles / (1e3 * device.gigahertz);
  }
  std::set<std::string> tensors;
  for (const poly::Access& access : piece.scop.accesses) tensors.insert(access.tensor);
  double bytes = 0;
  for (const std::string& name : tensors) {
    const ir::Tensor& tensor = piece.scop.program->tensor(name);
    auto own = static_cast<double>(tensor.type.bytes());
    for (const int64_t extent : ir::constant_shape(tensor)) own *= static_cast<double>(extent);
    bytes += own;
  }
  return kOtherUs + bytes / device.memory_bytes_per_us;
}

}  // namespace tc::gpu
