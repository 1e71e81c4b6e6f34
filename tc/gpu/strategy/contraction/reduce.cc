#include <algorithm>
#include <numeric>

#include "tc/gpu/strategy/contraction/builder.h"

#include "tc/ir/halide_compat.h"
#include "tc/support/round.h"

/// The reduction of a contraction's kernel: copies to shared memory, fragments, sums.
namespace tc::gpu {

namespace hi = Halide::Internal;
namespace build = tile::build;
using Halide::Expr;
using tile::NodePtr;
using tile::Tensor;

namespace {

/// How many of a block's threads copy a box whose rows are so many copies: as many as have whole rows in each round, so
/// that a thread stays in its column and finds its row without dividing each time; all, if that would take longer.
int64_t copying_threads(int64_t threads, int64_t row, int64_t copies) {
  if (copies <= threads || threads % row == 0 || row > threads) return threads;
  const int64_t whole = threads / row * row;
  return ceil_div(copies, whole) * 4 <= ceil_div(copies, threads) * 5 ? whole : threads;
}

/// Of a loop's iterations, as many as are laid out at once, `sums` each: all, or, where less is asked for than the
/// compiler lays out by itself, a divisor of them.
int64_t laid_out(int64_t count, int64_t sums, int64_t most) {
  constexpr int64_t kLeastChosen = 1024;
  if (most >= kLeastChosen) return sums * count <= most ? count : 1;
  int64_t result = std::clamp<int64_t>(most / sums, 1, count);
  while (count % result != 0) --result;
  return result;
}

/// Sets so many neighbours to zero.
NodePtr zeros(const Tensor& tensor, std::vector<Expr> at, int64_t elements) {
  std::vector<NodePtr> parts;
  const Expr last = at.back();
  for (int64_t i = 0; i < elements; ++i) {
    at.back() = hi::simplify(last + static_cast<int>(i));
    parts.push_back(build::store(tensor, at, hi::make_zero(tensor.type)));
  }
  return build::sequence(std::move(parts));
}

/// A copy under conditions, the innermost first. `predicated`: one that is asynchronous gets them as its predicate.
NodePtr under(const std::vector<Expr>& conditions, NodePtr copy, bool predicated) {
  if (!conditions.empty() && predicated && tile::asynchronous_copy(*copy)) {
    Expr all = conditions.back();
    for (size_t i = conditions.size() - 1; i-- > 0;) all = all && conditions[i];
    return build::predicated(all, std::move(copy));
  }
  for (const Expr& condition : conditions) copy = build::if_then(condition, std::move(copy));
  return copy;
}

}  // namespace

ReductionStep ContractionBuilder::step_at(const Expr& step) const {
  ReductionStep result;
  result.length = plan_.chunk[plan_.main];
  const int64_t extent = c_.reduction[plan_.main].extent;
  const int64_t main_steps = plan_.fills_last_step() ? ceil_div(extent, result.length) : extent / result.length;
  Expr rest = step;
  result.first.resize(c_.reduction.size());
  const auto place = [&](size_t r, int64_t count, bool outermost) {
    const Expr number = outermost ? rest : rest % static_cast<int>(count);
    const Expr first = number * static_cast<int>(plan_.chunk[r]) + static_cast<int>(c_.reduction[r].begin);
    result.first[r] = hi::simplify(first);
    rest = rest / static_cast<int>(count);
  };
  size_t outermost = plan_.main;
  for (size_t r = c_.reduction.size(); r-- > 0;) {
    if (r != plan_.main && plan_.chunk[r] < c_.reduction[r].extent) outermost = r;
  }
  place(plan_.main, main_steps, outermost == plan_.main);
  const int64_t* known = ir::constant_int(step);
  result.may_end = main_steps * result.length > extent && (!known || *known == main_steps - 1);
  for (size_t r = c_.reduction.size(); r-- > 0;) {
    if (r == plan_.main) continue;
    if (plan_.chunk[r] == c_.reduction[r].extent) {
      result.first[r] = static_cast<int>(c_.reduction[r].begin);
    } else {
      place(r, c_.reduction[r].extent / plan_.chunk[r], outermost == r);
    }
  }
  return result;
}

NodePtr ContractionBuilder::reduce() {
  if (plan_.by_warpgroups()) return consume();
  const int64_t steps = plan_.steps(c_);
  std::vector<NodePtr> parts;
  if (steps == 1) {
    parts = one_step(0, step_at(0));
  } else {
    parts = {plan_.all_ahead ? all_ahead(steps) : in_turn(steps)};
  }
  const int64_t left = plan_.left(c_);
  if (left > 0) {
    ReductionStep step = step_at(0);
    step.first[plan_.main] = static_cast<int>(c_.reduction[plan_.main].begin + c_.reduction[plan_.main].extent - left);
    step.length = left;
    // With several buffers, that of this turn has not been read since the last barrier.
    if (plan_.stages == 1) parts.push_back(build::barrier());
    for (const NodePtr& node : one_step(static_cast<int>(steps % plan_.stages), step)) parts.push_back(node);
  }
  return build::sequence(std::move(parts));
}

/// A step whose copies nothing hides.
std::vector<NodePtr> ContractionBuilder::one_step(const Expr& stage, const ReductionStep& step) {
  std::vector<NodePtr> parts = {fetch(stage, step)};
  if (plan_.asynchronous) {
    parts.push_back(build::commit_group());
    parts.push_back(build::wait_group(0));
  }
  parts.push_back(build::barrier());
  parts.push_back(add_up(stage, step));
  return parts;
}

NodePtr ContractionBuilder::in_turn(int64_t steps) {
  const auto stages = static_cast<int>(plan_.stages);
  const std::string name = names_.fresh("step");
  const Expr step = build::var(name);
  std::vector<NodePtr> parts, body;
  if (stages == 1) {
    body = one_step(0, step_at(step));
    body.insert(body.begin(), build::barrier());
  } else {
    for (int s = 0; s + 1 < stages; ++s) {
      parts.push_back(fetch(s, step_at(s)));
      parts.push_back(build::commit_group());
    }
    const Expr next = step + (stages - 1);
    const Expr is_step = next < static_cast<int>(steps);
    body = {build::wait_group(stages - 2), build::barrier()};
    if (plan_.tensor_cores) {
      // Copies and reads of fragments take turns, else the fragments wait for all copies.
      const Copies copies = [&](const Expr& piece, int64_t pieces) {
        return fetch(next % stages, step_at(next), {piece, pieces, is_step, true});
      };
      body.push_back(add_products(step % stages, step_at(step), copies));
      body.push_back(build::commit_group());
    } else {
      body.push_back(build::if_then(is_step, fetch(next % stages, step_at(next))));
      body.push_back(build::commit_group());
      body.push_back(add_up(step % stages, step_at(step)));
    }
  }
  parts.push_back(build::for_loop(name, 0, static_cast<int>(steps), build::sequence(std::move(body))));
  return build::sequence(std::move(parts));
}

/// Steps with a buffer each, none of which waits for another's copies to begin.
NodePtr ContractionBuilder::all_ahead(int64_t steps) {
  std::vector<NodePtr> parts;
  for (int s = 0; s < static_cast<int>(steps); ++s) {
    parts.push_back(fetch(s, step_at(s)));
    parts.push_back(build::commit_group());
  }
  for (int s = 0; s < static_cast<int>(steps); ++s) {
    parts.push_back(build::wait_group(static_cast<int>(steps) - 1 - s));
    parts.push_back(build::barrier());
    parts.push_back(add_up(s, step_at(s)));
  }
  return build::sequence(std::move(parts));
}

/// The least value of a subscript in a step of the block.
Expr ContractionBuilder::first_of(const Subscript& s, const ReductionStep& step) const {
  Expr result = static_cast<int>(s.constant);
  for (size_t i = 0; i < s.parallel.size(); ++i) {
    const auto by = static_cast<int>(s.parallel[i]);
    if (by == 0) continue;
    result = result + first_[i] * by;
    if (by < 0) result = result + by * static_cast<int>(plan_.parallel[i].tile - 1);
  }
  for (size_t r = 0; r < s.reduction.size(); ++r) {
    const auto by = static_cast<int>(s.reduction[r]);
    if (by == 0) continue;
    result = result + step.first[r] * by;
    if (by < 0) result = result + by * static_cast<int>((r == plan_.main ? step.length : plan_.chunk[r]) - 1);
  }
  return hi::simplify(result);
}

/// Whether vectors of a dimension, with subscripts of any block and step, begin before the tensor or end behind it.
ContractionBuilder::Leaves ContractionBuilder::leaves(const Operand& operand, size_t dimension, int64_t length) const {
  const Subscript& s = operand.subscripts[dimension];
  int64_t least = s.constant, greatest = s.constant;
  const auto add = [&](int64_t by, const Axis& axis, int64_t values) {
    (by < 0 ? least : greatest) += by * (axis.begin + values - 1);
    (by < 0 ? greatest : least) += by * axis.begin;
  };
  for (size_t i = 0; i < s.parallel.size(); ++i) {
    add(s.parallel[i], c_.parallel[i], plan_.parallel[i].blocks * plan_.parallel[i].tile);
  }
  for (size_t r = 0; r < s.reduction.size(); ++r) {
    const int64_t values = c_.reduction[r].extent;
    const bool fills = r == plan_.main && plan_.fills_last_step();
    add(s.reduction[r], c_.reduction[r], fills ? round_up(values, plan_.chunk[r]) : values);
  }
  // A box's last vector may have room for more than is asked for.
  const int64_t end = round_up(greatest + 1, length);
  return {.before = (least < 0), .behind = (end > operand.extents[dimension])};
}

/// Brings a subscript of a vector that may lie outside of the tensor to its last elements (or first).
Expr ContractionBuilder::within(const Operand& operand, size_t dimension, const Expr& value, int64_t length) const {
  const Leaves leaves = this->leaves(operand, dimension, length);
  Expr result = value;
  if (leaves.behind) result = Halide::min(result, static_cast<int>(operand.extents[dimension] - length));
  if (leaves.before) result = Halide::max(result, 0);
  return result;
}

/// The value of an operand that no memory has, at its subscripts.
Expr ContractionBuilder::computed_element(const Operand& operand, const std::vector<Expr>& at) const {
  BodyContext context;
  context.program = &program_;
  context.place = [this](const std::string& tensor) -> const Place& { return places_.at(tensor); };
  for (size_t d = 0; d < at.size(); ++d) {
    const Axis& index = operand.computed->indices[d];
    context.indices[index.name] =
        poly::ranged(hi::simplify(at[d] + static_cast<int>(index.begin)), index.begin, index.begin + index.extent - 1);
  }
  const Expr value = instance_value(operand.computed->value, context);
  return value.type() == operand.type ? value : hi::Cast::make(operand.type, value);
}

/// Neighbours of an operand that no memory has, as many as a vector of it. Once all places are known, vectorize() reads
/// vectors of what they are made of.
NodePtr ContractionBuilder::compute_run(size_t operand, std::vector<Expr> to, std::vector<Expr> at) {
  const Operand& o = c_.operands[operand];
  const int64_t run = plan_.operands[operand].vector;
  if (run == 1) return build::store(shared_[operand], to, computed_element(o, at));
  const std::string name = names_.fresh("in_run");
  to.back() = to.back() + build::var(name);
  at.back() = at.back() + build::var(name);
  const NodePtr each = build::store(shared_[operand], to, computed_element(o, at));
  return build::unrolled(name, 0, static_cast<int>(run), each);
}

NodePtr ContractionBuilder::fetch(const Expr& stage, const ReductionStep& step, const CopyShare& share) {
  std::vector<NodePtr> parts;
  for (size_t i = 0; i < c_.operands.size(); ++i) {
    if (!is_kept(i)) parts.push_back(fetch_operand(i, stage, step, share));
  }
  return build::sequence(std::move(parts));
}

/// The element of a box, of so many copies along each dimension, that copy `number` brings (or begins with). Neighbours
/// go along the last dimension; where another is the innermost in shared memory, 8 of each row.
std::vector<Expr> ContractionBuilder::copied_element(size_t operand, const std::vector<int64_t>& box,
                                                     const Expr& number) const {
  struct Digit {
    size_t dimension;
    int64_t count, scale;
  };
  constexpr int64_t kRun = 8;
  const OperandPlan& plan = plan_.operands[operand];
  const size_t last = box.size() - 1;
  std::vector<Digit> digits;  // fastest first
  const bool in_runs = plan.innermost < last && box[last] % kRun == 0;
  if (in_runs) {
    digits = {{last, kRun, 1}, {plan.innermost, box[plan.innermost], 1}, {last, box[last] / kRun, kRun}};
  } else {
    digits = {{last, box[last], plan.vector}};
  }
  for (size_t d = last; d-- > 0;) {
    if (!in_runs || d != plan.innermost) digits.push_back({d, box[d], 1});
  }
  std::erase_if(digits, [](const Digit& digit) { return digit.count == 1; });
  std::vector<Expr> result(box.size(), 0);
  int64_t stride = 1;
  for (size_t i = 0; i < digits.size(); ++i) {
    Expr at = number / static_cast<int>(stride);
    if (i + 1 < digits.size()) at = at % static_cast<int>(digits[i].count);
    result[digits[i].dimension] = result[digits[i].dimension] + at * static_cast<int>(digits[i].scale);
    stride *= digits[i].count;
  }
  for (Expr& e : result) e = hi::simplify(e);
  return result;
}

/// Where the tensor has the element that a row chosen by data has at these values of the operand's indices.
std::vector<Expr> ContractionBuilder::chosen_element(const Operand& operand, const std::vector<Expr>& at) const {
  const ChosenRow& row = *operand.chosen_row;
  BodyContext context;
  context.program = &program_;
  context.place = [this](const std::string& tensor) -> const Place& { return places_.at(tensor); };
  for (size_t d = 0; d < at.size(); ++d) {
    const int64_t begin = -operand.subscripts[d].constant;
    context.indices[row.indices[d]] =
        poly::ranged(hi::simplify(at[d] + static_cast<int>(begin)), begin, begin + operand.extents[d] - 1);
  }
  return element_at(row.subscripts, context);
}

NodePtr ContractionBuilder::fetch_operand(size_t operand, const Expr& stage, const ReductionStep& step,
                                          const CopyShare& share) {
  constexpr int64_t kMostRounds = 16, kInFlight = 8;
  const Operand& o = c_.operands[operand];
  const OperandPlan& plan = plan_.operands[operand];
  std::vector<int64_t> box = plan.box;
  std::vector<Expr> first;
  // Tiles of an atom are whole: what lies behind the reduction is zero.
  const int64_t whole = plan_.tensor_cores ? round_up(step.length, plan_.tensor_cores->atom->k) : step.length;
  const int64_t missing = plan_.chunk[plan_.main] - whole;
  for (size_t d = 0; d < box.size(); ++d) {
    box[d] -= missing * std::abs(o.subscripts[d].reduction[plan_.main]);
    first.push_back(first_of(o.subscripts[d], step));
  }
  first.back() = first.back() - static_cast<int>(plan.lead);
  const bool is_run = plan.merged + 1 < box.size();
  box = merged_extents(operand, box);
  first = merged(operand, first);
  box.back() = ceil_div(box.back(), plan.vector);
  const int64_t copies = std::accumulate(box.begin(), box.end(), int64_t{1}, std::multiplies<>());
  const int64_t threads = copying_threads(plan_.threads(), box.back(), copies);
  const int64_t all_rounds = ceil_div(copies, threads), rounds = ceil_div(all_rounds, share.pieces);
  const std::string copy = names_.fresh("copy");
  // Of copies through registers in a loop, several loads are under way before the first of them is stored.
  const bool is_laid_out = plan_.unroll_copies.value_or(rounds <= kMostRounds);
  const bool in_flight = plan_.tensor_cores && !plan_.asynchronous && !o.computed && !is_laid_out;
  const int64_t at_once = in_flight ? kInFlight : 1;
  const std::string load = in_flight ? names_.fresh("load") : "";
  Expr own = rounds > 1 ? build::var(copy) : Expr(0);  // round of the piece
  if (in_flight) own = own * static_cast<int>(at_once) + build::var(load);
  const Expr round = hi::simplify(share.piece * static_cast<int>(rounds) + own);
  Expr number = build::thread_x();
  if (all_rounds > 1) number = number + round * static_cast<int>(threads);
  const std::vector<Expr> local = copied_element(operand, box, number);
  std::vector<Expr> to(box.size() + 1), from(box.size());
  const bool fills = plan_.fills_last_step() && !o.computed;  // by the copy itself
  Expr is_read, exists;                                       // absent: all are
  const auto reads_if = [&](const Expr& e) { is_read = is_read.defined() ? is_read && e : e; };
  const auto exists_if = [&](const Expr& e) { exists = exists.defined() ? exists && e : e; };
  for (size_t d = 0; d < box.size(); ++d) {
    to[d + 1] = local[d];
    const int64_t length = d + 1 == box.size() ? plan.vector : 1;
    from[d] = hi::simplify(first[d] + local[d]);
    if (!o.inside.empty()) {
      const ir::Inside& inside = o.inside[d];
      Expr mine;  // whether the guard lets it be read
      if (inside.least) mine = from[d] >= static_cast<int>(*inside.least);
      if (inside.greatest) {
        const Expr below = from[d] <= static_cast<int>(*inside.greatest);
        mine = mine.defined() ? mine && below : below;
      }
      if (mine.defined()) reads_if(mine);
    }
    if (step.may_end && o.subscripts[d].reduction[plan_.main] != 0) {
      const Axis& main = c_.reduction[plan_.main];
      reads_if(from[d] < static_cast<int>(o.subscripts[d].constant + main.begin + main.extent));
    }
    if (!fills && !o.inside.empty() && o.inside[d].least && o.inside[d].greatest) continue;
    if (is_run && d >= plan.merged) continue;
    // Copies from beyond the end would all be of one row, which the L2 cache serves one by one: of 72 rows in tiles of
    // 64, an H200 took 170 us, and 17 us where these rows are not read.
    const bool may_skip = is_alone_ && plan_.asynchronous && !o.computed && !o.chosen_row && plan.lead == 0;
    if (!may_skip || o.subscripts[d].reduction[plan_.main] != 0) {
      from[d] = within(o, d, from[d], length);
      continue;
    }
    const auto [before, behind] = leaves(o, d, length);
    if (before) exists_if(from[d] >= 0);
    if (behind) exists_if(from[d] <= static_cast<int>(o.extents[d] - length));
  }
  to[0] = hi::simplify(stage);
  if (o.chosen_row) from = chosen_element(o, from);
  const Tensor source = build::global(o.tensor, o.type, layout_in_memory(operand));
  Tensor loaded =
      build::registers(in_flight ? names_.fresh(o.tensor + "_loaded") : "", o.type, row_major({at_once, plan.vector}));
  loaded.written = true;
  const Tensor& target = in_flight ? loaded : shared_[operand];
  const std::vector<Expr> place = in_flight ? std::vector<Expr>{build::var(load), 0} : to;
  NodePtr result = o.computed
                       ? compute_run(operand, to, from)
                       : build::move(target, place, source, from, static_cast<int>(plan.vector), plan_.asynchronous);
  if (fills && exists.defined()) {
    reads_if(exists);
  } else if (exists.defined()) {
    result = build::guarded(exists, result);
  }
  if (is_read.defined()) {
    result =
        fills ? build::guarded(is_read, result) : build::if_then(is_read, result, zeros(target, place, plan.vector));
  }
  if (whole > step.length) {
    for (size_t d = 0; d < o.subscripts.size(); ++d) {
      if (o.subscripts[d].reduction[plan_.main] == 0) continue;
      const int64_t length = step.length + (d + 1 == o.subscripts.size() ? plan.lead : 0);
      result = build::if_then(local[d] < static_cast<int>(length), result, zeros(target, place, plan.vector));
    }
  }
  std::vector<Expr> conditions;  // the innermost first
  const bool rest = copies % threads != 0;
  if (rest) conditions.push_back(number < static_cast<int>(copies));
  // A single round is not part of the number.
  if (rounds * share.pieces > all_rounds && (!rest || all_rounds == 1)) {
    conditions.push_back(round < static_cast<int>(all_rounds));
  }
  if (rounds % at_once != 0 && !rest) conditions.push_back(round < static_cast<int>(all_rounds));
  if (threads < plan_.threads()) conditions.push_back(build::thread_x() < static_cast<int>(threads));
  if (share.condition.defined()) conditions.push_back(share.condition);
  result = under(conditions, result, share.predicated);
  if (in_flight) {
    const NodePtr store = build::move(shared_[operand], to, loaded, place, static_cast<int>(plan.vector));
    const auto each = [&](const NodePtr& body) { return build::unrolled(load, 0, static_cast<int>(at_once), body); };
    result = build::allocate(loaded, build::sequence({each(result), each(under(conditions, store, false))}));
  }
  if (rounds == 1) return result;
  return is_laid_out ? build::unrolled(copy, 0, static_cast<int>(rounds), result)
                     : build::for_loop(copy, 0, static_cast<int>(ceil_div(rounds, at_once)), result);
}

/// Adds a step's products to the sums; each group of threads has a part of the main axis.
NodePtr ContractionBuilder::add_up(const Expr& stage, const ReductionStep& step) {
  if (plan_.tensor_cores) return add_products(stage, step, nullptr);
  const int64_t part_length = ceil_div(step.length, plan_.groups);
  const bool even = part_length * plan_.groups == step.length;
  const int64_t vector = even && part_length % plan_.vector == 0 ? plan_.vector : 1;
  const std::string& inner = inner_[plan_.main];
  const int64_t iterations = part_length / vector;
  int64_t sums = plan_.registers() * vector;
  // Windows inside: what neighbouring results read again stays in registers.
  const bool windows_inside = vector == 1 && plan_.has_windows(c_);
  const int64_t piece = windows_inside ? 1 : laid_out(iterations, sums, plan_.most_unrolled);
  const bool in_pieces = piece > 1 && piece < iterations;
  Expr iteration = iterations == 1 ? Expr(0) : build::var(inner);
  const std::string in_piece = names_.fresh(inner + "_in_piece");
  if (in_pieces) iteration = iteration * static_cast<int>(piece) + build::var(in_piece);
  NodePtr result = add_chunk(stage, step, part_length, vector, iteration);
  const auto loop = [&](const std::string& name, int64_t count) {
    if (count == 1) return;
    sums *= count;
    const auto end = static_cast<int>(count);
    result =
        sums <= plan_.most_unrolled ? build::unrolled(name, 0, end, result) : build::for_loop(name, 0, end, result);
  };
  if (in_pieces) {
    loop(in_piece, piece);
    loop(inner, iterations / piece);
  } else if (!windows_inside) {
    loop(inner, iterations);
  }
  for (size_t r = c_.reduction.size(); r-- > 0;) {
    if (r != plan_.main) loop(inner_[r], plan_.chunk[r]);
  }
  if (windows_inside) loop(inner, part_length);
  return result;
}

NodePtr ContractionBuilder::add_chunk(const Expr& stage, const ReductionStep& step, int64_t part_length, int64_t vector,
                                      const Expr& iteration) {
  std::vector<Expr> at(c_.reduction.size(), 0);
  for (size_t r = 0; r < c_.reduction.size(); ++r) {
    if (r != plan_.main && plan_.chunk[r] > 1) at[r] = build::var(inner_[r]);
  }
  Expr main = part_ * static_cast<int>(part_length);
  if (part_length > vector) main = main + iteration * static_cast<int>(vector);
  std::vector<NodePtr> parts;
  const std::string lane = names_.fresh("lane");
  const auto read = [&](bool along) {
    std::vector<NodePtr> nodes;
    for (size_t i = 0; i < c_.operands.size(); ++i) {
      const bool now = plan_.operands[i].along_main && vector > 1;
      if (now == along) nodes.push_back(read_fragment(i, stage, step, at, vector));
    }
    return build::sequence(std::move(nodes));
  };
  at[plan_.main] = hi::simplify(main);
  if (vector > 1) parts.push_back(read(true));
  const Expr in_vector = vector > 1 ? build::var(lane) : Expr(0);
  at[plan_.main] = hi::simplify(main + in_vector);
  NodePtr products = build::sequence({read(false), multiply(step, at, in_vector)});
  if (vector > 1) products = build::unrolled(lane, 0, static_cast<int>(vector), products);
  parts.push_back(products);
  NodePtr result = build::sequence(std::move(parts));
  const bool even = part_length * plan_.groups == step.length;
  return even ? result : build::if_then(at[plan_.main] < static_cast<int>(step.length), result);
}

/// Where an operand's box has what the values of all axes read, counted from those of the step.
std::vector<Expr> ContractionBuilder::box_position(size_t operand, const ReductionStep& step,
                                                   const std::vector<Expr>& local, const std::vector<Expr>& at) const {
  std::vector<Expr> result;
  for (const Subscript& s : c_.operands[operand].subscripts) {
    Expr position = 0;
    for (size_t i = 0; i < s.parallel.size(); ++i) {
      const auto by = static_cast<int>(s.parallel[i]);
      if (by > 0) position = position + local[i] * by;
      if (by < 0) position = position + (static_cast<int>(plan_.parallel[i].tile - 1) - local[i]) * -by;
    }
    for (size_t r = 0; r < s.reduction.size(); ++r) {
      const auto by = static_cast<int>(s.reduction[r]);
      if (by > 0) position = position + at[r] * by;
      if (by < 0) {
        const int64_t length = r == plan_.main ? step.length : plan_.chunk[r];  // what is left is shorter
        position = position + (static_cast<int>(length - 1) - at[r]) * -by;
      }
    }
    result.push_back(position);
  }
  result.back() = result.back() + static_cast<int>(plan_.operands[operand].lead);
  return result;
}

NodePtr ContractionBuilder::read_fragment(size_t operand, const Expr& stage, const ReductionStep& step,
                                          const std::vector<Expr>& at, int64_t vector) {
  const OperandPlan& plan = plan_.operands[operand];
  const bool along = plan.along_main && vector > 1;
  const bool grouped = plan.group_axis >= 0 && !plan.along_main;
  return over_registers(
      plan.axes,
      [&] {
        std::vector<Expr> from;
        std::map<std::string, Expr> whole;
        if (grouped) whole[low_[static_cast<size_t>(plan.group_axis)]] = 0;
        std::vector<Expr> locals;
        for (size_t i = 0; i < c_.parallel.size(); ++i) locals.push_back(local(i));
        if (is_kept(operand)) {
          from = shared_position(operand, stage, step, locals, at);
        } else {
          for (const Expr& position : box_position(operand, step, locals, at)) {
            from.push_back(hi::simplify(hi::substitute(whole, position)));
          }
          from = merged(operand, std::move(from));
          from.insert(from.begin(), hi::simplify(stage));
        }
        std::vector<Expr> to = fragment_subscripts(operand, 0);
        for (Expr& e : to) e = hi::simplify(hi::substitute(whole, e));
        const int64_t elements = along     ? vector
                                 : grouped ? plan_.parallel[static_cast<size_t>(plan.group_axis)].group
                                           : 1;
        return make_node(tile::Move{fragments_[operand].name, to, static_cast<int>(to.size()) - 1,
                                    shared_[operand].name, from,
                                    is_kept(operand) ? 1 : static_cast<int>(std::min(plan.innermost, plan.merged)) + 1,
                                    static_cast<int>(elements), false});
      },
      grouped ? plan.group_axis : -1);
}

BodyContext ContractionBuilder::context_at(bool inside) const {
  BodyContext context;
  context.program = &program_;
  context.place = [this](const std::string& tensor) -> const Place& { return places_.at(tensor); };
  for (size_t i = 0; i < c_.parallel.size(); ++i) {
    const int64_t last = c_.parallel[i].begin + c_.parallel[i].extent - 1;
    Expr value = hi::simplify(first_[i] + local(i));
    if (!inside && is_partial(i)) value = Halide::min(value, static_cast<int>(last));
    context.indices[c_.parallel[i].name] = poly::ranged(value, c_.parallel[i].begin, last);
  }
  return context;
}

NodePtr ContractionBuilder::multiply(const ReductionStep& step, const std::vector<Expr>& at, const Expr& in_vector) {
  return over_registers(all_axes(), [&] {
    BodyContext context = context_at(false);
    for (size_t r = 0; r < c_.reduction.size(); ++r) {
      const Axis& axis = c_.reduction[r];
      context.indices[axis.name] =
          poly::ranged(hi::simplify(step.first[r] + at[r]), axis.begin, axis.begin + axis.extent - 1);
    }
    std::map<std::string, Expr> fragments;
    for (size_t i = 0; i < c_.operands.size(); ++i) {
      fragments[c_.operands[i].placeholder] = build::read(fragments_[i], fragment_subscripts(i, in_vector));
    }
    const Expr value = hi::substitute(fragments, instance_value(c_.update.value, context));
    const NodePtr add =
        build::store(sum_, sum_subscripts(), combine(c_.update.assign, build::read(sum_, sum_subscripts()), value));
    // What lies outside of a partial tile is added to sums that nobody stores.
    for (const auto& [name, value] : context_at(true).indices) context.indices[name] = value;
    return carrying(c_.update, context, add);
  });
}

}  // namespace tc::gpu
