#include "tc/cache/entry.h"

#include <algorithm>

#include "tc/cuda/arch.h"

namespace tc::cache {

std::vector<Cubin> GpuCode::newest_first() const {
  std::vector<Cubin> all = {{arch, cubin}};
  all.insert(all.end(), others.begin(), others.end());
  std::ranges::stable_sort(all, std::greater<>(), [](const Cubin& one) {
    const auto of_code = cuda::parse_arch(one.arch).value_or(cuda::Arch());
    return std::pair(of_code.number, of_code.variant == 'a' ? 2 : of_code.variant == 'f' ? 1 : 0);
  });
  return all;
}

std::optional<Cubin> GpuCode::code_for(int device) const {
  for (Cubin& one : newest_first()) {
    const auto of_code = cuda::parse_arch(one.arch);
    if (of_code && cuda::runs_on(*of_code, device)) return std::move(one);
  }
  return std::nullopt;
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
