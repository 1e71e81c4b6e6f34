#include "tc/gpu/strategy/coverage.h"

#include <fmt/format.h>
#include <isl/map.h>
#include <isl/set.h>
#include <isl/union_map.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "tc/gpu/strategy/idle_instances.h"
#include "tc/ir/reads.h"
#include "tc/poly/band_ref.h"
#include "tc/poly/isl_ext.h"

namespace tc::gpu {
namespace {

template <typename Object, typename Print>
std::string text_of(const Object& object, Print print) {
  char* text = print(object.get());
  const std::string result = text;
  std::free(text);
  return result;
}

bool reads_itself(const ir::Program& program, const poly::Statement& statement) {
  const auto reads = ir::reads_in(program, statement.value);
  return std::any_of(reads.begin(), reads.end(), [&](const auto* read) { return read->name == statement.tensor; });
}

/// { S[i] -> T[x] } ==> { S[i] -> [x] }
isl::map of_elements(const isl::map& relation) {
  return isl::manage(isl_map_reset_tuple_id(relation.copy(), isl_dim_out));
}

tile::Work::Access access_of(const poly::Access& access) {
  return {.tensor = access.tensor,
          .relation = text_of(of_elements(access.relation), isl_map_to_str),
          .is_write = access.writes(),
          .exact = access.exact && access.kind != poly::Access::Kind::kMayWrite};
}

/// What a launch writes of one tensor.
struct Written {
  isl::union_map exactly;  ///< { S[i] -> [x] }
  bool by_data = false;
};

bool is_written(const tile::Kernel& code, const std::string& tensor) {
  return std::any_of(code.tensors.begin(), code.tensors.end(),
                     [&](const tile::Tensor& t) { return t.name == tensor && t.written; });
}

/// Whether the caller or a later launch looks at what a launch writes of the tensor.
bool is_seen(const Mapping& mapping, size_t kernel, const ir::Tensor& tensor) {
  if (tensor.role != ir::Role::kTemporary) return true;
  return std::any_of(mapping.edges.begin(), mapping.edges.end(), [&](const Edge& edge) {
    return edge.tensor == tensor.name && edge.from == static_cast<int>(kernel);
  });
}

/// Adds a fault of a kernel for each statement with instances in a set.
void add_faults(const poly::Scop& scop, const Mapping& mapping, size_t kernel, const char* what,
                const isl::union_set& instances, tile::Proof& proof) {
  for (const isl::set& domain : poly::statement_domains(scop)) {
    const isl::union_set wrong = instances.intersect(isl::union_set(domain));
    if (wrong.is_empty()) continue;
    const isl::set set = wrong.as_set();
    proof.coverages.at(kernel).faults.push_back(
        fmt::format("{}: {}{}", mapping.program.kernels[kernel].name, what, text_of(set.lexmin(), isl_set_to_str)));
  }
}

}  // namespace

tile::Work work_of(const Mapping& mapping, size_t kernel) {
  const Kernel& decided = mapping.kernels[kernel];
  const poly::Scop& scop = decided.scop;
  tile::Work work;
  std::map<std::string, Written> written;
  const isl::union_set launch = poly::node_domain(scop.schedule.root());
  std::set<std::string> seen;
  for (const ir::Tensor& tensor : scop.program->tensors) {
    if (is_seen(mapping, kernel, tensor)) seen.insert(tensor.name);
  }
  const isl::union_set idle = idle_instances(scop, launch, seen);
  for (const isl::set& domain : poly::sets_of(launch)) {
    if (decided.find_copy(poly::tuple_name(domain))) continue;
    const poly::Statement& statement = scop.statement(poly::tuple_name(domain));
    const bool adds = statement.kind == poly::Statement::Kind::kUpdate || reads_itself(*scop.program, statement);
    work.statements.push_back({.id = statement.id,
                               .domain = text_of(domain, isl_set_to_str),
                               .reduced = statement.is_reduction,
                               .adds = adds,
                               .guarded = statement.guard.defined()});
    const isl::union_set own_idle = idle.intersect(isl::union_set(domain));
    if (!own_idle.is_empty()) work.statements.back().idle = text_of(own_idle.as_set(), isl_set_to_str);
    std::vector<bool>& reduced = work.statements.back().reduced;
    for (const poly::Access& access : scop.accesses) {
      if (access.statement != statement.id || access.kind == poly::Access::Kind::kAccumulate) continue;
      if (access.relation.is_empty()) continue;  // a guard never holds; as text, it would have no dimensions
      work.statements.back().accesses.push_back(access_of(access));
      if (!access.writes()) continue;
      Written& of_tensor =
          written.try_emplace(access.tensor, Written{isl::union_map::empty(scop.context->get())}).first->second;
      if (access.kind == poly::Access::Kind::kMayWrite) {
        of_tensor.by_data = true;
        reduced.assign(statement.indices.size(), true);  // they may all write one element
        continue;
      }
      of_tensor.exactly =
          of_tensor.exactly.unite(isl::union_map(of_elements(access.relation.intersect_domain(domain))));
    }
  }
  for (const auto& [name, what] : written) {
    const bool dies = !seen.contains(name);
    if (dies && !is_written(mapping.program.kernels[kernel], name)) continue;
    work.results.push_back(
        {.tensor = name, .writes = text_of(what.exactly, isl_union_map_to_str), .by_data = what.by_data, .dies = dies});
  }
  return work;
}

tile::Proof prove(const poly::Scop& scop, const Mapping& mapping, const tile::Limits& limits) {
  std::vector<tile::Work> works;
  for (size_t k = 0; k < mapping.kernels.size(); ++k) works.push_back(work_of(mapping, k));
  tile::Proof proof = tile::prove(mapping.program, limits, works);
  isl::union_set left = scop.domain;
  for (size_t k = 0; k < mapping.kernels.size(); ++k) {
    const isl::union_set part = poly::node_domain(mapping.kernels[k].scop.schedule.root()).intersect(scop.domain);
    add_faults(scop, mapping, k, "runs again what an earlier kernel runs: ", part.subtract(left), proof);
    left = left.subtract(part);
  }
  add_faults(scop, mapping, mapping.kernels.size() - 1, "is the last, and none runs ", left, proof);
  return proof;
}

Result<void> check_launches(const poly::Scop& scop, const Mapping& mapping) {
  return poly::within_budget(*scop.context, [&]() -> Result<void> {
    isl::union_set left = scop.domain, before = isl::union_set::empty(scop.context->get());
    const auto first = [](const isl::union_set& instances) {
      std::vector<std::string> texts;  // isl has its sets in no order
      for (const isl::set& set : poly::sets_of(instances)) texts.push_back(text_of(set.lexmin(), isl_set_to_str));
      return *std::min_element(texts.begin(), texts.end());
    };
    const isl::union_map ordered = scop.dependences.ordered();
    for (size_t k = 0; k < mapping.kernels.size(); ++k) {
      const std::string& name = mapping.program.kernels[k].name;
      const isl::union_set part = poly::node_domain(mapping.kernels[k].scop.schedule.root()).intersect(scop.domain);
      const isl::union_set again = part.subtract(left);
      if (!again.is_empty()) return fail("{} runs again what an earlier kernel runs: {}", name, first(again));
      const isl::union_map backwards = ordered.intersect_domain(part).intersect_range(before);
      if (!backwards.is_empty()) {
        return fail("{} runs {}, which an earlier kernel depends on", name, first(backwards.domain()));
      }
      left = left.subtract(part);
      before = before.unite(part);
    }
    if (!left.is_empty()) return fail("no kernel runs {}", first(left));
    return {};
  });
}

std::vector<tile::Coverage> cover(const Mapping& mapping) {
  std::vector<tile::Coverage> result;
  for (size_t k = 0; k < mapping.kernels.size(); ++k) {
    result.push_back(tile::cover(mapping.program.kernels[k], work_of(mapping, k)));
  }
  return result;
}

}  // namespace tc::gpu
