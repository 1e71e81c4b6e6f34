#include "tc/compile/index_functions.h"

#include <fmt/format.h>

#include <algorithm>

#include "tc/interp/interpreter.h"
#include "tc/ir/check_subscripts.h"
#include "tc/ir/index_expr.h"
#include "tc/support/check.h"

namespace tc::compile {
namespace {

/// How many values the indices of a statement take together; ir::kMaxIndexValues + 1 where there are more.
int64_t values_of(const ir::Statement& statement) {
  int64_t values = 1;
  for (const ir::Index& index : statement.indices) {
    const auto begin = ir::constant_value(index.begin), end = ir::constant_value(index.end);
    TC_CHECK(begin && end, "'{}' has no constant range", index.name);
    if (__builtin_mul_overflow(values, *end - *begin, &values) || values > ir::kMaxIndexValues)
      return ir::kMaxIndexValues + 1;
  }
  return values;
}

/// A result of the check as a subscript: its bits are those of the subscript's type.
int64_t subscript_of(uint64_t found, ScalarType type) {
  const auto bits = static_cast<int64_t>(found);
  return type == ScalarType::kInt32   ? static_cast<int32_t>(bits)
         : type == ScalarType::kInt16 ? static_cast<int16_t>(bits)
         : type == ScalarType::kInt8  ? static_cast<int8_t>(bits)
                                      : bits;
}

/// The greatest subscript of a check in the order of violation(), by runs of so many values that the deadline is kept.
Result<int64_t> greatest(ir::Program program, const ir::SubscriptCheck& check, ir::Statement statement,
                         const ir::Deadline& deadline) {
  constexpr int64_t kValuesOfRun = 1 << 14;
  const auto extent = [](const ir::Index& index) {
    return *ir::constant_value(index.end) - *ir::constant_value(index.begin);
  };
  const auto longest = std::ranges::max_element(statement.indices, {}, extent);
  int64_t step = 1, begin = 0, end = 1;
  if (longest != statement.indices.end()) {
    step = std::max<int64_t>(1, kValuesOfRun / std::max<int64_t>(1, values_of(statement) / extent(*longest)));
    begin = *ir::constant_value(longest->begin);
    end = *ir::constant_value(longest->end);
  }
  uint64_t greatest = 0;
  for (int64_t first = begin; first < end; first += step) {
    if (deadline.is_over()) return tl::unexpected(ir::OutOfTime(deadline).error);
    if (longest != statement.indices.end()) {
      longest->begin = ir::index_constant(first);
      longest->end = ir::index_constant(std::min(first + step, end));
    }
    program.statements = {statement};
    TC_TRY(results, interp::run(program, {}));
    greatest = std::max(greatest, static_cast<uint64_t>(results.at(check.found).integers.at(0)));
  }
  return subscript_of(greatest, check.type);
}

}  // namespace

Result<void> check_index_functions(const ir::Program& specialised, bool checks_at_run_time,
                                   const ir::Deadline& deadline) {
  const ir::CheckedProgram checked = ir::checks_without_data(specialised);
  for (size_t c = 0; c < checked.checks.size(); ++c) {
    const ir::SubscriptCheck& check = checked.checks[c];
    const ir::Statement& statement = checked.program.statements[c];
    if (values_of(statement) > ir::kMaxIndexValues) {
      if (checks_at_run_time) continue;
      return tl::unexpected(Error(
          specialised.source, check.range,
          fmt::format("a subscript of {} takes more than {} values, and only by trying each is it known to stay inside "
                      "'{}': write it with + - * / % min max, read it from a tensor, or let the kernel check it "
                      "(check_bounds)",
                      specialised.source->text(check.range), ir::kMaxIndexValues, check.tensor)));
    }
    ir::Program program = checked.program;
    std::erase_if(program.tensors, [&](const ir::Tensor& tensor) { return tensor.name != check.found; });
    program.results = {check.found};
    TC_TRY(found, greatest(std::move(program), check, statement, deadline));
    if (violation(check, found).empty()) continue;
    return tl::unexpected(
        Error(specialised.source, check.range,
              fmt::format("'{}' has extent {} in dimension {}, but {} is at {}", check.tensor, check.extent,
                          check.dimension, specialised.source->text(check.range), found)));
  }
  return {};
}

}  // namespace tc::compile
