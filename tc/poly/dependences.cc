#include "tc/poly/dependences.h"

#include <algorithm>

#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::poly {
namespace {

/// In fewer pieces, if isl finds them: 0.25 fails on some relations of many ("original tableau does not correspond to
/// original basic map").
isl::union_map coalesced(const isl::union_map& map) {
  try {
    return map.coalesce();
  } catch (const isl::exception_internal&) {
    return map;
  }
}

using Kind = Access::Kind;

/// Accesses of one statement, by what they do.
struct StatementAccesses {
  const Statement* statement = nullptr;
  std::vector<const Access*> reads;   ///< kRead
  std::vector<const Access*> writes;  ///< kWrite and kMayWrite
  const Access* accumulate = nullptr;
};

std::vector<StatementAccesses> by_statement(const Scop& scop) {
  std::vector<StatementAccesses> result;
  for (const Statement& s : scop.statements) {
    StatementAccesses all;
    all.statement = &s;
    for (const Access& a : scop.accesses) {
      if (a.statement != s.id) continue;
      if (a.kind == Kind::kRead) all.reads.push_back(&a);
      if (a.kind == Kind::kAccumulate) all.accumulate = &a;
      if (a.writes()) all.writes.push_back(&a);
    }
    result.push_back(all);
  }
  return result;
}

/// { source instance -> sink instance } through a common element.
isl::map between(const isl::map& source, const isl::map& sink) { return source.apply_range(sink.reverse()); }

class DependenceBuilder {
 public:
  explicit DependenceBuilder(const Scop& scop) : ctx_(scop.context->get()), statements_(by_statement(scop)) {
    result_.flow = result_.anti = result_.output = result_.reduction = isl::union_map::empty(ctx_);
  }

  Dependences build() {
    for (size_t sink = 0; sink < statements_.size(); ++sink) {
      const StatementAccesses& s = statements_[sink];
      for (const Access* read : s.reads) from_earlier(sink, *read, result_.flow, nullptr);
      if (s.accumulate) from_earlier(sink, *s.accumulate, result_.flow, nullptr);
      for (const Access* write : s.writes) {
        from_earlier(sink, *write, result_.output, &result_.anti);
        within(s, *write);
      }
    }
    for (isl::union_map* map : {&result_.flow, &result_.anti, &result_.output, &result_.reduction}) {
      *map = coalesced(*map);
    }
    result_.all_ordered = coalesced(result_.flow.unite(result_.anti).unite(result_.output));
    return std::move(result_);
  }

 private:
  /// Dependences of `access` on statements before it, nearest first; an element that one must write hides those
  /// before. On writes into `on_writes`, and, if given, on reads into `on_reads`.
  void from_earlier(size_t sink, const Access& access, isl::union_map& on_writes, isl::union_map* on_reads) {
    isl::map open = access.relation;
    for (size_t source = sink; source-- > 0;) {
      const StatementAccesses& s = statements_[source];
      if (on_reads) {
        for (const Access* read : s.reads) {
          if (read->tensor == access.tensor) add(*on_reads, between(read->relation, open));
        }
      }
      for (const Access* write : s.writes) {
        if (write->tensor != access.tensor) continue;
        add(on_writes, between(write->relation, open));
        if (write->kind == Kind::kWrite) open = subtract_range(open, write->relation.range());
      }
      if (open.is_empty()) return;
    }
  }

  /// Dependences between instances of one statement.
  void within(const StatementAccesses& s, const Access& write) {
    const isl::space space = write.relation.domain().space();
    for (const Access* read : s.reads) {
      if (read->tensor != write.tensor) continue;
      // C3: all of the right side is read before anything is written, whichever instance comes first.
      add(result_.anti, between(read->relation, write.relation).subtract(space.universe_set().identity()));
    }
    const bool reduces = s.statement->kind == Statement::Kind::kUpdate;
    if (!reduces && write.relation.is_injective()) return;
    const isl::map again = between(write.relation, write.relation).intersect(lex_lt(space));
    // Inits store the same identity twice: in any order.
    add(s.statement->kind == Statement::Kind::kSet ? result_.output : result_.reduction, again);
  }

  static void add(isl::union_map& to, const isl::map& map) {
    if (!map.is_empty()) to = to.unite(map.to_union_map());
  }

  isl::ctx ctx_;
  std::vector<StatementAccesses> statements_;
  Dependences result_;
};

}  // namespace

Dependences compute_dependences(const Scop& scop) { return DependenceBuilder(scop).build(); }

}  // namespace tc::poly
