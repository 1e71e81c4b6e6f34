#include <fmt/format.h>

#include <cstdlib>
#include <random>

#include "tests/api/scheduled.h"

/// Any sequence of verbs makes a kernel that computes the same, or is refused with a sentence on the way.
namespace tc::api {
namespace {

using testing::expect_same;
using testing::take;

struct Def {
  const char* text;
  std::map<std::string, int64_t> sizes;
};

const Def kDefs[] = {
    {"def f(float(M,K) A, float(K,N) B, float(N) b) -> (C) { C(i,j) +=! A(i,k) * B(k,j)  C(i,j) = C(i,j) + b(j) }",
     {{"M", 7}, {"N", 6}, {"K", 9}}},
    {"def f(float(N) A) -> (T, B) { T(i) = A(i)  B(i) +=! T(i + k) where i in 0:N - 2, k in 0:3 }", {{"N", 20}}},
    {"def f(float(N,M) x) -> (s, y) { s(i) max=! x(i,k)  y(i,k) = x(i,k) - s(i) }", {{"N", 5}, {"M", 17}}},
};

class RandomVerbs {
 public:
  RandomVerbs(Schedule& schedule, Backend backend, uint64_t seed)
      : schedule_(schedule), on_cpu_(backend == Backend::kCpu), random_(seed) {}

  /// What was done, or what was said against it.
  std::string step() {
    const std::string a = loop(), b = loop();
    switch (number(13)) {
      case 0:
        return said(fmt::format("split {}", a), schedule_.split(a, 1 + number(8)));
      case 1:
        return said(fmt::format("tile {} {}", a, b), schedule_.tile({a, b}, {1 + number(4), 1 + number(4)}));
      case 2:
        return said(fmt::format("fuse {} {}", a, b), schedule_.fuse(a, b));
      case 3:
        return said(fmt::format("reorder {} {}", a, b), schedule_.reorder({a, b}));
      case 4:
        return said(fmt::format("distribute {}", a), schedule_.distribute(a));
      case 5:
        if (on_cpu_) return said(fmt::format("parallelize {}", a), schedule_.parallelize(a));
        return said(fmt::format("bind {}", a), schedule_.bind(a, static_cast<Axis>(number(6))));
      case 6:
        if (!on_cpu_ && number(3) == 0) return said(fmt::format("reduce by warp {}", a), schedule_.reduce_by_warp(a));
        return said(fmt::format("unroll {}", a), number(2) == 0 ? schedule_.unroll(a) : schedule_.vectorize(a));
      case 7:
        return said(fmt::format("merge {} {}", a, b), schedule_.merge(a, b));
      case 8:
        return sink(number(2) == 0 ? statement() : a, b);
      case 9:
        return said(fmt::format("split the reduction {}", a),
                    schedule_.split_reduction(a, 1 + number(4), static_cast<Part>(number(2))));
      case 10:
        return on_cpu_ || number(4) > 0 ? step() : said(fmt::format("launch {}", a), schedule_.launch(a));
      case 11:
        return number(2) > 0 ? step() : said(fmt::format("partition {}", a), schedule_.partition(a, 1 + number(8)));
      default:
        return hold(a);
    }
  }
  /// Verbs that were not refused.
  uint64_t done() const { return done_; }

 private:
  int64_t number(uint64_t below) { return static_cast<int64_t>(random_() % below); }
  std::string loop() {
    const std::vector<std::string> loops = schedule_.loops();
    return loops[random_() % loops.size()];
  }

  std::string statement() {
    constexpr const char* kStatements[] = {"S0_init", "S0", "S1_init", "S1"};
    return kStatements[number(4)];
  }

  std::string sink(const std::string& what, const std::string& loop) {
    return said(fmt::format("sink {} below {}", what, loop), schedule_.sink(what, loop));
  }

  std::string hold(const std::string& loop) {
    constexpr const char* kTensors[] = {"A", "B", "C", "T", "x", "s"};
    const std::string tensor = kTensors[number(6)];
    const auto memory = static_cast<Memory>(number(2) + (on_cpu_ ? 1 : 0));  // of a CPU: registers or the cache
    const std::string result =
        said(fmt::format("promote {}", tensor), schedule_.promote(tensor, loop, memory, static_cast<Fetch>(number(3))));
    if (on_cpu_) return result;
    return fmt::format("{}{}", result,
                       said(fmt::format("stage {}", tensor), schedule_.stage(tensor, loop, 2 + number(2))));
  }

  template <typename T>
  std::string said(const std::string& verb, const Result<T>& result) {
    EXPECT_TRUE(result || !result.error().to_string().empty());
    done_ += result ? 1 : 0;
    return fmt::format("{} {}", verb, result ? "\n" : result.error().to_string());
  }

  Schedule& schedule_;
  const bool on_cpu_;
  std::mt19937_64 random_;
  uint64_t done_ = 0;
};

void expect_right_or_refused(Backend backend) {
  const char* count = std::getenv("TC_RANDOM_SCHEDULES");
  const uint64_t schedules = count ? std::stoull(count) : 12;
  const char* first = std::getenv("TC_RANDOM_SEED");
  const uint64_t begin = first ? std::stoull(first) : 0;
  uint64_t done = 0, compiled = 0;
  for (const Def& def : kDefs) {
    const CompiledKernel plain = take(compile(def.text, {.sizes = def.sizes}));
    for (uint64_t seed = begin; seed < begin + schedules; ++seed) {
      Request request{.sizes = def.sizes, .backend = backend};
      if (seed % 3 == 0) {
        request.mapping.outer_schedule_options.fusion = options::Fusion::kMin;
        request.options.scheduler.fusion = options::Fusion::kMin;
      }
      Schedule schedule = take(Schedule::create(def.text, request));
      RandomVerbs verbs(schedule, backend, seed);
      std::string steps = fmt::format("{}\nseed {}\n", def.text, seed);
      for (int i = 0; i < 12; ++i) steps += verbs.step();
      SCOPED_TRACE(steps);
      done += verbs.done();
      const Result<CompiledKernel> kernel = schedule.compile();
      EXPECT_TRUE(kernel || kernel.error().kind() != ErrorKind::kInternal) << kernel.error().to_string();
      if (!kernel) continue;
      ++compiled;
      expect_same(schedule, *kernel, plain);
    }
  }
  EXPECT_GE(done, 6 * schedules);
  EXPECT_GE(compiled, schedules);
}

TEST(RandomSchedules, AreRightOrRefused) { expect_right_or_refused(Backend::kSimulator); }

TEST(RandomSchedules, OfACpuAreRightOrRefused) { expect_right_or_refused(Backend::kCpu); }

}  // namespace
}  // namespace tc::api
