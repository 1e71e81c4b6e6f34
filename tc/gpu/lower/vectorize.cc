#include "tc/gpu/lower/vectorize.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "tc/gpu/lower/body.h"
#include "tc/gpu/lower/hoist_choice.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/layouts.h"
#include "tc/ir/names.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
using tile::NodePtr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kMostVectors = 4;  ///< of one tensor in a loop over neighbours

/// What is known of variables modulo something.
using Multiples = hi::Scope<hi::ModulusRemainder>;

/// A variable that is congruent to an expression, modulo a constant.
struct Congruence {
  Expr expr;
  int64_t modulus = 1;
};
using Congruences = std::map<std::string, Congruence>;

/// A tensor in memory.
struct Tensor {
  Halide::Type type;
  std::vector<int64_t> strides;  ///< elements; the last is 1
};

struct Vector {
  std::string tensor;
  std::vector<Expr> first;  ///< the subscripts of its first element
  std::string buffer;
  Halide::Type type;
  int64_t behind = 0;  ///< elements behind the vector that are read too, one by one
};

/// An element that a whole vector reads, although its subscripts use the loop's variable: S(n, (8*t + v) / 128).
struct Uniform {
  std::string tensor;
  std::vector<Expr> subscripts;
  std::string buffer;
  Halide::Type type;
};

/// A float16 that is computed within a wider value. Two neighbours are one instruction if nothing else is between them.
struct Half {
  Expr value;
  std::string buffer;
};

/// An element of a vector: the loop's variable, and so much further.
struct Lane {
  Vector* vector = nullptr;
  int64_t shift = 0;
};

/// The constant that an expression ends with, as simplify() leaves it.
int64_t constant_part(const Expr& e) {
  if (const int64_t* all = ir::constant_int(e)) return *all;
  const auto* sum = e.as<hi::Add>();
  const int64_t* constant = sum == nullptr ? nullptr : ir::constant_int(sum->b);
  return constant == nullptr ? 0 : *constant;
}

bool same(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return hi::equal(x, y); });
}

/// One loop over neighbours.
class Loop {
 public:
  /// `changing`: the tensors that the kernel writes.
  Loop(const tile::For& loop, int64_t elements, const std::map<std::string, Tensor>& tensors,
       const std::set<std::string>& changing, const Multiples& multiples, const Congruences& congruences,
       ir::Names& names)
      : loop_(loop),
        elements_(elements),
        tensors_(tensors),
        changing_(changing),
        multiples_(multiples),
        congruences_(congruences),
        names_(names) {}

  /// Nothing if the body is more than stores.
  NodePtr run();

 private:
  bool collect(const NodePtr& node);
  Lane lane_of(std::vector<Vector>& known, const std::string& tensor, const std::vector<Expr>& subscripts);
  bool is_in_place(const tile::Store& store) const;
  bool is_aligned(const Tensor& tensor, const std::vector<Expr>& first) const;
  hi::ModulusRemainder congruent_offset(const Tensor& tensor, const std::vector<Expr>& first) const;
  Expr without_variable(const Expr& subscript) const;
  const Uniform* uniform_of(const hi::Call* read);
  bool reads_along(const Expr& condition) const;
  Expr with_vectors(const Expr& value);
  bool is_half(const Expr& value) const;
  Expr with_halves(const Expr& value);
  NodePtr compute(const Half& half, const NodePtr& body) const;
  void move(const Vector& vector, bool load, std::vector<NodePtr>& to) const;
  NodePtr load_one(const Vector& vector, int64_t position) const;
  NodePtr allocate(const Vector& vector, const NodePtr& body) const;
  NodePtr load(const Uniform& uniform, const NodePtr& body) const;

  const tile::For& loop_;
  int64_t elements_;
  const std::map<std::string, Tensor>& tensors_;
  const std::set<std::string>& changing_;
  const Multiples& multiples_;
  const Congruences& congruences_;
  ir::Names& names_;
  std::vector<const tile::Store*> stores_;
  std::vector<std::shared_ptr<const tile::Instances>> instances_;  ///< of the stores
  std::set<std::string> written_;                                  ///< but for those in place
  std::vector<Vector> loads_;
  std::vector<Vector> results_;
  std::vector<Uniform> uniforms_;
  std::vector<Half> halves_;
};

bool Loop::collect(const NodePtr& node) {
  return tile::match(
      *node,
      [&](const tile::Sequence& n) {
        return std::all_of(n.children.begin(), n.children.end(),
                           [this](const NodePtr& child) { return collect(child); });
      },
      [&](const tile::Store& n) {
        stores_.push_back(&n);
        instances_.push_back(node->instances);
        written_.insert(n.tensor);
        return true;
      },
      [](const tile::OneOf<tile::For, tile::If, tile::Let, tile::Allocate, tile::Ring> auto&) { return false; },
      [](const tile::OneOf<tile::Atomic, tile::Move, tile::BoxCopy, tile::BoxStore, tile::ClusterLoad> auto&) {
        return false;
      },
      [](const tile::Collective auto&) { return false; }, [](const tile::Synchronisation auto&) { return false; });
}

/// Whether an element's offset is a multiple of the vector.
bool Loop::is_aligned(const Tensor& tensor, const std::vector<Expr>& first) const {
  hi::ModulusRemainder offset(0, 0);
  for (size_t d = tensor.strides.size(); d-- > 0;) {
    const hi::ModulusRemainder stride(0, tensor.strides[d] % elements_);
    offset = offset + hi::modulus_remainder(first[d], multiples_) * stride;
  }
  const auto is_multiple = [&](const hi::ModulusRemainder& m) {
    return m.modulus % elements_ == 0 && m.remainder % elements_ == 0;
  };
  return is_multiple(offset) || (!congruences_.empty() && is_multiple(congruent_offset(tensor, first)));
}

/// The same where rows begin anywhere, and what is known of the beginning is a variable's congruence.
hi::ModulusRemainder Loop::congruent_offset(const Tensor& tensor, const std::vector<Expr>& first) const {
  std::map<std::string, Expr> congruent;
  for (const auto& [name, known] : congruences_) {
    if (known.modulus % elements_ == 0) congruent[name] = known.expr;
  }
  const bool wide = std::any_of(first.begin(), first.end(), [](const Expr& e) { return e.type().bits() > 32; });
  const Halide::Type type = Halide::Int(wide ? 64 : 32);
  Expr offset = hi::make_zero(type);
  for (size_t d = tensor.strides.size(); d-- > 0;) {
    const Expr at = hi::substitute(congruent, Halide::cast(type, first[d]));
    offset = offset + at * hi::make_const(type, tensor.strides[d] % elements_);
  }
  return hi::modulus_remainder(hi::simplify(offset), multiples_);
}

/// The vector that an access belongs to, if it runs along one: a new one from an aligned element on, or one that is
/// known and begins less than its length before.
Lane Loop::lane_of(std::vector<Vector>& known, const std::string& tensor, const std::vector<Expr>& subscripts) {
  const auto found = tensors_.find(tensor);
  if (found == tensors_.end() || subscripts.empty() || found->second.type.is_bool()) return {};
  const Tensor& in_memory = found->second;
  if (elements_ * in_memory.type.bytes() > kMostVectors * kVectorBytes) return {};
  std::vector<Expr> first = subscripts;
  for (size_t d = 0; d + 1 < first.size(); ++d) {
    if (hi::expr_uses_var(first[d], loop_.variable)) return {};
  }
  const Expr variable = hi::Variable::make(loop_.begin.type(), loop_.variable);
  Expr& last = first.back();
  last = hi::simplify(hi::substitute(loop_.variable, hi::make_zero(loop_.begin.type()), last));
  const Expr along = hi::simplify(subscripts.back() - Halide::cast(last.type(), variable) - last);
  if (!hi::is_const_zero(along)) return {};
  const bool aligned = is_aligned(in_memory, first);
  const int64_t shift = aligned ? 0 : (constant_part(last) % elements_ + elements_) % elements_;
  if (shift > 0) last = hi::simplify(last - hi::make_const(last.type(), shift));
  for (Vector& vector : known) {
    if (vector.tensor == tensor && same(vector.first, first)) return {&vector, shift};
  }
  if (!aligned) return {};
  known.push_back({tensor, first, names_.fresh(tensor + "_vector"), in_memory.type});
  return {&known.back(), 0};
}

/// A subscript where quotients that are the same for the whole vector are those of its first element.
Expr Loop::without_variable(const Expr& subscript) const {
  class Mutator : public hi::IRMutator {
   public:
    explicit Mutator(const Loop& loop) : loop_(loop) {}

   private:
    using IRMutator::visit;
    Expr visit(const hi::Div* op) override {
      const int64_t* divisor = ir::constant_int(op->b);
      if (divisor == nullptr || *divisor <= 0 || !op->type.is_int()) return IRMutator::visit(op);
      const Expr variable = hi::Variable::make(loop_.loop_.begin.type(), loop_.loop_.variable);
      const Expr first = hi::substitute(loop_.loop_.variable, hi::make_zero(variable.type()), op->a);
      const Expr along = hi::simplify(op->a - Halide::cast(op->type, variable) - first);
      const hi::ModulusRemainder known = hi::modulus_remainder(first, loop_.multiples_);
      const int64_t modulus = std::gcd(known.modulus, *divisor);
      const int64_t remainder = modulus == 0 ? 0 : (known.remainder % modulus + modulus) % modulus;
      if (!hi::is_const_zero(along) || remainder + loop_.elements_ > modulus) return IRMutator::visit(op);
      return hi::simplify(first / op->b);
    }
    const Loop& loop_;
  } mutator(*this);
  return mutator.mutate(subscript);
}

/// Nothing where the element differs within a vector, or is the same without a look at the variable's range.
const Uniform* Loop::uniform_of(const hi::Call* read) {
  const auto uses_variable = [this](const Expr& e) { return hi::expr_uses_var(e, loop_.variable); };
  if (tensors_.count(read->name) == 0 || std::none_of(read->args.begin(), read->args.end(), uses_variable)) {
    return nullptr;
  }
  std::vector<Expr> subscripts;
  for (const Expr& e : read->args) subscripts.push_back(without_variable(e));
  if (std::any_of(subscripts.begin(), subscripts.end(), uses_variable)) return nullptr;
  for (const Uniform& known : uniforms_) {
    if (known.tensor == read->name && same(known.subscripts, subscripts)) return &known;
  }
  uniforms_.push_back({read->name, std::move(subscripts), names_.fresh(read->name + "_value"), read->type});
  return &uniforms_.back();
}

/// Whether a condition depends on what neighbours read.
bool Loop::reads_along(const Expr& condition) const {
  class Finder : public hi::IRVisitor {
   public:
    explicit Finder(const std::string& variable) : variable_(variable) {}
    bool found = false;

   private:
    using IRVisitor::visit;
    void visit(const hi::Call* op) override {
      const auto uses_it = [&](const Expr& e) { return hi::expr_uses_var(e, variable_); };
      found =
          found || (op->call_type == hi::Call::PureExtern && std::any_of(op->args.begin(), op->args.end(), uses_it));
      IRVisitor::visit(op);
    }
    const std::string& variable_;
  } finder(loop_.variable);
  condition.accept(&finder);
  return finder.found;
}

Expr Loop::with_vectors(const Expr& value) {
  class Mutator : public hi::IRMutator {
   public:
    explicit Mutator(Loop& loop) : loop_(loop) {}

   private:
    using IRMutator::visit;
    Expr visit(const hi::Call* op) override {
      if (op->is_intrinsic(hi::Call::if_then_else)) return choice(op);
      if (loop_.written_.count(op->name) == 0 && !(in_branch_ && loop_.changing_.count(op->name) > 0)) {
        const Lane lane = loop_.lane_of(loop_.loads_, op->name, op->args);
        if (lane.vector != nullptr) {
          lane.vector->behind = std::max(lane.vector->behind, lane.shift);
          Expr at = hi::Variable::make(loop_.loop_.begin.type(), loop_.loop_.variable);
          if (lane.shift > 0) at = at + hi::make_const(at.type(), lane.shift);
          return hi::Call::make(op->type, lane.vector->buffer, {at}, hi::Call::PureExtern);
        }
        if (const Uniform* uniform = loop_.uniform_of(op)) {
          return hi::Call::make(op->type, uniform->buffer, {hi::make_zero(Halide::Int(32))}, hi::Call::PureExtern);
        }
      }
      return IRMutator::visit(op);
    }
    /// Branches that read within their tensors whatever the condition have a fourth argument (lower/body.h). Where
    /// indices decide, whole warps may read nothing, which is worth more than vectors: half of a triangle stays unread.
    Expr choice(const hi::Call* op) {
      std::vector<Expr> args = op->args;
      const bool by_data = loop_.reads_along(args[0]);
      args[0] = mutate(args[0]);
      const bool before = std::exchange(in_branch_, true);
      for (size_t branch : {1, 2}) {
        if (may_read_both(op) && by_data) args[branch] = mutate(args[branch]);
      }
      in_branch_ = before;
      return hi::Call::make(op->type, op->name, args, op->call_type);
    }
    Loop& loop_;
    bool in_branch_ = false;
  } mutator(*this);
  return mutator.mutate(value);
}

/// Whether a value is a sum, difference or product of float16 that differs within a vector, and that no store changes.
bool Loop::is_half(const Expr& value) const {
  class Reads : public hi::IRVisitor {
   public:
    explicit Reads(const std::set<std::string>& written) : written_(written) {}
    bool of_written = false, chooses = false;

   private:
    using IRVisitor::visit;
    void visit(const hi::Call* op) override {
      of_written |= written_.count(op->name) > 0;
      chooses |= op->is_intrinsic(hi::Call::if_then_else);
      IRVisitor::visit(op);
    }
    const std::set<std::string>& written_;
  };
  const bool computes = value.as<hi::Mul>() || value.as<hi::Add>() || value.as<hi::Sub>();
  if (!computes || value.type() != Halide::Float(16) || !hi::expr_uses_var(value, loop_.variable)) return false;
  std::set<std::string> stored;
  for (const tile::Store* store : stores_) stored.insert(store->tensor);
  Reads reads(stored);
  value.accept(&reads);
  return !reads.of_written && !reads.chooses;
}

/// A value of a wider type that reads its float16 from registers.
Expr Loop::with_halves(const Expr& value) {
  class Mutator : public hi::IRMutator {
   public:
    explicit Mutator(Loop& loop) : loop_(loop) {}
    using IRMutator::mutate;
    Expr mutate(const Expr& e) override {
      if (!loop_.is_half(e)) return IRMutator::mutate(e);
      auto known = std::find_if(loop_.halves_.begin(), loop_.halves_.end(),
                                [&](const Half& half) { return hi::equal(half.value, e); });
      if (known == loop_.halves_.end()) {
        known = loop_.halves_.insert(known, {e, loop_.names_.fresh("halves")});
      }
      return hi::Call::make(e.type(), known->buffer,
                            {hi::Variable::make(loop_.loop_.begin.type(), loop_.loop_.variable)}, hi::Call::PureExtern);
    }

   private:
    using IRMutator::visit;
    Expr visit(const hi::Call* op) override {
      return op->is_intrinsic(hi::Call::if_then_else) ? Expr(op) : IRMutator::visit(op);
    }
    // What stands on the right may not be read.
    Expr visit(const hi::And* op) override { return op; }
    Expr visit(const hi::Or* op) override { return op; }
    Loop& loop_;
  } mutator(*this);
  return value.type() == Halide::Float(16) ? value : mutator.mutate(value);
}

/// By vectors of at most 16 bytes.
void Loop::move(const Vector& vector, bool load, std::vector<NodePtr>& to) const {
  tile::Move move;
  const int last = static_cast<int>(vector.first.size()) - 1;
  const int64_t each = std::min(elements_, kVectorBytes / vector.type.bytes());
  move.destination = load ? vector.buffer : vector.tensor;
  move.destination_dimension = load ? 0 : last;
  move.source = load ? vector.tensor : vector.buffer;
  move.source_dimension = load ? last : 0;
  move.elements = static_cast<int>(each);
  for (int64_t position = 0; position < elements_; position += each) {
    const std::vector<Expr> in_buffer = {hi::make_const(Halide::Int(32), position)};
    std::vector<Expr> in_memory = vector.first;
    if (position > 0) in_memory.back() = in_memory.back() + hi::make_const(in_memory.back().type(), position);
    move.destination_subscripts = load ? in_buffer : in_memory;
    move.source_subscripts = load ? in_memory : in_buffer;
    to.push_back(make_node(move));
  }
}

NodePtr Loop::load_one(const Vector& vector, int64_t position) const {
  std::vector<Expr> subscripts = vector.first;
  subscripts.back() = subscripts.back() + hi::make_const(subscripts.back().type(), position);
  const Expr value = hi::Call::make(vector.type, vector.tensor, subscripts, hi::Call::PureExtern);
  return make_node(tile::Store{vector.buffer, {hi::make_const(Halide::Int(32), position)}, value});
}

NodePtr Loop::allocate(const Vector& vector, const NodePtr& body) const {
  tile::Tensor tensor;
  tensor.name = vector.buffer;
  tensor.type = vector.type;
  tensor.memory = tile::Memory::kRegister;
  tensor.layout = tile::Layout::row_major(std::vector<tile::IntTuple>{elements_ + vector.behind});
  tensor.written = true;
  return make_node(tile::Allocate{tensor, body});
}

NodePtr Loop::load(const Uniform& uniform, const NodePtr& body) const {
  tile::Tensor tensor;
  tensor.name = uniform.buffer;
  tensor.type = uniform.type;
  tensor.memory = tile::Memory::kRegister;
  tensor.layout = tile::Layout::row_major({1});
  tensor.written = true;
  const Expr value = hi::Call::make(uniform.type, uniform.tensor, uniform.subscripts, hi::Call::PureExtern);
  const NodePtr store = make_node(tile::Store{uniform.buffer, {hi::make_zero(Halide::Int(32))}, value});
  return make_node(tile::Allocate{tensor, sequence({store, body})});
}

/// Pair by pair, before the loop.
NodePtr Loop::compute(const Half& half, const NodePtr& body) const {
  constexpr int kPair = 2;
  tile::Tensor tensor;
  tensor.name = half.buffer;
  tensor.type = half.value.type();
  tensor.memory = tile::Memory::kRegister;
  tensor.layout = tile::Layout::row_major(std::vector<tile::IntTuple>{elements_});
  tensor.written = true;
  const Halide::Type type = loop_.begin.type();
  const std::string pair = names_.fresh("pair"), low = names_.fresh("of_pair");
  Expr at = hi::Variable::make(type, low);
  if (elements_ > kPair) at = hi::Variable::make(type, pair) * hi::make_const(type, kPair) + at;
  const Expr value = hi::substitute(loop_.variable, at, half.value);
  const auto unrolled = [&](const std::string& name, int64_t end, const NodePtr& inner) {
    return make_node(tile::For{name, hi::make_zero(type), hi::make_const(type, end), hi::make_one(type), true, inner});
  };
  NodePtr computed = unrolled(low, kPair, make_node(tile::Store{half.buffer, {at}, value}));
  if (elements_ > kPair) computed = unrolled(pair, elements_ / kPair, computed);
  return make_node(tile::Allocate{tensor, sequence({computed, body})});
}

/// The tensors that the stores read.
std::set<std::string> read_by(const std::vector<const tile::Store*>& stores) {
  class Reads : public hi::IRVisitor {
   public:
    std::set<std::string> names;

   private:
    using IRVisitor::visit;
    void visit(const hi::Call* op) override {
      names.insert(op->name);
      IRVisitor::visit(op);
    }
  } reads;
  for (const tile::Store* store : stores) {
    for (const Expr& e : store->subscripts) e.accept(&reads);
    store->value.accept(&reads);
  }
  return reads.names;
}

/// Whether all that the stores read of this one's tensor is the element that it replaces, until then.
bool Loop::is_in_place(const tile::Store& store) const {
  class Reads : public hi::IRVisitor {
   public:
    explicit Reads(const tile::Store& written) : written_(written) {}
    bool any = false, others = false;

   private:
    using IRVisitor::visit;
    void visit(const hi::Call* op) override {
      any = any || op->name == written_.tensor;
      others = others || (op->name == written_.tensor && !same(op->args, written_.subscripts));
      IRVisitor::visit(op);
    }
    const tile::Store& written_;
  } reads(store);
  bool before = true;
  for (const tile::Store* other : stores_) {
    if (other != &store && other->tensor == store.tensor) return false;
    reads.any = false;
    for (const Expr& e : other->subscripts) e.accept(&reads);
    other->value.accept(&reads);
    if (reads.others || (reads.any && !before)) return false;
    before = before && other != &store;
  }
  return true;
}

NodePtr Loop::run() {
  if (!collect(loop_.body)) return nullptr;
  std::set<std::string> read = read_by(stores_);
  std::map<std::string, int> writers;
  for (const tile::Store* store : stores_) {
    ++writers[store->tensor];
    if (read.count(store->tensor) == 0 || !is_in_place(*store)) continue;
    read.erase(store->tensor);
    written_.erase(store->tensor);
  }
  std::vector<NodePtr> body;
  for (size_t i = 0; i < stores_.size(); ++i) {
    const tile::Store* store = stores_[i];
    tile::Store changed = *store;
    changed.value = with_halves(with_vectors(store->value));
    if (writers[store->tensor] == 1 && read.count(store->tensor) == 0) {
      if (const Lane lane = lane_of(results_, store->tensor, store->subscripts); lane.vector != nullptr) {
        changed.tensor = lane.vector->buffer;
        changed.subscripts = {hi::Variable::make(loop_.begin.type(), loop_.variable)};
      }
    }
    body.push_back(tile::carrying(instances_[i], make_node(std::move(changed))));
  }
  tile::For changed = loop_;
  changed.body = sequence(std::move(body));
  std::vector<NodePtr> parts;
  for (const Vector& vector : loads_) {
    move(vector, true, parts);
    for (int64_t i = elements_; i < elements_ + vector.behind; ++i) parts.push_back(load_one(vector, i));
  }
  NodePtr loop = make_node(std::move(changed));
  for (const Half& half : halves_) loop = compute(half, loop);
  parts.push_back(std::move(loop));
  for (const Vector& vector : results_) move(vector, false, parts);
  NodePtr result = sequence(std::move(parts));
  for (const Vector& vector : loads_) result = allocate(vector, result);
  for (const Vector& vector : results_) result = allocate(vector, result);
  for (const Uniform& uniform : uniforms_) result = load(uniform, result);
  return result;
}

bool is_vector_loop(const tile::For& loop, int64_t& elements) {
  const int64_t* begin = ir::constant_int(loop.begin);
  const int64_t* end = ir::constant_int(loop.end);
  if (!loop.unrolled || begin == nullptr || end == nullptr || *begin != 0 || !hi::is_const_one(loop.step)) return false;
  elements = *end;
  return elements >= 2 && elements <= kVectorBytes && std::has_single_bit(static_cast<uint64_t>(elements));
}

class Vectorizer {
 public:
  Vectorizer(std::map<std::string, Tensor> tensors, std::set<std::string> changing, ir::Names& names)
      : tensors_(std::move(tensors)), changing_(std::move(changing)), names_(names) {}

  NodePtr run(const NodePtr& node) {
    if (!node) return node;
    return tile::match(
        *node, [&](const tile::For& n) { return visit(n, node); }, [&](const tile::Let& n) { return visit(n, node); },
        [&](const tile::OneOf<tile::Sequence, tile::If, tile::Allocate, tile::Ring> auto&) { return children(node); },
        [&](const tile::Synchronisation auto&) { return node; }, [&](const tile::Spec auto&) { return node; });
  }

 private:
  NodePtr children(const NodePtr& node) {
    return tile::map_children(node, [&](const NodePtr& child) { return run(child); });
  }
  NodePtr visit(const tile::For& s, const NodePtr& node) {
    int64_t elements = 0;
    if (is_vector_loop(s, elements)) {
      if (const NodePtr branches = hoist_choice(s, elements, multiples_, names_)) return run(branches);
      if (NodePtr result = Loop(s, elements, tensors_, changing_, multiples_, congruences_, names_).run())
        return result;
    }
    const int64_t* step = ir::constant_int(s.step);
    const hi::ModulusRemainder begin = hi::modulus_remainder(s.begin, multiples_);
    const int64_t modulus = step == nullptr ? 1 : std::gcd(*step, begin.modulus);
    const hi::ScopedBinding<hi::ModulusRemainder> known(multiples_, s.variable,
                                                        {modulus, modulus == 0 ? 0 : begin.remainder % modulus});
    return children(node);
  }
  NodePtr visit(const tile::Let& s, const NodePtr& node) {
    if (const auto* remainder = s.value.as<hi::Mod>()) {
      if (const int64_t* modulus = ir::constant_int(remainder->b)) congruences_[s.name] = {remainder->a, *modulus};
    }
    const hi::ScopedBinding<hi::ModulusRemainder> known(multiples_, s.name, hi::modulus_remainder(s.value, multiples_));
    return children(node);
  }

  const std::map<std::string, Tensor> tensors_;
  const std::set<std::string> changing_;
  ir::Names& names_;
  Multiples multiples_;
  Congruences congruences_;
};

}  // namespace

NodePtr vectorize(const NodePtr& body, const ir::Program& program, ir::Names& names,
                  const std::vector<tile::Tensor>& shared) {
  std::map<std::string, Tensor> tensors;
  for (const ir::Tensor& tensor : program.tensors) tensors[tensor.name] = {tensor.type, ir::strides_of(tensor)};
  for (const tile::Tensor& tensor : shared) {
    std::vector<int64_t> shape;
    for (int d = 0; d < tensor.rank(); ++d) shape.push_back(tile::product(tensor.layout.shape()[d]));
    tensors[tensor.name] = {tensor.type, ir::row_major_strides(shape)};
  }
  std::set<std::string> changing;
  tile::for_each_node(body, [&](const tile::Node& node) {
    tile::for_each_access(node, [&](const tile::NodeAccess& access) {
      if (access.is_write) changing.insert(access.tensor);
    });
  });
  return Vectorizer(std::move(tensors), std::move(changing), names).run(body);
}

}  // namespace tc::gpu
