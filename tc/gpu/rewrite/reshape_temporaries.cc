#include "tc/gpu/rewrite/reshape_temporaries.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/names.h"
#include "tc/ir/reads.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

ir::Index* index_named(ir::Statement& s, const std::string& name) {
  const auto at = std::find_if(s.indices.begin(), s.indices.end(), [&](const ir::Index& i) { return i.name == name; });
  return at == s.indices.end() ? nullptr : &*at;
}

/// The subscripts along a dimension of a tensor, of what a statement writes and reads.
std::vector<Expr> subscripts_of(const ir::Program& program, const ir::Statement& s, const std::string& tensor,
                                size_t dimension) {
  std::vector<Expr> result;
  if (s.tensor == tensor) result.push_back(s.subscripts[dimension]);
  std::vector<Expr> parts = {s.value};
  parts.insert(parts.end(), s.subscripts.begin(), s.subscripts.end());
  if (s.guard.defined()) parts.push_back(s.guard);
  for (const Expr& part : parts) {
    for (const hi::Call* read : ir::reads_in(program, part)) {
      if (read->name == tensor) result.push_back(read->args[dimension]);
    }
  }
  return result;
}

/// One dimension of one temporary, whose values become quotients and remainders.
class Reshaper {
 public:
  /// `divisor`: 0, if a reader has it.
  Reshaper(ir::Program program, std::string tensor, size_t dimension, int64_t divisor = 0)
      : program_(std::move(program)),
        tensor_(std::move(tensor)),
        dimension_(dimension),
        extent_(ir::constant_shape(program_.tensor(tensor_))[dimension]),
        divisor_(divisor) {}

  std::optional<ir::Program> run() {
    if (divisor_ == 0 && !find_divisor()) return std::nullopt;
    if (extent_ % divisor_ != 0) return std::nullopt;
    for (ir::Statement& s : program_.statements) {
      if (!split_indices(s)) return std::nullopt;
    }
    const auto tensor = std::find_if(program_.tensors.begin(), program_.tensors.end(),
                                     [&](const ir::Tensor& t) { return t.name == tensor_; });
    const auto at = tensor->extents.begin() + static_cast<long>(dimension_);
    *at = index_constant(extent_ / divisor_);
    tensor->extents.insert(at + 1, index_constant(divisor_));
    if (!tensor->strides.empty()) {
      const auto stride = tensor->strides.begin() + static_cast<long>(dimension_);
      tensor->strides.insert(stride, *stride * divisor_);
    }
    for (ir::Statement& s : program_.statements) replace(s);
    return std::move(program_);
  }

 private:
  /// That of the first reader whose subscript has a multiple of it, and an index with as many values.
  bool find_divisor() {
    for (ir::Statement& s : program_.statements) {
      if (s.tensor == tensor_) continue;
      for (const Expr& subscript : subscripts_of(program_, s, tensor_, dimension_)) {
        const std::optional<ir::LinearForm> form = ir::linear_form(hi::simplify(subscript));
        if (!form || form->coefficients.size() < 2) continue;
        for (const auto& [name, coefficient] : form->coefficients) {
          const ir::Index* index = index_named(s, name);
          if (coefficient != 1 || index == nullptr) continue;
          divisor_ = extent_of(*index);
          if (divisor_ > 1 && extent_ % divisor_ == 0 && halves_of(s, subscript)) return true;
        }
      }
    }
    return false;
  }

  /// A subscript as quotient and remainder, if its indices are apart.
  std::optional<std::pair<Expr, Expr>> halves_of(ir::Statement& s, const Expr& subscript) const {
    const std::optional<ir::LinearForm> form = ir::linear_form(hi::simplify(subscript));
    if (!form) return std::nullopt;
    const int64_t rest = ((form->constant % divisor_) + divisor_) % divisor_;
    Expr high = index_constant((form->constant - rest) / divisor_), low = index_constant(rest);
    int64_t least = rest, greatest = rest;
    for (const auto& [name, coefficient] : form->coefficients) {
      const ir::Index* index = index_named(s, name);
      if (index == nullptr || extent_of(*index) <= 0) return std::nullopt;
      Expr& half = coefficient % divisor_ == 0 ? high : low;
      half = half +
             index_variable(name) * index_constant(coefficient % divisor_ == 0 ? coefficient / divisor_ : coefficient);
      if (coefficient % divisor_ == 0) continue;
      const int64_t first = coefficient * begin_of(*index), last = first + coefficient * (extent_of(*index) - 1);
      least += std::min(first, last);
      greatest += std::max(first, last);
    }
    if (least < 0 || greatest >= divisor_) return std::nullopt;
    return std::pair(hi::simplify(high), hi::simplify(low));
  }

  /// Cuts indices of a statement until all its accesses have halves.
  bool split_indices(ir::Statement& s) const {
    for (bool again = true; again;) {
      again = false;
      for (const Expr& subscript : subscripts_of(program_, s, tensor_, dimension_)) {
        if (halves_of(s, subscript)) continue;
        if (!split_index(s, subscript)) return false;
        again = true;
        break;
      }
    }
    return true;
  }

  bool split_index(ir::Statement& s, const Expr& subscript) const {
    const std::optional<ir::LinearForm> form = ir::linear_form(hi::simplify(subscript));
    if (!form || form->coefficients.size() != 1 || form->coefficients.begin()->second != 1) return false;
    const std::string& name = form->coefficients.begin()->first;
    ir::Index* index = index_named(s, name);
    if (index == nullptr) return false;
    const int64_t begin = begin_of(*index), extent = extent_of(*index);
    if ((begin + form->constant) % divisor_ != 0 || extent % divisor_ != 0) return false;
    ir::Names names(program_);
    for (const ir::Index& other : s.indices) names.add(other.name);
    const ir::Index rest = make_index(names.fresh(name + "_rest"), divisor_, index->is_reduction);
    const Expr whole =
        index_variable(name) * index_constant(divisor_) + index_variable(rest.name) + index_constant(begin);
    *index = make_index(name, extent / divisor_, index->is_reduction);
    s.indices.insert(s.indices.begin() + (index - s.indices.data()) + 1, rest);
    const auto substitute = [&](const Expr& e) {
      return simplify_indices(ir::substitute_variables(e, {{name, whole}}), s.indices);
    };
    s.value = substitute(s.value);
    for (Expr& e : s.subscripts) e = substitute(e);
    if (s.guard.defined()) s.guard = substitute(s.guard);
    s.accesses.clear();
    s.index_values.clear();
    return true;
  }

  std::vector<Expr> with_halves(ir::Statement& s, std::vector<Expr> subscripts) const {
    const auto at = subscripts.begin() + static_cast<long>(dimension_);
    auto [high, low] = *halves_of(s, *at);
    *at = std::move(high);
    subscripts.insert(at + 1, std::move(low));
    return subscripts;
  }

  void replace(ir::Statement& s) const {
    struct Replacer : hi::IRMutator {
      Replacer(const Reshaper& reshaper, ir::Statement& statement) : reshaper(reshaper), statement(statement) {}
      const Reshaper& reshaper;
      ir::Statement& statement;
      using hi::IRMutator::visit;
      Expr visit(const hi::Call* op) override {
        const Expr changed = IRMutator::visit(op);
        const auto* call = changed.as<hi::Call>();
        if (call == nullptr || call->name != reshaper.tensor_) return changed;
        return hi::Call::make(call->type, call->name, reshaper.with_halves(statement, call->args), call->call_type);
      }
    } replacer(*this, s);
    if (subscripts_of(program_, s, tensor_, dimension_).empty()) return;
    s.value = replacer.mutate(s.value);
    for (Expr& e : s.subscripts) e = replacer.mutate(e);
    if (s.guard.defined()) s.guard = replacer.mutate(s.guard);
    if (s.tensor == tensor_) s.subscripts = with_halves(s, std::move(s.subscripts));
    s.accesses.clear();
    s.index_values.clear();
  }

  ir::Program program_;
  const std::string tensor_;
  const size_t dimension_;
  const int64_t extent_;
  int64_t divisor_;
};

/// The inputs and temporaries that writers of a temporary read.
std::set<std::string> sources_of(const ir::Program& program, const std::string& tensor) {
  std::set<std::string> result;
  for (const ir::Statement& s : program.statements) {
    if (s.tensor != tensor) continue;
    for (const hi::Call* read : ir::reads_in(program, s.value)) {
      const ir::Role role = program.tensor(read->name).role;
      const bool may_be_cut = role == ir::Role::kTemporary || role == ir::Role::kInput;
      if (read->name != tensor && may_be_cut) result.insert(read->name);
    }
  }
  return result;
}

/// Cuts the dimensions of a tensor, and those of what its writers read.
void reshape(const std::string& tensor, Reshaped& result) {
  for (size_t d = 0; d < result.program.tensor(tensor).extents.size(); ++d) {
    std::optional<ir::Program> other = Reshaper(result.program, tensor, d).run();
    if (!other) continue;
    result.program = *std::move(other);
    result.tensors.push_back(tensor);
    for (const std::string& source : sources_of(result.program, tensor)) reshape(source, result);
    return;
  }
}

}  // namespace

std::optional<ir::Program> cut_dimension(ir::Program program, const std::string& tensor, size_t dimension,
                                         int64_t divisor) {
  if (ir::constant_shape(program.tensor(tensor))[dimension] <= divisor) return std::nullopt;
  return Reshaper(std::move(program), tensor, dimension, divisor).run();
}

std::optional<Reshaped> reshape_temporary(const ir::Program& program, const std::string& tensor) {
  if (program.tensor(tensor).role != ir::Role::kTemporary) return std::nullopt;
  Reshaped result{program, {}};
  reshape(tensor, result);
  return result.tensors.empty() ? std::nullopt : std::optional(std::move(result));
}

}  // namespace tc::gpu
