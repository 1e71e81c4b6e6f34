#pragma once

#include <string>

namespace tc {

/// Whether C or C++, or a macro of GNU's compilers in their own dialects, has the name: text for them needs another.
bool is_cpp_word(const std::string& name);

}  // namespace tc
