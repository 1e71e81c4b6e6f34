#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tc/poly/scop.h"

namespace tc::poly {

/// Which dimensions of the statements the dependences keep equal: all that clustering needs to know of them.
/// Statements count as in `domains`, dimensions as in their tuples.
class Alignment {
 public:
  explicit Alignment(const Scop& scop);

  size_t statements() const { return domains_.size(); }
  const isl::set& domain(size_t statement) const { return domains_[statement]; }
  int dimensions(size_t statement) const { return static_cast<int>(extents_[statement].size()); }
  /// The extent of a dimension; at least 1.
  int64_t extent(size_t statement, int dimension) const { return extents_[statement][dimension]; }

  /// Whether some dependence leads from one statement to the other.
  bool depends(size_t source, size_t sink) const { return pairs_[source][sink].exists; }
  /// Whether every dependence between two statements, either way, keeps a dimension of one equal to one of the other.
  bool equal(size_t a, int a_dimension, size_t b, int b_dimension) const;

  /// Whether the two read a common tensor without depending on each other.
  bool shares(size_t a, size_t b) const { return shared_[a][b].exists; }
  /// Whether these dimensions are equal wherever the two read the same element.
  bool equal_where_shared(size_t a, int a_dimension, size_t b, int b_dimension) const;

  /// Whether no dependence of the statement on itself, reductions included, is between iterations of the dimension.
  bool coincident(size_t statement, int dimension) const { return coincident_[statement][dimension]; }
  /// Whether the statement's dependences on itself allow its dimensions in any order.
  bool permutable(size_t statement) const { return permutable_[statement]; }

 private:
  /// What one statement's instances have in common with those of another that they relate to.
  struct Pair {
    bool exists = false;
    std::vector<std::vector<bool>> equal;  ///< [dimension of the first][dimension of the second]
  };

  void read_dependences(const Scop& scop);
  void read_sharing(const Scop& scop);
  static void intersect(Pair& pair, const isl::map& relation);

  std::vector<isl::set> domains_;
  std::vector<std::vector<int64_t>> extents_;
  std::vector<std::vector<Pair>> pairs_;
  std::vector<std::vector<Pair>> shared_;
  std::vector<std::vector<bool>> coincident_;
  std::vector<bool> permutable_;
};

}  // namespace tc::poly
