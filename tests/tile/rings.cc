#include "rings.h"

#include <fmt/format.h>

#include <cstring>
#include <functional>

#include "tc/ir/halide_compat.h"
#include "tc/ir/program.h"
#include "tc/support/check.h"
#include "tc/support/float8.h"
#include "tc/tile/certificate.h"
#include "tc/tile/lanes.h"
#include "tc/tile/matrix_descriptor.h"
#include "tc/tile/verify.h"

namespace tc::tile {
namespace {

using namespace build;

constexpr int kM = 128;         // of a block
constexpr int kReaders = 8;     // warps
constexpr int kProducer = 256;  // thread

/// An operand: [stages, mn, k] in shared memory, rows of k, or slabs of 64 of mn whose rows are those.
struct Operand {
  Tensor global, shared;
  TensorMap map;
  bool mn_major = false;
  int tile = 0;   ///< elements along mn
  int row = 64;   ///< of 128 bytes
  int parts = 1;  ///< of a tile: each is copied by another block of a cluster, for all of them
  int box_mn = 0, box_k = 0;
  Expr part = 0;
  BlockGroup group;
};

Operand operand(const std::string& name, ScalarType element, const RingProduct& shape, bool mn_major, int mn, int tile,
                int parts) {
  Operand made;
  made.parts = parts;
  const Halide::Type type = ir::to_halide(element);
  made.row = shape.row();
  made.mn_major = mn_major;
  made.tile = tile;
  const IntTuple extents = mn_major ? IntTuple{shape.k, mn} : IntTuple{mn, shape.k};
  made.global = global(name, type, Layout::row_major(extents));
  const int64_t slot = int64_t{tile} * made.row;
  const Layout layout = mn_major ? Layout({shape.stages, {made.row, tile / made.row}, made.row},
                                          {slot, {1, made.row * made.row}, made.row})
                                 : Layout({shape.stages, tile, made.row}, {slot, made.row, 1});
  made.shared = shared(name + "_shared", type, layout);
  made.shared.swizzle = row_swizzle(type.bytes());
  const bool cuts_k = mn_major && tile / made.row % parts != 0;
  made.box_mn = mn_major ? made.row : tile / parts;
  made.box_k = cuts_k ? made.row / parts : made.row;
  const int64_t fast = mn_major ? mn : shape.k, slow = mn_major ? shape.k : mn;
  made.map = {.name = name + "_map",
              .tensor = name,
              .extents = {fast, slow},
              .strides = {1, fast},
              .box = {made.row, mn_major ? made.box_k : made.box_mn},
              .swizzle = 128};
  return made;
}

/// The boxes of a tile, `step` rows of 64 along k behind its first.
NodePtr boxes_of(const Operand& of, const Expr& first, const Expr& step, const Expr& turn, int stages) {
  if (!of.mn_major) {
    const Expr row = Halide::Internal::simplify(of.part * of.box_mn), at = Halide::Internal::simplify(first + row);
    return box_copy(of.map, {step * of.row, at}, of.shared, {turn % stages, row, 0}, "ring", turn, of.group);
  }
  const bool cuts_k = of.box_k < of.row;
  const int slabs = cuts_k ? of.tile / of.row : of.tile / of.row / of.parts;
  const Expr k = cuts_k ? of.part * of.box_k : 0;
  const Expr slab = (cuts_k ? Expr(0) : of.part * slabs) + var("j"), mn = slab * of.row;
  return unrolled(
      "j", 0, slabs,
      box_copy(of.map, {first + mn, step * of.row + k}, of.shared, {turn % stages, mn, k}, "ring", turn, of.group));
}

}  // namespace

namespace {

/// The turns of a tile: `one(turn in the tile)` in one loop, or two after each other.
NodePtr turns_of_tile(const RingProduct& shape, const std::function<NodePtr(const Expr&)>& one) {
  const int first = shape.first_turns;
  if (first == 0) return for_loop("t", 0, shape.turns(), one(var("t")));
  return sequence(
      {for_loop("t", 0, first, one(var("t"))), for_loop("u", 0, shape.turns() - first, one(var("u") + first))});
}

/// The values that a thread of a warpgroup holds of A in a turn, 0 behind the last k.
NodePtr load_held(const RingProduct& shape, const WarpgroupAtom& atom, const Operand& a, const Tensor& held,
                  const Expr& m0, const Expr& turn) {
  const int together = 4 / bytes_of(shape.a), values = atom.values_of_a();
  const Expr v = var("v"), t = thread_x(), part = v % values / together;
  const Expr row = m0 + t / 32 * 16 + t % 32 / 4 + part % 2 * 8;
  const Expr k =
      turn * shape.row() + v / values * atom.k() + t % 4 * together + part / 2 * (atom.k() / 2) + v % together;
  const Expr value = read(a.global, shape.a_transposed ? std::vector{k, row} : std::vector{row, k});
  const bool ends_within = shape.k % shape.row() != 0;
  const Expr inside = ends_within ? Halide::Internal::Call::make(value.type(), Halide::Internal::Call::if_then_else,
                                                                 {k < shape.k, value, Halide::cast(value.type(), 0)},
                                                                 Halide::Internal::Call::PureIntrinsic)
                                  : value;
  return unrolled("v", 0, static_cast<int>(held.elements()), store(held, {v}, inside));
}

NodePtr tiles_of_block(const RingProduct& shape, const NodePtr& tile) {
  return shape.tiles == 1 ? tile : for_loop("tile", 0, shape.tiles, tile);
}

}  // namespace

Program ring_product_program(const RingProduct& shape) {
  Operand a = operand("A", shape.a, shape, shape.a_transposed, shape.m, kM, shape.cluster_n);
  Operand b = operand("B", shape.b, shape, !shape.b_transposed, shape.n, shape.tile_n, shape.cluster_m);
  std::vector<BlockGroup> groups;
  if (shape.cluster_n > 1) {
    a.part = block_y() % shape.cluster_n;
    groups.push_back(a.group = {.stride = shape.cluster_m, .count = shape.cluster_n});
  }
  if (shape.cluster_m > 1) {
    b.part = block_x() % shape.cluster_m;
    groups.push_back(b.group = {.stride = 1, .count = shape.cluster_m});
  }
  const Tensor c = global("C", Halide::Float(32), Layout::row_major({shape.m, shape.n}), true);
  const WarpgroupAtom atom = {.a = shape.a, .b = shape.b, .n = shape.tile_n};
  const int halves = shape.ping_pong ? 2 : 1;  // of a warpgroup's rows
  const Tensor sum = registers("sum", Halide::Float(32), Layout::row_major({halves * atom.values()}));
  const Tensor part = registers("part", Halide::Float(32), Layout::row_major({atom.values()}));
  const int slices = shape.row() / atom.k();
  const Tensor held = registers("held", a.global.type, Layout::row_major({slices * atom.values_of_a()}));
  const Expr t = thread_x(), v = var("v");
  const int turns = shape.turns();
  const Expr tile = shape.tiles == 1 ? Expr(0) : var("tile");
  const Expr m0 = block_x() * kM, n0 = (block_y() * shape.tiles + tile) * shape.tile_n;
  const int64_t bytes = int64_t{(shape.holds_a ? 0 : kM) + shape.tile_n} * 128;
  const auto turn_of = [&](const Expr& in_tile) { return shape.tiles == 1 ? in_tile : tile * turns + in_tile; };
  const auto read_turn = [&](const Expr& in_tile) {
    const Expr turn = turn_of(in_tile);
    const Tensor& to = shape.two_levels ? part : sum;
    const auto of_a = [&](int half) {
      return MatrixTile{
          a.shared.name, {turn % shape.stages, shape.ping_pong ? Expr(64 * half) : t / 128 * 64, 0}, 1, 2};
    };
    const MatrixTile of_b = {b.shared.name, {turn % shape.stages, 0, 0}, 1, 2};
    std::vector<NodePtr> steps = {await("ring", turn)};
    if (shape.holds_a) {
      steps.push_back(load_held(shape, atom, a, held, m0, in_tile));
      steps.push_back(warpgroup_matmul(atom, slices, to, FragmentTile{held.name, {0}}, of_b, shape.two_levels));
    } else {
      for (int half = 0; half < halves; ++half) {
        steps.push_back(warpgroup_matmul(atom, slices, to, of_a(half), of_b, shape.two_levels, half * atom.values()));
      }
    }
    if (shape.holds_a && !shape.two_levels) {
      steps.push_back(matmul_wait(0, {held.name}));
      steps.push_back(release("ring", turn));
    } else if (shape.two_levels) {
      steps.push_back(matmul_wait(
          0, shape.holds_a ? std::vector<std::string>{"part", held.name} : std::vector<std::string>{"part"}));
      steps.push_back(release("ring", turn));
      steps.push_back(unrolled("v", 0, atom.values(), store(sum, {v}, read(sum, {v}) + read(part, {v}))));
    } else if (shape.releases_late) {
      steps.push_back(matmul_wait(halves));
      steps.push_back(if_then((shape.ping_pong ? in_tile : turn) > 0, release("ring", turn - 1)));
    } else {
      steps.push_back(matmul_wait(0));
      steps.push_back(release("ring", turn));
    }
    return sequence(steps);
  };
  const int sums = halves * atom.values();
  const Expr warp = shape.ping_pong ? t / 32 % 4 : t / 32, in_half = v % atom.values();
  const Expr row = m0 + v / atom.values() * 64 + warp * 16 + t % 32 / 4 + in_half / 2 % 2 * 8;
  const Expr column = n0 + in_half / 4 * 8 + t % 4 * 2 + in_half % 2;
  const NodePtr starts = unrolled("v", 0, sums, store(sum, {v}, Expr(0.0F)));
  const NodePtr stores = unrolled("v", 0, sums, store(c, {row, column}, read(sum, {v})));
  const NodePtr multiplies = turns_of_tile(shape, read_turn), waits = matmul_wait(0, {"sum"});
  NodePtr read_tile = sequence({starts, multiplies, shape.two_levels ? sequence({}) : waits, stores});
  if (shape.ping_pong) {
    const NodePtr takes = if_then(tile > 0, take("ring", tile - 1));
    read_tile = if_then(t / 128 == tile % 2, sequence({takes, starts, multiplies, pass("ring", tile), waits,
                                                       release("ring", turn_of(turns - 1)), stores}));
  }
  std::vector<NodePtr> reader = {tiles_of_block(shape, read_tile)};
  if (shape.releases_late && !shape.ping_pong && !shape.holds_a && (shape.releases_last || !groups.empty()) &&
      !shape.two_levels)
    reader.push_back(release("ring", shape.tiles * turns - 1));
  const auto fill_turn = [&](const Expr& in_tile) {
    const Expr turn = turn_of(in_tile);
    return sequence({acquire("ring", turn), shape.holds_a ? sequence({}) : boxes_of(a, m0, in_tile, turn, shape.stages),
                     boxes_of(b, n0, in_tile, turn, shape.stages), commit("ring", turn, bytes)});
  };
  NodePtr producer = tiles_of_block(shape, turns_of_tile(shape, fill_turn));
  if (!groups.empty()) producer = sequence({producer, drain("ring", shape.tiles * turns)});
  Kernel kernel;
  kernel.name = "ring_product";
  kernel.grid = {shape.m / kM, shape.n / shape.tile_n / shape.tiles, 1};
  kernel.block = {288, 1, 1};
  kernel.tensors = {a.global, b.global, c};
  kernel.maps = {b.map};
  if (!shape.holds_a) kernel.maps.insert(kernel.maps.begin(), a.map);
  NodePtr readers = allocate(sum, sequence(reader));
  if (shape.holds_a) readers = allocate(held, readers);
  if (shape.two_levels) readers = allocate(part, readers);
  const NodePtr roles = if_then(t < kProducer, readers, if_then(t == kProducer, producer));
  kernel.cluster = {shape.cluster_m, shape.cluster_n, 1};
  const int teams = shape.ping_pong ? 2 : 1;
  kernel.body = allocate(b.shared, ring("ring", shape.stages, kReaders / teams, roles, groups, {}, teams));
  if (!shape.holds_a) kernel.body = allocate(a.shared, kernel.body);

  Program program;
  program.name = kernel.name;
  program.kernels = {kernel};
  return program;
}

RingSample ring_product(const RingProduct& shape) {
  RingSample sample;
  sample.program = ring_product_program(shape);
  const auto value = [](int i, int j, int salt) { return static_cast<float>((i * 7 + j * 5 + salt) % 9 - 4); };
  const auto fill = [&](std::vector<std::byte>& bytes, ScalarType type, bool transposed, int rows, int columns,
                        int salt) {
    const int of_element = bytes_of(type);
    bytes.resize(static_cast<size_t>(rows * columns * of_element));
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) {
        const uint16_t bits = is_float8(type) ? float8_bits(type, static_cast<double>(value(i, j, salt)))
                                              : bits_from_float(type, value(i, j, salt));
        const int at = transposed ? j * rows + i : i * columns + j;
        std::memcpy(bytes.data() + at * of_element, &bits, static_cast<size_t>(of_element));
      }
    }
  };
  fill(sample.a, shape.a, shape.a_transposed, shape.m, shape.k, 1);
  fill(sample.b, shape.b, shape.b_transposed, shape.k, shape.n, 2);
  sample.expected.resize(static_cast<size_t>(shape.m * shape.n));
  std::vector<float> of_b(static_cast<size_t>(shape.n));
  for (int k = 0; k < shape.k; ++k) {
    for (int j = 0; j < shape.n; ++j) of_b[static_cast<size_t>(j)] = value(k, j, 2);
    for (int i = 0; i < shape.m; ++i) {
      const float of_a = value(i, k, 1);
      const float* from = of_b.data();
      float* to = &sample.expected[static_cast<size_t>(i * shape.n)];
      for (int j = 0; j < shape.n; ++j) to[j] += of_a * from[j];
    }
  }
  return sample;
}

RingOutcome run(const RingSample& sample, const SimulatorOptions& options) {
  RingOutcome outcome{std::vector<float>(sample.expected.size()), {}};
  RingSample copy = sample;
  Arguments arguments;
  arguments.tensors["A"] = copy.a;
  arguments.tensors["B"] = copy.b;
  arguments.tensors["C"] = std::as_writable_bytes(std::span(outcome.output));
  arguments.undefined.insert("C");
  Result<Report> report = simulate(sample.program, arguments, options);
  TC_CHECK(report.has_value(), "{}", report.error().to_string());
  outcome.report = *report;
  return outcome;
}

std::string complaint_of(const RingSample& sample, const Program& program) {
  RingSample changed = sample;
  changed.program = program;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    if (std::string text = complaint(changed, {.seed = seed}); !text.empty()) return text;
  }
  return "";
}

std::string refusal_of(const Program& program) {
  const Verification verified = verify(program);
  if (!verified.faults.empty()) return verified.faults[0];
  const Certificate certificate = certify(program.kernels[0]);
  if (!certificate.races.empty()) return certificate.races[0];
  return certificate.unproved.empty() ? "" : certificate.unproved[0];
}

std::string complaint(const RingSample& sample, const SimulatorOptions& options) {
  const RingOutcome outcome = run(sample, options);
  if (!outcome.report.findings.empty()) return outcome.report.findings[0].sentence;
  for (size_t i = 0; i < sample.expected.size(); ++i) {
    if (outcome.output[i] != sample.expected[i]) {
      return fmt::format("element {} is {}, not {}", i, outcome.output[i], sample.expected[i]);
    }
  }
  return "";
}

}  // namespace tc::tile
