#include "tc/gpu/strategy/halo/stages.h"

#include <algorithm>

#include "tc/gpu/lower/emit.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
using poly::Ranged;
using tile::NodePtr;

StageWriter::StageWriter(const poly::Scop& scop, int64_t unrolled, bool in_registers)
    : program_(*scop.program), unrolled_(unrolled), in_registers_(in_registers), names_(kernel_names(*scop.program)) {
  for (const ir::Tensor& t : program_.tensors) places_[t.name] = {t.name, t.type, {}, ir::constant_shape(t)};
}

tile::Tensor StageWriter::hold(const std::string& tensor, const std::vector<Reach>& reach, const HaloPlan& plan,
                               const std::vector<Ranged>& firsts) {
  Place& place = places_.at(tensor);
  place.name = names_.fresh(tensor + (in_registers_ ? "_strip" : "_tile"));
  place.offset.clear();
  place.extents.clear();
  for (const Reach& r : reach) {
    place.offset.push_back(first_of(r, firsts[static_cast<size_t>(r.member)]));
    place.extents.push_back(plan.extent(r));
  }
  tile::Tensor buffer;
  buffer.name = place.name;
  buffer.type = place.type;
  buffer.memory = in_registers_ ? tile::Memory::kRegister : tile::Memory::kShared;
  buffer.layout = tile::Layout::row_major(std::vector<tile::IntTuple>(place.extents.begin(), place.extents.end()));
  buffer.written = true;
  return buffer;
}

void StageWriter::take_back(const std::string& tensor) {
  const ir::Tensor& t = program_.tensor(tensor);
  places_.at(tensor) = {t.name, t.type, {}, ir::constant_shape(t)};
}

NodePtr StageWriter::if_exists(const HaloStage& stage, std::vector<Ranged> at, int64_t count) {
  Expr exists = Halide::Internal::const_true();
  std::vector<Ranged> known = at;
  for (size_t d = 0; d < at.size(); ++d) {
    const ir::Range& range = stage.domain[d];
    const Ranged last = at[d] + poly::ranged(d + 1 == at.size() ? count - 1 : 0);
    exists = Halide::Internal::simplify(exists && poly::less_equal(poly::ranged(range.begin), at[d]) &&
                                        poly::less(last, poly::ranged(range.begin + range.extent)));
    known[d] = known_within(at[d], range);
  }
  const auto row = [&](const std::vector<Ranged>& first, const auto& element) {
    if (count == 1) return element(first);
    const std::string name = stage.tensor() + "_" + std::to_string(at.size() - 1);
    return loop_over(name, {0, count}, count, names_, [&](const Ranged& within) {
      std::vector<Ranged> place = first;
      place.back() = known_within(first.back() + within, stage.domain.back());
      return element(place);
    });
  };
  const NodePtr there = row(known, [&](const std::vector<Ranged>& one) { return element_of(stage, one); });
  if (!stage.outside.defined()) return guarded(exists, there);
  if (Halide::Internal::is_const_one(exists)) return there;
  return make_node(tile::If{exists, there, row(at, [&](const auto& one) { return outside(stage, one); })});
}

NodePtr StageWriter::outside(const HaloStage& stage, const std::vector<Ranged>& at) const {
  return make_node(
      tile::Store{places_.at(stage.copied).name, position_in(places_.at(stage.copied), at), stage.outside});
}

NodePtr StageWriter::element_of(const HaloStage& stage, const std::vector<Ranged>& at) {
  return stage.copied.empty() ? instances(stage, at) : copy(stage.copied, at);
}

NodePtr StageWriter::store(const std::string& tensor, const std::vector<Ranged>& at) const {
  const Place& place = places_.at(tensor);
  std::vector<Expr> to;
  for (const Ranged& value : at) to.push_back(value.expr);
  const Expr value =
      Halide::Internal::Call::make(place.type, place.name, position_in(place, at), Halide::Internal::Call::PureExtern);
  return make_node(tile::Store{tensor, to, value});
}

NodePtr StageWriter::copy(const std::string& tensor, const std::vector<Ranged>& at) const {
  const Place& place = places_.at(tensor);
  std::vector<Expr> source;
  for (const Ranged& value : at) source.push_back(value.expr);
  const std::vector<Expr> destination = position_in(place, at);
  if (in_registers_) {
    const Expr value = Halide::Internal::Call::make(place.type, tensor, source, Halide::Internal::Call::PureExtern);
    return make_node(tile::Store{place.name, destination, value});
  }
  tile::Move move;
  move.source = tensor;
  move.source_subscripts = source;
  move.destination = place.name;
  move.destination_subscripts = destination;
  move.source_dimension = move.destination_dimension = static_cast<int>(at.size()) - 1;
  move.asynchronous = is_asynchronous(place.type);
  return make_node(std::move(move));
}

NodePtr StageWriter::instances(const HaloStage& stage, const std::vector<Ranged>& at) {
  poly::Statement statement = *stage.statement.statement;
  if (stage.value.defined()) statement.value = stage.value;
  BodyContext context;
  context.program = &program_;
  context.place = [this](const std::string& tensor) -> const Place& { return places_.at(tensor); };
  for (size_t d = 0; d < at.size(); ++d) {
    context.indices[statement.indices[static_cast<size_t>(stage.indices[d])]] = at[d];
  }
  if (!stage.starts && stage.reductions.empty()) return statement_body(statement, context);
  const Place& place = places_.at(statement.tensor);
  const tile::Tensor sum = registers(names_.fresh(statement.tensor + "_sum"), place.type, 1);
  const std::vector<Expr> position = written_position(statement, context);
  const Expr old = Halide::Internal::Call::make(place.type, place.name, position, Halide::Internal::Call::PureExtern);
  const Expr start = stage.starts ? ir::identity_of(statement.assign, place.type) : old;
  return make_node(tile::Allocate{
      sum, sequence({make_node(tile::Store{sum.name, {index(0)}, start}), reduce(stage, statement, 0, context, sum),
                     make_node(tile::Store{place.name, position, element(sum, index(0))})})});
}

NodePtr StageWriter::reduce(const HaloStage& stage, const poly::Statement& statement, size_t next,
                            const BodyContext& context, const tile::Tensor& sum) {
  if (next == stage.reductions.size()) {
    const Expr value = combine(statement.assign, element(sum, index(0)), statement_value(statement, context));
    return make_node(tile::Store{sum.name, {index(0)}, value});
  }
  const auto at = static_cast<size_t>(stage.reductions[next]);
  const std::string& name = statement.indices[at];
  return loop_over(name, stage.statement.ranges[at], unrolled_, names_, [&](const Ranged& value) {
    BodyContext inner = context;
    inner.indices[name] = value;
    return reduce(stage, statement, next + 1, inner, sum);
  });
}

Ranged known_within(const Ranged& value, const ir::Range& range) {
  const int64_t least = std::max(value.min, range.begin), most = std::min(value.max, range.begin + range.extent - 1);
  return least < most ? poly::ranged(value.expr, least, most) : value;
}

bool is_asynchronous(const Halide::Type& type) {
  constexpr int kLeastBytes = 4;
  return type.bytes() >= kLeastBytes;
}

}  // namespace tc::gpu
