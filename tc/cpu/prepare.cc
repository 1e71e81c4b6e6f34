#include "tc/cpu/prepare.h"

#include "tc/support/check.h"

namespace tc::cpu {

ir::Program prepare(const ir::Program& program, const PrepareOptions& options) {
  for (const ir::Statement& s : program.statements) {
    TC_CHECK(!s.reduces() || s.accumulator == program.tensor(s.tensor).type,
             "{} accumulates into '{}' in another type than the tensor's", s.id, s.tensor);
  }
  ir::Program result = prepare_operands(program, options);
  return options.strict ? result : split_reductions(std::move(result), options);
}

}  // namespace tc::cpu
