#include "tc/gpu/verbs/partition_launches.h"

#include <algorithm>

#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/verbs/free_members.h"
#include "tc/ir/halide_compat.h"
#include "tc/poly/band_ref.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/rebuild.h"

namespace tc::gpu {
namespace {

constexpr int64_t kBusyThreads = 256;  ///< of a processor
constexpr int64_t kMany = int64_t{1} << 40;

/// How many results a statement has, and how many instances.
struct Width {
  int64_t results = 1;
  int64_t instances = 1;
};

Width width_of(const ir::Statement& statement) {
  Width width;
  for (const ir::Index& index : statement.indices) {
    const int64_t extent = *ir::constant_int(index.end) - *ir::constant_int(index.begin);
    const int64_t bounded = std::clamp<int64_t>(extent, 0, kMany);
    width.instances = std::min(width.instances * bounded, kMany);
    if (!index.is_reduction) width.results = std::min(width.results * bounded, kMany);
  }
  return width;
}

}  // namespace

std::vector<poly::Scop> partition_launches(const poly::Scop& scop) {
  std::vector<poly::Scop> parts;
  if (scop.domain.is_empty()) return parts;
  const isl::schedule_node top = scop.schedule.root().child(0);
  auto add = [&](const isl::schedule_node& node) {
    poly::Scop part = scop;
    part.schedule = poly::subtree(node);
    if (part.schedule.domain().is_empty()) return;
    if (!parts.empty() && !has_blocks(parts.back()) && !has_blocks(part)) {
      parts.back().schedule = poly::sequence(parts.back().schedule, part.schedule);
    } else {
      parts.push_back(std::move(part));
    }
  };
  if (!top.isa<isl::schedule_node_sequence>() && !top.isa<isl::schedule_node_set>()) {
    add(top);
  } else {
    for (unsigned i = 0; i < top.n_children(); ++i) add(top.child(i).child(0));
  }
  return parts;
}

namespace {

/// Results from which on a statement keeps the device busy: a block works on each, or, in a reduction whose results are
/// neighbours in memory, a thread.
int64_t busy_results(const ir::Program& program, const ir::Statement& statement, const Device& device) {
  const bool threads = statement.reduces() && !runs_along_reduction(program, statement);
  return device.processors * (threads ? kBusyThreads : 1);
}

/// Whether the few threads of a reduction would go through much of what many threads could do at once. Along memory a
/// block's threads share one, but not what is itself reduced.
bool waits_in_turn(const ir::Program& program, const ir::Statement& of_narrow, const ir::Statement& of_wide,
                   const Width& narrow, const Width& wide) {
  constexpr int64_t kManyTurns = 64;  // which take longer than a launch
  const bool in_turn = !runs_along_reduction(program, of_narrow) || of_wide.reduces();
  return of_narrow.reduces() && in_turn && narrow.results > 0 && wide.instances / narrow.results >= kManyTurns &&
         wide.results / narrow.results >= 8;
}

bool belong_apart(const ir::Program& program, const ir::Statement& a, const ir::Statement& b, const Device& device) {
  const Width first = width_of(a), second = width_of(b);
  if (first.results == second.results) return false;
  const bool is_first = first.results < second.results;
  const Width &wide = is_first ? second : first, &narrow = is_first ? first : second;
  const ir::Statement &of_narrow = is_first ? a : b, &of_wide = is_first ? b : a;
  if (narrow.results >= busy_results(program, of_narrow, device)) return false;
  return wide.instances >= device.instances_of_launch || waits_in_turn(program, of_narrow, of_wide, narrow, wide);
}

}  // namespace

std::vector<size_t> sensible_cuts(const poly::Scop& scop, const Device& device) {
  std::vector<size_t> result;
  const std::vector<ir::Statement>& statements = scop.program->statements;
  for (size_t i = 1; i < statements.size(); ++i) {
    if (!belong_apart(*scop.program, statements[i - 1], statements[i], device)) continue;
    const std::string first = statements[i].id + (statements[i].initialises ? "_init" : "");
    const auto at = std::find_if(scop.statements.begin(), scop.statements.end(),
                                 [&](const poly::Statement& s) { return s.id == first; });
    result.push_back(static_cast<size_t>(at - scop.statements.begin()));
  }
  return result;
}

bool is_worth_launches(const poly::Scop& part, const Device& device) {
  const std::vector<std::string> here = poly::statements_at(part, part.schedule.root());
  return std::any_of(part.program->statements.begin(), part.program->statements.end(), [&](const ir::Statement& s) {
    return std::count(here.begin(), here.end(), s.id) > 0 && width_of(s).instances >= device.instances_of_launch;
  });
}

}  // namespace tc::gpu
