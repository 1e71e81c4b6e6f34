#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "tc/tile/machine.h"

/// Stores of boxes: each reads shared memory at some time before its thread has waited for that, and writes at some
/// time after it. It reads through a proxy of its own, which sees what a thread has written behind that thread's fence.
namespace tc::tile {
namespace {

constexpr std::byte kPoison{0xCB};
constexpr int64_t kSector = 32;  // bytes

}  // namespace

void Machine::start_stores() {
  if (code_.box_stores.empty()) return;
  fenced_.assign(shared_.size(), kPoison);
  unfenced_.assign(shared_.size(), 0);
  unread_.assign(shared_.size(), 0);
  for (Warp& warp : warps_) {
    warp.stores.clear();
    warp.store_group.fill(0);
  }
}

/// Calls visit(address in shared memory, element of the tensor or -1) for each element of a box. Rows are clipped at
/// whole 16 bytes, as a GPU does, so a map's last elements may lie behind its extents.
template <typename Visit>
void Machine::for_each_stored(const StoredBox& store, Visit visit) const {
  const TensorMap& map = *store.code->map;
  const int64_t bytes = tensors_[static_cast<size_t>(store.code->tensor)].bytes;
  const int64_t pattern = std::max<int64_t>(map.swizzle / kChunk, 1) - 1;
  const int64_t row = (map.extents[0] * bytes + kChunk - 1) / kChunk * kChunk / bytes;
  int64_t address = store.address, elements = 1;
  for (const int64_t extent : map.box) elements *= extent;
  for (int64_t e = 0; e < elements; ++e, address += bytes) {
    int64_t rest = e, offset = map.offset;
    bool is_inside = true;
    for (size_t d = 0; d < map.box.size(); ++d) {
      const int64_t at = store.first[d] + rest % map.box[d];
      rest /= map.box[d];
      is_inside &= at >= 0 && at < (d == 0 ? row : map.extents[d]);
      offset += at * map.strides[d];
    }
    visit(address ^ (address >> 7 & pattern) << 4, is_inside ? offset : -1);
  }
}

void Machine::box_store(Warp& warp, const CodeBoxStore& n) {
  const Access& from = code_.accesses[static_cast<size_t>(n.source)];
  const Access& to = code_.accesses[static_cast<size_t>(n.destination)];
  TensorState& source = tensors_[static_cast<size_t>(from.tensor)];
  TensorState& destination = tensors_[static_cast<size_t>(n.tensor)];
  const int lane = std::countr_zero(warp.mask);
  const uint32_t mask = uint32_t{1} << lane;
  const auto fault = [&](Finding::Kind kind, const std::string& why) {
    report(kind, from.site, [&] {
      return fmt::format("{}: thread {} of block {} stores the box '{}', {}", kernel_.name,
                         thread_text(warp.index * kLanes + lane), block_text(), code_.sites[from.site], why);
    });
  };
  if (std::popcount(warp.mask) != 1) fault(Finding::Kind::kRace, "and other threads of its warp do too");
  check_waited(warp, to, mask, true);
  if (in_bounds(warp, from, mask, 1, "reads") == 0) return;
  StoredBox store{&n, from.site, lane, warp.store_group[lane], {}, shared_address(warp, n.source)};
  for (int reg : n.coordinates) store.first.push_back(warp.registers[static_cast<size_t>(reg)].i[lane]);
  const int64_t row_bytes = n.map->box[0] * source.bytes;
  if (store.address % kBoxAlignment != 0 || store.first[0] * source.bytes % kChunk != 0 || row_bytes % kChunk != 0) {
    return fault(Finding::Kind::kMisaligned,
                 fmt::format("to coordinate {} in rows of {} bytes from address {}, which are no multiples of {}",
                             store.first[0], row_bytes, store.address, kChunk));
  }
  ++counters_.global_requests;
  int64_t last_sector = -1;
  bool leaves = false;
  for_each_stored(store, [&](int64_t address, int64_t element) {
    const int64_t offset = (address - source.code->shared_offset) / source.bytes;
    if (offset < 0 || offset >= source.code->tensor.elements()) {
      leaves = true;
      return;
    }
    for (int64_t b = 0; b < source.bytes; ++b) ++unread_[static_cast<size_t>(address + b)];
    if (element < 0) return;
    if (element >= destination.code->tensor.elements()) {
      leaves = true;
      return;
    }
    if (source.watched || source.defined) check_read(warp, from, source, lane, offset);
    if (destination.watched) check_write(warp, to, destination, lane, element, Shadow::kPending);
    counters_.global_bytes_written += source.bytes;
    const int64_t sector = element * source.bytes / kSector;
    counters_.global_sectors += sector != last_sector ? 1 : 0;
    last_sector = sector;
  });
  if (leaves) return fault(Finding::Kind::kOutOfBounds, "which leaves its tensor");
  warp.stores.push_back(std::move(store));
}

/// A thread has written bytes of shared memory, which box stores do not see before its fence.
void Machine::mark_unfenced(const Warp& warp, const Access& access, int lane, int64_t offset) {
  const TensorState& tensor = tensors_[static_cast<size_t>(access.tensor)];
  const int64_t first = tensor.code->shared_offset + offset * tensor.bytes;
  for (int64_t b = first; b < first + tensor.bytes; ++b) {
    unfenced_[static_cast<size_t>(b)] = static_cast<uint16_t>(warp.index * kLanes + lane + 1);
    if (unread_[static_cast<size_t>(b)] == 0) continue;
    report(Finding::Kind::kPending, access.site, [&] {
      return fmt::format(
          "{}: thread {} of block {} writes '{}' in '{}' before a box store has been waited for that "
          "reads it",
          kernel_.name, thread_text(warp.index * kLanes + lane), block_text(), tensor.code->tensor.name,
          code_.sites[access.site]);
    });
  }
}

void Machine::box_step(Warp& warp, const Instruction& n) {
  const auto kind = static_cast<BoxStep::Kind>(n.flag);
  const auto has_lane = [&](int lane) { return (warp.mask >> lane & 1) != 0; };
  if (kind == BoxStep::Kind::kFence) {
    for (size_t b = 0; b < unfenced_.size(); ++b) {
      const int thread = unfenced_[b] - 1;
      if (thread < 0 || thread / kLanes != warp.index || !has_lane(thread % kLanes)) continue;
      fenced_[b] = shared_[b];
      unfenced_[b] = 0;
    }
    return;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!has_lane(lane)) continue;
    if (kind == BoxStep::Kind::kCommit) ++warp.store_group[lane];
    if (kind != BoxStep::Kind::kCommit) wait_stores(warp, lane, n.immediate, kind == BoxStep::Kind::kWait);
  }
}

/// Ends what a thread waits for. It orders the reads, and the writes, before what follows.
void Machine::wait_stores(Warp& warp, int lane, int64_t pending, bool is_written) {
  for (StoredBox& store : warp.stores) {
    if (store.lane != lane || store.group >= warp.store_group[lane] - pending) continue;
    read_store(store);
    TensorState& source = tensors_[static_cast<size_t>(code_.accesses[static_cast<size_t>(store.code->source)].tensor)];
    TensorState& destination = tensors_[static_cast<size_t>(store.code->tensor)];
    const Moment now = moment(warp, lane, store.site);
    for_each_stored(store, [&](int64_t address, int64_t element) {
      const int64_t offset = (address - source.code->shared_offset) / source.bytes;
      if (!store.is_read_waited) {
        for (int64_t b = 0; b < source.bytes; ++b) --unread_[static_cast<size_t>(address + b)];
        if (source.watched) source.shadow[static_cast<size_t>(offset)].record_read(now);
      }
      if (is_written && element >= 0 && destination.watched) {
        destination.shadow[static_cast<size_t>(element)].record_write(now, 0);
      }
    });
    store.is_read_waited = true;
    if (is_written && !store.is_written) write_store(store);
  }
  std::erase_if(warp.stores, [](const StoredBox& store) { return store.is_written && store.is_read_waited; });
}

void Machine::read_store(StoredBox& store) {
  if (!store.bytes.empty()) return;
  const int64_t bytes = tensors_[static_cast<size_t>(store.code->tensor)].bytes;
  for_each_stored(store, [&](int64_t address, int64_t element) {
    for (int64_t b = address; b < address + bytes; ++b) {
      store.bytes.push_back(fenced_[static_cast<size_t>(b)]);
      const int writer = unfenced_[static_cast<size_t>(b)] - 1;
      if (writer < 0 || element < 0) continue;
      report(Finding::Kind::kProxy, store.site, [&] {
        return fmt::format(
            "{}: '{}' of block {} does not see what thread {} has written: that has no fence for box "
            "stores behind it",
            kernel_.name, code_.sites[store.site], block_text(), thread_text(writer));
      });
    }
  });
}

void Machine::write_store(StoredBox& store) {
  TensorState& destination = tensors_[static_cast<size_t>(store.code->tensor)];
  const std::byte* next = store.bytes.data();
  for_each_stored(store, [&](int64_t, int64_t element) {
    if (element >= 0) {
      std::memcpy(destination.data + element * destination.bytes, next, static_cast<size_t>(destination.bytes));
    }
    next += destination.bytes;
  });
  store.is_written = true;
}

/// What goes on besides the instructions of warps.
void Machine::progress_stores() {
  if (code_.box_stores.empty()) return;
  for (Warp& warp : warps_) {
    for (StoredBox& store : warp.stores) {
      if (random_() % 4 != 0) continue;
      if (store.bytes.empty()) {
        read_store(store);
      } else {
        write_store(store);
      }
    }
    std::erase_if(warp.stores, [](const StoredBox& store) { return store.is_written && store.is_read_waited; });
  }
}

/// A thread ends. What it has not waited for may find other values in shared memory.
void Machine::check_stores_read(Warp& warp) {
  for (const StoredBox& store : warp.stores) {
    if (store.is_read_waited) continue;
    return report(Finding::Kind::kPending, store.site, [&] {
      return fmt::format(
          "{}: thread {} of block {} ends before the box store '{}' has been waited for, which may not "
          "have read yet",
          kernel_.name, thread_text(warp.index * kLanes + store.lane), block_text(), code_.sites[store.site]);
    });
  }
}

void Machine::end_stores() {
  for (Warp& warp : warps_) {
    for (StoredBox& store : warp.stores) {
      read_store(store);
      if (!store.is_read_waited) std::ranges::fill(store.bytes, kPoison);
      if (!store.is_read_waited || !store.is_written) write_store(store);
    }
    warp.stores.clear();
  }
}

}  // namespace tc::tile
