#include "tc/gpu/strategy/halo/halo.h"

#include <algorithm>
#include <functional>

#include "tc/gpu/lower/body.h"
#include "tc/gpu/lower/declare_tensors.h"
#include "tc/gpu/lower/emit.h"
#include "tc/ir/specialise.h"
#include "tc/support/round.h"

namespace tc::gpu {

using Halide::Expr;
using poly::Ranged;
using tile::NodePtr;

namespace {

constexpr int64_t kUnrolled = 16;  ///< iterations of a reduction

class Writer {
 public:
  Writer(const poly::Scop& scop, const HaloPlan& plan)
      : program_(*scop.program), plan_(plan), names_(kernel_names(*scop.program)) {
    for (const ir::Tensor& t : program_.tensors) places_[t.name] = {t.name, t.type, {}, ir::constant_shape(t)};
  }

  tile::Kernel run(const std::string& name, const Device& device);

 private:
  void choose_grid(const Device& device);
  void declare_locals();
  NodePtr stage(const HaloStage& stage);
  NodePtr at_element(const HaloStage& stage, const Ranged& number);
  NodePtr instances(const HaloStage& stage, BodyContext context);
  NodePtr reduce(const HaloStage& stage, size_t next, const BodyContext& context, const tile::Tensor& sum);

  const ir::Program& program_;
  const HaloPlan& plan_;
  ir::Names names_;
  std::map<std::string, Place> places_;
  std::vector<tile::Tensor> shared_;
  std::vector<Ranged> firsts_;  ///< values of a block's tile along the members
  tile::Kernel kernel_;
};

void Writer::choose_grid(const Device& device) {
  std::vector<int64_t> counts;
  for (size_t m = plan_.members.size(); m-- > 0;) counts.push_back(ceil_div(plan_.members[m].extent, plan_.tile[m]));
  const std::vector<Ranged> numbers = deal_blocks(counts, device, kernel_.grid);
  for (size_t m = 0; m < plan_.members.size(); ++m) {
    firsts_.push_back(numbers[plan_.members.size() - 1 - m] * poly::ranged(plan_.tile[m]) +
                      poly::ranged(plan_.members[m].begin));
  }
}

void Writer::declare_locals() {
  for (const auto& [name, reach] : plan_.locals) {
    Place& place = places_.at(name);
    place.name = names_.fresh(name + "_tile");
    place.extents.clear();
    std::vector<tile::IntTuple> shape;
    for (const Reach& r : reach) {
      place.offset.push_back(firsts_[static_cast<size_t>(r.member)] + poly::ranged(r.low));
      place.extents.push_back(plan_.extent(r));
      shape.emplace_back(plan_.extent(r));
    }
    tile::Tensor tensor;
    tensor.name = place.name;
    tensor.type = place.type;
    tensor.memory = tile::Memory::kShared;
    tensor.layout = tile::Layout::row_major(shape);
    tensor.written = true;
    shared_.push_back(std::move(tensor));
  }
}

/// All elements of the stage's tile, one after the other by the threads of the block.
NodePtr Writer::stage(const HaloStage& stage) {
  int64_t elements = 1;
  for (const Reach& r : stage.reach) elements *= plan_.extent(r);
  const int64_t rounds = ceil_div(elements, plan_.threads);
  return loop_over("round", {0, rounds}, 1, names_, [&](const Ranged& round) {
    const Ranged number = round * poly::ranged(plan_.threads) + thread_number(0, plan_.threads);
    return let("element", number, names_, [&](const Ranged& named) {
      const Expr exists = poly::less(named, poly::ranged(elements));
      return guarded(exists, at_element(stage, poly::ranged(named.expr, 0, std::min(named.max, elements - 1))));
    });
  });
}

/// One element of the stage's tile, if it is of the statement's domain.
NodePtr Writer::at_element(const HaloStage& stage, const Ranged& number) {
  BodyContext context;
  context.program = &program_;
  context.place = [this](const std::string& tensor) -> const Place& { return places_.at(tensor); };
  Expr exists = Halide::Internal::const_true();
  Ranged rest = number;
  for (size_t d = stage.reach.size(); d-- > 0;) {
    const Reach& reach = stage.reach[d];
    const int64_t extent = plan_.extent(reach);
    const Ranged within = d == 0 ? rest : poly::floor_mod(rest, extent);
    rest = poly::floor_div(rest, extent);
    const Ranged value = firsts_[static_cast<size_t>(reach.member)] + poly::ranged(reach.low) + within;
    const ir::Range& range = stage.statement.ranges[static_cast<size_t>(stage.indices[d])];
    const int64_t end = range.begin + range.extent;
    exists = Halide::Internal::simplify(exists && poly::less_equal(poly::ranged(range.begin), value) &&
                                        poly::less(value, poly::ranged(end)));
    context.indices[stage.statement.statement->indices[static_cast<size_t>(stage.indices[d])]] =
        poly::ranged(value.expr, std::max(value.min, range.begin), std::min(value.max, end - 1));
  }
  return guarded(exists, instances(stage, std::move(context)));
}

NodePtr Writer::instances(const HaloStage& stage, BodyContext context) {
  const poly::Statement& statement = *stage.statement.statement;
  if (!stage.starts && stage.reductions.empty()) return statement_body(statement, context);
  const Place& place = places_.at(statement.tensor);
  const tile::Tensor sum = registers(names_.fresh(statement.tensor + "_sum"), place.type, 1);
  const std::vector<Expr> position = written_position(statement, context);
  const Expr old = Halide::Internal::Call::make(place.type, place.name, position, Halide::Internal::Call::PureExtern);
  const Expr start = stage.starts ? ir::identity_of(statement.assign, place.type) : old;
  return make_node(
      tile::Allocate{sum, sequence({make_node(tile::Store{sum.name, {index(0)}, start}), reduce(stage, 0, context, sum),
                                    make_node(tile::Store{place.name, position, element(sum, index(0))})})});
}

NodePtr Writer::reduce(const HaloStage& stage, size_t next, const BodyContext& context, const tile::Tensor& sum) {
  const poly::Statement& statement = *stage.statement.statement;
  if (next == stage.reductions.size()) {
    const Expr value = combine(statement.assign, element(sum, index(0)), statement_value(statement, context));
    return make_node(tile::Store{sum.name, {index(0)}, value});
  }
  const auto at = static_cast<size_t>(stage.reductions[next]);
  const std::string& name = statement.indices[at];
  return loop_over(name, stage.statement.ranges[at], kUnrolled, names_, [&](const Ranged& value) {
    BodyContext inner = context;
    inner.indices[name] = value;
    return reduce(stage, next + 1, inner, sum);
  });
}

tile::Kernel Writer::run(const std::string& name, const Device& device) {
  kernel_.name = name;
  kernel_.block = {plan_.threads, 1, 1};
  choose_grid(device);
  declare_locals();
  std::vector<NodePtr> parts;
  for (const HaloStage& one : plan_.stages) {
    if (!parts.empty()) parts.push_back(make_node(tile::Barrier{}));
    parts.push_back(stage(one));
  }
  NodePtr body = sequence(std::move(parts));
  for (const tile::Tensor& tensor : shared_) body = make_node(tile::Allocate{tensor, body});
  kernel_.body = body;
  declare_tensors(kernel_, program_);
  return std::move(kernel_);
}

}  // namespace

tile::Kernel halo(const poly::Scop& scop, const HaloPlan& plan, const Device& device, const std::string& name) {
  return Writer(scop, plan).run(name, device);
}

}  // namespace tc::gpu
