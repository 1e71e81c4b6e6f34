#include "tc/ir/guarded_range.h"

#include "tc/ir/index_expr.h"

namespace tc::ir {

using Halide::Expr;

namespace {

/// The maximal intervals of the complement of a set of integers from 0 on.
struct Intervals {
  isl::set begins;    ///< [p] -> { [b] }, of all, those without end too
  isl::map bounded;   ///< [p] -> { [b] -> [e] }, half-open
  isl::set infinite;  ///< [p] -> { [b] }, of those without end
};

Intervals intervals_outside(const isl::set& bad) {
  const isl::ctx ctx = bad.ctx();
  const isl::set good = isl::set(ctx, "{ [i] : i >= 0 }").subtract(bad);
  const isl::set begins = good.subtract(good.apply(isl::map(ctx, "{ [i] -> [i + 1] }")));
  const isl::map bounded =
      isl::map(ctx, "{ [b] -> [e] : e > b }").intersect_domain(begins).intersect_range(bad).lexmin().coalesce();
  return {begins, bounded, begins.subtract(bounded.domain())};
}

/// Piece by piece: what has been found for some parameters.
struct Answer {
  isl::pw_aff begin;
  isl::pw_aff end;

  isl::set where() const { return end.domain(); }
  void add(const isl::pw_aff& b, const isl::pw_aff& e) {
    begin = begin.is_null() ? b : begin.union_add(b);
    end = end.is_null() ? e : end.union_add(e);
  }
};

/// [p] -> { [e] } for a value over parameters.
isl::set at(const isl::pw_aff& value) { return isl::manage(isl_set_from_pw_aff(value.copy())); }

isl::pw_aff zero_on(const isl::set& parameters) { return parameters.pw_aff_on_domain(0L); }

/// The longest interval with an end, the first of those as long.
Answer longest(const Intervals& intervals, const isl::set& context) {
  const isl::ctx ctx = context.ctx();
  const isl::set pairs = intervals.bounded.intersect_params(context).wrap().flatten();
  const isl::pw_multi_aff best =
      pairs.apply(isl::map(ctx, "{ [b, e] -> [b - e, b, e] }")).coalesce().lexmin_pw_multi_aff().coalesce();
  Answer answer;
  answer.add(best.at(1), best.at(2));
  return answer;
}

class Search {
 public:
  Search(Prover& prover, const Statement& statement, const std::string& index,
         const std::vector<GuardedSubscript>& subscripts)
      : prover_(prover), statement_(statement), index_(index), subscripts_(subscripts) {}

  std::optional<GuardedRange> run();

 private:
  isl::set leaving(const GuardedSubscript& subscript, bool guarded) {
    return prover_.leaving(statement_, index_, subscript.value, subscript.extent, guarded ? subscript.guard : Expr());
  }
  isl::set leaving_any(bool guarded);
  std::optional<isl::pw_aff> end_of_reads();
  bool finish_without_guards(const Intervals& intervals, Answer& answer, const isl::set& rest);
  bool reads_outside(const Answer& answer);
  size_t set_by(const isl::set& beyond, bool guarded);

  Prover& prover_;
  isl::set relevant_;           ///< sizes for which the statement does something
  bool ended_by_last_ = false;  ///< for some sizes the last read that a guard allows sets the end
  const Statement& statement_;
  const std::string& index_;
  const std::vector<GuardedSubscript>& subscripts_;
};

isl::set Search::leaving_any(bool guarded) {
  isl::set bad = leaving(subscripts_[0], guarded);
  for (size_t i = 1; i < subscripts_.size(); ++i) bad = bad.unite(leaving(subscripts_[i], guarded));
  return bad.intersect_params(prover_.context()).coalesce();
}

/// One past the last value for which some guard holds: no read is made from there on. Undefined where there is none.
std::optional<isl::pw_aff> Search::end_of_reads() {
  return prover_.attempt([&] {
    isl::set made = prover_.leaving(statement_, index_, index_constant(-1), index_constant(0), subscripts_[0].guard);
    for (size_t i = 1; i < subscripts_.size(); ++i) {
      made =
          made.unite(prover_.leaving(statement_, index_, index_constant(-1), index_constant(0), subscripts_[i].guard));
    }
    made = made.intersect_params(prover_.context()).coalesce();
    const isl::ctx ctx = made.ctx();
    const isl::set before = made.apply(isl::map(ctx, "{ [i] -> [e] : 0 <= e <= i }"));
    return isl::set(ctx, "{ [e] : e >= 0 }")
        .subtract(before)
        .intersect_params(prover_.context())
        .lexmin_pw_multi_aff()
        .at(0);
  });
}

/// For the parameters for which no interval has an end: the first of those without, up to where the subscripts stay
/// inside without guards, and at least up to where the last read is made. False where nothing ends it.
bool Search::finish_without_guards(const Intervals& intervals, Answer& answer, const isl::set& rest) {
  // For sizes that are not relevant the statement does nothing.
  const isl::set endless = intervals.infinite.intersect_params(rest).intersect_params(relevant_);
  const isl::set none = rest.subtract(endless.params());
  if (!none.is_empty()) answer.add(zero_on(none), zero_on(none));
  if (endless.is_empty()) return true;
  const Intervals plain = intervals_outside(leaving_any(false));
  const isl::pw_aff begin = endless.lexmin_pw_multi_aff().at(0);
  const isl::set ends = plain.bounded.range().intersect_params(endless.params());
  const std::optional<isl::pw_aff> last = end_of_reads();
  if (ends.is_empty() && !last) return false;
  isl::pw_aff end;
  if (!ends.is_empty()) end = ends.lexmax_pw_multi_aff().at(0);
  if (last) {
    const isl::pw_aff made = last->intersect_domain(endless.params());
    const isl::set before = end.is_null() ? made.domain() : made.domain().subtract(made.le_set(end));
    ended_by_last_ = !before.is_empty();
    end = end.is_null() ? made : isl::manage(isl_pw_aff_union_max(end.release(), made.copy()));
  }
  const isl::set unbounded = endless.params().subtract(end.domain());
  if (!unbounded.is_empty()) return false;
  const isl::pw_aff from = begin.intersect_domain(end.domain());
  answer.add(from, end.max(from));
  return true;
}

/// Whether the interval, as simple as it is for relevant sizes, has values at which a subscript leaves its tensor for
/// others: the last read that a guard allows may be of an empty tensor there.
bool Search::reads_outside(const Answer& answer) {
  const isl::ctx ctx = answer.end.ctx();
  const isl::set begins = at(prover_.simplified(answer.begin, relevant_));
  const isl::set ends = at(prover_.simplified(answer.end, relevant_));
  const isl::set values = begins.apply(isl::map(ctx, "{ [b] -> [i] : i >= b }"))
                              .intersect(ends.apply(isl::map(ctx, "{ [e] -> [i] : i < e }")));
  return !leaving_any(true).is_disjoint(values);
}

/// The first subscript that leaves its tensor at one of these values.
size_t Search::set_by(const isl::set& beyond, bool guarded) {
  for (size_t i = 0; i < subscripts_.size(); ++i) {
    if (!leaving(subscripts_[i], guarded).is_disjoint(beyond.intersect_params(relevant_))) return i;
  }
  return subscripts_.size();
}

std::optional<GuardedRange> Search::run() {
  relevant_ = prover_.populated(statement_, index_);
  const Intervals intervals = intervals_outside(leaving_any(true));
  Answer answer;
  if (!intervals.bounded.intersect_params(prover_.context()).is_empty()) {
    answer = longest(intervals, prover_.context());
  }
  const isl::set rest = answer.end.is_null() ? prover_.context() : prover_.context().subtract(answer.where());
  GuardedRange result;
  result.beside_guards = !intervals.infinite.intersect_params(rest).intersect_params(relevant_).is_empty();
  if (!rest.is_empty() && !finish_without_guards(intervals, answer, rest)) return std::nullopt;
  const isl::map before(answer.end.ctx(), "{ [i] -> [i - 1] }");
  result.begin_by = set_by(at(answer.begin).apply(before), true);
  result.end_by = set_by(at(answer.end), !result.beside_guards);
  const isl::set where = ended_by_last_ && reads_outside(answer) ? prover_.context() : relevant_;
  result.begin = prover_.to_expr(answer.begin, where);
  result.end = prover_.to_expr(answer.end, where);
  return result;
}

}  // namespace

std::optional<GuardedRange> guarded_range(Prover& prover, const Statement& statement, const std::string& index,
                                          const std::vector<GuardedSubscript>& subscripts) {
  const auto found = prover.attempt([&] { return Search(prover, statement, index, subscripts).run(); });
  return found ? *found : std::nullopt;
}

}  // namespace tc::ir
