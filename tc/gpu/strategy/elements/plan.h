#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tc/gpu/atoms/device.h"
#include "tc/gpu/mapping/fused_group.h"
#include "tc/gpu/mapping/limits.h"

namespace tc::gpu {

/// How the elements of a part are dealt out. Along one shared member a thread has `repeats` vectors of `vector`
/// neighbours, `threads` vectors apart; along another, `rows` threads stand beside each other. Where these have all of
/// it and are few, as of elements of 3 x 3, `layers` threads stand above each other along a third. Along the last of
/// these members each thread goes through `deep` values; all else is blocks.
struct ElementsPlan {
  int along = 0;
  int beside = -1;  ///< none
  int above = -1;   ///< none
  int64_t vector = 1;
  int64_t repeats = 1;
  int64_t threads = 1;
  int64_t rows = 1;
  int64_t layers = 1;
  int64_t deep = 1;
  std::set<std::string> columns = {};  ///< tensors that all rows or reductions read alike: a thread does so once
  int64_t unroll = 8;                  ///< iterations of a reduction in flight at once
  /// Blocks go through the outermost member from its end, and threads through their reductions, if these may be in any
  /// order: to begin with what a launch before has left in the cache.
  bool backwards = false;
  bool in_any_order = true;

  /// Iterations of `along` that a block has.
  int64_t covered() const { return threads * vector * repeats; }
  /// The member along which threads are deep, and iterations of any other member but `along` that a block has.
  int deepest() const { return above >= 0 ? above : beside; }
  int64_t threads_at(int member) const { return member == beside ? rows : member == above ? layers : 1; }
  int64_t covered_at(int member) const { return threads_at(member) * (member == deepest() ? deep : 1); }
};

/// Nothing where a thread cannot have elements of its own: a statement writes along no shared member, or has more than
/// a reduction inside; where neighbouring threads would read far apart; or where that is not what the options say,
/// which `reasons` then tells:
///     map_to_threads  x: threads along the member that is written along; y: rows; z: layers
///     tile            elements of a block along each member
///     register_tile   elements of a thread along each member: more than 1 along the one that is written along, and,
///                     without reductions, at the member `beside`, or `above` if there are layers
///     unroll          iterations of a reduction that are laid out
std::optional<ElementsPlan> plan_elements(const FusedGroup& part, const options::MappingOptions& options,
                                          const Device& device, Reasons& reasons);

/// Plans by which neighbours are read far apart, one by one, as the options say: with the widest vectors of other
/// tensors, and with none. Empty where no tensor is read so.
std::vector<ElementsPlan> plans_with_reads_apart(const FusedGroup& part, const options::MappingOptions& options,
                                                 const Device& device);

/// The options that ask for a plan.
options::MappingOptions options_of(const ElementsPlan& plan, const FusedGroup& part);

}  // namespace tc::gpu
