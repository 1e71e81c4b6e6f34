#include "tc/cpu/prepare.h"

#include "tc/ir/plain_choices.h"
#include "tc/ir/reduce_once.h"
#include "tc/support/check.h"

namespace tc::cpu {

ir::Program prepare(const ir::Program& program, const PrepareOptions& options) {
  for (const ir::Statement& s : program.statements) {
    TC_CHECK(!s.reduces() || s.accumulator == program.tensor(s.tensor).type,
             "{} accumulates into '{}' in another type than the tensor's", s.id, s.tensor);
  }
  constexpr int64_t kInstances = 1 << 12;  // that are worth a temporary
  ir::Program result =
      ir::reduce_once(ir::plain_choices(program), {.strict = options.strict, .least_instances = kInstances});
  result = prepare_operands(std::move(result), options);
  return options.strict ? result : split_reductions(std::move(result), options);
}

}  // namespace tc::cpu
