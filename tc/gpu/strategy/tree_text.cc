#include "tc/gpu/strategy/tree_text.h"

#include "tc/poly/band_ref.h"
#include "tc/poly/print.h"
#include "tc/poly/restricted.h"

namespace tc::gpu {
namespace {

std::string binding_text(const Kernel& kernel, const Binding& binding) {
  if (binding.cooperative) return "all threads together";
  std::string text;
  for (const std::optional<Dealt>& dealt : binding.members) {
    if (!text.empty()) text += ", ";
    if (!dealt) {
      text += "in order";
      continue;
    }
    const char* to = dealt->to == Dealt::To::kBlocks ? "block" : "thread";
    text += fmt::format("{}_{}", to, std::string(1, static_cast<char>('x' + dealt->axis)));
    if (dealt->stride > 1) text += fmt::format(" in steps of {}", dealt->stride);
    text += fmt::format(" of {}", kernel.count(*dealt));
  }
  if (text.empty()) return binding.to == Dealt::To::kBlocks ? "every block" : "the first thread";
  return text;
}

std::string kernel_text(const std::string& name, const Kernel& kernel) {
  poly::Scop own = poly::restricted(kernel.scop, poly::statements_at(kernel.scop, kernel.scop.schedule.root()));
  own.schedule = kernel.scop.schedule;
  std::string text = fmt::format("kernel {}: grid ({}), block ({})\n", name, fmt::join(kernel.grid, ", "),
                                 fmt::join(kernel.block, ", "));
  text += poly::schedule_text(own);
  if (!kernel.bindings.empty()) text += "bindings\n";
  for (size_t b = 0; b < kernel.bindings.size(); ++b) {
    text += fmt::format("  {}{}: {}\n", kBindMark, b, binding_text(kernel, kernel.bindings[b]));
  }
  return text;
}

}  // namespace

std::string tree_text(const Mapping& mapping) {
  std::string text;
  for (size_t k = 0; k < mapping.kernels.size(); ++k) {
    if (k > 0) text += "\n";
    text += kernel_text(mapping.program.kernels[k].name, mapping.kernels[k]);
  }
  return text;
}

}  // namespace tc::gpu
