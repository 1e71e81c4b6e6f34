#include "tc/tile/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

/// "C[(0, 0), (0, 1)]".
std::string fragment_text(const Fragment& fragment) {
  std::string text = fragment.tensor + "[";
  for (size_t v = 0; v < fragment.values.size(); ++v) text += (v ? ", " : "") + element_text("", fragment.values[v]);
  return text + "]";
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

std::string group_text(const BlockGroup& group) {
  return fmt::format("blocks that differ in number / {} mod {}", group.stride, group.count);
}

const char* name_of(RingStep::Kind kind) {
  switch (kind) {
    case RingStep::Kind::kAcquire:
      return "acquire";
    case RingStep::Kind::kCommit:
      return "commit";
    case RingStep::Kind::kDrain:
      return "drain before";
    case RingStep::Kind::kAwait:
      return "await";
    case RingStep::Kind::kRelease:
      return "release";
    case RingStep::Kind::kPass:
      return "pass";
    case RingStep::Kind::kTake:
      return "take";
  }
  return "";
}

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
    match(
        *node, [&](const Sequence&) { for_each_child(*node, [&](const NodePtr& child) { write(child); }); },
        [&](const OneOf<For, If, Let, Allocate, Ring> auto& n) { write(n); },
        [&](const Synchronisation auto&) { line(node_text(*node)); },
        [&](const Spec auto&) { line(node_text(*node)); });
  }

 private:
  void write(const For& loop) {
    const bool unit = Halide::Internal::is_const_one(loop.step);
    line(fmt::format("for {} in {}:{}{}{}", loop.variable, ir::to_text(loop.begin), ir::to_text(loop.end),
                     unit ? "" : " step " + ir::to_text(loop.step),
                     loop.unrolled ? " unrolled"
                     : loop.rolled ? " rolled"
                                   : ""));
    inside(loop.body);
  }
  void write(const If& branch) {
    line(fmt::format("if {}{}", ir::to_text(branch.condition), branch.predicated ? " predicated" : ""));
    inside(branch.then_case);
    const If* last = &branch;
    while (const If* next = next_test(*last)) {
      line("else if " + ir::to_text(next->condition));
      inside(next->then_case);
      last = next;
    }
    if (!last->else_case) return;
    line("else");
    inside(last->else_case);
  }
  void write(const Let& let) {
    line(fmt::format("let {} = {}", let.name, ir::to_text(let.value)));
    write(let.body);
  }
  void write(const Allocate& allocate) {
    line(fmt::format("{} {}", allocate.tensor.memory == Memory::kShared ? "shared" : "register",
                     to_text(allocate.tensor)));
    write(allocate.body);
  }

  void write(const Ring& ring) {
    std::string shared;
    for (const BlockGroup& group : ring.groups) shared += ", shared by " + group_text(group);
    if (ring.registers) {
      shared += fmt::format(", whose threads have {} registers, others {}", ring.registers->of_readers,
                            ring.registers->of_others);
    }
    const std::string teams = ring.teams > 1 ? fmt::format("{} teams of ", ring.teams) : "";
    line(
        fmt::format("ring {} of {} stages, read by {}{} warps{}", ring.name, ring.stages, teams, ring.readers, shared));
    write(ring.body);
  }

  std::string text_;
  int depth_ = 0;
};

std::string triple(const std::array<int64_t, 3>& extents) {
  return fmt::format("({},{},{})", extents[0], extents[1], extents[2]);
}

}  // namespace

std::string node_text(const Node& node) {
  return match(
      node, [](const OneOf<Sequence, Allocate, Ring> auto&) -> std::string { return ""; },
      [](const For& n) { return "for " + n.variable; }, [](const If& n) { return "if " + ir::to_text(n.condition); },
      [](const Let& n) { return "let " + n.name; },
      [](const Store& n) { return fmt::format("{} = {}", element_text(n.tensor, n.subscripts), ir::to_text(n.value)); },
      [](const Atomic& n) {
        return fmt::format("atomic {} {} {}", element_text(n.tensor, n.subscripts), name_of(n.op),
                           ir::to_text(n.value));
      },
      [](const Move& n) {
        return fmt::format("{}{} {} {} {}{}", n.update ? "atomic" : "move", n.asynchronous ? " async" : "",
                           vector_text(n.destination, n.destination_subscripts, n.destination_dimension, n.elements),
                           n.update ? name_of(*n.update) : "=",
                           vector_text(n.source, n.source_subscripts, n.source_dimension, n.elements),
                           n.guard.defined() ? fmt::format(" if {}, else 0", ir::to_text(n.guard)) : "");
      },
      [](const Shuffle& n) {
        return fmt::format("{} = shuffle {}({}, {}) width {}", element_text(n.tensor, n.subscripts), name_of(n.kind),
                           ir::to_text(n.value), ir::to_text(n.lane), n.width);
      },
      [](const MatMul& n) {
        return fmt::format("{} += {} * {} by {}", fragment_text(n.d), fragment_text(n.a), fragment_text(n.b),
                           n.atom->name);
      },
      [](const MatrixLoad& n) {
        return fmt::format("{} = matrices{} {}", fragment_text(n.destination), n.transposed ? " transposed" : "",
                           vector_text(n.source, n.source_subscripts, n.source_dimension, kMatrixRow));
      },
      [](const MatrixStore& n) {
        return fmt::format("matrices{} {} = {}", n.transposed ? " transposed" : "",
                           vector_text(n.destination, n.destination_subscripts, n.destination_dimension, kMatrixRow),
                           fragment_text(n.source));
      },
      [](const BoxCopy& n) {
        return fmt::format("{} = box of {} in turn {} of {}{}", element_text(n.destination, n.destination_subscripts),
                           element_text(n.map, n.coordinates), ir::to_text(n.turn), n.ring,
                           n.group.count > 1 ? ", to " + group_text(n.group) : "");
      },
      [](const BoxStore& n) {
        return fmt::format("box of {} = {}", element_text(n.map, n.coordinates),
                           element_text(n.source, n.source_subscripts));
      },
      [](const ClusterLoad& n) {
        return fmt::format("{} = {} of block {} of the cluster",
                           vector_text(n.destination, n.destination_subscripts, n.destination_dimension, n.elements),
                           vector_text(n.source, n.source_subscripts, n.source_dimension, n.elements),
                           ir::to_text(n.block));
      },
      [](const WarpgroupMatMul& n) {
        const std::string other = n.atom.b == n.atom.a ? "" : fmt::format(" and {}", name_of(n.atom.b));
        return fmt::format(
            "{}{} {} {} * {} by wgmma.m64n{}k{} of {}{}, {} times", n.d,
            n.d_first > 0 ? fmt::format("[{}...]", n.d_first) : "", n.starts ? "=" : "+=",
            n.held ? element_text(n.held->tensor, n.held->subscripts) : element_text(n.a.tensor, n.a.subscripts),
            element_text(n.b.tensor, n.b.subscripts), n.atom.n, n.atom.k(), name_of(n.atom.a), other, n.slices);
      },
      [](const RingStep& n) {
        const std::string bytes = n.bytes > 0 ? fmt::format(" of {} bytes", n.bytes) : "";
        return fmt::format("{} {} {} of {}{}", name_of(n.kind), hands_over(n.kind) ? "hand-over" : "turn",
                           ir::to_text(n.turn), n.ring, bytes);
      },
      [](const MatMulWait& n) {
        return fmt::format("wait for products but {}{}{}", n.pending, n.sums.empty() ? "" : ", of ",
                           fmt::join(n.sums, ", "));
      },
      [](const Barrier& n) -> std::string {
        return n.scope == Barrier::Scope::kBlock  ? "barrier"
               : n.scope == Barrier::Scope::kWarp ? "barrier warp"
                                                  : "barrier warpgroup";
      },
      [](const ClusterStep& n) -> std::string {
        return n.kind == ClusterStep::Kind::kArrive ? "arrive in cluster" : "wait for cluster";
      },
      [](const BoxStep& n) -> std::string {
        switch (n.kind) {
          case BoxStep::Kind::kFence:
            return "fence for box stores";
          case BoxStep::Kind::kCommit:
            return "commit box stores";
          case BoxStep::Kind::kWaitRead:
            return fmt::format("wait until box stores but {} have read", n.pending);
          case BoxStep::Kind::kWait:
            return fmt::format("wait for box stores but {}", n.pending);
        }
        return "";
      },
      [](const CommitGroup&) -> std::string { return "commit group"; },
      [](const WaitGroup& n) { return fmt::format("wait group {}", n.pending); },
      [](const WaitForKernels&) -> std::string { return "wait for kernels before"; },
      [](const StartNextKernel&) -> std::string { return "start next kernel"; });
}

std::string to_text(const Tensor& tensor) {
  const std::string swizzle = tensor.swizzle ? fmt::format("{} o ", to_string(*tensor.swizzle)) : "";
  const std::string place = tensor.place_of.empty() ? "" : " at the place of " + tensor.place_of;
  return fmt::format("{} {} {}{}{}", ir::type_text(tensor.type), tensor.name, swizzle, to_string(tensor.layout), place);
}

std::string to_text(const TensorMap& map) {
  return fmt::format("{} of {} at {}, extents ({}), strides ({}), box ({}), swizzle {}", map.name, map.tensor,
                     map.offset, fmt::join(map.extents, ","), fmt::join(map.strides, ","), fmt::join(map.box, ","),
                     map.swizzle);
}

std::string to_text(const Kernel& kernel) {
  Writer writer;
  const bool is_cluster = kernel.cluster != std::array<int64_t, 3>{1, 1, 1};
  writer.line(fmt::format("kernel {} grid {} block {}{}{}", kernel.name, triple(kernel.grid), triple(kernel.block),
                          is_cluster ? " cluster " + triple(kernel.cluster) : "",
                          kernel.resident_blocks > 0 ? fmt::format(" resident {}", kernel.resident_blocks) : ""));
  for (const Tensor& tensor : kernel.tensors) {
    writer.line(fmt::format("  global {}{}{}{}", to_text(tensor), tensor.written ? " written" : "",
                            tensor.read_only ? " read_only" : "", tensor.restricted ? " restricted" : ""));
  }
  for (const Scalar& scalar : kernel.scalars) {
    writer.line(fmt::format("  scalar {} {}", ir::type_text(scalar.type), scalar.name));
  }
  for (const TensorMap& map : kernel.maps) writer.line("  map " + to_text(map));
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
