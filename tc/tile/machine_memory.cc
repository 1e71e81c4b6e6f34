#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "tc/interp/scalar.h"
#include "tc/support/check.h"
#include "tc/tile/lanes.h"
#include "tc/tile/machine.h"

/// What the machine's instructions do to memory.
namespace tc::tile {
namespace {

template <typename F>
void for_each_lane(uint32_t mask, F f) {
  if (mask == ~uint32_t{0}) {
    for (int l = 0; l < kLanes; ++l) f(l);
    return;
  }
  for (; mask != 0; mask &= mask - 1) f(std::countr_zero(mask));
}

template <typename T>
T read_as(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T>
void write_as(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

}  // namespace

void load_lane(ScalarType type, const std::byte* from, Lanes& to, int l) {
  switch (type) {
    case ScalarType::kFloat32:
      to.f[l] = read_as<float>(from);
      return;
    case ScalarType::kFloat64:
      to.d[l] = read_as<double>(from);
      return;
    case ScalarType::kFloat16:
    case ScalarType::kBFloat16:
      to.f[l] = float_from_bits(type, read_as<uint16_t>(from));
      return;
    case ScalarType::kBool:
      to.i[l] = read_as<uint8_t>(from) != 0;
      return;
    case ScalarType::kInt8:
      to.i[l] = read_as<int8_t>(from);
      return;
    case ScalarType::kUInt8:
    case ScalarType::kFloat8E4M3:
    case ScalarType::kFloat8E5M2:
      to.i[l] = read_as<uint8_t>(from);
      return;
    case ScalarType::kInt16:
      to.i[l] = read_as<int16_t>(from);
      return;
    case ScalarType::kUInt16:
      to.i[l] = read_as<uint16_t>(from);
      return;
    case ScalarType::kInt32:
      to.i[l] = read_as<int32_t>(from);
      return;
    case ScalarType::kUInt32:
      to.i[l] = read_as<uint32_t>(from);
      return;
    case ScalarType::kInt64:
    case ScalarType::kUInt64:
      to.i[l] = read_as<int64_t>(from);
      return;
  }
}

namespace {

void store_lane(ScalarType type, std::byte* to, const Lanes& from, int l) {
  switch (type) {
    case ScalarType::kFloat32:
      return write_as(to, from.f[l]);
    case ScalarType::kFloat64:
      return write_as(to, from.d[l]);
    case ScalarType::kFloat16:
    case ScalarType::kBFloat16:
      return write_as(to, bits_from_float(type, from.f[l]));
    case ScalarType::kBool:
    case ScalarType::kInt8:
    case ScalarType::kUInt8:
    case ScalarType::kFloat8E4M3:
    case ScalarType::kFloat8E5M2:
      return write_as(to, static_cast<uint8_t>(from.i[l]));
    case ScalarType::kInt16:
    case ScalarType::kUInt16:
      return write_as(to, static_cast<uint16_t>(from.i[l]));
    case ScalarType::kInt32:
    case ScalarType::kUInt32:
      return write_as(to, static_cast<uint32_t>(from.i[l]));
    case ScalarType::kInt64:
    case ScalarType::kUInt64:
      return write_as(to, from.i[l]);
  }
}

void copy_lane(ScalarType type, Lanes& to, int l, const Lanes& from, int source) {
  if (representation_of(type) == Representation::kFloat) {
    to.f[l] = from.f[source];
  } else {
    to.i[l] = from.i[source];
  }
}

double combine(Atomic::Op op, double a, double b) {
  if (op == Atomic::Op::kAdd) return a + b;
  if (a != a || b != b) return a + b;
  return (op == Atomic::Op::kMin) == (b < a) ? b : a;
}

}  // namespace

void Machine::memory(Warp& warp, const Instruction& n) {
  const int threads = std::popcount(warp.mask);
  switch (n.op) {
    case Op::kLoad:
      return load(warp, n);
    case Op::kPoison:
      return poison(warp, n);
    case Op::kCommit:
      return for_each_lane(warp.mask, [&](int l) { ++warp.group[l]; });
    case Op::kWait:
      return wait(warp, n.immediate);
    case Op::kCommitTurn:
      return commit_turn(warp, n);
    case Op::kRelease:
      return release(warp, n);
    case Op::kPass:
      return pass(warp, n);
    case Op::kBoxStep:
      return box_step(warp, n);
    case Op::kWaitProducts:
      return wait_products(warp, code_.product_waits[static_cast<size_t>(n.a)], n.c);
    default:
      break;
  }
  counters_.thread_operations += threads;
  switch (n.op) {
    case Op::kStore:
      return store(warp, n.a, warp.registers[n.b], warp.mask);
    case Op::kAtomic:
      return atomic(warp, n);
    case Op::kMove:
      return move(warp, n);
    case Op::kCopyAsync:
      return copy_async(warp, n);
    case Op::kShuffle:
      return shuffle(warp, n);
    case Op::kMatMul:
      return matmul(warp, code_.matmuls[static_cast<size_t>(n.a)]);
    case Op::kMatrixLoad:
      return matrix_load(warp, code_.matrix_loads[static_cast<size_t>(n.a)]);
    case Op::kMatrixStore:
      return matrix_store(warp, code_.matrix_stores[static_cast<size_t>(n.a)]);
    case Op::kBoxCopy:
      return box_copy(warp, code_.box_copies[static_cast<size_t>(n.a)]);
    case Op::kClusterLoad:
      return cluster_load(warp, n);
    case Op::kBoxStore:
      return box_store(warp, code_.box_stores[static_cast<size_t>(n.a)]);
    case Op::kStartProduct:
      return start_product(warp, code_.products[static_cast<size_t>(n.a)], n.c);
    default:
      TC_CHECK(false, "operation {} has nothing to do with memory", static_cast<int>(n.op));
  }
}

void Machine::poison(Warp& warp, const Instruction& n) {
  const CodeTensor& tensor = *tensors_[n.a].code;
  abandon_registers(warp, n.a);
  for (int64_t e = 0; e < tensor.tensor.elements(); ++e) {
    warp.element_defined[static_cast<size_t>(tensor.register_base + e)] &= ~warp.mask;
  }
}

uint32_t Machine::in_bounds(Warp& warp, const Access& access, uint32_t mask, int elements, const char* verb) {
  if (access.in_bounds < 0) return mask;
  const uint32_t inside = mask & lanes_where(warp, access.in_bounds, false);
  if (inside != mask && findings_.wanted(Finding::Kind::kOutOfBounds, kernel_.name, access.site)) {
    const int lane = std::countr_zero(mask & ~inside);
    const std::string length = elements > 1 ? fmt::format(" and {} more", elements - 1) : "";
    findings_.add(
        {Finding::Kind::kOutOfBounds, kernel_.name,
         fmt::format("{}: thread {} of block {} {} {}{} in '{}', but the tensor is {}", kernel_.name,
                     thread_text(warp.index * kLanes + lane), block_text(), verb, element_text(warp, access, lane),
                     length, code_.sites[access.site], to_string(tensors_[access.tensor].code->tensor.layout))});
  }
  return inside;
}

void Machine::check_waited(Warp& warp, const Access& access, uint32_t mask, bool writes) {
  const TensorState& tensor = tensors_[access.tensor];
  const uint32_t early = mask & ~warp.waited;
  if (early == 0 || !(writes ? tensor.waits_to_write : tensor.waits_to_read)) return;
  report(Finding::Kind::kEarly, access.site, [&] {
    const int lane = std::countr_zero(early);
    return fmt::format(
        "{}: thread {} of block {} {} {} in '{}' before it has waited for the kernels before, which {} it",
        kernel_.name, thread_text(warp.index * kLanes + lane), block_text(), writes ? "writes" : "reads",
        element_text(warp, access, lane), code_.sites[access.site],
        before_.write(tensor.code->tensor.name) ? "write" : "read");
  });
}

void Machine::check_alignment(Warp& warp, const Access& access, uint32_t mask, int64_t elements) {
  for_each_lane(mask, [&](int l) {
    const int64_t offset = warp.registers[access.address].i[l];
    if (offset % elements == 0) return;
    report(Finding::Kind::kMisaligned, access.site, [&] {
      return fmt::format("{}: thread {} of block {} moves {} elements at {} in '{}', whose offset {} is not a multiple",
                         kernel_.name, thread_text(warp.index * kLanes + l), block_text(), elements,
                         element_text(warp, access, l), code_.sites[access.site], offset);
    });
  });
}

void Machine::check_read(Warp& warp, const Access& access, TensorState& tensor, int lane, int64_t offset) {
  if (tensor.code->filled) return check_filled(warp, access, tensor, lane, offset, false);
  if (tensor.watched) {
    const Moment now = moment(warp, lane, access.site);
    Shadow& shadow = tensor.shadow[static_cast<size_t>(offset)];
    if (shadow.pending(now)) {
      report(Finding::Kind::kPending, access.site, [&] {
        return fmt::format("{}: thread {} of block {} reads {} in '{}' before the copy '{}' has been waited for",
                           kernel_.name, thread_text(now.thread), block_text(), element_text(warp, access, lane),
                           code_.sites[access.site], code_.sites[shadow.write_site]);
      });
    } else if (shadow.write_races(now, tensor.is_global)) {
      report_race(warp, access, lane, shadow, false, true);
    }
    shadow.record_read(now);
  }
  if (tensor.defined && !(*tensor.defined)[static_cast<size_t>(offset)]) {
    report(Finding::Kind::kUninitialised, access.site, [&] {
      return fmt::format("{}: thread {} of block {} reads {} in '{}' before anything is written there", kernel_.name,
                         thread_text(warp.index * kLanes + lane), block_text(), element_text(warp, access, lane),
                         code_.sites[access.site]);
    });
  }
}

void Machine::check_write(Warp& warp, const Access& access, TensorState& tensor, int lane, int64_t offset,
                          uint8_t flags) {
  if (tensor.code->filled) return check_filled(warp, access, tensor, lane, offset, true);
  if (tensor.defined) (*tensor.defined)[static_cast<size_t>(offset)] = 1;
  if (!tensor.watched) return;
  const Moment now = moment(warp, lane, access.site);
  Shadow& shadow = tensor.shadow[static_cast<size_t>(offset)];
  const bool both_atomic = (flags & Shadow::kAtomic) && (shadow.write_flags & Shadow::kAtomic);
  if (shadow.pending(now)) {
    report(Finding::Kind::kPending, access.site, [&] {
      return fmt::format("{}: thread {} of block {} writes {} in '{}' before the copy '{}' has been waited for",
                         kernel_.name, thread_text(now.thread), block_text(), element_text(warp, access, lane),
                         code_.sites[access.site], code_.sites[shadow.write_site]);
    });
  } else if (!both_atomic && shadow.write_races(now, tensor.is_global)) {
    report_race(warp, access, lane, shadow, true, true);
  } else if (shadow.read_races(now, tensor.is_global)) {
    report_race(warp, access, lane, shadow, true, false);
  }
  shadow.record_write(now, flags);
}

void Machine::load_elements(Warp& warp, int index, int64_t step, uint32_t mask, Lanes& to) {
  const Access& access = code_.accesses[index];
  TensorState& tensor = tensors_[access.tensor];
  const auto& address = warp.registers[access.address].i;
  const ScalarType type = tensor.code->type;
  if (tensor.code->register_base >= 0) {
    check_busy(warp, access, "reads");
    for_each_lane(mask, [&](int l) {
      const auto element = static_cast<size_t>(tensor.code->register_base + address[l] + step);
      copy_lane(type, to, l, warp.elements[element], l);
      if (!(warp.element_defined[element] >> l & 1) && options_.check) {
        report(Finding::Kind::kUninitialised, access.site, [&] {
          return fmt::format("{}: thread {} of block {} reads its register {} in '{}' before anything is written there",
                             kernel_.name, thread_text(warp.index * kLanes + l), block_text(),
                             element_text(warp, access, l), code_.sites[access.site]);
        });
      }
    });
    return;
  }
  if (tensor.watched || tensor.defined) {
    for_each_lane(mask, [&](int l) { check_read(warp, access, tensor, l, address[l] + step); });
  }
  const int bytes = tensor.bytes;
  const std::byte* data = tensor.data + step * bytes;
  if (type == ScalarType::kFloat32) {
    for_each_lane(mask, [&](int l) { to.f[l] = read_as<float>(data + address[l] * 4); });
  } else {
    for_each_lane(mask, [&](int l) { load_lane(type, data + address[l] * bytes, to, l); });
  }
}

void Machine::store_elements(Warp& warp, int index, int64_t step, const Lanes& value, uint32_t mask) {
  const Access& access = code_.accesses[index];
  TensorState& tensor = tensors_[access.tensor];
  const auto& address = warp.registers[access.address].i;
  const ScalarType type = tensor.code->type;
  if (tensor.code->register_base >= 0) {
    check_busy(warp, access, "writes");
    for_each_lane(mask, [&](int l) {
      const auto element = static_cast<size_t>(tensor.code->register_base + address[l] + step);
      copy_lane(type, warp.elements[element], l, value, l);
      warp.element_defined[element] |= uint32_t{1} << l;
    });
    return;
  }
  if (tensor.watched || tensor.defined) {
    for_each_lane(mask, [&](int l) { check_write(warp, access, tensor, l, address[l] + step, 0); });
  }
  for_each_lane(mask, [&](int l) { store_lane(type, tensor.data + (address[l] + step) * tensor.bytes, value, l); });
  if (tensor.code->stored) for_each_lane(mask, [&](int l) { mark_unfenced(warp, access, l, address[l] + step); });
  if (tensor.code->in_cluster) {
    for_each_lane(mask, [&](int l) { mark_for_cluster(warp, access, l, address[l] + step); });
  }
}

void Machine::load(Warp& warp, const Instruction& n) {
  const Access& access = code_.accesses[n.a];
  const uint32_t mask = in_bounds(warp, access, warp.mask, 1, "reads");
  Lanes& to = warp.registers[n.dst];
  const CodeTensor& tensor = *tensors_[access.tensor].code;
  if (tensor.register_base >= 0 && access.uniform && mask == warp.mask) {
    const auto element = static_cast<size_t>(tensor.register_base + warp.registers[access.address].i[0]);
    if ((warp.element_defined[element] & mask) == mask) {
      to = warp.elements[element];
      return;
    }
  }
  check_waited(warp, access, mask, false);
  count(warp, access, mask, 1, false);
  load_elements(warp, n.a, 0, mask, to);
}

void Machine::store(Warp& warp, int index, const Lanes& value, uint32_t active) {
  const Access& access = code_.accesses[index];
  const uint32_t mask = in_bounds(warp, access, active, 1, "writes");
  const CodeTensor& tensor = *tensors_[access.tensor].code;
  if (tensor.register_base >= 0 && access.uniform && mask == warp.existing) {
    check_busy(warp, access, "writes");
    const auto element = static_cast<size_t>(tensor.register_base + warp.registers[access.address].i[0]);
    warp.elements[element] = value;
    warp.element_defined[element] |= mask;
    return;
  }
  check_waited(warp, access, mask, true);
  count(warp, access, mask, 1, true);
  store_elements(warp, index, 0, value, mask);
}

void Machine::atomic(Warp& warp, const Instruction& n) {
  const Access& access = code_.accesses[n.a];
  TensorState& tensor = tensors_[access.tensor];
  const ScalarType type = tensor.code->type;
  const uint32_t mask = in_bounds(warp, access, warp.mask, 1, "updates");
  check_waited(warp, access, mask, true);
  count(warp, access, mask, 1, true);
  const auto op = static_cast<Atomic::Op>(n.immediate);
  std::array<int, kLanes> order;
  for (int l = 0; l < kLanes; ++l) order[l] = l;
  std::shuffle(order.begin(), order.end(), random_);
  for (int l : order) {
    if (!(mask >> l & 1)) continue;
    const int64_t offset = warp.registers[access.address].i[l];
    if (tensor.defined && !(*tensor.defined)[static_cast<size_t>(offset)]) {
      report(Finding::Kind::kUninitialised, access.site, [&] {
        return fmt::format("{}: thread {} of block {} updates {} in '{}' before anything is written there",
                           kernel_.name, thread_text(warp.index * kLanes + l), block_text(),
                           element_text(warp, access, l), code_.sites[access.site]);
      });
    }
    check_write(warp, access, tensor, l, offset, Shadow::kAtomic);
    std::byte* const place = tensor.data + offset * tensor.bytes;
    const Lanes& value = warp.registers[n.b];
    Lanes old;
    load_lane(type, place, old, l);
    if (type == ScalarType::kFloat64) {
      old.d[l] = combine(op, old.d[l], value.d[l]);
    } else if (is_float(type)) {
      old.f[l] = static_cast<float>(interp::round_to(type, combine(op, old.f[l], value.f[l])));
    } else if (op == Atomic::Op::kAdd) {
      old.i[l] = interp::add(type, old.i[l], value.i[l]);
    } else if ((op == Atomic::Op::kMin) == interp::less(type, value.i[l], old.i[l])) {
      old.i[l] = value.i[l];
    }
    store_lane(type, place, old, l);
    if (tensor.code->stored) mark_unfenced(warp, access, l, offset);
    if (tensor.code->in_cluster) mark_for_cluster(warp, access, l, offset);
  }
}

void Machine::move(Warp& warp, const Instruction& n) {
  const Access& to = code_.accesses[n.a];
  const Access& from = code_.accesses[n.b];
  const auto elements = static_cast<int>(n.immediate);
  uint32_t mask = in_bounds(warp, from, warp.mask, elements, "reads");
  mask = in_bounds(warp, to, mask, elements, "writes");
  check_alignment(warp, from, mask, elements);
  check_alignment(warp, to, mask, elements);
  check_waited(warp, from, mask, false);
  check_waited(warp, to, mask, true);
  count(warp, from, mask, elements, false);
  count(warp, to, mask, elements, true);
  std::array<Lanes, 16> values;
  for (int e = 0; e < elements; ++e) load_elements(warp, n.b, e, mask, values[e]);
  for (int e = 0; e < elements; ++e) store_elements(warp, n.a, e, values[e], mask);
}

void Machine::copy_async(Warp& warp, const Instruction& n) {
  const Access& to = code_.accesses[n.a];
  const Access& from = code_.accesses[n.b];
  const auto elements = static_cast<int>(n.immediate);
  uint32_t zeros = 0;  // lanes that read nothing
  if (n.c >= 0) {
    for_each_lane(warp.mask, [&](int l) { zeros |= warp.registers[n.c].i[l] != 0 ? 0 : 1U << l; });
  }
  uint32_t mask = zeros | in_bounds(warp, from, warp.mask & ~zeros, elements, "reads");
  mask = in_bounds(warp, to, mask, elements, "writes");
  const uint32_t reads = mask & ~zeros;
  check_alignment(warp, from, reads, elements);
  check_alignment(warp, to, mask, elements);
  check_waited(warp, from, reads, false);
  check_waited(warp, to, mask, true);
  count(warp, from, reads, elements, false);
  count(warp, to, mask, elements, true);
  TensorState& source = tensors_[from.tensor];
  TensorState& destination = tensors_[to.tensor];
  TC_CHECK(source.is_global && destination.code->tensor.memory == Memory::kShared && elements * source.bytes <= 16,
           "'{}' is no copy from global to shared memory of at most 16 bytes", code_.sites[to.site]);
  for_each_lane(mask, [&](int l) {
    Copy copy{l, warp.group[l], to.tensor, warp.registers[to.address].i[l], elements, to.site, n.a, {}};
    const bool is_read = reads >> l & 1;
    const int64_t source_offset = warp.registers[from.address].i[l];
    for (int e = 0; e < elements; ++e) {
      if (is_read && (source.watched || source.defined)) check_read(warp, from, source, l, source_offset + e);
      check_write(warp, to, destination, l, copy.offset + e, Shadow::kPending);
      if (destination.defined) (*destination.defined)[static_cast<size_t>(copy.offset + e)] = 0;
    }
    if (is_read) {
      std::memcpy(copy.bytes.data(), source.data + source_offset * source.bytes,
                  static_cast<size_t>(elements * source.bytes));
    }
    warp.copies.push_back(copy);
  });
}

void Machine::wait(Warp& warp, int64_t pending) {
  const auto arrives = [&](const Copy& copy) {
    return (warp.mask >> copy.lane & 1) && copy.group < warp.group[copy.lane] - pending;
  };
  for (const Copy& copy : warp.copies) {
    if (!arrives(copy)) continue;
    TensorState& tensor = tensors_[copy.tensor];
    std::memcpy(tensor.data + copy.offset * tensor.bytes, copy.bytes.data(),
                static_cast<size_t>(copy.elements * tensor.bytes));
    for (int64_t e = copy.offset; e < copy.offset + copy.elements; ++e) {
      if (tensor.watched) tensor.shadow[static_cast<size_t>(e)].record_write(moment(warp, copy.lane, copy.site), 0);
      if (tensor.defined) (*tensor.defined)[static_cast<size_t>(e)] = 1;
      if (tensor.code->stored) mark_unfenced(warp, code_.accesses[copy.access], copy.lane, e);
    }
  }
  std::erase_if(warp.copies, arrives);
}

/// Whether all threads of a warp have come; a finding says who has not.
bool Machine::is_together(Warp& warp, int site, const char* what) {
  if (warp.mask == warp.existing) return true;
  report(Finding::Kind::kDivergence, site, [&] {
    return fmt::format("{}: thread {} of block {} does not reach the {} '{}' that other threads of its warp reach",
                       kernel_.name, thread_text(warp.index * kLanes + std::countr_zero(warp.existing & ~warp.mask)),
                       block_text(), what, code_.sites[site]);
  });
  return false;
}

void Machine::shuffle(Warp& warp, const Instruction& n) {
  const Access& access = code_.accesses[n.a];
  is_together(warp, access.site, "shuffle");
  const auto kind = static_cast<Shuffle::Kind>(n.flag);
  const auto width = static_cast<int>(n.immediate);
  const Lanes& value = warp.registers[n.b];
  const auto& other = warp.registers[n.c].i;
  Lanes result{};
  for_each_lane(warp.mask, [&](int l) {
    const int first = l / width * width;
    int64_t source = kind == Shuffle::Kind::kXor    ? l ^ other[l]
                     : kind == Shuffle::Kind::kDown ? l + other[l]
                                                    : first + (other[l] & (width - 1));
    if (source >= first + width || source < 0) source = l;  // nobody there: a thread keeps its own
    if (!(warp.mask >> source & 1)) {
      report(Finding::Kind::kDivergence, access.site, [&] {
        return fmt::format("{}: thread {} of block {} takes a value from lane {} in '{}', which takes no part",
                           kernel_.name, thread_text(warp.index * kLanes + l), block_text(), source,
                           code_.sites[access.site]);
      });
    }
    copy_lane(tensors_[access.tensor].code->type, result, l, value, static_cast<int>(source));
  });
  store(warp, n.a, result, warp.mask);
}

void Machine::count(Warp& warp, const Access& access, uint32_t mask, int elements, bool writes) {
  const TensorState& tensor = tensors_[access.tensor];
  if (mask == 0 || tensor.code->register_base >= 0) return;
  const int width = tensor.bytes * elements;
  if (tensor.is_global) {
    (writes ? counters_.global_bytes_written : counters_.global_bytes_read) += int64_t{width} * std::popcount(mask);
  }
  if (!options_.count) return;
  const auto& address = warp.registers[access.address].i;
  std::array<int64_t, kLanes> bytes{};
  const int64_t base = tensor.is_global ? 0 : tensor.code->shared_offset;
  for (int l = 0; l < kLanes; ++l) bytes[l] = base + address[l] * tensor.bytes;
  if (!tensor.is_global) return count_shared(bytes, mask, width);
  ++counters_.global_requests;
  std::array<int64_t, kLanes> sectors{};
  int distinct = 0;
  bool sorted = true;
  for_each_lane(mask, [&](int l) {
    const int64_t sector = bytes[l] / 32;
    if (distinct > 0 && sectors[distinct - 1] == sector) return;
    sorted &= distinct == 0 || sectors[distinct - 1] < sector;
    sectors[distinct++] = sector;
  });
  if (!sorted) {
    std::sort(sectors.begin(), sectors.begin() + distinct);
    distinct = static_cast<int>(std::unique(sectors.begin(), sectors.begin() + distinct) - sectors.begin());
  }
  counters_.global_sectors += distinct;
}

void Machine::count_shared(const std::array<int64_t, kLanes>& bytes, uint32_t mask, int width) {
  constexpr int kBanks = 32;
  const int words = std::max(1, width / 4);  // of a lane
  const int group = kLanes / words;          // lanes that are served together
  for (int first = 0; first < kLanes; first += group) {
    const uint32_t part = mask >> first & (group == 32 ? ~uint32_t{0} : (uint32_t{1} << group) - 1);
    if (part == 0) continue;
    std::array<std::array<int64_t, kLanes>, kBanks> seen;
    std::array<int, kBanks> ways{};
    int most = 1;
    for_each_lane(part, [&](int lane) {
      for (int w = 0; w < words; ++w) {
        const int64_t word = bytes[first + lane] / 4 + w;
        const auto bank = static_cast<size_t>(word % kBanks);
        const auto end = seen[bank].begin() + ways[bank];
        if (std::find(seen[bank].begin(), end, word) != end) continue;
        seen[bank][ways[bank]++] = word;
        most = std::max(most, ways[bank]);
      }
    });
    ++counters_.shared_requests;
    counters_.shared_wavefronts += most;
  }
}

}  // namespace tc::tile
