#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tc {

/// SHA-256 (FIPS 180-4) of a sequence of bytes.
class Digest {
 public:
  /// Of a whole text.
  static Digest of(std::string_view bytes);

  const std::array<uint8_t, 32>& bytes() const { return bytes_; }
  /// 64 lower-case hexadecimal digits.
  std::string to_string() const;
  auto operator<=>(const Digest&) const = default;

 private:
  std::array<uint8_t, 32> bytes_{};
};

}  // namespace tc
