#include "tc/gpu/verbs/split_reduction.h"

#include <isl/aff.h>
#include <isl/schedule.h>
#include <isl/space.h>
#include <isl/union_map.h>

#include <algorithm>
#include <map>

#include "tc/gpu/rewrite/part_statements.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/poly/dependences.h"
#include "tc/poly/from_ir.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/loop_tree.h"
#include "tc/poly/rebuild.h"
#include "tc/support/check.h"
#include "tc/support/round.h"

namespace tc::gpu {
namespace {

/// What one loop reduces over.
struct Reduction {
  ir::Statement statement;
  size_t index = 0;
};

Result<Reduction> reduction_at(const poly::Scop& scop, const poly::NodeRef& ref, const std::string& loop) {
  const isl::schedule_node mark = poly::node_at(scop, ref);
  const std::vector<std::string> below = poly::statements_at(scop, mark);
  if (below.size() != 1) {
    return fail("cannot split the reduction over '{}': {} stand below it", loop, fmt::join(below, ", "));
  }
  const auto& statements = scop.program->statements;
  const auto found =
      std::find_if(statements.begin(), statements.end(), [&](const ir::Statement& s) { return s.id == below[0]; });
  const std::string index = poly::band_info(scop, ref.below()).index_of(0, below[0]);
  if (found == statements.end()) return fail("'{}' is no loop of a reduction", loop);
  const auto at = std::find_if(found->indices.begin(), found->indices.end(),
                               [&](const ir::Index& i) { return i.name == index && i.is_reduction; });
  const bool whole = at != found->indices.end() && poly::loop_range(scop, ref).extent == extent_of(*at);
  if (!whole) return fail("'{}' does not run over a whole index that {} reduces over", loop, below[0]);
  if (!may_be_cut(*scop.program, *found)) {
    return fail("cannot split the reduction over '{}': what {} writes hangs on data", loop, below[0]);
  }
  poly::Scop inner = scop;
  inner.schedule = poly::subtree(poly::node_at(scop, ref.below(2)));
  if (const std::vector<std::string> loops = poly::loop_names(inner); !loops.empty()) {
    return fail("cannot split the reduction over '{}': the loops {} stand below it; reorder them first", loop,
                fmt::join(loops, ", "));
  }
  return Reduction{*found, static_cast<size_t>(at - found->indices.begin())};
}

const isl::set& domain_of(const std::vector<isl::set>& domains, const std::string& statement) {
  const auto found = std::find_if(domains.begin(), domains.end(),
                                  [&](const isl::set& set) { return poly::tuple_name(set) == statement; });
  TC_CHECK(found != domains.end(), "the statement '{}' has no instances", statement);
  return *found;
}

/// { instance of a statement -> the instance of the reduction whose place it takes }
isl::multi_aff place_of(const isl::set& domain, const poly::Statement& statement, const poly::Statement& reduction,
                        const isl::set& reduced, const std::map<std::string, isl::aff>& given) {
  isl::aff_list values(domain.ctx(), static_cast<int>(reduction.indices.size()));
  for (size_t i = 0; i < reduction.indices.size(); ++i) {
    const std::string& index = reduction.indices[i];
    const auto at = std::find(statement.indices.begin(), statement.indices.end(), index);
    if (given.count(index) > 0) {
      values = values.add(given.at(index));
    } else if (at != statement.indices.end()) {
      values = values.add(poly::variable(domain.space(), static_cast<int>(at - statement.indices.begin())));
    } else {
      values = values.add(poly::constant(domain.space(), poly::to_int64(reduced.dim_min_val(static_cast<int>(i)))));
    }
  }
  const isl::space space =
      isl::manage(isl_space_map_from_domain_and_range(domain.space().release(), reduced.space().release()));
  return space.multi_aff(values);
}

class Splitter {
 public:
  Splitter(const poly::Scop& before, poly::Scop after, const Reduction& reduction, const Parts& parts,
           const PartStatements& made)
      : before_(before), after_(std::move(after)), reduction_(reduction), parts_(parts), made_(made) {
    old_domains_ = poly::statement_domains(before_);
    domains_ = poly::statement_domains(after_);
  }

  poly::Scop run(const poly::NodeRef& ref, const ReductionLoops& loops) {
    const std::string& of_parts = made_.of_parts.id;
    const std::string init = of_parts + "_init", &together = made_.together.id;
    isl_schedule* pulled = isl_schedule_pullback_union_pw_multi_aff(before_.schedule.copy(), places().release());
    const isl::schedule placed = isl::manage(isl_schedule_intersect_domain(pulled, after_.domain.copy()));
    const isl::schedule below = poly::subtree(poly::node_at(placed, ref.below(2).path));
    const isl::schedule rest = poly::under_loop(loops.rest, value_of(of_parts, made_.rest), only(below, of_parts));
    const isl::schedule each = poly::sequence(only(below, init), rest);
    const isl::union_pw_aff part = value_of(of_parts, made_.part).union_add(value_of(init, made_.part));
    const isl::schedule all = poly::under_loop(loops.together, value_of(together, made_.part), only(below, together));
    after_.schedule = put(placed, ref, poly::under_loop(loops.part, part, each), all);
    return after_;
  }

 private:
  isl::union_pw_aff value_of(const std::string& statement, const std::string& index) const {
    const std::vector<std::string>& indices = after_.statement(statement).indices;
    const auto at = std::find(indices.begin(), indices.end(), index);
    const isl::set& domain = domain_of(domains_, statement);
    const isl::aff value = poly::variable(domain.space(), static_cast<int>(at - indices.begin()));
    return isl::pw_aff(value).to_union_pw_aff();
  }

  /// The tree with two loops in place of one, and the initialisation in between if it is an elder sibling.
  isl::schedule put(const isl::schedule& tree, const poly::NodeRef& ref, const isl::schedule& part,
                    const isl::schedule& all) const {
    const isl::schedule_node filter = poly::node_at(tree, ref.path).parent();
    const std::vector<std::string> init = {reduction_.statement.id + "_init"};
    const int own = filter.isa<isl::schedule_node_filter>() ? static_cast<int>(filter.child_position()) : 0;
    int elder = own - 1;
    while (elder >= 0 && poly::statements_at(after_, filter.parent().child(elder)) != init) --elder;
    if (own == 0 || elder < 0) return poly::replace(tree, ref, poly::sequence(part, all));
    const isl::schedule_node siblings = filter.parent();
    isl::schedule whole;
    const auto add = [&](const isl::schedule& next) { whole = whole.is_null() ? next : poly::sequence(whole, next); };
    for (int i = 0; i < static_cast<int>(siblings.n_children()); ++i) {
      if (i == elder) continue;
      if (i != own) {
        add(poly::subtree(siblings.child(i).child(0)));
        continue;
      }
      add(part);
      add(poly::subtree(siblings.child(elder).child(0)));
      add(all);
    }
    return poly::replace(tree, {poly::path_of(siblings)}, whole);
  }

  isl::schedule only(const isl::schedule& schedule, const std::string& statement) const {
    const isl::union_set domain = domain_of(domains_, statement).to_union_set();
    return isl::manage(isl_schedule_intersect_domain(schedule.copy(), domain.copy()));
  }

  /// Where the instances of the new program stand in the old one's tree. Expressions without bounds: bands keep theirs.
  isl::union_pw_multi_aff places() const {
    isl::union_pw_multi_aff result = isl::manage(isl_union_pw_multi_aff_empty_ctx(before_.context->get().get()));
    for (const isl::set& domain : domains_) {
      const std::string name = poly::tuple_name(domain);
      const bool is_new = name == made_.of_parts.id || name == made_.of_parts.id + "_init" || name == made_.together.id;
      const isl::multi_aff place = is_new
                                       ? new_place(domain, name)
                                       : isl::manage(isl_multi_aff_identity_on_domain_space(domain.space().release()));
      isl_pw_multi_aff* one = isl::pw_multi_aff(place).release();
      result = isl::manage(isl_union_pw_multi_aff_add_pw_multi_aff(result.release(), one));
    }
    return result;
  }

  isl::multi_aff new_place(const isl::set& domain, const std::string& name) const {
    const std::string& id = reduction_.statement.id;
    const poly::Statement &statement = after_.statement(name), &old = before_.statement(id);
    const std::string& index = reduction_.statement.indices[reduction_.index].name;
    const auto times = [&](const std::string& of, int64_t factor) {
      const auto at = std::find(statement.indices.begin(), statement.indices.end(), of);
      if (at == statement.indices.end()) return poly::constant(domain.space(), 0);
      const int position = static_cast<int>(at - statement.indices.begin());
      return poly::variable(domain.space(), position).scale(poly::make_val(domain.ctx(), factor));
    };
    const int64_t begin = begin_of(reduction_.statement.indices[reduction_.index]);
    const isl::aff at = times(made_.part, parts_.cyclic ? 1 : parts_.chunk)
                            .add(times(made_.rest, parts_.cyclic ? parts_.count : 1))
                            .add_constant(poly::make_val(domain.ctx(), begin));
    return place_of(domain, statement, old, domain_of(old_domains_, id), {{index, at}});
  }

  const poly::Scop& before_;
  poly::Scop after_;
  const Reduction& reduction_;
  const Parts& parts_;
  const PartStatements& made_;
  std::vector<isl::set> old_domains_, domains_;
};

}  // namespace

Result<SplitReduction> split_reduction(const poly::Scop& scop, const std::string& loop, int64_t count, bool cyclic) {
  TC_TRY(ref, poly::find_loop(scop, loop));
  TC_TRY(reduction, reduction_at(scop, ref, loop));
  const int64_t extent = extent_of(reduction.statement.indices[reduction.index]);
  if (count < 1 || count > extent) {
    return fail("cannot split the reduction over '{}' into {} parts: it has {} iterations", loop, count, extent);
  }
  // Parts of neighbours have one length: all but the last are full, and none is empty.
  const int64_t chunk = ceil_div(extent, count);
  const int64_t full = cyclic ? count : ceil_div(extent, chunk);
  const bool in_front = !runs_along_reduction(*scop.program, reduction.statement);
  const Parts parts{reduction.index, full, chunk, in_front, cyclic};
  ir::Program program = *scop.program;
  const PartStatements made = part_statements(program, reduction.statement, {parts});
  auto at = std::find_if(program.statements.begin(), program.statements.end(),
                         [&](const ir::Statement& s) { return s.id == reduction.statement.id; });
  *at = made.together;
  program.statements.insert(at, made.of_parts);
  TC_TRY(after, poly::from_ir(std::make_shared<const ir::Program>(std::move(program)), scop.context));
  const ReductionLoops loops{poly::fresh_loop_name(scop, loop + "_part"), poly::fresh_loop_name(scop, loop + "_rest"),
                             poly::fresh_loop_name(scop, loop + "_together"), made.of_parts.tensor, full};
  SplitReduction result{Splitter(scop, std::move(after), reduction, parts, made).run(ref, loops), loops};
  if (const std::optional<poly::Violation> violation = poly::find_violation(result.scop)) {
    return fail("cannot split the reduction over '{}': {}", loop, violation->sentence());
  }
  return result;
}

}  // namespace tc::gpu
