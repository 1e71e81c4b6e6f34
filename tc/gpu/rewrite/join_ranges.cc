#include "tc/gpu/rewrite/join_ranges.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tc/gpu/rewrite/instructions.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/reads.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// Along a dimension of the tensor: the index that a part's elements have there, less a constant, and their range.
struct Place {
  std::string index;     ///< empty: there is but the constant
  int64_t constant = 0;  ///< element = index + constant
  ir::Range elements;

  int64_t end() const { return elements.begin + elements.extent; }
};

/// An expression as index + constant.
std::optional<std::pair<std::string, int64_t>> shifted_index(const Expr& e) {
  const std::optional<ir::LinearForm> form = ir::linear_form(e);
  if (!form || form->coefficients.size() != 1 || form->coefficients.begin()->second != 1) return std::nullopt;
  return std::pair(form->coefficients.begin()->first, form->constant);
}

/// What a subscript of a statement runs through, if it is an index and a constant, or a constant.
std::optional<Place> place_of(const ir::Statement& s, const Expr& subscript) {
  if (const int64_t* constant = ir::constant_int(subscript)) return Place{"", *constant, {*constant, 1}};
  const auto at = shifted_index(subscript);
  const ir::Index* index = at ? index_named(s, at->first) : nullptr;
  if (index == nullptr) return std::nullopt;
  return Place{at->first, at->second, {begin_of(*index) + at->second, extent_of(*index)}};
}

/// The box of elements that a statement writes, one for each value of its map indices; nothing if it is none.
std::optional<std::vector<Place>> box_of(const ir::Statement& s) {
  if (s.guard.defined()) return std::nullopt;
  std::vector<Place> box;
  std::set<std::string> used;
  for (const Expr& subscript : s.subscripts) {
    std::optional<Place> place = place_of(s, subscript);
    if (!place || place->elements.extent < 1) return std::nullopt;
    if (!place->index.empty() && !used.insert(place->index).second) return std::nullopt;
    box.push_back(*std::move(place));
  }
  const bool is_all = std::all_of(s.indices.begin(), s.indices.end(), [&](const ir::Index& index) {
    return index.is_reduction != (used.count(index.name) > 0);
  });
  return is_all ? std::optional(std::move(box)) : std::nullopt;
}

bool has_constants(const std::vector<Place>& box) {
  return std::any_of(box.begin(), box.end(), [](const Place& place) { return place.index.empty(); });
}

/// Whether one box lies in another, and is not all of it.
bool is_part(const std::vector<Place>& part, const std::vector<Place>& whole) {
  bool differs = false;
  for (size_t d = 0; d < part.size(); ++d) {
    const ir::Range &own = part[d].elements, &all = whole[d].elements;
    if (own.begin < all.begin || part[d].end() > whole[d].end()) return false;
    differs = differs || !(own == all);
  }
  return differs;
}

/// The dimension along which one box goes on where the other ends.
std::optional<size_t> dimension_between(const std::vector<Place>& a, const std::vector<Place>& b) {
  std::optional<size_t> result;
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d].elements == b[d].elements) continue;
    if (result || (a[d].end() != b[d].elements.begin && b[d].end() != a[d].elements.begin)) return std::nullopt;
    result = d;
  }
  return result;
}

std::set<std::string> read_by(const ir::Program& program, const ir::Statement& s) {
  std::set<std::string> result;
  for (const hi::Call* read : ir::reads_in(program, s.value)) result.insert(read->name);
  for (const Expr& subscript : s.subscripts) {
    for (const hi::Call* read : ir::reads_in(program, subscript)) result.insert(read->name);
  }
  if (s.guard.defined()) {
    for (const hi::Call* read : ir::reads_in(program, s.guard)) result.insert(read->name);
  }
  return result;
}

/// Whether neighbours along the last dimension of the result read neighbours, or the same element.
bool reads_neighbours(const ir::Program& program, const ir::Statement& s, const std::string& index) {
  const auto reads = ir::reads_in(program, s.value);
  return std::all_of(reads.begin(), reads.end(), [&](const hi::Call* read) {
    for (size_t d = 0; d < read->args.size(); ++d) {
      if (!ir::mentions(read->args[d], index)) continue;
      if (d + 1 < read->args.size() || !ir::offset_divisor(read->args[d], index)) return false;
    }
    return true;
  });
}

/// The elements' places in the tensor in terms of a box's indices.
Expr element_at(const Place& place) {
  const Expr constant = index_constant(place.constant);
  return place.index.empty() ? constant : index_variable(place.index) + constant;
}

/// The indices of a box in terms of those of another that has the same elements.
ir::Substitution in_terms_of(const std::vector<Place>& box, const std::vector<Place>& other) {
  ir::Substitution result;
  for (size_t d = 0; d < box.size(); ++d) {
    if (box[d].index.empty()) continue;
    result[box[d].index] = hi::simplify(element_at(other[d]) - index_constant(box[d].constant));
  }
  return result;
}

Expr choice(const Expr& condition, const Expr& yes, const Expr& no) {
  return hi::Call::make(yes.type(), hi::Call::if_then_else, {condition, yes, no}, hi::Call::PureIntrinsic);
}

class Joiner {
 public:
  Joiner(ir::Program program, int64_t small, const IsProduct& is_product, const MayGo& may_go)
      : program_(std::move(program)), small_(small), is_product_(is_product), may_go_(may_go) {}

  ir::Program run() {
    std::vector<ir::Statement>& statements = program_.statements;
    for (size_t a = 0; a < statements.size(); ++a) {
      for (size_t b = a + 1; b < statements.size();) {
        if (std::optional<ir::Statement> whole = widened(a, b)) statements[b] = *std::move(whole);
        std::optional<ir::Statement> one = joined(a, b);
        if (!one) one = overwritten(a, b);
        if (!one) {
          ++b;
          continue;
        }
        statements[a] = *std::move(one);
        statements.erase(statements.begin() + static_cast<long>(b));
        b = a + 1;  // the larger part may go on in one that the smaller did not
      }
    }
    return std::move(program_);
  }

 private:
  std::optional<ir::Statement> joined(size_t a, size_t b) const {
    const ir::Statement &first = program_.statements[a], &second = program_.statements[b];
    if (first.tensor != second.tensor || first.value.type() != second.value.type() || !may_move(a, b)) {
      return std::nullopt;
    }
    if (first.reduces() || second.reduces()) return std::nullopt;
    const auto box = box_of(first), other = box_of(second);
    if (!box || !other || has_constants(*box) || has_constants(*other)) return std::nullopt;
    const std::optional<size_t> along = dimension_between(*box, *other);
    if (!along || !is_worth(first, *box, second, *other, *along)) return std::nullopt;
    const Place &mine = (*box)[*along], &next = (*other)[*along];
    const int64_t begin = std::min(mine.elements.begin, next.elements.begin), end = std::max(mine.end(), next.end());
    if (!reach(b, *along, begin, end)) return std::nullopt;

    ir::Statement result = first;
    const Expr element = index_variable(mine.index);
    for (ir::Index& index : result.indices) {
      if (index.name != mine.index) continue;
      index.begin = index_constant(begin);
      index.end = index_constant(end);
    }
    result.subscripts[*along] = element;
    ir::Substitution of_first = {{mine.index, element - index_constant(mine.constant)}}, of_second;
    for (size_t d = 0; d < box->size(); ++d) {
      const int64_t ahead = (d == *along ? 0 : (*box)[d].constant) - (*other)[d].constant;
      of_second[(*other)[d].index] = index_variable((*box)[d].index) + index_constant(ahead);
    }
    const auto value = [](const ir::Statement& s, const ir::Substitution& indices) {
      return ir::substitute_variables(s.value, indices);
    };
    const bool is_first = mine.elements.begin == begin;
    const Expr low = is_first ? value(first, of_first) : value(second, of_second);
    const Expr high = is_first ? value(second, of_second) : value(first, of_first);
    const Expr is_low = element < index_constant(is_first ? mine.end() : next.end());
    result.value = choice(is_low, low, high);
    result.accesses.clear();
    result.index_values.clear();
    return result;
  }

  /// Where statement `b` sets a part of what `a` has set: a choice between both values.
  std::optional<ir::Statement> overwritten(size_t a, size_t b) const {
    const ir::Statement &first = program_.statements[a], &second = program_.statements[b];
    if (first.tensor != second.tensor || first.reduces() || second.reduces()) return std::nullopt;
    if (!may_go_(second.tensor)) return std::nullopt;
    const auto box = box_of(first), part = box_of(second);
    if (!box || !part || !is_part(*part, *box) || !reads_own(second)) return std::nullopt;
    if (!is_cheap(second, part->back())) return std::nullopt;
    const bool reads_first = reads_tensor(second.value, second.tensor);
    if (!may_move(a, b, reads_first) || (reads_first && !is_copy(first.value))) return std::nullopt;
    std::set<std::string> made = made_here(second);
    made.erase(second.tensor);
    const std::set<std::string> known = made_here(first);
    if (!std::includes(known.begin(), known.end(), made.begin(), made.end())) return std::nullopt;
    ir::Statement result = first;
    Expr value = ir::substitute_variables(second.value, in_terms_of(*part, *box));
    if (reads_first) value = with_reads_as(value, second.tensor, first.value);
    result.value = overlaid(second, is_within(*part, *box), value, first.value);
    result.accesses.clear();
    result.index_values.clear();
    return result;
  }

  /// Where statement `b` changes a part of the results of the product `a` right before it: over all of them, so that
  /// the product's kernel does it.
  std::optional<ir::Statement> widened(size_t a, size_t b) const {
    const ir::Statement &first = program_.statements[a], &second = program_.statements[b];
    if (b != a + 1 || first.tensor != second.tensor || !first.reduces() || second.reduces()) return std::nullopt;
    const auto box = box_of(first), part = box_of(second);
    if (!box || has_constants(*box) || !part || !is_part(*part, *box) || !reads_own(second)) return std::nullopt;
    if (!is_product_(program_, first)) return std::nullopt;
    ir::Statement result = second;
    result.indices = first.indices;
    std::erase_if(result.indices, [](const ir::Index& index) { return index.is_reduction; });
    result.subscripts = first.subscripts;
    const Expr value = ir::substitute_variables(second.value, in_terms_of(*part, *box));
    const Expr before = hi::Call::make(value.type(), first.tensor, first.subscripts, hi::Call::PureExtern);
    result.value = overlaid(second, is_within(*part, *box), value, before);
    result.accesses.clear();
    result.index_values.clear();
    return result;
  }

  /// A statement's value in its part of a box, and what was there elsewhere. Where the statement reads but that, both
  /// may be computed everywhere.
  Expr overlaid(const ir::Statement& s, const Expr& is_in_part, const Expr& value, const Expr& before) const {
    const bool reads_more = reads(
        s.value, [&](const hi::Call* read) { return ir::is_tensor_read(program_, read) && read->name != s.tensor; });
    return reads_more ? choice(is_in_part, value, before) : hi::Select::make(is_in_part, value, before);
  }

  /// Whether the elements of a box lie in a part of it.
  static Expr is_within(const std::vector<Place>& part, const std::vector<Place>& box) {
    Expr result;
    const auto add = [&](const Expr& condition) { result = ir::conjunction(result, condition); };
    for (size_t d = 0; d < part.size(); ++d) {
      const Expr at = element_at(box[d]);
      if (part[d].elements.begin > box[d].elements.begin) add(at >= index_constant(part[d].elements.begin));
      if (part[d].end() < box[d].end()) add(at < index_constant(part[d].end()));
    }
    return result;
  }

  /// Whether a part's value takes no more than the choice of it, beside another.
  bool is_cheap(const ir::Statement& s, const Place& along) const {
    constexpr double kFew = 8;  // instructions
    const auto of_read = [&](const hi::Call* call) {
      return ir::is_tensor_read(program_, call) ? std::optional(1.0) : std::nullopt;
    };
    return instructions_of(s.value, of_read) <= kFew &&
           (along.index.empty() || reads_neighbours(program_, s, along.index));
  }

  /// Whether all that a statement reads of its tensor is the element that it writes.
  bool reads_own(const ir::Statement& s) const {
    const auto reads = ir::reads_in(program_, s.value);
    return std::all_of(reads.begin(), reads.end(), [&](const hi::Call* read) {
      const auto equal = [](const Expr& a, const Expr& b) { return hi::equal(a, b); };
      return read->name != s.tensor ||
             std::equal(read->args.begin(), read->args.end(), s.subscripts.begin(), s.subscripts.end(), equal);
    });
  }

  /// Whether a value is an element or a conversion of one, which takes nothing to compute again.
  bool is_copy(const Expr& value) const {
    const auto* cast = value.as<hi::Cast>();
    const auto* read = (cast ? cast->value : value).as<hi::Call>();
    return read && ir::is_tensor_read(program_, read);
  }

  /// Whether statement `b` may run at the place of `a`, at once with it. It may read what `a` writes if `reads_first`.
  bool may_move(size_t a, size_t b, bool reads_first = false) const {
    const std::string& tensor = program_.statements[b].tensor;
    std::set<std::string> sources = read_by(program_, program_.statements[b]);
    if (reads_first) sources.erase(tensor);
    for (size_t s = a; s < b; ++s) {
      const ir::Statement& between = program_.statements[s];
      if (sources.count(between.tensor) > 0 || read_by(program_, between).count(tensor) > 0) return false;
      if (s > a && between.tensor == tensor) return false;
    }
    return sources.count(tensor) == 0;
  }

  bool is_worth(const ir::Statement& first, const std::vector<Place>& box, const ir::Statement& second,
                const std::vector<Place>& other, size_t along) const {
    constexpr int64_t kVectorBytes = 16;
    if (made_here(first) != made_here(second)) return false;
    if (!reads_neighbours(program_, first, box.back().index) ||
        !reads_neighbours(program_, second, other.back().index)) {
      return false;
    }
    int64_t elements = box[along].elements.extent + other[along].elements.extent;
    for (size_t d = 0; d < box.size(); ++d) {
      if (d != along) elements *= box[d].elements.extent;
    }
    const int64_t boundary = std::max(box[along].elements.begin, other[along].elements.begin);
    const int64_t bytes = program_.tensor(first.tensor).type.bytes();
    return along + 1 < box.size() || elements < small_ || boundary * bytes % kVectorBytes == 0;
  }

  /// The tensors that a statement reads and the program writes.
  std::set<std::string> made_here(const ir::Statement& s) const {
    std::set<std::string> result;
    for (const std::string& tensor : read_by(program_, s)) {
      const auto writes = [&](const ir::Statement& other) { return other.tensor == tensor; };
      if (std::any_of(program_.statements.begin(), program_.statements.end(), writes)) result.insert(tensor);
    }
    return result;
  }

  /// Whether all that later statements read of the tensor reaches over [begin, end) of a dimension.
  bool reach(size_t b, size_t dimension, int64_t begin, int64_t end) const {
    for (size_t s = b + 1; s < program_.statements.size(); ++s) {
      const ir::Statement& reader = program_.statements[s];
      for (const hi::Call* read : ir::reads_in(program_, reader.value)) {
        if (read->name != program_.statements[b].tensor) continue;
        const std::optional<Place> place = place_of(reader, read->args[dimension]);
        if (!place || place->elements.begin > begin || place->end() < end) return false;
      }
    }
    return true;
  }

  ir::Program program_;
  int64_t small_;
  const IsProduct& is_product_;
  const MayGo& may_go_;
};

}  // namespace

ir::Program join_ranges(ir::Program program, int64_t small, const IsProduct& is_product, const MayGo& may_go) {
  return Joiner(std::move(program), small, is_product, may_go).run();
}

}  // namespace tc::gpu
