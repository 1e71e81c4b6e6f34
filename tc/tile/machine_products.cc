#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "tc/support/float8.h"
#include "tc/tile/lanes.h"
#include "tc/tile/machine.h"

/// Products of warpgroups: each warp does its 16 rows, at some time before it has waited for them. Operands are found
/// by the bits of matrix descriptors (PTX ISA, "Matrix descriptor" and "Strides" of wgmma.mma_async).
namespace tc::tile {
namespace {

constexpr int kWarps = 4;
constexpr int kRows = WarpgroupAtom::kM / kWarps;  // of a warp

/// The values of all bits, of a type of at most 16.
const std::vector<float>& floats_of(ScalarType type) {
  const auto made = [](ScalarType of) {
    std::vector<float> all;
    for (uint32_t bits = 0; bits < 1U << bits_of(of); ++bits) {
      all.push_back(of == ScalarType::kInt8    ? static_cast<float>(static_cast<int8_t>(bits))
                    : of == ScalarType::kUInt8 ? static_cast<float>(bits)
                    : is_float8(of)            ? static_cast<float>(float8_from_bits(of, static_cast<uint8_t>(bits)))
                                               : float_from_bits(of, static_cast<uint16_t>(bits)));
    }
    return all;
  };
  static const std::vector<float> bytes = made(ScalarType::kInt8), unsigned_bytes = made(ScalarType::kUInt8);
  if (is_integer(type)) return is_signed_integer(type) ? bytes : unsigned_bytes;
  static const std::vector<float> halves = made(ScalarType::kFloat16), brains = made(ScalarType::kBFloat16),
                                  e4m3 = made(ScalarType::kFloat8E4M3), e5m2 = made(ScalarType::kFloat8E5M2);
  if (is_float8(type)) return type == ScalarType::kFloat8E4M3 ? e4m3 : e5m2;
  return type == ScalarType::kBFloat16 ? brains : halves;
}

/// What the instruction takes of an element in memory.
float element_at(const std::byte* from, ScalarType type) {
  if (type == ScalarType::kFloat32) {
    float value = 0;
    std::memcpy(&value, from, sizeof value);
    return tf32_part(value);
  }
  uint16_t bits = 0;
  std::memcpy(&bits, from, static_cast<size_t>(bytes_of(type)));
  return floats_of(type)[bits];
}

/// A sum of products of integers of 8 bits, which wraps around.
int32_t add_integers(const float* a, const float* b, int count, int32_t sum) {
  for (int i = 0; i < count; ++i) {
    sum = static_cast<int32_t>(static_cast<uint32_t>(sum) +
                               static_cast<uint32_t>(static_cast<int32_t>(a[i]) * static_cast<int32_t>(b[i])));
  }
  return sum;
}

/// The byte of element (mn, k) of the tile that a descriptor describes.
int64_t address_in(uint64_t descriptor, bool mn_major, int64_t bytes, int64_t mn, int64_t k) {
  const auto field = [&](int from) { return static_cast<int64_t>(descriptor >> from & 0x3fff) << 4; };
  const int64_t start = field(0), leading = field(16), stride = field(32);
  const int64_t address = mn_major ? start + mn / 64 * leading + k / 8 * stride + k % 8 * 128 + mn % 64 * 2
                                   : start + mn / 8 * stride + mn % 8 * 128 + k * bytes;
  return address ^ ((address >> 7 & 7) << 4);
}

}  // namespace

int64_t Machine::shared_address(const Warp& warp, int access) const {
  const Access& of = code_.accesses[static_cast<size_t>(access)];
  const TensorState& tensor = tensors_[static_cast<size_t>(of.tensor)];
  const int64_t offset = warp.registers[static_cast<size_t>(of.address)].i[std::countr_zero(warp.mask)];
  return tensor.code->shared_offset + offset * tensor.bytes;
}

/// A product has registers for itself until a wait names them. What it reads has been written, or comes from products.
void Machine::take_registers(Warp& warp, const BusyRegisters& registers, bool reads, int site) {
  const CodeTensor& tensor = *tensors_[static_cast<size_t>(registers.tensor)].code;
  const bool is_under_way = std::find(warp.busy.begin(), warp.busy.end(), registers) != warp.busy.end();
  for (int64_t e = registers.first; e < registers.first + registers.count; ++e) {
    uint32_t& defined = warp.element_defined[static_cast<size_t>(tensor.register_base + e)];
    if (reads && !is_under_way && options_.check && defined != warp.existing) {
      report(Finding::Kind::kUninitialised, site, [&] {
        return fmt::format("{}: warp {} of block {} starts the products '{}', but '{}' holds nothing yet", kernel_.name,
                           warp.index, block_text(), code_.sites[site], tensor.tensor.name);
      });
    }
    defined = 0;
  }
  if (!is_under_way) warp.busy.push_back(registers);
}

void Machine::start_product(Warp& warp, const CodeProduct& n, int site) {
  if (!is_together(warp, site, "product")) return;
  const auto fault = [&](Finding::Kind kind, const std::string& why) {
    report(kind, site, [&] {
      return fmt::format("{}: warp {} of block {} starts the products '{}', {}", kernel_.name, warp.index, block_text(),
                         code_.sites[site], why);
    });
  };
  for (const CodeProduct::Tile* tile : {&n.a, &n.b}) {
    const Access& access = code_.accesses[static_cast<size_t>(tile->access)];
    const bool is_held = tile == &n.a && n.held >= 0;
    if (!tile->descriptor && !is_held) {
      return fault(Finding::Kind::kRing, "but no descriptor says how its operands lie");
    }
    if (in_bounds(warp, access, warp.mask, 1, "reads") != warp.mask) return;
    const auto& address = warp.registers[static_cast<size_t>(access.address)].i;
    const bool same = std::all_of(address.begin(), address.end(), [&](int64_t a) { return a == address[0]; });
    if (!same) fault(Finding::Kind::kDivergence, "whose threads name different tiles");
  }
  Product product{&n, site, shared_address(warp, n.a.access), shared_address(warp, n.b.access), {}, false};
  if (n.held >= 0) {
    const CodeTensor& held = *tensors_[static_cast<size_t>(n.held)].code;
    const int64_t count = int64_t{n.slices} * n.atom.values_of_a();
    product.a = warp.registers[static_cast<size_t>(code_.accesses[static_cast<size_t>(n.a.access)].address)]
                    .i[std::countr_zero(warp.mask)];
    if (product.a + count > held.tensor.elements()) {
      return fault(Finding::Kind::kOutOfBounds,
                   fmt::format("which take more registers than '{}' has", held.tensor.name));
    }
    take_registers(warp, {n.held, product.a, count}, true, site);
  }
  auto& starts = starts_[static_cast<size_t>(warp.index / kWarps)];
  const ProductStart start{site, product.a, product.b};
  if (warp.products_started == starts.size()) starts.push_back(start);
  if (starts[warp.products_started++] != start) {
    fault(Finding::Kind::kDivergence, "while another one of its warpgroup starts others");
  }
  take_registers(warp, {n.d, n.d_first, n.atom.values()}, !n.starts, site);
  for (int slice = 0; slice < n.slices; ++slice) {
    if (n.held < 0) fetch(warp, product, true, slice, nullptr);
    fetch(warp, product, false, slice, nullptr);
  }
  warp.products.push_back(std::move(product));
  budget_ -= static_cast<int64_t>(random_() % 16);
}

/// The warp's 16 rows of a slice that its threads hold.
void Machine::fetch_held(Warp& warp, const Product& product, int slice, std::vector<float>& to) const {
  const CodeProduct& n = *product.code;
  const ScalarType type = n.atom.a;
  const int depth = n.atom.k(), values = n.atom.values_of_a(), together = 4 / bytes_of(type);
  const int64_t first = tensors_[static_cast<size_t>(n.held)].code->register_base + product.a + slice * values;
  for (int v = 0; v < values; ++v) {
    const Lanes& held = warp.elements[static_cast<size_t>(first + v)];
    const int part = v / together;
    for (int l = 0; l < kLanes; ++l) {
      const int row = l / 4 + part % 2 * 8, k = l % 4 * together + part / 2 * (depth / 2) + v % together;
      float& value = to[static_cast<size_t>(row * depth + k)];
      value = bytes_of(type) == 1            ? floats_of(type)[static_cast<uint8_t>(held.i[l])]
              : type == ScalarType::kFloat32 ? tf32_part(held.f[l])
                                             : held.f[l];
    }
  }
}

/// Goes through the 16-byte parts of an operand that the warp reads, for one slice: its rows of a, or all of b.
/// Without `to` it is the time of issue; otherwise values go there, those along k for each row of a, or column of b.
void Machine::fetch(Warp& warp, Product& product, bool is_a, int slice, std::vector<float>* to) {
  const CodeProduct& n = *product.code;
  const CodeProduct::Tile& tile = is_a ? n.a : n.b;
  const MatrixDescriptor& descriptor = *tile.descriptor;
  const uint64_t bits = descriptor.bits(static_cast<uint64_t>(is_a ? product.a : product.b)) +
                        static_cast<uint64_t>(slice * descriptor.slice / 16);
  const ScalarType type = is_a ? n.atom.a : n.atom.b;
  const int bytes = bytes_of(type), together = static_cast<int>(kChunk) / bytes, depth = n.atom.k();
  const int first = is_a ? warp.index % kWarps * kRows : 0, count = is_a ? kRows : n.atom.n;
  const int mn_step = descriptor.mn_major ? together : 1, k_step = descriptor.mn_major ? 1 : together;
  for (int mn = 0; mn < count; mn += mn_step) {
    for (int k = 0; k < depth; k += k_step) {
      const int64_t address = address_in(bits, descriptor.mn_major, bytes, first + mn, k);
      check_chunk(warp, product, tile, address, to == nullptr);
      if (!to || address + kChunk > std::ssize(shared_)) continue;
      for (int i = 0; i < together; ++i) {
        const int at_mn = mn + (descriptor.mn_major ? i : 0), at_k = k + (descriptor.mn_major ? 0 : i);
        (*to)[static_cast<size_t>(at_mn * depth + at_k)] = element_at(shared_.data() + address + i * bytes, type);
      }
    }
  }
}

/// The warp has awaited what it reads, and not released it: at the time of issue, and when it reads.
void Machine::check_chunk(Warp& warp, Product& product, const CodeProduct::Tile& tile, int64_t address, bool is_issue) {
  const auto fault = [&](Finding::Kind kind, const std::string& why) {
    report(kind, product.site, [&] {
      return fmt::format(
          "{}: warp {} of block {} reads '{}' at address {} in the products '{}', {}", kernel_.name, warp.index,
          block_text(),
          tensors_[static_cast<size_t>(code_.accesses[static_cast<size_t>(tile.access)].tensor)].code->tensor.name,
          address, code_.sites[product.site], why);
    });
  };
  if (address % kChunk != 0 || address / kChunk >= std::ssize(chunks_)) {
    return fault(Finding::Kind::kOutOfBounds, "which is outside of shared memory, or no multiple of 16");
  }
  const Chunk& chunk = chunks_[static_cast<size_t>(address / kChunk)];
  if (chunk.filling.ring < 0) return fault(Finding::Kind::kUninitialised, "where no box has been copied to");
  std::vector<Filling>& reads = product.reads;
  const bool is_known = std::find(reads.begin(), reads.end(), chunk.filling) != reads.end();
  if (!chunk.arrived || !has_turn(warp, chunk.filling) || (!is_issue && !is_known)) {
    fault(Finding::Kind::kRing, fmt::format("which {} fills, outside of that turn", turn_text(chunk.filling)));
  }
  if (is_issue && !is_known) reads.push_back(chunk.filling);
}

void Machine::run_product(Warp& warp, Product& product) {
  const CodeProduct& n = *product.code;
  const CodeTensor& d = *tensors_[static_cast<size_t>(n.d)].code;
  const int depth = n.atom.k();
  const SumPlaces places = sum_places(n.atom.a);
  std::vector<float> a(static_cast<size_t>(kRows * depth)), b(static_cast<size_t>(n.atom.n * depth));
  for (int slice = 0; slice < n.slices; ++slice) {
    if (n.held >= 0) {
      fetch_held(warp, product, slice, a);
    } else {
      fetch(warp, product, true, slice, &a);
    }
    fetch(warp, product, false, slice, &b);
    for (int v = 0; v < n.atom.values(); ++v) {
      Lanes& sums = warp.elements[static_cast<size_t>(d.register_base + n.d_first + v)];
      for (int l = 0; l < kLanes; ++l) {
        const int row = l / 4 + v / 2 % 2 * 8, column = v / 4 * 8 + l % 4 * 2 + v % 2;
        const bool is_first = n.starts && slice == 0;
        const float *of_row = a.data() + row * depth, *of_column = b.data() + column * depth;
        if (is_integer(n.atom.a)) {
          sums.i[l] = add_integers(of_row, of_column, depth, is_first ? 0 : static_cast<int32_t>(sums.i[l]));
        } else {
          sums.f[l] = add_products(of_row, of_column, depth, is_first ? 0 : sums.f[l], places);
        }
      }
    }
  }
  product.done = true;
}

/// Carries out the first ones, in order.
void Machine::run_products(Warp& warp, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!warp.products[i].done) run_product(warp, warp.products[i]);
  }
}

void Machine::wait_products(Warp& warp, const CodeProductWait& n, int site) {
  if (!is_together(warp, site, "wait")) return;
  while (std::ssize(warp.products) > n.pending) {
    run_products(warp, 1);
    warp.products.pop_front();
  }
  for (int named : n.sums) {
    const CodeTensor& tensor = *tensors_[static_cast<size_t>(named)].code;
    if (std::any_of(warp.products.begin(), warp.products.end(), [&](const Product& p) { return uses(p, named); })) {
      report(Finding::Kind::kPending, site, [&] {
        return fmt::format("{}: warp {} of block {} takes '{}' as finished in '{}', but products still use it",
                           kernel_.name, warp.index, block_text(), tensor.tensor.name, code_.sites[site]);
      });
      continue;
    }
    std::erase_if(warp.busy, [&](const BusyRegisters& busy) {
      if (busy.tensor != named) return false;
      const auto first = warp.element_defined.begin() + tensor.register_base + busy.first;
      std::fill(first, first + busy.count, warp.existing);
      return true;
    });
  }
}

bool Machine::uses(const Product& product, int tensor) {
  return product.code->d == tensor || product.code->held == tensor;
}

/// The registers of products are nobody's until a wait has named them.
void Machine::check_busy(Warp& warp, const Access& access, const char* verb) {
  if (warp.busy.empty() || std::ranges::find(warp.busy, access.tensor, &BusyRegisters::tensor) == warp.busy.end()) {
    return;
  }
  report(Finding::Kind::kPending, access.site, [&] {
    return fmt::format("{}: warp {} of block {} {} {} in '{}' before it has waited for the products that use it",
                       kernel_.name, warp.index, block_text(), verb,
                       element_text(warp, access, std::countr_zero(warp.mask)), code_.sites[access.site]);
  });
}

/// A register tensor begins anew.
void Machine::abandon_registers(Warp& warp, int tensor) {
  if (warp.busy.empty()) return;
  for (const Product& product : warp.products) {
    if (!uses(product, tensor)) continue;
    report(Finding::Kind::kPending, product.site, [&] {
      return fmt::format("{}: warp {} of block {} leaves '{}' before it has waited for the products '{}'", kernel_.name,
                         warp.index, block_text(), tensors_[static_cast<size_t>(tensor)].code->tensor.name,
                         code_.sites[product.site]);
    });
  }
  std::erase_if(warp.busy, [&](const BusyRegisters& busy) { return busy.tensor == tensor; });
}

}  // namespace tc::tile
