// Runs hand-written tile programs on this machine's GPU: printed, compiled by NVRTC, launched by the driver, compared
// with loops on the CPU; then measures what a launch costs.
//     gpu_check            all of it; ends with 0 if every comparison holds
//     gpu_check --small    the same on small tensors, for compute-sanitizer
//     gpu_check --devices  only what the driver says of the devices
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/gpu/machine.h"
#include "tests/cuda/hand_written.h"

namespace tc::cuda {
namespace {

int failures = 0;

void report(const std::string& name, bool right, const std::string& detail) {
  std::printf("%-22s %-5s %s\n", name.c_str(), right ? "right" : "WRONG", detail.c_str());
  std::fflush(stdout);
  failures += right ? 0 : 1;
}

std::string words(const Result<void>& result) { return result ? "no error" : result.error().diagnostics()[0].message; }

Host random_floats(size_t n, uint32_t seed) {
  // Small integers: sums are exact in any order.
  std::mt19937 generator(seed);
  Host result(n);
  for (float& x : result) x = static_cast<float>(static_cast<int>(generator() % 9) - 4);
  return result;
}

void check_vector_add(Machine& machine, bool small) {
  const int64_t elements = int64_t{1} << (small ? 16 : 26);
  const Host a = random_floats(elements, 1), b = random_floats(elements, 2);
  const Buffer da = machine.upload(a), db = machine.upload(b), dc = machine.upload(Host(elements, -1));
  const auto executable = machine.load(hand_written::vector_add(elements));
  const Address tensors[] = {da.address(), db.address(), dc.address()};
  need(executable->run(machine.stream(), tensors));
  const Host c = machine.download(dc);
  bool right = true;
  for (int64_t i = 0; i < elements; ++i) right &= c[i] == a[i] + b[i];
  const double us = machine.device_us([&] { need(executable->run(machine.stream(), tensors)); });
  report("vector_add", right, fmt::format("{:.1f} us, {:.0f} GB/s", us, 3e-3 * sizeof(float) * elements / us));
}

void check_row_sum(Machine& machine, bool small) {
  const int64_t rows = small ? 64 : 4096, columns = small ? 1000 : 10000;
  const Host a = random_floats(rows * columns, 3);
  const Buffer da = machine.upload(a), ds = machine.upload(Host(rows, -1));
  const auto executable = machine.load(hand_written::row_sum(rows, columns));
  const Address tensors[] = {da.address(), ds.address()};
  need(executable->run(machine.stream(), tensors));
  const Host s = machine.download(ds);
  bool right = true;
  for (int64_t m = 0; m < rows; ++m) {
    double sum = 0;
    for (int64_t k = 0; k < columns; ++k) sum += a[m * columns + k];
    right &= s[m] == sum;
  }
  const double us = machine.device_us([&] { need(executable->run(machine.stream(), tensors)); });
  report("row_sum", right, fmt::format("{:.1f} us, {:.0f} GB/s", us, 1e-3 * sizeof(float) * rows * columns / us));
}

void check_matmul(Machine& machine, int64_t m, int64_t n, int64_t k, bool compare) {
  const Host a = random_floats(m * k, 4), b = random_floats(k * n, 5);
  const Buffer da = machine.upload(a), db = machine.upload(b), dc = machine.upload(Host(m * n, -1));
  const auto executable = machine.load(hand_written::matmul(m, n, k));
  const Address tensors[] = {da.address(), db.address(), dc.address()};
  need(executable->run(machine.stream(), tensors));
  const Host c = machine.download(dc);
  bool right = true;
  for (int64_t i = 0; i < m && compare; ++i) {
    std::vector<float> row(n, 0);
    for (int64_t kk = 0; kk < k; ++kk) {
      for (int64_t j = 0; j < n; ++j) row[j] += a[i * k + kk] * b[kk * n + j];
    }
    for (int64_t j = 0; j < n; ++j) right &= c[i * n + j] == row[j];
  }
  const double us = machine.device_us([&] { need(executable->run(machine.stream(), tensors)); });
  report(fmt::format("matmul {}x{}x{}", m, n, k), right,
         fmt::format("{:.1f} us, {:.2f} TFLOP/s{}", us, 2e-6 * m * n * k / us, compare ? "" : " (not compared)"));
}

void check_scatter(Machine& machine) {
  constexpr int kSize = 1000003, kBins = 1000;
  std::mt19937 generator(6);
  std::vector<int> where(kSize), counts(kBins, 0), zeros(kBins, 0);
  Host x = random_floats(kSize, 7);
  Host largest(kBins, -INFINITY), start(kBins, -INFINITY);
  x[17] = NAN;
  for (int i = 0; i < kSize; ++i) {
    where[i] = static_cast<int>(generator() % kBins);
    ++counts[where[i]];
    float& seen = largest[where[i]];
    if (std::isnan(x[i]) || x[i] > seen) seen = std::isnan(seen) ? seen : x[i];
  }
  const Buffer di = machine.upload(where.data(), kSize * sizeof(int)), dx = machine.upload(x);
  const Buffer dh = machine.upload(zeros.data(), kBins * sizeof(int)), dl = machine.upload(start);
  const auto executable = machine.load(hand_written::scatter(kSize, kBins));
  const Address tensors[] = {di.address(), dx.address(), dh.address(), dl.address()};
  need(executable->run(machine.stream(), tensors));
  std::vector<int> h(kBins);
  need(dh.copy_to(h.data(), kBins * sizeof(int), machine.stream()));
  const Host l = machine.download(dl);
  bool right = h == counts;
  for (int b = 0; b < kBins; ++b) right &= std::isnan(largest[b]) ? std::isnan(l[b]) : l[b] == largest[b];
  report("scatter", right, "counts, and maxima with a NaN");
}

void check_workspace_and_graph(Machine& machine) {
  constexpr int kSize = 12345;
  const Host x = random_floats(kSize, 8);
  const Buffer dx = machine.upload(x), dy = machine.upload(Host(kSize, -1));
  const auto executable = machine.load(hand_written::scale_and_reverse(kSize));
  const Address tensors[] = {dx.address(), dy.address()};
  const float alpha = 3;
  const void* scalars[] = {&alpha};
  const Driver& driver = machine.driver();
  const CurrentContext current(*machine.context());
  const auto is_right = [&] {
    const Host y = machine.download(dy);
    bool right = true;
    for (int i = 0; i < kSize; ++i) right &= y[i] == alpha * x[kSize - 1 - i];
    return right;
  };
  Driver::Graph graph = nullptr;
  Driver::GraphExec exec = nullptr;
  need(executable->run(machine.stream(), tensors, scalars));
  report("two launches", is_right(), "through a workspace");
  need(driver.check(driver.begin_capture(machine.stream(), 0), "capturing"));
  need(executable->run(machine.stream(), tensors, scalars));
  need(driver.check(driver.end_capture(machine.stream(), &graph), "ending the capture"));
  need(driver.check(driver.fill_bytes(dy.address(), 0, kSize * sizeof(float), machine.stream()), "filling"));
  need(driver.check(driver.instantiate(&exec, graph, 0), "instantiating the graph"));
  need(driver.check(driver.launch_graph(exec, machine.stream()), "launching the graph"));
  report("graph", is_right(), "the same, captured and replayed");
  driver.destroy_graph_exec(exec);
  driver.destroy_graph(graph);

  // The workspace that was made with the executable is the first stream's.
  Stream second = nullptr;
  graph = nullptr;
  need(driver.check(driver.create_stream(&second, 1), "creating a stream"));
  need(driver.check(driver.begin_capture(second, 0), "capturing"));
  const Result<void> unprepared = executable->run(second, tensors, scalars);
  driver.end_capture(second, &graph);
  if (graph) driver.destroy_graph(graph);
  driver.destroy_stream(second);
  report("workspace in capture", !unprepared, words(unprepared));
}

/// Runs of several threads on one stream, of launches that pass values on through one workspace.
void check_threads(Machine& machine) {
  constexpr int kSize = 1000, kThreads = 4;
  const Host x = random_floats(kSize, 10);
  const Buffer dx = machine.upload(x);
  const auto executable = machine.load(hand_written::scale_and_reverse(kSize));
  std::vector<Buffer> results;
  for (int t = 0; t < kThreads; ++t) results.push_back(machine.upload(Host(kSize, -1)));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Address tensors[] = {dx.address(), results[static_cast<size_t>(t)].address()};
      const float alpha = static_cast<float>(t + 1);
      const void* scalars[] = {&alpha};
      for (int i = 0; i < 500; ++i) need(executable->run(machine.stream(), tensors, scalars));
    });
  }
  for (std::thread& thread : threads) thread.join();
  bool right = true;
  for (int t = 0; t < kThreads; ++t) {
    const Host y = machine.download(results[static_cast<size_t>(t)]);
    for (int i = 0; i < kSize; ++i) right &= y[i] == static_cast<float>(t + 1) * x[kSize - 1 - i];
  }
  report("threads", right, "on one stream, with a workspace");
}

/// Blocks copy 8 rows of 32 floats each by a tensor map. The map has 30 of the 40 columns of X: zeros are the rest.
constexpr char kCopyBoxes[] = R"(struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};
extern "C" __global__ void __cluster_dims__(2, 1, 1) copy_boxes(float* Y, const __grid_constant__ TensorMap map) {
  __shared__ alignas(128) float box[8 * 32];
  __shared__ unsigned long long barrier;
  const unsigned barrier_at = (unsigned)__cvta_generic_to_shared(&barrier);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier_at) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(barrier_at) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            (unsigned)__cvta_generic_to_shared(box)),
        "l"(&map), "r"(0), "r"(8 * (int)blockIdx.x), "r"(barrier_at)
        : "memory");
  }
  __syncthreads();
  unsigned arrived = 0;
  while (!arrived) {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(arrived)
                 : "r"(barrier_at)
                 : "memory");
  }
  for (int i = threadIdx.x; i < 8 * 32; i += 128) Y[256 * blockIdx.x + i] = box[i];
}
)";

LaunchPlan plan_of_boxes(int64_t rows) {
  using Kind = KernelArgument::Kind;
  LaunchPlan plan;
  plan.tensors = {{"X", rows * 160, 16, false}, {"Y", rows * 128, 4, true}};
  plan.maps = {{.of = {Kind::kTensor, 0}, .type = 7, .extents = {30, rows}, .byte_strides = {160}, .box = {32, 8}}};
  plan.kernels = {{.symbol = "copy_boxes",
                   .grid = {rows / 8, 1, 1},
                   .block = {128, 1, 1},
                   .cluster = {2, 1, 1},
                   .arguments = {{Kind::kTensor, 1}, {Kind::kMap, 0}}}};
  return plan;
}

/// Maps of two tensors in turn, and a captured one.
void check_tensor_maps(Machine& machine) {
  constexpr int64_t kRows = 1024;
  if (machine.context()->device().capability != 90) return;
  const auto executable = machine.load("copy_boxes", kCopyBoxes, plan_of_boxes(kRows));
  const Host x[] = {random_floats(kRows * 40, 11), random_floats(kRows * 40, 12)};
  const Buffer dx[] = {machine.upload(x[0]), machine.upload(x[1])}, dy = machine.upload(Host(kRows * 32, -1));
  const auto run = [&](int of) {
    const Address tensors[] = {dx[of].address(), dy.address()};
    need(executable->run(machine.stream(), tensors));
  };
  const auto is_right = [&](int of) {
    const Host y = machine.download(dy);
    bool right = true;
    for (int64_t i = 0; i < kRows * 32; ++i) right &= y[i] == (i % 32 < 30 ? x[of][i / 32 * 40 + i % 32] : 0);
    return right;
  };
  bool right = true;
  for (const int of : {0, 1, 1, 0}) {
    run(of);
    right &= is_right(of);
  }
  report("tensor maps", right, "of two tensors in turn, in clusters");
  const Driver& driver = machine.driver();
  const CurrentContext current(*machine.context());
  Driver::Graph graph = nullptr;
  Driver::GraphExec exec = nullptr;
  need(driver.check(driver.begin_capture(machine.stream(), 0), "capturing"));
  run(0);
  need(driver.check(driver.end_capture(machine.stream(), &graph), "ending the capture"));
  run(1);
  need(driver.check(driver.instantiate(&exec, graph, 0), "instantiating the graph"));
  need(driver.check(driver.launch_graph(exec, machine.stream()), "launching the graph"));
  report("tensor maps in a graph", is_right(0), "of the tensor that was captured");
  driver.destroy_graph_exec(exec);
  driver.destroy_graph(graph);
}

void check_large_shared(Machine& machine) {
  const Host x = random_floats(16384, 9);
  const Buffer dx = machine.upload(x), dy = machine.upload(Host(16384, -1));
  const auto executable = machine.load(hand_written::large_shared());
  const Address tensors[] = {dx.address(), dy.address()};
  need(executable->run(machine.stream(), tensors));
  const Host y = machine.download(dy);
  bool right = true;
  for (int i = 0; i < 16384; ++i) right &= y[i] == x[16383 - i];
  report("large_shared", right, "64 KiB of dynamic shared memory");
}

/// One intrinsic against the C library on float64, in units of the last place.
void check_intrinsic(Machine& machine, const char* name, double (*reference)(double), float least, float greatest) {
  constexpr int kSize = 65536;
  Host x(kSize);
  for (int i = 0; i < kSize; ++i) x[i] = least + (greatest - least) * static_cast<float>(i) / kSize;
  const Buffer dx = machine.upload(x), dy = machine.upload(Host(kSize, -1));
  const auto executable = machine.load(hand_written::intrinsic(name, {Halide::Float(32)}, Halide::Float(32), kSize));
  const Address tensors[] = {dx.address(), dy.address()};
  need(executable->run(machine.stream(), tensors));
  const Host y = machine.download(dy);
  double worst = 0;
  for (int i = 0; i < kSize; ++i) {
    const double exact = reference(x[i]);
    const float nearest = static_cast<float>(exact);
    const double ulp = std::max(std::fabs(std::nextafter(nearest, INFINITY) - nearest), 1.5e-45f);
    worst = std::max(worst, std::fabs(y[i] - exact) / ulp);
  }
  report(name, worst <= 4, fmt::format("within {:.2f} ulp", worst));
}

void check_errors(Machine& machine) {
  constexpr int64_t kSize = 1024;
  const auto executable = machine.load(hand_written::vector_add(kSize));
  const Buffer buffer = machine.upload(Host(3 * kSize + 4, 0));
  alignas(16) static float host[kSize];
  const Address a = buffer.address(), b = a + 4 * kSize, c = b + 4 * kSize;
  const auto refused = [&](const char* name, std::vector<Address> tensors) {
    const Result<void> result = executable->run(machine.stream(), tensors);
    report(name, !result, words(result));
  };
  refused("host pointer", {reinterpret_cast<Address>(&host[0]), b, c});
  refused("null pointer", {a, 0, c});
  refused("misaligned", {a, b, c + 4});
  refused("overlap", {a, b, b + 16});
  refused("too few tensors", {a, b});
  const Address tensors[] = {a, b, c};
  report("and then", executable->run(machine.stream(), tensors).has_value(), "a run with nothing wrong");
}

/// The shortest mean of several calls, in microseconds on the host.
double call_us(Machine& machine, const std::function<void()>& call) {
  double best_us = 1e30;
  for (int round = 0; round < 50; ++round) {
    machine.wait();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 200; ++i) call();
    best_us = std::min(best_us, Machine::ms_since(start) * 1e3 / 200);
  }
  return best_us;
}

/// A launch with a tensor map of one address, of two addresses in turn, and without a map.
void measure_maps(Machine& machine) {
  constexpr int64_t kRows = 16;
  if (machine.context()->device().capability != 90) return;
  const LaunchPlan plan = plan_of_boxes(kRows);
  LaunchPlan plain = plan;
  plain.maps.clear();
  plain.kernels[0].arguments[1] = {KernelArgument::Kind::kTensor, 0};
  const auto with_map = machine.load("copy_boxes", kCopyBoxes, plan);
  const auto without = machine.load(
      "copy_boxes", "extern \"C\" __global__ void __cluster_dims__(2, 1, 1) copy_boxes(float* Y, float* X) {}", plain);
  const Buffer x = machine.upload(Host(2 * kRows * 40, 0)), y = machine.upload(Host(kRows * 32, 0));
  const Address first[] = {x.address(), y.address()}, second[] = {x.address() + kRows * 160, y.address()};
  const CurrentContext current(*machine.context());
  const double plain_us = call_us(machine, [&] { (void)without->run(machine.stream(), first); });
  const double same_us = call_us(machine, [&] { (void)with_map->run(machine.stream(), first); });
  int calls = 0;
  const double other_us =
      call_us(machine, [&] { (void)with_map->run(machine.stream(), ++calls % 2 == 0 ? first : second); });
  std::printf("launch in clusters: %.2f us a call; with a tensor map %.2f us, whose address changes %.2f us\n",
              plain_us, same_us, other_us);
}

void measure_launch(Machine& machine) {
  constexpr int64_t kSize = 1024;
  const auto executable = machine.load(hand_written::vector_add(kSize));
  const Buffer buffer = machine.upload(Host(3 * kSize, 0));
  const Address tensors[] = {buffer.address(), buffer.address() + 4 * kSize, buffer.address() + 8 * kSize};
  // As an application has it: the device's context is current already.
  const CurrentContext current(*machine.context());
  const double us = call_us(machine, [&] { (void)executable->run(machine.stream(), tensors); });
  // The driver's share: the same launch with nothing around it.
  const tile::Program program = hand_written::vector_add(kSize);
  const Compiled compiled = need(Nvrtc::get().value()->compile(print(program), machine.context()->device().arch()));
  const auto module = need(Module::load(machine.context(), compiled.cubin));
  const KernelLaunch launch = launch_plan(program).kernels.at(0);
  Driver::Function function = need(module->function(launch.symbol));
  Address addresses[] = {tensors[0], tensors[1], tensors[2]};
  void* arguments[] = {&addresses[0], &addresses[1], &addresses[2]};
  const auto size = [](int64_t n) { return static_cast<unsigned>(n); };
  const double driver_us = call_us(machine, [&] {
    machine.driver().launch(function, size(launch.grid[0]), 1, 1, size(launch.block[0]), 1, 1, 0, machine.stream(),
                            arguments, nullptr);
  });
  std::printf("launch: %.2f us a call of three tensors, of which the driver takes %.2f us\n", us, driver_us);
}

void print_devices() {
  for (const DeviceInfo& d : need(devices())) {
    std::printf(
        "device %d: %s, %s, %d multiprocessors, %lld bytes of shared memory per block, %lld MiB of L2, %lld MiB\n",
        d.ordinal, d.name.c_str(), to_string(d.arch()).c_str(), d.multiprocessors,
        static_cast<long long>(d.shared_bytes_per_block), static_cast<long long>(d.l2_bytes >> 20),
        static_cast<long long>(d.memory_bytes >> 20));
  }
}

int run(const std::string& mode) {
  print_devices();
  if (mode == "--devices") return 0;
  const bool small = mode == "--small";
  Machine machine;
  check_vector_add(machine, small);
  check_row_sum(machine, small);
  check_matmul(machine, 256, 320, 512, true);
  if (!small) check_matmul(machine, 4096, 4096, 4096, false);
  check_scatter(machine);
  check_workspace_and_graph(machine);
  check_threads(machine);
  check_large_shared(machine);
  check_tensor_maps(machine);
  check_intrinsic(machine, "exp", std::exp, -80, 80);
  check_intrinsic(machine, "tanh", std::tanh, -9, 9);
  check_intrinsic(machine, "erf", std::erf, -4, 4);
  check_intrinsic(
      machine, "rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.01f, 100);
  check_intrinsic(
      machine, "sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 80);
  check_errors(machine);
  measure_launch(machine);
  measure_maps(machine);
  std::printf("%d wrong\n", failures);
  return failures ? 1 : 0;
}

}  // namespace
}  // namespace tc::cuda

int main(int argc, char** argv) { return tc::cuda::run(argc > 1 ? argv[1] : ""); }
