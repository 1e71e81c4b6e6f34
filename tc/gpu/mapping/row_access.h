#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tc/gpu/mapping/fused_group.h"

/// What the statements of a row do with its elements, and which of their accesses are at one place.
namespace tc::gpu {

/// What a statement of a row does with the lanes of the threads that share the row.
enum class RowWork {
  kOnce,      ///< one instance, which every lane runs
  kElements,  ///< an instance for each element; a lane has some of them
  kReduce,    ///< a sum (product, ...) over the elements: each lane's own, then all lanes'
};

/// Nothing where a statement reduces and has loops inside that it does not reduce over.
std::optional<RowWork> work_of(const GroupStatement& s);

/// The inner indices that have more than one value.
std::vector<int> loops_of(const GroupStatement& s);
std::vector<ir::Range> inner_ranges(const GroupStatement& s);  ///< of these
/// Whether two statements have the same number of these, over the same ranges.
bool same_loops(const GroupStatement& a, const GroupStatement& b);

/// Subscripts as functions of the shared members and of the loops inside, by their numbers: what another statement,
/// which names its indices otherwise, accesses at the same place.
using Signature = std::vector<Halide::Expr>;

Signature signature_of(const GroupStatement& s, const std::vector<Halide::Expr>& subscripts);
bool is_same(const Signature& a, const Signature& b);
/// How many subscripts depend on loops.
int64_t count_loops(const Signature& signature, size_t loops);
/// Whether each subscript is a member, a loop or a number.
bool is_plain(const Signature& signature);
/// Whether the subscripts tell the values of the loops, one after the other, to whoever knows the members: D - 1 -
/// loop.
bool tells_loops(const Signature& signature, size_t loops);

/// Whether the statement reads the tensor only where a condition holds (R6).
bool reads_under_condition(const GroupStatement& s, const std::string& tensor);

/// An access of a statement.
struct Use {
  const GroupStatement* statement;
  std::string tensor;
  const std::vector<Halide::Expr>* subscripts;
  bool is_write;
};

/// All accesses, in the order in which they happen.
std::vector<Use> uses_of(const FusedGroup& part);

}  // namespace tc::gpu
