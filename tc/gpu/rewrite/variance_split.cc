#include "tc/gpu/rewrite/variance_split.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/names.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kPartBytes = 32 * 1024;  ///< that a block reads at once: 256 threads, eight vectors each
constexpr int64_t kLeastBytes = 4 * 1024;  ///< that a part has, if parts are few
constexpr int64_t kPartsOfProcessor = 4;
constexpr int64_t kHeldBytes = 256 * 1024;  ///< a row that the registers of a block hold
constexpr int64_t kLaunches = 4;            ///< the work of so many pays for another launch
constexpr int64_t kMany = int64_t{1} << 40;

/// A sum and the squares that go over the same values.
struct Moments {
  size_t sum = 0;
  size_t squares = 0;
  Expr center;                          ///< what the squares' values are distant from, over their indices: a mean
  std::map<std::string, Expr> renamed;  ///< the squares' indices as those of the sum
};

bool uses_any(const Expr& e, const std::vector<ir::Index>& indices, bool reductions) {
  return std::any_of(indices.begin(), indices.end(),
                     [&](const ir::Index& i) { return i.is_reduction == reductions && hi::expr_uses_var(e, i.name); });
}

/// a of a * a and pow(a, 2).
Expr square_root(const Expr& value) {
  if (const auto* product = value.as<hi::Mul>()) return hi::equal(product->a, product->b) ? product->a : Expr();
  const auto* call = value.as<hi::Call>();
  if (call == nullptr || call->name != "pow" || call->args.size() != 2) return Expr();
  const Expr exponent = hi::simplify(call->args[1]);
  const double* power = ir::constant_float(exponent);
  return power != nullptr && *power == 2 ? call->args[0] : Expr();
}

/// A sum over a whole box, in a float type.
bool is_plain_sum(const ir::Program& program, const ir::Statement& s) {
  return s.assign == ir::Assign::kAdd && !s.guard.defined() && s.accumulator.is_float() &&
         std::none_of(s.subscripts.begin(), s.subscripts.end(),
                      [&](const Expr& e) { return reads_tensor(program, e); }) &&
         std::any_of(s.indices.begin(), s.indices.end(), [](const ir::Index& i) { return i.is_reduction; }) &&
         std::all_of(s.indices.begin(), s.indices.end(), [](const ir::Index& i) { return extent_of(i) > 0; });
}

/// One statement's indices as the other's, in order; nothing if their ranges differ.
std::optional<std::map<std::string, Expr>> renaming(const ir::Statement& from, const ir::Statement& to) {
  std::map<std::string, Expr> result;
  if (from.indices.size() != to.indices.size()) return std::nullopt;
  for (size_t i = 0; i < from.indices.size(); ++i) {
    const ir::Index &a = from.indices[i], &b = to.indices[i];
    if (a.is_reduction != b.is_reduction || begin_of(a) != begin_of(b) || extent_of(a) != extent_of(b))
      return std::nullopt;
    result[a.name] = index_variable(b.name);
  }
  return result;
}

/// Whether the values may be read where the sum is: none of the statements between writes what they are made of.
bool is_unchanged(const ir::Program& program, const Expr& value, size_t from, size_t to) {
  return !reads(value, [&](const hi::Call* call) {
    return std::any_of(program.statements.begin() + static_cast<long>(from),
                       program.statements.begin() + static_cast<long>(to) + 1,
                       [&](const ir::Statement& s) { return s.tensor == call->name; });
  });
}

bool is_positive(const Expr& e) {
  const Expr value = hi::simplify(e);
  const double* number = ir::constant_float(value);
  return number != nullptr && *number > 0;
}

/// What a statement sets at a place { subscripts over the indices of `around` }; undefined if it sets another.
Expr value_set_at(const ir::Statement& s, const std::vector<Expr>& place, const ir::Statement& around) {
  if (s.assign != ir::Assign::kSet || s.guard.defined() || s.indices.size() != place.size()) return Expr();
  std::map<std::string, Expr> at;
  for (size_t d = 0; d < place.size(); ++d) {
    const auto* own = s.subscripts[d].as<hi::Variable>();
    const auto* there = place[d].as<hi::Variable>();
    if (own == nullptr || there == nullptr) return Expr();
    const auto named = [](const std::string& name) { return [&](const ir::Index& i) { return i.name == name; }; };
    const auto set = std::find_if(s.indices.begin(), s.indices.end(), named(own->name));
    const auto asked = std::find_if(around.indices.begin(), around.indices.end(), named(there->name));
    if (set == s.indices.end() || asked == around.indices.end() || begin_of(*set) > begin_of(*asked) ||
        begin_of(*set) + extent_of(*set) < begin_of(*asked) + extent_of(*asked)) {
      return Expr();
    }
    at[own->name] = place[d];
  }
  return at.size() == place.size() ? hi::substitute(at, s.value) : Expr();
}

/// Whether a float over the sum's indices is, in front of the statement `before`, a positive multiple of the sum's
/// result there, and so the same infinity, or no number, where that is one.
bool is_multiple(const ir::Program& program, const Expr& e, size_t sum, size_t before) {
  if (const auto* cast = e.as<hi::Cast>()) {
    return cast->value.type().is_float() && is_multiple(program, cast->value, sum, before);
  }
  if (const auto* quotient = e.as<hi::Div>()) {
    return is_positive(quotient->b) && is_multiple(program, quotient->a, sum, before);
  }
  if (const auto* product = e.as<hi::Mul>()) {
    return (is_positive(product->b) && is_multiple(program, product->a, sum, before)) ||
           (is_positive(product->a) && is_multiple(program, product->b, sum, before));
  }
  const auto* read = e.as<hi::Call>();
  if (read == nullptr) return false;
  const ir::Statement& s = program.statements[sum];
  while (before-- > sum) {
    const ir::Statement& writer = program.statements[before];
    if (writer.tensor != read->name) continue;
    if (before > sum) {
      const Expr value = value_set_at(writer, read->args, s);
      return value.defined() && is_multiple(program, value, sum, before);
    }
    return std::equal(s.subscripts.begin(), s.subscripts.end(), read->args.begin(), read->args.end(),
                      [](const Expr& a, const Expr& b) { return hi::equal(a, b); });
  }
  return false;
}

std::optional<Moments> moments_at(const ir::Program& program, size_t squares) {
  const ir::Statement& s = program.statements[squares];
  if (!is_plain_sum(program, s)) return std::nullopt;
  const Expr root = square_root(s.value);
  const auto* distance = root.defined() ? root.as<hi::Sub>() : nullptr;
  if (distance == nullptr) return std::nullopt;
  const bool first = !uses_any(distance->b, s.indices, true);
  const Expr value = first ? distance->a : distance->b, center = first ? distance->b : distance->a;
  if (uses_any(center, s.indices, true)) return std::nullopt;
  for (size_t sum = squares; sum-- > 0;) {
    const ir::Statement& candidate = program.statements[sum];
    if (!is_plain_sum(program, candidate) || candidate.accumulator != s.accumulator) continue;
    const auto renamed = renaming(s, candidate);
    if (renamed && hi::equal(hi::substitute(*renamed, value), candidate.value) &&
        is_unchanged(program, candidate.value, sum, squares) &&
        is_multiple(program, hi::substitute(*renamed, center), sum, squares)) {
      return Moments{sum, squares, center, *renamed};
    }
  }
  return std::nullopt;
}

/// A reduction over a box, cut: the outer indices and parts of one stand beside each other, the rest is a part.
struct Cut {
  size_t index = 0;   ///< that is cut: index = begin + part * chunk + rest
  int64_t count = 1;  ///< parts of it
  int64_t chunk = 1;
  int64_t inner = 1;  ///< instances for each of its values
};

/// A number that divides the extent and gives whole vectors, if one is near; else the most.
int64_t chunk_near(int64_t extent, int64_t inner, int64_t most) {
  if (extent <= most) return extent;
  for (const int64_t multiple : {8, 4}) {
    for (int64_t chunk = most; chunk > most / 2; --chunk) {
      if (extent % chunk == 0 && chunk * inner % multiple == 0) return chunk;
    }
  }
  return most >= 8 ? most / 8 * 8 : most;
}

/// Parts of about `elements`; nothing where a part has much less.
std::optional<Cut> cut_of(const ir::Statement& s, int64_t elements) {
  int64_t inner = 1;
  for (size_t i = s.indices.size(); i-- > 0;) {
    if (!s.indices[i].is_reduction) continue;
    const int64_t extent = extent_of(s.indices[i]);
    if (extent * inner < elements / 4) {
      inner *= extent;
      continue;
    }
    const int64_t chunk = chunk_near(extent, inner, std::max<int64_t>(elements / inner, 1));
    return chunk * inner > elements ? std::nullopt : std::optional(Cut{i, extent / chunk, chunk, inner});
  }
  return std::nullopt;
}

/// Whether the moments are worth a pass of their own, and in which parts.
std::optional<Cut> worthwhile_cut(const ir::Program& program, const Moments& m, const Device& device) {
  const ir::Statement& s = program.statements[m.sum];
  int64_t bytes = 0;
  bool plain = true;
  reads(s.value, [&](const hi::Call* call) {
    if (!ir::is_tensor_read(program, call)) return false;
    bytes += call->type.bytes();
    for (const Expr& e : call->args) plain = plain && !reads_tensor(program, e);
    return false;
  });
  if (bytes == 0 || !plain || !runs_along_reduction(program, s)) return std::nullopt;
  int64_t rows = 1, work = 1;
  for (const ir::Index& i : s.indices) {
    int64_t& product = i.is_reduction ? work : rows;
    product = std::min(product * std::min(extent_of(i), kMany), kMany);
  }
  const bool is_held = work * bytes <= kHeldBytes && rows >= device.processors;
  if (is_held || rows > kMany / work || rows * work < kLaunches * device.instances_of_launch) return std::nullopt;
  const int64_t elements =
      std::clamp(rows * work / (kPartsOfProcessor * device.processors), kLeastBytes / bytes, kPartBytes / bytes);
  return work < 2 * elements ? std::nullopt : cut_of(s, elements);
}

/// The statements that replace the two.
class Merger {
 public:
  Merger(ir::Program& program, const Moments& moments, const Cut& cut)
      : program_(program),
        moments_(moments),
        cut_(cut),
        sum_(program.statements[moments.sum]),
        squares_(program.statements[moments.squares]),
        names_(ir::Names::among_statements(program)) {}

  /// The ids of what goes over parts.
  std::vector<std::string> run();

 private:
  void cut_indices();
  ir::Statement over_parts(const std::string& suffix, const ir::Statement& of, bool reduces);
  ir::Statement merged(const ir::Statement& s, const std::vector<Expr>& subscripts, const Expr& value) const;
  Expr number(int64_t n) const { return hi::make_const(sum_.accumulator, n); }
  Expr read(const ir::Statement& s) const {
    return hi::Call::make(sum_.accumulator, s.tensor, s.subscripts, hi::Call::PureExtern);
  }
  Expr squares_of_all(const ir::Statement& center, const ir::Statement& first, const ir::Statement& parts) const;

  ir::Program& program_;
  const Moments& moments_;
  const Cut& cut_;
  const ir::Statement sum_, squares_;
  ir::Names names_;
  std::vector<ir::Index> maps_;
  std::vector<ir::Index> outer_;   ///< reduction indices with a part, or parts, for each value
  std::vector<ir::Index> number_;  ///< of the part of the index that is cut; empty: it is whole
  std::vector<ir::Index> within_;  ///< a part
  Expr value_;                     ///< the sum's, of a part
};

void Merger::cut_indices() {
  value_ = sum_.value;
  for (size_t i = 0; i < sum_.indices.size(); ++i) {
    const ir::Index& index = sum_.indices[i];
    if (!index.is_reduction) {
      maps_.push_back(index);
    } else if (i < cut_.index) {
      outer_.push_back(index);
      outer_.back().is_reduction = false;
    } else if (i > cut_.index) {
      within_.push_back(index);
    } else {
      const ir::Index part = make_index(names_.fresh(index.name + "_part"), cut_.count, false);
      const ir::Index rest = make_index(names_.fresh(index.name + "_rest"), cut_.chunk, true);
      if (cut_.count > 1) number_.push_back(part);
      within_.push_back(rest);
      Expr at = index_variable(rest.name) + index.begin;
      if (cut_.count > 1) at = index_variable(part.name) * index_constant(cut_.chunk) + at;
      value_ = hi::substitute(index.name, hi::simplify(at), value_);
    }
  }
}

std::vector<ir::Index> in_order(const std::vector<std::vector<ir::Index>>& lists) {
  std::vector<ir::Index> result;
  for (const auto& list : lists) result.insert(result.end(), list.begin(), list.end());
  return result;
}

/// A statement that sets a new temporary's elements, one for each part: parts that follow each other in memory are
/// neighbours, and those of one result too.
ir::Statement Merger::over_parts(const std::string& suffix, const ir::Statement& of, bool reduces) {
  ir::Statement s = of;
  s.id = names_.fresh(of.id + suffix);
  s.initialises = reduces;
  s.accesses.clear();
  s.subscripts.clear();
  s.tensor = names_.fresh(of.tensor + suffix);
  s.indices = in_order({outer_, maps_, number_});
  const std::vector<ir::Index> dimensions = in_order({maps_, outer_, number_});
  for (const ir::Index& i : dimensions) s.subscripts.push_back(subscript_of(i));
  program_.tensors.push_back(temporary_over(s.tensor, of.accumulator, dimensions));
  if (reduces) {
    s.indices.insert(s.indices.end(), within_.begin(), within_.end());
  } else {
    s.assign = ir::Assign::kSet;
  }
  return s;
}

/// The statement itself, over all parts.
ir::Statement Merger::merged(const ir::Statement& s, const std::vector<Expr>& subscripts, const Expr& value) const {
  ir::Statement result = s;
  result.subscripts = subscripts;
  result.value = value;
  result.indices = maps_;
  for (ir::Index index : in_order({outer_, number_})) {
    index.is_reduction = true;
    result.indices.push_back(index);
  }
  result.accesses.clear();
  return result;
}

/// A center that is the mean adds nothing, though both be infinite. Where a part has an infinity, or its sum overflows,
/// its center is none of the finite numbers, but then the sum is none either, nor the mean.
Expr Merger::squares_of_all(const ir::Statement& center, const ir::Statement& first, const ir::Statement& parts) const {
  const Expr from = hi::substitute(moments_.renamed, moments_.center), at = read(center);
  const Expr distance = at - from;
  const Expr moved = distance * (distance * number(cut_.chunk * cut_.inner) + read(first) * number(2));
  return hi::Select::make(hi::EQ::make(at, from), read(parts), read(parts) + moved);
}

std::vector<std::string> Merger::run() {
  cut_indices();
  ir::Statement sums = over_parts("_parts", sum_, true);
  sums.value = value_;
  ir::Statement center = over_parts("_center", sum_, false);
  center.value = read(sums) / number(cut_.chunk * cut_.inner);
  ir::Statement first = over_parts("_first", squares_, true);
  first.value = value_ - read(center);
  ir::Statement parts = over_parts("_parts", squares_, true);
  parts.value = first.value * first.value;

  std::vector<ir::Statement> result;
  const int64_t done = cut_.count * cut_.chunk;
  const bool is_left = extent_of(sum_.indices[cut_.index]) > done;
  const auto left = [&](const ir::Statement& s) {
    return left_over(s, cut_.index, done, names_.fresh(s.id + "_left"));
  };
  for (size_t i = 0; i < program_.statements.size(); ++i) {
    if (i == moments_.sum) {
      result.insert(result.end(), {sums, center, first, parts, merged(sum_, sum_.subscripts, read(sums))});
      if (is_left) result.push_back(left(sum_));
    } else if (i == moments_.squares) {
      std::vector<Expr> subscripts = squares_.subscripts;
      for (Expr& e : subscripts) e = hi::substitute(moments_.renamed, e);
      result.push_back(merged(squares_, subscripts, squares_of_all(center, first, parts)));
      if (is_left) result.push_back(left(squares_));
    } else {
      result.push_back(program_.statements[i]);
    }
  }
  program_.statements = std::move(result);
  return {sums.id, first.id, parts.id};
}

}  // namespace

VarianceSplit split_variances(ir::Program program, const Device& device) {
  VarianceSplit split{std::move(program), {}};
  for (size_t i = 0; i < split.program.statements.size(); ++i) {
    const std::optional<Moments> moments = moments_at(split.program, i);
    const std::optional<Cut> cut = moments ? worthwhile_cut(split.program, *moments, device) : std::nullopt;
    if (!cut) continue;
    const size_t before = split.program.statements.size();
    for (std::string& id : Merger(split.program, *moments, *cut).run()) split.over_parts.insert(std::move(id));
    i += split.program.statements.size() - before;
  }
  return split;
}

}  // namespace tc::gpu
