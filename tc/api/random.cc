#include "tc/api/random.h"

#include <algorithm>

#include "tc/api/elements.h"
#include "tc/api/layout.h"
#include "tc/support/check.h"

namespace tc::api {
namespace {

/// SplitMix64: a counter behind a mixing function.
class Random {
 public:
  explicit Random(uint64_t start) : state_(start) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

uint64_t hash_of(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

IntegerRange range_of(ScalarType type) {
  if (type == ScalarType::kBool) return {0, 2};
  return is_signed_integer(type) ? IntegerRange{-8, 8} : IntegerRange{0, 16};
}

}  // namespace

void fill_random(const std::string& name, uint64_t seed, std::optional<IntegerRange> range, Tensor& tensor) {
  const TensorSpec spec = tensor.spec();
  TC_CHECK(spec.strides.empty() || is_dense(spec.shape, spec.strides), "'{}' is not dense", name);
  Random random(hash_of(name) + seed);
  const int64_t elements = spec.elements();
  const int bytes = bytes_of(spec.type);
  char* at = tensor.data_as<char>();
  if (is_float(spec.type)) {
    for (int64_t i = 0; i < elements; ++i, at += bytes) {
      store_float(spec.type, static_cast<double>(random.next() >> 11) * 0x1p-52 - 1, at);
    }
    return;
  }
  const IntegerRange within = range.value_or(range_of(spec.type));
  const uint64_t width = static_cast<uint64_t>(std::max<int64_t>(1, within.end - within.begin));
  for (int64_t i = 0; i < elements; ++i, at += bytes) {
    store_integer(spec.type, within.begin + static_cast<int64_t>(random.next() % width), at);
  }
}

}  // namespace tc::api
