#include "tc/poly/isl_ext.h"

#include <isl/map.h>
#include <isl/mat.h>
#include <isl/schedule.h>
#include <isl/schedule_node.h>
#include <isl/stride_info.h>

#include "tc/support/check.h"

namespace tc::poly {
namespace {

/// The C++ object of a C call's result, or the exception that its failure stands for.
template <typename Pointer>
auto checked(isl::ctx ctx, Pointer* pointer) {
  if (!pointer) isl::exception::throw_last_error(ctx);
  return isl::manage(pointer);
}

int checked_size(isl::ctx ctx, isl_size size) {
  if (size < 0) isl::exception::throw_last_error(ctx);
  return size;
}

}  // namespace

isl::id make_id(isl::ctx ctx, const std::string& name) {
  return checked(ctx, isl_id_alloc(ctx.get(), name.c_str(), nullptr));
}

isl::space named_space(isl::ctx ctx, const std::string& name, int dimensions) {
  return isl::space::unit(ctx).add_named_tuple(name, dimensions);
}

isl::aff variable(const isl::space& space, int position) {
  isl_local_space* local = isl_local_space_from_space(space.copy());
  return checked(space.ctx(), isl_aff_var_on_domain(local, isl_dim_set, position));
}

isl::aff constant(const isl::space& space, int64_t value) {
  isl::val v = make_val(space.ctx(), value);
  return checked(space.ctx(), isl_aff_val_on_domain_space(space.copy(), v.release()));
}

isl::val make_val(isl::ctx ctx, int64_t value) { return checked(ctx, isl_val_int_from_si(ctx.get(), value)); }

int64_t to_int64(const isl::val& value) {
  TC_CHECK(value.is_int() && value.le(make_val(value.ctx(), INT64_MAX)) && value.ge(make_val(value.ctx(), INT64_MIN)),
           "a number of isl's that is not an integer of 64 bits");
  return isl_val_get_num_si(value.get());
}

std::string tuple_name(const isl::set& set) {
  const char* name = isl_set_get_tuple_name(set.get());
  return name ? name : "";
}

std::string domain_name(const isl::map& map) {
  const char* name = isl_map_get_tuple_name(map.get(), isl_dim_in);
  return name ? name : "";
}

std::string range_name(const isl::map& map) {
  const char* name = isl_map_get_tuple_name(map.get(), isl_dim_out);
  return name ? name : "";
}

isl::set name_dimensions(isl::set set, const std::vector<std::string>& names) {
  isl::ctx ctx = set.ctx();
  for (size_t i = 0; i < names.size(); ++i) {
    set = checked(ctx, isl_set_set_dim_name(set.release(), isl_dim_set, i, names[i].c_str()));
  }
  return set;
}

isl::set rename_tuple(isl::set set, const std::string& name) {
  isl::ctx ctx = set.ctx();
  return checked(ctx, isl_set_set_tuple_name(set.release(), name.c_str()));
}

isl::map eliminate_output(isl::map map, int position) {
  isl::ctx ctx = map.ctx();
  return checked(ctx, isl_map_eliminate(map.release(), isl_dim_out, position, 1));
}

isl::map subtract_range(isl::map map, const isl::set& range) {
  isl::ctx ctx = map.ctx();
  return checked(ctx, isl_map_subtract_range(map.release(), range.copy()));
}

isl::set project_out(isl::set set, int first, int count) {
  isl::ctx ctx = set.ctx();
  return checked(ctx, isl_set_project_out(set.release(), isl_dim_set, first, count));
}

isl::map project_out_inputs(isl::map map, int first, int count) {
  isl::ctx ctx = map.ctx();
  return checked(ctx, isl_map_project_out(map.release(), isl_dim_in, first, count));
}

std::vector<int64_t> coordinates(const isl::point& point) {
  isl::multi_val values = point.multi_val();
  std::vector<int64_t> result;
  for (unsigned i = 0; i < values.size(); ++i) result.push_back(to_int64(values.at(i)));
  return result;
}

isl::map interval(isl::ctx ctx, int64_t low, int64_t high) {
  const isl::space set = isl::space::unit(ctx).add_unnamed_tuple(1);
  const isl::space pair = set.map_from_set().wrap();  // { [x] -> [y] } as a set with dimensions x, y
  const isl::pw_aff span = variable(pair, 1).sub(variable(pair, 0));
  return span.ge_set(constant(pair, low)).intersect(span.le_set(constant(pair, high))).unwrap();
}

isl::map lex_lt(const isl::space& set_space) { return checked(set_space.ctx(), isl_map_lex_lt(set_space.copy())); }

std::vector<isl::map> maps_of(const isl::union_map& umap) {
  std::vector<isl::map> maps;
  umap.foreach_map([&](isl::map map) { maps.push_back(std::move(map)); });
  return maps;
}

std::vector<isl::set> sets_of(const isl::union_set& uset) {
  std::vector<isl::set> sets;
  uset.foreach_set([&](isl::set set) { sets.push_back(std::move(set)); });
  return sets;
}

std::vector<isl::pw_aff> pw_affs_of(const isl::union_pw_aff& upa) {
  std::vector<isl::pw_aff> result;
  auto collect = [](isl_pw_aff* function, void* user) {
    static_cast<std::vector<isl::pw_aff>*>(user)->push_back(isl::manage(function));
    return isl_stat_ok;
  };
  if (isl_union_pw_aff_foreach_pw_aff(upa.get(), collect, &result) < 0) isl::exception::throw_last_error(upa.ctx());
  return result;
}

int64_t range_extent(const isl::map& map) {
  isl_stride_info* info = isl_map_get_range_stride_info(map.get(), 0);
  if (!info) isl::exception::throw_last_error(map.ctx());
  const int64_t stride = to_int64(isl::manage(isl_stride_info_get_stride(info)));
  isl_stride_info_free(info);
  const isl::fixed_box box = map.range_simple_fixed_box_hull();
  if (box.is_valid()) return (to_int64(box.size().at(0)) - 1) / stride + 1;
  const isl::val span = map.reverse().apply_range(map).deltas().dim_max_val(0);
  return span.is_int() ? to_int64(span) / stride + 1 : INT64_MAX;
}

isl::union_map lex_gt_at(isl::union_map umap, const isl::multi_union_pw_aff& mupa) {
  isl::ctx ctx = umap.ctx();
  return checked(ctx, isl_union_map_lex_gt_at_multi_union_pw_aff(umap.release(), mupa.copy()));
}

isl::union_map lex_lt_at(isl::union_map umap, const isl::multi_union_pw_aff& mupa) {
  isl::ctx ctx = umap.ctx();
  return checked(ctx, isl_union_map_lex_lt_at_multi_union_pw_aff(umap.release(), mupa.copy()));
}

std::vector<std::vector<int64_t>> implied_equalities(const isl::map& map) {
  isl::ctx ctx = map.ctx();
  isl::basic_map hull = checked(ctx, isl_map_affine_hull(map.copy()));
  hull = checked(ctx, isl_basic_map_remove_divs(hull.release()));
  isl_mat* matrix =
      isl_basic_map_equalities_matrix(hull.get(), isl_dim_in, isl_dim_out, isl_dim_param, isl_dim_div, isl_dim_cst);
  if (!matrix) isl::exception::throw_last_error(ctx);
  const int rows = isl_mat_rows(matrix);
  const int columns = isl_mat_cols(matrix);
  std::vector<std::vector<int64_t>> result(rows, std::vector<int64_t>(columns));
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) result[r][c] = to_int64(isl::manage(isl_mat_get_element_val(matrix, r, c)));
  }
  isl_mat_free(matrix);
  return result;
}

isl::multi_union_pw_aff band_schedule(isl::ctx ctx, const std::vector<std::vector<isl::aff>>& rows) {
  isl::space space = isl::space::unit(ctx).add_unnamed_tuple(rows.size());
  isl::union_pw_aff_list list(ctx, rows.size());
  for (const std::vector<isl::aff>& row : rows) {
    isl::union_pw_aff whole = row.front().to_union_pw_aff();
    for (size_t i = 1; i < row.size(); ++i) whole = whole.union_add(row[i].to_union_pw_aff());
    list = list.add(whole);
  }
  return space.multi_union_pw_aff(list);
}

isl::schedule sequence(const isl::schedule& first, const isl::schedule& second) {
  return checked(first.ctx(), isl_schedule_sequence(first.copy(), second.copy()));
}

isl::schedule insert_band(const isl::schedule& schedule, const isl::multi_union_pw_aff& partial) {
  return checked(schedule.ctx(), isl_schedule_insert_partial_schedule(schedule.copy(), partial.copy()));
}

isl::union_set scheduled_domain(const isl::schedule_node& node) {
  return node.root().as<isl::schedule_node_domain>().domain();
}

isl::union_set node_domain(const isl::schedule_node& node) {
  if (!node.has_parent()) return scheduled_domain(node);
  if (node.isa<isl::schedule_node_filter>()) return node_domain(node.child(0));
  return checked(node.ctx(), isl_schedule_node_get_domain(node.get()));
}

std::string mark_name(const isl::schedule_node& node) {
  isl::id id = checked(node.ctx(), isl_schedule_node_mark_get_id(node.get()));
  return id.name();
}

isl::schedule_node delete_node(const isl::schedule_node& node) {
  return checked(node.ctx(), isl_schedule_node_delete(node.copy()));
}

isl::schedule_node cut(const isl::schedule_node& node) {
  return checked(node.ctx(), isl_schedule_node_cut(node.copy()));
}

isl::schedule_node band_sink(const isl::schedule_node& node) {
  return checked(node.ctx(), isl_schedule_node_band_sink(node.copy()));
}

isl::schedule insert_mark(const isl::schedule& schedule, const std::string& name) {
  return schedule.root().child(0).insert_mark(make_id(schedule.ctx(), name)).schedule();
}

isl::multi_val band_sizes(const isl::schedule_node_band& band, std::span<const int64_t> sizes) {
  isl::space space = checked(band.ctx(), isl_schedule_node_band_get_space(band.get()));
  isl::val_list list(band.ctx(), sizes.size());
  for (int64_t size : sizes) list = list.add(make_val(band.ctx(), size));
  return space.multi_val(list);
}

int schedule_depth(const isl::schedule_node& node) {
  return checked_size(node.ctx(), isl_schedule_node_get_schedule_depth(node.get()));
}

std::vector<int> path_of(const isl::schedule_node& node) {
  std::vector<int> path;
  for (isl::schedule_node at = node; at.has_parent(); at = at.parent()) path.push_back(at.child_position());
  return {path.rbegin(), path.rend()};
}

isl::schedule_node node_at(const isl::schedule& schedule, std::span<const int> path) {
  isl::schedule_node node = schedule.root();
  for (int position : path) node = node.child(position);
  return node;
}

isl::union_set union_of(isl::ctx ctx, const std::vector<isl::set>& sets) {
  isl::union_set all = isl::union_set::empty(ctx);
  for (const isl::set& set : sets) all = all.unite(set.to_union_set());
  return all;
}

}  // namespace tc::poly
