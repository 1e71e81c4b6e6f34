#include "tc/gpu/strategy/elements/pointwise.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "tc/gpu/lower/body.h"
#include "tc/gpu/lower/corrections.h"
#include "tc/gpu/lower/declare_tensors.h"
#include "tc/gpu/lower/emit.h"
#include "tc/gpu/lower/vectorize.h"
#include "tc/gpu/mapping/row_access.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/elements/together.h"
#include "tc/ir/specialise.h"
#include "tc/support/check.h"
#include "tc/support/round.h"

namespace tc::gpu {

using Halide::Expr;
using poly::Ranged;
using tile::NodePtr;
namespace hi = Halide::Internal;

namespace {

/// A tensor that the part writes, held in registers: of each thread the elements that it works on.
struct Held {
  const GroupStatement* writer = nullptr;
  bool read_before = false;  ///< its first use looks at what it held before the part
};

class Writer {
 public:
  Writer(const FusedGroup& part, const ElementsPlan& plan)
      : part_(part), plan_(plan), names_(kernel_names(*part.scop->program)), extent_(range_along().extent) {
    for (const ir::Tensor& t : part.scop->program->tensors) {
      places_[t.name] = {t.name, t.type, {}, ir::constant_shape(t)};
    }
  }

  tile::Kernel run(const std::string& name, const Device& device);

 private:
  /// Some values of the innermost of the loops that reductions go through together.
  struct Chunk {
    Writer& writer;
    const Together& all;
    const std::vector<Ranged>& outer;  ///< values of the other loops
    Ranged begin;
    int64_t count;
    const Ranged& first;
    int64_t elements;
    std::map<std::string, tile::Tensor> shared = {};  ///< what several reductions read
    tile::Tensor before = {}, number = {};            ///< the extreme before, and what sums read of it

    NodePtr run();
    const poly::Statement& extreme_statement() const;
    BodyContext context_at(const GroupStatement& s, const Ranged& value, const Ranged& i) const;
    NodePtr for_each(const std::function<NodePtr(const Ranged& value, const Ranged& i)>& body);
    NodePtr fetch(const std::string& tensor, const std::vector<Expr>& place);
    NodePtr updates(bool of_extreme);
    NodePtr correct();
  };

  const ir::Range& range_along() const { return part_.members[static_cast<size_t>(plan_.along)]; }
  const std::string& name_along() const {
    const GroupStatement& s = part_.statements.front();
    return s.statement->indices[static_cast<size_t>(s.shared[static_cast<size_t>(plan_.along)])];
  }
  /// An offset along the member that is known to exist.
  Ranged bounded(const Ranged& at) const { return poly::ranged(at.expr, at.min, std::min(at.max, extent_ - 1)); }
  void find_held();
  bool touches_its_own(const std::string& tensor) const;
  void choose_grid(const Device& device);
  NodePtr along_the_block();
  NodePtr repeated(const Ranged& base, bool whole);
  NodePtr rows(const Ranged& first, int64_t elements);
  NodePtr row(const Ranged& number, const std::function<NodePtr()>& body);
  NodePtr with_columns(const Ranged& first, int64_t elements, const std::function<NodePtr()>& body);
  NodePtr read_column(const std::string& tensor, const Ranged& first, int64_t elements);
  NodePtr group(const Ranged& first, int64_t elements);
  NodePtr copy(const std::string& tensor, const Ranged& first, int64_t elements, bool in);
  NodePtr run_statement(const GroupStatement& s, const Ranged& first, int64_t elements);
  NodePtr instance(const GroupStatement& s, const BodyContext& context, const Expr& slot);
  std::set<std::string> held_tensors() const;
  Ranged in_order(const Ranged& value, const ir::Range& range) const;
  static std::vector<Ranged> inner_of(const GroupStatement& s, const std::vector<Ranged>& loops);
  NodePtr reduce(const Together& all, const Ranged& first, int64_t elements);
  int64_t values_at_once(const Together& all, int64_t elements) const;
  NodePtr correct_last(const Together& all, int64_t elements);
  NodePtr neighbours(int64_t elements, const Body& body);
  BodyContext context_at(const GroupStatement& s, const Ranged& along, const std::vector<Ranged>& inner,
                         const Expr& slot) const;

  const FusedGroup& part_;
  const ElementsPlan& plan_;
  ir::Names names_;
  int64_t extent_;
  tile::Kernel kernel_;
  std::map<std::string, Place> places_;
  std::map<std::string, Held> held_;
  std::map<std::string, tile::Tensor> registers_;         ///< of held_, in the present group
  std::vector<Ranged> members_;                           ///< values; that of plan_.along is not used
  Ranged block_ = poly::ranged(0);                        ///< number of the block along the member
  std::map<std::string, tile::Tensor> column_registers_;  ///< what the thread's present rows share
  Ranged first_row_ = poly::ranged(0);                    ///< of the thread, at the member where it is deep
};

/// Whether every access of the part to the tensor is at its own shared members: an element belongs to one thread.
bool Writer::touches_its_own(const std::string& tensor) const {
  std::optional<std::vector<int>> first;
  auto matches = [&](const GroupStatement& s, const std::vector<Expr>& subscripts) {
    std::vector<int> members;
    for (const Expr& e : subscripts) members.push_back(s.member_of(e));
    if (std::count(members.begin(), members.end(), -1) > 0) return false;
    if (!first) first = members;
    return *first == members;
  };
  for (const GroupStatement& s : part_.statements) {
    if (s.statement->tensor == tensor && !matches(s, s.statement->subscripts)) return false;
    std::vector<Expr> values = s.statement->subscripts;
    values.push_back(s.statement->value);
    for (const Expr& e : values) {
      for (const hi::Call* read : ir::reads_in(*part_.scop->program, e)) {
        if (read->name == tensor && !matches(s, read->args)) return false;
      }
    }
  }
  return true;
}

void Writer::find_held() {
  for (const GroupStatement& s : part_.statements) {
    const std::string& tensor = s.statement->tensor;
    if (held_.count(tensor) > 0 || !touches_its_own(tensor)) continue;
    Held held{&s, s.statement->kind == poly::Statement::Kind::kUpdate};
    for (const GroupStatement& before : part_.statements) {
      for (const hi::Call* read : ir::reads_in(*part_.scop->program, before.statement->value)) {
        held.read_before = held.read_before || read->name == tensor;
      }
      if (&before == &s) break;
    }
    held_.emplace(tensor, held);
  }
}

/// Blocks along the member first, then along the others, innermost first.
void Writer::choose_grid(const Device& device) {
  std::vector<int64_t> counts = {ceil_div(extent_, plan_.covered())};
  std::vector<size_t> others;
  for (size_t m = part_.members.size(); m-- > 0;) {
    if (static_cast<int>(m) == plan_.along) continue;
    const int64_t extent = part_.members[m].extent;
    others.push_back(m);
    counts.push_back(ceil_div(extent, plan_.covered_at(static_cast<int>(m))));
  }
  const std::vector<Ranged> numbers = deal_blocks(counts, device, kernel_.grid);
  block_ = numbers[0];
  members_.assign(part_.members.size(), poly::ranged(0));
  for (size_t i = 0; i < others.size(); ++i) {
    const ir::Range& range = part_.members[others[i]];
    Ranged at = numbers[i + 1];
    if (plan_.backwards && i + 1 == others.size()) at = poly::ranged(counts[i + 1] - 1) - at;
    const int member = static_cast<int>(others[i]);
    if (member == plan_.deepest()) {
      const int dimension = member == plan_.above ? 2 : 1;
      first_row_ = at * poly::ranged(plan_.covered_at(member)) + thread_number(dimension, plan_.threads_at(member));
      continue;
    }
    if (member == plan_.beside) at = thread_number(1, plan_.rows);  // all of it
    members_[others[i]] = at + poly::ranged(range.begin);
  }
}

/// What a block does along the member: as a whole one, or, where the last one is not, element by element.
NodePtr Writer::along_the_block() {
  const Ranged base =
      block_ * poly::ranged(plan_.covered()) + thread_number(0, plan_.threads) * poly::ranged(plan_.vector);
  const int64_t whole_blocks = extent_ / plan_.covered();
  return let(name_along() + "_first", base, names_, [&](const Ranged& first) {
    if (whole_blocks * plan_.covered() == extent_) return repeated(first, true);
    if (whole_blocks == 0 || plan_.covered() == plan_.threads) return repeated(first, false);
    const Expr whole = poly::less(block_, poly::ranged(whole_blocks));
    return make_node(tile::If{whole, repeated(first, true), repeated(first, false)});
  });
}

NodePtr Writer::repeated(const Ranged& base, bool whole) {
  const int64_t step = plan_.threads * plan_.vector;
  const bool by_vectors = whole || extent_ % plan_.vector == 0;
  return loop_over(name_along() + "_repeat", {0, plan_.repeats}, plan_.repeats, names_, [&](const Ranged& repeat) {
    const Ranged first = base + repeat * poly::ranged(step);
    if (by_vectors) {
      const Expr exists = whole ? hi::const_true() : poly::less(first, poly::ranged(extent_));
      return guarded(exists, rows(bounded(first), plan_.vector));
    }
    return loop_over(name_along() + "_one", {0, plan_.vector}, plan_.vector, names_, [&](const Ranged& one) {
      const Ranged at = first + one;
      return guarded(poly::less(at, poly::ranged(extent_)), rows(bounded(at), 1));
    });
  });
}

/// The thread's rows, for neighbours from `first` on.
NodePtr Writer::rows(const Ranged& first, int64_t elements) {
  constexpr int64_t kAtOnce = 4;
  const auto all = [&] { return group(first, elements); };
  if (plan_.deepest() < 0) return with_columns(first, elements, all);
  if (plan_.deep == 1) return row(poly::ranged(0), [&] { return with_columns(first, elements, all); });
  return with_columns(first, elements, [&] {
    return loop_over("row", {0, plan_.deep}, kAtOnce, names_, [&](const Ranged& number) { return row(number, all); });
  });
}

/// One of the thread's rows, if it exists.
NodePtr Writer::row(const Ranged& number, const std::function<NodePtr()>& body) {
  const int deepest = plan_.deepest();
  const ir::Range& range = part_.members[static_cast<size_t>(deepest)];
  const Ranged at = first_row_ + number * poly::ranged(plan_.threads_at(deepest));
  members_[static_cast<size_t>(deepest)] = poly::ranged(at.expr, 0, range.extent - 1) + poly::ranged(range.begin);
  const bool all_exist = range.extent % plan_.covered_at(deepest) == 0;
  return guarded(all_exist ? hi::const_true() : poly::less(at, poly::ranged(range.extent)), body());
}

/// The body behind what all of it reads alike, in registers.
NodePtr Writer::with_columns(const Ranged& first, int64_t elements, const std::function<NodePtr()>& body) {
  column_registers_.clear();
  std::vector<NodePtr> parts;
  for (const std::string& tensor : plan_.columns) parts.push_back(read_column(tensor, first, elements));
  parts.push_back(body());
  NodePtr result = sequence(std::move(parts));
  for (const auto& [tensor, buffer] : column_registers_) result = make_node(tile::Allocate{buffer, result});
  return result;
}

/// What all rows or reductions read of a tensor, to registers.
NodePtr Writer::read_column(const std::string& tensor, const Ranged& first, int64_t elements) {
  const auto reader = std::find_if(part_.statements.begin(), part_.statements.end(),
                                   [&](const GroupStatement& s) { return reads_tensor(s.statement->value, tensor); });
  const auto reads = ir::reads_in(*part_.scop->program, reader->statement->value);
  const Expr read = *std::find_if(reads.begin(), reads.end(), [&](const auto* r) { return r->name == tensor; });
  const tile::Tensor buffer = registers(names_.fresh(tensor + "_column"), places_.at(tensor).type, elements);
  const NodePtr result = neighbours(elements, [&](const Ranged& i) {
    const Expr there = instance_value(read, context_at(*reader, first + i, {}, i.expr));
    return make_node(tile::Store{buffer.name, {i.expr}, there});
  });
  column_registers_[tensor] = buffer;
  return result;
}

/// All statements, for neighbours from `first` on.
NodePtr Writer::group(const Ranged& first, int64_t elements) {
  registers_.clear();
  for (const auto& [tensor, held] : held_) {
    registers_[tensor] = registers(names_.fresh(tensor + "_held"), places_.at(tensor).type, elements);
  }
  std::vector<NodePtr> parts;
  for (const auto& [tensor, held] : held_) {
    if (held.read_before) parts.push_back(copy(tensor, first, elements, true));
  }
  for (size_t i = 0; i < part_.statements.size();) {
    if (const auto all = reductions_together(part_, i, held_tensors())) {
      for (const size_t start : all->starts) parts.push_back(run_statement(part_.statements[start], first, elements));
      parts.push_back(reduce(*all, first, elements));
      i = all->end;
    } else {
      parts.push_back(run_statement(part_.statements[i++], first, elements));
    }
  }
  for (const auto& [tensor, held] : held_) {
    if (part_.is_seen_outside(tensor)) parts.push_back(copy(tensor, first, elements, false));
  }
  NodePtr result = sequence(std::move(parts));
  for (const auto& [tensor, buffer] : registers_) result = make_node(tile::Allocate{buffer, result});
  return result;
}

NodePtr Writer::neighbours(int64_t elements, const Body& body) {
  return loop_over(name_along(), {0, elements}, elements, names_, body);
}

/// A held tensor's elements from memory to registers, or back.
NodePtr Writer::copy(const std::string& tensor, const Ranged& first, int64_t elements, bool in) {
  const GroupStatement& writer = *held_.at(tensor).writer;
  return neighbours(elements, [&](const Ranged& i) {
    const std::vector<Expr> position = written_position(*writer.statement, context_at(writer, first + i, {}, i.expr));
    const Expr held = element(registers_.at(tensor), i.expr);
    if (!in) return make_node(tile::Store{tensor, position, held});
    const Expr value = hi::Call::make(held.type(), tensor, position, hi::Call::PureExtern);
    return make_node(tile::Store{registers_.at(tensor).name, {i.expr}, value});
  });
}

/// One statement: its reduction outside, the neighbours inside.
NodePtr Writer::run_statement(const GroupStatement& s, const Ranged& first, int64_t elements) {
  std::function<NodePtr(std::vector<Ranged>)> nest = [&](std::vector<Ranged> inner) -> NodePtr {
    if (inner.size() == s.inner.size()) {
      return neighbours(elements,
                        [&](const Ranged& i) { return instance(s, context_at(s, first + i, inner, i.expr), i.expr); });
    }
    const auto at = static_cast<size_t>(s.inner[inner.size()]);
    int64_t below = 1;
    for (size_t d = inner.size() + 1; d < s.inner.size(); ++d)
      below *= s.ranges[static_cast<size_t>(s.inner[d])].extent;
    return loop_over(s.statement->indices[at], s.ranges[at], std::max<int64_t>(plan_.unroll / below, 1), names_,
                     [&](const Ranged& value) {
                       std::vector<Ranged> next = inner;
                       next.push_back(inner.empty() ? in_order(value, s.ranges[at]) : value);
                       return nest(std::move(next));
                     });
  };
  return nest({});
}

std::set<std::string> Writer::held_tensors() const {
  std::set<std::string> result;
  for (const auto& [tensor, held] : held_) result.insert(tensor);
  return result;
}

/// A value of a reduction's outermost loop, or its counterpart from the end.
Ranged Writer::in_order(const Ranged& value, const ir::Range& range) const {
  if (!plan_.backwards || !plan_.in_any_order) return value;
  return poly::ranged(2 * range.begin + range.extent - 1) - value;
}

/// Values for all of a statement's inner indices.
std::vector<Ranged> Writer::inner_of(const GroupStatement& s, const std::vector<Ranged>& loops) {
  std::vector<Ranged> result;
  size_t next = 0;
  for (const int i : s.inner) {
    const ir::Range& range = s.ranges[static_cast<size_t>(i)];
    result.push_back(range.extent == 1 ? poly::ranged(range.begin) : loops[next++]);
  }
  return result;
}

/// Reductions that go through their loops together, some values of the innermost one at a time.
NodePtr Writer::reduce(const Together& all, const Ranged& first, int64_t elements) {
  const GroupStatement& s = *all.reductions[0].statement;
  const std::vector<int> loops = loops_of(s);
  const int64_t at_once = values_at_once(all, elements);
  std::function<NodePtr(std::vector<Ranged>)> nest = [&](const std::vector<Ranged>& outer) -> NodePtr {
    const auto at = static_cast<size_t>(loops[outer.size()]);
    const ir::Range& range = s.ranges[at];
    const std::string& name = s.statement->indices[at];
    if (outer.size() + 1 < loops.size()) {
      return loop_over(name, range, 1, names_, [&](const Ranged& value) {
        std::vector<Ranged> next = outer;
        next.push_back(outer.empty() ? in_order(value, range) : value);
        return nest(std::move(next));
      });
    }
    const int64_t whole = range.extent / at_once, rest = range.extent % at_once;
    std::vector<NodePtr> parts;
    parts.push_back(loop_over(name + "_step", {0, whole}, 1, names_, [&](const Ranged& number) {
      const Ranged step = outer.empty() ? in_order(number, {0, whole}) : number;
      const Ranged begin = step * poly::ranged(at_once) + poly::ranged(range.begin);
      return Chunk{*this, all, outer, begin, at_once, first, elements}.run();
    }));
    if (rest > 0) {
      const Ranged begin = poly::ranged(range.begin + whole * at_once);
      parts.push_back(Chunk{*this, all, outer, begin, rest, first, elements}.run());
    }
    return sequence(std::move(parts));
  };
  std::vector<NodePtr> parts = {nest({})};
  if (all.extreme) parts.push_back(correct_last(all, elements));
  return sequence(std::move(parts));
}

/// As many as the plan lays out, and as registers hold of what reductions share.
int64_t Writer::values_at_once(const Together& all, int64_t elements) const {
  constexpr int64_t kRegister = 4, kHeldBytes = 256;
  const int64_t extent = inner_ranges(*all.reductions[0].statement).back().extent;
  int64_t bytes = 0;
  for (const auto& [tensor, place] : all.shared) {
    bytes += std::max(kRegister, elements * places_.at(tensor).type.bytes());
  }
  return std::min({plan_.unroll, extent, std::max<int64_t>(kHeldBytes / std::max<int64_t>(bytes, 1), 1)});
}

/// NaN where the extreme is no number in the end.
NodePtr Writer::correct_last(const Together& all, int64_t elements) {
  const poly::Statement& extreme = *all.reductions[*all.extreme].statement->statement;
  return neighbours(elements, [&](const Ranged& i) {
    std::vector<NodePtr> parts;
    for (const ReducedTogether& sum : all.reductions) {
      if (sum.factor == 0 || !sum.reads_identity) continue;
      const tile::Tensor& total = registers_.at(sum.statement->statement->tensor);
      const Expr last = last_correction(extreme, element(registers_.at(extreme.tensor), i.expr));
      parts.push_back(make_node(tile::Store{total.name, {i.expr}, element(total, i.expr) * last}));
    }
    return sequence(std::move(parts));
  });
}

NodePtr Writer::Chunk::run() {
  std::vector<NodePtr> parts;
  std::vector<tile::Tensor> buffers;
  for (const auto& [tensor, place] : all.shared) {
    shared[tensor] =
        registers(writer.names_.fresh(tensor + "_chunk"), writer.places_.at(tensor).type, count * elements);
    buffers.push_back(shared.at(tensor));
  }
  for (const auto& [tensor, place] : all.shared) parts.push_back(fetch(tensor, place));
  if (all.extreme) {
    const tile::Tensor& extreme = writer.registers_.at(extreme_statement().tensor);
    before = registers(writer.names_.fresh(extreme.name + "_before"), extreme.type, elements);
    number = registers(writer.names_.fresh(extreme.name + "_number"), extreme.type, elements);
    buffers.insert(buffers.end(), {before, number});
    parts.push_back(writer.neighbours(elements, [&](const Ranged& i) {
      return make_node(tile::Store{before.name, {i.expr}, element(extreme, i.expr)});
    }));
  }
  parts.push_back(updates(false));
  if (all.extreme) {
    parts.push_back(correct());
    parts.push_back(updates(true));
  }
  NodePtr result = sequence(std::move(parts));
  for (const tile::Tensor& buffer : buffers) result = make_node(tile::Allocate{buffer, result});
  return result;
}

const poly::Statement& Writer::Chunk::extreme_statement() const {
  return *all.reductions[*all.extreme].statement->statement;
}

BodyContext Writer::Chunk::context_at(const GroupStatement& s, const Ranged& value, const Ranged& i) const {
  std::vector<Ranged> loops = outer;
  loops.push_back(begin + value);
  BodyContext context = writer.context_at(s, first + i, inner_of(s, loops), i.expr);
  const Expr slot = (value * poly::ranged(elements) + i).expr;
  for (const auto& [tensor, buffer] : shared) context.elements[tensor] = element(buffer, slot);
  return context;
}

NodePtr Writer::Chunk::for_each(const std::function<NodePtr(const Ranged& value, const Ranged& i)>& body) {
  const GroupStatement& s = *all.reductions[0].statement;
  const std::string& name = s.statement->indices[static_cast<size_t>(loops_of(s).back())];
  return loop_over(name, {0, count}, count, writer.names_, [&](const Ranged& value) {
    return writer.neighbours(elements, [&](const Ranged& i) { return body(value, i); });
  });
}

/// What several reductions read, to registers.
NodePtr Writer::Chunk::fetch(const std::string& tensor, const std::vector<Expr>& place) {
  const GroupStatement& s = *all.reductions[0].statement;
  const Expr read = hi::Call::make(writer.places_.at(tensor).type, tensor, place, hi::Call::PureExtern);
  return for_each([&](const Ranged& value, const Ranged& i) {
    BodyContext context = context_at(s, value, i);
    context.elements.clear();
    const Expr slot = (value * poly::ranged(elements) + i).expr;
    return make_node(tile::Store{shared.at(tensor).name, {slot}, instance_value(read, context)});
  });
}

/// Reductions that read the extreme, or the others.
NodePtr Writer::Chunk::updates(bool of_extreme) {
  return for_each([&](const Ranged& value, const Ranged& i) {
    std::vector<NodePtr> parts;
    for (const ReducedTogether& reduction : all.reductions) {
      if ((reduction.factor != 0) != of_extreme) continue;
      BodyContext context = context_at(*reduction.statement, value, i);
      if (of_extreme) context.elements[extreme_statement().tensor] = element(number, i.expr);
      parts.push_back(writer.instance(*reduction.statement, context, i.expr));
    }
    return sequence(std::move(parts));
  });
}

/// Sums as they would be if the extreme had been what it is now.
NodePtr Writer::Chunk::correct() {
  const poly::Statement& extreme = extreme_statement();
  const tile::Tensor& value = writer.registers_.at(extreme.tensor);
  return writer.neighbours(elements, [&](const Ranged& i) {
    const Expr now = element(value, i.expr);
    std::vector<NodePtr> parts = {make_node(tile::Store{number.name, {i.expr}, as_number(extreme, now)})};
    for (const ReducedTogether& sum : all.reductions) {
      if (sum.factor == 0) continue;
      const tile::Tensor& total = writer.registers_.at(sum.statement->statement->tensor);
      const Expr by = correction(sum.factor, element(before, i.expr), now);
      parts.push_back(make_node(tile::Store{total.name, {i.expr}, element(total, i.expr) * by}));
    }
    return sequence(std::move(parts));
  });
}

BodyContext Writer::context_at(const GroupStatement& s, const Ranged& along, const std::vector<Ranged>& inner,
                               const Expr& slot) const {
  BodyContext context;
  context.program = part_.scop->program.get();
  context.place = [this](const std::string& tensor) -> const Place& { return places_.at(tensor); };
  for (size_t m = 0; m < members_.size(); ++m) {
    const bool is_along = static_cast<int>(m) == plan_.along;
    const Ranged value = is_along ? along + poly::ranged(range_along().begin) : members_[m];
    context.indices[s.statement->indices[static_cast<size_t>(s.shared[m])]] = value;
  }
  for (size_t i = 0; i < inner.size(); ++i) {
    context.indices[s.statement->indices[static_cast<size_t>(s.inner[i])]] = inner[i];
  }
  for (const auto& [tensor, buffer] : column_registers_) context.elements[tensor] = element(buffer, slot);
  for (const auto& [tensor, buffer] : registers_) context.elements[tensor] = element(buffer, slot);
  return context;
}

NodePtr Writer::instance(const GroupStatement& s, const BodyContext& context, const Expr& slot) {
  const auto held = context.elements.find(s.statement->tensor);
  if (held == context.elements.end()) return statement_body(*s.statement, context);
  Expr value = statement_value(*s.statement, context);
  if (s.statement->kind == poly::Statement::Kind::kUpdate) value = combine(s.statement->assign, held->second, value);
  const Halide::Type type = held->second.type();
  if (value.type() != type) value = hi::Cast::make(type, value);
  return carrying(*s.statement, context,
                  make_node(tile::Store{registers_.at(s.statement->tensor).name, {slot}, value}));
}

tile::Kernel Writer::run(const std::string& name, const Device& device) {
  kernel_.name = name;
  kernel_.block = {plan_.threads, plan_.rows, plan_.layers};
  find_held();
  choose_grid(device);
  kernel_.body = vectorize(along_the_block(), *part_.scop->program, names_);
  declare_tensors(kernel_, *part_.scop->program);
  return std::move(kernel_);
}

}  // namespace

tile::Kernel pointwise(const FusedGroup& part, const ElementsPlan& plan, const Device& device,
                       const std::string& name) {
  return Writer(part, plan).run(name, device);
}

}  // namespace tc::gpu
