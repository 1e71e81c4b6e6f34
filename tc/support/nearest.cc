#include "tc/support/nearest.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace tc {
namespace {

std::string lower_case(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table of distances between prefixes: a swap looks two rows back.
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  constexpr size_t kLongestName = 64;  // nobody means a name by a page of text
  if (word.size() > kLongestName) return {};
  const std::string wanted = lower_case(word);
  int best = (word.size() == 2 ? 1 : static_cast<int>(word.size()) / 3) + 1;
  std::string found;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    const int distance = edit_distance(wanted, lower_case(candidate));
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

}  // namespace tc
