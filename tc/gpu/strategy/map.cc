#include "tc/gpu/strategy/map.h"

#include <algorithm>
#include <map>
#include <set>

#include "tc/gpu/cost/estimate.h"
#include "tc/gpu/lower/declare_tensors.h"
#include "tc/gpu/lower/element_moves.h"
#include "tc/gpu/lower/translate.h"
#include "tc/gpu/mapping/fused_group.h"
#include "tc/gpu/mapping/limits.h"
#include "tc/gpu/rewrite/kernel_options.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/choose_rows.h"
#include "tc/gpu/strategy/classic/classic.h"
#include "tc/gpu/strategy/contraction/kernel.h"
#include "tc/gpu/strategy/contraction/sharing.h"
#include "tc/gpu/strategy/elements/pointwise.h"
#include "tc/gpu/strategy/expected.h"
#include "tc/gpu/strategy/fuse_halos.h"
#include "tc/gpu/strategy/loop_choices.h"
#include "tc/gpu/strategy/prepare.h"
#include "tc/gpu/strategy/scatter/atomic_scatter.h"
#include "tc/gpu/strategy/scatter/atomic_sums.h"
#include "tc/gpu/strategy/scatter/fill.h"
#include "tc/gpu/strategy/schedule_pieces.h"
#include "tc/gpu/verbs/fission.h"
#include "tc/gpu/verbs/partition_launches.h"
#include "tc/poly/band_ref.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/restricted.h"
#include "tc/poly/schedule.h"
#include "tc/support/identifier.h"
#include "tc/support/write_log.h"
#include "tc/tile/promise.h"
#include "tc/tile/shared_divisors.h"

namespace tc::gpu {
namespace {

std::string kernel_name(const poly::Scop& scop, size_t number) {
  return fmt::format("{}_{}", identifier_of(scop.program->name), number);
}

/// Which launches run each statement, and which of its instances.
std::map<std::string, std::vector<std::pair<int, isl::set>>> launches_of_statements(
    const std::vector<Kernel>& kernels) {
  std::map<std::string, std::vector<std::pair<int, isl::set>>> result;
  for (size_t k = 0; k < kernels.size(); ++k) {
    for (const isl::set& set : poly::sets_of(poly::node_domain(kernels[k].scop.schedule.root()))) {
      result[poly::tuple_name(set)].emplace_back(static_cast<int>(k), set);
    }
  }
  return result;
}

/// The first statement of a launch that reduces, or the first of all that is no initialisation.
std::string anchor_of(const poly::Scop& part) {
  const std::vector<std::string> runs = poly::statements_at(part, part.schedule.root());
  std::string first;
  for (const poly::Statement& s : part.statements) {
    if (std::count(runs.begin(), runs.end(), s.id) == 0) continue;
    if (std::count(s.is_reduction.begin(), s.is_reduction.end(), true) > 0) return s.id;
    if (first.empty() && s.kind != poly::Statement::Kind::kInit) first = s.id;
  }
  return first;
}

/// For the log.
const char* text_of(Recipe recipe) {
  switch (recipe) {
    case Recipe::kContraction:
      return "a contraction";
    case Recipe::kElements:
      return "a thread for each element";
    case Recipe::kRows:
      return "threads together on each row";
    case Recipe::kScatter:
      return "atomic updates where data say";
    case Recipe::kHalo:
      return "tiles that overlap, stage after stage";
    case Recipe::kClassic:
      return "the classic mapping";
  }
  return "";
}

/// What has been mapped so far, and which launches go backwards.
struct Progress {
  Mapping mapping;
  std::set<size_t> backwards;
};

Launch launch_of(const poly::Scop& part, tile::Kernel code, Recipe recipe, options::MappingOptions chosen) {
  Kernel kernel;
  kernel.scop = part;
  kernel.grid = code.grid;
  kernel.block = code.block;
  kernel.recipe = recipe;
  kernel.chosen = std::move(chosen);
  return {std::move(kernel), std::move(code)};
}

/// Whether a part should go through its elements from the end: if the last launch before that had a large tensor in
/// hand which the part reads went through it from the beginning.
bool should_go_backwards(const FusedGroup& part, const Progress& before) {
  constexpr int64_t kCachedBytes = int64_t{16} << 20;
  const ir::Program& program = *part.scop->program;
  for (size_t k = before.mapping.kernels.size(); k-- > 0;) {
    for (const tile::Tensor& tensor : before.mapping.program.kernels[k].tensors) {
      if (tensor.elements() * tensor.type.bytes() < kCachedBytes) continue;
      const bool is_read = std::any_of(part.statements.begin(), part.statements.end(), [&](const GroupStatement& s) {
        const auto reads = ir::reads_in(program, s.statement->value);
        return std::any_of(reads.begin(), reads.end(), [&](const auto* call) { return call->name == tensor.name; });
      });
      if (is_read) return before.backwards.count(k) == 0;
    }
  }
  return false;
}

/// Of the options' reasons and the part's, the one that a recipe has added.
void add_unfit(Recipe recipe, const Reasons& before, const Reasons& after, std::vector<Unfit>& unfit) {
  if (after.options.size() > before.options.size()) unfit.push_back({recipe, after.options.back()});
  if (after.part.size() > before.part.size()) unfit.push_back({recipe, after.part.back()});
}

bool chooses_sizes(const options::MappingOptions& options) {
  return !options.tile.empty() || !options.register_tile.empty() || !options.map_to_threads.empty();
}

Launch launch_of_elements(const poly::Scop& scop, const FusedGroup& part, const ElementsPlan& plan,
                          const options::MappingOptions& options, const Device& device, const std::string& name) {
  const options::MappingOptions chosen = options_of(plan, part);
  Launch launch = launch_of(scop, pointwise(part, plan, device, name), Recipe::kElements, following(options, chosen));
  launch.kernel.loops = loops_of(part, chosen);
  launch.backwards = plan.backwards;
  return launch;
}

/// The fastest launch, by estimate, with a thread for each element or vector that reads its operands from anywhere.
std::optional<Launch> by_elements_read_apart(const poly::Scop& scop, const FusedGroup& part,
                                             const options::MappingOptions& options, const Device& device,
                                             const std::string& name) {
  std::optional<Launch> best;
  double best_us = 0;
  for (const ElementsPlan& plan : plans_with_reads_apart(part, options, device)) {
    Launch launch = launch_of_elements(scop, part, plan, options, device, name);
    const double us = estimate(launch.code, device).us;
    if (best && us >= best_us) continue;
    best = std::move(launch);
    best_us = us;
  }
  return best;
}

/// A launch whose threads read their operands from anywhere: a thread for each element, or, where a part has none, as
/// sums to one number, threads together on each row.
std::optional<Launch> read_apart(const poly::Scop& scop, const FusedGroup& part, const options::MappingOptions& options,
                                 const Device& device, const std::string& name) {
  if (auto elements = by_elements_read_apart(scop, part, options, device, name)) return elements;
  if (options.strict || !part.members.empty()) return std::nullopt;
  return rows_read_apart(scop, part, options, device, name);
}

/// The part by the first recipe that fits it and does as the options say; else why there is none. `unfit` gets those
/// that do not fit.
std::optional<Launch> by_recipe(const poly::Scop& scop, const options::MappingOptions& options, const Device& device,
                                const std::string& name, const Progress& before, Reasons& reasons,
                                std::vector<Unfit>& unfit) {
  if (!takes_recipes(options)) {
    unfit.push_back({Recipe::kElements, "the options choose loops that only 'classic' makes"});
    return std::nullopt;
  }
  if (options.shared_depth) {
    reasons.options.push_back("'shared_depth' asks for a contraction or the classic mapping");
    return std::nullopt;
  }
  if (const std::optional<FusedGroup> part = fused_group_of(scop)) {
    Reasons known = reasons;
    if (auto plan = plan_elements(*part, options, device, reasons)) {
      plan->backwards = should_go_backwards(*part, before);
      return launch_of_elements(scop, *part, *plan, options, device, name);
    }
    add_unfit(Recipe::kElements, known, reasons, unfit);
    known = reasons;
    if (!options.strict) {
      if (auto rows = choose_rows(scop, *part, options, device, name, reasons)) return std::move(rows->launch);
    }
    add_unfit(Recipe::kRows, known, reasons, unfit);
    if (!options.tile.empty() || !options.register_tile.empty()) {
      if (auto apart = read_apart(scop, *part, options, device, name)) return apart;
    }
  } else {
    unfit.push_back({Recipe::kElements, "its loops are not over whole boxes, or data choose what it writes"});
  }
  if (const auto plan = plan_scatter(scop, options, device, reasons)) {
    return launch_of(scop, atomic_scatter(scop, *plan, name), Recipe::kScatter, following(options, options_of(*plan)));
  }
  return std::nullopt;
}

/// The launch, or one whose threads read from anywhere, where that takes clearly less time: short reductions, and
/// operands that caches hold.
Launch or_read_apart(Launch launch, const poly::Scop& scop, const options::MappingOptions& options,
                     const Device& device, const std::string& name) {
  constexpr double kClearly = 0.8, kWell = 2;
  const bool may_be_slow = launch.kernel.recipe == Recipe::kRows || launch.kernel.recipe == Recipe::kClassic;
  if (!may_be_slow || !takes_recipes(options) || options.shared_depth || chooses_sizes(options)) return launch;
  const Estimate known = estimate(launch.code, device, {.in_passes = launch.kernel.in_memory});
  if (known.us < kWell * std::max({known.memory_us, known.compute_us, 1.0})) return launch;
  const std::optional<FusedGroup> part = fused_group_of(scop);
  if (!part) return launch;
  std::optional<Launch> other = read_apart(scop, *part, options, device, name);
  const bool is_faster = other && estimate(other->code, device).us < kClearly * known.us;
  return is_faster ? *std::move(other) : std::move(launch);
}

/// The launches of one part: itself, or, where that lets recipes fit, its statements apart.
Result<std::vector<poly::Scop>> launches_of(const poly::Scop& part, const options::MappingOptions& of_def,
                                            const Device& device) {
  const auto own = [&](const poly::Scop& scop) { return options_at(*scop.program, anchor_of(scop), of_def); };
  const auto fits = [&](const poly::Scop& scop) {
    Reasons reasons;
    std::vector<Unfit> unfit;
    return by_recipe(scop, own(scop), device, "", {}, reasons, unfit).has_value();
  };
  const options::MappingOptions options = own(part);
  const bool may_separate = takes_recipes(options) && !options.shared_depth && !options.outer_schedule_options.fusion;
  if (!may_separate || fits(part)) return std::vector<poly::Scop>{part};
  // What is little work takes long where one thread does it, and no recipe does, whatever sizes the options have.
  const auto takes_long = [&] {
    constexpr double kLaunchesUs = 10;
    Reasons reasons;
    std::vector<Unfit> unfit;
    const options::MappingOptions of_any_size = without_sizes(options);
    return !by_recipe(part, of_any_size, device, "", {}, reasons, unfit) &&
           estimate(classic(part, of_any_size, device, "").code, device).us > kLaunchesUs;
  };
  const bool is_worth = options.split_reduction.value_or(1) > 1 || is_worth_launches(part, device) ||
                        waits_for_updates(part) || takes_long();
  if (is_worth) {
    TC_TRY(apart, fission(part, options.outer_schedule_options, fits));
    if (!apart.empty()) return apart;
  }
  return std::vector<poly::Scop>{part};
}

Result<void> add_scheduled(Progress& done, const poly::Scop& scheduled, const options::MappingOptions& of_def,
                           const Device& device, Reasons& reasons) {
  for (const poly::Scop& part : partition_launches(scheduled)) {
    TC_TRY(launches, launches_of(part, of_def, device));
    for (const poly::Scop& one : launches) {
      Mapping& mapping = done.mapping;
      const std::string name = kernel_name(scheduled, mapping.kernels.size());
      const std::string anchor = anchor_of(one);
      const options::MappingOptions options = options_at(*one.program, anchor, of_def);
      std::vector<Unfit> unfit;
      std::optional<Launch> launch = by_recipe(one, options, device, name, done, reasons, unfit);
      // Options of a scatter say as much as threads alone.
      if (!launch && takes_recipes(options) && !options.shared_depth && !options.map_to_threads.empty()) {
        if (const auto part = fused_group_of(one)) launch = read_apart(one, *part, options, device, name);
      }
      if (!launch) {
        for (const Unfit& other : unfit) TC_LOG(kDetail, "kernel {}: no recipe: {}", name, other.reason);
        launch = classic(one, options, device, name);
        launch->kernel.loops = loops_of(one, launch->kernel);
      }
      launch = or_read_apart(*std::move(launch), one, options, device, name);
      launch->kernel.anchor = anchor;
      launch->kernel.unfit = std::move(unfit);
      launch->kernel.separated = launches.size() > 1;
      if (launch->backwards) done.backwards.insert(mapping.kernels.size());
      mapping.program.kernels.push_back(std::move(launch->code));
      mapping.kernels.push_back(std::move(launch->kernel));
    }
  }
  return {};
}

void add_contraction(Mapping& mapping, const poly::Scop& scop, const Piece& piece,
                     const options::MappingOptions& of_def, const Device& device) {
  const std::string name = kernel_name(scop, mapping.kernels.size());
  poly::Scop part = scop;
  part.schedule = piece.scop.schedule;
  const size_t largest = largest_product(*piece.contraction);
  const ContractionPlan& plan = piece.plans[largest];
  const Contraction& product = largest == 0 ? *piece.contraction : piece.contraction->further[largest - 1];
  const bool is_copy = product.update.assign == ir::Assign::kSet;
  options::MappingOptions options =
      options_at(*scop.program, product.update.id, is_copy ? without_sizes(of_def) : of_def);
  if (piece.is_rest) options = without_sizes(std::move(options));
  tile::Kernel code = piece.chain ? chain_kernel(scop, piece.chain->chain, piece.chain->plan, name)
                                  : contraction_kernel(scop, *piece.contraction, piece.plans, name);
  Launch launch = launch_of(part, std::move(code), Recipe::kContraction, following(options, options_of(plan)));
  if (piece.chain) {
    launch.kernel.chosen.chain = true;
    launch.kernel.chosen.split_reduction = 1;  // no product of a chain is in parts
    if (const std::optional<bool> shared = stays_in_shared_memory(piece.chain->plan)) {
      (*shared ? launch.kernel.chosen.use_shared_memory : launch.kernel.chosen.use_private_memory) = true;
    }
    for (const ChainLink& link : piece.chain->chain.links) {
      if (!link.streamed) launch.kernel.in_shared.insert(link.tensor);
    }
  } else if (options.chain.value_or(false)) {
    launch.kernel.chosen.chain.reset();  // others have one
  }
  launch.kernel.chosen.split_results = piece.split_results;
  launch.kernel.is_rest = piece.is_rest;
  launch.kernel.anchor = product.update.id;
  launch.kernel.loops = loops_of(*piece.contraction, plan);
  launch.kernel.selects_slices = piece.contraction->selection.has_value();
  const std::vector<ContractionPlan>& plans = piece.chain ? piece.chain->plan.plans : piece.plans;
  for (const ContractionPlan& plan : plans) launch.kernel.planned_us += plan.cycles / (1e3 * device.gigahertz);
  mapping.program.kernels.push_back(std::move(launch.code));
  mapping.kernels.push_back(std::move(launch.kernel));
}

/// Some statements as launches of their own.
Result<Mapping> mapped_alone(const poly::Scop& scop, const std::vector<std::string>& statements,
                             const options::MappingOptions& options, const Device& device) {
  Progress done;
  if (statements.empty()) return std::move(done.mapping);
  TC_TRY(scheduled, poly::schedule(poly::restricted(scop, statements), options.outer_schedule_options));
  poly::Scop part = scop;
  part.schedule = scheduled.schedule;
  Reasons reasons;
  TC_TRY_VOID(add_scheduled(done, part, options, device, reasons));
  return std::move(done.mapping);
}

void add_estimates(Mapping& mapping, const Device& device) {
  mapping.estimates.clear();
  for (size_t k = 0; k < mapping.kernels.size(); ++k) {
    mapping.estimates.push_back(estimate(mapping.program.kernels[k], device, expected_of(mapping.kernels[k])));
  }
}

/// Lets the last launch so far prepare the results of atomic sums; false if it touches them, or they are not just set
/// to identities.
bool fill_before(Mapping& mapping, const AtomicSums& sums, const poly::Scop& scop) {
  if (mapping.kernels.empty() || sums.before.empty()) return false;
  tile::Kernel& code = mapping.program.kernels.back();
  for (const std::string& id : sums.before) {
    const std::string& filled = scop.statement(id).tensor;
    const bool touched = std::any_of(code.tensors.begin(), code.tensors.end(),
                                     [&](const tile::Tensor& tensor) { return tensor.name == filled; });
    if (touched) return false;
  }
  std::optional<tile::Kernel> filled = with_fills(code, sums.before, scop);
  if (!filled) return false;
  code = std::move(*filled);
  poly::Scop& part = mapping.kernels.back().scop;
  part.schedule = poly::sequence(poly::restricted(scop, sums.before).schedule, part.schedule);
  return true;
}

/// The same with a pair of launches as AtomicSums says.
Result<Mapping> with_atomic_sums(const Mapping& mapping, const AtomicSums& sums, const poly::Scop& scop,
                                 const options::MappingOptions& options, const Device& device) {
  Mapping result;
  const auto add = [&](const Kernel& kernel, tile::Kernel code) {
    code.name = kernel_name(scop, result.kernels.size());
    result.kernels.push_back(kernel);
    result.program.kernels.push_back(std::move(code));
  };
  const auto add_alone = [&](const std::vector<std::string>& statements) -> Result<void> {
    TC_TRY(alone, mapped_alone(scop, statements, options, device));
    for (size_t k = 0; k < alone.kernels.size(); ++k) add(alone.kernels[k], alone.program.kernels[k]);
    return {};
  };
  result.program.name = mapping.program.name;
  for (size_t k = 0; k < mapping.kernels.size(); ++k) {
    Kernel kernel = mapping.kernels[k];
    const tile::Kernel& code = mapping.program.kernels[k];
    if (k == sums.last) {
      TC_TRY_VOID(add_alone(sums.after));
    } else if (k == sums.parts) {
      if (!fill_before(result, sums, scop)) TC_TRY_VOID(add_alone(sums.before));
      std::vector<std::string> together;
      for (const PartialSum& sum : sums.sums) together.push_back(sum.together);
      kernel.scop.schedule = poly::sequence(kernel.scop.schedule, poly::restricted(scop, together).schedule);
      kernel.chosen.atomic_reduction = true;
      add(kernel, with_updates(code, sums, *scop.program));
    } else {
      add(kernel, code);
    }
  }
  add_estimates(result, device);
  return result;
}

/// Whether some of the partial results are those of a product's tiles: reductions of its results, not its own.
bool are_of_tiles(const Mapping& mapping, const AtomicSums& sums, const poly::Scop& scop) {
  const Kernel& kernel = mapping.kernels[sums.parts];
  return kernel.recipe == Recipe::kContraction &&
         std::any_of(sums.sums.begin(), sums.sums.end(),
                     [&](const PartialSum& sum) { return sum.partial != scop.statement(kernel.anchor).tensor; });
}

bool stores_boxes(const tile::Kernel& kernel) {
  bool found = false;
  tile::for_each_node(kernel.body, [&](const tile::Node& node) { found |= tile::box_store_of(node) != nullptr; });
  return found;
}

/// Lets blocks update results themselves where the options ask for it, or, if they are silent, where that is estimated
/// to be worth results that differ in their last bits from run to run. Those of reductions in tiles never do by
/// default.
Result<Mapping> update_by_atomics(Mapping mapping, const poly::Scop& scop, const options::MappingOptions& options,
                                  const options::MappingOptions& others, const Device& device) {
  constexpr double kShare = 0.05, kLeastUs = 2;  // of what estimates tell apart
  constexpr double kExactUs = 0.5;               // where results do not depend on the order
  add_estimates(mapping, device);
  bool any = false;
  for (size_t last = 0; !options.strict && options.atomic_reduction.value_or(true) && last < mapping.kernels.size();) {
    const std::optional<AtomicSums> sums = find_atomic_sums(scop, mapping.kernels, mapping.program.kernels, last);
    ++last;
    // Boxes store partial results as they are.
    if (!sums || stores_boxes(mapping.program.kernels[sums->parts])) continue;
    const bool exact = is_exact(*sums, *scop.program);
    if (!exact && !options.atomic_reduction && are_of_tiles(mapping, *sums, scop)) continue;
    TC_TRY(changed, with_atomic_sums(mapping, *sums, scop, others, device));
    const double saved = estimated_us(mapping) - estimated_us(changed);
    const double least = exact ? kExactUs : std::max(kLeastUs, kShare * estimated_us(mapping));
    if (!options.atomic_reduction && saved < least) continue;
    mapping = std::move(changed);
    any = true;
    last = 0;
  }
  if (options.atomic_reduction.value_or(false) && !any) {
    return fail("'atomic_reduction' is true, but {}",
                options.strict ? "sums of strict kernels keep their order"
                               : "no launch combines partial results that a recipe's launch stores");
  }
  return mapping;
}

/// Into how many parts the reduction of a kernel's anchor was cut; 1: it was not.
int64_t parts_of(const ir::Program& program, const std::string& anchor) {
  for (const ir::Statement& s : program.statements) {
    if (s.id + "_parts" == anchor && !s.indices.empty()) return extent_of(s.indices.back());
  }
  return 1;
}

/// Gives kernels the names by which options address them, with an occurrence where several have one tensor.
void name_kernels(const ir::Program& program, std::vector<Kernel>& kernels) {
  std::map<std::string, int> kernels_of;
  std::vector<std::optional<Address>> addresses;
  for (const Kernel& kernel : kernels) {
    addresses.push_back(kernel.is_rest ? std::nullopt : address_of(program, kernel.anchor));
    if (addresses.back()) ++kernels_of[addresses.back()->writes];
  }
  const bool several = std::count_if(addresses.begin(), addresses.end(), [](const auto& a) { return a; }) > 1;
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (!addresses[k]) continue;
    kernels[k].address.writes = addresses[k]->writes;
    if (kernels_of[addresses[k]->writes] > 1) kernels[k].address.occurrence = addresses[k]->occurrence;
    const int64_t parts = parts_of(program, kernels[k].anchor);
    if (several && parts > 1) kernels[k].chosen.split_reduction = parts;
  }
}

/// Each address is that of one kernel, which follows its options.
Result<void> check_addresses(const ir::Program& program, const options::MappingOptions& options,
                             const std::vector<Kernel>& kernels, const std::map<std::string, std::string>& refused) {
  std::vector<std::string> known;
  for (const Kernel& kernel : kernels) {
    if (!kernel.address.writes.empty()) known.push_back(options::address_text(kernel.address));
  }
  for (const options::KernelOptions& wanted : options.kernel) {
    std::vector<const Kernel*> found;
    for (const Kernel& kernel : kernels) {
      const std::optional<Address> address = address_of(program, kernel.anchor);
      if (address && !kernel.is_rest && is_about(wanted, *address)) found.push_back(&kernel);
    }
    if (found.empty()) {
      std::string why;
      for (const auto& [id, reason] : refused) {
        const std::optional<Address> address = address_of(program, id);
        if (address && is_about(wanted, *address)) why = ": " + reason;
      }
      return fail("options are about the kernel {}, but there is none{}; there are {}", options::address_text(wanted),
                  why, fmt::join(known, ", "));
    }
    if (found.size() > 1) {
      return fail("options are about the kernel {}, but there are several: {}", options::address_text(wanted),
                  fmt::join(known, ", "));
    }
    const auto reason = refused.find(found[0]->anchor);
    const std::string unfit = found[0]->unfit.empty() ? "" : found[0]->unfit.front().reason;
    TC_TRY_VOID(check_followed(wanted, *found[0], reason == refused.end() ? unfit : reason->second));
  }
  return {};
}

Result<Mapping> map_within_budget(const Pieces& cut, const poly::Scop& scop, const options::MappingOptions& options,
                                  const Device& device) {
  Progress done;
  Mapping& mapping = done.mapping;
  mapping.program.name = scop.program->name;
  Reasons reasons = cut.reasons;
  // Sizes and copies are those of the contractions, where there are any.
  const bool any_contraction =
      std::any_of(cut.pieces.begin(), cut.pieces.end(), [](const Piece& p) { return p.contraction.has_value(); });
  const options::MappingOptions others = any_contraction ? without_sizes(options) : options;
  for (const Piece& piece : cut.pieces) {
    if (piece.contraction) {
      add_contraction(mapping, scop, piece, options, device);
      continue;
    }
    poly::Scop part = scop;
    part.schedule = piece.scop.schedule;
    TC_TRY_VOID(add_scheduled(done, part, others, device, reasons));
  }
  mapping = fuse_halos(std::move(mapping), scop, options, device);
  TC_TRY_VOID(check_followed(options, mapping.kernels, reasons));
  name_kernels(*scop.program, mapping.kernels);
  TC_TRY_VOID(check_addresses(*scop.program, options, mapping.kernels, cut.refused));
  TC_TRY(updated, update_by_atomics(std::move(mapping), scop, options, others, device));
  mapping = std::move(updated);
  name_kernels(*scop.program, mapping.kernels);
  for (size_t k = 0; k < mapping.kernels.size(); ++k) {
    TC_LOG(kDetail, "kernel {}: {}, {:.2f} us by estimate", mapping.program.kernels[k].name,
           text_of(mapping.kernels[k].recipe), mapping.estimates[k].us);
  }
  mapping.edges = edges_between(scop, mapping.kernels);
  return std::move(mapping);
}

}  // namespace

double estimated_us(const Mapping& mapping) {
  double us = 0;
  for (const Estimate& estimate : mapping.estimates) us += estimate.us;
  return us;
}

std::vector<Edge> edges_between(const poly::Scop& scop, const std::vector<Kernel>& kernels) {
  const auto launches = launches_of_statements(kernels);
  std::vector<Edge> edges;
  for (const isl::map& flow : poly::maps_of(scop.dependences.flow)) {
    const auto from = launches.find(poly::domain_name(flow)), to = launches.find(poly::range_name(flow));
    if (from == launches.end() || to == launches.end()) continue;
    const bool is_shared = from->second.size() > 1 || to->second.size() > 1;  // by launches for parts of a range
    for (const auto& [maker, made] : from->second) {
      for (const auto& [reader, read] : to->second) {
        if (maker == reader || (is_shared && flow.intersect_domain(made).intersect_range(read).is_empty())) continue;
        const Edge edge{scop.statement(from->first).tensor, maker, reader};
        if (std::find(edges.begin(), edges.end(), edge) == edges.end()) edges.push_back(edge);
      }
    }
  }
  return edges;
}

std::vector<tile::Tensor> workspace_of(const poly::Scop& scop, const std::vector<tile::Kernel>& kernels) {
  std::vector<tile::Tensor> result;
  for (const ir::Tensor& tensor : scop.program->tensors) {
    if (tensor.role != ir::Role::kTemporary) continue;
    const bool used = std::any_of(kernels.begin(), kernels.end(), [&](const tile::Kernel& kernel) {
      return std::any_of(kernel.tensors.begin(), kernel.tensors.end(),
                         [&](const tile::Tensor& t) { return t.name == tensor.name; });
    });
    if (used) result.push_back(global_tensor(tensor, true));
  }
  return result;
}

static std::set<std::string> tensors_at_any_address(const ir::Program& program) {
  std::set<std::string> result;
  for (const ir::Tensor& tensor : program.tensors) {
    if (tensor.at_any_address) result.insert(tensor.name);
  }
  return result;
}

Result<Mapping> map_pieces(const Pieces& pieces, const poly::Scop& scop, const options::MappingOptions& options,
                           const Device& device) {
  return poly::within_budget(*scop.context, [&] { return map_within_budget(pieces, scop, options, device); });
}

Result<Mapping> lower(Mapping mapping, const poly::Scop& scop, const options::MappingOptions& options,
                      const Device& device) {
  return poly::within_budget(*scop.context, [&]() -> Result<Mapping> {
    mapping.program.workspace = workspace_of(scop, mapping.program.kernels);
    mapping.program = element_moves(std::move(mapping.program), tensors_at_any_address(*scop.program));
    mapping.program = tile::share_divisors(std::move(mapping.program), options.strict);
    mapping.program =
        tile::promise(std::move(mapping.program), {.readonly_cache = options.use_readonly_cache.value_or(true),
                                                   .processors = processors_that_start_early(device)});
    return std::move(mapping);
  });
}

Result<Mapping> map(const poly::Scop& scop, const options::MappingOptions& options, const Device& device) {
  TC_TRY(pieces, schedule_pieces(scop, options, device));
  TC_TRY(mapping, map_pieces(pieces, scop, options, device));
  return lower(std::move(mapping), scop, options, device);
}

namespace {

/// The options as text, on one line.
std::string options_line(const options::MappingOptions& options, const char* whose = "options") {
  std::string line;
  for (const char c : options::to_text(options)) {
    const bool space = c == '\n' || c == ' ';
    if (!space || (!line.empty() && line.back() != ' ')) line += space ? ' ' : c;
  }
  if (line.empty()) return line;
  line.pop_back();
  return fmt::format("{}: {}\n", whose, line);
}

}  // namespace

bool has_addresses(const Mapping& mapping) {
  return std::count_if(mapping.kernels.begin(), mapping.kernels.end(),
                       [](const Kernel& kernel) { return !kernel.address.writes.empty(); }) > 1;
}

options::MappingOptions options_for(const Mapping& mapping, size_t kernel) {
  const Kernel& of = mapping.kernels[kernel];
  if (!has_addresses(mapping)) return of.chosen;
  options::MappingOptions options = options::def_part_of(of.chosen);
  if (of.address.writes.empty()) return options;
  options::KernelOptions own = options::kernel_part_of(of.chosen);
  own.writes = of.address.writes;
  own.occurrence = of.address.occurrence;
  options.kernel = {std::move(own)};
  return options;
}

std::string report(const Mapping& mapping) {
  std::string text;
  for (size_t k = 0; k < mapping.kernels.size(); ++k) {
    const Kernel& kernel = mapping.kernels[k];
    const int barriers = count_barriers(mapping.program.kernels[k]);
    const std::vector<std::string> runs = poly::statements_at(kernel.scop, kernel.scop.schedule.root());
    const tile::Kernel& code = mapping.program.kernels[k];
    const std::string cluster =
        code.cluster_blocks() > 1 ? fmt::format("cluster ({}), ", fmt::join(code.cluster, ", ")) : "";
    text += fmt::format("kernel {}: grid ({}), {}block ({}), {} barrier{}, runs {}\n", code.name,
                        fmt::join(kernel.grid, ", "), cluster, fmt::join(kernel.block, ", "), barriers,
                        barriers == 1 ? "" : "s", fmt::join(runs, ", "));
    const Estimate& e = mapping.estimates[k];
    text += fmt::format(
        "  estimate: {:.3g} us, limited by {}; {:.3g} MB of memory, {:.3g} MFLOP, {:.2g} waves, {:.0f} % of "
        "the threads\n",
        e.us, e.limit(), e.bytes / 1e6, e.operations / 1e6, e.waves, 100 * e.occupancy);
    options::MappingOptions options = options_for(mapping, k);
    if (has_addresses(mapping)) options = {.kernel = std::move(options.kernel)};
    text += options_line(options, "  options");
  }
  if (has_addresses(mapping)) text += options_line(options::def_part_of(mapping.kernels[0].chosen), "options of all");
  for (const Edge& edge : mapping.edges) {
    text += fmt::format("edge {}: {} to {}, through global memory\n", edge.tensor,
                        mapping.program.kernels[static_cast<size_t>(edge.from)].name,
                        mapping.program.kernels[static_cast<size_t>(edge.to)].name);
  }
  return text;
}

}  // namespace tc::gpu
