#include "tests/gpu/proved.h"

#include "tc/tile/certificate.h"
#include "tc/tile/verify.h"

namespace tc::testing {

std::string unproved(const tile::Program& program) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& sentences) {
    for (const std::string& sentence : sentences) text += sentence + "\n";
  };
  const tile::Verification verification = tile::verify(program);
  add(verification.faults);
  add(verification.unproved);
  for (const tile::Kernel& kernel : program.kernels) {
    const tile::Certificate certificate = tile::certify(kernel);
    add(certificate.races);
    add(certificate.unproved);
  }
  return text;
}

std::string faults_of(const ir::Program& program, const gpu::Device& device) {
  const Result<gpu::Mapping> mapping = mapped(program, {}, device);
  if (!mapping) return mapping.error().to_string();
  return unproved(mapping->program) + difference_of_mapping(program, *mapping);
}

}  // namespace tc::testing
