#pragma once

#include <optional>
#include <string>

#include "tc/api/explain.h"
#include "tc/cache/cache.h"
#include "tc/compile/pipeline.h"

namespace tc::api {

/// What the pipeline makes of a def under settings, and why. `compilation` has its Program. Machine code is not made.
/// Errors: the passes'; a size without a value.
Result<Explanation> explain(const compile::Settings& settings, compile::Compilation compilation);

/// The same of a kernel that no options make: what is known without its code.
Result<Explanation> explain_by_hand(const compile::Settings& settings, compile::Compilation compilation,
                                    const std::string& name);

/// What a cache knows of a def under settings.
struct CacheFacts {
  Explanation::Cache cache;
  std::string options;  ///< that it would take the kernel by: those of the settings, or the best that it knows
  std::vector<Explanation::Measurement> measurements;
};
/// `device`: whose measurements count; "": any. Errors: the file's; as ir::bind().
Result<CacheFacts> facts_of(const cache::Cache& file, const compile::Settings& settings, const ir::Program& program,
                            const std::string& device);

/// The same with what a cache's file knows: under the options that it would take the kernel by.
Result<Explanation> explain_with(const cache::Cache& file, const compile::Settings& settings,
                                 const compile::Compilation& compilation, const std::string& device);

/// Adds the facts to an explanation that was made under their options.
void add_facts(CacheFacts facts, Explanation& explanation);

}  // namespace tc::api
