#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "tc/interp/code.h"
#include "tc/interp/numbers.h"
#include "tc/support/check.h"

/// Evaluation of a statement's nodes for one instance, in either kind of numbers.
namespace tc::interp {

/// A tensor or scalar during a run; one of the vectors is used, by the type.
template <class Numbers>
struct Storage {
  ScalarType type = ScalarType::kFloat32;
  std::vector<typename Numbers::Float> floats;
  std::vector<typename Numbers::Integer> integers;
};

/// A subscript that left its tensor; caught in the run, which knows the names.
struct OutOfBounds {
  const Access* access;
  size_t dimension;
  int64_t subscript;
};

template <class Numbers>
class Evaluator {
 public:
  using Float = typename Numbers::Float;
  using Integer = typename Numbers::Integer;

  Evaluator(const Code& code, const std::vector<Storage<Numbers>>& tensors,
            const std::vector<Storage<Numbers>>& scalars, const AccuracyTable& accuracy)
      : code_(code),
        tensors_(tensors),
        scalars_(scalars),
        accuracy_(accuracy),
        indices_(code.loops.size()),
        rows_(code.accesses.size() + 1),
        local_floats_(code.locals),
        local_integers_(code.locals),
        memo_floats_(code.memos),
        memo_integers_(code.memos),
        memo_instances_(code.memos, 0) {}

  /// The index values of the current instance; call next_instance() after changing one.
  std::vector<int64_t>& indices() { return indices_; }
  void next_instance() { ++instance_; }

  /// Begins a run of the innermost loop over [begin, end): until end_row() no other index changes.
  void begin_row(int64_t begin, int64_t end) {
    row_begin_ = begin;
    row_last_ = end - 1;
    row_is_open_ = true;
  }
  void end_row() {
    ++row_;
    row_is_open_ = false;
  }

  Float real(int n) {
    const Node& node = code_.nodes[n];
    if (node.memo < 0) return compute_real(node);
    if (memo_instances_[node.memo] != instance_) {
      memo_floats_[node.memo] = compute_real(node);
      memo_instances_[node.memo] = instance_;
    }
    return memo_floats_[node.memo];
  }

  Integer integer(int n) {
    const Node& node = code_.nodes[n];
    if (node.memo < 0) return compute_integer(node);
    if (memo_instances_[node.memo] != instance_) {
      memo_integers_[node.memo] = compute_integer(node);
      memo_instances_[node.memo] = instance_;
    }
    return memo_integers_[node.memo];
  }

  /// The offset of the target in elements. -1 if it hangs on a rounding error. Throws OutOfBounds.
  int64_t target_offset() { return offset_in_row(code_.target, rows_.back()); }

 private:
  /// What an access is along the innermost loop, if it is affine there and stays inside its tensor.
  struct Row {
    int64_t row = -1;  ///< for which this holds
    bool inside = false;
    int64_t first = 0;  ///< the offset at the beginning of the row
    int64_t step = 0;
  };

  int64_t offset_in_row(const Access& access, Row& known) {
    if (known.row != row_) {
      if (!row_is_open_) return offset(access);
      known = row_of(access);
    }
    return known.inside ? known.first + known.step * (indices_.back() - row_begin_) : offset(access);
  }

  Row row_of(const Access& access) const {
    Row result{row_};
    const int innermost = static_cast<int>(indices_.size()) - 1;
    for (const Subscript& s : access.subscripts) {
      if (s.node >= 0) return result;
      int64_t first = s.constant;
      int64_t factor = 0;
      for (const Subscript::Term& term : s.terms) {
        const bool varies = term.slot == innermost;
        first += term.factor * (varies ? row_begin_ : indices_[term.slot]);
        if (varies) factor += term.factor;
      }
      const int64_t last = first + factor * (row_last_ - row_begin_);
      if (std::min(first, last) < 0 || std::max(first, last) >= s.extent) return result;
      result.first += first * s.stride;
      result.step += factor * s.stride;
    }
    result.inside = true;
    return result;
  }

  /// The offset of an access in elements. -1 if it hangs on a rounding error, or is out of bounds in a branch that
  /// may not be taken. Throws OutOfBounds.
  int64_t offset(const Access& access) {
    int64_t result = 0;
    for (size_t d = 0; d < access.subscripts.size(); ++d) {
      const Subscript& s = access.subscripts[d];
      int64_t subscript = s.constant;
      for (const Subscript::Term& term : s.terms) subscript += term.factor * indices_[term.slot];
      if (s.node >= 0) {
        const Integer computed = integer(s.node);
        if (!Numbers::sure(computed)) return -1;
        subscript = Numbers::value(computed);
      }
      if (subscript < 0 || subscript >= s.extent) {
        if (speculating_ > 0) return -1;
        throw OutOfBounds{&access, d, subscript};
      }
      result += subscript * s.stride;
    }
    return result;
  }

  Float compute_real(const Node& n) {
    switch (n.op) {
      case Op::kConstant:
        return Numbers::exact(n.real);
      case Op::kLocal:
        return local_floats_[n.payload];
      case Op::kScalar:
        return scalars_[n.payload].floats[0];
      case Op::kRead:
        return read_real(n.payload);
      case Op::kConvert:
        return convert_to_real(n);
      case Op::kAdd:
        return real_pair(n, Numbers::add);
      case Op::kSubtract:
        return real_pair(n, Numbers::subtract);
      case Op::kMultiply:
        return real_pair(n, Numbers::multiply);
      case Op::kDivide:
        return real_pair(n, Numbers::divide);
      case Op::kMin:
        return Numbers::min(real(n.a), real(n.b));
      case Op::kMax:
        return Numbers::max(real(n.a), real(n.b));
      case Op::kSelect:
        return select(n, [this](int operand) { return real(operand); });
      case Op::kLet:
        bind(n);
        return real(n.b);
      case Op::kRealFunction:
        return real_function(n);
      case Op::kMixedFunction:
        return Numbers::call(*n.mixed_function, n.type, real(n.a), integer(n.b), accuracy_);
      default:
        TC_CHECK(false, "operation {} does not give a float", static_cast<int>(n.op));
    }
  }

  Integer compute_integer(const Node& n) {
    switch (n.op) {
      case Op::kConstant:
        return Numbers::exact(n.integer);
      case Op::kIndex:
        return Numbers::exact(indices_[n.payload]);
      case Op::kLocal:
        return local_integers_[n.payload];
      case Op::kScalar:
        return scalars_[n.payload].integers[0];
      case Op::kRead:
        return read_integer(n.payload);
      case Op::kConvert:
        return convert_to_integer(n);
      case Op::kAdd:
        return integer_pair(n, add);
      case Op::kSubtract:
        return integer_pair(n, subtract);
      case Op::kMultiply:
        return integer_pair(n, multiply);
      case Op::kDivide:
        return integer_pair(n, floor_divide);
      case Op::kModulo:
        return integer_pair(n, floor_modulo);
      case Op::kMin:
        return integer_pair(n, [](ScalarType t, int64_t a, int64_t b) { return less(t, b, a) ? b : a; });
      case Op::kMax:
        return integer_pair(n, [](ScalarType t, int64_t a, int64_t b) { return less(t, a, b) ? b : a; });
      case Op::kEqual:
        return compare(n, Numbers::equal, [](ScalarType, int64_t a, int64_t b) { return a == b; });
      case Op::kNotEqual:
        return negated(compare(n, Numbers::equal, [](ScalarType, int64_t a, int64_t b) { return a == b; }));
      case Op::kLess:
        return compare(n, Numbers::less, less);
      case Op::kLessEqual:
        return compare(n, Numbers::less_equal, [](ScalarType t, int64_t a, int64_t b) { return !less(t, b, a); });
      case Op::kAnd:
        return logic(n, false);
      case Op::kOr:
        return logic(n, true);
      case Op::kNot:
        return negated(integer(n.a));
      case Op::kSelect:
        return select(n, [this](int operand) { return integer(operand); });
      case Op::kLet:
        bind(n);
        return integer(n.b);
      case Op::kRealPredicate:
        return Numbers::call(*n.predicate, real(n.a));
      case Op::kIntegerFunction:
        return integer_function(n);
      default:
        TC_CHECK(false, "operation {} does not give an integer", static_cast<int>(n.op));
    }
  }

  template <typename Operation>
  Float real_pair(const Node& n, Operation operation) {
    const Float a = real(n.a);
    return operation(n.type, a, real(n.b));
  }

  template <typename Operation>
  Integer integer_pair(const Node& n, Operation operation) {
    const Integer a = integer(n.a);
    return Numbers::map([&](int64_t x, int64_t y) { return operation(n.type, x, y); }, a, integer(n.b));
  }

  template <typename OfFloats, typename OfIntegers>
  Integer compare(const Node& n, OfFloats of_floats, OfIntegers of_integers) {
    const Node& operand = code_.nodes[n.a];
    if (operand.is_float) {
      const Float a = real(n.a);
      return of_floats(a, real(n.b));
    }
    const Integer a = integer(n.a);
    return Numbers::map([&](int64_t x, int64_t y) { return int64_t{of_integers(operand.type, x, y)}; }, a,
                        integer(n.b));
  }

  static Integer negated(Integer a) {
    return Numbers::map([](int64_t x) { return int64_t{x == 0}; }, a);
  }

  // a && b (a || b): `decisive` is the value of a with which b does not matter.
  Integer logic(const Node& n, bool decisive) {
    const Integer a = integer(n.a);
    if (Numbers::sure(a)) return (Numbers::value(a) != 0) == decisive ? a : integer(n.b);
    ++speculating_;
    const Integer b = integer(n.b);
    --speculating_;
    if (Numbers::sure(b) && (Numbers::value(b) != 0) == decisive) return b;
    return unsure(decisive ? Numbers::value(a) | Numbers::value(b) : Numbers::value(a) & Numbers::value(b));
  }

  template <typename Evaluate>
  auto select(const Node& n, Evaluate evaluate) {
    const Integer condition = integer(n.a);
    const bool holds = Numbers::value(condition) != 0;
    if (Numbers::sure(condition)) return evaluate(holds ? n.b : n.c);
    if constexpr (Numbers::kBounded) {
      // Rounding decides: the value is either. A read that leaves its tensor only in the branch not taken is harmless.
      ++speculating_;
      const auto taken = evaluate(holds ? n.b : n.c);
      const auto other = evaluate(holds ? n.c : n.b);
      --speculating_;
      return bounded::either(taken, other);
    } else {
      return evaluate(holds ? n.b : n.c);
    }
  }

  void bind(const Node& n) {
    if (code_.nodes[n.a].is_float) {
      local_floats_[n.payload] = real(n.a);
    } else {
      local_integers_[n.payload] = integer(n.a);
    }
  }

  Float convert_to_real(const Node& n) {
    const Node& operand = code_.nodes[n.a];
    return operand.is_float ? Numbers::convert(operand.type, n.type, real(n.a))
                            : Numbers::from_integer(operand.type, n.type, integer(n.a));
  }

  Integer convert_to_integer(const Node& n) {
    if (code_.nodes[n.a].is_float) return Numbers::to_integer(n.type, real(n.a));
    return Numbers::map([&](int64_t x) { return wrap(n.type, x); }, integer(n.a));
  }

  Float real_function(const Node& n) {
    std::array<Float, 4> arguments{};
    const std::vector<int>& operands = code_.lists[n.payload];
    for (size_t i = 0; i < operands.size(); ++i) arguments[i] = real(operands[i]);
    return Numbers::call(*n.real_function, n.type, arguments.data(), accuracy_);
  }

  Integer integer_function(const Node& n) {
    std::array<int64_t, 2> arguments{};
    const std::vector<int>& operands = code_.lists[n.payload];
    bool all_sure = true;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Integer operand = integer(operands[i]);
      all_sure = all_sure && Numbers::sure(operand);
      arguments[i] = Numbers::value(operand);
    }
    const int64_t result = n.integer_function->compute(code_.nodes[operands[0]].type, arguments.data());
    return all_sure ? Numbers::exact(result) : unsure(result);
  }

  Float read_real(int which) {
    const Access& access = code_.accesses[which];
    const int64_t at = offset_in_row(access, rows_[which]);
    if constexpr (Numbers::kBounded) {
      if (at < 0) return bounded::unknown();
    }
    return tensors_[access.tensor].floats[at];
  }

  Integer read_integer(int which) {
    const Access& access = code_.accesses[which];
    const int64_t at = offset_in_row(access, rows_[which]);
    if (at < 0) return unsure(0);
    return tensors_[access.tensor].integers[at];
  }

  static Integer unsure(int64_t value) {
    if constexpr (Numbers::kBounded) {
      return Sure{value, false};
    } else {
      return value;
    }
  }

  const Code& code_;
  const std::vector<Storage<Numbers>>& tensors_;
  const std::vector<Storage<Numbers>>& scalars_;
  const AccuracyTable& accuracy_;
  std::vector<int64_t> indices_;
  std::vector<Row> rows_;  // of the accesses, then of the target
  std::vector<Float> local_floats_;
  std::vector<Integer> local_integers_;
  std::vector<Float> memo_floats_;
  std::vector<Integer> memo_integers_;
  std::vector<int64_t> memo_instances_;
  int64_t instance_ = 1;
  int64_t row_ = 0;
  int64_t row_begin_ = 0;
  int64_t row_last_ = 0;
  bool row_is_open_ = false;
  int speculating_ = 0;  // inside branches of a select whose condition is not sure
};

}  // namespace tc::interp
