#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tc/cpu/access_steps.h"
#include "tc/cpu/prepare.h"
#include "tc/cpu/program_edit.h"
#include "tc/ir/guarded_read.h"
#include "tc/ir/reads.h"

namespace tc::cpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// How often each element of an operand has to be used for a copy to pay; of one too large for the cache.
constexpr int64_t kUses = 16;
constexpr int64_t kUsesFromMemory = 32;
constexpr int64_t kCachedBytes = 8 << 20;
/// Instances of a statement from which its operands are looked at.
constexpr int64_t kInstances = 1 << 15;

int64_t saturating_product(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}

/// Names of the variables in an expression, subscripts included.
std::set<std::string> variables_of(const Expr& expr) {
  class Collector : public hi::IRVisitor {
   public:
    std::set<std::string> names;

   private:
    using IRVisitor::visit;
    void visit(const hi::Variable* op) override { names.insert(op->name); }
  } collector;
  expr.accept(&collector);
  return std::move(collector.names);
}

/// What is known of all the statements while they are gone through.
struct Pass {
  ir::Program program;
  PrepareOptions options;
  std::vector<ir::Statement> front;                           ///< made from what the caller gives
  std::set<std::string> written;                              ///< by the statements so far
  std::map<std::pair<std::string, int>, std::string> turned;  ///< tensor, its dimension put last: the copy
};

/// Replaces the operands of one statement's value.
class Operands : public hi::IRMutator {
 public:
  Operands(Pass& pass, const ir::Statement& statement) : pass_(pass), statement_(statement) {
    for (const ir::Index& index : statement.indices) instances_ = saturating_product(instances_, extent_of(index));
    find_vector();
  }

  /// The statement with operands made by others, which come first.
  std::vector<ir::Statement> run() {
    bool fits = statement_.reduces() && instances_ >= kInstances && has_plain_subscripts(statement_);
    if (fits) statement_.value = mutate(statement_.value);
    made_.push_back(std::move(statement_));
    return std::move(made_);
  }

  Expr mutate(const Expr& expr) override {
    if (Expr operand = computed(expr); operand.defined()) return operand;
    return IRMutator::mutate(expr);
  }
  using IRMutator::mutate;

 private:
  using IRMutator::visit;

  Expr visit(const hi::Call* op) override {
    if (ir::is_tensor_read(pass_.program, op)) return turned(op);
    if (Expr operand = padded(op); operand.defined()) return operand;
    if (!op->is_intrinsic(hi::Call::if_then_else)) return IRMutator::visit(op);
    bool outer = in_branch_;
    in_branch_ = true;
    Expr result = IRMutator::visit(op);
    in_branch_ = outer;
    return result;
  }

  /// Vectors go along the index that writes consecutive elements, if there are enough of them.
  void find_vector() {
    int bytes = statement_.accumulator.bytes();
    std::vector<Reference> all =
        references(pass_.program, statement_.tensor, statement_.subscripts, statement_.value, {});
    for (const Reference& r : all) bytes = std::max(bytes, pass_.program.tensor(r.tensor).type.bytes());
    const int64_t lanes = std::max(2, pass_.options.vector_bits / (8 * bytes));
    for (const ir::Index& index : statement_.indices) {
      if (index.is_reduction || extent_of(index) < std::max<int64_t>(lanes / 2, 4)) continue;
      if (memory_step(pass_.program, pass_.options.layouts, all.front(), index.name) == 1) vector_ = index.name;
    }
  }

  const ir::Index* find_index(const std::string& name) const {
    auto found = std::find_if(statement_.indices.begin(), statement_.indices.end(),
                              [&](const ir::Index& i) { return i.name == name; });
    return found == statement_.indices.end() ? nullptr : &*found;
  }

  std::vector<Reference> reads_of(const Expr& expr) const {
    std::vector<Reference> result = references(pass_.program, statement_.tensor, {}, expr, {});
    result.erase(result.begin());  // the write
    return result;
  }

  // --- operands in another order ---

  /// The dimension of the tensor along which the vectors go, if that is not the one of consecutive elements.
  std::optional<int> dimension_to_turn(const hi::Call* op) const {
    if (vector_.empty() || op->name == statement_.tensor) return std::nullopt;
    const Reference reference = reads_of(op).front();
    auto step = memory_step(pass_.program, pass_.options.layouts, reference, vector_);
    if (!step || *step == 0 || *step == 1) return std::nullopt;
    std::optional<int> result;
    for (size_t d = 0; d < reference.forms.size(); ++d) {
      if (!reference.forms[d]) return std::nullopt;
      auto found = reference.forms[d]->coefficients.find(vector_);
      if (found == reference.forms[d]->coefficients.end()) continue;
      if (result || found->second != 1) return std::nullopt;
      result = static_cast<int>(d);
    }
    return result;
  }

  Expr turned(const hi::Call* op) {
    std::optional<int> last = dimension_to_turn(op);
    if (!last) return op;
    const ir::Tensor tensor = pass_.program.tensor(op->name);
    int64_t elements = 1;
    for (int64_t extent : constant_extents(tensor)) elements = saturating_product(elements, extent);
    const bool cached = elements <= kCachedBytes / tensor.type.bytes();
    if (instances_ / (cached ? kUses : kUsesFromMemory) < elements) return op;
    auto put_last = [&](const std::vector<Expr>& list) {
      std::vector<Expr> result = list;
      std::rotate(result.begin() + *last, result.begin() + *last + 1, result.end());
      return result;
    };
    auto [copy, is_new] = pass_.turned.try_emplace({tensor.name, *last});
    if (is_new) copy->second = add_turned(tensor, put_last);
    return read(pass_.program.tensor(copy->second), put_last(op->args));
  }

  template <typename PutLast>
  std::string add_turned(const ir::Tensor& tensor, const PutLast& put_last) {
    ir::Statement copy;
    std::vector<Expr> subscripts;
    for (int d = 0; d < tensor.rank(); ++d) {
      subscripts.push_back(index_variable(fresh(pass_.program, fmt::format("d{}", d))));
    }
    copy.subscripts = put_last(subscripts);
    std::vector<Expr> extents = put_last(tensor.extents);
    for (size_t d = 0; d < extents.size(); ++d) {
      ir::Index index;
      index.name = copy.subscripts[d].as<hi::Variable>()->name;
      index.begin = index_constant(0);
      index.end = extents[d];
      copy.indices.push_back(std::move(index));
    }
    copy.value = read(tensor, subscripts);
    return add(std::move(copy), tensor.name + "_t", std::move(extents));
  }

  // --- operands with borders ---

  /// The operand with its borders, in place of a read under a guard.
  Expr padded(const hi::Call* op) {
    if (in_branch_ || statement_.guard.defined()) return {};
    const std::optional<ir::GuardedRead> guarded = ir::guarded_read(pass_.program, op);
    if (!guarded || !hi::is_const(guarded->otherwise) || guarded->read->name == statement_.tensor) return {};
    const std::vector<int64_t> extents = constant_extents(pass_.program.tensor(guarded->read->name));
    std::vector<Range> ranges;
    int64_t elements = 1;
    for (size_t d = 0; d < extents.size(); ++d) {
      const std::optional<Range> range = range_of(guarded->read->args[d]);
      const ir::Inside& inside = guarded->inside[d];
      if (!range || (!inside.least && range->begin < 0)) return {};
      if (!inside.greatest && range->begin + range->extent > extents[d]) return {};
      ranges.push_back(*range);
      elements = saturating_product(elements, range->extent);
    }
    if (instances_ / (elements <= kCachedBytes / op->type.bytes() ? kUses : kUsesFromMemory) < elements) return {};
    return read_of_padded(op, *guarded, ranges);
  }

  using Range = ir::Range;

  /// The values of a subscript over the statement's indices.
  std::optional<Range> range_of(const Expr& subscript) const {
    const std::optional<LinearForm> form = linear_form(subscript);
    if (!form) return std::nullopt;
    Range result{form->constant, 1};
    for (const auto& [name, by] : form->coefficients) {
      const ir::Index* index = find_index(name);
      if (index == nullptr) return std::nullopt;
      const int64_t first = begin_of(*index), length = extent_of(*index) - 1;
      result.begin += by * (by > 0 ? first : first + length);
      result.extent += std::abs(by) * length;
    }
    return result;
  }

  Expr read_of_padded(const hi::Call* op, const ir::GuardedRead& guarded, const std::vector<Range>& ranges) {
    ir::Statement copy;
    std::vector<Expr> extents, from, at;
    Expr guard;
    const auto also = [&](const Expr& condition) { guard = guard.defined() ? guard && condition : condition; };
    for (size_t d = 0; d < ranges.size(); ++d) {
      const Range& range = ranges[d];
      const Expr index = index_variable(fresh(pass_.program, fmt::format("d{}", d)));
      copy.subscripts.push_back(index);
      copy.indices.push_back(make_index(index.as<hi::Variable>()->name, range.extent, false));
      extents.push_back(index_constant(range.extent));
      from.push_back(hi::simplify(index + index_constant(range.begin)));
      at.push_back(hi::simplify(guarded.read->args[d] - index_constant(range.begin)));
      const ir::Inside& inside = guarded.inside[d];
      if (inside.least && *inside.least > range.begin) also(from[d] >= index_constant(*inside.least));
      if (inside.greatest && *inside.greatest < range.begin + range.extent - 1) {
        also(from[d] <= index_constant(*inside.greatest));
      }
    }
    copy.value = read(pass_.program.tensor(guarded.read->name), from);
    if (copy.value.type() != op->type) copy.value = hi::Cast::make(op->type, copy.value);
    if (guard.defined()) {
      copy.value = hi::Call::make(op->type, hi::Call::if_then_else, {guard, copy.value, guarded.otherwise},
                                  hi::Call::PureIntrinsic);
    }
    const std::string name = add(std::move(copy), guarded.read->name + "_padded", extents);
    const Expr result = read(pass_.program.tensor(name), at);
    return turned(result.as<hi::Call>());
  }

  // --- operands that are computed ---

  /// The operand made once, in place of an expression over few of the indices, one of them reduced over.
  Expr computed(const Expr& expr) {
    if (in_branch_ || statement_.guard.defined() || expr.type().is_bool() || expr.as<hi::Call>() != nullptr) return {};
    const std::vector<Reference> reads = reads_of(expr);
    if (reads.empty()) return {};
    std::vector<std::string> order;
    for (const Reference& reference : reads) {
      if (reference.tensor == statement_.tensor) return {};
      for (const Expr& subscript : reference.subscripts) {
        const auto* variable = subscript.as<hi::Variable>();
        if (variable == nullptr) return {};
        if (std::count(order.begin(), order.end(), variable->name) == 0) order.push_back(variable->name);
      }
    }
    return is_worth_computing(expr, order) ? read_of_computed(expr, order) : Expr();
  }

  bool is_worth_computing(const Expr& expr, const std::vector<std::string>& order) const {
    for (const std::string& name : variables_of(expr)) {
      const bool known = pass_.program.find_scalar(name) != nullptr;
      if (!known && std::count(order.begin(), order.end(), name) == 0) return false;
    }
    int64_t points = 1;
    bool is_reduced = false;
    for (const std::string& name : order) {
      const ir::Index* index = find_index(name);
      if (index == nullptr) return false;
      points = saturating_product(points, extent_of(*index));
      is_reduced = is_reduced || index->is_reduction;
    }
    return is_reduced && instances_ / kUses >= points;
  }

  Expr read_of_computed(const Expr& expr, std::vector<std::string> order) {
    if (auto v = std::find(order.begin(), order.end(), vector_); v != order.end()) std::rotate(v, v + 1, order.end());
    ir::Statement operand;
    std::vector<Expr> extents;
    for (const std::string& name : order) {
      ir::Index index = *find_index(name);
      index.is_reduction = false;
      extents.push_back(index_constant(extent_of(index)));
      const int64_t begin = begin_of(index);
      operand.subscripts.push_back(begin == 0 ? index_variable(name) : index_variable(name) - index_constant(begin));
      operand.indices.push_back(std::move(index));
    }
    operand.value = expr;
    const std::vector<Expr> subscripts = operand.subscripts;
    return read(pass_.program.tensor(add(std::move(operand), statement_.tensor + "_operand", extents)), subscripts);
  }

  // --- both ---

  /// Completes a statement that sets a new temporary, and puts it where it belongs. The temporary's name.
  std::string add(ir::Statement statement, const std::string& wish, std::vector<Expr> extents) {
    const ir::Tensor& tensor = add_temporary(pass_.program, wish, statement.value.type(), std::move(extents));
    statement.tensor = tensor.name;
    statement.id = fresh(pass_.program, fmt::format("{}_{}", statement_.id, tensor.name));
    statement.accumulator = tensor.type;
    statement.range = statement_.range;
    const std::vector<Reference> reads = reads_of(statement.value);
    bool given =
        std::none_of(reads.begin(), reads.end(), [&](const Reference& r) { return pass_.written.count(r.tensor) > 0; });
    if (!given) pass_.written.insert(tensor.name);  // a copy of it is made behind it
    (given ? pass_.front : made_).push_back(std::move(statement));
    return tensor.name;
  }

  Pass& pass_;
  ir::Statement statement_;
  int64_t instances_ = 1;
  std::string vector_;  ///< empty: none
  bool in_branch_ = false;
  std::vector<ir::Statement> made_;
};

}  // namespace

ir::Program prepare_operands(ir::Program program, const PrepareOptions& options) {
  Pass pass{std::move(program), options, {}, {}, {}};
  std::vector<ir::Statement> statements;
  for (const ir::Statement& statement : std::vector<ir::Statement>(pass.program.statements)) {
    for (ir::Statement& made : Operands(pass, statement).run()) statements.push_back(std::move(made));
    pass.written.insert(statement.tensor);
    // A copy is good until its tensor changes.
    std::erase_if(pass.turned, [&](const auto& copy) { return copy.first.first == statement.tensor; });
  }
  statements.insert(statements.begin(), pass.front.begin(), pass.front.end());
  pass.program.statements = std::move(statements);
  return std::move(pass.program);
}

}  // namespace tc::cpu
