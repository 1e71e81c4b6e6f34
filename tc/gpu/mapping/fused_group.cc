#include "tc/gpu/mapping/fused_group.h"

#include <isl/schedule_node.h>
#include <isl/set.h>

#include <algorithm>

#include "tc/gpu/verbs/free_members.h"
#include "tc/poly/band_ref.h"
#include "tc/poly/isl_ext.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

bool is_box(const isl::set& set) { return isl_set_is_box(set.get()) == isl_bool_true; }

std::optional<GroupStatement> statement_of(const poly::Scop& scop, const std::string& id, const isl::set& domain) {
  GroupStatement result;
  result.statement = &scop.statement(id);
  if (result.statement->guard.defined() || !is_box(domain)) return std::nullopt;
  for (const poly::Access& access : scop.accesses) {
    if (access.statement == id && access.kind == poly::Access::Kind::kMayWrite) return std::nullopt;
  }
  for (int i = 0; i < static_cast<int>(result.statement->indices.size()); ++i) {
    const int64_t begin = poly::to_int64(domain.dim_min_val(i));
    result.ranges.push_back({begin, poly::to_int64(domain.dim_max_val(i)) - begin + 1});
  }
  return result;
}

/// The index of each statement that a member of the band is; nothing if one of them has none.
std::optional<std::vector<int>> indices_of(const FusedGroup& part, const poly::BandInfo& band, int member) {
  std::vector<int> indices;
  for (const GroupStatement& s : part.statements) {
    const auto& names = s.statement->indices;
    const auto found = std::find(names.begin(), names.end(), band.index_of(member, s.statement->id));
    if (found == names.end()) return std::nullopt;
    indices.push_back(static_cast<int>(found - names.begin()));
  }
  return indices;
}

/// Gives the part the band's members that carry nothing; false if one of them is not one index of each statement, or
/// not over the same range.
bool share(FusedGroup& part, const poly::BandInfo& band) {
  for (int m = 0; m < band.members(); ++m) {
    const auto at = static_cast<size_t>(m);
    if (!band.coincident[at] && band.extents[at] > 1) continue;
    const std::optional<std::vector<int>> indices = indices_of(part, band, m);
    if (!indices && band.extents[at] == 1) continue;
    if (!indices) return false;
    const ir::Range range = part.statements[0].ranges[static_cast<size_t>(indices->at(0))];
    for (size_t i = 0; i < indices->size(); ++i) {
      if (part.statements[i].ranges[static_cast<size_t>(indices->at(i))] != range) return false;
      part.statements[i].shared.push_back(indices->at(i));
    }
    part.members.push_back(range);
  }
  return true;
}

}  // namespace

int GroupStatement::index_of(const Expr& expr) const {
  const auto* variable = expr.as<hi::Variable>();
  if (variable == nullptr) return -1;
  const auto found = std::find(statement->indices.begin(), statement->indices.end(), variable->name);
  return found == statement->indices.end() ? -1 : static_cast<int>(found - statement->indices.begin());
}

int GroupStatement::member_of(const Expr& expr) const {
  const int index = index_of(expr);
  const auto found = std::find(shared.begin(), shared.end(), index);
  return index < 0 || found == shared.end() ? -1 : static_cast<int>(found - shared.begin());
}

int64_t GroupStatement::inner_size() const {
  int64_t size = 1;
  for (const int i : inner) size *= ranges[static_cast<size_t>(i)].extent;
  return size;
}

bool FusedGroup::writes(const std::string& tensor) const {
  return std::any_of(statements.begin(), statements.end(),
                     [&](const GroupStatement& s) { return s.statement->tensor == tensor; });
}

bool FusedGroup::is_seen_outside(const std::string& tensor) const {
  if (scop->program->tensor(tensor).role != ir::Role::kTemporary) return true;
  return std::any_of(scop->accesses.begin(), scop->accesses.end(), [&](const poly::Access& access) {
    return access.tensor == tensor && access.reads() && inlined.count(access.statement) == 0 &&
           std::none_of(statements.begin(), statements.end(),
                        [&](const GroupStatement& s) { return s.statement->id == access.statement; });
  });
}

std::optional<FusedGroup> group_of_statements(const poly::Scop& scop, const std::vector<std::string>& statements) {
  FusedGroup part;
  part.scop = &scop;
  const std::vector<isl::set> domains = poly::sets_of(poly::node_domain(scop.schedule.root()));
  for (const std::string& id : statements) {
    const auto domain =
        std::find_if(domains.begin(), domains.end(), [&](const isl::set& set) { return poly::tuple_name(set) == id; });
    std::optional<GroupStatement> statement = statement_of(scop, id, *domain);
    if (!statement) return std::nullopt;
    part.statements.push_back(*std::move(statement));
  }
  return part;
}

std::optional<FusedGroup> fused_group_of(const poly::Scop& scop) {
  const isl::schedule_node root = scop.schedule.root();
  std::optional<FusedGroup> found = group_of_statements(scop, poly::statements_at(scop, root));
  if (!found) return std::nullopt;
  FusedGroup& part = *found;
  const isl::schedule_node band = first_band(root);
  if (band.isa<isl::schedule_node_band>() && !share(part, poly::band_info(scop, {poly::path_of(band)}))) {
    return std::nullopt;
  }
  for (GroupStatement& s : part.statements) {
    for (int i = 0; i < static_cast<int>(s.ranges.size()); ++i) {
      if (std::find(s.shared.begin(), s.shared.end(), i) == s.shared.end()) s.inner.push_back(i);
    }
  }
  return found;
}

size_t nearest_dimension(const ir::Tensor& tensor) {
  const size_t rank = tensor.extents.size();
  const bool apart = rank > 1 && !tensor.strides.empty() && tensor.strides[rank - 2] > 1 &&
                     Halide::Internal::is_const_one(tensor.extents.back());
  return rank == 0 ? 0 : rank - (apart ? 2 : 1);
}

}  // namespace tc::gpu
