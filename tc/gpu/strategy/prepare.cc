#include "tc/gpu/strategy/prepare.h"

#include <algorithm>

#include "tc/gpu/mapping/limits.h"
#include "tc/gpu/rewrite/divide_later.h"
#include "tc/gpu/rewrite/drop_overwritten.h"
#include "tc/gpu/rewrite/factor_sums.h"
#include "tc/gpu/rewrite/flatten_dims.h"
#include "tc/gpu/rewrite/gather_extremes.h"
#include "tc/gpu/rewrite/gather_rows.h"
#include "tc/gpu/rewrite/hoist.h"
#include "tc/gpu/rewrite/join_digits.h"
#include "tc/gpu/rewrite/join_ranges.h"
#include "tc/gpu/rewrite/kernel_options.h"
#include "tc/gpu/rewrite/memory_order.h"
#include "tc/gpu/rewrite/narrow_products.h"
#include "tc/gpu/rewrite/operand_order.h"
#include "tc/gpu/rewrite/order_dims.h"
#include "tc/gpu/rewrite/pad_operands.h"
#include "tc/gpu/rewrite/recompute.h"
#include "tc/gpu/rewrite/recompute_products.h"
#include "tc/gpu/rewrite/reduction_lanes.h"
#include "tc/gpu/rewrite/reuse_temporaries.h"
#include "tc/gpu/rewrite/split_digits.h"
#include "tc/gpu/rewrite/split_quotients.h"
#include "tc/gpu/rewrite/split_residues.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/rewrite/trailing_units.h"
#include "tc/gpu/rewrite/unfold.h"
#include "tc/gpu/rewrite/variance_split.h"
#include "tc/gpu/strategy/contraction/contraction.h"
#include "tc/gpu/strategy/contraction/narrow_gain.h"
#include "tc/gpu/strategy/contraction/operand_choice.h"
#include "tc/gpu/strategy/contraction/parts.h"
#include "tc/gpu/strategy/contraction/unfold_choice.h"
#include "tc/gpu/strategy/factor_choice.h"
#include "tc/gpu/strategy/reduce_in_tiles.h"
#include "tc/gpu/strategy/split_choice.h"
#include "tc/gpu/strategy/split_exponentials.h"
#include "tc/gpu/strategy/stream_choice.h"
#include "tc/gpu/strategy/sums_of_powers.h"
#include "tc/ir/gather_scatters.h"
#include "tc/ir/plain_choices.h"
#include "tc/ir/reads.h"
#include "tc/ir/reduce_once.h"
#include "tc/ir/specialise.h"
#include "tc/ir/sum_apart.h"

namespace tc::gpu {
namespace {

/// Whether a temporary is made of a product's results.
bool has_results_of_product(const ir::Program& program, const std::string& tensor) {
  std::vector<std::string> tensors = {tensor};
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (program.tensor(tensors[i]).role != ir::Role::kTemporary) continue;
    for (const ir::Statement& s : program.statements) {
      if (s.tensor != tensors[i]) continue;
      if (s.reduces() && shares_operands(program, s) && is_contraction(program, s)) return true;
      for (const auto* read : ir::reads_in(program, s.value)) {
        if (std::find(tensors.begin(), tensors.end(), read->name) == tensors.end()) tensors.push_back(read->name);
      }
    }
  }
  return false;
}

/// A program whose operands have orders.
struct Ordered {
  Prepared prepared;
  bool orders_results = false;  ///< those of products among them
};

/// Operands laid out as tensor cores multiply them, where that pays; `copy_operands` is true then. `as_made`: what
/// products have made stays as it is.
Result<Ordered> with_orders(ir::Program program, bool as_made, const options::MappingOptions& options,
                            const Device& device) {
  Prepared result{std::move(program), options};
  bool any = false, orders_results = false;
  if (takes_contractions(options) && options.copy_operands.value_or(true)) {
    result.program =
        unfold_products(std::move(result.program), [&](const ir::Program& whole, const ir::Statement& statement) {
          auto unfolding = choose_unfolding(whole, statement, options_at(whole, statement.id, options), device);
          any = any || unfolding.has_value();
          return unfolding;
        });
    result.program = order_operands(
        std::move(result.program),
        [&](const ir::Program& whole, const ir::Statement& statement, const std::vector<OperandOrder>& copies) {
          auto orders = choose_orders(whole, statement, copies, options_at(whole, statement.id, options), device);
          const auto is_result = [&](const OperandOrder& o) { return has_results_of_product(whole, o.tensor); };
          orders_results = orders_results || std::any_of(orders.begin(), orders.end(), is_result);
          if (as_made) std::erase_if(orders, is_result);
          any = any || !orders.empty();
          return orders;
        });
  }
  if (any) result.options.copy_operands = true;
  if (any || !options.copy_operands.value_or(false)) return Ordered{std::move(result), orders_results};
  return fail("'copy_operands' is true, but no order of operands makes a product one for tensor cores");
}

/// with_orders(), and products made again for those that read them.
Result<Ordered> arranged(const ir::Program& program, bool as_made, const options::MappingOptions& options,
                         const Device& device) {
  TC_TRY(ordered, with_orders(program, as_made, options, device));
  ir::Program& result = ordered.prepared.program;
  result = reduce_along_memory(recompute_in_copies(std::move(result), device.instances_of_launch));
  if (takes_contractions(options) && options.chain.value_or(true)) {
    result = recompute_products(
        std::move(result), [&](const ir::Program& stored, const ir::Program& made_again, const MadeAgain& made) {
          return gains_by_recomputing(stored, made_again, made, ordered.prepared.options, device);
        });
  }
  return ordered;
}

/// Operands in the order that pays: a product's results get none where it is better to stream them as they are made.
Result<Prepared> in_orders_or_streams(const ir::Program& program, const options::MappingOptions& options,
                                      const Device& device) {
  TC_TRY(ordered, arranged(program, false, options, device));
  if (!ordered.orders_results || options.copy_operands || !options.chain.value_or(true)) return ordered.prepared;
  Result<Ordered> as_made = arranged(program, true, options, device);
  if (!as_made) return ordered.prepared;
  const bool streams =
      gains_by_streaming(ordered.prepared.program, as_made->prepared.program, as_made->prepared.options, device);
  return streams ? as_made->prepared : ordered.prepared;
}

/// Whether a statement reads nothing that a product has made.
bool reads_no_product(const ir::Program& program, const ir::Statement& s) {
  const auto reads = ir::reads_in(program, s.value);
  return std::none_of(reads.begin(), reads.end(),
                      [&](const auto* read) { return has_results_of_product(program, read->name); });
}

/// Products whose left sides no contraction has, as those of reversed rows, in temporaries, from which they are stored.
/// So are those that a condition chooses which is the same for all terms.
ir::Program products_apart(ir::Program program, const std::set<std::string>& addressed) {
  // Options that name the sums are those of such a plan.
  const auto is_kept = [&](const ir::Statement& product, const ir::SumApart& apart) {
    return addressed.count(product.tensor) > 0 && addressed.count(apart.sums.name) == 0;
  };
  const auto is_product = [](ir::Program whole, const ir::SumApart& apart) {
    whole.tensors.push_back(apart.sums);
    return is_contraction(whole, apart.sum);
  };
  program = ir::choices_behind_sums(
      std::move(program), [&](const ir::Program& whole, const ir::Statement& product, const ir::SumApart& apart) {
        return !is_kept(product, apart) && is_product(whole, apart);
      });
  return ir::sums_apart(
      std::move(program), [&](const ir::Program& whole, const ir::Statement& product, const ir::SumApart& apart) {
        return !is_kept(product, apart) && !is_contraction(whole, product) && is_product(whole, apart);
      });
}

/// Whether copies of its operands make a contraction of a statement, or let tensor cores take it at little cost.
bool gains_by_padding(const PaddedProduct& product, const Device& device) {
  constexpr int64_t kLeastReuse = 64;  // of an element that is copied
  if (!is_contraction(product.after, product.padded)) return false;
  if (!is_contraction(product.before, product.whole)) return true;
  int64_t instances = 1;
  for (const ir::Index& index : product.padded.indices) instances *= std::min(extent_of(index), INT64_MAX / instances);
  const auto is_used_often = [&](const ir::Tensor& tensor) {
    int64_t reuse = instances;
    for (const int64_t extent : ir::constant_shape(tensor)) reuse /= extent;
    return reuse >= kLeastReuse;
  };
  const std::vector<const Halide::Internal::Call*> reads = ir::reads_in(product.after, product.padded.value);
  const auto is_narrow = [](const auto* read) { return read->type.is_float() && read->type.bits() <= 16; };
  return device.tensor_products > 0 && std::all_of(reads.begin(), reads.end(), is_narrow) &&
         std::all_of(product.temporaries.begin(), product.temporaries.end(), is_used_often);
}

/// Products in the form that contractions have, as far as they have one.
ir::Program with_contractions(ir::Program program, const Device& device, const std::set<std::string>& addressed) {
  program = products_apart(split_digits(std::move(program), is_contraction), addressed);
  return pad_operands(std::move(program), is_contraction,
                      [&](const PaddedProduct& product) { return gains_by_padding(product, device); });
}

/// Whether statements of a program are contractions then, all of whose operands are boxes, perhaps with zeros around.
bool become_products_of_boxes(const ir::Program& program, const std::vector<size_t>& places, const Device& device) {
  ir::Program alone = program;
  alone.statements.clear();
  for (const size_t place : places) alone.statements.push_back(program.statements[place]);
  alone = with_contractions(std::move(alone), device, {});
  const auto is_one = [&](size_t place) {
    return std::any_of(alone.statements.begin(), alone.statements.end(), [&](const ir::Statement& s) {
      return s.id == program.statements[place].id && is_contraction(alone, s) && !has_hidden_terms(s);
    });
  };
  return std::all_of(places.begin(), places.end(), is_one);
}

/// Whether a sum over what reaches each element is worth more terms than a scatter has.
bool gains_by_gathering(const ir::GatheredScatter& sum) {
  constexpr int64_t kMostGrowth = 4;
  return ir::instance_count(sum.gathered) / kMostGrowth <= ir::instance_count(sum.scattered);
}

}  // namespace

Result<Prepared> prepare(ir::Program program, const options::MappingOptions& options, const Device& device,
                         bool element_aligned) {
  std::set<std::string> addressed;
  for (const options::KernelOptions& kernel : options.kernel) addressed.insert(kernel.writes);
  program =
      ir::reduce_once(ir::plain_choices(drop_trailing_units(order_dims(std::move(program)))),
                      {.strict = options.strict, .least_instances = device.instances_of_launch, .kept = addressed});
  const auto may_go = [&](const std::string& tensor) { return addressed.count(tensor) == 0; };
  const auto may_join = [&](const std::string& tensor) {
    return std::none_of(options.kernel.begin(), options.kernel.end(), [&](const options::KernelOptions& kernel) {
      return kernel.writes == tensor && kernel.occurrence.has_value();
    });
  };
  for (ir::Tensor& tensor : program.tensors) {
    tensor.at_any_address = element_aligned && tensor.role != ir::Role::kTemporary;
  }
  const auto none = [&]() -> Result<void> {
    int64_t most = options.split_reduction.value_or(1);
    for (const options::KernelOptions& kernel : options.kernel) {
      most = std::max(most, kernel.split_reduction.value_or(1));
    }
    const char* why = options.strict ? "strict kernels" : "the classic mapping's kernels";
    if (options.copy_operands.value_or(false)) return fail("'copy_operands' is true, but {} copy no operands", why);
    if (most == 1) return {};
    return fail("'split_reduction' is {}, but {} cut no reduction into parts", most, why);
  };
  if (options.strict || !takes_recipes(options)) {
    TC_TRY_VOID(none());
    return Prepared{options.strict ? std::move(program) : reductions_in_lanes(std::move(program), device), options};
  }
  program = drop_overwritten(ir::gather_scatters(split_quotients(std::move(program)), gains_by_gathering));
  if (takes_contractions(options)) {
    program = split_residues(std::move(program), [&](const ir::Program& whole, const std::vector<size_t>& places) {
      return become_products_of_boxes(whole, places, device);
    });
    program = with_contractions(std::move(program), device, addressed);
  }
  program = drop_overwritten(std::move(program));
  if (takes_contractions(options)) program = gather_extremes(std::move(program), has_results_of_product);
  if (takes_contractions(options) && device.tensor_products > 0) {
    program = drop_overwritten(divide_later(std::move(program)));
    program = factor_sums(std::move(program), [&](const ir::Program& whole, const ir::Statement& statement,
                                                  const std::vector<FactoredSum>& ways) {
      return choose_factor(whole, statement, ways, options, device);
    });
    program = narrow_products(std::move(program), [&](const ir::Program& whole, const ir::Statement& statement,
                                                      const NarrowProducts& instead) {
      return gains_by_tensor_cores(whole, statement, instead, options, device);
    });
  }
  if (takes_contractions(options)) {
    if (options.chain.value_or(true)) program = recompute_rows_of_chains(std::move(program), is_contraction);
    program = reuse_temporaries(std::move(program), has_results_of_product, may_go);
  }
  const auto leave_chip = [&](const ir::Program& whole, const ir::Statement& s) {
    return reduces_across_memory(whole, s) || !busy_parts(whole, s, device).empty();
  };
  program = recompute_temporaries(std::move(program), device.instances_of_launch / 4, leave_chip);
  if (takes_contractions(options)) {
    constexpr int64_t kOperations = 160;  // of an instance: 1.5 us on an H200, where launches take 3 or 4
    program = recompute_beside_products(std::move(program), kOperations * device.instances_of_launch, is_contraction);
    program = hoist_before_products(std::move(program), is_contraction);
    if (options.chain.value_or(true)) program = sink_behind_chains(std::move(program), is_contraction);
  }
  const auto is_product = [&](const ir::Program& whole, const ir::Statement& s) {
    return takes_contractions(options) && is_contraction(whole, s);
  };
  program = join_ranges(std::move(program), device.instances_of_launch, is_product, may_join);
  if (takes_contractions(options)) {
    program = gather_rows(std::move(program), options.max_gathered_memory.value_or(0), is_contraction);
    program = split_products(std::move(program), options, device);
  }
  TC_TRY(ordered, in_orders_or_streams(flatten_dims(std::move(program)), options, device));
  program = std::move(ordered.program);
  program = join_digits(std::move(program), [&](const ir::Program& whole, const ir::Statement& s) {
    return may_join(s.tensor) && reads_no_product(whole, s);
  });
  TileReductions tiles = reduce_in_tiles(std::move(program), ordered.options, device);
  program = std::move(tiles.program);
  const auto choose = [&](const ir::Program& whole, const ir::Statement& statement, const Reduction& reduction) {
    return contraction_parts(whole, statement, reduction, options_at(whole, statement.id, options), device);
  };
  const ContractionParts contractions = {is_contraction, choose};
  const bool splits =
      options.split_reduction || std::any_of(options.kernel.begin(), options.kernel.end(),
                                             [](const auto& k) { return k.split_reduction.has_value(); });
  if (splits) return split_into_parts(std::move(program), ordered.options, device, contractions, tiles.whole);
  program = sums_of_powers(std::move(program), has_results_of_product);
  ExponentialSplit exponentials = split_exponentials(std::move(program), device, has_results_of_product);
  tiles.whole.insert(exponentials.whole.begin(), exponentials.whole.end());
  VarianceSplit split = split_variances(std::move(exponentials.program), device);
  tiles.whole.insert(split.over_parts.begin(), split.over_parts.end());
  return split_into_parts(std::move(split.program), ordered.options, device, contractions, tiles.whole);
}

}  // namespace tc::gpu
