#pragma once

#include <isl/cpp.h>

#include <memory>
#include <string>
#include <vector>

#include "tc/ir/program.h"

namespace tc::poly {

/// Owns an isl context; destroyed after every isl object of a compilation. One per compilation, used by one thread.
class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  isl::ctx get() const { return isl::ctx(ctx_); }

 private:
  isl_ctx* ctx_;
};

/// A statement of the Scop: one per statement of the Program, preceded by an initialisation where that has op=!.
struct Statement {
  enum class Kind {
    kSet,     ///< tensor(subscripts) = value
    kInit,    ///< tensor(subscripts) = identity; the first half of op=!
    kUpdate,  ///< tensor(subscripts) op= value
  };
  std::string id;                    ///< the isl tuple name: "S0", or "S0_init"
  std::vector<std::string> indices;  ///< names of the tuple's dimensions, outermost first
  Kind kind = Kind::kSet;
  ir::Assign assign = ir::Assign::kSet;
  std::string tensor;
  std::vector<Halide::Expr> subscripts;  ///< Int(64) over Variables named as `indices`
  Halide::Expr value;                    ///< over the same Variables, of accumulator type
  Halide::Type accumulator;
  std::vector<bool> is_reduction;  ///< per index
};

/// Which instance must come before which, by cause. All maps are { earlier instance -> later instance }.
struct Dependences {
  isl::union_map flow;       ///< write before read
  isl::union_map anti;       ///< read before write
  isl::union_map output;     ///< write before write
  isl::union_map reduction;  ///< between updates of one statement to one element: any order, but not at once

  /// flow, anti and output: what no schedule may turn around.
  isl::union_map ordered() const { return flow.unite(anti).unite(output); }
};

/// A tensor's tile held in a buffer of its own below a mark of the schedule tree.
///
/// Below the mark `promote:<name>` every access to `tensor` by the listed statements goes to the buffer, at
/// subscript - offset, in every dimension. The buffer starts with a copy of the tensor's tile if copy_in, and is
/// written back if copy_out. A temporary with neither has been contracted: it lives in the buffer alone.
struct Promotion {
  std::string name;    ///< unique; the mark's id is "promote:" + name
  std::string tensor;
  isl::multi_aff offset;          ///< { [schedule prefix at the mark] -> tensor[o0, ...] }
  std::vector<int64_t> extents;   ///< of the buffer, in the tensor's dimension order
  std::vector<int> layout;        ///< storage order of the dimensions, outermost first: a permutation
  bool copy_in = false;
  bool copy_out = false;
  bool in_registers = false;      ///< small, and fully unrolled below: expected to live in registers
};

/// A def as sets, relations and a tree. Values: passes take one and return one; copying is cheap.
///
/// Marks in the tree, each an isl_id by name:
///   "parallel"        above a band: its outermost member's iterations may run at once
///   "vector"          above a one-member band of constant extent: to be vectorised
///   "unroll"          above a band of constant extents: all members to be unrolled
///   "promote:<name>"  see Promotion
struct Scop {
  std::shared_ptr<Context> context;  // first: destroyed last
  std::shared_ptr<const ir::Program> program;  ///< specialised
  std::vector<Statement> statements;
  isl::union_set domain;       ///< { S[i] }
  isl::union_map reads;        ///< { S[i] -> T[x] }, may; data-dependent subscripts read the whole dimension
  isl::union_map writes;       ///< { S[i] -> T[x] }, must writes
  isl::union_map may_writes;   ///< writes through data-dependent subscripts
  Dependences dependences;
  isl::schedule schedule;
  std::vector<Promotion> promotions;

  const Statement& statement(const std::string& id) const;
};

}  // namespace tc::poly
