#include "tc/gpu/rewrite/linear_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

class LinearForms::Mutator : public hi::IRMutator {
 public:
  explicit Mutator(LinearForms& forms) : forms_(forms) {}

  using IRMutator::mutate;
  Expr mutate(const Expr& e) override {
    const std::optional<ir::LinearForm> form =
        e.type() == ir::index_type() ? ir::linear_form(e) : std::optional<ir::LinearForm>();
    if (!form || !forms_.is_form(*form)) return IRMutator::mutate(e);
    return forms_.value_of(*form);
  }

 private:
  LinearForms& forms_;
};

Expr LinearForms::over_dimensions(const Expr& expr) { return Mutator(*this).mutate(expr); }

/// Whether it has indices, and nothing but indices.
bool LinearForms::is_form(const ir::LinearForm& form) const {
  const std::vector<ir::Index>& indices = statement_.indices;
  return !form.coefficients.empty() &&
         std::all_of(form.coefficients.begin(), form.coefficients.end(), [&](const auto& term) {
           return std::any_of(indices.begin(), indices.end(), [&](const auto& i) { return i.name == term.first; });
         });
}

/// A form in terms of its dimension. One of which nothing grows gets that of its opposite.
Expr LinearForms::value_of(const ir::LinearForm& form) {
  const std::map<std::string, int64_t> opposite = ir::difference({}, {form.coefficients, 0}).coefficients;
  const auto find = [&](const std::map<std::string, int64_t>& coefficients) {
    return std::find_if(dimensions_.begin(), dimensions_.end(),
                        [&](const Dimension& d) { return d.coefficients == coefficients; });
  };
  const bool grows =
      std::any_of(form.coefficients.begin(), form.coefficients.end(), [](const auto& term) { return term.second > 0; });
  if (find(form.coefficients) == dimensions_.end() && find(opposite) == dimensions_.end()) {
    add_dimension(grows ? form.coefficients : opposite);
  }
  const auto own = find(form.coefficients);
  const auto at = own != dimensions_.end() ? own : find(opposite);
  const int64_t sign = own != dimensions_.end() ? 1 : -1;
  const Expr variable = index_variable(variables_[static_cast<size_t>(at - dimensions_.begin())]);
  return hi::simplify(index_constant(sign) * variable + index_constant(sign * at->begin + form.constant));
}

void LinearForms::add_dimension(const std::map<std::string, int64_t>& coefficients) {
  Dimension added{coefficients};
  for (const ir::Index& index : statement_.indices) {
    const auto by = coefficients.find(index.name);
    if (by == coefficients.end()) continue;
    const int64_t first = begin_of(index) * by->second, last = first + (extent_of(index) - 1) * by->second;
    added.begin += std::min(first, last);
    added.extent += std::abs(last - first);
  }
  dimensions_.push_back(added);
  if (variables_.size() < dimensions_.size()) variables_.push_back(names_.fresh(fmt::format("d{}", variables_.size())));
}

std::vector<ir::Index> LinearForms::indices() const {
  std::vector<ir::Index> result;
  for (size_t d = 0; d < dimensions_.size(); ++d) {
    result.push_back(make_index(variables_[d], dimensions_[d].extent, false));
  }
  return result;
}

std::vector<Expr> LinearForms::at() const {
  std::vector<Expr> result;
  for (const Dimension& dimension : dimensions_) {
    Expr at = index_constant(-dimension.begin);
    for (const auto& [name, by] : dimension.coefficients) at = at + index_constant(by) * index_variable(name);
    result.push_back(hi::simplify(at));
  }
  return result;
}

int64_t LinearForms::elements() const {
  int64_t result = 1;
  for (const Dimension& dimension : dimensions_) {
    if (__builtin_mul_overflow(result, dimension.extent, &result)) return INT64_MAX;
  }
  return result;
}

namespace {

class Clamp : public hi::IRMutator {
 public:
  Clamp(const ir::Program& program, const std::vector<ir::Index>& indices) : program_(program) {
    for (const ir::Index& index : indices) {
      const int64_t begin = begin_of(index), last = begin + extent_of(index) - 1;
      ranges_.push(index.name, hi::Interval(index_constant(begin), index_constant(last)));
    }
  }

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* op) override {
    const Expr result = IRMutator::visit(op);
    const auto* call = result.as<hi::Call>();
    if (!call || !ir::is_tensor_read(program_, call)) return result;
    const ir::Shape shape = ir::constant_shape(program_.tensor(call->name));
    std::vector<Expr> at;
    for (size_t d = 0; d < shape.size(); ++d) at.push_back(clamped(call->args[d], shape[d]));
    return hi::Call::make(call->type, call->name, at, call->call_type);
  }

  Expr clamped(const Expr& e, int64_t extent) const {
    const hi::Interval bounds = hi::bounds_of_expr_in_scope(e, ranges_);
    const auto constant = [](bool has, const Expr& bound) {
      return has ? ir::constant_value(bound) : std::optional<int64_t>();
    };
    const std::optional<int64_t> least = constant(bounds.has_lower_bound(), bounds.min);
    const std::optional<int64_t> most = constant(bounds.has_upper_bound(), bounds.max);
    Expr result = e;
    if (!least || *least < 0) result = hi::Max::make(result, index_constant(0));
    if (!most || *most >= extent) result = hi::Min::make(result, index_constant(extent - 1));
    return result;
  }

  const ir::Program& program_;
  hi::Scope<hi::Interval> ranges_;
};

}  // namespace

Expr within_tensors(const ir::Program& program, const Expr& expr, const std::vector<ir::Index>& indices) {
  return Clamp(program, indices).mutate(expr);
}

}  // namespace tc::gpu
