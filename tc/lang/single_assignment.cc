#include "tc/lang/single_assignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tc/lang/typed_text.h"
#include "tc/lang/walk.h"

namespace tc::lang {
namespace {

/// A tree in which reads of tensors are reads of those that stand for them now.
class Renaming {
 public:
  explicit Renaming(const std::map<int, int>& current) : current_(current) {}

  TypedExprPtr operator()(const TypedExprPtr& expr) const {
    TypedExpr copy = *expr;
    std::visit(Overloaded{
                   [&](Read& read) {
                     if (const auto found = current_.find(read.tensor); found != current_.end())
                       read.tensor = found->second;
                     rename(read.subscripts);
                   },
                   [&](TypedUnary& unary) { rename(unary.operand); },
                   [&](TypedBinary& binary) { rename(binary.left), rename(binary.right); },
                   [&](Select& select) { rename(select.condition), rename(select.if_true), rename(select.if_false); },
                   [&](Intrinsic& call) { rename(call.arguments); },
                   [&](Cast& cast) { rename(cast.operand); },
                   [&](LetRef& let) { rename(let.value); },
                   [](auto&) {},
               },
               copy.node);
    return std::make_shared<const TypedExpr>(std::move(copy));
  }

  void rename(TypedExprPtr& expr) const { expr = (*this)(expr); }
  void rename(std::vector<TypedExprPtr>& exprs) const {
    for (TypedExprPtr& expr : exprs) rename(expr);
  }

 private:
  const std::map<int, int>& current_;
};

void collect_reads(const TypedExpr& expr, std::set<int>& tensors) {
  const auto each = [&](const TypedExprPtr& child) { collect_reads(*child, tensors); };
  std::visit(Overloaded{
                 [&](const Read& read) {
                   tensors.insert(read.tensor);
                   std::ranges::for_each(read.subscripts, each);
                 },
                 [&](const TypedUnary& unary) { each(unary.operand); },
                 [&](const TypedBinary& binary) { each(binary.left), each(binary.right); },
                 [&](const Select& select) { each(select.condition), each(select.if_true), each(select.if_false); },
                 [&](const Intrinsic& call) { std::ranges::for_each(call.arguments, each); },
                 [&](const Cast& cast) { each(cast.operand); },
                 [&](const LetRef& let) { each(let.value); },
                 [](const auto&) {},
             },
             expr.node);
}

/// Follows the statements in order.
class Versions {
 public:
  Versions(TypedDefinition definition, const SourcePtr& source, InferredRanges& inferred)
      : definition_(std::move(definition)), source_(source), inferred_(inferred) {}

  Result<TypedDefinition> run() {
    if (auto done = number(); !done) return tl::unexpected(done.error());
    std::map<int, int> current;
    for (size_t s = 0; s < definition_.statements.size(); ++s) {
      TypedStatement& statement = definition_.statements[s];
      const Renaming rename(current);
      rename.rename(statement.right);
      rename.rename(statement.subscripts);
      rename.rename(statement.exists);
      const int tensor = statement.tensor;
      statement.tensor = state_of_[s] == states_[tensor] ? tensor : earlier(tensor, state_of_[s]);
      current[tensor] = statement.tensor;
    }
    return std::move(definition_);
  }

 private:
  /// Which state of its tensor each statement leaves.
  Result<void> number() {
    std::set<int> read;  // since they were last overwritten
    for (size_t s = 0; s < definition_.statements.size(); ++s) {
      const TypedStatement& statement = definition_.statements[s];
      collect_reads(*statement.right, read);
      for (const TypedExprPtr& subscript : statement.subscripts) collect_reads(*subscript, read);
      const bool sums = statement.op == AssignOp::kSum;
      const auto refuse = [&](const char* why) {
        return tl::unexpected(Error(
            source_, statement.left_range,
            fmt::format("no gradient is derived through '{}', {}", definition_.tensors[statement.tensor].name, why)));
      };
      int& state = states_[statement.tensor];
      if (state > 0 && !sums && !meets_all(statement.tensor, statement.subscripts, inferred_, s))
        return refuse("which several statements write");
      if (state > 0 && sums && begun_by_[statement.tensor] != AssignOp::kSet &&
          begun_by_[statement.tensor] != AssignOp::kSumInit)
        return refuse("which is no sum when it is summed into");
      if (state > 0 && sums && read.contains(statement.tensor)) return refuse("which is read between sums into it");
      if (state == 0 || !sums) {
        ++state;
        begun_by_[statement.tensor] = statement.op;
        read.erase(statement.tensor);
      }
      state_of_.push_back(state);
    }
    return {};
  }

  /// The tensor that stands for an earlier state; made when it is first asked for.
  int earlier(int tensor, int state) {
    const auto [place, fresh] = made_.try_emplace({tensor, state}, static_cast<int>(definition_.tensors.size()));
    if (!fresh) return place->second;
    Tensor temporary = definition_.tensors[tensor];
    const std::set<std::string> taken = names_in(definition_);
    std::string name = fmt::format("{}_{}", temporary.name, state);
    while (taken.contains(name)) name += "_";
    temporary.name = name;
    temporary.role = Role::kTemporary;
    temporary.dimensions.reset();
    definition_.tensors.push_back(std::move(temporary));
    inferred_.extents.push_back(inferred_.extents[tensor]);
    return place->second;
  }

  TypedDefinition definition_;
  const SourcePtr& source_;
  InferredRanges& inferred_;
  std::map<int, int> states_;                ///< how many each tensor goes through
  std::map<int, AssignOp> begun_by_;         ///< the statement that begins its latest state
  std::vector<int> state_of_;                ///< that a statement leaves its tensor in
  std::map<std::pair<int, int>, int> made_;  ///< tensors for earlier states
};

}  // namespace

std::set<int> tensors_read(const TypedExpr& expr) {
  std::set<int> tensors;
  collect_reads(expr, tensors);
  return tensors;
}

bool meets_all(int tensor, const std::vector<TypedExprPtr>& subscripts, const InferredRanges& inferred,
               size_t statement) {
  std::set<int> seen;
  for (size_t d = 0; d < subscripts.size(); ++d) {
    const auto* index = std::get_if<IndexRef>(&subscripts[d]->node);
    if (!index || !seen.insert(index->index).second) return false;
    const auto& [low, high] = inferred.indices[statement][static_cast<size_t>(index->index)];
    if (low != "0" || high != inferred.extents[static_cast<size_t>(tensor)][d]) return false;
  }
  return true;
}

Result<TypedDefinition> single_assignment(TypedDefinition definition, const SourcePtr& source,
                                          InferredRanges& inferred) {
  return Versions(std::move(definition), source, inferred).run();
}

}  // namespace tc::lang
