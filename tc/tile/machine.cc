#include "tc/tile/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

#include "tc/support/check.h"
#include "tc/tile/lanes.h"

namespace tc::tile {
namespace {

constexpr std::byte kPoison{0xCB};

void fill(Lanes& lanes, Representation representation, int64_t integer, double real) {
  for (int l = 0; l < kLanes; ++l) {
    if (representation == Representation::kInteger) lanes.i[l] = integer;
    if (representation == Representation::kFloat) lanes.f[l] = static_cast<float>(real);
    if (representation == Representation::kDouble) lanes.d[l] = real;
  }
}

bool is_memory(Op op) { return op >= Op::kLoad; }
bool is_control(Op op) { return op >= Op::kEnter && op < Op::kLoad; }

}  // namespace

Machine::Machine(const Kernel& kernel, const KernelsBefore& before, std::map<std::string, GlobalBuffer>& globals,
                 const Arguments& arguments, const SimulatorOptions& options, Findings& findings)
    : kernel_(kernel),
      before_(before),
      globals_(globals),
      arguments_(arguments),
      options_(options),
      findings_(findings),
      code_(compile(kernel)),
      random_(options.seed) {
  set_up_tensors();
  set_up_warps();
  if (kernel.cluster_blocks() == 1) return;
  for (const TensorState& tensor : tensors_) {
    shared_shadows_.push_back(tensor.is_global ? std::vector<Shadow>() : tensor.shadow);
  }
  blocks_.assign(static_cast<size_t>(kernel.cluster_blocks()), *this);
}

void Machine::set_up_tensors() {
  shared_.resize(static_cast<size_t>(code_.shared_bytes));
  shared_defined_.resize(code_.tensors.size());
  tensors_.resize(code_.tensors.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    TensorState& state = tensors_[i];
    state.code = &code_.tensors[i];
    const Tensor& tensor = state.code->tensor;
    state.bytes = static_cast<int>(element_bytes(tensor.type));
    state.is_global = tensor.memory == Memory::kGlobal;
    if (tensor.memory == Memory::kShared) {
      state.data = shared_.data() + state.code->shared_offset;
      shared_defined_[i].resize(static_cast<size_t>(tensor.elements()));
      if (options_.check) state.defined = &shared_defined_[i];
    } else if (state.is_global) {
      GlobalBuffer& buffer = globals_.at(tensor.name);
      state.data = buffer.data;
      if (options_.check && !buffer.defined.empty()) state.defined = &buffer.defined;
    }
    state.waits_to_read = code_.waits && state.is_global && before_.write(tensor.name);
    state.waits_to_write = code_.waits && state.is_global && before_.touch(tensor.name);
    state.watched = options_.check && !state.code->filled &&
                    (tensor.memory == Memory::kShared || (state.is_global && tensor.written));
    if (state.watched) state.shadow.resize(static_cast<size_t>(tensor.elements()));
  }
}

void Machine::set_up_warps() {
  const int64_t threads = kernel_.block[0] * kernel_.block[1] * kernel_.block[2];
  warps_.resize(static_cast<size_t>((threads + kLanes - 1) / kLanes));
  for (size_t w = 0; w < warps_.size(); ++w) {
    Warp& warp = warps_[w];
    warp.index = static_cast<int>(w);
    const int64_t lanes = std::min<int64_t>(kLanes, threads - static_cast<int64_t>(w) * kLanes);
    warp.existing = lanes == kLanes ? ~uint32_t{0} : (uint32_t{1} << lanes) - 1;
    warp.registers.resize(static_cast<size_t>(code_.registers), Lanes{});
    warp.elements.resize(static_cast<size_t>(code_.register_elements), Lanes{});
    warp.element_defined.resize(static_cast<size_t>(code_.register_elements));
    for (const Code::Constant& c : code_.constants) {
      fill(warp.registers[c.reg], c.representation, c.integer, c.real);
    }
    for (const Code::ScalarSlot& scalar : code_.scalars) {
      const auto& value = arguments_.scalars.at(scalar.name);
      const bool whole = std::holds_alternative<int64_t>(value);
      fill(warp.registers[scalar.reg], representation_of(scalar.type), whole ? std::get<int64_t>(value) : 0,
           whole ? 0 : std::get<double>(value));
    }
    for (int l = 0; l < kLanes; ++l) {
      int64_t thread = static_cast<int64_t>(w) * kLanes + l;
      for (size_t i = 0; i < 3; ++i) {
        if (code_.thread_registers[i] >= 0) warp.registers[code_.thread_registers[i]].i[l] = thread % kernel_.block[i];
        thread /= kernel_.block[i];
      }
    }
  }
}

Counters Machine::run() {
  std::array<int64_t, 3> clusters{};
  for (size_t i = 0; i < 3; ++i) clusters[i] = kernel_.grid[i] / kernel_.cluster[i];
  std::vector<int64_t> order(static_cast<size_t>(clusters[0] * clusters[1] * clusters[2]));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random_);
  for (int64_t number : order) {
    run_cluster({number % clusters[0] * kernel_.cluster[0], number / clusters[0] % clusters[1] * kernel_.cluster[1],
                 number / clusters[0] / clusters[1] * kernel_.cluster[2]});
    if (is_stuck_) break;
  }
  return counters_;
}

void Machine::start_block(const std::array<int64_t, 3>& block) {
  constexpr uint32_t kStamps = 4096;  // of a block of a cluster
  block_ = block;
  block_start_ = stamp_ = last_stamp_ + 1;
  last_stamp_ = blocks_.empty() ? stamp_ : block_start_ + kStamps;
  block_end_ = blocks_.empty() ? UINT32_MAX : last_stamp_;
  std::fill(shared_.begin(), shared_.end(), kPoison);
  for (auto& defined : shared_defined_) std::fill(defined.begin(), defined.end(), uint8_t{0});
  for (Warp& warp : warps_) {
    warp.state = State::kReady;
    warp.mask = warp.existing;
    warp.waited = 0;
    warp.saved.clear();
    warp.pc = 0;
    warp.epoch = ++epoch_;
    warp.group_epoch = 0;
    warp.group.fill(0);
    warp.arrivals = warp.cluster_waits = 0;
    warp.copies.clear();
    for (size_t i = 0; i < 3; ++i) {
      if (code_.block_registers[i] >= 0) warp.registers[code_.block_registers[i]].i.fill(block[i]);
    }
  }
  start_rings();
  start_stores();
  start_cluster_loads();
}

/// The block that runs lies in the machine, and what lies in its place among the others is of no use.
void Machine::switch_to(size_t number) {
  if (number == number_ || blocks_.empty()) return;
  const auto swap_shadows = [&] {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (!tensors_[i].is_global) std::swap(tensors_[i].shadow, shared_shadows_[i]);
    }
  };
  swap_shadows();
  std::swap(static_cast<BlockState&>(*this), blocks_[number_]);
  std::swap(static_cast<BlockState&>(*this), blocks_[number]);
  swap_shadows();
  number_ = number;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    TensorState& state = tensors_[i];
    if (state.code->tensor.memory != Memory::kShared) continue;
    state.data = shared_.data() + state.code->shared_offset;
    if (state.defined) state.defined = &shared_defined_[i];
  }
}

/// Visits all blocks of the cluster; then the one that ran before runs on.
template <typename Visit>
void Machine::for_each_block(Visit visit) {
  const size_t before = number_;
  for (size_t number = 0; number < std::max<size_t>(blocks_.size(), 1); ++number) {
    switch_to(number);
    visit();
  }
  switch_to(before);
}

/// The blocks of a group, by their numbers in the cluster.
std::vector<size_t> Machine::members(const BlockGroup& group) const {
  const auto stride = static_cast<size_t>(group.stride), count = static_cast<size_t>(group.count);
  const size_t first = number_ - number_ / stride % count * stride;
  std::vector<size_t> result;
  for (size_t i = 0; i < count; ++i) result.push_back(first + i * stride);
  return result;
}

bool Machine::is_in_state(State state) const {
  return std::any_of(warps_.begin(), warps_.end(), [&](const Warp& warp) { return warp.state == state; });
}

void Machine::run_cluster(const std::array<int64_t, 3>& first) {
  arrived_.clear();
  for_each_block([&] {
    const auto number = static_cast<int64_t>(number_);
    const std::array<int64_t, 3>& extents = kernel_.cluster;
    start_block({first[0] + number % extents[0], first[1] + number / extents[0] % extents[1],
                 first[2] + number / extents[0] / extents[1]});
  });
  while (any_goes_on() || release_cluster_barrier()) {
  }
  bool has_ended = true;
  for_each_block([&] {
    for (const State state : {State::kInRing, State::kAtClusterBarrier, State::kInCluster, State::kAtGroupBarrier}) {
      has_ended &= !is_in_state(state);
    }
    end_stores();
  });
  if (!has_ended) return report_deadlock();
  for_each_block([&] {
    end_rings();
    end_cluster_loads();
  });
}

/// Lets one of the cluster's blocks go on: any, where several can. False if none can.
bool Machine::any_goes_on() {
  if (!blocks_.empty()) switch_to(random_() % blocks_.size());
  if (go_on()) return true;
  for (size_t number = 0; number < blocks_.size(); ++number) {
    switch_to(number);
    if (go_on()) return true;
  }
  return false;
}

/// Lets a warp of the block go on, or ends what its warps wait for. False if there is neither.
bool Machine::go_on() {
  release_group_barriers();
  std::vector<Warp*> ready;
  for (Warp& warp : warps_) {
    if (warp.state == State::kReady) ready.push_back(&warp);
  }
  if (ready.empty()) {
    if (wake_in_cluster()) return true;
    if (is_in_state(State::kInRing)) return wake_in_rings();
    if (!is_in_state(State::kAtBarrier)) return false;
    release_barrier();
    return true;
  }
  budget_ = static_cast<int64_t>(random_() % 64) + 1;
  resume(*ready[random_() % ready.size()]);
  happen();
  progress_stores();
  return true;
}

uint32_t Machine::new_stamp() {
  if (blocks_.empty()) return ++last_stamp_;
  TC_CHECK(stamp_ + 1 < block_end_, "a block of a cluster has too many barriers");
  return stamp_ + 1;
}

/// Opens the barrier of the cluster, if threads wait there and no other can go on. What blocks have done to each other
/// before has arrived then.
bool Machine::release_cluster_barrier() {
  bool waits = false, in_ring = false;
  int site = -1;
  for_each_block([&] {
    waits |= is_in_state(State::kAtClusterBarrier);
    in_ring |= is_in_state(State::kInRing);
    for (const Warp& warp : warps_) {
      if (site < 0 && warp.state == State::kAtClusterBarrier) site = warp.barrier_site;
    }
  });
  if (!waits || in_ring) return false;
  for_each_block([&] {
    for (const Filling& release : std::exchange(releases_, {})) count_release(release);
    stamp_ = new_stamp();
    for (Warp& warp : warps_) {
      if (warp.state != State::kAtClusterBarrier || warp.barrier_site != site) {
        report(Finding::Kind::kDivergence, site, [&] {
          return fmt::format("{}: thread {} of block {} does not wait at the barrier at which others of the cluster do",
                             kernel_.name, thread_text(warp.index * kLanes), block_text());
        });
      }
      if (warp.state == State::kAtClusterBarrier) warp.state = State::kReady;
    }
  });
  ++counters_.barriers;
  return true;
}

void Machine::release_barrier() {
  int site = -1;
  for (const Warp& warp : warps_) {
    if (warp.state != State::kAtBarrier) continue;
    if (site < 0) site = warp.barrier_site;
    if (warp.barrier_site != site) {
      report(Finding::Kind::kDivergence, site, [&] {
        return fmt::format("{}: threads of block {} wait at different barriers", kernel_.name, block_text());
      });
    }
  }
  for (const Warp& warp : warps_) {
    if (warp.state != State::kDone && warp.state != State::kAtClusterBarrier && warp.state != State::kInCluster)
      continue;
    report(Finding::Kind::kDivergence, site, [&] {
      return fmt::format("{}: thread {} of block {} ends without the barrier at which other threads of the block wait",
                         kernel_.name, thread_text(warp.index * kLanes), block_text());
    });
  }
  stamp_ = new_stamp();
  ++counters_.barriers;
  for (Warp& warp : warps_) {
    if (warp.state == State::kAtBarrier) warp.state = State::kReady;
  }
}

/// Opens the barriers of warpgroups at which all their warps wait.
void Machine::release_group_barriers() {
  constexpr size_t kWarps = WarpgroupAtom::kThreads / kLanes;
  for (size_t first = 0; first + kWarps <= warps_.size(); first += kWarps) {
    const std::span<Warp> group = std::span(warps_).subspan(first, kWarps);
    const int site = group[0].barrier_site;
    const bool all_wait = std::ranges::all_of(
        group, [&](const Warp& w) { return w.state == State::kAtGroupBarrier && w.barrier_site == site; });
    if (!all_wait) continue;
    ++epoch_;
    for (Warp& warp : group) {
      warp.state = State::kReady;
      warp.group_epoch = epoch_;
    }
  }
}

void Machine::resume(Warp& warp) {
  while (warp.state == State::kReady && budget_ > 0) {
    const Instruction& n = code_.instructions[warp.pc];
    if (is_control(n.op)) {
      if (control(warp, n)) continue;
    } else if (is_memory(n.op)) {
      memory(warp, n);
    } else {
      execute(n, warp.registers.data());
    }
    ++warp.pc;
  }
}

uint32_t Machine::lanes_where(const Warp& warp, int reg, bool uniform) const {
  const auto& values = warp.registers[reg].i;
  if (uniform) return values[0] ? ~uint32_t{0} : 0;
  uint32_t mask = 0;
  for (int l = 0; l < kLanes; ++l) mask |= static_cast<uint32_t>(values[l] != 0) << l;
  return mask;
}

/// True if it jumped.
bool Machine::control(Warp& warp, const Instruction& n) {
  const auto jump = [&] {
    warp.pc = static_cast<size_t>(static_cast<int64_t>(warp.pc) + n.immediate);
    return true;
  };
  switch (n.op) {
    case Op::kEnter:
      warp.saved.push_back(warp.mask);
      return false;
    case Op::kIf:
      warp.saved.push_back(warp.mask);
      warp.mask &= lanes_where(warp, n.a, n.uniform);
      return warp.mask == 0 && jump();
    case Op::kElse:
      warp.mask = warp.saved.back() & ~lanes_where(warp, n.a, false);
      return warp.mask == 0 && jump();
    case Op::kLeave:
      warp.mask = warp.saved.back();
      warp.saved.pop_back();
      return false;
    case Op::kLoopTest: {
      const auto& a = warp.registers[n.a].i;
      const auto& b = warp.registers[n.b].i;
      if (n.uniform) return a[0] >= b[0] && jump();
      uint32_t inside = 0;
      for (int l = 0; l < kLanes; ++l) inside |= static_cast<uint32_t>(a[l] < b[l]) << l;
      warp.mask &= inside;
      return warp.mask == 0 && jump();
    }
    case Op::kLoopNext: {
      Lanes& variable = warp.registers[n.dst];
      const Lanes& step = warp.registers[n.a];
      for (int l = 0; l < kLanes; ++l) {
        variable.i[l] = static_cast<int64_t>(static_cast<uint64_t>(variable.i[l]) + static_cast<uint64_t>(step.i[l]));
      }
      --budget_;
      return jump();
    }
    case Op::kBlockBarrier:
    case Op::kWarpBarrier:
    case Op::kGroupBarrier:
    case Op::kClusterBarrier:
      if (warp.mask != warp.existing) {
        report(Finding::Kind::kDivergence, n.a, [&] {
          return fmt::format(
              "{}: thread {} of block {} does not reach a barrier that other threads of its warp reach", kernel_.name,
              thread_text(warp.index * kLanes + std::countr_zero(warp.existing & ~warp.mask)), block_text());
        });
      }
      warp.epoch = ++epoch_;
      if (n.op != Op::kWarpBarrier) {
        warp.state = n.op == Op::kBlockBarrier   ? State::kAtBarrier
                     : n.op == Op::kGroupBarrier ? State::kAtGroupBarrier
                                                 : State::kAtClusterBarrier;
        warp.barrier_site = n.a;
      }
      return false;
    case Op::kArriveInCluster:
      arrive_in_cluster(warp, n.a);
      return false;
    case Op::kWaitForCluster:
      warp.state = State::kInCluster;
      warp.barrier_site = n.a;
      return false;
    case Op::kWaitForKernels:
      warp.waited |= warp.mask;
      return false;
    case Op::kMakeRing:
      make_ring(warp, n);
      return false;
    case Op::kAcquire:
    case Op::kAwait:
    case Op::kDrain:
    case Op::kTake:
      return ring_wait(warp, n);
    default:
      if (code_.waits && warp.waited != warp.existing) {
        report(Finding::Kind::kEarly, -1, [&] {
          const int lane = std::countr_zero(warp.existing & ~warp.waited);
          return fmt::format("{}: thread {} of block {} ends without having waited for the kernels before",
                             kernel_.name, thread_text(warp.index * kLanes + lane), block_text());
        });
      }
      if (!warp.products.empty()) {
        report(Finding::Kind::kPending, warp.products.front().site, [&] {
          return fmt::format("{}: warp {} of block {} ends without having waited for the products '{}'", kernel_.name,
                             warp.index, block_text(), code_.sites[warp.products.front().site]);
        });
      }
      check_stores_read(warp);
      warp.state = State::kDone;
      return false;
  }
}

Moment Machine::moment(const Warp& warp, int lane, int site) const {
  return {block_start_, block_end_,      stamp_, warp.epoch, static_cast<uint16_t>(warp.index * kLanes + lane),
          site,         warp.group_epoch};
}

std::string Machine::thread_text(int thread) const {
  const int64_t x = thread % kernel_.block[0];
  const int64_t y = thread / kernel_.block[0] % kernel_.block[1];
  const int64_t z = thread / kernel_.block[0] / kernel_.block[1];
  return fmt::format("({},{},{})", x, y, z);
}

std::string Machine::block_text() const { return fmt::format("({},{},{})", block_[0], block_[1], block_[2]); }

std::string Machine::element_text(Warp& warp, const Access& access, int lane) const {
  std::string text = tensors_[access.tensor].code->tensor.name + "(";
  for (size_t i = 0; i < access.coordinates.size(); ++i) {
    text += fmt::format("{}{}", i ? ", " : "", warp.registers[access.coordinates[i]].i[lane]);
  }
  return text + ")";
}

void Machine::report_race(Warp& warp, const Access& access, int lane, const Shadow& shadow, bool now_writes,
                          bool then_wrote) {
  if (!findings_.wanted(Finding::Kind::kRace, kernel_.name, access.site)) return;
  const uint32_t stamp = then_wrote ? shadow.write_stamp : shadow.read_stamp;
  const int site = then_wrote ? shadow.write_site : shadow.read_site;
  const bool other_block =
      stamp < block_start_ || stamp >= block_end_ || (!then_wrote && (shadow.read_flags & Shadow::kOtherBlocks));
  const int other = then_wrote ? shadow.write_thread : shadow.read_thread;
  const std::string element = element_text(warp, access, lane);
  const std::string who = other_block ? "a thread of another block" : fmt::format("thread {}", thread_text(other));
  findings_.add(
      {Finding::Kind::kRace, kernel_.name,
       fmt::format("{}: thread {} of block {} {} {} in '{}', which {} {} in '{}' with no barrier in between",
                   kernel_.name, thread_text(warp.index * kLanes + lane), block_text(), now_writes ? "writes" : "reads",
                   element, code_.sites[access.site], who, then_wrote ? "writes" : "reads", code_.sites[site])});
}

}  // namespace tc::tile
