#pragma once

#include "tc/options/mapping.h"

namespace tc::options {

/// Calls visit(name, value) for each field of MappingOptions, in order of declaration; the name is that in the message.
template <typename Options, typename Visit>
void visit_fields(Options& o, Visit visit) {
  visit("outer_schedule_options", o.outer_schedule_options);
  visit("intra_tile_schedule_options", o.intra_tile_schedule_options);
  visit("fix_parameters_before_scheduling", o.fix_parameters_before_scheduling);
  visit("tile", o.tile);
  visit("unroll", o.unroll);
  visit("match_library_calls", o.match_library_calls);
  visit("map_to_threads", o.map_to_threads);
  visit("map_to_blocks", o.map_to_blocks);
  visit("use_shared_memory", o.use_shared_memory);
  visit("use_private_memory", o.use_private_memory);
  visit("unroll_copy_shared", o.unroll_copy_shared);
  visit("max_shared_memory", o.max_shared_memory);
  visit("use_readonly_cache", o.use_readonly_cache);
  visit("shared_depth", o.shared_depth);
  visit("private_depth", o.private_depth);
  visit("register_tile", o.register_tile);
  visit("copy_stages", o.copy_stages);
  visit("cluster", o.cluster);
  visit("store_boxes", o.store_boxes);
  visit("persistent", o.persistent);
  visit("ping_pong", o.ping_pong);
  visit("split_reduction", o.split_reduction);
  visit("split_results", o.split_results);
  visit("max_gathered_memory", o.max_gathered_memory);
  visit("atomic_reduction", o.atomic_reduction);
  visit("tensor_cores", o.tensor_cores);
  visit("copy_operands", o.copy_operands);
  visit("chain", o.chain);
  visit("strict", o.strict);
  visit("check_bounds", o.check_bounds);
  visit("fast_accumulation", o.fast_accumulation);
  visit("tf32", o.tf32);
  visit("kernel", o.kernel);
}

/// The same for the fields of KernelOptions that MappingOptions have too.
template <typename Options, typename Visit>
void visit_shared_fields(Options& o, Visit visit) {
  visit("tile", o.tile);
  visit("register_tile", o.register_tile);
  visit("map_to_threads", o.map_to_threads);
  visit("map_to_blocks", o.map_to_blocks);
  visit("copy_stages", o.copy_stages);
  visit("cluster", o.cluster);
  visit("store_boxes", o.store_boxes);
  visit("persistent", o.persistent);
  visit("ping_pong", o.ping_pong);
  visit("tensor_cores", o.tensor_cores);
  visit("chain", o.chain);
  visit("split_reduction", o.split_reduction);
  visit("split_results", o.split_results);
  visit("unroll", o.unroll);
  visit("unroll_copy_shared", o.unroll_copy_shared);
  visit("use_shared_memory", o.use_shared_memory);
  visit("use_private_memory", o.use_private_memory);
  visit("max_shared_memory", o.max_shared_memory);
  visit("shared_depth", o.shared_depth);
  visit("private_depth", o.private_depth);
  visit("match_library_calls", o.match_library_calls);
}

/// For each field of KernelOptions.
template <typename Visit>
void visit_fields(KernelOptions& o, Visit visit) {
  visit("writes", o.writes);
  visit("occurrence", o.occurrence);
  visit_shared_fields(o, visit);
}
template <typename Visit>
void visit_fields(const KernelOptions& o, Visit visit) {
  visit("writes", o.writes);
  visit("occurrence", o.occurrence);
  visit_shared_fields(o, visit);
}

}  // namespace tc::options
