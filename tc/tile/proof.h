#pragma once

#include <string>
#include <vector>

#include "tc/tile/certificate.h"
#include "tc/tile/coverage.h"
#include "tc/tile/verify.h"

namespace tc::tile {

/// All that the verifiers find of a program.
struct Proof {
  Verification verification;
  std::vector<Certificate> certificates;  ///< one for each kernel; of a wrong structure: empty, and not finished
  std::vector<Coverage> coverages;        ///< one for each kernel whose work is known; of a wrong structure: empty
};

/// Runs verify(), and on each kernel whose structure is right certify() and, with the works of all kernels, cover().
Proof prove(const Program& program, const Limits& limits = {}, const std::vector<Work>& works = {});

/// For people: for each kernel what is proved, counted; then a sentence for each thing that is wrong or not proved.
std::string to_text(const Program& program, const Proof& proof);

/// The counts of all kernels in a line: "24 of 24 accesses inside, 9 of 9 pairs of accesses ...".
std::string summary(const Proof& proof);

}  // namespace tc::tile
