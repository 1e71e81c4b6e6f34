#include "tc/tile/build.h"

namespace tc::tile::build {
namespace {

template <typename Alternative>
NodePtr node(Alternative alternative) {
  return std::make_shared<const Node>(Node{std::move(alternative), ""});
}

Tensor tensor_in(Memory memory, const std::string& name, Halide::Type type, Layout layout) {
  Tensor tensor;
  tensor.name = name;
  tensor.type = type;
  tensor.memory = memory;
  tensor.layout = std::move(layout);
  return tensor;
}

}  // namespace

Expr var(const std::string& name) { return Halide::Internal::Variable::make(Halide::Int(32), name); }

Tensor global(const std::string& name, Halide::Type type, Layout layout, bool written) {
  Tensor tensor = tensor_in(Memory::kGlobal, name, type, std::move(layout));
  tensor.written = written;
  return tensor;
}
Tensor shared(const std::string& name, Halide::Type type, Layout layout) {
  return tensor_in(Memory::kShared, name, type, std::move(layout));
}
Tensor registers(const std::string& name, Halide::Type type, Layout layout) {
  return tensor_in(Memory::kRegister, name, type, std::move(layout));
}

Expr read(const Tensor& tensor, std::vector<Expr> subscripts) {
  return Halide::Internal::Call::make(tensor.type, tensor.name, subscripts, Halide::Internal::Call::PureExtern);
}

NodePtr sequence(std::vector<NodePtr> children) { return node(Sequence{std::move(children)}); }
NodePtr for_loop(const std::string& variable, Expr begin, Expr end, NodePtr body, Expr step) {
  return node(For{variable, std::move(begin), std::move(end), std::move(step), false, std::move(body)});
}
NodePtr unrolled(const std::string& variable, Expr begin, Expr end, NodePtr body) {
  return node(For{variable, std::move(begin), std::move(end), 1, true, std::move(body)});
}
NodePtr rolled(const std::string& variable, Expr begin, Expr end, NodePtr body) {
  return node(For{variable, std::move(begin), std::move(end), 1, false, std::move(body), true});
}
NodePtr if_then(Expr condition, NodePtr then_case, NodePtr else_case) {
  return node(If{std::move(condition), std::move(then_case), std::move(else_case)});
}
NodePtr predicated(Expr condition, NodePtr copy) {
  return node(If{std::move(condition), std::move(copy), nullptr, true});
}
NodePtr guarded(Expr guard, const NodePtr& copy) {
  Move result = *asynchronous_copy(*copy);
  result.guard = std::move(guard);
  return node(std::move(result));
}
NodePtr let(const std::string& name, Expr value, NodePtr body) {
  return node(Let{name, std::move(value), std::move(body)});
}
NodePtr allocate(Tensor tensor, NodePtr body) { return node(Allocate{std::move(tensor), std::move(body)}); }
NodePtr barrier(Barrier::Scope scope) { return node(Barrier{scope}); }
NodePtr arrive_in_cluster() { return node(ClusterStep{ClusterStep::Kind::kArrive}); }
NodePtr wait_for_cluster() { return node(ClusterStep{ClusterStep::Kind::kWait}); }
NodePtr wait_for_kernels() { return node(WaitForKernels{}); }
NodePtr start_next_kernel() { return node(StartNextKernel{}); }
NodePtr store(const Tensor& tensor, std::vector<Expr> subscripts, Expr value) {
  return node(Store{tensor.name, std::move(subscripts), std::move(value)});
}
NodePtr atomic(const Tensor& tensor, std::vector<Expr> subscripts, Atomic::Op op, Expr value) {
  return node(Atomic{tensor.name, std::move(subscripts), op, std::move(value)});
}
NodePtr move(const Tensor& destination, std::vector<Expr> to, const Tensor& source, std::vector<Expr> from,
             int elements, bool asynchronous) {
  Move result;
  result.destination = destination.name;
  result.destination_dimension = static_cast<int>(to.size()) - 1;
  result.destination_subscripts = std::move(to);
  result.source = source.name;
  result.source_dimension = static_cast<int>(from.size()) - 1;
  result.source_subscripts = std::move(from);
  result.elements = elements;
  result.asynchronous = asynchronous;
  return node(std::move(result));
}
NodePtr cluster_load(const Tensor& destination, std::vector<Expr> to, const Tensor& source, std::vector<Expr> from,
                     int elements, Expr block) {
  ClusterLoad result;
  result.destination = destination.name;
  result.destination_dimension = static_cast<int>(to.size()) - 1;
  result.destination_subscripts = std::move(to);
  result.source = source.name;
  result.source_dimension = static_cast<int>(from.size()) - 1;
  result.source_subscripts = std::move(from);
  result.elements = elements;
  result.block = std::move(block);
  return node(std::move(result));
}
NodePtr commit_group() { return node(CommitGroup{}); }
NodePtr wait_group(int pending) { return node(WaitGroup{pending}); }
NodePtr shuffle(const Tensor& tensor, std::vector<Expr> subscripts, Shuffle::Kind kind, Expr value, Expr lane,
                int width) {
  return node(Shuffle{kind, tensor.name, std::move(subscripts), std::move(value), std::move(lane), width});
}
NodePtr matmul(const MatMulAtom& atom, Fragment d, Fragment a, Fragment b) {
  return node(MatMul{&atom, std::move(d), std::move(a), std::move(b)});
}
NodePtr matrix_load(Fragment destination, const Tensor& source, std::vector<Expr> row, bool transposed) {
  const int dimension = static_cast<int>(row.size()) - 1;
  return node(MatrixLoad{std::move(destination), source.name, std::move(row), dimension, transposed});
}
NodePtr matrix_store(const Tensor& destination, std::vector<Expr> row, Fragment source, bool transposed) {
  const int dimension = static_cast<int>(row.size()) - 1;
  return node(MatrixStore{destination.name, std::move(row), dimension, std::move(source), transposed});
}
NodePtr ring(const std::string& name, int stages, int readers, NodePtr body, std::vector<BlockGroup> groups,
             std::optional<RegisterShares> registers, int teams) {
  return node(Ring{name, stages, readers, std::move(body), std::move(groups), registers, teams});
}
NodePtr acquire(const std::string& ring, Expr turn) {
  return node(RingStep{RingStep::Kind::kAcquire, ring, std::move(turn)});
}
NodePtr commit(const std::string& ring, Expr turn, int64_t bytes) {
  return node(RingStep{RingStep::Kind::kCommit, ring, std::move(turn), bytes});
}
NodePtr drain(const std::string& ring, Expr turn) {
  return node(RingStep{RingStep::Kind::kDrain, ring, std::move(turn)});
}
NodePtr await(const std::string& ring, Expr turn) {
  return node(RingStep{RingStep::Kind::kAwait, ring, std::move(turn)});
}
NodePtr release(const std::string& ring, Expr turn) {
  return node(RingStep{RingStep::Kind::kRelease, ring, std::move(turn)});
}
NodePtr pass(const std::string& ring, Expr number) {
  return node(RingStep{RingStep::Kind::kPass, ring, std::move(number)});
}
NodePtr take(const std::string& ring, Expr number) {
  return node(RingStep{RingStep::Kind::kTake, ring, std::move(number)});
}
NodePtr box_copy(const TensorMap& map, std::vector<Expr> coordinates, const Tensor& destination, std::vector<Expr> to,
                 const std::string& ring, Expr turn, BlockGroup group) {
  return node(BoxCopy{map.name, map.tensor, std::move(coordinates), destination.name, std::move(to), ring,
                      std::move(turn), group});
}
NodePtr box_store(const TensorMap& map, std::vector<Expr> coordinates, const Tensor& source, std::vector<Expr> from) {
  int64_t left = 1;
  for (const int64_t extent : map.box) left *= extent;
  std::vector<int64_t> extents(from.size(), 1);
  for (size_t d = from.size(); d-- > 0 && left > 1;) {
    extents[d] = product(source.layout.shape()[static_cast<int>(d)]);
    left /= extents[d];
  }
  return node(BoxStore{map.name, map.tensor, std::move(coordinates), map.box, source.name, std::move(from),
                       std::move(extents)});
}
NodePtr fence_boxes() { return node(BoxStep{BoxStep::Kind::kFence}); }
NodePtr commit_boxes() { return node(BoxStep{BoxStep::Kind::kCommit}); }
NodePtr wait_boxes_read(int pending) { return node(BoxStep{BoxStep::Kind::kWaitRead, pending}); }
NodePtr wait_boxes(int pending) { return node(BoxStep{BoxStep::Kind::kWait, pending}); }

NodePtr warpgroup_matmul(const WarpgroupAtom& atom, int slices, const Tensor& d, MatrixTile a, MatrixTile b,
                         bool starts, int d_first) {
  return node(WarpgroupMatMul{atom, slices, d.name, std::move(a), std::move(b), starts, {}, d_first});
}
NodePtr warpgroup_matmul(const WarpgroupAtom& atom, int slices, const Tensor& d, FragmentTile a, MatrixTile b,
                         bool starts) {
  return node(WarpgroupMatMul{atom, slices, d.name, {}, std::move(b), starts, std::move(a)});
}
NodePtr matmul_wait(int pending, std::vector<std::string> sums) { return node(MatMulWait{pending, std::move(sums)}); }
NodePtr with_comment(const std::string& comment, const NodePtr& original) {
  return std::make_shared<const Node>(Node{original->node, comment, original->instances});
}

}  // namespace tc::tile::build
