#pragma once

#include <Halide.h>

#include <cstdint>
#include <set>
#include <string>

/// What the body of a loop does along the loop's variable, for loops that are to become vectors.
namespace tc::cpu {

/// By how much an index grows with a loop variable; 0 also if that varies.
int64_t lane_step(const Halide::Expr& index, const std::string& lane);

/// True if some statement below is under a condition that depends on the variable.
bool has_condition_on(const Halide::Internal::Stmt& body, const std::string& variable);

/// True if Halide can make vectors of all accesses in the body although they are under a condition: those that do not
/// move, and those that move by one element from where all constant indices are inside of the buffer.
bool can_predicate(const Halide::Internal::Stmt& body, const std::string& lane, const std::set<std::string>& unrolled);

/// True if Halide 14 would leave a single lane of some access: 9 lanes of 64 bits are 8 and 1 with vectors of 512 bits.
/// Under a condition it gives LLVM a vector of one lane, and a scalar for its mask, which is no valid code.
bool leaves_one_lane(const Halide::Internal::Stmt& body, int64_t lanes, int vector_bits);

/// True if some store goes to the same element in all lanes.
bool stores_to_one_place(const Halide::Internal::Stmt& body, const std::string& lane);

/// True if two lanes may update one element: some store whose value loads from the same buffer moves by no constant
/// number of elements. All lanes would load before any of them stores.
bool updates_may_collide(const Halide::Internal::Stmt& body, const std::string& lane);

/// s = s op x[base + lane], for all lanes: one reduction of a vector. Undefined if the body is something else.
Halide::Internal::Stmt reduce_lanes(const Halide::Internal::Stmt& body, const std::string& lane, int lanes);

/// A store into a padded buffer for those lanes for which a condition holds, as one for all lanes:
///     if (c) s[lane] = v   ==>   s[lane] = select(c, v, s[lane])
///                                s[lane] = select(c, v, 0) if the `others` are nobody's
/// so that the buffer may be a register. What v loads from other buffers is loaded where the condition holds. Lanes
/// that are nobody's get zeros, as what follows works on them too: what happens to be in memory or in a register is
/// often a denormal number, which a division may take 40 ns for.
/// Undefined if the body is something else, or loads what cannot be switched off lane by lane.
enum class OtherLanes { kElements, kNobodys };
Halide::Internal::Stmt blend_lanes(const Halide::Internal::Stmt& body, const Halide::Expr& condition,
                                   const std::string& lane, const std::set<std::string>& padded, OtherLanes others);

}  // namespace tc::cpu
