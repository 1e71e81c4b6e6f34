#include "tc/tile/coverage.h"

#include <gtest/gtest.h>

#include "tc/tile/build.h"

namespace tc::tile {
namespace {

using namespace build;
using Sentences = std::vector<std::string>;

/// y(i) += x(i, k) over 20 x 10: 2 blocks of 16 threads, a sum in a register of each thread.
struct Sums {
  Tensor x = global("x", Halide::Float(32), Layout::row_major({20, 10}));
  Tensor y = global("y", Halide::Float(32), Layout::row_major({20}), true);
  Tensor sum = registers("sum", Halide::Float(32), Layout::row_major({1}));
  Expr i = block_x() * 16 + thread_x();
  Expr guard = i < 20;
  Expr end = 5;
  Expr stored = i;  ///< where the sum is stored
  int additions = 1, stores = 1;
  bool clears = true;

  Kernel kernel() const {
    const Expr k = var("step") * 2 + var("lane");
    const NodePtr add = carrying(std::make_shared<const Instances>(Instances{.statement = "S0", .first = {{i, k}}}),
                                 store(sum, {0}, read(sum, {0}) + read(x, {i, k})));
    const NodePtr sums = for_loop("step", 0, end, unrolled("lane", 0, 2, times(additions, add)));
    const NodePtr results = times(stores, store(y, {stored}, read(sum, {0})));
    const NodePtr clear = carrying(std::make_shared<const Instances>(Instances{.statement = "S0_init", .first = {{i}}}),
                                   store(sum, {0}, 0.0f));
    NodePtr body = clears ? sequence({clear, sums, results}) : sequence({sums, results});
    if (guard.defined()) body = if_then(guard, body);
    return {.name = "sums", .grid = {2, 1, 1}, .block = {16, 1, 1}, .tensors = {x, y}, .body = allocate(sum, body)};
  }
  static NodePtr times(int copies, const NodePtr& node) {
    return sequence(std::vector<NodePtr>(static_cast<size_t>(copies), node));
  }
};

Work work() {
  return {
      .statements = {{.id = "S0_init",
                      .domain = "{ S0_init[i] : 0 <= i < 20 }",
                      .accesses = {{.tensor = "y", .relation = "{ S0_init[i] -> [i] }", .is_write = true}}},
                     {.id = "S0",
                      .domain = "{ S0[i, k] : 0 <= i < 20 and 0 <= k < 10 }",
                      .reduced = {false, true},
                      .adds = true,
                      .accesses = {{.tensor = "x", .relation = "{ S0[i, k] -> [i, k] }"},
                                   {.tensor = "y", .relation = "{ S0[i, k] -> [i] }", .is_write = true}}}},
      .results = {{.tensor = "y",
                   .writes = "{ S0_init[i] -> [i] : 0 <= i < 20; S0[i, k] -> [i] : 0 <= i < 20 and 0 <= k < 10 }"}}};
}

TEST(Coverage, CountsWhatIsDone) {
  const Coverage coverage = cover(Sums().kernel(), work());
  EXPECT_EQ(coverage.faults, Sentences{});
  EXPECT_EQ(coverage.unproved, Sentences{});
  EXPECT_EQ(to_text(coverage),
            "S0_init: 20 instances done, each once\n"
            "S0: 200 instances done, each once\n"
            "y: 20 elements stored, each once\n"
            "1 of 1 tensors in shared memory and registers read for the elements that they hold\n");
}

TEST(Coverage, SaysWhatIsLeftOut) {
  EXPECT_EQ(cover(Sums{.end = 4}.kernel(), work()).faults,
            Sentences{"sums: 'S0' is not done completely: its instance (0, 8) is left out"});
  EXPECT_EQ(cover(Sums{.stores = 0}.kernel(), work()).faults, Sentences{"sums: 'y' is never stored"});
  const Sums narrow{.guard = block_x() * 16 + thread_x() < 19};
  EXPECT_EQ(cover(narrow.kernel(), work()).faults,
            (Sentences{"sums: 'S0_init' is not done completely: its instance (19) is left out",
                       "sums: 'S0' is not done completely: its instance (19, 0) is left out",
                       "sums: the element (19) of 'y' is not stored"}));
}

TEST(Coverage, SaysWhatIsDoneTooOften) {
  EXPECT_EQ(cover(Sums{.additions = 2}.kernel(), work()).faults,
            Sentences{"sums: 'S0' is done more than once: its instance (0, 0)"});
  EXPECT_EQ(cover(Sums{.end = 6}.kernel(), work()).faults,
            Sentences{"sums: 'S0' has no instance (0, 10), which is done"});
  EXPECT_EQ(cover(Sums{.guard = Expr()}.kernel(), work()).faults,
            Sentences{"sums: the element (20) of 'y' is stored, but no statement writes it"});
}

/// All threads add up all of y(0) = x(0, 0) + ... + x(0, 9), each in a register of its own, and one stores it. Where
/// each adds a part, or only one instance, nobody has all of it.
TEST(Coverage, EachOfSeveralThreadsMayHaveAllOfASum) {
  const auto faults = [](const Expr& begin, const Expr& end) {
    const Tensor x = global("x", Halide::Float(32), Layout::row_major({20, 10}));
    const Tensor y = global("y", Halide::Float(32), Layout::row_major({20}), true);
    const Tensor sum = registers("sum", Halide::Float(32), Layout::row_major({1}));
    const auto carries = [](const char* statement, std::vector<Expr> point, const NodePtr& node) {
      return carrying(std::make_shared<const Instances>(Instances{.statement = statement, .first = {std::move(point)}}),
                      node);
    };
    const NodePtr clear = carries("S0_init", {block_x()}, store(sum, {0}, 0.0f));
    const NodePtr add =
        carries("S0", {block_x(), var("k")}, store(sum, {0}, read(sum, {0}) + read(x, {block_x(), var("k")})));
    const NodePtr result = if_then(thread_x() == 0, store(y, {block_x()}, read(sum, {0})));
    const Kernel kernel = {.name = "sums",
                           .grid = {20, 1, 1},
                           .block = {2, 1, 1},
                           .tensors = {x, y},
                           .body = allocate(sum, sequence({clear, for_loop("k", begin, end, add), result}))};
    return cover(kernel, work()).faults;
  };
  EXPECT_EQ(faults(0, 10), Sentences{});
  EXPECT_EQ(faults(thread_x(), 10), Sentences{"sums: 'S0' is done more than once: its instance (0, 1)"});
}

TEST(Coverage, OfAResultThatIsWrittenOnceSeesASecondStore) {
  Work once = work();
  once.results[0].writes = "{ S0_init[i] -> [i] : 0 <= i < 20 }";
  EXPECT_EQ(cover(Sums{.stores = 2}.kernel(), once).faults,
            Sentences{"sums: the element (0) of 'y' is stored more than once"});
  EXPECT_EQ(cover(Sums{.stores = 2}.kernel(), work()).faults, Sentences{}) << "some statement may write it twice";
}

TEST(Coverage, OfATensorThatDiesNeedsNoStores) {
  Work more = work();
  more.results[0].writes = "{ S0_init[i] -> [i] : 0 <= i < 30 }";
  EXPECT_EQ(cover(Sums().kernel(), more).faults, Sentences{"sums: the element (20) of 'y' is not stored"});
  more.results[0].dies = true;
  const Coverage coverage = cover(Sums().kernel(), more);
  EXPECT_EQ(coverage.faults, Sentences{});
  EXPECT_EQ(coverage.unproved[0], "sums: 'y' is stored in part, as nothing reads it after the launch");
}

TEST(Coverage, GivesTheReasonWhereItProvesNothing) {
  EXPECT_EQ(cover(Sums{.clears = false}.kernel(), work()).unproved,
            (Sentences{"sums: no operation says that it does 'S0_init'", "sums: whose values are in 'sum'"}));
  const Sums by_data{.guard = read(Sums().x, {0, 0}) > 0.0f};
  EXPECT_EQ(cover(by_data.kernel(), work()).unproved,
            (Sentences{"sums: 'S0_init' is done under conditions that are not affine",
                       "sums: 'S0' is done under conditions that are not affine",
                       "sums: 'sum(0) = sum(0) + x(block_x * 16 + thread_x, step * 2 + lane)' reads 'x' where data "
                       "choose",
                       "sums: data choose which elements of 'y' are stored", "sums: whose values are in 'sum'"}));
  EXPECT_EQ(cover(Sums().kernel(), work(), 100).unproved,
            (Sentences{"sums: the work on 'S0_init' is too hard for isl", "sums: the work on 'S0' is too hard for isl",
                       "sums: the work on 'y' is too hard for isl", "sums: whose values are in 'sum'"}));
}

TEST(Coverage, KnowsStoresThatNobodyAskedFor) {
  Work nothing;
  EXPECT_EQ(cover(Sums().kernel(), nothing).faults,
            Sentences{"sums: it writes 'y', which none of its statements does"});
}

TEST(Coverage, SeesWhoseSumIsStored) {
  EXPECT_EQ(cover(Sums{.stored = 19 - (block_x() * 16 + thread_x())}.kernel(), work()).faults,
            Sentences{"sums: 'y(19 - (block_x * 16 + thread_x)) = sum(0)' takes a value of 'y' from 'sum' that is of "
                      "another element"});
  Work unknown = work();
  for (Work::Statement& statement : unknown.statements) statement.accesses.clear();
  EXPECT_EQ(cover(Sums().kernel(), unknown).unproved, Sentences{"sums: whose values are in 'sum'"});
}

/// O(i) = A(i) + A(i + 1), by an operation that names its instance.
Coverage cover_pairs(const Expr& write, const Expr& first, const Expr& second) {
  const Tensor a = global("A", Halide::Float(32), Layout::row_major({33}));
  const Tensor o = global("O", Halide::Float(32), Layout::row_major({32}), true);
  const Instances instances{.statement = "S0", .first = {{thread_x()}}};
  const NodePtr node =
      carrying(std::make_shared<const Instances>(instances), store(o, {write}, read(a, {first}) + read(a, {second})));
  const Work work{.statements = {{.id = "S0",
                                  .domain = "{ S0[i] : 0 <= i < 32 }",
                                  .accesses = {{.tensor = "A", .relation = "{ S0[i] -> [i] }"},
                                               {.tensor = "A", .relation = "{ S0[i] -> [i + 1] }"},
                                               {.tensor = "O", .relation = "{ S0[i] -> [i] }", .is_write = true}}}},
                  .results = {{.tensor = "O", .writes = "{ S0[i] -> [i] : 0 <= i < 32 }"}}};
  return cover({.name = "f", .block = {32, 1, 1}, .tensors = {a, o}, .body = node}, work);
}

/// y(i) += x(i, k) by way of two registers, filled before they are read, or one step late.
TEST(Coverage, SeesWhenRegistersAreFilled) {
  const auto coverage = [](bool late) {
    const Sums sums;
    const Tensor first = registers("first", Halide::Float(32), Layout::row_major({1}));
    const Tensor second = registers("second", Halide::Float(32), Layout::row_major({1}));
    const NodePtr fill = store(first, {0}, read(sums.x, {sums.i, var("k")}));
    const NodePtr copy = store(second, {0}, read(first, {0}));
    const auto carries = [](const char* statement, std::vector<Expr> point, const NodePtr& node) {
      return carrying(std::make_shared<const Instances>(Instances{.statement = statement, .first = {std::move(point)}}),
                      node);
    };
    const NodePtr add =
        carries("S0", {sums.i, var("k")}, store(sums.sum, {0}, read(sums.sum, {0}) + read(second, {0})));
    const NodePtr steps = for_loop("k", 0, 10, late ? sequence({copy, fill, add}) : sequence({fill, copy, add}));
    const NodePtr clear = carries("S0_init", {sums.i}, store(sums.sum, {0}, 0.0f));
    const NodePtr body = sequence({clear, steps, store(sums.y, {sums.i}, read(sums.sum, {0}))});
    const Kernel kernel = {.name = "sums",
                           .grid = {2, 1, 1},
                           .block = {16, 1, 1},
                           .tensors = {sums.x, sums.y},
                           .body = allocate(sums.sum, allocate(first, allocate(second, if_then(sums.guard, body))))};
    return cover(kernel, work());
  };
  EXPECT_EQ(coverage(false).unproved, Sentences{});
  EXPECT_EQ(coverage(true).faults, Sentences{});
  EXPECT_EQ(coverage(true).unproved, Sentences{"sums: whose values are in 'first'"});
}

TEST(Coverage, SeesWhichElementsOperationsTouch) {
  const Expr i = thread_x();
  const Coverage right = cover_pairs(i, i, i + 1);
  EXPECT_EQ(right.faults, Sentences{});
  EXPECT_EQ(right.unproved, Sentences{});
  EXPECT_EQ(cover_pairs(31 - i, i, i + 1).faults,
            Sentences{"f: 'S0' writes the element (31) of 'O' for its instance (0), which does not name it"});
  EXPECT_EQ(cover_pairs(i, i, 32 - i).faults,
            Sentences{"f: 'S0' reads the element (32) of 'A' for its instance (0), which does not name it"});
  EXPECT_EQ(cover_pairs(i, i, i).unproved,
            Sentences{"f: 'O(thread_x) = A(thread_x) + A(thread_x)' reads 'A' less than its instance names"});
}

/// A box of instances behind each of several points, as a tile of an atom has them.
TEST(Coverage, TakesPointsThatLieConstantsApartTogether) {
  const Tensor y = global("y", Halide::Float(32), Layout::row_major({64}), true);
  const auto with = [&](std::vector<std::vector<Expr>> points) {
    const NodePtr node = carrying(
        std::make_shared<const Instances>(Instances{.statement = "S0", .first = std::move(points), .lengths = {1, 16}}),
        atomic(y, {thread_x()}, Atomic::Op::kAdd, 1.0f));
    const Kernel kernel{.name = "f", .block = {32, 1, 1}, .tensors = {y}, .body = for_loop("k", 0, 2, node)};
    const Work work{.statements = {{.id = "S0",
                                    .domain = "{ S0[m, k] : 0 <= m < 64 and 0 <= k < 32 }",
                                    .reduced = {false, true},
                                    .adds = true}},
                    .results = {{.tensor = "y", .writes = "{ S0[m, k] -> [m] : 0 <= m < 32 and 0 <= k < 32 }"}}};
    return cover(kernel, work);
  };
  const Expr m = thread_x() / 8 * 16 + thread_x() % 8, k = var("k") * 16;
  EXPECT_EQ(to_text(with({{m, k}, {m + 8, k}})),
            "S0: 2048 instances done, each once\n"
            "y: 32 elements stored, by atomic updates\n");
  EXPECT_EQ(with({{m, k}, {m + 7, k}}).faults,
            Sentences{"f: 'S0' is not done completely: its instance (15, 0) is left out"});
  EXPECT_EQ(with({{m, k}, {m + 8, k}, {m, k}, {m + 8, k}}).faults,
            Sentences{"f: 'S0' is done more than once: its instance (0, 0)"});
}

}  // namespace
}  // namespace tc::tile
