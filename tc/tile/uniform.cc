#include "tc/tile/uniform.h"

#include <algorithm>
#include <map>

namespace tc::tile {
namespace {

namespace hi = Halide::Internal;

bool is_at_top(const Leaf& leaf) { return leaf.path.loops.empty() && leaf.path.conditions.empty(); }

/// The let whose value a leaf computes, or null.
const Let* let_of(const Node& node) {
  const Let* found = nullptr;
  match(
      node, [&](const Let& n) { found = &n; }, [](const OneOf<Sequence, For, If, Allocate, Ring> auto&) {},
      [](const Synchronisation auto&) {}, [](const Spec auto&) {});
  return found;
}

/// Whether an expression names nothing but the block.
bool names_block_alone(const Halide::Expr& e) {
  struct Visitor : hi::IRVisitor {
    bool alone = true;
    using hi::IRVisitor::visit;
    void visit(const hi::Variable* op) override {
      alone = alone && std::ranges::any_of(kBlock, [&](const char* name) { return op->name == name; });
    }
  } visitor;
  e.accept(&visitor);
  return visitor.alone;
}

class Finder {
 public:
  Finder(const Kernel& kernel, const Flow& flow) : flow_(flow) {
    for_each_node(kernel.body, [&](const Node& node) {
      if (const std::string* name = bound_variable(node)) ++bindings_[*name];
    });
    for (size_t i = 0; i < flow.leaves.size(); ++i) {
      for (const ElementAccess& access : flow.leaves[i].accesses) {
        // What is copied asynchronously arrives at some later time.
        if (access.is_write) last_write_[access.tensor->name] = access.asynchronous ? flow.leaves.size() : i;
      }
    }
  }

  std::set<std::string> find() {
    std::set<std::string> result;
    size_t barrier = 0;
    for (size_t i = 0; i < flow_.leaves.size(); ++i) {
      const Leaf& leaf = flow_.leaves[i];
      if (!is_at_top(leaf)) continue;
      const Barrier* found = barrier_of(*leaf.node);
      if (found && found->scope == Barrier::Scope::kBlock) barrier = i;
      const Let* let = let_of(*leaf.node);
      if (!let || bindings_[let->name] > 1 || !names_block_alone(let->value)) continue;
      const auto settles = [&](const ElementAccess& access) { return is_settled(access, barrier); };
      if (std::ranges::all_of(leaf.accesses, settles)) result.insert(let->name);
    }
    return result;
  }

 private:
  bool is_settled(const ElementAccess& access, size_t barrier) const {
    const auto write = last_write_.find(access.tensor->name);
    if (access.tensor->memory == Memory::kGlobal) return write == last_write_.end() && !access.tensor->written;
    return access.tensor->memory == Memory::kShared && write != last_write_.end() && write->second < barrier;
  }

  const Flow& flow_;
  std::map<std::string, int> bindings_;       ///< of loops and lets, by name
  std::map<std::string, size_t> last_write_;  ///< leaves, by tensor
};

}  // namespace

std::set<std::string> uniform_lets(const Kernel& kernel, const Flow& flow) { return Finder(kernel, flow).find(); }

}  // namespace tc::tile
