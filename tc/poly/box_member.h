#pragma once

#include <isl/cpp.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tc::poly {

/// A dimension of a schedule tree as a function of one index i of a statement, or a constant:
///     scale * floor((i mod modulus) / size) + shift
struct BoxMember {
  int index = -1;       ///< its position; -1 for a constant, which is `shift`
  int64_t size = 1;     ///< divides `modulus`
  int64_t modulus = 0;  ///< 0 for none
  int64_t scale = 1;    ///< 1 or `size`
  int64_t shift = 0;    ///< 0 unless `size` is 1 and there is no modulus
};

/// The function { S[i] -> [x] } in this form; nothing if it has another.
std::optional<BoxMember> box_member(const isl::pw_aff& function);

struct Interval {
  int64_t first = 0, last = 0;  ///< inclusive
};

/// A set that is a box: each dimension is an index in its interval, or one of the two that an index was cut into,
///     { S[lane, vector] : 0 <= lane < 16 and 0 <= 16 vector + lane <= last }
struct Box {
  struct Dimension {
    int index = 0;
    int64_t size = 1;
    int64_t modulus = 0;  ///< the dimension is floor((i mod modulus) / size), as in BoxMember
  };
  std::vector<Interval> indices;  ///< as many as dimensions: {0, 0} for the vector's, whose index is the lane's
  std::vector<Dimension> dimensions;
};

/// A set without parameters as a box, if its constraints say that it is one, not empty.
std::optional<Box> box_of(const isl::set& set);

/// A function of a dimension of a box as one of its index; nothing if that has no such form.
std::optional<BoxMember> of_index(const BoxMember& member, const Box& box);

}  // namespace tc::poly
