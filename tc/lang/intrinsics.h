#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tc::lang {

/// What an intrinsic takes and gives. "Float" arguments meet by T1; integers among them become float32.
enum class Signature : uint8_t {
  kFloat,           ///< floats to a float of the same type: exp, atan2, fma
  kArithmetic,      ///< numbers that meet by T1 to a number of that type: abs, min, clamp, relu
  kFloatToBool,     ///< isnan, isinf, isfinite, signbit
  kFloatToInt32,    ///< ilogb
  kFloatToInt64,    ///< lround, llrint
  kFloatInt32,      ///< a float and an int32 to the float: ldexp
  kInt32Float,      ///< an int32 and a float to the float: jn
  kInteger,         ///< integers that meet by T1 to an integer of that type: bitwise_and
  kShift,           ///< integers; the result has the type of the first: shift_left
  kIntegerToInt32,  ///< popcount
  kFloat32,         ///< a number that float32 holds to a float32: tf32
  kSelect,          ///< select(c, a, b), which becomes Select
};

struct IntrinsicInfo {
  std::string_view name;  ///< canonical: without the C suffix f
  int min_arguments;
  int max_arguments;
  Signature signature;
  std::string_view meaning;
};

/// By canonical name, or with the suffix f of C's float functions (`fmaxf`). Null when there is none.
const IntrinsicInfo* find_intrinsic(std::string_view name);

std::span<const IntrinsicInfo> all_intrinsics();

}  // namespace tc::lang
