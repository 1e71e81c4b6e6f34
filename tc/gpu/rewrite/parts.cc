#include "tc/gpu/rewrite/parts.h"

#include <algorithm>
#include <optional>
#include <set>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kRowsOfProcessor = 4;        ///< blocks that share rows keep a processor busy
constexpr int64_t kThreadsOfProcessor = 1024;  ///< threads with a result each do
constexpr int64_t kColumnPart = 32;            ///< iterations that a thread should have at least

/// About `most` parts: a number that divides the extent into whole vectors, if there is one, or divides it at all.
Parts even_parts(size_t index, int64_t extent, int64_t most) {
  for (const int64_t multiple : {8, 4, 1}) {
    for (int64_t count = most; count > most / 2; --count) {
      if (extent % (count * multiple) == 0) return {index, count, extent / count, true};
    }
  }
  const int64_t chunk = extent / most;
  return {index, most, chunk >= 64 ? chunk / 16 * 16 : chunk, true};
}

/// Nothing of a statement that may not be cut.
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
  Parts parts = even_parts(r.longest, r.extent, most);
  parts.in_front = !along;
  return parts;
}

/// Whether threads that have a tile of results each share operands.
bool has_tiles(const ir::Program& program, const ir::Statement& statement, const ContractionParts& contractions) {
  return shares_operands(program, statement) ||
         (may_be_cut(program, statement) && contractions.is_contraction(program, statement));
}

/// As the options say, or as the estimate does.
std::optional<Parts> parts_of(const ir::Program& program, const ir::Statement& statement,
                              const options::MappingOptions& options, const Device& device,
                              const ContractionParts& contractions, bool tiles) {
  const std::optional<Reduction> r = reduction_of(program, statement);
  if (!r) return std::nullopt;
  if (options.split_reduction) {
    const int64_t count = *options.split_reduction;
    if (count == 1 || r->extent < 2 * count) return std::nullopt;
    return Parts{r->longest, count, r->extent / count, tiles || !runs_along_reduction(program, statement)};
  }
  return tiles ? contractions.choose(program, statement, *r) : find_parts(program, statement, *r, device);
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
                                  const ContractionParts& contractions, const std::set<std::string>& whole) {
  Prepared result{std::move(program), options};
  ir::Program& changed = result.program;
  std::vector<ir::Statement> statements;
  std::set<std::string> over_parts;
  std::vector<int64_t> counts;
  for (const ir::Statement& statement : std::vector<ir::Statement>(changed.statements)) {
    const bool tiles = has_tiles(changed, statement, contractions);
    const std::optional<Parts> parts = whole.count(statement.id) > 0
                                           ? std::nullopt
                                           : parts_of(changed, statement, options, device, contractions, tiles);
    if (statement.reduces()) counts.push_back(parts ? parts->count : 1);
    if (!parts) {
      statements.push_back(statement);
      continue;
    }
    PartStatements cut = part_statements(changed, statement, *parts);
    if (!tiles) over_parts.insert(cut.of_parts.id);
    const size_t at = tiles ? place_of_parts(statements, statement.tensor) : statements.size();
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
