#include "tc/tile/digits.h"

#include <isl/aff.h>
#include <isl/map.h>
#include <isl/set.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tc/ir/halide_compat.h"

namespace tc::tile {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

/// coefficient * floor((variable mod high) / low), with high = 0 for a variable as it is.
struct Segment {
  std::string variable;
  int64_t coefficient = 1, low = 1, high = 0;
};

/// Finds at which multiples of a variable quotients and remainders cut it.
class CutFinder {
 public:
  Cuts at;

  void find(const Expr& e) {
    struct Visitor : hi::IRVisitor {
      explicit Visitor(CutFinder& c) : cuts(c) {}
      CutFinder& cuts;
      using hi::IRVisitor::visit;
      void visit(const hi::Div* op) override { cuts.sum(op); }
      void visit(const hi::Mod* op) override { cuts.sum(op); }
    } visitor(*this);
    e.accept(&visitor);
  }

 private:
  using Sum = std::optional<std::vector<Segment>>;

  static Sum scaled(Sum sum, int64_t by) {
    if (sum) {
      for (Segment& segment : *sum) segment.coefficient *= by;
    }
    return sum;
  }
  static Sum joined(Sum a, const Sum& b) {
    if (!a || !b) return std::nullopt;
    a->insert(a->end(), b->begin(), b->end());
    return a;
  }

  /// An expression as a sum of segments, up to a constant.
  Sum sum(const Expr& e) {
    if (ir::constant_int(e)) return Sum(std::vector<Segment>{});
    if (const auto* op = e.as<hi::Variable>()) return Sum(std::vector<Segment>{{op->name}});
    if (const auto* op = e.as<hi::Cast>()) return sum(op->value);
    if (const auto* op = e.as<hi::Add>()) return joined(sum(op->a), sum(op->b));
    if (const auto* op = e.as<hi::Sub>()) return joined(sum(op->a), scaled(sum(op->b), -1));
    if (const auto* op = e.as<hi::Mul>()) {
      if (const int64_t* by = ir::constant_int(op->b)) return scaled(sum(op->a), *by);
      if (const int64_t* by = ir::constant_int(op->a)) return scaled(sum(op->b), *by);
    }
    if (const auto* op = e.as<hi::Div>()) return sum(op);
    if (const auto* op = e.as<hi::Mod>()) return sum(op);
    return std::nullopt;
  }

  Sum sum(const hi::Div* op) {
    const int64_t* by = ir::constant_int(op->b);
    return cut(sum(op->a), by ? *by : 0, true);
  }
  Sum sum(const hi::Mod* op) {
    const int64_t* by = ir::constant_int(op->b);
    return cut(sum(op->a), by ? *by : 0, false);
  }

  /// The quotient or the remainder by `by`.
  Sum cut(const Sum& sum, int64_t by, bool quotient) {
    if (!sum || by <= 0) return std::nullopt;
    std::vector<Segment> result;
    for (Segment segment : *sum) {
      if (segment.coefficient % by == 0) {
        segment.coefficient /= by;
        if (quotient) result.push_back(segment);
        continue;
      }
      if (by % segment.coefficient != 0) return std::nullopt;
      const int64_t where = segment.low * (by / segment.coefficient);
      if (where <= 0) return std::nullopt;
      if (segment.high > 0 && where >= segment.high) {
        if (!quotient) result.push_back(segment);
        continue;
      }
      at[segment.variable].insert(where);
      (quotient ? segment.low : segment.high) = where;
      if (quotient) segment.coefficient = 1;
      result.push_back(segment);
    }
    return result;
  }
};

/// Takes quotients and remainders of sums of digits apart: (a + 2 b + 8 c) / 4 = 2 c where a < 2 and b < 2.
class SumOfDigits : public hi::IRMutator {
 public:
  std::map<std::string, int64_t> counts;  ///< a digit has the values [0, count)

  struct Sum {
    std::map<std::string, int64_t> terms;  ///< coefficients
    int64_t constant = 0;
  };
  std::optional<Sum> sum_of(const Expr& e) const {
    if (const int64_t* constant = ir::constant_int(e)) return Sum{{}, *constant};
    if (const auto* op = e.as<hi::Variable>()) return Sum{{{op->name, 1}}, 0};
    if (const auto* op = e.as<hi::Cast>(); op && op->value.type().is_int() && op->type.is_int())
      return sum_of(op->value);
    if (const auto* op = e.as<hi::Add>()) return plus(sum_of(op->a), sum_of(op->b), 1);
    if (const auto* op = e.as<hi::Sub>()) return plus(sum_of(op->a), sum_of(op->b), -1);
    if (const auto* op = e.as<hi::Mul>()) {
      if (const int64_t* by = ir::constant_int(op->b)) return plus(Sum{}, sum_of(op->a), *by);
      if (const int64_t* by = ir::constant_int(op->a)) return plus(Sum{}, sum_of(op->b), *by);
    }
    if (const auto* op = e.as<hi::Div>()) return sum_of(op);
    if (const auto* op = e.as<hi::Mod>()) return sum_of(op);
    return std::nullopt;
  }

 private:
  using hi::IRMutator::visit;
  Expr visit(const hi::Div* op) override { return taken_apart(op); }
  Expr visit(const hi::Mod* op) override { return taken_apart(op); }

  template <typename Op>
  Expr taken_apart(const Op* op) {
    if (const std::optional<Sum> sum = sum_of(op)) return to_expr(*sum, op->type);
    return hi::IRMutator::visit(op);
  }

  static Expr to_expr(const Sum& sum, Halide::Type type) {
    Expr result = hi::make_const(type, sum.constant);
    for (const auto& [name, by] : sum.terms) {
      const Expr term = hi::Variable::make(type, name);
      result = result + (by == 1 ? term : term * hi::make_const(type, by));
    }
    return hi::simplify(result);
  }

  static std::optional<Sum> plus(std::optional<Sum> a, const std::optional<Sum>& b, int64_t by) {
    if (!a || !b) return std::nullopt;
    a->constant += by * b->constant;
    for (const auto& [name, coefficient] : b->terms) a->terms[name] += by * coefficient;
    std::erase_if(a->terms, [](const auto& term) { return term.second == 0; });
    return a;
  }

  std::optional<Sum> sum_of(const hi::Div* op) const {
    const int64_t* by = ir::constant_int(op->b);
    const std::optional<Sum> sum = sum_of(op->a);
    if (!by || *by <= 0 || !sum) return std::nullopt;
    const std::optional<Sum> rest = rest_of(*sum, *by);
    std::optional<Sum> result = plus(sum, rest, -1);
    if (!result) return std::nullopt;
    result->constant /= *by;
    for (auto& [name, coefficient] : result->terms) coefficient /= *by;
    return result;
  }
  std::optional<Sum> sum_of(const hi::Mod* op) const {
    const int64_t* by = ir::constant_int(op->b);
    const std::optional<Sum> sum = sum_of(op->a);
    return by && *by > 0 && sum ? rest_of(*sum, *by) : std::nullopt;
  }
  /// The remainder, if what is no multiple stays between two neighbouring multiples.
  std::optional<Sum> rest_of(const Sum& sum, int64_t by) const {
    Sum rest{.terms = {}, .constant = sum.constant};
    int64_t least = sum.constant, greatest = sum.constant;
    for (const auto& [name, coefficient] : sum.terms) {
      if (coefficient % by == 0) continue;
      const auto count = counts.find(name);
      if (count == counts.end()) return std::nullopt;
      rest.terms[name] = coefficient;
      (coefficient < 0 ? least : greatest) += coefficient * (count->second - 1);
    }
    const int64_t multiple = hi::div_imp(least, by) * by;
    if (greatest >= multiple + by) return std::nullopt;
    rest.constant -= multiple;
    return rest;
  }
};

class Rewriter {
 public:
  Rewriter(const Kernel& kernel, const Path& path, const Cuts& cuts) : around_(path), cuts_(cuts) {
    for (const auto& [names, extents] : {std::pair(kBlock, kernel.grid), std::pair(kThread, kernel.block)}) {
      for (size_t i = 0; i < 3; ++i) {
        add_variable(names[i], extents[i]);
        owner.push_back(digits_.at(names[i]));
      }
    }
    own = static_cast<int>(path_.loops.size());
    for (const EnclosingLoop& loop : path.loops) {
      add_loop(*loop.loop);
      const Expr variable = hi::Variable::make(loop.loop->begin.type(), loop.loop->variable);
      iterations.push_back(hi::substitute(digits_, variable));
    }
    for (const Expr& condition : path.conditions) path_.conditions.push_back(over_digits(condition));
  }

  Expr over_digits(const Expr& e) const {
    SumOfDigits sums;
    sums.counts = counts_;
    return hi::simplify(sums.mutate(hi::substitute(digits_, without_lets(around_, e))), true, bounds_);
  }
  Path path() && { return std::move(path_); }

  int own = 0;
  std::vector<Expr> owner, iterations;
  std::vector<std::shared_ptr<For>> loops;

 private:
  void push_loop(const std::string& name, Expr begin, Expr end, Expr step) {
    auto loop = std::make_shared<For>();
    loop->variable = name;
    loop->begin = std::move(begin);
    loop->end = std::move(end);
    loop->step = std::move(step);
    loops.push_back(loop);
    path_.loops.push_back({loop.get(), static_cast<int>(path_.loops.size())});
  }

  /// A variable with the values [0, extent), as loops over its digits.
  void add_variable(const std::string& name, int64_t extent, Halide::Type type = Halide::Int(32)) {
    if (extent == 1) {
      digits_[name] = hi::make_zero(type);
      return;
    }
    const std::vector<int64_t> strides = digit_strides(cuts_, name, extent);
    Expr value = hi::make_zero(type);
    for (size_t d = 0; d < strides.size(); ++d) {
      const bool last = d + 1 == strides.size();
      const int64_t count = last ? (extent + strides[d] - 1) / strides[d] : strides[d + 1] / strides[d];
      const std::string digit = name + "." + std::to_string(d);
      push_loop(digit, hi::make_zero(type), hi::make_const(type, count), hi::make_one(type));
      counts_[digit] = count;
      bounds_.push(digit, hi::Interval(hi::make_zero(type), hi::make_const(type, count - 1)));
      value = value + hi::Variable::make(type, digit) * hi::make_const(type, strides[d]);
    }
    if (extent % strides.back() != 0) path_.conditions.push_back(value < hi::make_const(type, extent));
    digits_[name] = hi::simplify(value);
  }

  void add_loop(const For& loop) {
    const std::optional<int64_t> trips = constant_trips(loop);
    const int64_t* begin = ir::constant_int(loop.begin);
    if (trips && begin && *begin == 0 && hi::is_const_one(loop.step) && *trips > 0) {
      return add_variable(loop.variable, *trips, loop.begin.type());
    }
    push_loop(loop.variable, over_digits(loop.begin), over_digits(loop.end), loop.step);
  }

  const Path& around_;
  const Cuts& cuts_;
  Path path_;
  std::map<std::string, Expr> digits_;
  std::map<std::string, int64_t> counts_;
  hi::Scope<hi::Interval> bounds_;
};

/// count digits, each `stride` more than the one before.
struct Digit {
  int64_t count, stride;
};

/// Sorted numbers from 0 on as all sums of one value of each digit. None if they are not.
std::optional<std::vector<Digit>> digits_of(std::vector<int64_t> values) {
  std::vector<Digit> result;
  while (values.size() > 1) {
    const int64_t stride = values[1];
    size_t count = 1;
    while (count < values.size() && values[count] == static_cast<int64_t>(count) * stride) ++count;
    if (values.size() % count != 0) return std::nullopt;
    std::vector<int64_t> rest;
    for (size_t i = 0; i < values.size(); ++i) {
      if (i % count == 0) rest.push_back(values[i]);
      if (values[i] != rest.back() + static_cast<int64_t>(i % count) * stride) return std::nullopt;
    }
    result.push_back({static_cast<int64_t>(count), stride});
    values = std::move(rest);
  }
  return result;
}

/// Points that lie constants apart: the least values of their indices, and digits of what is added to each index.
struct Lattice {
  std::vector<Expr> first;
  std::vector<std::vector<Digit>> digits;  ///< per index
  int64_t times = 1;                       ///< that each point is there
};

std::optional<Lattice> lattice_of(const std::vector<std::vector<Expr>>& points) {
  std::map<std::vector<int64_t>, int64_t> offsets;  // and how often
  for (const std::vector<Expr>& point : points) {
    std::vector<int64_t> offset;
    for (size_t i = 0; i < point.size(); ++i) {
      const Expr apart = hi::simplify(point[i] - points[0][i]);
      const int64_t* constant = ir::constant_int(apart);
      if (!constant) return std::nullopt;
      offset.push_back(*constant);
    }
    ++offsets[offset];
  }
  Lattice result{.times = offsets.begin()->second};
  int64_t count = 1;
  for (size_t i = 0; i < points[0].size(); ++i) {
    std::set<int64_t> values;
    for (const auto& [offset, times] : offsets) values.insert(offset[i]);
    const int64_t least = *values.begin();
    std::vector<int64_t> from_0;
    for (int64_t value : values) from_0.push_back(value - least);
    std::optional<std::vector<Digit>> digits = digits_of(std::move(from_0));
    if (!digits) return std::nullopt;
    count *= static_cast<int64_t>(values.size());
    result.first.push_back(points[0][i] + hi::make_const(points[0][i].type(), least));
    result.digits.push_back(*std::move(digits));
  }
  const bool even =
      std::all_of(offsets.begin(), offsets.end(), [&](const auto& o) { return o.second == result.times; });
  if (!even || count != static_cast<int64_t>(offsets.size())) return std::nullopt;
  return result;
}

bool at_one_place(const Path& a, const Path& b) {
  const auto same_loop = [](const EnclosingLoop& x, const EnclosingLoop& y) { return x.id == y.id; };
  const auto same = [](const Expr& x, const Expr& y) { return hi::equal(x, y); };
  return std::equal(a.loops.begin(), a.loops.end(), b.loops.begin(), b.loops.end(), same_loop) &&
         std::equal(a.conditions.begin(), a.conditions.end(), b.conditions.begin(), b.conditions.end(), same) &&
         std::equal(a.lets.begin(), a.lets.end(), b.lets.begin(), b.lets.end(),
                    [&](const auto& x, const auto& y) { return x.first == y.first && same(x.second, y.second); });
}

Memory memory_of(const Leaf& leaf) { return leaf.accesses.empty() ? Memory::kGlobal : leaf.accesses[0].tensor->memory; }

/// Leaves of one place as one, at the points of a lattice.
Doer doer_at(const Leaf& leaf, const Lattice& lattice) {
  const Instances& instances = *leaf.node->instances;
  Doer doer{.leaf = leaf, .memory = memory_of(leaf), .zero_below = instances.zero_below};
  doer.leaf.accesses.clear();
  Instances one{.statement = instances.statement, .first = {lattice.first}};
  const auto add_loop = [&](int64_t count, Halide::Type type) {
    auto loop = std::make_shared<For>();
    loop->variable = "part." + std::to_string(doer.loops.size());
    loop->begin = hi::make_zero(type);
    loop->end = hi::make_const(type, count);
    loop->step = hi::make_one(type);
    doer.loops.push_back(loop);
    doer.leaf.path.loops.push_back({loop.get(), -1});
    return hi::Variable::make(type, loop->variable);
  };
  if (lattice.times > 1) add_loop(lattice.times, Halide::Int(32));
  for (size_t i = 0; i < lattice.first.size(); ++i) {
    Expr& value = one.first[0][i];
    const Halide::Type type = value.type();
    if (!instances.lengths.empty() && instances.lengths[i] > 1) value = value + add_loop(instances.lengths[i], type);
    for (const Digit& digit : lattice.digits[i]) {
      value = value + add_loop(digit.count, type) * hi::make_const(type, digit.stride);
    }
  }
  doer.node = carrying(std::make_shared<const Instances>(std::move(one)), std::make_shared<const Node>(*leaf.node));
  doer.leaf.node = doer.node.get();
  return doer;
}

}  // namespace

std::vector<Doer> doers_of(const Flow& flow, const std::string& statement) {
  std::vector<std::vector<const Leaf*>> places;
  for (const Leaf& leaf : flow.leaves) {
    const Instances* instances = leaf.node->instances.get();
    if (!instances || instances->statement != statement) continue;
    const auto joins = [&](const Leaf& other) {
      return at_one_place(leaf.path, other.path) && memory_of(leaf) == memory_of(other) &&
             other.node->instances->lengths == instances->lengths &&
             other.node->instances->zero_below == instances->zero_below;
    };
    if (places.empty() || !joins(*places.back()[0])) places.emplace_back();
    places.back().push_back(&leaf);
  }
  std::vector<Doer> result;
  for (const std::vector<const Leaf*>& place : places) {
    std::vector<std::vector<Expr>> points;
    for (const Leaf* leaf : place) {
      for (const std::vector<Expr>& point : leaf->node->instances->first) points.push_back(point);
    }
    if (const std::optional<Lattice> lattice = lattice_of(points)) {
      result.push_back(doer_at(*place[0], *lattice));
      continue;
    }
    for (const std::vector<Expr>& point : points) result.push_back(doer_at(*place[0], *lattice_of({point})));
  }
  return result;
}

std::optional<isl::map> values_at(const AffineView& view, const std::vector<Expr>& values) {
  isl::map result = isl::manage(isl_map_from_domain(view.domain().copy()));
  for (const Expr& expr : values) {
    const std::optional<isl::pw_aff> value = view.value(expr);
    if (!value) return std::nullopt;
    result = isl::manage(isl_map_flat_range_product(result.release(), isl_map_from_pw_aff(value->copy())));
  }
  return result;
}

std::vector<int64_t> coefficients_of(const Expr& sum) {
  std::vector<int64_t> result;
  const std::optional<SumOfDigits::Sum> terms = SumOfDigits().sum_of(sum);
  if (!terms) return result;
  for (const auto& [name, coefficient] : terms->terms) result.push_back(std::abs(coefficient));
  return result;
}

Expr without_lets(const Path& path, Expr e) {
  // A let sees those around it: as many rounds as there are.
  for (size_t round = 0; round <= path.lets.size(); ++round) {
    const Expr next = hi::substitute(path.lets, e);
    if (next.same_as(e)) break;
    e = next;
  }
  return e;
}

void add_cuts(const Path& path, const std::vector<std::vector<Expr>>& values, Cuts& cuts) {
  CutFinder finder;
  for (const Expr& condition : path.conditions) finder.find(without_lets(path, condition));
  for (const EnclosingLoop& loop : path.loops) finder.find(without_lets(path, loop.loop->begin));
  for (const std::vector<Expr>& each : values) {
    for (const Expr& e : each) finder.find(without_lets(path, e));
  }
  for (const auto& [variable, where] : finder.at) cuts[variable].insert(where.begin(), where.end());
}

std::vector<int64_t> digit_strides(const Cuts& cuts, const std::string& variable, int64_t extent) {
  const auto is_better = [](const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  };
  std::vector<std::vector<int64_t>> longest = {{1}};  // of all that end at a cut
  size_t best = 0;
  const auto found = cuts.find(variable);
  if (found == cuts.end()) return longest[0];
  for (int64_t where : found->second) {
    if (where <= 1 || where >= extent) continue;
    size_t before = 0;
    for (size_t i = 0; i < longest.size(); ++i) {
      if (where % longest[i].back() == 0 && is_better(longest[i], longest[before])) before = i;
    }
    std::vector<int64_t> strides = longest[before];
    strides.push_back(where);
    longest.push_back(std::move(strides));
    if (is_better(longest.back(), longest[best])) best = longest.size() - 1;
  }
  return longest[best];
}

DigitValues in_digits(const Kernel& kernel, const Path& path, const std::vector<std::vector<Expr>>& values,
                      const Cuts& cuts) {
  Rewriter rewriter(kernel, path, cuts);
  DigitValues result;
  for (const std::vector<Expr>& each : values) {
    std::vector<Expr>& own = result.values.emplace_back();
    for (const Expr& e : each) own.push_back(rewriter.over_digits(e));
  }
  result.loops = rewriter.loops;
  result.path = std::move(rewriter).path();
  return result;
}

namespace {

/// Of cuts those from the smallest on, each of which divides the next.
std::set<int64_t> smallest_first(const std::set<int64_t>& cuts) {
  std::set<int64_t> result;
  for (int64_t where : cuts) {
    if (result.empty() || where % *result.rbegin() == 0) result.insert(where);
  }
  return result;
}

}  // namespace

DigitLeaf in_digits(const Kernel& kernel, const Leaf& leaf) {
  std::vector<std::vector<Expr>> values;
  for (const ElementAccess& access : leaf.accesses) values.push_back(access.subscripts);
  if (leaf.node->instances) std::ranges::copy(leaf.node->instances->first, std::back_inserter(values));
  Cuts cuts;
  add_cuts(leaf.path, values, cuts);
  for (auto& [variable, where] : cuts) where = smallest_first(where);
  Rewriter rewriter(kernel, leaf.path, cuts);
  DigitLeaf result{.leaf = &leaf};
  for (ElementAccess access : leaf.accesses) {
    for (Expr& e : access.subscripts) e = rewriter.over_digits(e);
    for (Expr& e : access.conditions) e = rewriter.over_digits(e);
    result.accesses.push_back(std::move(access));
  }
  if (leaf.node->instances) {
    for (std::vector<Expr> point : leaf.node->instances->first) {
      for (Expr& e : point) e = rewriter.over_digits(e);
      result.points.push_back(std::move(point));
    }
  }
  result.own = rewriter.own;
  result.owner = rewriter.owner;
  result.iterations = rewriter.iterations;
  result.loops = rewriter.loops;
  result.path = std::move(rewriter).path();
  return result;
}

Kernel alone(const Kernel& kernel) {
  Kernel result = kernel;
  result.grid = result.block = {1, 1, 1};
  return result;
}

}  // namespace tc::tile
