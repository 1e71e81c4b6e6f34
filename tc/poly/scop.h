#pragma once

#include <isl/cpp.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tc/ir/deadline.h"
#include "tc/ir/program.h"
#include "tc/options/options.h"

namespace tc::poly {

/// Owns an isl context; destroyed after every isl object of a compilation. One per compilation, used by one thread.
///
/// Holds isl to the budget: past its number of operations or its time, every isl call throws. within_budget() in
/// isl_ext.h turns that into an Error; a Context that has run out stays so, and is only good for being destroyed.
class Context {
 public:
  explicit Context(const options::Budget& budget = {});
  /// For the rest of a compilation that ends at `end`.
  Context(const options::Budget& budget, std::chrono::steady_clock::time_point end);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  isl::ctx get() const { return isl::ctx(ctx_); }
  const options::Budget& budget() const { return budget_; }

  /// Stops the compilation, from any thread: as a budget that has run out.
  void cancel();
  bool cancelled() const { return cancelled_; }

 private:
  options::Budget budget_;
  std::atomic<bool> cancelled_ = false;
  isl_ctx* ctx_;
  std::unique_ptr<ir::IslWatchdog> watchdog_;
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
  Halide::Expr guard;              ///< undefined where the domain is exact; else instances where it is false do nothing
};

/// One reference to a tensor in a statement.
struct Access {
  enum class Kind {
    kRead,        ///< in the value, a subscript or a guard
    kAccumulate,  ///< the element's old value, which an update combines with the new one
    kWrite,       ///< exactly these elements
    kMayWrite,    ///< some of these elements: a data-dependent subscript or guard
  };
  std::string statement;
  std::string tensor;
  Kind kind = Kind::kRead;
  isl::map relation;  ///< { S[i] -> T[x] }, its domain within that of S; data-dependent subscripts span the dimension
  bool exact = true;  ///< for reads: false if some subscript or guard is data-dependent

  bool reads() const { return kind == Kind::kRead || kind == Kind::kAccumulate; }
  bool writes() const { return !reads(); }
};

/// Which instance must come before which, by cause. All maps are { earlier instance -> later instance }.
struct Dependences {
  isl::union_map flow;         ///< write before read
  isl::union_map anti;         ///< read before write
  isl::union_map output;       ///< write before write
  isl::union_map reduction;    ///< between updates of one statement to one element: any order, but not at once
  isl::union_map all_ordered;  ///< flow, anti and output together, without duplicates

  /// flow, anti and output: what no schedule may turn around.
  const isl::union_map& ordered() const { return all_ordered; }
};

/// A tensor's tile held in a buffer of its own below a mark of the schedule tree.
///
/// Below the mark `promote:<name>` every access to `tensor` by the listed statements goes to the buffer, at
/// subscript - offset, in every dimension. The buffer starts with a copy of the tensor's tile if copy_in, and is
/// written back if copy_out. A temporary with neither has been contracted: it lives in the buffer alone.
struct Promotion {
  std::string name;  ///< unique; the mark's id is "promote:" + name
  std::string tensor;
  isl::multi_aff offset;         ///< { [schedule prefix at the mark] -> tensor[o0, ...] }
  std::vector<int64_t> extents;  ///< of the buffer, in the tensor's dimension order
  std::vector<int> layout;       ///< storage order of the dimensions, outermost first: a permutation
  std::vector<int64_t> tile;     ///< empty, or per dimension the size of the blocks that it is stored in (0: none):
                                 ///< x is stored as x / tile at its place in layout, x % tile inside of all those
  bool copy_in = false;
  bool copy_out = false;
  bool in_registers = false;  ///< small, and fully unrolled below: expected to live in registers
};

/// A def as sets, relations and a tree. Values: passes take one and return one; copying is cheap.
///
/// Marks in the tree, each an isl_id by name:
///   "parallel"        above a band: its outermost member's iterations may run at once
///   "vector"          above a one-member band of constant extent: to be vectorised
///   "unroll"          above a band of constant extents: all members to be unrolled
///   "promote:<name>"  see Promotion
struct Scop {
  std::shared_ptr<Context> context;            // first: destroyed last
  std::shared_ptr<const ir::Program> program;  ///< specialised
  std::vector<Statement> statements;
  std::vector<Access> accesses;  ///< in order of statements
  isl::union_set domain;         ///< { S[i] }; statements without instances have no part in it
  isl::union_map reads;          ///< { S[i] -> T[x] }, may; data-dependent subscripts read the whole dimension
  isl::union_map writes;         ///< { S[i] -> T[x] }, must writes
  isl::union_map may_writes;     ///< writes through data-dependent subscripts
  Dependences dependences;
  isl::schedule schedule;
  std::vector<Promotion> promotions;

  const Statement& statement(const std::string& id) const;
};

/// The statements' domains { S[i] } in program order, without those that have no instances.
std::vector<isl::set> statement_domains(const Scop& scop);

}  // namespace tc::poly
