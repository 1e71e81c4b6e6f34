#include "tc/options/to_proto.h"

#include "tc/options/mapping_fields.h"

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

/// Sets the fields of a message of MappingOptions or KernelOptions that differ from the default, found by their names.
struct MappingWriter {
  google::protobuf::Message& message;
  const google::protobuf::Reflection& reflection = *message.GetReflection();

  const google::protobuf::FieldDescriptor* field(const char* name) const {
    return message.GetDescriptor()->FindFieldByName(name);
  }
  void operator()(const char* name, const std::string& value) const {
    reflection.SetString(&message, field(name), value);
  }
  void operator()(const char* name, const std::vector<KernelOptions>& values) const {
    for (const KernelOptions& value : values) {
      visit_fields(value, MappingWriter{*reflection.AddMessage(&message, field(name))});
    }
  }
  void operator()(const char* name, const SchedulerOptions& value) const {
    if (value == SchedulerOptions()) return;
    set_scheduler(value, dynamic_cast<proto::SchedulerOptions&>(*reflection.MutableMessage(&message, field(name))));
  }
  void operator()(const char* name, const std::vector<int64_t>& values) const {
    for (int64_t value : values) reflection.AddInt64(&message, field(name), value);
  }
  void operator()(const char* name, const std::optional<int64_t>& value) const {
    if (value) reflection.SetInt64(&message, field(name), *value);
  }
  void operator()(const char* name, const std::optional<bool>& value) const {
    if (value) reflection.SetBool(&message, field(name), *value);
  }
  void operator()(const char* name, bool value) const {
    if (value) reflection.SetBool(&message, field(name), value);
  }
};

/// Reads them back.
struct MappingReader {
  const google::protobuf::Message& message;
  const google::protobuf::Reflection& reflection = *message.GetReflection();

  const google::protobuf::FieldDescriptor* field(const char* name) const {
    return message.GetDescriptor()->FindFieldByName(name);
  }
  bool has(const char* name) const { return reflection.HasField(message, field(name)); }
  void operator()(const char* name, std::string& value) const { value = reflection.GetString(message, field(name)); }
  void operator()(const char* name, std::vector<KernelOptions>& values) const {
    for (int i = 0; i < reflection.FieldSize(message, field(name)); ++i) {
      visit_fields(values.emplace_back(), MappingReader{reflection.GetRepeatedMessage(message, field(name), i)});
    }
  }
  void operator()(const char* name, SchedulerOptions& value) const {
    const auto& from = reflection.GetMessage(message, field(name));
    value = from_proto(dynamic_cast<const proto::SchedulerOptions&>(from));
  }
  void operator()(const char* name, std::vector<int64_t>& values) const {
    for (int i = 0; i < reflection.FieldSize(message, field(name)); ++i) {
      values.push_back(reflection.GetRepeatedInt64(message, field(name), i));
    }
  }
  void operator()(const char* name, std::optional<int64_t>& value) const {
    if (has(name)) value = reflection.GetInt64(message, field(name));
  }
  void operator()(const char* name, std::optional<bool>& value) const {
    if (has(name)) value = reflection.GetBool(message, field(name));
  }
  void operator()(const char* name, bool& value) const {
    if (has(name)) value = reflection.GetBool(message, field(name));
  }
};

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
  proto::MappingOptions message;
  visit_fields(options, MappingWriter{message});
  return message;
}

MappingOptions from_proto(const proto::MappingOptions& message) {
  MappingOptions options;
  visit_fields(options, MappingReader{message});
  return options;
}

}  // namespace tc::options
