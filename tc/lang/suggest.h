#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tc::lang {

/// How many single-letter edits turn one word into the other.
inline size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

/// The candidate that a misspelt word was probably meant to be: the first of the nearest, within a third of its
/// letters.
inline std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::optional<std::string_view> best;
  size_t distance = word.size() / 3 + 1;
  for (std::string_view candidate : candidates) {
    const size_t d = edit_distance(word, candidate);
    if (d < distance) {
      best = candidate;
      distance = d;
    }
  }
  return best;
}

}  // namespace tc::lang
