#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "tc/support/round.h"
#include "tc/tile/machine.h"

/// Rings of buffers, and the boxes that fill them. Barriers are mbarriers: a wait knows the parity of a phase alone.
namespace tc::tile {
namespace {

constexpr std::byte kPoison{0xCB};
constexpr int64_t kSector = 32;  // bytes

int64_t floor_mod(int64_t value, int64_t by) { return (value % by + by) % by; }
int64_t round_of(int64_t turn, int64_t stages) { return (turn - floor_mod(turn, stages)) / stages; }

}  // namespace

void Machine::start_rings() {
  if (code_.rings.empty() && code_.products.empty()) return;
  rings_.assign(code_.rings.size(), {});
  for (size_t r = 0; r < rings_.size(); ++r) {
    rings_[r].slots.resize(static_cast<size_t>(code_.rings[r].stages));
    rings_[r].hand_overs.resize(static_cast<size_t>(code_.rings[r].teams));
  }
  chunks_.assign(static_cast<size_t>(ceil_div(code_.shared_bytes, kChunk)), {});
  boxes_.clear();
  releases_.clear();
  starts_.assign(static_cast<size_t>(ceil_div(std::ssize(warps_), std::ptrdiff_t{4})), {});
  for (Warp& warp : warps_) {
    warp.turns.clear();
    warp.awaited.assign(rings_.size(), -1);
    warp.released.assign(rings_.size(), 0);
    warp.taken.assign(rings_.size(), -1);
    warp.products.clear();
    warp.products_started = 0;
    warp.busy.clear();
  }
}

void Machine::make_ring(Warp& warp, const Instruction& n) {
  int64_t& awaited = warp.awaited[static_cast<size_t>(n.a)];
  if (awaited >= 0) {
    report(Finding::Kind::kRing, n.c, [&] {
      return fmt::format("{}: warp {} of block {} comes to the ring '{}' a second time", kernel_.name, warp.index,
                         block_text(), code_.rings[static_cast<size_t>(n.a)].name);
    });
  }
  awaited = std::max<int64_t>(awaited, 0);
}

int64_t Machine::turn_of(const Warp& warp, int reg) const {
  return warp.registers[static_cast<size_t>(reg)].i[std::countr_zero(warp.mask)];
}

Machine::Slot& Machine::slot_of(int ring, int64_t turn) {
  std::vector<Slot>& slots = rings_[static_cast<size_t>(ring)].slots;
  return slots[static_cast<size_t>(floor_mod(turn, std::ssize(slots)))];
}

Machine::HandOver& Machine::hand_over_of(int ring, int64_t number) {
  std::vector<HandOver>& all = rings_[static_cast<size_t>(ring)].hand_overs;
  return all[static_cast<size_t>(floor_mod(number, std::ssize(all)))];
}

bool Machine::has_turn(const Warp& warp, const Filling& filling) const {
  return std::find(warp.turns.begin(), warp.turns.end(), filling) != warp.turns.end();
}

std::string Machine::turn_text(const Filling& filling) const {
  return fmt::format("turn {} of {}", filling.turn, code_.rings[static_cast<size_t>(filling.ring)].name);
}

/// Whether a wait is over, as an mbarrier says it: the phase under way has another parity than the one that is waited
/// for. The right one has just ended, or is under way.
bool Machine::has_passed(Warp& warp, const Instruction& n) {
  const int64_t turn = turn_of(warp, n.b);
  if (n.op != Op::kDrain) return has_passed(warp, n, turn);
  const int64_t stages = code_.rings[static_cast<size_t>(n.a)].stages;
  for (int64_t last = std::max<int64_t>(turn - stages, 0); last < turn; ++last) {
    if (!has_passed(warp, n, last + stages)) return false;  // as an acquire of it would
  }
  return true;
}

bool Machine::has_passed(Warp& warp, const Instruction& n, int64_t turn) {
  const CodeRing& ring = code_.rings[static_cast<size_t>(n.a)];
  const Slot& slot = slot_of(n.a, turn);
  const int64_t round = round_of(turn, n.op == Op::kTake ? ring.teams : ring.stages);
  const int64_t passed = n.op == Op::kTake    ? hand_over_of(n.a, turn).phases - round
                         : n.op == Op::kAwait ? slot.full_phases - round
                                              : slot.empty_phases + 1 - round;
  if (passed != 0 && passed != 1) {
    report(Finding::Kind::kRing, n.c, [&] {
      return fmt::format("{}: warp {} of block {} waits in '{}', {} phases away from that of the barrier", kernel_.name,
                         warp.index, block_text(), code_.sites[n.c], std::abs(passed - 1));
    });
  }
  return passed % 2 != 0;
}

/// True if the warp stays where it is.
bool Machine::ring_wait(Warp& warp, const Instruction& n) {
  if (!has_passed(warp, n)) {
    warp.state = State::kInRing;
    return true;
  }
  budget_ -= static_cast<int64_t>(random_() % 16);
  if (n.op == Op::kAcquire) acquire(warp, n);
  if (n.op == Op::kAwait) await(warp, n);
  if (n.op == Op::kDrain) is_one_thread(warp, n, "drain");
  if (n.op == Op::kTake) take(warp, n);
  return false;
}

bool Machine::is_one_thread(Warp& warp, const Instruction& n, const char* verb) {
  RingState& ring = rings_[static_cast<size_t>(n.a)];
  const int thread = warp.index * kLanes + std::countr_zero(warp.mask);
  if (ring.producer < 0) ring.producer = thread;
  if (std::popcount(warp.mask) == 1 && ring.producer == thread) return true;
  report(Finding::Kind::kRing, n.c, [&] {
    const int other = ring.producer != thread ? thread : warp.index * kLanes + 31 - std::countl_zero(warp.mask);
    return fmt::format("{}: threads {} and {} of block {} both {} in '{}'", kernel_.name, thread_text(ring.producer),
                       thread_text(other), block_text(), verb, code_.sites[n.c]);
  });
  return false;
}

void Machine::acquire(Warp& warp, const Instruction& n) {
  RingState& ring = rings_[static_cast<size_t>(n.a)];
  is_one_thread(warp, n, "acquire");
  const int64_t turn = turn_of(warp, n.b);
  Slot& slot = slot_of(n.a, turn);
  if (turn != ring.acquired || slot.is_open) {
    report(Finding::Kind::kRing, n.c, [&] {
      return slot.is_open ? fmt::format("{}: '{}' acquires {} of block {}, but turn {} of its buffer is not committed",
                                        kernel_.name, code_.sites[n.c], turn_text({n.a, turn}), block_text(), slot.turn)
                          : fmt::format("{}: '{}' acquires {} of block {}, but the next turn is {}", kernel_.name,
                                        code_.sites[n.c], turn_text({n.a, turn}), block_text(), ring.acquired);
    });
  }
  ring.acquired = turn + 1;
  slot.turn = turn;
  slot.is_open = true;
  slot.box_bytes = 0;
  slot.team = -1;
}

/// Whether all threads of a warp have come, with the same turn.
bool Machine::is_whole_warp(Warp& warp, const Instruction& n) {
  if (!is_together(warp, n.c, "step")) return false;
  for (int l = 0; l < kLanes; ++l) {
    if (!(warp.mask >> l & 1) || warp.registers[static_cast<size_t>(n.b)].i[l] == turn_of(warp, n.b)) continue;
    report(Finding::Kind::kDivergence, n.c, [&] {
      return fmt::format("{}: threads of warp {} of block {} name different turns in '{}'", kernel_.name, warp.index,
                         block_text(), code_.sites[n.c]);
    });
    return false;
  }
  return true;
}

void Machine::await(Warp& warp, const Instruction& n) {
  if (!is_whole_warp(warp, n)) return;
  const int64_t turn = turn_of(warp, n.b);
  const CodeRing& ring = code_.rings[static_cast<size_t>(n.a)];
  int64_t& next = warp.awaited[static_cast<size_t>(n.a)];
  const bool is_next = ring.teams == 1 ? turn == next : turn >= next;
  if (!is_next) {
    report(Finding::Kind::kRing, n.c, [&] {
      return fmt::format("{}: warp {} of block {} awaits {} in '{}', but its next turn is {}", kernel_.name, warp.index,
                         block_text(), turn_text({n.a, turn}), code_.sites[n.c], next);
    });
  }
  Slot& slot = slot_of(n.a, turn);
  const int team = warp.index / ring.readers;
  if (slot.team < 0) slot.team = team;
  if (slot.team != team || team >= ring.teams) {
    report(Finding::Kind::kRing, n.c, [&] {
      return fmt::format("{}: warp {} of block {} awaits {} in '{}', which is not its team's", kernel_.name, warp.index,
                         block_text(), turn_text({n.a, turn}), code_.sites[n.c]);
    });
  }
  next = turn + 1;
  ++rings_[static_cast<size_t>(n.a)].awaited;
  warp.turns.push_back({n.a, turn});
}

/// A hand-over follows the one that its team has taken.
void Machine::pass(Warp& warp, const Instruction& n) {
  if (!is_whole_warp(warp, n)) return;
  budget_ -= static_cast<int64_t>(random_() % 16);
  const CodeRing& ring = code_.rings[static_cast<size_t>(n.a)];
  const int64_t number = turn_of(warp, n.b), taken = warp.taken[static_cast<size_t>(n.a)];
  HandOver& hand_over = hand_over_of(n.a, number);
  if (number != taken + 1 || hand_over.phases != round_of(number, ring.teams)) {
    report(Finding::Kind::kRing, n.c, [&] {
      return fmt::format("{}: warp {} of block {} passes {} in '{}', but has taken {}", kernel_.name, warp.index,
                         block_text(), number, code_.sites[n.c], taken);
    });
  }
  if (++hand_over.passes < ring.readers) return;
  hand_over.passes = 0;
  ++hand_over.phases;
}

void Machine::take(Warp& warp, const Instruction& n) {
  if (!is_whole_warp(warp, n)) return;
  warp.taken[static_cast<size_t>(n.a)] = turn_of(warp, n.b);
}

void Machine::end_phase(Slot& slot) const {
  if (!slot.committed || slot.bytes_due != 0) return;
  slot.committed = false;
  ++slot.full_phases;
}

void Machine::commit_turn(Warp& warp, const Instruction& n) {
  const bool right_thread = is_one_thread(warp, n, "commit");
  const int64_t turn = turn_of(warp, n.b);
  Slot& slot = slot_of(n.a, turn);
  if (right_thread && (slot.turn != turn || !slot.is_open)) {
    report(Finding::Kind::kRing, n.c, [&] {
      return fmt::format("{}: '{}' commits {} of block {}, which is not acquired", kernel_.name, code_.sites[n.c],
                         turn_text({n.a, turn}), block_text());
    });
  } else if (n.immediate != slot.box_bytes && blocks_.empty()) {  // those of other blocks come at any time
    report(Finding::Kind::kRing, n.c, [&] {
      return fmt::format("{}: '{}' says that boxes of {} bytes fill {} of block {}, but they have {}", kernel_.name,
                         code_.sites[n.c], n.immediate, turn_text({n.a, turn}), block_text(), slot.box_bytes);
    });
  }
  slot.is_open = false;
  slot.committed = true;
  slot.bytes_due += n.immediate;
  end_phase(slot);
}

void Machine::release(Warp& warp, const Instruction& n) {
  if (!is_whole_warp(warp, n)) return;
  budget_ -= static_cast<int64_t>(random_() % 16);
  const CodeRing& ring = code_.rings[static_cast<size_t>(n.a)];
  const Filling filling = {n.a, turn_of(warp, n.b)};
  Slot& slot = slot_of(n.a, filling.turn);
  const auto fault = [&](const std::string& why) {
    report(Finding::Kind::kRing, n.c, [&] {
      return fmt::format("{}: warp {} of block {} releases {} in '{}', {}", kernel_.name, warp.index, block_text(),
                         turn_text(filling), code_.sites[n.c], why);
    });
  };
  int64_t& next = warp.released[static_cast<size_t>(n.a)];
  if (!has_turn(warp, filling)) {
    fault("which it has not awaited");
  } else if (ring.teams == 1 ? filling.turn != next : filling.turn < next) {
    fault(fmt::format("but its next turn is {}", next));
  } else if (slot.empty_phases != round_of(filling.turn, ring.stages)) {
    fault(fmt::format("which {} warps have released", ring.releases));
  }
  for (const Product& product : warp.products) {
    if (std::find(product.reads.begin(), product.reads.end(), filling) == product.reads.end()) continue;
    fault(fmt::format("which the products '{}' may still read", code_.sites[product.site]));
  }
  next = filling.turn + 1;
  std::erase(warp.turns, filling);
  count_release(filling);
  for (const BlockGroup& group : ring.groups) {
    for (const size_t number : members(group)) {
      if (number != number_) release_in(number, filling, n.c);
    }
  }
}

/// A release counts for the ring of another block too, when it arrives there.
void Machine::release_in(size_t number, const Filling& filling, int site) {
  const std::string from = block_text();
  const size_t before = number_;
  switch_to(number);
  if (has_ended()) {
    report(Finding::Kind::kRing, site, [&] {
      return fmt::format("{}: block {} releases {} in '{}' for block {}, which has ended", kernel_.name, from,
                         turn_text(filling), code_.sites[site], block_text());
    });
  } else {
    releases_.push_back(filling);
  }
  switch_to(before);
}

void Machine::count_release(const Filling& filling) {
  Slot& slot = slot_of(filling.ring, filling.turn);
  if (++slot.releases < code_.rings[static_cast<size_t>(filling.ring)].releases) return;
  slot.releases = 0;
  ++slot.empty_phases;
}

void Machine::box_copy(Warp& warp, const CodeBoxCopy& n) {
  const Access& to = code_.accesses[static_cast<size_t>(n.destination)];
  const TensorMap& map = *n.map;
  const TensorState& source = tensors_[static_cast<size_t>(n.source)];
  const int lane = std::countr_zero(warp.mask);
  const int thread = warp.index * kLanes + lane;
  Box box{{n.ring, turn_of(warp, n.turn)}, {}};
  Slot& slot = slot_of(n.ring, box.filling.turn);
  const auto fault = [&](Finding::Kind kind, const std::string& why) {
    report(kind, to.site, [&] {
      return fmt::format("{}: thread {} of block {} copies the box '{}', {}", kernel_.name, thread_text(thread),
                         block_text(), code_.sites[to.site], why);
    });
  };
  if (std::popcount(warp.mask) != 1) fault(Finding::Kind::kRing, "and other threads of its warp do too");
  const bool has_acquired = slot.turn == box.filling.turn && slot.is_open;
  if (!has_acquired || rings_[static_cast<size_t>(n.ring)].producer != thread) {
    fault(Finding::Kind::kRing, fmt::format("but has not acquired {}", turn_text(box.filling)));
  }
  if (source.waits_to_read && !(warp.waited >> lane & 1)) {
    fault(Finding::Kind::kEarly,
          fmt::format("before it has waited for the kernels before, which write '{}'", source.code->tensor.name));
  }
  if (source.watched) fault(Finding::Kind::kRace, "but the kernel writes its tensor");
  if (in_bounds(warp, to, uint32_t{1} << lane, 1, "writes") == 0) return;
  std::vector<int64_t> first;
  for (int reg : n.coordinates) first.push_back(warp.registers[static_cast<size_t>(reg)].i[lane]);
  const int64_t address = shared_address(warp, n.destination), row_bytes = map.box[0] * source.bytes;
  if (address % kBoxAlignment != 0 || first[0] * source.bytes % kChunk != 0 || row_bytes % kChunk != 0) {
    return fault(Finding::Kind::kMisaligned,
                 fmt::format("from coordinate {} in rows of {} bytes to address {}, which are no multiples of {}",
                             first[0], row_bytes, address, kChunk));
  }
  ++counters_.global_requests;
  int64_t rows = 1;
  for (size_t d = 1; d < map.box.size(); ++d) rows *= map.box[d];
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> coordinates = first;
    int64_t rest = row;
    for (size_t d = 1; d < map.box.size(); ++d) {
      coordinates[d] += rest % map.box[d];
      rest /= map.box[d];
    }
    copy_row(n, coordinates, address + row * row_bytes, box);
  }
  box.bytes = rows * row_bytes;
  const size_t before = number_;
  for (const size_t number : members(n.group)) {
    switch_to(number);
    issue(n, box);
  }
  switch_to(before);
}

/// Of a box that comes to the block. What it is to overwrite holds nothing until it arrives.
void Machine::issue(const CodeBoxCopy& n, Box box) {
  const int site = code_.accesses[static_cast<size_t>(n.destination)].site;
  if (has_ended()) {
    return report(Finding::Kind::kRing, site, [&] {
      return fmt::format("{}: the box '{}' comes to block {}, which has ended", kernel_.name, code_.sites[site],
                         block_text());
    });
  }
  std::erase_if(box.chunks, [&](const auto& chunk) { return !claim(n, chunk.first, box.filling); });
  for (const auto& chunk : box.chunks) std::fill_n(shared_.begin() + chunk.first, kChunk, kPoison);
  slot_of(box.filling.ring, box.filling.turn).box_bytes += box.bytes;
  boxes_.push_back(std::move(box));
}

/// Reads a row of a box, whose first byte goes to an address before it is swizzled.
void Machine::copy_row(const CodeBoxCopy& n, const std::vector<int64_t>& coordinates, int64_t address, Box& box) {
  const TensorMap& map = *n.map;
  const int64_t elements = kChunk / tensors_[static_cast<size_t>(n.source)].bytes;
  bool is_inside = true;
  for (size_t d = 1; d < coordinates.size(); ++d) {
    is_inside &= coordinates[d] >= 0 && coordinates[d] < map.extents[d];
  }
  int64_t offset = map.offset, last_sector = -1;
  for (size_t d = 1; d < coordinates.size(); ++d) offset += coordinates[d] * map.strides[d];
  for (int64_t x = 0; x < map.box[0]; x += elements, address += kChunk) {
    std::array<std::byte, kChunk> bytes{};
    for (int64_t e = 0; e < elements; ++e) {
      const int64_t at = coordinates[0] + x + e;
      if (is_inside && at >= 0 && at < map.extents[0]) read_element(n, offset + at, e, bytes, last_sector);
    }
    const int64_t pattern = std::max<int64_t>(map.swizzle / kChunk, 1) - 1;
    const int64_t place = address ^ (address >> 7 & pattern) << 4;
    box.chunks.emplace_back(place, bytes);
  }
}

/// Reads an element of a box's tensor as the e-th of a chunk.
void Machine::read_element(const CodeBoxCopy& n, int64_t element, int64_t e, std::array<std::byte, kChunk>& bytes,
                           int64_t& last_sector) {
  const TensorState& source = tensors_[static_cast<size_t>(n.source)];
  const int site = code_.accesses[static_cast<size_t>(n.destination)].site;
  if (source.defined && !(*source.defined)[static_cast<size_t>(element)]) {
    report(Finding::Kind::kUninitialised, site, [&] {
      return fmt::format("{}: block {} reads element {} of '{}' in '{}' before anything is written there", kernel_.name,
                         block_text(), element, source.code->tensor.name, code_.sites[site]);
    });
  }
  const int64_t from = element * source.bytes;
  std::memcpy(bytes.data() + e * source.bytes, source.data + from, static_cast<size_t>(source.bytes));
  counters_.global_bytes_read += source.bytes;
  counters_.global_sectors += from / kSector != last_sector ? 1 : 0;
  last_sector = from / kSector;
}

/// Whether 16 bytes of shared memory are a box's to write.
bool Machine::claim(const CodeBoxCopy& n, int64_t place, const Filling& filling) {
  const Access& to = code_.accesses[static_cast<size_t>(n.destination)];
  const CodeTensor& destination = *tensors_[static_cast<size_t>(to.tensor)].code;
  const int64_t first = destination.shared_offset;
  const int64_t end = first + destination.tensor.elements() * element_bytes(destination.tensor.type);
  if (place < first || place + kChunk > end) {
    report(Finding::Kind::kOutOfBounds, to.site, [&] {
      return fmt::format("{}: the box '{}' of block {} leaves its tensor, which is {}", kernel_.name,
                         code_.sites[to.site], block_text(), to_string(destination.tensor.layout));
    });
    return false;
  }
  Chunk& chunk = chunks_[static_cast<size_t>(place / kChunk)];
  const int64_t stages = code_.rings[static_cast<size_t>(n.ring)].stages;
  const bool is_free =
      chunk.filling.ring < 0 || (chunk.filling.ring == n.ring && chunk.filling.turn <= filling.turn - stages);
  if (!is_free) {
    report(Finding::Kind::kRing, to.site, [&] {
      return fmt::format("{}: the box '{}' of {} in block {} overwrites what {} has brought", kernel_.name,
                         code_.sites[to.site], turn_text(filling), block_text(), turn_text(chunk.filling));
    });
  }
  chunk = {filling, false};
  return true;
}

void Machine::arrive(size_t which) {
  const Box box = std::move(boxes_[which]);
  boxes_.erase(boxes_.begin() + static_cast<std::ptrdiff_t>(which));
  for (const auto& [address, bytes] : box.chunks) {
    Chunk& chunk = chunks_[static_cast<size_t>(address / kChunk)];
    std::copy(bytes.begin(), bytes.end(), shared_.begin() + address);
    chunk.arrived = chunk.filling == box.filling;
  }
  Slot& slot = slot_of(box.filling.ring, box.filling.turn);
  slot.bytes_due -= box.bytes;
  end_phase(slot);
}

/// What goes on besides the instructions of warps: boxes arrive, products are carried out, and waits end.
void Machine::happen() {
  if (rings_.empty()) return;
  while (!boxes_.empty() && random_() % 3 == 0) arrive(random_() % boxes_.size());
  while (!releases_.empty() && random_() % 3 == 0) arrive_release();
  Warp& warp = warps_[random_() % warps_.size()];
  if (!warp.products.empty() && random_() % 4 == 0) run_products(warp, 1 + random_() % warp.products.size());
  for (Warp& waiting : warps_) {
    if (waiting.state == State::kInRing && has_passed(waiting, code_.instructions[waiting.pc])) {
      waiting.state = State::kReady;
    }
  }
}

/// Where no warp can go on: brings boxes until one can. False if none ever will.
bool Machine::wake_in_rings() {
  while (true) {
    bool woken = false;
    for (Warp& waiting : warps_) {
      if (waiting.state != State::kInRing || !has_passed(waiting, code_.instructions[waiting.pc])) continue;
      waiting.state = State::kReady;
      woken = true;
    }
    if (woken) return true;
    if (boxes_.empty() && releases_.empty()) return false;
    if (boxes_.empty()) {
      arrive_release();
    } else {
      arrive(random_() % boxes_.size());
    }
  }
}

void Machine::arrive_release() {
  const auto which = releases_.begin() + static_cast<std::ptrdiff_t>(random_() % releases_.size());
  const Filling release = *which;
  releases_.erase(which);
  count_release(release);
}

void Machine::report_deadlock() {
  is_stuck_ = true;
  const auto text_of = [](State state) {
    return state == State::kAtBarrier        ? "at a barrier"
           : state == State::kAtGroupBarrier ? "at a barrier of the warpgroup"
                                             : "at a barrier of the cluster";
  };
  const auto is_stuck = [&] {
    return is_in_state(State::kInRing) || is_in_state(State::kAtGroupBarrier) || is_in_state(State::kInCluster);
  };
  for (size_t number = 0; number < blocks_.size() && !is_stuck(); ++number) switch_to(number);
  int site = -1;
  std::string waiting;
  for (Warp& warp : warps_) {
    if (warp.state == State::kReady || warp.state == State::kDone) continue;
    const Instruction& n = code_.instructions[warp.pc];
    const bool in_ring = warp.state == State::kInRing;
    if (in_ring && site < 0) site = n.c;
    waiting += fmt::format("{}warp {} {}", waiting.empty() ? "" : ", ", warp.index,
                           !in_ring ? text_of(warp.state)
                                    : fmt::format("in '{}' for {}{}", code_.sites[n.c],
                                                  n.op == Op::kAcquire ? "the release before "
                                                  : n.op == Op::kDrain ? "all releases before "
                                                                       : "",
                                                  n.op == Op::kTake ? fmt::format("hand-over {}", turn_of(warp, n.b))
                                                                    : turn_text({n.a, turn_of(warp, n.b)})));
  }
  report(Finding::Kind::kDeadlock, site, [&] {
    return fmt::format("{}: block {} never ends, for there wait: {}", kernel_.name, block_text(), waiting);
  });
}

/// What a block leaves behind.
void Machine::end_rings() {
  if (!releases_.empty()) {
    report(Finding::Kind::kRing, -1, [&] {
      return fmt::format("{}: block {} ends before another one's release of {} has arrived", kernel_.name, block_text(),
                         turn_text(releases_[0]));
    });
  }
  for (size_t r = 0; r < rings_.size(); ++r) {
    const RingState& ring = rings_[r];
    const bool is_open = std::any_of(ring.slots.begin(), ring.slots.end(), [](const Slot& s) { return s.is_open; });
    const int readers = code_.rings[r].readers;
    if (ring.acquired * readers == ring.awaited && !is_open) continue;
    report(Finding::Kind::kRing, -1, [&] {
      return fmt::format("{}: block {} ends with {} turns of {} acquired and {} awaited{}", kernel_.name, block_text(),
                         ring.acquired, code_.rings[r].name, ring.awaited / readers,
                         is_open ? ", and one not committed" : "");
    });
  }
  for (const Warp& warp : warps_) {
    if (starts_.empty()) return;
    const auto& starts = starts_[static_cast<size_t>(warp.index / 4)];
    if (warp.products_started == starts.size()) continue;
    report(Finding::Kind::kDivergence, starts[warp.products_started].site, [&] {
      return fmt::format("{}: warp {} of block {} does not reach the products '{}' that others of its warpgroup start",
                         kernel_.name, warp.index, block_text(), code_.sites[starts[warp.products_started].site]);
    });
  }
}

/// An access of threads to what boxes fill.
void Machine::check_filled(Warp& warp, const Access& access, const TensorState& tensor, int lane, int64_t offset,
                           bool writes) {
  const int64_t address = tensor.code->shared_offset + offset * tensor.bytes;
  const Chunk& chunk = chunks_[static_cast<size_t>(address / kChunk)];
  if (!writes && chunk.arrived && has_turn(warp, chunk.filling)) return;
  const bool is_filled = chunk.filling.ring >= 0;
  const auto kind = writes || is_filled ? Finding::Kind::kRing : Finding::Kind::kUninitialised;
  report(kind, access.site, [&] {
    return fmt::format("{}: thread {} of block {} {} {} in '{}', {}", kernel_.name,
                       thread_text(warp.index * kLanes + lane), block_text(), writes ? "writes" : "reads",
                       element_text(warp, access, lane), code_.sites[access.site],
                       writes       ? "which boxes fill"
                       : !is_filled ? "before a box is copied there"
                                    : fmt::format("which {} fills, outside of that turn", turn_text(chunk.filling)));
  });
}

}  // namespace tc::tile
