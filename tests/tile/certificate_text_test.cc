#include "tc/tile/certificate_text.h"

#include <gtest/gtest.h>

#include "../common/tile_mutants.h"
#include "kernels.h"

namespace tc::tile {
namespace {

TEST(CertificateText, CountsWhatIsProved) {
  EXPECT_EQ(certificate_text(pipelined_matmul(64, 96, 64).program),
            "kernel pipelined_matmul\n"
            "  bounds: 36 subscripts inside their extents\n"
            "  alignment: 10 vectors\n"
            "  reached together: 2 barriers and steps of warps\n"
            "  order: 24 pairs of accesses decided, 0 races; 2 barriers of blocks, 0 of warps; 4 commits and waits of "
            "copies\n"
            "  promises: read-only none; not aliased none\n");
}

TEST(CertificateText, NamesWhatAMutantLacks) {
  const Program program = pipelined_matmul(64, 96, 64).program;
  for (const Mutant& mutant : mutants(program)) {
    const std::string text = certificate_text(mutant.program);
    const bool is_fault = text.find("  FAULT: ") != std::string::npos;
    EXPECT_TRUE(is_fault || text.find("  RACE: ") != std::string::npos) << mutant.what << "\n" << text;
    EXPECT_EQ(is_fault, text.find("order and promises were not looked at") != std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tc::tile
