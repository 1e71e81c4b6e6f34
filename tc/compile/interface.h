#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tc/cache/cache.h"
#include "tc/cache/entry.h"
#include "tc/ir/program.h"
#include "tc/lang/ast.h"
#include "tc/support/digest.h"

/// What the cache keeps of a def, so that a later process needs neither analysis nor range inference.
namespace tc::compile {

/// A def alone, in canonical format without comments.
std::string source_of(const lang::File& file, const std::string& entry);

/// The interface of a symbolic Program, with the values of its scalars or without. None where an extent is more than
/// sums, products, quotients, minima, maxima and choices of sizes.
std::optional<cache::Interface> interface_of(const ir::Program& program, const std::string& text);

/// What a file has an interface under: the text of the def, and the values of its compiled-in scalars.
Digest interface_key(const std::string& text, const std::map<std::string, int64_t>& scalars);

/// Keeps the interface of a def in a file, and that for the values of its scalars, which `instance` has in place. One
/// that interface_of() has none of is left out.
Result<void> keep_interfaces(cache::Cache& file, const ir::Program& program, const ir::Program& instance,
                             const std::string& text);

/// The Program of an interface: names, tensors, scalars and sizes, but no statement. It serves ir::bind, ir::shape_of
/// and signatures. None where a text of an extent cannot be read.
std::optional<ir::Program> program_of(const cache::Interface& interface);

}  // namespace tc::compile
