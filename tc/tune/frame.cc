#include "tc/tune/frame.h"

#include "proto/tune.pb.h"
#include "tc/support/digest.h"
#include "tc/support/result.h"

namespace tc::tune {
namespace {

uint64_t digest_of(const std::string& payload) {
  const Digest digest = Digest::of(payload);
  uint64_t result = 0;
  for (size_t i = 0; i < 8; ++i) result |= uint64_t{digest.bytes()[i]} << (8 * i);
  return result;
}

}  // namespace

std::string to_bytes(const Frame& frame) {
  proto::WorkerFrame message;
  message.set_id(frame.id);
  message.set_payload(frame.payload);
  message.set_digest(digest_of(frame.payload));
  const std::string body = message.SerializeAsString();
  std::string bytes;
  size_t length = body.size();
  for (; length >= 0x80; length >>= 7) bytes += static_cast<char>(length | 0x80);
  bytes += static_cast<char>(length);
  return bytes + body;
}

Result<std::optional<Frame>> FrameReader::next() {
  size_t length = 0, at = 0;
  for (int shift = 0;; shift += 7) {
    if (at == buffer_.size()) return std::nullopt;
    const auto byte = static_cast<unsigned char>(buffer_[at++]);
    length |= size_t{byte & 0x7fU} << shift;
    if (!(byte & 0x80)) break;
    if (shift >= 28) return fail("what it writes is no frame");
  }
  if (length > kMaxFrameBytes) return fail("a frame of {} bytes; at most {} are taken", length, kMaxFrameBytes);
  if (buffer_.size() - at < length) return std::nullopt;
  proto::WorkerFrame message;
  if (!message.ParseFromArray(buffer_.data() + at, static_cast<int>(length)) ||
      message.digest() != digest_of(message.payload())) {
    return fail("what it writes is no frame");
  }
  buffer_.erase(0, at + length);
  return Frame{message.id(), std::move(*message.mutable_payload())};
}

}  // namespace tc::tune
