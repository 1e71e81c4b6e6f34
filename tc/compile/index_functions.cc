#include "tc/compile/index_functions.h"

#include <fmt/format.h>

#include "tc/interp/interpreter.h"
#include "tc/ir/check_subscripts.h"
#include "tc/ir/index_expr.h"
#include "tc/support/check.h"

namespace tc::compile {
namespace {

/// How many values the indices of a statement take together; kMaxIndexValues + 1 where there are more.
int64_t values_of(const ir::Statement& statement) {
  int64_t values = 1;
  for (const ir::Index& index : statement.indices) {
    const auto begin = ir::constant_value(index.begin), end = ir::constant_value(index.end);
    TC_CHECK(begin && end, "'{}' has no constant range", index.name);
    if (__builtin_mul_overflow(values, *end - *begin, &values) || values > kMaxIndexValues) return kMaxIndexValues + 1;
  }
  return values;
}

/// A result of the check as a subscript: its bits are those of the subscript's type.
int64_t subscript_of(const interp::Value& found, ScalarType type) {
  const int64_t bits = found.integers.at(0);
  return type == ScalarType::kInt32   ? static_cast<int32_t>(bits)
         : type == ScalarType::kInt16 ? static_cast<int16_t>(bits)
         : type == ScalarType::kInt8  ? static_cast<int8_t>(bits)
                                      : bits;
}

}  // namespace

Result<void> check_index_functions(const ir::Program& specialised) {
  const ir::CheckedProgram checked = ir::checks_without_data(specialised);
  if (checked.checks.empty()) return {};
  for (size_t c = 0; c < checked.checks.size(); ++c) {
    if (values_of(checked.program.statements[c]) <= kMaxIndexValues) continue;
    const SourceRange range = checked.checks[c].range;
    return tl::unexpected(Error(
        specialised.source, range,
        fmt::format("a subscript of {} takes more than {} values, and only by trying each is it known to stay inside "
                    "'{}': write it with + - * / % min max, or read it from a tensor",
                    specialised.source->text(range), kMaxIndexValues, checked.checks[c].tensor)));
  }
  TC_TRY(results, interp::run(checked.program, {}));
  for (const ir::SubscriptCheck& check : checked.checks) {
    const int64_t found = subscript_of(results.at(check.found), check.type);
    if (violation(check, found).empty()) continue;
    return tl::unexpected(
        Error(specialised.source, check.range,
              fmt::format("'{}' has extent {} in dimension {}, but {} is at {}", check.tensor, check.extent,
                          check.dimension, specialised.source->text(check.range), found)));
  }
  return {};
}

}  // namespace tc::compile
