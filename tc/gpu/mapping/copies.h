#pragma once

#include <string>
#include <vector>

#include "tc/gpu/mapping/kernel.h"
#include "tc/poly/band_ref.h"

namespace tc::gpu {

struct CopyOptions {
  int64_t vector_bytes = 16;  ///< that a thread moves at once, at most
  bool by_one = false;        ///< by the block's first thread instead of all
  int64_t stages = 1;         ///< more: asynchronous, that many less one iterations ahead (lower/pipeline.h)
};

/// Holds the part of a tensor that is used below a node in a buffer in shared memory, with its copies as statements
/// that all threads of the block run together, and the order that the buffer asks for.
///     X        ==>   promote:A
///                      sequence
///                        bind: A_in[prefix]      if something is read before it is written
///                        X
///                        bind: A_out[prefix]     if something that is written is seen outside
/// The node stands above the regions. Copies move vectors of up to 16 bytes where both ends are aligned; a buffer whose
/// columns are read by neighbouring threads moves single elements and has rows of odd length, free of bank conflicts.
/// With stages, the buffer asks for no order: the loop above it keeps that itself.
/// After bind() and before place_barriers(), with no other change of the tree above the node to come.
/// Errors, with the reason: no box of constant size; a tensor that data-dependent subscripts write; elements of the box
/// that hold nothing yet, or that others write.
Result<Kernel> hold_in_shared_at(const Kernel& kernel, const poly::NodeRef& node, const std::string& tensor,
                                 const CopyOptions& options = {});

/// The tensor's part of the block's shared memory if it is held at the node, in bytes.
int64_t shared_bytes_at(const Kernel& kernel, const poly::NodeRef& node, const std::string& tensor);

/// The bytes of all buffers in shared memory.
int64_t shared_bytes(const Kernel& kernel);

/// Whether threads that are neighbours in x touch the tensor below the node along another dimension than its last.
bool across_rows(const Kernel& kernel, const poly::NodeRef& node, const std::string& tensor);

}  // namespace tc::gpu
