#pragma once

#include <string>
#include <string_view>

#include "tc/tile/matrix_descriptor.h"

/// The helpers of kernels with rings, boxes and products of warpgroups (Hopper).
namespace tc::cuda {

/// mbarriers of a ring (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier").
std::string_view ring_text();
std::string_view hand_over_text();
/// Copies of boxes (PTX ISA, "cp.async.bulk.tensor").
std::string_view box_copy_text();
/// Descriptors, and waits for products (PTX ISA, "wgmma.wait_group").
std::string_view shared_ring_text();
std::string_view shared_box_copy_text();
/// The barrier of a cluster (PTX ISA, "barrier.cluster"), and reads of its blocks' shared memory (PTX ISA, "mapa").
std::string_view cluster_step_text();
std::string_view cluster_load_text();
std::string_view products_text();
std::string_view integer_sums_text();
std::string_view held_text();
std::string_view renewed_text();
/// Stores of boxes and their groups (PTX ISA, "cp.async.bulk.tensor", "cp.async.bulk.wait_group", "fence.proxy").
std::string_view box_store_text();
/// A barrier of a warpgroup (PTX ISA, "bar.sync"); barrier 0 is the block's.
std::string_view group_barrier_text();
std::string_view registers_text();

/// A kind of WarpgroupMatMul, which has a function of its own.
struct WarpgroupProduct {
  tile::WarpgroupAtom atom;
  int slices = 1;
  std::optional<tile::MatrixDescriptor> a;  ///< absent: threads hold it
  tile::MatrixDescriptor b;
  bool starts = false;
};
/// "multiply_f16_m64n256k64_kn": with the majors of a and b, or r for an a in registers; "set_products_...", where it
/// starts a sum.
std::string function_of(const WarpgroupProduct& product);
std::string text_of(const WarpgroupProduct& product);

}  // namespace tc::cuda
