#include "tc/gpu/strategy/contraction/narrow_gain.h"

#include <algorithm>

#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/cost.h"
#include "tc/gpu/strategy/contraction/plan.h"
#include "tc/gpu/strategy/contraction/prologue.h"
#include "tc/gpu/strategy/contraction/requested_tile.h"
#include "tc/ir/specialise.h"
#include "tc/poly/from_ir.h"

namespace tc::gpu {
namespace {

constexpr double kLaunchUs = 1;

double us_of(const ContractionPlan& plan, const Device& device) { return plan.cycles / (1e3 * device.gigahertz); }

/// Microseconds of a product by tensor cores and of the operands that it reads; nothing if it has no such plan.
std::optional<double> product_us(ir::Program program, const ir::Statement& product, const NarrowProducts& all,
                                 const options::MappingOptions& options, const Device& device) {
  program.statements.clear();
  program.tensors.insert(program.tensors.end(), all.temporaries.begin(), all.temporaries.end());
  double launches_us = 0;
  for (const ir::Statement& operand : all.operands) {
    if (reads_tensor(product.value, operand.tensor)) program.statements.push_back(operand);
  }
  const size_t at = program.statements.size();
  program.statements.push_back(product);
  const auto context = std::make_shared<poly::Context>();
  const Result<poly::Scop> scop = poly::from_ir(std::make_shared<const ir::Program>(std::move(program)), context);
  std::optional<Contraction> contraction = scop ? contraction_at(*scop, at) : std::nullopt;
  if (!contraction) return std::nullopt;
  Result<ContractionPlan> plan = plan_tensor_cores(*contraction, options, device);
  if (!plan) return std::nullopt;
  add_prologues(*scop, 0, options, device, *contraction, *plan);
  for (size_t s = 0; s < contraction->first; ++s) {
    double bytes = 0;
    for (const ir::Tensor& tensor : all.temporaries) {
      if (tensor.name != scop->statements[s].tensor) continue;
      bytes = static_cast<double>(tensor.type.bytes());
      for (const int64_t extent : ir::constant_shape(tensor)) bytes *= static_cast<double>(extent);
    }
    launches_us += kLaunchUs + 2 * bytes / device.memory_bytes_per_us;
  }
  return us_of(*plan, device) + launches_us;
}

}  // namespace

bool gains_by_tensor_cores(const ir::Program& program, const ir::Statement& statement, const NarrowProducts& instead,
                           const options::MappingOptions& of_def, const Device& device) {
  options::MappingOptions options = of_def;  // nobody stores the sums of a product alone
  options.store_boxes = std::nullopt;
  // Sizes are those of the axes that are left when dimensions are flattened.
  if (options.tensor_cores.value_or(false)) options = without_tile_sizes(std::move(options));
  double us = 0;
  for (const ir::Statement& product : instead.products) {
    const std::optional<double> own = product_us(program, product, instead, options, device);
    if (!own) return false;
    us += *own;
  }
  const std::optional<Contraction> as_it_is = contraction_of(program, statement);
  if (!as_it_is) return true;
  // What tensor cores multiply as it is stays, unless elements take less time, and the other products even less.
  const Result<ContractionPlan> cores = plan_tensor_cores(*as_it_is, options, device);
  if (cores && us_of(*cores, device) <= us) return false;
  const double most = cores ? cores->cycles : cycles_within(us, device);
  const Result<ContractionPlan> plan = plan_contraction(*as_it_is, options, device, most);
  return !plan || (!plan->tensor_cores && us < us_of(*plan, device));
}

}  // namespace tc::gpu
