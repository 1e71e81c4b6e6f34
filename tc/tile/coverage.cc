#include "tc/tile/coverage.h"

#include <fmt/format.h>
#include <isl/aff.h>
#include <isl/ctx.h>
#include <isl/id.h>
#include <isl/map.h>
#include <isl/set.h>
#include <isl/union_map.h>
#include <isl/val.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tc/tile/affine.h"
#include "tc/tile/digits.h"
#include "tc/tile/holders.h"
#include "tc/tile/tiles.h"

namespace tc::tile {
namespace {

/// Who does something, and what: { leaf[instance] -> what }.
struct Doers {
  isl::union_map all;
  isl::union_map of_owners = {};  ///< { leaf[instance] -> what, block and thread }
  size_t count = 0;
  bool in_registers = true;              ///< what they do it to
  bool exact = true;                     ///< false: some of them may not
  std::vector<int64_t> zero_below = {};  ///< as of Instances
  bool may_keep = false;                 ///< the kernel reads the tensor, too
};

class Coverer {
 public:
  Coverer(const Kernel& kernel, unsigned long operations)
      : kernel_(with_block_for_each_tile(kernel).value_or(kernel)),
        alone_(alone(kernel_)),
        operations_(operations),
        context_(operations),
        flow_(flow_of(kernel_)) {}

  Coverage run(const Work& work) {
    holders_ = check_holders(kernel_, flow_, work, operations_ / 2);  // of each of many reads
    for (const Work::Statement& statement : work.statements) {
      Coverage::Item item{.name = statement.id};
      attempt(statement.id, [&] {
        check(statement, item);
        check_elements(statement);
      });
      coverage_.items.push_back(std::move(item));
    }
    for (const Work::Result& result : work.results) {
      Coverage::Item item{.name = result.tensor, .is_result = true};
      attempt(result.tensor, [&] { check(result, item); });
      coverage_.items.push_back(std::move(item));
    }
    report_holders();
    for (const Tensor& tensor : kernel_.tensors) {
      const bool asked = std::any_of(work.results.begin(), work.results.end(),
                                     [&](const Work::Result& result) { return result.tensor == tensor.name; });
      if (tensor.written && !asked) fault("it writes '{}', which none of its statements does", tensor.name);
    }
    return std::move(coverage_);
  }

 private:
  template <typename Check>
  void attempt(const std::string& name, Check check) {
    context_.reset();
    try {
      check();
    } catch (const isl::exception&) {
      if (!context_.is_exhausted()) throw;
      unproved("the work on '{}' is too hard for isl", name);
    }
  }

  template <typename... Args>
  void fault(fmt::format_string<Args...> format, Args&&... args) {
    coverage_.faults.push_back(fmt::format("{}: {}", kernel_.name, fmt::format(format, std::forward<Args>(args)...)));
  }
  template <typename... Args>
  void unproved(fmt::format_string<Args...> format, Args&&... args) {
    coverage_.unproved.push_back(fmt::format("{}: {}", kernel_.name, fmt::format(format, std::forward<Args>(args)...)));
  }

  isl::set set_of(const std::string& text) const {
    return isl::manage(isl_set_read_from_str(context_.get().get(), text.c_str()));
  }
  isl::union_map none() const { return isl::manage(isl_union_map_read_from_str(context_.get().get(), "{ }")); }

  static isl::map named(const isl::map& map, const std::string& domain, const std::string& range) {
    isl_map* result = isl_map_set_tuple_name(map.copy(), isl_dim_in, domain.c_str());
    if (!range.empty()) result = isl_map_set_tuple_name(result, isl_dim_out, range.c_str());
    return isl::manage(result);
  }

  /// The number of points of a box, else 0.
  static int64_t count_of(const isl::set& set) {
    if (isl_set_is_box(set.get()) != isl_bool_true) return 0;
    int64_t count = 1;
    for (int d = 0; d < static_cast<int>(isl_set_dim(set.get(), isl_dim_set)); ++d) {
      const isl::val least = set.dim_min_val(d), greatest = set.dim_max_val(d);
      count *= isl_val_get_num_si(greatest.get()) - isl_val_get_num_si(least.get()) + 1;
    }
    return count;
  }

  static std::string point_text(const isl::set& set) {
    const isl::point point = set.lexmin().sample_point();
    std::string text;
    for (int d = 0; d < static_cast<int>(isl_set_dim(set.get(), isl_dim_set)); ++d) {
      const isl::val at = isl::manage(isl_point_get_coordinate_val(point.get(), isl_dim_set, d));
      text += fmt::format("{}{}", d == 0 ? "" : ", ", isl_val_get_num_si(at.get()));
    }
    return text;
  }

  static int dimensions_of(const isl::map& map) { return static_cast<int>(isl_map_dim(map.get(), isl_dim_out)); }
  static std::string leaf_name(size_t number) { return fmt::format("L{}", number); }

  // --- statements -------------------------------------------------------------------------------------------------

  /// Those who say that they carry out the statement. None if where or when is not affine.
  std::optional<Doers> doers_of(const std::string& statement) {
    Doers doers{.all = none(), .of_owners = none()};
    for (const Doer& doer : tile::doers_of(flow_, statement)) {
      const DigitLeaf leaf = in_digits(kernel_, doer.leaf);
      const AffineView view(context_.get(), alone_, leaf.path);
      const std::optional<isl::map> map = values_at(view, leaf.points[0]);
      if (!map) {
        unproved("which instances of '{}' '{}' has is not affine", statement, doer.leaf.text());
        return std::nullopt;
      }
      const std::string name = leaf_name(doers.count++);
      doers.exact &= view.exact();
      doers.zero_below = doer.zero_below;
      doers.in_registers &= doer.memory == Memory::kRegister;
      doers.all = doers.all.unite(isl::union_map(named(*map, name, statement)));
      doers.of_owners = doers.of_owners.unite(isl::union_map(named(with_owner(*map, view, leaf), name, statement)));
    }
    return doers;
  }

  /// { instance -> values, block and thread }
  static isl::map with_owner(const isl::map& map, const AffineView& view, const DigitLeaf& leaf) {
    isl::map owner = isl::manage(isl_map_identity(isl_space_map_from_set(isl_set_get_space(view.domain().get()))));
    const auto own = static_cast<unsigned>(leaf.own), loops = static_cast<unsigned>(leaf.path.loops.size());
    owner = isl::manage(isl_map_project_out(owner.release(), isl_dim_out, own, loops - own));
    return isl::manage(isl_map_flat_range_product(map.copy(), owner.release()));
  }

  void check(const Work::Statement& statement, Coverage::Item& item) {
    const std::optional<Doers> doers = doers_of(statement.id);
    if (!doers) return;
    if (doers->count == 0) {
      unproved("no operation says that it does '{}'", statement.id);
      return;
    }
    const isl::set domain = set_of(statement.domain);
    item.count = count_of(domain);
    if (!is_complete(statement, *doers, domain, item)) return;
    const isl::union_map own = doers->all.intersect_range(isl::union_set(domain));
    item.once = is_injective(own);
    item.complete = item.once || !statement.adds || each_has_its_own(statement, *doers, domain);
    if (!item.complete) fault("'{}' is done more than once: its instance ({})", statement.id, twice_text(own));
  }

  /// Whether threads that have the same instance each have a register for its element, and do all that is added to it:
  /// else they might be parts of one sum.
  bool each_has_its_own(const Work::Statement& statement, const Doers& doers, const isl::set& domain) const {
    if (!doers.in_registers || !is_injective(doers.of_owners)) return false;
    if (std::ranges::none_of(statement.reduced, [](bool is) { return is; })) return true;
    const auto write = std::ranges::find_if(statement.accesses, &Work::Access::is_write);
    if (write == statement.accesses.end() || !write->exact) return false;
    // { S[i] -> owner }
    const auto indices = static_cast<unsigned>(isl_set_dim(domain.get(), isl_dim_set));
    isl_set* both = isl_set_reset_tuple_id(doers.of_owners.range().as_set().release());
    isl_map* owners = isl_map_move_dims(isl_map_from_range(both), isl_dim_in, 0, isl_dim_out, 0, indices);
    owners = isl_map_set_tuple_name(owners, isl_dim_in, statement.id.c_str());
    const isl::map done = isl::manage(isl_map_intersect_domain(owners, domain.copy())).reverse();
    const isl::map element =
        isl::manage(isl_map_read_from_str(context_.get().get(), write->relation.c_str())).intersect_domain(domain);
    return done.apply_range(element).apply_range(element.reverse()).is_subset(done);
  }

  bool is_complete(const Work::Statement& statement, const Doers& doers, const isl::set& domain, Coverage::Item& item) {
    const isl::union_set done = doers.all.range();
    isl::union_set left = isl::union_set(domain).subtract(done);
    if (!statement.idle.empty() && !left.is_empty()) {
      left = left.subtract(isl::union_set(set_of(statement.idle)));
      item.leaves_idle = left.is_empty();
    }
    if (!left.is_empty()) {
      const std::string where = point_text(left.as_set());
      if (statement.guarded) {
        unproved("'{}' leaves out its instance ({}), which may have nothing to do", statement.id, where);
      } else {
        fault("'{}' is not done completely: its instance ({}) is left out", statement.id, where);
      }
      return false;
    }
    if (!doers.exact) {
      unproved("'{}' is done under conditions that are not affine", statement.id);
      return false;
    }
    const isl::union_set more = extra(statement, doers, domain);
    if (more.is_empty()) return true;
    fault("'{}' has no instance ({}), which is done", statement.id, point_text(more.as_set()));
    return false;
  }

  /// Instances that there are not, of elements that others have. What is added elsewhere is stored nowhere.
  static isl::union_set extra(const Work::Statement& statement, const Doers& doers, const isl::set& domain) {
    isl::set nothing = domain;  // so many values of reductions' indices add nothing, or are no instances
    isl::set any = domain;      // over all of them
    for (size_t d = 0; d < statement.reduced.size(); ++d) {
      if (!statement.reduced[d]) continue;
      const auto at = static_cast<unsigned>(d);
      any = isl::manage(isl_set_eliminate(any.release(), isl_dim_set, at, 1));
      if (doers.zero_below.empty() || doers.zero_below[d] == INT64_MIN) continue;
      const isl::val greatest = isl::val(domain.ctx(), static_cast<long>(doers.zero_below[d] - 1));
      isl::set zeros = isl::manage(isl_set_eliminate(domain.copy(), isl_dim_set, at, 1));
      zeros =
          isl::manage(isl_set_lower_bound_val(zeros.release(), isl_dim_set, at, domain.dim_max_val(int(d)).release()));
      nothing = nothing.unite(isl::manage(isl_set_upper_bound_val(zeros.release(), isl_dim_set, at, greatest.copy())));
    }
    return doers.all.range().subtract(isl::union_set(nothing)).intersect(isl::union_set(any));
  }

  static bool is_injective(const isl::union_map& map) {
    const isl_bool result = isl_union_map_is_injective(map.get());
    if (result == isl_bool_error) isl::exception::throw_last_error(map.ctx());
    return result == isl_bool_true;
  }

  /// An instance that two have.
  static std::string twice_text(const isl::union_map& doers) {
    const isl::union_map meet = doers.apply_range(doers.reverse());
    isl_union_map* own = isl_union_set_identity(doers.domain().release());
    const isl::union_map others = meet.subtract(isl::manage(own));
    const isl::union_set what = isl::union_set(others.domain()).apply(doers);
    return what.is_empty() ? "?" : point_text(what.as_set());
  }

  // --- elements that operations touch ------------------------------------------------------------------------------

  /// Compares what the statement's operations touch in global memory with what their instances name.
  void check_elements(const Work::Statement& statement) {
    if (statement.accesses.empty()) return;
    for (const Leaf& own : flow_.leaves) {
      const Instances* instances = own.node->instances.get();
      if (!instances || instances->statement != statement.id) continue;
      if (std::none_of(own.accesses.begin(), own.accesses.end(), is_global)) {
        check_reads(statement, own);
        continue;
      }
      if (instances->first.size() > 1 || !instances->lengths.empty()) {
        unproved("'{}' touches global memory for several instances of '{}' at once", own.text(), statement.id);
        continue;
      }
      check_elements(statement, own);
    }
  }

  static bool is_global(const ElementAccess& access) { return access.tensor->memory == Memory::kGlobal; }
  static bool reads_holder(const ElementAccess& access) { return !access.is_write && !is_global(access); }

  void check_elements(const Work::Statement& statement, const Leaf& own) {
    const DigitLeaf leaf = in_digits(kernel_, own);
    const AffineView view(context_.get(), alone_, leaf.path);
    const std::optional<isl::map> values = values_at(view, leaf.points[0]);
    if (!values) return;  // check() has said so
    const isl::map instances = named(*values, "L", statement.id).intersect_range(set_of(statement.domain));
    std::map<std::pair<std::string, bool>, std::vector<const ElementAccess*>> touched;
    for (const ElementAccess& access : leaf.accesses) {
      if (is_global(access)) touched[{access.tensor->name, access.is_write}].push_back(&access);
    }
    for (const auto& [key, accesses] : touched) {
      const auto& [tensor, is_write] = key;
      if (const std::string why = elements_fault(statement, tensor, is_write, accesses, instances, view);
          !why.empty()) {
        unproved("'{}' {} '{}' {}", own.text(), is_write ? "writes" : "reads", tensor, why);
      }
    }
    check_reads(statement, own);
  }

  /// Whether an operation reads all tensors that its instances read: itself, or from registers that hold them.
  void check_reads(const Work::Statement& statement, const Leaf& leaf) {
    std::set<std::string> read;
    for (const ElementAccess& access : leaf.accesses) {
      if (access.is_write) continue;
      const auto held = holders_.tensors.find(access.tensor->name);
      if (!is_global(access) && held == holders_.tensors.end()) return;  // report_holders() says so
      if (is_global(access)) {
        read.insert(access.tensor->name);
      } else {
        read.insert(held->second.begin(), held->second.end());
      }
    }
    for (const Work::Access& access : statement.accesses) {
      if (access.is_write || read.count(access.tensor)) continue;
      unproved("'{}' does not read '{}' itself", leaf.text(), access.tensor);
    }
  }

  /// Why the accesses are not proved to be of what the instances name; "" if they are, or are a fault.
  std::string elements_fault(const Work::Statement& statement, const std::string& tensor, bool is_write,
                             const std::vector<const ElementAccess*>& accesses, const isl::map& instances,
                             const AffineView& view) {
    const bool is_named = std::any_of(statement.accesses.begin(), statement.accesses.end(),
                                      [&](const Work::Access& access) { return access.tensor == tensor; });
    if (!is_named && !is_write) return "for another statement's value, which it computes again";
    bool exact = view.exact();
    int dimensions = 0;
    isl::union_map done = none(), asked = none(), allowed = none();
    for (const ElementAccess* access : accesses) {
      isl::map map = named(view.relation(*access, exact), "L", "");
      dimensions = dimensions_of(map);
      done = done.unite(isl::union_map(map).intersect_domain(isl::union_set(instances.domain())));
    }
    for (const Work::Access& access : statement.accesses) {
      if (access.tensor != tensor) continue;
      const isl::map relation = isl::manage(isl_map_read_from_str(context_.get().get(), access.relation.c_str()));
      if (dimensions_of(relation) != dimensions) return "by other dimensions than its statement";
      const isl::union_map named_by_it = isl::union_map(instances.apply_range(relation));
      allowed = allowed.unite(named_by_it);
      if (access.is_write == is_write) asked = asked.unite(named_by_it);
      exact &= access.exact;
    }
    if (!exact) return "where data choose";
    const isl::union_map more = done.subtract(is_write ? asked : allowed);
    if (!more.is_empty()) {
      const isl::union_map wrong = isl::union_map(instances.reverse()).apply_range(more);  // { S[i] -> [x] }
      const isl::set first = wrong.domain().as_set().lexmin();
      fault("'{}' {} the element ({}) of '{}' for its instance ({}), which does not name it", statement.id,
            is_write ? "writes" : "reads", point_text(wrong.intersect_domain(first).range().as_set()), tensor,
            point_text(first));
      return "";
    }
    return asked.is_subset(done) ? "" : "less than its instance names";
  }

  /// Registers and shared memory are no elements of a program's tensor: whose values do they hold?
  void report_holders() {
    std::ranges::move(holders_.faults, std::back_inserter(coverage_.faults));
    coverage_.holders = std::ssize(holders_.tensors) + std::ssize(holders_.unproved);
    coverage_.held = std::ssize(holders_.tensors);
    if (!holders_.parted.empty()) {
      unproved("that all parts of sums are added, each once, in '{}'", fmt::join(holders_.parted, "', '"));
    }
    if (!holders_.unproved.empty()) unproved("whose values are in '{}'", fmt::join(holders_.unproved, "', '"));
    for (const Leaf& leaf : flow_.leaves) {
      const auto stores = [](const ElementAccess& access) { return access.is_write && is_global(access); };
      if (leaf.node->instances || std::none_of(leaf.accesses.begin(), leaf.accesses.end(), stores)) continue;
      if (std::any_of(leaf.accesses.begin(), leaf.accesses.end(), reads_holder)) continue;
      unproved("'{}' stores, but says of no statement that it does it", leaf.text());
    }
  }

  // --- results ----------------------------------------------------------------------------------------------------

  void check(const Work::Result& result, Coverage::Item& item) {
    Doers doers{.all = none()};
    bool atomic = true;
    const isl::union_map writes = isl::manage(isl_union_map_read_from_str(context_.get().get(), result.writes.c_str()));
    const isl::set wanted = writes.is_empty() ? isl::set() : writes.range().as_set();
    const auto touches = [&](const ElementAccess& access) { return access.tensor->name == result.tensor; };
    for (const Leaf& own : flow_.leaves) {
      if (std::none_of(own.accesses.begin(), own.accesses.end(), touches)) continue;
      const DigitLeaf leaf = in_digits(kernel_, own);
      const AffineView view(context_.get(), alone_, leaf.path);
      for (const ElementAccess& access : leaf.accesses) {
        doers.may_keep |= !access.is_write && touches(access);
        if (!access.is_write || !touches(access)) continue;
        const isl::map map = view.relation(access, doers.exact);
        if (!wanted.is_null() && dimensions_of(map) != static_cast<int>(isl_set_dim(wanted.get(), isl_dim_set))) {
          unproved("'{}' has other dimensions in the kernel than in the program", result.tensor);
          return;
        }
        atomic &= access.atomic;
        doers.all = doers.all.unite(isl::union_map(named(map, leaf_name(doers.count++), "")));
      }
    }
    if (doers.count == 0 && (result.by_data || !wanted.is_null())) {
      fault("'{}' is never stored", result.tensor);
      return;
    }
    item.count = wanted.is_null() ? 0 : count_of(wanted);
    item.atomic = doers.count > 0 && atomic;
    item.complete = is_stored(result, doers, writes.range());
    if (!item.complete || item.atomic) return;
    item.once = is_injective(doers.all);
    if (item.once || !is_injective(writes)) return;
    item.complete = false;
    fault("the element ({}) of '{}' is stored more than once", twice_text(doers.all), result.tensor);
  }

  bool is_stored(const Work::Result& result, const Doers& doers, const isl::union_set& wanted) {
    const isl::union_set stored = doers.all.range();
    const isl::union_set left = wanted.subtract(stored);
    if (!left.is_empty()) {
      if (result.dies) {
        unproved("'{}' is stored in part, as nothing reads it after the launch", result.tensor);
        return false;
      }
      fault("the element ({}) of '{}' is not stored", point_text(left.as_set()), result.tensor);
      return false;
    }
    if (result.by_data || !doers.exact) {
      unproved("data choose which elements of '{}' are stored", result.tensor);
      return false;
    }
    const isl::union_set more = stored.subtract(wanted);
    if (more.is_empty()) return true;
    const std::string where = point_text(more.as_set());
    if (doers.may_keep) {
      unproved("the element ({}) of '{}', which no statement writes, is stored as it was read", where, result.tensor);
    } else {
      fault("the element ({}) of '{}' is stored, but no statement writes it", where, result.tensor);
    }
    return false;
  }

  Kernel kernel_;
  Kernel alone_;
  unsigned long operations_;
  IslContext context_;
  Flow flow_;
  Coverage coverage_;
  Holders holders_;
};

std::string counted(int64_t count, const char* what) {
  return count == 0 ? fmt::format("all {}s", what) : fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

Coverage cover(const Kernel& kernel, const Work& work, unsigned long operations) {
  return Coverer(kernel, operations).run(work);
}

std::string to_text(const Coverage& coverage, const std::string& indent) {
  std::string text;
  for (const Coverage::Item& item : coverage.items) {
    if (!item.complete) continue;
    const char* how = item.once ? ", each once" : item.atomic ? ", by atomic updates" : "";
    const char* done = item.is_result ? "stored" : item.leaves_idle ? "done or idle" : "done";
    text += fmt::format("{}{}: {} {}{}\n", indent, item.name,
                        counted(item.count, item.is_result ? "element" : "instance"), done, how);
  }
  if (coverage.held > 0) {
    text += fmt::format("{}{} of {} tensors in shared memory and registers read for the elements that they hold\n",
                        indent, coverage.held, coverage.holders);
  }
  return text;
}

}  // namespace tc::tile
