#include "tc/cpu/moves.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tc/cpu/lanes.h"
#include "tc/ir/halide_compat.h"

namespace tc::cpu {

using Halide::Expr;
using Halide::Internal::ForType;
using Halide::Internal::Stmt;
namespace hi = Halide::Internal;

namespace {

/// A run of memory shorter than this is not worth a call.
constexpr int64_t kMinRunBytes = 1024;
/// An argument so large does not stay in the cache.
constexpr int64_t kStreamedBytes = 32 << 20;
/// A line of the cache: a part of it is not written past the cache.
constexpr int64_t kLineBytes = 64;

/// to[to_index] = from[from_index] under a condition (undefined: none).
struct Move {
  const hi::Store* store = nullptr;
  const hi::Load* load = nullptr;
  Expr condition;
};

std::optional<Move> move_of(const Stmt& body) {
  Move move;
  Stmt inner = body;
  if (const auto* branch = body.as<hi::IfThenElse>()) {
    if (branch->else_case.defined()) return std::nullopt;
    move.condition = branch->condition;
    inner = branch->then_case;
  }
  move.store = inner.as<hi::Store>();
  if (move.store == nullptr) return std::nullopt;
  move.load = move.store->value.as<hi::Load>();
  if (move.load == nullptr || move.load->name == move.store->name) return std::nullopt;
  if (!hi::is_const_one(move.store->predicate) || !hi::is_const_one(move.load->predicate)) return std::nullopt;
  return move;
}

Expr at(const Expr& expr, const std::string& variable, const Expr& value) {
  return hi::simplify(hi::substitute(variable, value, expr));
}

/// True if the condition holds for all lanes where it does for the first and the last.
bool is_linear(const Expr& condition, const std::string& lane) {
  const auto* op = condition.as<hi::LE>();
  if (op == nullptr) return false;
  return lane_step(op->a, lane) == 1 && !hi::expr_uses_var(op->b, lane);
}

/// The address of an element of a buffer, as uint64.
Expr address_of(const std::string& buffer, const Expr& index, Halide::Type element) {
  Expr base = Halide::reinterpret(Halide::UInt(64), hi::Variable::make(Halide::Handle(), buffer));
  return base + Halide::cast(Halide::UInt(64), index) * hi::make_const(Halide::UInt(64), element.bytes());
}

/// Rows of vectors -> their columns, in log2(rows) steps that each exchange blocks off the diagonal.
class Transposition {
 public:
  Transposition(const std::string& name, std::vector<Expr> rows) : name_(name) {
    for (Expr& row : rows) rows_.push_back(bind(std::move(row)));
    const auto size = static_cast<int>(rows_.size());
    for (int distance = size / 2; distance >= 1; distance /= 2) exchange(size, distance);
  }

  const Expr& column(size_t number) const { return rows_[number]; }

  Stmt around(Stmt body) const {
    for (size_t i = lets_.size(); i-- > 0;) body = hi::LetStmt::make(lets_[i].first, lets_[i].second, body);
    return body;
  }

 private:
  void exchange(int size, int distance) {
    for (int r = 0; r < size; ++r) {
      if ((r & distance) != 0) continue;
      std::vector<int> upper;
      std::vector<int> lower;
      for (int c = 0; c < size; ++c) {
        bool right = (c & distance) != 0;
        upper.push_back(right ? size + c - distance : c);
        lower.push_back(right ? size + c : c + distance);
      }
      Expr& a = rows_[static_cast<size_t>(r)];
      Expr& b = rows_[static_cast<size_t>(r + distance)];
      Expr first = bind(hi::Shuffle::make({a, b}, upper));
      b = bind(hi::Shuffle::make({a, b}, lower));
      a = first;
    }
  }

  Expr bind(Expr value) {
    std::string name = name_ + "_t" + std::to_string(lets_.size());
    Expr variable = hi::Variable::make(value.type(), name);
    lets_.emplace_back(std::move(name), std::move(value));
    return variable;
  }

  std::string name_;
  std::vector<Expr> rows_;
  std::vector<std::pair<std::string, Expr>> lets_;
};

/// A square tile that is read along the rows and written along the lanes.
struct Square {
  const hi::For* rows = nullptr;
  const hi::For* lanes = nullptr;
  Move move;
  int size = 0;
  Expr condition;  ///< undefined, or under which all of the tile exists

  /// `size` elements from (row, lane) on.
  Expr run(const Expr& index, const Expr& row, int lane) const {
    return hi::Ramp::make(first(index, row, lane), hi::make_one(index.type()), size);
  }
  Expr first(const Expr& index, const Expr& row, int lane) const {
    return at(at(index, rows->name, row), lanes->name, lane);
  }
};

/// for (row, min, n) { vectorized (lane, 0, n) { to[..] = from[..] } }, read along the rows.
std::optional<Square> square_of(const hi::For* rows) {
  const auto* lanes = rows->body.as<hi::For>();
  if (lanes == nullptr || lanes->for_type != ForType::Vectorized || !hi::is_const_zero(lanes->min)) return {};
  const int64_t* count = ir::constant_int(lanes->extent);
  if (count == nullptr || *count < 4 || *count > 16 || (*count & (*count - 1)) != 0) return {};
  const std::optional<Move> move = move_of(lanes->body);
  if (!move || lane_step(move->store->index, lanes->name) != 1 || lane_step(move->load->index, rows->name) != 1) {
    return {};
  }
  if (lane_step(move->load->index, lanes->name) <= 1 || lane_step(move->store->index, rows->name) <= 1) return {};
  Square square{rows, lanes, *move, static_cast<int>(*count), {}};
  Expr full = hi::simplify(rows->extent == square.size);
  if (hi::is_const_zero(full)) return {};
  if (!hi::is_const_one(full)) square.condition = full;
  if (move->condition.defined()) {
    if (hi::expr_uses_var(move->condition, rows->name) || !is_linear(move->condition, lanes->name)) return {};
    Expr exists = at(move->condition, lanes->name, square.size - 1);
    square.condition = square.condition.defined() ? square.condition && exists : exists;
  }
  return square;
}

/// Stores of the columns past the cache.
std::vector<Stmt> streams_of(const Square& square, const Transposition& network) {
  const Halide::Type element = square.move.store->value.type();
  std::vector<Stmt> result;
  for (int row = 0; row < square.size; ++row) {
    Expr to =
        address_of(square.move.store->name, square.first(square.move.store->index, square.rows->min + row, 0), element);
    Expr call = hi::Call::make(Halide::Int(32), kStreamFunction, {to, network.column(static_cast<size_t>(row))},
                               hi::Call::Extern);
    result.push_back(hi::Evaluate::make(call));
  }
  return result;
}

/// Whether the tile's lines are whole lines of memory, or undefined if they cannot be for all rows.
Expr whole_lines(const Square& square) {
  const hi::Store* store = square.move.store;
  const Halide::Type element = store->value.type();
  const std::optional<int64_t> step = lane_step(store->index, square.rows->name);
  if (square.size * element.bytes() != kLineBytes || !step || *step % square.size != 0) return {};
  Expr to = address_of(store->name, square.first(store->index, square.rows->min, 0), element);
  return to % hi::make_const(to.type(), kLineBytes) == hi::make_zero(to.type());
}

/// The tile transposed in registers. With `streams`, past the cache where that can be.
Stmt transposed(const Square& square, bool streams) {
  const Move& move = square.move;
  Halide::Type type = move.load->type.with_lanes(square.size);
  std::vector<Expr> loads;
  for (int lane = 0; lane < square.size; ++lane) {
    loads.push_back(hi::Load::make(type, move.load->name, square.run(move.load->index, square.rows->min, lane),
                                   move.load->image, move.load->param, hi::const_true(square.size), {}));
  }
  Transposition network(square.rows->name, std::move(loads));
  std::vector<Stmt> stores;
  for (int row = 0; row < square.size; ++row) {
    stores.push_back(hi::Store::make(move.store->name, network.column(static_cast<size_t>(row)),
                                     square.run(move.store->index, square.rows->min + row, 0), move.store->param,
                                     hi::const_true(square.size), {}));
  }
  Stmt body = hi::Block::make(stores);
  if (streams) body = hi::IfThenElse::make(whole_lines(square), hi::Block::make(streams_of(square, network)), body);
  Stmt result = network.around(body);
  return square.condition.defined() ? hi::IfThenElse::make(square.condition, result, Stmt(square.rows)) : result;
}

/// So many elements from one place to another, as a statement that outer loops can see through.
struct Run {
  const hi::Store* store = nullptr;
  const hi::Load* load = nullptr;
  Expr to;
  Expr from;
  int64_t elements = 0;
};

/// The run that loops over consecutive elements are together.
std::optional<Run> run_of(const Stmt& stmt) {
  if (std::optional<Move> move = move_of(stmt)) {
    if (move->condition.defined()) return std::nullopt;
    return Run{move->store, move->load, move->store->index, move->load->index, 1};
  }
  const auto* loop = stmt.as<hi::For>();
  if (loop == nullptr || loop->for_type == ForType::Parallel) return std::nullopt;
  const int64_t* extent = ir::constant_int(loop->extent);
  std::optional<Run> run = run_of(loop->body);
  if (!run || extent == nullptr || *extent < 1) return std::nullopt;
  if (lane_step(run->to, loop->name) != run->elements || lane_step(run->from, loop->name) != run->elements) {
    return std::nullopt;
  }
  run->to = at(run->to, loop->name, loop->min);
  run->from = at(run->from, loop->name, loop->min);
  if (__builtin_mul_overflow(run->elements, *extent, &run->elements)) return std::nullopt;
  return run;
}

Stmt copied(const Stmt& stmt) {
  std::optional<Run> run = run_of(stmt);
  if (!run) return {};
  const Halide::Type type = run->load->type;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(run->elements, type.bytes(), &bytes) || bytes < kMinRunBytes) return {};
  std::vector<Expr> arguments{address_of(run->store->name, run->to, type), address_of(run->load->name, run->from, type),
                              hi::make_const(Halide::UInt(64), bytes)};
  Expr call = hi::Call::make(Halide::Int(32), kCopyFunction, arguments, hi::Call::Extern);
  return hi::Evaluate::make(call);
}

class Moves : public hi::IRMutator {
 public:
  explicit Moves(std::span<const KernelArgument> arguments) {
    for (const KernelArgument& argument : arguments) {
      int64_t bytes = 0;
      bool large = __builtin_mul_overflow(argument.elements, argument.type.bytes(), &bytes) || bytes >= kStreamedBytes;
      if (argument.is_buffer && large) streamed_.insert(argument.name);
    }
  }

  Stmt run(const Stmt& stmt) { return fenced(mutate(stmt), false); }

 private:
  using IRMutator::visit;
  Stmt visit(const hi::For* op) override {
    if (op->for_type == ForType::Parallel) {
      // Each thread fences its own stores.
      const bool outer = streams_;
      streams_ = false;
      Stmt body = fenced(mutate(op->body), outer);
      return ir::make_for(op->name, op->min, op->extent, op->for_type, body);
    }
    if (Stmt copy = copied(op); copy.defined()) return copy;
    if (op->for_type == ForType::Vectorized) return IRMutator::visit(op);
    const std::optional<Square> square = square_of(op);
    if (!square) return IRMutator::visit(op);
    const bool streams = streamed_.count(square->move.store->name) > 0 && whole_lines(*square).defined();
    streams_ = streams_ || streams;
    return transposed(*square, streams);
  }

  /// The statement, with a fence if it streams; afterwards `outer` tells of what is around.
  Stmt fenced(Stmt stmt, bool outer) {
    if (std::exchange(streams_, outer)) {
      Expr fence = hi::Call::make(Halide::Int(32), kStreamFenceFunction, {}, hi::Call::Extern);
      stmt = hi::Block::make(stmt, hi::Evaluate::make(fence));
    }
    return stmt;
  }

  std::set<std::string> streamed_;  ///< arguments too large for the cache
  bool streams_ = false;            ///< something here goes past the cache
};

}  // namespace

Stmt rewrite_moves(const Stmt& stmt, std::span<const KernelArgument> arguments) { return Moves(arguments).run(stmt); }

}  // namespace tc::cpu
