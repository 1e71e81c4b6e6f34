#include "tc/tile/promise.h"

#include <algorithm>
#include <map>

#include "tc/ir/halide_compat.h"
#include "tc/support/check.h"
#include "tc/support/round.h"
#include "tc/tile/accesses.h"
#include "tc/tile/build.h"
#include "tc/tile/tiles.h"

namespace tc::tile {
namespace {

/// Tensors through which threads may pass values on: read or overwritten behind a barrier, or repeatedly in a loop that
/// holds one. Stores between the same two barriers pass nothing on: an element of theirs is one thread's, or the kernel
/// has a race.
std::set<std::string> exchanged_tensors(const Flow& flow) {
  std::set<std::string> read, rewritten;
  std::map<std::string, int> barriers_before;
  int barriers = 0;
  for (const Leaf& leaf : flow.leaves) {
    if (is_barrier(*leaf.node)) ++barriers;
    const bool again = std::any_of(leaf.path.loops.begin(), leaf.path.loops.end(), [&](const EnclosingLoop& loop) {
      return flow.synchronising[static_cast<size_t>(loop.id)];
    });
    for (const ElementAccess& access : leaf.accesses) {
      const std::string& name = access.tensor->name;
      if (!access.is_write || access.atomic) read.insert(name);
      if (!access.is_write) continue;
      const int first = barriers_before.emplace(name, barriers).first->second;
      if (again || first != barriers) rewritten.insert(name);
    }
  }
  if (barriers == 0) return {};
  std::set<std::string> result = rewritten;
  for (const auto& [name, first] : barriers_before) {
    if (read.count(name) > 0) result.insert(name);
  }
  return result;
}

/// What touches a tensor that kernels before touch, one of them or it writing.
std::set<const Node*> touches_of(const Flow& flow, const KernelsBefore& before) {
  std::set<const Node*> result;
  for (const Leaf& leaf : flow.leaves) {
    const bool meets = std::any_of(leaf.accesses.begin(), leaf.accesses.end(), [&](const ElementAccess& access) {
      return access.tensor->memory == Memory::kGlobal &&
             (access.is_write ? before.touch(access.tensor->name) : before.write(access.tensor->name));
    });
    if (meets) result.insert(leaf.node);
  }
  return result;
}

bool holds_any(const NodePtr& node, const std::set<const Node*>& wanted) {
  bool found = false;
  for_each_node(node, [&](const Node& n) { found = found || wanted.count(&n) > 0; });
  return found;
}

bool copies_box(const Leaf& leaf) { return box_of(*leaf.node) != nullptr; }

/// Whether a kernel reads global tensors by boxes.
bool copies_boxes(const Flow& flow) { return std::any_of(flow.leaves.begin(), flow.leaves.end(), copies_box); }

/// Whether a kernel reads global tensors by boxes alone.
bool reads_boxes_alone(const Flow& flow) {
  const auto reads = [](const ElementAccess& access) {
    return access.tensor->memory == Memory::kGlobal && (!access.is_write || access.atomic);
  };
  return copies_boxes(flow) && std::all_of(flow.leaves.begin(), flow.leaves.end(), [&](const Leaf& leaf) {
           return copies_box(leaf) || std::none_of(leaf.accesses.begin(), leaf.accesses.end(), reads);
         });
}

/// The body with `wait` before the first of `touches`, or before the loop or branch around it, which some threads may
/// not enter. Null if there is none of them.
NodePtr waiting(const NodePtr& node, const std::set<const Node*>& touches, const NodePtr& wait) {
  if (!holds_any(node, touches)) return nullptr;
  const bool every_thread_enters = match(
      *node, [](const OneOf<Sequence, Let, Allocate, Ring> auto&) { return true; },
      [](const OneOf<For, If> auto&) { return false; }, [](const Synchronisation auto&) { return false; },
      [](const Spec auto&) { return false; });
  if (!every_thread_enters || touches.count(node.get()) > 0) return build::sequence({wait, node});
  bool done = false;
  return map_children(node, [&](const NodePtr& child) {
    const NodePtr with = done ? nullptr : waiting(child, touches, wait);
    done = done || with;
    return with ? with : child;
  });
}

int64_t blocks_of(const Kernel& kernel) { return kernel.grid[0] * kernel.grid[1] * kernel.grid[2]; }

/// Whether the next kernel's first blocks find as many neighbours idle as its last ones.
bool fills(const Kernel& kernel, int64_t processors) {
  constexpr int64_t kMostIdle = 7;  // a seventh of the processors
  const int64_t blocks = blocks_of(kernel);
  return processors > 0 && (2 * blocks <= processors || blocks >= processors - processors / kMostIdle);
}

/// Iterations of the loops around a leaf that the text does not lay out, as far as they are known.
int64_t iterations_of(const Leaf& leaf) {
  int64_t result = 1;
  for (const EnclosingLoop& around : leaf.path.loops) {
    const For& loop = *around.loop;
    const int64_t *begin = ir::constant_int(loop.begin), *end = ir::constant_int(loop.end);
    const int64_t* step = ir::constant_int(loop.step);
    if (begin && end && step && !loop.unrolled) result *= std::max<int64_t>(ceil_div(*end - *begin, *step), 1);
  }
  return result;
}

/// Whether blocks of one tile each that all run at once read what their neighbours read for so long that where they are
/// matters more than when they start: those of the next kernel, which is taken to be like this one, as in calls that
/// repeat. Blocks that start early come to whichever processor is idle, those of a cluster to neighbours.
bool need_their_places(const Kernel& kernel, const Flow& flow, int64_t processors) {
  constexpr int64_t kManySteps = 64;
  if (blocks_of(kernel) > processors || !loops_over_tiles(kernel).empty()) return false;
  return kernel.cluster_blocks() == 1 && std::any_of(flow.leaves.begin(), flow.leaves.end(), [](const Leaf& leaf) {
           return copies_box(leaf) && iterations_of(leaf) >= kManySteps;
         });
}

void promise(Kernel& kernel, const KernelsBefore& before, bool is_last, const PromiseOptions& options) {
  const Flow flow = flow_of(kernel);
  const bool is_first = before.are_anybodys();
  const bool waits = !is_first || (options.processors > 0 && reads_boxes_alone(flow));
  const std::set<std::string> exchanged = exchanged_tensors(flow);
  for (Tensor& tensor : kernel.tensors) {
    const bool alone = !waits || !(tensor.written ? before.touch(tensor.name) : before.write(tensor.name));
    tensor.read_only = options.readonly_cache && alone && !tensor.written;
    tensor.restricted = options.readonly_cache && alone && exchanged.count(tensor.name) == 0;
  }
  const PlainLoads loads = plain_loads(kernel);
  for (Tensor& tensor : kernel.tensors) tensor.restricted &= loads.merged_with(tensor.name).empty();
  const bool may_start_another =
      copies_boxes(flow) && fills(kernel, options.processors) && !need_their_places(kernel, flow, options.processors);
  const NodePtr start = !is_last || may_start_another ? build::start_next_kernel() : nullptr;
  const bool starts_behind = waits && (is_first || is_last);  // others than the program's kernels have ended then
  if (waits) {
    const NodePtr wait = build::wait_for_kernels();
    const NodePtr place = starts_behind ? build::sequence({wait, start}) : wait;
    const NodePtr with = waiting(kernel.body, touches_of(flow_of(kernel), before), place);
    kernel.body = with ? with : build::sequence({kernel.body, place});
  }
  if (start && !starts_behind) kernel.body = build::sequence({start, kernel.body});
}

using TensorsByName = std::map<std::string, const Tensor*>;

/// Whether a value is chosen by a condition: where it is not, what it was computed from may go unread.
class ValueChoices : public Halide::Internal::IRVisitor {
 public:
  explicit ValueChoices(const TensorsByName& tensors) : tensors_(tensors) {}
  bool found = false;

 private:
  using IRVisitor::visit;
  void visit(const Halide::Internal::Select*) override { found = true; }
  void visit(const Halide::Internal::And*) override { found = true; }
  void visit(const Halide::Internal::Or*) override { found = true; }
  void visit(const Halide::Internal::Call* op) override {
    const bool is_choice = op->is_intrinsic(Halide::Internal::Call::if_then_else) || op->name == "select";
    found = found || is_choice || (!op->type.is_float() && tensors_.count(op->name) == 0);
    IRVisitor::visit(op);
  }
  void visit(const Halide::Internal::Div* op) override { divide(op); }
  void visit(const Halide::Internal::Mod* op) override { divide(op); }
  template <typename Division>
  void divide(const Division* op) {
    found = found || (!op->type.is_float() && !Halide::Internal::is_const(op->b));  // by zero it is 0
    IRVisitor::visit(op);
  }
  const TensorsByName& tensors_;
};

/// Looks for two places of a kernel of which one may run where the other does not.
class Choices {
 public:
  explicit Choices(const Kernel& kernel) : tensors_(tensors_of(kernel)), values_(tensors_) { visit(kernel.body); }
  bool found() const { return found_ || values_.found; }

 private:
  /// Whether what the node holds runs under a condition of its own.
  bool visit(const NodePtr& node) {
    if (!node) return false;
    bool decides = false, may_skip = false;
    match(
        *node, [&](const If&) { decides = true; }, [&](const For& n) { may_skip = may_be_empty(n); },
        [](const OneOf<Sequence, Let, Allocate, Ring> auto&) {}, [](const Synchronisation auto&) {},
        [](const Spec auto&) {});
    for_each_expr(*node, [&](const Halide::Expr& e) {
      if (!decides || !reads_in(e, tensors_).empty()) e.accept(&values_);
    });
    int conditional = 0;
    for_each_child(*node, [&](const NodePtr& child) { conditional += visit(child) || (decides && child) ? 1 : 0; });
    found_ = found_ || conditional > 1;
    return conditional > 0 || may_skip;
  }

  TensorsByName tensors_;
  ValueChoices values_;
  bool found_ = false;
};

/// Whether some tensor is written in two places under different conditions. What one of them has read may then go
/// unused, where the other one writes over it: a compiler reads it only where it does not.
bool writes_over(const Flow& flow) {
  const auto conditions_of = [](const Path& path) {
    std::vector<const void*> all;
    for (const EnclosingLoop& loop : path.loops) {
      if (may_be_empty(*loop.loop)) all.push_back(loop.loop);
    }
    for (const Halide::Expr& condition : path.conditions) all.push_back(condition.get());
    return all;
  };
  std::map<std::string, std::vector<const void*>> written;
  for (const Leaf& leaf : flow.leaves) {
    for (const ElementAccess& access : leaf.accesses) {
      if (!access.is_write || access.tensor->memory == Memory::kShared) continue;
      const auto [found, is_new] = written.try_emplace(access.tensor->name, conditions_of(leaf.path));
      if (!is_new && found->second != conditions_of(leaf.path)) return true;
    }
  }
  return false;
}

}  // namespace

void KernelsBefore::add(const Kernel& kernel) {
  anybody_ = false;
  for (const Tensor& tensor : kernel.tensors) {
    touched_.insert(tensor.name);
    if (tensor.written) written_.insert(tensor.name);
  }
}

PlainLoads plain_loads(const Kernel& kernel) {
  PlainLoads result;
  const Flow flow = flow_of(kernel);
  result.exclusive = Choices(kernel).found() || writes_over(flow);
  for (const Leaf& leaf : flow.leaves) {
    if (copies_box(leaf)) continue;
    for (const ElementAccess& access : leaf.accesses) {
      const Tensor& tensor = *access.tensor;
      if (tensor.memory != Memory::kGlobal || (access.is_write && !access.atomic)) continue;
      if (tensor.read_only && access.elements > 1) continue;
      result.of[tensor.name].insert(access.elements * element_bytes(tensor.type));
      if (!tensor.read_only) result.coherent.insert(tensor.name);
    }
  }
  return result;
}

std::string PlainLoads::merged_with(const std::string& tensor) const {
  const auto own = of.find(tensor);
  if (own == of.end() || !exclusive) return "";
  for (const std::string& other : coherent) {
    if (other == tensor) continue;
    for (const int64_t bytes : of.at(other)) {
      if (own->second.count(bytes) > 0) return other;
    }
  }
  return "";
}

Program promise(Program program, const PromiseOptions& options) {
  KernelsBefore before;
  for (Kernel& kernel : program.kernels) {
    promise(kernel, before, &kernel == &program.kernels.back(), options);
    before.add(kernel);
  }
  return program;
}

}  // namespace tc::tile
