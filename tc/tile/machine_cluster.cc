#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "tc/tile/machine.h"

/// What blocks of a cluster read of each other's shared memory, and the barrier that orders it.
namespace tc::tile {

void Machine::start_cluster_loads() {
  const bool any = std::ranges::any_of(code_.tensors, [](const CodeTensor& t) { return t.in_cluster; });
  if (!any) return;
  written_after_.assign(shared_.size(), 0);
  read_after_.assign(shared_.size(), 0);
}

void Machine::arrive_in_cluster(Warp& warp, int site) {
  if (warp.mask != warp.existing) {
    report(Finding::Kind::kDivergence, site, [&] {
      return fmt::format("{}: thread {} of block {} does not arrive in the cluster as other threads of its warp do",
                         kernel_.name, thread_text(warp.index * kLanes + std::countr_zero(warp.existing & ~warp.mask)),
                         block_text());
    });
  }
  if (warp.arrivals > warp.cluster_waits) {
    report(Finding::Kind::kDivergence, site, [&] {
      return fmt::format("{}: warp {} of block {} arrives in the cluster before it has waited for the last time",
                         kernel_.name, warp.index, block_text());
    });
  }
  const auto turn = static_cast<size_t>(warp.arrivals++);
  if (arrived_.size() <= turn) arrived_.resize(turn + 1, 0);
  ++arrived_[turn];
}

/// Lets warps of the block go on that wait until all threads of the cluster have arrived. False if there are none.
bool Machine::wake_in_cluster() {
  const size_t all = warps_.size() * std::max<size_t>(blocks_.size(), 1);
  bool any = false;
  for (Warp& warp : warps_) {
    const auto turn = static_cast<size_t>(warp.cluster_waits);
    if (warp.state != State::kInCluster || turn >= arrived_.size() || arrived_[turn] < all) continue;
    ++warp.cluster_waits;
    warp.state = State::kReady;
    any = true;
  }
  return any;
}

/// Of an element in the memory of the block that is switched to, which a thread of another one, or its own, reads.
void Machine::check_cluster_load(const Warp& warp, const CodeTensor& source, int site, int64_t first) {
  const auto fault = [&](Finding::Kind kind, const char* what) {
    report(kind, site, [&] {
      return fmt::format("{}: warp {} of a block reads an element of '{}' of block {} in '{}', {}", kernel_.name,
                         warp.index, source.tensor.name, block_text(), code_.sites[static_cast<size_t>(site)], what);
    });
  };
  if (has_ended()) fault(Finding::Kind::kRace, "which may have ended");
  if (warp.cluster_waits == 0) fault(Finding::Kind::kRace, "which may not have begun");
  for (int64_t b = first; b < first + element_bytes(source.tensor.type); ++b) {
    const auto byte = static_cast<size_t>(b);
    if (written_after_[byte] == 0) {
      fault(Finding::Kind::kUninitialised, "before anything is written there");
    } else if (written_after_[byte] > warp.cluster_waits) {
      fault(Finding::Kind::kRace, "with no barrier of the cluster behind the write");
    }
    read_after_[byte] = std::max(read_after_[byte], static_cast<uint8_t>(warp.arrivals + 1));
  }
}

void Machine::cluster_load(Warp& warp, const Instruction& n) {
  const Access& to = code_.accesses[static_cast<size_t>(n.a)];
  const Access& from = code_.accesses[static_cast<size_t>(n.b)];
  const CodeTensor& source = *tensors_[static_cast<size_t>(from.tensor)].code;
  const int64_t bytes = element_bytes(source.tensor.type), elements = n.immediate;
  uint32_t mask = in_bounds(warp, from, warp.mask, static_cast<int>(elements), "reads");
  mask = in_bounds(warp, to, mask, static_cast<int>(elements), "writes");
  check_alignment(warp, from, mask, elements);
  count(warp, from, mask, static_cast<int>(elements), false);
  const auto blocks = static_cast<int64_t>(std::max<size_t>(blocks_.size(), 1));
  const size_t before = number_;
  for (int64_t e = 0; e < elements; ++e) {
    Lanes values{};
    for (int lane = 0; lane < kLanes; ++lane) {
      const int64_t block = warp.registers[static_cast<size_t>(n.c)].i[lane];
      if ((mask >> lane & 1) == 0) continue;
      if (block < 0 || block >= blocks) {
        report(Finding::Kind::kOutOfBounds, from.site, [&] {
          return fmt::format("{}: thread {} of block {} reads memory of block {} of its cluster in '{}', which has {}",
                             kernel_.name, thread_text(warp.index * kLanes + lane), block_text(), block,
                             code_.sites[static_cast<size_t>(from.site)], blocks);
        });
        continue;
      }
      const int64_t element = warp.registers[static_cast<size_t>(from.address)].i[lane] + e;
      const int64_t first = source.shared_offset + element * bytes;
      switch_to(static_cast<size_t>(block));
      check_cluster_load(warp, source, from.site, first);
      load_lane(source.type, shared_.data() + first, values, lane);
      switch_to(before);
    }
    store_elements(warp, n.a, e, values, mask);
  }
}

/// A thread writes where other blocks may read, or have read.
void Machine::mark_for_cluster(const Warp& warp, const Access& access, int lane, int64_t offset) {
  const TensorState& tensor = tensors_[static_cast<size_t>(access.tensor)];
  const int64_t first = tensor.code->shared_offset + offset * tensor.bytes;
  for (int64_t b = first; b < first + tensor.bytes; ++b) {
    const auto byte = static_cast<size_t>(b);
    written_after_[byte] = static_cast<uint8_t>(warp.arrivals + 1);
    if (read_after_[byte] <= warp.cluster_waits) continue;
    report(Finding::Kind::kRace, access.site, [&] {
      return fmt::format("{}: thread {} of block {} writes '{}' in '{}', which another block may read at the same time",
                         kernel_.name, thread_text(warp.index * kLanes + lane), block_text(), tensor.code->tensor.name,
                         code_.sites[static_cast<size_t>(access.site)]);
    });
  }
}

/// A block ends behind a barrier that lies behind all reads of its memory.
void Machine::end_cluster_loads() {
  if (read_after_.empty()) return;
  const int read = *std::ranges::max_element(read_after_);
  for (const Warp& warp : warps_) {
    if (read <= warp.cluster_waits) continue;
    report(Finding::Kind::kRace, -1, [&] {
      return fmt::format("{}: warp {} of block {} ends, and another block may still read the block's memory",
                         kernel_.name, warp.index, block_text());
    });
  }
}

}  // namespace tc::tile
