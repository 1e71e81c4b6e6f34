// The classic ladder of a GPU's optimisations, step by step, as schedules: ladder
//   vector add   bind; vectors
//   window sum   bind; shared memory; cooperative fetch; vectorized fetch
//   row sum      bind; parts of a row by threads; a tree of parts; shuffles
//   matmul       bind; shared memory; cooperative fetch; vectorized fetch; register tile; stages
// Each step runs on the simulator, is compared with plain loops, and printed with what the simulator counted; where
// there is a GPU it is timed there too. A user's program: it sees only what is installed.
#include <tc/api/schedule.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "managed.h"

namespace {

using tc::api::Axis;
using tc::api::Fetch;
using tc::api::Memory;
using tc::api::Part;
using tc::api::Schedule;
using tc::api::Tensor;
using Floats = std::vector<float>;

template <typename T>
T must(tc::Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s", result.error().to_string().c_str());
    std::exit(1);
  }
  return std::move(*result);
}

void must(const tc::Result<void>& result) {
  if (result) return;
  std::fprintf(stderr, "%s", result.error().to_string().c_str());
  std::exit(1);
}

/// A def, and how the steps of its ladder make a kernel of it.
struct Rung {
  const char* name;
  std::function<void(Schedule&)> steps;
};

struct Ladder {
  const char* title;
  const char* text;
  std::map<std::string, int64_t> simulated, timed;  ///< sizes
  std::function<Floats(const std::vector<Floats>& inputs, std::map<std::string, int64_t>& sizes)> reference;
  std::vector<Rung> rungs;
};

// --- vector add -------------------------------------------------------------------------------------------------

void bind_rows(Schedule& s) {
  const auto [block, thread] = must(s.split("i", 256));
  must(s.bind(block, Axis::kBlockX));
  must(s.bind(thread, Axis::kThreadX));
}

void bind_vectors(Schedule& s) {
  const auto [block, rest] = must(s.split("i", 1024));
  const auto [thread, lane] = must(s.split(rest, 4));
  must(s.bind(block, Axis::kBlockX));
  must(s.bind(thread, Axis::kThreadX));
  must(s.vectorize(lane));
}

Floats add(const std::vector<Floats>& in, std::map<std::string, int64_t>&) {
  Floats out(in[0].size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = in[0][i] + in[1][i];
  return out;
}

// --- window sum -------------------------------------------------------------------------------------------------

/// A block's part of x in shared memory: its own 256 elements, and those that the windows reach beyond.
void window_in_shared(Schedule& s, Fetch fetch) {
  bind_rows(s);
  must(s.promote("x", "i_outer", Memory::kShared, fetch));
}

Floats window(const std::vector<Floats>& in, std::map<std::string, int64_t>&) {
  Floats out(in[0].size() - 32);
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t k = 0; k < 32; ++k) out[i] += in[0][i + k];
  }
  return out;
}

// --- row sum ----------------------------------------------------------------------------------------------------

/// A row for each block, of whose 256 threads each has every 256th element; one adds up what they have.
void row_by_threads(Schedule& s) {
  const tc::api::ReductionLoops k = must(s.split_reduction("k", 256, Part::kCyclic));
  must(s.bind("i", Axis::kBlockX));
  must(s.bind(k.part, Axis::kThreadX));
  must(s.promote(k.partial, "i", Memory::kShared));
}

/// The same, and 16 threads add up 16 partial sums each before one has the last.
void row_by_tree(Schedule& s) {
  const tc::api::ReductionLoops k = must(s.split_reduction("k", 256, Part::kCyclic));
  const tc::api::ReductionLoops sums = must(s.split_reduction(k.together, 16, Part::kCyclic));
  must(s.bind("i", Axis::kBlockX));
  must(s.bind(k.part, Axis::kThreadX));
  must(s.bind(sums.part, Axis::kThreadX));
  for (const std::string& parts : {k.partial, sums.partial}) must(s.promote(parts, "i", Memory::kShared));
}

/// The same by 32 threads of a warp, which exchange what they have.
void row_by_warp(Schedule& s) {
  const tc::api::ReductionLoops k = must(s.split_reduction("k", 256, Part::kCyclic));
  must(s.bind("i", Axis::kBlockX));
  must(s.bind(k.part, Axis::kThreadX));
  must(s.reduce_by_warp(k.together));
  must(s.promote(k.partial, "i", Memory::kShared));
}

Floats row_sum(const std::vector<Floats>& in, std::map<std::string, int64_t>& sizes) {
  Floats out(static_cast<size_t>(sizes["N"]));
  const size_t length = in[0].size() / out.size();
  for (size_t i = 0; i < in[0].size(); ++i) out[i / length] += in[0][i];
  return out;
}

// --- matmul -----------------------------------------------------------------------------------------------------

void bind_matmul(Schedule& s) {
  const std::vector<std::string> loops = must(s.tile({"i", "j"}, {16, 16}));
  const Axis axes[] = {Axis::kBlockY, Axis::kBlockX, Axis::kThreadY, Axis::kThreadX};
  for (size_t l = 0; l < 4; ++l) must(s.bind(loops[l], axes[l]));
}

/// Blocks go through k together, 16 at a time: the loop over these steps comes out of the loops on threads, and what a
/// step reads is in shared memory.
void matmul_in_shared(Schedule& s, Fetch fetch) {
  must(s.tile({"i", "j"}, {16, 16}));
  for (const char* loop : {"j_inner", "i_inner"}) must(s.distribute(loop));
  const auto [step, k] = must(s.split("k", 16));
  must(s.reorder({step, "i_inner", "j_inner", k}));
  must(s.bind("i_outer", Axis::kBlockY));
  must(s.bind("j_outer", Axis::kBlockX));
  for (const std::string part : {"", "_S0_init"}) {
    must(s.bind("i_inner" + part, Axis::kThreadY));
    must(s.bind("j_inner" + part, Axis::kThreadX));
  }
  for (const char* tensor : {"A", "B"}) must(s.promote(tensor, step, Memory::kShared, fetch));
}

/// The same with tiles of 64 x 64 results, of which each thread has 4 x 4 in registers.
void matmul_in_registers(Schedule& s) {
  must(s.tile({"i", "j"}, {64, 64}));
  const std::vector<std::string> inner = must(s.tile({"i_inner", "j_inner"}, {4, 4}));
  for (auto loop = inner.rbegin(); loop != inner.rend(); ++loop) must(s.distribute(*loop));
  const auto [step, k] = must(s.split("k", 16));
  must(s.reorder({step, inner[0], inner[1], k, inner[2], inner[3]}));
  must(s.bind("i_outer", Axis::kBlockY));
  must(s.bind("j_outer", Axis::kBlockX));
  for (const std::string part : {"", "_S0_init"}) {
    must(s.bind(inner[0] + part, Axis::kThreadY));
    must(s.bind(inner[1] + part, Axis::kThreadX));
    must(s.unroll(inner[2] + part));
    must(s.unroll(inner[3] + part));
  }
  for (const char* tensor : {"A", "B"}) must(s.promote(tensor, step, Memory::kShared));
  must(s.promote("C", "j_outer", Memory::kRegisters));
}

/// The same, with the next two steps on their way to shared memory while threads compute.
void matmul_in_stages(Schedule& s) {
  matmul_in_registers(s);
  for (const char* tensor : {"A", "B"}) must(s.stage(tensor, "k_outer", 3));
}

Floats matmul(const std::vector<Floats>& in, std::map<std::string, int64_t>& sizes) {
  const auto m = static_cast<size_t>(sizes["M"]), n = static_cast<size_t>(sizes["N"]);
  const auto depth = static_cast<size_t>(sizes["K"]);
  Floats out(m * n);
  for (size_t i = 0; i < m; ++i) {
    for (size_t k = 0; k < depth; ++k) {
      for (size_t j = 0; j < n; ++j) out[i * n + j] += in[0][i * depth + k] * in[1][k * n + j];
    }
  }
  return out;
}

// --- running them -----------------------------------------------------------------------------------------------

const std::vector<Ladder>& ladders() {
  static const std::vector<Ladder> kLadders = {
      {"vector add",
       "def add(float(N) a, float(N) b) -> (c) { c(i) = a(i) + b(i) }",
       {{"N", 5000}},
       {{"N", int64_t{1} << 26}},
       add,
       {{"bind", bind_rows}, {"vectors", bind_vectors}}},
      {"window sum",
       "def window(float(N) x) -> (y) { y(i) +=! x(i + k) where i in 0:N - 32, k in 0:32 }",
       {{"N", 3000}},
       {{"N", int64_t{1} << 26}},
       window,
       {{"bind", bind_rows},
        {"shared memory", [](Schedule& s) { window_in_shared(s, Fetch::kOneThread); }},
        {"cooperative fetch", [](Schedule& s) { window_in_shared(s, Fetch::kCooperative); }},
        {"vectorized fetch", [](Schedule& s) { window_in_shared(s, Fetch::kVectorized); }}}},
      {"row sum",
       "def row_sum(float(N,M) x) -> (s) { s(i) +=! x(i,k) }",
       {{"N", 32}, {"M", 4096}},
       {{"N", 8192}, {"M", 8192}},
       row_sum,
       {{"bind",
         [](Schedule& s) {
           const auto [block, thread] = must(s.split("i", 64));
           must(s.bind(block, Axis::kBlockX));
           must(s.bind(thread, Axis::kThreadX));
         }},
        {"parts of a row", row_by_threads},
        {"a tree of parts", row_by_tree},
        {"shuffles", row_by_warp}}},
      {"matmul",
       "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
       {{"M", 128}, {"N", 128}, {"K", 64}},
       {{"M", 4096}, {"N", 4096}, {"K", 4096}},
       matmul,
       {{"bind", bind_matmul},
        {"shared memory", [](Schedule& s) { matmul_in_shared(s, Fetch::kOneThread); }},
        {"cooperative fetch", [](Schedule& s) { matmul_in_shared(s, Fetch::kCooperative); }},
        {"vectorized fetch", [](Schedule& s) { matmul_in_shared(s, Fetch::kVectorized); }},
        {"register tile", matmul_in_registers},
        {"stages", matmul_in_stages}}},
  };
  return kLadders;
}

/// Small integers: sums are exact in any order.
Floats values(size_t count, unsigned seed) {
  Floats result(count);
  for (float& value : result) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<float>(static_cast<int>(seed >> 24U) % 7 - 3);
  }
  return result;
}

void simulate(const Ladder& ladder, const Rung& rung) {
  Schedule schedule =
      must(Schedule::create(ladder.text, {.sizes = ladder.simulated, .backend = tc::api::Backend::kSimulator}));
  rung.steps(schedule);
  const tc::api::CompiledKernel kernel = must(schedule.compile());
  std::vector<Tensor> inputs;
  std::vector<Floats> data;
  for (const tc::api::TensorSpec& spec : kernel.inputs()) {
    data.push_back(values(static_cast<size_t>(spec.elements()), static_cast<unsigned>(data.size() + 1)));
    inputs.push_back(must(Tensor::allocate(spec)));
    std::copy(data.back().begin(), data.back().end(), inputs.back().data_as<float>());
  }
  std::vector<Tensor> outputs = must(kernel.allocate_outputs());
  const tc::api::Counters counts = must(schedule.count(inputs, outputs));
  std::map<std::string, int64_t> sizes = ladder.simulated;
  const Floats expected = ladder.reference(data, sizes);
  if (!std::equal(expected.begin(), expected.end(), outputs[0].data_as<float>())) {
    std::fprintf(stderr, "%s, %s: wrong\n", ladder.title, rung.name);
    std::exit(1);
  }
  const double conflicts = counts.shared_requests == 0 ? 1
                                                       : static_cast<double>(counts.shared_wavefronts) /
                                                             static_cast<double>(counts.shared_requests);
  std::printf("  %-18s %10.1f %12lld %12lld %10.2f %9lld", rung.name,
              static_cast<double>(counts.global_bytes_read) / 1024, static_cast<long long>(counts.global_requests),
              static_cast<long long>(counts.shared_requests), conflicts, static_cast<long long>(counts.barriers));
}

void time_on_gpu(const Ladder& ladder, const Rung& rung) {
  Schedule schedule = must(Schedule::create(ladder.text, {.sizes = ladder.timed, .backend = tc::api::Backend::kCuda}));
  rung.steps(schedule);
  const tc::api::CompiledKernel kernel = must(schedule.compile());
  std::vector<Managed> memory;
  std::vector<Tensor> inputs, outputs;
  for (const tc::api::TensorSpec& spec : kernel.inputs()) inputs.push_back(memory.emplace_back(spec).tensor());
  for (const tc::api::TensorSpec& spec : kernel.outputs()) outputs.push_back(memory.emplace_back(spec).tensor());
  std::printf(" %12.1f", must(kernel.profile(inputs, outputs, {}, 20)).min_us);
}

}  // namespace

int main() {
  const bool gpu = Managed::available();
  for (const Ladder& ladder : ladders()) {
    std::printf("%s\n  %-18s %10s %12s %12s %10s %9s%s\n", ladder.title, "", "KiB read", "global req.", "shared req.",
                "conflicts", "barriers", gpu ? "  us on a GPU" : "");
    for (const Rung& rung : ladder.rungs) {
      simulate(ladder, rung);
      if (gpu) time_on_gpu(ladder, rung);
      std::printf("\n");
    }
  }
  return 0;
}
