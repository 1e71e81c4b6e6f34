#include "tc/gpu/part_statements.h"

#include <algorithm>

#include "tc/gpu/names.h"
#include "tc/gpu/statements.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

class PartSplitter {
 public:
  PartSplitter(ir::Program& program, const ir::Statement& statement, const Parts& parts)
      : program_(program), statement_(statement), parts_(parts), names_(program) {
    for (const ir::Statement& s : program.statements) {
      names_.add(s.id);
      for (const ir::Index& i : s.indices) names_.add(i.name);
    }
  }

  PartStatements run() {
    PartStatements result;
    result.of_parts = of_parts();
    result.together = together(result.of_parts);
    result.part = part_.name;
    result.rest = rest_.name;
    const int64_t left = extent_of(index()) - parts_.count * parts_.chunk;
    if (left > 0) result.left = left_over(left);
    return result;
  }

 private:
  const ir::Index& index() const { return statement_.indices[parts_.index]; }
  /// The statement with another index in place of the one that is cut, whose value is then `at`.
  void replace(ir::Statement& s, const ir::Index& by, const Expr& at) const {
    s.indices[parts_.index] = by;
    s.value = hi::substitute(index().name, at, statement_.value);
    s.accesses.clear();
  }

  ir::Statement of_parts() {
    ir::Statement s = statement_;
    s.id = names_.fresh(statement_.id + "_parts");
    s.initialises = true;
    part_ = make_index(names_.fresh(index().name + "_part"), parts_.count, false);
    rest_ = make_index(names_.fresh(index().name + "_rest"), parts_.chunk, true);
    const Expr part = index_variable(part_.name), rest = index_variable(rest_.name);
    const Expr first = hi::simplify((parts_.cyclic ? part : part * index_constant(parts_.chunk)) + index().begin);
    const Expr at = (parts_.cyclic ? rest * index_constant(parts_.count) : rest) + first;
    replace(s, rest_, at);
    if (parts_.count * parts_.chunk > extent_of(index())) s.guard = hi::simplify(at < index().end);
    ir::Tensor tensor;
    tensor.name = s.tensor = names_.fresh(statement_.tensor + "_parts");
    tensor.type = statement_.accumulator;
    tensor.role = ir::Role::kTemporary;
    s.subscripts.clear();
    std::vector<ir::Index> kept;
    for (const ir::Index& i : s.indices) {
      if (!i.is_reduction) kept.push_back(i);
    }
    kept.insert(parts_.in_front ? kept.begin() : kept.end(), part_);
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

  ir::Statement left_over(int64_t left) {
    ir::Statement s = statement_;
    s.id = names_.fresh(statement_.id + "_left");
    s.initialises = false;
    const Expr begin = hi::simplify(index_constant(parts_.count * parts_.chunk) + index().begin);
    replace(s, make_index(index().name, left, true), index_variable(index().name) + begin);
    return s;
  }

  ir::Program& program_;
  const ir::Statement& statement_;
  const Parts& parts_;
  Names names_;
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
