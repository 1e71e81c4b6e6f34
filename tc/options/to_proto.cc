#include "tc/options/to_proto.h"

namespace tc::options {
namespace {

proto::FusionStrategy to_proto(Fusion fusion) {
  switch (fusion) {
    case Fusion::kMax:
      return proto::MAX;
    case Fusion::kPreserve3Coincident:
      return proto::PRESERVE_3_COINCIDENT;
    case Fusion::kMin:
      return proto::MIN;
  }
  return proto::FUSION_UNSPECIFIED;
}

std::optional<Fusion> from_proto(proto::FusionStrategy fusion) {
  switch (fusion) {
    case proto::MAX:
      return Fusion::kMax;
    case proto::PRESERVE_3_COINCIDENT:
      return Fusion::kPreserve3Coincident;
    case proto::MIN:
      return Fusion::kMin;
    default:
      return std::nullopt;
  }
}

void set_scheduler(const SchedulerOptions& options, proto::SchedulerOptions& message) {
  const SchedulerOptions defaults;
  if (options.fusion) message.set_fusion_strategy(to_proto(*options.fusion));
  if (options.allow_skewing != defaults.allow_skewing) message.set_allow_skewing(options.allow_skewing);
  if (options.positive_orthant != defaults.positive_orthant) message.set_positive_orthant(options.positive_orthant);
}

SchedulerOptions from_proto(const proto::SchedulerOptions& message) {
  SchedulerOptions options;
  options.fusion = from_proto(message.fusion_strategy());
  if (message.has_allow_skewing()) options.allow_skewing = message.allow_skewing();
  if (message.has_positive_orthant()) options.positive_orthant = message.positive_orthant();
  return options;
}

}  // namespace

proto::CpuOptions to_proto(const CpuOptions& options) {
  const CpuOptions defaults;
  proto::CpuOptions message;
  if (options.scheduler != defaults.scheduler) set_scheduler(options.scheduler, *message.mutable_scheduler());
  message.mutable_tile()->Add(options.tile.begin(), options.tile.end());
  if (options.vector_width) message.set_vector_width(*options.vector_width);
  if (options.unroll) message.set_unroll(*options.unroll);
  if (options.parallel) message.set_parallel(*options.parallel);
  if (options.promote) message.set_promote(*options.promote);
  if (options.strict != defaults.strict) message.set_strict(options.strict);
  if (options.check_bounds != defaults.check_bounds) message.set_check_bounds(options.check_bounds);
  return message;
}

CpuOptions from_proto(const proto::CpuOptions& message) {
  CpuOptions options;
  options.scheduler = from_proto(message.scheduler());
  options.tile.assign(message.tile().begin(), message.tile().end());
  if (message.has_vector_width()) options.vector_width = message.vector_width();
  if (message.has_unroll()) options.unroll = message.unroll();
  if (message.has_parallel()) options.parallel = message.parallel();
  if (message.has_promote()) options.promote = message.promote();
  if (message.has_strict()) options.strict = message.strict();
  if (message.has_check_bounds()) options.check_bounds = message.check_bounds();
  return options;
}

proto::MappingOptions to_proto(const MappingOptions& options) {
  const MappingOptions defaults;
  proto::MappingOptions message;
  if (options.outer_schedule_options != defaults.outer_schedule_options) {
    set_scheduler(options.outer_schedule_options, *message.mutable_outer_schedule_options());
  }
  message.mutable_tile()->Add(options.tile.begin(), options.tile.end());
  message.mutable_map_to_threads()->Add(options.map_to_threads.begin(), options.map_to_threads.end());
  message.mutable_map_to_blocks()->Add(options.map_to_blocks.begin(), options.map_to_blocks.end());
  if (options.use_private_memory) message.set_use_private_memory(*options.use_private_memory);
  if (options.strict != defaults.strict) message.set_strict(options.strict);
  return message;
}

MappingOptions from_proto(const proto::MappingOptions& message) {
  MappingOptions options;
  options.outer_schedule_options = from_proto(message.outer_schedule_options());
  options.tile.assign(message.tile().begin(), message.tile().end());
  options.map_to_threads.assign(message.map_to_threads().begin(), message.map_to_threads().end());
  options.map_to_blocks.assign(message.map_to_blocks().begin(), message.map_to_blocks().end());
  if (message.has_use_private_memory()) options.use_private_memory = message.use_private_memory();
  if (message.has_strict()) options.strict = message.strict();
  return options;
}

}  // namespace tc::options
