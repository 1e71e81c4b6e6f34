#include <algorithm>
#include <optional>

#include "tc/cpu/access_steps.h"
#include "tc/cpu/prepare.h"
#include "tc/cpu/program_edit.h"

namespace tc::cpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// Elements from which a reduction without any parallel dimension is cut into parts.
constexpr int64_t kPartElements = 1 << 16;
constexpr int64_t kParts = 16;
/// Vectors of partial results side by side: enough to hide the latency of an addition.
constexpr int64_t kVectors = 4;

/// How a reduction is split: index = begin + (part * steps + step) * lanes + lane.
struct Split {
  size_t index = 0;
  int64_t lanes = 1;
  int64_t parts = 1;
};

class Splitter {
 public:
  Splitter(const ir::Program& program, const PrepareOptions& options, const ir::Statement& statement)
      : program_(program),
        options_(options),
        statement_(statement),
        references_(references(program, statement.tensor, statement.subscripts, statement.value, statement.guard)) {}

  std::optional<Split> find() const {
    if (!statement_.reduces() || statement_.guard.defined() || statement_.value.type().is_bool()) return std::nullopt;
    if (!has_plain_subscripts(statement_)) return std::nullopt;
    for (const Reference& reference : references_) {
      // What is checked at run time is reported by the statement of the source.
      if (std::find(reference.forms.begin(), reference.forms.end(), std::nullopt) != reference.forms.end()) {
        return std::nullopt;
      }
    }
    int64_t lanes = native_lanes();
    for (const ir::Index& index : statement_.indices) {
      if (!index.is_reduction && extent_of(index) >= std::max<int64_t>(lanes / 2, 4) && fits(index, true)) {
        return std::nullopt;
      }
    }
    for (size_t i = statement_.indices.size(); i-- > 0;) {
      const ir::Index& index = statement_.indices[i];
      if (!index.is_reduction || extent_of(index) < 2 * lanes || !fits(index, false)) continue;
      return split_of(i, lanes);
    }
    return std::nullopt;
  }

 private:
  int64_t native_lanes() const {
    if (options_.vector_width > 0) return options_.vector_width;
    int bytes = statement_.accumulator.bytes();
    for (const Reference& r : references_) bytes = std::max(bytes, program_.tensor(r.tensor).type.bytes());
    return std::max(2, options_.vector_bits / (8 * bytes));
  }

  /// True if vectors along the index read and write consecutive elements, or one for all lanes.
  bool fits(const ir::Index& index, bool writes) const {
    bool runs = false;
    for (const Reference& reference : references_) {
      if (reference.is_write && !writes) continue;
      auto step = memory_step(program_, options_.layouts, reference, index.name);
      if (!step || (*step != 1 && (*step != 0 || reference.is_write))) return false;
      runs = runs || *step == 1;
    }
    return runs;
  }

  Split split_of(size_t i, int64_t lanes) const {
    const ir::Index& index = statement_.indices[i];
    int64_t extent = extent_of(index);
    bool shares = false;
    int64_t points = 1;
    for (const ir::Index& other : statement_.indices) {
      if (other.is_reduction) continue;
      points *= std::max<int64_t>(extent_of(other), 1);
      bool reuses = std::any_of(references_.begin(), references_.end(), [&](const Reference& r) {
        return !r.is_write && r.depends_on(index.name) && !r.depends_on(other.name);
      });
      shares = shares || (reuses && extent_of(other) >= kVectors);
    }
    int64_t vectors = shares ? 1 : std::min(kVectors, extent / (2 * lanes));
    while ((vectors & (vectors - 1)) != 0) --vectors;
    Split split{i, lanes * std::max<int64_t>(vectors, 1), 1};
    if (points < options_.threads && extent >= kPartElements) split.parts = kParts;
    return split;
  }

  const ir::Program& program_;
  const PrepareOptions& options_;
  const ir::Statement& statement_;
  std::vector<Reference> references_;
};

/// The statement that makes the partial results, and the one that combines them.
std::pair<ir::Statement, ir::Statement> split_statement(ir::Program& program, const ir::Statement& statement,
                                                        const Split& split) {
  const ir::Index& index = statement.indices[split.index];
  const int64_t extent = extent_of(index);
  const int64_t steps = (extent + split.lanes * split.parts - 1) / (split.lanes * split.parts);
  ir::Index lane = make_index(fresh(program, index.name + "_lane"), split.lanes, false);
  ir::Index part = make_index(fresh(program, index.name + "_part"), split.parts, false);
  ir::Index step = make_index(fresh(program, index.name + "_vector"), steps, true);

  ir::Statement partial = statement;
  partial.id = fresh(program, statement.id + "_lanes");
  partial.initialises = true;
  partial.indices.clear();
  ir::Statement combined = statement;
  combined.indices.clear();
  for (const ir::Index& i : statement.indices) {
    if (!i.is_reduction) partial.indices.push_back(i), combined.indices.push_back(i);
  }
  std::vector<Expr> extents = program.tensor(statement.tensor).extents;
  auto add_dimension = [&](ir::Index added) {
    extents.push_back(added.end);
    partial.indices.push_back(added);
    partial.subscripts.push_back(index_variable(added.name));
    added.is_reduction = true;
    combined.indices.push_back(added);
  };
  Expr number = index_variable(step.name);
  if (split.parts > 1) {
    add_dimension(part);
    number = index_variable(part.name) * index_constant(steps) + number;
  }
  add_dimension(lane);
  for (size_t i = 0; i < statement.indices.size(); ++i) {
    if (!statement.indices[i].is_reduction) continue;
    partial.indices.push_back(i == split.index ? step : statement.indices[i]);
  }
  Expr offset = number * index_constant(split.lanes) + index_variable(lane.name);
  if (steps * split.lanes * split.parts != extent) partial.guard = offset < index_constant(extent);
  Expr value = begin_of(index) == 0 ? offset : offset + index.begin;
  partial.value = hi::substitute(index.name, value, statement.value);

  const ir::Tensor& tensor = add_temporary(program, statement.tensor + "_lanes", statement.accumulator, extents);
  partial.tensor = tensor.name;
  combined.value = read(tensor, partial.subscripts);
  return {partial, combined};
}

}  // namespace

ir::Program split_reductions(ir::Program program, const PrepareOptions& options) {
  std::vector<ir::Statement> statements;
  for (const ir::Statement& statement : std::vector<ir::Statement>(program.statements)) {
    std::optional<Split> split = Splitter(program, options, statement).find();
    if (!split) {
      statements.push_back(statement);
      continue;
    }
    auto [partial, combined] = split_statement(program, statement, *split);
    statements.push_back(std::move(partial));
    statements.push_back(std::move(combined));
  }
  program.statements = std::move(statements);
  return program;
}

}  // namespace tc::cpu
