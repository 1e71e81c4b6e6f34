#pragma once

#include <Halide.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tc/cpu/place.h"
#include "tc/cpu/ranged.h"
#include "tc/ir/program.h"
#include "tc/poly/scop.h"

namespace tc::cpu {

/// What a statement's body needs to know of its surroundings.
struct BodyContext {
  const ir::Program* program = nullptr;
  /// Where a tensor is, at the statement's place in the schedule.
  std::function<const Place&(const std::string& tensor)> place;
  /// The statement's indices at that place, with the bounds of its domain.
  std::map<std::string, Ranged> indices;
  /// Where the instance may be one that pads a partial tile: indices that keep reads from elsewhere than a padded
  /// buffer inside of their tensors. In the first the vector's lanes, if they are padded, are as they are: a read that
  /// moves forward with them is done where `safe` holds. In the second they are held inside, too.
  std::optional<std::map<std::string, Ranged>> safe_indices;
  std::map<std::string, Ranged> held_indices;
  Halide::Expr safe;
  std::string lane;  ///< the variable of the vector's lanes
};

/// One instance of a statement: its guard, and the store.
Halide::Internal::Stmt statement_body(const poly::Statement& statement, const BodyContext& context);

}  // namespace tc::cpu
