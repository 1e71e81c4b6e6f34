#include "tc/cpu/strategy_contraction.h"

#include <algorithm>

#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::cpu {

namespace {

/// An operand from which packing pays: smaller ones stay in the second-level cache as they are.
constexpr int64_t kPackedBytes = 128 * 1024;
/// A buffer larger than this is not made.
constexpr int64_t kMaxPackedBytes = int64_t{1} << 28;
/// Register tiles along the rows in one block.
constexpr int64_t kMinBlockTiles = 4;
constexpr int64_t kMaxBlockTiles = 8;

struct Operands {
  std::string rows;     ///< depends on the rows, not on the columns: "A"
  std::string columns;  ///< depends on the columns, not on the rows: "B"
};

class Contraction {
 public:
  Contraction(const Analysis& analysis, const Unit& unit, const ContractionOptions& options,
              std::vector<poly::Promotion>& promotions)
      : analysis_(analysis), unit_(unit), options_(options), promotions_(promotions) {}

  std::optional<Tree> build() {
    const std::optional<Operands> operands = recognise();
    if (!operands) return std::nullopt;
    return make(*operands);
  }

  std::optional<ContractionShape> shape() {
    const std::optional<Operands> operands = recognise();
    if (!operands || bytes_at_once(operands->columns) < kPackedBytes) return std::nullopt;
    const int64_t asked = asked_block(plan_.vector);
    return ContractionShape{.rows = plan_.rows,
                            .columns = plan_.vector,
                            .block_rows = std::min(block_rows(), rows().extent),
                            .block_columns = asked > 0 ? std::min(asked, columns().extent) : columns().extent};
  }

 private:
  /// The operands, if the unit is a contraction with enough rows.
  std::optional<Operands> recognise() {
    for (int s : unit_.statements) {
      const StatementInfo& info = analysis_.statements[static_cast<size_t>(s)];
      if (info.reduces()) main_ = &info, main_number_ = s;
    }
    if (main_ == nullptr || !options_.unit.promote) return std::nullopt;
    plan_ = plan_unit(analysis_, unit_, options_.unit);
    if (plan_.vector < 0 || plan_.rows < 0) return std::nullopt;
    std::optional<Operands> operands = find_operands();
    if (!operands || rows().extent < kMinBlockTiles * tile(plan_.rows)) return std::nullopt;
    return operands;
  }

  /// Of an operand, what all loops but those over other dimensions read.
  double bytes_at_once(const std::string& tensor) const {
    const Reference& reference = reference_to(tensor);
    double bytes = analysis_.scop->program->tensor(tensor).type.bytes();
    for (size_t i = 0; i < main_->extent.size(); ++i) {
      const bool is_other = main_->parallel[i] && main_->statement->indices[i] != index(columns()) &&
                            main_->statement->indices[i] != index(rows());
      if (!is_other && reference.depends_on(main_->statement->indices[i])) {
        bytes *= static_cast<double>(main_->extent[i]);
      }
    }
    return bytes;
  }

  const Reference& reference_to(const std::string& tensor) const {
    return *std::find_if(main_->references.begin(), main_->references.end(),
                         [&](const Reference& r) { return r.tensor == tensor; });
  }

  Dim& rows() { return unit_.dims[static_cast<size_t>(plan_.rows)]; }
  Dim& columns() { return unit_.dims[static_cast<size_t>(plan_.vector)]; }
  const Dim& rows() const { return unit_.dims[static_cast<size_t>(plan_.rows)]; }
  const Dim& columns() const { return unit_.dims[static_cast<size_t>(plan_.vector)]; }
  int64_t tile(int dim) const { return plan_.tile[static_cast<size_t>(dim)]; }

  const std::string& index(const Dim& dim) const {
    return main_->statement->indices[static_cast<size_t>(dim.position.at(main_->id()))];
  }

  /// Exactly two tensors are read, each once, with a subscript that is the row's or the column's index alone.
  std::optional<Operands> find_operands() {
    Operands result;
    for (const Reference& reference : main_->references) {
      if (reference.is_write) continue;
      bool row = reference.depends_on(index(rows()));
      bool column = reference.depends_on(index(columns()));
      if (row == column) return std::nullopt;
      std::string& operand = row ? result.rows : result.columns;
      if (!operand.empty() || !has_plain_subscript(reference, index(row ? rows() : columns()))) return std::nullopt;
      operand = reference.tensor;
    }
    if (result.rows.empty() || result.columns.empty() || result.rows == result.columns) return std::nullopt;
    for (const std::string& operand : {result.rows, result.columns}) {
      for (int s : unit_.statements) {
        const StatementInfo& info = analysis_.statements[static_cast<size_t>(s)];
        auto count = std::count_if(info.references.begin(), info.references.end(),
                                   [&](const Reference& r) { return r.tensor == operand; });
        if (count != (&info == main_ ? 1 : 0)) return std::nullopt;
      }
    }
    return result;
  }

  static std::optional<int> plain_dimension(const Reference& reference, const std::string& index) {
    std::optional<int> result;
    for (size_t d = 0; d < reference.forms.size(); ++d) {
      const auto& form = reference.forms[d];
      if (!form) return std::nullopt;
      auto found = form->coefficients.find(index);
      if (found == form->coefficients.end()) continue;
      if (result || found->second != 1 || form->coefficients.size() != 1) return std::nullopt;
      result = static_cast<int>(d);
    }
    return result;
  }

  static bool has_plain_subscript(const Reference& reference, const std::string& index) {
    return plain_dimension(reference, index).has_value();
  }

  /// The block that is asked for along a dimension, in whole register tiles; 0: none is.
  int64_t asked_block(int dim) const {
    const auto d = static_cast<size_t>(dim);
    return d < options_.tile.size() ? (options_.tile[d] + tile(dim) - 1) / tile(dim) * tile(dim) : 0;
  }

  /// How many rows a block has: a multiple of the tile that divides the work evenly.
  int64_t block_rows() {
    if (const int64_t asked = asked_block(plan_.rows); asked > 0) return asked;
    int64_t best = kMinBlockTiles;
    double least = 0;
    for (int64_t tiles = kMinBlockTiles; tiles <= kMaxBlockTiles; ++tiles) {
      int64_t rows_of_block = tiles * tile(plan_.rows);
      int64_t blocks = (rows().extent + rows_of_block - 1) / rows_of_block;
      int64_t rounds = (blocks + options_.threads - 1) / options_.threads;
      auto cost = static_cast<double>(rounds * rows_of_block);
      if (least == 0 || cost <= least) {
        least = cost;
        best = tiles;
      }
    }
    return best * tile(plan_.rows);
  }

  /// The operand's buffer at this point of the loops; nothing if it is not worth one, or too large.
  std::optional<poly::Promotion> pack(const std::string& tensor, const Dim& along, int64_t block, int depth,
                                      int64_t least) const {
    Footprint part = footprint(analysis_, {main_number_}, tensor, unit_.dims, depth);
    int64_t bytes = analysis_.scop->program->tensor(tensor).type.bytes();
    for (int64_t e : part.extents) {
      if (__builtin_mul_overflow(bytes, e, &bytes)) return std::nullopt;
    }
    if (part.whole || bytes < least || bytes > kMaxPackedBytes) return std::nullopt;
    int plain = *plain_dimension(reference_to(tensor), index(along));
    poly::Promotion promotion;
    promotion.name = buffer_name(tensor, promotions_);
    promotion.tensor = tensor;
    promotion.offset = part.offset;
    promotion.extents = part.extents;
    promotion.layout.push_back(plain);
    for (int d = 0; d < static_cast<int>(part.extents.size()); ++d) {
      if (d != plain) promotion.layout.push_back(d);
    }
    promotion.tile.assign(part.extents.size(), 0);
    promotion.tile[static_cast<size_t>(plain)] = block;
    promotion.copy_in = true;
    return promotion;
  }

  std::optional<Tree> make(const Operands& operands) {
    struct Level {
      std::map<std::string, isl::aff> member;
      std::string mark;
    };
    std::vector<Level> levels;
    int depth = 0;
    for (size_t d = 0; d < unit_.dims.size(); ++d) {
      bool tiled = static_cast<int>(d) == plan_.rows || static_cast<int>(d) == plan_.vector;
      if (tiled || unit_.dims[d].rest == 1) continue;
      levels.push_back({cut(unit_.dims[d], 1, depth++), ""});
      plan_.tile[d] = 1;
    }
    std::optional<poly::Promotion> b = pack(operands.columns, columns(), tile(plan_.vector), depth, kPackedBytes);
    if (!b) return std::nullopt;
    if (const int64_t block = asked_block(plan_.vector); block > 0 && block < columns().extent) {
      levels.push_back({cut(columns(), block, depth++), ""});
      b = pack(operands.columns, columns(), tile(plan_.vector), depth, 1);
    }
    if (!b) return std::nullopt;
    levels.push_back({{}, "promote:" + b->name});
    promotions_.push_back(std::move(*b));
    int64_t block = std::min(block_rows(), rows().extent);
    if (options_.parallel) levels.push_back({{}, "parallel"});
    levels.push_back({cut(rows(), block, depth++), ""});
    if (std::optional<poly::Promotion> a = pack(operands.rows, rows(), tile(plan_.rows), depth, 1)) {
      levels.push_back({{}, "promote:" + a->name});
      promotions_.push_back(std::move(*a));
    }
    levels.push_back({cut(columns(), tile(plan_.vector), depth++), ""});
    levels.push_back({cut(rows(), tile(plan_.rows), depth++), ""});
    Tree tree = unit_tree(analysis_, unit_, plan_, depth, options_.unit, promotions_);
    while (!levels.empty()) {
      Level& level = levels.back();
      if (!level.member.empty()) tree = band(std::move(level.member), std::move(tree));
      if (!level.mark.empty()) tree = mark(level.mark, std::move(tree));
      levels.pop_back();
    }
    return tree;
  }

  const Analysis& analysis_;
  Unit unit_;
  const ContractionOptions& options_;
  std::vector<poly::Promotion>& promotions_;
  const StatementInfo* main_ = nullptr;
  int main_number_ = 0;
  UnitPlan plan_;
};

}  // namespace

std::optional<Tree> contraction_tree(const Analysis& analysis, const Unit& unit, const ContractionOptions& options,
                                     std::vector<poly::Promotion>& promotions) {
  return Contraction(analysis, unit, options, promotions).build();
}

std::optional<ContractionShape> contraction_shape(const Analysis& analysis, const Unit& unit,
                                                  const ContractionOptions& options) {
  std::vector<poly::Promotion> none;
  return Contraction(analysis, unit, options, none).shape();
}

}  // namespace tc::cpu
