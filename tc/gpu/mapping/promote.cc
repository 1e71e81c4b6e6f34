#include "tc/gpu/mapping/promote.h"

#include <isl/schedule_node.h>

#include <algorithm>

#include "tc/gpu/mapping/copies.h"
#include "tc/gpu/mapping/thread_index_map.h"
#include "tc/ir/specialise.h"
#include "tc/poly/footprint.h"
#include "tc/poly/isl_ext.h"

namespace tc::gpu {
namespace {

constexpr int64_t kDefaultSharedBytes = 48 * 1024;
constexpr double kWorth = 2;  ///< accesses for each element copied

bool is_region(const Kernel& kernel, const isl::schedule_node& node) {
  return node.isa<isl::schedule_node_mark>() && poly::mark_name(node).starts_with(kBindMark) &&
         kernel.binding(poly::mark_name(node)).to == Dealt::To::kThreads;
}

/// Where buffers may stand: below the loops that all threads of a block run together.
void find_places(const Kernel& kernel, const isl::schedule_node& node, std::vector<poly::NodeRef>& places) {
  const bool below_band = node.has_parent() && node.parent().isa<isl::schedule_node_band>();
  const bool whole_block = node.has_parent() && node.parent().isa<isl::schedule_node_domain>() &&
                           kernel.grid == std::array<int64_t, 3>{1, 1, 1};
  if (below_band || whole_block) places.push_back({poly::path_of(node)});
  if (is_region(kernel, node)) return;
  for (unsigned i = 0; i < node.n_children(); ++i) find_places(kernel, node.child(i), places);
}

bool is_below(const poly::NodeRef& inner, const poly::NodeRef& outer) {
  return inner.path.size() > outer.path.size() && std::equal(outer.path.begin(), outer.path.end(), inner.path.begin());
}

class Holder {
 public:
  Holder(const Kernel& kernel, const options::MappingOptions& options, const Device& device)
      : result_{kernel}, options_(options) {
    const int64_t most = options.max_shared_memory.value_or(kDefaultSharedBytes);
    limit_ = std::min(most, device.shared_bytes);
  }

  Promoted run() {
    places_ = places();
    for (const poly::BandRef& band : poly::bands(scop())) {
      const isl::schedule_node_band node = poly::band_at(scop(), band);
      Loops& loops = loops_.emplace_back(Loops{band, poly::statements_at(scop(), node)});
      for (const int64_t extent : poly::band_extents(node)) loops.iterations *= static_cast<double>(extent);
    }
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < places_.size(); ++i) {
      for (const ir::Tensor& tensor : scop().program->tensors) {
        if (std::optional<Candidate> one = candidate(i, tensor.name)) candidates.push_back(*std::move(one));
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.saved > b.saved; });
    for (const Candidate& one : candidates) hold(one);
    return std::move(result_);
  }

 private:
  struct Candidate {
    size_t place = 0;
    std::string tensor;
    double saved = 0;  ///< accesses to memory that other threads share
  };

  /// A band, and its iterations for one of what is above it.
  struct Loops {
    poly::BandRef band;
    std::vector<std::string> statements;
    double iterations = 1;
  };

  std::vector<poly::NodeRef> places() const {
    std::vector<poly::NodeRef> result;
    find_places(result_.kernel, scop().schedule.root(), result);
    return result;
  }
  std::optional<Candidate> candidate(size_t place, const std::string& tensor) const;
  void hold(const Candidate& one);
  bool served_below(const poly::NodeRef& place, const std::string& tensor) const;
  bool is_wanted_depth(const poly::NodeRef& place) const;
  bool stays_in_threads(const poly::NodeRef& place, const std::string& tensor) const;
  double accesses_at(const poly::NodeRef& place, const std::string& tensor) const;
  const poly::Scop& scop() const { return result_.kernel.scop; }

  Promoted result_;
  const options::MappingOptions& options_;
  int64_t limit_ = 0;
  std::vector<poly::NodeRef> places_;  ///< promotions move them, and keep their number and order
  std::vector<Loops> loops_;           ///< before the first promotion, when all candidates are found
  std::vector<Candidate> held_;
};

/// Accesses to the tensor by all threads in one iteration of the loops above.
double Holder::accesses_at(const poly::NodeRef& place, const std::string& tensor) const {
  double all = 0;
  const std::vector<std::string> here = poly::statements_at(scop(), poly::node_at(scop(), place));
  for (const std::string& statement : here) {
    double count = 0;
    for (const poly::Access& access : scop().accesses) {
      count += access.statement == statement && access.tensor == tensor ? 1 : 0;
    }
    if (count == 0) continue;
    for (const Loops& loops : loops_) {
      const bool runs = loops.band == place || is_below(loops.band, place);
      if (runs && std::count(loops.statements.begin(), loops.statements.end(), statement) > 0) {
        count *= loops.iterations;
      }
    }
    all += count;
  }
  return all;
}

/// Whether an inner place serves as well: all uses stand there, and its iterations use different elements.
bool Holder::served_below(const poly::NodeRef& place, const std::string& tensor) const {
  const isl::schedule_node here = poly::node_at(scop(), place);
  return std::any_of(places_.begin(), places_.end(), [&](const poly::NodeRef& inner) {
    if (!is_below(inner, place)) return false;
    const isl::schedule_node there = poly::node_at(scop(), inner);
    for (const poly::Access& access : scop().accesses) {
      if (access.tensor == tensor && !poly::has_all_instances(there, here, access.statement)) return false;
    }
    const std::optional<poly::Footprint> print = poly::footprint(scop(), inner, tensor);
    if (!print) return false;
    const int outer = poly::schedule_depth(poly::node_at(scop(), place));
    const isl::map elements = print->elements;
    // { [inner prefix] -> [inner prefix'] } of one element, in one iteration of the loops around the outer place
    isl::map shared = elements.apply_range(elements.reverse());
    for (int d = 0; d < outer; ++d) shared = shared.eq_at(poly::variable(shared.domain().space(), d));
    return shared.is_subset(shared.domain().identity());
  });
}

/// With shared_depth: the innermost place that no more members than that stand above.
bool Holder::is_wanted_depth(const poly::NodeRef& place) const {
  const auto depth = [&](const poly::NodeRef& ref) { return poly::schedule_depth(poly::node_at(scop(), ref)); };
  if (depth(place) > *options_.shared_depth) return false;
  return std::none_of(places_.begin(), places_.end(), [&](const poly::NodeRef& inner) {
    return is_below(inner, place) && depth(inner) <= *options_.shared_depth;
  });
}

/// Whether each element is one thread's alone, within one region that no loop of the block repeats: registers serve.
bool Holder::stays_in_threads(const poly::NodeRef& place, const std::string& tensor) const {
  const isl::schedule_node node = poly::node_at(scop(), place);
  int regions = 0;
  bool repeated = false;
  node.foreach_descendant_top_down([&](const isl::schedule_node& at) {
    if (at.isa<isl::schedule_node_band>()) repeated = true;
    if (!is_region(result_.kernel, at)) return true;
    if (result_.kernel.binding(poly::mark_name(at)).cooperative) return false;
    const std::vector<std::string> here = poly::statements_at(scop(), at);
    regions += std::any_of(scop().accesses.begin(), scop().accesses.end(), [&](const poly::Access& access) {
      return access.tensor == tensor && std::count(here.begin(), here.end(), access.statement) > 0;
    });
    return false;
  });
  if (regions > 1 || repeated) return false;
  isl::union_map touched = isl::union_map::empty(node.ctx());  // { S[i] -> T[x] }
  for (const poly::Access& access : scop().accesses) {
    if (access.tensor == tensor) touched = touched.unite(access.relation.to_union_map());
  }
  touched = touched.intersect_domain(poly::node_domain(node));
  const isl::union_map prefix = node.prefix_schedule_union_map();
  const isl::union_map threads = isl::union_map::from(thread_index_map(result_.kernel, node, Dealt::To::kThreads));
  return touched.range_product(prefix).reverse().apply_range(threads).is_single_valued();
}

std::optional<Holder::Candidate> Holder::candidate(size_t number, const std::string& tensor) const {
  const poly::NodeRef& place = places_[number];
  const std::optional<poly::Footprint> print = poly::footprint(scop(), place, tensor);
  if (!print || print->box_elements() < 2) return std::nullopt;
  const double accesses = accesses_at(place, tensor);
  const auto elements = static_cast<double>(print->box_elements());
  const bool temporary = scop().program->tensor(tensor).role == ir::Role::kTemporary;
  const bool worth = temporary || (options_.use_shared_memory &&
                                   (accesses >= kWorth * elements || across_rows(result_.kernel, place, tensor)));
  if (!worth) return std::nullopt;
  if (options_.shared_depth ? !is_wanted_depth(place) : served_below(place, tensor)) return std::nullopt;
  if (stays_in_threads(place, tensor)) return std::nullopt;
  return Candidate{number, tensor, accesses - elements};
}

void Holder::hold(const Candidate& one) {
  const std::vector<poly::NodeRef> now = places();
  const poly::NodeRef& place = now.at(one.place);
  for (const Candidate& other : held_) {
    const poly::NodeRef& there = now.at(other.place);
    if (other.tensor == one.tensor && (there == place || is_below(there, place) || is_below(place, there))) return;
  }
  const int64_t bytes = shared_bytes_at(result_.kernel, place, one.tensor);
  if (bytes > limit_ - shared_bytes(result_.kernel)) {
    result_.crowded = true;
    return;
  }
  Result<Kernel> held = hold_in_shared_at(result_.kernel, place, one.tensor);
  if (!held) return;
  result_.kernel = *std::move(held);
  ++result_.tensors;
  held_.push_back(one);
}

}  // namespace

Promoted hold_in_shared(const Kernel& kernel, const options::MappingOptions& options, const Device& device) {
  if (!options.use_shared_memory.value_or(true)) return {kernel};
  return Holder(kernel, options, device).run();
}

}  // namespace tc::gpu
