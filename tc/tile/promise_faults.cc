#include "tc/tile/promise_faults.h"

#include <fmt/format.h>

#include <deque>
#include <set>

#include "tc/tile/accesses.h"
#include "tc/tile/promise.h"

namespace tc::tile {
namespace {

bool starts_next_kernel(const Node& node) {
  return match(
      node, [](const StartNextKernel&) { return true; },
      [](const OneOf<Sequence, For, If, Let, Allocate, Ring> auto&) { return false; },
      [](const OneOf<Barrier, ClusterStep, WaitForKernels, RingStep, CommitGroup, WaitGroup, MatMulWait,
                     BoxStep> auto&) { return false; },
      [](const Spec auto&) { return false; });
}

class Checker {
 public:
  Checker(const Kernel& kernel, const KernelsBefore& before, bool is_last)
      : kernel_(kernel), before_(before), is_last_(is_last), flow_(flow_of(kernel)) {
    for (const Leaf& leaf : flow_.leaves) waits_ |= order_of(*leaf.node) == Order::kKernels;
  }

  std::vector<std::string> check() {
    for (const Tensor& tensor : kernel_.tensors) {
      check_read_only(tensor);
      if (tensor.restricted) check_restricted(tensor);
    }
    for_each_node(kernel_.body, [&](const Node& node) {
      const Tensor* tensor = allocated_tensor(node);
      if (tensor && (tensor->read_only || tensor->restricted)) {
        fault("'{}' is promised to be read only or restricted, but is no argument", tensor->name);
      }
    });
    if (waits_) check_waits();
    return std::move(faults_);
  }

 private:
  template <typename... Args>
  void fault(fmt::format_string<Args...> format, Args&&... args) {
    faults_.push_back(fmt::format("{}: {}", kernel_.name, fmt::format(format, std::forward<Args>(args)...)));
  }

  const Leaf* leaf_at(int point) const {
    const int leaf = flow_.points[static_cast<size_t>(point)].leaf;
    return leaf < 0 ? nullptr : &flow_.leaves[static_cast<size_t>(leaf)];
  }

  /// Whether kernels before may still run when the kernel does, and what they do conflicts with what it does.
  bool meets_kernels_before(const Tensor& tensor, bool writes) const {
    return waits_ && (writes ? before_.touch(tensor.name) : before_.write(tensor.name));
  }

  void check_read_only(const Tensor& tensor) {
    if (!tensor.read_only) return;
    if (tensor.written) fault("'{}' is promised to be read only, but the kernel writes it", tensor.name);
    if (meets_kernels_before(tensor, false)) {
      fault("'{}' is promised to be read only, but a kernel before writes it, and may still run", tensor.name);
    }
  }

  void check_restricted(const Tensor& tensor) {
    if (meets_kernels_before(tensor, tensor.written)) {
      fault("'{}' is promised to be restricted, but a kernel before touches it, and may still run", tensor.name);
    }
    if (const std::string other = plain_loads(kernel_).merged_with(tensor.name); !other.empty()) {
      fault("'{}' is promised to be restricted, but its loads may be merged with those of '{}'", tensor.name, other);
    }
    for (size_t p = 0; p < flow_.points.size(); ++p) {
      const Leaf* leaf = leaf_at(static_cast<int>(p));
      if (!leaf || !touches(*leaf, tensor, true)) continue;
      if (const Leaf* later = met_behind_barrier(static_cast<int>(p), tensor)) {
        fault(
            "'{}' is promised to be restricted, but '{}' may see or replace what another thread's '{}' wrote before "
            "a barrier",
            tensor.name, later->text(), leaf->text());
        return;
      }
    }
  }

  static bool touches(const Leaf& leaf, const Tensor& tensor, bool writes_only) {
    for (const ElementAccess& access : leaf.accesses) {
      if (access.tensor->name == tensor.name && (access.is_write || !writes_only)) return true;
    }
    return false;
  }

  /// What touches the tensor on some way from a point that leads over a barrier.
  const Leaf* met_behind_barrier(int from, const Tensor& tensor) const {
    std::set<std::pair<int, bool>> seen;
    std::deque<std::pair<int, bool>> queue = {{from, false}};
    while (!queue.empty()) {
      auto [point, behind] = queue.front();
      queue.pop_front();
      if (const Leaf* leaf = leaf_at(point)) {
        if (behind && touches(*leaf, tensor, false)) return leaf;
        behind |= is_barrier(*leaf->node);
      }
      for (const Flow::Edge& edge : flow_.points[static_cast<size_t>(point)].next) {
        if (seen.insert({edge.to, behind}).second) queue.emplace_back(edge.to, behind);
      }
    }
    return nullptr;
  }

  /// On every way a wait comes before what meets the kernels before, and before the end. If the first kernel or the
  /// last one of a program waits, it does so before it lets the next one start: the second kernel knows the program's
  /// kernels alone, and what comes behind the program may know nothing but the last one.
  void check_waits() {
    std::set<int> seen = {0};
    std::deque<int> queue = {0};
    while (!queue.empty()) {
      const int point = queue.front();
      queue.pop_front();
      const Leaf* leaf = leaf_at(point);
      if (leaf && order_of(*leaf->node) == Order::kKernels) continue;
      if (leaf) check_early(*leaf);
      if (leaf && (before_.are_anybodys() || is_last_) && starts_next_kernel(*leaf->node)) {
        fault("it lets the next kernel start before it has waited for those before it");
      }
      const auto& next = flow_.points[static_cast<size_t>(point)].next;
      if (next.empty()) fault("some thread ends without having waited for the kernels before");
      for (const Flow::Edge& edge : next) {
        if (seen.insert(edge.to).second) queue.push_back(edge.to);
      }
    }
  }

  void check_early(const Leaf& leaf) {
    for (const ElementAccess& access : leaf.accesses) {
      if (access.tensor->memory != Memory::kGlobal || !meets_kernels_before(*access.tensor, access.is_write)) continue;
      fault("'{}' {} '{}' before it has waited for the kernels before, which {} it", leaf.text(),
            access.is_write ? "writes" : "reads", access.tensor->name,
            before_.write(access.tensor->name) ? "write" : "read");
    }
  }

  const Kernel& kernel_;
  const KernelsBefore& before_;
  const bool is_last_;
  Flow flow_;
  bool waits_ = false;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> promise_faults(const Program& program) {
  std::vector<std::string> faults;
  KernelsBefore before;
  for (const Kernel& kernel : program.kernels) {
    const bool is_last = &kernel == &program.kernels.back();
    for (std::string& fault : Checker(kernel, before, is_last).check()) faults.push_back(std::move(fault));
    before.add(kernel);
  }
  return faults;
}

}  // namespace tc::tile
