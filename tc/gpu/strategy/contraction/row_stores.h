#pragma once

#include <cstdint>

#include "tc/gpu/strategy/contraction/plan.h"

/// Results of tensor cores, of two bytes, whose rows do not begin at multiples of 16 bytes. A thread has pairs of
/// neighbours, or vectors of them. Of rows of odd length every other row's lie across words of memory, and of other
/// ones they are parts of sectors. So rows go through shared memory: lanes of a warp store the words of a row one
/// behind the other, of four or eight bytes. Of rows of odd length the first and last element are stored by themselves
/// if they are no word.
namespace tc::gpu {

/// Whether rows of a result are stored so.
bool is_stored_by_rows(const StoredTensor& stored, const Contraction& contraction, const ContractionPlan& plan);
/// Whether those of any result are.
bool stores_by_rows(const Contraction& contraction, const ContractionPlan& plan);

/// How rows are staged: by each warp of a warpgroup its own, else by all warps of a block together.
struct StagedRows {
  int64_t units = 1;    ///< warps of warpgroups; else 1
  int64_t rows = 1;     ///< of a unit at once: those of one register of its threads
  int64_t columns = 1;  ///< of the tile
  int64_t pitch = 1;    ///< elements from one row to the next
};
/// Elements of a word of such a result.
int64_t word_of(const StoredTensor& stored);
StagedRows staged_rows(const ContractionPlan& plan);

/// Where shared memory ends behind the staged rows.
int64_t shared_end_of_rows(const Contraction& contraction, const ContractionPlan& plan, int64_t end);

}  // namespace tc::gpu
