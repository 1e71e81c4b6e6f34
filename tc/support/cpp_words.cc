#include "tc/support/cpp_words.h"

#include <string_view>

namespace tc {
namespace {

/// Each between blanks.
constexpr std::string_view kWords =
    " "
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t "
    "class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue "
    "decltype default delete do double dynamic_cast else enum explicit export extern false float for friend "
    "goto if inline int linux long mutable namespace new noexcept not not_eq nullptr operator or or_eq "
    "private protected public register reinterpret_cast requires restrict return short signed sizeof static "
    "static_assert static_cast struct switch template this thread_local throw true try typedef typeid "
    "typename typeof union unix unsigned using virtual void volatile wchar_t while xor xor_eq ";

}  // namespace

bool is_cpp_word(const std::string& name) { return kWords.find(" " + name + " ") != std::string_view::npos; }

}  // namespace tc
