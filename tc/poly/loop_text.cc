#include "tc/poly/loop_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tc/ir/expr_text.h"
#include "tc/poly/footprint.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/loop_tree.h"
#include "tc/support/check.h"

namespace tc::poly {
namespace {

std::string assign_text(const Statement& statement) {
  if (statement.kind != Statement::Kind::kUpdate) return "=";
  switch (statement.assign) {
    case ir::Assign::kSet:
      return "=";
    case ir::Assign::kAdd:
      return "+=";
    case ir::Assign::kMul:
      return "*=";
    case ir::Assign::kMin:
      return "min=";
    case ir::Assign::kMax:
      return "max=";
  }
  TC_CHECK(false, "unknown assignment");
}

std::string statement_text(const Statement& statement) {
  std::vector<std::string> subscripts;
  for (const Halide::Expr& subscript : statement.subscripts) subscripts.push_back(ir::to_text(subscript));
  std::string text = fmt::format("{}: {}", statement.id, statement.tensor);
  if (!subscripts.empty()) text += fmt::format("({})", fmt::join(subscripts, ", "));
  text += fmt::format(" {} {}", assign_text(statement), ir::to_text(statement.value));
  if (statement.guard.defined()) text += fmt::format(" if {}", ir::to_text(statement.guard));
  return text;
}

class Printer {
 public:
  Printer(const Scop& scop, const LoopNotes& notes) : scop_(scop), notes_(notes) {}

  std::string print() {
    node(scop_.schedule.root().child(0), 0);
    return std::move(text_);
  }

 private:
  void line(int depth, const std::string& text) { text_ += fmt::format("{:{}}{}\n", "", 2 * depth, text); }

  void node(const isl::schedule_node& at, int depth) {
    if (at.isa<isl::schedule_node_leaf>()) {
      for (const std::string& id : statements_at(scop_, at)) line(depth, statement_text(scop_.statement(id)));
      return;
    }
    if (is_loop(at)) {
      loop(at, depth);
      return node(at.child(0).child(0), depth + 1);
    }
    if (is_launch(at)) line(depth, "launch");
    for (unsigned i = 0; i < at.n_children(); ++i) node(at.child(static_cast<int>(i)), depth);
  }

  void loop(const isl::schedule_node& mark, int depth) {
    const std::string name = loop_name(mark);
    const LoopRange range = loop_range(scop_, NodeRef{path_of(mark)});
    std::string text = fmt::format("for {} in {}:{}", name, range.first, range.first + range.extent);
    if (const auto note = notes_.loops.find(name); note != notes_.loops.end()) text += "  # " + note->second;
    line(depth, text);
    const auto buffers = notes_.buffers.find(name);
    if (buffers == notes_.buffers.end()) return;
    for (const std::string& buffer : buffers->second) line(depth + 1, buffer);
  }

  const Scop& scop_;
  const LoopNotes& notes_;
  std::string text_;
};

}  // namespace

std::string loop_text(const Scop& scop, const LoopNotes& notes) { return Printer(scop, notes).print(); }

std::string buffer_text(const Scop& scop, const std::string& tensor, const std::string& loop) {
  const std::optional<NodeRef> mark = find_mark(scop, kLoopMark + loop);
  if (!mark) return tensor;
  const std::optional<Footprint> used = footprint(scop, mark->below(2), tensor);
  if (!used || used->extents.empty()) return tensor;
  return fmt::format("{} {}", tensor, fmt::join(used->extents, " x "));
}

}  // namespace tc::poly
