#include "tc/gpu/strategy/reduce_in_tiles.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "tc/gpu/mapping/limits.h"
#include "tc/gpu/rewrite/kernel_options.h"
#include "tc/gpu/rewrite/part_statements.h"
#include "tc/gpu/rewrite/parts.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/parts.h"
#include "tc/gpu/strategy/pieces.h"
#include "tc/poly/from_ir.h"
#include "tc/poly/isl_ext.h"
#include "tc/support/round.h"

namespace tc::gpu {
namespace {

/// Whether some reduction stands behind what may be a product.
bool may_have_any(const ir::Program& program) {
  bool has_product = false;
  for (const ir::Statement& s : program.statements) {
    const bool is_product = s.reduces() && shares_operands(program, s);
    if (has_product && !is_product && may_be_cut(program, s)) return true;
    has_product = has_product || is_product;
  }
  return false;
}

size_t number_of(const ir::Program& program, const std::string& id) {
  const auto at = std::find_if(program.statements.begin(), program.statements.end(),
                               [&](const ir::Statement& s) { return s.id == id; });
  return static_cast<size_t>(at - program.statements.begin());
}

/// Whether the options ask for parts of a reduction, or address its kernel.
bool has_own_options(const ir::Program& program, const std::string& id, const options::MappingOptions& options) {
  const std::optional<Address> address = address_of(program, id);
  return std::any_of(options.kernel.begin(), options.kernel.end(),
                     [&](const auto& kernel) { return address && is_about(kernel, *address); });
}

class Rewriter {
 public:
  Rewriter(ir::Program program, const options::MappingOptions& options, const Device& device)
      : options_(options), device_(device), result_{std::move(program), {}} {}

  TileReductions run() {
    const auto context = std::make_shared<poly::Context>();
    const auto before = std::make_shared<const ir::Program>(result_.program);
    const auto rewrite = [&]() -> Result<void> {
      TC_TRY(scop, poly::from_ir(before, context));
      for (const Piece& piece : cut_out_contractions(scop, options_, device_).pieces) {
        if (piece.contraction && !piece.uncut.empty() && !is_cut(*piece.contraction)) cut(scop, piece);
        if (piece.chain && piece.chain->chain.links[0].streamed) keep_whole(piece.chain->chain);
      }
      return {};
    };
    // A program that is too hard for isl stays as it is.
    const Result<void> done = poly::within_budget(*context, rewrite);
    return done ? std::move(result_) : TileReductions{*before, {}};
  }

 private:
  /// Whether a product is cut into parts, so that its results come together in another launch.
  bool is_cut(const Contraction& contraction) const {
    const auto is_product_cut = [&](const Contraction& product) {
      const ir::Program& program = result_.program;
      const size_t at = number_of(program, product.update.id);
      if (at == program.statements.size()) return true;
      const ir::Statement& statement = program.statements[at];
      const options::MappingOptions own = options_at(program, statement.id, options_);
      if (own.split_reduction) return *own.split_reduction > 1;
      const std::optional<Reduction> reduction = reduction_of(program, statement);
      return reduction && contraction_parts(program, statement, *reduction, own, device_).has_value();
    };
    return is_product_cut(contraction) ||
           std::any_of(contraction.further.begin(), contraction.further.end(), is_product_cut);
  }

  /// Products of which the second goes through the first one's results in slabs, with what is reduced on the way.
  void keep_whole(const Chain& chain) {
    for (const Contraction& product : chain.products) {
      result_.whole.insert(product.update.id);
      for (const TileReduction& reduction : product.reductions) result_.whole.insert(reduction.statement.id);
    }
  }

  void cut(const poly::Scop& scop, const Piece& piece) {
    ir::Program& program = result_.program;
    size_t to = number_of(program, scop.statements[piece.contraction->last - 1].id);
    if (to == program.statements.size()) return;
    // That its products stay whole has been found out.
    result_.whole.insert(piece.contraction->update.id);
    for (const Contraction& product : piece.contraction->further) result_.whole.insert(product.update.id);
    for (const TileReduction& reduction : piece.uncut) {
      const size_t at = number_of(program, reduction.statement.id);
      if (at == program.statements.size() || !may_be_cut(program, program.statements[at])) continue;
      if (has_own_options(program, reduction.statement.id, options_)) continue;
      const ir::Statement whole = program.statements[at];
      std::vector<Parts> cuts;
      int64_t results = 1, parts = 1;
      for (size_t a = 0; a < reduction.reduced.size(); ++a) {
        if (!reduction.reduced[a]) {
          results *= piece.contraction->parallel[a].extent;
          continue;
        }
        const int64_t tile = piece.plans[0].parallel[a].tile;
        const int64_t count = ceil_div(piece.contraction->parallel[a].extent, tile);
        cuts.push_back({index_of(whole, reduction.index[a]), count, tile, true, false});
        parts *= count;
      }
      // A thread for each result adds up its parts, or, where there are few results, threads together.
      constexpr int64_t kResultsOfPart = 32;
      cuts.front().in_front = results >= kResultsOfPart * parts;
      PartStatements made = part_statements(program, whole, cuts);
      result_.whole.insert({made.of_parts.id, made.together.id});
      program.statements[at] = std::move(made.together);
      program.statements.insert(program.statements.begin() + static_cast<long>(++to), std::move(made.of_parts));
    }
  }

  static size_t index_of(const ir::Statement& statement, const std::string& name) {
    const auto at = std::find_if(statement.indices.begin(), statement.indices.end(),
                                 [&](const ir::Index& i) { return i.name == name; });
    return static_cast<size_t>(at - statement.indices.begin());
  }

  const options::MappingOptions& options_;
  const Device& device_;
  TileReductions result_;
};

}  // namespace

TileReductions reduce_in_tiles(ir::Program program, const options::MappingOptions& options, const Device& device) {
  const bool may_cut = options.split_reduction.value_or(1) == 1 && takes_contractions(options);
  if (!may_cut || !may_have_any(program)) return {std::move(program), {}};
  return Rewriter(std::move(program), options, device).run();
}

}  // namespace tc::gpu
