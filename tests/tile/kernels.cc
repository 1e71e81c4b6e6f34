#include "kernels.h"

#include <fmt/format.h>

#include "tc/support/check.h"

namespace tc::tile {
namespace {

using namespace build;
using Halide::Float;

std::vector<float> small_integers(size_t count, int seed) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>((i * 7 + i / 5 + static_cast<size_t>(seed)) % 11) - 5;
  return values;
}

Program one_kernel(const std::string& name, Kernel kernel) {
  Program program;
  program.name = name;
  kernel.name = name;
  program.kernels.push_back(std::move(kernel));
  return program;
}

void fill_matmul(Sample& sample, int m, int n, int k) {
  std::vector<float>& a = sample.inputs["A"] = small_integers(static_cast<size_t>(m * k), 1);
  std::vector<float>& b = sample.inputs["B"] = small_integers(static_cast<size_t>(k * n), 2);
  sample.output = "C";
  sample.expected.assign(static_cast<size_t>(m * n), 0);
  for (int i = 0; i < m; ++i) {
    for (int l = 0; l < k; ++l) {
      const float of_row = a[static_cast<size_t>(i * k + l)];
      const float* from = &b[static_cast<size_t>(l * n)];
      float* to = &sample.expected[static_cast<size_t>(i * n)];
      for (int j = 0; j < n; ++j) to[j] += of_row * from[j];
    }
  }
}

}  // namespace

Sample vector_add(int n) {
  const Tensor a = global("A", Float(32), Layout::row_major({n}));
  const Tensor b = global("B", Float(32), Layout::row_major({n}));
  const Tensor c = global("C", Float(32), Layout::row_major({n}), true);
  const Expr i = var("i");
  Kernel kernel;
  kernel.grid = {(n + 127) / 128, 1, 1};
  kernel.block = {128, 1, 1};
  kernel.tensors = {a, b, c};
  kernel.body = let("i", block_x() * 128 + thread_x(), if_then(i < n, store(c, {i}, read(a, {i}) + read(b, {i}))));
  Sample sample{one_kernel("vector_add", kernel), {}, "C", {}};
  sample.inputs["A"] = small_integers(static_cast<size_t>(n), 1);
  sample.inputs["B"] = small_integers(static_cast<size_t>(n), 2);
  for (size_t at = 0; at < static_cast<size_t>(n); ++at) {
    sample.expected.push_back(sample.inputs["A"][at] + sample.inputs["B"][at]);
  }
  return sample;
}

Sample row_sums(int rows, int columns, int threads) {
  const Tensor in = global("in", Float(32), Layout::row_major({rows, columns}));
  const Tensor out = global("out", Float(32), Layout::row_major({rows}), true);
  const int warps = threads / 32;
  const Tensor partial = shared("partial", Float(32), Layout::row_major({warps}));
  const Tensor sum = registers("sum", Float(32), Layout::row_major({1}));
  const Tensor other = registers("other", Float(32), Layout::row_major({1}));
  const Expr c = var("c");
  const auto exchange = [&](int lanes) {
    std::vector<NodePtr> steps;
    for (int mask = lanes / 2; mask > 0; mask /= 2) {
      steps.push_back(shuffle(other, {0}, Shuffle::Kind::kXor, read(sum, {0}), mask));
      steps.push_back(store(sum, {0}, read(sum, {0}) + read(other, {0})));
    }
    return sequence(steps);
  };
  Kernel kernel;
  kernel.grid = {rows, 1, 1};
  kernel.block = {threads, 1, 1};
  kernel.tensors = {in, out};
  kernel.body = allocate(
      partial,
      allocate(sum,
               allocate(other, sequence({
                                   store(sum, {0}, 0.0f),
                                   for_loop("c", thread_x(), columns,
                                            store(sum, {0}, read(sum, {0}) + read(in, {block_x(), c})), threads),
                                   exchange(32),
                                   if_then(thread_x() % 32 == 0, store(partial, {thread_x() / 32}, read(sum, {0}))),
                                   barrier(),
                                   if_then(thread_x() < 32,
                                           sequence({
                                               store(sum, {0},
                                                     Halide::Internal::Call::make(
                                                         Float(32), Halide::Internal::Call::if_then_else,
                                                         {thread_x() < warps, read(partial, {thread_x()}), 0.0f},
                                                         Halide::Internal::Call::PureIntrinsic)),
                                               exchange(32),
                                               if_then(thread_x() == 0, store(out, {block_x()}, read(sum, {0}))),
                                           })),
                               }))));
  Sample sample{one_kernel("row_sums", kernel), {}, "out", std::vector<float>(static_cast<size_t>(rows))};
  sample.inputs["in"] = small_integers(static_cast<size_t>(rows * columns), 3);
  for (int r = 0; r < rows; ++r) {
    for (int at = 0; at < columns; ++at) {
      sample.expected[static_cast<size_t>(r)] += sample.inputs["in"][static_cast<size_t>(r * columns + at)];
    }
  }
  return sample;
}

Sample tiled_matmul(int m, int n, int k) {
  const Tensor a = global("A", Float(32), Layout::row_major({m, k}));
  const Tensor b = global("B", Float(32), Layout::row_major({k, n}));
  const Tensor c = global("C", Float(32), Layout::row_major({m, n}), true);
  const Tensor a_tile = shared("A_s", Float(32), Layout::row_major({16, 16}));
  const Tensor b_tile = shared("B_s", Float(32), Layout::row_major({16, 16}));
  const Tensor sum = registers("C_r", Float(32), Layout::row_major({1}));
  const Expr i = block_y() * 16 + thread_y();
  const Expr j = block_x() * 16 + thread_x();
  const Expr k0 = var("k0");
  const Expr kk = var("kk");
  Kernel kernel;
  kernel.grid = {(n + 15) / 16, (m + 15) / 16, 1};
  kernel.block = {16, 16, 1};
  kernel.tensors = {a, b, c};
  const auto guarded = [](Expr condition, Expr value) {
    return Halide::Internal::Call::make(Float(32), Halide::Internal::Call::if_then_else, {condition, value, 0.0f},
                                        Halide::Internal::Call::PureIntrinsic);
  };
  const NodePtr loop = for_loop(
      "k0", 0, k,
      sequence({
          barrier(),
          store(a_tile, {thread_y(), thread_x()}, guarded(i < m && k0 + thread_x() < k, read(a, {i, k0 + thread_x()}))),
          store(b_tile, {thread_y(), thread_x()}, guarded(j < n && k0 + thread_y() < k, read(b, {k0 + thread_y(), j}))),
          barrier(),
          unrolled("kk", 0, 16,
                   store(sum, {0}, read(sum, {0}) + read(a_tile, {thread_y(), kk}) * read(b_tile, {kk, thread_x()}))),
      }),
      16);
  kernel.body = allocate(
      a_tile, allocate(b_tile, allocate(sum, sequence({store(sum, {0}, 0.0f), loop,
                                                       if_then(i < m && j < n, store(c, {i, j}, read(sum, {0})))}))));
  Sample sample{one_kernel("tiled_matmul", kernel), {}, "", {}};
  fill_matmul(sample, m, n, k);
  return sample;
}

Sample pipelined_matmul(int m, int n, int k) {
  const Tensor a = global("A", Float(32), Layout::row_major({m, k}));
  const Tensor b = global("B", Float(32), Layout::row_major({k, n}));
  const Tensor c = global("C", Float(32), Layout::row_major({m, n}), true);
  const Tensor a_tile = shared("A_s", Float(32), Layout({2, 32, 16}, {32 * 20, 20, 1}));
  const Tensor b_tile = shared("B_s", Float(32), Layout::row_major({2, 16, 32}));
  const Tensor sum = registers("C_r", Float(32), Layout::row_major({2, 4}));
  const Expr t = thread_x();
  const auto fetch = [&](Expr stage, Expr k0) {
    return sequence({
        move(a_tile, {stage, t / 4, t % 4 * 4}, a, {block_y() * 32 + t / 4, k0 + t % 4 * 4}, 4, true),
        move(b_tile, {stage, t / 8, t % 8 * 4}, b, {k0 + t / 8, block_x() * 32 + t % 8 * 4}, 4, true),
        commit_group(),
    });
  };
  const Expr step = var("step");
  const Expr kk = var("kk");
  const Expr ii = var("ii");
  const Expr jj = var("jj");
  const Expr row = t / 8 * 2 + ii;
  const Expr column = t % 8 * 4 + jj;
  const int steps = k / 16;
  const NodePtr product =
      for_loop("kk", 0, 16,
               unrolled("ii", 0, 2,
                        unrolled("jj", 0, 4,
                                 store(sum, {ii, jj},
                                       read(sum, {ii, jj}) +
                                           read(a_tile, {step % 2, row, kk}) * read(b_tile, {step % 2, kk, column})))));
  const NodePtr loop = for_loop("step", 0, steps,
                                sequence({
                                    if_then(step + 1 < steps, fetch((step + 1) % 2, (step + 1) * 16), commit_group()),
                                    wait_group(1),
                                    barrier(),
                                    product,
                                    barrier(),
                                }));
  Kernel kernel;
  kernel.grid = {n / 32, m / 32, 1};
  kernel.block = {128, 1, 1};
  kernel.tensors = {a, b, c};
  kernel.body = allocate(
      a_tile,
      allocate(b_tile,
               allocate(sum, sequence({
                                 unrolled("ii", 0, 2, unrolled("jj", 0, 4, store(sum, {ii, jj}, 0.0f))),
                                 fetch(0, 0),
                                 loop,
                                 unrolled("ii", 0, 2,
                                          move(c, {block_y() * 32 + row, block_x() * 32 + t % 8 * 4}, sum, {ii, 0}, 4)),
                             }))));
  Sample sample{one_kernel("pipelined_matmul", kernel), {}, "", {}};
  fill_matmul(sample, m, n, k);
  return sample;
}

Sample transpose(int n, Spread spread) {
  const Tensor a = global("A", Float(32), Layout::row_major({n, n}));
  const Tensor b = global("B", Float(32), Layout::row_major({n, n}), true);
  Tensor tile = shared("tile", Float(32), Layout({32, 32}, {spread == Spread::kPadded ? 33 : 32, 1}));
  if (spread == Spread::kSwizzled) tile.swizzle = Swizzle{5, 0, 5};
  const Expr r = var("r");
  Kernel kernel;
  kernel.grid = {n / 32, n / 32, 1};
  kernel.block = {32, 8, 1};
  kernel.tensors = {a, b};
  const Expr row = thread_y() + r * 8;
  kernel.body = allocate(
      tile, sequence({
                unrolled("r", 0, 4,
                         store(tile, {row, thread_x()}, read(a, {block_y() * 32 + row, block_x() * 32 + thread_x()}))),
                barrier(),
                unrolled("r", 0, 4,
                         store(b, {block_x() * 32 + row, block_y() * 32 + thread_x()}, read(tile, {thread_x(), row}))),
            }));
  Sample sample{one_kernel("transpose", kernel), {}, "B", std::vector<float>(static_cast<size_t>(n * n))};
  sample.inputs["A"] = small_integers(static_cast<size_t>(n * n), 4);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      sample.expected[static_cast<size_t>(j * n + i)] = sample.inputs["A"][static_cast<size_t>(i * n + j)];
    }
  }
  return sample;
}

Sample tensor_core_product(const TensorCoreProduct& shape) {
  const MatMulAtom& atom = *find_matmul_atom(ScalarType::kFloat16, ScalarType::kFloat32, 80);
  const Tensor a = global("A", Float(32), Layout::row_major({shape.m, shape.k}));
  const Tensor b = global("B", Float(32), Layout::row_major({shape.k, shape.n}));
  const Tensor c = global("C", Float(32), Layout::row_major({shape.m, shape.n}), true);
  const Tensor a_tile = shared("a_tile", Float(16), Layout({16, 16}, {24, 1}));
  const Tensor b_tile = shared("b_tile", Float(16), Layout({16, 16}, {24, 1}));
  const Tensor a_reg = registers("a_reg", Float(16), Layout::row_major({8}));
  const Tensor b_reg = registers("b_reg", Float(16), Layout::row_major({2, 4}));
  const Tensor sum = registers("sum", Float(32), Layout::row_major({2, 4}));
  const Expr t = thread_x(), i = var("i"), step = var("step");
  const Expr row = t / 16 + i * 2, column = t % 16;
  const auto values = [](const Tensor& tensor, std::vector<Expr> first, int count) {
    Fragment fragment{tensor.name, {}};
    for (int v = 0; v < count; ++v) {
      fragment.values.push_back(first);
      fragment.values.back().push_back(v);
    }
    return fragment;
  };
  const auto tile_of = [&](const Tensor& tile, bool transposed, const Expr& value) {
    return store(tile, transposed ? std::vector<Expr>{column, row} : std::vector<Expr>{row, column},
                 Halide::cast(Float(16), value));
  };
  // Rows 0-7 and 8-15, then the same of the other half of the reduction.
  const Expr a_row = t % 16, a_k = t / 16 * 8, at_k = t % 8 + t / 16 * 8, at_row = t / 8 % 2 * 8;
  const auto a_at = shape.a_transposed ? std::vector<Expr>{at_k, at_row} : std::vector<Expr>{a_row, a_k};
  // Both halves of the reduction, then the same of the other 8 columns.
  const Expr b_k = t % 16, b_column = t / 16 * 8, of_column = t % 8 + t / 16 * 8, of_k = t / 8 % 2 * 8;
  const auto b_at = shape.b_transposed ? std::vector<Expr>{of_column, of_k} : std::vector<Expr>{b_k, b_column};
  Fragment b_both = values(b_reg, {0}, 4);
  for (const auto& value : values(b_reg, {1}, 4).values) b_both.values.push_back(value);
  std::vector<NodePtr> products, results;
  for (int j = 0; j < 2; ++j) {
    products.push_back(matmul(atom, values(sum, {j}, 4), values(a_reg, {}, 8), values(b_reg, {j}, 4)));
    for (int v = 0; v < 4; ++v) {
      results.push_back(store(c, {block_x() * 16 + t / 4 + v / 2 * 8, block_y() * 16 + j * 8 + t % 4 * 2 + v % 2},
                              read(sum, {j, v})));
    }
  }
  Kernel kernel;
  kernel.grid = {shape.m / 16, shape.n / 16, 1};
  kernel.block = {32, 1, 1};
  kernel.tensors = {a, b, c};
  const NodePtr one_step = sequence(
      {barrier(),
       unrolled("i", 0, 8, tile_of(a_tile, shape.a_transposed, read(a, {block_x() * 16 + row, step * 16 + column}))),
       unrolled("i", 0, 8, tile_of(b_tile, shape.b_transposed, read(b, {step * 16 + row, block_y() * 16 + column}))),
       barrier(), matrix_load(values(a_reg, {}, 8), a_tile, a_at, shape.a_transposed),
       matrix_load(b_both, b_tile, b_at, !shape.b_transposed), sequence(products)});
  const NodePtr zero = unrolled("v", 0, 4, unrolled("j", 0, 2, store(sum, {var("j"), var("v")}, Expr(0.0F))));
  const NodePtr body = sequence({zero, for_loop("step", 0, shape.k / 16, one_step), sequence(results)});
  kernel.body = allocate(a_tile, allocate(b_tile, allocate(a_reg, allocate(b_reg, allocate(sum, body)))));
  Sample sample{one_kernel("tensor_core_product", kernel), {}, "", {}};
  fill_matmul(sample, shape.m, shape.n, shape.k);
  return sample;
}

Program histogram(int n, int bins) {
  const Tensor keys = global("keys", Halide::Int(32), Layout::row_major({n}));
  const Tensor counts = global("counts", Halide::Int(32), Layout::row_major({bins}), true);
  const Expr i = var("i");
  Kernel kernel;
  kernel.grid = {(n + 63) / 64, 1, 1};
  kernel.block = {64, 1, 1};
  kernel.tensors = {keys, counts};
  kernel.body =
      let("i", block_x() * 64 + thread_x(), if_then(i < n, atomic(counts, {read(keys, {i})}, Atomic::Op::kAdd, 1)));
  return one_kernel("histogram", kernel);
}

Outcome run(const Sample& sample, const SimulatorOptions& options) {
  Outcome outcome{std::vector<float>(sample.expected.size()), {}};
  std::map<std::string, std::vector<float>> inputs = sample.inputs;
  Arguments arguments;
  for (auto& [name, values] : inputs) arguments.tensors[name] = std::as_writable_bytes(std::span(values));
  arguments.tensors[sample.output] = std::as_writable_bytes(std::span(outcome.output));
  arguments.undefined.insert(sample.output);
  Result<Report> report = simulate(sample.program, arguments, options);
  TC_CHECK(report.has_value(), "{}", report.error().to_string());
  outcome.report = *report;
  return outcome;
}

std::string complaint(const Sample& sample, const SimulatorOptions& options) {
  const Outcome outcome = run(sample, options);
  if (!outcome.report.findings.empty()) return outcome.report.findings[0].sentence;
  for (size_t i = 0; i < sample.expected.size(); ++i) {
    if (outcome.output[i] != sample.expected[i]) {
      return fmt::format("element {} is {}, not {}", i, outcome.output[i], sample.expected[i]);
    }
  }
  return "";
}

}  // namespace tc::tile
