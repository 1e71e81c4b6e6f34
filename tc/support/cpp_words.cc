#include "tc/support/cpp_words.h"

#include <algorithm>
#include <string_view>

namespace tc {
namespace {

/// Each between blanks.
constexpr std::string_view kWords =
    " "
    "_Alignas _Alignof _Atomic _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local "
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t "
    "class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue "
    "decltype default delete do double dynamic_cast else enum explicit export extern false float for friend "
    "goto if inline int linux long mutable namespace new noexcept not not_eq nullptr operator or or_eq "
    "private protected public register reinterpret_cast requires restrict return short signed sizeof static "
    "static_assert static_cast struct switch template this thread_local throw true try typedef typeid "
    "typename typeof union unix unsigned using virtual void volatile wchar_t while xor xor_eq ";

/// Macros without arguments of <math.h>, <stdint.h>, <stdlib.h> and <string.h> that no prefix below covers.
constexpr std::string_view kMacros =
    " "
    "BIG_ENDIAN BYTE_ORDER FD_SETSIZE INFINITY LITTLE_ENDIAN MAXFLOAT MB_CUR_MAX NAN NFDBITS NULL PDP_ENDIAN RAND_MAX "
    "WCONTINUED WEXITED WNOHANG WNOWAIT WSTOPPED WUNTRACED math_errhandling ";

constexpr std::string_view kMacroPrefixes[] = {"EXIT_",       "FP_",   "HUGE_VAL", "INT",  "MATH_",  "M_",   "PTRDIFF_",
                                               "SIG_ATOMIC_", "SIZE_", "SNAN",     "UINT", "WCHAR_", "WINT_"};

bool is_among(std::string_view words, const std::string& name) {
  return words.find(" " + name + " ") != std::string_view::npos;
}

}  // namespace

bool is_cpp_word(const std::string& name) { return is_among(kWords, name); }

bool is_c_macro(const std::string& name) {
  return name.starts_with("__") || is_among(kMacros, name) ||
         std::ranges::any_of(kMacroPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace tc
