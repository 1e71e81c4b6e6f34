#include "tc/tile/holders.h"

#include <fmt/format.h>
#include <isl/aff.h>
#include <isl/id.h>
#include <isl/map.h>
#include <isl/set.h>
#include <isl/space.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tc/tile/value_views.h"

namespace tc::tile {
namespace {

namespace hi = Halide::Internal;

bool is_global(const Place& place) { return place.tensor->memory == Memory::kGlobal; }

unsigned inputs(const isl::map& map) { return static_cast<unsigned>(isl_map_dim(map.get(), isl_dim_in)); }
isl::map with_range(const isl::map& map, const std::string& name) {
  return isl::manage(isl_map_set_tuple_name(map.copy(), isl_dim_out, name.c_str()));
}

/// The affine function that says all of a map, everywhere. None if there is none.
std::optional<isl::map> affine_function(const isl::map& map) {
  if (isl_map_n_basic_map(map.get()) == 1 && isl_map_plain_is_single_valued(map.get()) == isl_bool_true) return map;
  const isl::map hull = isl::manage(isl_map_from_basic_map(isl_map_unshifted_simple_hull(map.copy())));
  if (isl_map_plain_is_single_valued(hull.get()) != isl_bool_true) return std::nullopt;
  return hull;
}
/// A map that is a function, in few pieces. Its domain lies in `all`. None if it is no function.
std::optional<isl::map> function(const isl::map& scattered, const isl::set& all) {
  const isl::map map = scattered.coalesce();
  if (const std::optional<isl::map> affine = affine_function(map)) {
    const isl::set domain = map.domain();
    return affine->intersect_domain(all.is_subset(domain) ? all : domain.coalesce());
  }
  if (!map.is_single_valued()) return std::nullopt;
  return map;
}
bool is_within(const isl::set& set, const isl::map& map) { return set.is_subset(map.domain()); }

class Checker {
 public:
  Checker(const Kernel& kernel, const Flow& flow, const Work& work, unsigned long operations)
      : kernel_(kernel), flow_(flow), work_(work), context_(operations) {
    for (int leaf = 0; leaf < std::ssize(flow.leaves); ++leaf) {
      for (Value& value : values_of(kernel, flow, leaf)) values_.push_back(std::move(value));
    }
    views_.emplace(kernel, flow, context_.get(), values_);
    for (Value& value : values_) {
      for (const Place& place : value.to) enter(value, place, true);
      for (const Place& place : value.from) enter(value, place, false);
    }
  }

  Holders run() {
    for (int round = 0; round < 2; ++round) {  // some wait for others
      for (const auto& [name, local] : locals_) attempt([&] { looked_at(name); });
    }
    for (int leaf = 0; leaf < std::ssize(flow_.leaves); ++leaf) check_reads(leaf);
    for (const auto& [name, local] : locals_) {
      if (local.held && !local.misread) {
        result_.tensors.emplace(name, local.held->tensors);
        const auto into_global = [](const Value* v) { return v->combines && !v->to.empty() && is_global(v->to[0]); };
        if (std::ranges::any_of(local.writes, &Value::combines) || std::ranges::any_of(local.reads, into_global)) {
          result_.parted.push_back(name);
        }
      } else {
        result_.unproved.push_back(name);
      }
    }
    return std::move(result_);
  }

 private:
  /// What a tensor holds: { [owner, iterations, turn, subscripts] -> element }.
  struct Held {
    std::set<std::string> tensors;  ///< whose elements
    isl::map elements;
    bool at_once = true;  ///< false: in time, one after the other; `elements` has no meaning
  };
  enum class State { kNew, kInProgress, kKnown };
  /// A tensor of registers or of shared memory.
  struct Local {
    const Tensor* tensor = nullptr;
    std::vector<const Value*> writes, reads;
    std::vector<EnclosingLoop> loops;  ///< around all of them
    State state = State::kNew;
    bool misread = false;
    bool may_assume = true;
    std::optional<Held> assumed;  ///< while it is looked at
    bool rests_on_it = false;     ///< something does
    std::optional<Held> held;     ///< none: not known
  };

  void enter(const Value& value, const Place& place, bool is_write) {
    if (is_global(place)) return;
    Local& local = locals_[place.tensor->name];
    const std::vector<EnclosingLoop>& own = leaf_of(value).path.loops;
    if (!local.tensor) {
      local.tensor = place.tensor;
      local.loops = own;
    }
    size_t common = 0;
    while (common < std::min(own.size(), local.loops.size()) && own[common].id == local.loops[common].id) ++common;
    local.loops.resize(common);
    (is_write ? local.writes : local.reads).push_back(&value);
  }

  const Leaf& leaf_of(const Value& value) const { return flow_.leaves[static_cast<size_t>(value.leaf)]; }

  // --- elements ---------------------------------------------------------------------------------------------------

  const Work::Statement* statement_of(const Value& value) const {
    const auto found = std::ranges::find(work_.statements, value.statement, &Work::Statement::id);
    return found == work_.statements.end() ? nullptr : &*found;
  }
  isl::map read_map(const std::string& text) const {
    return isl::manage(isl_map_read_from_str(context_.get().get(), text.c_str()));
  }
  isl::set read_set(const std::string& text) const {
    return isl::manage(isl_set_read_from_str(context_.get().get(), text.c_str()));
  }

  /// { instance -> S[i] } that a value carries out.
  std::optional<isl::map> instances_of(const Value& value) {
    const std::optional<isl::map> values = views_->map_of(value, value.instance);
    if (!values) return std::nullopt;
    return with_range(*values, value.statement);
  }

  /// Whose element something is: { instance -> element }.
  struct Elements {
    std::string tensor;
    isl::map map;
    std::optional<isl::set> started = {};  ///< instances that find the start of a sum
  };

  /// The element that a statement writes, for instances outside of its domain, too: those may not use the place of
  /// another. None if it is no function of the instance alone.
  std::optional<Elements> written_by(const Work::Statement& statement, const isl::map& instances) const {
    for (const Work::Access& access : statement.accesses) {
      if (!access.is_write) continue;
      if (!access.exact) return std::nullopt;
      const isl::map everywhere =
          isl::manage(isl_map_gist_domain(read_map(access.relation).release(), read_set(statement.domain).release()));
      const isl::map elements = instances.apply_range(everywhere);
      if (!is_within(instances.domain(), elements)) return std::nullopt;
      return Elements{access.tensor, elements};
    }
    return std::nullopt;
  }

  /// Where a value touches a tensor, in the iterations of the loops around all that do.
  std::optional<isl::map> key_of(const Value& value, const Place& place) {
    return views_->key_of(value, place, locals_.at(place.tensor->name).loops);
  }

  /// The elements that an operation reads from a place.
  std::optional<Elements> elements_read(const Value& value, const Place& from) {
    if (const auto known = elements_read_.find(&from); known != elements_read_.end()) return known->second;
    const int before = waited_;
    std::optional<Elements> found = find_elements(value, from);
    if (found || waited_ == before) elements_read_[&from] = found;
    return found;
  }
  std::optional<Elements> find_elements(const Value& value, const Place& from) {
    const std::optional<isl::set> when = views_->reading(value, from);
    if (!when) return std::nullopt;
    if (is_global(from)) {
      const std::optional<isl::map> map = views_->map_of(value, from.subscripts);
      if (!map || !is_injective(from.tensor->layout)) return std::nullopt;
      return Elements{from.tensor->name, map->intersect_domain(*when)};
    }
    const Local& local = looked_at(from.tensor->name);
    const std::optional<Held>& held = local.state == State::kInProgress ? local.assumed : local.held;
    if (local.state == State::kKnown && !held) return std::nullopt;
    if (!held || !held->at_once) return elements_in_time(value, from, local, *when);
    if (local.state == State::kInProgress) locals_.at(from.tensor->name).rests_on_it = true;
    const std::optional<isl::map> key = key_of(value, from);
    if (!key || inputs(held->elements) != outputs(*key)) return std::nullopt;
    return Elements{*held->tensors.begin(), key->intersect_domain(*when).apply_range(held->elements)};
  }

  // --- what a tensor holds ----------------------------------------------------------------------------------------

  /// Calls `check`, unless isl has given up. False if it does.
  template <typename Check>
  bool attempt(Check check) {
    if (gave_up_) return false;
    context_.reset();
    try {
      check();
    } catch (const isl::exception&) {
      if (!context_.is_exhausted()) throw;
      gave_up_ = true;
    }
    return !gave_up_;
  }

  const Local& looked_at(const std::string& name) {
    Local& local = locals_.at(name);
    if (local.state != State::kNew) return local;
    local.state = State::kInProgress;
    const int before = waited_;
    if (local.may_assume) local.assumed = assumed_of(local);
    local.held = held_by(local);
    if (local.rests_on_it && !(local.held && local.held->at_once && local.held->tensors == local.assumed->tensors &&
                               local.held->elements.is_subset(local.assumed->elements))) {
      local.may_assume = local.rests_on_it = false;
      forget();
      local.state = State::kInProgress;
      local.assumed.reset();
      local.held = held_by(local);
    }
    local.assumed.reset();
    local.state = local.held || waited_ == before ? State::kKnown : State::kNew;
    return local;
  }
  /// Takes back what has been found, for it may rest on what does not hold.
  void forget() {
    for (auto& [name, local] : locals_) {
      if (local.state != State::kKnown) continue;
      local.state = State::kNew;
      local.held.reset();
    }
    elements_written_.clear();
    elements_read_.clear();
  }

  /// Of sums, which go round between places: by induction over time, a place holds the element that the function names
  /// which holds where statements write, if all that is written agrees.
  std::optional<Held> assumed_of(const Local& local) {
    if (!has_places(local)) return std::nullopt;
    std::set<std::string> tensors;
    std::optional<isl::map> all;
    std::optional<isl::set> places;
    for (const Value* value : local.writes) {
      if (!value->known) return std::nullopt;
      const std::optional<isl::map> place = key_of(*value, value->to[0]);
      if (!place) return std::nullopt;
      places = places ? places->unite(place->range()) : place->range();
      if (value->statement.empty()) continue;
      const std::optional<Elements> elements = elements_written(*value);
      if (!elements) return std::nullopt;
      tensors.insert(elements->tensor);
      if (tensors.size() > 1) return std::nullopt;
      const isl::map one = place->reverse().apply_range(elements->map);
      all = all ? all->unite(one) : one;
    }
    if (!all) return std::nullopt;
    const isl::map hull = isl::manage(isl_map_from_basic_map(isl_map_affine_hull(all->release())));
    if (isl_map_plain_is_single_valued(hull.get()) != isl_bool_true) return std::nullopt;
    return Held{tensors, hull.intersect_domain(places->coalesce())};
  }

  /// Whether a value starts a sum, or fills a place with zeros.
  static bool is_constant(const Value& value) {
    return value.statement.empty() && value.from.empty() && !value.combines;
  }
  static bool is_of(const Place& place, const Local& local) { return place.tensor->name == local.tensor->name; }

  /// { instance -> element } of what a value writes. None if that is not known, or is looked for just now.
  std::optional<Elements> elements_written(const Value& value) {
    if (const auto known = elements_written_.find(&value); known != elements_written_.end()) return known->second;
    if (!in_progress_.insert(&value).second) {
      ++waited_;
      return std::nullopt;
    }
    const int before = waited_;
    std::optional<Elements> found = find_written(value);
    in_progress_.erase(&value);
    if (found || waited_ == before) elements_written_[&value] = found;
    return found;
  }
  std::optional<Elements> find_written(const Value& value) {
    if (!value.known || value.to.size() != 1) return std::nullopt;
    if (!value.statement.empty()) {
      const Work::Statement* statement = statement_of(value);
      const std::optional<isl::map> instances = statement ? instances_of(value) : std::nullopt;
      return instances ? written_by(*statement, *instances) : std::nullopt;
    }
    // What it adds to comes last, and only if nothing else says which element it is.
    std::vector<const Place*> sources;
    for (const Place& from : value.from) sources.push_back(&from);
    std::ranges::stable_partition(sources, [&](const Place* p) { return p->tensor != value.to[0].tensor; });
    std::optional<Elements> all;
    const isl::set& domain = views_->view(value).domain();
    for (const Place* from : sources) {
      const bool is_own = from->tensor == value.to[0].tensor;
      if (is_own && all && is_within(domain, all->map)) break;
      std::optional<Elements> one = elements_read(value, *from);
      if (!one || !add(all, *std::move(one))) return std::nullopt;
    }
    // What adds up elements of an operand is of none of them: its instance is not known.
    const bool adds_up =
        std::ranges::any_of(value.from, [&](const Place& from) { return from.tensor == value.to[0].tensor; });
    if (all && adds_up && !is_result(all->tensor)) return std::nullopt;
    const std::optional<isl::map> map = all ? function(all->map, domain) : std::nullopt;
    if (!map) return std::nullopt;
    all->map = *map;
    if (all->started) all->started = all->started->subtract(all->map.domain());
    return all;
  }
  /// Adds what is of an element, too. False if it is of another tensor.
  static bool add(std::optional<Elements>& all, Elements more) {
    if (!all) {
      all = std::move(more);
      return true;
    }
    if (all->tensor != more.tensor || outputs(all->map) != outputs(more.map)) return false;
    all->map = all->map.unite(more.map);
    if (more.started) all->started = all->started ? all->started->unite(*more.started) : *more.started;
    return true;
  }

  /// Whether elements have places of their own, and all writes are told apart alike.
  static bool has_places(const Local& local) {
    const auto by_turn = [](const Value* v) { return v->known && !v->to.empty() && v->to[0].turn.defined(); };
    const auto of_boxes = std::ranges::count_if(local.writes, by_turn);
    return is_injective(local.tensor->layout) && (of_boxes == 0 || of_boxes == std::ssize(local.writes));
  }

  std::optional<Held> held_by(const Local& local) {
    if (!has_places(local)) return std::nullopt;
    std::set<std::string> tensors;
    std::optional<isl::map> all;
    bool at_once = true;
    std::vector<std::pair<const Value*, isl::map>> constants, unknown;  // and where they write
    for (const Value* value : local.writes) {
      const std::optional<isl::map> place = value->known ? key_of(*value, value->to[0]) : std::nullopt;
      if (!place || !views_->view(*value).exact()) return std::nullopt;
      if (is_constant(*value)) {
        constants.emplace_back(value, *place);
        continue;
      }
      const std::optional<Elements> elements = elements_written(*value);
      if (!elements) return std::nullopt;
      const isl::map one = place->reverse().apply_range(elements->map);
      tensors.insert(elements->tensor);
      at_once &= tensors.size() == 1 && (!all || outputs(*all) == outputs(one));
      if (at_once) all = all ? all->unite(one) : one;
      if (is_within(views_->view(*value).domain(), elements->map)) continue;
      isl::map rest = isl::manage(isl_map_subtract_domain(place->copy(), elements->map.domain().release()));
      if (elements->started) {
        constants.emplace_back(value, rest.intersect_domain(*elements->started));
        rest = isl::manage(isl_map_subtract_domain(rest.release(), elements->started->copy()));
      }
      if (!rest.is_empty()) unknown.emplace_back(value, rest);
    }
    if (!all) return std::nullopt;
    Held held{.tensors = tensors, .elements = *all, .at_once = at_once};
    const bool of_ring = std::ranges::any_of(local.writes, [](const Value* v) { return v->to[0].turn.defined(); });
    if (held.at_once) {
      if (!has_one_place(local, held)) return std::nullopt;
      const isl::set places = held.elements.domain();
      const std::optional<isl::map> map =
          function(held.elements, isl::manage(isl_set_from_basic_set(isl_set_simple_hull(places.copy()))));
      held.at_once = map.has_value();
      if (map) held.elements = *map;
      const auto is_clear = [&](const auto& write) {
        return write.second.range().intersect(held.elements.domain()).is_empty();
      };
      held.at_once = held.at_once && std::ranges::all_of(unknown, is_clear);
      for (const auto& [value, place] : constants) {
        held.at_once = held.at_once && is_before(*value, place, local, of_ring);
      }
    }
    if (of_ring && !held.at_once) return std::nullopt;
    return held;
  }

  /// Whether what a constant is written to holds no element yet.
  bool is_before(const Value& value, const isl::map& place, const Local& local, bool of_ring) {
    if (of_ring) return false;
    for (const Value* other : local.writes) {
      if (is_constant(*other)) continue;
      const std::optional<isl::set> behind = covered_by(*other, other->to[0], value, value.to[0], local);
      if (!behind || !behind->intersect(place.domain()).is_empty()) return false;
    }
    return true;
  }

  bool is_added_by(const Value& value) const {
    const Work::Statement* statement = statement_of(value);
    return statement && statement->adds;
  }
  /// Whether a tensor holds sums, which start with constants.
  bool holds_sums(const Local& local) const {
    return std::ranges::any_of(local.writes,
                               [&](const Value* value) { return value->combines || is_added_by(*value); });
  }

  /// Whether each owner of sums has one place for each: what starts one, adds to it and stores it use the same.
  bool has_one_place(const Local& local, const Held& held) const {
    const bool adds = std::ranges::any_of(local.writes, [&](const Value* value) { return is_added_by(*value); });
    if (!adds) return true;
    const unsigned digits = views_->subscript_digits(*local.tensor);
    isl_map* owner = isl_set_identity(held.elements.domain().release());
    owner = isl_map_project_out(owner, isl_dim_out, inputs(held.elements) - digits, digits);
    return isl::manage(isl_map_flat_range_product(held.elements.copy(), owner)).is_injective();
  }

  // --- time -------------------------------------------------------------------------------------------------------

  /// How many loops are around both, from the outermost on.
  size_t common_loops(const Value& a, const Value& b) const {
    const auto& one = leaf_of(a).path.loops;
    const auto& other = leaf_of(b).path.loops;
    size_t result = 0;
    while (result < std::min(one.size(), other.size()) && one[result].id == other[result].id) ++result;
    return result;
  }

  /// The instances of a read that find that a write has been in their place before, in the same iteration of the loops
  /// around all that use it. None if that is not affine.
  std::optional<isl::set> covered_by(const Value& write, const Place& to, const Value& read, const Place& from,
                                     const Local& local) {
    const size_t common = common_loops(write, read), shared = local.loops.size();
    const std::optional<isl::map> written = key_of(write, to), wanted = key_of(read, from);
    if (!written || !wanted || outputs(*written) != outputs(*wanted)) return std::nullopt;
    if (common == shared) {
      if (write.leaf >= read.leaf) return isl::manage(isl_set_empty(isl_set_get_space(wanted->domain().get())));
      return wanted->intersect_range(written->range()).domain();
    }
    Exprs iterations;
    for (size_t l = shared; l < common; ++l) {
      const For& loop = *leaf_of(write).path.loops[l].loop;
      iterations.push_back(hi::Variable::make(loop.begin.type(), loop.variable));
    }
    const std::optional<isl::map> earlier = views_->map_of(write, iterations), later = views_->map_of(read, iterations);
    if (!earlier || !later) return std::nullopt;
    isl_space* space = isl_space_set_alloc(context_.get().get(), 0, static_cast<unsigned>(iterations.size()));
    const isl::map in_order = isl::manage(write.leaf < read.leaf ? isl_map_lex_le(space) : isl_map_lex_lt(space));
    const isl::map same = isl::manage(isl_set_identity(wanted->range().release()));
    const isl::map both = isl::manage(isl_map_flat_product(same.copy(), in_order.reverse().release()));
    const isl::map at = joined(*wanted, *later), was = joined(*written, *earlier);
    return at.apply_range(both).intersect_range(was.range()).domain();
  }

  /// Whether the instances of a read that count find their places written. What they find is known to be written at
  /// some time.
  bool is_written(const Value& value, const Place& from, const isl::set& counting) {
    const Local& local = locals_.at(from.tensor->name);
    if (from.turn.defined() || !local.held->at_once) return true;  // rings.h; elements_in_time() has looked
    const auto is_earlier = [&](const Value* write) {
      return is_constant(*write) || (write->leaf < value.leaf && common_loops(*write, value) == local.loops.size());
    };
    if (std::ranges::all_of(local.writes, is_earlier)) return true;
    const bool sums = holds_sums(local);
    isl::set left = counting;
    for (const Value* write : local.writes) {
      if (left.is_empty()) return true;
      if (is_constant(*write) && !sums) continue;
      const std::optional<isl::set> covered = covered_by(*write, write->to[0], value, from, local);
      if (covered) left = left.subtract(*covered);
    }
    return left.is_empty();
  }

  /// The elements that the last writes before the reads of a place have left there.
  std::optional<Elements> elements_in_time(const Value& value, const Place& from, const Local& local,
                                           const isl::set& when) {
    const std::optional<Touches> read = views_->touches_of(value, from, local.loops);
    if (!read || from.turn.defined()) return std::nullopt;
    std::vector<Touches> writes;
    for (const Value* write : local.writes) {
      const std::optional<Touches> touches =
          write->known ? views_->touches_of(*write, write->to[0], local.loops) : std::nullopt;
      if (!touches || write->to[0].turn.defined() || !views_->view(*write).exact()) return std::nullopt;
      writes.push_back(*touches);
    }
    const Touches reading_then{read->places.intersect_domain(when), read->times.intersect_domain(when)};
    const std::vector<isl::map> found = last_writes(reading_then, writes);
    std::optional<Elements> result;
    isl::set started = when.subtract(when);
    for (size_t w = 0; w < writes.size(); ++w) {
      if (found[w].is_empty()) continue;
      if (is_constant(*local.writes[w])) {
        started = started.unite(found[w].domain());
        continue;
      }
      const std::optional<Elements> elements = elements_written(*local.writes[w]);
      if (!elements) return std::nullopt;
      if (elements->started) started = started.unite(found[w].intersect_range(*elements->started).domain());
      if (!add(result, {elements->tensor, found[w].apply_range(elements->map)})) return std::nullopt;
    }
    const std::optional<isl::map> all = result ? function(result->map, when) : std::nullopt;
    if (!all) return std::nullopt;
    result->map = *all;
    result->started = started.subtract(result->map.domain());
    return result;
  }

  // --- reads ------------------------------------------------------------------------------------------------------

  static auto times_named(const Work::Statement& statement, const std::string& tensor) {
    return std::ranges::count(statement.accesses, tensor, &Work::Access::tensor);
  }

  /// What the instances of a statement that a leaf carries out read of a tensor that they name several elements of.
  struct Reads {
    std::optional<isl::map> found;  ///< { S[i] -> element }
    std::set<std::string> holders;
  };

  /// Whether a leaf reads the elements that it wants.
  void check_reads(int leaf) {
    std::map<std::pair<std::string, std::string>, Reads> of_statements;  // by statement and tensor
    for (const Value& value : values_) {
      if (value.leaf != leaf) continue;
      for (const Place& from : value.from) {
        if (is_global(from)) continue;
        Local& local = locals_.at(from.tensor->name);
        if (!local.held || local.misread) continue;
        bool wanted = false;
        local.misread |= !attempt([&] { wanted = is_wanted(value, from, of_statements); }) || !wanted;
      }
    }
    for (const auto& [names, reads] : of_statements) {
      bool all = false;
      if (attempt([&] { all = reads_all(names.first, names.second, reads); }) && all) continue;
      for (const std::string& holder : reads.holders) locals_.at(holder).misread = true;
    }
  }

  bool is_wanted(const Value& value, const Place& from,
                 std::map<std::pair<std::string, std::string>, Reads>& of_statements) {
    if (!value.known) return false;
    const Local& local = locals_.at(from.tensor->name);
    const std::optional<isl::set> when = views_->reading(value, from);
    const std::optional<Elements> found = elements_read(value, from);
    if (!when || !found) return false;
    if (!value.statement.empty()) {
      const Work::Statement* statement = statement_of(value);
      const std::optional<isl::map> all = statement ? instances_of(value) : std::nullopt;
      if (!all) return false;
      const isl::map instances = all->intersect_range(read_set(statement->domain)).intersect_domain(*when);
      const std::optional<isl::map> wanted = named_by(*statement, found->tensor, false);
      if (!wanted || outputs(*wanted) != outputs(found->map)) return false;
      // Others read zeros, which no element is.
      const isl::map elements = instances.apply_range(*wanted);
      isl::set counting = elements.domain();
      // A sum starts with what is of no element.
      if (found->started && is_sum_of(*statement, found->tensor)) counting = counting.subtract(*found->started);
      if (!is_within(counting, found->map) || !is_written(value, from, counting)) return false;
      if (!found->map.intersect_domain(counting).is_subset(elements)) {
        // It may be what another statement's element is made of, where the block computes that.
        return reads_what_is_made_of(*statement, found->tensor) ? false : misread(value, from, found->tensor);
      }
      if (!found->map.intersect_domain(instances.domain()).is_subset(elements)) return false;
      if (times_named(*statement, found->tensor) < 2 && from.conditions.empty()) return true;
      const isl::map of_instances = instances.reverse().apply_range(found->map);
      Reads& reads = of_statements[{value.statement, found->tensor}];
      reads.found = reads.found ? reads.found->unite(of_instances) : of_instances;
      reads.holders.insert(from.tensor->name);
      return true;
    }
    if (value.to.empty()) return false;
    const Place& to = value.to[0];
    if (!is_global(to) && !is_of(to, local)) {  // whether it is wanted, the reads of `to` say
      const isl::set there = found->map.domain();
      const isl::set sums = found->started ? when->subtract(*found->started) : *when;
      return is_written(value, from, there.intersect(*when)) && (!value.combines || sums.is_subset(there));
    }
    const std::optional<Elements> wanted = to_be_written(value, to);
    if (!wanted || wanted->tensor != found->tensor || outputs(wanted->map) != outputs(found->map)) return false;
    isl::set counting = *when;
    if (found->started && !is_global(to)) counting = counting.subtract(*found->started);
    if (!is_within(counting, found->map) || !is_written(value, from, counting)) return false;
    if (found->map.is_subset(wanted->map)) return true;
    return misread(value, from, found->tensor);
  }

  /// Whether a statement adds to elements of a tensor.
  static bool is_sum_of(const Work::Statement& statement, const std::string& tensor) {
    return std::ranges::any_of(statement.accesses,
                               [&](const Work::Access& a) { return a.is_write && a.tensor == tensor; });
  }

  /// Whether a statement reads what another one in the kernel makes of a tensor.
  bool reads_what_is_made_of(const Work::Statement& statement, const std::string& tensor) const {
    const auto makes = [&](const Work::Statement& other, const std::string& result) {
      return is_sum_of(other, result) && std::ranges::any_of(other.accesses, [&](const Work::Access& a) {
               return !a.is_write && a.tensor == tensor;
             });
    };
    return std::ranges::any_of(statement.accesses, [&](const Work::Access& a) {
      return !a.is_write && !is_sum_of(statement, a.tensor) &&
             std::ranges::any_of(work_.statements, [&](const auto& other) { return makes(other, a.tensor); });
    });
  }

  /// Whether a statement writes elements of a tensor.
  bool is_result(const std::string& tensor) const {
    return std::ranges::any_of(work_.statements,
                               [&](const Work::Statement& statement) { return is_sum_of(statement, tensor); });
  }

  /// The element that a copy stores, or that a sum without a statement is of.
  std::optional<Elements> to_be_written(const Value& value, const Place& to) {
    if (!is_global(to)) return elements_written(value);
    const std::optional<isl::map> map = views_->map_of(value, to.subscripts);
    if (!map || !is_injective(to.tensor->layout)) return std::nullopt;
    return Elements{to.tensor->name, *map};
  }

  /// { S[i] -> elements of a tensor } that instances name, or read. None if data choose among them.
  std::optional<isl::map> named_by(const Work::Statement& statement, const std::string& tensor, bool only_read) const {
    std::optional<isl::map> result;
    for (const Work::Access& access : statement.accesses) {
      if (access.tensor != tensor || (only_read && access.is_write)) continue;
      if (!access.exact) return std::nullopt;
      const isl::map elements = read_map(access.relation);
      result = result ? result->unite(elements) : elements;
    }
    return result;
  }

  /// Whether instances that read a tensor read all that they name of it. What else the leaf reads of it in global
  /// memory is counted with cover()'s elements.
  bool reads_all(const std::string& statement, const std::string& tensor, const Reads& reads) const {
    const auto found = std::ranges::find(work_.statements, statement, &Work::Statement::id);
    const std::optional<isl::map> wanted = named_by(*found, tensor, true);
    if (!wanted) return true;  // only the sum that it adds to
    return wanted->intersect_domain(reads.found->domain()).is_subset(*reads.found);
  }

  bool misread(const Value& value, const Place& from, const std::string& tensor) {
    if (!views_->view(value).exact()) return false;
    result_.faults.push_back(fmt::format("{}: '{}' takes a value of '{}' from '{}' that is of another element",
                                         kernel_.name, leaf_of(value).text(), tensor, from.tensor->name));
    return false;
  }

  const Kernel& kernel_;
  const Flow& flow_;
  const Work& work_;
  IslContext context_;
  std::vector<Value> values_;
  std::optional<ValueViews> views_;
  std::map<std::string, Local> locals_;
  std::map<const Place*, std::optional<Elements>> elements_read_;
  std::map<const Value*, std::optional<Elements>> elements_written_;
  std::set<const Value*> in_progress_;
  bool gave_up_ = false;
  int waited_ = 0;  ///< how often something could not be found as it waited for itself
  Holders result_;
};

}  // namespace

Holders check_holders(const Kernel& kernel, const Flow& flow, const Work& work, unsigned long operations) {
  return Checker(kernel, flow, work, operations).run();
}

}  // namespace tc::tile
