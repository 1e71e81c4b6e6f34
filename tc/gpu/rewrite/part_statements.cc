#include "tc/gpu/rewrite/part_statements.h"

#include <algorithm>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/names.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

class PartSplitter {
 public:
  PartSplitter(ir::Program& program, const ir::Statement& statement, const Parts& parts)
      : program_(program), statement_(statement), parts_(parts), names_(ir::Names::among_statements(program)) {}

  PartStatements run() {
    PartStatements result;
    result.of_parts = of_parts();
    result.together = together(result.of_parts);
    result.part = part_.name;
    result.rest = rest_.name;
    const int64_t done = parts_.count * parts_.chunk;
    if (done < extent_of(index())) {
      result.left = left_over(statement_, parts_.index, done, names_.fresh(statement_.id + "_left"));
    }
    return result;
  }

 private:
  const ir::Index& index() const { return statement_.indices[parts_.index]; }

  ir::Statement of_parts() {
    ir::Statement s = statement_;
    s.id = names_.fresh(statement_.id + "_parts");
    s.initialises = true;
    part_ = make_index(names_.fresh(index().name + "_part"), parts_.count, false);
    rest_ = make_index(names_.fresh(index().name + "_rest"), parts_.chunk, true);
    const Expr part = index_variable(part_.name), rest = index_variable(rest_.name);
    const Expr first = hi::simplify((parts_.cyclic ? part : part * index_constant(parts_.chunk)) + index().begin);
    const Expr at = (parts_.cyclic ? rest * index_constant(parts_.count) : rest) + first;
    s.indices[parts_.index] = rest_;
    s.value = hi::substitute(index().name, at, statement_.value);
    s.accesses.clear();
    if (parts_.count * parts_.chunk > extent_of(index())) s.guard = hi::simplify(at < index().end);
    s.tensor = names_.fresh(statement_.tensor + "_parts");
    s.subscripts.clear();
    std::vector<ir::Index> kept;
    for (const ir::Index& i : s.indices) {
      if (!i.is_reduction) kept.push_back(i);
    }
    kept.insert(parts_.in_front ? kept.begin() : kept.end(), part_);
    for (const ir::Index& i : kept) s.subscripts.push_back(subscript_of(i));
    program_.tensors.push_back(temporary_over(s.tensor, statement_.accumulator, kept));
    for (const ir::Index& i : s.indices) {
      if (i.is_reduction) kept.push_back(i);
    }
    s.indices = kept;
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

  ir::Program& program_;
  const ir::Statement& statement_;
  const Parts& parts_;
  ir::Names names_;
  ir::Index part_, rest_;
};

}  // namespace

bool may_be_cut(const ir::Program& program, const ir::Statement& statement) {
  return statement.reduces() && !statement.guard.defined() &&
         std::none_of(statement.subscripts.begin(), statement.subscripts.end(),
                      [&](const Expr& subscript) { return reads_tensor(program, subscript); });
}

PartStatements part_statements(ir::Program& program, const ir::Statement& statement, const Parts& parts) {
  return PartSplitter(program, statement, parts).run();
}

}  // namespace tc::gpu
