#include "tc/cpu/tunables.h"

#include <algorithm>

#include "tc/cpu/estimate.h"
#include "tc/cpu/strategy_contraction.h"
#include "tc/cpu/strategy_options.h"
#include "tc/poly/isl_ext.h"

namespace tc::cpu {
namespace {

using options::CpuOptions;
using options::Fusion;
using Tile = std::vector<int64_t>;

constexpr int64_t kMostVectors = 4;
constexpr int64_t kMostAccumulators512 = 32;
constexpr int64_t kMostAccumulators = 16;
constexpr size_t kRegisterTiles = 12;
constexpr int64_t kBlocks[] = {16, 32, 48, 64, 96, 128, 192, 256, 384, 512};
constexpr int64_t kColumnBlocks[] = {256, 512, 1024};

/// The analysis of a def and its group that takes longest.
class Search {
 public:
  Search(const poly::Scop& scop, const StrategyOptions& options)
      : analysis_(analyse(scop, options.layouts)), options_(options) {
    if (analysis_.statements.empty()) return;
    groups_ = make_groups(analysis_, group_options(options_));
    double most = -1;
    for (const Group& group : groups_) {
      const double ns = estimated_ns(analysis_, group, options_);
      if (ns > most) most = ns, main_ = &group;
    }
  }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  Tunables tunables() const {
    Tunables result;
    if (!main_) return result;
    for (const Dim& dim : main_->shared) result.extents.push_back(dim.extent);
    result.register_tiles = register_tiles();
    return result;
  }

  std::vector<Candidate> top(size_t count) const {
    std::vector<Candidate> found;
    if (!main_) return found;
    for (const auto& [fusion, groups] : fusions()) {
      for (const Tile& tile : tiles()) add(fusion, groups, tile, found);
    }
    std::ranges::stable_sort(found, {}, &Candidate::us);
    if (found.size() > count) found.resize(count);
    return found;
  }

 private:
  using Fusions = std::vector<std::pair<std::optional<Fusion>, std::vector<Group>>>;

  StrategyOptions with(const CpuOptions& cpu) const {
    StrategyOptions options = options_;
    options.cpu = cpu;
    return options;
  }

  /// Strategies whose groups differ, with these.
  Fusions fusions() const {
    Fusions result = {{options_.cpu.scheduler.fusion, groups_}};
    if (options_.cpu.scheduler.fusion) return result;
    for (const Fusion fusion : {Fusion::kMax, Fusion::kMin}) {
      CpuOptions cpu = options_.cpu;
      cpu.scheduler.fusion = fusion;
      std::vector<Group> groups = make_groups(analysis_, group_options(with(cpu)));
      const bool is_new = std::ranges::none_of(
          result, [&](const auto& other) { return statements(other.second) == statements(groups); });
      if (is_new) result.emplace_back(fusion, std::move(groups));
    }
    return result;
  }

  static std::vector<std::vector<std::vector<int>>> statements(const std::vector<Group>& groups) {
    std::vector<std::vector<std::vector<int>>> result;
    for (const Group& group : groups) {
      result.emplace_back();
      for (const Unit& unit : group.units) result.back().push_back(unit.statements);
    }
    return result;
  }

  /// What has been set; else nothing, and blocks with register tiles.
  std::vector<Tile> tiles() const {
    if (!options_.cpu.tile.empty()) return {options_.cpu.tile};
    std::vector<Tile> result = {{}};
    for (const Tile& block : blocks({})) result.push_back(block);
    for (const Tile& register_tile : register_tiles()) {
      std::vector<Tile> around = blocks(register_tile);
      // What is no contraction goes by register tiles.
      if (around.empty()) around.push_back(padded(register_tile));
      for (Tile& block : around) {
        block.insert(block.end(), register_tile.begin(), register_tile.end());
        result.push_back(std::move(block));
      }
    }
    return result;
  }

  Tile padded(Tile tile) const {
    tile.resize(main_->shared.size(), 1);
    return tile;
  }

  void add(const std::optional<Fusion>& fusion, const std::vector<Group>& groups, const Tile& tile,
           std::vector<Candidate>& found) const {
    CpuOptions cpu = options_.cpu;
    cpu.scheduler.fusion = fusion;
    cpu.tile = tile;
    const auto add_if_other = [&] {
      if (!(cpu == options_.cpu)) found.push_back({cpu, estimated_us(analysis_, groups, with(cpu))});
    };
    add_if_other();
    if (options_.cpu.parallel || options_.threads == 1) return;
    cpu.parallel = false;
    add_if_other();
  }

  const Unit* reduction() const {
    for (const Unit& unit : main_->units) {
      if (std::ranges::any_of(unit.statements, [&](int s) { return info_of(analysis_, s).reduces(); })) return &unit;
    }
    return nullptr;
  }

  std::vector<Tile> register_tiles() const {
    const Unit* unit = reduction();
    if (!unit || main_->shared.empty() || main_->units.size() > 1) return {};
    const UnitPlan plan = plan_unit(analysis_, *unit, unit_options(analysis_, options_, main_->shared.size()));
    const int rows = plan.rows >= 0 ? plan.rows : plan.vector == 0 ? -1 : 0;
    const int64_t most = options_.vector_bits >= 512 ? kMostAccumulators512 : kMostAccumulators;
    const auto dims_used = static_cast<size_t>(std::max(plan.vector, rows) + 1);
    std::vector<std::pair<double, Tile>> found;
    for (int64_t vectors = 1; vectors <= (plan.vector >= 0 ? kMostVectors : 1); ++vectors) {
      for (int64_t r = 1; r <= (rows >= 0 ? most / vectors : 1); ++r) {
        Tile tile(dims_used, 1);
        if (rows >= 0) tile[static_cast<size_t>(rows)] = r;
        if (plan.vector >= 0) tile[static_cast<size_t>(plan.vector)] = plan.lanes * vectors;
        bool fits = true;
        for (size_t d = 0; d < tile.size(); ++d) {
          const bool is_vector = static_cast<int>(d) == plan.vector;
          fits = fits && tile[d] < unit->dims[d].extent + (is_vector ? plan.lanes : 1);
        }
        if (!fits) continue;
        CpuOptions cpu = options_.cpu;
        cpu.tile = padded(tile);
        cpu.tile.insert(cpu.tile.end(), tile.begin(), tile.end());
        found.emplace_back(estimated_ns(analysis_, *main_, with(cpu)), tile);
      }
    }
    std::ranges::stable_sort(found, {}, &std::pair<double, Tile>::first);
    std::vector<Tile> result;
    for (size_t i = 0; i < std::min(found.size(), kRegisterTiles); ++i) result.push_back(found[i].second);
    return result;
  }

  /// Of a contraction: blocks of rows, with all columns and with blocks of them.
  std::vector<Tile> blocks(const Tile& register_tile) const {
    std::vector<Tile> result;
    if (main_->units.size() != 1) return result;
    const Unit& unit = main_->units[0];
    UnitOptions units = unit_options(analysis_, options_, main_->shared.size());
    units.register_tile = register_tile;
    const auto shape = contraction_shape(analysis_, unit, {.unit = units, .threads = options_.threads});
    if (!shape || unit.dims.size() != main_->shared.size()) return result;
    const auto rows = static_cast<size_t>(shape->rows), columns = static_cast<size_t>(shape->columns);
    const auto add = [&](int64_t block_rows, int64_t block_columns) {
      Tile tile(unit.dims.size(), 1);
      tile[rows] = block_rows;
      tile[columns] = block_columns;
      result.push_back(std::move(tile));
    };
    add(shape->block_rows, unit.dims[columns].extent);
    for (const int64_t block : kBlocks) {
      if (block >= unit.dims[rows].extent) break;
      add(block, unit.dims[columns].extent);
      for (const int64_t across : kColumnBlocks) {
        if (across < unit.dims[columns].extent) add(block, across);
      }
    }
    return result;
  }

  Analysis analysis_;
  StrategyOptions options_;
  std::vector<Group> groups_;
  const Group* main_ = nullptr;
};

}  // namespace

Result<Tunables> tunables(const poly::Scop& scop, const StrategyOptions& options) {
  return poly::within_budget(*scop.context, [&]() -> Result<Tunables> { return Search(scop, options).tunables(); });
}

Result<std::vector<Candidate>> top(const poly::Scop& scop, const StrategyOptions& options, size_t count) {
  return poly::within_budget(*scop.context,
                             [&]() -> Result<std::vector<Candidate>> { return Search(scop, options).top(count); });
}

}  // namespace tc::cpu
