#pragma once

#include <isl/constraint.h>
#include <isl/cpp.h>
#include <isl/local_space.h>
#include <isl/map.h>

#include <cstdint>
#include <vector>

namespace tc::tile {

/// A sum of multiples of the dimensions of { x -> y }.
class Sum {
 public:
  Sum& in(int position, int64_t factor) { return add(isl_dim_in, position, factor); }
  Sum& out(int position, int64_t factor) { return add(isl_dim_out, position, factor); }

 private:
  friend class Constraints;
  struct Term {
    isl_dim_type type;
    int position;
    int64_t factor;
  };
  Sum& add(isl_dim_type type, int position, int64_t factor) {
    terms_.push_back({type, position, factor});
    return *this;
  }
  std::vector<Term> terms_;
};

/// Linear constraints on { x -> y }. isl looks for an integer point in each part of an intersection, so a map is
/// intersected with all of them at once.
class Constraints {
 public:
  explicit Constraints(const isl::map& map) : all_(isl::manage(isl_basic_map_universe(isl_map_get_space(map.get())))) {}
  Constraints& equal(const Sum& sum, int64_t constant) {
    return add(isl_constraint_alloc_equality(local_space()), sum, constant);
  }
  Constraints& at_least(const Sum& sum, int64_t constant) {
    return add(isl_constraint_alloc_inequality(local_space()), sum, constant);
  }
  /// The part of a map that fulfils them.
  isl::map in(const isl::map& map) const { return map.intersect(isl::manage(isl_map_from_basic_map(all_.copy()))); }

 private:
  isl_local_space* local_space() const { return isl_local_space_from_space(isl_basic_map_get_space(all_.get())); }
  Constraints& add(isl_constraint* c, const Sum& sum, int64_t constant) {
    for (const Sum::Term& t : sum.terms_) {
      c = isl_constraint_set_coefficient_si(c, t.type, t.position, static_cast<int>(t.factor));
    }
    c = isl_constraint_set_constant_si(c, static_cast<int>(-constant));
    all_ = isl::manage(isl_basic_map_add_constraint(all_.release(), c));
    return *this;
  }
  isl::basic_map all_;
};

}  // namespace tc::tile
