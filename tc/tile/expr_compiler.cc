#include "tc/tile/expr_compiler.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "tc/interp/functions.h"
#include "tc/interp/scalar.h"
#include "tc/support/check.h"
#include "tc/tile/shared_divisors.h"

namespace tc::tile {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

Range range_of_type(ScalarType type) {
  if (type == ScalarType::kBool) return {0, 1};
  const int bits = bits_of(type);
  if (is_float(type) || bits == 64) return {};
  if (is_signed_integer(type)) return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
  return {0, (int64_t{1} << bits) - 1};
}

Range from_wide(__int128 low, __int128 high) {
  if (low < std::numeric_limits<int64_t>::min() || high > std::numeric_limits<int64_t>::max()) return {};
  return {static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

Range united(const Range& a, const Range& b) {
  if (!a.known || !b.known) return {};
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

Range range_of(Op op, const Range& a, const Range& b) {
  if (!a.known || !b.known) return {};
  const __int128 al = a.low, ah = a.high, bl = b.low, bh = b.high;
  switch (op) {
    case Op::kAdd:
      return from_wide(al + bl, ah + bh);
    case Op::kSubtract:
      return from_wide(al - bh, ah - bl);
    case Op::kMultiply: {
      const std::array<__int128, 4> corners = {al * bl, al * bh, ah * bl, ah * bh};
      return from_wide(*std::min_element(corners.begin(), corners.end()),
                       *std::max_element(corners.begin(), corners.end()));
    }
    case Op::kMin:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Op::kMax:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    default:
      return {};
  }
}

bool is_commutative(Op op) {
  switch (op) {
    case Op::kAdd:
    case Op::kMultiply:
    case Op::kMin:
    case Op::kMax:
    case Op::kEqual:
    case Op::kAnd:
    case Op::kOr:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::vector<Instruction> ExprCompiler::close_scope(std::vector<Instruction> body) {
  std::vector<Instruction> result = std::move(scopes_.back().head);
  scopes_.pop_back();
  result.insert(result.end(), body.begin(), body.end());
  return result;
}

int ExprCompiler::push(Value value) {
  values_.push_back(value);
  return static_cast<int>(values_.size()) - 1;
}

int ExprCompiler::new_variable(ScalarType type, bool uniform, Range range) {
  return push({type, uniform, false, static_cast<int>(scopes_.size()) - 1, range});
}

int ExprCompiler::rebind(const std::string& name, int reg) {
  for (Scope& scope : scopes_) scope.memo.clear();
  const auto found = names_.find(name);
  const int hidden = found == names_.end() ? -1 : found->second;
  names_[name] = reg;
  return hidden;
}

void ExprCompiler::restore(const std::string& name, int reg) {
  for (Scope& scope : scopes_) scope.memo.clear();
  if (reg < 0) {
    names_.erase(name);
  } else {
    names_[name] = reg;
  }
}

void ExprCompiler::settle(int reg) {
  values_[reg].impure = false;
  values_[reg].depth = static_cast<int>(scopes_.size()) - 1;
}

int ExprCompiler::variable(const std::string& name) const {
  const auto found = names_.find(name);
  TC_CHECK(found != names_.end(), "'{}' means nothing here", name);
  return found->second;
}

int ExprCompiler::pure(Instruction instruction, ScalarType result, Range range) {
  Value value{result, true, false, 0, range};
  for (int operand : {instruction.a, instruction.b, instruction.c, instruction.d}) {
    if (operand < 0) continue;
    value.uniform &= values_[operand].uniform;
    value.impure |= values_[operand].impure;
    value.depth = std::max(value.depth, values_[operand].depth);
  }
  if (is_commutative(instruction.op) && instruction.a > instruction.b) std::swap(instruction.a, instruction.b);
  const Key key{instruction.op, instruction.type, instruction.from,      instruction.a,       instruction.b,
                instruction.c,  instruction.d,    instruction.immediate, instruction.function};
  Scope& home = scopes_[value.depth];
  if (!value.impure) {
    if (const auto found = home.known.find(key); found != home.known.end()) return found->second;
  }
  instruction.uniform = value.uniform;
  instruction.dst = push(value);
  if (value.impure) {
    emit(instruction);
  } else {
    home.head.push_back(instruction);
    home.known[key] = instruction.dst;
  }
  return instruction.dst;
}

int ExprCompiler::integer_constant(int64_t value) {
  const auto key = std::make_pair(ScalarType::kInt64, value);
  if (const auto found = integer_constants_.find(key); found != integer_constants_.end()) return found->second;
  const int reg = push({ScalarType::kInt64, true, false, 0, Range{value, value}});
  code_.constants.push_back({reg, Representation::kInteger, value, 0});
  return integer_constants_[key] = reg;
}

int ExprCompiler::real_constant(ScalarType type, double value) {
  const auto key = std::make_pair(type, std::bit_cast<int64_t>(value));
  if (const auto found = integer_constants_.find(key); found != integer_constants_.end()) return found->second;
  const int reg = push({type, true, false, 0, {}});
  code_.constants.push_back({reg, representation_of(type), 0, value});
  return integer_constants_[key] = reg;
}

int ExprCompiler::compile(const Expr& expr) {
  TC_CHECK(expr.defined(), "an undefined expression in a tile program");
  auto& memo = scopes_.back().memo;
  if (const auto found = memo.find(expr.get()); found != memo.end()) return found->second;
  const int reg = make(expr);
  if (!values_[reg].impure) scopes_.back().memo[expr.get()] = reg;
  return reg;
}

int ExprCompiler::make(const Expr& e) {
  switch (e->node_type) {
    case hi::IRNodeType::IntImm:
      return integer_constant(e.as<hi::IntImm>()->value);
    case hi::IRNodeType::UIntImm:
      return integer_constant(static_cast<int64_t>(e.as<hi::UIntImm>()->value));
    case hi::IRNodeType::FloatImm:
      return real_constant(ir::from_halide(e.type()), e.as<hi::FloatImm>()->value);
    case hi::IRNodeType::Variable:
      return variable(e.as<hi::Variable>()->name);
    case hi::IRNodeType::Cast: {
      const int a = compile(e.as<hi::Cast>()->value);
      Instruction named{.type = ir::from_halide(e.type()), .from = ir::from_halide(e.as<hi::Cast>()->value.type())};
      const bool of_float = is_float(named.type) || is_float(named.from);
      if (!of_float) {
        return named.type == ScalarType::kBool
                   ? negate(integer_arithmetic(Op::kEqual, named.type, a, integer_constant(0)))
                   : wrapped(named.type, a);
      }
      if (named.type == named.from) return a;
      named.op = Op::kConvert;
      named.a = a;
      return pure(named, named.type, range_of_type(named.type));
    }
    case hi::IRNodeType::Add:
      return arithmetic(Op::kAdd, Op::kAddFloat, e.as<hi::Add>()->a, e.as<hi::Add>()->b);
    case hi::IRNodeType::Sub:
      return arithmetic(Op::kSubtract, Op::kSubtractFloat, e.as<hi::Sub>()->a, e.as<hi::Sub>()->b);
    case hi::IRNodeType::Mul:
      return arithmetic(Op::kMultiply, Op::kMultiplyFloat, e.as<hi::Mul>()->a, e.as<hi::Mul>()->b);
    case hi::IRNodeType::Div:
      return arithmetic(Op::kDivide, Op::kDivideFloat, e.as<hi::Div>()->a, e.as<hi::Div>()->b);
    case hi::IRNodeType::Mod:
      TC_CHECK(!e.type().is_float(), "'%' of floats in a tile program");
      return arithmetic(Op::kModulo, Op::kModulo, e.as<hi::Mod>()->a, e.as<hi::Mod>()->b);
    case hi::IRNodeType::Min:
      return arithmetic(Op::kMin, Op::kMinFloat, e.as<hi::Min>()->a, e.as<hi::Min>()->b);
    case hi::IRNodeType::Max:
      return arithmetic(Op::kMax, Op::kMaxFloat, e.as<hi::Max>()->a, e.as<hi::Max>()->b);
    case hi::IRNodeType::EQ:
      return compare(Op::kEqual, Op::kEqualFloat, e.as<hi::EQ>()->a, e.as<hi::EQ>()->b);
    case hi::IRNodeType::NE:
      return negate(compare(Op::kEqual, Op::kEqualFloat, e.as<hi::NE>()->a, e.as<hi::NE>()->b));
    case hi::IRNodeType::LT:
      return compare(Op::kLess, Op::kLessFloat, e.as<hi::LT>()->a, e.as<hi::LT>()->b);
    case hi::IRNodeType::LE:
      return compare(Op::kLessEqual, Op::kLessEqualFloat, e.as<hi::LE>()->a, e.as<hi::LE>()->b);
    case hi::IRNodeType::GT:
      return compare(Op::kLess, Op::kLessFloat, e.as<hi::GT>()->b, e.as<hi::GT>()->a);
    case hi::IRNodeType::GE:
      return compare(Op::kLessEqual, Op::kLessEqualFloat, e.as<hi::GE>()->b, e.as<hi::GE>()->a);
    case hi::IRNodeType::And:
      return logic(e.as<hi::And>()->a, e.as<hi::And>()->b, true);
    case hi::IRNodeType::Or:
      return logic(e.as<hi::Or>()->a, e.as<hi::Or>()->b, false);
    case hi::IRNodeType::Not:
      return negate(compile(e.as<hi::Not>()->a));
    case hi::IRNodeType::Select: {
      const auto* choice = e.as<hi::Select>();
      const int condition = compile(choice->condition);
      const int if_true = compile(choice->true_value);
      return select(condition, if_true, compile(choice->false_value));
    }
    case hi::IRNodeType::Let: {
      const auto* let = e.as<hi::Let>();
      const int hidden = rebind(let->name, compile(let->value));
      const int result = compile(let->body);
      restore(let->name, hidden);
      return result;
    }
    case hi::IRNodeType::Call:
      return call(e.as<hi::Call>());
    default:
      TC_CHECK(false, "a tile program holds an expression of a kind that has no meaning there");
  }
}

int ExprCompiler::arithmetic(Op integer, Op real, const Expr& a, const Expr& b) {
  const ScalarType type = ir::from_halide(a.type());
  const int left = compile(a);
  const int right = compile(b);
  if (!is_float(type)) return integer_arithmetic(integer, type, left, right);
  return rounded(type, pure({.op = real, .type = type, .a = left, .b = right}, type, {}));
}

int ExprCompiler::integer_arithmetic(Op op, ScalarType type, int a, int b) {
  switch (op) {
    case Op::kDivide:
    case Op::kModulo:
      return divide(type, a, b, op == Op::kModulo);
    case Op::kMin:
    case Op::kMax:
      return extreme(type, a, b, op == Op::kMin);
    case Op::kEqual:
      return pure({.op = op, .a = a, .b = b}, ScalarType::kBool, {0, 1});
    default:
      break;
  }
  const Range& x = values_[a].range;
  const Range& y = values_[b].range;
  const Range result = range_of(op, x, y);
  if (result.known && result.low == result.high) return integer_constant(interp::wrap(type, result.low));
  const auto is = [](const Range& range, int64_t value) { return range.within(value, value); };
  if (is(y, 0) && op != Op::kMultiply) return a;
  if (is(x, 0) && op == Op::kAdd) return b;
  if (is(y, 1) && op == Op::kMultiply) return a;
  if (is(x, 1) && op == Op::kMultiply) return b;
  return wrapped(type, pure({.op = op, .a = a, .b = b}, type, result));
}

int ExprCompiler::divide(ScalarType type, int a, int b, bool modulo) {
  const Range& x = values_[a].range;
  const Range& y = values_[b].range;
  const bool by_constant = y.known && y.low == y.high && y.low > 0 && type != ScalarType::kUInt64;
  if (!by_constant) {
    return pure({.op = modulo ? Op::kModulo : Op::kDivide, .type = type, .a = a, .b = b}, type, range_of_type(type));
  }
  const int64_t divisor = y.low;
  if (modulo && x.within(0, divisor - 1)) return a;
  if (!modulo && divisor == 1) return a;
  Range result;
  if (modulo) {
    result = {0, divisor - 1};
  } else if (x.known) {
    result = {interp::floor_divide(ScalarType::kInt64, x.low, divisor),
              interp::floor_divide(ScalarType::kInt64, x.high, divisor)};
  } else {
    result = range_of_type(type);
  }
  if (result.known && result.low == result.high) return integer_constant(result.low);
  if (std::has_single_bit(static_cast<uint64_t>(divisor))) {
    const int64_t shift = std::countr_zero(static_cast<uint64_t>(divisor));
    if (modulo) return pure({.op = Op::kMask, .a = a, .immediate = divisor - 1}, type, result);
    return pure({.op = Op::kShiftRight, .a = a, .immediate = shift}, type, result);
  }
  if (x.within(0, UINT32_MAX) && divisor <= UINT32_MAX) {
    return pure({.op = modulo ? Op::kModuloSmall : Op::kDivideSmall, .a = a, .immediate = divisor}, type, result);
  }
  return pure({.op = modulo ? Op::kModulo : Op::kDivide, .type = type, .a = a, .b = b}, type, result);
}

int ExprCompiler::extreme(ScalarType type, int a, int b, bool smaller) {
  const Range result = range_of(smaller ? Op::kMin : Op::kMax, values_[a].range, values_[b].range);
  if (type == ScalarType::kUInt64)
    return smaller ? select(less(type, b, a, false), b, a) : select(less(type, a, b, false), b, a);
  return pure({.op = smaller ? Op::kMin : Op::kMax, .a = a, .b = b}, type, result);
}

int ExprCompiler::compare(Op integer, Op real, const Expr& a, const Expr& b) {
  const ScalarType type = ir::from_halide(a.type());
  const int left = compile(a);
  const int right = compile(b);
  if (is_float(type)) return pure({.op = real, .type = type, .a = left, .b = right}, ScalarType::kBool, {0, 1});
  if (integer == Op::kEqual) return integer_arithmetic(integer, type, left, right);
  return less(type, left, right, integer == Op::kLessEqual);
}

int ExprCompiler::less(ScalarType type, int a, int b, bool or_equal) {
  if (type == ScalarType::kUInt64) {
    if (or_equal) return negate(less(type, b, a, false));
    return pure({.op = Op::kLessUnsigned, .a = a, .b = b}, ScalarType::kBool, {0, 1});
  }
  const Range& x = values_[a].range;
  const Range& y = values_[b].range;
  if (x.known && y.known) {
    if (or_equal ? x.high <= y.low : x.high < y.low) return integer_constant(1);
    if (or_equal ? x.low > y.high : x.low >= y.high) return integer_constant(0);
  }
  return pure({.op = or_equal ? Op::kLessEqual : Op::kLess, .a = a, .b = b}, ScalarType::kBool, {0, 1});
}

int ExprCompiler::negate(int a) {
  if (values_[a].range.within(0, 0)) return integer_constant(1);
  if (values_[a].range.within(1, 1)) return integer_constant(0);
  return pure({.op = Op::kNot, .a = a}, ScalarType::kBool, {0, 1});
}

int ExprCompiler::logic(const Expr& a, const Expr& b, bool conjunction) {
  const int left = compile(a);
  int right = -1;
  const std::vector<Instruction> guarded = captured([&] { right = compile(b); });
  if (guarded.empty()) {
    if (values_[left].range.within(1, 1)) return conjunction ? right : left;
    if (values_[left].range.within(0, 0)) return conjunction ? left : right;
  } else {
    // The right side is evaluated where the left does not decide.
    const int needed = conjunction ? left : negate(left);
    branch(
        needed, [&] { out_.insert(out_.end(), guarded.begin(), guarded.end()); }, [] {}, false);
  }
  return pure({.op = conjunction ? Op::kAnd : Op::kOr, .a = left, .b = right}, ScalarType::kBool, {0, 1});
}

int ExprCompiler::wrapped(ScalarType type, int reg) {
  const Range limits = range_of_type(type);
  if (!limits.known || values_[reg].range.within(limits.low, limits.high)) return reg;
  return pure({.op = Op::kWrap, .type = type, .a = reg}, type, limits);
}

int ExprCompiler::rounded(ScalarType type, int reg) {
  if (type != ScalarType::kFloat16 && type != ScalarType::kBFloat16) return reg;
  return pure({.op = Op::kRound, .type = type, .a = reg}, type, {});
}

int ExprCompiler::select(int condition, int if_true, int if_false) {
  const Value& taken = values_[if_true];
  const ScalarType type = taken.type;
  const Range range = united(taken.range, values_[if_false].range);
  return pure({.op = Op::kSelect, .type = type, .a = condition, .b = if_true, .c = if_false}, type, range);
}

int ExprCompiler::choose(const Expr& condition, const Expr& if_true, const Expr& if_false) {
  const int decided = compile(condition);
  int yes = -1;
  int no = -1;
  const std::vector<Instruction> taken = captured([&] { yes = compile(if_true); });
  const std::vector<Instruction> other = captured([&] { no = compile(if_false); });
  if (!taken.empty() || !other.empty()) {
    branch(
        decided, [&] { out_.insert(out_.end(), taken.begin(), taken.end()); },
        [&] { out_.insert(out_.end(), other.begin(), other.end()); }, !other.empty());
  }
  return select(decided, yes, no);
}

int ExprCompiler::call(const hi::Call* op) {
  if (tensors_.count(op->name)) return load(op);
  if (op->is_intrinsic(hi::Call::if_then_else)) return choose(op->args.at(0), op->args.at(1), op->args.at(2));
  if (op->name == kQuotient || op->name == kNarrowQuotient)
    return arithmetic(Op::kDivide, Op::kDivideFloat, op->args.at(0), op->args.at(1));
  const ScalarType type = ir::from_halide(op->type);
  if (op->name == "select") {
    const int condition = compile(op->args.at(0));
    const int if_true = compile(op->args.at(1));
    return select(condition, if_true, compile(op->args.at(2)));
  }
  const bool clamps = op->name == "clamp";
  if (op->name == "min" || op->name == "max" || clamps || op->name == "relu") {
    int result = compile(op->args.at(0));
    const auto fold = [&](bool smaller, int other) {
      result =
          is_float(type)
              ? pure({.op = smaller ? Op::kMinFloat : Op::kMaxFloat, .type = type, .a = result, .b = other}, type, {})
              : extreme(type, result, other, smaller);
    };
    if (op->name == "relu") fold(false, is_float(type) ? real_constant(type, 0) : integer_constant(0));
    for (size_t i = 1; i < op->args.size(); ++i) {
      fold(clamps ? i == 2 : op->name == "min", compile(op->args[i]));
    }
    return result;
  }
  return function(op);
}

int ExprCompiler::function(const hi::Call* op) {
  const ScalarType type = ir::from_halide(op->type);
  std::array<int, 4> operands = {-1, -1, -1, -1};
  TC_CHECK(!op->args.empty() && op->args.size() <= 4, "'{}' is called with {} arguments", op->name, op->args.size());
  for (size_t i = 0; i < op->args.size(); ++i) operands[i] = compile(op->args[i]);
  Instruction made{.type = type,
                   .from = ir::from_halide(op->args.back().type()),
                   .a = operands[0],
                   .b = operands[1],
                   .c = operands[2],
                   .d = operands[3]};
  if (const interp::MixedFunction* mixed = interp::find_mixed_function(op->name)) {
    made.op = Op::kMixedFunction;
    made.function = mixed;
    if (mixed->integer_first) std::swap(made.a, made.b);
    return rounded(type, pure(made, type, {}));
  }
  const bool of_float = is_float(made.from);
  if (const interp::RealPredicate* predicate = of_float ? interp::find_real_predicate(op->name) : nullptr) {
    made.op = Op::kRealPredicate;
    made.function = predicate;
    return wrapped(type, pure(made, type, {}));
  }
  const std::string name = op->name == kExp2ForFloat16 ? "exp2" : op->name;
  if (const interp::RealFunction* real = of_float ? interp::find_real_function(name) : nullptr) {
    made.op = Op::kRealFunction;
    made.function = real;
    return pure(made, type, {});
  }
  made.op = Op::kIntegerFunction;
  made.from = ir::from_halide(op->args.front().type());
  made.function = interp::find_integer_function(op->name);
  TC_CHECK(made.function, "'{}' is neither a tensor of the kernel nor an intrinsic", op->name);
  if (op->name == "tc.floor_div") return divide(type, operands[0], operands[1], false);
  if (op->name == "tc.floor_mod") return divide(type, operands[0], operands[1], true);
  return pure(made, type, range_of_type(type));
}

int ExprCompiler::load(const hi::Call* op) {
  const int where = access(op->name, op->args);
  const ScalarType type = code_.tensors[code_.accesses[where].tensor].type;
  const int result =
      push({type, false, true, static_cast<int>(scopes_.size()) - 1, is_float(type) ? Range{} : range_of_type(type)});
  emit({.op = Op::kLoad, .type = type, .dst = result, .a = where});
  return result;
}

int ExprCompiler::offset_in_mode(int coordinate, const Layout& mode) {
  const ScalarType type = ScalarType::kInt64;
  const std::vector<int64_t> extents = flatten(mode.shape());
  const std::vector<int64_t> strides = flatten(mode.stride());
  int result = integer_constant(0);
  int64_t counted = 1;
  for (size_t i = 0; i < extents.size(); ++i) {
    int digit = divide(type, coordinate, integer_constant(counted), false);
    if (i + 1 < extents.size()) digit = divide(type, digit, integer_constant(extents[i]), true);
    const int term = integer_arithmetic(Op::kMultiply, type, digit, integer_constant(strides[i]));
    result = integer_arithmetic(Op::kAdd, type, result, term);
    counted *= extents[i];
  }
  return result;
}

int ExprCompiler::access(const std::string& name, const std::vector<Expr>& subscripts, int dimension, int elements) {
  const auto found = tensors_.find(name);
  TC_CHECK(found != tensors_.end(), "'{}' is no tensor of the kernel", name);
  const Tensor tensor = code_.tensors[found->second].tensor;
  TC_CHECK(static_cast<int>(subscripts.size()) == tensor.rank(), "'{}' has {} dimensions but {} subscripts", name,
           tensor.rank(), subscripts.size());
  Access made;
  made.tensor = found->second;
  made.site = site_;
  made.address = integer_constant(0);
  for (int i = 0; i < tensor.rank(); ++i) {
    const int coordinate = compile(subscripts[i]);
    made.coordinates.push_back(coordinate);
    const int64_t extent = product(tensor.layout.shape()[i]) - (i == dimension ? elements - 1 : 0);
    if (!values_[coordinate].range.within(0, extent - 1)) {
      const int inside =
          pure({.op = Op::kInRange, .a = coordinate, .immediate = extent}, ScalarType::kBool, Range{0, 1});
      made.in_bounds = made.in_bounds < 0
                           ? inside
                           : pure({.op = Op::kAnd, .a = made.in_bounds, .b = inside}, ScalarType::kBool, Range{0, 1});
    }
    made.address =
        integer_arithmetic(Op::kAdd, ScalarType::kInt64, made.address, offset_in_mode(coordinate, tensor.layout[i]));
  }
  if (tensor.swizzle && tensor.swizzle->bits > 0) {
    const Swizzle& s = *tensor.swizzle;
    made.address = pure({.op = Op::kSwizzle, .a = made.address, .immediate = s.bits | s.base << 8 | s.shift << 16},
                        ScalarType::kInt64, {});
  }
  made.uniform = values_[made.address].uniform;
  code_.accesses.push_back(std::move(made));
  return static_cast<int>(code_.accesses.size()) - 1;
}

}  // namespace tc::tile
