#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tc/cpu/loader.h"
#include "tc/cpu/object.h"

namespace tc::cpu {

/// Shorthand for hand-written Stmts, and kernels that several tests use.
inline Halide::Expr variable(const std::string& name) {
  return Halide::Internal::Variable::make(Halide::Int(32), name);
}
inline Halide::Expr load(Halide::Type type, const std::string& buffer, Halide::Expr index) {
  return Halide::Internal::Load::make(type.with_lanes(index.type().lanes()), buffer, index, {}, {},
                                      Halide::Internal::const_true(index.type().lanes()), {});
}
inline Halide::Internal::Stmt store(const std::string& buffer, Halide::Expr value, Halide::Expr index) {
  return Halide::Internal::Store::make(buffer, value, index, {}, Halide::Internal::const_true(index.type().lanes()),
                                       {});
}
inline Halide::Expr ramp(Halide::Expr base, int lanes) { return Halide::Internal::Ramp::make(base, 1, lanes); }
inline Halide::Internal::Stmt loop(const std::string& name, Halide::Expr extent, Halide::Internal::Stmt body,
                                   Halide::Internal::ForType type = Halide::Internal::ForType::Serial) {
  return Halide::Internal::For::make(name, 0, extent, type, Halide::DeviceAPI::None, body);
}
inline Halide::Expr call(Halide::Type type, const std::string& name, std::vector<Halide::Expr> args) {
  return Halide::Internal::Call::make(type, name, std::move(args), Halide::Internal::Call::PureExtern);
}
inline Halide::Internal::Stmt block(std::vector<Halide::Internal::Stmt> stmts) {
  return Halide::Internal::Block::make(stmts);
}

inline std::shared_ptr<const Loaded> build(const Kernel& kernel, const ObjectOptions& options = {}) {
  Result<Object> object = compile_object(kernel, options);
  if (!object) throw std::runtime_error(object.error().to_string());
  auto loaded = load_object(*object);
  if (!loaded) throw std::runtime_error(loaded.error().to_string());
  return *loaded;
}

/// out[i] = value(i) for i below `count`, as a scalar loop (lanes 1) or with vectors of `lanes` and a guarded tail.
inline Halide::Internal::Stmt elementwise(const std::string& out, int count, int lanes,
                                          const std::function<Halide::Expr(Halide::Expr)>& value) {
  using namespace Halide;
  using namespace Halide::Internal;
  if (lanes == 1) return loop("i", count, store(out, value(variable("i")), variable("i")));
  Expr i = variable("o") * lanes + variable("i");
  Stmt body = IfThenElse::make(likely(i < count), store(out, value(i), i));
  return loop("o", (count + lanes - 1) / lanes, loop("i", lanes, body, ForType::Vectorized));
}

/// c(m, n) = a(m, k) * b(k, n), 6 x 32 accumulators, parallel over tiles of rows. m must be a multiple of 6, n of 32.
inline Kernel matmul_kernel(int m, int n, int k) {
  using namespace Halide;
  using namespace Halide::Internal;
  constexpr int kRows = 6, kColumns = 2, kLanes = 16;
  Type f32 = Float(32);
  Expr row = variable("im") * kRows, column = variable("in") * (kColumns * kLanes);
  std::vector<Stmt> clear, update, write;
  for (int r = 0; r < kRows; r++) {
    for (int c = 0; c < kColumns; c++) {
      Expr place = ramp((r * kColumns + c) * kLanes, kLanes);
      Expr a = Broadcast::make(load(f32, "a", (row + r) * k + variable("k")), kLanes);
      Expr b = load(f32, "b", ramp(variable("k") * n + column + c * kLanes, kLanes));
      clear.push_back(store("acc", make_zero(f32.with_lanes(kLanes)), place));
      update.push_back(store("acc", load(f32, "acc", place) + a * b, place));
      write.push_back(store("c", load(f32, "acc", place), ramp((row + r) * n + column + c * kLanes, kLanes)));
    }
  }
  Stmt tile = block({block(clear), loop("k", k, block(update)), block(write)});
  tile = Allocate::make("acc", f32, MemoryType::Auto, {kRows * kColumns * kLanes}, const_true(), tile);
  Stmt body = loop("im", m / kRows, loop("in", n / (kColumns * kLanes), tile), ForType::Parallel);
  return {"matmul",
          {buffer_argument("a", f32, int64_t{m} * k), buffer_argument("b", f32, int64_t{k} * n),
           buffer_argument("c", f32, int64_t{m} * n)},
          body,
          true};
}

}  // namespace tc::cpu
