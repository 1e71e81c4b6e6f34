#include "tc/gpu/cost/estimate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tc/gpu/atoms/functions.h"
#include "tc/ir/halide_compat.h"
#include "tc/tile/shared_divisors.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

constexpr double kWarp = 32, kSector = 32;  // threads; bytes
constexpr double kIssued = 4;               ///< warps' instructions of a processor in a cycle
constexpr double kLaunchUs = 1.1;
constexpr double kReadCycles = 700, kCachedReadCycles = 50, kBarrierCycles = 60;
constexpr double kOperationsOfProduct = 2;  ///< with its addition

/// Of a call that reads no tensor.
double instructions_of_call(const hi::Call& call) {
  constexpr double kQuotient = 6, kPower = 1;
  if (call.name == tile::kQuotient || call.name == tile::kNarrowQuotient) return kQuotient;
  return call.name == tile::kExp2ForFloat16 ? kPower : instructions_of_function(call.name);
}

/// Of one thread, on average over those of the grid.
struct Work {
  double instructions = 0;
  double operations = 0;
  double tensor_products = 0;  ///< multiplications with additions by tensor cores
  double tensor_work = 0;      ///< as many of 16-bit floats as take the same time
  double sectors = 0;          ///< bytes of the L2 cache's sectors
  double shared_bytes = 0;
  double rounds = 0;  ///< reads of global memory that wait for those before them
  double barriers = 0;
};

/// Replaces a thread's number by a lane's, and all other variables by 0.
class OfLane : public hi::IRMutator {
 public:
  explicit OfLane(int64_t lane) : lane_(lane) {}

 private:
  using IRMutator::visit;
  Expr visit(const hi::Variable* op) override {
    return hi::make_const(op->type, op->name == tile::kThread[0] ? lane_ : 0);
  }
  int64_t lane_;
};

/// Counts what a thread of a kernel does.
class Counter {
 public:
  Counter(const tile::Kernel& kernel, double unknown_trips)
      : threads_(static_cast<double>(kernel.block[0])), unknown_trips_(unknown_trips), maps_(kernel.maps) {
    for (const tile::Tensor& tensor : kernel.tensors) tensors_[tensor.name] = &tensor;
    tile::for_each_node(kernel.body, [&](const tile::Node& node) {
      const tile::Tensor* tensor = tile::allocated_tensor(node);
      if (!tensor) return;
      tensors_[tensor->name] = tensor;
      if (tensor->memory == tile::Memory::kRegister) {
        registers += static_cast<double>(tensor->elements()) * tensor->type.bytes() / 4;
      }
    });
    visit(kernel.body, 1);
  }

  Work work;
  double registers = 40;
  std::map<std::string, double> touched;  ///< bytes that threads ask for, per global tensor

 private:
  void visit(const tile::NodePtr& node, double times) {
    if (!node) return;
    tile::match(
        *node, [&](const tile::Structure auto& n) { visit(n, times); },
        [&](const tile::OneOf<tile::Move, tile::Barrier, tile::WaitGroup> auto& n) { visit(n, times); },
        [&](const tile::Collective auto& n) { visit(n, times); },
        [&](const tile::OneOf<tile::Store, tile::Atomic> auto& n) {
          count(n.value, times);
          access(n.tensor, n.subscripts, 1, times, false);
        },
        [&](const tile::OneOf<tile::BoxCopy, tile::BoxStore> auto& n) { visit(n, times); },
        [&](const tile::ClusterLoad& n) {
          work.instructions += 2 * times;  // the address too
          access(n.source, n.source_subscripts, n.elements, times, false);
        },
        [](const tile::OneOf<tile::ClusterStep, tile::WaitForKernels, tile::StartNextKernel, tile::CommitGroup,
                             tile::RingStep, tile::MatMulWait, tile::BoxStep> auto&) {});
  }

  void visit(const tile::Sequence& sequence, double times) {
    for (const tile::NodePtr& child : sequence.children) visit(child, times);
  }

  void visit(const tile::If& branch, double times) {
    work.instructions += times;
    const double share = branch.else_case ? share_of_threads(branch.condition) : share_of_times(branch.condition);
    visit(branch.then_case, times * share);
  }
  /// Of the times that a condition is looked at: of x % 2 == y half.
  static double share_of_times(const Expr& condition) {
    const auto* equal = condition.as<hi::EQ>();
    const auto* remainder = equal ? equal->a.as<hi::Mod>() : nullptr;
    const int64_t* by = remainder ? ir::constant_int(remainder->b) : nullptr;
    return by && *by > 0 && !hi::is_const(equal->b) ? 1 / static_cast<double>(*by) : 1;
  }
  /// Of the block's threads, if a branch is for its first warps.
  double share_of_threads(const Expr& condition) const {
    const auto* below = condition.as<hi::LT>();
    const int64_t* warps = below ? ir::constant_int(below->b) : nullptr;
    const Expr warp = below ? hi::substitute(lets_, below->a) : Expr();
    const auto* quotient = warp.defined() ? warp.as<hi::Div>() : nullptr;
    const auto* thread = quotient ? quotient->a.as<hi::Variable>() : nullptr;
    const bool counts = thread && thread->name == tile::kThread[0] && hi::is_const(quotient->b, kWarp);
    return counts && warps ? std::min(1.0, static_cast<double>(*warps) * kWarp / threads_) : 1;
  }

  void visit(const tile::Let& let, double times) {
    lets_[let.name] = hi::substitute(lets_, let.value);
    visit(let.body, times);
  }

  void visit(const tile::Allocate& allocate, double times) { visit(allocate.body, times); }

  void visit(const tile::Barrier& n, double times) {
    if (n.scope != tile::Barrier::Scope::kWarp) work.barriers += times;
    waiting_ = false;
  }

  /// Reads of an unrolled loop are asked for at once; those of another wait for its turns.
  void visit(const tile::For& loop, double times) {
    const double trips = trips_of(loop);
    if (!loop.unrolled) {
      work.instructions += 2 * times * trips;
      waiting_ = false;
    }
    const bool before = waiting_;
    const double rounds = work.rounds;
    visit(loop.body, times * trips);
    if (loop.unrolled && work.rounds > rounds) {
      work.rounds = rounds + (before ? 0 : times);
      waiting_ = true;
    }
    if (!loop.unrolled) waiting_ = false;
  }

  /// Where threads share iterations out among themselves, those of the first thread of all.
  double trips_of(const tile::For& loop) const {
    const Expr trips = hi::simplify((loop.end - loop.begin + loop.step - 1) / loop.step);
    if (const int64_t* constant = ir::constant_int(trips)) return static_cast<double>(std::max<int64_t>(*constant, 0));
    const Expr of_first = hi::simplify(OfLane(0).mutate(hi::substitute(lets_, trips)));
    const int64_t* first = ir::constant_int(of_first);
    return first && *first > 0 ? static_cast<double>(*first) : unknown_trips_;
  }

  void visit(const tile::Move& move, double times) {
    access(move.source, move.source_subscripts, move.elements, times, !move.asynchronous);
    access(move.destination, move.destination_subscripts, move.elements, times, false);
  }

  void visit(const tile::Shuffle& shuffle, double times) {
    count(shuffle.value, times);
    work.instructions += 2 * times;
  }

  /// TF32's products take twice as long as those of 16-bit floats.
  void count_products(ScalarType operand, double products) {
    work.tensor_products += products;
    work.tensor_work += products * (operand == ScalarType::kFloat32 ? 2 : 1);
  }

  /// A product of tiles is one instruction of a warp.
  void visit(const tile::MatMul& n, double times) {
    const double products = static_cast<double>(n.atom->m * n.atom->n * n.atom->k) / kWarp;
    work.instructions += times;
    work.operations += 2 * products * times;
    count_products(n.atom->operand, products * times);
  }

  void visit(const tile::MatrixLoad& n, double times) { matrices(n.matrices(), times); }
  void visit(const tile::MatrixStore& n, double times) { matrices(n.matrices(), times); }

  /// Between shared memory and registers, by one instruction of a warp.
  void matrices(int count, double times) {
    work.instructions += times;
    work.shared_bytes += times * tile::kMatrixRow * 2 * count * tile::kMatrixRow / kWarp;
  }

  /// By a warpgroup together.
  void visit(const tile::WarpgroupMatMul& n, double times) {
    using Atom = tile::WarpgroupAtom;
    const double products = static_cast<double>(Atom::kM * n.atom.n * n.atom.k() * n.slices) / Atom::kThreads;
    work.instructions += times * n.slices;
    work.operations += 2 * products * times;
    count_products(n.atom.a, products * times);
  }

  /// One thread copies for the whole block.
  void visit(const tile::BoxCopy& n, double times) { box(n.map, n.tensor, times / threads_); }
  /// One thread stores what those of its warpgroup have computed.
  void visit(const tile::BoxStore& n, double times) { box(n.map, n.tensor, times / tile::WarpgroupAtom::kThreads); }

  void box(const std::string& name, const std::string& tensor, double times) {
    double bytes = tensors_.at(tensor)->type.bytes();
    for (const tile::TensorMap& map : maps_) {
      if (map.name != name) continue;
      for (const int64_t extent : map.box) bytes *= static_cast<double>(extent);
    }
    work.sectors += times * bytes;
    touched[tensor] += times * bytes;
  }

  void visit(const tile::Ring& ring, double times) { visit(ring.body, times); }

  /// Most of it has been hidden by the steps before.
  void visit(const tile::WaitGroup&, double times) { work.rounds += times / 3; }

  void count(const Expr& value, double times) {
    struct Visitor : hi::IRVisitor {
      Visitor(Counter& c, double t) : counter(c), times(t) {}
      Counter& counter;
      double times;
      using hi::IRVisitor::visit;
      void visit(const hi::Call* op) override {
        if (counter.tensors_.count(op->name) > 0) {
          counter.access(op->name, op->args, 1, times, true);
          return;  // subscripts are computed once for many accesses
        }
        counter.work.instructions += instructions_of_call(*op) * times;
        counter.work.operations += op->type.is_float() ? times : 0;
        hi::IRVisitor::visit(op);
      }
      void add(const Halide::Type& type, double instructions) {
        counter.work.instructions += instructions * times;
        counter.work.operations += type.is_float() ? times : 0;
      }
      void visit(const hi::Add* op) override {
        add(op->type, op->a.as<hi::Mul>() || op->b.as<hi::Mul>() ? 0 : 1), IRVisitor::visit(op);
      }
      void visit(const hi::Sub* op) override { add(op->type, 1), IRVisitor::visit(op); }
      void visit(const hi::Mul* op) override { add(op->type, 1), IRVisitor::visit(op); }
      void visit(const hi::Div* op) override { add(op->type, 8), IRVisitor::visit(op); }
      void visit(const hi::Min* op) override { add(op->type, 1), IRVisitor::visit(op); }
      void visit(const hi::Max* op) override { add(op->type, 1), IRVisitor::visit(op); }
      void visit(const hi::Select* op) override { add(op->type, 1), IRVisitor::visit(op); }
      void visit(const hi::Cast* op) override {
        counter.work.instructions += times;
        IRVisitor::visit(op);
      }
    } visitor(*this, times);
    value.accept(&visitor);
  }

  void access(const std::string& name, const std::vector<Expr>& subscripts, int elements, double times, bool waits) {
    const auto at = tensors_.find(name);
    if (at == tensors_.end() || at->second->memory == tile::Memory::kRegister) return;
    const tile::Tensor& tensor = *at->second;
    const double bytes = static_cast<double>(elements) * tensor.type.bytes();
    work.instructions += times;
    if (tensor.memory == tile::Memory::kShared) {
      work.shared_bytes += times * std::max(bytes, 4.0);
      return;
    }
    work.sectors += times * sector_bytes(tensor, subscripts, bytes);
    touched[name] += times * bytes;
    if (waits && !waiting_) {
      work.rounds += times;
      waiting_ = true;
    }
  }

  /// A thread's share of the sectors that its warp's access touches.
  double sector_bytes(const tile::Tensor& tensor, const std::vector<Expr>& subscripts, double bytes) const {
    double apart = 0;
    for (size_t d = subscripts.size(); d-- > 0;) {
      const Expr here = hi::substitute(lets_, subscripts[d]);
      const auto at = [&](int thread) { return hi::substitute(tile::kThread[0], Expr(thread), here); };
      const Expr step = hi::simplify(at(1) - at(0)), next = hi::simplify(at(2) - at(1));
      const int64_t* constant = ir::constant_int(step);
      const bool is_even = threads_ <= 2 || hi::equal(step, next);
      if (!constant || !is_even) return uneven_sector_bytes(tensor, subscripts, bytes);
      apart += std::abs(static_cast<double>(*constant * tensor.layout[static_cast<int>(d)](1))) * tensor.type.bytes();
    }
    if (apart == 0) return std::max(bytes, kSector) / std::min(kWarp, threads_);
    return std::clamp(apart, bytes, std::max(bytes, kSector));
  }

  /// The same where threads step unevenly, as around the ends of rows: by the elements of a first warp in a loop's
  /// first turn. A sector each, if data choose the elements.
  double uneven_sector_bytes(const tile::Tensor& tensor, const std::vector<Expr>& subscripts, double bytes) const {
    const auto lanes = static_cast<int64_t>(std::min(kWarp, threads_));
    std::set<int64_t> sectors;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t at = 0;
      for (size_t d = subscripts.size(); d-- > 0;) {
        const Expr subscript = hi::simplify(OfLane(lane).mutate(hi::substitute(lets_, subscripts[d])));
        const int64_t* constant = ir::constant_int(subscript);
        if (!constant) return std::max(bytes, kSector);
        at += *constant * tensor.layout[static_cast<int>(d)](1) * tensor.type.bytes();
      }
      const auto sector = static_cast<int64_t>(kSector);
      for (int64_t s = at / sector; s <= (at + static_cast<int64_t>(bytes) - 1) / sector; ++s) sectors.insert(s);
    }
    return static_cast<double>(sectors.size()) * kSector / static_cast<double>(lanes);
  }

  double threads_, unknown_trips_;
  const std::vector<tile::TensorMap>& maps_;
  std::map<std::string, const tile::Tensor*> tensors_;
  std::map<std::string, Expr> lets_;
  bool waiting_ = false;  ///< for reads that those to come may join
};

double product(const std::array<int64_t, 3>& values) {
  double result = 1;
  for (int64_t v : values) result *= static_cast<double>(v);
  return result;
}

}  // namespace

const char* Estimate::limit() const {
  const std::pair<double, const char*> terms[] = {
      {kLaunchUs, "the launch"},  {memory_us, "memory"},       {cache_us, "cache"},     {shared_us, "shared memory"},
      {issue_us, "instructions"}, {tensor_us, "tensor cores"}, {latency_us, "latency"}, {blocks_us, "blocks"}};
  return std::max_element(std::begin(terms), std::end(terms))->second;
}

double tensor_operations_per_us(const Device& device) {
  return kOperationsOfProduct * std::max(device.tensor_products, 1.0) * static_cast<double>(device.processors) * 1e3 *
         device.gigahertz;
}

double operations_per_us(const Device& device) {
  return kOperationsOfProduct * kIssued * kWarp * static_cast<double>(device.processors) * 1e3 * device.gigahertz;
}

Estimate estimate(const tile::Kernel& kernel, const Device& device, const Expected& expected) {
  constexpr double kThreads = 2048, kRegisters = 65536, kBlocks = 32, kL2BytesOfCycle = 3000;
  constexpr double kSharedBytes = 128;  // of a processor in a cycle, or of its own cache
  const Counter counter(kernel, expected.unknown_trips);
  const Work& work = counter.work;
  const double block = std::ceil(product(kernel.block) / kWarp) * kWarp, blocks = product(kernel.grid);
  const double threads = product(kernel.block) * blocks, warps = block / kWarp * blocks;
  const double resident = std::max(
      1.0, std::floor(std::min({kBlocks, kThreads / block, kRegisters / (block * std::min(counter.registers, 255.0)),
                                static_cast<double>(device.shared_bytes) /
                                    std::max(1.0, static_cast<double>(kernel.shared_bytes()))})));
  const double processors = static_cast<double>(device.processors), cycles = 1e3 * device.gigahertz;
  const double busy = std::min(processors, blocks);
  Estimate e;
  double asked_bytes = 1, again = 0, gone_through = 0;
  for (const tile::Tensor& tensor : kernel.tensors) {
    const auto touched = counter.touched.find(tensor.name);
    if (touched == counter.touched.end()) continue;
    const double whole = static_cast<double>(tensor.elements()) * tensor.type.bytes();
    const double asked = touched->second * threads;
    e.bytes += std::min(whole, asked);
    asked_bytes += asked;
    if (expected.in_passes.count(tensor.name) == 0 || asked <= whole) continue;
    again += asked - whole;
    gone_through += std::min(whole, asked - whole);
  }
  const double at_once = gone_through * std::min(1.0, processors * resident / blocks);
  e.bytes += again * std::max(0.0, 1 - static_cast<double>(device.cache_bytes) / std::max(at_once, 1.0));
  e.operations = work.operations * threads;
  e.tensor_operations = kOperationsOfProduct * work.tensor_products * threads;
  e.waves = blocks / (processors * resident);
  e.occupancy = std::min(resident, std::ceil(blocks / processors)) * block / kThreads;
  e.memory_us = e.bytes / device.memory_bytes_per_us;
  e.compute_us = (e.operations - e.tensor_operations) / operations_per_us(device);
  e.cache_us = work.sectors * threads / (kL2BytesOfCycle * cycles);
  if (expected.asked_again > 0) {
    e.cache_us = std::max(work.sectors * threads / (kSharedBytes * busy * cycles),
                          expected.asked_again * e.bytes / (kL2BytesOfCycle * cycles));
  }
  e.shared_us = work.shared_bytes * threads / (kSharedBytes * busy * cycles);
  e.issue_us = work.instructions * warps / (kIssued * busy * cycles);
  if (work.tensor_products > 0) {
    e.tensor_us = work.tensor_work * threads / (std::max(device.tensor_products, 1.0) * busy * cycles);
    e.compute_us += kOperationsOfProduct * work.tensor_work * threads / tensor_operations_per_us(device);
  }
  const double read_cycles = kCachedReadCycles + kReadCycles * e.bytes / asked_bytes;
  e.latency_us = std::ceil(e.waves) * (work.rounds * read_cycles + work.barriers * kBarrierCycles) / cycles;
  e.blocks_us = blocks / device.blocks_per_us;
  if (expected.planned_us > 0) {
    e.us = std::max({expected.planned_us, kLaunchUs + e.memory_us, kLaunchUs + e.blocks_us});
    return e;
  }
  double sum = 0;
  for (const double term : {e.memory_us, e.cache_us, e.shared_us, e.issue_us, e.tensor_us, e.latency_us, e.blocks_us})
    sum += std::pow(term, 4);
  e.us = kLaunchUs + std::pow(sum, 0.25);
  return e;
}

}  // namespace tc::gpu
