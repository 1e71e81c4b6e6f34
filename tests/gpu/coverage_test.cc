#include "tc/gpu/strategy/coverage.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "tc/ir/expr_text.h"
#include "tc/poly/from_ir.h"
#include "tc/tile/build.h"
#include "tc/tile/certificate.h"
#include "tc/tile/print.h"
#include "tc/tile/verify.h"
#include "tests/common/program.h"
#include "tests/gpu/simulated.h"

/// The coverage of each strategy's kernels, and of kernels that do something else than their statements say.
namespace tc::testing {
namespace {

namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;
using Sizes = std::map<std::string, int64_t>;

struct Case {
  const char* name;
  const char* text;
  Sizes sizes;
  options::MappingOptions options = {};
  const char* covered;
  const char* unproved = "";
  const char* survivors = "";  ///< changes that nothing notices
  bool on_hopper = false;
};

void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

const std::vector<Case>& cases() {
  static const char kProduct[] = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
  static const std::vector<Case> all = {
      {.name = "elements",
       .text = "def f(float(N) A, float(N) B) -> (C) { C(i) = A(i) * B(i) }",
       .sizes = {{"N", 1001}},
       .covered = "S0: 1001 instances done, each once\n"
                  "C: 1001 elements stored, each once\n"
                  "1 of 1 tensors in shared memory and registers read for the elements that they hold\n"},
      {.name = "rows",
       .text = "def f(float(N,D) I) -> (O) { s(n) +=! I(n,d)\n O(n,d) = I(n,d) / s(n) }",
       .sizes = {{"N", 5}, {"D", 333}},
       .covered = "S0_init: 5 instances done\n"
                  "S0: 1665 instances done, each once\n"
                  "S1: 1665 instances done, each once\n"
                  "O: 1665 elements stored, each once\n"
                  "6 of 6 tensors in shared memory and registers read for the elements that they hold\n",
       .unproved = "f_0: that all parts of sums are added, each once, in 's_held', 's_partial'\n"},
      {.name = "contraction",
       .text = kProduct,
       .sizes = {{"M", 40}, {"N", 36}, {"K", 50}},
       .options = {.tile = {16, 16, 8}, .map_to_threads = {8, 8, 1}, .register_tile = {2, 2}, .copy_stages = 2},
       .covered = "S0_init: 1440 instances done, each once\n"
                  "S0: 72000 instances done, each once\n"
                  "C: 1440 elements stored, each once\n"
                  "6 of 6 tensors in shared memory and registers read for the elements that they hold\n"},
      {.name = "groups_of_threads",
       .text = kProduct,
       .sizes = {{"M", 20}, {"N", 24}, {"K", 21}},
       .options = {.tile = {8, 8, 8}, .map_to_threads = {4, 4, 2}, .register_tile = {2, 2}, .copy_stages = 2},
       .covered = "S0_init: 480 instances done, each once\n"
                  "S0: 10080 instances done, each once\n"
                  "C: 480 elements stored, each once\n"
                  "8 of 8 tensors in shared memory and registers read for the elements that they hold\n",
       .unproved = "f_0: that all parts of sums are added, each once, in 'C_total'\n"},
      {.name = "reductions_of_a_product",
       .text = "def f(float(M,K) A, float(K,N) B) -> (Q) { C(m,n) +=! A(m,k) * B(k,n)\n Q(n) max=! C(m,n) }",
       .sizes = {{"M", 20}, {"N", 16}, {"K", 24}},
       .options = {.tile = {8, 8, 8}, .map_to_threads = {4, 4, 1}, .register_tile = {2, 2}, .copy_stages = 2},
       .covered = "S0_init: 320 instances done, each once\n"
                  "S1_parts_init: 48 instances done\n"
                  "S1_parts: all instances done, each once\n"
                  "S0: 7680 instances done, each once\n"
                  "Q_parts: 48 elements stored, each once\n"
                  "9 of 9 tensors in shared memory and registers read for the elements that they hold\n"
                  "S1_init: 16 instances done\n"
                  "S1: 48 instances done, each once\n"
                  "Q: 16 elements stored, each once\n"
                  "3 of 3 tensors in shared memory and registers read for the elements that they hold\n",
       .unproved = "f_0: that all parts of sums are added, each once, in 'Q_parts_reduced_total'\n"
                   "f_1: that all parts of sums are added, each once, in 'Q_held', 'Q_partial'\n"},
      {.name = "tensor_cores",
       .text = "def f(half(M,K) A, half(K,N) B) -> (O) { O(m,n) +=! float(A(m,k)) * float(B(k,n)) }",
       .sizes = {{"M", 40}, {"N", 40}, {"K", 72}},
       .options = {.tile = {32, 32, 16}, .register_tile = {4, 4}, .tensor_cores = true},
       .covered = "S0_init: 1600 instances done, each once\n"
                  "S0: 115200 instances done, each once\n"
                  "O: 1600 elements stored, each once\n"
                  "6 of 6 tensors in shared memory and registers read for the elements that they hold\n"},
      {.name = "warpgroups",
       .text = "def f(half(M,K) A, half(K,N) B) -> (half(M,N) O) { float C(m,n) +=! A(m,k) * B(k,n)  O(m,n) = "
               "half(C(m,n)) }",
       .sizes = {{"M", 136}, {"N", 64}, {"K", 192}},
       .options = {.tile = {64, 64, 64}, .copy_stages = 2, .store_boxes = true, .tensor_cores = true},
       .covered = "S0_init: 8704 instances done, each once\n"
                  "S0: 1671168 instances done, each once\n"
                  "S1: 8704 instances done, each once\n"
                  "O: 8704 elements stored, each once\n"
                  "6 of 6 tensors in shared memory and registers read for the elements that they hold\n",
       // A box has nothing outside of its tensor.
       .survivors = "guard m_high * 8 + m_thread + m_block < 136 + 1\n"
                    "no guard m_high * 8 + m_thread + m_block < 136\n",
       .on_hopper = true},
      {.name = "scatter",
       .text = "def f(float(N) A, int32(N) I, float(M) z) -> (float(M) O) { O(j) = z(j)\n O(I(i)) += A(i) }",
       .sizes = {{"N", 3000}, {"M", 100}},
       .covered = "S0: 100 instances done, each once\n"
                  "O: 100 elements stored, each once\n"
                  "1 of 1 tensors in shared memory and registers read for the elements that they hold\n"
                  "S1: 3000 instances done, each once\n",
       .unproved = "f_1: data choose which elements of 'O' are stored\n"
                   "f_1: whose values are in 'O_shared'\n",
       .survivors = "no guard O_shared(thread_x) != 0.0\n"},
      {.name = "classic",
       .text = kProduct,
       .sizes = {{"M", 20}, {"N", 24}, {"K", 21}},
       .options = {.outer_schedule_options = {.fusion = options::Fusion::kMax}, .tile = {8, 8, 8}},
       .covered = "S0_init: 480 instances done, each once\n"
                  "S0: 10080 instances done, each once\n"
                  "C: 480 elements stored, each once\n"
                  "1 of 1 tensors in shared memory and registers read for the elements that they hold\n"},
  };
  return all;
}

class Covered : public ::testing::TestWithParam<Case> {
 protected:
  static gpu::Mapping kernels() {
    const Case& c = GetParam();
    Result<gpu::Mapping> mapping = mapped(specialised_from(c.text, c.sizes), c.options,
                                          c.on_hopper ? gpu::device_of_architecture(90) : gpu::Device());
    EXPECT_TRUE(mapping) << mapping.error().to_string();
    return *std::move(mapping);
  }
};

TEST_P(Covered, DoesEveryInstance) {
  std::string covered, unproved;
  for (const tile::Coverage& coverage : gpu::cover(kernels())) {
    covered += to_text(coverage);
    for (const std::string& sentence : coverage.unproved) unproved += sentence + "\n";
  }
  EXPECT_EQ(covered, GetParam().covered);
  EXPECT_EQ(unproved, GetParam().unproved);
}

/// Whether the work depends on a node: it carries out instances that count, or writes a global tensor.
bool matters(const tile::Kernel& kernel, const tile::Node& node) {
  bool writes = node.instances != nullptr && !node.instances->statement.ends_with("_init");
  tile::for_each_access(node, [&](const tile::NodeAccess& access) {
    writes |= access.is_write && std::any_of(kernel.tensors.begin(), kernel.tensors.end(),
                                             [&](const tile::Tensor& t) { return t.name == access.tensor; });
  });
  return writes;
}

bool holds_what_matters(const tile::Kernel& kernel, const NodePtr& node) {
  bool found = false;
  tile::for_each_node(node, [&](const tile::Node& n) { found |= matters(kernel, n); });
  return found;
}

/// Moves one comparison of a condition by one, or one read of a tensor by one element.
class ShiftOne : public Halide::Internal::IRMutator {
 public:
  ShiftOne(bool comparison, int which) : comparison_(comparison), which_(which) {}
  bool done() const { return seen_ > which_; }

 private:
  using Halide::Internal::IRMutator::visit;
  bool hits(bool comparison) { return comparison == comparison_ && seen_++ == which_; }
  Expr visit(const Halide::Internal::LT* op) override { return hits(true) ? op->a < op->b + 1 : IRMutator::visit(op); }
  Expr visit(const Halide::Internal::LE* op) override { return hits(true) ? op->a < op->b : IRMutator::visit(op); }
  Expr visit(const Halide::Internal::Call* op) override {
    if (op->call_type != Halide::Internal::Call::PureExtern || op->args.empty() || !op->args.back().type().is_int() ||
        !hits(false)) {
      return IRMutator::visit(op);
    }
    std::vector<Expr> args = op->args;
    args.back() = args.back() + 1;
    return Halide::Internal::Call::make(op->type, op->name, args, op->call_type);
  }
  bool comparison_;
  int which_, seen_ = 0;
};

/// All that come of shifting one thing in an expression.
std::vector<Expr> shifts_of(const Expr& expr, bool comparison) {
  std::vector<Expr> result;
  for (int which = 0;; ++which) {
    ShiftOne shift(comparison, which);
    const Expr shifted = shift.mutate(expr);
    if (!shift.done()) return result;
    result.push_back(shifted);
  }
}

/// Whether it matters that an operation is done once: it combines a value with what its element holds.
bool adds(const tile::Node& node) {
  std::set<std::string> written, read;
  bool atomic = false;
  tile::for_each_access(node, [&](const tile::NodeAccess& access) {
    (access.is_write ? written : read).insert(access.tensor);
    atomic |= access.atomic;
  });
  tile::for_each_expr(node, [&](const Expr& e) {
    for (const std::string& name : written) {
      if (ir::to_text(e).find(name + "(") != std::string::npos) read.insert(name);
    }
  });
  return atomic || std::ranges::any_of(written, [&](const std::string& name) { return read.count(name) > 0; });
}

using Changes = std::vector<std::pair<std::string, NodePtr>>;

/// A node of another kind, which carries out the same instances.
NodePtr made(auto kind, const tile::Node& from) {
  return tile::carrying(from.instances, std::make_shared<const tile::Node>(tile::Node{std::move(kind), ""}));
}

/// Of an operation: on neighbouring elements.
Changes neighbours_of(const tile::Node& node) {
  Changes result;
  const auto moved = [](std::vector<Expr> subscripts) {
    subscripts.back() = subscripts.back() + 1;
    return subscripts;
  };
  const auto store = [&](const auto& n) {
    auto changed = n;
    changed.subscripts = moved(n.subscripts);
    result.emplace_back("one element further: " + node_text(node), made(changed, node));
    changed.subscripts = n.subscripts;
    for (const Expr& value : shifts_of(n.value, false)) {
      changed.value = value;
      result.emplace_back("reads one element further: " + node_text(node), made(changed, node));
    }
  };
  tile::match(
      node, [&](const tile::Store& n) { store(n); }, [&](const tile::Atomic& n) { store(n); },
      [&](const tile::Move& n) {
        tile::Move changed = n;
        changed.source_subscripts = moved(n.source_subscripts);
        result.emplace_back("reads one element further: " + node_text(node), made(changed, node));
      },
      [&](const tile::MatrixLoad& n) {
        tile::MatrixLoad changed = n;
        Expr& row = changed.source_subscripts[n.source_dimension == 0 ? 1 : 0];
        row = row + 1;
        result.emplace_back("one row further: " + node_text(node), made(changed, node));
      },
      [&](const tile::BoxCopy& n) {
        for (size_t i = 0; i < n.coordinates.size(); ++i) {
          tile::BoxCopy changed = n;
          changed.coordinates[i] = n.coordinates[i] + 8;
          result.emplace_back("a box further on: " + node_text(node), made(changed, node));
        }
      },
      [&](const tile::BoxStore& n) {
        for (size_t i = 0; i < n.coordinates.size(); ++i) {
          tile::BoxStore changed = n;
          changed.coordinates[i] = n.coordinates[i] + 8;
          result.emplace_back("a box further on: " + node_text(node), made(changed, node));
        }
      },
      [&](const tile::WarpgroupMatMul& n) {
        tile::WarpgroupMatMul changed = n;
        for (tile::MatrixTile* tile : {&changed.a, &changed.b}) {
          const Expr stage = tile->subscripts[0];
          tile->subscripts[0] = (stage + 1) % 2;
          result.emplace_back("another stage: " + node_text(node), made(changed, node));
          tile->subscripts[0] = stage;
        }
        std::swap(changed.a.subscripts, changed.b.subscripts);
        std::swap(changed.a.tensor, changed.b.tensor);
        result.emplace_back("the operands exchanged: " + node_text(node), made(changed, node));
      },
      [](const tile::Structure auto&) {}, [](const tile::Synchronisation auto&) {},
      [](const tile::OneOf<tile::Shuffle, tile::MatMul, tile::MatrixStore, tile::ClusterLoad> auto&) {});
  return result;
}

/// The changes of a node that change what is done.
Changes changes_of(const tile::Kernel& kernel, const NodePtr& node) {
  Changes result;
  tile::match(
      *node,
      [&](const tile::For& loop) {
        if (!holds_what_matters(kernel, loop.body)) return;
        tile::For changed = loop;
        changed.end = loop.end - loop.step;
        result.emplace_back("one iteration less of " + loop.variable, made(changed, *node));
        changed.end = loop.end + loop.step;
        result.emplace_back("one iteration more of " + loop.variable, made(changed, *node));
      },
      [&](const tile::If& branch) {
        if (!holds_what_matters(kernel, branch.then_case) || branch.else_case) return;
        result.emplace_back("no guard " + ir::to_text(branch.condition), branch.then_case);
        tile::If changed = branch;
        for (const Expr& condition : shifts_of(branch.condition, true)) {
          changed.condition = condition;
          result.emplace_back("guard " + ir::to_text(condition), made(changed, *node));
        }
      },
      [](const tile::OneOf<tile::Sequence, tile::Let, tile::Allocate, tile::Ring> auto&) {},
      [](const tile::Synchronisation auto&) {},
      [&](const tile::Spec auto&) {
        result = neighbours_of(*node);
        if (!matters(kernel, *node)) return;
        result.emplace_back("left out: " + node_text(*node), build::sequence({}));
        if (adds(*node)) result.emplace_back("twice: " + node_text(*node), build::sequence({node, node}));
      });
  return result;
}

/// All kernels with one change.
void for_each_mutant(const tile::Kernel& kernel, const NodePtr& node,
                     const std::function<NodePtr(const NodePtr&)>& around,
                     const std::function<void(const std::string&, const NodePtr&)>& visit) {
  if (!node) return;
  for (const auto& [what, changed] : changes_of(kernel, node)) visit(what, around(changed));
  int number = 0;
  tile::for_each_child(*node, [&](const NodePtr& child) {
    const int own = number++;
    const auto outer = [&](const NodePtr& changed) {
      int at = 0;
      return around(tile::map_children(node, [&](const NodePtr& c) { return at++ == own ? changed : c; }));
    };
    for_each_mutant(kernel, child, outer, visit);
  });
}

bool same(const interp::Environment& a, const interp::Environment& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.floats == y.second.floats && x.second.integers == y.second.integers;
  });
}

/// A kernel of a mapping that does its work, and kernels that do something else.
class Mutants {
 public:
  Mutants(const ir::Program& program, const gpu::Mapping& mapping)
      : program_(program), mapping_(mapping), data_(data_for(program, 1)), right_(simulated(program, mapping, data_)) {}

  void run() {
    EXPECT_TRUE(right_) << right_.error().to_string();
    for (size_t k = 0; k < mapping_.kernels.size(); ++k) {
      const tile::Kernel& kernel = mapping_.program.kernels[k];
      const auto whole = [](const NodePtr& changed) { return changed; };
      const tile::Work work = work_of(mapping_, k);
      for_each_mutant(kernel, kernel.body, whole,
                      [&](const std::string& what, const NodePtr& body) { run(k, work, what, body); });
    }
  }

  std::string survivors() const {
    std::string text;
    for (const std::string& what : survivors_) text += what + "\n";
    return text;
  }
  int all = 0, by_coverage = 0;

 private:
  void run(size_t k, const tile::Work& work, const std::string& what, const NodePtr& body) {
    ++all;
    gpu::Mapping changed = mapping_;
    changed.program.kernels[k].body = body;
    const tile::Coverage coverage = tile::cover(changed.program.kernels[k], work);
    by_coverage += coverage.holds() ? 0 : 1;
    if (!coverage.holds() || !tile::verify(changed.program).holds()) return;
    if (coverage.unproved.empty() || !is_noticed(changed)) survivors_.insert(what);
  }

  /// By the simulator or the certificate.
  bool is_noticed(const gpu::Mapping& changed) const {
    const Result<interp::Environment> result = simulated(program_, changed, data_);
    if (!result || !same(*result, *right_)) return true;
    return std::any_of(changed.program.kernels.begin(), changed.program.kernels.end(),
                       [](const tile::Kernel& kernel) { return !tile::certify(kernel).races.empty(); });
  }

  const ir::Program& program_;
  const gpu::Mapping& mapping_;
  interp::Environment data_;
  Result<interp::Environment> right_;
  std::set<std::string> survivors_;
};

/// What survives does the same, and some of it is proved to.
TEST_P(Covered, NoticesWhatIsChanged) {
  const ir::Program program = specialised_from(GetParam().text, GetParam().sizes);
  const gpu::Mapping mapping = kernels();
  Mutants mutants(program, mapping);
  mutants.run();
  RecordProperty("mutants", mutants.all);
  RecordProperty("by_coverage", mutants.by_coverage);
  EXPECT_GT(mutants.by_coverage, 2);
  EXPECT_EQ(mutants.survivors(), GetParam().survivors);
}

/// Launches that share out the statements otherwise.
TEST(Coverage, SeesWhichLaunchRunsAStatement) {
  const ir::Program program =
      specialised_from("def f(float(M,N) x, float(N,K) y) -> (s, t) { s(m) +=! x(m,n)\n t(k) +=! y(n,k) * s(0) }",
                       {{"M", 300}, {"N", 64}, {"K", 40}});
  const auto context = std::make_shared<poly::Context>();
  const Result<poly::Scop> scop = poly::from_ir(std::make_shared<const ir::Program>(program), context);
  ASSERT_TRUE(scop) << scop.error().to_string();
  const Result<gpu::Mapping> mapping = gpu::map(*scop, {});
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  ASSERT_EQ(mapping->kernels.size(), 2U);
  const auto with = [&](const std::vector<size_t>& launches) {
    gpu::Mapping changed = *mapping;
    changed.kernels.clear();
    changed.program.kernels.clear();
    for (size_t k : launches) {
      changed.kernels.push_back(mapping->kernels[k]);
      changed.program.kernels.push_back(mapping->program.kernels[k]);
    }
    return changed;
  };
  const auto faults_of = [&](const std::vector<size_t>& launches) {
    std::vector<std::string> faults;
    for (const tile::Coverage& coverage : gpu::prove(*scop, with(launches)).coverages) {
      std::ranges::copy(coverage.faults, std::back_inserter(faults));
    }
    return faults;
  };
  const std::string summary = tile::summary(gpu::prove(*scop, *mapping));
  EXPECT_NE(summary.find(", 4 of 4 statements done, 2 of 2 results stored, "), std::string::npos) << summary;
  const gpu::Mapping first = with({0});
  const std::string text = tile::to_text(first.program, gpu::prove(*scop, first));
  EXPECT_NE(text.find("\n  wrong: is the last, and none runs "), std::string::npos) << text;
  EXPECT_EQ(faults_of({0, 1}), std::vector<std::string>{});
  EXPECT_EQ(faults_of({0}), (std::vector<std::string>{"f_0: is the last, and none runs { S1_init[k = 0] }",
                                                      "f_0: is the last, and none runs { S1[k = 0, n = 0] }"}));
  EXPECT_EQ(faults_of({0, 1, 0}),
            (std::vector<std::string>{"f_0: runs again what an earlier kernel runs: { S0_init[m = 0] }",
                                      "f_0: runs again what an earlier kernel runs: { S0[m = 0, n = 0] }"}));
}

INSTANTIATE_TEST_SUITE_P(Strategies, Covered, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tc::testing
