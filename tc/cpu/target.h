#pragma once

#include <Halide.h>

#include <string>

#include "tc/support/result.h"

namespace tc::cpu {

/// What the code generator needs to know of the machine that the code is for.
struct CodeTarget {
  Halide::Target halide;
  std::string cpu;       ///< as LLVM names it: "haswell"
  std::string features;  ///< as LLVM lists them: "+fma,+f16c"
  int vector_bits = 128;
  bool has_fma = false;
  bool has_f16c = false;
  bool has_sse41 = false;
};

/// Reads a target's text; "host" is this machine.
Result<CodeTarget> parse_target(const std::string& text);

/// Whether this processor can run code made for the target.
bool host_can_run(const CodeTarget& target);

}  // namespace tc::cpu
