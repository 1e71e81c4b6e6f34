#include "tc/gpu/parts.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "tc/gpu/contraction_plan.h"
#include "tc/gpu/limits.h"
#include "tc/gpu/part_statements.h"
#include "tc/gpu/statements.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kRowsOfProcessor = 4;        ///< blocks that share rows keep a processor busy
constexpr int64_t kThreadsOfProcessor = 1024;  ///< threads with a result each do
constexpr int64_t kColumnPart = 32;            ///< iterations that a thread should have at least

/// About `most` parts: a number that divides the extent into whole vectors, if there is one, or divides it at all.
Parts cut(size_t index, int64_t extent, int64_t most) {
  for (const int64_t multiple : {8, 4, 1}) {
    for (int64_t count = most; count > most / 2; --count) {
      if (extent % (count * multiple) == 0) return {index, count, extent / count, true};
    }
  }
  const int64_t chunk = extent / most;
  return {index, most, chunk >= 64 ? chunk / 16 * 16 : chunk, true};
}

/// The longest reduction index of a statement that may be cut, and how much there is to do; nothing of others.
struct Reduction {
  size_t longest = 0;
  int64_t extent = 0;    ///< of that index
  int64_t elements = 1;  ///< results
  int64_t work = 1;      ///< instances for each
};

std::optional<Reduction> reduction_of(const ir::Program& program, const ir::Statement& statement) {
  if (!may_be_cut(program, statement)) return std::nullopt;
  constexpr int64_t kMany = int64_t{1} << 40;
  Reduction result;
  for (size_t i = 0; i < statement.indices.size(); ++i) {
    const int64_t extent = extent_of(statement.indices[i]);
    if (extent == 0) return std::nullopt;
    int64_t& product = statement.indices[i].is_reduction ? result.work : result.elements;
    product = std::min(product * std::min(extent, kMany), kMany);
    if (statement.indices[i].is_reduction && extent >= result.extent) {
      result.extent = extent;
      result.longest = i;
    }
  }
  return result;
}

/// Of a reduction whose operands nobody shares: as many parts as keep the device busy.
std::optional<Parts> find_parts(const ir::Program& program, const ir::Statement& statement, const Reduction& r,
                                const Device& device) {
  const bool along = runs_along_reduction(program, statement);
  const int64_t wanted = (along ? kRowsOfProcessor : kThreadsOfProcessor) * device.processors / r.elements;
  const int64_t most = std::min(
      {wanted, r.work / (along ? std::max<int64_t>(device.instances_of_launch / 64, 1) : kColumnPart), r.extent / 2});
  if (most < 2 || (along && r.elements >= device.processors)) return std::nullopt;
  Parts parts = cut(r.longest, r.extent, most);
  parts.in_front = !along;
  return parts;
}

/// The same with the reduction axis `name` in parts, which are a parallel axis in front.
Contraction in_parts(Contraction c, const std::string& name, int64_t count, int64_t chunk) {
  const auto axis = std::find_if(c.reduction.begin(), c.reduction.end(), [&](const Axis& a) { return a.name == name; });
  const auto at = static_cast<size_t>(axis - c.reduction.begin());
  axis->extent = chunk;
  c.parallel.insert(c.parallel.begin(), Axis{name + "_part", 0, count});
  for (Operand& operand : c.operands) {
    for (Subscript& s : operand.subscripts) s.parallel.insert(s.parallel.begin(), s.reduction[at] * chunk);
  }
  return c;
}

/// Of a contraction: as many parts as give the least estimated time, with the launch that adds them up.
std::optional<Parts> find_contraction_parts(const ir::Program& program, const ir::Statement& statement,
                                            const Reduction& r, const options::MappingOptions& options,
                                            const Device& device) {
  constexpr int64_t kTile = 4096, kVector = 2;  // results that keep a processor busy
  // Of one index, or of all instances beside it: of four products of three factors on an H200, parts of 128 instances
  // took 13 to 25 % longer than estimated beside those of 256.
  constexpr int64_t kLeastChunk = 64, kLeastInstances = 256;
  // Of one kernel with many groups of threads less is estimated, by 8 % on an H200, than of parts that take as long:
  // parts may be 2 % worse.
  constexpr double kLaunchUs = 1, kCacheBytesOfUs = 4e6, kWorthIt = 0.98;
  if (!takes_contractions(options) || !options.tile.empty() || !options.register_tile.empty() ||
      !options.map_to_threads.empty() || r.elements > kTile * device.processors ||
      (r.extent < 2 * kLeastChunk && r.work < 2 * kLeastInstances)) {
    return std::nullopt;
  }
  const std::optional<Contraction> contraction = contraction_of(program, statement);
  if (!contraction) return std::nullopt;
  const auto planned_us = [&](const Contraction& c) {
    const Result<ContractionPlan> plan = plan_contraction(c, options, device);
    return plan ? plan->cycles / (1e3 * device.gigahertz) : std::numeric_limits<double>::infinity();
  };
  double best = planned_us(*contraction) / kWorthIt;
  std::optional<Parts> parts;
  for (const int64_t count : {2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32}) {
    if (r.extent % (count * kVector) != 0) continue;
    if (r.extent / count < kLeastChunk && r.work / count < kLeastInstances) continue;
    const int64_t bytes = r.elements * statement.accumulator.bytes();
    const double adding = kLaunchUs + static_cast<double>(bytes * (count + 1)) / kCacheBytesOfUs;
    const std::string& name = statement.indices[r.longest].name;
    const double us = planned_us(in_parts(*contraction, name, count, r.extent / count)) + adding;
    if (us >= best) continue;
    best = us;
    parts = Parts{r.longest, count, r.extent / count, true};
  }
  return parts;
}

/// As the options say, or as the estimate does.
std::optional<Parts> parts_of(const ir::Program& program, const ir::Statement& statement,
                              const options::MappingOptions& options, const Device& device) {
  const std::optional<Reduction> r = reduction_of(program, statement);
  if (!r) return std::nullopt;
  const bool shares = shares_operands(program, statement);
  if (options.split_reduction) {
    const int64_t count = *options.split_reduction;
    if (count == 1 || r->extent < 2 * count) return std::nullopt;
    return Parts{r->longest, count, r->extent / count, shares || !runs_along_reduction(program, statement)};
  }
  return shares ? find_contraction_parts(program, statement, *r, options, device)
                : find_parts(program, statement, *r, device);
}

/// Brings a reduction over parts up to those before it, so that they go through what they read together; leaves it
/// where it is if it needs what is in between.
void gather_parts(std::vector<ir::Statement>& statements, const std::set<std::string>& over_parts) {
  for (size_t i = 1; i < statements.size(); ++i) {
    if (over_parts.count(statements[i].id) == 0) continue;
    size_t to = i;
    while (to > 0 && over_parts.count(statements[to - 1].id) == 0 &&
           !reads(statements[i].value, [&](const hi::Call* call) { return call->name == statements[to - 1].tensor; })) {
      --to;
    }
    if (to == 0 || over_parts.count(statements[to - 1].id) == 0) continue;
    const auto begin = statements.begin();
    std::rotate(begin + static_cast<long>(to), begin + static_cast<long>(i), begin + static_cast<long>(i) + 1);
  }
}

/// Where the reduction over parts goes among the statements: before those that prepare the results.
size_t place_of_parts(const std::vector<ir::Statement>& statements, const std::string& tensor) {
  size_t to = statements.size();
  while (to > 0 && statements[to - 1].tensor == tensor && !statements[to - 1].reduces()) --to;
  return to;
}

}  // namespace

Result<Prepared> split_into_parts(ir::Program program, const options::MappingOptions& options, const Device& device,
                                  const std::set<std::string>& whole) {
  Prepared result{std::move(program), options};
  ir::Program& changed = result.program;
  std::vector<ir::Statement> statements;
  std::set<std::string> over_parts;
  std::vector<int64_t> counts;
  for (const ir::Statement& statement : std::vector<ir::Statement>(changed.statements)) {
    const std::optional<Parts> parts =
        whole.count(statement.id) > 0 ? std::nullopt : parts_of(changed, statement, options, device);
    if (statement.reduces()) counts.push_back(parts ? parts->count : 1);
    if (!parts) {
      statements.push_back(statement);
      continue;
    }
    const bool shares = shares_operands(changed, statement);
    PartStatements cut = part_statements(changed, statement, *parts);
    if (!shares) over_parts.insert(cut.of_parts.id);
    const size_t at = shares ? place_of_parts(statements, statement.tensor) : statements.size();
    statements.insert(statements.begin() + static_cast<long>(at), std::move(cut.of_parts));
    statements.push_back(std::move(cut.together));
    if (cut.left) statements.push_back(*std::move(cut.left));
  }
  const int64_t most = counts.empty() ? 1 : *std::max_element(counts.begin(), counts.end());
  if (options.split_reduction.value_or(1) > most) {
    return fail("'split_reduction' is {}, but no reduction has twice as many instances for a result to be cut",
                *options.split_reduction);
  }
  if (counts.size() == 1) result.options.split_reduction = counts[0];
  gather_parts(statements, over_parts);
  changed.statements = std::move(statements);
  return result;
}

}  // namespace tc::gpu
