#pragma once

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tc/ir/expr_text.h"
#include "tc/ir/program.h"
#include "tc/tile/bytecode.h"

namespace tc::tile {

/// The integers that a register can hold, if they are known.
struct Range {
  Range() = default;
  Range(int64_t lowest, int64_t highest) : known(true), low(lowest), high(highest) {}
  bool known = false;
  int64_t low = 0;
  int64_t high = 0;

  bool within(int64_t lowest, int64_t highest) const { return known && low >= lowest && high <= highest; }
};

/// Turns expressions into instructions. A scope is opened for the kernel and for each loop body; a value that reads no
/// memory is computed once, at the head of the innermost scope that it depends on; any other where it stands.
class ExprCompiler {
 public:
  explicit ExprCompiler(Code& code) : code_(code) {}

  // Scopes.
  void open_scope() { scopes_.emplace_back(); }
  /// What the scope computes at its head, followed by the body.
  std::vector<Instruction> close_scope(std::vector<Instruction> body);
  /// Runs `fill`; what it emits comes back instead of going into the current code.
  template <typename Fill>
  std::vector<Instruction> captured(Fill fill) {
    std::vector<Instruction> buffer;
    buffer.swap(out_);
    fill();
    buffer.swap(out_);
    return buffer;
  }
  void emit(const Instruction& instruction) { out_.push_back(instruction); }
  template <typename Then, typename Else>
  void branch(int condition, Then then_case, Else else_case, bool has_else) {
    const std::vector<Instruction> taken = captured(then_case);
    const std::vector<Instruction> other = captured(else_case);
    const auto skip = static_cast<int64_t>(taken.size()) + 1;
    emit({.op = Op::kIf, .uniform = uniform(condition), .a = condition, .immediate = skip});
    out_.insert(out_.end(), taken.begin(), taken.end());
    if (has_else) {
      emit({.op = Op::kElse, .a = condition, .immediate = static_cast<int64_t>(other.size()) + 1});
      out_.insert(out_.end(), other.begin(), other.end());
    }
    emit({.op = Op::kLeave});
  }

  // Names.
  int new_variable(ScalarType type, bool uniform, Range range);
  void bind(const std::string& name, int reg) { names_[name] = reg; }
  /// Gives a name a new meaning; returns the old one (-1: none), for restore().
  int rebind(const std::string& name, int reg);
  void restore(const std::string& name, int reg);
  void bind_tensor(const std::string& name, int tensor) { tensors_[name] = tensor; }
  int tensor(const std::string& name) const { return tensors_.at(name); }

  // Values.
  int compile(const Halide::Expr& expr);
  int integer_constant(int64_t value);
  /// An access of `elements` along `dimension`.
  int access(const std::string& tensor, const std::vector<Halide::Expr>& subscripts, int dimension = -1,
             int elements = 1);
  bool uniform(int reg) const { return values_[reg].uniform; }
  bool impure(int reg) const { return values_[reg].impure; }
  ScalarType type(int reg) const { return values_[reg].type; }
  const Range& range(int reg) const { return values_[reg].range; }
  /// From here on the value belongs to the innermost scope as if it were a variable of it.
  void settle(int reg);

  void set_site(int site) { site_ = site; }
  int site() const { return site_; }
  int registers() const { return static_cast<int>(values_.size()); }

 private:
  struct Value {
    ScalarType type = ScalarType::kInt64;
    bool uniform = false;
    bool impure = false;  ///< computed where it stands
    int depth = 0;        ///< the scope at whose head it is known
    Range range;
  };
  using Key = std::tuple<Op, ScalarType, ScalarType, int, int, int, int, int64_t, const void*>;
  struct Scope {
    std::vector<Instruction> head;
    std::map<Key, int> known;
    std::map<const Halide::Internal::BaseExprNode*, int> memo;
  };

  int push(Value value);
  int make(const Halide::Expr& expr);
  int pure(Instruction instruction, ScalarType result, Range range);
  int real_constant(ScalarType type, double value);
  int variable(const std::string& name) const;

  int arithmetic(Op integer, Op real, const Halide::Expr& a, const Halide::Expr& b);
  int integer_arithmetic(Op op, ScalarType type, int a, int b);
  int divide(ScalarType type, int a, int b, bool modulo);
  int extreme(ScalarType type, int a, int b, bool smaller);
  int compare(Op integer, Op real, const Halide::Expr& a, const Halide::Expr& b);
  int less(ScalarType type, int a, int b, bool or_equal);
  int negate(int a);
  int logic(const Halide::Expr& a, const Halide::Expr& b, bool conjunction);
  int wrapped(ScalarType type, int reg);
  int rounded(ScalarType type, int reg);
  int select(int condition, int if_true, int if_false);
  int choose(const Halide::Expr& condition, const Halide::Expr& if_true, const Halide::Expr& if_false);
  int call(const Halide::Internal::Call* call);
  int function(const Halide::Internal::Call* call);
  int load(const Halide::Internal::Call* call);

  int offset_in_mode(int coordinate, const Layout& mode);

  Code& code_;
  std::vector<Scope> scopes_;
  std::vector<Instruction> out_;
  std::vector<Value> values_;
  std::map<std::string, int> names_;
  std::map<std::string, int> tensors_;
  std::map<std::pair<ScalarType, int64_t>, int> integer_constants_;
  int site_ = -1;
};

}  // namespace tc::tile
