#pragma once

#include <string>

#include "tc/tile/program.h"

namespace tc::tile {

/// What verify() and certify() prove of each kernel of a program, with counts; what is wrong; and what they could not
/// decide, with the reason. Proves it anew, which takes up to seconds.
std::string certificate_text(const Program& program);

}  // namespace tc::tile
