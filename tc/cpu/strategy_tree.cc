#include "tc/cpu/strategy_tree.h"

#include <isl/schedule_node.h>

#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::cpu {

namespace {

isl::multi_union_pw_aff partial_schedule(const std::map<std::string, isl::aff>& member,
                                         const isl::schedule_node& node) {
  std::vector<isl::aff> row;
  for (const isl::set& domain : poly::sets_of(poly::node_domain(node))) {
    row.push_back(member.at(poly::tuple_name(domain)));
  }
  return poly::band_schedule(node.ctx(), {row});
}

isl::union_set_list filter_list(const Tree& tree, const isl::schedule_node& node) {
  std::map<std::string, isl::set> domains;
  for (const isl::set& domain : poly::sets_of(poly::node_domain(node))) {
    domains.emplace(poly::tuple_name(domain), domain);
  }
  isl::union_set_list result(node.ctx(), static_cast<int>(tree.filters.size()));
  for (const auto& filter : tree.filters) {
    isl::union_set instances = isl::manage(isl_union_set_empty(isl_space_params_alloc(node.ctx().get(), 0)));
    for (const std::string& statement : filter) {
      instances = instances.unite(isl::manage(isl_set_universe(domains.at(statement).space().release())));
    }
    result = result.add(instances);
  }
  return result;
}

/// Inserts the tree at the node, which is a leaf's place; returns the same place.
isl::schedule_node insert(isl::schedule_node node, const Tree& tree) {
  switch (tree.kind) {
    case Tree::Kind::kLeaf:
      return node;
    case Tree::Kind::kBand: {
      isl::multi_union_pw_aff partial = partial_schedule(tree.member, node);
      node = isl::manage(isl_schedule_node_insert_partial_schedule(node.release(), partial.release()));
      return insert(node.child(0), tree.children.at(0)).parent();
    }
    case Tree::Kind::kMark: {
      isl::id mark = poly::make_id(node.ctx(), tree.mark);
      node = isl::manage(isl_schedule_node_insert_mark(node.release(), mark.release()));
      return insert(node.child(0), tree.children.at(0)).parent();
    }
    case Tree::Kind::kSequence: {
      isl::union_set_list filters = filter_list(tree, node);
      node = isl::manage(isl_schedule_node_insert_sequence(node.release(), filters.release()));
      for (size_t i = 0; i < tree.children.size(); ++i) {
        node = insert(node.child(static_cast<int>(i)).child(0), tree.children[i]).parent().parent();
      }
      return node;
    }
  }
  TC_CHECK(false, "a kind of tree that does not exist");
}

}  // namespace

Tree band(std::map<std::string, isl::aff> member, Tree child) {
  Tree result;
  result.kind = Tree::Kind::kBand;
  result.member = std::move(member);
  result.children.push_back(std::move(child));
  return result;
}

Tree mark(const std::string& name, Tree child) {
  Tree result;
  result.kind = Tree::Kind::kMark;
  result.mark = name;
  result.children.push_back(std::move(child));
  return result;
}

Tree sequence(std::vector<std::vector<std::string>> filters, std::vector<Tree> children) {
  TC_CHECK(filters.size() == children.size() && !children.empty(), "a sequence of {} filters and {} parts",
           filters.size(), children.size());
  if (children.size() == 1) return std::move(children.front());
  Tree result;
  result.kind = Tree::Kind::kSequence;
  result.filters = std::move(filters);
  result.children = std::move(children);
  return result;
}

isl::schedule to_schedule(const Tree& tree, const isl::union_set& domain) {
  isl::schedule schedule = isl::schedule::from_domain(domain);
  return insert(schedule.root().child(0), tree).schedule();
}

std::map<std::string, isl::aff> cut(Dim& dim, int64_t tile, int depth) {
  std::map<std::string, isl::aff> member;
  for (auto& [statement, remainder] : dim.remainder) {
    isl::val size = poly::make_val(remainder.ctx(), tile);
    isl::aff tiles = tile == 1 ? remainder : remainder.scale_down(size).floor();
    member.emplace(statement, tiles);
    remainder = remainder.sub(tiles.scale(size));
  }
  dim.steps.emplace_back(depth, tile);
  dim.rest = tile;
  return member;
}

}  // namespace tc::cpu
