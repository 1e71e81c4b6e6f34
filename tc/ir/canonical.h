#pragma once

#include <string>

#include "tc/ir/program.h"
#include "tc/support/digest.h"

namespace tc::ir {

/// A Program as text that says what it computes and nothing else: names are replaced by positions, floats are in
/// hexadecimal, every constant has its type. Two Programs that differ in names, comments and white space only have the
/// same canonical form; a change of meaning changes it. Not for reading back.
std::string canonical_form(const Program& program);

/// The digest of the canonical form.
Digest digest_of(const Program& program);

}  // namespace tc::ir
