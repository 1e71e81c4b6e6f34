#include "tc/poly/rebuild.h"

#include "tc/poly/dependences.h"
#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::poly {
namespace {

/// Rebuilds a subtree from its leaves up, with `ref` (below `at`) replaced if given.
class Rebuilder {
 public:
  Rebuilder(const std::vector<int>* path, const isl::schedule* replacement) : path_(path), replacement_(replacement) {}

  isl::schedule rebuild(const isl::schedule_node& node, size_t depth, bool on_path) const {
    if (on_path && path_ && depth == path_->size()) return *replacement_;
    auto child = [&](unsigned i) {
      const bool below = on_path && path_ && (*path_)[depth] == static_cast<int>(i);
      return rebuild(node.child(i), depth + 1, below);
    };
    switch (isl_schedule_node_get_type(node.get())) {
      case isl_schedule_node_leaf:
        return isl::schedule::from_domain(node_domain(node));
      case isl_schedule_node_domain:
      case isl_schedule_node_filter:
        return child(0);
      case isl_schedule_node_band: {
        const auto band = node.as<isl::schedule_node_band>();
        return under_band(band.partial_schedule(), flags_of(band), child(0));
      }
      case isl_schedule_node_mark:
        return insert_mark(child(0), mark_name(node));
      case isl_schedule_node_set:  // parts in any order: one after another, then
      case isl_schedule_node_sequence: {
        isl::schedule whole = child(0);
        for (unsigned i = 1; i < node.n_children(); ++i) whole = sequence(whole, child(i));
        return whole;
      }
      default:
        TC_CHECK(false, "a schedule tree with nodes other than bands, filters, sequences and marks");
    }
  }

 private:
  const std::vector<int>* path_;
  const isl::schedule* replacement_;
};

}  // namespace

BandFlags flags_of(const isl::schedule_node_band& band) {
  BandFlags flags;
  flags.permutable = band.permutable();
  for (unsigned m = 0; m < band.n_member(); ++m) flags.coincident.push_back(band.member_get_coincident(m));
  return flags;
}

isl::schedule_node_band with_flags(isl::schedule_node_band band, const BandFlags& flags) {
  band = band.set_permutable(flags.permutable);
  for (size_t m = 0; m < flags.coincident.size(); ++m) band = band.member_set_coincident(m, flags.coincident[m]);
  return band;
}

BandFlags exact_flags(const Scop& scop, const isl::schedule_node_band& band) {
  const isl::union_map ordered = active_dependences(band, scop.dependences.ordered());
  const isl::union_map all = ordered.unite(active_dependences(band, scop.dependences.reduction));
  BandFlags flags;
  flags.permutable = true;
  for (unsigned m = 0; m < band.n_member(); ++m) {
    flags.coincident.push_back(!carries(band, m, all));
    flags.permutable = flags.permutable && (flags.coincident.back() || !runs_backward(band, m, ordered));
  }
  return flags;
}

isl::schedule subtree(const isl::schedule_node& node) { return Rebuilder(nullptr, nullptr).rebuild(node, 0, false); }

isl::schedule replace(const isl::schedule& schedule, const NodeRef& ref, const isl::schedule& replacement) {
  return Rebuilder(&ref.path, &replacement).rebuild(schedule.root(), 0, true);
}

isl::schedule under_band(const isl::multi_union_pw_aff& partial, const BandFlags& flags, const isl::schedule& below) {
  const isl::schedule_node node = insert_band(below, partial).root().child(0);
  return with_flags(node.as<isl::schedule_node_band>(), flags).schedule();
}

}  // namespace tc::poly
