#include "tc/gpu/rewrite/recompute.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "tc/gpu/rewrite/instructions.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/guarded_read.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr int kFewReads = 3;
constexpr int64_t kMuchFewer = 8;  ///< elements, by this factor
constexpr double kFunction = 8;    ///< operations of a function or a quotient of floats

/// What a value reads, and whether arithmetic is all that it does with it.
class Look : public hi::IRVisitor {
 public:
  explicit Look(const ir::Program& program) : program_(program) {}
  std::vector<std::string> reads;
  bool cheap = true;

 private:
  using IRVisitor::visit;
  void visit(const hi::Call* op) override {
    if (ir::is_tensor_read(program_, op)) {
      reads.push_back(op->name);
    } else {
      cheap = false;
    }
    IRVisitor::visit(op);
  }
  void visit(const hi::Div* op) override {
    cheap = cheap && !op->type.is_float();
    IRVisitor::visit(op);
  }
  const ir::Program& program_;
};

std::vector<std::string> reads_of(const ir::Program& program, const ir::Statement& statement) {
  Look look(program);
  statement.value.accept(&look);
  for (const Expr& e : statement.subscripts) e.accept(&look);
  if (statement.guard.defined()) statement.guard.accept(&look);
  return look.reads;
}

int64_t elements_of(const ir::Tensor& tensor) {
  int64_t elements = 1;
  for (const int64_t extent : ir::constant_shape(tensor)) elements *= extent;
  return elements;
}

/// Whether the statement sets every element of a temporary once.
bool is_definition(const ir::Program& program, const ir::Statement& s) {
  const ir::Tensor& tensor = program.tensor(s.tensor);
  if (tensor.role != ir::Role::kTemporary || s.assign != ir::Assign::kSet || s.guard.defined()) return false;
  if (s.indices.size() != s.subscripts.size()) return false;
  const ir::Shape shape = ir::constant_shape(tensor);
  std::set<std::string> seen;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto* variable = s.subscripts[d].as<hi::Variable>();
    if (variable == nullptr || !seen.insert(variable->name).second) return false;
    const auto index =
        std::find_if(s.indices.begin(), s.indices.end(), [&](const ir::Index& i) { return i.name == variable->name; });
    if (index == s.indices.end() || !hi::is_const_zero(index->begin) || extent_of(*index) != shape[d]) return false;
  }
  return true;
}

bool is_cheap(const ir::Program& program, const ir::Statement& s) {
  Look look(program);
  s.value.accept(&look);
  return look.cheap && look.reads.size() <= kFewReads;
}

/// Whether a temporary is of what the caller has and of few values beside it, and is not kept on chip until a reduction
/// of it is done.
bool leaves_chip(const ir::Program& program, const ir::Statement& definition,
                 const std::function<bool(const ir::Program&, const ir::Statement&)>& leave_chip) {
  const int64_t elements = elements_of(program.tensor(definition.tensor));
  const std::vector<std::string> sources = reads_of(program, definition);
  const bool is_given = std::all_of(sources.begin(), sources.end(), [&](const std::string& name) {
    const ir::Tensor& source = program.tensor(name);
    return source.role != ir::Role::kTemporary || elements_of(source) <= elements / kMuchFewer;
  });
  return is_given && sources.size() <= kFewReads &&
         std::any_of(program.statements.begin(), program.statements.end(), [&](const ir::Statement& s) {
           return s.reduces() && reads_tensor(s.value, definition.tensor) && leave_chip(program, s);
         });
}

/// Finds comparisons of floats that read a tensor.
class Compares : public hi::IRVisitor {
 public:
  explicit Compares(std::string tensor) : tensor_(std::move(tensor)) {}
  bool found = false;

 private:
  using IRVisitor::visit;
  void visit(const hi::Call* op) override {
    found = found || (compared_ && op->name == tensor_);
    IRVisitor::visit(op);
  }
  void visit(const hi::EQ* op) override { operands(op); }
  void visit(const hi::NE* op) override { operands(op); }
  void visit(const hi::LT* op) override { operands(op); }
  void visit(const hi::LE* op) override { operands(op); }
  void visit(const hi::GT* op) override { operands(op); }
  void visit(const hi::GE* op) override { operands(op); }
  template <typename Comparison>
  void operands(const Comparison* op) {
    const bool outer = compared_;
    compared_ = compared_ || op->a.type().is_float();
    op->a.accept(this);
    op->b.accept(this);
    compared_ = outer;
  }

  const std::string tensor_;
  bool compared_ = false;
};

bool compares(const ir::Statement& statement, const std::string& tensor) {
  std::vector<Expr> parts = statement.subscripts;
  parts.push_back(statement.value);
  if (statement.guard.defined()) parts.push_back(statement.guard);
  return std::any_of(parts.begin(), parts.end(), [&](const Expr& part) { return compares_floats(part, tensor); });
}

using IsReader = std::function<bool(const ir::Statement&)>;

/// Whether all that reads the tensor of statement `at` comes later, is such a reader, and finds what the value is made
/// of unchanged.
bool may_replace(const ir::Program& program, size_t at, const IsReader& is_reader) {
  const ir::Statement& definition = program.statements[at];
  const std::vector<std::string> sources = reads_of(program, definition);
  bool changed = false, read = false;
  for (size_t s = 0; s < program.statements.size(); ++s) {
    const ir::Statement& statement = program.statements[s];
    if (s != at && statement.tensor == definition.tensor) return false;
    const std::vector<std::string> reads = reads_of(program, statement);
    const bool reads_it = std::count(reads.begin(), reads.end(), definition.tensor) > 0;
    const bool writes = s > at && std::count(sources.begin(), sources.end(), statement.tensor) > 0;
    changed = changed || writes;
    if (!reads_it) continue;
    if (s <= at || changed || !is_reader(statement)) return false;
    read = true;
  }
  return read;
}

class Replacer : public hi::IRMutator {
 public:
  explicit Replacer(const ir::Statement& definition) : definition_(definition) {}

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* op) override {
    if (op->name != definition_.tensor) return IRMutator::visit(op);
    std::map<std::string, Expr> indices;
    for (size_t d = 0; d < op->args.size(); ++d) {
      indices[definition_.subscripts[d].as<hi::Variable>()->name] = mutate(op->args[d]);
    }
    const Expr value = hi::substitute(indices, definition_.value);
    return value.type() == op->type ? value : hi::Cast::make(op->type, value);
  }
  const ir::Statement& definition_;
};

/// What a statement costs in a launch of its own, much as estimate() counts it. An operation or a read that is there
/// twice is done once.
class Cost : public hi::IRMutator {
 public:
  Cost(const ir::Program& program, const ir::Statement& statement) : program_(program) {
    for (const ir::Index& index : statement.indices) instances_ *= static_cast<double>(extent_of(index));
    mutate(statement.value);
    for (const Expr& subscript : statement.subscripts) mutate(subscript);
    if (statement.guard.defined()) mutate(statement.guard);
    add_access(statement.tensor);
  }

  /// Of all instances. The unit is the time in which a device's L2 cache delivers four bytes.
  double total() const {
    constexpr double kOperations = 22, kOfMemory = 1.15;  // in that time; for four bytes of memory
    double sum = 0;
    for (const double term : {accesses_, kOfMemory * memory_, operations_ / kOperations}) sum += std::pow(term, 4);
    return instances_ * std::pow(sum, 0.25);
  }

  Expr mutate(const Expr& e) override {
    if (!seen_.insert(e).second) return e;
    const auto* call = e.as<hi::Call>();
    if (call != nullptr && ir::is_tensor_read(program_, call)) {
      std::vector<Expr> at;
      for (const Expr& subscript : call->args) at.push_back(hi::simplify(mutate(subscript)));
      if (reads_.insert(hi::Call::make(call->type, call->name, at, call->call_type)).second) add_access(call->name);
      return e;
    }
    const bool leaf = e.as<hi::Variable>() != nullptr || hi::is_const(e);
    const bool is_function = call != nullptr || (e.as<hi::Div>() != nullptr && e.type().is_float());
    if (!leaf && e.type() != ir::index_type()) operations_ += is_function ? kFunction : 1;
    return IRMutator::mutate(e);
  }

 private:
  /// In units of four bytes. A tensor with few elements for many instances is in reach.
  void add_access(const std::string& name) {
    const ir::Tensor& tensor = program_.tensor(name);
    double elements = 1;
    for (const int64_t extent : ir::constant_shape(tensor)) elements *= static_cast<double>(extent);
    const double access = std::min(1.0, elements / instances_) * tensor.type.bytes() / 4;
    accesses_ += access;
    if (tensors_.insert(name).second) memory_ += access;
  }

  const ir::Program& program_;
  std::set<Expr, hi::IRDeepCompare> seen_, reads_;
  std::set<std::string> tensors_;
  double instances_ = 1, operations_ = 0, accesses_ = 0, memory_ = 0;
};

double cost_of(const ir::Program& program) {
  return std::accumulate(program.statements.begin(), program.statements.end(), 0.0,
                         [&](double sum, const ir::Statement& s) { return sum + Cost(program, s).total(); });
}

/// The program with statement `at` in the places of the reads of its tensor.
ir::Program replaced(ir::Program program, size_t at) {
  const ir::Statement definition = program.statements[at];
  program.statements.erase(program.statements.begin() + static_cast<long>(at));
  std::erase_if(program.tensors, [&](const ir::Tensor& t) { return t.name == definition.tensor; });
  Replacer replacer(definition);
  for (ir::Statement& s : program.statements) {
    std::vector<Expr*> parts = {&s.value};
    for (Expr& subscript : s.subscripts) parts.push_back(&subscript);
    if (s.guard.defined()) parts.push_back(&s.guard);
    for (Expr* part : parts) {
      const Expr before = *part;
      *part = replacer.mutate(before);
      if (!part->same_as(before)) s.accesses.clear();
    }
  }
  return program;
}

/// The read that a value is, if that moves elements: by a subscript for each index. A guard may put zeros around them.
const hi::Call* moved(const ir::Program& program, const Expr& value) {
  const auto* call = value.as<hi::Call>();
  if (!call) return nullptr;
  std::optional<ir::GuardedRead> guarded = ir::guarded_read(program, call);
  if (guarded && (!hi::is_const_zero(hi::simplify(guarded->otherwise)) || guarded->read->type != call->type)) {
    return nullptr;
  }
  const hi::Call* read = guarded ? guarded->read : call;
  if (!ir::is_tensor_read(program, read)) return nullptr;
  std::set<std::string> used;
  for (const Expr& subscript : read->args) {
    const std::optional<ir::LinearForm> form = ir::linear_form(subscript);
    if (!form || form->coefficients.size() > 1) return nullptr;
    for (const auto& [index, coefficient] : form->coefficients) {
      if (coefficient != 1 || !used.insert(index).second) return nullptr;
    }
  }
  return read;
}

/// Whether the expression reads the tensor in a branch of a choice.
bool reads_in_branch(const Expr& expr, const std::string& tensor) {
  class Finder : public hi::IRVisitor {
   public:
    explicit Finder(const std::string& tensor) : tensor_(tensor) {}
    bool found = false;

   private:
    using IRVisitor::visit;
    void visit(const hi::Call* op) override {
      if (op->is_intrinsic(hi::Call::if_then_else)) found = found || reads_tensor(op, tensor_);
      IRVisitor::visit(op);
    }
    const std::string& tensor_;
  } finder(tensor);
  expr.accept(&finder);
  return finder.found;
}

bool reads_one_of(const ir::Program& program, const ir::Statement& s, const std::set<std::string>& tensors) {
  const std::vector<std::string> reads = reads_of(program, s);
  return std::any_of(reads.begin(), reads.end(), [&](const auto& name) { return tensors.count(name) > 0; });
}

/// Tensors that contractions write, and what becomes of those.
struct Products {
  std::set<std::string> all;
  std::set<std::string> of_products;  ///< of contractions whose operands are made of another one's results
};

Products products_of(const ir::Program& program, const IsReader& is_contraction) {
  Products result;
  const auto is_product = [&](const ir::Statement& s) {
    return s.reduces() && shares_operands(program, s) && is_contraction(s);
  };
  for (const ir::Statement& s : program.statements) {
    if (is_product(s)) result.all.insert(s.tensor);
  }
  for (const ir::Statement& s : program.statements) {
    if (!reads_one_of(program, s, result.all)) continue;
    result.all.insert(s.tensor);
    if (is_product(s) || reads_one_of(program, s, result.of_products)) result.of_products.insert(s.tensor);
  }
  return result;
}

/// Whether a statement makes rows of what reductions of a contraction's results leave, as 1 / total(m).
bool reads_only_reductions(const ir::Program& program, const ir::Statement& statement, const Products& products) {
  const std::vector<std::string> reads = reads_of(program, statement);
  const auto is_read = [&](const ir::Statement& s) { return std::count(reads.begin(), reads.end(), s.tensor) > 0; };
  const auto is_other = [&](const ir::Statement& s) {
    const bool is_reduction =
        s.reduces() && products.all.count(s.tensor) > 0 && products.of_products.count(s.tensor) == 0;
    return is_read(s) && !is_reduction;
  };
  return std::any_of(program.statements.begin(), program.statements.end(), is_read) &&
         std::none_of(program.statements.begin(), program.statements.end(), is_other);
}

bool reads_only_inputs(const ir::Program& program, const ir::Statement& statement) {
  const std::vector<std::string> reads = reads_of(program, statement);
  return std::all_of(reads.begin(), reads.end(),
                     [&](const auto& name) { return program.tensor(name).role == ir::Role::kInput; });
}

}  // namespace

ir::Program recompute_beside_products(
    ir::Program program, int64_t most_operations,
    const std::function<bool(const ir::Program&, const ir::Statement&)>& is_contraction) {
  const auto is_product = [&](const ir::Statement& s) { return is_contraction(program, s); };
  for (size_t at = program.statements.size(); at-- > 0;) {
    const ir::Statement& definition = program.statements[at];
    const hi::Call* read = is_definition(program, definition) ? moved(program, definition.value) : nullptr;
    if (!read) continue;
    const bool has_guard = read != definition.value.get();
    std::set<std::string> readers;
    const auto multiplies = [&](const ir::Statement& s) {
      readers.insert(s.id);
      return s.reduces() && !(has_guard && reads_in_branch(s.value, definition.tensor)) && is_product(s);
    };
    if (!may_replace(program, at, multiplies)) continue;
    ir::Program without = replaced(program, at);
    const bool multiply = std::all_of(without.statements.begin(), without.statements.end(), [&](const auto& s) {
      return readers.count(s.id) == 0 || is_contraction(without, s);
    });
    if (multiply) program = std::move(without);
  }
  constexpr int64_t kFew = 1 << 16;  // elements: rows or columns
  const auto of_read = [&](const hi::Call* call) {
    constexpr double kRead = 1;
    return ir::is_tensor_read(program, call) ? std::optional(kRead) : std::nullopt;
  };
  std::optional<Products> products;
  for (size_t at = 0; at < program.statements.size();) {
    const ir::Statement& definition = program.statements[at];
    const int64_t elements = elements_of(program.tensor(definition.tensor));
    bool replaces = is_definition(program, definition);
    replaces = replaces && elements <= kFew && reads_only_inputs(program, definition);
    if (replaces) {
      if (!products) products = products_of(program, is_product);
      int64_t instances = 0;
      // Others of its size may be replaced next.
      const auto is_beside_product = [&](const ir::Statement& s) {
        instances += ir::instance_count(s);
        return !s.reduces() && !compares(s, definition.tensor) &&
               (products->all.count(s.tensor) > 0 ? ir::instance_count(s) > elements
                                                  : ir::instance_count(s) == elements);
      };
      replaces = !products->all.empty() && may_replace(program, at, is_beside_product) &&
                 static_cast<double>(instances) * instructions_of(definition.value, of_read) <=
                     static_cast<double>(most_operations);
    }
    if (replaces) {
      program = replaced(std::move(program), at);
    } else {
      ++at;
    }
  }
  return program;
}

ir::Program recompute_rows_of_chains(
    ir::Program program, const std::function<bool(const ir::Program&, const ir::Statement&)>& is_contraction) {
  const auto is_product = [&](const ir::Statement& s) { return is_contraction(program, s); };
  const auto has_shared_operands = [&](const ir::Statement& s) { return s.reduces() && shares_operands(program, s); };
  if (std::count_if(program.statements.begin(), program.statements.end(), has_shared_operands) < 2) return program;
  const Products products = products_of(program, is_product);
  for (size_t at = 0; at < program.statements.size();) {
    const ir::Statement& definition = program.statements[at];
    const auto goes_on = [&](const ir::Statement& s) {
      return !s.reduces() && !compares(s, definition.tensor) && reads_one_of(program, s, products.of_products);
    };
    if (is_definition(program, definition) && reads_only_reductions(program, definition, products) &&
        may_replace(program, at, goes_on)) {
      program = replaced(std::move(program), at);
    } else {
      ++at;
    }
  }
  return program;
}

ir::Program recompute_in_copies(ir::Program program, int64_t small) {
  for (size_t at = 0; at < program.statements.size();) {
    const auto copies = [&](const ir::Statement& s) {
      return s.assign == ir::Assign::kSet && !s.guard.defined() && s.value.as<hi::Call>() &&
             ir::is_tensor_read(program, s.value.as<hi::Call>()) && ir::instance_count(s) <= small;
    };
    if (is_definition(program, program.statements[at]) && may_replace(program, at, copies)) {
      program = replaced(std::move(program), at);
    } else {
      ++at;
    }
  }
  return program;
}

bool compares_floats(const Expr& expr, const std::string& tensor) {
  Compares look(tensor);
  expr.accept(&look);
  return look.found;
}

bool reduces_across_memory(const ir::Program& program, const ir::Statement& statement) {
  return statement.reduces() && !runs_along_reduction(program, statement);
}

ir::Program recompute_temporaries(ir::Program program, int64_t large,
                                  const std::function<bool(const ir::Program&, const ir::Statement&)>& leave_chip) {
  for (size_t at = 0; at < program.statements.size();) {
    const ir::Statement& definition = program.statements[at];
    // No element is read twice, or compared.
    const auto reads_once = [&](const ir::Statement& reader) {
      return ir::instance_count(reader) <= elements_of(program.tensor(definition.tensor)) &&
             !compares(reader, definition.tensor);
    };
    const auto has_elements = [&](int64_t least) { return elements_of(program.tensor(definition.tensor)) >= least; };
    const bool replaces = is_definition(program, definition) &&
                          ((has_elements(large) && is_cheap(program, definition)) ||
                           (has_elements(large / kMuchFewer) && leaves_chip(program, definition, leave_chip)));
    if (replaces && may_replace(program, at, reads_once)) {
      ir::Program without = replaced(program, at);
      if (cost_of(without) <= cost_of(program)) {
        program = std::move(without);
        continue;
      }
    }
    ++at;
  }
  return program;
}

}  // namespace tc::gpu
