#include "tc/cpu/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "tc/cpu/access_steps.h"
#include "tc/support/check.h"

namespace tc::cpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// Elements from which a reduction without any parallel dimension is cut into parts.
constexpr int64_t kPartElements = 1 << 16;
constexpr int64_t kParts = 16;
/// Vectors of partial results side by side: enough to hide the latency of an addition.
constexpr int64_t kVectors = 4;

Expr index_constant(int64_t value) { return hi::make_const(ir::index_type(), value); }

Expr index_variable(const std::string& name) { return hi::Variable::make(ir::index_type(), name); }

int64_t constant(const Expr& expr) {
  const int64_t* value = hi::as_const_int(expr);
  TC_CHECK(value != nullptr, "a range of a specialised program is not constant");
  return *value;
}

Expr read(const ir::Tensor& tensor, const std::vector<Expr>& subscripts) {
  return hi::Call::make(tensor.type, tensor.name, subscripts, hi::Call::PureExtern);
}

/// A name that nothing in the program has.
std::string fresh(const ir::Program& program, const std::string& wish) {
  std::set<std::string> taken;
  for (const ir::Tensor& t : program.tensors) taken.insert(t.name);
  for (const ir::Scalar& s : program.scalars) taken.insert(s.name);
  for (const ir::Statement& s : program.statements) {
    taken.insert(s.id);
    for (const ir::Index& i : s.indices) taken.insert(i.name);
  }
  std::string name = wish;
  for (int i = 1; taken.count(name) > 0; ++i) name = wish + "_" + std::to_string(i);
  return name;
}

ir::Tensor& add_temporary(ir::Program& program, const std::string& wish, Halide::Type type, std::vector<Expr> extents) {
  ir::Tensor tensor;
  tensor.name = fresh(program, wish);
  tensor.type = type;
  tensor.extents = std::move(extents);
  tensor.role = ir::Role::kTemporary;
  program.tensors.push_back(std::move(tensor));
  return program.tensors.back();
}

// --- T3 -----------------------------------------------------------------------------------------------------------

bool uses_reduction_index(const ir::Statement& statement, const Expr& expr) {
  return std::any_of(statement.indices.begin(), statement.indices.end(),
                     [&](const ir::Index& i) { return i.is_reduction && hi::expr_uses_var(expr, i.name); });
}

/// The elements that a statement may write, as a copy between its tensor and the temporary runs over them.
ir::Statement copy_frame(const ir::Statement& statement, const ir::Tensor& tensor) {
  ir::Statement copy;
  copy.range = statement.range;
  bool plain = std::all_of(statement.subscripts.begin(), statement.subscripts.end(),
                           [](const Expr& subscript) { return subscript.as<hi::Variable>() != nullptr; });
  if (plain) {
    copy.subscripts = statement.subscripts;
    std::copy_if(statement.indices.begin(), statement.indices.end(), std::back_inserter(copy.indices),
                 [](const ir::Index& i) { return !i.is_reduction; });
    bool keeps_guard = statement.guard.defined() && !uses_reduction_index(statement, statement.guard);
    if (keeps_guard) copy.guard = statement.guard;
    return copy;
  }
  for (int d = 0; d < tensor.rank(); ++d) {
    ir::Index index;
    index.name = fmt::format("d{}", d);
    index.begin = index_constant(0);
    index.end = tensor.extents[static_cast<size_t>(d)];
    copy.subscripts.push_back(index_variable(index.name));
    copy.indices.push_back(std::move(index));
  }
  return copy;
}

ir::Statement conversion(ir::Statement frame, const std::string& id, const ir::Tensor& to, const ir::Tensor& from) {
  frame.id = id;
  frame.tensor = to.name;
  frame.value = hi::Cast::make(to.type, read(from, frame.subscripts));
  frame.accumulator = to.type;
  return frame;
}

// --- partial results ----------------------------------------------------------------------------------------------

/// How a reduction is split: index = begin + (part * steps + step) * lanes + lane.
struct Split {
  size_t index = 0;
  int64_t lanes = 1;
  int64_t parts = 1;
};

int64_t extent_of(const ir::Index& index) { return constant(index.end) - constant(index.begin); }

class Splitter {
 public:
  Splitter(const ir::Program& program, const PrepareOptions& options, const ir::Statement& statement)
      : program_(program),
        options_(options),
        statement_(statement),
        references_(references(program, statement.tensor, statement.subscripts, statement.value, statement.guard)) {}

  std::optional<Split> find() const {
    if (!statement_.reduces() || statement_.guard.defined() || statement_.value.type().is_bool()) return std::nullopt;
    bool plain = std::all_of(statement_.subscripts.begin(), statement_.subscripts.end(),
                             [](const Expr& subscript) { return subscript.as<hi::Variable>() != nullptr; });
    if (!plain) return std::nullopt;
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

ir::Index make_index(const std::string& name, int64_t extent, bool is_reduction) {
  ir::Index index;
  index.name = name;
  index.begin = index_constant(0);
  index.end = index_constant(extent);
  index.is_reduction = is_reduction;
  return index;
}

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
  Expr value = constant(index.begin) == 0 ? offset : offset + index.begin;
  partial.value = hi::substitute(index.name, value, statement.value);

  const ir::Tensor& tensor = add_temporary(program, statement.tensor + "_lanes", statement.accumulator, extents);
  partial.tensor = tensor.name;
  combined.value = read(tensor, partial.subscripts);
  return {partial, combined};
}

}  // namespace

ir::Program widen_accumulators(ir::Program program) {
  std::vector<ir::Statement> statements;
  for (ir::Statement statement : std::vector<ir::Statement>(program.statements)) {
    const ir::Tensor tensor = program.tensor(statement.tensor);
    if (!statement.reduces() || statement.accumulator == tensor.type) {
      statements.push_back(std::move(statement));
      continue;
    }
    const ir::Tensor sum = add_temporary(program, tensor.name + "_sum", statement.accumulator, tensor.extents);
    ir::Statement frame = copy_frame(statement, tensor);
    if (!statement.initialises) {
      statements.push_back(conversion(frame, fresh(program, statement.id + "_widen"), sum, tensor));
    }
    std::string id = statement.id;
    statement.tensor = sum.name;
    statements.push_back(std::move(statement));
    statements.push_back(conversion(frame, fresh(program, id + "_narrow"), tensor, sum));
  }
  program.statements = std::move(statements);
  return program;
}

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

ir::Program prepare(const ir::Program& program, const PrepareOptions& options) {
  ir::Program result = widen_accumulators(program);
  return options.strict ? result : split_reductions(std::move(result), options);
}

}  // namespace tc::cpu
