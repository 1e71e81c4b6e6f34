#include "tc/gpu/strategy/rows/row_reduction.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tc/gpu/lower/body.h"
#include "tc/gpu/lower/declare_tensors.h"
#include "tc/gpu/lower/emit.h"
#include "tc/gpu/lower/reduce.h"
#include "tc/gpu/lower/vectorize.h"
#include "tc/ir/layouts.h"
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

/// Whether an index is in [0, end).
Expr is_within(const Ranged& at, int64_t end) {
  return hi::simplify(poly::less_equal(poly::ranged(0), at) && poly::less(at, poly::ranged(end)));
}

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
  /// A vector of a lane.
  struct Vector {
    Ranged number;      ///< among the lane's
    Ranged position;    ///< of its first element
    Ranged element;     ///< the first
    bool kept = false;  ///< in shared memory
    bool whole = true;  ///< all of it belongs to the row
  };
  /// Vectors number * lanes + lane, for numbers in [begin, end).
  struct Segment {
    int64_t begin, end;
    bool kept;   ///< in shared memory
    bool whole;  ///< all of them are, and belong to the row
  };
  /// An element of a row.
  struct Element {
    std::vector<Ranged> values;  ///< of the loops inside
    Expr held;                   ///< its register, if lanes hold their elements
    Expr kept;                   ///< its place in shared memory; undefined: it has none
  };
  using AtVector = std::function<NodePtr(const Vector&)>;
  using AtElement = std::function<NodePtr(const Element&)>;

  void choose_grid(const Device& device);
  void declare_registers();
  void declare_buffers();
  bool is_held(const RowTensor& tensor) const { return !tensor.of_elements || plan_.holds_elements; }
  BodyContext context_of(const GroupStatement& s) const;
  BodyContext context_at(const GroupStatement& s, const Element& at) const;
  bool has(const GroupStatement& s, const RowTensor& tensor) const { return tensor.users.count(number_of(s)) > 0; }
  size_t number_of(const GroupStatement& s) const { return static_cast<size_t>(&s - part_.statements.data()); }
  bool is_shifted() const { return !plan_.shifted_by.empty(); }
  std::vector<Segment> segments_of(const GroupStatement& s) const;
  NodePtr go_through(const GroupStatement& s, const Segment& segment, bool back, const AtVector& body);
  NodePtr for_each_vector(const GroupStatement& s, const AtVector& body);
  NodePtr for_each_kept(const GroupStatement& s, const AtVector& body);
  NodePtr for_each_element(const GroupStatement& s, const AtElement& body);
  NodePtr chunk(const GroupStatement& s, const Ranged& number, const Segment& segment, const AtVector& body);
  NodePtr shifted();
  Ranged offset_of_row() const;
  std::vector<Ranged> values_at(const GroupStatement& s, const Ranged& first) const;
  NodePtr neighbours(const GroupStatement& s, const Vector& vector, const AtElement& body);
  NodePtr elements_of(const GroupStatement& s, const Vector& vector, const AtVector& body);
  Expr access_of(const std::string& name, const RowTensor& tensor) const;
  Expr kept_element(const RowTensor& tensor, const Expr& at) const;
  NodePtr copy(const std::string& name, const RowTensor& tensor, bool in);
  NodePtr fetch(const std::string& name, const RowTensor& tensor);
  NodePtr fetch_all();
  NodePtr run_statement(const GroupStatement& s, RowWork work);
  NodePtr reduce(const std::vector<const GroupStatement*>& together);
  size_t add_reductions(size_t first, std::vector<NodePtr>& parts);
  Expr element_value(const GroupStatement& s, const BodyContext& context, const Expr& old) const;
  NodePtr instance(const GroupStatement& s, const BodyContext& context, const Expr& slot) const;
  NodePtr kept_instance(const GroupStatement& s, const RowTensor& tensor, const Element& at) const;
  NodePtr once(const GroupStatement& s);
  NodePtr all();

  const FusedGroup& part_;
  const RowsPlan& plan_;
  ir::Names names_;
  Ranged lane_;
  std::map<std::string, Place> places_;
  std::map<std::string, tile::Tensor> registers_;  ///< of held tensors
  std::vector<tile::Tensor> buffers_;              ///< of what is kept
  std::vector<tile::Tensor> shared_;
  std::vector<Ranged> members_;  ///< values
  Expr row_exists_ = hi::const_true();
  Ranged shift_;                   ///< elements of a row's first vector that are before the row
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

/// Rows in shared memory, each as long as what is kept of it.
void Writer::declare_buffers() {
  int64_t row = 1;
  for (const GroupStatement& s : part_.statements) row = std::max(row, s.inner_size());
  for (const Halide::Type& type : plan_.buffers) {
    tile::Tensor buffer;
    buffer.name = names_.fresh("row_kept");
    buffer.type = type;
    buffer.memory = tile::Memory::kShared;
    const int64_t elements = std::min(plan_.kept * plan_.lanes * plan_.vector, plan_.positions(row));
    buffer.layout = tile::Layout::row_major(std::vector<tile::IntTuple>{plan_.rows, elements});
    buffer.written = true;
    buffers_.push_back(std::move(buffer));
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
    const RowTensor& tensor = plan_.tensors.at(name);
    if (!tensor.of_elements && has(s, tensor)) context.elements[name] = element(buffer, index(0));
  }
  return context;
}

/// The lane's vectors: those in shared memory first. Of those that begin between vectors, the first and the last of a
/// row may have elements that are not the row's.
std::vector<Writer::Segment> Writer::segments_of(const GroupStatement& s) const {
  const int64_t size = s.inner_size(), chunk = plan_.lanes * plan_.vector;
  const int64_t all = ceil_div(plan_.positions(size), chunk);
  const int64_t first = is_shifted() ? 1 : 0, last = size / chunk;  // whole chunks
  std::vector<Segment> segments;
  std::set<int64_t> cuts = {0, first, last, plan_.kept, all};
  for (auto cut = cuts.begin(); *cut < all; ++cut) {
    const int64_t begin = *cut, end = *std::next(cut);
    segments.push_back({begin, end, end <= plan_.kept, begin >= first && end <= last});
  }
  return segments;
}

NodePtr Writer::go_through(const GroupStatement& s, const Segment& segment, bool back, const AtVector& body) {
  constexpr int64_t kAll = 1 << 20;
  const int64_t at_once = plan_.holds_elements ? kAll : plan_.unroll;
  const ir::Range range = {segment.begin, segment.end - segment.begin};
  return loop_over("chunk", range, segment.whole ? at_once : 1, names_, [&](const Ranged& number) {
    return chunk(s, back ? poly::ranged(segment.begin + segment.end - 1) - number : number, segment, body);
  });
}

/// What is neither held nor kept is gone through there and back by turns: the end of one way is what the caches still
/// have at the start of the next.
NodePtr Writer::for_each_vector(const GroupStatement& s, const AtVector& body) {
  std::vector<Segment> in_memory;
  for (const Segment& segment : segments_of(s)) {
    if (!segment.kept) in_memory.push_back(segment);
  }
  const bool back = !plan_.holds_elements && !in_memory.empty() && std::exchange(goes_back_, !goes_back_);
  if (back) std::reverse(in_memory.begin(), in_memory.end());
  std::vector<NodePtr> parts;
  if (plan_.kept > 0) parts.push_back(for_each_kept(s, body));
  for (const Segment& segment : in_memory) parts.push_back(go_through(s, segment, back, body));
  return guarded(row_exists_, sequence(std::move(parts)));
}

/// The same for those that are kept in shared memory.
NodePtr Writer::for_each_kept(const GroupStatement& s, const AtVector& body) {
  std::vector<NodePtr> parts;
  for (const Segment& segment : segments_of(s)) {
    if (segment.kept) parts.push_back(go_through(s, segment, false, body));
  }
  return sequence(std::move(parts));
}

NodePtr Writer::for_each_element(const GroupStatement& s, const AtElement& body) {
  return for_each_vector(s, [&](const Vector& vector) { return neighbours(s, vector, body); });
}

NodePtr Writer::chunk(const GroupStatement& s, const Ranged& number, const Segment& segment, const AtVector& body) {
  const int64_t size = s.inner_size();
  const Ranged first = (number * poly::ranged(plan_.lanes) + lane_) * poly::ranged(plan_.vector);
  return let("first", first, names_, [&](const Ranged& named) {
    const int64_t most = plan_.positions(size) - plan_.vector;
    const Ranged position = poly::ranged(named.expr, named.min, std::min(named.max, most));
    const Ranged element = is_shifted() ? named - shift_ : named;
    Vector vector{number, position, poly::ranged(element.expr, 0, std::min(named.max, size - plan_.vector)),
                  segment.kept, true};
    if (!is_shifted()) vector.element.min = named.min;
    if (segment.whole) return body(vector);
    if (!is_shifted()) return guarded(poly::less(named, poly::ranged(size)), body(vector));
    const Expr whole = is_within(element, size - plan_.vector + 1);
    const NodePtr all = body(vector);
    vector.element = element;
    vector.whole = false;
    return make_node(tile::If{whole, all, elements_of(s, vector, body)});
  });
}

/// The elements of a vector that are the row's, each as a vector of its own.
NodePtr Writer::elements_of(const GroupStatement& s, const Vector& vector, const AtVector& body) {
  const int64_t size = s.inner_size();
  return loop_over("end", {0, plan_.vector}, 1, names_, [&](const Ranged& i) {
    const Ranged element = vector.element + i, position = vector.position + i;
    const Vector one{vector.number, poly::ranged(position.expr, 0, plan_.positions(size) - 1),
                     poly::ranged(element.expr, 0, size - 1), vector.kept, false};
    return guarded(is_within(element, size), body(one));
  });
}

/// Where the row begins in its first vector.
Ranged Writer::offset_of_row() const {
  const RowTensor& tensor = plan_.tensors.at(plan_.shifted_by);
  BodyContext context = context_at(*tensor.user, {values_at(*tensor.user, poly::ranged(0)), {}, {}});
  context.elements.clear();
  const Expr there = instance_value(access_of(plan_.shifted_by, tensor), context);
  const std::vector<int64_t>& extents = places_.at(plan_.shifted_by).extents;
  const std::vector<int64_t> strides = ir::strides_of(part_.scop->program->tensor(plan_.shifted_by));
  Ranged offset = poly::ranged(0);
  for (size_t d = extents.size(); d-- > 0;) {
    const Ranged at = poly::ranged(there.as<hi::Call>()->args[d], 0, extents[d] - 1);
    offset = offset + at * poly::ranged(strides[d] % plan_.vector);
  }
  return poly::floor_mod(offset, plan_.vector);
}

/// The values of the loops inside at an element of the row, the first of a vector.
std::vector<Ranged> Writer::values_at(const GroupStatement& s, const Ranged& first) const {
  const std::vector<int> loops = loops_of(s);
  std::vector<Ranged> values(loops.size());
  Ranged rest = first;
  for (size_t l = loops.size(); l-- > 0;) {
    const ir::Range& range = s.ranges[static_cast<size_t>(loops[l])];
    values[l] = l == 0 ? rest : poly::floor_mod(rest, range.extent);
    rest = poly::floor_div(rest, range.extent);
    if (l + 1 == loops.size()) {
      const int64_t most = is_shifted() ? range.extent - 1 : range.extent - plan_.vector;
      values[l] = poly::ranged(values[l].expr, values[l].min, std::min(values[l].max, most));
    }
    values[l] = values[l] + poly::ranged(range.begin);
  }
  return values;
}

NodePtr Writer::neighbours(const GroupStatement& s, const Vector& vector, const AtElement& body) {
  const std::vector<Ranged> values = values_at(s, vector.element);
  const std::string& name = s.statement->indices[static_cast<size_t>(loops_of(s).back())];
  const int64_t elements = vector.whole ? plan_.vector : 1;
  return loop_over(name, {0, elements}, elements, names_, [&](const Ranged& i) {
    Element at{values, (vector.number * poly::ranged(plan_.vector) + i).expr, {}};
    at.values.back() = at.values.back() + i;
    if (vector.kept) at.kept = (vector.position + i).expr;
    return body(at);
  });
}

BodyContext Writer::context_at(const GroupStatement& s, const Element& at) const {
  BodyContext context = context_of(s);
  const std::vector<int> loops = loops_of(s);
  for (size_t l = 0; l < loops.size(); ++l) {
    context.indices[s.statement->indices[static_cast<size_t>(loops[l])]] = at.values[l];
  }
  for (const auto& [name, tensor] : plan_.tensors) {
    if (!tensor.of_elements || !has(s, tensor)) continue;
    if (plan_.holds_elements) context.elements[name] = element(registers_.at(name), at.held);
    if (tensor.buffer >= 0 && at.kept.defined()) context.elements[name] = kept_element(tensor, at.kept);
  }
  return context;
}

Expr Writer::access_of(const std::string& name, const RowTensor& tensor) const {
  return hi::Call::make(places_.at(name).type, name, *tensor.subscripts, hi::Call::PureExtern);
}

Expr Writer::kept_element(const RowTensor& tensor, const Expr& at) const {
  const tile::Tensor& buffer = buffers_[static_cast<size_t>(tensor.buffer)];
  return hi::Call::make(buffer.type, buffer.name, {thread_number(1, plan_.rows).expr, at}, hi::Call::PureExtern);
}

/// A tensor's elements from memory to the registers that hold them, or back.
NodePtr Writer::copy(const std::string& name, const RowTensor& tensor, bool in) {
  const tile::Tensor& buffer = registers_.at(name);
  auto copy_element = [&](BodyContext context, const Expr& slot) {
    context.elements.clear();
    const Expr there = instance_value(access_of(name, tensor), context);
    if (in) return make_node(tile::Store{buffer.name, {slot}, there});
    return make_node(tile::Store{name, there.as<hi::Call>()->args, element(buffer, slot)});
  };
  if (tensor.of_elements) {
    return for_each_element(*tensor.user,
                            [&](const Element& at) { return copy_element(context_at(*tensor.user, at), at.held); });
  }
  const Expr by_one = in || plan_.lanes == 1 ? hi::const_true() : lane_.expr == 0;
  return guarded(row_exists_, guarded(by_one, copy_element(context_of(*tensor.user), index(0))));
}

/// A tensor's elements to shared memory, as many as are kept. Each lane copies its own, and waits for these alone.
NodePtr Writer::fetch(const std::string& name, const RowTensor& tensor) {
  constexpr int64_t kLeastBytes = 4;  // of an asynchronous copy
  const GroupStatement& s = *tensor.user;
  return for_each_kept(s, [&](const Vector& vector) {
    BodyContext context = context_at(s, {values_at(s, vector.element), {}, {}});
    context.elements.clear();
    tile::Move move;
    move.source = name;
    move.source_subscripts = instance_value(access_of(name, tensor), context).as<hi::Call>()->args;
    move.source_dimension = static_cast<int>(move.source_subscripts.size()) - 1;
    move.destination = buffers_[static_cast<size_t>(tensor.buffer)].name;
    move.destination_subscripts = {thread_number(1, plan_.rows).expr, vector.position.expr};
    move.destination_dimension = 1;
    move.elements = static_cast<int>(vector.whole ? plan_.vector : 1);
    move.asynchronous = move.elements * places_.at(name).type.bytes() >= kLeastBytes;
    return make_node(std::move(move));
  });
}

/// The rows that are kept, once they are there.
NodePtr Writer::fetch_all() {
  std::vector<NodePtr> parts;
  for (const auto& [name, tensor] : plan_.tensors) {
    if (tensor.buffer >= 0 && tensor.read_before) parts.push_back(guarded(row_exists_, fetch(name, tensor)));
  }
  if (parts.empty()) return sequence({});
  parts.push_back(make_node(tile::CommitGroup{}));
  parts.push_back(make_node(tile::WaitGroup{0}));
  return sequence(std::move(parts));
}

/// What an element holds after an instance.
Expr Writer::element_value(const GroupStatement& s, const BodyContext& context, const Expr& old) const {
  Expr value = statement_value(*s.statement, context);
  if (s.statement->kind == poly::Statement::Kind::kUpdate) value = combine(s.statement->assign, old, value);
  return value.type() == old.type() ? value : hi::Cast::make(old.type(), value);
}

/// One instance: to a register where its element is held, else to memory.
NodePtr Writer::instance(const GroupStatement& s, const BodyContext& context, const Expr& slot) const {
  const auto held = context.elements.find(s.statement->tensor);
  if (held == context.elements.end()) return statement_body(*s.statement, context);
  return carrying(
      *s.statement, context,
      make_node(tile::Store{registers_.at(s.statement->tensor).name, {slot}, element_value(s, context, held->second)}));
}

/// One instance whose element is kept: to memory what is seen there, to shared memory what is read again.
NodePtr Writer::kept_instance(const GroupStatement& s, const RowTensor& tensor, const Element& at) const {
  const BodyContext context = context_at(s, at);
  const Expr kept = kept_element(tensor, at.kept);
  const Expr value = element_value(s, context, kept);
  std::vector<NodePtr> parts;
  if (number_of(s) == tensor.last_write && part_.is_seen_outside(s.statement->tensor)) {
    parts.push_back(make_node(tile::Store{s.statement->tensor, written_position(*s.statement, context), value}));
  }
  if (number_of(s) < tensor.last_read) {
    const auto* call = kept.as<hi::Call>();
    parts.push_back(make_node(tile::Store{call->name, call->args, value}));
  }
  if (!parts.empty()) parts.front() = carrying(*s.statement, context, parts.front());
  return sequence(std::move(parts));
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
  parts.push_back(for_each_element(*together[0], [&](const Element& at) {
    std::vector<NodePtr> updates;
    for (size_t i = 0; i < together.size(); ++i) {
      const poly::Statement& statement = *together[i]->statement;
      const BodyContext context = context_at(*together[i], at);
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
  const RowTensor& written = plan_.tensors.at(s.statement->tensor);
  return for_each_element(s, [&](const Element& at) {
    if (written.buffer >= 0 && at.kept.defined()) return kept_instance(s, written, at);
    return instance(s, context_at(s, at), at.held);
  });
}

NodePtr Writer::all() {
  std::vector<NodePtr> parts;
  bool must_meet = false;
  if (plan_.kept > 0) parts.push_back(fetch_all());
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

/// The same for rows that begin between vectors.
NodePtr Writer::shifted() {
  return let("shift", offset_of_row(), names_, [&](const Ranged& shift) {
    shift_ = shift;
    return all();
  });
}

tile::Kernel Writer::run(const std::string& name, const Device& device) {
  kernel_.name = name;
  kernel_.block = {plan_.lanes, plan_.rows, 1};
  choose_grid(device);
  declare_registers();
  declare_buffers();
  NodePtr body = is_shifted() ? shifted() : all();
  body = vectorize(body, *part_.scop->program, names_, buffers_);
  for (const auto& [tensor, buffer] : registers_) body = make_node(tile::Allocate{buffer, body});
  shared_.insert(shared_.end(), buffers_.begin(), buffers_.end());
  for (const tile::Tensor& tensor : shared_) body = make_node(tile::Allocate{tensor, body});
  kernel_.body = body;
  declare_tensors(kernel_, *part_.scop->program);
  return std::move(kernel_);
}

}  // namespace

tile::Kernel row_reduction(const FusedGroup& part, const RowsPlan& plan, const Device& device,
                           const std::string& name) {
  return Writer(plan.part ? plan.part->group : part, plan).run(name, device);
}

}  // namespace tc::gpu
