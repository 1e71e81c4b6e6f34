#include "tc/gpu/rewrite/part_statements.h"

#include <algorithm>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/names.h"
#include "tc/support/check.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

class PartSplitter {
 public:
  PartSplitter(ir::Program& program, const ir::Statement& statement, const std::vector<Parts>& cuts)
      : program_(program), statement_(statement), cuts_(cuts), names_(ir::Names::among_statements(program)) {}

  PartStatements run() {
    PartStatements result;
    result.of_parts = of_parts();
    result.together = together(result.of_parts);
    result.part = parts_.front().name;
    result.rest = rest_.front().name;
    for (const Parts& cut : cuts_) {
      const int64_t done = cut.count * cut.chunk;
      if (done >= extent_of(index(cut))) continue;
      TC_CHECK(!result.left, "two cuts of a reduction leave iterations over");
      result.left = left_over(statement_, cut.index, done, names_.fresh(statement_.id + "_left"));
    }
    return result;
  }

 private:
  const ir::Index& index(const Parts& cut) const { return statement_.indices[cut.index]; }

  /// Puts the iterations of one part in the place of the index's.
  void cut(ir::Statement& s, const Parts& cut) {
    const ir::Index& whole = index(cut);
    parts_.push_back(make_index(names_.fresh(whole.name + "_part"), cut.count, false));
    rest_.push_back(make_index(names_.fresh(whole.name + "_rest"), cut.chunk, true));
    const Expr part = index_variable(parts_.back().name), rest = index_variable(rest_.back().name);
    const Expr first = hi::simplify((cut.cyclic ? part : part * index_constant(cut.chunk)) + whole.begin);
    const Expr at = (cut.cyclic ? rest * index_constant(cut.count) : rest) + first;
    s.indices[cut.index] = rest_.back();
    s.value = hi::substitute(whole.name, at, s.value);
    if (cut.count * cut.chunk > extent_of(whole)) {
      s.guard = ir::conjunction(s.guard, hi::simplify(at < whole.end));
    }
  }

  ir::Statement of_parts() {
    ir::Statement s = statement_;
    s.id = names_.fresh(statement_.id + "_parts");
    s.initialises = true;
    s.accesses.clear();
    for (const Parts& parts : cuts_) cut(s, parts);
    s.tensor = names_.fresh(statement_.tensor + "_parts");
    s.subscripts.clear();
    std::vector<ir::Index> kept;
    for (const ir::Index& i : s.indices) {
      if (!i.is_reduction) kept.push_back(i);
    }
    kept.insert(cuts_.front().in_front ? kept.begin() : kept.end(), parts_.begin(), parts_.end());
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
    for (const ir::Index& part : parts_) {
      s.indices.push_back(part);
      s.indices.back().is_reduction = true;
    }
    s.value = hi::Call::make(statement_.accumulator, parts.tensor, parts.subscripts, hi::Call::PureExtern);
    s.accesses.clear();
    return s;
  }

  ir::Program& program_;
  const ir::Statement& statement_;
  const std::vector<Parts>& cuts_;
  ir::Names names_;
  std::vector<ir::Index> parts_, rest_;  ///< per cut
};

}  // namespace

bool may_be_cut(const ir::Program& program, const ir::Statement& statement) {
  return statement.reduces() && !statement.guard.defined() &&
         std::none_of(statement.subscripts.begin(), statement.subscripts.end(),
                      [&](const Expr& subscript) { return reads_tensor(program, subscript); });
}

PartStatements part_statements(ir::Program& program, const ir::Statement& statement, const std::vector<Parts>& cuts) {
  return PartSplitter(program, statement, cuts).run();
}

}  // namespace tc::gpu
