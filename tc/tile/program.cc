#include "tc/tile/program.h"

#include <algorithm>

#include "tc/ir/halide_compat.h"
#include "tc/support/round.h"
#include "tc/tile/build.h"

namespace tc::tile {
namespace {

constexpr int kMatrixLoadArchitecture = 75, kMatrixStoreArchitecture = 90;
constexpr int kClusterArchitecture = 90;  // tensor maps too

}  // namespace

int registers_at_start(int64_t threads) {
  constexpr int64_t kProcessorRegisters = 65536, kParts = 4, kLanes = 32, kUnit = 8, kMost = 255;
  // Warps are dealt out to the parts of a processor, each of which has registers of its own.
  const int64_t warps = (threads + kLanes - 1) / kLanes, of_part = (warps + kParts - 1) / kParts;
  return static_cast<int>(std::min(kProcessorRegisters / kParts / kLanes / of_part, kMost) / kUnit * kUnit);
}

int Ring::sharers() const {
  int result = 1;
  for (const BlockGroup& group : groups) result += group.count - 1;
  return result;
}

bool may_be_empty(const For& loop) {
  return !Halide::Internal::is_const_one(Halide::Internal::simplify(loop.begin < loop.end));
}

std::optional<int64_t> constant_trips(const For& loop) {
  const Halide::Expr length = Halide::Internal::simplify(loop.end - loop.begin);
  const int64_t *values = ir::constant_int(length), *step = ir::constant_int(loop.step);
  if (!values || !step || *step <= 0) return std::nullopt;
  return std::max<int64_t>(ceil_div(*values, *step), 0);
}

const If* next_test(const If& branch) {
  if (!branch.else_case || !branch.else_case->comment.empty()) return nullptr;
  return match(
      *branch.else_case, [](const If& next) { return next.predicated ? nullptr : &next; },
      [](const OneOf<Sequence, For, Let, Allocate, Ring> auto&) -> const If* { return nullptr; },
      [](const Synchronisation auto&) -> const If* { return nullptr; },
      [](const Spec auto&) -> const If* { return nullptr; });
}

std::vector<Atomic> updates_of(const Move& move, Halide::Type type) {
  namespace hi = Halide::Internal;
  const auto next = [](std::vector<Halide::Expr> subscripts, int dimension, int by) {
    Halide::Expr& at = subscripts[static_cast<size_t>(dimension)];
    at = hi::simplify(at + hi::make_const(at.type(), by));
    return subscripts;
  };
  std::vector<Atomic> result;
  for (int i = 0; i < move.elements; ++i) {
    const Halide::Expr value =
        hi::Call::make(type, move.source, next(move.source_subscripts, move.source_dimension, i), hi::Call::PureExtern);
    result.push_back(
        {move.destination, next(move.destination_subscripts, move.destination_dimension, i), *move.update, value});
  }
  return result;
}

namespace {

/// The one place that says which kinds of nodes have children.
template <typename AnyNode, typename F>
void visit_children(AnyNode& node, F f) {
  match(
      node,
      [&](OneOf<Sequence> auto& n) {
        for (auto& child : n.children) f(child);
      },
      [&](OneOf<For, Let, Allocate, Ring> auto& n) { f(n.body); },
      [&](OneOf<If> auto& n) {
        f(n.then_case);
        f(n.else_case);
      },
      [](const Synchronisation auto&) {}, [](const Spec auto&) {});
}

/// The one place that says which expressions a node has.
template <typename AnyNode, typename F>
void visit_exprs(AnyNode& node, F f) {
  const auto all = [&](auto& exprs) {
    for (auto& e : exprs) f(e);
  };
  const auto each = [&](auto& fragment) {
    for (auto& subscripts : fragment.values) all(subscripts);
  };
  match(
      node, [](const OneOf<Sequence, Allocate, Ring> auto&) {},
      [&](OneOf<For> auto& n) {
        f(n.begin);
        f(n.end);
        f(n.step);
      },
      [&](OneOf<If> auto& n) { f(n.condition); }, [&](OneOf<Let> auto& n) { f(n.value); },
      [&](Synchronisation auto& n) {
        if constexpr (requires { n.turn; }) f(n.turn);
      },
      [&](OneOf<Store, Atomic> auto& n) {
        all(n.subscripts);
        f(n.value);
      },
      [&](OneOf<Move> auto& n) {
        all(n.destination_subscripts);
        all(n.source_subscripts);
        if (n.guard.defined()) f(n.guard);
      },
      [&](OneOf<Shuffle> auto& n) {
        all(n.subscripts);
        f(n.value);
        f(n.lane);
      },
      [&](OneOf<MatMul> auto& n) {
        for (auto* fragment : {&n.d, &n.a, &n.b}) each(*fragment);
      },
      [&](OneOf<MatrixLoad> auto& n) {
        each(n.destination);
        all(n.source_subscripts);
      },
      [&](OneOf<MatrixStore> auto& n) {
        all(n.destination_subscripts);
        each(n.source);
      },
      [&](OneOf<BoxCopy> auto& n) {
        all(n.coordinates);
        all(n.destination_subscripts);
        f(n.turn);
      },
      [&](OneOf<BoxStore> auto& n) {
        all(n.coordinates);
        all(n.source_subscripts);
      },
      [&](OneOf<ClusterLoad> auto& n) {
        all(n.destination_subscripts);
        all(n.source_subscripts);
        f(n.block);
      },
      [&](OneOf<WarpgroupMatMul> auto& n) {
        all(n.held ? n.held->subscripts : n.a.subscripts);
        all(n.b.subscripts);
      });
}

}  // namespace

void for_each_child(const Node& node, const std::function<void(const NodePtr&)>& visit) { visit_children(node, visit); }

NodePtr map_children(const NodePtr& node, const std::function<NodePtr(const NodePtr&)>& map) {
  Node copy = *node;
  bool same = true;
  visit_children(copy, [&](NodePtr& child) {
    NodePtr mapped = map(child);
    same = same && mapped == child;
    child = std::move(mapped);
  });
  return same ? node : std::make_shared<const Node>(std::move(copy));
}

void for_each_expr(const Node& node, const std::function<void(const Halide::Expr&)>& visit) {
  visit_exprs(node, visit);
}

NodePtr carrying(std::shared_ptr<const Instances> instances, const NodePtr& node) {
  Node copy = *node;
  copy.instances = std::move(instances);
  return std::make_shared<const Node>(std::move(copy));
}

NodePtr map_exprs(const NodePtr& node, const std::function<Halide::Expr(const Halide::Expr&)>& map) {
  Node copy = *node;
  bool same = true;
  visit_exprs(copy, [&](Halide::Expr& e) {
    Halide::Expr mapped = map(e);
    same = same && mapped.same_as(e);
    e = std::move(mapped);
  });
  if (node->instances) {
    Instances mapped = *node->instances;
    bool moved = false;
    for (std::vector<Halide::Expr>& point : mapped.first) {
      for (Halide::Expr& e : point) {
        const Halide::Expr before = std::exchange(e, map(e));
        moved = moved || !e.same_as(before);
      }
    }
    if (moved) copy.instances = std::make_shared<const Instances>(std::move(mapped));
    same = same && !moved;
  }
  return same ? node : std::make_shared<const Node>(std::move(copy));
}

namespace {

/// Whether a thread says where a row is; absent: all of a warp do.
Halide::Expr names_row(const MatrixStore& store) {
  constexpr int kWarp = 32;
  const int rows = store.matrices() * kMatrixRow;
  return rows < kWarp ? build::thread_x() % kWarp < rows : Halide::Expr();
}

}  // namespace

void for_each_access(const Node& node, const std::function<void(const NodeAccess&)>& visit) {
  static const std::vector<Halide::Expr> kNoSubscripts;
  const auto each = [&](const Fragment& fragment, bool is_write) {
    for (const auto& subscripts : fragment.values) {
      visit({.tensor = fragment.tensor, .subscripts = subscripts, .is_write = is_write});
    }
  };
  match(
      node, [](const Structure auto&) {}, [](const Synchronisation auto&) {},
      [&](const OneOf<Store, Shuffle> auto& n) {
        visit({.tensor = n.tensor, .subscripts = n.subscripts, .is_write = true});
      },
      [&](const Atomic& n) {
        visit({.tensor = n.tensor, .subscripts = n.subscripts, .is_write = true, .atomic = true});
      },
      [&](const Move& n) {
        visit({.tensor = n.destination,
               .subscripts = n.destination_subscripts,
               .is_write = true,
               .atomic = n.update.has_value(),
               .asynchronous = n.asynchronous,
               .dimension = n.destination_dimension,
               .elements = n.elements});
        visit({.tensor = n.source,
               .subscripts = n.source_subscripts,
               .dimension = n.source_dimension,
               .elements = n.elements,
               .condition = n.guard});
      },
      [&](const MatMul& n) {
        each(n.d, true);
        for (const Fragment* fragment : {&n.d, &n.a, &n.b}) each(*fragment, false);
      },
      [&](const MatrixLoad& n) {
        each(n.destination, true);
        visit({.tensor = n.source,
               .subscripts = n.source_subscripts,
               .dimension = n.source_dimension,
               .elements = kMatrixRow});
      },
      [&](const MatrixStore& n) {
        visit({.tensor = n.destination,
               .subscripts = n.destination_subscripts,
               .is_write = true,
               .dimension = n.destination_dimension,
               .elements = kMatrixRow,
               .condition = names_row(n)});
        each(n.source, false);
      },
      [&](const BoxCopy& n) {
        visit({.tensor = n.destination, .subscripts = n.destination_subscripts, .is_write = true, .region = true});
        visit({.tensor = n.tensor, .subscripts = kNoSubscripts, .region = true});
      },
      [&](const BoxStore& n) {
        const std::vector<Halide::Expr> first(n.coordinates.rbegin(), n.coordinates.rend());
        visit({.tensor = n.tensor,
               .subscripts = first,
               .is_write = true,
               .region = true,
               .lengths = {n.box.rbegin(), n.box.rend()}});
        visit({.tensor = n.source, .subscripts = n.source_subscripts, .region = true, .lengths = n.source_extents});
      },
      [&](const ClusterLoad& n) {
        visit({.tensor = n.destination,
               .subscripts = n.destination_subscripts,
               .is_write = true,
               .dimension = n.destination_dimension,
               .elements = n.elements});
        visit({.tensor = n.source,
               .subscripts = n.source_subscripts,
               .dimension = n.source_dimension,
               .elements = n.elements,
               .in_cluster = true});
      },
      [&](const WarpgroupMatMul& n) {
        visit({.tensor = n.d, .subscripts = kNoSubscripts, .is_write = true, .region = true});
        if (!n.starts) visit({.tensor = n.d, .subscripts = kNoSubscripts, .region = true});
        if (n.held) visit({.tensor = n.held->tensor, .subscripts = n.held->subscripts, .region = true});
        for (const MatrixTile* tile : n.shared_tiles()) {
          visit({.tensor = tile->tensor, .subscripts = tile->subscripts, .region = true});
        }
      });
}

const Move* asynchronous_copy(const Node& node) {
  return match(
      node, [](const Move& n) { return n.asynchronous ? &n : nullptr; },
      [](const Structure auto&) -> const Move* { return nullptr; },
      [](const Synchronisation auto&) -> const Move* { return nullptr; },
      [](const OneOf<Store, Atomic, Shuffle, MatMul, MatrixLoad, MatrixStore, BoxCopy, BoxStore, ClusterLoad,
                     WarpgroupMatMul> auto&) -> const Move* { return nullptr; });
}

const Tensor* allocated_tensor(const Node& node) {
  const Tensor* tensor = nullptr;
  match(
      node, [&](const Allocate& n) { tensor = &n.tensor; }, [](const OneOf<Sequence, For, If, Let, Ring> auto&) {},
      [](const Synchronisation auto&) {}, [](const Spec auto&) {});
  return tensor;
}

const Ring* ring_of(const Node& node) {
  const Ring* ring = nullptr;
  match(
      node, [&](const Ring& n) { ring = &n; }, [](const OneOf<Sequence, For, If, Let, Allocate> auto&) {},
      [](const Synchronisation auto&) {}, [](const Spec auto&) {});
  return ring;
}

const BoxCopy* box_of(const Node& node) {
  const BoxCopy* box = nullptr;
  match(
      node, [&](const BoxCopy& n) { box = &n; }, [](const Structure auto&) {}, [](const Synchronisation auto&) {},
      [](const Collective auto&) {}, [](const OneOf<Store, Atomic, Move, BoxStore, ClusterLoad> auto&) {});
  return box;
}

const BoxStore* box_store_of(const Node& node) {
  const BoxStore* store = nullptr;
  match(
      node, [&](const BoxStore& n) { store = &n; }, [](const Structure auto&) {}, [](const Synchronisation auto&) {},
      [](const Collective auto&) {}, [](const OneOf<Store, Atomic, Move, BoxCopy, ClusterLoad> auto&) {});
  return store;
}

const BoxStep* box_step_of(const Node& node) {
  const BoxStep* step = nullptr;
  match(
      node, [&](const BoxStep& n) { step = &n; }, [](const Structure auto&) {}, [](const Spec auto&) {},
      [](const OneOf<Barrier, ClusterStep, WaitForKernels, StartNextKernel, RingStep, CommitGroup, WaitGroup,
                     MatMulWait> auto&) {});
  return step;
}

const Barrier* barrier_of(const Node& node) {
  const Barrier* barrier = nullptr;
  match(
      node, [&](const Barrier& n) { barrier = &n; }, [](const Structure auto&) {}, [](const Spec auto&) {},
      [](const OneOf<ClusterStep, BoxStep, WaitForKernels, StartNextKernel, RingStep, CommitGroup, WaitGroup,
                     MatMulWait> auto&) {});
  return barrier;
}

const RingStep* ring_step_of(const Node& node) {
  const RingStep* step = nullptr;
  match(
      node, [&](const RingStep& n) { step = &n; }, [](const Structure auto&) {}, [](const Spec auto&) {},
      [](const OneOf<Barrier, ClusterStep, WaitForKernels, StartNextKernel, CommitGroup, WaitGroup, MatMulWait,
                     BoxStep> auto&) {});
  return step;
}

const WarpgroupMatMul* warpgroup_product_of(const Node& node) {
  const WarpgroupMatMul* product = nullptr;
  match(
      node, [&](const WarpgroupMatMul& n) { product = &n; }, [](const Structure auto&) {},
      [](const Synchronisation auto&) {},
      [](const OneOf<Store, Atomic, Move, Shuffle, MatMul, MatrixLoad, MatrixStore, BoxCopy, BoxStore,
                     ClusterLoad> auto&) {});
  return product;
}

const MatMulWait* matmul_wait_of(const Node& node) {
  const MatMulWait* wait = nullptr;
  match(
      node, [&](const MatMulWait& n) { wait = &n; }, [](const Structure auto&) {}, [](const Spec auto&) {},
      [](const OneOf<Barrier, ClusterStep, WaitForKernels, StartNextKernel, RingStep, CommitGroup, WaitGroup,
                     BoxStep> auto&) {});
  return wait;
}

const ClusterStep* cluster_step_of(const Node& node) {
  const ClusterStep* step = nullptr;
  match(
      node, [&](const ClusterStep& n) { step = &n; }, [](const Structure auto&) {}, [](const Spec auto&) {},
      [](const OneOf<Barrier, WaitForKernels, StartNextKernel, RingStep, CommitGroup, WaitGroup, MatMulWait,
                     BoxStep> auto&) {});
  return step;
}

const std::string* bound_variable(const Node& node) {
  const std::string* name = nullptr;
  match(
      node, [&](const For& n) { name = &n.variable; }, [&](const Let& n) { name = &n.name; },
      [](const OneOf<Sequence, If, Allocate, Ring> auto&) {}, [](const Synchronisation auto&) {},
      [](const Spec auto&) {});
  return name;
}

Order order_of(const Node& node) {
  return match(
      node, [](const Structure auto&) { return Order::kNone; }, [](const Spec auto&) { return Order::kNone; },
      [](const Barrier& n) {
        return n.scope == Barrier::Scope::kBlock  ? Order::kBlock
               : n.scope == Barrier::Scope::kWarp ? Order::kWarp
                                                  : Order::kWarpgroup;
      },
      [](const ClusterStep&) { return Order::kCluster; }, [](const BoxStep&) { return Order::kBoxStores; },
      [](const OneOf<CommitGroup, WaitGroup> auto&) { return Order::kCopies; },
      [](const OneOf<RingStep, MatMulWait> auto&) { return Order::kRing; },
      [](const WaitForKernels&) { return Order::kKernels; }, [](const StartNextKernel&) { return Order::kNone; });
}

void for_each_node(const NodePtr& node, const std::function<void(const Node&)>& visit) {
  if (!node) return;
  visit(*node);
  for_each_child(*node, [&](const NodePtr& child) { for_each_node(child, visit); });
}

std::vector<SharedTensor> Kernel::shared_tensors() const {
  std::vector<SharedTensor> result;
  int64_t next = 0;
  for_each_node(body, [&](const Node& node) {
    const Tensor* tensor = allocated_tensor(node);
    if (!tensor || tensor->memory != Memory::kShared) return;
    const auto before =
        std::ranges::find_if(result, [&](const SharedTensor& other) { return other.tensor->name == tensor->place_of; });
    const int64_t offset = before != result.end() ? before->byte_offset : round_up(next, shared_alignment(*tensor));
    result.push_back({tensor, offset});
    const int64_t bytes = tensor->elements() * element_bytes(tensor->type);
    next = std::max(next, offset + round_up(bytes, kSharedAlignment));
  });
  return result;
}

int Kernel::architecture() const {
  const bool is_cluster = cluster != std::array<int64_t, 3>{1, 1, 1};
  int result = is_cluster || !maps.empty() ? kClusterArchitecture : 0;
  for_each_node(body, [&](const Node& node) {
    match(
        node, [&](const MatMul& n) { result = std::max(result, n.atom->architecture); },
        [&](const MatrixLoad&) { result = std::max(result, kMatrixLoadArchitecture); },
        [&](const MatrixStore&) { result = std::max(result, kMatrixStoreArchitecture); },
        [&](const OneOf<BoxCopy, BoxStore, BoxStep, ClusterStep, ClusterLoad, WarpgroupMatMul> auto&) {
          result = std::max(result, kClusterArchitecture);
        },
        [](const Structure auto&) {},
        [](const OneOf<Barrier, WaitForKernels, StartNextKernel, RingStep, CommitGroup, WaitGroup, MatMulWait> auto&) {
        },
        [](const OneOf<Store, Atomic, Move, Shuffle> auto&) {});
  });
  return result;
}

bool Kernel::accelerated() const {
  bool result = false;
  for_each_node(body, [&](const Node& node) {
    if (const Ring* ring = ring_of(node)) result |= ring->registers.has_value();
    match(
        node, [&](const MatMul& n) { result |= n.atom->accelerated; }, [&](const WarpgroupMatMul&) { result = true; },
        [](const Structure auto&) {}, [](const Synchronisation auto&) {},
        [](const OneOf<Store, Atomic, Move, Shuffle, MatrixLoad, MatrixStore, BoxCopy, BoxStore, ClusterLoad> auto&) {
        });
  });
  return result;
}

namespace {

/// Behind all of them.
int64_t end_of(const std::vector<SharedTensor>& all) {
  int64_t end = 0;
  for (const auto& [tensor, offset] : all) {
    end = std::max(end, offset + tensor->elements() * element_bytes(tensor->type));
  }
  return end;
}

}  // namespace

std::vector<RingBarriers> Kernel::rings() const {
  std::vector<RingBarriers> result;
  int64_t next = round_up(end_of(shared_tensors()), RingBarriers::kBytes);
  for_each_node(body, [&](const Node& node) {
    const Ring* ring = ring_of(node);
    if (!ring) return;
    result.push_back({ring, next});
    next += result.back().bytes();
  });
  return result;
}

int64_t Kernel::shared_bytes() const {
  const std::vector<RingBarriers> all = rings();
  return all.empty() ? end_of(shared_tensors()) : all.back().byte_offset + all.back().bytes();
}

bool Kernel::has_shared_places() const {
  const std::vector<SharedTensor> all = shared_tensors();
  return std::ranges::any_of(all, [](const SharedTensor& place) { return !place.tensor->place_of.empty(); });
}

}  // namespace tc::tile
