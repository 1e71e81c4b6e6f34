#include "tc/gpu/strategy/split_choice.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tc/gpu/rewrite/reshape_temporaries.h"
#include "tc/gpu/rewrite/split_temporaries.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/contraction.h"
#include "tc/gpu/strategy/piece_time.h"
#include "tc/gpu/strategy/pieces.h"
#include "tc/poly/from_ir.h"
#include "tc/poly/isl_ext.h"

namespace tc::gpu {
namespace {

/// Microseconds; nothing if the program is too hard for isl.
std::optional<double> time_of(const ir::Program& program, const options::MappingOptions& options,
                              const Device& device) {
  const auto context = std::make_shared<poly::Context>();
  const auto measure = [&]() -> Result<double> {
    TC_TRY(scop, poly::from_ir(std::make_shared<const ir::Program>(program), context));
    double us = 0;
    for (const Piece& piece : cut_out_contractions(scop, options, device).pieces) us += estimated_us(piece, device);
    return us;
  };
  const Result<double> result = poly::within_budget(*context, measure);
  return result ? std::optional(*result) : std::nullopt;
}

/// A program that may come in the place of another one, and the temporaries that it has in other shapes.
struct Candidate {
  ir::Program program;
  std::vector<std::string> temporaries;
};

/// Those of one temporary, in order of preference: in parts whose dimensions are cut, and as they are.
std::vector<Candidate> candidates_of(const ir::Program& program, const std::string& tensor) {
  std::vector<Candidate> result;
  std::optional<SplitTemporary> split = split_temporary(program, tensor);
  if (split) result.push_back({split->program, split->temporaries});
  Candidate reshaped = split ? result.back() : Candidate{program, {}};
  bool any = false;
  for (const std::string& part : split ? split->parts : std::vector{tensor}) {
    std::optional<Reshaped> more = reshape_temporary(reshaped.program, part);
    if (!more) continue;
    any = true;
    reshaped.program = std::move(more->program);
    if (!split) reshaped.temporaries = std::move(more->tensors);
  }
  if (any) result.insert(result.begin(), std::move(reshaped));
  return result;
}

bool are_of_products(const ir::Program& program, const std::vector<std::string>& tensors) {
  return std::any_of(program.statements.begin(), program.statements.end(), [&](const ir::Statement& s) {
    return s.reduces() && std::count(tensors.begin(), tensors.end(), s.tensor) > 0 && shares_operands(program, s) &&
           is_contraction(program, s);
  });
}

}  // namespace

ir::Program split_products(ir::Program program, const options::MappingOptions& options, const Device& device) {
  constexpr double kClearly = 1.05;  // estimates of unlike kernels are rough
  options::MappingOptions free = without_sizes(options);
  free.kernel.clear();
  std::optional<double> whole;
  const std::vector<ir::Tensor> tensors = program.tensors;
  for (const ir::Tensor& tensor : tensors) {
    if (tensor.role != ir::Role::kTemporary || program.find_tensor(tensor.name) == nullptr) continue;
    for (Candidate& candidate : candidates_of(program, tensor.name)) {
      const std::vector<std::string>& names = candidate.temporaries;
      const bool is_named = std::any_of(options.kernel.begin(), options.kernel.end(), [&](const auto& kernel) {
        return std::count(names.begin(), names.end(), kernel.writes) > 0;
      });
      if (is_named || !are_of_products(program, names)) continue;
      if (!whole) whole = time_of(program, free, device);
      const std::optional<double> us = time_of(candidate.program, free, device);
      if (!whole || !us || *us * kClearly >= *whole) continue;
      program = std::move(candidate.program);
      whole = us;
      break;
    }
  }
  return program;
}

}  // namespace tc::gpu
