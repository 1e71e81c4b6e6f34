#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tc {

/// Edits (insertions, deletions, replacements, swaps of neighbours) that turn one word into the other.
int edit_distance(std::string_view a, std::string_view b);

/// The candidate that was probably meant by `word`: the nearest one, if it is near; empty otherwise. Near is at most a
/// third of the word's letters, or one letter of a word of two; upper and lower case count as equal. The first of
/// equally near ones.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace tc
