#include "tc/poly/shift.h"

#include <isl/ctx.h>
#include <isl/options.h>
#include <isl/schedule.h>

#include <algorithm>

#include "tc/poly/isl_ext.h"

namespace tc::poly {
namespace {

/// { S[x] -> S[x + e_k] } for every statement and dimension: demands coefficients >= 0 of the outermost band.
isl::union_map orthant(const std::vector<isl::set>& domains) {
  isl::union_map all = isl::union_map::empty(domains.front().ctx());
  for (const isl::set& domain : domains) {
    for (unsigned k = 0; k < domain.tuple_dim(); ++k) {
      isl::multi_aff step = domain.space().identity_multi_aff_on_domain();
      step = step.set_at(k, step.at(k).add_constant(1));
      all = all.unite(step.as_map().intersect_domain(domain).intersect_range(domain).to_union_map());
    }
  }
  return all;
}

/// The coefficients of a statement's indices in an expression without pieces.
std::vector<isl::val> coefficients(const isl::pw_aff& function) {
  std::vector<isl::val> result;
  function.foreach_piece([&](const isl::set& domain, const isl::multi_aff& piece) {
    result.clear();
    for (unsigned k = 0; k < domain.tuple_dim(); ++k) {
      result.push_back(isl::manage(isl_aff_get_coefficient_val(piece.at(0).get(), isl_dim_in, k)));
    }
  });
  return result;
}

/// Whether a band stands outermost whose first member runs over some index of every statement.
bool acceptable(const isl::schedule& schedule, bool positive) {
  const isl::schedule_node top = schedule.root().child(0);
  if (!top.isa<isl::schedule_node_band>()) return false;
  const isl::multi_union_pw_aff partial = top.as<isl::schedule_node_band>().partial_schedule();
  for (unsigned m = 0; m < partial.size(); ++m) {
    for (const isl::pw_aff& function : pw_affs_of(partial.at(m))) {
      const std::vector<isl::val> of = coefficients(function);
      if (positive && std::any_of(of.begin(), of.end(), [](const isl::val& v) { return v.is_neg(); })) return false;
      if (m == 0 && std::all_of(of.begin(), of.end(), [](const isl::val& v) { return v.is_zero(); })) return false;
    }
  }
  return true;
}

/// The largest value of (input dimension - output dimension) over a relation.
int64_t largest_lead(const isl::map& relation, int input, int output) {
  const isl::set pairs = relation.wrap();
  const isl::aff lead = variable(pairs.space(), input)
                            .sub(variable(pairs.space(), static_cast<int>(relation.domain_tuple_dim()) + output));
  const isl::val value = pairs.max_val(lead);
  return value.is_int() ? to_int64(value) : INT64_MAX;
}

/// What the second cluster's member must be behind the first's: the most that a dependence leads.
int64_t shift_needed(const std::vector<isl::map>& dependences, const Alignment& a, const Cluster& x, size_t x_member,
                     const Cluster& y, size_t y_member) {
  int64_t needed = 0;
  for (size_t i = 0; i < x.statements.size(); ++i) {
    for (size_t j = 0; j < y.statements.size(); ++j) {
      if (!a.depends(x.statements[i], y.statements[j])) continue;
      const std::string source = tuple_name(a.domain(x.statements[i])), sink = tuple_name(a.domain(y.statements[j]));
      for (const isl::map& map : dependences) {
        if (domain_name(map) != source || range_name(map) != sink) continue;
        needed = std::max(needed, largest_lead(map, x.members[x_member][i], y.members[y_member][j]));
      }
    }
  }
  return needed;
}

}  // namespace

std::optional<Cluster> shifted(const Scop& scop, const Alignment& a, const Cluster& x, const Cluster& y) {
  if (!x.shifts.empty() || !y.shifts.empty()) return std::nullopt;
  const std::vector<isl::map> dependences = maps_of(scop.dependences.ordered());
  Cluster both;
  both.statements = x.statements;
  both.statements.insert(both.statements.end(), y.statements.begin(), y.statements.end());
  const size_t members = std::min(x.members.size(), y.members.size());
  for (size_t m = 0; m < members; ++m) {
    const int64_t extent =
        std::min(a.extent(x.statements[0], x.members[m][0]), a.extent(y.statements[0], y.members[m][0]));
    const int64_t shift = shift_needed(dependences, a, x, m, y, m);
    if (shift > extent / 2 || extent == 1) continue;
    std::vector<int>& member = both.members.emplace_back(x.members[m]);
    member.insert(member.end(), y.members[m].begin(), y.members[m].end());
    std::vector<int64_t>& shifts = both.shifts.emplace_back(x.statements.size(), 0);
    shifts.insert(shifts.end(), y.statements.size(), shift);
  }
  if (both.members.empty()) return std::nullopt;
  for (size_t s = 0; s < both.statements.size(); ++s) {
    std::vector<int>& left = both.remaining.emplace_back();
    for (int d = 0; d < a.dimensions(both.statements[s]); ++d) {
      const bool used = std::any_of(both.members.begin(), both.members.end(),
                                    [&](const std::vector<int>& member) { return member[s] == d; });
      if (!used) left.push_back(d);
    }
  }
  return both;
}

namespace {

/// isl's scheduler may take a hundred thousand times longer for one pair of statements than for the next: beyond this
/// many operations, at most a second, it is left to have no answer.
constexpr unsigned long kSchedulerOperations = 10'000;

std::optional<isl::schedule> try_to_schedule(const isl::schedule_constraints& constraints) {
  return within_operations(constraints.ctx(), kSchedulerOperations, [&] { return constraints.compute_schedule(); });
}

}  // namespace

std::optional<isl::schedule> skewed(const Scop& scop, const std::vector<isl::set>& domains, bool positive_orthant) {
  isl_ctx* ctx = scop.context->get().get();
  isl_options_set_schedule_whole_component(ctx, 1);
  isl_options_set_schedule_maximize_coincidence(ctx, 0);
  const isl::union_set domain = union_of(scop.context->get(), domains);
  auto inside = [&](const isl::union_map& map) { return map.intersect_domain(domain).intersect_range(domain); };
  isl::union_map validity = inside(scop.dependences.ordered());
  const isl::union_map coincidence = validity.unite(inside(scop.dependences.reduction));
  if (positive_orthant) validity = validity.unite(orthant(domains));
  const std::optional<isl::schedule> schedule = try_to_schedule(isl::schedule_constraints::on_domain(domain)
                                                                    .set_validity(validity)
                                                                    .set_coincidence(coincidence)
                                                                    .set_proximity(inside(scop.dependences.flow)));
  if (!schedule || !acceptable(*schedule, positive_orthant)) return std::nullopt;
  return schedule;
}

}  // namespace tc::poly
