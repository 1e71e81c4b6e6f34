#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "tc/ir/expr_text.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/specialise.h"
#include "tc/support/check.h"
#include "tc/support/plural.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// Where a size's value comes from, for messages.
struct Origin {
  int64_t value;
  std::string place;  ///< "dimension 1 of 'A'", "the sizes given"
};

class Binder {
 public:
  Binder(const Program& program, const Given& given) : program_(program), given_(given) {}

  Result<Bindings> bind();

 private:
  Result<void> take_scalars();
  Result<void> take_sizes();
  Result<void> check_shapes() const;
  Result<void> check_shape(const Tensor& tensor, const Shape& shape) const;
  Result<bool> solve_round();
  Result<bool> solve_dimension(const Tensor& tensor, int d, int64_t extent);
  Result<void> check_dimensions() const;
  Result<void> check_extents_of(const Tensor& missing) const;
  std::vector<std::string> open_sizes() const;
  Substitution known() const;

  const Program& program_;
  const Given& given_;
  std::map<std::string, Origin> sizes_;
  std::map<std::string, int64_t> scalars_;
};

std::string place_of(const Tensor& tensor, int d) { return fmt::format("dimension {} of '{}'", d, tensor.name); }

Substitution Binder::known() const {
  Substitution values;
  for (const auto& [name, origin] : sizes_) values[name] = index_constant(origin.value);
  for (const auto& [name, value] : scalars_) values[name] = index_constant(value);
  return values;
}

Result<void> Binder::take_scalars() {
  for (const auto& [name, value] : given_.scalars) {
    const Scalar* scalar = program_.find_scalar(name);
    if (!scalar) return fail("'{}' has no scalar '{}'", program_.name, name);
    if (!scalar->specialised) continue;
    if (!scalar->type.can_represent(value)) {
      return fail("the scalar '{}' is {}, which is not a value of {}", name, value, type_text(scalar->type));
    }
    TC_CHECK(!scalar->value || *scalar->value == value, "'{}' is compiled in as {}, and given as {}", name,
             *scalar->value, value);
    scalars_[name] = value;
  }
  for (const Scalar& scalar : program_.scalars) {
    if (scalar.value) scalars_[scalar.name] = *scalar.value;
    if (scalar.specialised && !scalars_.contains(scalar.name)) {
      return fail("the scalar '{}' decides a range or a subscript of '{}' and must be given", scalar.name,
                  program_.name);
    }
  }
  return {};
}

Result<void> Binder::take_sizes() {
  for (const auto& [name, value] : given_.sizes) {
    if (std::find(program_.sizes.begin(), program_.sizes.end(), name) == program_.sizes.end()) {
      return fail("'{}' has no size '{}'", program_.name, name);
    }
    if (value < 0) return fail("the size '{}' is {}: sizes are not negative", name, value);
    sizes_[name] = {value, "the sizes given"};
  }
  return {};
}

Result<void> Binder::check_shape(const Tensor& tensor, const Shape& shape) const {
  if (static_cast<int>(shape.size()) != tensor.rank()) {
    return fail("'{}' has {} in '{}', but the tensor given has {}", tensor.name, plural(tensor.rank(), "dimension"),
                program_.name, shape.size());
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0)
      return fail("{} is {}: extents are not negative", place_of(tensor, static_cast<int>(d)), shape[d]);
  }
  return {};
}

Result<void> Binder::check_shapes() const {
  for (const auto& [name, shape] : given_.shapes) {
    const Tensor* tensor = program_.find_tensor(name);
    if (!tensor || tensor->role == Role::kTemporary) {
      return fail("'{}' has no argument or result '{}'", program_.name, name);
    }
    TC_TRY_VOID(check_shape(*tensor, shape));
  }
  return {};
}

/// One equation with at most one unknown size: extent = c * N + rest.
Result<bool> Binder::solve_dimension(const Tensor& tensor, int d, int64_t extent) {
  if (!tensor.extents[d].defined()) return false;
  const Expr dimension = hi::simplify(substitute_variables(tensor.extents[d], known()));
  const std::set<std::string> unknown = variables_of(dimension);
  if (unknown.size() != 1) return false;
  const std::string& size = *unknown.begin();
  auto at = [&](int64_t n) { return constant_value(substitute_variables(dimension, {{size, index_constant(n)}})); };
  const auto rest = at(0), one = at(1), two = at(2);
  if (!rest || !one || !two || *one - *rest != *two - *one || *one == *rest) return false;
  const int64_t factor = *one - *rest;
  const int64_t value = (extent - *rest) / factor;
  if (at(value) != extent || value < 0) {
    return fail("{} is {}, but it must be {}, which no size '{}' gives", place_of(tensor, d), extent,
                to_text(tensor.extents[d]), size);
  }
  sizes_[size] = {value, place_of(tensor, d)};
  return true;
}

Result<bool> Binder::solve_round() {
  bool progress = false;
  for (const Tensor& tensor : program_.tensors) {
    const auto shape = given_.shapes.find(tensor.name);
    if (shape == given_.shapes.end()) continue;
    for (int d = 0; d < tensor.rank(); ++d) {
      TC_TRY(solved, solve_dimension(tensor, d, shape->second[d]));
      progress = progress || solved;
    }
  }
  return progress;
}

/// Every given extent is what the sizes make it. A disagreement names where the size came from.
Result<void> Binder::check_dimensions() const {
  for (const Tensor& tensor : program_.tensors) {
    const auto shape = given_.shapes.find(tensor.name);
    if (shape == given_.shapes.end()) continue;
    for (int d = 0; d < tensor.rank(); ++d) {
      if (!tensor.extents[d].defined()) continue;
      const auto expected = constant_value(substitute_variables(tensor.extents[d], known()));
      if (expected == shape->second[d]) continue;
      std::string because;
      for (const std::string& name : variables_of(tensor.extents[d])) {
        const auto origin = sizes_.find(name);
        if (origin == sizes_.end()) continue;
        because += fmt::format("{}'{}' is {} by {}", because.empty() ? ": " : ", ", name, origin->second.value,
                               origin->second.place);
      }
      return fail("{} is {}, but it must be {}{}", place_of(tensor, d), shape->second[d],
                  expected ? fmt::format("{}", *expected) : to_text(tensor.extents[d]), because);
    }
  }
  return {};
}

std::vector<std::string> Binder::open_sizes() const {
  std::vector<std::string> open;
  for (const std::string& size : program_.sizes) {
    if (!sizes_.contains(size)) open.push_back(size);
  }
  return open;
}

/// A tensor that is not given is fine where sizes given by name say all about it.
Result<void> Binder::check_extents_of(const Tensor& missing) const {
  for (int d = 0; d < missing.rank(); ++d) {
    const Expr& dimension = missing.extents[d];
    if (!dimension.defined()) continue;
    const auto extent = constant_value(substitute_variables(dimension, known()));
    if (extent && *extent >= 0) continue;
    std::string values;
    for (const std::string& name : variables_of(dimension)) {
      const auto origin = sizes_.find(name);
      if (origin == sizes_.end()) return tl::unexpected(no_values(program_, open_sizes()));
      values += fmt::format("{}'{}' is {}", values.empty() ? ": " : ", ", name, origin->second.value);
    }
    return fail("{} would be {}, which {}{}", place_of(missing, d), to_text(dimension),
                extent ? "is negative" : "does not fit 64 bits", values);
  }
  return {};
}

Result<Bindings> Binder::bind() {
  TC_TRY_VOID(take_scalars());
  TC_TRY_VOID(take_sizes());
  TC_TRY_VOID(check_shapes());
  for (;;) {
    TC_TRY(progress, solve_round());
    if (!progress) break;
  }
  for (const Tensor& tensor : program_.tensors) {
    const bool needed = tensor.role == Role::kInput || tensor.role == Role::kInOut;
    if (needed && !given_.shapes.contains(tensor.name)) TC_TRY_VOID(check_extents_of(tensor));
  }
  if (const auto open = open_sizes(); !open.empty()) return tl::unexpected(no_values(program_, open));
  TC_TRY_VOID(check_dimensions());
  Bindings result;
  for (const auto& [name, origin] : sizes_) result.sizes[name] = origin.value;
  result.scalars = scalars_;
  return result;
}

}  // namespace

Error no_values(const Program& program, const std::vector<std::string>& sizes) {
  const bool one = sizes.size() == 1;
  return Error(fmt::format("{} '{}' of '{}' {} no value: no tensor that is given determines {}", one ? "size" : "sizes",
                           fmt::join(sizes, "', '"), program.name, one ? "has" : "have", one ? "it" : "them"));
}

Result<Bindings> bind(const Program& program, const Given& given) { return Binder(program, given).bind(); }

Result<Bindings> bind_sizes(const Program& program, const std::map<std::string, int64_t>& sizes,
                            const std::map<std::string, int64_t>& scalars) {
  return bind(program, {{}, scalars, sizes});
}

Shape shape_of(const Tensor& tensor, const Bindings& bindings) {
  Substitution values;
  for (const auto& [name, value] : bindings.sizes) values[name] = index_constant(value);
  for (const auto& [name, value] : bindings.scalars) values[name] = index_constant(value);
  Shape shape;
  for (const Expr& extent : tensor.extents) {
    const auto value = constant_value(substitute_variables(extent, values));
    TC_CHECK(value, "the extent {} of '{}' is not constant", to_text(extent), tensor.name);
    shape.push_back(*value);
  }
  return shape;
}

Shape constant_shape(const Tensor& tensor) { return shape_of(tensor, {}); }

std::string shape_text(const Shape& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

}  // namespace tc::ir
