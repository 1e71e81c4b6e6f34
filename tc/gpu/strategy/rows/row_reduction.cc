#include "tc/gpu/strategy/rows/row_reduction.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tc/gpu/lower/body.h"
#include "tc/gpu/lower/declare_tensors.h"
#include "tc/gpu/lower/emit.h"
#include "tc/gpu/lower/reduce.h"
#include "tc/gpu/lower/vectorize.h"
#include "tc/ir/specialise.h"
#include "tc/support/check.h"
#include "tc/support/round.h"

namespace tc::gpu {

using Halide::Expr;
using poly::Ranged;
using tile::NodePtr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kWarp = 32;

class Writer {
 public:
  Writer(const FusedGroup& part, const RowsPlan& plan)
      : part_(part), plan_(plan), names_(kernel_names(*part.scop->program)), lane_(thread_number(0, plan.lanes)) {
    for (const ir::Tensor& t : part.scop->program->tensors) {
      places_[t.name] = {t.name, t.type, {}, ir::constant_shape(t)};
    }
  }

  tile::Kernel run(const std::string& name, const Device& device);

 private:
  /// What is done at one element: the values of the loops inside, and its register.
  using AtElement = std::function<NodePtr(const std::vector<Ranged>&, const Expr& slot)>;

  void choose_grid(const Device& device);
  void declare_registers();
  bool is_held(const RowTensor& tensor) const { return !tensor.of_elements || plan_.holds_elements; }
  BodyContext context_of(const GroupStatement& s) const;
  BodyContext context_at(const GroupStatement& s, const std::vector<Ranged>& values, const Expr& slot) const;
  NodePtr for_each_element(const GroupStatement& s, const AtElement& body);
  NodePtr chunk(const GroupStatement& s, const Ranged& number, bool exists, const AtElement& body);
  NodePtr neighbours(const GroupStatement& s, const Ranged& number, const Ranged& first, const AtElement& body);
  NodePtr copy(const std::string& name, const RowTensor& tensor, bool in);
  NodePtr run_statement(const GroupStatement& s, RowWork work);
  NodePtr reduce(const std::vector<const GroupStatement*>& together);
  size_t add_reductions(size_t first, std::vector<NodePtr>& parts);
  NodePtr instance(const GroupStatement& s, const BodyContext& context, const Expr& slot) const;
  NodePtr once(const GroupStatement& s);
  NodePtr all();

  const FusedGroup& part_;
  const RowsPlan& plan_;
  ir::Names names_;
  Ranged lane_;
  std::map<std::string, Place> places_;
  std::map<std::string, tile::Tensor> registers_;  ///< of held tensors
  std::vector<tile::Tensor> shared_;
  std::vector<Ranged> members_;  ///< values
  Expr row_exists_ = hi::const_true();
  std::set<std::string> defined_;  ///< held for the row, and hold something even where it does not exist
  bool goes_back_ = false;
  tile::Kernel kernel_;
};

/// Blocks along the members, innermost first.
void Writer::choose_grid(const Device& device) {
  std::vector<int64_t> counts;
  for (size_t m = part_.members.size(); m-- > 0;) {
    const int64_t extent = part_.members[m].extent;
    counts.push_back(static_cast<int>(m) == plan_.beside ? ceil_div(extent, plan_.rows) : extent);
  }
  const std::vector<Ranged> numbers = deal_blocks(counts, device, kernel_.grid);
  for (size_t m = 0; m < part_.members.size(); ++m) {
    const ir::Range& range = part_.members[m];
    Ranged at = numbers[part_.members.size() - 1 - m];
    if (static_cast<int>(m) == plan_.beside) {
      at = at * poly::ranged(plan_.rows) + thread_number(1, plan_.rows);
      row_exists_ = poly::less(at, poly::ranged(range.extent));
      at = poly::ranged(at.expr, at.min, range.extent - 1);
    }
    members_.push_back(at + poly::ranged(range.begin));
  }
}

void Writer::declare_registers() {
  for (const auto& [name, tensor] : plan_.tensors) {
    if (!is_held(tensor)) continue;
    const int64_t vectors = tensor.of_elements ? ceil_div(tensor.user->inner_size(), plan_.vector) : 1;
    const int64_t elements = tensor.of_elements ? ceil_div(vectors, plan_.lanes) * plan_.vector : 1;
    registers_[name] = registers(names_.fresh(name + "_held"), places_.at(name).type, elements);
  }
}

/// Of a statement's shared indices, and of those inside that have one value.
BodyContext Writer::context_of(const GroupStatement& s) const {
  BodyContext context;
  context.program = part_.scop->program.get();
  context.place = [this](const std::string& tensor) -> const Place& { return places_.at(tensor); };
  for (size_t m = 0; m < members_.size(); ++m) {
    context.indices[s.statement->indices[static_cast<size_t>(s.shared[m])]] = members_[m];
  }
  for (const int i : s.inner) {
    const auto at = static_cast<size_t>(i);
    if (s.ranges[at].extent == 1) context.indices[s.statement->indices[at]] = poly::ranged(s.ranges[at].begin);
  }
  for (const auto& [name, buffer] : registers_) {
    if (!plan_.tensors.at(name).of_elements) context.elements[name] = element(buffer, index(0));
  }
  return context;
}

/// The lane's vectors: number * lanes + lane. What is not held is gone through there and back by turns: the end of one
/// way is what the caches still have at the start of the next.
NodePtr Writer::for_each_element(const GroupStatement& s, const AtElement& body) {
  const int64_t vectors = s.inner_size() / plan_.vector;
  const int64_t whole = vectors / plan_.lanes;
  const bool back = !plan_.holds_elements && std::exchange(goes_back_, !goes_back_);
  std::vector<NodePtr> parts;
  if (whole > 0) {
    const int64_t at_once = plan_.holds_elements ? whole : plan_.unroll;
    parts.push_back(loop_over("chunk", {0, whole}, at_once, names_, [&](const Ranged& number) {
      return chunk(s, back ? poly::ranged(whole - 1) - number : number, true, body);
    }));
  }
  if (whole * plan_.lanes < vectors) parts.push_back(chunk(s, poly::ranged(whole), false, body));
  if (back) std::reverse(parts.begin(), parts.end());
  return guarded(row_exists_, sequence(std::move(parts)));
}

NodePtr Writer::chunk(const GroupStatement& s, const Ranged& number, bool exists, const AtElement& body) {
  const int64_t size = s.inner_size();
  const Ranged first = (number * poly::ranged(plan_.lanes) + lane_) * poly::ranged(plan_.vector);
  return let("first", first, names_, [&](const Ranged& named) {
    const Expr within = exists ? hi::const_true() : poly::less(named, poly::ranged(size));
    const Ranged bounded = poly::ranged(named.expr, named.min, std::min(named.max, size - plan_.vector));
    return guarded(within, neighbours(s, number, bounded, body));
  });
}

NodePtr Writer::neighbours(const GroupStatement& s, const Ranged& number, const Ranged& first, const AtElement& body) {
  const std::vector<int> loops = loops_of(s);
  std::vector<Ranged> values(loops.size());
  Ranged rest = first;
  for (size_t l = loops.size(); l-- > 0;) {
    const ir::Range& range = s.ranges[static_cast<size_t>(loops[l])];
    values[l] = l == 0 ? rest : poly::floor_mod(rest, range.extent);
    rest = poly::floor_div(rest, range.extent);
    if (l + 1 == loops.size()) {
      const int64_t most = range.extent - plan_.vector;
      values[l] = poly::ranged(values[l].expr, values[l].min, std::min(values[l].max, most));
    }
    values[l] = values[l] + poly::ranged(range.begin);
  }
  const std::string& name = s.statement->indices[static_cast<size_t>(loops.back())];
  return loop_over(name, {0, plan_.vector}, plan_.vector, names_, [&](const Ranged& i) {
    std::vector<Ranged> at = values;
    at.back() = at.back() + i;
    return body(at, (number * poly::ranged(plan_.vector) + i).expr);
  });
}

BodyContext Writer::context_at(const GroupStatement& s, const std::vector<Ranged>& values, const Expr& slot) const {
  BodyContext context = context_of(s);
  const std::vector<int> loops = loops_of(s);
  for (size_t l = 0; l < loops.size(); ++l) {
    context.indices[s.statement->indices[static_cast<size_t>(loops[l])]] = values[l];
  }
  for (const auto& [tensor, buffer] : registers_) {
    if (plan_.tensors.at(tensor).of_elements) context.elements[tensor] = element(buffer, slot);
  }
  return context;
}

/// A tensor's elements from memory to the registers that hold them, or back.
NodePtr Writer::copy(const std::string& name, const RowTensor& tensor, bool in) {
  const tile::Tensor& buffer = registers_.at(name);
  const Expr access = hi::Call::make(buffer.type, name, *tensor.subscripts, hi::Call::PureExtern);
  auto copy_element = [&](BodyContext context, const Expr& slot) {
    context.elements.clear();
    const Expr there = instance_value(access, context);
    if (in) return make_node(tile::Store{buffer.name, {slot}, there});
    return make_node(tile::Store{name, there.as<hi::Call>()->args, element(buffer, slot)});
  };
  if (tensor.of_elements) {
    return for_each_element(*tensor.user, [&](const std::vector<Ranged>& values, const Expr& slot) {
      return copy_element(context_at(*tensor.user, values, slot), slot);
    });
  }
  const Expr by_one = in || plan_.lanes == 1 ? hi::const_true() : lane_.expr == 0;
  return guarded(row_exists_, guarded(by_one, copy_element(context_of(*tensor.user), index(0))));
}

/// One instance: to a register where its element is held, else to memory.
NodePtr Writer::instance(const GroupStatement& s, const BodyContext& context, const Expr& slot) const {
  const auto held = context.elements.find(s.statement->tensor);
  if (held == context.elements.end()) return statement_body(*s.statement, context);
  Expr value = statement_value(*s.statement, context);
  if (s.statement->kind == poly::Statement::Kind::kUpdate) value = combine(s.statement->assign, held->second, value);
  if (value.type() != held->second.type()) value = hi::Cast::make(held->second.type(), value);
  return carrying(*s.statement, context,
                  make_node(tile::Store{registers_.at(s.statement->tensor).name, {slot}, value}));
}

/// Reductions over the same elements, which are gone through once.
NodePtr Writer::reduce(const std::vector<const GroupStatement*>& together) {
  std::vector<tile::Tensor> partials;
  auto store = [](const tile::Tensor& to, const Expr& value) {
    return make_node(tile::Store{to.name, {index(0)}, value});
  };
  std::vector<NodePtr> parts;
  for (const GroupStatement* s : together) {
    const poly::Statement& statement = *s->statement;
    const Halide::Type type = registers_.at(statement.tensor).type;
    TC_CHECK(statement.accumulator == type, "{} accumulates into '{}' in another type than the tensor's", statement.id,
             statement.tensor);
    partials.push_back(registers(names_.fresh(statement.tensor + "_partial"), type, 1));
    parts.push_back(store(partials.back(), ir::identity_of(statement.assign, type)));
  }
  parts.push_back(for_each_element(*together[0], [&](const std::vector<Ranged>& values, const Expr& slot) {
    std::vector<NodePtr> updates;
    for (size_t i = 0; i < together.size(); ++i) {
      const poly::Statement& statement = *together[i]->statement;
      const BodyContext context = context_at(*together[i], values, slot);
      const Expr value = statement_value(statement, context);
      updates.push_back(carrying(statement, context,
                                 store(partials[i], combine(statement.assign, element(partials[i], index(0)), value))));
    }
    return sequence(std::move(updates));
  }));
  for (size_t i = 0; i < together.size(); ++i) {
    const ir::Assign assign = together[i]->statement->assign;
    const tile::Tensor& result = registers_.at(together[i]->statement->tensor);
    if (plan_.lanes > 1) {
      parts.push_back(reduce_lanes(partials[i], assign, plan_.lanes, plan_.rows, names_, shared_));
    }
    const Expr total = combine(assign, element(result, index(0)), element(partials[i], index(0)));
    const bool defined = defined_.count(together[i]->statement->tensor) > 0;
    parts.push_back(guarded(defined ? hi::const_true() : row_exists_, store(result, total)));
  }
  NodePtr body = sequence(std::move(parts));
  for (const tile::Tensor& partial : partials) body = make_node(tile::Allocate{partial, body});
  return body;
}

/// A reduction, and those after it that need nothing of its result, with their initialisations; the next statement.
size_t Writer::add_reductions(size_t first, std::vector<NodePtr>& parts) {
  std::vector<const GroupStatement*> together = {&part_.statements[first]};
  std::vector<std::string> written = {together[0]->statement->tensor};
  size_t next = first + 1;
  size_t end = next;  // behind the last reduction that is taken
  std::vector<NodePtr> starts, pending;
  for (; next < part_.statements.size(); ++next) {
    const GroupStatement& s = part_.statements[next];
    const bool known = std::count(written.begin(), written.end(), s.statement->tensor) > 0;
    if (s.statement->kind == poly::Statement::Kind::kInit && plan_.work[next] == RowWork::kOnce && !known) {
      pending.push_back(run_statement(s, RowWork::kOnce));
      continue;
    }
    bool reads = false;
    for (const hi::Call* read : ir::reads_in(*part_.scop->program, s.statement->value)) {
      reads = reads || std::count(written.begin(), written.end(), read->name) > 0;
    }
    if (plan_.work[next] != RowWork::kReduce || known || reads || !same_loops(s, *together[0])) break;
    together.push_back(&s);
    written.push_back(s.statement->tensor);
    starts.insert(starts.end(), pending.begin(), pending.end());
    pending.clear();
    end = next + 1;
  }
  parts.insert(parts.end(), starts.begin(), starts.end());
  parts.push_back(reduce(together));
  return end;
}

/// One instance for the row. On registers alone, it may run for rows that do not exist.
NodePtr Writer::once(const GroupStatement& s) {
  const std::string& tensor = s.statement->tensor;
  bool on_registers = s.statement->kind != poly::Statement::Kind::kUpdate || defined_.count(tensor) > 0;
  for (const hi::Call* read : ir::reads_in(*part_.scop->program, s.statement->value)) {
    on_registers = on_registers && defined_.count(read->name) > 0;
  }
  if (on_registers) {
    defined_.insert(tensor);
  } else {
    defined_.erase(tensor);
  }
  return guarded(on_registers ? hi::const_true() : row_exists_, instance(s, context_of(s), index(0)));
}

NodePtr Writer::run_statement(const GroupStatement& s, RowWork work) {
  if (work == RowWork::kOnce) return once(s);
  return for_each_element(s, [&](const std::vector<Ranged>& values, const Expr& slot) {
    return instance(s, context_at(s, values, slot), slot);
  });
}

NodePtr Writer::all() {
  std::vector<NodePtr> parts;
  bool must_meet = false;
  for (const auto& [name, tensor] : plan_.tensors) {
    if (!is_held(tensor) || !tensor.read_before) continue;
    parts.push_back(copy(name, tensor, true));
    must_meet = must_meet || (tensor.written && !tensor.of_elements);
  }
  for (size_t i = 0; i < part_.statements.size();) {
    if (plan_.work[i] == RowWork::kReduce) {
      i = add_reductions(i, parts);
    } else {
      parts.push_back(run_statement(part_.statements[i], plan_.work[i]));
      ++i;
    }
  }
  // One lane writes what all have read. Lanes of several warps have met since, in a reduction.
  if (must_meet && plan_.lanes > 1 && plan_.lanes <= kWarp) {
    parts.push_back(make_node(tile::Barrier{tile::Barrier::Scope::kWarp}));
  }
  for (const auto& [name, tensor] : plan_.tensors) {
    if (is_held(tensor) && tensor.written && part_.is_seen_outside(name)) parts.push_back(copy(name, tensor, false));
  }
  return sequence(std::move(parts));
}

tile::Kernel Writer::run(const std::string& name, const Device& device) {
  kernel_.name = name;
  kernel_.block = {plan_.lanes, plan_.rows, 1};
  choose_grid(device);
  declare_registers();
  NodePtr body = vectorize(all(), *part_.scop->program, names_);
  for (const auto& [tensor, buffer] : registers_) body = make_node(tile::Allocate{buffer, body});
  for (const tile::Tensor& tensor : shared_) body = make_node(tile::Allocate{tensor, body});
  kernel_.body = body;
  declare_tensors(kernel_, *part_.scop->program);
  return std::move(kernel_);
}

}  // namespace

tile::Kernel row_reduction(const FusedGroup& part, const RowsPlan& plan, const Device& device,
                           const std::string& name) {
  return Writer(part, plan).run(name, device);
}

}  // namespace tc::gpu
