#include "tc/cache/entry.h"

#include <algorithm>

#include "tc/cuda/arch.h"

namespace tc::cache {

std::optional<Cubin> GpuCode::code_for(int device) const {
  const Cubin* best = nullptr;
  int newest = -1;
  const Cubin first{arch, cubin};
  const auto look_at = [&](const Cubin& one) {
    const auto of_code = cuda::parse_arch(one.arch);
    if (!of_code || !cuda::runs_on(*of_code, device) || of_code->number <= newest) return;
    newest = of_code->number;
    best = &one;
  };
  look_at(first);
  for (const Cubin& other : others) look_at(other);
  return best ? std::optional(*best) : std::nullopt;
}

std::optional<Entry> joined(Entry ours, const Entry& theirs) {
  if (ours.certificate.proved_text != theirs.certificate.proved_text) return std::nullopt;
  const auto is_known = [&](const std::string& arch) {
    return arch == ours.gpu.arch || std::ranges::find(ours.gpu.others, arch, &Cubin::arch) != ours.gpu.others.end();
  };
  bool is_more = false;
  for (const Cubin& other : theirs.gpu.others) {
    if (is_known(other.arch)) continue;
    ours.gpu.others.push_back(other);
    is_more = true;
  }
  return is_more ? std::optional(std::move(ours)) : std::nullopt;
}

}  // namespace tc::cache
