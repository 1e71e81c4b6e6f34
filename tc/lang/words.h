#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

/// The words and symbols that the language itself gives a meaning. Editors highlight by these lists.
namespace tc::lang {

/// A word that is a keyword where the grammar expects it, and a name elsewhere.
enum class Keyword : uint8_t { kDef, kWhere, kIn, kExists, kMin, kMax, kInteger };

struct KeywordInfo {
  Keyword keyword;
  std::string_view name;
  std::string_view meaning;
};

inline constexpr std::array<KeywordInfo, 7> kKeywords = {{
    {Keyword::kDef, "def", "begins a definition: def NAME(parameters) -> (results) { statements }"},
    {Keyword::kWhere, "where", "begins the clauses of a statement: ranges, names of values, reads"},
    {Keyword::kIn, "in", "gives an index its range, half-open: where i in 0:N"},
    {Keyword::kExists, "exists", "adds a read to the inference of ranges only: where exists A(i)"},
    {Keyword::kMin, "min", "with '=' or '=!': keeps the smallest value (min=, min=!)"},
    {Keyword::kMax, "max", "with '=' or '=!': keeps the largest value (max=, max=!)"},
    {Keyword::kInteger, "integer", "restricts a type variable: def f<T: integer>(...)"},
}};

static_assert([] {
  for (size_t i = 0; i < kKeywords.size(); ++i) {
    if (static_cast<size_t>(kKeywords[i].keyword) != i) return false;
  }
  return true;
}());

constexpr std::string_view spelling_of(Keyword keyword) { return kKeywords[static_cast<size_t>(keyword)].name; }

/// All operators and punctuation that the lexer knows, the longest first; `min=` and its like are two tokens.
std::vector<std::string_view> all_symbols();

}  // namespace tc::lang
