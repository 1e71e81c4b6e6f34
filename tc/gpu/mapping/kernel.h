#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tc/options/mapping.h"
#include "tc/poly/scop.h"

namespace tc::gpu {

/// A loop whose iterations are dealt out to blocks or threads: the one with value v runs on number
/// floor(v / stride) mod count along the axis.
struct Dealt {
  enum class To { kBlocks, kThreads } to = To::kThreads;
  int axis = 0;  ///< 0 is x
  int64_t stride = 1;
};

/// The mark "bind:<number>". Members are those of the band below it; what is absent runs in order. Below a mark that
/// binds to threads is what each thread runs by itself: a region. It may bind no member, and then need no band.
struct Binding {
  Dealt::To to = Dealt::To::kBlocks;
  std::vector<std::optional<Dealt>> members;
  bool cooperative = false;  ///< of a copy: all threads of the block share the work of each instance
};

/// A copy between a tensor and its buffer in shared memory: a statement of the tree that the program does not have,
/// with an instance for each iteration of the loops above the mark "promote:<promotion>".
struct Copy {
  std::string statement;
  std::string promotion;
  bool out = false;           ///< from the buffer to the tensor
  int64_t vector = 1;         ///< elements that a thread moves at once, along the last dimension
  std::vector<bool> guarded;  ///< per dimension: whether the buffer may reach beyond the tensor
  bool by_one = false;        ///< the block's first thread copies all of it
  int64_t stages = 1;         ///< more: slots of the buffer; it runs ahead of the loop that it stands below
};

/// A tile that each thread has in registers, across regions: of a promotion whose mark stands above them.
struct ThreadTile {
  isl::multi_aff offset;  ///< { [schedule prefix at the mark, thread along x, y, z] -> tensor[o0, ...] }
  std::vector<int64_t> extents;
};

inline constexpr char kBindMark[] = "bind:";
/// Above a part of the tree before which all threads of the block meet.
inline constexpr char kBarrierMark[] = "barrier";

/// What makes a kernel, one folder of tc/gpu/strategy each: a contraction, threads with elements of their own, rows
/// that threads share, updates that threads make atomically, tiles that overlap, or the classic strategy.
enum class Recipe { kContraction, kElements, kRows, kScatter, kHalo, kClassic };
/// "contraction", "elements", "rows", "scatter", "halo", "classic".
constexpr const char* name_of(Recipe recipe) {
  switch (recipe) {
    case Recipe::kContraction:
      return "contraction";
    case Recipe::kElements:
      return "elements";
    case Recipe::kRows:
      return "rows";
    case Recipe::kScatter:
      return "scatter";
    case Recipe::kHalo:
      return "halo";
    case Recipe::kClassic:
      break;
  }
  return "classic";
}

/// A recipe that was asked before the one that makes a kernel, and why it does not.
struct Unfit {
  Recipe recipe = Recipe::kElements;
  std::string reason;
};

/// A loop of a launch, and how it is cut. Sizes are in values of its index.
struct LoopChoice {
  std::string index;
  int64_t extent = 1;
  int64_t block = 1;   ///< that a block has; of a reduction, in a step
  int64_t thread = 1;  ///< that a thread has of them
  bool is_reduction = false;
};

/// A launch, decided: the part of the schedule that it runs, with its marks.
///
///     bind:0  band [i/32, j/32]       on blocks
///       sequence                      every thread of the block comes here
///         bind:1 band [i%32, j%32]    on threads
///         barrier
///           promote:A                 a tile of A in shared memory
///             sequence
///               bind:2 A_in           copied by all threads
///               barrier
///                 bind:3 ...
/// Above the regions control flow is the same for all threads of a block; below one, a thread that has no part in a
/// loop on threads leaves it out, and an axis without a loop is left to its thread 0.
struct Kernel {
  poly::Scop scop;
  std::vector<Binding> bindings;
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::array<int64_t, 3> block = {1, 1, 1};
  Recipe recipe = Recipe::kClassic;
  std::string anchor = {};                   ///< statement that it is named by: its product, reduction or first one
  options::KernelOptions address = {};       ///< what options name it by; nothing is written: it has no name
  options::MappingOptions chosen = {};       ///< the options given, with what a recipe chose: they ask for this kernel
  std::vector<Unfit> unfit = {};             ///< recipes that come before this kernel's, if they had a say
  std::vector<LoopChoice> loops = {};        ///< where its blocks and threads have tiles
  std::set<std::string> in_memory = {};      ///< tensors that a recipe passes on between statements in memory
  std::set<std::string> in_shared = {};      ///< the same in shared memory
  bool separated = false;                    ///< taken out of a loop nest with others, so that recipes fit them
  double planned_us = 0;                     ///< by the recipe's own estimate; 0: it has none
  double asked_again = 0;                    ///< bytes through the L2 cache, over those of memory; 0: unknown
  bool is_rest = false;                      ///< computes what the one before leaves; options have no name for it
  bool selects_slices = false;               ///< blocks go through slices of an operand, of which each row needs one
  std::vector<Copy> copies;                  ///< of the scop's promotions that are not in registers
  std::map<std::string, int64_t> pads;       ///< elements behind each row of a promotion's buffer in shared memory
  std::optional<isl::union_map> copy_order;  ///< { earlier -> later } by these buffers, if there are any
  bool unroll_copies = false;
  std::map<std::string, ThreadTile> thread_tiles;  ///< by promotion
  std::set<std::string> unrolled;                  ///< loops by the names of their marks "loop:<names>"
  std::map<std::string, int64_t> staged;           ///< the same, and how many slots copies right below them go through

  /// Of a mark "bind:<number>".
  const Binding& binding(const std::string& mark) const {
    return bindings.at(std::stoul(mark.substr(sizeof(kBindMark) - 1)));
  }
  const Copy* find_copy(const std::string& statement) const {
    for (const Copy& copy : copies) {
      if (copy.statement == statement) return &copy;
    }
    return nullptr;
  }
  /// The copy that runs ahead to fill a promotion's slots.
  const Copy* find_staged(const std::string& promotion) const {
    for (const Copy& copy : copies) {
      if (copy.promotion == promotion && copy.stages > 1) return &copy;
    }
    return nullptr;
  }
  int64_t count(const Dealt& dealt) const {
    return (dealt.to == Dealt::To::kBlocks ? grid : block)[static_cast<size_t>(dealt.axis)];
  }
};

}  // namespace tc::gpu
