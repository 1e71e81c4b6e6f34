#include "tc/options/presets.h"

namespace tc::options {
namespace {

MappingBuilder scheduled(Fusion fusion) {
  return MappingBuilder().outer_fusion(fusion).fix_parameters_before_scheduling(true);
}

}  // namespace

MappingOptions naive() {
  return scheduled(Fusion::kPreserve3Coincident).tile({32, 32, 32}).map_to_threads({32, 8}).map_to_blocks({256, 256});
}

MappingOptions single_thread() {
  return scheduled(Fusion::kPreserve3Coincident)
      .tile({1})
      .map_to_threads({1})
      .map_to_blocks({1})
      .use_shared_memory(false)
      .use_private_memory(false);
}

MappingOptions pointwise() {
  return scheduled(Fusion::kPreserve3Coincident)
      .tile({32, 32, 32})
      .map_to_threads({32, 4, 4})
      .map_to_blocks({100, 100, 100})
      .use_shared_memory(false);
}

MappingOptions mlp() { return scheduled(Fusion::kMax).tile({1}).map_to_threads({128}).map_to_blocks({128}); }

MappingOptions conv() {
  return scheduled(Fusion::kPreserve3Coincident)
      .tile({4, 8, 8, 8})
      .map_to_threads({4, 16, 4})
      .map_to_blocks({256, 256, 256});
}

MappingOptions group_conv() {
  return scheduled(Fusion::kPreserve3Coincident).tile({1, 1}).map_to_threads({4, 16, 4}).map_to_blocks({256, 256});
}

const std::vector<std::pair<std::string, MappingOptions>>& presets() {
  static const std::vector<std::pair<std::string, MappingOptions>> kPresets = {
      {"naive", naive()}, {"single_thread", single_thread()}, {"pointwise", pointwise()}, {"mlp", mlp()},
      {"conv", conv()},   {"group_conv", group_conv()},
  };
  return kPresets;
}

std::optional<MappingOptions> find_preset(const std::string& name) {
  for (const auto& [preset, options] : presets()) {
    if (preset == name) return options;
  }
  return std::nullopt;
}

}  // namespace tc::options
