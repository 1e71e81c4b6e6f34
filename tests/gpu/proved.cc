#include "tests/gpu/proved.h"

#include "tc/tile/certificate.h"
#include "tc/tile/verify.h"

namespace tc::testing {

std::string faults_of(const ir::Program& program, const gpu::Device& device) {
  const Result<gpu::Mapping> mapping = mapped(program, {}, device);
  if (!mapping) return mapping.error().to_string();
  const tile::Verification verification = tile::verify(mapping->program);
  std::string text = fmt::format("{}{}", fmt::join(verification.faults, "\n"), fmt::join(verification.unproved, "\n"));
  for (const tile::Kernel& kernel : mapping->program.kernels) {
    const tile::Certificate certificate = tile::certify(kernel);
    text += fmt::format("{}{}", fmt::join(certificate.races, "\n"), fmt::join(certificate.unproved, "\n"));
  }
  return text + difference(program, {}, 1, device);
}

}  // namespace tc::testing
