#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "tc/gpu/strategy/contraction/chain.h"
#include "tc/gpu/strategy/contraction/cost.h"
#include "tc/gpu/strategy/contraction/planner.h"
#include "tc/gpu/strategy/contraction/requested_tile.h"
#include "tc/support/round.h"

namespace tc::gpu {
namespace {

constexpr size_t kMostProducts = 32;  // whose text an assembler takes in seconds
constexpr double kLaunchUs = 1;

/// What all products of a chain have in common: values of a block along each axis of rows, then its threads.
using Form = std::vector<int64_t>;
using Forms = std::map<Form, ContractionPlan>;

double work_of(const Contraction& c) {
  double result = 1;
  for (const auto* axes : {&c.parallel, &c.reduction}) {
    for (const Axis& axis : *axes) result *= static_cast<double>(axis.extent);
  }
  return result;
}

bool are_alike(const std::vector<Axis>& a, const std::vector<Axis>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Axis& x, const Axis& y) { return x.begin == y.begin && x.extent == y.extent; });
}

bool are_alike(const Operand& a, const Operand& b) {
  if (a.type != b.type || a.extents != b.extents || a.strides != b.strides || a.inside != b.inside) return false;
  if (a.chosen_row || b.chosen_row || a.computed || b.computed || a.selected || b.selected) return false;
  for (size_t d = 0; d < a.subscripts.size(); ++d) {
    const Subscript &x = a.subscripts[d], &y = b.subscripts[d];
    if (x.parallel != y.parallel || x.reduction != y.reduction) return false;
    // Which slice of a tensor it is changes no plan.
    const auto is_zero = [](int64_t by) { return by == 0; };
    const bool is_slice = d + 1 < a.subscripts.size() && std::all_of(x.parallel.begin(), x.parallel.end(), is_zero) &&
                          std::all_of(x.reduction.begin(), x.reduction.end(), is_zero);
    if (x.constant != y.constant && !is_slice) return false;
  }
  return true;
}

/// Whether two products have the same plans.
bool are_alike(const Contraction& a, const Contraction& b) {
  return are_alike(a.parallel, b.parallel) && are_alike(a.reduction, b.reduction) &&
         a.update.accumulator == b.update.accumulator && a.operands.size() == b.operands.size() &&
         std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(),
                    [](const Operand& x, const Operand& y) { return are_alike(x, y); }) &&
         Halide::Internal::equal(a.update.value, b.update.value);
}

/// Of each form the plan of a product that takes least time.
Forms forms_of(const Contraction& c, const std::vector<size_t>& rows, std::optional<size_t> kept,
               const options::MappingOptions& options, const Device& device) {
  Planner planner(c, options, device);
  Forms found;
  std::map<Form, double> least;
  for (ContractionPlan& plan : planner.in_chain(rows, kept)) {
    Form form;
    for (size_t axis : rows) form.push_back(plan.parallel[axis].tile);
    form.push_back(plan.threads());
    const double cycles =
        chained_cycles(c, plan, device, registers_of_thread(c, plan), plan.shared_bytes(c), plan.asynchronous);
    const auto known = least.find(form);
    if (known != least.end() && known->second <= cycles) continue;
    least[form] = cycles;
    found.insert_or_assign(form, std::move(plan));
  }
  for (auto& [form, plan] : found) planner.lay_out_apart(plan);
  return found;
}

/// Products in a row.
class Chooser {
 public:
  Chooser(const poly::Scop& scop, const std::vector<const Contraction*>& products,
          const std::vector<options::MappingOptions>& options, const Device& device)
      : scop_(scop), products_(products), options_(options), device_(device) {
    for (size_t p = 0; p + 1 < products.size(); ++p)
      links_.push_back(link_between(scop, *products[p], *products[p + 1]));
  }

  /// The best chain of the products [first, last), and its cycles.
  std::optional<std::pair<ChosenChain, double>> best(size_t first, size_t last) {
    if (last - first > kMostProducts || !may_share(first, last)) return std::nullopt;
    const size_t anchor = anchor_of(first, last);
    const std::vector<std::vector<size_t>> rows = rows_of(first, last);
    std::vector<const Forms*> forms;
    for (size_t p = first; p < last; ++p)
      forms.push_back(&forms_of_product(p, p > first, p == anchor, rows[p - first]));
    std::vector<Timed> found;
    for (const auto& [form, plan] : *forms[0]) {
      std::vector<const ContractionPlan*> plans;
      for (const Forms* of_product : forms) {
        const auto found = of_product->find(form);
        if (found != of_product->end()) plans.push_back(&found->second);
      }
      if (plans.size() != forms.size()) continue;
      if (std::optional<Timed> timed = time_of(first, plans, anchor)) found.push_back(*std::move(timed));
    }
    if (found.empty()) return std::nullopt;
    std::stable_sort(found.begin(), found.end(), [](const Timed& a, const Timed& b) { return a.cycles < b.cycles; });
    ChosenChain result = chosen(first, last, anchor, found[0]);
    for (const Timed& timed : found) {
      result.anchors.push_back(*timed.plans[anchor - first]);
      result.anchors.back().stages = timed.copy_stages;
      result.anchors.back().all_ahead = false;
    }
    return std::pair(std::move(result), found[0].cycles);
  }

 private:
  struct Timed {
    std::vector<const ContractionPlan*> plans;
    std::vector<int64_t> stages;
    int64_t copy_stages = 1;  ///< at most so many
    std::vector<double> each;
    bool in_ring = false;
    ChainBuffers buffers;
    double cycles = 0;
  };

  std::vector<const Contraction*> products(size_t first, size_t count) const {
    return {products_.begin() + static_cast<long>(first), products_.begin() + static_cast<long>(first + count)};
  }
  std::vector<const ChainLink*> links(size_t first, size_t count) const {
    std::vector<const ChainLink*> result;
    for (size_t l = first; l + 1 < first + count; ++l) result.push_back(&*links_[l]);
    return result;
  }

  bool may_share(size_t first, size_t last) {
    for (size_t p = first; p + 1 < last; ++p) {
      if (!links_[p] || (p > first && !go_together(*links_[p - 1], *links_[p]))) return false;
    }
    for (size_t p = first; p < last; ++p) {
      for (size_t q = p + 2; q < last; ++q) {
        const auto [known, is_new] = independent_.try_emplace({p, q}, false);
        if (is_new) known->second = are_independent(scop_, *products_[p], *products_[q]);
        if (!known->second) return false;
      }
    }
    return true;
  }

  size_t anchor_of(size_t first, size_t last) const {
    size_t result = first;
    for (size_t p = first; p < last; ++p) {
      if (work_of(*products_[p]) > work_of(*products_[result])) result = p;
    }
    return result;
  }

  /// Of each product its axes of rows, in the same order for all.
  std::vector<std::vector<size_t>> rows_of(size_t first, size_t last) const {
    std::vector<std::vector<size_t>> rows = {links_[first]->rows_of_first()};
    for (size_t p = first; p + 1 < last; ++p) {
      const std::vector<size_t> made = links_[p]->rows_of_first(), read = links_[p]->rows_of_second();
      rows.emplace_back();
      for (size_t axis : rows[p - first]) {
        const auto at = std::find(made.begin(), made.end(), axis) - made.begin();
        rows.back().push_back(read[static_cast<size_t>(at)]);
      }
    }
    return rows;
  }

  const Forms& forms_of_product(size_t product, bool is_kept, bool has_sizes, const std::vector<size_t>& rows) {
    const std::optional<size_t> kept = is_kept ? std::optional(links_[product - 1]->operand) : std::nullopt;
    for (size_t p = 0; p < product; ++p) {
      const bool is_same_read = !is_kept || (p > 0 && links_[p - 1] && links_[p - 1]->operand == kept);
      if (is_same_read && options_[p] == options_[product] && are_alike(*products_[p], *products_[product])) {
        product = p;
      }
    }
    const auto key = std::make_tuple(product, is_kept, has_sizes && says_tile_sizes(options_[product]), rows);
    const auto known = forms_.find(key);
    if (known != forms_.end()) return known->second;
    const options::MappingOptions options = has_sizes ? options_[product] : without_tile_sizes(options_[product]);
    return forms_.emplace(key, forms_of(*products_[product], rows, kept, options, device_)).first->second;
  }

  /// Whether what a product reads of a tensor that is kept, past the end of its reduction, was set to zero.
  bool is_filled(const ChainLink& link, const ContractionPlan& maker, const Contraction& c,
                 const ContractionPlan& reader) const {
    return std::all_of(link.dimensions.begin(), link.dimensions.end(), [&](const ChainLink::Dimension& d) {
      if (d.is_row || d.read_by != reader.main || !reader.tensor_cores) return true;
      const int64_t chunk =
          reader.fills_last_step() ? reader.chunk[reader.main] : static_cast<int64_t>(reader.tensor_cores->atom->k);
      return round_up(c.reduction[d.read_by].extent, chunk) <= maker.parallel[d.made_by].tile;
    });
  }

  std::optional<Timed> time_of(size_t first, const std::vector<const ContractionPlan*>& plans, size_t anchor) const {
    constexpr int64_t kStages = 3, kRegisters = 255, kAllRegisters = 65536;
    const options::MappingOptions& options = options_[anchor];
    const int64_t most = std::min(options.max_shared_memory.value_or(device_.shared_bytes), device_.shared_bytes);
    Timed result{.plans = plans};
    int64_t registers = 0, turns = 0;
    result.in_ring = true;
    for (size_t i = 0; i < plans.size(); ++i) {
      const Contraction& c = *products_[first + i];
      if (i > 0 && !is_filled(*links_[first + i - 1], *plans[i - 1], c, *plans[i])) return std::nullopt;
      registers = std::max(registers, registers_of_thread(c, *plans[i]));
      turns += plans[i]->steps(c);
      result.in_ring = result.in_ring && plans[i]->asynchronous && plans[i]->left(c) == 0 && !has_computed(c);
    }
    if (registers > kRegisters || registers * plans[0]->threads() > kAllRegisters) return std::nullopt;
    const int64_t wanted = options.copy_stages.value_or(kStages);
    result.in_ring = result.in_ring && wanted > 1;
    for (int64_t stages = std::min(wanted, turns); stages >= 1; --stages) {
      if (options.copy_stages && stages < std::min(wanted, turns)) break;
      if (result.in_ring && stages == 1) break;
      result.stages.clear();
      result.copy_stages = stages;
      for (size_t i = 0; i < plans.size(); ++i) {
        const int64_t own = std::min<int64_t>({stages, 2, plans[i]->steps(*products_[first + i])});
        const bool is_ahead = plans[i]->asynchronous && !has_computed(*products_[first + i]);
        result.stages.push_back(result.in_ring ? stages : is_ahead ? own : 1);
      }
      result.buffers = buffers_of(products(first, plans.size()), links(first, plans.size()), plans, result.stages);
      if (result.buffers.bytes <= most) break;
    }
    if (result.stages.empty() || result.buffers.bytes > most) return std::nullopt;
    result.cycles = chain_start_cycles();
    for (size_t i = 0; i < plans.size(); ++i) {
      result.each.push_back(
          chained_cycles(*products_[first + i], *plans[i], device_, registers, result.buffers.bytes, result.in_ring));
      result.cycles += result.each.back();
    }
    result.each[0] += chain_start_cycles();
    return result;
  }

  ChosenChain chosen(size_t first, size_t last, size_t anchor, const Timed& best) const {
    ChosenChain result{.first = first, .anchor = anchor - first};
    result.plan.in_ring = best.in_ring;
    result.plan.buffers = best.buffers;
    for (size_t p = first; p < last; ++p) {
      result.chain.products.push_back(*products_[p]);
      if (p + 1 < last) result.chain.links.push_back(*links_[p]);
      ContractionPlan plan = *best.plans[p - first];
      plan.stages = best.stages[p - first];
      plan.all_ahead = false;
      plan.cycles = best.each[p - first];
      if (p > first) align(*links_[p - 1], best.buffers.tensors[p - first - 1], plan);
      result.plan.plans.push_back(std::move(plan));
    }
    return result;
  }

  /// Rows of matrices begin at whole vectors, or elements are read one by one.
  static void align(const ChainLink& link, const KeptTensor& kept, ContractionPlan& plan) {
    constexpr int64_t kRow = 8;
    for (size_t d = 0; d < link.dimensions.size(); ++d) {
      const ChainLink::Dimension& dimension = link.dimensions[d];
      if (dimension.is_row) continue;
      const bool is_main = dimension.read_by == plan.main;
      if (is_main ? kept.strides[d] != 1 : kept.strides[d] % kRow != 0) {
        plan.operands[link.operand].fragment = FragmentRead::kElements;
      }
    }
  }

  const poly::Scop& scop_;
  const std::vector<const Contraction*>& products_;
  const std::vector<options::MappingOptions>& options_;
  const Device& device_;
  std::vector<std::optional<ChainLink>> links_;
  std::map<std::pair<size_t, size_t>, bool> independent_;
  std::map<std::tuple<size_t, bool, bool, std::vector<size_t>>, Forms> forms_;
};

}  // namespace

std::vector<ChosenChain> choose_chains(const poly::Scop& scop, const std::vector<const Contraction*>& products,
                                       const std::vector<double>& alone,
                                       const std::vector<options::MappingOptions>& options, const Device& device) {
  constexpr double kNever = 1e15;       // cycles, more than any sum of others
  constexpr double kByElements = 1.25;  // plans with few forms in common, whose estimates are rough
  const double launch = kLaunchUs * 1e3 * device.gigahertz;
  Chooser chooser(scop, products, options, device);
  const auto may_chain = [&](size_t p) { return options[p].chain.value_or(!says_tile_sizes(options[p])); };
  std::vector<double> least = {0};  // of the first products
  std::vector<std::optional<ChosenChain>> last_chain = {std::nullopt};
  for (size_t end = 1; end <= products.size(); ++end) {
    least.push_back(least[end - 1] + (options[end - 1].chain.value_or(false) ? kNever : alone[end - 1] + launch));
    last_chain.emplace_back();
    for (size_t first = end; first-- > 0 && may_chain(first);) {
      if (end - first < 2) continue;
      auto found = chooser.best(first, end);
      if (!found) continue;
      const std::vector<ContractionPlan>& plans = found->first.plan.plans;
      const bool by_elements = std::any_of(plans.begin(), plans.end(), [](const auto& p) { return !p.tensor_cores; });
      const double cycles = least[first] + found->second * (by_elements ? kByElements : 1) + launch;
      if (cycles >= least[end]) continue;
      least[end] = cycles;
      last_chain[end] = std::move(found->first);
    }
  }
  std::vector<ChosenChain> result;
  for (size_t end = products.size(); end > 0;) {
    if (!last_chain[end]) {
      --end;
      continue;
    }
    const size_t first = last_chain[end]->first;
    result.push_back(*std::move(last_chain[end]));
    end = first;
  }
  std::reverse(result.begin(), result.end());
  return result;
}

}  // namespace tc::gpu
