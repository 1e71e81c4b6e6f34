#include "tc/cli/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "tc/api/layout.h"
#include "tc/api/memory.h"
#include "tc/cli/npy_header.h"
#include "tc/support/check.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeaderBytes = 1 << 20;

std::string reason() { return std::strerror(errno); }

/// An open file that closes itself.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }
  /// False if the system reports an error that was held back until now.
  bool close() {
    const int result = ::close(descriptor_);
    descriptor_ = -1;
    return result == 0;
  }

 private:
  int descriptor_;
};

/// Reads until `bytes` have come or the file ends; how many came, or -1 with errno.
int64_t read_fully(const File& file, char* to, int64_t bytes) {
  int64_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::read(file.get(), to + done, static_cast<size_t>(std::min<int64_t>(bytes - done, 1 << 30)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += got;
  }
  return done;
}

bool write_fully(const File& file, const char* from, int64_t bytes) {
  int64_t done = 0;
  while (done < bytes) {
    const ssize_t put = ::write(file.get(), from + done, static_cast<size_t>(std::min<int64_t>(bytes - done, 1 << 30)));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    done += put;
  }
  return true;
}

uint32_t little_endian(const unsigned char* bytes, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) value |= static_cast<uint32_t>(bytes[i]) << (8 * i);
  return value;
}

/// Reads up to the data. The file is left at its first byte.
Result<NpyHeader> read_header(const File& file, const std::string& path) {
  unsigned char start[12] = {};
  const int64_t got = read_fully(file, reinterpret_cast<char*>(start), 10);
  if (got < 0) return fail("cannot read '{}': {}", path, reason());
  const std::string_view magic(reinterpret_cast<char*>(start), std::min<size_t>(got, kMagic.size()));
  if (magic != kMagic.substr(0, magic.size()) || got == 0) return fail("'{}' is not a .npy file", path);
  if (got < 10) return fail("'{}' ends after {} bytes, within its header", path, got);
  const int major = start[6];
  if (major < 1 || major > 3) {
    return fail("'{}' is of .npy format version {}.{}; versions 1 to 3 are known", path, major, start[7]);
  }
  const int length_bytes = major == 1 ? 2 : 4;
  if (length_bytes == 4 && read_fully(file, reinterpret_cast<char*>(start) + 10, 2) != 2) {
    return fail("'{}' ends within its header", path);
  }
  const uint32_t length = little_endian(start + 8, length_bytes);
  if (length > kMaxHeaderBytes) {
    return fail("'{}' claims a header of {} bytes; at most {} are read", path, length, kMaxHeaderBytes);
  }
  std::string text(length, '\0');
  const int64_t text_got = read_fully(file, text.data(), length);
  if (text_got < 0) return fail("cannot read '{}': {}", path, reason());
  if (text_got < length) {
    return fail("'{}' ends after {} bytes of its header, which has {}", path, text_got, length);
  }
  return parse_npy_header(text, path);
}

/// Compares what a file still holds with what it should, where the system can tell.
Result<void> check_remaining(const File& file, const std::string& path, const api::TensorSpec& spec) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const int64_t remaining = status.st_size - ::lseek(file.get(), 0, SEEK_CUR);
  if (remaining == spec.span_bytes()) return {};
  return fail("'{}' has {} bytes of data; {} takes {}", path, remaining, spec.to_string(), spec.span_bytes());
}

void swap_bytes(char* data, int64_t elements, int bytes) {
  for (int64_t i = 0; i < elements; ++i) std::reverse(data + i * bytes, data + (i + 1) * bytes);
}

std::string_view descr_of(ScalarType type) {
  switch (type) {
    case ScalarType::kBool:
      return "|b1";
    case ScalarType::kInt8:
      return "|i1";
    case ScalarType::kInt16:
      return "<i2";
    case ScalarType::kInt32:
      return "<i4";
    case ScalarType::kInt64:
      return "<i8";
    case ScalarType::kUInt8:
      return "|u1";
    case ScalarType::kUInt16:
      return "<u2";
    case ScalarType::kUInt32:
      return "<u4";
    case ScalarType::kUInt64:
      return "<u8";
    case ScalarType::kFloat16:
      return "<f2";
    case ScalarType::kBFloat16:
      return "|V2";
    case ScalarType::kFloat8E4M3:
    case ScalarType::kFloat8E5M2:
      return "|V1";
    case ScalarType::kFloat32:
      return "<f4";
    case ScalarType::kFloat64:
      return "<f8";
  }
  TC_CHECK(false, "no scalar type has the number {}", static_cast<int>(type));
}

/// '|V1' says how many bytes an element has, not which of the 8-bit floats it is.
ScalarType type_of_bytes(ScalarType found, std::optional<ScalarType> wanted) {
  return found == ScalarType::kFloat8E4M3 && wanted && is_float8(*wanted) ? *wanted : found;
}

Result<std::unique_ptr<File>> open_to_read(const std::string& path) {
  auto file = std::make_unique<File>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file->get() < 0) return fail("cannot open '{}': {}", path, reason());
  return file;
}

}  // namespace

Result<api::TensorSpec> read_npy_spec(const std::string& path, std::optional<ScalarType> wanted) {
  TC_TRY(file, open_to_read(path));
  TC_TRY(header, read_header(*file, path));
  header.spec.type = type_of_bytes(header.spec.type, wanted);
  TC_TRY_VOID(check_remaining(*file, path, header.spec));
  return header.spec;
}

Result<api::Tensor> read_npy(const std::string& path, std::optional<ScalarType> wanted) {
  TC_TRY(file, open_to_read(path));
  TC_TRY(header, read_header(*file, path));
  header.spec.type = type_of_bytes(header.spec.type, wanted);
  TC_TRY_VOID(check_remaining(*file, path, header.spec));
  TC_TRY(tensor, api::Tensor::allocate(header.spec));
  const int64_t bytes = header.spec.span_bytes();
  char* data = tensor.data_as<char>();
  const int64_t got = read_fully(*file, data, bytes);
  if (got < 0) return fail("cannot read '{}': {}", path, reason());
  if (got < bytes) return fail("'{}' has {} bytes of data; {} takes {}", path, got, header.spec.to_string(), bytes);
  const int element_bytes = bytes_of(header.spec.type);
  if (header.big_endian) swap_bytes(data, bytes / element_bytes, element_bytes);
  if (header.spec.type == ScalarType::kBool) {
    std::transform(data, data + bytes, data, [](char c) { return static_cast<char>(c != 0); });
  }
  return tensor;
}

std::string npy_header(const api::TensorSpec& spec) {
  std::string shape = "(";
  for (size_t d = 0; d < spec.shape.size(); ++d) {
    shape += fmt::format("{}{}", d ? " " : "", spec.shape[d]);
    if (d + 1 < spec.shape.size() || spec.shape.size() == 1) shape += ",";
  }
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}), }}", descr_of(spec.type), shape);
  constexpr size_t kBefore = kMagic.size() + 4;  // magic, version, length
  const size_t end = (kBefore + text.size() + 1 + 63) / 64 * 64;
  text.append(end - kBefore - text.size() - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header += std::string("\x01\x00", 2);
  header += static_cast<char>(text.size() & 255);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

Result<void> write_npy(const std::string& path, const api::Tensor& tensor) {
  const api::TensorSpec spec = tensor.spec();
  TC_CHECK(spec.strides.empty() || api::is_dense(spec.shape, spec.strides), "only dense tensors are written");
  File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) return fail("cannot create '{}': {}", path, reason());
  const std::string header = npy_header(spec);
  if (!write_fully(file, header.data(), static_cast<int64_t>(header.size())) ||
      !write_fully(file, tensor.data_as<char>(), spec.span_bytes()) || !file.close()) {
    return fail("cannot write '{}': {}", path, reason());
  }
  return {};
}

}  // namespace tc::cli
