#include <gtest/gtest.h>

#include <functional>

#include "../common/tile_mutants.h"
#include "rings.h"
#include "tc/tile/accesses.h"
#include "tc/tile/certificate.h"
#include "tc/tile/verify.h"

namespace tc::tile {
namespace {

using namespace build;
using Sentences = std::vector<std::string>;

TEST(Ring, ProductsOfMatricesAreRightHoweverTheyLie) {
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      for (const ScalarType operand : {ScalarType::kFloat16, ScalarType::kBFloat16}) {
        for (const int k : {192, 168, 40}) {
          const RingSample sample = ring_product(
              {.k = k, .a_transposed = a_transposed, .b_transposed = b_transposed, .a = operand, .b = operand});
          EXPECT_EQ(complaint(sample), "") << a_transposed << b_transposed << k;
        }
      }
    }
  }
  EXPECT_EQ(complaint(ring_product({.m = 256, .n = 256, .k = 128, .tile_n = 128})), "");
}

/// Products of 8-bit floats, in sums of one level and of two.
std::vector<RingProduct> shapes_of_float8() {
  constexpr ScalarType kTypes[] = {ScalarType::kFloat8E4M3, ScalarType::kFloat8E5M2};
  std::vector<RingProduct> result;
  for (const ScalarType a : kTypes) {
    for (const ScalarType b : kTypes) {
      for (const bool two_levels : {false, true}) {
        result.push_back({.m = 256, .k = 128 * 3, .b_transposed = true, .a = a, .b = b, .two_levels = two_levels});
      }
    }
  }
  result.push_back(result[1]);
  result.back().k = 400;
  result.back().n = 256;
  result.back().tiles = 2;
  return result;
}

TEST(Ring, ProductsOfFloat8AreRightAndProved) {
  for (const RingProduct& shape : shapes_of_float8()) {
    const RingSample sample = ring_product(shape);
    for (uint64_t seed = 1; seed <= 2; ++seed) EXPECT_EQ(complaint(sample, {.seed = seed}), "");
    const Verification verified = verify(sample.program);
    EXPECT_EQ(verified.faults, Sentences{});
    EXPECT_EQ(verified.unproved, Sentences{});
    const Certificate certificate = certify(sample.program.kernels[0]);
    EXPECT_EQ(certificate.races, Sentences{});
    EXPECT_EQ(certificate.unproved, Sentences{});
  }
}

/// Operands that threads hold: of each type, along and across rows of A, with k that ends within a turn.
std::vector<RingProduct> shapes_of_held() {
  std::vector<RingProduct> result;
  for (const ScalarType type : {ScalarType::kFloat16, ScalarType::kBFloat16, ScalarType::kFloat8E4M3}) {
    for (const bool two_levels : {false, true}) {
      result.push_back({.m = 256,
                        .k = is_float8(type) ? 384 : 208,
                        .b_transposed = true,
                        .a = type,
                        .b = type,
                        .two_levels = two_levels,
                        .holds_a = true});
    }
  }
  result.push_back({.k = 64 * 3, .a_transposed = true, .holds_a = true});
  result.push_back({.n = 256, .k = 64 * 5, .tile_n = 128, .holds_a = true, .first_turns = 2});
  return result;
}

TEST(Ring, OperandsThatThreadsHoldAreRightAndProved) {
  for (const RingProduct& shape : shapes_of_held()) {
    const RingSample sample = ring_product(shape);
    for (uint64_t seed = 1; seed <= 3; ++seed) EXPECT_EQ(complaint(sample, {.seed = seed}), "");
    EXPECT_EQ(refusal_of(sample.program), "");
  }
}

TEST(Ring, NeverHangs) {
  for (int stages = 1; stages <= 4; ++stages) {
    for (int turns = 1; turns <= 9; ++turns) {
      const RingSample sample = ring_product(
          {.k = 64 * turns, .stages = stages, .releases_late = stages > 1, .releases_last = turns % 2 == 0});
      for (uint64_t seed = 1; seed <= 3; ++seed) EXPECT_EQ(complaint(sample, {.seed = seed}), "") << stages << turns;
    }
  }
  EXPECT_NE(complaint(ring_product({.stages = 1})).find("never ends"), std::string::npos);
}

TEST(Ring, ProductsAreVerified) {
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      const Verification result = verify(
          ring_product({.m = 256, .n = 256, .tile_n = 128, .a_transposed = a_transposed, .b_transposed = b_transposed})
              .program);
      EXPECT_EQ(result.faults, Sentences{});
      EXPECT_EQ(result.unproved, Sentences{});
    }
  }
}

/// Turns of one loop, of two, of loops in loops; operands along k and across it.
std::vector<RingProduct> shapes() {
  std::vector<RingProduct> result;
  for (const bool late : {false, true}) {
    const RingProduct one = {.m = 256,
                             .n = 128,
                             .k = 64 * 5,
                             .a_transposed = late,
                             .b_transposed = late,
                             .releases_late = late,
                             .releases_last = late};
    result.insert(result.end(), 5, one);
    result[result.size() - 1].tiles = 2;
    result[result.size() - 2].first_turns = 2;
    result[result.size() - 3].tiles = 2;
    result[result.size() - 3].first_turns = 2;
    result[result.size() - 4].k = 64;
  }
  return result;
}

TEST(Ring, ShapesAreRightAndCertified) {
  for (const RingProduct& shape : shapes()) {
    const RingSample sample = ring_product(shape);
    EXPECT_EQ(complaint(sample), "");
    const Verification verified = verify(sample.program);
    EXPECT_EQ(verified.faults, Sentences{});
    EXPECT_EQ(verified.unproved, Sentences{});
    const Certificate certificate = certify(sample.program.kernels[0]);
    EXPECT_EQ(certificate.races, Sentences{});
    EXPECT_EQ(certificate.unproved, Sentences{}) << shape.tiles << shape.first_turns << shape.releases_late;
  }
}

TEST(Ring, LargeProductsAreCertified) {
  const RingProduct large = {.m = 4096, .n = 4096, .k = 4096, .tile_n = 256, .stages = 4};
  EXPECT_EQ(certify(ring_product_program(large).kernels[0]).unproved, Sentences{});
}

TEST(Ring, ASmallBudgetLeavesTheOrderUnproved) {
  const Kernel kernel = ring_product_program({}).kernels[0];
  for (unsigned long operations = 100; operations <= 10'000; operations *= 10) {
    const Certificate certificate = certify(kernel, operations);
    EXPECT_EQ(certificate.races, Sentences{});
    EXPECT_FALSE(certificate.unproved.empty()) << operations;
  }
}

/// The first fault of a kernel of which one node is changed.
template <typename Kind, typename Change>
std::string fault_of(Change change) {
  Program program = ring_product_program({});
  change_node<Kind>(program, [&](Kind& n) {
    change(n);
    return true;
  });
  const Verification result = verify(program);
  return result.faults.empty() ? "" : result.faults[0];
}

template <typename Change>
std::string fault_of_kernel(Change change) {
  Program program = ring_product_program({});
  change(program.kernels[0]);
  const Verification result = verify(program);
  return result.faults.empty() ? "" : result.faults[0];
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "expected: " << part << "\ngot: " << text;
}

TEST(Ring, StructureOfRings) {
  expect_part(fault_of<Ring>([](Ring& n) { n.stages = 0; }), "the ring 'ring' has 0 stages");
  expect_part(fault_of<Ring>([](Ring& n) { n.readers = 10; }), "is read by 10 warps, but a block has 9");
  expect_part(fault_of<Ring>([](Ring& n) { n.name = "other"; }),
              "'ring' in 'await turn t of ring' is no ring around it");
  expect_part(fault_of<RingStep>([](RingStep& n) { n.turn = 1.0F; }),
              "the turn in 'await turn 1.0 of ring' is float32");
  expect_part(fault_of<RingStep>([](RingStep& n) { n.bytes = 16; }), "has 16 bytes");
  expect_part(fault_of_kernel([](Kernel& k) { k.body = for_loop("i", 0, 2, k.body); }), "is made in a loop or branch");
  expect_part(fault_of<RingStep>([](RingStep& n) { n.turn = n.turn + thread_x() % 32; }),
              "differs between threads of a warp");
  expect_part(fault_of<If>([](If& n) { n.condition = thread_x() < 250; }), "is reached by some threads of a warp only");
}

TEST(Ring, StructureOfBoxes) {
  const auto box = [](auto change) { return fault_of<BoxCopy>(change); };
  const auto map = [](auto change) { return fault_of_kernel([&](Kernel& k) { change(k.maps[0]); }); };
  expect_part(box([](BoxCopy& n) { n.map = "no"; }), "'no' in");
  expect_part(box([](BoxCopy& n) { n.tensor = "B"; }), "is of 'A', not of 'B'");
  expect_part(box([](BoxCopy& n) { n.coordinates.pop_back(); }), "has 1 coordinates for 2 dimensions");
  expect_part(box([](BoxCopy& n) { n.coordinates[0] = n.coordinates[0] + 4; }), "the first coordinate");
  expect_part(box([](BoxCopy& n) { n.destination_subscripts[1] = 8; }), "the place in");
  expect_part(box([](BoxCopy& n) { n.destination_subscripts[0] = var("t") + 1; }), "leaves [0, 3)");
  expect_part(box([](BoxCopy& n) { n.ring = "no"; }), "'no' in");
  expect_part(map([](TensorMap& m) { m.swizzle = 0; }), "does not lie like 'A_shared'");
  expect_part(map([](TensorMap& m) { m.swizzle = 64, m.box[0] = 32; }), "does not lie like 'A_shared'");
  expect_part(map([](TensorMap& m) { m.box[0] = 32; }), "has rows of 64 bytes, but swizzles 128");
  expect_part(map([](TensorMap& m) { m.box[1] = 96; }), "does not lie like 'A_shared'");
  expect_part(fault_of_kernel([](Kernel& k) { k.tensors[0].written = true; }), "which the kernel writes");
  expect_part(fault_of<Allocate>([](Allocate& n) { n.tensor.swizzle.reset(); }), "no matrix descriptor");
}

TEST(Ring, StructureOfProducts) {
  const auto product = [](auto change) { return fault_of<WarpgroupMatMul>(change); };
  expect_part(product([](WarpgroupMatMul& n) { n.atom.n = 60; }), "has 60 columns");
  expect_part(product([](WarpgroupMatMul& n) { n.atom.n = 128; }), "is not 64 registers of float32");
  expect_part(product([](WarpgroupMatMul& n) { n.atom.a = n.atom.b = ScalarType::kBFloat16; }), "as bfloat16");
  expect_part(product([](WarpgroupMatMul& n) { n.atom.b = ScalarType::kFloat8E4M3; }), "float16 by float8_e4m3");
  expect_part(product([](WarpgroupMatMul& n) { n.a.k_dimension = 1; }), "takes dimensions 1 and 1");
  expect_part(product([](WarpgroupMatMul& n) { n.slices = 5; }), "no matrix descriptor describes");
  expect_part(product([](WarpgroupMatMul& n) { n.a.mn_dimension = 0; }), "no matrix descriptor");
  expect_part(product([](WarpgroupMatMul& n) { n.a.subscripts[1] = n.a.subscripts[1] + 8; }), "leaves [0, 128)");
  expect_part(product([](WarpgroupMatMul& n) { n.a.subscripts[1] = thread_x() / 128 * 60; }), "the tile in");
  expect_part(product([](WarpgroupMatMul& n) { n.a.subscripts[1] = thread_x() / 64 % 2 * 64; }),
              "the tile in 'sum += A_shared(t % 3, thread_x / 64 % 2 * 64, 0) * B_shared(t % 3, 0, 0) by "
              "wgmma.m64n64k16 of float16, 4 times' differs between threads of a warpgroup");
  expect_part(product([](WarpgroupMatMul& n) { n.slices = 2, n.a.subscripts[2] = 8; }), "the tile's k in");
  expect_part(fault_of<If>([](If& n) { n.condition = thread_x() < 192; }), "is reached by some threads of a warpgroup");
  expect_part(fault_of_kernel([](Kernel& k) {
                bool done = false;
                k.body = with_changed<If>(
                    k.body, [](If& n) { return n.condition = thread_x() < 288, true; }, done);
                done = false;
                k.body = with_changed<WarpgroupMatMul>(
                    k.body, [](WarpgroupMatMul& n) { return n.a.subscripts[1] = 0, true; }, done);
              }),
              "whose warpgroup is not full");
  expect_part(fault_of<MatMulWait>([](MatMulWait& n) { n.sums = {"A"}; }), "which is no register tensor");
}

TEST(Ring, MutantsAreCaught) {
  const RingProduct one = {.k = 64 * 5, .releases_last = false},
                    two = {.n = 128, .k = 64 * 5, .releases_last = false, .tiles = 2};
  RingProduct in_parts = shapes_of_float8()[1];
  in_parts.k = 128 * 5;
  for (const RingProduct& shape : {one, two, in_parts}) {
    const RingSample sample = ring_product(shape);
    std::vector<Mutant> all = mutants(sample.program);
    for (Mutant& mutant : mutants_of_operations(sample.program)) all.push_back(std::move(mutant));
    for (const Mutant& mutant : all) {
      EXPECT_NE(complaint_of(sample, mutant.program), "") << mutant.what;
      // Without a product results are wrong, in order.
      if (mutant.what.find("wgmma") == std::string::npos) EXPECT_NE(refusal_of(mutant.program), "") << mutant.what;
    }
  }
}

/// The dimensions of a box may count through one of the tensor's.
TEST(Ring, BoxesOfSeveralDimensions) {
  const RingSample sample = ring_product({});
  const auto with_rows = [&](int64_t inner, int64_t outer) {
    Program program = sample.program;
    TensorMap& map = program.kernels[0].maps[0];
    map.box = {map.box[0], inner, outer};
    map.extents = {map.extents[0], inner, map.extents[1] / inner};
    map.strides = {1, map.strides[1], map.strides[1] * inner};
    change_node<BoxCopy>(program, [&](BoxCopy& n) {
      if (n.map != map.name) return false;
      n.coordinates = {n.coordinates[0], 0, n.coordinates[1] / static_cast<int>(inner)};
      return true;
    });
    return program;
  };
  for (const auto& [inner, outer] : {std::pair(8, 16), std::pair(1, 128), std::pair(64, 2)}) {
    EXPECT_EQ(complaint_of(sample, with_rows(inner, outer)), "") << inner;
    EXPECT_EQ(refusal_of(with_rows(inner, outer)), "") << inner;
  }
  expect_part(refusal_of(with_rows(8, 12)), "does not lie like 'A_shared'");
  expect_part(refusal_of(with_rows(8, 8)), "is for boxes of 16384 bytes");
  EXPECT_NE(complaint_of(sample, with_rows(8, 8)), "");
}

/// A sum that does not start with the first products of a turn, or starts again with later ones.
TEST(Ring, SumsStartWhereTheyShould) {
  const RingSample in_parts = ring_product(shapes_of_float8()[1]), whole = ring_product(shapes_of_float8()[0]);
  for (const RingSample& sample : {in_parts, whole}) {
    Program changed = sample.program;
    change_node<WarpgroupMatMul>(changed, [](WarpgroupMatMul& n) { return n.starts = !n.starts, true; });
    EXPECT_NE(complaint_of(sample, changed), "");
  }
}

/// Threads may read a turn themselves while they hold it.
TEST(Ring, OrdinaryReadsLieInTheirTurn) {
  const RingSample sample = ring_product({.k = 64 * 5});
  const auto with_read = [&](int turn, bool behind) {
    Program changed = sample.program;
    change_node<If>(changed, [&](If& n) {
      if (!n.then_case || !std::holds_alternative<RingStep>(n.then_case->node)) return false;
      const Tensor value = registers("value", Halide::Float(16), Layout::row_major({1}));
      const Tensor from = *tensors_of(changed.kernels[0]).at("A_shared");
      const NodePtr reads =
          allocate(value, store(value, {0}, read(from, {(var("t") + turn) % 3, thread_x() % 128, 5})));
      n.then_case = behind ? sequence({n.then_case, reads}) : sequence({reads, n.then_case});
      return true;
    });
    return changed;
  };
  for (const auto& [turn, behind] : {std::pair(0, false), std::pair(0, true), std::pair(-1, false)}) {
    EXPECT_EQ(complaint_of(sample, with_read(turn, behind)), "") << turn << behind;
    EXPECT_EQ(refusal_of(with_read(turn, behind)), "") << turn << behind;
  }
  EXPECT_NE(complaint_of(sample, with_read(-1, true)), "") << "released";
  EXPECT_NE(refusal_of(with_read(-1, true)), "") << "released";
  EXPECT_NE(complaint_of(sample, with_read(1, false)), "") << "not awaited";
  EXPECT_NE(refusal_of(with_read(1, false)), "") << "not awaited";
}

/// Boxes read global memory: not before the kernels before have ended, and not what nobody has written.
TEST(Ring, BoxesReadWhatKernelsBeforeWrite) {
  const RingSample sample = ring_product({});
  Kernel writer;
  writer.name = "writer";
  writer.tensors = {sample.program.kernels[0].tensors[0]};
  writer.tensors[0].written = true;
  writer.body = store(writer.tensors[0], {0, 0}, read(writer.tensors[0], {0, 0}));
  const auto after_writer = [&](bool waits_first) {
    Program program = sample.program;
    Kernel& kernel = program.kernels[0];
    kernel.body =
        waits_first ? sequence({wait_for_kernels(), kernel.body}) : sequence({kernel.body, wait_for_kernels()});
    program.kernels.insert(program.kernels.begin(), writer);
    return program;
  };
  EXPECT_EQ(complaint_of(sample, after_writer(true)), "");
  expect_part(complaint_of(sample, after_writer(false)),
              "before it has waited for the kernels before, which write 'A'");
  Program own = sample.program;
  own.workspace = {own.kernels[0].tensors[0]};
  expect_part(complaint_of(sample, own),
              "of 'A' in 'A_shared(t % 3, 0, 0) = box of A_map(t * 64, block_x * 128) in turn "
              "t of ring' before anything is written there");
}

/// Reads and boxes of the tensors use another buffer.
auto change_slots(const std::string& box_of, const std::string& read_of, int stages) {
  return [=](Program& program) {
    const Expr slot = var("t") % stages;
    if (!box_of.empty()) {
      change_node<BoxCopy>(program, [&](BoxCopy& n) {
        if (n.destination == box_of) n.destination_subscripts[0] = slot;
        return n.destination == box_of;
      });
    }
    if (!read_of.empty()) {
      change_node<WarpgroupMatMul>(program, [&](WarpgroupMatMul& n) {
        for (MatrixTile* tile : {&n.a, &n.b}) {
          if (tile->tensor == read_of) tile->subscripts[0] = slot;
        }
        return true;
      });
    }
  };
}

TEST(Ring, WrongKernelsAreCaught) {
  using Change = std::function<void(Program&)>;
  using Kind = RingStep::Kind;
  const auto turn_by = [](int by) { return [by](RingStep& n) { n.turn = n.turn + by; }; };
  const auto bytes_by = [](int by) { return [by](RingStep& n) { n.bytes += by; }; };
  // Some are refused for the tensor's bounds before the simulator could see anything but those.
  const std::vector<std::pair<std::string, Change>> changes = {
      {"boxes of A one buffer less", change_slots("A_shared", "", 2)},
      {"boxes of A one buffer more", change_slots("A_shared", "", 4)},
      {"reads of A one buffer less", change_slots("", "A_shared", 2)},
      {"reads of B one buffer more", change_slots("", "B_shared", 4)},
      {"both of A one buffer less", change_slots("A_shared", "A_shared", 2)},
      {"16 bytes more", change_step(Kind::kCommit, bytes_by(16))},
      {"16 bytes less", change_step(Kind::kCommit, bytes_by(-16))},
      {"next turn awaited", change_step(Kind::kAwait, turn_by(1))},
      {"last turn awaited", change_step(Kind::kAwait, turn_by(-1))},
      {"turn released at once", change_step(Kind::kRelease, turn_by(1))},
      {"next turn acquired", change_step(Kind::kAcquire, turn_by(1))},
      {"next turn committed", change_step(Kind::kCommit, turn_by(1))},
      {"more readers", [](Program& p) { change_node<Ring>(p, [](Ring& n) { return n.readers = 9, true; }); }},
      {"fewer readers", [](Program& p) { change_node<Ring>(p, [](Ring& n) { return n.readers = 7, true; }); }},
      {"one stage", [](Program& p) { change_node<Ring>(p, [](Ring& n) { return n.stages = 1, true; }); }},
      {"more stages than buffers",
       [](Program& p) { change_node<Ring>(p, [](Ring& n) { return n.stages = 4, true; }); }},
      {"no swizzle", [](Program& p) { p.kernels[0].maps[0].swizzle = 0; }},
      {"a box twice",
       [](Program& p) {
         change_node<For>(p, [](For& n) {
           if (n.variable != "j") return false;
           n.end = 2;
           n.body = map_exprs(n.body, [](const Expr& e) { return Halide::Internal::substitute("j", Expr(0), e); });
           return true;
         });
         change_step(Kind::kCommit, [](RingStep& n) { n.bytes += 64 * 64 * 2; })(p);
       }},
      {"released before the wait",
       [](Program& p) {
         change_node<Sequence>(p, [](Sequence& n) {
           const size_t last = n.children.size() - 1;
           const auto* wait = last == 3 ? std::get_if<MatMulWait>(&n.children[2]->node) : nullptr;
           if (wait && wait->pending == 1) std::swap(n.children[2], n.children[3]);
           return wait && wait->pending == 1;
         });
       }},
      {"two products left",
       [](Program& p) { change_node<MatMulWait>(p, [](MatMulWait& n) { return n.pending = 2, true; }); }},
      {"sums not named",
       [](Program& p) {
         change_node<MatMulWait>(p, [](MatMulWait& n) { return n.sums.empty() ? false : (n.sums.clear(), true); });
       }},
      {"sums touched",
       [](Program& p) {
         change_node<If>(p, [](If& n) {
           const Tensor sum = registers("sum", Halide::Float(32), Layout::row_major({32}));
           if (!n.then_case || !std::holds_alternative<RingStep>(n.then_case->node)) return false;
           n.then_case = sequence({n.then_case, store(sum, {0}, read(sum, {0}))});
           return true;
         });
       }},
      {"a buffer written",
       [](Program& p) {
         change_node<If>(p, [](If& n) {
           if (!n.then_case || !std::holds_alternative<RingStep>(n.then_case->node)) return false;
           Node writes;
           writes.node = Store{"A_shared", {0, 0, 0}, Halide::cast(Halide::Float(16), Expr(0.0F))};
           n.then_case = sequence({n.then_case, std::make_shared<const Node>(writes)});
           return true;
         });
       }},
  };
  const RingSample sample = ring_product({.k = 64 * 7, .releases_last = false});
  for (const auto& [what, change] : changes) {
    Program changed = sample.program;
    change(changed);
    const std::string refused = refusal_of(changed), found = complaint_of(sample, changed);
    EXPECT_NE(refused, "") << what;
    EXPECT_NE(found, "") << what;
  }
}

RingProduct by_turns(int turns, int tiles, int stages) {
  return {.n = 32 * tiles,
          .k = 64 * turns,
          .tile_n = 32,
          .stages = stages,
          .b_transposed = true,
          .tiles = tiles,
          .ping_pong = true};
}

/// Two warpgroups that have tiles by turns read one ring, whatever the numbers of turns, tiles and buffers.
TEST(Ring, TeamsTakeTurns) {
  for (const int stages : {2, 3, 4}) {
    for (const int turns : {1, 3, 5}) {
      for (const int tiles : {1, 4}) {
        const RingSample sample = ring_product(by_turns(turns, tiles, stages));
        for (uint64_t seed = 1; seed <= 2; ++seed) EXPECT_EQ(complaint(sample, {.seed = seed}), "");
        EXPECT_EQ(refusal_of(sample.program), "") << stages << " " << turns << " " << tiles;
      }
    }
  }
}

/// Each hand-over, and each order that it stands for, is needed.
TEST(Ring, WrongTeamsAreCaught) {
  using Change = std::function<void(Program&)>;
  using Kind = RingStep::Kind;
  const auto number_by = [](int by) { return [by](RingStep& n) { n.turn = n.turn + by; }; };
  // The first step of a kind is left out, or comes before the node that it follows.
  const auto without = [](Kind kind) {
    return [kind](Program& p) {
      change_node<Sequence>(p, [&](Sequence& n) {
        return std::erase_if(n.children, [&](const NodePtr& child) {
                 const RingStep* step = ring_step_of(*child);
                 const auto* branch = std::get_if<If>(&child->node);
                 if (!step && branch && branch->then_case) step = ring_step_of(*branch->then_case);
                 return step && step->kind == kind;
               }) > 0;
      });
    };
  };
  const auto earlier = [](Kind kind) {
    return [kind](Program& p) {
      change_node<Sequence>(p, [&](Sequence& n) {
        for (size_t i = 1; i < n.children.size(); ++i) {
          const RingStep* step = ring_step_of(*n.children[i]);
          if (step && step->kind == kind) return std::swap(n.children[i], n.children[i - 1]), true;
        }
        return false;
      });
    };
  };
  const std::vector<std::pair<std::string, Change>> changes = {
      {"nobody takes", without(Kind::kTake)},
      {"nobody passes", without(Kind::kPass)},
      {"passed before the tile's turns", earlier(Kind::kPass)},
      {"the next number taken", change_step(Kind::kTake, number_by(1))},
      {"the next number passed", change_step(Kind::kPass, number_by(1))},
      {"one team", [](Program& p) { change_node<Ring>(p, [](Ring& n) { return n.teams = 1, true; }); }},
      {"teams of two warps",
       [](Program& p) { change_node<Ring>(p, [](Ring& n) { return n.readers = 2, n.teams = 4, true; }); }},
      {"both teams have all tiles",
       [](Program& p) {
         change_node<If>(p, [](If& n) {
           const auto* equal = n.condition.as<Halide::Internal::EQ>();
           return equal && !n.else_case && (n.condition = equal->b == equal->b, true);
         });
       }},
  };
  // No machine runs these.
  const std::vector<std::pair<std::string, Change>> no_programs = {
      {"three teams", [](Program& p) { change_node<Ring>(p, [](Ring& n) { return n.teams = 3, true; }); }},
      {"halves of the sums overlap",
       [](Program& p) { change_node<WarpgroupMatMul>(p, [](WarpgroupMatMul& n) { return n.d_first = 8, true; }); }},
      {"a half that is not there",
       [](Program& p) { change_node<WarpgroupMatMul>(p, [](WarpgroupMatMul& n) { return n.d_first = 32, true; }); }},
  };
  const RingSample sample = ring_product(by_turns(5, 4, 3));
  for (const auto& [what, change] : changes) {
    Program changed = sample.program;
    change(changed);
    EXPECT_NE(refusal_of(changed), "") << what;
    EXPECT_NE(complaint_of(sample, changed), "") << what;
  }
  for (const auto& [what, change] : no_programs) {
    Program changed = sample.program;
    change(changed);
    EXPECT_NE(refusal_of(changed), "") << what;
  }
  Program beside = sample.program;
  NodePtr& body = beside.kernels[0].body;
  body = build::ring("another", 2, 4, body);
  EXPECT_NE(refusal_of(beside).find("beside several rings"), std::string::npos) << refusal_of(beside);
}

/// Two warpgroups that multiply take registers from one that copies.
TEST(Ring, DealsOutRegisters) {
  const auto with = [](RegisterShares shares, int64_t threads) {
    RingSample sample = ring_product({});
    sample.program.kernels[0].block[0] = threads;
    change_node<Ring>(sample.program, [&](Ring& ring) {
      ring.registers = shares;
      return true;
    });
    return sample;
  };
  const RingSample right = with({240, 24}, 384);
  EXPECT_EQ(complaint(right), "");
  EXPECT_EQ(refusal_of(right.program), "");
  expect_part(refusal_of(with({248, 24}, 384).program), "deals out 66560 registers, but the block has 64512");
  expect_part(refusal_of(with({240, 20}, 384).program), "gives threads 20 registers");
  expect_part(refusal_of(with({160, 24}, 384).program), "they begin with 168");
  expect_part(refusal_of(with({168, 24}, 288).program), "which are no whole warpgroups");
}

/// Registers of an operand are not touched until products have been waited for, and are the tensor's.
TEST(Ring, WrongUsesOfOperandsThatThreadsHoldAreCaught) {
  using Change = std::function<void(Program&)>;
  const Tensor held = registers("held", Halide::Float(16), Layout::row_major({32}));
  const auto behind_product = [&](const NodePtr& touch) {
    return [=](Program& p) {
      change_node<Sequence>(p, [&](Sequence& n) {
        for (size_t i = 0; i < n.children.size(); ++i) {
          if (!warpgroup_product_of(*n.children[i])) continue;
          n.children.insert(n.children.begin() + static_cast<long>(i) + 1, touch);
          return true;
        }
        return false;
      });
    };
  };
  const Tensor other = registers("other", Halide::Float(16), Layout::row_major({1}));
  const std::vector<std::pair<std::string, Change>> changes = {
      {"written", behind_product(store(held, {5}, Halide::cast(Halide::Float(16), Expr(1.0F))))},
      {"read", behind_product(allocate(other, store(other, {0}, read(held, {5}))))},
      {"not named",
       [](Program& p) {
         change_node<MatMulWait>(p, [](MatMulWait& n) {
           if (n.sums != std::vector<std::string>{"held"}) return false;
           n.sums.clear();
           return true;
         });
       }},
      {"one product left",
       [](Program& p) { change_node<MatMulWait>(p, [](MatMulWait& n) { return n.pending = 1, true; }); }},
      {"more registers than there are",
       [](Program& p) {
         change_node<WarpgroupMatMul>(p, [](WarpgroupMatMul& n) { return n.held->subscripts[0] = 8, true; });
       }},
  };
  const RingSample sample = ring_product({.k = 64 * 5, .holds_a = true});
  for (const auto& [what, change] : changes) {
    Program changed = sample.program;
    change(changed);
    EXPECT_NE(refusal_of(changed), "") << what;
    EXPECT_NE(complaint_of(sample, changed), "") << what;
  }
  const auto refused = [&](auto change) {
    Program changed = sample.program;
    change_node<WarpgroupMatMul>(changed, [&](WarpgroupMatMul& n) { return change(n), true; });
    return refusal_of(changed);
  };
  expect_part(refused([](WarpgroupMatMul& n) { n.held->tensor = "sum"; }), "which is not registers of float16");
  expect_part(refused([](WarpgroupMatMul& n) { n.atom.a = n.atom.b = ScalarType::kBFloat16; }), "of bfloat16");
  expect_part(refused([](WarpgroupMatMul& n) { n.held->subscripts[0] = 8; }), "but 'held' has 32");
}

}  // namespace
}  // namespace tc::tile
