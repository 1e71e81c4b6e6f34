#pragma once

#include <isl/cpp.h>

#include <map>
#include <string>
#include <vector>

#include "tc/poly/scop.h"

namespace tc::cpu {

/// A schedule tree to be built: bands of one member, marks, sequences. A tree without children is a leaf.
struct Tree {
  enum class Kind { kLeaf, kBand, kMark, kSequence };
  Kind kind = Kind::kLeaf;
  std::string mark;
  std::map<std::string, isl::aff> member;         ///< kBand: { S[i] -> [value] }, per statement
  std::vector<std::vector<std::string>> filters;  ///< kSequence: the statements of each child
  std::vector<Tree> children;
};

Tree band(std::map<std::string, isl::aff> member, Tree child);
Tree mark(const std::string& name, Tree child);
/// One child per filter; a single one stands for itself.
Tree sequence(std::vector<std::vector<std::string>> filters, std::vector<Tree> children);

isl::schedule to_schedule(const Tree& tree, const isl::union_set& domain);

/// A loop dimension that several statements share, and how far it has been tiled: a statement's index is
///     begin + the sum over `steps` of step * (schedule dimension) + remainder,  0 <= remainder < rest.
struct Dim {
  int64_t begin = 0;
  int64_t extent = 0;
  int64_t rest = 0;
  std::map<std::string, int> position;         ///< of the index in each statement
  std::vector<std::pair<int, int64_t>> steps;  ///< schedule dimension, step
  std::map<std::string, isl::aff> remainder;   ///< { S[i] -> [remainder] }
};

/// Cuts the remainder into tiles: returns the member that counts the tiles, which is schedule dimension `depth`.
std::map<std::string, isl::aff> cut(Dim& dim, int64_t tile, int depth);

}  // namespace tc::cpu
