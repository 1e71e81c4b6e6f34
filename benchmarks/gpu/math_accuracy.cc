// How far the functions of CUDA's math library are from the truth, in units in the last place, on this machine's GPU:
// a line for each function, with the greatest error on float32 and float64 over samples from its whole domain.
//     math_accuracy [SAMPLES]
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "benchmarks/gpu/machine.h"
#include "tests/common/math_reference.h"
#include "tests/cuda/hand_written.h"

namespace tc::cuda {
namespace {

using testing::MathReference;
using testing::Quad;

struct Worst {
  double ulp = 0;
  std::string at;
};

template <typename Float>
Worst measure(Machine& machine, const MathReference& reference, int count) {
  const Halide::Type type = Halide::Float(8 * sizeof(Float));
  std::vector<std::vector<Float>> in;
  std::vector<Buffer> buffers;
  for (int k = 0; k < reference.arguments; ++k) {
    in.push_back(testing::samples<Float>(count, reference.low, reference.high, 17 + k));
    buffers.push_back(machine.upload(in[k].data(), count * sizeof(Float)));
  }
  std::vector<Float> out(count);
  buffers.push_back(machine.upload(out.data(), count * sizeof(Float)));
  const std::vector<Halide::Type> arguments(reference.arguments, type);
  const auto executable = machine.load(hand_written::intrinsic(reference.name, arguments, type, count));
  std::vector<Address> addresses;
  for (const Buffer& buffer : buffers) addresses.push_back(buffer.address());
  need(executable->run(machine.stream(), addresses));
  need(buffers.back().copy_to(out.data(), count * sizeof(Float), machine.stream()));
  machine.wait();
  Worst worst;
  for (int i = 0; i < count; ++i) {
    Quad x[4] = {};
    for (int k = 0; k < reference.arguments; ++k) x[k] = in[k][i];
    const double error = testing::ulp_error(out[i], reference.value(x));
    if (error <= worst.ulp) continue;
    worst.ulp = error;
    worst.at.clear();
    for (const auto& values : in) worst.at += fmt::format("{:a} ", values[i]);
    worst.at += fmt::format("gives {:a}", out[i]);
  }
  return worst;
}

int run(int count) {
  Machine machine;
  for (const MathReference& reference : testing::math_references()) {
    const Worst narrow = measure<float>(machine, reference, count);
    const Worst wide = measure<double>(machine, reference, count);
    fmt::print("| `{}` | {:.2f} | {:.2f} |   float32 at {}; float64 at {}\n", reference.name, narrow.ulp, wide.ulp,
               narrow.at, wide.at);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace tc::cuda

int main(int argc, char** argv) { return tc::cuda::run(argc > 1 ? std::atoi(argv[1]) : 100000); }
