#pragma once

#include <cstdint>

#include "tc/gpu/strategy/contraction/plan.h"

/// Results of tensor cores that go through shared memory, so that a warp stores rows, lane after lane. A thread has
/// pairs of neighbours in a row, or groups of eight, and a warp has eight rows at once. Stored as they are, pairs of
/// two bytes fill half a sector of memory each, and rows that begin at no multiple of a vector have no vectors. A part
/// of a sector takes the L2 cache about as long as two whole ones: 4096 x 4096 halves take 35 us by pairs on an H100,
/// and 10 by rows.
namespace tc::gpu {

/// Whether threads store their pairs of columns, or groups of eight, by whole sectors of memory as they have them.
bool fills_sectors(const StoredTensor& stored, const ContractionPlan& plan);
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
/// Elements of a word by which rows of such a result are stored.
int64_t word_of(const StoredTensor& stored);
StagedRows staged_rows(const StoredTensor& stored, const ContractionPlan& plan);
/// Cycles of a processor for an element in such rows, where other warps hide all waits: as rows of 4096 to 4104 halves
/// took them on an H100.
double cycles_in_row(const StoredTensor& stored);

/// Where shared memory ends behind the staged rows.
int64_t shared_end_of_rows(const Contraction& contraction, const ContractionPlan& plan, int64_t end);

}  // namespace tc::gpu
