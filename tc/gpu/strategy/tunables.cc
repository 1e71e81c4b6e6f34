#include "tc/gpu/strategy/tunables.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <type_traits>

#include "tc/gpu/cost/estimate.h"
#include "tc/gpu/mapping/limits.h"
#include "tc/gpu/rewrite/gather_rows.h"
#include "tc/gpu/rewrite/kernel_options.h"
#include "tc/gpu/strategy/contraction/sharing.h"
#include "tc/gpu/strategy/pieces.h"
#include "tc/gpu/strategy/prepare.h"
#include "tc/options/mapping_fields.h"
#include "tc/poly/from_ir.h"
#include "tc/support/check.h"

namespace tc::gpu {
namespace {

using Value = std::vector<int64_t>;

void assign(std::optional<int64_t>& field, const Value& value) {
  field = value.empty() ? std::nullopt : std::optional(value[0]);
}
void assign(std::optional<bool>& field, const Value& value) {
  field = value.empty() ? std::nullopt : std::optional(value[0] != 0);
}
void assign(bool& field, const Value& value) { field = !value.empty() && value[0] != 0; }
void assign(Value& field, const Value& value) { field = value; }
void assign(options::SchedulerOptions& field, const Value& value) {
  field.fusion = value.empty() ? std::nullopt : std::optional(static_cast<options::Fusion>(value[0]));
}

void assign(std::vector<options::KernelOptions>&, const Value&) { TC_CHECK(false, "no list of numbers is a kernel's"); }

/// Fields with their values, in order of first mention, none twice.
class Collector {
 public:
  explicit Collector(options::KernelOptions of = {}) : of_(std::move(of)) {}
  void add(const std::string& field, const Value& value) {
    auto at = std::find_if(found.begin(), found.end(), [&](const Tunable& t) { return t.field == field; });
    if (at == found.end()) at = found.insert(at, Tunable{field, std::vector<Value>(1), of_});
    if (std::find(at->values.begin(), at->values.end(), value) == at->values.end()) at->values.push_back(value);
  }
  void add_all(const std::string& field, std::initializer_list<Value> values) {
    for (const Value& value : values) add(field, value);
  }
  std::vector<Tunable> found;

 private:
  options::KernelOptions of_;  ///< an address
};

/// A def as map() takes it, and the options with what has been decided on the way.
struct Prelude {
  poly::Scop scop;
  options::MappingOptions options;
};

Result<Prelude> prelude(const ir::Program& program, const options::MappingOptions& options, const Device& device,
                        bool element_aligned = false) {
  TC_TRY(prepared, prepare(program, options, device, element_aligned));
  TC_TRY(scop, poly::from_ir(std::make_shared<const ir::Program>(std::move(prepared.program)),
                             std::make_shared<poly::Context>()));
  return Prelude{std::move(scop), std::move(prepared.options)};
}

/// The best plans' options of a contraction, and what they may be addressed by.
struct PlannedOptions {
  std::optional<Address> address;
  std::vector<options::MappingOptions> best;
  bool by_warpgroups = false;  ///< some of them
  bool in_chain = false;       ///< of a chain's kernel
};

/// Of each contraction of a def.
std::vector<PlannedOptions> contraction_options(const poly::Scop& scop, const options::MappingOptions& options,
                                                const Device& device, size_t count) {
  std::vector<PlannedOptions> result;
  for (const Piece& piece : cut_out_contractions(scop, options, device).pieces) {
    if (!piece.contraction) continue;
    const size_t largest = largest_product(*piece.contraction);
    const Contraction& product = largest == 0 ? *piece.contraction : piece.contraction->further[largest - 1];
    const options::MappingOptions own = options_at(*scop.program, product.update.id, options);
    result.push_back({address_of(*scop.program, product.update.id), {}});
    result.back().in_chain = piece.chain.has_value();
    if (piece.chain) {
      for (const ContractionPlan& plan : piece.chain->anchors) {
        if (result.back().best.size() == count) break;
        result.back().best.push_back(options_of(plan));
        result.back().best.back().chain = true;
      }
      continue;
    }
    for (const ContractionPlan& plan : best_plans(product, own, device, count)) {
      result.back().by_warpgroups |= plan.by_warpgroups();
      result.back().best.push_back(options_of(plan));
    }
  }
  return result;
}

/// Of two blocks along each of the last two axes, and along both.
void add_clusters(size_t axes, Collector& to) {
  if (axes < 2) return;
  Value along_rows(axes, 1), along_columns(axes, 1);
  along_rows[axes - 2] = along_columns[axes - 1] = 2;
  Value both = along_rows;
  both[axes - 1] = 2;
  to.add_all("cluster", {along_rows, along_columns, both});
}

void add_contraction(const PlannedOptions& planned, Collector& to) {
  constexpr size_t kMost = 24;  // values of a field
  for (const options::MappingOptions& options : planned.best) {
    if (to.found.size() >= 3 && to.found[0].values.size() > kMost) break;
    to.add("tile", options.tile);
    to.add("register_tile", options.register_tile);
    to.add("map_to_threads", options.map_to_threads);
    if (options.tensor_cores) to.add_all("tensor_cores", {{0}, {1}});
  }
  if (planned.in_chain) to.add_all("chain", {{0}, {1}});
  if (planned.by_warpgroups) {
    add_clusters(planned.best[0].register_tile.size(), to);
    to.add_all("store_boxes", {{0}, {1}});
    to.add_all("persistent", {{0}, {1}});
    to.add_all("ping_pong", {{0}, {1}});
  }
  to.add_all("copy_stages", {{2}, {3}, {4}, {5}});
  to.add_all("unroll", {{256}, {1024}, {2048}, {4096}});
}

void add_elements(const options::MappingOptions& chosen, Collector& to) {
  to.add_all("map_to_threads", {{64}, {128}, {256}, {512}, {1024}, {32, 2}, {32, 4}, {32, 8}, {64, 4}, {128, 2}});
  const auto along = std::max_element(chosen.tile.begin(), chosen.tile.end()) - chosen.tile.begin();
  for (const int64_t elements : {1, 2, 4, 8, 16}) {
    Value each(chosen.tile.size(), 1);
    each[static_cast<size_t>(along)] = elements;
    to.add("register_tile", each);
  }
  to.add_all("unroll", {{1}, {2}, {4}, {8}, {16}, {32}});
}

void add_rows(const Kernel& kernel, Collector& to) {
  for (const int64_t lanes : {8, 16, 32, 64, 128, 256, 512, 1024}) {
    for (const int64_t rows : {1, 2, 4, 8}) {
      if (lanes * rows >= 32 && lanes * rows <= 1024) to.add("map_to_threads", {lanes, rows});
    }
  }
  to.add_all("unroll", {{1}, {2}, {4}, {8}, {16}});
  if (!kernel.in_memory.empty() || !kernel.in_shared.empty()) to.add_all("use_shared_memory", {{0}, {1}});
}

void add_scatter(Collector& to) {
  to.add_all("map_to_threads", {{64}, {128}, {256}, {512}, {1024}});
  to.add_all("use_shared_memory", {{0}, {1}});
}

void add_classic(Collector& to) {
  to.add_all("outer_schedule_options", {{0}, {1}, {2}});
  to.add_all("tile", {{1},
                      {4},
                      {8},
                      {16},
                      {32},
                      {64},
                      {1, 32},
                      {4, 32},
                      {8, 32},
                      {32, 32},
                      {16, 64},
                      {4, 8, 32},
                      {8, 8, 8},
                      {16, 16, 16},
                      {32, 32, 32}});
  to.add_all("map_to_threads", {{32}, {64}, {128}, {256}, {512}, {32, 4}, {32, 8}, {64, 4}, {16, 16}, {8, 8, 4}});
  to.add_all("map_to_blocks", {{64}, {256}, {1024}, {32, 32}, {256, 256}});
  to.add_all("use_private_memory", {{0}, {1}});
  to.add_all("use_shared_memory", {{0}, {1}});
}

bool names(const options::KernelOptions& address, const std::optional<Address>& kernel) {
  return kernel && is_about(address, *kernel);
}

/// What a search may try of one kernel.
void add_kernel(const Kernel& kernel, const std::vector<PlannedOptions>& planned, Collector& to) {
  switch (kernel.recipe) {
    case Recipe::kContraction:
      for (const PlannedOptions& one : planned) {
        if (kernel.address.writes.empty() || names(kernel.address, one.address)) add_contraction(one, to);
      }
      break;
    case Recipe::kElements:
      return add_elements(kernel.chosen, to);
    case Recipe::kRows:
      return add_rows(kernel, to);
    case Recipe::kScatter:
      return add_scatter(to);
    case Recipe::kHalo:
      return to.add("use_shared_memory", {0});
    case Recipe::kClassic:
      return add_classic(to);
  }
}

/// Fields of a kernel alone; the others are the def's.
bool is_of_kernels(const std::string& field) {
  bool found = false;
  const options::KernelOptions fields;
  options::visit_shared_fields(fields, [&](const char* name, const auto&) { found = found || field == name; });
  return found;
}

/// The same for a def whose kernels have addresses.
std::vector<Tunable> tunables_of_kernels(const ir::Program& program, const options::MappingOptions& options,
                                         const Device& device, const Mapping& mapping,
                                         const std::vector<PlannedOptions>& planned) {
  Collector of_def;
  std::vector<Tunable> result;
  for (const Kernel& kernel : mapping.kernels) {
    if (kernel.address.writes.empty()) continue;
    Collector collector(kernel.address);
    add_kernel(kernel, planned, collector);
    if (takes_recipes(options) && !options.strict) {
      const Tunable parts{"split_reduction", {}, kernel.address};
      if (map_program(program, with(options, parts, {2}), device)) {
        collector.add_all("split_reduction", {{1}, {2}, {4}, {8}, {16}, {32}});
      }
    }
    for (Tunable& t : collector.found) {
      const bool own = is_of_kernels(t.field);
      for (const Value& value : own ? std::vector<Value>{{}} : t.values) of_def.add(t.field, value);
      if (own) result.push_back(std::move(t));
    }
  }
  result.insert(result.begin(), of_def.found.begin(), of_def.found.end());
  return result;
}

/// Whether the device has room for the threads and blocks of the def and of each kernel.
bool fits(const options::MappingOptions& options, const Device& device) {
  return check_limits(options, device) && std::all_of(options.kernel.begin(), options.kernel.end(), [&](const auto& k) {
           return check_limits(options::overlaid(options, k), device).has_value();
         });
}

/// All combinations, or, of too many, every so many-th.
std::vector<options::MappingOptions> combinations(const std::vector<Tunable>& tunables,
                                                  const options::MappingOptions& options) {
  constexpr int64_t kMost = 64, kPrime = 7919;
  int64_t all = 1;
  for (const Tunable& t : tunables)
    all *= std::min<int64_t>(static_cast<int64_t>(t.values.size()), (INT64_MAX >> 1) / all);
  const int64_t count = std::min(all, kMost);
  std::vector<options::MappingOptions> result = {options};
  for (int64_t i = 1; i < count; ++i) {
    int64_t number = all <= kMost ? i : i * (all / kMost) + i * kPrime % (all / kMost);
    options::MappingOptions one = options;
    for (const Tunable& t : tunables) {
      const auto values = static_cast<int64_t>(t.values.size());
      one = with(one, t, t.values[static_cast<size_t>(number % values)]);
      number /= values;
    }
    result.push_back(std::move(one));
  }
  return result;
}

}  // namespace

options::MappingOptions with(options::MappingOptions options, const std::string& field, const Value& value) {
  bool known = false;
  options::visit_fields(options, [&](const char* name, auto& member) {
    if (field != name) return;
    assign(member, value);
    known = true;
  });
  TC_CHECK(known, "MappingOptions have no field '{}'", field);
  return options;
}

options::MappingOptions with(options::MappingOptions options, const Tunable& tunable, const Value& value) {
  if (tunable.of.writes.empty()) return with(std::move(options), tunable.field, value);
  auto at = std::find_if(options.kernel.begin(), options.kernel.end(), [&](const options::KernelOptions& kernel) {
    return kernel.writes == tunable.of.writes && kernel.occurrence == tunable.of.occurrence;
  });
  if (at == options.kernel.end()) {
    if (value.empty()) return options;
    at = options.kernel.insert(at, {.writes = tunable.of.writes, .occurrence = tunable.of.occurrence});
  }
  options::visit_shared_fields(*at, [&](const char* name, auto& member) {
    if (tunable.field == name) assign(member, value);
  });
  const options::KernelOptions empty{.writes = at->writes, .occurrence = at->occurrence};
  if (*at == empty) options.kernel.erase(at);
  return options;
}

Result<Mapping> map_program(const ir::Program& program, const options::MappingOptions& options, const Device& device,
                            bool element_aligned) {
  TC_TRY(before, prelude(program, options, device, element_aligned));
  return map(before.scop, before.options, device);
}

Result<std::vector<Tunable>> tunables(const ir::Program& program, const options::MappingOptions& options,
                                      const Device& device) {
  constexpr size_t kPlans = 64;
  TC_TRY(before, prelude(program, options, device));
  TC_TRY(mapping, map(before.scop, before.options, device));
  const std::vector<PlannedOptions> planned = contraction_options(before.scop, options, device, kPlans);
  const bool apart = has_addresses(mapping) && options.kernel.empty();
  Collector collector;
  if (apart) {
    collector.found = tunables_of_kernels(program, options, device, mapping, planned);
  } else {
    for (const PlannedOptions& one : planned) add_contraction(one, collector);
    for (const Kernel& kernel : mapping.kernels) {
      if (kernel.recipe != Recipe::kContraction) add_kernel(kernel, planned, collector);
    }
  }
  if (takes_recipes(options) && !options.strict) {
    collector.add("split_reduction", {});
    if (!apart) collector.add_all("split_reduction", {{1}, {2}, {4}, {8}, {16}, {32}});
    const options::MappingOptions parts = with(options, "split_reduction", {2});
    if (map_program(program, with(parts, "atomic_reduction", {1}), device)) {
      collector.add_all("atomic_reduction", {{0}, {1}});
    }
  }
  if (prepare(program, with(options, "copy_operands", {1}), device)) collector.add_all("copy_operands", {{0}, {1}});
  collector.add_all("use_readonly_cache", {{0}, {1}});
  if (takes_contractions(options) &&
      gather_rows(program, kGatheredBytes, is_contraction).statements.size() > program.statements.size()) {
    collector.add_all("max_gathered_memory", {{0}, {kGatheredBytes}});
  }
  std::erase_if(collector.found, [&](const Tunable& t) {  // what the caller has settled
    return with(options, t.field, {}) != options;
  });
  for (Tunable& t : collector.found) {
    std::erase_if(t.values, [&](const Value& value) { return !fits(with(options, t, value), device); });
  }
  return collector.found;
}

namespace {

/// Options of one kernel, and what the def is estimated to take with them.
struct KernelCandidate {
  options::KernelOptions options;
  double us = 0;
};

/// The best of a kernel while the others are by default, best first.
std::vector<KernelCandidate> top_of_kernel(const ir::Program& program, const options::MappingOptions& options,
                                           const Device& device, const options::KernelOptions& address) {
  constexpr size_t kPlans = 8, kPlansInParts = 2, kMost = 12;
  std::vector<KernelCandidate> result;
  for (const int64_t parts : {1, 2, 4, 8}) {
    const options::MappingOptions split = with(options, Tunable{"split_reduction", {}, address}, {parts});
    const Result<Prelude> before = prelude(program, split, device);
    if (!before) continue;
    for (const PlannedOptions& one :
         contraction_options(before->scop, split, device, parts > 1 ? kPlansInParts : kPlans)) {
      if (!names(address, one.address)) continue;
      for (const options::MappingOptions& chosen : one.best) {
        options::KernelOptions kernel = options::kernel_part_of(chosen);
        kernel.writes = address.writes;
        kernel.occurrence = address.occurrence;
        kernel.split_reduction = parts;
        options::MappingOptions all = options;
        all.kernel = {kernel};
        if (const auto mapping = map_program(program, all, device)) result.push_back({kernel, estimated_us(*mapping)});
      }
    }
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.us < b.us; });
  if (result.size() > kMost) result.resize(kMost);
  return result;
}

/// Combinations of kernels' best, by the sum of what they save.
std::vector<options::MappingOptions> combined(const options::MappingOptions& options,
                                              const std::vector<std::vector<KernelCandidate>>& kernels, size_t count) {
  std::vector<std::pair<double, options::MappingOptions>> all = {{0, options}};
  for (const std::vector<KernelCandidate>& candidates : kernels) {
    std::vector<std::pair<double, options::MappingOptions>> longer;
    for (const auto& [us, before] : all) {
      for (const KernelCandidate& candidate : candidates) {
        longer.emplace_back(us + candidate.us, before);
        longer.back().second.kernel.push_back(candidate.options);
      }
    }
    if (longer.empty()) continue;
    std::stable_sort(longer.begin(), longer.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    if (longer.size() > count) longer.resize(count);
    all = std::move(longer);
  }
  std::vector<options::MappingOptions> result;
  for (auto& [us, one] : all) result.push_back(std::move(one));
  return result;
}

}  // namespace

Result<std::vector<Candidate>> top(const ir::Program& program, const options::MappingOptions& options,
                                   const Device& device, size_t count) {
  std::vector<options::MappingOptions> all = {options};
  for (const int64_t parts : {1, 2, 4, 8, 16}) {
    if (options.split_reduction && *options.split_reduction != parts) continue;
    const options::MappingOptions split = with(options, "split_reduction", {parts});
    const Result<Prelude> before = prelude(program, split, device);
    if (!before) continue;
    for (const PlannedOptions& one : contraction_options(before->scop, split, device, count)) {
      for (const options::MappingOptions& chosen : one.best) all.push_back(following(split, chosen));
    }
  }
  const Result<Mapping> by_default = map_program(program, options, device);
  if (by_default && has_addresses(*by_default) && options.kernel.empty()) {
    std::vector<std::vector<KernelCandidate>> kernels;
    options::MappingOptions common = options;  // a device that copies no operands by itself has these kernels, too
    if (!by_default->kernels.empty()) common.copy_operands = by_default->kernels[0].chosen.copy_operands;
    for (const Kernel& kernel : by_default->kernels) {
      if (kernel.recipe != Recipe::kContraction || kernel.address.writes.empty()) continue;
      kernels.push_back(top_of_kernel(program, common, device, kernel.address));
    }
    for (options::MappingOptions& one : combined(common, kernels, count)) {
      if (!one.kernel.empty()) all.push_back(std::move(one));
    }
  }
  if (all.size() == 1) {
    TC_TRY(open, tunables(program, options, device));
    std::erase_if(open, [](const Tunable& t) { return t.field == "use_readonly_cache"; });  // not in the estimate
    all = combinations(open, options);
  }
  std::vector<Candidate> found;
  for (const options::MappingOptions& one : all) {
    const Result<Mapping> mapping = map_program(program, one, device);
    if (mapping) found.push_back({one, estimated_us(*mapping)});
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.us < b.us; });
  if (found.size() > count) found.resize(count);
  return found;
}

}  // namespace tc::gpu
