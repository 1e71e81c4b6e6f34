#include "tc/support/result.h"

#include <algorithm>

namespace tc {
namespace {

constexpr size_t kMaxLineShown = 200;

/// True if all bytes at or above 0x80 make up UTF-8 sequences.
bool is_utf8(std::string_view text) {
  size_t pending = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80) {
      if (pending == 0) return false;
      --pending;
    } else {
      if (pending != 0 || byte >= 0xF8) return false;
      pending = byte < 0x80 ? 0 : byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : 1;
    }
  }
  return pending == 0;
}

/// What a terminal could take for a command, and bytes of a binary file, become question marks.
void replace_unprintable(std::string& line) {
  const bool text = is_utf8(line);
  for (char& c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7F || (byte >= 0x80 && !text)) c = '?';
  }
}

/// "file:3:7: error: message", the source line and a marker under the range.
void append(std::string& out, const Source* source, const std::optional<SourceRange>& range, const char* kind,
            const std::string& message) {
  if (!source || !range) {
    out += fmt::format("{}: {}\n", kind, message);
    return;
  }
  const LineColumn at = source->position(range->begin);
  out += fmt::format("{}:{}:{}: {}: {}\n", source->name(), at.line, at.column, kind, message);
  const std::string_view line = source->line(at.line);
  const size_t column = at.column - 1;
  // A very long line (a minified or binary file) is shown in a window around the marker.
  const size_t from = column > kMaxLineShown / 2 && line.size() > kMaxLineShown ? column - kMaxLineShown / 2 : 0;
  std::string shown(line.substr(from, kMaxLineShown));
  std::string marker;
  for (size_t i = 0; i < shown.size() && from + i < column; ++i) marker += shown[i] == '\t' ? '\t' : ' ';
  const size_t width = std::clamp<size_t>(
      range->end - range->begin, 1, std::max<size_t>(1, from + shown.size() - std::min(column, from + shown.size())));
  replace_unprintable(shown);
  marker += '^';
  marker.append(width - 1, '~');
  out += fmt::format("    {}\n    {}\n", shown, marker);
}

}  // namespace

std::string to_string(const SourcePtr& source, const std::vector<Note>& notes) {
  std::string out;
  for (const Note& note : notes) append(out, source.get(), note.range, "note", note.text);
  return out;
}

std::string Error::to_string() const {
  std::string out;
  for (const Diagnostic& d : diagnostics_) {
    append(out, source_.get(), d.range, "error", d.message);
    for (const Note& note : d.notes) append(out, source_.get(), note.range, "note", note.text);
  }
  return out;
}

}  // namespace tc
