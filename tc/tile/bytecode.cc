#include "tc/tile/bytecode.h"

#include <algorithm>

#include "tc/support/check.h"
#include "tc/tile/expr_compiler.h"
#include "tc/tile/print.h"

namespace tc::tile {
namespace {

/// Statements to instructions. What expressions need is left to ExprCompiler, which also decides where it is computed.
class KernelCompiler {
 public:
  explicit KernelCompiler(const Kernel& kernel) : kernel_(kernel), exprs_(code_) {}

  Code compile() {
    exprs_.open_scope();
    for (const Tensor& tensor : kernel_.tensors) add_tensor(tensor, 0);
    for (const SharedTensor& shared : kernel_.shared_tensors()) add_tensor(*shared.tensor, shared.byte_offset);
    code_.shared_bytes = kernel_.shared_bytes();
    for (const Scalar& scalar : kernel_.scalars) {
      const ScalarType type = ir::from_halide(scalar.type);
      const int reg = exprs_.new_variable(type, true, {});
      code_.scalars.push_back({scalar.name, type, reg});
      exprs_.bind(scalar.name, reg);
    }
    bind_coordinates(kBlock, kernel_.grid, true, code_.block_registers);
    bind_coordinates(kThread, kernel_.block, false, code_.thread_registers);
    std::vector<Instruction> body = block([&] { node(kernel_.body); });
    code_.instructions = exprs_.close_scope(std::move(body));
    code_.instructions.push_back({});  // kHalt
    code_.registers = exprs_.registers();
    return std::move(code_);
  }

 private:
  void bind_coordinates(const std::array<const char*, 3>& names, const std::array<int64_t, 3>& extents, bool uniform,
                        std::array<int, 3>& registers) {
    for (size_t i = 0; i < 3; ++i) {
      if (extents[i] == 1) {
        exprs_.bind(names[i], exprs_.integer_constant(0));
      } else {
        registers[i] = exprs_.new_variable(ScalarType::kInt64, uniform, Range{0, extents[i] - 1});
        exprs_.bind(names[i], registers[i]);
      }
    }
  }

  void add_tensor(const Tensor& tensor, int64_t shared_offset) {
    CodeTensor made{tensor, ir::from_halide(tensor.type), shared_offset, -1};
    if (tensor.memory == Memory::kRegister) {
      made.register_base = code_.register_elements;
      code_.register_elements += static_cast<int>(tensor.elements());
    }
    exprs_.bind_tensor(tensor.name, static_cast<int>(code_.tensors.size()));
    code_.tensors.push_back(std::move(made));
  }

  /// The instructions that `fill` emits, in a buffer of their own.
  template <typename Fill>
  std::vector<Instruction> block(Fill fill) {
    return exprs_.captured(fill);
  }

  void emit(Instruction instruction) { exprs_.emit(instruction); }
  void emit_all(const std::vector<Instruction>& instructions) {
    for (const Instruction& instruction : instructions) emit(instruction);
  }

  void node(const NodePtr& pointer) {
    if (!pointer) return;
    if (const std::string text = node_text(*pointer); !text.empty()) {
      code_.sites.push_back(text);
      exprs_.set_site(static_cast<int>(code_.sites.size()) - 1);
    }
    match(*pointer, [&](const auto& n) -> decltype(visit(n)) { visit(n); });
  }

  void visit(const Sequence& sequence) {
    for (const NodePtr& child : sequence.children) node(child);
  }

  void visit(const For& loop) {
    const int begin = exprs_.compile(loop.begin);
    const int end = exprs_.compile(loop.end);
    const int step = exprs_.compile(loop.step);
    const bool uniform = exprs_.uniform(begin) && exprs_.uniform(end) && exprs_.uniform(step);
    exprs_.open_scope();
    Range range;
    if (exprs_.range(begin).known && exprs_.range(end).known && exprs_.range(step).known &&
        exprs_.range(step).low > 0) {
      range = Range{exprs_.range(begin).low, exprs_.range(end).high - 1};
    }
    const int variable = exprs_.new_variable(ScalarType::kInt64, uniform, range);
    const int hidden = exprs_.rebind(loop.variable, variable);
    std::vector<Instruction> body = exprs_.close_scope(block([&] { node(loop.body); }));
    exprs_.restore(loop.variable, hidden);
    const auto length = static_cast<int64_t>(body.size());
    emit({.op = Op::kEnter});
    emit({.op = Op::kCopy, .dst = variable, .a = begin});
    emit({.op = Op::kLoopTest, .uniform = uniform, .a = variable, .b = end, .immediate = length + 2});
    emit_all(body);
    emit({.op = Op::kLoopNext, .dst = variable, .a = step, .immediate = -(length + 1)});
    emit({.op = Op::kLeave});
  }

  void visit(const If& branch) {
    const int condition = exprs_.compile(branch.condition);
    exprs_.branch(
        condition, [&] { node(branch.then_case); }, [&] { node(branch.else_case); }, branch.else_case != nullptr);
  }

  void visit(const Let& let) {
    const int value = exprs_.compile(let.value);
    if (!exprs_.impure(value)) {
      const int hidden = exprs_.rebind(let.name, value);
      node(let.body);
      exprs_.restore(let.name, hidden);
      return;
    }
    // What is computed from the value alone is computed once, right behind it.
    exprs_.open_scope();
    exprs_.settle(value);
    const int hidden = exprs_.rebind(let.name, value);
    emit_all(exprs_.close_scope(block([&] { node(let.body); })));
    exprs_.restore(let.name, hidden);
  }

  void visit(const Allocate& allocate) {
    if (allocate.tensor.memory == Memory::kRegister) {
      add_tensor(allocate.tensor, 0);
      emit({.op = Op::kPoison, .a = static_cast<int>(code_.tensors.size()) - 1});
    }
    node(allocate.body);
  }

  void visit(const Barrier& barrier) {
    const Op op = barrier.scope == Barrier::Scope::kBlock  ? Op::kBlockBarrier
                  : barrier.scope == Barrier::Scope::kWarp ? Op::kWarpBarrier
                                                           : Op::kGroupBarrier;
    emit({.op = op, .a = exprs_.site()});
  }

  void visit(const ClusterStep& step) {
    const bool arrives = step.kind == ClusterStep::Kind::kArrive;
    emit({.op = arrives ? Op::kArriveInCluster : Op::kWaitForCluster, .a = exprs_.site()});
  }

  void visit(const WaitForKernels&) {
    code_.waits = true;
    emit({.op = Op::kWaitForKernels});
  }
  void visit(const StartNextKernel&) {}  // kernels run one after the other here; what is too early is a finding

  void visit(const Store& store) {
    const int value = exprs_.compile(store.value);
    const int access = exprs_.access(store.tensor, store.subscripts);
    emit({.op = Op::kStore, .type = exprs_.type(value), .a = access, .b = value});
  }

  void visit(const Atomic& atomic) {
    const int value = exprs_.compile(atomic.value);
    const int access = exprs_.access(atomic.tensor, atomic.subscripts);
    emit({.op = Op::kAtomic, .a = access, .b = value, .immediate = static_cast<int64_t>(atomic.op)});
  }

  void visit(const Move& move) {
    if (move.update) return update(move);
    const int destination =
        exprs_.access(move.destination, move.destination_subscripts, move.destination_dimension, move.elements);
    const int source = exprs_.access(move.source, move.source_subscripts, move.source_dimension, move.elements);
    emit({.op = move.asynchronous ? Op::kCopyAsync : Op::kMove,
          .a = destination,
          .b = source,
          .c = move.guard.defined() ? exprs_.compile(move.guard) : -1,
          .immediate = move.elements});
  }

  void update(const Move& move) {
    const auto source = std::find_if(code_.tensors.rbegin(), code_.tensors.rend(),
                                     [&](const CodeTensor& t) { return t.tensor.name == move.source; });
    for (const Atomic& each : updates_of(move, source->tensor.type)) {
      updates_.push_back(each);
      visit(each);
    }
  }

  void visit(const CommitGroup&) { emit({.op = Op::kCommit}); }
  void visit(const WaitGroup& wait) { emit({.op = Op::kWait, .immediate = wait.pending}); }

  void visit(const Shuffle& shuffle) {
    const int value = exprs_.compile(shuffle.value);
    const int lane = exprs_.compile(shuffle.lane);
    const int access = exprs_.access(shuffle.tensor, shuffle.subscripts);
    emit({.op = Op::kShuffle,
          .flag = static_cast<uint8_t>(shuffle.kind),
          .a = access,
          .b = value,
          .c = lane,
          .immediate = shuffle.width});
  }

  std::vector<int> accesses(const Fragment& fragment) {
    std::vector<int> result;
    for (const auto& subscripts : fragment.values) result.push_back(exprs_.access(fragment.tensor, subscripts));
    return result;
  }

  void visit(const MatMul& n) {
    code_.matmuls.push_back({n.atom, accesses(n.d), accesses(n.a), accesses(n.b)});
    emit({.op = Op::kMatMul, .a = static_cast<int>(code_.matmuls.size()) - 1});
  }

  void visit(const MatrixLoad& n) {
    const int source = exprs_.access(n.source, n.source_subscripts, n.source_dimension, kMatrixRow);
    code_.matrix_loads.push_back({accesses(n.destination), source, n.transposed});
    emit({.op = Op::kMatrixLoad, .a = static_cast<int>(code_.matrix_loads.size()) - 1});
  }

  void visit(const MatrixStore& n) {
    const int destination = exprs_.access(n.destination, n.destination_subscripts, n.destination_dimension, kMatrixRow);
    code_.matrix_stores.push_back({destination, accesses(n.source), n.transposed});
    emit({.op = Op::kMatrixStore, .a = static_cast<int>(code_.matrix_stores.size()) - 1});
  }

  void visit(const Ring& ring) {
    code_.sites.push_back("ring " + ring.name);
    exprs_.set_site(static_cast<int>(code_.sites.size()) - 1);
    code_.rings.push_back(
        {ring.name, ring.stages, ring.readers, ring.teams, ring.groups, ring.readers * ring.sharers()});
    emit({.op = ring.groups.empty() ? Op::kBlockBarrier : Op::kClusterBarrier, .a = exprs_.site()});
    emit({.op = Op::kMakeRing, .a = static_cast<int>(code_.rings.size()) - 1, .c = exprs_.site()});
    node(ring.body);
  }

  int ring(const std::string& name) const {
    const auto found = std::ranges::find(code_.rings, name, &CodeRing::name);
    TC_CHECK(found != code_.rings.end(), "'{}' is no ring of the kernel", name);
    return static_cast<int>(found - code_.rings.begin());
  }

  void visit(const RingStep& step) {
    const auto op = [&] {
      switch (step.kind) {
        case RingStep::Kind::kAcquire:
          return Op::kAcquire;
        case RingStep::Kind::kCommit:
          return Op::kCommitTurn;
        case RingStep::Kind::kDrain:
          return Op::kDrain;
        case RingStep::Kind::kAwait:
          return Op::kAwait;
        case RingStep::Kind::kRelease:
          return Op::kRelease;
        case RingStep::Kind::kPass:
          return Op::kPass;
        case RingStep::Kind::kTake:
          return Op::kTake;
      }
      return Op::kHalt;
    };
    const int turn = exprs_.compile(step.turn);
    emit({.op = op(), .a = ring(step.ring), .b = turn, .c = exprs_.site(), .immediate = step.bytes});
  }

  void visit(const BoxCopy& copy) {
    const auto map = std::ranges::find(kernel_.maps, copy.map, &TensorMap::name);
    TC_CHECK(map != kernel_.maps.end(), "'{}' is no tensor map of the kernel", copy.map);
    CodeBoxCopy made{&*map,
                     exprs_.tensor(map->tensor),
                     exprs_.access(copy.destination, copy.destination_subscripts),
                     {},
                     ring(copy.ring),
                     exprs_.compile(copy.turn),
                     copy.group};
    for (const Halide::Expr& e : copy.coordinates) made.coordinates.push_back(exprs_.compile(e));
    code_.tensors[static_cast<size_t>(exprs_.tensor(copy.destination))].filled = true;
    code_.box_copies.push_back(std::move(made));
    emit({.op = Op::kBoxCopy, .a = static_cast<int>(code_.box_copies.size()) - 1});
  }

  void visit(const BoxStore& store) {
    const auto map = std::ranges::find(kernel_.maps, store.map, &TensorMap::name);
    TC_CHECK(map != kernel_.maps.end(), "'{}' is no tensor map of the kernel", store.map);
    CodeBoxStore made{&*map,
                      exprs_.tensor(map->tensor),
                      exprs_.access(store.tensor, {store.coordinates.rbegin(), store.coordinates.rend()}),
                      exprs_.access(store.source, store.source_subscripts),
                      {}};
    for (const Halide::Expr& e : store.coordinates) made.coordinates.push_back(exprs_.compile(e));
    code_.tensors[static_cast<size_t>(exprs_.tensor(store.source))].stored = true;
    code_.box_stores.push_back(std::move(made));
    emit({.op = Op::kBoxStore, .a = static_cast<int>(code_.box_stores.size()) - 1});
  }

  void visit(const ClusterLoad& load) {
    const int destination =
        exprs_.access(load.destination, load.destination_subscripts, load.destination_dimension, load.elements);
    const int source = exprs_.access(load.source, load.source_subscripts, load.source_dimension, load.elements);
    code_.tensors[static_cast<size_t>(exprs_.tensor(load.source))].in_cluster = true;
    emit({.op = Op::kClusterLoad,
          .a = destination,
          .b = source,
          .c = exprs_.compile(load.block),
          .immediate = load.elements});
  }

  void visit(const BoxStep& step) {
    emit({.op = Op::kBoxStep, .flag = static_cast<uint8_t>(step.kind), .immediate = step.pending});
  }

  void visit(const WarpgroupMatMul& n) {
    const int64_t k = int64_t{n.atom.k()} * n.slices;
    const auto tile = [&](const MatrixTile& of, int64_t mn) {
      const int tensor = exprs_.tensor(of.tensor);
      return CodeProduct::Tile{exprs_.access(of.tensor, of.subscripts),
                               descriptor_of(code_.tensors[static_cast<size_t>(tensor)].tensor, of, mn, k)};
    };
    const auto a = n.held ? CodeProduct::Tile{exprs_.access(n.held->tensor, n.held->subscripts), {}}
                          : tile(n.a, WarpgroupAtom::kM);
    code_.products.push_back({n.atom, n.slices, exprs_.tensor(n.d), a, tile(n.b, n.atom.n), n.starts,
                              n.held ? exprs_.tensor(n.held->tensor) : -1, n.d_first});
    emit({.op = Op::kStartProduct, .a = static_cast<int>(code_.products.size()) - 1, .c = exprs_.site()});
  }

  void visit(const MatMulWait& n) {
    CodeProductWait made{n.pending, {}};
    for (const std::string& sum : n.sums) made.sums.push_back(exprs_.tensor(sum));
    code_.product_waits.push_back(std::move(made));
    emit({.op = Op::kWaitProducts, .a = static_cast<int>(code_.product_waits.size()) - 1, .c = exprs_.site()});
  }

  const Kernel& kernel_;
  Code code_;
  std::vector<Atomic> updates_;  ///< expressions that are known by their addresses
  ExprCompiler exprs_;
};

}  // namespace

Representation representation_of(ScalarType type) {
  if (type == ScalarType::kFloat64) return Representation::kDouble;
  return is_float(type) && !is_float8(type) ? Representation::kFloat : Representation::kInteger;
}

Code compile(const Kernel& kernel) { return KernelCompiler(kernel).compile(); }

}  // namespace tc::tile
