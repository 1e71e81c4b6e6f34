#pragma once

#include "proto/options.pb.h"
#include "tc/options/mapping.h"
#include "tc/options/options.h"

namespace tc::options {

/// The message of a value: a field is present if it differs from CpuOptions{}.
proto::CpuOptions to_proto(const CpuOptions& options);

/// The value of a message; absent fields keep CpuOptions{}'s values, an enumerator without a name counts as absent.
/// Nothing is validated.
CpuOptions from_proto(const proto::CpuOptions& message);

/// The same of MappingOptions.
proto::MappingOptions to_proto(const MappingOptions& options);
MappingOptions from_proto(const proto::MappingOptions& message);

}  // namespace tc::options
