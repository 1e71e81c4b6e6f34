#include "tc/poly/restricted.h"

#include <isl/union_set.h>

#include <algorithm>

#include "tc/poly/isl_ext.h"

namespace tc::poly {

Scop restricted(const Scop& scop, const std::vector<std::string>& statements) {
  std::vector<isl::set> domains;
  for (const isl::set& domain : statement_domains(scop)) {
    if (std::count(statements.begin(), statements.end(), tuple_name(domain)) > 0) domains.push_back(domain);
  }
  return restricted(
      scop, domains.empty() ? isl::union_set::empty(scop.context->get()) : union_of(scop.context->get(), domains));
}

Scop restricted(const Scop& scop, size_t first, size_t last) {
  std::vector<std::string> statements;
  for (size_t s = first; s < last; ++s) statements.push_back(scop.statements[s].id);
  return restricted(scop, statements);
}

Scop restricted(const Scop& scop, const isl::union_set& instances) {
  Scop result = scop;
  result.domain = instances;
  const std::vector<isl::set> domains = sets_of(instances);
  const auto within = [&](const isl::union_map& map) {
    return map.intersect_domain(result.domain).intersect_range(result.domain);
  };
  Dependences& d = result.dependences;
  for (isl::union_map* map : {&d.flow, &d.anti, &d.output, &d.reduction, &d.all_ordered}) *map = within(*map);
  std::erase_if(result.accesses, [&](const Access& access) {
    return std::none_of(domains.begin(), domains.end(),
                        [&](const isl::set& domain) { return tuple_name(domain) == access.statement; });
  });
  result.schedule = isl::schedule::from_domain(result.domain);
  return result;
}

Scop part_of(const Scop& scop, const isl::schedule& part) {
  Scop result = scop;
  result.schedule = part;
  const isl::union_set here = part.domain(), all = scop.domain.intersect(here.universe());
  if (all.is_subset(here)) return result;
  result.domain = scop.domain.subtract(all).unite(here);
  return result;
}

}  // namespace tc::poly
