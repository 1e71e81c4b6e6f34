#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tc/gpu/strategy/contraction/contraction.h"
#include "tc/gpu/strategy/contraction/plan.h"
#include "tc/tile/program.h"

/// What a contraction leaves in memory, and how boxes store it: rows of a block's results go to a staging buffer in
/// shared memory, from which one thread of each warpgroup stores them.
namespace tc::gpu {

/// Whether somebody behind the contraction may look at a tensor that it writes; the statement `reader` does not count.
bool is_seen(const poly::Scop& scop, const Contraction& contraction, const std::string& tensor,
             const std::string& reader = "");

/// The tensors that a contraction writes, in order: the update's, then those of other statements and products.
std::vector<std::string> written_tensors(const Contraction& contraction);

/// Those of them that are seen.
std::vector<StoredTensor> stored_tensors(const poly::Scop& scop, const Contraction& contraction);

/// The tensor in which a product's values end, if it is known before there is a kernel: the statement's own, or where
/// the only statements that read it take it, element by element.
std::optional<StoredTensor> expected_stored(const ir::Program& program, const ir::Statement& statement,
                                            const Contraction& contraction);

/// Elements of such a tensor that a contraction writes.
double elements_stored(const Contraction& contraction, const StoredTensor& stored);

inline constexpr int64_t kStagedRows = 64;  ///< of a box: those of a warpgroup

/// Instructions of a thread for all that is done to one of its results, about.
double instructions_of_point(const ir::Program& program, const Contraction& contraction);

/// Whether neighbours of a result in memory are along the rows of an instruction. Then a staging buffer has a row for
/// each column of the tile.
bool lies_across(const StoredTensor& stored, const Contraction& contraction, const ContractionPlan& plan);

/// Columns of a block that are staged at once, the most that lie in swizzled rows, or are such rows, and divide the
/// block's; 0: none.
int64_t staged_columns(const Contraction& contraction, const ContractionPlan& plan);

/// Such parts of a warpgroup's results, each of the rows of one instruction.
int64_t slabs_of(const Contraction& contraction, const ContractionPlan& plan);

/// Staging buffers of a warpgroup.
int64_t staging_buffers(const Contraction& contraction, const ContractionPlan& plan);

/// Bytes of a result's staging buffers, of all warpgroups.
int64_t staging_bytes(const StoredTensor& stored, const Contraction& contraction, const ContractionPlan& plan);

/// Why boxes do not store a block's results; empty: they do.
std::string store_fault(const Contraction& contraction, const ContractionPlan& plan);

/// A result's map, where store_fault() finds nothing.
tile::TensorMap map_of(const StoredTensor& stored, const Contraction& contraction, const ContractionPlan& plan,
                       const std::string& name);

}  // namespace tc::gpu
