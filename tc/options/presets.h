#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tc/options/mapping.h"

namespace tc::options {

/// Starting points by kind of program, under the names that Tensor Comprehensions gave them.
MappingOptions naive();          ///< 32x32x32 tiles, blocks of 32x8: works for everything, best for nothing
MappingOptions single_thread();  ///< one thread of one block: to look for faults
MappingOptions pointwise();
MappingOptions mlp();
MappingOptions conv();
MappingOptions group_conv();

/// All of them by name.
const std::vector<std::pair<std::string, MappingOptions>>& presets();
std::optional<MappingOptions> find_preset(const std::string& name);

/// Builds MappingOptions field by field:
///     const MappingOptions options = MappingBuilder(conv()).tile({4, 8, 8}).map_to_threads({4, 16, 4}).unroll(4);
class MappingBuilder {
 public:
  MappingBuilder() = default;
  explicit MappingBuilder(MappingOptions from) : options_(std::move(from)) {}

  MappingBuilder& outer_fusion(Fusion to) { return set(options_.outer_schedule_options.fusion, to); }
  MappingBuilder& outer_skewing(bool to) { return set(options_.outer_schedule_options.allow_skewing, to); }
  MappingBuilder& outer_positive_orthant(bool to) { return set(options_.outer_schedule_options.positive_orthant, to); }
  MappingBuilder& intra_tile_fusion(Fusion to) { return set(options_.intra_tile_schedule_options.fusion, to); }
  MappingBuilder& intra_tile_skewing(bool to) { return set(options_.intra_tile_schedule_options.allow_skewing, to); }
  MappingBuilder& intra_tile_positive_orthant(bool to) {
    return set(options_.intra_tile_schedule_options.positive_orthant, to);
  }
  MappingBuilder& fix_parameters_before_scheduling(bool to) {
    return set(options_.fix_parameters_before_scheduling, to);
  }
  MappingBuilder& tile(std::vector<int64_t> to) { return set(options_.tile, std::move(to)); }
  MappingBuilder& unroll(int64_t to) { return set(options_.unroll, to); }
  MappingBuilder& match_library_calls(bool to) { return set(options_.match_library_calls, to); }
  MappingBuilder& map_to_threads(std::vector<int64_t> to) { return set(options_.map_to_threads, std::move(to)); }
  MappingBuilder& map_to_blocks(std::vector<int64_t> to) { return set(options_.map_to_blocks, std::move(to)); }
  MappingBuilder& use_shared_memory(bool to) { return set(options_.use_shared_memory, to); }
  MappingBuilder& use_private_memory(bool to) { return set(options_.use_private_memory, to); }
  MappingBuilder& unroll_copy_shared(bool to) { return set(options_.unroll_copy_shared, to); }
  MappingBuilder& max_shared_memory(int64_t bytes) { return set(options_.max_shared_memory, bytes); }
  MappingBuilder& use_readonly_cache(bool to) { return set(options_.use_readonly_cache, to); }
  MappingBuilder& shared_depth(int64_t to) { return set(options_.shared_depth, to); }
  MappingBuilder& private_depth(int64_t to) { return set(options_.private_depth, to); }
  MappingBuilder& register_tile(std::vector<int64_t> to) { return set(options_.register_tile, std::move(to)); }
  MappingBuilder& copy_stages(int64_t to) { return set(options_.copy_stages, to); }
  MappingBuilder& cluster(std::vector<int64_t> to) { return set(options_.cluster, std::move(to)); }
  MappingBuilder& store_boxes(bool to) { return set(options_.store_boxes, to); }
  MappingBuilder& persistent(bool to) { return set(options_.persistent, to); }
  MappingBuilder& ping_pong(bool to) { return set(options_.ping_pong, to); }
  MappingBuilder& split_reduction(int64_t parts) { return set(options_.split_reduction, parts); }
  MappingBuilder& split_results(std::vector<int64_t> first) { return set(options_.split_results, std::move(first)); }
  MappingBuilder& max_gathered_memory(int64_t bytes) { return set(options_.max_gathered_memory, bytes); }
  MappingBuilder& atomic_reduction(bool to) { return set(options_.atomic_reduction, to); }
  MappingBuilder& kernel(std::vector<KernelOptions> to) { return set(options_.kernel, std::move(to)); }
  MappingBuilder& strict(bool to) { return set(options_.strict, to); }
  MappingBuilder& tensor_cores(bool to) { return set(options_.tensor_cores, to); }
  MappingBuilder& copy_operands(bool to) { return set(options_.copy_operands, to); }
  MappingBuilder& chain(bool to) { return set(options_.chain, to); }
  MappingBuilder& check_bounds(bool to) { return set(options_.check_bounds, to); }
  MappingBuilder& fast_accumulation(bool to) { return set(options_.fast_accumulation, to); }
  MappingBuilder& tf32(bool to) { return set(options_.tf32, to); }

  const MappingOptions& build() const { return options_; }
  operator MappingOptions() const { return options_; }  // NOLINT(google-explicit-constructor): reads as its result

 private:
  template <typename Field, typename Value>
  MappingBuilder& set(Field& field, Value&& value) {
    field = std::forward<Value>(value);
    return *this;
  }

  MappingOptions options_;
};

}  // namespace tc::options
