#pragma once

#include <optional>
#include <string>

#include "tc/cache/entry.h"
#include "tc/ir/program.h"
#include "tc/lang/ast.h"

/// What the cache keeps of a def, so that a later process needs neither analysis nor range inference.
namespace tc::compile {

/// A def alone, in canonical format without comments.
std::string source_of(const lang::File& file, const std::string& entry);

/// The interface of a symbolic Program. None where an extent is more than sums, products, quotients, minima, maxima and
/// choices of sizes.
std::optional<cache::Interface> interface_of(const ir::Program& program, const std::string& text);

/// The Program of an interface: names, tensors, scalars and sizes, but no statement. It serves ir::bind, ir::shape_of
/// and signatures. None where a text of an extent cannot be read.
std::optional<ir::Program> program_of(const cache::Interface& interface);

}  // namespace tc::compile
