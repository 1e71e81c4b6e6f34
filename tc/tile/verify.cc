#include "tc/tile/verify.h"

#include <fmt/format.h>
#include <isl/ctx.h>
#include <isl/map.h>
#include <isl/set.h>
#include <isl/space.h>

#include <algorithm>
#include <numeric>

#include "tc/ir/expr_text.h"
#include "tc/tile/affine.h"
#include "tc/tile/matrix_descriptor.h"
#include "tc/tile/places.h"
#include "tc/tile/promise_faults.h"
#include "tc/tile/structure.h"
#include "tc/tile/uniform.h"

namespace tc::tile {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

constexpr unsigned long kOperations = 20'000'000;

/// Threads that do something together.
enum class Group : int { kBlock = 0, kWarp = 32, kWarpgroup = WarpgroupAtom::kThreads };

const char* name_of(Group group) {
  return group == Group::kBlock ? "block" : group == Group::kWarp ? "warp" : "warpgroup";
}

/// The part of verify() that needs isl: where control goes, and which elements are touched.
class Prover {
 public:
  Prover(const Kernel& kernel, Verification& result, KernelChecks& checks)
      : kernel_(kernel), result_(result), checks_(checks), context_(kOperations), flow_(flow_of(kernel)) {}

  void run() {
    for (const Leaf& leaf : flow_.leaves) count(leaf);
    for (const Leaf& leaf : flow_.leaves) {
      context_.reset();
      try {
        check(leaf);
      } catch (const isl::exception&) {
        if (!context_.is_exhausted()) throw;
        result_.unproved.push_back(fmt::format("{}: '{}' is too hard for isl", kernel_.name, leaf.text()));
      }
    }
  }

 private:
  void count(const Leaf& leaf) {
    for (const ElementAccess& access : leaf.accesses) {
      ++checks_.accesses;
      if (access.elements > 1) ++checks_.vectors;
    }
    match(
        *leaf.node,
        [&](const Barrier& n) { ++(n.scope == Barrier::Scope::kBlock ? checks_.barriers : checks_.warp_operations); },
        [&](const ClusterStep&) { ++checks_.barriers; }, [&](const Collective auto&) { ++checks_.warp_operations; },
        [&](const MatMulWait&) { ++checks_.warp_operations; },
        [&](const RingStep& n) { checks_.warp_operations += is_of_readers(n.kind) ? 1 : 0; },
        [](const OneOf<CommitGroup, WaitGroup, BoxStep, WaitForKernels, StartNextKernel> auto&) {},
        [](const Structure auto&) {}, [](const OneOf<Store, Atomic, Move, BoxCopy, BoxStore, ClusterLoad> auto&) {});
  }

  void check(const Leaf& leaf) {
    match(
        *leaf.node,
        [&](const Barrier& n) {
          check_together(leaf, n.scope == Barrier::Scope::kBlock  ? Group::kBlock
                               : n.scope == Barrier::Scope::kWarp ? Group::kWarp
                                                                  : Group::kWarpgroup);
        },
        [&](const ClusterStep&) { check_together(leaf, Group::kBlock); },
        [&](const OneOf<Shuffle, MatMul, MatrixLoad, MatrixStore, MatMulWait> auto&) {
          check_together(leaf, Group::kWarp);
        },
        [&](const WarpgroupMatMul&) { check_together(leaf, Group::kWarpgroup); },
        [&](const RingStep& n) {
          if (is_of_readers(n.kind)) check_together(leaf, Group::kWarp);
        },
        [](const OneOf<CommitGroup, WaitGroup, BoxStep, WaitForKernels, StartNextKernel> auto&) {},
        [](const Structure auto&) {}, [](const OneOf<Store, Atomic, Move, BoxCopy, BoxStore, ClusterLoad> auto&) {});
    const AffineView view(context_.get(), kernel_, leaf.path, &uniform_);
    match(
        *leaf.node,
        [&](const OneOf<RingStep, BoxCopy, BoxStore, ClusterLoad, WarpgroupMatMul> auto& n) { check(leaf, view, n); },
        [](const OneOf<Barrier, ClusterStep, CommitGroup, WaitGroup, MatMulWait, BoxStep, WaitForKernels,
                       StartNextKernel> auto&) {},
        [](const Structure auto&) {},
        [](const OneOf<Store, Atomic, Move, Shuffle, MatMul, MatrixLoad, MatrixStore> auto&) {});
    for (const ElementAccess& access : leaf.accesses) {
      if (!check_bounds(leaf, view, access)) continue;
      ++checks_.inside;
      if (!leaf.path.conditions.empty() || !access.conditions.empty()) ++checks_.conditional;
    }
    for (const ElementAccess& access : leaf.accesses) {
      if (access.elements > 1 && check_alignment(leaf, view, access)) ++checks_.aligned;
    }
  }

  void check(const Leaf& leaf, const AffineView& view, const RingStep& n) {
    if (is_of_readers(n.kind)) check_same(leaf, view, view.value(n.turn), Group::kWarp, "turn");
  }

  void check(const Leaf& leaf, const AffineView& view, const BoxCopy& n) {
    const auto map = std::ranges::find(kernel_.maps, n.map, &TensorMap::name);
    check_box(leaf, view, map->box, leaf.accesses[0], n.coordinates[0]);
  }

  void check(const Leaf& leaf, const AffineView& view, const BoxStore& n) {
    check_box(leaf, view, n.box, leaf.accesses[1], n.coordinates[0]);
  }

  /// The place of a box in shared memory, and its first coordinate in the map.
  void check_box(const Leaf& leaf, const AffineView& view, const std::vector<int64_t>& box, const ElementAccess& place,
                 const Expr& first) {
    const int64_t bytes = element_bytes(place.tensor->type);
    int64_t elements = 1;
    for (int64_t extent : box) elements *= extent;
    const int64_t alignment = place.tensor->swizzle ? kSwizzledAlignment : kBoxAlignment;
    check_multiple(leaf, view, view.offset(place), std::lcm(elements, alignment / bytes), "place");
    check_multiple(leaf, view, view.value(first), std::max<int64_t>(16 / bytes, 1), "first coordinate");
  }

  /// The block is one of the cluster.
  void check(const Leaf& leaf, const AffineView& view, const ClusterLoad& n) {
    const std::optional<isl::pw_aff> block = view.value(n.block);
    if (!block) {
      result_.unproved.push_back(fmt::format("{}: the block in '{}' is not affine", kernel_.name, leaf.text()));
      return;
    }
    const isl::set outside = view.domain().intersect(
        block->lt_set(view.constant(0)).unite(block->ge_set(view.constant(kernel_.cluster_blocks()))));
    if (outside.is_empty()) return;
    (view.exact() ? result_.faults : result_.unproved)
        .push_back(fmt::format("{}: the block in '{}' leaves [0, {}) for {}", kernel_.name, leaf.text(),
                               kernel_.cluster_blocks(), view.describe(outside.sample_point())));
  }

  void check(const Leaf& leaf, const AffineView& view, const WarpgroupMatMul& n) {
    const int64_t k = int64_t{n.atom.k()} * n.slices;
    if (n.held) check_held(leaf, view, n);
    for (const MatrixTile* tile : n.shared_tiles()) {
      const int64_t mn = tile == &n.a ? WarpgroupAtom::kM : n.atom.n;
      for (const ElementAccess& access : leaf.accesses) {
        if (access.tensor->name != tile->tensor || access.subscripts.size() != tile->subscripts.size()) continue;
        ElementAccess last = access;
        for (const auto& [dimension, length] : {std::pair(tile->mn_dimension, mn), std::pair(tile->k_dimension, k)}) {
          Expr& at = last.subscripts[static_cast<size_t>(dimension)];
          at = at + hi::make_const(at.type(), length - 1);
        }
        check_bounds(leaf, view, last);
      }
      check_place(leaf, view, n.atom, *tile, *descriptor_of(*tensors_.at(tile->tensor), *tile, mn, k));
    }
    const isl::set beyond = view.domain().intersect(view.thread_number().ge_set(view.constant(threads() / 128 * 128)));
    if (!beyond.is_empty()) {
      result_.faults.push_back(fmt::format("{}: '{}' is reached by {}, whose warpgroup is not full", kernel_.name,
                                           leaf.text(), view.describe(beyond.sample_point())));
    }
  }

  /// The registers that a thread holds of a tile are the tensor's, from the first on.
  void check_held(const Leaf& leaf, const AffineView& view, const WarpgroupMatMul& n) {
    const Tensor& tensor = *tensors_.at(n.held->tensor);
    const std::optional<isl::pw_aff> offset = view.offset({&tensor, n.held->subscripts, {}});
    if (!offset) {
      result_.unproved.push_back(fmt::format("{}: the registers in '{}' are not affine", kernel_.name, leaf.text()));
      return;
    }
    const isl::set beyond = view.domain().intersect(offset->gt_set(view.constant(tensor.elements() - n.values_held())));
    if (beyond.is_empty()) return;
    result_.faults.push_back(fmt::format("{}: '{}' takes {} registers from one on, but '{}' has {}", kernel_.name,
                                         leaf.text(), n.values_held(), tensor.name, tensor.elements()));
  }

  /// A tile begins where the swizzle's pattern of 8 rows does; along a row of k, at a slice.
  void check_place(const Leaf& leaf, const AffineView& view, const WarpgroupAtom& atom, const MatrixTile& tile,
                   const MatrixDescriptor& descriptor) {
    ElementAccess first{tensors_.at(tile.tensor), tile.subscripts, {}};
    const std::optional<isl::pw_aff> offset = view.offset(first);
    check_same(leaf, view, offset, Group::kWarpgroup, "tile");
    const int64_t row = row_elements(first.tensor->type.bytes()), pattern = 8 * row;
    if (descriptor.mn_major) {
      check_multiple(leaf, view, offset, pattern, "tile");
      return check_multiple(leaf, view, view.value(tile.subscripts[static_cast<size_t>(tile.mn_dimension)]), row,
                            "tile's row or column");
    }
    const std::optional<isl::pw_aff> k = view.value(tile.subscripts[static_cast<size_t>(tile.k_dimension)]);
    check_multiple(leaf, view, k, atom.k(), "tile's k");
    if (offset && k) check_multiple(leaf, view, offset->sub(*k), pattern, "tile");
  }

  void check_multiple(const Leaf& leaf, const AffineView& view, const std::optional<isl::pw_aff>& value, int64_t of,
                      const char* what) {
    if (!value) {
      result_.unproved.push_back(fmt::format("{}: the {} in '{}' is not affine", kernel_.name, what, leaf.text()));
      return;
    }
    const isl::set crooked =
        view.domain().intersect(value->mod(isl::val(context_.get(), static_cast<long>(of))).gt_set(view.constant(0)));
    if (crooked.is_empty()) return;
    (view.exact() ? result_.faults : result_.unproved)
        .push_back(fmt::format("{}: the {} in '{}' is no multiple of {} for {}", kernel_.name, what, leaf.text(), of,
                               view.describe(crooked.sample_point())));
  }

  /// A value is the same for all threads of a group.
  void check_same(const Leaf& leaf, const AffineView& view, const std::optional<isl::pw_aff>& value, Group group,
                  const char* what) {
    if (!value) {
      result_.unproved.push_back(fmt::format("{}: the {} in '{}' is not affine", kernel_.name, what, leaf.text()));
      return;
    }
    const isl::map values = isl::manage(isl_map_from_pw_aff(value->copy())).intersect_domain(view.domain());
    const isl::map differ = isl::manage(isl_map_read_from_str(context_.get().get(), "{ [x] -> [y] : x < y }"));
    const isl::map unequal = values.apply_range(differ).apply_range(values.reverse());
    if (unequal.intersect(neighbours(view, group)).is_empty()) return;
    (view.exact() ? result_.faults : result_.unproved)
        .push_back(fmt::format("{}: the {} in '{}' differs between threads of a {}", kernel_.name, what, leaf.text(),
                               name_of(group)));
  }

  int64_t threads() const { return kernel_.block[0] * kernel_.block[1] * kernel_.block[2]; }

  void check_together(const Leaf& leaf, Group group) {
    const size_t faults = result_.faults.size();
    check_uniform(leaf, group);
    if (result_.faults.size() == faults) ++checks_.together;
  }

  /// The path's conditions and trip counts are the same for all threads of a group.
  void check_uniform(const Leaf& leaf, Group group) {
    Path loops_only = leaf.path;
    loops_only.conditions.clear();
    const AffineView view(context_.get(), kernel_, loops_only, &uniform_);
    const auto fault = [&](const std::string& what) {
      result_.faults.push_back(fmt::format("{}: '{}' is reached by some threads of a {} only: {} differs between them",
                                           kernel_.name, leaf.text(), name_of(group), what));
    };
    isl::set domain = view.domain();
    for (const Expr& condition : leaf.path.conditions) {
      const std::optional<isl::set> where = view.holds(condition);
      if (!where) {
        if (depends_on_threads(condition, leaf.path)) fault(fmt::format("'{}'", ir::to_text(condition)));
        continue;
      }
      const isl::set others = domain.subtract(*where);
      domain = domain.intersect(*where);
      if (!pairs(domain, others, view, group).is_empty()) {
        fault(fmt::format("'{}'", ir::to_text(condition)));
      }
    }
    for (size_t l = 0; l < leaf.path.loops.size(); ++l)
      check_trips(leaf, view, domain, static_cast<int>(l), group, fault);
  }

  template <typename Fault>
  void check_trips(const Leaf& leaf, const AffineView& view, const isl::set& domain, int position, Group group,
                   Fault fault) {
    const For& loop = *leaf.path.loops[static_cast<size_t>(position)].loop;
    const std::string what = fmt::format("the number of iterations of '{}'", loop.variable);
    const std::optional<isl::pw_aff> trips = view.trip_count(position);
    if (!trips) {
      if (depends_on_threads(loop.begin, leaf.path) || depends_on_threads(loop.end, leaf.path)) fault(what);
      return;
    }
    const isl::map counts = isl::manage(isl_map_from_pw_aff(trips->copy())).intersect_domain(domain);
    const isl::map differ = isl::manage(isl_map_read_from_str(context_.get().get(), "{ [x] -> [y] : x < y }"));
    const isl::map unequal = counts.apply_range(differ).apply_range(counts.reverse());
    if (!unequal.intersect(neighbours(view, group)).is_empty()) fault(what);
  }

  isl::map pairs(const isl::set& from, const isl::set& to, const AffineView& view, Group group) const {
    return neighbours(view, group).intersect_domain(from).intersect_range(to);
  }

  /// { x -> y }: two threads of a group, in the same iteration of all loops.
  isl::map neighbours(const AffineView& view, Group group) const {
    const isl::set all = view.universe();
    isl::map result = isl::manage(isl_map_from_domain_and_range(all.copy(), all.copy()));
    const auto dimensions = static_cast<int>(isl_set_dim(all.get(), isl_dim_set));
    for (int d = 0; d < dimensions; ++d) {
      const bool thread = d >= view.block_dimensions() && d < view.block_dimensions() + view.thread_dimensions();
      if (!thread) result = isl::manage(isl_map_equate(result.release(), isl_dim_in, d, isl_dim_out, d));
    }
    if (group == Group::kBlock) return result;
    const isl::map numbers = isl::manage(isl_map_from_pw_aff(view.thread_number().release()));
    const std::string text = fmt::format("{{ [x] -> [y] : floor(x/{0}) = floor(y/{0}) }}", static_cast<int>(group));
    const isl::map same = isl::manage(isl_map_read_from_str(context_.get().get(), text.c_str()));
    return result.intersect(numbers.apply_range(same).apply_range(numbers.reverse()));
  }

  /// By name; what reads memory that may be written does too.
  bool depends_on_threads(const Expr& e, const Path& path) const {
    struct Visitor : hi::IRVisitor {
      const Prover& prover;
      const Path& path;
      bool found = false;
      Visitor(const Prover& p, const Path& q) : prover(p), path(q) {}
      using hi::IRVisitor::visit;
      void visit(const hi::Variable* op) override {
        for (const char* name : kThread) found |= op->name == name;
        for (const EnclosingLoop& loop : path.loops) {
          if (loop.loop->variable == op->name) loop.loop->begin.accept(this);
        }
        if (const auto let = path.lets.find(op->name); let != path.lets.end()) let->second.accept(this);
      }
      void visit(const hi::Call* op) override {
        for (const Tensor& tensor : prover.kernel_.tensors) {
          if (tensor.name == op->name && !tensor.written) return hi::IRVisitor::visit(op);
        }
        found |= tensors_of(prover.kernel_).count(op->name) != 0;
        hi::IRVisitor::visit(op);
      }
    } visitor(*this, path);
    e.accept(&visitor);
    return visitor.found;
  }

  /// True if all subscripts are proved to lie in the tensor.
  bool check_bounds(const Leaf& leaf, const AffineView& view, const ElementAccess& access) {
    // What a box has outside of a global tensor is not touched.
    if (!access.lengths.empty() && access.tensor->memory == Memory::kGlobal) return true;
    bool exact = true, proved = true;
    const isl::set instances = view.instances(access, exact);
    for (size_t i = 0; i < access.subscripts.size(); ++i) {
      const int64_t extent = product(access.tensor->layout.shape()[static_cast<int>(i)]);
      const int64_t length = !access.lengths.empty()                   ? access.lengths[i]
                             : static_cast<int>(i) == access.dimension ? access.elements
                                                                       : 1;
      const std::optional<isl::pw_aff> at = view.value(access.subscripts[i]);
      const std::string subscript = ir::to_text(access.subscripts[i]);
      if (!at) {
        result_.unproved.push_back(fmt::format("{}: the subscript '{}' of '{}' in '{}' is not affine", kernel_.name,
                                               subscript, access.tensor->name, leaf.text()));
        proved = false;
        continue;
      }
      const isl::set outside =
          instances.intersect(at->lt_set(view.constant(0)).unite(at->gt_set(view.constant(extent - length))));
      if (outside.is_empty()) continue;
      proved = false;
      (exact ? result_.faults : result_.unproved)
          .push_back(fmt::format("{}: the subscript '{}' of '{}' in '{}' leaves [0, {}) for {}", kernel_.name,
                                 subscript, access.tensor->name, leaf.text(), extent,
                                 view.describe(outside.sample_point())));
    }
    return proved;
  }

  /// Of a vector. True if it is proved to start at a multiple of its size.
  bool check_alignment(const Leaf& leaf, const AffineView& view, const ElementAccess& access) {
    bool exact = true;
    const isl::set instances = view.instances(access, exact);
    const std::optional<isl::pw_aff> offset = view.offset(access);
    if (!offset) {
      result_.unproved.push_back(fmt::format("{}: '{}' has an offset in '{}' that is not affine", kernel_.name,
                                             leaf.text(), access.tensor->name));
      return false;
    }
    const isl::set crooked =
        instances.intersect(offset->mod(isl::val(context_.get(), access.elements)).gt_set(view.constant(0)));
    if (crooked.is_empty()) return true;
    (exact ? result_.faults : result_.unproved)
        .push_back(fmt::format("{}: the offset of '{}' in '{}' is no multiple of {} for {}", kernel_.name,
                               access.tensor->name, leaf.text(), access.elements,
                               view.describe(crooked.sample_point())));
    return false;
  }

  const Kernel& kernel_;
  Verification& result_;
  KernelChecks& checks_;
  IslContext context_;
  Flow flow_;
  std::set<std::string> uniform_ = uniform_lets(kernel_, flow_);
  std::map<std::string, const Tensor*> tensors_ = tensors_of(kernel_);
};

}  // namespace

Verification verify(const Program& program, const Limits& limits) {
  Verification result;
  bool is_program = true;
  for (const Kernel& kernel : program.kernels) {
    std::vector<std::string> faults = structure_faults(kernel, limits);
    if (faults.empty()) faults = place_faults(kernel);
    KernelChecks& checks = result.kernels.emplace_back();
    if (faults.empty()) {
      Prover(kernel, result, checks).run();
    } else {
      is_program = checks.structured = false;
      result.faults.insert(result.faults.end(), faults.begin(), faults.end());
    }
  }
  if (!is_program) return result;
  result.checked_promises = true;
  for (std::string& fault : promise_faults(program)) {
    for (size_t k = 0; k < program.kernels.size(); ++k) {
      result.kernels[k].broken_promises += fault.starts_with(program.kernels[k].name + ":") ? 1 : 0;
    }
    result.faults.push_back(std::move(fault));
  }
  return result;
}

}  // namespace tc::tile
