#include "tc/tile/holders.h"

#include <fmt/format.h>
#include <isl/aff.h>
#include <isl/id.h>
#include <isl/map.h>
#include <isl/set.h>
#include <isl/space.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "tc/tile/digits.h"

namespace tc::tile {
namespace {

using Halide::Expr;

bool is_global(const ElementAccess& access) { return access.tensor->memory == Memory::kGlobal; }

/// For each name, the loops around each of its allocations.
using Scopes = std::map<std::string, std::vector<std::set<const For*>>>;

void find_scopes(const NodePtr& node, std::set<const For*> around, Scopes& scopes) {
  if (!node) return;
  match(
      *node, [&](const For& n) { around.insert(&n); },
      [&](const Allocate& n) { scopes[n.tensor.name].push_back(around); },
      [](const OneOf<Sequence, If, Let, Ring> auto&) {}, [](const Synchronisation auto&) {}, [](const Spec auto&) {});
  for_each_child(*node, [&](const NodePtr& child) { find_scopes(child, around, scopes); });
}

/// The same without vectors: an access for each element.
std::vector<ElementAccess> elements_of(const ElementAccess& access) {
  std::vector<ElementAccess> result;
  for (int e = 0; e < access.elements; ++e) {
    result.push_back(access);
    result.back().elements = 1;
    if (e == 0) continue;
    Expr& subscript = result.back().subscripts.at(static_cast<size_t>(access.dimension));
    subscript = subscript + Halide::Internal::make_const(subscript.type(), e);
  }
  return result;
}

/// A leaf with isl's view of it.
struct Viewed {
  Viewed(isl::ctx ctx, const Kernel& kernel, const Kernel& alone, const Leaf& own)
      : leaf(in_digits(kernel, own)), view(ctx, alone, leaf.path) {}
  DigitLeaf leaf;
  AffineView view;  ///< refers to the leaf
};

class Checker {
 public:
  Checker(const Kernel& kernel, const Flow& flow, const Work& work, IslContext& context)
      : kernel_(kernel), alone_(alone(kernel)), flow_(flow), work_(work), context_(context) {
    find_scopes(kernel.body, {}, scopes_);
  }

  Holders run() {
    std::map<std::string, Memory> locals;
    std::set<std::string> in_regions;
    for (const Leaf& leaf : flow_.leaves) {
      for (const ElementAccess& access : leaf.accesses) {
        if (is_global(access)) continue;
        locals.emplace(access.tensor->name, access.tensor->memory);
        if (access.region) in_regions.insert(access.tensor->name);
      }
    }
    for (const auto& [name, memory] : locals) {
      const std::optional<std::string> tensor =
          memory == Memory::kRegister && in_regions.count(name) == 0 ? proved_tensor(name) : std::nullopt;
      if (tensor) {
        result_.tensors.emplace(name, *tensor);
      } else {
        result_.unproved.push_back(name);
      }
    }
    return std::move(result_);
  }

 private:
  /// What a register holds: { [block, thread, loops around the allocation, subscripts] -> element }.
  struct Held {
    std::string tensor;
    isl::map elements;
    unsigned owners;  ///< how many coordinates stand before the subscripts
  };

  /// The tensor whose elements a register holds. None if it is not proved to hold what is read from it.
  std::optional<std::string> proved_tensor(const std::string& name) {
    context_.reset();
    try {
      const std::optional<Held> held = held_by(name);
      if (!held || !held->elements.is_single_valued() || !is_held_once(*held)) return std::nullopt;
      if (!all_want_it(name, *held)) return std::nullopt;
      return held->tensor;
    } catch (const isl::exception&) {
      if (!context_.is_exhausted()) throw;
      return std::nullopt;
    }
  }

  /// Whether each owner has one place for an element: what starts a sum, adds to it and stores it use the same.
  static bool is_held_once(const Held& held) {
    isl_map* owner = isl_set_identity(held.elements.domain().release());
    const auto all = static_cast<unsigned>(isl_map_dim(owner, isl_dim_out));
    owner = isl_map_project_out(owner, isl_dim_out, held.owners, all - held.owners);
    return isl::manage(isl_map_flat_range_product(held.elements.copy(), owner)).is_injective();
  }

  const Viewed& viewed(const Leaf& leaf) {
    std::unique_ptr<Viewed>& known = viewed_[&leaf];
    if (!known) known = std::make_unique<Viewed>(context_.get(), kernel_, alone_, leaf);
    return *known;
  }

  const Work::Statement* statement_of(const Leaf& leaf) const {
    if (!leaf.node->instances) return nullptr;
    const auto found = std::find_if(work_.statements.begin(), work_.statements.end(),
                                    [&](const Work::Statement& s) { return s.id == leaf.node->instances->statement; });
    return found == work_.statements.end() ? nullptr : &*found;
  }

  isl::map map_of(const std::string& text) const {
    return isl::manage(isl_map_read_from_str(context_.get().get(), text.c_str()));
  }
  isl::set set_of(const std::string& text) const {
    return isl::manage(isl_set_read_from_str(context_.get().get(), text.c_str()));
  }
  static int dimensions_of(const isl::map& map) { return static_cast<int>(isl_map_dim(map.get(), isl_dim_out)); }
  static isl::map with_range(const isl::map& map, const std::string& name) {
    return isl::manage(isl_map_set_tuple_name(map.copy(), isl_dim_out, name.c_str()));
  }

  /// { instance -> [block, thread, loops around the allocation, subscripts] }. None if it is not affine.
  std::optional<isl::map> place_of(const Viewed& v, const ElementAccess& access) const {
    std::vector<Expr> owner = v.leaf.owner;
    const std::set<const For*>& around = scopes_.at(access.tensor->name).front();
    for (size_t l = 0; l < v.leaf.iterations.size(); ++l) {
      if (around.count(v.leaf.leaf->path.loops[l].loop)) owner.push_back(v.leaf.iterations[l]);
    }
    bool exact = v.view.exact();
    const std::optional<isl::map> own = values_at(v.view, owner);
    const isl::map place = v.view.relation(access, exact);
    if (!own || !exact) return std::nullopt;
    return isl::manage(isl_map_flat_range_product(own->copy(), place.copy()));
  }

  /// { instance -> S[i] } of the `point`-th of those that an operation carries out.
  std::optional<isl::map> instances_of(const Viewed& v, const Work::Statement& statement, size_t point) const {
    const std::optional<isl::map> values = values_at(v.view, v.leaf.points.at(point));
    if (!values) return std::nullopt;
    return with_range(*values, statement.id);
  }

  /// The element that a statement writes, for instances outside of its domain, too: those may not use the register of
  /// another. None if it is no function of the instance alone.
  std::optional<isl::map> written_by(const Work::Statement& statement, const isl::map& instances,
                                     std::string& tensor) const {
    for (const Work::Access& access : statement.accesses) {
      if (!access.is_write) continue;
      if (!access.exact) return std::nullopt;
      tensor = access.tensor;
      const isl::map everywhere =
          isl::manage(isl_map_gist_domain(map_of(access.relation).release(), set_of(statement.domain).release()));
      const isl::map elements = instances.apply_range(everywhere);
      if (!instances.domain().is_subset(elements.domain())) return std::nullopt;
      return elements;
    }
    return std::nullopt;
  }

  /// Of all that is written to a register, whose it is. None if some of it is not known.
  std::optional<Held> held_by(const std::string& name) {
    const auto [known, is_new] = held_.try_emplace(name);  // none for one that is copied to itself
    if (is_new) known->second = find_held(name);
    return known->second;
  }

  std::optional<Held> find_held(const std::string& name) {
    if (scopes_.at(name).size() != 1) return std::nullopt;  // registers of their own, with one name
    std::optional<Held> held;
    for (const Leaf& own : flow_.leaves) {
      if (!touches(own, name, true) || is_constant(own)) continue;
      const Viewed& v = viewed(own);
      std::vector<ElementAccess> places = accesses_to(v.leaf, name, true);
      for (size_t i = 0; i < places.size(); ++i) {
        std::string tensor;
        const std::optional<isl::map> place = place_of(v, places[i]);
        const std::optional<isl::map> elements = place ? elements_at(own, v, i, tensor) : std::nullopt;
        if (!elements) return std::nullopt;
        const isl::map one = place->reverse().apply_range(*elements);
        if (!held) {
          const auto subscripts = static_cast<int>(places[i].subscripts.size());
          held = Held{tensor, one, static_cast<unsigned>(dimensions_of(*place) - subscripts)};
        } else if (held->tensor == tensor && dimensions_of(held->elements) == dimensions_of(one)) {
          held->elements = held->elements.unite(one);
        } else {
          return std::nullopt;
        }
      }
    }
    return held;
  }

  /// { instance -> element } of the value that an operation writes to the `i`-th of its places.
  std::optional<isl::map> elements_at(const Leaf& own, const Viewed& v, size_t i, std::string& tensor) {
    if (own.node->instances) {
      const Work::Statement* statement = statement_of(own);
      const size_t points = v.leaf.points.size();
      if (!statement || i >= points || !is_of_one_element(*statement, *own.node->instances)) return std::nullopt;
      const std::optional<isl::map> instances = instances_of(v, *statement, i);
      return instances ? written_by(*statement, *instances, tensor) : std::nullopt;
    }
    std::vector<ElementAccess> sources;
    for (const ElementAccess& access : v.leaf.accesses) {
      if (!access.is_write) std::ranges::move(elements_of(access), std::back_inserter(sources));
    }
    if (sources.size() <= i || sources.size() != written_places(v.leaf)) return std::nullopt;
    if (!is_global(sources[i])) return elements_of_copy(v, sources[i], tensor);
    tensor = sources[i].tensor->name;
    bool exact = true;
    const isl::map elements = v.view.relation(sources[i], exact);
    if (!exact) return std::nullopt;
    return elements;
  }

  /// { instance -> element } of what an operation copies from another register.
  std::optional<isl::map> elements_of_copy(const Viewed& v, const ElementAccess& source, std::string& tensor) {
    if (source.tensor->memory != Memory::kRegister) return std::nullopt;
    const std::optional<Held> held = held_by(source.tensor->name);
    const std::optional<isl::map> place = held ? place_of(v, source) : std::nullopt;
    if (!place || !held->elements.is_single_valued()) return std::nullopt;
    tensor = held->tensor;
    const isl::map elements = place->apply_range(held->elements);
    if (!place->domain().is_subset(elements.domain())) return std::nullopt;
    return elements;
  }

  /// Whether the instances in each box write one element.
  static bool is_of_one_element(const Work::Statement& statement, const Instances& instances) {
    for (size_t d = 0; d < instances.lengths.size(); ++d) {
      if (instances.lengths[d] > 1 && (d >= statement.reduced.size() || !statement.reduced[d])) return false;
    }
    return true;
  }

  bool all_want_it(const std::string& name, const Held& held) {
    for (const Leaf& own : flow_.leaves) {
      if (!touches(own, name, false)) continue;
      if (!is_sum_of(*own.node, name) && !wants_it(own, name, held)) return false;
    }
    return true;
  }

  /// Whether an operation wants what it reads. One that writes to other registers says nothing: those are not proved.
  bool wants_it(const Leaf& own, const std::string& name, const Held& held) {
    const Work::Statement* statement = statement_of(own);
    const bool stores = std::any_of(own.accesses.begin(), own.accesses.end(),
                                    [](const ElementAccess& access) { return access.is_write && is_global(access); });
    if (!statement && !stores) return !own.node->instances;
    const auto is_other = [&](const ElementAccess& access) { return !access.is_write && access.tensor->name != name; };
    if (!statement && std::any_of(own.accesses.begin(), own.accesses.end(), is_other)) return false;
    const Viewed& v = viewed(own);
    const std::vector<ElementAccess> places = accesses_to(v.leaf, name, false);
    for (size_t i = 0; i < places.size(); ++i) {
      const std::optional<isl::map> place = place_of(v, places[i]);
      const std::optional<isl::map> wanted = !place      ? std::nullopt
                                             : statement ? wanted_by(*statement, v, held)
                                                         : stored_at(v, i, places.size(), held);
      if (!wanted || !agrees(own, name, held, *place, *wanted)) return false;
    }
    return true;
  }

  bool agrees(const Leaf& own, const std::string& name, const Held& held, const isl::map& place,
              const isl::map& wanted) {
    if (dimensions_of(wanted) != dimensions_of(held.elements) || !wanted.is_single_valued()) return false;
    const isl::map found = place.intersect_domain(wanted.domain()).apply_range(held.elements);
    if (!wanted.domain().is_subset(found.domain())) return false;
    if (found.is_subset(wanted)) return true;
    result_.faults.push_back(fmt::format("{}: '{}' takes a value of '{}' from '{}' that is of another element",
                                         kernel_.name, own.text(), held.tensor, name));
    return false;
  }

  /// { instance -> elements of the tensor } that an instance of a statement names.
  std::optional<isl::map> wanted_by(const Work::Statement& statement, const Viewed& v, const Held& held) const {
    if (v.leaf.points.size() != 1) return std::nullopt;
    const std::optional<isl::map> all = instances_of(v, statement, 0);
    if (!all) return std::nullopt;
    const isl::map instances = all->intersect_range(set_of(statement.domain));
    std::optional<isl::map> result;
    for (const Work::Access& access : statement.accesses) {
      if (access.tensor != held.tensor) continue;
      if (!access.exact) return std::nullopt;
      const isl::map elements = instances.apply_range(map_of(access.relation));
      result = result ? result->unite(elements) : elements;
    }
    return result;
  }

  /// { instance -> element } where an operation copies the `i`-th of the values that it reads to.
  std::optional<isl::map> stored_at(const Viewed& v, size_t i, size_t count, const Held& held) const {
    std::vector<ElementAccess> targets;
    for (const ElementAccess& access : v.leaf.accesses) {
      if (access.is_write) std::ranges::move(elements_of(access), std::back_inserter(targets));
    }
    if (targets.size() != count || targets[i].tensor->name != held.tensor) return std::nullopt;
    bool exact = true;
    const isl::map result = v.view.relation(targets[i], exact);
    if (!exact) return std::nullopt;
    return result;
  }

  static bool touches(const Leaf& leaf, const std::string& name, bool is_write) {
    return std::any_of(leaf.accesses.begin(), leaf.accesses.end(), [&](const ElementAccess& access) {
      return access.tensor->name == name && access.is_write == is_write;
    });
  }
  /// Whether an operation, which carries out no statement, writes a constant: the start of a reduction.
  static bool is_constant(const Leaf& leaf) {
    if (leaf.node->instances) return false;
    return match(
        *leaf.node, [](const Store& n) { return Halide::Internal::is_const(n.value); },
        [](const OneOf<Atomic, Move, BoxCopy, BoxStore, ClusterLoad> auto&) { return false; },
        [](const Collective auto&) { return false; }, [](const Structure auto&) { return false; },
        [](const Synchronisation auto&) { return false; });
  }
  /// Whether a product of tiles reads the registers only to add to them, which are those that its instances write.
  static bool is_sum_of(const Node& node, const std::string& name) {
    return match(
        node,
        [&](const MatMul& n) {
          return node.instances && n.d.tensor == name && n.a.tensor != name && n.b.tensor != name;
        },
        [](const OneOf<Store, Atomic, Move, Shuffle, MatrixLoad, MatrixStore, BoxCopy, BoxStore, ClusterLoad,
                       WarpgroupMatMul> auto&) { return false; },
        [](const Structure auto&) { return false; }, [](const Synchronisation auto&) { return false; });
  }
  static std::vector<ElementAccess> accesses_to(const DigitLeaf& leaf, const std::string& name, bool is_write) {
    std::vector<ElementAccess> result;
    for (const ElementAccess& access : leaf.accesses) {
      if (access.tensor->name != name || access.is_write != is_write) continue;
      std::ranges::move(elements_of(access), std::back_inserter(result));
    }
    return result;
  }
  static size_t written_places(const DigitLeaf& leaf) {
    size_t result = 0;
    for (const ElementAccess& access : leaf.accesses) {
      result += access.is_write ? static_cast<size_t>(access.elements) : 0;
    }
    return result;
  }

  const Kernel& kernel_;
  Kernel alone_;
  const Flow& flow_;
  const Work& work_;
  IslContext& context_;
  Scopes scopes_;
  std::map<const Leaf*, std::unique_ptr<Viewed>> viewed_;
  std::map<std::string, std::optional<Held>> held_;
  Holders result_;
};

}  // namespace

Holders check_holders(const Kernel& kernel, const Flow& flow, const Work& work, IslContext& context) {
  return Checker(kernel, flow, work, context).run();
}

}  // namespace tc::tile
