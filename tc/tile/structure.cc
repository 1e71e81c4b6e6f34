#include "tc/tile/structure.h"
#include "tc/tile/shared_divisors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "tc/interp/functions.h"
#include "tc/ir/expr_text.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/program.h"
#include "tc/support/scalar_type.h"
#include "tc/tile/matrix_descriptor.h"
#include "tc/tile/print.h"
#include "tc/tile/tensor_map.h"

namespace tc::tile {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

bool is_intrinsic(const hi::Call* call) {
  static const std::set<std::string> kFolded = {"min",    "max",     "clamp",         "relu",
                                                "select", kQuotient, kNarrowQuotient, kExp2ForFloat16};
  return call->is_intrinsic(hi::Call::if_then_else) || kFolded.count(call->name) ||
         interp::find_real_function(call->name) || interp::find_real_predicate(call->name) ||
         interp::find_integer_function(call->name) || interp::find_mixed_function(call->name);
}

constexpr int64_t kWarp = 32;

class Checker {
 public:
  Checker(const Kernel& kernel, const Limits& limits) : kernel_(kernel), limits_(limits) {}

  std::vector<std::string> check() {
    check_limits();
    check_cluster();
    for (const char* name : kBlock) names_.insert(name);
    for (const char* name : kThread) names_.insert(name);
    for (const Scalar& scalar : kernel_.scalars) declare(scalar.name);
    for (const Tensor& tensor : kernel_.tensors) declare(tensor);
    for (const TensorMap& map : kernel_.maps) declare(map.name);
    for (std::string& fault : tensor_map_faults(kernel_)) faults_.push_back(std::move(fault));
    visit(kernel_.body);
    if (has_arrived_) fault("threads arrive in the cluster and do not wait");
    return std::move(faults_);
  }

 private:
  template <typename... Args>
  void fault(fmt::format_string<Args...> format, Args&&... args) {
    faults_.push_back(fmt::format("{}: {}", kernel_.name, fmt::format(format, std::forward<Args>(args)...)));
  }

  void check_limits() {
    int64_t threads = 1;
    for (size_t i = 0; i < 3; ++i) {
      threads *= kernel_.block[i];
      if (kernel_.grid[i] < 1 || kernel_.grid[i] > limits_.grid[i]) {
        fault("the grid has {} blocks in dimension {}, which must be 1 to {}", kernel_.grid[i], i, limits_.grid[i]);
      }
      if (kernel_.block[i] < 1 || kernel_.block[i] > limits_.block[i]) {
        fault("a block has {} threads in dimension {}, which must be 1 to {}", kernel_.block[i], i, limits_.block[i]);
      }
    }
    if (threads > limits_.threads) fault("a block has {} threads, but {} are the most", threads, limits_.threads);
    if (kernel_.architecture() > limits_.architecture) {
      fault("it has instructions of sm_{}, but is for sm_{}", kernel_.architecture(), limits_.architecture);
    }
    const bool is_the_one = limits_.accelerated && kernel_.architecture() == limits_.architecture;
    if (kernel_.accelerated() && !is_the_one) {
      fault("it has instructions of sm_{}a, but is for sm_{}{}", kernel_.architecture(), limits_.architecture,
            limits_.accelerated ? "a" : "");
    }
    if (kernel_.shared_bytes() > limits_.shared_bytes) {
      fault("it needs {} bytes of shared memory, but a block has {}", kernel_.shared_bytes(), limits_.shared_bytes);
    }
  }

  void check_cluster() {
    int64_t blocks = 1;
    for (size_t i = 0; i < 3; ++i) {
      const int64_t extent = kernel_.cluster[i];
      blocks *= extent;
      if (extent < 1 || kernel_.grid[i] % extent != 0) {
        fault("a cluster has {} blocks in dimension {}, which must divide the grid's {}", extent, i, kernel_.grid[i]);
      }
    }
    if (blocks > limits_.cluster) fault("a cluster has {} blocks, but {} are the most", blocks, limits_.cluster);
  }

  bool declare(const std::string& name) {
    const bool fresh = names_.insert(name).second;
    if (!fresh) fault("'{}' has two meanings", name);
    return fresh;
  }
  bool declare(const Tensor& tensor) {
    tensors_[tensor.name] = &tensor;
    return declare(tensor.name);
  }

  void check(const Expr& e, const std::string& where) {
    if (!e.defined()) return fault("an expression of '{}' is undefined", where);
    struct Visitor : hi::IRVisitor {
      Checker& checker;
      const std::string& where;
      Visitor(Checker& c, const std::string& w) : checker(c), where(w) {}
      using hi::IRVisitor::visit;
      void visit(const hi::Variable* op) override {
        if (!checker.names_.count(op->name) || checker.tensors_.count(op->name)) {
          checker.fault("'{}' means nothing in '{}'", op->name, where);
        }
      }
      void visit(const hi::Let* op) override {
        op->value.accept(this);
        const bool fresh = checker.declare(op->name);
        op->body.accept(this);
        if (fresh) checker.names_.erase(op->name);
      }
      void visit(const hi::Call* op) override {
        if (checker.tensors_.count(op->name)) {
          checker.check_access(op->name, op->args, where);
          if (op->type != checker.tensors_.at(op->name)->type) {
            checker.fault("'{}' is read as {} in '{}', but it is {}", op->name, ir::type_text(op->type), where,
                          ir::type_text(checker.tensors_.at(op->name)->type));
          }
        } else if (!is_intrinsic(op)) {
          checker.fault("'{}' is neither a tensor nor an intrinsic in '{}'", op->name, where);
        }
        hi::IRVisitor::visit(op);
      }
    } visitor(*this, where);
    e.accept(&visitor);
  }

  void check_access(const std::string& name, const std::vector<Expr>& subscripts, const std::string& where) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return fault("'{}' in '{}' is no tensor", name, where);
    const Tensor& tensor = *found->second;
    if (tensor.rank() != static_cast<int>(subscripts.size())) {
      return fault("'{}' has {} dimensions but {} subscripts in '{}'", name, tensor.rank(), subscripts.size(), where);
    }
    for (const Expr& e : subscripts) {
      if (e.defined() && !(e.type().is_int() && e.type().bits() >= 32)) {
        fault("a subscript of '{}' in '{}' is {}", name, where, ir::type_text(e.type()));
      }
      if (e.defined() && tensor.memory == Memory::kRegister && !constant_once_unrolled(e)) {
        fault("the subscript '{}' of '{}' in '{}' is no constant once loops are unrolled", ir::to_text(e), name, where);
      }
    }
  }

  bool constant_once_unrolled(const Expr& e) const {
    struct Visitor : hi::IRVisitor {
      const std::set<std::string>& unrolled;
      const std::map<std::string, const Tensor*>& tensors;
      bool constant = true;
      Visitor(const std::set<std::string>& u, const std::map<std::string, const Tensor*>& t)
          : unrolled(u), tensors(t) {}
      using hi::IRVisitor::visit;
      void visit(const hi::Variable* op) override { constant &= unrolled.count(op->name) != 0; }
      void visit(const hi::Call* op) override {
        constant &= tensors.count(op->name) == 0;
        hi::IRVisitor::visit(op);
      }
    } visitor(unrolled_, tensors_);
    e.accept(&visitor);
    return visitor.constant;
  }

  void check_own(const NodeAccess& access, const std::string& where) {
    const auto found = tensors_.find(access.tensor);
    if (access.region && access.subscripts.empty()) {
      if (found == tensors_.end()) fault("'{}' in '{}' is no tensor", access.tensor, where);
    } else {
      check_access(access.tensor, access.subscripts, where);
    }
    if (found == tensors_.end()) return;
    if (access.is_write && found->second->memory == Memory::kGlobal && !found->second->written) {
      fault("'{}' is written by '{}', but is not marked as written", access.tensor, where);
    }
    if (access.atomic && found->second->memory == Memory::kRegister) fault("'{}' updates a register", where);
    check_contiguous(*found->second, access.dimension, access.elements, where);
  }

  void check_value(const std::string& name, const Expr& value, const std::string& where) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end() || !value.defined() || found->second->type == value.type()) return;
    fault("'{}' stores {} in '{}', which is {}", where, ir::type_text(value.type()), name,
          ir::type_text(found->second->type));
  }

  /// What holds for nodes of every kind, then what each kind adds.
  void visit(const NodePtr& node) {
    if (!node) return;
    const std::string where = node_text(*node);
    for_each_expr(*node, [&](const Expr& e) { check(e, where); });
    for_each_access(*node, [&](const NodeAccess& access) { check_own(access, where); });
    match(
        *node, [&](const Sequence&) { visit_children(*node); },
        [&](const OneOf<For, If, Let, Allocate, Ring> auto& n) { visit(*node, n); },
        [&](const OneOf<ClusterStep, RingStep, MatMulWait, BoxStep> auto& n) { check(n, where); },
        [](const OneOf<Barrier, WaitForKernels, StartNextKernel, CommitGroup, WaitGroup> auto&) {},
        [&](const OneOf<Store, Atomic> auto& n) { check_value(n.tensor, n.value, where); },
        [&](const OneOf<Shuffle, Move, MatMul, MatrixLoad, MatrixStore, BoxCopy, BoxStore, ClusterLoad,
                        WarpgroupMatMul> auto& n) { check(n, where); });
  }
  void visit_children(const Node& node) {
    for_each_child(node, [&](const NodePtr& child) { visit(child); });
  }
  /// The children see a name, which is a constant once loops are unrolled or not.
  void visit_children(const Node& node, const std::string& name, bool constant) {
    const bool fresh = declare(name);
    if (constant) unrolled_.insert(name);
    visit_children(node);
    if (constant) unrolled_.erase(name);
    if (fresh) names_.erase(name);
  }
  void visit(const Node& node, const For& loop) {
    const int64_t* step = ir::constant_int(loop.step);
    if (step && *step <= 0) fault("the loop over '{}' steps by {}", loop.variable, *step);
    const Expr trips = hi::simplify(loop.end - loop.begin);
    if (loop.unrolled && (!step || !hi::is_const(trips))) {
      fault("the loop over '{}' is to be unrolled, but has no constant trip count", loop.variable);
    }
    ++around_;
    visit_children(node, loop.variable, loop.unrolled && constant_once_unrolled(loop.begin));
    --around_;
  }
  void visit(const Node& node, const If& branch) {
    if (branch.condition.defined() && !branch.condition.type().is_bool()) {
      fault("the condition '{}' is {}", ir::to_text(branch.condition), ir::type_text(branch.condition.type()));
    }
    if (branch.predicated && (branch.else_case || !branch.then_case || !asynchronous_copy(*branch.then_case))) {
      fault("what the condition '{}' is a predicate of is no asynchronous copy", ir::to_text(branch.condition));
    }
    ++around_;
    visit_children(node);
    --around_;
  }
  void visit(const Node& node, const Let& let) {
    const bool is_warp = let.value.defined() && is_warp_number(let.value) && warps_.insert(let.name).second;
    visit_children(node, let.name, let.value.defined() && constant_once_unrolled(let.value));
    if (is_warp) warps_.erase(let.name);
  }
  static bool is_thread(const Halide::Expr& e) {
    const auto* variable = e.as<Halide::Internal::Variable>();
    return variable && variable->name == kThread[0];
  }
  static bool is_warp_number(const Halide::Expr& e) {
    const auto* quotient = e.as<Halide::Internal::Div>();
    return quotient && is_thread(quotient->a) && Halide::Internal::is_const(quotient->b, kWarp);
  }
  void visit(const Node& node, const Ring& ring) {
    declare(ring.name);
    const int64_t warps = threads() / kWarp;
    if (ring.stages < 1) fault("the ring '{}' has {} stages", ring.name, ring.stages);
    if (ring.readers < 1 || ring.teams < 1 || ring.all_readers() > warps) {
      fault("the ring '{}' is read by {} warps, but a block has {}", ring.name, ring.all_readers(), warps);
    }
    if (around_ > 0) fault("the ring '{}' is made in a loop or branch", ring.name);
    check_groups(ring);
    check_registers(ring);
    rings_.emplace(ring.name, &ring);
    visit_children(node);
    rings_.erase(ring.name);
  }
  /// Whether a node only waits for other kernels, or lets one start.
  static bool orders_kernels(const NodePtr& node) {
    bool result = true;
    for_each_node(node, [&](const Node& inner) {
      result &= match(
          inner, [](const OneOf<Sequence, WaitForKernels, StartNextKernel> auto&) { return true; },
          [](const OneOf<For, If, Let, Allocate, Ring> auto&) { return false; },
          [](const OneOf<Barrier, ClusterStep, RingStep, CommitGroup, WaitGroup, MatMulWait, BoxStep> auto&) {
            return false;
          },
          [](const Spec auto&) { return false; });
    });
    return result;
  }
  /// The assembler has to see where a thread's registers change. Waits for other kernels may come before.
  bool divides_roles(const Node& body, int64_t readers) const {
    return match(
        body,
        [&](const If& n) {
          const auto* below = n.condition.as<Halide::Internal::LT>();
          const auto* variable = below ? below->a.as<Halide::Internal::Variable>() : nullptr;
          const int64_t* bound = below ? ir::constant_int(below->b) : nullptr;
          if (!variable || !bound || !n.else_case) return false;
          const bool counts_warps = warps_.count(variable->name) > 0;
          return (counts_warps || is_thread(below->a)) && *bound * (counts_warps ? kWarp : 1) == readers;
        },
        [&](const Sequence& n) {
          return !n.children.empty() && std::all_of(n.children.begin(), std::prev(n.children.end()), orders_kernels) &&
                 divides_roles(*n.children.back(), readers);
        },
        [](const OneOf<For, Let, Allocate, Ring> auto&) { return false; },
        [](const Synchronisation auto&) { return false; }, [](const Spec auto&) { return false; });
  }
  void check_registers(const Ring& ring) {
    constexpr int kUnit = 8, kLeast = 24, kMost = 256, kGroupWarps = 4;
    if (!ring.registers) return;
    if (kernel_.block[0] != threads()) fault("the ring '{}' deals out registers to threads along y or z", ring.name);
    const auto [of_readers, of_others] = *ring.registers;
    const int64_t readers = int64_t{ring.all_readers()} * kWarp, others = threads() - readers;
    if (ring.all_readers() % kGroupWarps != 0 || others <= 0 || others % (kGroupWarps * kWarp) != 0) {
      fault("the ring '{}' deals out registers to {} and {} threads, which are no whole warpgroups", ring.name, readers,
            others);
    }
    if (!divides_roles(*ring.body, readers)) {
      fault("the ring '{}' deals out registers, but its body is not two branches, of which threads below {} take one",
            ring.name, readers);
    }
    const int start = registers_at_start(threads());
    for (const int count : {of_readers, of_others}) {
      if (count % kUnit == 0 && count >= kLeast && count <= kMost) continue;
      fault("the ring '{}' gives threads {} registers, no multiple of {} from {} to {}", ring.name, count, kUnit,
            kLeast, kMost);
    }
    if (of_readers < start || of_others > start) {
      fault("the ring '{}' gives {} registers to threads that read it and {} to others; they begin with {}", ring.name,
            of_readers, of_others, start);
    }
    if (readers * of_readers + others * of_others > start * threads()) {
      fault("the ring '{}' deals out {} registers, but the block has {}", ring.name,
            readers * of_readers + others * of_others, start * threads());
    }
  }
  /// Groups are digits of a block's number in the cluster, each another one.
  void check_groups(const Ring& ring) {
    for (size_t i = 0; i < ring.groups.size(); ++i) {
      const auto [stride, count] = ring.groups[i];
      if (stride < 1 || count < 2 || kernel_.cluster_blocks() % (int64_t{stride} * count) != 0) {
        fault("the ring '{}' is shared by {} blocks, {} apart, which do not divide a cluster of {}", ring.name, count,
              stride, kernel_.cluster_blocks());
      }
      for (size_t j = 0; j < i; ++j) {
        const auto ends_in = [](const BlockGroup& a, const BlockGroup& b) {
          return b.stride % (int64_t{a.stride} * a.count) == 0;
        };
        if (ends_in(ring.groups[i], ring.groups[j]) || ends_in(ring.groups[j], ring.groups[i])) continue;
        fault("the ring '{}' is shared by groups of blocks that meet in more than one", ring.name);
      }
    }
  }
  void visit(const Node& node, const Allocate& allocate) {
    if (allocate.tensor.memory == Memory::kGlobal) fault("'{}' is allocated in global memory", allocate.tensor.name);
    if (const std::string& of = allocate.tensor.place_of; !of.empty()) {
      const auto found = tensors_.find(of);
      const bool is_shared = found != tensors_.end() && found->second->memory == Memory::kShared;
      if (!is_shared || allocate.tensor.memory != Memory::kShared || allocate.tensor.swizzle) {
        fault("'{}' does not lie at the place of a shared tensor '{}' before it", allocate.tensor.name, of);
      }
    }
    declare(allocate.tensor);  // for the whole kernel: what is gone keeps its name
    visit_children(node);
  }
  void check(const Shuffle& shuffle, const std::string& where) {
    check_value(shuffle.tensor, shuffle.value, where);
    if (shuffle.width < 1 || shuffle.width > 32 || !std::has_single_bit(static_cast<unsigned>(shuffle.width))) {
      fault("'{}' is over {} lanes", where, shuffle.width);
    }
  }
  void check(const Move& move, const std::string& where) {
    const auto to = tensors_.find(move.destination);
    const auto from = tensors_.find(move.source);
    if (to == tensors_.end() || from == tensors_.end()) return;
    if (move.update && move.asynchronous) fault("'{}' updates asynchronously", where);
    if (move.guard.defined() && (!move.asynchronous || !move.guard.type().is_bool())) {
      fault("'{}' has a guard that is no condition of an asynchronous copy", where);
    }
    if (to->second->type != from->second->type) fault("'{}' is between two types", where);
    const int64_t bytes = move.elements * element_bytes(from->second->type);
    if (move.elements < 1 || !std::has_single_bit(static_cast<unsigned>(move.elements)) || bytes > 16) {
      fault("'{}' moves {} elements, {} bytes", where, move.elements, bytes);
    }
    const bool from_global = from->second->memory == Memory::kGlobal && to->second->memory == Memory::kShared;
    if (move.asynchronous && (!from_global || bytes < 4)) {
      fault("'{}' is no copy of 4, 8 or 16 bytes from global to shared memory", where);
    }
  }

  void check_whole_warps(const std::string& where) {
    if (threads() % kWarp != 0) {
      fault("'{}' is done by whole warps, but the last one of a block is not full", where);
    }
  }
  /// Each value of a fragment is a register of the type.
  void check_fragment(const Fragment& fragment, int64_t values, Halide::Type type, const std::string& where) {
    const auto found = tensors_.find(fragment.tensor);
    if (found == tensors_.end()) return;
    if (found->second->memory != Memory::kRegister) fault("'{}' takes '{}' as registers", where, fragment.tensor);
    if (found->second->type != type) {
      fault("'{}' takes '{}' as {}, but it is {}", where, fragment.tensor, ir::type_text(type),
            ir::type_text(found->second->type));
    }
    if (static_cast<int64_t>(fragment.values.size()) != values) {
      fault("'{}' takes {} values of '{}', of {}", where, fragment.values.size(), fragment.tensor, values);
    }
  }
  void check(const MatMul& matmul, const std::string& where) {
    check_whole_warps(where);
    const MatMulAtom& atom = *matmul.atom;
    const auto values = [](const Layout& layout) { return layout[1].size(); };
    check_fragment(matmul.d, values(atom.d), ir::to_halide(atom.sum), where);
    check_fragment(matmul.a, values(atom.a), ir::to_halide(atom.operand), where);
    check_fragment(matmul.b, values(atom.b), ir::to_halide(atom.operand), where);
  }
  void check(const MatrixLoad& load, const std::string& where) {
    check_matrices(load.source, load.destination, load.matrices(), where);
  }
  void check(const MatrixStore& store, const std::string& where) {
    if (kernel_.block[0] % kWarp != 0) fault("'{}' is of threads that are no whole warps along x", where);
    check_matrices(store.destination, store.source, store.matrices(), where);
  }
  /// Matrices between shared memory and registers of a warp.
  void check_matrices(const std::string& tensor, const Fragment& fragment, int matrices, const std::string& where) {
    check_whole_warps(where);
    const auto found = tensors_.find(tensor);
    if (found == tensors_.end()) return;
    const Halide::Type type = found->second->type;
    if (found->second->memory != Memory::kShared) fault("'{}' has rows in '{}', which is not shared", where, tensor);
    if (type.bits() != 16) fault("'{}' is of elements of {} bits", where, type.bits());
    if (matrices != 1 && matrices != 2 && matrices != 4) fault("'{}' is of {} matrices", where, matrices);
    check_fragment(fragment, int64_t{2} * matrices, type, where);
  }

  void check_turn(const std::string& ring, const Expr& turn, const std::string& where) {
    if (!rings_.count(ring)) fault("'{}' in '{}' is no ring around it", ring, where);
    if (turn.defined() && !(turn.type().is_int() && turn.type().bits() >= 32)) {
      fault("the turn in '{}' is {}", where, ir::type_text(turn.type()));
    }
  }
  void check(const RingStep& step, const std::string& where) {
    constexpr int64_t kMostBytes = (int64_t{1} << 20) - 1;  // PTX ISA, "Range of tx-count"
    check_turn(step.ring, step.turn, where);
    const bool commits = step.kind == RingStep::Kind::kCommit;
    if (commits && (step.bytes < 1 || step.bytes > kMostBytes)) {
      fault("'{}' is of {} bytes, which must be 1 to {}", where, step.bytes, kMostBytes);
    }
    if (!commits && step.bytes != 0) fault("'{}' has {} bytes", where, step.bytes);
    if (is_of_readers(step.kind)) check_whole_warps(where);
    const auto ring = rings_.find(step.ring);
    if (hands_over(step.kind) && ring != rings_.end() && ring->second->teams < 2) {
      fault("'{}' hands a ring over that has one team", where);
    }
  }
  /// All threads of the cluster come to each step, in the same order.
  void check(const ClusterStep& step, const std::string& where) {
    const bool waits = step.kind == ClusterStep::Kind::kWait;
    if (around_ > 0) fault("'{}' is in a loop or branch", where);
    if (waits != has_arrived_) fault("'{}' {}", where, waits ? "is not behind an arrival" : "is not behind a wait");
    has_arrived_ = !waits;
  }
  void check(const ClusterLoad& load, const std::string& where) {
    const auto from = tensors_.find(load.source), to = tensors_.find(load.destination);
    if (load.block.defined() && !(load.block.type().is_int() && load.block.type().bits() >= 32)) {
      fault("the block in '{}' is {}", where, ir::type_text(load.block.type()));
    }
    if (from == tensors_.end() || to == tensors_.end()) return;
    if (from->second->memory != Memory::kShared) fault("'{}' loads from '{}', which is not shared", where, load.source);
    if (to->second->memory != Memory::kRegister) fault("'{}' loads to '{}', which is no register", where, to->first);
    if (from->second->type != to->second->type) fault("'{}' is between two types", where);
    const int64_t bytes = load.elements * element_bytes(from->second->type);
    if (bytes != 4 && bytes != 8 && bytes != 16) fault("'{}' loads {} bytes, which must be 4, 8 or 16", where, bytes);
  }
  void check(const MatMulWait& wait, const std::string& where) {
    check_whole_warps(where);
    if (wait.pending < 0) fault("'{}' leaves {} groups", where, wait.pending);
    for (const std::string& sum : wait.sums) {
      const auto found = tensors_.find(sum);
      if (found != tensors_.end() && found->second->memory == Memory::kRegister) continue;
      fault("'{}' waits for '{}', which is no register tensor", where, sum);
    }
  }

  /// Whether a box lies as the tensor's coordinates say: its dimensions are the tensor's fastest ones, without gaps.
  /// Several of them may count through one of the tensor's; the last may be a part of one.
  static bool is_compact(const TensorMap& map, const Layout& layout) {
    std::vector<std::pair<int64_t, int64_t>> modes;  // stride, extent
    const std::vector<int64_t> extents = flatten(layout.shape()), strides = flatten(layout.stride());
    for (size_t i = 0; i < extents.size(); ++i) {
      if (extents[i] > 1) modes.emplace_back(strides[i], extents[i]);
    }
    std::ranges::sort(modes);
    int64_t next = 1;
    for (const auto& [stride, extent] : modes) {
      if (stride != std::exchange(next, next * extent)) return false;
    }
    auto mode = modes.begin();
    for (const int64_t extent : map.box) {
      if (extent == 1) continue;
      if (mode != modes.end() && mode->second == 1) ++mode;
      if (mode == modes.end() || mode->second % extent != 0) return false;
      mode->second /= extent;
    }
    return true;
  }
  void check(const BoxCopy& copy, const std::string& where) {
    check_turn(copy.ring, copy.turn, where);
    const auto ring = rings_.find(copy.ring);
    if (copy.group.count != 1 && ring != rings_.end() && std::ranges::count(ring->second->groups, copy.group) == 0) {
      fault("'{}' brings a box to blocks that do not share '{}'", where, copy.ring);
    }
    const auto map = std::ranges::find(kernel_.maps, copy.map, &TensorMap::name);
    if (map == kernel_.maps.end()) return fault("'{}' in '{}' is no tensor map", copy.map, where);
    const auto from = tensors_.find(copy.tensor), to = tensors_.find(copy.destination);
    if (from == tensors_.end() || to == tensors_.end()) return;
    const Tensor& destination = *to->second;
    if (map->tensor != copy.tensor) fault("'{}' is of '{}', not of '{}'", where, map->tensor, copy.tensor);
    if (from->second->written) fault("'{}' copies from '{}', which the kernel writes", where, copy.tensor);
    if (copy.coordinates.size() != map->box.size()) {
      fault("'{}' has {} coordinates for {} dimensions", where, copy.coordinates.size(), map->box.size());
    }
    if (destination.type != from->second->type) fault("'{}' is between two types", where);
    if (destination.memory != Memory::kShared)
      return fault("'{}' copies to '{}', which is not shared", where, to->first);
    const int64_t bytes = element_bytes(destination.type);
    if (map->swizzle != 0 && map->box[0] * bytes != map->swizzle) {
      fault("'{}' has rows of {} bytes, but swizzles {}", where, map->box[0] * bytes, map->swizzle);
    }
    if (destination.swizzle != swizzle_of(map->swizzle, bytes) || !is_compact(*map, destination.layout)) {
      fault("'{}' brings a box that does not lie like '{}': {}; {}", where, to->first, to_text(destination),
            to_text(*map));
    }
    check_place(to->first, where);
  }

  void check(const BoxStore& store, const std::string& where) {
    const auto map = std::ranges::find(kernel_.maps, store.map, &TensorMap::name);
    if (map == kernel_.maps.end()) return fault("'{}' in '{}' is no tensor map", store.map, where);
    const auto to = tensors_.find(store.tensor), from = tensors_.find(store.source);
    if (to == tensors_.end() || from == tensors_.end()) return;
    const Tensor &destination = *to->second, &source = *from->second;
    if (map->tensor != store.tensor) fault("'{}' is of '{}', not of '{}'", where, map->tensor, store.tensor);
    if (store.coordinates.size() != map->box.size() || store.box != map->box) {
      return fault("'{}' has not the dimensions of its map's box", where);
    }
    if (source.type != destination.type) fault("'{}' is between two types", where);
    if (source.memory != Memory::kShared) return fault("'{}' stores '{}', which is not shared", where, store.source);
    if (!is_whole(*map, destination)) {
      fault("'{}' stores to a map that is not all of '{}': {}; {}", where, store.tensor, to_text(destination),
            to_text(*map));
    }
    const int64_t bytes = element_bytes(source.type);
    if (map->extents[0] * bytes % kMapAlignment != 0) {
      fault("'{}' stores rows of {} bytes, which end within {} that are written", where, map->extents[0] * bytes,
            kMapAlignment);
    }
    if (map->swizzle != 0 && map->box[0] * bytes != map->swizzle) {
      fault("'{}' has rows of {} bytes, but swizzles {}", where, map->box[0] * bytes, map->swizzle);
    }
    if (source.swizzle != swizzle_of(map->swizzle, bytes) || !is_compact(*map, source.layout) ||
        !is_slice(store, source)) {
      fault("'{}' stores a box that does not lie like '{}': {}; {}", where, store.source, to_text(source),
            to_text(*map));
    }
    check_place(store.source, where);
  }
  /// Whether a map's dimensions are all those of its tensor, the fastest first.
  static bool is_whole(const TensorMap& map, const Tensor& tensor) {
    if (map.offset != 0 || static_cast<int>(map.extents.size()) != tensor.rank()) return false;
    for (size_t d = 0; d < map.extents.size(); ++d) {
      const Layout mode = tensor.layout[tensor.rank() - 1 - static_cast<int>(d)];
      const std::vector<int64_t> extents = flatten(mode.shape()), strides = flatten(mode.stride());
      if (extents.size() != 1 || extents[0] != map.extents[d]) return false;
      if (extents[0] > 1 && strides[0] != map.strides[d]) return false;
    }
    return true;
  }
  /// Whether a box is 1 along the first dimensions of its source, all of the last ones, and lies there without gaps.
  static bool is_slice(const BoxStore& store, const Tensor& source) {
    if (static_cast<int>(store.source_extents.size()) != source.rank()) return false;
    int64_t box = 1, slice = 1;
    for (const int64_t extent : store.box) box *= extent;
    bool is_inner = true;
    for (int d = source.rank() - 1; d >= 0; --d) {
      const Layout mode = source.layout[d];
      const std::vector<int64_t> extents = flatten(mode.shape()), strides = flatten(mode.stride());
      const int64_t length = store.source_extents[static_cast<size_t>(d)];
      is_inner = is_inner && length == product(mode.shape());
      if (is_inner && extents.size() != 1) return false;
      if (is_inner && extents[0] > 1 && strides[0] != slice) return false;
      if (!is_inner && length != 1) return false;
      if (is_inner && !hi::is_const_zero(store.source_subscripts[static_cast<size_t>(d)]) && length > 1) return false;
      slice *= length;
    }
    return slice == box;
  }
  void check_place(const std::string& tensor, const std::string& where) {
    for (const SharedTensor& place : kernel_.shared_tensors()) {
      if (place.tensor->name != tensor || place.byte_offset % kBoxAlignment == 0) continue;
      fault("'{}' has a box in '{}' at byte {}, which is no multiple of {}", where, tensor, place.byte_offset,
            kBoxAlignment);
    }
  }
  void check(const BoxStep& step, const std::string& where) {
    const bool waits = step.kind == BoxStep::Kind::kWaitRead || step.kind == BoxStep::Kind::kWait;
    if (step.pending < 0 || (!waits && step.pending != 0)) fault("'{}' leaves {} groups", where, step.pending);
  }

  void check_operand(const MatrixTile& tile, const WarpgroupMatMul& n, ScalarType type, int64_t mn,
                     const std::string& where) {
    const auto found = tensors_.find(tile.tensor);
    if (found == tensors_.end()) return;
    const Tensor& tensor = *found->second;
    if (tensor.type != ir::to_halide(type)) {
      fault("'{}' takes '{}' as {}, but it is {}", where, tile.tensor, name_of(type), ir::type_text(tensor.type));
    }
    const int rank = tensor.rank();
    const auto is_dimension = [&](int d) { return d >= 0 && d < rank; };
    if (!is_dimension(tile.mn_dimension) || !is_dimension(tile.k_dimension) || tile.mn_dimension == tile.k_dimension) {
      return fault("'{}' takes dimensions {} and {} of '{}', which has {}", where, tile.mn_dimension, tile.k_dimension,
                   tile.tensor, rank);
    }
    if (!descriptor_of(tensor, tile, mn, int64_t{n.atom.k()} * n.slices)) {
      fault("'{}' takes '{}', which no matrix descriptor describes: {}", where, tile.tensor, to_text(tensor));
    }
  }
  void check_held(const WarpgroupMatMul& n, const std::string& where) {
    const auto found = tensors_.find(n.held->tensor);
    if (found == tensors_.end()) return;
    const Tensor& tensor = *found->second;
    const bool is_one_run = tensor.layout.size() == tensor.elements() && !tensor.swizzle;
    if (tensor.memory != Memory::kRegister || tensor.type != ir::to_halide(n.atom.a) || !is_one_run) {
      fault("'{}' takes '{}', which is not registers of {}: {}", where, tensor.name, name_of(n.atom.a),
            to_text(tensor));
    }
    if (tensor.name == n.d) fault("'{}' adds to the operand '{}'", where, n.d);
  }
  void check(const WarpgroupMatMul& n, const std::string& where) {
    check_whole_warps(where);
    if (!has_warpgroup_atom(n.atom.a, n.atom.b)) {
      return fault("'{}' multiplies {} by {}", where, name_of(n.atom.a), name_of(n.atom.b));
    }
    const int step = WarpgroupAtom::step_n(n.atom.a);
    if (n.atom.n < step || n.atom.n > WarpgroupAtom::kMostN || n.atom.n % step != 0) {
      return fault("'{}' has {} columns, which must be a multiple of {} up to {}", where, n.atom.n, step,
                   WarpgroupAtom::kMostN);
    }
    if (n.slices < 1) return fault("'{}' has {} slices", where, n.slices);
    const auto d = tensors_.find(n.d);
    if (d != tensors_.end()) {
      const Tensor& sum = *d->second;
      const bool is_there = n.d_first >= 0 && n.d_first % n.atom.values() == 0 &&
                            sum.elements() % n.atom.values() == 0 && n.d_first < sum.elements();
      if (sum.memory != Memory::kRegister || sum.type != ir::to_halide(n.atom.sum()) || !is_there || sum.swizzle) {
        fault("'{}' adds to '{}', which is not {} registers of {} from {} on: {}", where, n.d, n.atom.values(),
              name_of(n.atom.sum()), n.d_first, to_text(sum));
      }
    }
    if (n.held) {
      check_held(n, where);
    } else {
      check_operand(n.a, n, n.atom.a, WarpgroupAtom::kM, where);
    }
    check_operand(n.b, n, n.atom.b, n.atom.n, where);
  }

  int64_t threads() const { return kernel_.block[0] * kernel_.block[1] * kernel_.block[2]; }

  void check_contiguous(const Tensor& tensor, int dimension, int elements, const std::string& where) {
    if (elements == 1) return;
    if (dimension < 0 || dimension >= tensor.rank()) return fault("'{}' runs along no dimension", where);
    const Layout mode = tensor.layout[dimension];
    const std::vector<int64_t> extents = flatten(mode.shape());
    const bool unit = flatten(mode.stride())[0] == 1;
    const bool whole = extents.size() == 1 || extents[0] % elements == 0;
    const bool kept = !tensor.swizzle || tensor.swizzle->bits == 0 || (1 << tensor.swizzle->base) >= elements;
    if (!unit || !whole || !kept) {
      fault("'{}' takes {} neighbours of '{}', which lie apart: {}", where, elements, tensor.name, to_text(tensor));
    }
  }

  const Kernel& kernel_;
  const Limits& limits_;
  std::vector<std::string> faults_;
  std::set<std::string> names_;
  std::map<std::string, const Tensor*> tensors_;
  std::set<std::string> unrolled_;
  std::map<std::string, const Ring*> rings_;  ///< around the node
  std::set<std::string> warps_;               ///< lets that hold the number of the thread's warp
  bool has_arrived_ = false;                  ///< in the cluster, and not waited
  int around_ = 0;                            ///< loops and branches around the node
};

}  // namespace

std::vector<std::string> structure_faults(const Kernel& kernel, const Limits& limits) {
  return Checker(kernel, limits).check();
}

}  // namespace tc::tile
