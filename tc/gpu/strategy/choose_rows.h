#pragma once

#include <optional>
#include <string>

#include "tc/gpu/lower/launch.h"
#include "tc/gpu/mapping/limits.h"
#include "tc/gpu/strategy/rows/plan.h"

namespace tc::gpu {

/// A launch by the recipe for rows, and its plan.
struct RowsLaunch {
  Launch launch;
  RowsPlan plan;
};

/// The kernel of a part by the recipe for rows; nothing where plan_rows() has nothing. Elements that registers do not
/// hold are read from memory again, or kept in shared memory, or as many of them as fit; temporaries of elements are
/// passed on, or computed again. The fastest by estimate is taken:
///     use_shared_memory  true: something is kept, where there is anything to keep; false: nothing
std::optional<RowsLaunch> choose_rows(const poly::Scop& scop, const FusedGroup& part,
                                      const options::MappingOptions& options, const Device& device,
                                      const std::string& name, Reasons& reasons);

/// The kernel of a part by the recipe for rows whose lanes may read far apart, element by element.
std::optional<Launch> rows_read_apart(const poly::Scop& scop, const FusedGroup& part,
                                      const options::MappingOptions& options, const Device& device,
                                      const std::string& name);

}  // namespace tc::gpu
