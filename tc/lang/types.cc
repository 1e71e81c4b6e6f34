#include "tc/lang/types.h"

#include <algorithm>

#include "tc/support/check.h"

namespace tc::lang {
namespace {

ScalarType signed_integer_of(int bits) {
  switch (bits) {
    case 8:
      return ScalarType::kInt8;
    case 16:
      return ScalarType::kInt16;
    case 32:
      return ScalarType::kInt32;
    default:
      return ScalarType::kInt64;
  }
}

}  // namespace

ScalarType meet(ScalarType a, ScalarType b) {
  TC_CHECK(a != ScalarType::kBool && b != ScalarType::kBool, "{} and {} do not meet", name_of(a), name_of(b));
  if (a == b) return a;
  if (is_float(a) && is_float(b)) {
    if (bits_of(a) == bits_of(b)) return ScalarType::kFloat32;
    return bits_of(a) > bits_of(b) ? a : b;
  }
  if (is_float(a) || is_float(b)) return is_float(a) ? a : b;
  const bool a_signed = is_signed_integer(a);
  if (a_signed == is_signed_integer(b)) return bits_of(a) > bits_of(b) ? a : b;
  const int of_signed = bits_of(a_signed ? a : b);
  const int of_unsigned = bits_of(a_signed ? b : a);
  return signed_integer_of(std::max(of_signed, 2 * of_unsigned));
}

bool widens(ScalarType from, ScalarType to) {
  if (from == ScalarType::kBool || to == ScalarType::kBool) return from == to;
  return meet(from, to) == to;
}

}  // namespace tc::lang
