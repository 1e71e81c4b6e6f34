#include "tc/tile/affine.h"

#include <fmt/format.h>
#include <isl/aff.h>
#include <isl/ctx.h>
#include <isl/id.h>
#include <isl/local_space.h>
#include <isl/map.h>
#include <isl/options.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/val.h>

#include <algorithm>

#include "tc/ir/halide_compat.h"
#include "tc/support/check.h"

namespace tc::tile {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

bool is_index(Halide::Type type) { return type.is_int() && type.bits() >= 32; }

}  // namespace

IslContext::IslContext(unsigned long operations) : ctx_(isl_ctx_alloc()) {
  isl_options_set_on_error(ctx_, ISL_ON_ERROR_CONTINUE);
  isl_ctx_set_max_operations(ctx_, operations);
}

IslContext::~IslContext() { isl_ctx_free(ctx_); }

void IslContext::reset() {
  isl_ctx_reset_error(ctx_);
  isl_ctx_reset_operations(ctx_);
}

bool IslContext::is_exhausted() const {
  isl_set* some = isl_set_read_from_str(ctx_, "{ [x] : 0 <= x < 10 and exists y : 3y = x }");  // takes operations
  isl_set_free(some);
  return some == nullptr;
}

AffineView::AffineView(isl::ctx ctx, const Kernel& kernel, const Path& path, const std::set<std::string>* uniform)
    : ctx_(ctx.get()), kernel_(kernel), path_(path), uniform_(uniform) {
  int next = 0;
  for (size_t i = 0; i < 3; ++i) {
    if (kernel.grid[i] > 1) blocks_[i] = next++;
  }
  block_dimensions_ = next;
  for (size_t i = 0; i < 3; ++i) {
    if (kernel.block[i] > 1) threads_[i] = next++;
  }
  thread_dimensions_ = next - block_dimensions_;
  const auto dimensions = static_cast<unsigned>(next + static_cast<int>(path.loops.size()));
  space_ = isl::manage(isl_space_set_alloc(ctx.get(), 0, dimensions));
  domain_ = universe();
  const auto within = [&](int at, int64_t extent) {
    if (at < 0) return;
    domain_ = domain_.intersect(dimension(at).ge_set(constant(0))).intersect(dimension(at).lt_set(constant(extent)));
  };
  for (size_t i = 0; i < 3; ++i) {
    within(blocks_[i], kernel.grid[i]);
    within(threads_[i], kernel.block[i]);
  }
  for (size_t i = 0; i < path.loops.size(); ++i) {
    domain_ = domain_.intersect(dimension(loop_dimension(static_cast<int>(i))).ge_set(constant(0)));
    restrict([&] { return loop_variable(i).lt_set(affine(path.loops[i].loop->end)); });
  }
  for (const Expr& expr : path.conditions) {
    restrict([&] { return condition(expr); });
  }
  domain_ = domain_.coalesce();
}

template <typename Restrict>
void AffineView::restrict(Restrict restrict) {
  try {
    domain_ = domain_.intersect(restrict());
  } catch (const NotAffine&) {
    exact_ = false;
  }
}

isl::set AffineView::universe() const { return isl::manage(isl_set_universe(space_.copy())); }

isl::pw_aff AffineView::constant(int64_t value) const {
  return isl::manage(isl_pw_aff_from_aff(
      isl_aff_val_on_domain(isl_local_space_from_space(space_.copy()), isl_val_int_from_si(ctx_, value))));
}

isl::pw_aff AffineView::dimension(int position) const {
  return isl::manage(isl_pw_aff_from_aff(
      isl_aff_var_on_domain(isl_local_space_from_space(space_.copy()), isl_dim_set, static_cast<unsigned>(position))));
}

isl::pw_aff AffineView::loop_variable(size_t position) const {
  const For& loop = *path_.loops[position].loop;
  const int64_t* step = ir::constant_int(loop.step);
  if (!step) throw NotAffine();
  return affine(loop.begin).add(dimension(loop_dimension(static_cast<int>(position))).mul(constant(*step)));
}

isl::pw_aff AffineView::variable(const std::string& name) const {
  for (size_t i = 0; i < 3; ++i) {
    if (name == kBlock[i]) return blocks_[i] < 0 ? constant(0) : dimension(blocks_[i]);
    if (name == kThread[i]) return threads_[i] < 0 ? constant(0) : dimension(threads_[i]);
  }
  for (size_t i = path_.loops.size(); i-- > 0;) {
    if (path_.loops[i].loop->variable == name) return loop_variable(i);
  }
  const auto let = path_.lets.find(name);
  if (let == path_.lets.end()) throw NotAffine();
  if (!uniform_ || uniform_->count(name) == 0) return affine(let->second);
  try {
    return affine(let->second);
  } catch (const NotAffine&) {
    return parameter(name);
  }
}

isl::pw_aff AffineView::parameter(const std::string& name) const {
  isl_id* id = isl_id_alloc(ctx_, name.c_str(), nullptr);
  isl_space* space = isl_space_add_param_id(space_.copy(), isl_id_copy(id));
  return isl::manage(isl_pw_aff_from_aff(isl_aff_param_on_domain_space_id(space, id)));
}

isl::pw_aff AffineView::affine(const Expr& e) const {
  if (const int64_t* value = ir::constant_int(e)) return constant(*value);
  if (const auto* op = e.as<hi::Variable>()) return variable(op->name);
  if (const auto* op = e.as<hi::Cast>(); op && is_index(op->type) && is_index(op->value.type()))
    return affine(op->value);
  if (const auto* op = e.as<hi::Add>()) return affine(op->a).add(affine(op->b));
  if (const auto* op = e.as<hi::Sub>()) return affine(op->a).sub(affine(op->b));
  if (const auto* op = e.as<hi::Min>()) return affine(op->a).min(affine(op->b));
  if (const auto* op = e.as<hi::Max>()) return affine(op->a).max(affine(op->b));
  if (const auto* op = e.as<hi::Mul>()) {
    const isl::pw_aff a = affine(op->a);
    const isl::pw_aff b = affine(op->b);
    if (isl_pw_aff_is_cst(a.get()) != isl_bool_true && isl_pw_aff_is_cst(b.get()) != isl_bool_true) throw NotAffine();
    return a.mul(b);
  }
  const auto divisor = [&](const Expr& by) {
    const int64_t* value = ir::constant_int(by);
    if (!value || *value <= 0) throw NotAffine();
    return isl::manage(isl_val_int_from_si(ctx_, *value));
  };
  if (const auto* op = e.as<hi::Div>()) return affine(op->a).scale_down(divisor(op->b)).floor();
  if (const auto* op = e.as<hi::Mod>()) return affine(op->a).mod(divisor(op->b));
  if (const auto* op = e.as<hi::Select>()) {
    const isl::set where = condition(op->condition);
    return affine(op->true_value)
        .intersect_domain(where)
        .union_add(affine(op->false_value).intersect_domain(universe().subtract(where)));
  }
  throw NotAffine();
}

template <typename Compare>
isl::set AffineView::compare(const Expr& a, const Expr& b, Compare compare) const {
  if (!a.type().is_int()) throw NotAffine();
  return compare(affine(a), affine(b));
}

isl::set AffineView::condition(const Expr& e) const {
  if (const auto* op = e.as<hi::And>()) return condition(op->a).intersect(condition(op->b));
  if (const auto* op = e.as<hi::Or>()) return condition(op->a).unite(condition(op->b));
  if (const auto* op = e.as<hi::Not>()) return universe().subtract(condition(op->a));
  if (const uint64_t* value = ir::constant_uint(e)) return *value ? universe() : universe().subtract(universe());
  if (const auto* op = e.as<hi::EQ>()) return compare(op->a, op->b, [](auto a, auto b) { return a.eq_set(b); });
  if (const auto* op = e.as<hi::NE>()) return compare(op->a, op->b, [](auto a, auto b) { return a.ne_set(b); });
  if (const auto* op = e.as<hi::LT>()) return compare(op->a, op->b, [](auto a, auto b) { return a.lt_set(b); });
  if (const auto* op = e.as<hi::LE>()) return compare(op->a, op->b, [](auto a, auto b) { return a.le_set(b); });
  if (const auto* op = e.as<hi::GT>()) return compare(op->a, op->b, [](auto a, auto b) { return a.gt_set(b); });
  if (const auto* op = e.as<hi::GE>()) return compare(op->a, op->b, [](auto a, auto b) { return a.ge_set(b); });
  throw NotAffine();
}

std::optional<isl::pw_aff> AffineView::value(const Expr& expr) const {
  try {
    return affine(expr);
  } catch (const NotAffine&) {
    return std::nullopt;
  }
}

std::optional<isl::set> AffineView::holds(const Expr& expr) const {
  try {
    return condition(expr);
  } catch (const NotAffine&) {
    return std::nullopt;
  }
}

isl::pw_aff AffineView::thread_number() const {
  isl::pw_aff result = constant(0);
  int64_t stride = 1;
  for (size_t i = 0; i < 3; ++i) {
    if (threads_[i] >= 0) result = result.add(dimension(threads_[i]).mul(constant(stride)));
    stride *= kernel_.block[i];
  }
  return result;
}

std::optional<isl::pw_aff> AffineView::trip_count(int position) const {
  const For& loop = *path_.loops[static_cast<size_t>(position)].loop;
  const int64_t* step = ir::constant_int(loop.step);
  const std::optional<isl::pw_aff> begin = value(loop.begin);
  const std::optional<isl::pw_aff> end = value(loop.end);
  if (!step || *step <= 0 || !begin || !end) return std::nullopt;
  const isl::val by = isl::manage(isl_val_int_from_si(ctx_, *step));
  return end->sub(*begin).add(constant(*step - 1)).scale_down(by).floor().max(constant(0));
}

isl::set AffineView::instances(const ElementAccess& access, bool& exact) const {
  isl::set result = domain_;
  exact &= exact_;
  for (const Expr& expr : access.conditions) {
    if (std::optional<isl::set> where = holds(expr)) {
      result = result.intersect(*where);
    } else {
      exact = false;
    }
  }
  return result;
}

std::optional<isl::pw_aff> AffineView::offset(const ElementAccess& access) const {
  isl::pw_aff result = constant(0);
  for (size_t i = 0; i < access.subscripts.size(); ++i) {
    std::optional<isl::pw_aff> rest = value(access.subscripts[i]);
    if (!rest) return std::nullopt;
    const Layout mode = access.tensor->layout[static_cast<int>(i)];
    const std::vector<int64_t> extents = flatten(mode.shape());
    const std::vector<int64_t> strides = flatten(mode.stride());
    for (size_t leaf = 0; leaf < extents.size(); ++leaf) {
      const isl::val extent = isl::manage(isl_val_int_from_si(ctx_, extents[leaf]));
      const bool last = leaf + 1 == extents.size();
      result = result.add((last ? *rest : rest->mod(extent)).mul(constant(strides[leaf])));
      if (!last) rest = rest->scale_down(extent).floor();
    }
  }
  return result;
}

isl::map AffineView::relation(const ElementAccess& access, bool& exact) const {
  const isl::set where = instances(access, exact);
  const auto map_of = [&](const isl::pw_aff& value) { return isl::manage(isl_map_from_pw_aff(value.copy())); };
  const auto widened = [&](const isl::map& map, int elements) {
    if (elements == 1) return map;
    isl_map* result = nullptr;
    for (int e = 0; e < elements; ++e) {
      isl::pw_aff shift = isl::manage(isl_pw_aff_read_from_str(ctx_, fmt::format("{{ [x] -> [x + {}] }}", e).c_str()));
      isl_map* one = map.apply_range(map_of(shift)).release();
      result = result ? isl_map_union(result, one) : one;
    }
    return isl::manage(result).coalesce();
  };
  if (!is_injective(access.tensor->layout)) {
    if (const std::optional<isl::pw_aff> at = offset(access)) {
      return widened(map_of(*at).intersect_domain(where), access.elements);
    }
    exact = false;
    const std::string any = fmt::format("{{ [x] : 0 <= x < {} }}", access.tensor->elements());
    return isl::manage(isl_map_from_domain_and_range(where.copy(), isl_set_read_from_str(ctx_, any.c_str())));
  }
  isl::map result = isl::manage(isl_map_from_domain(where.copy()));
  for (size_t i = 0; i < access.subscripts.size(); ++i) {
    const int64_t extent = product(access.tensor->layout.shape()[static_cast<int>(i)]);
    isl::map coordinate;
    const std::optional<isl::pw_aff> at = value(access.subscripts[i]);
    if (at && !access.lengths.empty()) {
      const std::string within =
          fmt::format("{{ [x] -> [y] : x <= y < x + {} and 0 <= y < {} }}", access.lengths[i], extent);
      coordinate = map_of(*at).apply_range(isl::manage(isl_map_read_from_str(ctx_, within.c_str())));
    } else if (at) {
      coordinate = widened(map_of(*at), static_cast<int>(i) == access.dimension ? access.elements : 1);
    } else {
      exact = false;
      const std::string any = fmt::format("{{ [x] : 0 <= x < {} }}", extent);
      coordinate =
          isl::manage(isl_map_from_domain_and_range(universe().release(), isl_set_read_from_str(ctx_, any.c_str())));
    }
    result = isl::manage(isl_map_flat_range_product(result.release(), coordinate.release()));
  }
  return result;
}

std::array<int64_t, 3> AffineView::triple_at(const isl::point& point, const std::array<int, 3>& dimensions) const {
  std::array<int64_t, 3> result{};
  for (size_t i = 0; i < 3; ++i) {
    if (dimensions[i] < 0) continue;
    const isl::val coordinate = isl::manage(isl_point_get_coordinate_val(point.get(), isl_dim_set, dimensions[i]));
    result[i] = isl_val_get_num_si(coordinate.get());
  }
  return result;
}

std::array<int64_t, 3> AffineView::block_of(const isl::point& point) const { return triple_at(point, blocks_); }
std::array<int64_t, 3> AffineView::thread_of(const isl::point& point) const { return triple_at(point, threads_); }

std::string AffineView::describe(const isl::point& point) const {
  const auto text = [](const std::array<int64_t, 3>& t) { return fmt::format("({},{},{})", t[0], t[1], t[2]); };
  return fmt::format("thread {} of block {}", text(thread_of(point)), text(block_of(point)));
}

bool is_injective(const Layout& layout) {
  const std::vector<int64_t> extents = flatten(layout.shape());
  const std::vector<int64_t> strides = flatten(layout.stride());
  std::vector<std::pair<int64_t, int64_t>> modes;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] > 1) modes.emplace_back(strides[i], extents[i]);
  }
  std::sort(modes.begin(), modes.end());
  int64_t reach = 0;  // the largest offset of the modes so far: the next stride must pass it
  for (const auto& [stride, extent] : modes) {
    if (stride <= reach) return false;
    reach += stride * (extent - 1);
  }
  return true;
}

}  // namespace tc::tile
