#include "tc/api/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tc/api/explain_of.h"
#include "tc/api/request.h"
#include "tc/compile/cached.h"
#include "tc/compile/strategy_options.h"
#include "tc/cpu/explain.h"
#include "tc/cuda/print.h"
#include "tc/gpu/lower/declare_tensors.h"
#include "tc/gpu/strategy/explain.h"
#include "tc/gpu/strategy/tree_text.h"
#include "tc/ir/canonical.h"
#include "tc/ir/expr_text.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/print.h"
#include "tc/poly/band_ref.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/print.h"
#include "tc/poly/promote.h"
#include "tc/support/check.h"
#include "tc/support/result.h"

namespace tc::api {

using options::Backend;

namespace {

const char* backend_name(Backend backend) {
  return backend == Backend::kCpu ? "cpu" : backend == Backend::kCuda ? "cuda" : "sim";
}

/// A text on one line.
std::string in_a_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_blank = c == '\n' || c == ' ' || c == '\t' || c == '\r';
    if (!is_blank || (!line.empty() && line.back() != ' ')) line += is_blank ? ' ' : c;
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

int64_t value_of(const Halide::Expr& expr) {
  const std::optional<int64_t> value = expr.defined() ? ir::constant_value(expr) : std::nullopt;
  TC_CHECK(value, "the end of a range, {}, is no number", ir::to_text(expr));
  return *value;
}

/// Puts an explanation together from a compilation that has run the passes it speaks of.
class Maker {
 public:
  Maker(const compile::Settings& settings, const compile::Compilation& compilation)
      : settings_(settings), c_(compilation) {}

  Explanation take() { return std::move(e_); }

  void add_problem() {
    const ir::Program& program = c_.concrete();
    e_.entry = program.name;
    e_.signature = ir::signature_text(*c_.specialised);
    e_.backend = backend_name(settings_.backend);
    e_.target = settings_.backend == Backend::kCpu ? settings_.target : cuda::to_string(settings_.gpu.arch);
    if (const auto target = cpu::canonical_target(settings_.target); settings_.backend == Backend::kCpu && target) {
      e_.target = *target;
    }
    e_.machine = compile::machine_text(settings_);
    e_.file = program.source->name();
    e_.text = std::string(program.source->text());
    const std::string def = program.name.substr(0, program.name.find('<'));
    for (const lang::Definition& definition : c_.file->definitions) {
      if (definition.name.text == program.name || definition.name.text == def) e_.def = definition.range;
    }
    if (const auto bindings = ir::bind(program, settings_.given)) {
      for (const std::string& size : program.sizes) e_.sizes.emplace_back(size, bindings->sizes.at(size));
      for (const ir::Scalar& scalar : program.scalars) {
        if (scalar.specialised) e_.scalars.emplace_back(scalar.name, bindings->scalars.at(scalar.name));
      }
    }
    e_.options.text = compile::options_text(settings_);
    if (!e_.options.text.empty()) e_.options.origin = "user";
  }

  /// Those of the text, and those that passes have added to it.
  void add_statements() {
    for (const ir::Statement& s : c_.concrete().statements) {
      const ir::Statement* known = find(*c_.specialised, s.id);
      if (known && s.tensor == known->tensor) e_.statements.push_back(of_text(s, *known));
    }
    if (!c_.prepared) return;
    for (const ir::Statement& s : c_.prepared->statements) {
      if (find(*c_.specialised, s.id)) continue;
      e_.statements.push_back({.id = s.id, .text = in_a_line(ir::statement_text(s))});
    }
    sort_statements();
  }

  /// Between statements of different ids, by the dependences; and from those whose values readers compute.
  /// `rung` is told the statements of the Scop.
  void add_edges(const poly::Scop& scop,
                 const std::function<Rung(const poly::Statement&, const poly::Statement&)>& rung) {
    for (const isl::map& flow : poly::maps_of(scop.dependences.flow)) {
      const poly::Statement& from = scop.statement(poly::domain_name(flow));
      const poly::Statement& to = scop.statement(poly::range_name(flow));
      add_edge({from.tensor, id_of(from), id_of(to), rung(from, to)});
    }
    for (const ir::Statement& s : c_.specialised->statements) {
      if (find(*c_.prepared, s.id)) continue;
      for (const ir::Statement& reader : c_.specialised->statements) {
        const bool reads = std::ranges::any_of(reader.accesses, [&](const ir::Access& access) {
          return !access.is_write && !access.exists_only && access.tensor == s.tensor;
        });
        if (reads) add_edge({s.tensor, s.id, reader.id, Rung::kInline});
      }
    }
    const auto place = [&](const std::string& id) {
      return std::ranges::find(e_.statements, id, &Explanation::Statement::id) - e_.statements.begin();
    };
    std::ranges::stable_sort(
        e_.edges, {}, [&](const Explanation::Edge& e) { return std::tuple(place(e.from), place(e.to), e.tensor); });
  }

  /// Why kernels are apart that the schedule, or the mapping, has kept so.
  void add_apart(const std::vector<poly::Apart>& apart) {
    for (const poly::Apart& one : apart) {
      const Explanation::Apart known{ids_of(one.first), ids_of(one.second), one.reason};
      if (kernel_of(known.first.front()) != kernel_of(known.second.front())) e_.apart.push_back(known);
    }
  }

  /// Ids of the Program's statements, each once, in the order of the text.
  std::vector<std::string> ids_of(const std::vector<std::string>& of_scop) const {
    std::vector<std::string> ids;
    for (const std::string& name : of_scop) {
      const std::string id = id_of(c_.scop->statement(name));
      if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
    }
    return ids;
  }

  /// The same without statements of which only the identity is set, unless there are no others.
  std::vector<std::string> ids_run_by(std::vector<std::string> of_scop) const {
    const std::vector<std::string> all = of_scop;
    std::erase_if(of_scop, [&](const std::string& name) {
      return c_.scop->statement(name).kind == poly::Statement::Kind::kInit &&
             std::ranges::none_of(all, [&](const std::string& other) {
               return other != name && id_of(c_.scop->statement(other)) == id_of(c_.scop->statement(name));
             });
    });
    return ids_of(of_scop.empty() ? all : of_scop);
  }

  size_t kernel_of(const std::string& id) const {
    for (size_t k = 0; k < e_.kernels.size(); ++k) {
      if (std::ranges::find(e_.kernels[k].statements, id) != e_.kernels[k].statements.end()) return k;
    }
    return e_.kernels.size();
  }

  void add_kernel(Explanation::Kernel kernel) {
    for (Explanation::Statement& s : e_.statements) {
      const bool is_here = std::ranges::find(kernel.statements, s.id) != kernel.statements.end();
      if (is_here && !s.kernel) s.kernel = e_.kernels.size();
    }
    e_.kernels.push_back(std::move(kernel));
  }

  Explanation e_;

 private:
  static const ir::Statement* find(const ir::Program& program, const std::string& id) {
    const auto found = std::ranges::find(program.statements, id, &ir::Statement::id);
    return found == program.statements.end() ? nullptr : &*found;
  }

  /// Without the "_init" of the first half of `op=!`.
  static std::string id_of(const poly::Statement& statement) {
    constexpr std::string_view kInit = "_init";
    const bool is_init = statement.kind == poly::Statement::Kind::kInit && statement.id.ends_with(kInit);
    return is_init ? statement.id.substr(0, statement.id.size() - kInit.size()) : statement.id;
  }

  Explanation::Bound bound(const ir::Statement& s, const ir::RangeEnd& by) const {
    return {.rule = ir::rule_text(by.rule), .cause = ir::cause_text(c_.concrete(), s, by), .reads = by.reads};
  }

  Explanation::Statement of_text(const ir::Statement& s, const ir::Statement& specialised) const {
    Explanation::Statement result{.id = s.id};
    const bool is_added = std::ranges::any_of(
        s.indices, [](const ir::Index& index) { return index.end_by.rule == ir::RangeRule::kWholeTensor; });
    result.text = in_a_line(is_added ? ir::statement_text(s) : c_.concrete().source->text(s.range));
    if (is_added) return result;
    result.range = s.range;
    for (size_t i = 0; i < s.indices.size() && i < specialised.indices.size(); ++i) {
      const ir::Index &index = s.indices[i], &known = specialised.indices[i];
      result.indices.push_back({.name = index.name,
                                .reduces = index.is_reduction,
                                .begin = value_of(known.begin),
                                .end = value_of(known.end),
                                .begin_text = ir::to_text(index.begin),
                                .end_text = ir::to_text(index.end),
                                .begin_by = bound(s, index.begin_by),
                                .end_by = bound(s, index.end_by)});
    }
    return result;
  }

  /// In the order in which they run; those that do not, where the text has them.
  void sort_statements() {
    std::map<std::string, size_t> places;
    for (const ir::Statement& s : c_.prepared->statements) places.emplace(s.id, places.size());
    size_t last = 0;
    std::map<std::string, std::pair<size_t, size_t>> order;
    for (const ir::Statement& s : c_.specialised->statements) {
      const auto place = places.find(s.id);
      if (place != places.end()) last = place->second + 1;
      order[s.id] = place == places.end() ? std::pair(last, size_t{0}) : std::pair(place->second, size_t{1});
    }
    for (const auto& [id, place] : places) order.try_emplace(id, place, 1);
    std::ranges::stable_sort(e_.statements, {}, [&](const Explanation::Statement& s) { return order.at(s.id); });
  }

  void add_edge(Explanation::Edge edge) {
    if (edge.from == edge.to) return;
    const auto is_same = [&](const Explanation::Edge& e) {
      return e.tensor == edge.tensor && e.from == edge.from && e.to == edge.to;
    };
    const auto known = std::ranges::find_if(e_.edges, is_same);
    if (known == e_.edges.end()) {
      e_.edges.push_back(std::move(edge));
    } else {
      known->rung = std::max(known->rung, edge.rung);  // of an initialisation and its update
    }
  }

  const compile::Settings& settings_;
  const compile::Compilation& c_;
};

// --- the CPU ----------------------------------------------------------------------------------------------------

Explanation::Loop loop_of(const cpu::LoopChoice& choice) {
  Explanation::Loop loop{.index = choice.index, .extent = choice.extent};
  if (choice.core > 0) loop.levels.push_back({"core", choice.core});
  if (choice.tile > 0) loop.levels.push_back({"tile", choice.tile});
  loop.levels.push_back({"registers", choice.registers});
  if (choice.vector > 1) loop.levels.push_back({"vector", choice.vector});
  return loop;
}

Explanation::Kernel kernel_of(const cpu::GroupChoice& group, const Maker& maker, size_t number) {
  Explanation::Kernel kernel{.name = fmt::format("nest_{}", number),
                             .strategy = group.packs ? "packed product" : "tiles"};
  for (const cpu::UnitChoice& unit : group.units) {
    Explanation::Tiling tiling{.statements = maker.ids_of(unit.statements), .loops = {}};
    for (const cpu::LoopChoice& loop : unit.loops) tiling.loops.push_back(loop_of(loop));
    for (const std::string& id : tiling.statements) {
      if (std::ranges::find(kernel.statements, id) == kernel.statements.end()) kernel.statements.push_back(id);
    }
    kernel.tilings.push_back(std::move(tiling));
  }
  const cpu::GroupEstimate& estimate = group.estimate;
  kernel.floor = {.operations = estimate.operations,
                  .operations_per_us = group.rates.operations_per_us,
                  .operations_us = estimate.operations / group.rates.operations_per_us,
                  .bytes = estimate.bytes,
                  .bytes_per_us = group.rates.bytes_per_us,
                  .bytes_us = estimate.bytes / group.rates.bytes_per_us};
  kernel.estimate_us = estimate.us;
  kernel.limited_by = estimate.limit();
  kernel.terms = {{"work", estimate.work_us}, {"memory", estimate.memory_us}, {"waking the threads", estimate.wake_us}};
  return kernel;
}

/// Of a schedule that is not the strategy's: all statements in one kernel, of which nothing is estimated.
Explanation::Kernel whole(const Explanation& explanation, const char* strategy) {
  Explanation::Kernel kernel{.name = "nest_0", .strategy = strategy};
  for (const Explanation::Statement& s : explanation.statements) kernel.statements.push_back(s.id);
  return kernel;
}

Rung rung_on_cpu(const poly::Scop& scheduled, const poly::Statement& from, const poly::Statement& to) {
  Rung nearest = Rung::kMemory;
  for (const poly::Promotion& promotion : scheduled.promotions) {
    if (promotion.tensor != from.tensor || !poly::holds_between(scheduled, promotion, from.id, to.id)) continue;
    nearest = std::min(nearest, promotion.in_registers ? Rung::kRegister : Rung::kCache);
  }
  return nearest;
}

Result<void> add_cpu(const compile::Settings& settings, const compile::Compilation& c, const poly::Scop& scop,
                     Maker& maker) {
  TC_TRY(options, compile::strategy_options(settings));
  TC_TRY(choice, cpu::explain_schedule(scop, options));
  if (choice.skewed) maker.add_kernel(whole(maker.e_, "skewed"));
  if (choice.replaced) maker.add_kernel(whole(maker.e_, "program order"));
  for (size_t g = 0; g < choice.groups.size(); ++g) {
    maker.add_kernel(kernel_of(choice.groups[g], maker, g));
    if (g == 0) continue;
    const std::vector<Explanation::Kernel>& kernels = maker.e_.kernels;
    maker.e_.apart.push_back({kernels[g - 1].statements, kernels[g].statements, choice.groups[g].apart});
  }
  const poly::Scop& scheduled = *c.scop;
  maker.add_edges(scheduled, [&](const poly::Statement& from, const poly::Statement& to) {
    return rung_on_cpu(scheduled, from, to);
  });
  maker.e_.schedule = poly::schedule_text(scheduled);
  maker.e_.language = "halide";
  maker.e_.code = cpu::to_text(c.stmt->body);
  return {};
}

// --- a GPU ------------------------------------------------------------------------------------------------------

Explanation::Loop loop_of(const gpu::LoopChoice& choice) {
  Explanation::Loop loop{.index = choice.index, .extent = choice.extent, .reduces = choice.is_reduction};
  if (choice.is_reduction) {
    loop.levels = {{"step", choice.block}};
  } else {
    loop.levels = {{"block", choice.block}, {"thread", choice.thread}};
  }
  return loop;
}

Explanation::Kernel kernel_of(const gpu::Mapping& mapping, size_t k, const gpu::Device& device, const Maker& maker) {
  const gpu::Kernel& kernel = mapping.kernels[k];
  const tile::Kernel& code = mapping.program.kernels[k];
  const gpu::Estimate& estimate = mapping.estimates[k];
  Explanation::Kernel result{.name = code.name, .strategy = gpu::name_of(kernel.recipe)};
  result.statements = maker.ids_run_by(poly::statements_at(kernel.scop, kernel.scop.schedule.root()));
  result.options = options::to_text(gpu::options_for(mapping, k));
  result.launch = {.grid = code.grid,
                   .block = code.block,
                   .shared_bytes = code.shared_bytes(),
                   .barriers = gpu::count_barriers(code),
                   .waves = estimate.waves,
                   .occupancy = estimate.occupancy};
  if (!kernel.loops.empty()) {
    Explanation::Tiling tiling{.statements = result.statements, .loops = {}};
    for (const gpu::LoopChoice& loop : kernel.loops) tiling.loops.push_back(loop_of(loop));
    result.tilings.push_back(std::move(tiling));
  }
  for (const gpu::Unfit& unfit : kernel.unfit) result.unfit.push_back({gpu::name_of(unfit.recipe), unfit.reason});
  result.floor = {.operations = estimate.operations,
                  .operations_per_us = estimate.tensor_operations > 0 ? gpu::tensor_operations_per_us(device)
                                                                      : gpu::operations_per_us(device),
                  .operations_us = estimate.compute_us,
                  .bytes = estimate.bytes,
                  .bytes_per_us = device.memory_bytes_per_us,
                  .bytes_us = estimate.memory_us};
  result.estimate_us = estimate.us;
  result.limited_by = estimate.limit();
  result.terms = {{"memory", estimate.memory_us},        {"cache", estimate.cache_us},
                  {"shared memory", estimate.shared_us}, {"instructions", estimate.issue_us},
                  {"latency", estimate.latency_us},      {"blocks", estimate.blocks_us}};
  if (estimate.tensor_us > 0) result.terms.push_back({"tensor cores", estimate.tensor_us});
  if (kernel.planned_us > 0) result.terms.push_back({"the plan's own estimate", kernel.planned_us});
  return result;
}

/// Neighbours that map() took out of one loop nest.
void add_separated(const gpu::Mapping& mapping, Maker& maker) {
  const auto is_known = [&](const Explanation::Apart& apart) {
    return std::ranges::any_of(maker.e_.apart, [&](const Explanation::Apart& other) {
      return maker.kernel_of(other.first.front()) == maker.kernel_of(apart.first.front()) &&
             maker.kernel_of(other.second.front()) == maker.kernel_of(apart.second.front());
    });
  };
  for (size_t k = 1; k < mapping.kernels.size(); ++k) {
    if (!mapping.kernels[k - 1].separated || !mapping.kernels[k].separated) continue;
    const std::vector<Explanation::Kernel>& kernels = maker.e_.kernels;
    const Explanation::Apart apart{kernels[k - 1].statements, kernels[k].statements,
                                   "no strategy but 'classic' fits them together, and others fit them apart"};
    if (!is_known(apart)) maker.e_.apart.push_back(apart);
  }
}

Rung rung_on_gpu(const gpu::Mapping& mapping, const poly::Statement& from, const poly::Statement& to) {
  for (const gpu::Kernel& kernel : mapping.kernels) {
    const std::vector<std::string> here = poly::statements_at(kernel.scop, kernel.scop.schedule.root());
    const auto has = [&](const std::string& id) { return std::ranges::find(here, id) != here.end(); };
    if (!has(from.id) || !has(to.id)) continue;
    const tile::Memory held = gpu::held_between(kernel, from.tensor, from.id, to.id);
    return held == tile::Memory::kRegister ? Rung::kRegister
           : held == tile::Memory::kShared ? Rung::kShared
                                           : Rung::kMemory;
  }
  return Rung::kMemory;
}

Result<void> add_gpu(const compile::Settings& settings, const compile::Compilation& c, const poly::Scop& scop,
                     Maker& maker) {
  const gpu::Mapping& mapping = *c.mapping;
  TC_TRY(apart, gpu::why_apart(scop, c.mapping_options, settings.gpu.device));
  for (size_t k = 0; k < mapping.kernels.size(); ++k) {
    maker.add_kernel(kernel_of(mapping, k, settings.gpu.device, maker));
  }
  maker.add_apart(apart);
  add_separated(mapping, maker);
  maker.add_edges(
      scop, [&](const poly::Statement& from, const poly::Statement& to) { return rung_on_gpu(mapping, from, to); });
  maker.e_.schedule = gpu::tree_text(mapping);
  maker.e_.language = settings.backend == Backend::kCuda ? "cuda" : "tile";
  TC_TRY(code, compile::dump(settings, c, settings.backend == Backend::kCuda ? "cuda" : "tile"));
  maker.e_.code = code;
  return {};
}

const char* name_of(cache::Measurement::State state) {
  using State = cache::Measurement::State;
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kRefused:
      return "refused";
    case State::kWrong:
      return "wrong";
    case State::kCrashed:
      return "crashed";
    case State::kTimeLimit:
      return "time limit";
    case State::kTooSlow:
      return "too slow";
  }
  TC_CHECK(false, "unknown state of a measurement");
}

constexpr char kByHand[] = "by hand ";

}  // namespace

Result<Explanation> explain(const compile::Settings& settings, compile::Compilation c) {
  TC_TRY_VOID(check_sizes(settings, *c.program));
  TC_TRY_VOID(compile::run_passes(settings, c, "scop"));
  const poly::Scop scop = *c.scop;
  const char* const last = settings.backend == Backend::kCpu    ? "stmt"
                           : settings.backend == Backend::kCuda ? "cuda"
                                                                : "tile";
  TC_TRY_VOID(compile::run_passes(settings, c, last));
  Maker maker(settings, c);
  maker.add_problem();
  maker.add_statements();
  const auto add = settings.backend == Backend::kCpu ? add_cpu : add_gpu;
  TC_TRY_VOID(add(settings, c, scop, maker));
  return maker.take();
}

Result<Explanation> explain_by_hand(const compile::Settings& settings, compile::Compilation c,
                                    const std::string& name) {
  TC_TRY_VOID(check_sizes(settings, *c.program));
  TC_TRY_VOID(compile::run_passes(settings, c, "specialise"));
  Maker maker(settings, c);
  maker.add_problem();
  maker.add_statements();
  maker.e_.options = {.origin = "hand", .text = name};
  return maker.take();
}

Result<CacheFacts> facts_of(const cache::Cache& file, const compile::Settings& settings, const ir::Program& program,
                            const std::string& device) {
  TC_TRY(problem, compile::problem_of(settings, program, ir::digest_of(program).to_string()));
  CacheFacts facts{.cache = {.file = file.path()}, .options = compile::options_text(settings), .measurements = {}};
  TC_TRY(best, file.best(problem, device));
  if (facts.options.empty() && best) facts.options = best->options;
  TC_TRY(keys, file.keys(problem));
  facts.cache.hit = std::ranges::any_of(keys, [&](const cache::Key& key) { return key.options == facts.options; });
  TC_TRY(measured, file.measurements(problem, device));
  std::ranges::stable_sort(measured, {}, &cache::Measurement::date);
  for (const cache::Measurement& m : measured) {
    facts.measurements.push_back({m.options, m.device, name_of(m.state), m.time_us, m.date});
    const bool is_ours = m.options == facts.options && m.state == cache::Measurement::State::kOk && m.time_us > 0;
    double& shortest = facts.cache.measured_us;
    if (is_ours && (shortest == 0 || m.time_us < shortest)) shortest = m.time_us;
  }
  return facts;
}

void add_facts(CacheFacts facts, Explanation& explanation) {
  explanation.cache = std::move(facts.cache);
  explanation.measurements = std::move(facts.measurements);
}

Result<Explanation> explain_with(const cache::Cache& file, const compile::Settings& settings,
                                 const compile::Compilation& compilation, const std::string& device) {
  TC_TRY(facts, facts_of(file, settings, *compilation.program, device));
  const bool is_users = !compile::options_text(settings).empty();
  if (facts.options.starts_with(kByHand)) {
    TC_TRY(explanation, explain_by_hand(settings, compilation, facts.options));
    add_facts(std::move(facts), explanation);
    return explanation;
  }
  TC_TRY(chosen, compile::with_options(settings, facts.options));
  TC_TRY(explanation, explain(chosen, compilation));
  if (!is_users && !facts.options.empty()) explanation.options.origin = "cache";
  add_facts(std::move(facts), explanation);
  return explanation;
}

const char* name_of(Rung rung) {
  switch (rung) {
    case Rung::kInline:
      return "inline";
    case Rung::kRegister:
      return "register";
    case Rung::kCache:
      return "cache";
    case Rung::kShared:
      return "shared";
    case Rung::kMemory:
      return "memory";
  }
  TC_CHECK(false, "unknown rung");
}

double Explanation::estimate_us() const {
  double us = 0;
  for (const Kernel& kernel : kernels) us += kernel.estimate_us;
  return us;
}

double Explanation::floor_us() const {
  double us = 0;
  for (const Kernel& kernel : kernels) us += kernel.floor ? kernel.floor->us() : 0;
  return us;
}

}  // namespace tc::api
