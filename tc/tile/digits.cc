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
class Cuts {
 public:
  std::map<std::string, std::set<int64_t>> at;

  void find(const Expr& e) {
    struct Visitor : hi::IRVisitor {
      explicit Visitor(Cuts& c) : cuts(c) {}
      Cuts& cuts;
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

class Rewriter {
 public:
  explicit Rewriter(const Leaf& leaf) : leaf_(leaf) { result_.leaf = &leaf; }

  DigitLeaf run(const Kernel& kernel) {
    find_cuts();
    for (const auto& [names, extents] : {std::pair(kBlock, kernel.grid), std::pair(kThread, kernel.block)}) {
      for (size_t i = 0; i < 3; ++i) {
        add_variable(names[i], extents[i]);
        result_.owner.push_back(digits_.at(names[i]));
      }
    }
    result_.own = static_cast<int>(result_.path.loops.size());
    for (const EnclosingLoop& loop : leaf_.path.loops) {
      add_loop(*loop.loop);
      const Expr own = hi::Variable::make(loop.loop->begin.type(), loop.loop->variable);
      result_.iterations.push_back(hi::substitute(digits_, own));
    }
    for (const Expr& condition : leaf_.path.conditions) result_.path.conditions.push_back(over_digits(condition));
    for (ElementAccess access : leaf_.accesses) {
      for (Expr& e : access.subscripts) e = over_digits(e);
      for (Expr& e : access.conditions) e = over_digits(e);
      result_.accesses.push_back(std::move(access));
    }
    if (leaf_.node->instances) {
      for (std::vector<Expr> point : leaf_.node->instances->first) {
        for (Expr& e : point) e = over_digits(e);
        result_.points.push_back(std::move(point));
      }
    }
    return std::move(result_);
  }

 private:
  Expr inlined(Expr e) const {
    // A let sees those around it: as many rounds as there are.
    for (size_t round = 0; round <= leaf_.path.lets.size(); ++round) {
      const Expr next = hi::substitute(leaf_.path.lets, e);
      if (next.same_as(e)) break;
      e = next;
    }
    return e;
  }

  void find_cuts() {
    for (const Expr& condition : leaf_.path.conditions) cuts_.find(inlined(condition));
    for (const ElementAccess& access : leaf_.accesses) {
      for (const Expr& e : access.subscripts) cuts_.find(inlined(e));
    }
    for (const EnclosingLoop& loop : leaf_.path.loops) cuts_.find(inlined(loop.loop->begin));
    if (!leaf_.node->instances) return;
    for (const std::vector<Expr>& point : leaf_.node->instances->first) {
      for (const Expr& e : point) cuts_.find(inlined(e));
    }
  }

  Expr over_digits(const Expr& e) const { return hi::simplify(hi::substitute(digits_, inlined(e)), true, bounds_); }

  void push_loop(const std::string& name, Expr begin, Expr end, Expr step) {
    auto loop = std::make_shared<For>();
    loop->variable = name;
    loop->begin = std::move(begin);
    loop->end = std::move(end);
    loop->step = std::move(step);
    result_.loops.push_back(loop);
    result_.path.loops.push_back({loop.get(), static_cast<int>(result_.path.loops.size())});
  }

  /// A variable with the values [0, extent), as loops over its digits.
  void add_variable(const std::string& name, int64_t extent, Halide::Type type = Halide::Int(32)) {
    if (extent == 1) {
      digits_[name] = hi::make_zero(type);
      return;
    }
    std::vector<int64_t> strides = {1};
    for (int64_t where : cuts_.at[name]) {
      if (where > strides.back() && where < extent && where % strides.back() == 0) strides.push_back(where);
    }
    Expr value = hi::make_zero(type);
    for (size_t d = 0; d < strides.size(); ++d) {
      const bool last = d + 1 == strides.size();
      const int64_t count = last ? (extent + strides[d] - 1) / strides[d] : strides[d + 1] / strides[d];
      const std::string digit = name + "." + std::to_string(d);
      push_loop(digit, hi::make_zero(type), hi::make_const(type, count), hi::make_one(type));
      bounds_.push(digit, hi::Interval(hi::make_zero(type), hi::make_const(type, count - 1)));
      value = value + hi::Variable::make(type, digit) * hi::make_const(type, strides[d]);
    }
    if (extent % strides.back() != 0) result_.path.conditions.push_back(value < hi::make_const(type, extent));
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

  const Leaf& leaf_;
  DigitLeaf result_;
  Cuts cuts_;
  std::map<std::string, Expr> digits_;
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

DigitLeaf in_digits(const Kernel& kernel, const Leaf& leaf) { return Rewriter(leaf).run(kernel); }

Kernel alone(const Kernel& kernel) {
  Kernel result = kernel;
  result.grid = result.block = {1, 1, 1};
  return result;
}

}  // namespace tc::tile
