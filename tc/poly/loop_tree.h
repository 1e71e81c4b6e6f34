#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tc/poly/band_ref.h"
#include "tc/poly/scop.h"
#include "tc/support/result.h"

namespace tc::poly {

// A schedule tree whose loops have names: each band has one member and stands below the mark "loop:<name>". All take
// and return a Scop; a loop that does not exist is an error, with the nearest that does.

/// Above a band whose members have names: "loop:i_outer,j_outer".
inline constexpr char kLoopMark[] = "loop:";

/// Above the first of what a launch of its own runs, at the top of the tree.
inline constexpr char kLaunchMark[] = "launch";

/// Whether a node is the mark of a loop, and its name; whether one is that of a launch.
bool is_loop(const isl::schedule_node& node);
std::string loop_name(const isl::schedule_node& mark);
bool is_launch(const isl::schedule_node& node);

/// The loop's iteration for each instance that stands below its mark, and for no other.
isl::union_pw_aff loop_value(const isl::schedule_node& mark);

/// Gives the loops of a tree names: those of their indices, and numbers where these are taken.
///     band [i, j]   ==>   loop:i band [i]; loop:j band [j]
Scop name_loops(const Scop& scop);

/// The names, outermost first, in the order of execution.
std::vector<std::string> loop_names(const Scop& scop);

/// The place of a loop's mark.
Result<NodeRef> find_loop(const Scop& scop, const std::string& name);

/// The name if it is no loop's; else the name with a number.
std::string fresh_loop_name(const Scop& scop, const std::string& name);

/// How many iterations the loop has, at most; they count from `first` if that is the same for all.
struct LoopRange {
  int64_t extent = 1;
  int64_t first = 0;
};
LoopRange loop_range(const Scop& scop, const NodeRef& loop);

/// What stands below a new loop, whose iteration for each instance is the value.
isl::schedule under_loop(const std::string& name, const isl::union_pw_aff& value, const isl::schedule& below);

/// loop:i   ==>   loop:i_outer [floor(i/size)]; loop:i_inner [i%size]. Always legal.
Result<Scop> split_loop(const Scop& scop, const std::string& name, int64_t size, const std::string& outer,
                        const std::string& inner);

/// loop:i; loop:j   ==>   loop:i_j [i * extent of j + j]. Always legal where j stands right below i.
Result<Scop> fuse_loops(const Scop& scop, const std::string& outer, const std::string& inner, const std::string& fused);

/// Puts loops that stand right below each other into another order. Refused with a pair of instances in wrong order.
Result<Scop> reorder_loops(const Scop& scop, const std::vector<std::string>& names);

/// Gives each part of the sequence below the loop a loop of its own, named with the part's first statement but for the
/// last part's, which keeps the name. Refused with a pair of instances in wrong order.
///     loop:i            sequence
///       sequence          loop:i_S0_init
///         S0_init  ==>      S0_init
///         S0              loop:i
///                           S0
Result<Scop> distribute_loop(const Scop& scop, const std::string& name);

/// The result of partition_loop(), with the new names of the loops that have a copy.
struct PartitionedLoop {
  Scop scop;
  std::map<std::string, std::string> rest;
};

/// Lets the iterations of a loop from `at` on follow in a loop of their own, which counts them from 0. That one and the
/// copies of all loops below it are named with "_rest". Always legal. Errors: all iterations lie on one side.
///     loop:i            sequence
///       loop:k            loop:i            of the iterations before `at`
///         S0       ==>      loop:k
///                             S0
///                         loop:i_rest
///                           loop:k_rest
///                             S0
Result<PartitionedLoop> partition_loop(const Scop& scop, const std::string& name, int64_t at);

/// Puts the mark "launch" above a loop, or a statement, that stands below no loop. Errors: it does.
Result<Scop> begin_launch(const Scop& scop, const std::string& name);

/// What the launches run, in order, without the marks: the schedule up to the first mark, and from each on.
std::vector<isl::schedule> launches_of(const Scop& scop);

/// Refused unless all that stands below the loop is a reduction to one element, in any order; with a pair of instances
/// where some must come first.
Result<void> check_reduction(const Scop& scop, const std::string& name);

/// Refused with a pair of instances where iterations of the loop may not run at once: on cores, in blocks or threads;
/// with `as_lanes` in the lanes of a vector, which may reduce to one element.
Result<void> check_at_once(const Scop& scop, const std::string& name, bool as_lanes);
inline Result<void> check_parallel(const Scop& scop, const std::string& name) {
  return check_at_once(scop, name, false);
}

}  // namespace tc::poly
