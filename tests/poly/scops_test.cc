#include "tests/poly/scops.h"

#include <gtest/gtest.h>

#include "tc/poly/from_ir.h"
#include "tc/poly/schedule.h"
#include "tc/support/check.h"

namespace tc::poly::test {

Scop scop_of(const ProgramPtr& program) {
  Result<Scop> scop = from_ir(program, std::make_shared<Context>());
  TC_CHECK(scop, "{}", scop.error().to_string());
  return std::move(*scop);
}

Scop scheduled(const ProgramPtr& program, options::Fusion fusion) {
  options::SchedulerOptions options;
  options.fusion = fusion;
  Result<Scop> scop = schedule(scop_of(program), options);
  TC_CHECK(scop, "{}", scop.error().to_string());
  return std::move(*scop);
}

std::vector<std::pair<std::string, ProgramPtr>> all_programs() {
  return {{"matmul", matmul(13, 9, 7)},
          {"sgemm", sgemm(8, 9, 10)},
          {"softmax", softmax(6, 11)},
          {"conv_relu", conv_relu(2, 3, 4, 8, 9, 3, 2)},
          {"mlp3", mlp3(5, 4, 6, 3, 2)},
          {"producer_conv1d", producer_conv1d(20, 3)},
          {"transpose_add", transpose_add(6, 7)},
          {"histogram", histogram(9, 4)},
          {"padded_conv1d", padded_conv1d(12)},
          {"gather", gather(5, 4, 3)},
          {"layernorm", layernorm(5, 8)},
          {"normalise", normalise(7)}};
}

}  // namespace tc::poly::test
