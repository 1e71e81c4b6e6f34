#include "tc/tile/print.h"

#include <fmt/format.h>

#include "tc/ir/expr_text.h"

namespace tc::tile {
namespace {

std::string element_text(const std::string& tensor, const std::vector<Halide::Expr>& subscripts) {
  std::string text = tensor + "(";
  for (size_t i = 0; i < subscripts.size(); ++i) text += (i ? ", " : "") + ir::to_text(subscripts[i]);
  return text + ")";
}

/// The subscripts of a vector: "A(m, k : k + 4)" would repeat k, so the dimension shows its length: "A(m, k +: 4)".
std::string vector_text(const std::string& tensor, const std::vector<Halide::Expr>& subscripts, int dimension,
                        int elements) {
  std::string text = tensor + "(";
  for (size_t i = 0; i < subscripts.size(); ++i) {
    text += (i ? ", " : "") + ir::to_text(subscripts[i]);
    if (static_cast<int>(i) == dimension && elements > 1) text += fmt::format(" +: {}", elements);
  }
  return text + ")";
}

const char* name_of(Atomic::Op op) {
  switch (op) {
    case Atomic::Op::kAdd:
      return "+=";
    case Atomic::Op::kMin:
      return "min=";
    case Atomic::Op::kMax:
      return "max=";
  }
  return "";
}

const char* name_of(Shuffle::Kind kind) {
  switch (kind) {
    case Shuffle::Kind::kXor:
      return "xor";
    case Shuffle::Kind::kDown:
      return "down";
    case Shuffle::Kind::kIndex:
      return "index";
  }
  return "";
}

struct SpecText {
  std::string operator()(const Store& s) const {
    return fmt::format("{} = {}", element_text(s.tensor, s.subscripts), ir::to_text(s.value));
  }
  std::string operator()(const Atomic& s) const {
    return fmt::format("atomic {} {} {}", element_text(s.tensor, s.subscripts), name_of(s.op), ir::to_text(s.value));
  }
  std::string operator()(const Move& s) const {
    return fmt::format("{}{} {} {} {}", s.update ? "atomic" : "move", s.asynchronous ? " async" : "",
                       vector_text(s.destination, s.destination_subscripts, s.destination_dimension, s.elements),
                       s.update ? name_of(*s.update) : "=",
                       vector_text(s.source, s.source_subscripts, s.source_dimension, s.elements));
  }
  std::string operator()(const CommitGroup&) const { return "commit group"; }
  std::string operator()(const WaitGroup& s) const { return fmt::format("wait group {}", s.pending); }
  std::string operator()(const Shuffle& s) const {
    return fmt::format("{} = shuffle {}({}, {}) width {}", element_text(s.tensor, s.subscripts), name_of(s.kind),
                       ir::to_text(s.value), ir::to_text(s.lane), s.width);
  }
  std::string operator()(const Barrier& s) const {
    return s.scope == Barrier::Scope::kBlock ? "barrier" : "barrier warp";
  }
  std::string operator()(const WaitForKernels&) const { return "wait for kernels before"; }
  std::string operator()(const StartNextKernel&) const { return "start next kernel"; }
  std::string operator()(const Sequence&) const { return ""; }
  std::string operator()(const For&) const { return ""; }
  std::string operator()(const If&) const { return ""; }
  std::string operator()(const Let&) const { return ""; }
  std::string operator()(const Allocate&) const { return ""; }
};

class Writer {
 public:
  std::string take() { return std::move(text_); }

  void line(const std::string& text) { text_ += fmt::format("{:{}}{}\n", "", 2 * depth_, text); }

  void inside(const NodePtr& node) {
    ++depth_;
    write(node);
    --depth_;
  }

  void write(const NodePtr& node) {
    if (!node) return;
    if (!node->comment.empty()) line("# " + node->comment);
    std::visit([&](const auto& alternative) { write(*node, alternative); }, node->node);
  }

 private:
  void write(const Node&, const Sequence& sequence) {
    for (const NodePtr& child : sequence.children) write(child);
  }
  void write(const Node&, const For& loop) {
    const bool unit = Halide::Internal::is_const_one(loop.step);
    line(fmt::format("for {} in {}:{}{}{}", loop.variable, ir::to_text(loop.begin), ir::to_text(loop.end),
                     unit ? "" : " step " + ir::to_text(loop.step), loop.unrolled ? " unrolled" : ""));
    inside(loop.body);
  }
  void write(const Node&, const If& branch) {
    line("if " + ir::to_text(branch.condition));
    inside(branch.then_case);
    if (!branch.else_case) return;
    line("else");
    inside(branch.else_case);
  }
  void write(const Node&, const Let& let) {
    line(fmt::format("let {} = {}", let.name, ir::to_text(let.value)));
    write(let.body);
  }
  void write(const Node&, const Allocate& allocate) {
    line(fmt::format("{} {}", allocate.tensor.memory == Memory::kShared ? "shared" : "register",
                     to_text(allocate.tensor)));
    write(allocate.body);
  }
  void write(const Node& node, const Barrier&) { line(spec_text(node)); }
  void write(const Node& node, const WaitForKernels&) { line(spec_text(node)); }
  void write(const Node& node, const StartNextKernel&) { line(spec_text(node)); }
  void write(const Node& node, const Store&) { line(spec_text(node)); }
  void write(const Node& node, const Atomic&) { line(spec_text(node)); }
  void write(const Node& node, const Move&) { line(spec_text(node)); }
  void write(const Node& node, const CommitGroup&) { line(spec_text(node)); }
  void write(const Node& node, const WaitGroup&) { line(spec_text(node)); }
  void write(const Node& node, const Shuffle&) { line(spec_text(node)); }

  std::string text_;
  int depth_ = 0;
};

std::string triple(const std::array<int64_t, 3>& extents) {
  return fmt::format("({},{},{})", extents[0], extents[1], extents[2]);
}

}  // namespace

std::string spec_text(const Node& node) { return std::visit(SpecText{}, node.node); }

std::string to_text(const Tensor& tensor) {
  const std::string swizzle = tensor.swizzle ? fmt::format("{} o ", to_string(*tensor.swizzle)) : "";
  return fmt::format("{} {} {}{}", ir::type_text(tensor.type), tensor.name, swizzle, to_string(tensor.layout));
}

std::string to_text(const Kernel& kernel) {
  Writer writer;
  writer.line(fmt::format("kernel {} grid {} block {}", kernel.name, triple(kernel.grid), triple(kernel.block)));
  for (const Tensor& tensor : kernel.tensors) {
    writer.line(fmt::format("  global {}{}{}{}", to_text(tensor), tensor.written ? " written" : "",
                            tensor.read_only ? " read_only" : "", tensor.restricted ? " restricted" : ""));
  }
  for (const Scalar& scalar : kernel.scalars) {
    writer.line(fmt::format("  scalar {} {}", ir::type_text(scalar.type), scalar.name));
  }
  writer.inside(kernel.body);
  return writer.take();
}

std::string to_text(const Program& program) {
  std::string text = fmt::format("program {}\n", program.name);
  for (const Tensor& tensor : program.workspace) text += fmt::format("  workspace {}\n", to_text(tensor));
  for (const Kernel& kernel : program.kernels) text += fmt::format("\n{}", to_text(kernel));
  return text;
}

}  // namespace tc::tile
