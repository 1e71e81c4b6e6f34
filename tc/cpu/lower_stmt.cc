#include "tc/cpu/lower_stmt.h"

#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "tc/cpu/finish_accesses.h"
#include "tc/cpu/hidden_allocations.h"
#include "tc/cpu/moves.h"
#include "tc/cpu/opaque_values.h"
#include "tc/ir/halide_compat.h"
#include "tc/support/check.h"

namespace tc::cpu {

using namespace Halide::Internal;

namespace {

using Arguments = std::span<const KernelArgument>;

template <auto pass>
Stmt plain(const Stmt& s, Arguments) {
  return pass(s);
}
/// Reads one element where all lanes of a load read the same: flatten_nested_ramps() divides by the step of lanes.
class OneElementLoads : public IRMutator {
  using IRMutator::visit;
  Halide::Expr visit(const Load* op) override {
    const Halide::Expr loaded = IRMutator::visit(op);
    const auto* load = loaded.as<Load>();
    if (!load || load->type.is_scalar() || !is_const_one(load->predicate)) return loaded;
    if (load->index.as<Ramp>() || load->index.as<Broadcast>()) return loaded;
    const Halide::Expr first = extract_lane(load->index, 0);
    for (int lane = 1; lane < load->type.lanes(); ++lane) {
      if (!is_const_zero(simplify(extract_lane(load->index, lane) - first))) return loaded;
    }
    const Halide::Expr element = Load::make(load->type.element_of(), load->name, simplify(first), load->image,
                                            load->param, const_true(), ModulusRemainder());
    return Broadcast::make(element, load->type.lanes());
  }
};

Stmt flattened(const Stmt& s, Arguments) { return flatten_nested_ramps(OneElementLoads().mutate(s)); }
Stmt simplified(const Stmt& s, Arguments) { return simplify(s); }
Stmt vectorised(const Stmt& s, Arguments) { return vectorize_loops(s, {}); }

/// Whether trim_no_ops() can derive from memory when a statement does nothing: from a condition that reads it, or from
/// a store of a value that Halide understands and that reads the same buffer.
bool memory_decides(const Stmt& s) {
  class Finder : public IRVisitor {
   public:
    bool found = false;

   private:
    using IRVisitor::visit;
    /// Of a part of the stored value, which is compared with the element that it is stored to.
    static bool understood(const Halide::Expr& value, const Store* store) {
      if (const auto* call = value.as<Call>(); call && call->call_type == Call::PureExtern) return false;
      if (const auto* broadcast = value.as<Broadcast>()) return understood(broadcast->value, store);
      if (const auto* select = value.as<Select>()) {
        return !loads_from(select->condition, {}).empty() || understood(select->true_value, store) ||
               understood(select->false_value, store);
      }
      const auto* load = value.as<Load>();
      const bool is_the_element = load && load->name == store->name && equal(load->index, store->index);
      return !is_the_element && !loads_from(value, store->name).empty();
    }
    /// The buffers, or the one, that an expression reads.
    static std::set<std::string> loads_from(const Halide::Expr& e, const std::string& only) {
      struct Loads : IRGraphVisitor {
        std::set<std::string> buffers;
        using IRGraphVisitor::visit;
        void visit(const Load* op) override {
          buffers.insert(op->name);
          IRGraphVisitor::visit(op);
        }
      } loads;
      e.accept(&loads);
      if (!only.empty()) std::erase_if(loads.buffers, [&](const std::string& buffer) { return buffer != only; });
      return loads.buffers;
    }
    void visit(const Store* op) override { found = found || understood(op->value, op); }
    void visit(const AssertStmt*) override { found = true; }  // a loop that only checks would do nothing
    void visit(const LetStmt* op) override {
      found = found || !loads_from(op->value, {}).empty();
      IRVisitor::visit(op);
    }
  } finder;
  s.accept(&finder);
  return finder.found;
}

/// trim_no_ops() of the outermost loops in which memory decides nothing.
Stmt trimmed(const Stmt& s, Arguments) {
  class Trim : public IRMutator {
   private:
    using IRMutator::visit;
    Stmt visit(const For* op) override { return memory_decides(op) ? IRMutator::visit(op) : trim_no_ops(op); }
  } trim;
  return trim.mutate(s);
}

struct Lowering {
  LoweringStep step;
  Stmt (*run)(const Stmt&, Arguments);
};

constexpr char kSimplify[] =
    "Sees no value (opaque_values.h), and no condition that memory decides. What it knows of integers holds for "
    "subscripts, which are proved to fit their type.";
constexpr char kHoist[] = "Moves a condition out of a loop only if it reads neither memory nor the loop's variable.";

/// The order matters: names must be unique before anything is substituted; vector loops must be gone before loops are
/// split by their conditions; what is invariant is hoisted when nothing simplifies any more. Values are left to LLVM,
/// which shares and hoists them in a third of the time.
constexpr Lowering kSteps[] = {
    {{"simplify", kSimplify}, simplified},
    {{"unify_duplicate_lets", "Joins lets of equal pure values only: what reads memory is not pure."},
     plain<unify_duplicate_lets>},
    {{"rewrite_moves", "Ours."}, rewrite_moves},
    {{"unroll_loops", "Repeats the body in the loop's own order."}, plain<unroll_loops>},
    {{"vectorize_loops",
      "Runs all lanes of a statement before the next: poly::find_violation() has proved that no dependence is between "
      "lanes, and updates_may_collide() that no two lanes update one element."},
     vectorised},
    {{"simplify", kSimplify}, simplified},
    {{"rewrite_interleavings", "Rewrites shuffles of loaded vectors, lane by lane the same; moves no access."},
     plain<rewrite_interleavings>},
    {{"partition_loops",
      "Splits loops where a condition marked likely changes: ours are those of full tiles, over loop variables alone. "
      "Extrema in subscripts that read memory are opaque to it."},
     plain<partition_loops>},
    {{"simplify", kSimplify}, simplified},
    {{"trim_no_ops",
      "Cuts loops to where they do something. It takes what their stores change for constant, so it is not run on "
      "loops "
      "in which memory decides."},
     trimmed},
    {{"hoist_loop_invariant_if_statements", kHoist}, plain<hoist_loop_invariant_if_statements>},
    {{"flatten_nested_ramps", "Rewrites the form of subscripts, lane by lane the same."}, flattened},
    {{"simplify", kSimplify}, simplified},
    {{"hoist_loop_invariant_if_statements", kHoist}, plain<hoist_loop_invariant_if_statements>},
};

/// What the reasons of the steps rest on: no condition of a statement reads memory.
void check_conditions(const Stmt& s) {
  class Conditions : public IRVisitor {
   private:
    using IRVisitor::visit;
    void visit(const IfThenElse* op) override {
      op->condition.accept(&condition_);
      TC_CHECK(!condition_.reads, "a condition that reads memory: {}", to_text(op));
      IRVisitor::visit(op);
    }
    struct Condition : IRGraphVisitor {
      bool reads = false;
      using IRGraphVisitor::visit;
      void visit(const Load*) override { reads = true; }
    } condition_;
  } conditions;
  s.accept(&conditions);
}

/// An undefined Stmt: stopped.
Stmt lower_loops(Stmt s, Arguments arguments, const Stop& stop) {
  HiddenAllocations allocations;
  s = allocations.hide(s);
  check_conditions(s);
  for (const Lowering& lowering : kSteps) {
    if (stop && stop()) return Stmt();
    s = lowering.run(s, arguments);
  }
  return remove_dead_allocations(allocations.restore(s));
}

/// Halide's passes name what they make by a letter and a number: "t0". The program's own names of that form get a dot.
std::string not_halides(const std::string& name) {
  const bool is_halides = name.size() > 1 && std::isalpha(static_cast<unsigned char>(name[0])) != 0 &&
                          name.find_first_not_of("0123456789", 1) == std::string::npos;
  return is_halides ? name + "." : name;
}

class RenameAll : public IRMutator {
  using IRMutator::visit;

  Halide::Expr visit(const Variable* op) override { return Variable::make(op->type, not_halides(op->name)); }
  Halide::Expr visit(const Load* op) override {
    return Load::make(op->type, not_halides(op->name), mutate(op->index), op->image, op->param, mutate(op->predicate),
                      op->alignment);
  }
  Halide::Expr visit(const Let* op) override {
    return Let::make(not_halides(op->name), mutate(op->value), mutate(op->body));
  }
  Stmt visit(const Store* op) override {
    return Store::make(not_halides(op->name), mutate(op->value), mutate(op->index), op->param, mutate(op->predicate),
                       op->alignment);
  }
  Stmt visit(const LetStmt* op) override {
    return LetStmt::make(not_halides(op->name), mutate(op->value), mutate(op->body));
  }
  Stmt visit(const For* op) override {
    return ir::make_for(not_halides(op->name), mutate(op->min), mutate(op->extent), op->for_type, mutate(op->body));
  }
  Stmt visit(const Allocate* op) override {
    std::vector<Halide::Expr> extents;
    for (const Halide::Expr& extent : op->extents) extents.push_back(mutate(extent));
    return Allocate::make(not_halides(op->name), op->type, op->memory_type, extents, mutate(op->condition),
                          mutate(op->body), op->new_expr, op->free_function);
  }
  Stmt visit(const Free* op) override { return Free::make(not_halides(op->name)); }
};

Kernel without_halides_names(Kernel kernel) {
  for (KernelArgument& argument : kernel.arguments) argument.name = not_halides(argument.name);
  kernel.body = RenameAll().mutate(kernel.body);
  return kernel;
}

}  // namespace

std::vector<LoweringStep> lowering_steps() {
  std::vector<LoweringStep> result{
      {"without_halides_names", "Ours."},
      {"uniquify_variable_names", "Renames."},
      {"make_values_opaque", "Ours."},
      {"HiddenAllocations::hide", "Ours."},
  };
  for (const Lowering& lowering : kSteps) result.push_back(lowering.step);
  result.push_back({"HiddenAllocations::restore", "Ours."});
  result.push_back({"remove_dead_allocations", "Removes buffers that nothing names."});
  result.push_back({"lower_parallel_tasks", "Makes functions of parallel loops: their iterations are independent."});
  result.push_back({"finish_accesses", "Ours."});
  return result;
}

std::optional<LoweredKernel> lower_kernel(const Kernel& named, const Halide::Target& target, bool strict,
                                          const Stop& stop) {
  const Kernel kernel = without_halides_names(named);
  Stmt body = uniquify_variable_names(kernel.body);
  body = lower_loops(make_values_opaque(body, kernel.arguments, strict), kernel.arguments, stop);
  if (!body.defined()) return std::nullopt;
  LoweredKernel result;
  body = lower_parallel_tasks(body, result.functions, kernel.name, target);
  result.functions.emplace_back(kernel.name, passed_arguments(kernel.arguments), body, Halide::LinkageType::External);
  for (LoweredFunc& function : result.functions) function.body = finish_accesses(function.body, kernel.arguments);
  return result;
}

}  // namespace tc::cpu
