#include "tc/gpu/rewrite/pad_operands.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tc/gpu/rewrite/linear_forms.h"
#include "tc/gpu/rewrite/operand_order.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/names.h"
#include "tc/ir/reads.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// A temporary may have so many times the elements of the tensor that it copies.
constexpr int64_t kMostGrowth = 4;

/// A temporary's elements, and where the statement reads it.
struct Padded {
  ir::Tensor tensor;
  ir::Statement copy;
  std::vector<Expr> at;
};

class Padder {
 public:
  using IsContraction = std::function<bool(const ir::Program&, const ir::Statement&)>;

  Padder(ir::Program program, const IsContraction& is_contraction, const IsPadded& is_padded)
      : program_(std::move(program)),
        is_contraction_(is_contraction),
        is_padded_(is_padded),
        names_(ir::Names::among_statements(program_)) {}

  ir::Program run() && {
    for (size_t at = 0; at < program_.statements.size(); ++at) at += pad(at);
    return std::move(program_);
  }

 private:
  /// Changes a statement, and returns how many come before it now. Its reduction indices may be counted from their ends
  /// though it gets none.
  size_t pad(size_t at) {
    ir::Statement& whole = program_.statements[at];
    const bool is_empty =
        std::any_of(whole.indices.begin(), whole.indices.end(), [](const auto& index) { return extent_of(index) < 1; });
    if (!whole.reduces() || whole.guard.defined() || is_empty || reads_of(whole, is_bent).empty()) return 0;
    whole = counted_upwards(std::move(whole));
    const bool multiplies = is_contraction_(program_, whole);
    ir::Statement padded = whole;
    padded.accesses.clear();
    ir::Program with_temporaries = program_;
    std::vector<Padded> made;
    for (const hi::Call* read : reads_of(whole, multiplies ? is_reversed : is_bent)) {
      std::optional<Padded> temporary = padded_read(whole, read);
      if (!temporary) return 0;
      if (multiplies && std::any_of(temporary->at.begin(), temporary->at.end(), is_reversed)) continue;
      const Expr instead = hi::Call::make(read->type, name_of(*temporary, made), temporary->at, hi::Call::PureExtern);
      padded.value = hi::substitute(Expr(read), instead, padded.value);
      if (instead.as<hi::Call>()->name != temporary->tensor.name) continue;
      with_temporaries.tensors.push_back(temporary->tensor);
      made.push_back(*std::move(temporary));
    }
    std::vector<ir::Tensor> temporaries;
    for (const Padded& one : made) temporaries.push_back(one.tensor);
    if (temporaries.empty() && multiplies) return 0;
    if (!is_padded_({program_, whole, with_temporaries, padded, temporaries})) return 0;
    program_.tensors = std::move(with_temporaries.tensors);
    program_.statements[at] = std::move(padded);
    for (size_t i = 0; i < made.size(); ++i) {
      const size_t place = place_of_copy(program_, at + i, made[i].copy.value.as<hi::Call>()->name);
      program_.statements.insert(program_.statements.begin() + static_cast<long>(place), made[i].copy);
    }
    const size_t added = made.size();
    std::move(made.begin(), made.end(), std::back_inserter(made_));
    return added;
  }

  /// The statement with reduction indices counted from their ends where most elements are read so: what is left to copy
  /// of a convolution's gradient are the weights.
  ir::Statement counted_upwards(ir::Statement s) const {
    for (const ir::Index& index : s.indices) {
      if (!index.is_reduction) continue;
      double down = 0, up = 0;
      for (const hi::Call* read : ir::reads_in(program_, s.value)) {
        double elements = 1;
        for (const int64_t extent : ir::constant_shape(program_.tensor(read->name))) {
          elements *= static_cast<double>(extent);
        }
        for (const Expr& subscript : read->args) {
          const std::optional<ir::LinearForm> form = ir::linear_form(subscript);
          const auto by = form ? form->coefficients.find(index.name) : decltype(form->coefficients.end()){};
          if (form && by != form->coefficients.end()) (by->second < 0 ? down : up) += elements;
        }
      }
      if (down <= up) continue;
      const int64_t ends = 2 * begin_of(index) + extent_of(index) - 1;
      const ir::Substitution reversed = {{index.name, index_constant(ends) - index_variable(index.name)}};
      s.value = simplify_indices(ir::substitute_variables(s.value, reversed), s.indices);
      s.accesses.clear();
      s.index_values.clear();
    }
    return s;
  }

  /// The temporary that holds the same already, or the new one.
  std::string name_of(const Padded& padded, const std::vector<Padded>& made) const {
    const auto is_same = [&](const Padded& other) {
      return hi::equal(other.copy.value, padded.copy.value) &&
             ir::constant_shape(other.tensor) == ir::constant_shape(padded.tensor);
    };
    const auto now = std::find_if(made.begin(), made.end(), is_same);
    if (now != made.end()) return now->tensor.name;
    const auto before = std::find_if(made_.begin(), made_.end(), is_same);
    if (before == made_.end() || is_written(padded.copy.value.as<hi::Call>()->name)) return padded.tensor.name;
    return before->tensor.name;
  }

  bool is_written(const std::string& tensor) const {
    return std::any_of(program_.statements.begin(), program_.statements.end(),
                       [&](const ir::Statement& s) { return s.tensor == tensor; });
  }

  using IsIt = bool (*)(const Expr& subscript);

  /// Different reads of which a subscript is such a one, though no data decide any.
  std::vector<const hi::Call*> reads_of(const ir::Statement& s, IsIt is_it) const {
    std::vector<const hi::Call*> result;
    for (const hi::Call* read : ir::reads_in(program_, s.value)) {
      const auto is_chosen = [](const Expr& e) { return ir::is_data_dependent(e); };
      if (std::none_of(read->args.begin(), read->args.end(), is_it)) continue;
      if (std::any_of(read->args.begin(), read->args.end(), is_chosen)) continue;
      const auto is_same = [&](const hi::Call* other) { return hi::equal(Expr(other), Expr(read)); };
      if (std::none_of(result.begin(), result.end(), is_same)) result.push_back(read);
    }
    return result;
  }

  static bool is_bent(const Expr& subscript) { return !ir::linear_form(subscript) || is_reversed(subscript); }
  static bool is_reversed(const Expr& subscript) {
    const std::optional<ir::LinearForm> form = ir::linear_form(subscript);
    return form && std::any_of(form->coefficients.begin(), form->coefficients.end(),
                               [](const auto& term) { return term.second < 0; });
  }

  std::optional<Padded> padded_read(const ir::Statement& s, const hi::Call* read) {
    LinearForms forms(s, names_, variables_);
    const Expr source = forms.over_dimensions(read);
    int64_t most = kMostGrowth;
    for (const int64_t extent : ir::constant_shape(program_.tensor(read->name))) most *= extent;
    if (forms.at().empty() || forms.elements() > most) return std::nullopt;
    Padded result{.at = forms.at()};
    ir::Statement& copy = result.copy;
    copy.indices = forms.indices();
    for (const ir::Index& index : copy.indices) copy.subscripts.push_back(subscript_of(index));
    copy.id = names_.fresh(s.id + "_padded");
    copy.tensor = names_.fresh(read->name + "_padded");
    copy.assign = ir::Assign::kSet;
    copy.accumulator = read->type;
    copy.range = s.range;
    copy.value = within_tensors(program_, simplify_indices(source, copy.indices), copy.indices);
    result.tensor = temporary_over(copy.tensor, copy.accumulator, copy.indices);
    return result;
  }

  ir::Program program_;
  const IsContraction& is_contraction_;
  const IsPadded& is_padded_;
  ir::Names names_;
  std::vector<std::string> variables_;  ///< indices of temporaries
  std::vector<Padded> made_;
};

}  // namespace

ir::Program pad_operands(ir::Program program,
                         const std::function<bool(const ir::Program&, const ir::Statement&)>& is_contraction,
                         const IsPadded& is_padded) {
  return Padder(std::move(program), is_contraction, is_padded).run();
}

}  // namespace tc::gpu
