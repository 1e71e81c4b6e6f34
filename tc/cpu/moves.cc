#include "tc/cpu/moves.h"

#include <optional>
#include <string>
#include <vector>

#include "tc/cpu/lanes.h"

namespace tc::cpu {

using Halide::Expr;
using Halide::Internal::ForType;
using Halide::Internal::Stmt;
namespace hi = Halide::Internal;

namespace {

/// A run of memory shorter than this is not worth a call.
constexpr int64_t kMinRunBytes = 1024;

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

/// for (row, min, n) { vectorized (lane, 0, n) { to[..] = from[..] } }, read along the rows; undefined if it is not
/// that.
Stmt transposed(const hi::For* rows) {
  const auto* lanes = rows->body.as<hi::For>();
  if (lanes == nullptr || lanes->for_type != ForType::Vectorized || !hi::is_const_zero(lanes->min)) return {};
  const int64_t* count = hi::as_const_int(lanes->extent);
  if (count == nullptr || *count < 4 || *count > 16 || (*count & (*count - 1)) != 0) return {};
  const std::optional<Move> move = move_of(lanes->body);
  if (!move || lane_step(move->store->index, lanes->name) != 1 || lane_step(move->load->index, rows->name) != 1) {
    return {};
  }
  if (lane_step(move->load->index, lanes->name) <= 1 || lane_step(move->store->index, rows->name) <= 1) return {};
  const auto size = static_cast<int>(*count);
  std::vector<Expr> conditions;
  Expr full = hi::simplify(rows->extent == size);
  if (hi::is_const_zero(full)) return {};
  if (!hi::is_const_one(full)) conditions.push_back(full);
  if (move->condition.defined()) {
    if (hi::expr_uses_var(move->condition, rows->name) || !is_linear(move->condition, lanes->name)) return {};
    conditions.push_back(at(move->condition, lanes->name, size - 1));
  }

  Halide::Type type = move->load->type.with_lanes(size);
  auto run = [&](const Expr& index, const Expr& row, int lane) {
    Expr first = at(at(index, rows->name, row), lanes->name, lane);
    return hi::Ramp::make(first, hi::make_one(first.type()), size);
  };
  std::vector<Expr> loads;
  for (int lane = 0; lane < size; ++lane) {
    loads.push_back(hi::Load::make(type, move->load->name, run(move->load->index, rows->min, lane), move->load->image,
                                   move->load->param, hi::const_true(size), {}));
  }
  Transposition network(rows->name, std::move(loads));
  std::vector<Stmt> stores;
  for (int row = 0; row < size; ++row) {
    stores.push_back(hi::Store::make(move->store->name, network.column(static_cast<size_t>(row)),
                                     run(move->store->index, rows->min + row, 0), move->store->param,
                                     hi::const_true(size), {}));
  }
  Stmt result = network.around(hi::Block::make(stores));
  if (conditions.empty()) return result;
  Expr condition = conditions.front();
  for (size_t i = 1; i < conditions.size(); ++i) condition = condition && conditions[i];
  return hi::IfThenElse::make(condition, result, Stmt(rows));
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
  const int64_t* extent = hi::as_const_int(loop->extent);
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
  auto address = [&](const std::string& name, const Expr& index) {
    Expr base = Halide::reinterpret(Halide::UInt(64), hi::Variable::make(Halide::Handle(), name));
    return base + Halide::cast(Halide::UInt(64), index) * hi::make_const(Halide::UInt(64), type.bytes());
  };
  std::vector<Expr> arguments{address(run->store->name, run->to), address(run->load->name, run->from),
                              hi::make_const(Halide::UInt(64), bytes)};
  Expr call = hi::Call::make(Halide::Int(32), kCopyFunction, arguments, hi::Call::Extern);
  return hi::Evaluate::make(call);
}

class Moves : public hi::IRMutator {
  using IRMutator::visit;
  Stmt visit(const hi::For* op) override {
    if (op->for_type != ForType::Parallel) {
      if (Stmt copy = copied(op); copy.defined()) return copy;
      if (op->for_type != ForType::Vectorized) {
        if (Stmt result = transposed(op); result.defined()) return result;
      }
    }
    return IRMutator::visit(op);
  }
};

}  // namespace

Stmt rewrite_moves(const Stmt& stmt) { return Moves().mutate(stmt); }

}  // namespace tc::cpu
