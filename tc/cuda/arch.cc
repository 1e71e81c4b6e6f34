#include "tc/cuda/arch.h"

#include <charconv>

namespace tc::cuda {
namespace {

constexpr int kOldest = 75;

}  // namespace

Result<Arch> parse_arch(const std::string& text) {
  Arch arch;
  const std::string prefix = "sm_";
  const char* end = text.data() + text.size();
  if (text.starts_with(prefix)) {
    const auto [rest, error] = std::from_chars(text.data() + prefix.size(), end, arch.number);
    const bool has_variant = rest + 1 == end && (*rest == 'a' || *rest == 'f');
    if (error == std::errc() && (rest == end || has_variant) && arch.number >= 10 && arch.number <= 9999) {
      if (has_variant) arch.variant = *rest;
      if (arch.number < kOldest) {
        return fail("'{}' is no GPU architecture that kernels are made for; the oldest is sm_{}", text, kOldest);
      }
      return arch;
    }
  }
  return fail("'{}' is no GPU architecture; one is written like sm_80 or sm_90a", text);
}

std::string to_string(Arch arch) {
  std::string text = fmt::format("sm_{}", arch.number);
  if (arch.variant) text += arch.variant;
  return text;
}

bool runs_on(Arch code, int device) {
  if (code.variant == 'a') return code.number == device;
  return code.number / 10 == device / 10 && code.number <= device;
}

}  // namespace tc::cuda
