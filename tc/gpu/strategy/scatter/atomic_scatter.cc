#include "tc/gpu/strategy/scatter/atomic_scatter.h"

#include <isl/schedule_node.h>
#include <isl/set.h>

#include <algorithm>
#include <map>

#include "tc/gpu/lower/body.h"
#include "tc/gpu/lower/declare_tensors.h"
#include "tc/gpu/lower/emit.h"
#include "tc/gpu/strategy/scatter/atomic_sums.h"
#include "tc/ir/specialise.h"
#include "tc/poly/band_ref.h"
#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::gpu {

using Halide::Expr;
using poly::Ranged;
using tile::NodePtr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kBlocksOfProcessor = 8;
constexpr int64_t kBusyThreads = 256;      ///< of a processor
constexpr int64_t kWorthwhile = 64;        ///< instances
constexpr int64_t kLongChain = 256;        ///< updates, one after the other, that cost more than another launch
constexpr int64_t kTurns = 4;              ///< that a thread should at least have before there are more blocks
constexpr int64_t kSharedBytes = 1 << 15;  ///< of a copy: several blocks of a processor have one

int64_t elements_of(const ir::Tensor& tensor) {
  int64_t elements = 1;
  for (const int64_t extent : ir::constant_shape(tensor)) elements *= extent;
  return elements;
}

/// Iterations of a statement's loops that run at once without atomics.
int64_t parallel_iterations(const poly::Scop& part, const std::string& statement) {
  int64_t iterations = 1;
  for (const poly::BandRef& ref : poly::bands_of(part, statement)) {
    const poly::BandInfo band = poly::band_info(part, ref);
    for (int m = 0; m < band.members(); ++m) {
      const auto at = static_cast<size_t>(m);
      if (band.coincident[at]) iterations *= std::min(band.extents[at], INT32_MAX / iterations + 1);
    }
  }
  return iterations;
}

/// The only statement of the part, if atomics may run its instances in any order.
const poly::Statement* scattered_statement(const poly::Scop& part, bool strict) {
  const isl::schedule_node root = part.schedule.root();
  const std::vector<std::string> ids = poly::statements_at(part, root);
  if (ids.size() != 1) return nullptr;
  const poly::Statement& statement = part.statement(ids[0]);
  const ir::Tensor& tensor = part.program->tensor(statement.tensor);
  if (statement.kind != poly::Statement::Kind::kUpdate || !atomic_of(statement.assign)) return nullptr;
  if (tensor.type != statement.accumulator || tensor.type.bits() < 32 || elements_of(tensor) == 0) return nullptr;
  if (strict && tensor.type.is_float()) return nullptr;
  const isl::union_set domain = poly::node_domain(root);
  const isl::union_map ordered = part.dependences.ordered().intersect_domain(domain).intersect_range(domain);
  return ordered.is_empty() ? &statement : nullptr;
}

/// Of instances that are a box; else nothing.
std::optional<std::vector<ir::Range>> ranges_of(const isl::set& domain) {
  if (isl_set_is_box(domain.get()) != isl_bool_true) return std::nullopt;
  std::vector<ir::Range> ranges;
  for (int i = 0; i < static_cast<int>(isl_set_dim(domain.get(), isl_dim_set)); ++i) {
    const int64_t begin = poly::to_int64(domain.dim_min_val(i));
    ranges.push_back({begin, poly::to_int64(domain.dim_max_val(i)) - begin + 1});
  }
  return ranges;
}

int64_t product(const std::vector<ir::Range>& ranges) {
  int64_t instances = 1;
  for (const ir::Range& range : ranges) instances *= range.extent;
  return instances;
}

class Writer {
 public:
  Writer(const poly::Scop& part, const ScatterPlan& plan)
      : part_(part), plan_(plan), statement_(*plan.statement), names_(kernel_names(*part.program)) {
    for (const ir::Tensor& t : part.program->tensors) places_[t.name] = {t.name, t.type, {}, ir::constant_shape(t)};
    names_.add(statement_.tensor);
  }

  tile::Kernel run(const std::string& name);

 private:
  NodePtr dealt(const std::string& wish, const Ranged& first, int64_t count, int64_t step, const Body& body);
  NodePtr updates(const std::string& target);
  NodePtr in_shared();
  std::vector<Expr> at(const Ranged& number) const;
  tile::Atomic atomic(const std::string& target, std::vector<Expr> position, Expr value) const {
    return {target, std::move(position), *atomic_of(statement_.assign), std::move(value)};
  }

  const poly::Scop& part_;
  const ScatterPlan& plan_;
  const poly::Statement& statement_;
  ir::Names names_;
  std::map<std::string, Place> places_;
};

/// The body for number `first`, and every `step`th behind it.
NodePtr Writer::dealt(const std::string& wish, const Ranged& first, int64_t count, int64_t step, const Body& body) {
  if (step >= count)
    return guarded(poly::less(first, poly::ranged(count)), body(poly::ranged(first.expr, 0, count - 1)));
  const Halide::Type type = count <= INT32_MAX - step ? Halide::Int(32) : Halide::Int(64);
  const std::string name = names_.fresh(wish);
  const Ranged value = poly::ranged(hi::Variable::make(type, name), 0, count - 1);
  const Expr begin = first.expr.type() == type ? first.expr : hi::Cast::make(type, first.expr);
  return make_node(tile::For{name, begin, hi::make_const(type, count), hi::make_const(type, step), false, body(value)});
}

/// All instances of the statement; those of a warp are neighbours along the last index.
NodePtr Writer::updates(const std::string& target) {
  const int64_t threads = plan_.threads * plan_.blocks;
  const Ranged first = block_number(0, plan_.blocks) * poly::ranged(plan_.threads) + thread_number(0, plan_.threads);
  const std::string wish = statement_.indices.size() == 1 ? statement_.indices[0] + "_number" : "instance";
  return dealt(wish, first, plan_.instances(), threads, [&](const Ranged& number) {
    BodyContext context;
    context.program = part_.program.get();
    context.place = [this](const std::string& tensor) -> const Place& { return places_.at(tensor); };
    int64_t below = 1;
    for (size_t i = plan_.ranges.size(); i-- > 0;) {
      const ir::Range& range = plan_.ranges[i];
      const Ranged index = poly::floor_mod(poly::floor_div(number, below), range.extent);
      context.indices[statement_.indices[i]] = index + poly::ranged(range.begin);
      below *= range.extent;
    }
    const NodePtr update = carrying(
        statement_, context,
        make_node(atomic(target, written_position(statement_, context), statement_value(statement_, context))));
    return statement_.guard.defined() ? guarded(instance_value(statement_.guard, context), update) : update;
  });
}

/// The position of the tensor's element of that number.
std::vector<Expr> Writer::at(const Ranged& number) const {
  const std::vector<int64_t>& extents = places_.at(statement_.tensor).extents;
  std::vector<Expr> position(extents.size());
  int64_t below = 1;
  for (size_t d = extents.size(); d-- > 0;) {
    position[d] = poly::floor_mod(poly::floor_div(number, below), extents[d]).expr;
    below *= extents[d];
  }
  return position;
}

NodePtr Writer::in_shared() {
  const Place& place = places_.at(statement_.tensor);
  tile::Tensor copy;
  copy.name = names_.fresh(place.name + "_shared");
  copy.type = place.type;
  copy.memory = tile::Memory::kShared;
  copy.layout = tile::Layout::row_major(std::vector<tile::IntTuple>(place.extents.begin(), place.extents.end()));
  copy.written = true;
  const Expr identity = ir::identity_of(statement_.assign, place.type);
  const int64_t elements = copy.layout.cosize();
  const auto each = [&](const Body& body) {
    return dealt("element", thread_number(0, plan_.threads), elements, plan_.threads, body);
  };
  const NodePtr begin = each([&](const Ranged& number) {
    return make_node(tile::Store{copy.name, at(number), identity});
  });
  const NodePtr end = each([&](const Ranged& number) {
    const Expr sum = hi::Call::make(copy.type, copy.name, at(number), hi::Call::PureExtern);
    return make_node(tile::If{sum != identity, make_node(atomic(place.name, at(number), sum)), nullptr});
  });
  const NodePtr barrier = make_node(tile::Barrier{});
  return make_node(tile::Allocate{copy, sequence({begin, barrier, updates(copy.name), barrier, end})});
}

tile::Kernel Writer::run(const std::string& name) {
  tile::Kernel kernel;
  kernel.name = name;
  kernel.grid = {plan_.blocks, 1, 1};
  kernel.block = {plan_.threads, 1, 1};
  kernel.body = plan_.in_shared ? in_shared() : updates(statement_.tensor);
  declare_tensors(kernel, *part_.program);
  return kernel;
}

}  // namespace

int64_t ScatterPlan::instances() const { return product(ranges); }

bool waits_for_updates(const poly::Scop& part) {
  for (const isl::set& domain : poly::sets_of(poly::node_domain(part.schedule.root()))) {
    const std::string id = poly::tuple_name(domain);
    const bool scatters = part.statement(id).kind == poly::Statement::Kind::kUpdate &&
                          std::any_of(part.accesses.begin(), part.accesses.end(), [&](const poly::Access& access) {
                            return access.statement == id && access.kind == poly::Access::Kind::kMayWrite;
                          });
    const std::optional<std::vector<ir::Range>> ranges = scatters ? ranges_of(domain) : std::nullopt;
    if (ranges && product(*ranges) >= kLongChain * parallel_iterations(part, id)) return true;
  }
  return false;
}

std::optional<ScatterPlan> plan_scatter(const poly::Scop& part, const options::MappingOptions& options,
                                        const Device& device, Reasons& reasons) {
  ScatterPlan plan;
  plan.statement = scattered_statement(part, options.strict);
  if (plan.statement == nullptr) return std::nullopt;
  const std::optional<std::vector<ir::Range>> ranges =
      ranges_of(poly::sets_of(poly::node_domain(part.schedule.root())).at(0));
  if (!ranges) return std::nullopt;
  plan.ranges = *ranges;
  const int64_t parallel = parallel_iterations(part, plan.statement->id), instances = plan.instances();
  const bool busy = parallel >= device.processors * kBusyThreads;
  if (busy || instances < kWorthwhile || instances < 2 * parallel) return std::nullopt;
  if (!options.register_tile.empty() || !options.tile.empty()) {
    reasons.options.push_back("atomic updates have no tiles");
    return std::nullopt;
  }
  plan.threads = std::min({kThreads, device.threads_per_block, device.block[0]});
  if (!options.map_to_threads.empty()) plan.threads = options.map_to_threads[0];
  for (size_t axis = 1; axis < options.map_to_threads.size(); ++axis) {
    if (options.map_to_threads[axis] > 1) return std::nullopt;
  }
  plan.blocks = std::clamp<int64_t>(instances / (plan.threads * kTurns), 1,
                                    std::min(device.processors * kBlocksOfProcessor, device.grid[0]));
  const ir::Tensor& tensor = part.program->tensor(plan.statement->tensor);
  const int64_t bytes = elements_of(tensor) * tensor.type.bytes();
  const int64_t most = std::min({kSharedBytes, options.max_shared_memory.value_or(kSharedBytes), device.shared_bytes});
  plan.in_shared =
      options.use_shared_memory.value_or(true) && bytes <= most && instances / plan.blocks >= 2 * elements_of(tensor);
  return plan;
}

options::MappingOptions options_of(const ScatterPlan& plan) {
  options::MappingOptions options;
  options.map_to_threads = {plan.threads};
  return options;
}

tile::Kernel atomic_scatter(const poly::Scop& part, const ScatterPlan& plan, const std::string& name) {
  return Writer(part, plan).run(name);
}

}  // namespace tc::gpu
