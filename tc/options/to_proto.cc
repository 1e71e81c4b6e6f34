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

}  // namespace

proto::CpuOptions to_proto(const CpuOptions& options) {
  const CpuOptions defaults;
  proto::CpuOptions message;
  if (options.scheduler != defaults.scheduler) {
    proto::SchedulerOptions& scheduler = *message.mutable_scheduler();
    if (options.scheduler.fusion) scheduler.set_fusion_strategy(to_proto(*options.scheduler.fusion));
    if (options.scheduler.allow_skewing != defaults.scheduler.allow_skewing) {
      scheduler.set_allow_skewing(options.scheduler.allow_skewing);
    }
    if (options.scheduler.positive_orthant != defaults.scheduler.positive_orthant) {
      scheduler.set_positive_orthant(options.scheduler.positive_orthant);
    }
  }
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
  const proto::SchedulerOptions& scheduler = message.scheduler();
  options.scheduler.fusion = from_proto(scheduler.fusion_strategy());
  if (scheduler.has_allow_skewing()) options.scheduler.allow_skewing = scheduler.allow_skewing();
  if (scheduler.has_positive_orthant()) options.scheduler.positive_orthant = scheduler.positive_orthant();
  options.tile.assign(message.tile().begin(), message.tile().end());
  if (message.has_vector_width()) options.vector_width = message.vector_width();
  if (message.has_unroll()) options.unroll = message.unroll();
  if (message.has_parallel()) options.parallel = message.parallel();
  if (message.has_promote()) options.promote = message.promote();
  if (message.has_strict()) options.strict = message.strict();
  if (message.has_check_bounds()) options.check_bounds = message.check_bounds();
  return options;
}

}  // namespace tc::options
