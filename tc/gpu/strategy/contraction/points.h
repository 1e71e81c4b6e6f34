#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tc/gpu/strategy/contraction/affine_subscript.h"
#include "tc/gpu/strategy/contraction/contraction.h"

namespace tc::gpu {

/// The statement's instances { S[i] }; null if it has none.
const isl::set* domain_of(const std::vector<isl::set>& domains, const std::string& id);

/// The axes of a domain that is a box.
std::optional<std::vector<Axis>> box_of(const isl::set& domain, const std::vector<std::string>& names);

/// Statements of a Scop, neighbours in program order, on the points of a space of parallel axes: every instance is at
/// one point (those of a reduction to one element are at its point), and every dependence between the statements stays
/// within a point. So points may run in any order and at once.
class PointGroup {
 public:
  /// Statements that touch nothing of the group's are placed by themselves: in the order of what they write, or by the
  /// names of their indices. Where both are possible, what comes later may bear one of them only.
  enum class By { kOrder, kNames };
  PointGroup(const poly::Scop& scop, std::vector<Axis> axes, By by)
      : scop_(scop), domains_(poly::statement_domains(scop)), axes_(std::move(axes)), by_(by) {}

  /// Whether the group would differ if statements were placed the other way.
  bool is_ambiguous() const { return is_ambiguous_; }

  /// What the group writes of a tensor at a point, before a statement has said so.
  void expect(const std::string& tensor, const std::vector<Halide::Expr>& element) { elements_[tensor] = element; }

  /// Takes in the next statement, if it belongs to the group; returns it over the axes by name. An update without a
  /// reduction becomes a set. After a refusal the group takes no more.
  std::optional<poly::Statement> add(const poly::Statement& statement);

  /// Whether a tensor that the group writes has to do with another: some statements of the group lead from one to the
  /// other by what they read and write.
  bool are_linked(const std::string& tensor, const std::string& other) const;

 private:
  /// Which index of a statement is each axis, and what has to be added to it.
  struct Placement {
    std::vector<ShiftedIndex> point;
    std::map<std::string, Halide::Expr> renamed;  ///< the statement's indices over the axes
  };
  struct Member {
    poly::Statement statement;  ///< over the axes
    bool sums = false;          ///< over further indices
  };

  std::vector<Placement> placements(const poly::Statement& statement, const std::vector<Axis>& box);
  std::optional<Placement> placed(const poly::Statement& statement, const std::vector<Axis>& box,
                                  std::vector<std::optional<ShiftedIndex>> point) const;
  std::optional<Placement> placed_at(const poly::Statement& statement, const std::vector<Axis>& box,
                                     const std::vector<Halide::Expr>& subscripts,
                                     const std::vector<Halide::Expr>& element) const;
  std::optional<Placement> placed_by_names(const poly::Statement& statement, const std::vector<Axis>& box) const;
  std::optional<Placement> placed_in_order(const poly::Statement& statement, const std::vector<Axis>& box) const;
  bool takes(const Member& member);
  bool has_own_elements(const poly::Statement& statement) const;
  bool is_element(const std::string& tensor, const std::vector<Halide::Expr>& subscripts) const;
  isl::map same_point(const isl::map& instances, const std::string& from, const std::string& to) const;
  bool within_points(const poly::Statement& statement) const;
  std::vector<std::string> axis_names() const;

  const poly::Scop& scop_;
  std::vector<isl::set> domains_;
  std::vector<Axis> axes_;
  By by_;
  bool is_ambiguous_ = false;
  std::vector<Member> members_;
  std::map<std::string, std::vector<ShiftedIndex>> points_;    ///< per statement, as Placement::point
  std::map<std::string, std::vector<Halide::Expr>> elements_;  ///< per tensor that is written: that of a point
};

}  // namespace tc::gpu
