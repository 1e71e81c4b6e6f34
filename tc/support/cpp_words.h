#pragma once

#include <string>

namespace tc {

/// Whether C or C++, or a macro of GNU's compilers in their own dialects, has the name: text for them needs another.
bool is_cpp_word(const std::string& name);

/// Whether a macro may have the name: one that a compiler predefines (`__LINE__`), or one of <math.h>, <stdint.h>,
/// <stdlib.h> or <string.h>, now or by the prefixes that they reserve (`M_PI`, `INT8_MAX`).
bool is_c_macro(const std::string& name);

}  // namespace tc
