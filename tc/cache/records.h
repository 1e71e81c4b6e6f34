#pragma once

#include <optional>
#include <string>

#include "tc/cache/entry.h"

/// Values as the bytes that are stored: protobuf messages of proto/cache.proto, each with its key inside.
namespace tc::cache {

struct StoredEntry {
  Key key{};
  Entry entry{};
};

struct StoredInterface {
  std::string source_digest{};  ///< 64 hexadecimal digits
  Interface interface {};
};

std::string to_bytes(const Key& key, const Entry& entry);
std::string to_bytes(const Measurement& measurement);
std::string to_bytes(const std::string& source_digest, const Interface& interface);

/// Nothing where the bytes are no such message, or one that a later schema made incompatible.
std::optional<StoredEntry> entry_from(const std::string& bytes);
std::optional<Measurement> measurement_from(const std::string& bytes);
std::optional<StoredInterface> interface_from(const std::string& bytes);

}  // namespace tc::cache
