#include "tc/cpu/prepare.h"

#include <fmt/format.h>

#include <algorithm>

#include "tc/cpu/program_edit.h"

namespace tc::cpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

bool uses_reduction_index(const ir::Statement& statement, const Expr& expr) {
  return std::any_of(statement.indices.begin(), statement.indices.end(),
                     [&](const ir::Index& i) { return i.is_reduction && hi::expr_uses_var(expr, i.name); });
}

/// The elements that a statement may write, as a copy between its tensor and the temporary runs over them.
ir::Statement copy_frame(const ir::Statement& statement, const ir::Tensor& tensor) {
  ir::Statement copy;
  copy.range = statement.range;
  if (has_plain_subscripts(statement)) {
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

ir::Program prepare(const ir::Program& program, const PrepareOptions& options) {
  ir::Program result = prepare_operands(widen_accumulators(program), options);
  return options.strict ? result : split_reductions(std::move(result), options);
}

}  // namespace tc::cpu
