#pragma once

#include <isl/cpp.h>

#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tc/tile/accesses.h"

namespace tc::tile {

/// An isl context of its own, with a bound on its work: past it, isl throws.
class IslContext {
 public:
  explicit IslContext(unsigned long operations);
  ~IslContext();
  IslContext(const IslContext&) = delete;
  IslContext& operator=(const IslContext&) = delete;
  isl::ctx get() const { return isl::ctx(ctx_); }
  /// Starts counting anew.
  void reset();
  /// Whether the bound is reached. isl's C interface returns null then, and the bindings throw "NULL input" for it.
  bool is_exhausted() const;

 private:
  isl_ctx* ctx_;
};

/// Expressions at one place of a kernel as isl functions of an instance
///     { [block coordinates, thread coordinates, iteration numbers of the loops, outermost first] }
/// Coordinates of extent 1 have no dimension. An iteration number counts from 0, whatever the loop's variable does.
/// `uniform`: lets that are the same for all threads of a block (uniform.h). One that is not affine is a parameter: of
/// what holds for all its values each block has one. Blocks have different ones, so nothing follows for two blocks.
class AffineView {
 public:
  AffineView(isl::ctx ctx, const Kernel& kernel, const Path& path, const std::set<std::string>* uniform = nullptr);

  int block_dimensions() const { return block_dimensions_; }
  int thread_dimensions() const { return thread_dimensions_; }
  int loop_dimension(int position) const { return block_dimensions_ + thread_dimensions_ + position; }

  /// All instances: within grid, block and loops, where the path's conditions hold. Conditions and bounds that are not
  /// affine are left out; exact() tells.
  const isl::set& domain() const { return domain_; }
  bool exact() const { return exact_; }

  /// None if it is not affine.
  std::optional<isl::pw_aff> value(const Halide::Expr& expr) const;
  std::optional<isl::set> holds(const Halide::Expr& condition) const;
  isl::set universe() const;
  isl::pw_aff constant(int64_t value) const;
  /// The iteration number of a loop of the path.
  isl::pw_aff iteration(int position) const { return dimension(loop_dimension(position)); }
  /// The number of a thread in its block.
  isl::pw_aff thread_number() const;
  /// How often a loop of the path runs.
  std::optional<isl::pw_aff> trip_count(int position) const;

  /// { instance -> element } of an access: coordinates, or offsets where the layout is not injective. A subscript that
  /// is not affine may be any (`exact` becomes false).
  isl::map relation(const ElementAccess& access, bool& exact) const;
  /// { instance } of an access: the domain where its own conditions hold too.
  isl::set instances(const ElementAccess& access, bool& exact) const;
  /// The offset of an access before its swizzle; none if a subscript is not affine.
  std::optional<isl::pw_aff> offset(const ElementAccess& access) const;

  /// "thread (3,0,0) of block (0,1,0)" for a point whose coordinates start at `first`.
  std::string describe(const isl::point& point) const;
  std::array<int64_t, 3> block_of(const isl::point& point) const;
  std::array<int64_t, 3> thread_of(const isl::point& point) const;

 private:
  struct NotAffine {};
  isl::pw_aff affine(const Halide::Expr& expr) const;
  isl::set condition(const Halide::Expr& expr) const;
  isl::pw_aff dimension(int position) const;
  isl::pw_aff variable(const std::string& name) const;
  isl::pw_aff parameter(const std::string& name) const;
  isl::pw_aff loop_variable(size_t position) const;
  template <typename Compare>
  isl::set compare(const Halide::Expr& a, const Halide::Expr& b, Compare compare) const;
  template <typename Restrict>
  void restrict(Restrict restrict);
  std::array<int64_t, 3> triple_at(const isl::point& point, const std::array<int, 3>& dimensions) const;

  isl_ctx* ctx_;
  const Kernel& kernel_;
  const Path& path_;
  const std::set<std::string>* uniform_;
  std::array<int, 3> blocks_ = {-1, -1, -1};  ///< dimensions of coordinates
  std::array<int, 3> threads_ = {-1, -1, -1};
  int block_dimensions_ = 0;
  int thread_dimensions_ = 0;
  isl::space space_;
  isl::set domain_;
  bool exact_ = true;
};

/// True if different coordinates have different offsets.
bool is_injective(const Layout& layout);

}  // namespace tc::tile
