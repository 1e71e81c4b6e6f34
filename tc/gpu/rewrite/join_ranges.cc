#include "tc/gpu/rewrite/join_ranges.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/reads.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// Along a dimension of the tensor: the index that a part's elements have there, less a constant, and their range.
struct Place {
  std::string index;
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

const ir::Index* index_named(const ir::Statement& s, const std::string& name) {
  const auto at =
      std::find_if(s.indices.begin(), s.indices.end(), [&](const ir::Index& index) { return index.name == name; });
  return at == s.indices.end() ? nullptr : &*at;
}

/// What a subscript of a statement runs through, if it is an index and a constant.
std::optional<Place> place_of(const ir::Statement& s, const Expr& subscript) {
  const auto at = shifted_index(subscript);
  const ir::Index* index = at ? index_named(s, at->first) : nullptr;
  if (index == nullptr) return std::nullopt;
  return Place{at->first, at->second, {begin_of(*index) + at->second, extent_of(*index)}};
}

/// The box of elements that a statement sets, each once; nothing if it does anything else.
std::optional<std::vector<Place>> box_of(const ir::Statement& s) {
  if (s.assign != ir::Assign::kSet || s.guard.defined() || s.indices.size() != s.subscripts.size()) return std::nullopt;
  std::vector<Place> box;
  std::set<std::string> used;
  for (const Expr& subscript : s.subscripts) {
    std::optional<Place> place = place_of(s, subscript);
    if (!place || !used.insert(place->index).second) return std::nullopt;
    box.push_back(*std::move(place));
  }
  return box;
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

class Joiner {
 public:
  Joiner(ir::Program program, int64_t small) : program_(std::move(program)), small_(small) {}

  ir::Program run() {
    std::vector<ir::Statement>& statements = program_.statements;
    for (size_t a = 0; a < statements.size(); ++a) {
      for (size_t b = a + 1; b < statements.size();) {
        std::optional<ir::Statement> one = joined(a, b);
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
    const auto box = box_of(first), other = box_of(second);
    const std::optional<size_t> along = box && other ? dimension_between(*box, *other) : std::nullopt;
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
    result.value = hi::Call::make(low.type(), hi::Call::if_then_else, {is_low, low, high}, hi::Call::PureIntrinsic);
    result.accesses.clear();
    result.index_values.clear();
    return result;
  }

  /// Whether statement `b` may run at the place of `a`, at once with it.
  bool may_move(size_t a, size_t b) const {
    const std::string& tensor = program_.statements[b].tensor;
    const std::set<std::string> sources = read_by(program_, program_.statements[b]);
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
};

}  // namespace

ir::Program join_ranges(ir::Program program, int64_t small) { return Joiner(std::move(program), small).run(); }

}  // namespace tc::gpu
