#include "tc/gpu/strategy/contraction/prologue.h"

#include <algorithm>

#include "tc/gpu/atoms/functions.h"
#include "tc/gpu/mapping/fused_group.h"
#include "tc/gpu/rewrite/operand_order.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/affine_subscript.h"
#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/gpu/strategy/contraction/points.h"
#include "tc/ir/layouts.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;

/// Whether the statement sets each element of a temporary once, and no other does.
bool defines_temporary(const poly::Scop& scop, const poly::Statement& statement, const std::vector<Axis>& box) {
  const ir::Tensor& tensor = scop.program->tensor(statement.tensor);
  if (tensor.role != ir::Role::kTemporary || statement.kind != poly::Statement::Kind::kSet) return false;
  if (statement.guard.defined() || statement.subscripts.size() != box.size()) return false;
  const ir::Shape shape = ir::constant_shape(tensor);
  std::vector<bool> used(box.size(), false);
  for (size_t d = 0; d < box.size(); ++d) {
    const std::optional<ShiftedIndex> index = shifted(statement.subscripts[d], statement.indices);
    if (!index || used[index->index]) return false;
    used[index->index] = true;
    if (box[index->index].begin + index->constant != 0 || box[index->index].extent != shape[d]) return false;
  }
  return std::count_if(scop.statements.begin(), scop.statements.end(),
                       [&](const poly::Statement& s) { return s.tensor == statement.tensor; }) == 1;
}

/// Instructions for one value, about. Values are computed `vector` at a time.
class Cost : public hi::IRVisitor {
 public:
  Cost(const ir::Program& program, int64_t vector) : program_(program), vector_(static_cast<double>(vector)) {}
  double instructions = 2;
  bool counts_subscripts = true;

 private:
  using IRVisitor::visit;
  void visit(const hi::Call* op) override {
    const bool is_read = ir::is_tensor_read(program_, op);
    instructions += is_read ? 2 / vector_ : instructions_of_function(op->name);
    if (!is_read || counts_subscripts) IRVisitor::visit(op);
  }
  void visit(const hi::Div* op) override {
    instructions += kDivisionInstructions;
    IRVisitor::visit(op);
  }
  void visit(const hi::Mul* op) override {
    instructions += 1;
    IRVisitor::visit(op);
  }
  void visit(const hi::Add* op) override {
    instructions += 1;
    IRVisitor::visit(op);
  }
  const ir::Program& program_;
  double vector_;
};

/// The same where threads compute two neighbours for their registers, which read and write pairs. What other reads
/// bring is held for many of them.
double instructions_in_pairs(const ir::Program& program, const Halide::Expr& value) {
  constexpr int64_t kPair = 2;
  Cost cost(program, kPair);
  cost.counts_subscripts = false;
  value.accept(&cost);
  return cost.instructions;
}

/// The subscripts of a read over the prologue's indices as the contraction has them, if each index counts alone along a
/// dimension of its own.
std::optional<std::vector<Subscript>> subscripts_of(const hi::Call& read, const Operand& operand) {
  const std::vector<Axis>& indices = operand.computed->indices;
  std::vector<std::string> names;
  for (const Axis& index : indices) names.push_back(index.name);
  std::vector<bool> used(indices.size(), false);
  std::vector<Subscript> result;
  for (const Halide::Expr& arg : read.args) {
    const std::optional<LinearForm> form = linear(arg, names);
    if (!form) return std::nullopt;
    Subscript s{std::vector<int64_t>(operand.subscripts[0].parallel.size(), 0),
                std::vector<int64_t>(operand.subscripts[0].reduction.size(), 0), form->constant};
    bool counts = false;
    for (size_t i = 0; i < names.size(); ++i) {
      if (form->coefficients[i] == 0) continue;
      if (form->coefficients[i] != 1 || counts || used[i]) return std::nullopt;
      counts = used[i] = true;
      s = operand.subscripts[i];
      s.constant += indices[i].begin + form->constant;
    }
    result.push_back(std::move(s));
  }
  return std::find(used.begin(), used.end(), false) == used.end() ? std::optional(std::move(result)) : std::nullopt;
}

/// What a computed operand is made of element by element: null where there is no such tensor, or two.
std::shared_ptr<const Operand> source_of(const ir::Program& program, const Operand& operand) {
  std::shared_ptr<Operand> result;
  const hi::Call* found = nullptr;
  for (const hi::Call* read : ir::reads_in(program, operand.computed->value)) {
    std::optional<std::vector<Subscript>> subscripts = subscripts_of(*read, operand);
    if (!subscripts) continue;
    if (found && hi::equal(Halide::Expr(found), Halide::Expr(read))) continue;
    if (found) return nullptr;
    found = read;
    result = std::make_shared<Operand>();
    result->tensor = read->name;
    result->placeholder = operand.placeholder;
    result->type = program.tensor(read->name).type;
    result->subscripts = *std::move(subscripts);
    result->extents = ir::constant_shape(program.tensor(read->name));
    result->strides = ir::strides_of(program.tensor(read->name));
    result->at_any_address = program.tensor(read->name).at_any_address;
  }
  return result;
}

}  // namespace

std::optional<Contraction> with_prologue(const poly::Scop& scop, const Contraction& contraction) {
  if (contraction.first == 0 || !contraction.further.empty()) return std::nullopt;
  const poly::Statement& prologue = scop.statements[contraction.first - 1];
  if (is_operand_copy(prologue.id)) return std::nullopt;
  const std::vector<isl::set> domains = poly::statement_domains(scop);
  const isl::set* domain = domain_of(domains, prologue.id);
  const std::optional<std::vector<Axis>> box = domain ? box_of(*domain, prologue.indices) : std::nullopt;
  if (!box || !defines_temporary(scop, prologue, *box)) return std::nullopt;
  for (const poly::Access& access : scop.accesses) {
    if (access.tensor == prologue.tensor && access.reads() && access.statement != contraction.update.id) {
      return std::nullopt;
    }
  }
  if (reads_tensor(contraction.update.value, prologue.tensor)) return std::nullopt;
  const auto sources = ir::reads_in(*scop.program, prologue.value);
  // Rows that data choose are copied by blocks as they are, or gathered before on request.
  const auto is_chosen = [&](const hi::Call* read) {
    return std::any_of(read->args.begin(), read->args.end(),
                       [&](const Halide::Expr& e) { return reads_tensor(*scop.program, e); });
  };
  if (std::any_of(sources.begin(), sources.end(), is_chosen)) return std::nullopt;
  for (size_t s = contraction.first; s < contraction.last; ++s) {
    const std::string& written = scop.statements[s].tensor;
    if (std::any_of(sources.begin(), sources.end(), [&](const auto* read) { return read->name == written; })) {
      return std::nullopt;
    }
  }
  Contraction result = contraction;
  bool any = false;
  for (Operand& operand : result.operands) {
    if (operand.chosen_row) {
      const auto reads = [&](const Halide::Expr& e) { return reads_tensor(e, prologue.tensor); };
      const std::vector<Halide::Expr>& subscripts = operand.chosen_row->subscripts;
      if (std::any_of(subscripts.begin(), subscripts.end(), reads) || operand.tensor == prologue.tensor) {
        return std::nullopt;
      }
    }
    if (operand.tensor != prologue.tensor) continue;
    any = true;
    operand.computed = ComputedOperand{prologue.value, {}};
    for (const Halide::Expr& subscript : prologue.subscripts) {
      const ShiftedIndex index = *shifted(subscript, prologue.indices);
      operand.computed->indices.push_back((*box)[index.index]);
    }
    operand.computed->source = source_of(*scop.program, operand);
    operand.computed->instructions = instructions_in_pairs(*scop.program, operand.computed->value);
  }
  if (!any) return std::nullopt;
  for (const auto* read : sources) result.read_elsewhere.push_back(read->name);
  result.first = contraction.first - 1;
  return result;
}

PrologueTimes prologue_times(const Contraction& c, const ContractionPlan& plan, const ir::Program& program,
                             const Device& device) {
  // Small kernels follow each other in 3 us in a graph, of which a microsecond is no work, and in 4 us on a stream.
  constexpr double kLaunchUs = 4, kCacheBytesOfUs = 4e6, kLanesOfProcessor = 128;
  PrologueTimes result;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const Operand& operand = c.operands[i];
    if (!operand.computed) continue;
    Cost cost(program, plan.operands[i].vector);
    operand.computed->value.accept(&cost);
    double elements = 1, copied = static_cast<double>(plan.steps(c));
    for (const int64_t extent : operand.extents) elements *= static_cast<double>(extent);
    for (const int64_t extent : plan.operands[i].box) copied *= static_cast<double>(extent);
    for (const AxisPlan& axis : plan.parallel) copied *= static_cast<double>(axis.blocks);
    const double of_us = static_cast<double>(device.processors) * kLanesOfProcessor * device.gigahertz * 1e3;
    const double bytes = elements * static_cast<double>(operand.type.bytes());
    const double rate =
        bytes > static_cast<double>(device.cache_bytes) / 2 ? device.memory_bytes_per_us : kCacheBytesOfUs;
    // Where threads of warpgroups compute what they multiply, the plan's own estimate has it.
    const bool is_counted = plan.by_warpgroups();
    result.again_us += is_counted ? 0 : copied * cost.instructions / of_us;
    result.once_us += elements * cost.instructions / of_us + 2 * bytes / rate;
    result.launch_us += kLaunchUs;
  }
  return result;
}

namespace {

/// The plan of least time with what it computes. That of warpgroups has it in its estimate, others have not.
Result<ContractionPlan> plan_with_prologue(const Contraction& c, const ir::Program& program,
                                           const options::MappingOptions& options, const Device& device) {
  const auto all = [&](const ContractionPlan& plan) {
    return plan.cycles + prologue_times(c, plan, program, device).again_us * 1e3 * device.gigahertz;
  };
  Result<ContractionPlan> any = plan_contraction(c, options, device);
  if (!any || any->by_warpgroups()) return any;
  Result<ContractionPlan> by_warpgroups = plan_warpgroups(c, options, device);
  return by_warpgroups && all(*by_warpgroups) < all(*any) ? std::move(by_warpgroups) : std::move(any);
}

}  // namespace

void add_prologues(const poly::Scop& scop, size_t first, const options::MappingOptions& options, const Device& device,
                   Contraction& contraction, ContractionPlan& plan) {
  const double cycles_behind = plan.cycles;  // of it alone, behind what it reads
  while (contraction.first > first) {
    std::optional<Contraction> longer = with_prologue(scop, contraction);
    Result<ContractionPlan> of_longer = longer ? plan_with_prologue(*longer, *scop.program, options, device) : fail("");
    if (!of_longer) return;
    const auto [again_us, once_us, launch_us] = prologue_times(*longer, *of_longer, *scop.program, device);
    // A statement of what reductions before it make joins their launch.
    const auto begin = scop.statements.begin() + static_cast<long>(first);
    const auto prologue = scop.statements.begin() + static_cast<long>(longer->first);
    const bool joins = std::any_of(begin, prologue, [&](const poly::Statement& s) {
      return std::count(s.is_reduction.begin(), s.is_reduction.end(), true) > 0 &&
             reads_tensor(prologue->value, s.tensor);
    });
    const double apart_us = once_us + (joins ? 0 : launch_us);
    const double cycles = of_longer->cycles + again_us * 1e3 * device.gigahertz;
    if (cycles > cycles_behind + apart_us * 1e3 * device.gigahertz) return;
    contraction = *std::move(longer);
    plan = *std::move(of_longer);
    plan.cycles = cycles;
  }
}

}  // namespace tc::gpu
