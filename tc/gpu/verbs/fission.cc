#include "tc/gpu/verbs/fission.h"

#include <isl/schedule_node.h>

#include <algorithm>
#include <optional>

#include "tc/gpu/verbs/partition_launches.h"
#include "tc/poly/band_ref.h"
#include "tc/poly/restricted.h"
#include "tc/poly/schedule.h"

namespace tc::gpu {
namespace {

/// The part's statements in program order, an initialisation with its update.
std::vector<std::vector<std::string>> units_of(const poly::Scop& part) {
  std::vector<std::vector<std::string>> units;
  bool open = false;
  for (const std::string& id : poly::statements_at(part, part.schedule.root())) {
    if (!open) units.emplace_back();
    units.back().push_back(id);
    open = part.statement(id).kind == poly::Statement::Kind::kInit;
  }
  return units;
}

}  // namespace

Result<std::vector<poly::Scop>> fission(const poly::Scop& part, const options::SchedulerOptions& options,
                                        const std::function<bool(const poly::Scop&)>& fits) {
  /// The statements as one launch, if a recipe fits them.
  const auto together = [&](const std::vector<std::string>& ids) -> Result<std::optional<poly::Scop>> {
    TC_TRY(scheduled, poly::schedule(poly::restricted(part, ids), options));
    poly::Scop whole = part;
    whole.schedule = scheduled.schedule;
    std::vector<poly::Scop> launches = partition_launches(whole);
    if (launches.size() != 1 || !fits(launches[0])) return std::nullopt;
    return std::move(launches[0]);
  };
  std::vector<poly::Scop> result;
  std::vector<std::string> group;
  for (const std::vector<std::string>& unit : units_of(part)) {
    std::vector<std::string> larger = group;
    larger.insert(larger.end(), unit.begin(), unit.end());
    TC_TRY(one, together(larger));
    if (one && !group.empty()) {
      result.back() = *std::move(one);
      group = larger;
      continue;
    }
    if (!group.empty()) {
      TC_TRY(alone, together(unit));
      one = std::move(alone);
    }
    if (one) {
      result.push_back(*std::move(one));
      group = unit;
      continue;
    }
    // Atomic updates leave their initialisation to a launch before.
    group.clear();
    for (const std::string& id : unit) {
      TC_TRY(alone, unit.size() > 1 ? together({id}) : std::nullopt);
      if (!alone) return std::vector<poly::Scop>();
      result.push_back(*std::move(alone));
    }
  }
  return result;
}

}  // namespace tc::gpu
