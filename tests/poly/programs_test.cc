#include "tests/poly/programs.h"

namespace tc::poly::test {

using ir::Assign;

ProgramPtr matmul(int64_t m, int64_t n, int64_t k) {
  const Expr i = index("i"), j = index("j"), r = index("k");
  ProgramBuilder p("matmul");
  p.input("A", {m, k}).input("B", {k, n}).result("C", {m, n});
  p.sum("C", {i, j}, {{"i", m}, {"j", n}}, {{"k", k}}, p.at("A", {i, r}) * p.at("B", {r, j}));
  return p.build();
}

ProgramPtr sgemm(int64_t m, int64_t n, int64_t k) {
  const Expr i = index("i"), j = index("j"), r = index("k");
  ProgramBuilder p("sgemm");
  p.input("A", {m, k}).input("B", {k, n}).tensor("C", {m, n}, ir::Role::kInOut);
  p.set("C", {i, j}, {{"i", m}, {"j", n}}, p.at("C", {i, j}) * 2.0f);
  p.statement("C", {i, j}, Assign::kAdd, false, {{"i", m}, {"j", n}}, {{"k", k}},
              p.at("A", {i, r}) * p.at("B", {r, j}) * 3.0f);
  return p.build();
}

ProgramPtr softmax(int64_t rows, int64_t columns) {
  const Expr i = index("i"), j = index("j");
  ProgramBuilder p("softmax");
  p.input("A", {rows, columns}).result("O", {rows, columns}).temporary("maximum", {rows}).temporary("total", {rows});
  p.statement("maximum", {i}, Assign::kMax, true, {{"i", rows}}, {{"j", columns}}, p.at("A", {i, j}));
  p.set("O", {i, j}, {{"i", rows}, {"j", columns}},
        Halide::Internal::Call::make(Halide::Float(32), "exp", {p.at("A", {i, j}) - p.at("maximum", {i})},
                                     Halide::Internal::Call::PureExtern));
  p.sum("total", {i}, {{"i", rows}}, {{"j", columns}}, p.at("O", {i, j}));
  p.set("O", {i, j}, {{"i", rows}, {"j", columns}}, p.at("O", {i, j}) / p.at("total", {i}));
  return p.build();
}

ProgramPtr conv_relu(int64_t b, int64_t ip, int64_t op, int64_t h, int64_t w, int64_t kh, int64_t kw) {
  const Expr vb = index("b"), vip = index("ip"), vop = index("op"), vh = index("h"), vw = index("w"), vkh = index("kh"),
             vkw = index("kw");
  const int64_t oh = h - kh + 1, ow = w - kw + 1;
  ProgramBuilder p("conv_relu");
  p.input("in", {b, ip, h, w}).input("weight", {op, ip, kh, kw});
  p.temporary("out", {b, op, oh, ow}).result("relu", {b, op, oh, ow});
  p.sum("out", {vb, vop, vh, vw}, {{"b", b}, {"op", op}, {"h", oh}, {"w", ow}}, {{"ip", ip}, {"kh", kh}, {"kw", kw}},
        p.at("in", {vb, vip, vh + vkh, vw + vkw}) * p.at("weight", {vop, vip, vkh, vkw}));
  p.set("relu", {vb, vop, vh, vw}, {{"b", b}, {"op", op}, {"h", oh}, {"w", ow}},
        Halide::max(p.at("out", {vb, vop, vh, vw}), 0.0f));
  return p.build();
}

ProgramPtr mlp3(int64_t batch, int64_t w0, int64_t w1, int64_t w2, int64_t w3) {
  const Expr b = index("b"), n = index("n"), m = index("m");
  const int64_t widths[] = {w0, w1, w2, w3};
  ProgramBuilder p("mlp3");
  p.input("I", {batch, w0});
  for (int layer = 1; layer <= 3; ++layer) {
    p.input(fmt::format("W{}", layer), {widths[layer], widths[layer - 1]})
        .input(fmt::format("B{}", layer), {widths[layer]});
  }
  p.result("O3", {batch, w3}).temporary("O1", {batch, w1}).temporary("O2", {batch, w2});
  std::string in = "I";
  for (int layer = 1; layer <= 3; ++layer) {
    const std::string out = fmt::format("O{}", layer);
    const std::vector<ProgramBuilder::Loop> map = {{"b", batch}, {"n", widths[layer]}};
    p.set(out, {b, n}, map, p.at(fmt::format("B{}", layer), {n}));
    p.statement(out, {b, n}, Assign::kAdd, false, map, {{"m", widths[layer - 1]}},
                p.at(in, {b, m}) * p.at(fmt::format("W{}", layer), {n, m}));
    p.set(out, {b, n}, map, Halide::max(p.at(out, {b, n}), 0.0f));
    in = out;
  }
  return p.build();
}

ProgramPtr producer_conv1d(int64_t n, int64_t k) {
  const Expr i = index("i"), r = index("k");
  ProgramBuilder p("producer_conv1d");
  p.input("I", {n}).input("K", {k}).temporary("T", {n}).result("O", {n - k + 1});
  p.set("T", {i}, {{"i", n}}, p.at("I", {i}) * 2.0f);
  p.sum("O", {i}, {{"i", n - k + 1}}, {{"k", k}}, p.at("T", {i + r}) * p.at("K", {r}));
  return p.build();
}

ProgramPtr transpose_add(int64_t m, int64_t n) {
  const Expr i = index("i"), j = index("j");
  ProgramBuilder p("transpose_add");
  p.input("A", {n, m}).temporary("T", {m, n}).result("O", {n, m});
  p.set("T", {i, j}, {{"i", m}, {"j", n}}, p.at("A", {j, i}));
  p.set("O", {i, j}, {{"i", n}, {"j", m}}, p.at("T", {j, i}) + p.at("A", {i, j}));
  return p.build();
}

ProgramPtr histogram(int64_t n, int64_t bins) {
  const Expr i = index("i");
  ProgramBuilder p("histogram");
  p.tensor("I", {n}, ir::Role::kInput, Halide::Int(32)).input("V", {n}).result("H", {bins});
  p.sum("H", {Halide::cast(ir::index_type(), p.at("I", {i}))}, {{"i", n}}, {}, p.at("V", {i}));
  return p.build();
}

ProgramPtr padded_conv1d(int64_t n) {
  const Expr h = index("h"), k = index("k");
  ProgramBuilder p("padded_conv1d");
  p.input("I", {n}).input("K", {3}).temporary("P", {n + 2}).result("O", {n});
  p.set("P", {h}, {{"h", n + 2}}, Halide::select(h >= 1 && h <= number(n), p.at("I", {h - 1}), 0.0f));
  p.sum("O", {h}, {{"h", n}}, {{"k", 3}}, p.at("P", {h + k}) * p.at("K", {k}));
  return p.build();
}

ProgramPtr gather(int64_t n, int64_t a, int64_t b) {
  const Expr i = index("i"), j = index("j");
  ProgramBuilder p("gather");
  p.input("X", {n}).tensor("I", {a, b}, ir::Role::kInput, Halide::Int(32)).result("Z", {a, b});
  p.set("Z", {i, j}, {{"i", a}, {"j", b}}, p.at("X", {Halide::cast(ir::index_type(), p.at("I", {i, j}))}));
  return p.build();
}

ProgramPtr layernorm(int64_t rows, int64_t columns) {
  const Expr i = index("i"), j = index("j");
  const float inverse = 1.0f / static_cast<float>(columns);
  ProgramBuilder p("layernorm");
  p.input("I", {rows, columns}).input("gamma", {columns}).result("O", {rows, columns});
  p.temporary("sum", {rows}).temporary("squares", {rows}).temporary("mean", {rows}).temporary("variance", {rows});
  const std::vector<ProgramBuilder::Loop> row = {{"i", rows}}, column = {{"j", columns}};
  p.sum("sum", {i}, row, column, p.at("I", {i, j}));
  p.sum("squares", {i}, row, column, p.at("I", {i, j}) * p.at("I", {i, j}));
  p.set("mean", {i}, row, p.at("sum", {i}) * inverse);
  p.set("variance", {i}, row, p.at("squares", {i}) * inverse - p.at("mean", {i}) * p.at("mean", {i}));
  p.set("O", {i, j}, {{"i", rows}, {"j", columns}},
        (p.at("I", {i, j}) - p.at("mean", {i})) / p.at("variance", {i}) * p.at("gamma", {j}));
  return p.build();
}

ProgramPtr normalise(int64_t n) {
  const Expr i = index("i"), j = index("j");
  ProgramBuilder p("normalise");
  p.input("A", {n}).result("O", {n, 1}).temporary("total", {});
  p.sum("total", {}, {}, {{"i", n}}, p.at("A", {i}));
  p.set("O", {i, j}, {{"i", n}, {"j", 1}}, p.at("A", {i}) / p.at("total", {}));
  return p.build();
}

}  // namespace tc::poly::test
