#include <algorithm>
#include <cmath>

#include "tc/api/device_lock.h"
#include "tc/api/device_tensors.h"
#include "tc/api/tune_bench.h"
#include "tc/support/result.h"

namespace tc::api {
namespace {

/// Launches in one graph.
constexpr int kPerGraph = 20;
/// Written between cold runs: more than the L2 cache of any GPU so far.
constexpr int64_t kFlushedBytes = int64_t{256} << 20;

/// A stream that is not the default one, so that it can be captured.
class OwnStream {
 public:
  static Result<std::unique_ptr<OwnStream>> create(const cuda::Context& context) {
    constexpr unsigned kNonBlocking = 1;
    const cuda::CurrentContext current(context);
    cuda::Stream stream = nullptr;
    TC_TRY_VOID(context.driver().check(context.driver().create_stream(&stream, kNonBlocking), "making a stream"));
    return std::unique_ptr<OwnStream>(new OwnStream(context.driver(), stream));
  }
  ~OwnStream() { driver_.destroy_stream(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  cuda::Stream get() const { return stream_; }

 private:
  OwnStream(const cuda::Driver& driver, cuda::Stream stream) : driver_(driver), stream_(stream) {}
  const cuda::Driver& driver_;
  cuda::Stream stream_;
};

/// Launches that were captured once and are replayed without the cost of launching.
class Graph {
 public:
  template <typename Launch>
  static Result<std::unique_ptr<Graph>> capture(const cuda::Driver& driver, cuda::Stream stream, Launch launch) {
    constexpr int kThreadLocal = 1;
    TC_TRY_VOID(driver.check(driver.begin_capture(stream, kThreadLocal), "beginning a graph"));
    const Result<void> launched = launch();
    cuda::Driver::Graph graph = nullptr;
    const Result<void> ended = driver.check(driver.end_capture(stream, &graph), "ending a graph");
    if (!launched) return tl::unexpected(launched.error());
    if (!ended) return tl::unexpected(ended.error());
    std::unique_ptr<Graph> result(new Graph(driver, graph));
    TC_TRY_VOID(driver.check(driver.instantiate(&result->executable_, graph, 0), "instantiating a graph"));
    return result;
  }
  ~Graph() {
    if (executable_) driver_.destroy_graph_exec(executable_);
    driver_.destroy_graph(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  Result<void> launch(cuda::Stream stream) const {
    return driver_.check(driver_.launch_graph(executable_, stream), "launching a graph");
  }

 private:
  Graph(const cuda::Driver& driver, cuda::Driver::Graph graph) : driver_(driver), graph_(graph) {}
  const cuda::Driver& driver_;
  cuda::Driver::Graph graph_;
  cuda::Driver::GraphExec executable_ = nullptr;
};

class CudaBench : public Bench {
 public:
  CudaBench(const TuneSetup& setup, TuneData data, interp::BoundedEnvironment expected)
      : setup_(setup), data_(std::move(data)), expected_(std::move(expected)) {}

  Result<void> open(int device) {
    TC_TRY(context, cuda::Context::open(device));
    context_ = context;
    device_ = device;
    TC_TRY(stream, OwnStream::create(*context_));
    stream_ = std::move(stream);
    for (const Tensor& input : data_.inputs) TC_TRY_VOID(inputs_.add(context_, input));
    for (const Tensor& output : data_.outputs) TC_TRY_VOID(scratch_.add(context_, output));
    TC_TRY(flushed, cuda::Buffer::allocate(context_, kFlushedBytes));
    flushed_ = std::make_unique<cuda::Buffer>(std::move(flushed));
    for (DLTensor* input : inputs_.pointers()) input_views_.push_back(input);
    scratch_views_ = scratch_.pointers();
    return {};
  }

  bool is_lost() const override {
    const cuda::CurrentContext current(*context_);
    return cuda::is_sticky(context_->driver().synchronize_stream(stream_->get()));
  }

  Result<std::string> check(const Candidate& candidate) override {
    TC_TRY(results, results_of(candidate));
    return mismatch(setup_, results, expected_);
  }

  tune::Subject subject(const Candidate& candidate) override {
    return {.hot = [this, &candidate, graph = std::shared_ptr<Graph>()](int runs) mutable -> Result<double> {
              if (runs < kPerGraph) {
                return time_us([&]() -> Result<void> {
                  for (int i = 0; i < runs; ++i) TC_TRY_VOID(launch(candidate));
                  return {};
                });
              }
              if (!graph) {
                TC_TRY(captured, capture(candidate));
                graph = captured;
              }
              const int graphs = (runs + kPerGraph - 1) / kPerGraph;
              TC_TRY(us, time_us([&]() -> Result<void> {
                       for (int i = 0; i < graphs; ++i) TC_TRY_VOID(graph->launch(stream_->get()));
                       return {};
                     }));
              return us * runs / (graphs * kPerGraph);
            },
            .cold = [this, &candidate]() -> Result<double> {
              const cuda::CurrentContext current(*context_);
              const cuda::Driver& driver = context_->driver();
              TC_TRY_VOID(driver.check(driver.fill_bytes(flushed_->address(), 1, kFlushedBytes, stream_->get()),
                                       "emptying the L2 cache"));
              return time_us([&] { return launch(candidate); });
            }};
  }

 private:
  /// Of a run on fresh outputs.
  Result<std::vector<Tensor>> results_of(const Candidate& candidate) {
    std::vector<Tensor> results;
    for (const Tensor& output : data_.outputs) {
      TC_TRY(result, Tensor::allocate(output.spec()));
      results.push_back(std::move(result));
    }
    const DeviceLock lock(Backend::kCuda, device_);
    DeviceTensors outputs;
    for (const Tensor& output : data_.outputs) TC_TRY_VOID(outputs.add(context_, output));
    TC_TRY_VOID(candidate.kernel->run(input_views_, outputs.pointers(), data_.scalars, stream_->get()));
    TC_TRY_VOID(wait());
    for (size_t o = 0; o < results.size(); ++o) {
      TC_TRY_VOID(outputs.buffers[o].copy_to(results[o].data(), outputs.buffers[o].bytes()));
    }
    return results;
  }

  Result<void> launch(const Candidate& candidate) {
    return candidate.kernel->run(input_views_, scratch_views_, data_.scalars, stream_->get());
  }
  template <typename Work>
  Result<double> time_us(Work work) {
    return Stopwatch(*context_, stream_->get()).time_us(work);
  }
  Result<void> wait() const {
    const cuda::CurrentContext current(*context_);
    return context_->driver().check(context_->driver().synchronize_stream(stream_->get()), "waiting for the kernels");
  }
  Result<std::shared_ptr<Graph>> capture(const Candidate& candidate) {
    const cuda::CurrentContext current(*context_);
    TC_TRY_VOID(candidate.kernel->prepare(stream_->get()));
    TC_TRY(graph, Graph::capture(context_->driver(), stream_->get(), [&]() -> Result<void> {
             for (int i = 0; i < kPerGraph; ++i) TC_TRY_VOID(launch(candidate));
             return {};
           }));
    return std::shared_ptr<Graph>(std::move(graph));
  }

  const TuneSetup& setup_;
  TuneData data_;
  interp::BoundedEnvironment expected_;
  std::shared_ptr<const cuda::Context> context_;
  int device_ = 0;
  std::unique_ptr<OwnStream> stream_;
  DeviceTensors inputs_, scratch_;
  std::vector<const DLTensor*> input_views_;
  std::vector<DLTensor*> scratch_views_;
  std::unique_ptr<cuda::Buffer> flushed_;
};

}  // namespace

Result<std::unique_ptr<Bench>> make_cuda_bench(const TuneSetup& setup, TuneData data,
                                               interp::BoundedEnvironment expected, int device) {
  auto bench = std::make_unique<CudaBench>(setup, std::move(data), std::move(expected));
  TC_TRY_VOID(bench->open(device));
  return bench;
}

}  // namespace tc::api
