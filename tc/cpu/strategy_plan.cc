#include "tc/cpu/strategy_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tc/cpu/access_steps.h"
#include "tc/poly/from_ir.h"
#include "tc/support/check.h"
#include "tc/support/round.h"

namespace tc::cpu {

namespace {

/// Accumulators that fit the vector registers beside what a step loads.
constexpr int64_t kAccumulators512 = 24;
constexpr int64_t kAccumulators = 10;
/// Accumulators that a user may ask for.
constexpr int64_t kMaxAccumulators = 64;
/// Multiplications of a product that pays for the code of the largest tile.
constexpr double kLargeProduct = 1 << 26;

int64_t accumulators(const StatementInfo& info, const UnitOptions& options) {
  const int64_t machine = options.vector_bits >= 512 ? kAccumulators512 : kAccumulators;
  return info.instances() >= kLargeProduct ? machine : std::min(options.accumulators, machine);
}

/// A line of the cache, in bytes.
constexpr int64_t kLineBytes = 64;
/// What is read of one row of a tensor too large for the cache before the next is turned to, so that the processor
/// foresees it.
constexpr int64_t kRunBytes = 1024;
constexpr int64_t kLargeTensorBytes = 4 << 20;
/// Vectors of a row that units go over one after the other, from which on steps are of two vectors: with half as many
/// instructions a row the processor gets to the next row's loads before it is done with this one's stores.
constexpr int64_t kLongRow = 16;

}  // namespace

const StatementInfo& info_of(const Analysis& analysis, int number) {
  return analysis.statements[static_cast<size_t>(number)];
}

const std::string& index_name(const StatementInfo& info, const Dim& dim) {
  return info.statement->indices[static_cast<size_t>(dim.position.at(info.id()))];
}

namespace {

/// The statement of the unit that runs most often.
const StatementInfo& main_statement(const Analysis& analysis, const Unit& unit) {
  int best = unit.statements.front();
  for (int s : unit.statements) {
    if (info_of(analysis, s).instances() > info_of(analysis, best).instances()) best = s;
  }
  return info_of(analysis, best);
}

/// How good vectors along the dimension are: consecutive elements good, one element for all lanes fair, others bad.
double vector_score(const Analysis& analysis, const Unit& unit, const Dim& dim) {
  double score = 0;
  double total = 0;
  for (int s : unit.statements) {
    const StatementInfo& info = info_of(analysis, s);
    double instances = info.instances();
    double points = instances;
    for (size_t i = 0; i < info.parallel.size(); ++i) {
      if (!info.parallel[i]) points /= static_cast<double>(info.extent[i]);
    }
    for (const Reference& reference : info.references) {
      auto step = memory_step(*analysis.scop->program, analysis.layouts, reference, index_name(info, dim));
      double weight = reference.is_write ? points : instances;
      total = std::max(total, weight);
      if (!step) {
        score -= 2 * weight;
      } else if (*step == 1) {
        score += (reference.is_write ? 3 : 2) * weight;
      } else if (*step == 0) {
        score += 0.5 * weight;
      } else {
        score -= (reference.is_write ? 4 : 3) * weight;
      }
    }
  }
  return total > 0 ? score / total : -1;
}

int64_t lanes_of(const Analysis& analysis, const StatementInfo& info, const UnitOptions& options) {
  int bytes = info.statement->accumulator.bytes();
  for (const Reference& reference : info.references) {
    bytes = std::max(bytes, analysis.scop->program->tensor(reference.tensor).type.bytes());
  }
  return std::max(1, options.vector_bits / (8 * std::max(bytes, 1)));
}

/// The dimension along which what is loaded for a vector is used again.
int find_rows(const Unit& unit, const StatementInfo& info, int vector) {
  int best = -1;
  for (int d = 0; d < static_cast<int>(unit.dims.size()); ++d) {
    if (d == vector || unit.dims[static_cast<size_t>(d)].rest < 2) continue;
    const std::string& row = index_name(info, unit.dims[static_cast<size_t>(d)]);
    const std::string& column = index_name(info, unit.dims[static_cast<size_t>(vector)]);
    bool reuses = false;
    for (const Reference& reference : info.references) {
      reuses = reuses || (!reference.is_write && reference.depends_on(column) && !reference.depends_on(row));
    }
    if (!reuses) continue;
    if (best < 0 || unit.dims[static_cast<size_t>(d)].rest > unit.dims[static_cast<size_t>(best)].rest) best = d;
  }
  return best;
}

int64_t tiles_of(int64_t extent, int64_t tile) { return ceil_div(extent, tile); }

}  // namespace

double register_step_cycles(int64_t vectors, int64_t rows) {
  constexpr double kLatency = 4;
  const double multiply = 0.5 * static_cast<double>(vectors * rows);
  const double load = 0.5 * static_cast<double>(vectors + rows);
  return std::max({multiply, load, kLatency}) + 1;
}

namespace {

/// Chooses vectors * row_tile so that the whole of columns * rows takes fewest cycles by a simple count.
void choose_register_tile(UnitPlan& plan, int64_t columns, int64_t rows, int64_t budget, const UnitOptions& options) {
  double best = INFINITY;
  int64_t row_tile = 1;
  for (int64_t vectors = 1; vectors <= 4; ++vectors) {
    if (options.unroll > 0 && vectors != std::min(options.unroll, 4)) continue;
    if (vectors > 1 && plan.lanes * (vectors - 1) >= columns) continue;
    for (int64_t r = 1; r <= std::min(rows, budget / vectors); ++r) {
      double cycles = register_step_cycles(vectors, r);
      cycles *= static_cast<double>(tiles_of(columns, plan.lanes * vectors) * tiles_of(rows, r));
      if (cycles < best * 0.999) {
        best = cycles;
        plan.vectors = vectors;
        row_tile = r;
      }
    }
  }
  if (plan.rows >= 0) plan.tile[static_cast<size_t>(plan.rows)] = row_tile;
}

/// The dimension along which vectors that are loaded for every row are used again: those of the other operand of a
/// product whose vectors go along what it reduces.
int find_across(const Unit& unit, const StatementInfo& info, const UnitPlan& plan) {
  const std::string& column = index_name(info, unit.dims[static_cast<size_t>(plan.vector)]);
  const std::string& row = index_name(info, unit.dims[static_cast<size_t>(plan.rows)]);
  for (int d = 0; d < static_cast<int>(unit.dims.size()); ++d) {
    if (d == plan.vector || d == plan.rows || unit.dims[static_cast<size_t>(d)].rest < 2) continue;
    const std::string& other = index_name(info, unit.dims[static_cast<size_t>(d)]);
    for (const Reference& r : info.references) {
      if (!r.is_write && r.depends_on(column) && r.depends_on(row) && !r.depends_on(other)) return d;
    }
  }
  return -1;
}

/// Chooses a tile of rows and of those across, of one vector each, so that the whole takes fewest cycles: one for each
/// vector that is loaded or multiplied.
void choose_square_tile(UnitPlan& plan, const Unit& unit, int64_t budget) {
  const int64_t rows = unit.dims[static_cast<size_t>(plan.rows)].rest;
  const int64_t across = unit.dims[static_cast<size_t>(plan.across)].rest;
  int64_t least = INT64_MAX;
  for (int64_t a = 1; a <= std::min(across, budget); ++a) {
    for (int64_t r = 1; r <= std::min(rows, budget / a); ++r) {
      const int64_t cycles = (std::max(a * r, a + r) + 1) * tiles_of(rows, r) * tiles_of(across, a);
      if (cycles >= least) continue;
      least = cycles;
      plan.tile[static_cast<size_t>(plan.rows)] = r;
      plan.tile[static_cast<size_t>(plan.across)] = a;
    }
  }
}

/// Of a tensor without gaps; saturated.
int64_t bytes_of(const ir::Tensor& tensor) {
  int64_t result = tensor.type.bytes();
  for (int64_t extent : constant_extents(tensor)) {
    if (__builtin_mul_overflow(result, extent, &result)) return INT64_MAX;
  }
  return result;
}

/// A pointwise unit that reads along one dimension and writes along another goes by square tiles, many of them along
/// what it reads.
void choose_cache_tile(const Analysis& analysis, const Unit& unit, const StatementInfo& info, UnitPlan& plan) {
  const std::string vector = index_name(info, unit.dims[static_cast<size_t>(plan.vector)]);
  for (size_t d = 0; d < unit.dims.size(); ++d) {
    if (static_cast<int>(d) == plan.vector) continue;
    for (const Reference& reference : info.references) {
      const ir::Program& program = *analysis.scop->program;
      auto along = memory_step(program, analysis.layouts, reference, index_name(info, unit.dims[d]));
      auto across = memory_step(program, analysis.layouts, reference, vector);
      if (along == 1 && across && *across > 1) {
        const int64_t bytes = std::max(program.tensor(reference.tensor).type.bytes(), 1);
        plan.tile[d] = std::min(unit.dims[d].rest, kLineBytes / bytes);
        if (bytes_of(program.tensor(reference.tensor)) >= kLargeTensorBytes) plan.run[d] = kRunBytes / bytes;
      }
    }
  }
}

/// The register tile that the user asks for; of accumulators no more than there may be.
void follow_register_tile(UnitPlan& plan, const Unit& unit, const UnitOptions& options, bool reduces) {
  const auto points = [&](size_t d) -> int64_t& {
    return static_cast<int>(d) == plan.vector ? plan.vectors : plan.tile[d];
  };
  for (size_t d = 0; d < std::min(unit.dims.size(), options.register_tile.size()); ++d) {
    const int64_t step = static_cast<int>(d) == plan.vector ? plan.lanes : 1;
    points(d) = std::clamp<int64_t>(tiles_of(options.register_tile[d], step), 1, tiles_of(unit.dims[d].rest, step));
  }
  while (reduces) {
    int64_t all = 1;
    size_t largest = 0;
    for (size_t d = 0; d < unit.dims.size(); ++d) {
      all *= points(d);
      if (points(d) > points(largest)) largest = d;
    }
    if (all <= kMaxAccumulators) return;
    points(largest) = (points(largest) + 1) / 2;
  }
}

int64_t largest_divisor(int64_t value, int64_t most) {
  int64_t result = std::clamp<int64_t>(most, 1, value);
  while (value % result != 0) --result;
  return result;
}

/// A dimension that is already tiled must be cut evenly: what a last, partial tile lacks belongs to the next outer one.
void fit_outer_tiles(UnitPlan& plan, const Unit& unit) {
  for (size_t d = 0; d < unit.dims.size(); ++d) {
    const int64_t rest = unit.dims[d].rest;
    if (unit.dims[d].steps.empty() || rest < 1) continue;
    if (static_cast<int>(d) == plan.vector) {
      if (rest % plan.lanes != 0) plan.lanes = std::gcd(plan.lanes, rest);
      plan.vectors = largest_divisor(rest / plan.lanes, plan.vectors);
      plan.tile[d] = plan.lanes * plan.vectors;
    } else {
      plan.tile[d] = largest_divisor(rest, plan.tile[d]);
    }
  }
}

}  // namespace

UnitPlan plan_unit(const Analysis& analysis, const Unit& unit, const UnitOptions& options) {
  UnitPlan plan;
  plan.tile.assign(unit.dims.size(), 1);
  plan.unrolled.assign(unit.dims.size(), true);
  plan.run.assign(unit.dims.size(), 0);
  const StatementInfo& info = main_statement(analysis, unit);
  double best = 0;
  for (size_t d = 0; d < unit.dims.size(); ++d) {
    if (unit.dims[d].rest < 2) continue;
    double score = vector_score(analysis, unit, unit.dims[d]);
    if (score >= best) {
      best = score;
      plan.vector = static_cast<int>(d);
    }
  }
  bool reduces = info.reduces();
  int64_t columns = 1;
  if (plan.vector >= 0) {
    columns = unit.dims[static_cast<size_t>(plan.vector)].rest;
    plan.lanes = options.vector_width > 0 ? options.vector_width : lanes_of(analysis, info, options);
    const bool is_long = columns >= kLongRow * plan.lanes && options.vector_width == 0;
    if (!reduces && is_long && options.follows_others) plan.lanes *= 2;
    plan.lanes = std::min(plan.lanes, columns);
    if (reduces) plan.rows = find_rows(unit, info, plan.vector);
    if (!reduces) choose_cache_tile(analysis, unit, info, plan);
  }
  if (reduces) {
    int64_t rows = plan.rows >= 0 ? unit.dims[static_cast<size_t>(plan.rows)].rest : 1;
    choose_register_tile(plan, columns, rows, accumulators(info, options), options);
    if (plan.rows >= 0 && plan.vectors == 1) plan.across = find_across(unit, info, plan);
    if (plan.across >= 0) choose_square_tile(plan, unit, accumulators(info, options));
  } else if (options.unroll > 0) {
    plan.vectors = std::clamp<int64_t>(options.unroll, 1, tiles_of(columns, plan.lanes));
  }
  if (!options.register_tile.empty()) follow_register_tile(plan, unit, options, reduces);
  if (plan.vector >= 0) plan.tile[static_cast<size_t>(plan.vector)] = plan.lanes * plan.vectors;
  if (!reduces) plan.unrolled.assign(unit.dims.size(), false);
  fit_outer_tiles(plan, unit);
  return plan;
}

}  // namespace tc::cpu
