#include "tc/gpu/rewrite/parts.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include "tc/gpu/rewrite/kernel_options.h"
#include "tc/gpu/rewrite/memory_order.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/specialise.h"
#include "tc/support/round.h"

namespace tc::gpu {

namespace hi = Halide::Internal;

namespace {

constexpr int64_t kRowsOfProcessor = 4;        ///< blocks that share rows keep a processor busy
constexpr int64_t kThreadsOfProcessor = 1024;  ///< threads with results of their own do
constexpr int64_t kReadBytes = 4;              ///< that a thread should read at once: neighbours, if they are smaller
constexpr int64_t kColumnPart = 32;            ///< iterations that a thread should have at least
constexpr int64_t kLeastRun = 512;             ///< bytes side by side that a part of several indices should read

using Cuts = std::vector<Parts>;  ///< of several reduction indices; none: the reduction stays whole

/// About `most` parts: a number that divides the extent into whole vectors, if there is one, or divides it at all. Else
/// one that leaves few iterations over, as there are few threads for these; parts of rows are whole vectors then.
Parts even_parts(size_t index, int64_t extent, int64_t most, bool along) {
  for (const int64_t multiple : {8, 4, 1}) {
    for (int64_t count = most; count > most / 2; --count) {
      if (extent % (count * multiple) == 0) return {index, count, extent / count, true};
    }
  }
  Parts best{index, most, 0, true};
  for (int64_t count = most; count > most / 2; --count) {
    const int64_t chunk = along && extent / count >= 64 ? extent / count / 16 * 16 : extent / count;
    if (best.chunk == 0 || extent - count * chunk < extent - best.count * best.chunk) {
      best.count = count;
      best.chunk = chunk;
    }
  }
  return best;
}

/// The largest number of parts, up to `most`, that divides the extent or leaves less than one part over.
Parts parts_within(size_t index, int64_t extent, int64_t most) {
  for (int64_t count = most; count > most / 2; --count) {
    if (extent % count == 0) return {index, count, extent / count, true};
  }
  const int64_t count = extent % most < extent / most ? most : extent / ceil_div(extent, most);
  return {index, count, extent / count, true};
}

/// Of what the largest reads read.
int64_t bytes_of_element(const ir::Program& program, const ir::Statement& statement) {
  int64_t bytes = 1;
  for (const hi::Call* read : largest_reads(program, statement)) bytes = std::max<int64_t>(bytes, read->type.bytes());
  return bytes;
}

/// Instances that a part should have at least: for the threads of a block that share it, or for one thread.
int64_t least_work(bool along, const Device& device) {
  return along ? std::max<int64_t>(device.instances_of_launch / 64, 1) : kColumnPart;
}

/// Cuts of several indices into about `most` parts together. Those that leap farthest in memory are cut first: what a
/// part reads then stays in few pieces. The index along memory keeps runs of `kLeastRun` bytes. About two parts' work
/// may be left over.
Cuts cuts_of_several(const ir::Program& program, const ir::Statement& statement, const Reduction& r, int64_t most,
                     bool along, const Device& device) {
  const std::vector<size_t> order = memory_order(program, statement);
  const int64_t spare = 2 * (r.work / most + least_work(along, device));
  const int64_t least = along ? kLeastRun / bytes_of_element(program, statement) : 1;
  Cuts cuts;
  bool even = true;
  for (size_t i = 0; i < order.size() && most >= 2; ++i) {
    const int64_t extent = extent_of(statement.indices[order[i]]);
    const int64_t limit = std::min(most, i + 1 < order.size() ? extent : extent / least);
    if (limit < 2) continue;
    const Parts parts = parts_within(order[i], extent, limit);
    const int64_t left = extent - parts.count * parts.chunk;
    if (left > 0 && (!even || r.work / extent * left > spare)) continue;
    even = even && left == 0;
    cuts.push_back(parts);
    most /= parts.count;
  }
  return cuts;
}

int64_t count_of(const Cuts& cuts) {
  return std::accumulate(cuts.begin(), cuts.end(), int64_t{1},
                         [](int64_t n, const Parts& cut) { return n * cut.count; });
}

Cuts placed(Cuts cuts, bool in_front) {
  for (Parts& cut : cuts) cut.in_front = in_front;
  return cuts;
}

bool has_several_indices(const ir::Statement& statement) {
  return std::count_if(statement.indices.begin(), statement.indices.end(),
                       [](const ir::Index& i) { return i.is_reduction && extent_of(i) > 1; }) > 1;
}

/// Of a reduction whose operands nobody shares: as many parts as keep the device busy.
Cuts find_parts(const ir::Program& program, const ir::Statement& statement, const Reduction& r, const Device& device) {
  const bool along = runs_along_reduction(program, statement);
  const int64_t neighbours = std::max<int64_t>(kReadBytes / bytes_of_element(program, statement), 1);
  const int64_t results = along ? kRowsOfProcessor : kThreadsOfProcessor * neighbours;
  const int64_t wanted = results * device.processors / r.elements;
  const int64_t most = std::min(wanted, r.work / least_work(along, device));
  if (most < 2 || (along && r.elements >= device.processors)) return {};
  if (has_several_indices(statement))
    return placed(cuts_of_several(program, statement, r, most, along, device), !along);
  if (r.extent < 4) return {};
  Parts parts = even_parts(r.longest, r.extent, std::min(most, r.extent / 2), along);
  parts.cyclic = !along;  // all go through memory together, and leave its end in the cache
  return placed({parts}, !along);
}

/// Whether threads that have a tile of results each share operands.
bool has_tiles(const ir::Program& program, const ir::Statement& statement, const ContractionParts& contractions) {
  return shares_operands(program, statement) ||
         (may_be_cut(program, statement) && contractions.is_contraction(program, statement));
}

/// As many cuts as the options ask for, where there are enough instances.
Cuts cuts_asked_for(const ir::Program& program, const ir::Statement& statement, const Reduction& r, int64_t count,
                    bool tiles, const Device& device) {
  if (count == 1 || r.work < 2 * count) return {};
  const bool along = runs_along_reduction(program, statement);
  if (!tiles && has_several_indices(statement)) {
    const Cuts cuts = placed(cuts_of_several(program, statement, r, count, along, device), !along);
    if (count_of(cuts) == count) return cuts;
  }
  if (r.extent < 2 * count) return {};
  return {Parts{r.longest, count, r.extent / count, tiles || !along}};
}

/// As the options say, or as the estimate does.
Cuts cuts_of(const ir::Program& program, const ir::Statement& statement, const options::MappingOptions& options,
             const Device& device, const ContractionParts& contractions, bool tiles) {
  const std::optional<Reduction> r = reduction_of(program, statement);
  if (!r) return {};
  if (const auto count = options.split_reduction) return cuts_asked_for(program, statement, *r, *count, tiles, device);
  if (!tiles) return find_parts(program, statement, *r, device);
  const std::optional<Parts> parts = contractions.choose(program, statement, *r);
  return parts ? Cuts{*parts} : Cuts{};
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

/// Options of single kernels that ask for parts, where no reduction was cut.
Result<void> check_cut(const ir::Program& program, const options::MappingOptions& options,
                       const std::set<std::string>& cut) {
  for (const options::KernelOptions& kernel : options.kernel) {
    if (kernel.split_reduction.value_or(1) == 1) continue;
    bool is_known = false, is_cut = false;
    for (const ir::Statement& s : program.statements) {
      const std::optional<Address> address = address_of(program, s.id);
      if (!address || !is_about(kernel, *address)) continue;
      is_known = true;
      is_cut = is_cut || cut.count(s.id) > 0;
    }
    if (is_known && !is_cut) {
      return fail(
          "'split_reduction' of the kernel {} is {}, but it has no reduction with twice as many instances for a "
          "result to be cut",
          options::address_text(kernel), *kernel.split_reduction);
    }
  }
  return {};
}

/// Where the reduction over parts goes among the statements: before those that prepare the results.
size_t place_of_parts(const std::vector<ir::Statement>& statements, const std::string& tensor) {
  size_t to = statements.size();
  while (to > 0 && statements[to - 1].tensor == tensor && !statements[to - 1].reduces()) --to;
  return to;
}

}  // namespace

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

std::vector<Parts> busy_parts(const ir::Program& program, const ir::Statement& statement, const Device& device) {
  const std::optional<Reduction> r = reduction_of(program, statement);
  return r ? find_parts(program, statement, *r, device) : Cuts{};
}

Result<Prepared> split_into_parts(ir::Program program, const options::MappingOptions& options, const Device& device,
                                  const ContractionParts& contractions, const std::set<std::string>& whole) {
  Prepared result{program, options};
  ir::Program& changed = result.program;
  std::vector<ir::Statement> statements;
  std::set<std::string> over_parts;
  std::vector<int64_t> counts;
  std::set<std::string> cut_ids;
  for (const ir::Statement& statement : std::vector<ir::Statement>(changed.statements)) {
    const bool tiles = has_tiles(changed, statement, contractions);
    const Cuts cuts =
        whole.count(statement.id) > 0
            ? Cuts{}
            : cuts_of(changed, statement, options_at(program, statement.id, options), device, contractions, tiles);
    if (statement.reduces()) counts.push_back(count_of(cuts));
    if (cuts.empty()) {
      statements.push_back(statement);
      continue;
    }
    cut_ids.insert(statement.id);
    PartStatements cut = part_statements(changed, statement, cuts);
    if (!tiles) over_parts.insert(cut.of_parts.id);
    const size_t at = tiles ? place_of_parts(statements, statement.tensor) : statements.size();
    statements.insert(statements.begin() + static_cast<long>(at), std::move(cut.of_parts));
    statements.push_back(std::move(cut.together));
    if (cut.left) statements.push_back(*std::move(cut.left));
  }
  TC_TRY_VOID(check_cut(program, options, cut_ids));
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
