#include "tc/interp/code.h"

#include <map>
#include <optional>
#include <utility>

#include "tc/ir/float8_products.h"
#include "tc/ir/halide_compat.h"
#include "tc/support/check.h"

namespace tc::interp {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

// constant + sum of factor * slot.
struct Affine {
  int64_t constant = 0;
  std::map<int, int64_t> factors;

  Affine scaled(int64_t by) const {
    Affine result{constant * by, {}};
    for (auto [slot, factor] : factors) result.factors[slot] = factor * by;
    return result;
  }
  Affine plus(const Affine& other) const {
    Affine result = *this;
    result.constant += other.constant;
    for (auto [slot, factor] : other.factors) result.factors[slot] += factor;
    return result;
  }
};

class Compiler {
 public:
  Compiler(const ir::Program& program, const ir::Statement& statement) : program_(program), statement_(statement) {}

  Code compile() {
    for (const ir::Index& index : statement_.indices) {
      const Loop loop{node(index.begin), node(index.end)};  // before its own name means anything
      code_.loops.push_back(loop);
      if (!index.is_reduction) ++code_.map_loops;
      TC_CHECK(!index.is_reduction || statement_.reduces(), "'{}' is reduced over by '='", index.name);
      slots_[index.name] = static_cast<int>(code_.loops.size()) - 1;
    }
    code_.target = access(statement_.tensor, statement_.subscripts);
    for (const Expr& subscript : statement_.subscripts) {
      TC_CHECK(!uses_reduction_index(subscript), "statement {} writes through a reduction index", statement_.id);
    }
    if (statement_.guard.defined()) {
      code_.guard = node(statement_.guard);
      code_.map_guard = map_guard(statement_.guard);
    }
    code_.value = node(statement_.value);
    code_.sums_float8_products = ir::sums_float8_products(program_, statement_);
    find_shared_nodes();
    return std::move(code_);
  }

 private:
  int push(Node made) {
    made.is_float = tc::is_float(made.type);
    code_.nodes.push_back(made);
    return static_cast<int>(code_.nodes.size()) - 1;
  }

  // Nodes of shared expressions are shared, as long as the same lets are in scope.
  int node(const Expr& e) {
    TC_CHECK(e.defined(), "an expression of statement {} is undefined", statement_.id);
    const auto& known = known_.back();
    if (auto found = known.find(e.get()); found != known.end()) return found->second;
    const int made = make(e);
    known_.back()[e.get()] = made;
    kept_.push_back(e);  // so that no other expression takes its address
    return made;
  }

  int make(const Expr& e) {
    Node n;
    n.type = ir::from_halide(e.type());
    switch (e->node_type) {
      case hi::IRNodeType::IntImm:
        return constant(n, e.as<hi::IntImm>()->value);
      case hi::IRNodeType::UIntImm:
        return constant(n, static_cast<int64_t>(e.as<hi::UIntImm>()->value));
      case hi::IRNodeType::FloatImm:
        n.real = e.as<hi::FloatImm>()->value;
        return push(n);
      case hi::IRNodeType::Variable:
        return variable(n, e.as<hi::Variable>()->name);
      case hi::IRNodeType::Cast:
        n.op = Op::kConvert;
        n.a = node(e.as<hi::Cast>()->value);
        return push(n);
      case hi::IRNodeType::Add:
        return binary(n, Op::kAdd, e.as<hi::Add>());
      case hi::IRNodeType::Sub:
        return binary(n, Op::kSubtract, e.as<hi::Sub>());
      case hi::IRNodeType::Mul:
        return binary(n, Op::kMultiply, e.as<hi::Mul>());
      case hi::IRNodeType::Div:
        return binary(n, Op::kDivide, e.as<hi::Div>());
      case hi::IRNodeType::Mod:
        TC_CHECK(!tc::is_float(n.type), "'%' of floats in statement {}", statement_.id);
        return binary(n, Op::kModulo, e.as<hi::Mod>());
      case hi::IRNodeType::Min:
        return binary(n, Op::kMin, e.as<hi::Min>());
      case hi::IRNodeType::Max:
        return binary(n, Op::kMax, e.as<hi::Max>());
      case hi::IRNodeType::EQ:
        return binary(n, Op::kEqual, e.as<hi::EQ>());
      case hi::IRNodeType::NE:
        return binary(n, Op::kNotEqual, e.as<hi::NE>());
      case hi::IRNodeType::LT:
        return binary(n, Op::kLess, e.as<hi::LT>());
      case hi::IRNodeType::LE:
        return binary(n, Op::kLessEqual, e.as<hi::LE>());
      case hi::IRNodeType::GT:
        return swapped(n, Op::kLess, e.as<hi::GT>());
      case hi::IRNodeType::GE:
        return swapped(n, Op::kLessEqual, e.as<hi::GE>());
      case hi::IRNodeType::And:
        return binary(n, Op::kAnd, e.as<hi::And>());
      case hi::IRNodeType::Or:
        return binary(n, Op::kOr, e.as<hi::Or>());
      case hi::IRNodeType::Not:
        n.op = Op::kNot;
        n.a = node(e.as<hi::Not>()->a);
        return push(n);
      case hi::IRNodeType::Select: {
        const auto* choice = e.as<hi::Select>();
        return select(n, choice->condition, choice->true_value, choice->false_value);
      }
      case hi::IRNodeType::Let:
        return let(n, e.as<hi::Let>());
      case hi::IRNodeType::Call:
        return call(n, e.as<hi::Call>());
      default:
        TC_CHECK(false, "statement {} holds an expression that no Program has", statement_.id);
    }
  }

  int constant(Node n, int64_t value) {
    n.integer = value;
    return push(n);
  }

  template <typename Binary>
  int binary(Node n, Op op, const Binary* e) {
    n.op = op;
    n.a = node(e->a);
    n.b = node(e->b);
    return push(n);
  }

  template <typename Binary>
  int swapped(Node n, Op op, const Binary* e) {
    n.op = op;
    n.b = node(e->a);
    n.a = node(e->b);
    return push(n);
  }

  int select(Node n, const Expr& condition, const Expr& if_true, const Expr& if_false) {
    n.op = Op::kSelect;
    n.a = node(condition);
    n.b = node(if_true);
    n.c = node(if_false);
    return push(n);
  }

  int variable(Node n, const std::string& name) {
    if (auto found = locals_.find(name); found != locals_.end()) {
      n.op = Op::kLocal;
      n.payload = found->second;
    } else if (auto slot = slots_.find(name); slot != slots_.end()) {
      n.op = Op::kIndex;
      n.payload = slot->second;
    } else {
      n.op = Op::kScalar;
      for (size_t i = 0; i < program_.scalars.size(); ++i) {
        if (program_.scalars[i].name == name) n.payload = static_cast<int>(i);
      }
      TC_CHECK(n.payload >= 0, "'{}' means nothing in statement {} of a specialised program", name, statement_.id);
    }
    return push(n);
  }

  int let(Node n, const hi::Let* e) {
    n.op = Op::kLet;
    n.a = node(e->value);
    n.payload = code_.locals++;
    const auto outer = locals_;
    locals_[e->name] = n.payload;
    known_.emplace_back();
    n.b = node(e->body);
    known_.pop_back();
    locals_ = outer;
    return push(n);
  }

  int call(Node n, const hi::Call* e) {
    if (ir::is_tensor_read(program_, e)) {
      n.op = Op::kRead;
      Access made = access(e->name, e->args);
      code_.accesses.push_back(std::move(made));
      n.payload = static_cast<int>(code_.accesses.size()) - 1;
      return push(n);
    }
    if (e->is_intrinsic(hi::Call::if_then_else)) return select(n, e->args.at(0), e->args.at(1), e->args.at(2));
    std::vector<int> operands;
    for (const Expr& argument : e->args) operands.push_back(node(argument));
    if (e->name == "min" || e->name == "max") return fold(n, e->name == "min" ? Op::kMin : Op::kMax, operands);
    if (e->name == "clamp")
      return fold(n, Op::kMin, {fold(n, Op::kMax, {operands.at(0), operands.at(1)}), operands.at(2)});
    if (e->name == "relu") return fold(n, Op::kMax, {operands.at(0), push(n)});  // the node as it is: a zero
    return function(n, e->name, std::move(operands));
  }

  int fold(Node n, Op op, const std::vector<int>& operands) {
    int result = operands.at(0);
    for (size_t i = 1; i < operands.size(); ++i) {
      n.op = op;
      n.a = result;
      n.b = operands[i];
      result = push(n);
    }
    return result;
  }

  int function(Node n, const std::string& name, std::vector<int> operands) {
    const bool of_float = !operands.empty() && code_.nodes[operands.back()].is_float;
    const size_t count = operands.size();
    size_t arity = 0;
    if (const MixedFunction* mixed = find_mixed_function(name)) {
      n.op = Op::kMixedFunction;
      n.mixed_function = mixed;
      arity = 2;
      n.a = operands.at(mixed->integer_first ? 1 : 0);
      n.b = operands.at(mixed->integer_first ? 0 : 1);
    } else if (const RealPredicate* predicate = of_float ? find_real_predicate(name) : nullptr) {
      n.op = Op::kRealPredicate;
      n.predicate = predicate;
      arity = 1;
      n.a = operands.at(0);
    } else if (const RealFunction* real = of_float ? find_real_function(name) : nullptr) {
      n.op = Op::kRealFunction;
      n.real_function = real;
      arity = real->arity;
    } else {
      n.op = Op::kIntegerFunction;
      n.integer_function = find_integer_function(name);
      TC_CHECK(n.integer_function, "statement {} calls '{}', which is neither a tensor nor an intrinsic", statement_.id,
               name);
      arity = n.integer_function->arity;
    }
    TC_CHECK(arity == count, "'{}' is called with {} arguments, not {}", name, count, arity);
    if (n.op == Op::kRealFunction || n.op == Op::kIntegerFunction) {
      code_.lists.push_back(std::move(operands));
      n.payload = static_cast<int>(code_.lists.size()) - 1;
    }
    return push(n);
  }

  Access access(const std::string& name, const std::vector<Expr>& subscripts) {
    Access result;
    const ir::Tensor& tensor = program_.tensor(name);
    result.tensor = static_cast<int>(&tensor - program_.tensors.data());
    TC_CHECK(static_cast<int>(subscripts.size()) == tensor.rank(), "'{}' has {} dimensions but {} subscripts", name,
             tensor.rank(), subscripts.size());
    const std::vector<int64_t> extents = constant_extents(tensor);
    int64_t stride = 1;
    result.subscripts.resize(subscripts.size());
    for (size_t d = subscripts.size(); d-- > 0;) {
      Subscript& s = result.subscripts[d];
      s.extent = extents[d];
      s.stride = stride;
      stride *= extents[d];
      if (std::optional<Affine> form = affine(subscripts[d])) {
        s.constant = form->constant;
        for (auto [slot, factor] : form->factors) {
          if (factor != 0) s.terms.push_back({slot, factor});
        }
      } else {
        s.node = node(subscripts[d]);
        s.depends_on_data = reads_a_tensor(subscripts[d]);
      }
    }
    return result;
  }

  std::optional<Affine> affine(const Expr& e) const {
    if (const auto* literal = e.as<hi::IntImm>()) return Affine{literal->value, {}};
    if (const auto* name = e.as<hi::Variable>()) {
      auto slot = slots_.find(name->name);
      if (slot == slots_.end() || locals_.count(name->name)) return std::nullopt;
      return Affine{0, {{slot->second, 1}}};
    }
    if (const auto* sum = e.as<hi::Add>()) return affine_sum(sum->a, sum->b, 1);
    if (const auto* difference = e.as<hi::Sub>()) return affine_sum(difference->a, difference->b, -1);
    if (const auto* product = e.as<hi::Mul>()) {
      if (const auto* literal = product->b.as<hi::IntImm>()) return affine_product(product->a, literal->value);
      if (const auto* literal = product->a.as<hi::IntImm>()) return affine_product(product->b, literal->value);
    }
    return std::nullopt;
  }

  std::optional<Affine> affine_sum(const Expr& a, const Expr& b, int64_t sign) const {
    const std::optional<Affine> left = affine(a);
    const std::optional<Affine> right = left ? affine(b) : std::nullopt;
    if (!right) return std::nullopt;
    return left->plus(right->scaled(sign));
  }

  std::optional<Affine> affine_product(const Expr& a, int64_t by) const {
    const std::optional<Affine> form = affine(a);
    if (!form) return std::nullopt;
    return form->scaled(by);
  }

  bool reads_a_tensor(const Expr& e) const {
    struct Finder : hi::IRGraphVisitor {
      const ir::Program& program;
      bool found = false;
      explicit Finder(const ir::Program& p) : program(p) {}
      using hi::IRGraphVisitor::visit;
      void visit(const hi::Call* call) override {
        found |= ir::is_tensor_read(program, call);
        hi::IRGraphVisitor::visit(call);
      }
    } finder(program_);
    e.accept(&finder);
    return finder.found;
  }

  bool uses_reduction_index(const Expr& e) const {
    struct Finder : hi::IRGraphVisitor {
      const ir::Statement& statement;
      bool found = false;
      explicit Finder(const ir::Statement& s) : statement(s) {}
      using hi::IRGraphVisitor::visit;
      void visit(const hi::Variable* variable) override {
        for (const ir::Index& index : statement.indices) found |= index.is_reduction && index.name == variable->name;
      }
    } finder(statement_);
    e.accept(&finder);
    return finder.found;
  }

  // The conjuncts of a guard that no reduction index enters; -1 if there are none.
  int map_guard(const Expr& guard) {
    if (const auto* both = guard.as<hi::And>()) {
      const int a = map_guard(both->a);
      const int b = map_guard(both->b);
      if (a < 0 || b < 0) return a < 0 ? b : a;
      Node n;
      n.type = ScalarType::kBool;
      n.op = Op::kAnd;
      n.a = a;
      n.b = b;
      return push(n);
    }
    return uses_reduction_index(guard) ? -1 : node(guard);
  }

  // Gives nodes with several users a memo, so that evaluation stays linear in the size of the graph.
  void find_shared_nodes() {
    std::vector<int> users(code_.nodes.size(), 0);
    const auto use = [&](int n) {
      if (n >= 0) ++users[n];
    };
    for (const Node& n : code_.nodes) {
      use(n.a);
      use(n.b);
      use(n.c);
    }
    for (const auto& list : code_.lists) {
      for (int n : list) use(n);
    }
    for (const Access& access : code_.accesses) {
      for (const Subscript& s : access.subscripts) use(s.node);
    }
    for (size_t i = 0; i < code_.nodes.size(); ++i) {
      const Op op = code_.nodes[i].op;
      const bool is_leaf = op == Op::kConstant || op == Op::kIndex || op == Op::kLocal || op == Op::kScalar;
      if (users[i] > 1 && !is_leaf) code_.nodes[i].memo = code_.memos++;
    }
  }

  const ir::Program& program_;
  const ir::Statement& statement_;
  Code code_;
  std::map<std::string, int> slots_;
  std::map<std::string, int> locals_;
  std::vector<std::map<const hi::BaseExprNode*, int>> known_{1};
  std::vector<Expr> kept_;
};

}  // namespace

Code compile(const ir::Program& program, const ir::Statement& statement) {
  return Compiler(program, statement).compile();
}

std::vector<int64_t> constant_extents(const ir::Tensor& tensor) {
  std::vector<int64_t> extents;
  for (const Expr& extent : tensor.extents) {
    const int64_t* value = ir::constant_int(extent);
    TC_CHECK(value, "an extent of '{}' is not a constant: the program has not been specialised", tensor.name);
    extents.push_back(*value);
  }
  return extents;
}

}  // namespace tc::interp
