#include <fmt/format.h>
#include <gtest/gtest.h>
#include <isl/schedule.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tc/poly/box_loops.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/isl_loops.h"
#include "tc/support/check.h"

namespace tc::poly::test {
namespace {

using Op = LoopExpr::Op;
using Values = std::map<std::string, int64_t>;

int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// What an expression, or a condition (0 or 1), has for a value.
int64_t evaluate(const LoopExpr& expr, const Values& variables) {
  if (expr.op == Op::kConstant) return expr.value;
  if (expr.op == Op::kVariable) return variables.at(expr.variable);
  std::vector<int64_t> x;
  for (const LoopExpr& operand : expr.operands) x.push_back(evaluate(operand, variables));
  switch (expr.op) {
    case Op::kAdd:
      return x[0] + x[1];
    case Op::kSub:
      return x[0] - x[1];
    case Op::kMul:
      return x[0] * x[1];
    case Op::kMin:
      return *std::min_element(x.begin(), x.end());
    case Op::kMax:
      return *std::max_element(x.begin(), x.end());
    case Op::kFloorDiv:
      return floor_quotient(x[0], x[1]);
    case Op::kFloorMod:
      return x[0] - floor_quotient(x[0], x[1]) * x[1];
    case Op::kSelect:
      return x[0] != 0 ? x[1] : x[2];
    case Op::kAnd:
      return std::count(x.begin(), x.end(), 0) == 0;
    case Op::kOr:
      return std::count(x.begin(), x.end(), 0) != static_cast<int64_t>(x.size());
    case Op::kEqual:
      return x[0] == x[1];
    case Op::kLessEqual:
      return x[0] <= x[1];
    case Op::kLess:
      return x[0] < x[1];
    default:
      TC_CHECK(false, "an operation that the test does not know");
  }
}

std::string list(const std::vector<LoopExpr>& exprs, const Values& variables) {
  std::vector<int64_t> values;
  for (const LoopExpr& expr : exprs) values.push_back(evaluate(expr, variables));
  return fmt::format("[{}]", fmt::join(values, ", "));
}

/// The instances, each with the values of the tree's dimensions there, in the order of execution.
void run(const loops::NodePtr& node, const Values& variables, std::vector<std::string>& trace) {
  if (const auto* loop = std::get_if<loops::For>(&node->value)) {
    Values inside = variables;
    const int64_t first = evaluate(loop->first, variables);
    const int64_t last = loop->once ? first : evaluate(loop->last, variables);
    for (int64_t value = first; value <= last; value += loop->step) {
      inside[loop->variable] = value;
      run(loop->body, inside, trace);
    }
  } else if (const auto* branch = std::get_if<loops::If>(&node->value)) {
    if (evaluate(branch->condition, variables) != 0) {
      run(branch->then_case, variables, trace);
    } else if (branch->else_case != nullptr) {
      run(branch->else_case, variables, trace);
    }
  } else if (const auto* block = std::get_if<loops::Block>(&node->value)) {
    for (const loops::NodePtr& child : block->children) run(child, variables, trace);
  } else if (const auto* mark = std::get_if<loops::Mark>(&node->value)) {
    run(mark->child, variables, trace);
  } else {
    const auto& instance = std::get<loops::Instance>(node->value);
    trace.push_back(instance.statement + list(instance.indices, variables) + " at " + list(instance.prefix, variables));
  }
}

std::vector<std::string> trace_of(const loops::NodePtr& root) {
  std::vector<std::string> result;
  run(root, {}, result);
  return result;
}

Scop scop_of(const std::string& domain, const std::vector<std::string>& bands) {
  Scop scop;
  scop.context = std::make_shared<Context>();
  isl_ctx* ctx = scop.context->get().get();
  scop.domain = isl::union_set(scop.context->get(), domain);
  scop.schedule = isl::schedule::from_domain(scop.domain);
  for (auto band = bands.rbegin(); band != bands.rend(); ++band) {
    scop.schedule = insert_band(
        scop.schedule, isl::manage(isl_multi_union_pw_aff_read_from_str(ctx, fmt::format("[{}]", *band).c_str())));
  }
  return scop;
}

std::optional<loops::NodePtr> boxes(const Scop& scop) {
  return box_loops(scop, scop.schedule.root().child(0), LoopOptions{});
}

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }
  bool one_in(int64_t n) { return between(1, n) == 1; }

 private:
  std::mt19937 engine_;
};

/// Functions of an index, outermost first, that together say which one it is, in every form that box_loops() takes.
std::vector<std::string> dimensions_of(const std::string& x, bool from_zero, Random& random) {
  if (!from_zero || random.one_in(4)) return {random.one_in(2) ? x : fmt::format("{} + {}", x, random.between(-3, 3))};
  std::vector<std::string> result;
  int64_t outer = 0;
  int64_t size = random.one_in(2) ? random.between(2, 4) * random.between(2, 3) : random.between(2, 9);
  bool scaled = false;
  while (true) {
    const bool last = size == 1;
    scaled = !last && (scaled || random.one_in(3));
    const std::string scale = scaled ? fmt::format("{} * ", size) : "";
    const bool whole = outer == 0 || random.one_in(3);
    result.push_back(whole ? fmt::format("{}floor({} / {})", scale, x, size)
                           : fmt::format("{}floor(({} mod {}) / {})", scale, x, outer, size));
    if (last) return result;
    outer = size;
    size = 1;
    for (int64_t d = outer - 1; d > 1 && size == 1; --d) {
      if (outer % d == 0 && random.one_in(2)) size = d;
    }
  }
}

/// The indices of a statement, their ranges, and the dimensions of its tree, of each group in order.
struct RandomBox {
  std::vector<std::string> names, ranges;
  std::vector<std::vector<std::string>> dimensions;

  void add_index(Random& random) {
    const std::string name = fmt::format("i{}", names.size());
    const int64_t first = random.one_in(4) ? random.between(-4, 4) : 0;
    const int64_t last = first + random.between(0, random.one_in(3) ? 2 : 20);
    names.push_back(name);
    ranges.push_back(fmt::format("{} <= {} <= {}", first, name, last));
    dimensions.push_back(dimensions_of(name, first == 0, random));
  }

  /// An index that was cut into lanes and vectors, of which the last may lack some.
  void add_lanes(Random& random) {
    const std::string lane = fmt::format("i{}", names.size()), vector = fmt::format("i{}", names.size() + 1);
    const int64_t lanes = random.between(2, 9), last = random.between(0, 30);
    names.insert(names.end(), {lane, vector});
    ranges.push_back(fmt::format("0 <= {0} < {1} and 0 <= {2} <= {3} and {0} + {1} {2} <= {4}", lane, lanes, vector,
                                 last / lanes, last));
    std::vector<std::string> parts = {vector};
    if (random.one_in(2)) parts = {fmt::format("floor({} / 2)", vector), fmt::format("{} mod 2", vector)};
    const int64_t part = lanes % 2 == 0 ? lanes / 2 : 1;
    if (part > 1) parts.push_back(fmt::format("floor({} / {})", lane, part));
    parts.push_back(part > 1 ? fmt::format("{} mod {}", lane, part) : lane);
    dimensions.push_back(parts);
  }
};

TEST(BoxLoops, AreIslsForRandomTilesOfRandomBoxes) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    RandomBox box;
    for (int64_t i = random.between(1, 3); i > 0; --i) {
      if (random.one_in(4)) {
        box.add_lanes(random);
      } else {
        box.add_index(random);
      }
    }
    const std::string instance = fmt::format("S[{}]", fmt::join(box.names, ", "));
    std::vector<std::string> bands;
    while (std::any_of(box.dimensions.begin(), box.dimensions.end(), [](const auto& left) { return !left.empty(); })) {
      auto& left = box.dimensions[static_cast<size_t>(random.between(0, box.dimensions.size() - 1))];
      if (left.empty()) continue;
      bands.push_back(fmt::format("{{ {} -> [{}] }}", instance, left.front()));
      left.erase(left.begin());
    }
    const Scop scop = scop_of(fmt::format("{{ {} : {} }}", instance, fmt::join(box.ranges, " and ")), bands);
    const std::string what =
        fmt::format("seed {}: {} by {}", seed, fmt::join(box.ranges, ", "), fmt::join(bands, "; "));
    const std::optional<loops::NodePtr> ours = boxes(scop);
    ASSERT_TRUE(ours) << what;
    ASSERT_EQ(trace_of(*ours), trace_of(isl_loops(scop, scop.schedule, {}))) << what;
  }
}

TEST(BoxLoops, AreLeftToIslWhereLoopsWouldBeOthers) {
  const std::string square = "{ S[i, j] : 0 <= i < 9 and 0 <= j < 9 }";
  EXPECT_TRUE(boxes(scop_of(square, {"{ S[i, j] -> [i] }", "{ S[i, j] -> [j] }"})));
  EXPECT_FALSE(boxes(scop_of("{ S[i, j] : 0 <= i < 9 and 0 <= j <= i }", {"{ S[i, j] -> [i] }", "{ S[i, j] -> [j] }"})))
      << "a triangle";
  EXPECT_FALSE(boxes(scop_of("{ S[i] : 0 <= i < 9 and i mod 2 = 0 }", {"{ S[i] -> [i] }"}))) << "holes";
  EXPECT_FALSE(boxes(scop_of("{ S[i] : 0 <= i < 3 or 5 <= i < 9 }", {"{ S[i] -> [i] }"}))) << "two boxes";
  EXPECT_FALSE(boxes(scop_of(square, {"{ S[i, j] -> [i + j] }", "{ S[i, j] -> [j] }"}))) << "a skew";
  EXPECT_FALSE(boxes(scop_of(square, {"{ S[i, j] -> [-i] }", "{ S[i, j] -> [j] }"}))) << "reversed";
  EXPECT_FALSE(boxes(scop_of(square, {"{ S[i, j] -> [i mod 4] }", "{ S[i, j] -> [floor(i / 4)] }"}))) << "points first";
  EXPECT_FALSE(boxes(scop_of(square, {"{ S[i, j] -> [i] }"}))) << "j in any order";
  EXPECT_FALSE(boxes(scop_of("{ S[i] : 0 <= i < 9; T[i] : 0 <= i < 8 }", {"{ S[i] -> [i]; T[i] -> [i] }"})))
      << "two statements in one leaf, of different ranges";
}

/// Two statements under one skewed band: the instances that the domain has, each once, in the order of their times.
TEST(Loops, OfASkewedScheduleRunEachInstanceOnceAndInOrder) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    std::vector<std::string> domain, rows[2];
    std::map<std::string, std::vector<int64_t>> expected;  // the times of the instances
    for (const char* name : {"S", "T"}) {
      const int64_t rows_of = random.between(1, 7), columns = random.between(1, 7), skew = random.between(-2, 2);
      const int64_t shift = random.between(-3, 3), flip = random.one_in(2) ? 1 : -1, bound = random.between(3, 12);
      domain.push_back(
          fmt::format("{}[i, j] : 0 <= i < {} and 0 <= j < {} and i + j <= {}", name, rows_of, columns, bound));
      rows[0].push_back(fmt::format("{}[i, j] -> [(i + {} * j + {})]", name, skew, shift));
      rows[1].push_back(fmt::format("{}[i, j] -> [({} * j)]", name, flip));
      for (int64_t i = 0; i < rows_of; ++i) {
        for (int64_t j = 0; j < columns && i + j <= bound; ++j) {
          expected[fmt::format("{}[{}, {}]", name, i, j)] = {i + skew * j + shift, flip * j};
        }
      }
    }
    std::vector<std::string> bands;
    for (const auto& row : rows) bands.push_back(fmt::format("{{ {} }}", fmt::join(row, "; ")));
    const Scop scop = scop_of(fmt::format("{{ {} }}", fmt::join(domain, "; ")), bands);
    std::vector<std::vector<int64_t>> times;
    for (const std::string& instance : trace_of(generate_loops(scop))) {
      const auto found = expected.find(instance.substr(0, instance.find(" at ")));
      ASSERT_NE(found, expected.end()) << instance << " of seed " << seed << " runs twice, or is none";
      times.push_back(found->second);
      expected.erase(found);
    }
    EXPECT_TRUE(expected.empty()) << "seed " << seed << " leaves out " << expected.begin()->first;
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end())) << "seed " << seed;
  }
}

TEST(Loops, OfATopLevelSequenceComeFromEitherPartByPart) {
  Scop scop;
  scop.context = std::make_shared<Context>();
  const std::string parts[] = {
      R"({ filter: "{ A[i, j] }", child: { schedule: "[{ A[i, j] -> [i] }, { A[i, j] -> [j] }]" } })",
      R"({ filter: "{ B[i] }", child: { schedule: "[{ B[i] -> [floor(i/4)] }, { B[i] -> [i mod 4] }]" } })",
      R"({ filter: "{ C[i] }", child: { schedule: "[{ C[i] -> [i] }]" } })"};
  const std::string domain =
      "{ A[i, j] : 0 <= i < 5 and 0 <= j <= i; B[i] : 0 <= i < 7; C[i] : 0 <= i < 6 and i mod 3 = 1 }";
  scop.schedule = isl::schedule(scop.context->get(), fmt::format(R"({{ domain: "{}", child: {{ sequence: [ {} ] }} }})",
                                                                 domain, fmt::join(parts, ", ")));
  const loops::NodePtr root = generate_loops(scop);
  ASSERT_EQ(std::get<loops::Block>(root->value).children.size(), 3u);
  EXPECT_EQ(trace_of(root), trace_of(isl_loops(scop, scop.schedule, {})));
  EXPECT_EQ(trace_of(root).size(), 15u + 7u + 2u);
}

}  // namespace
}  // namespace tc::poly::test
