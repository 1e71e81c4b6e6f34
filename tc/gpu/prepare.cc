#include "tc/gpu/prepare.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "tc/gpu/collapse.h"
#include "tc/gpu/limits.h"
#include "tc/gpu/names.h"
#include "tc/gpu/recompute.h"
#include "tc/ir/specialise.h"
#include "tc/support/check.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kBusyElements = 16384;  ///< from here on a thread for each element is enough
constexpr int64_t kBusyTiles = 1024;      ///< the same, where threads share what they read
constexpr int64_t kWarp = 32;
constexpr int64_t kLanes = 256;
constexpr int64_t kStepsPerPart = 16;
constexpr int64_t kRowsOfProcessor = 4;        ///< blocks that share rows keep a processor busy
constexpr int64_t kThreadsOfProcessor = 1024;  ///< threads with a result each do
constexpr int64_t kColumnPart = 32;            ///< iterations that a thread should have at least

Expr index_constant(int64_t value) { return hi::make_const(ir::index_type(), value); }

Expr index_variable(const std::string& name) { return hi::Variable::make(ir::index_type(), name); }

int64_t begin_of(const ir::Index& index) {
  const int64_t* value = hi::as_const_int(index.begin);
  TC_CHECK(value != nullptr, "a range of a specialised program is not constant");
  return *value;
}

int64_t extent_of(const ir::Index& index) {
  const int64_t* end = hi::as_const_int(index.end);
  TC_CHECK(end != nullptr, "a range of a specialised program is not constant");
  return *end - begin_of(index);
}

ir::Index make_index(const std::string& name, int64_t extent, bool is_reduction) {
  ir::Index index;
  index.name = name;
  index.begin = index_constant(0);
  index.end = index_constant(extent);
  index.is_reduction = is_reduction;
  return index;
}

/// How the longest reduction index is split: index = begin + (part * steps + step) * lanes + lane.
struct Split {
  size_t index = 0;
  int64_t lanes = 1;
  int64_t parts = 1;
};

/// Whether an expression reads a tensor that `is_it` accepts.
bool reads(const Expr& expr, const std::function<bool(const hi::Call*)>& is_it) {
  class Finder : public hi::IRVisitor {
   public:
    explicit Finder(const std::function<bool(const hi::Call*)>& is_it) : is_it_(is_it) {}
    bool found = false;

   private:
    using IRVisitor::visit;
    void visit(const hi::Call* call) override {
      found = found || is_it_(call);
      IRVisitor::visit(call);
    }
    const std::function<bool(const hi::Call*)>& is_it_;
  } finder(is_it);
  expr.accept(&finder);
  return finder.found;
}

bool reads_tensor(const ir::Program& program, const Expr& expr) {
  return reads(expr, [&](const hi::Call* call) { return ir::is_tensor_read(program, call); });
}

/// Whether every tensor that the value reads is read again for other results: threads that have a tile of results each
/// share it, and need no parts of the reduction (contraction_at()).
bool shares_operands(const ir::Program& program, const ir::Statement& statement) {
  constexpr int64_t kOften = 8;
  int count = 0;
  const bool once = reads(statement.value, [&](const hi::Call* call) {
    if (!ir::is_tensor_read(program, call)) return false;
    ++count;
    return std::none_of(statement.indices.begin(), statement.indices.end(), [&](const ir::Index& index) {
      const auto uses = [&](const Expr& e) { return hi::expr_uses_var(e, index.name); };
      return !index.is_reduction && extent_of(index) >= kOften &&
             std::none_of(call->args.begin(), call->args.end(), uses);
    });
  });
  return !once && count > 1;
}

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
      : program_(program), statement_(statement), split_(split) {
    for (const ir::Tensor& t : program.tensors) taken_.insert(t.name);
    for (const ir::Scalar& s : program.scalars) taken_.insert(s.name);
    for (const ir::Statement& s : program.statements) {
      taken_.insert(s.id);
      for (const ir::Index& i : s.indices) taken_.insert(i.name);
    }
    for (const ir::Index& i : statement.indices) {
      if (!i.is_reduction) kept_.push_back(i);
    }
  }

  std::vector<ir::Statement> run();

 private:
  ir::Statement lanes();
  ir::Statement stage(const std::string& suffix);
  std::string fresh(const std::string& wish) {
    std::string name = wish;
    for (int i = 1; !taken_.insert(name).second; ++i) name = wish + "_" + std::to_string(i);
    return name;
  }

  ir::Program& program_;
  const ir::Statement& statement_;
  const Split& split_;
  std::set<std::string> taken_;
  std::vector<ir::Index> kept_;  ///< dimensions of the partial results, but for the last
  std::vector<ir::Statement> done_;
};

/// A statement over the kept indices that sets a new temporary's elements; the temporary has a dimension for each, and
/// for what the caller adds to the statement's subscripts.
ir::Statement Splitter::stage(const std::string& suffix) {
  ir::Statement result;
  result.id = fresh(statement_.id + suffix);
  result.tensor = fresh(statement_.tensor + suffix);
  result.assign = statement_.assign;
  result.initialises = true;
  result.accumulator = statement_.accumulator;
  result.range = statement_.range;
  result.indices = kept_;
  for (const ir::Index& i : kept_) result.subscripts.push_back(index_variable(i.name) - i.begin);
  return result;
}

std::vector<Expr> extents_of(const std::vector<ir::Index>& indices) {
  std::vector<Expr> extents;
  for (const ir::Index& i : indices) extents.push_back(index_constant(extent_of(i)));
  return extents;
}

/// The partial results, one for each lane of each part.
ir::Statement Splitter::lanes() {
  const ir::Index& index = statement_.indices[split_.index];
  const int64_t extent = extent_of(index);
  const int64_t per_step = split_.lanes * split_.parts;
  const int64_t steps = (extent + per_step - 1) / per_step;
  const ir::Index step = make_index(fresh(index.name + "_step"), steps, true);
  Expr number = index_variable(step.name);
  if (split_.parts > 1) {
    kept_.push_back(make_index(fresh(index.name + "_part"), split_.parts, false));
    number = index_variable(kept_.back().name) * index_constant(steps) + number;
  }
  const ir::Index lane = make_index(fresh(index.name + "_lane"), split_.lanes, false);
  ir::Statement result = stage("_lanes");
  result.indices.push_back(lane);
  result.subscripts.push_back(index_variable(lane.name));
  std::vector<Expr> extents = extents_of(result.indices);
  for (size_t i = 0; i < statement_.indices.size(); ++i) {
    if (statement_.indices[i].is_reduction) result.indices.push_back(i == split_.index ? step : statement_.indices[i]);
  }
  const Expr offset = number * index_constant(split_.lanes) + index_variable(lane.name);
  if (steps * per_step != extent) result.guard = offset < index_constant(extent);
  const Expr value = begin_of(index) == 0 ? offset : offset + index.begin;
  result.value = hi::substitute(index.name, value, statement_.value);

  ir::Tensor tensor;
  tensor.name = result.tensor;
  tensor.type = statement_.accumulator;
  tensor.extents = std::move(extents);
  tensor.role = ir::Role::kTemporary;
  program_.tensors.push_back(std::move(tensor));
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
    std::vector<Expr> extents = extents_of(next.indices);
    const ir::Index over = make_index(fresh(name + "_twig"), extent / left, true);
    Expr at = index_variable(over.name);
    if (left > 1) {
      const ir::Index branch = make_index(fresh(name + "_branch"), left, false);
      next.indices.push_back(branch);
      next.subscripts.push_back(index_variable(branch.name));
      extents.push_back(branch.end);
      at = at * index_constant(left) + index_variable(branch.name);
    }
    next.indices.push_back(over);
    subscripts.push_back(at);
    next.value = read(last, subscripts);
    ir::Tensor tensor;
    tensor.name = next.tensor;
    tensor.type = statement_.accumulator;
    tensor.extents = extents;
    tensor.role = ir::Role::kTemporary;
    program_.tensors.push_back(std::move(tensor));
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
  const ir::Index over = make_index(fresh(name + "_last"), extent, true);
  result.indices.push_back(over);
  std::vector<Expr> subscripts;
  for (const ir::Index& i : kept_) subscripts.push_back(index_variable(i.name) - i.begin);
  subscripts.push_back(index_variable(over.name));
  result.value = read(done_.back(), subscripts);
  result.accesses.clear();
  done_.push_back(std::move(result));
  return std::move(done_);
}

/// How a reduction index is cut: index = begin + part * chunk + rest, and what is left over at the end.
struct Parts {
  size_t index = 0;
  int64_t count = 1;
  int64_t chunk = 1;
};

/// About `most` parts: a number that divides the extent into whole vectors, if there is one, or divides it at all.
Parts cut(size_t index, int64_t extent, int64_t most) {
  for (const int64_t multiple : {8, 4, 1}) {
    for (int64_t count = most; count > most / 2; --count) {
      if (extent % (count * multiple) == 0) return {index, count, extent / count};
    }
  }
  const int64_t chunk = extent / most;
  return {index, most, chunk >= 64 ? chunk / 16 * 16 : chunk};
}

std::optional<Parts> find_parts(const ir::Program& program, const ir::Statement& statement, const Device& device) {
  if (!statement.reduces() || statement.guard.defined() || shares_operands(program, statement)) return std::nullopt;
  for (const Expr& subscript : statement.subscripts) {
    if (reads_tensor(program, subscript)) return std::nullopt;
  }
  constexpr int64_t kMany = int64_t{1} << 40;
  int64_t elements = 1, work = 1, longest = 0;
  size_t at = 0;
  for (size_t i = 0; i < statement.indices.size(); ++i) {
    const int64_t extent = extent_of(statement.indices[i]);
    if (extent == 0) return std::nullopt;
    int64_t& product = statement.indices[i].is_reduction ? work : elements;
    product = std::min(product * std::min(extent, kMany), kMany);
    if (statement.indices[i].is_reduction && extent >= longest) {
      longest = extent;
      at = i;
    }
  }
  const bool along = runs_along_reduction(program, statement);
  const int64_t wanted = (along ? kRowsOfProcessor : kThreadsOfProcessor) * device.processors / elements;
  const int64_t most = std::min(
      {wanted, work / (along ? std::max<int64_t>(device.instances_of_launch / 64, 1) : kColumnPart), longest / 2});
  if (along && elements >= device.processors) return std::nullopt;
  return most < 2 ? std::nullopt : std::optional(cut(at, longest, most));
}

/// The statements that replace one: over the parts, over their results, over what is left.
class PartSplitter {
 public:
  PartSplitter(ir::Program& program, const ir::Statement& statement, const Parts& parts)
      : program_(program), statement_(statement), parts_(parts), names_(program) {
    for (const ir::Statement& s : program.statements) {
      names_.add(s.id);
      for (const ir::Index& i : s.indices) names_.add(i.name);
    }
  }

  std::vector<ir::Statement> run() {
    std::vector<ir::Statement> result = {of_parts()};
    result.push_back(together(result.front()));
    const int64_t left = extent_of(index()) - parts_.count * parts_.chunk;
    if (left > 0) result.push_back(rest(left));
    return result;
  }

 private:
  const ir::Index& index() const { return statement_.indices[parts_.index]; }
  /// The statement with another index in place of the one that is cut, which starts at `begin`.
  void replace(ir::Statement& s, const ir::Index& by, const Expr& begin) const {
    s.indices[parts_.index] = by;
    s.value = hi::substitute(index().name, index_variable(by.name) + begin, statement_.value);
    s.accesses.clear();
  }

  ir::Statement of_parts() {
    ir::Statement s = statement_;
    s.id = names_.fresh(statement_.id + "_parts");
    s.initialises = true;
    part_ = make_index(names_.fresh(index().name + "_part"), parts_.count, false);
    const Expr begin = hi::simplify(index_variable(part_.name) * index_constant(parts_.chunk) + index().begin);
    replace(s, make_index(names_.fresh(index().name + "_rest"), parts_.chunk, true), begin);
    ir::Tensor tensor;
    tensor.name = s.tensor = names_.fresh(statement_.tensor + "_parts");
    tensor.type = statement_.accumulator;
    tensor.role = ir::Role::kTemporary;
    s.subscripts.clear();
    std::vector<ir::Index> kept;
    for (const ir::Index& i : s.indices) {
      if (!i.is_reduction) kept.push_back(i);
    }
    // Neighbours in memory stay neighbours: parts last, where the reduction runs along memory; else first.
    kept.insert(runs_along_reduction(program_, statement_) ? kept.end() : kept.begin(), part_);
    for (const ir::Index& i : kept) {
      tensor.extents.push_back(index_constant(extent_of(i)));
      s.subscripts.push_back(begin_of(i) == 0 ? index_variable(i.name) : index_variable(i.name) - i.begin);
    }
    for (const ir::Index& i : s.indices) {
      if (i.is_reduction) kept.push_back(i);
    }
    s.indices = kept;
    program_.tensors.push_back(std::move(tensor));
    return s;
  }

  ir::Statement together(const ir::Statement& parts) const {
    ir::Statement s = statement_;
    std::erase_if(s.indices, [](const ir::Index& i) { return i.is_reduction; });
    s.indices.push_back(part_);
    s.indices.back().is_reduction = true;
    s.value = hi::Call::make(statement_.accumulator, parts.tensor, parts.subscripts, hi::Call::PureExtern);
    s.accesses.clear();
    return s;
  }

  ir::Statement rest(int64_t left) {
    ir::Statement s = statement_;
    s.id = names_.fresh(statement_.id + "_left");
    s.initialises = false;
    const Expr begin = hi::simplify(index_constant(parts_.count * parts_.chunk) + index().begin);
    replace(s, make_index(index().name, left, true), begin);
    return s;
  }

  ir::Program& program_;
  const ir::Statement& statement_;
  const Parts& parts_;
  Names names_;
  ir::Index part_;
};

}  // namespace

bool runs_along_reduction(const ir::Program& program, const ir::Statement& statement) {
  return reads(statement.value, [&](const hi::Call* call) {
    if (!ir::is_tensor_read(program, call) || call->args.empty()) return false;
    bool reduction = false, result = false;
    for (const ir::Index& index : statement.indices) {
      const bool used = hi::expr_uses_var(call->args.back(), index.name);
      reduction = reduction || (used && index.is_reduction);
      result = result || (used && !index.is_reduction);
    }
    return reduction && !result;
  });
}

ir::Program split_reductions(ir::Program program, const Device& device) {
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

ir::Program split_into_parts(ir::Program program, const Device& device) {
  std::vector<ir::Statement> statements;
  std::set<std::string> over_parts;
  for (const ir::Statement& statement : std::vector<ir::Statement>(program.statements)) {
    const std::optional<Parts> parts = find_parts(program, statement, device);
    if (!parts) {
      statements.push_back(statement);
      continue;
    }
    for (ir::Statement& s : PartSplitter(program, statement, *parts).run()) {
      if (s.tensor != statement.tensor) over_parts.insert(s.id);
      statements.push_back(std::move(s));
    }
  }
  gather_parts(statements, over_parts);
  program.statements = std::move(statements);
  return program;
}

ir::Program prepare(ir::Program program, const options::MappingOptions& options, const Device& device) {
  if (options.strict) return program;
  if (!chooses_freely(options)) return split_reductions(std::move(program), device);
  return split_into_parts(
      collapse_dimensions(recompute_temporaries(std::move(program), device.instances_of_launch / 4)), device);
}

}  // namespace tc::gpu
