#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tc/support/error.h"

/// Messages on a stream of bytes: each is its length as a varint and a WorkerFrame (proto/tune.proto).
namespace tc::tune {

struct Frame {
  uint64_t id = 0;
  std::string payload{};
};

/// The most that a frame may have.
inline constexpr size_t kMaxFrameBytes = size_t{1} << 30;

std::string to_bytes(const Frame& frame);

/// Takes a stream apart, in whatever pieces it comes.
class FrameReader {
 public:
  void add(std::string_view bytes) { buffer_ += bytes; }
  /// The next whole frame, if there is one. Errors: what comes is no frame, or is too long; nothing behind it can be
  /// read then.
  Result<std::optional<Frame>> next();
  /// True between frames.
  bool empty() const { return buffer_.empty(); }

 private:
  std::string buffer_;
};

}  // namespace tc::tune
