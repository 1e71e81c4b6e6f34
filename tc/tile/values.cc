#include "tc/tile/values.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "tc/ir/halide_compat.h"
#include "tc/tile/awaited.h"
#include "tc/tile/digits.h"
#include "tc/tile/steps.h"

namespace tc::tile {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

constexpr int kWarp = 32;

/// The reads whose values an expression may be, or combine: of a choice, under its condition or not.
class Sources : public hi::IRVisitor {
 public:
  explicit Sources(const std::map<std::string, const Tensor*>& tensors) : tensors_(tensors) {}
  std::vector<ElementAccess> reads;
  Exprs conditions;  ///< all that choose

 private:
  using hi::IRVisitor::visit;
  void under(const Expr& condition, const Expr& e) {
    around_.push_back(condition);
    e.accept(this);
    around_.pop_back();
  }
  void choose(const Expr& condition, const Expr& yes, const Expr& no) {
    conditions.push_back(condition);
    under(condition, yes);
    under(!condition, no);
  }
  void visit(const hi::Select* op) override { choose(op->condition, op->true_value, op->false_value); }
  void visit(const hi::Call* op) override {
    if (op->is_intrinsic(hi::Call::if_then_else)) return choose(op->args[0], op->args[1], op->args[2]);
    const auto found = tensors_.find(op->name);
    if (found == tensors_.end()) return hi::IRVisitor::visit(op);
    reads.push_back({found->second, op->args, around_});
  }

  const std::map<std::string, const Tensor*>& tensors_;
  Exprs around_;
};

class Finder {
 public:
  Finder(const Kernel& kernel, const Flow& flow, int leaf)
      : kernel_(kernel),
        flow_(flow),
        index_(leaf),
        leaf_(flow.leaves[static_cast<size_t>(leaf)]),
        tensors_(tensors_of(kernel)) {
    for (size_t i = 0; i < 3; ++i) {
      block_[i] = hi::Variable::make(Halide::Int(32), kBlock[i]);
      thread_[i] = hi::Variable::make(Halide::Int(32), kThread[i]);
    }
  }

  std::vector<Value> run() {
    const bool is_spec = match(
        *leaf_.node, [](const Spec auto&) { return true; }, [](const Structure auto&) { return false; },
        [](const Synchronisation auto&) { return false; });
    if (!is_spec) {
      const bool reads = std::ranges::any_of(leaf_.accesses, [](const ElementAccess& a) { return is_local(a); });
      if (reads) result_.push_back(unknown());
      return std::move(result_);
    }
    const bool whole = match(
        *leaf_.node, [&](const Store& n) { return scalar(n.tensor, n.subscripts, n.value); },
        [&](const Atomic& n) { return scalar(n.tensor, n.subscripts, n.value, true); },
        [&](const Move& n) { return move(n); }, [&](const Shuffle& n) { return shuffle(n); },
        [&](const MatMul& n) { return product(n); },
        [&](const MatrixLoad& n) {
          return matrices(n.destination, n.source, n.source_subscripts, n.source_dimension, n.transposed, true);
        },
        [&](const MatrixStore& n) {
          return matrices(n.source, n.destination, n.destination_subscripts, n.destination_dimension, n.transposed,
                          false);
        },
        [&](const BoxCopy& n) { return box_copy(n); }, [&](const BoxStore& n) { return box_store(n); },
        [&](const ClusterLoad& n) { return cluster_load(n); }, [&](const WarpgroupMatMul& n) { return product(n); },
        [](const Structure auto&) { return false; }, [](const Synchronisation auto&) { return false; });
    if (!whole) result_ = {unknown()};
    return std::move(result_);
  }

 private:
  static bool is_local(const ElementAccess& access) { return access.tensor->memory != Memory::kGlobal; }

  /// All tensors of the leaf, somewhere.
  Value unknown() const {
    Value value{.leaf = index_, .path = leaf_.path};
    value.known = false;
    for (const ElementAccess& access : leaf_.accesses) {
      (access.is_write ? value.to : value.from)
          .push_back({.tensor = access.tensor, .subscripts = {}, .block = block_, .thread = thread_});
    }
    return value;
  }

  Value value() const { return {.leaf = index_, .path = leaf_.path}; }

  /// Subscripts, or an instance, further on along one dimension.
  static Exprs moved(Exprs point, int dimension, const Expr& by) {
    Expr& at = point[static_cast<size_t>(dimension)];
    at = plus(at, by);
    return point;
  }

  Place place(const std::string& tensor, const Exprs& subscripts) const {
    return {.tensor = tensors_.at(tensor), .subscripts = subscripts, .block = block_, .thread = thread_};
  }

  /// A variable with the values [0, count), in a loop of its own.
  Expr loop(Value& value, int64_t count) const {
    if (count == 1) return number(0);
    auto made = std::make_shared<For>();
    made->variable = "value." + std::to_string(value.loops.size());
    made->begin = number(0);
    made->end = number(count);
    made->step = number(1);
    value.loops.push_back(made);
    value.path.loops.push_back({made.get(), -1 - static_cast<int>(value.loops.size())});
    return hi::Variable::make(Halide::Int(32), made->variable);
  }
  /// The point that loops over the steps come to.
  Exprs walk(Value& value, const Steps& steps) const {
    Exprs point = steps.first;
    for (const auto& [count, by] : steps.steps) {
      const Expr at = loop(value, count);
      for (size_t i = 0; i < point.size(); ++i) {
        if (by[i] != 0) point[i] = plus(point[i], at * number(by[i]));
      }
    }
    return point;
  }

  /// An expression as another thread of the block sees it.
  Expr in_thread(const Expr& e, const Expr& thread_x) const {
    return hi::substitute(kThread[0], thread_x, without_lets(leaf_.path, e));
  }
  Exprs in_thread(const Exprs& all, const Expr& thread_x) const {
    Exprs result;
    for (const Expr& e : all) result.push_back(in_thread(e, thread_x));
    return result;
  }
  Expr lane() const { return thread_[0] % kWarp; }
  Expr first_of_warp() const { return thread_[0] / kWarp * kWarp; }
  /// Threads count along x alone where those of a warp are told apart.
  bool has_whole_warps() const { return kernel_.block[0] % kWarp == 0; }

  const Instances* instances() const { return leaf_.node->instances.get(); }
  /// Names the only instance of the leaf.
  bool carry(Value& value) const {
    if (!instances()) return true;
    if (instances()->first.size() != 1) return false;
    for (int64_t length : instances()->lengths) {
      if (length != 1) return false;
    }
    value.statement = instances()->statement;
    value.instance = instances()->first[0];
    return true;
  }

  /// Tensors in shared memory and registers that expressions read.
  bool reads_local(const Exprs& all) const {
    for (const Expr& e : all) {
      if (std::ranges::any_of(reads_in(e, tensors_), [](const ElementAccess& a) { return is_local(a); })) return true;
    }
    return false;
  }

  /// What an expression reads. None if tensors in shared memory or registers say which elements those are.
  std::optional<std::vector<ElementAccess>> sources(const Expr& value) const {
    const Expr expr = without_lets(leaf_.path, value);
    std::vector<ElementAccess> result;
    if (instances()) {
      result = reads_in(expr, tensors_);
    } else {
      Sources found(tensors_);
      expr.accept(&found);
      if (reads_local(found.conditions)) return std::nullopt;
      result = std::move(found.reads);
    }
    for (const ElementAccess& read : result) {
      if (reads_local(read.subscripts)) return std::nullopt;
    }
    return result;
  }

  bool scalar(const std::string& tensor, const Exprs& subscripts, const Expr& expr, bool adds = false) {
    Value result = value();
    if (!carry(result)) return false;
    result.to = {place(tensor, subscripts)};
    const std::optional<std::vector<ElementAccess>> reads = sources(expr);
    if (!reads) return false;
    for (const ElementAccess& read : *reads) {
      Place from = place(read.tensor->name, read.subscripts);
      from.conditions = read.conditions;
      if (!turn_of(from)) return false;
      result.from.push_back(std::move(from));
    }
    if (reads_local(subscripts)) return false;
    result.combines = !instances() && (adds || is_combination(result.from));
    result_.push_back(std::move(result));
    return true;
  }
  /// Whether some of the values come together: they are no choices.
  static bool is_combination(const std::vector<Place>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t j = i + 1; j < values.size(); ++j) {
        if (!are_apart(values[i].conditions, values[j].conditions)) return true;
      }
    }
    return false;
  }

  bool move(const Move& n) {
    Value result = value();
    if (reads_local(n.destination_subscripts) || reads_local(n.source_subscripts)) return false;
    const Expr at = loop(result, n.elements);
    result.to = {place(n.destination, moved(n.destination_subscripts, n.destination_dimension, at))};
    result.from = {place(n.source, moved(n.source_subscripts, n.source_dimension, at))};
    result.combines = n.update.has_value() && !instances();
    if (n.guard.defined()) result.from[0].conditions.push_back(n.guard);
    if (!turn_of(result.from[0])) return false;
    if (instances()) {
      if (n.elements == 1) {
        if (!carry(result)) return false;
      } else {
        if (static_cast<int>(instances()->first.size()) != n.elements) return false;
        const std::optional<Steps> steps = steps_of(instances()->first);
        if (!steps || steps->steps.size() != 1 ||
            !std::ranges::all_of(instances()->lengths, [](int64_t l) { return l == 1; })) {
          return false;
        }
        result.statement = instances()->statement;
        result.instance = steps->first;
        for (size_t i = 0; i < result.instance.size(); ++i) {
          result.instance[i] = plus(result.instance[i], at * number(steps->steps[0].second[i]));
        }
      }
    }
    result_.push_back(std::move(result));
    return true;
  }

  bool shuffle(const Shuffle& n) {
    Value result = value();
    const int64_t* by = ir::constant_int(n.lane);
    const int64_t group = n.kind == Shuffle::Kind::kXor && by ? 2 * *by : n.width;
    // Those that exchange differ in x alone.
    if (group <= 0 || kernel_.block[0] % group != 0 || !carry(result) || reads_local(n.subscripts)) return false;
    result.to = {place(n.tensor, n.subscripts)};
    Expr other;
    switch (n.kind) {
      case Shuffle::Kind::kXor:
        if (!by || *by <= 0 || (*by & (*by - 1)) != 0 || 2 * *by > n.width) return false;
        other = thread_[0] + number(*by) - thread_[0] / number(*by) % 2 * number(2 * *by);
        break;
      case Shuffle::Kind::kIndex:
        other = thread_[0] / number(n.width) * number(n.width) + n.lane % number(n.width);
        break;
      case Shuffle::Kind::kDown:
        if (!by) return false;
        other = hi::Select::make(thread_[0] % number(n.width) + number(*by) < number(n.width), thread_[0] + number(*by),
                                 thread_[0]);
        break;
    }
    other = without_lets(leaf_.path, other);
    const std::optional<std::vector<ElementAccess>> reads = sources(n.value);
    if (!reads) return false;
    for (const ElementAccess& read : *reads) {
      Place from = place(read.tensor->name, in_thread(read.subscripts, other));
      from.thread[0] = other;
      from.conditions = in_thread(read.conditions, other);
      result.from.push_back(std::move(from));
    }
    result_.push_back(std::move(result));
    return true;
  }

  // --- tiles ------------------------------------------------------------------------------------------------------

  /// Thread 8 i + r says where row r of matrix i is.
  bool matrices(const Fragment& fragment, const std::string& shared, const Exprs& row, int dimension, bool transposed,
                bool loads) {
    if (!has_whole_warps() || instances() || reads_local(row)) return false;
    Points values;  // subscripts, the matrix, and which of a pair
    for (size_t v = 0; v < fragment.values.size(); ++v) {
      values.push_back(fragment.values[v]);
      values.back().push_back(number(static_cast<int64_t>(v / 2)));
      values.back().push_back(number(static_cast<int64_t>(v % 2)));
    }
    for (const Points& together : in_steps(values)) {
      Value result = value();
      Exprs at = walk(result, *steps_of(together));
      const Expr pair = at.back(), matrix = at[at.size() - 2];
      at.resize(at.size() - 2);
      const Expr across = lane() % 4 * 2 + pair, down = lane() / 4;
      const Expr names = first_of_warp() + matrix * kMatrixRow + (transposed ? across : down);
      const Exprs element = moved(in_thread(row, names), dimension, transposed ? down : across);
      const Place own = place(fragment.tensor, at), other = place(shared, element);
      result.to = {loads ? own : other};
      result.from = {loads ? other : own};
      if (!turn_of(result.from[0])) return false;
      result_.push_back(std::move(result));
    }
    return true;
  }

  /// Points as few lists that loops run over.
  static std::vector<Points> in_steps(const Points& points) {
    if (steps_of(points)) return {points};
    std::vector<Points> result;
    for (const Exprs& point : points) result.push_back({point});
    return result;
  }

  /// The index along which a product adds several instances, of `length`; and one of which a box has two. -1: none.
  struct BoxOfSums {
    int summed = -1, pair = -1;
  };
  std::optional<BoxOfSums> box_of_sums(int64_t length, int64_t pair) const {
    BoxOfSums result;
    for (size_t i = 0; i < instances()->lengths.size(); ++i) {
      const int64_t own = instances()->lengths[i];
      if (own == 1) continue;
      if (own == length && result.summed < 0 && (own != pair || instances()->zero_below.at(i) != INT64_MIN)) {
        result.summed = static_cast<int>(i);
      } else if (own == pair && result.pair < 0) {
        result.pair = static_cast<int>(i);
      } else {
        return std::nullopt;
      }
    }
    if (result.summed < 0) return std::nullopt;
    return result;
  }

  bool product(const MatMul& n) {
    if (!has_whole_warps() || !instances()) return false;
    const MatMulAtom& atom = *n.atom;
    const Points& points = instances()->first;
    const std::optional<BoxOfSums> box = box_of_sums(atom.k, 0);
    const std::optional<Steps> sums = steps_of(points);
    if (!box || !sums || points.size() != n.d.values.size() || atom.d.rank() != 2) return false;

    Points held = n.d.values;
    for (size_t v = 0; v < held.size(); ++v) std::ranges::copy(points[v], std::back_inserter(held[v]));
    for (const Points& together : in_steps(held)) {
      Value result = value();
      const Exprs at = walk(result, *steps_of(together));
      const auto rank = static_cast<std::ptrdiff_t>(n.d.values[0].size());
      result.to = {place(n.d.tensor, Exprs(at.begin(), at.begin() + rank))};
      result.statement = instances()->statement;
      result.instance = Exprs(at.begin() + rank, at.end());
      result_.push_back(std::move(result));
    }
    return operand(n, n.a, atom.a, atom.m, *sums, *box, true) && operand(n, n.b, atom.b, atom.k, *sums, *box, false);
  }

  /// For all sums that a value of an operand counts for: those of its row, or of its column.
  bool operand(const MatMul& n, const Fragment& fragment, const Layout& layout, int rows, const Steps& sums,
               const BoxOfSums& box, bool is_a) {
    Points values;  // subscripts, and which value
    for (size_t v = 0; v < fragment.values.size(); ++v) {
      values.push_back(fragment.values[v]);
      values.back().push_back(number(static_cast<int64_t>(v)));
    }
    for (const Points& together : in_steps(values)) {
      Value result = value();
      Exprs at = walk(result, *steps_of(together));
      const std::optional<TilePlace> of_thread = tile_place(layout[0], lane(), rows);
      const std::optional<TilePlace> of_value = tile_place(layout[1], at.back(), rows);
      at.pop_back();
      if (!of_thread || !of_value) return false;
      const Expr row = of_thread->row + of_value->row, column = of_thread->column + of_value->column;
      const auto counts = [&](const Layout& mode) {
        return index_in(result, mode, n.atom->m, is_a ? row : Expr(), is_a ? Expr() : column);
      };
      const std::optional<Expr> sum_lane = counts(n.atom->d[0]), sum_value = counts(n.atom->d[1]);
      if (!sum_lane || !sum_value) return false;
      result.statement = instances()->statement;
      Steps of_lane = sums;
      of_lane.first = in_thread(sums.first, first_of_warp() + *sum_lane);
      result.instance = moved(at_step(of_lane, *sum_value), box.summed, is_a ? column : row);
      result.from = {place(fragment.tensor, at)};
      result_.push_back(std::move(result));
    }
    return true;
  }

  /// The index in a mode of a layout of columns of what has a row, or a column; loops over the others. None as of
  /// tile_place().
  std::optional<Expr> index_in(Value& value, const Layout& mode, int rows, const Expr& row, const Expr& column) const {
    Expr result = number(0);
    const std::vector<int64_t> extents = flatten(mode.shape()), strides = flatten(mode.stride());
    int64_t before = 1;
    for (size_t i = 0; i < extents.size(); ++i) {
      const bool down = strides[i] % rows != 0;
      if (down && strides[i] * extents[i] > rows) return std::nullopt;
      const Expr& given = down ? row : column;
      const Expr digit = given.defined() ? given / number(down ? strides[i] : strides[i] / rows) % number(extents[i])
                                         : loop(value, extents[i]);
      result = result + digit * number(before);
      before *= extents[i];
    }
    return result;
  }

  bool product(const WarpgroupMatMul& n) {
    constexpr int kGroup = WarpgroupAtom::kThreads, kPair = 2;
    if (!has_whole_warps() || !instances()) return false;
    const int64_t length = int64_t{n.slices} * n.atom.k();
    const std::optional<BoxOfSums> box = box_of_sums(length, kPair);
    const int64_t eights = n.atom.n / 8;
    const Points& points = instances()->first;
    if (!box || box->pair < 0 || std::ssize(points) != 2 * eights) return false;
    const std::optional<Steps> columns = steps_of(Points(points.begin(), points.begin() + eights));
    const std::optional<Steps> rows = steps_of({points[0], points[static_cast<size_t>(eights)]});
    if (!columns || !rows || !steps_of(points)) return false;

    /// The instance of a thread's value 4 j + 2 h + p.
    struct Sum {
      Expr j, h, p;
      Exprs instance;
    };
    const auto sum_of = [&](Value& result) {
      Sum sum{.j = number(0), .h = loop(result, 2), .p = loop(result, kPair), .instance = points[0]};
      const auto add = [&](const Expr& at, const std::vector<int64_t>& by) {
        for (size_t i = 0; i < sum.instance.size(); ++i) {
          if (by[i] != 0) sum.instance[i] = plus(sum.instance[i], at * number(by[i]));
        }
      };
      int64_t before = 1;
      for (const auto& [count, by] : columns->steps) {
        const Expr at = loop(result, count);
        sum.j = sum.j + at * number(before);
        add(at, by);
        before *= count;
      }
      if (!rows->steps.empty()) add(sum.h, rows->steps[0].second);
      sum.instance = moved(sum.instance, box->pair, sum.p);
      return sum;
    };
    const auto add_k = [&](const Exprs& instance, const Expr& k) { return moved(instance, box->summed, k); };
    const auto row_of = [](const Expr& thread, const Expr& h) {
      return thread % kGroup / kWarp * 16 + thread % kWarp / 4 + h * 8;
    };

    Value sums = value();
    const Sum sum = sum_of(sums);
    sums.statement = instances()->statement;
    sums.instance = sum.instance;
    const std::optional<Exprs> held =
        behind(n.d, zeros(n.d), sum.j * 4 + sum.h * 2 + sum.p + number(n.d_first), n.d_first + n.atom.values() - 1);
    if (!held) return false;
    sums.to = {place(n.d, *held)};
    result_.push_back(std::move(sums));

    if (n.held) {
      const int per_register = 4 / bytes_of(n.atom.a);
      Value a = value();
      const Expr slice = loop(a, n.slices), high = loop(a, 2), e = loop(a, per_register), other = loop(a, 4);
      const Sum used = sum_of(a);
      const Expr v = (high * 2 + used.h) * per_register + e;
      const Expr k = slice * n.atom.k() + thread_[0] % 4 * per_register + high * (n.atom.k() / 2) + e;
      const std::optional<Exprs> at =
          behind(n.held->tensor, n.held->subscripts, slice * n.atom.values_of_a() + v, n.values_held() - 1);
      if (!at) return false;
      a.statement = instances()->statement;
      a.instance = add_k(in_thread(used.instance, thread_[0] / 4 * 4 + other), k);
      a.from = {place(n.held->tensor, *at)};
      result_.push_back(std::move(a));
    } else {
      Value a = value();
      const Expr k = loop(a, length);
      const Sum used = sum_of(a);
      a.statement = instances()->statement;
      a.instance = add_k(used.instance, k);
      a.from = {tile_element(n.a, row_of(thread_[0], used.h), k)};
      if (!turn_of(a.from[0])) return false;
      result_.push_back(std::move(a));
    }
    Value b = value();
    const Expr k = loop(b, length);
    const Sum used = sum_of(b);
    b.statement = instances()->statement;
    b.instance = add_k(used.instance, k);
    b.from = {tile_element(n.b, used.j * 8 + thread_[0] % 4 * 2 + used.p, k)};
    if (!turn_of(b.from[0])) return false;
    result_.push_back(std::move(b));
    return true;
  }

  Place tile_element(const MatrixTile& tile, const Expr& mn, const Expr& k) const {
    return place(tile.tensor, moved(moved(tile.subscripts, tile.mn_dimension, mn), tile.k_dimension, k));
  }

  Exprs zeros(const std::string& tensor) const {
    return Exprs(static_cast<size_t>(tensors_.at(tensor)->rank()), number(0));
  }

  // --- boxes ------------------------------------------------------------------------------------------------------

  std::optional<Exprs> behind(const std::string& tensor, const Exprs& first, const Expr& offset, int64_t last) const {
    return coordinates_behind(*tensors_.at(tensor), leaf_.path, first, offset, last);
  }

  const TensorMap* map_of(const std::string& name) const {
    const auto found = std::ranges::find(kernel_.maps, name, &TensorMap::name);
    return found == kernel_.maps.end() ? nullptr : &*found;
  }

  /// An element of a box, behind its first one.
  struct Box {
    Expr offset;
    int64_t elements = 1;  ///< of the box
    Exprs global;          ///< coordinates in the map's tensor
  };
  /// Adds loops over the box, and the condition that its element is inside of the map.
  std::optional<Box> box(Value& value, const TensorMap& map, const Exprs& coordinates) const {
    const Tensor& tensor = *tensors_.at(map.tensor);
    Box result{.offset = number(0), .global = Exprs(static_cast<size_t>(tensor.rank()), number(0))};
    // Coordinates whose strides add up to an offset, and how far they reach.
    std::vector<int64_t> reach(static_cast<size_t>(tensor.rank()), 0);
    const auto stride_of = [&](size_t d) { return flatten(tensor.layout[static_cast<int>(d)].stride())[0]; };
    const auto dimension_of = [&](int64_t stride, bool divides) {
      std::optional<size_t> best;
      for (size_t d = 0; d < reach.size(); ++d) {
        const int64_t own = stride_of(d);
        if (own <= 0 || own > stride || (divides && stride % own != 0)) continue;
        if (!best || own > stride_of(*best)) best = d;
      }
      return best;
    };
    const auto add = [&](size_t d, const Expr& by, int64_t times, int64_t most) {
      result.global[d] = plus(by * hi::make_const(by.type(), times), result.global[d]);
      reach[d] += most * times;
    };
    for (size_t i = 0; i < map.box.size(); ++i) {
      const Expr at = loop(value, map.box[i]);
      result.offset = result.offset + at * number(result.elements);
      result.elements *= map.box[i];
      const Expr coordinate = plus(coordinates[i], at);
      value.path.conditions.push_back(coordinate >= 0);
      value.path.conditions.push_back(coordinate < hi::make_const(coordinate.type(), map.extents[i]));
      const std::optional<size_t> d = dimension_of(map.strides[i], true);
      if (!d) return std::nullopt;
      add(*d, coordinate, map.strides[i] / stride_of(*d), map.extents[i] - 1);
    }
    for (int64_t rest = map.offset; rest > 0;) {
      const std::optional<size_t> d = dimension_of(rest, false);
      if (!d) return std::nullopt;
      add(*d, number(1), rest / stride_of(*d), 1);
      rest %= stride_of(*d);
    }
    for (size_t d = 0; d < reach.size(); ++d) {
      if (reach[d] >= product_of(tensor, d)) return std::nullopt;  // a dimension of the map runs over several
    }
    return result;
  }
  static int64_t product_of(const Tensor& tensor, size_t d) {
    return tile::product(tensor.layout.shape()[static_cast<int>(d)]);
  }

  bool box_copy(const BoxCopy& n) {
    const TensorMap* map = map_of(n.map);
    Value result = value();
    const std::optional<Box> copied = map ? box(result, *map, n.coordinates) : std::nullopt;
    if (!copied) return false;
    const std::optional<Exprs> at =
        behind(n.destination, n.destination_subscripts, copied->offset, copied->elements - 1);
    if (!at) return false;
    Place to = place(n.destination, *at);
    to.turn = n.turn;
    if (n.group.count > 1) {
      if (kernel_.cluster[1] * kernel_.cluster[2] != 1) return false;
      const Expr own = block_[0] % number(kernel_.cluster[0]) / number(n.group.stride) % number(n.group.count);
      to.block[0] = block_[0] + (loop(result, n.group.count) - own) * number(n.group.stride);
    }
    result.to = {std::move(to)};
    result.from = {place(n.tensor, copied->global)};
    result_.push_back(std::move(result));
    return true;
  }

  bool box_store(const BoxStore& n) {
    const TensorMap* map = map_of(n.map);
    Value result = value();
    const std::optional<Box> stored = map ? box(result, *map, n.coordinates) : std::nullopt;
    if (!stored) return false;
    const std::optional<Exprs> at = behind(n.source, n.source_subscripts, stored->offset, stored->elements - 1);
    if (!at) return false;
    result.to = {place(n.tensor, stored->global)};
    result.from = {place(n.source, *at)};
    result_.push_back(std::move(result));
    return true;
  }

  bool cluster_load(const ClusterLoad& n) {
    if (kernel_.cluster[1] * kernel_.cluster[2] != 1 || reads_local(n.source_subscripts)) return false;
    Value result = value();
    if (!carry(result)) return false;
    const Expr at = loop(result, n.elements);
    result.to = {place(n.destination, moved(n.destination_subscripts, n.destination_dimension, at))};
    Place from = place(n.source, moved(n.source_subscripts, n.source_dimension, at));
    from.block[0] =
        block_[0] / number(kernel_.cluster[0]) * number(kernel_.cluster[0]) + hi::Cast::make(Halide::Int(32), n.block);
    result.from = {std::move(from)};
    result_.push_back(std::move(result));
    return true;
  }

  /// Says of a tensor that a ring fills which turn's box is read. False if that is not known.
  bool turn_of(Place& place) const {
    const std::string ring = ring_that_fills(kernel_, place.tensor->name);
    if (ring.empty()) return true;
    const std::optional<Expr> turn = turn_awaited(flow_, index_, ring);
    if (turn) place.turn = *turn;
    return turn.has_value();
  }

  const Kernel& kernel_;
  const Flow& flow_;
  int index_;
  const Leaf& leaf_;
  std::map<std::string, const Tensor*> tensors_;
  std::array<Expr, 3> block_, thread_;
  std::vector<Value> result_;
};

}  // namespace

std::vector<Value> values_of(const Kernel& kernel, const Flow& flow, int leaf) {
  return Finder(kernel, flow, leaf).run();
}

}  // namespace tc::tile
