#include "tc/gpu/rewrite/reduction_lanes.h"

#include <algorithm>
#include <optional>
#include <set>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/names.h"
#include "tc/ir/specialise.h"
#include "tc/support/check.h"
#include "tc/support/round.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kBusyElements = 16384;  ///< from here on a thread for each element is enough
constexpr int64_t kBusyTiles = 1024;      ///< the same, where threads share what they read
constexpr int64_t kWarp = 32;
constexpr int64_t kLanes = 256;
constexpr int64_t kStepsPerPart = 16;

/// How the longest reduction index is split: index = begin + (part * steps + step) * lanes + lane.
struct Split {
  size_t index = 0;
  int64_t lanes = 1;
  int64_t parts = 1;
};

std::optional<Split> find_split(const ir::Program& program, const ir::Statement& statement, const Device& device) {
  if (!statement.reduces() || statement.guard.defined()) return std::nullopt;
  for (const Expr& subscript : statement.subscripts) {
    if (reads_tensor(program, subscript)) return std::nullopt;
  }
  int64_t elements = 1, longest = 0;
  Split split;
  for (size_t i = 0; i < statement.indices.size(); ++i) {
    const int64_t extent = extent_of(statement.indices[i]);
    if (extent == 0) return std::nullopt;
    if (!statement.indices[i].is_reduction) {
      elements *= std::min(extent, kBusyElements);
      if (elements >= kBusyElements) return std::nullopt;
    } else if (extent >= longest) {
      longest = extent;
      split.index = i;
    }
  }
  if (longest < 2 * kWarp) return std::nullopt;
  if (elements >= kBusyTiles && longest <= elements && shares_operands(program, statement)) return std::nullopt;
  split.lanes = longest >= 4 * kLanes ? kLanes : kWarp;
  const int64_t steps = (longest + split.lanes - 1) / split.lanes;
  if (elements == 1 && split.lanes == kLanes) {
    split.parts = std::clamp<int64_t>(steps / kStepsPerPart, 1, 2 * device.processors);
  }
  return split;
}

/// Splits one statement into the chain that replaces it.
class Splitter {
 public:
  Splitter(ir::Program& program, const ir::Statement& statement, const Split& split)
      : program_(program), statement_(statement), split_(split), names_(ir::Names::among_statements(program)) {
    for (const ir::Index& i : statement.indices) {
      if (!i.is_reduction) kept_.push_back(i);
    }
  }

  std::vector<ir::Statement> run();

 private:
  ir::Statement lanes();
  ir::Statement stage(const std::string& suffix);

  ir::Program& program_;
  const ir::Statement& statement_;
  const Split& split_;
  ir::Names names_;
  std::vector<ir::Index> kept_;  ///< dimensions of the partial results, but for the last
  std::vector<ir::Statement> done_;
};

/// A statement over the kept indices that sets a new temporary's elements; the temporary has a dimension for each, and
/// for what the caller adds to the statement's subscripts.
ir::Statement Splitter::stage(const std::string& suffix) {
  ir::Statement result;
  result.id = names_.fresh(statement_.id + suffix);
  result.tensor = names_.fresh(statement_.tensor + suffix);
  result.assign = statement_.assign;
  result.initialises = true;
  result.accumulator = statement_.accumulator;
  result.range = statement_.range;
  result.indices = kept_;
  for (const ir::Index& i : kept_) result.subscripts.push_back(index_variable(i.name) - i.begin);
  return result;
}

/// The partial results, one for each lane of each part.
ir::Statement Splitter::lanes() {
  const ir::Index& index = statement_.indices[split_.index];
  const int64_t extent = extent_of(index);
  const int64_t per_step = split_.lanes * split_.parts;
  const int64_t steps = ceil_div(extent, per_step);
  const ir::Index step = make_index(names_.fresh(index.name + "_step"), steps, true);
  Expr number = index_variable(step.name);
  if (split_.parts > 1) {
    kept_.push_back(make_index(names_.fresh(index.name + "_part"), split_.parts, false));
    number = index_variable(kept_.back().name) * index_constant(steps) + number;
  }
  const ir::Index lane = make_index(names_.fresh(index.name + "_lane"), split_.lanes, false);
  ir::Statement result = stage("_lanes");
  result.indices.push_back(lane);
  result.subscripts.push_back(index_variable(lane.name));
  program_.tensors.push_back(temporary_over(result.tensor, statement_.accumulator, result.indices));
  for (size_t i = 0; i < statement_.indices.size(); ++i) {
    if (statement_.indices[i].is_reduction) result.indices.push_back(i == split_.index ? step : statement_.indices[i]);
  }
  const Expr offset = number * index_constant(split_.lanes) + index_variable(lane.name);
  if (steps * per_step != extent) result.guard = offset < index_constant(extent);
  const Expr value = begin_of(index) == 0 ? offset : offset + index.begin;
  result.value = hi::substitute(index.name, value, statement_.value);
  return result;
}

Expr read(const ir::Statement& stage, std::vector<Expr> subscripts) {
  return hi::Call::make(stage.accumulator, stage.tensor, subscripts, hi::Call::PureExtern);
}

/// Partial results, then stages that combine them, the last of which is the statement itself.
std::vector<ir::Statement> Splitter::run() {
  done_.push_back(lanes());
  int64_t extent = split_.lanes;
  const std::string name = statement_.indices[split_.index].name;
  auto reduce = [&](const std::string& suffix, int64_t left) {
    const ir::Statement& last = done_.back();
    ir::Statement next = stage(suffix);
    std::vector<Expr> subscripts = next.subscripts;
    const ir::Index over = make_index(names_.fresh(name + "_twig"), extent / left, true);
    Expr at = index_variable(over.name);
    if (left > 1) {
      const ir::Index branch = make_index(names_.fresh(name + "_branch"), left, false);
      next.indices.push_back(branch);
      next.subscripts.push_back(index_variable(branch.name));
      at = at * index_constant(left) + index_variable(branch.name);
    }
    program_.tensors.push_back(temporary_over(next.tensor, statement_.accumulator, next.indices));
    next.indices.push_back(over);
    subscripts.push_back(at);
    next.value = read(last, subscripts);
    done_.push_back(std::move(next));
    extent = left;
  };
  constexpr int64_t kBranches = 16;
  if (extent > kWarp) reduce("_tree", kBranches);
  if (split_.parts > 1) {
    reduce("_parts", 1);
    extent = split_.parts;
    kept_.pop_back();
  }
  ir::Statement result = statement_;
  result.indices = kept_;
  const ir::Index over = make_index(names_.fresh(name + "_last"), extent, true);
  result.indices.push_back(over);
  std::vector<Expr> subscripts;
  for (const ir::Index& i : kept_) subscripts.push_back(index_variable(i.name) - i.begin);
  subscripts.push_back(index_variable(over.name));
  result.value = read(done_.back(), subscripts);
  result.accesses.clear();
  done_.push_back(std::move(result));
  return std::move(done_);
}

}  // namespace

ir::Program reductions_in_lanes(ir::Program program, const Device& device) {
  std::vector<ir::Statement> statements;
  for (const ir::Statement& statement : std::vector<ir::Statement>(program.statements)) {
    const std::optional<Split> split = find_split(program, statement, device);
    if (!split) {
      statements.push_back(statement);
      continue;
    }
    for (ir::Statement& s : Splitter(program, statement, *split).run()) statements.push_back(std::move(s));
  }
  program.statements = std::move(statements);
  return program;
}

}  // namespace tc::gpu
