#pragma once

#include <map>
#include <string>
#include <vector>

#include "tc/api/tc.h"
#include "tc/cache/entry.h"

/// A kernel as C, for programs that have nothing of this project.
namespace tc::cli {

struct ExportedC {
  std::string header;  ///< NAME.h
  std::string source;  ///< NAME.c; of a GPU with the cubin inside
  /// Of the CPU's object: how its symbols are called in the source, so that two exports fit into one program.
  std::map<std::string, std::string> renamed;
};

/// The function `name` (a C identifier) that runs an entry. It takes the def's parameters, then its results that are
/// not among them: tensors as addresses, scalars as values, by the def's names but for those that C or the function has
/// ("int" is "int_"). Errors: a function of mathematics that C's library lacks.
Result<ExportedC> export_c(const std::string& name, const api::Signature& signature, const api::Specs& specs,
                           const std::map<std::string, int64_t>& compiled_in, const cache::Key& key,
                           const cache::Entry& entry);

}  // namespace tc::cli
