#include "tc/tile/simulate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <limits>

#include "../common/tile_mutants.h"
#include "kernels.h"
#include "tc/tile/lanes.h"

namespace tc::tile {
namespace {

using namespace build;
using Halide::Float;
using Halide::Int;
using Halide::UInt;

TEST(Simulate, SamplesGiveTheRightResultWithoutFindings) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const SimulatorOptions options{.seed = seed};
    EXPECT_EQ(complaint(vector_add(1000), options), "");
    EXPECT_EQ(complaint(row_sums(5, 333, 128), options), "");
    EXPECT_EQ(complaint(tiled_matmul(33, 20, 50), options), "");
    EXPECT_EQ(complaint(pipelined_matmul(64, 96, 64), options), "");
    for (Spread spread : {Spread::kNone, Spread::kPadded, Spread::kSwizzled}) {
      EXPECT_EQ(complaint(transpose(64, spread), options), "");
    }
  }
}

TEST(Simulate, TenMillionThreadOperationsInWellUnderTenSeconds) {
  const Sample sample = pipelined_matmul(256, 192, 256);
  const std::clock_t start = std::clock();
  const Outcome outcome = run(sample);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_EQ(outcome.output, sample.expected);
  EXPECT_GT(outcome.report.counters[0].thread_operations, 10'000'000);
#ifdef NDEBUG
  EXPECT_LT(seconds, 10);
#else
  EXPECT_GT(seconds, 0);
#endif
}

/// What is harmless: work done by more threads than need be, with the same result.
struct MutantCount {
  int caught = 0;
  std::vector<std::string> survivors;
};

MutantCount hunt(const Sample& sample) {
  MutantCount count;
  for (const Mutant& mutant : mutants(sample.program)) {
    Sample changed = sample;
    changed.program = mutant.program;
    if (complaint(changed).empty()) {
      count.survivors.push_back(mutant.what);
    } else {
      ++count.caught;
    }
  }
  return count;
}

TEST(Simulate, MutantsAreCaught) {
  const std::vector<Sample> samples = {vector_add(1000), tiled_matmul(33, 20, 50), pipelined_matmul(32, 32, 64),
                                       transpose(64, Spread::kPadded), transpose(64, Spread::kSwizzled)};
  int caught = 0;
  for (const Sample& sample : samples) {
    const MutantCount count = hunt(sample);
    EXPECT_EQ(count.survivors, std::vector<std::string>{}) << sample.program.name;
    caught += count.caught;
  }
  EXPECT_EQ(caught, 1 + 5 + 4 + 1 + 1);
  const MutantCount sums = hunt(row_sums(5, 333, 128));
  EXPECT_EQ(sums.caught, 4);
  ASSERT_EQ(sums.survivors.size(), 1u) << "all warps may add up the partial sums";
  EXPECT_NE(sums.survivors[0].find("thread_x < 32"), std::string::npos);
}

/// One kernel over `threads` threads with the tensors x (read) and y (written) of n float32 each.
struct Small {
  explicit Small(int n, int threads) : x(global("x", Float(32), Layout::row_major({n}))), y(x) {
    y.name = "y";
    y.written = true;
    kernel.name = "small";
    kernel.block = {threads, 1, 1};
    kernel.tensors = {x, y};
    in.assign(static_cast<size_t>(n), 1);
    out.assign(static_cast<size_t>(n), 0);
  }
  std::vector<std::string> sentences(NodePtr body) {
    kernel.body = std::move(body);
    Program program;
    program.kernels = {kernel};
    Arguments arguments;
    arguments.tensors["x"] = std::as_writable_bytes(std::span(in));
    arguments.tensors["y"] = std::as_writable_bytes(std::span(out));
    arguments.undefined = {"y"};
    report = simulate(program, arguments).value();
    std::vector<std::string> result;
    for (const Finding& finding : report.findings) result.push_back(finding.sentence);
    return result;
  }
  Kernel kernel;
  Tensor x, y;
  std::vector<float> in, out;
  Report report;
};

using Sentences = std::vector<std::string>;

TEST(Findings, OutOfBounds) {
  Small small(40, 64);
  const Sentences found = small.sentences(store(small.y, {thread_x()}, 2.0f));
  EXPECT_EQ(found, Sentences{"small: thread (40,0,0) of block (0,0,0) writes y(40) in 'y(thread_x) = 2.0', but the "
                             "tensor is (40):(1)"});
  EXPECT_EQ(small.out, std::vector<float>(40, 2)) << "the others are written";
}

TEST(Findings, Race) {
  Small small(64, 64);
  const Tensor s = shared("s", Float(32), Layout::row_major({64}));
  const NodePtr write = store(s, {thread_x()}, read(small.x, {thread_x()}));
  const NodePtr read_next = store(small.y, {thread_x()}, read(s, {(thread_x() + 1) % 64}));
  EXPECT_EQ(small.sentences(allocate(s, sequence({write, barrier(), read_next}))), Sentences{});
  const Sentences races = small.sentences(allocate(s, sequence({write, read_next})));
  ASSERT_FALSE(races.empty());
  EXPECT_EQ(small.report.findings[0].kind, Finding::Kind::kRace);
  EXPECT_EQ(races[0],
            "small: thread (0,0,0) of block (0,0,0) reads s(1) in 'y(thread_x) = s((thread_x + 1) % 64)', which "
            "thread (1,0,0) writes in 's(thread_x) = x(thread_x)' with no barrier in between");
}

TEST(Findings, BarrierOfWarpOrdersAWarpOnly) {
  const auto kernel = [](Small& small, int threads) {
    const Tensor s = shared("s", Float(32), Layout::row_major({64}));
    return small.sentences(allocate(s, sequence({
                                           store(s, {thread_x()}, read(small.x, {thread_x()})),
                                           barrier(Barrier::Scope::kWarp),
                                           store(small.y, {thread_x()}, read(s, {threads - 1 - thread_x()})),
                                       })));
  };
  Small one(64, 32);
  EXPECT_EQ(kernel(one, 32), Sentences{});
  Small two(64, 64);
  ASSERT_FALSE(kernel(two, 64).empty());
}

TEST(Findings, RaceBetweenBlocks) {
  Small small(64, 32);
  small.kernel.grid = {2, 1, 1};
  ASSERT_EQ(small.sentences(store(small.y, {thread_x()}, 1.0f)).size(), 1u);
  EXPECT_NE(small.report.findings[0].sentence.find("a thread of another block"), std::string::npos);
  EXPECT_EQ(small.sentences(store(small.y, {block_x() * 32 + thread_x()}, 1.0f)), Sentences{});
}

TEST(Findings, ReadOfAnotherBlocksOldElement) {
  Small small(64, 32);
  small.kernel.grid = {2, 1, 1};
  const NodePtr body = sequence({store(small.y, {block_x() * 32 + thread_x()}, 1.0f),
                                 if_then(block_x() == 1, store(small.y, {33}, read(small.y, {0})))});
  EXPECT_FALSE(small.sentences(body).empty());
}

TEST(Findings, Uninitialised) {
  Small small(32, 32);
  const Tensor s = shared("s", Float(32), Layout::row_major({32}));
  const Tensor r = registers("r", Float(32), Layout::row_major({2}));
  EXPECT_EQ(small.sentences(allocate(s, store(small.y, {thread_x()}, read(s, {thread_x()})))),
            Sentences{"small: thread (0,0,0) of block (0,0,0) reads s(0) in 'y(thread_x) = s(thread_x)' before "
                      "anything is written there"});
  EXPECT_EQ(small.sentences(allocate(r, sequence({store(r, {0}, 1.0f), store(small.y, {thread_x()}, read(r, {1}))}))),
            Sentences{"small: thread (0,0,0) of block (0,0,0) reads its register r(1) in 'y(thread_x) = r(1)' before "
                      "anything is written there"});
  EXPECT_EQ(small.sentences(store(small.y, {thread_x()}, read(small.y, {thread_x()}) + 1.0f)).size(), 1u);
}

TEST(Findings, WorkspaceStartsUndefined) {
  Small small(32, 32);
  Program program;
  Tensor t = global("t", Float(32), Layout::row_major({32}), true);
  program.workspace = {t};
  Kernel writes = small.kernel;
  writes.tensors = {small.x, t};
  writes.body = if_then(thread_x() < 31, store(t, {thread_x()}, read(small.x, {thread_x()})));
  Kernel reads = small.kernel;
  reads.tensors = {t, small.y};
  reads.body = store(small.y, {thread_x()}, read(t, {thread_x()}));
  program.kernels = {writes, reads};
  Arguments arguments;
  arguments.tensors["x"] = std::as_writable_bytes(std::span(small.in));
  arguments.tensors["y"] = std::as_writable_bytes(std::span(small.out));
  const Report report = simulate(program, arguments).value();
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, Finding::Kind::kUninitialised);
  EXPECT_NE(report.findings[0].sentence.find("t(31)"), std::string::npos);
  EXPECT_EQ(small.out[30], 1);
}

TEST(Findings, Divergence) {
  Small small(64, 64);
  const Sentences in_warp = small.sentences(if_then(thread_x() < 16, barrier()));
  ASSERT_FALSE(in_warp.empty());
  EXPECT_EQ(in_warp[0],
            "small: thread (16,0,0) of block (0,0,0) does not reach a barrier that other threads of its warp reach");
  const Sentences between = small.sentences(if_then(thread_x() < 32, barrier()));
  ASSERT_EQ(between.size(), 1u);
  EXPECT_EQ(between[0],
            "small: thread (32,0,0) of block (0,0,0) ends without the barrier at which other threads of the block "
            "wait");
  const Tensor r = registers("r", Float(32), Layout::row_major({1}));
  const NodePtr exchange = shuffle(r, {0}, Shuffle::Kind::kDown, 1.0f, 1);
  EXPECT_EQ(small.sentences(allocate(r, exchange)), Sentences{});
  EXPECT_FALSE(small.sentences(allocate(r, if_then(thread_x() % 2 == 0, exchange))).empty());
  EXPECT_EQ(small.sentences(if_then(thread_x() < 32, barrier(), barrier())).size(), 1u) << "different barriers";
}

TEST(Findings, AsynchronousCopies) {
  Small small(64, 16);
  const Tensor s = shared("s", Float(32), Layout::row_major({64}));
  const NodePtr fetch = sequence({move(s, {thread_x() * 4}, small.x, {thread_x() * 4}, 4, true), commit_group()});
  const auto use = [&](Expr at) { return store(small.y, {thread_x()}, read(s, {at})); };
  EXPECT_EQ(small.sentences(allocate(s, sequence({fetch, wait_group(0), barrier(), use(63 - thread_x())}))),
            Sentences{});
  EXPECT_EQ(small.sentences(allocate(s, sequence({fetch, wait_group(0), use(thread_x() * 4)}))), Sentences{})
      << "a thread sees its own copies after its wait";
  const Sentences unwaited = small.sentences(allocate(s, sequence({fetch, barrier(), use(thread_x())})));
  ASSERT_FALSE(unwaited.empty());
  EXPECT_EQ(unwaited[0],
            "small: thread (0,0,0) of block (0,0,0) reads s(0) in 'y(thread_x) = s(thread_x)' before the copy 'move "
            "async s(thread_x * 4 +: 4) = x(thread_x * 4 +: 4)' has been waited for");
  EXPECT_FALSE(small.sentences(allocate(s, sequence({fetch, wait_group(1), barrier(), use(thread_x())}))).empty());
  EXPECT_FALSE(small.sentences(allocate(s, sequence({fetch, wait_group(0), use(63 - thread_x())}))).empty());
}

TEST(Findings, Misaligned) {
  Small small(64, 8);
  const Tensor s = shared("s", Float(32), Layout::row_major({64}));
  const Sentences found = small.sentences(allocate(s, move(s, {thread_x() * 4}, small.x, {thread_x() * 4 + 1}, 4)));
  EXPECT_EQ(found, Sentences{"small: thread (0,0,0) of block (0,0,0) moves 4 elements at x(1) in 'move s(thread_x * 4 "
                             "+: 4) = x(thread_x * 4 + 1 +: 4)', whose offset 1 is not a multiple"});
}

TEST(Counters, BankConflicts) {
  const auto wavefronts_per_request = [](Spread spread) {
    const Counters counters = run(transpose(32, spread)).report.counters[0];
    EXPECT_EQ(counters.shared_requests, 64);
    return static_cast<double>(counters.shared_wavefronts) / static_cast<double>(counters.shared_requests);
  };
  EXPECT_EQ(wavefronts_per_request(Spread::kNone), 16.5) << "rows without, columns with 32 ways";
  EXPECT_EQ(wavefronts_per_request(Spread::kPadded), 1);
  EXPECT_EQ(wavefronts_per_request(Spread::kSwizzled), 1);
}

TEST(Counters, Coalescing) {
  const Counters rows = run(transpose(64, Spread::kPadded)).report.counters[0];
  EXPECT_EQ(rows.global_requests, 2 * 64 * 2);
  EXPECT_EQ(rows.global_sectors, 4 * rows.global_requests);
  EXPECT_EQ(rows.global_bytes_read, 64 * 64 * 4);
  EXPECT_EQ(rows.global_bytes_written, 64 * 64 * 4);
  Small small(1024, 32);
  small.sentences(store(small.y, {thread_x() * 32}, 1.0f));
  EXPECT_EQ(small.report.counters[0].global_sectors, 32);
}

TEST(Simulate, AtomicsAcrossBlocks) {
  std::vector<int32_t> keys(1000);
  std::vector<int32_t> counts(7);
  std::vector<int32_t> expected(7);
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = static_cast<int32_t>(i * i % 7);
    ++expected[static_cast<size_t>(keys[i])];
  }
  Arguments arguments;
  arguments.tensors["keys"] = std::as_writable_bytes(std::span(keys));
  arguments.tensors["counts"] = std::as_writable_bytes(std::span(counts));
  const Report report = simulate(histogram(1000, 7), arguments).value();
  EXPECT_TRUE(report.findings.empty());
  EXPECT_EQ(counts, expected);
}

TEST(Simulate, MissingArgumentsAreErrors) {
  const Sample sample = vector_add(10);
  EXPECT_EQ(simulate(sample.program, {}).error().diagnostics()[0].message,
            "kernel 'vector_add' is called without its tensor 'A'");
  std::vector<float> four(4);
  Arguments arguments;
  arguments.tensors["A"] = std::as_writable_bytes(std::span(four));
  EXPECT_EQ(simulate(sample.program, arguments).error().diagnostics()[0].message,
            "the buffer of 'A' has 16 bytes, but kernel 'vector_add' needs 40");
}

/// The value of an expression in thread_x = 0 ... 63, stored as T.
template <typename T>
std::vector<T> values_of(const Expr& expr) {
  Tensor y = global("y", expr.type(), Layout::row_major({64}), true);
  Kernel kernel;
  kernel.name = "values";
  kernel.block = {64, 1, 1};
  kernel.tensors = {y};
  kernel.body = store(y, {thread_x()}, expr);
  Program program;
  program.kernels = {kernel};
  std::vector<T> result(64);
  Arguments arguments;
  arguments.tensors["y"] = std::as_writable_bytes(std::span(result));
  const Report report = simulate(program, arguments).value();
  EXPECT_TRUE(report.findings.empty());
  return result;
}

Expr function(Halide::Type type, const std::string& name, std::vector<Expr> arguments) {
  return Halide::Internal::Call::make(type, name, arguments, Halide::Internal::Call::PureExtern);
}

TEST(Values, IntegersWrapAndDivideDown) {
  const Expr t = thread_x();
  const auto wrapped = values_of<int32_t>(t + std::numeric_limits<int32_t>::max());
  const auto bytes = values_of<uint8_t>(Halide::cast(UInt(8), t) * Halide::Internal::make_const(UInt(8), 37));
  const auto quotients = values_of<int32_t>((t - 31) / 7);
  const auto remainders = values_of<int32_t>((t - 31) % 7);
  const auto by_eight = values_of<int32_t>((t - 31) / 8);
  const auto by_variable = values_of<int32_t>(function(Int(32), "tc.floor_div", {t - 31, t - 5}));
  const auto wide = values_of<uint64_t>(Halide::Internal::Max::make(
      Halide::cast(UInt(64), t), Halide::Internal::make_const(UInt(64), 1) - Halide::cast(UInt(64), t)));
  for (int i = 0; i < 64; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(wrapped[at], static_cast<int32_t>(static_cast<uint32_t>(i) + 0x7fffffffu));
    EXPECT_EQ(bytes[at], static_cast<uint8_t>(i * 37));
    EXPECT_EQ(quotients[at], static_cast<int>(std::floor((i - 31) / 7.0)));
    EXPECT_EQ(remainders[at], (i - 31) - 7 * quotients[at]);
    EXPECT_EQ(by_eight[at], static_cast<int>(std::floor((i - 31) / 8.0)));
    EXPECT_EQ(by_variable[at], i == 5 ? 0 : static_cast<int>(std::floor((i - 31.0) / (i - 5.0))));
    EXPECT_EQ(wide[at], i <= 1 ? 1 : 1 - static_cast<uint64_t>(i)) << "unsigned";
  }
}

TEST(Values, BitsAreCountedInTheArgumentsType) {
  for (const Halide::Type type : {Int(8), Int(16), Int(32), Int(64), UInt(8), UInt(64)}) {
    const Expr ones = Halide::cast(type, thread_x() * 0 - 1);
    EXPECT_EQ(values_of<int32_t>(function(Int(32), "popcount", {ones}))[7], type.bits());
  }
}

TEST(Values, FloatsInTheirOwnPrecision) {
  const Expr t = Halide::cast(Float(32), thread_x());
  const auto third = values_of<float>(t / 3.0f + 16777216.0f);
  const auto halves = values_of<uint16_t>(Halide::Internal::Cast::make(Float(16), t) *
                                          Halide::Internal::FloatImm::make(Float(16), 0.1));
  const auto fused = values_of<float>(function(Float(32), "fma", {t, t + 0.1f, t}));
  const auto roots = values_of<double>(function(Float(64), "sqrt", {Halide::cast(Float(64), thread_x())}));
  const float tenth = float_from_bits(ScalarType::kFloat16, bits_from_float(ScalarType::kFloat16, 0.1f));
  for (int i = 0; i < 64; ++i) {
    const auto at = static_cast<size_t>(i);
    const auto f = static_cast<float>(i);
    EXPECT_EQ(third[at], f / 3.0f + 16777216.0f);
    EXPECT_EQ(halves[at], bits_from_float(ScalarType::kFloat16, f * tenth));
    EXPECT_EQ(fused[at], std::fma(f, f + 0.1f, f));
    EXPECT_EQ(roots[at], std::sqrt(static_cast<double>(i)));
  }
}

TEST(Values, NotANumberWinsInMinAndMaxOnly) {
  const Expr nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(values_of<float>(Halide::Internal::Max::make(nan, 1.0f))[0]));
  EXPECT_TRUE(std::isnan(values_of<float>(Halide::Internal::Min::make(1.0f, nan))[0]));
  EXPECT_EQ(values_of<float>(function(Float(32), "fmax", {nan, Expr(1.0f)}))[0], 1.0f);
}

TEST(Values, ConversionsSaturate) {
  EXPECT_EQ(values_of<int32_t>(Halide::Internal::Cast::make(Int(32), Expr(1e20f)))[0],
            std::numeric_limits<int32_t>::max());
  EXPECT_EQ(values_of<int32_t>(Halide::Internal::Cast::make(Int(32), Expr(std::numeric_limits<float>::quiet_NaN())))[0],
            0);
}

TEST(Values, HalfConversions) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    for (ScalarType type : {ScalarType::kFloat16, ScalarType::kBFloat16}) {
      const float value = float_from_bits(type, static_cast<uint16_t>(bits));
      if (std::isnan(value)) continue;
      ASSERT_EQ(bits_from_float(type, value), bits);
    }
  }
}

}  // namespace
}  // namespace tc::tile
