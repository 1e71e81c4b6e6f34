#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tc {

/// A half-open range of byte offsets into a Source.
struct SourceRange {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool operator==(const SourceRange&) const = default;
};

/// A position as people count: line and column from 1; columns count bytes.
struct LineColumn {
  int line = 1;
  int column = 1;
  bool operator==(const LineColumn&) const = default;
};

/// An immutable text with a name for messages. Shared by all that points into it.
class Source {
 public:
  Source(std::string name, std::string text);

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }
  std::string_view text(SourceRange range) const;
  LineColumn position(uint32_t offset) const;
  /// The line (counted from 1) without its end-of-line characters.
  std::string_view line(int number) const;

 private:
  std::string name_;
  std::string text_;
  std::vector<uint32_t> line_begins_;
};

using SourcePtr = std::shared_ptr<const Source>;

}  // namespace tc
