#include "tc/support/source.h"

#include <algorithm>

#include "tc/support/check.h"

namespace tc {

Source::Source(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {
  TC_CHECK(text_.size() < UINT32_MAX, "source '{}' has {} bytes; at most 4 GiB are addressable", name_, text_.size());
  line_begins_.push_back(0);
  for (size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_begins_.push_back(static_cast<uint32_t>(i + 1));
  }
}

std::string_view Source::text(SourceRange range) const {
  TC_CHECK(range.begin <= range.end && range.end <= text_.size(), "range [{}, {}) is outside a source of {} bytes",
           range.begin, range.end, text_.size());
  return std::string_view(text_).substr(range.begin, range.end - range.begin);
}

LineColumn Source::position(uint32_t offset) const {
  auto after = std::upper_bound(line_begins_.begin(), line_begins_.end(), offset);
  const auto line = static_cast<int>(after - line_begins_.begin());
  return {line, static_cast<int>(offset - line_begins_[line - 1]) + 1};
}

std::string_view Source::line(int number) const {
  TC_CHECK(number >= 1 && number <= static_cast<int>(line_begins_.size()), "source '{}' has no line {}", name_, number);
  const uint32_t begin = line_begins_[number - 1];
  size_t end = text_.find('\n', begin);
  if (end == std::string::npos) end = text_.size();
  if (end > begin && text_[end - 1] == '\r') --end;
  return std::string_view(text_).substr(begin, end - begin);
}

}  // namespace tc
