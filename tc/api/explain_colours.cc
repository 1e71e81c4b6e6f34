#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "tc/api/explain_page.h"
#include "tc/lang/lexer.h"
#include "tc/lang/words.h"

namespace tc::api {
namespace {

std::string span(const char* kind, std::string_view text) {
  return fmt::format("<span class=\"{}\">{}</span>", kind, escaped(text));
}

/// A stretch of a text and what it is; "" for nothing that has a colour.
struct Stretch {
  uint32_t begin = 0, end = 0;
  const char* kind = "";
};

const char* kind_of(const lang::Token& token, std::string_view text) {
  switch (token.kind) {
    case lang::TokenKind::kType:
      return "type";
    case lang::TokenKind::kNumber:
      return "number";
    case lang::TokenKind::kName: {
      const auto is_word = [&](const lang::KeywordInfo& word) { return word.name == text; };
      return std::ranges::any_of(lang::kKeywords, is_word) ? "keyword" : "";
    }
    default:
      return "";
  }
}

std::vector<Stretch> stretches_of(const SourcePtr& text) {
  const Source& source = *text;
  lang::Report report(text);
  const lang::Tokens tokens = lang::lex(source, report);
  std::vector<Stretch> stretches;
  for (const lang::Token& token : tokens.tokens) {
    const char* const kind = kind_of(token, source.text(token.range));
    if (*kind) stretches.push_back({token.range.begin, token.range.end, kind});
  }
  for (const lang::Comment& comment : tokens.comments) {
    stretches.push_back({comment.range.begin, comment.range.end, "comment"});
  }
  std::ranges::sort(stretches, {}, &Stretch::begin);
  return stretches;
}

/// The part [begin, end) of a text; no stretch goes over the end of a line.
std::string coloured(std::string_view text, const std::vector<Stretch>& stretches, uint32_t begin, uint32_t end) {
  std::string out;
  uint32_t at = begin;
  for (const Stretch& s : stretches) {
    if (s.end <= begin || s.begin >= end) continue;
    out += escaped(text.substr(at, s.begin - at));
    out += span(s.kind, text.substr(s.begin, std::min(s.end, end) - s.begin));
    at = std::min(s.end, end);
  }
  return out + escaped(text.substr(at, end - at));
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

const char* kind_of_word(std::string_view word, std::string_view language) {
  static constexpr std::array<std::string_view, 26> kCuda = {"__global__",
                                                             "__device__",
                                                             "__shared__",
                                                             "__restrict__",
                                                             "__launch_bounds__",
                                                             "__syncthreads",
                                                             "__align__",
                                                             "__forceinline__",
                                                             "asm",
                                                             "volatile",
                                                             "const",
                                                             "if",
                                                             "else",
                                                             "for",
                                                             "while",
                                                             "return",
                                                             "extern",
                                                             "struct",
                                                             "static",
                                                             "typedef",
                                                             "template",
                                                             "typename",
                                                             "constexpr",
                                                             "union",
                                                             "inline",
                                                             "using"};
  static constexpr std::array<std::string_view, 17> kLoops = {
      "for",  "parallel", "vectorized", "unrolled", "let",     "if",       "else",   "allocate", "free",
      "step", "kernel",   "global",     "shared",   "barrier", "register", "scalar", "in"};
  static constexpr std::array<std::string_view, 20> kTypes = {
      "float",  "double", "int",    "unsigned", "char",    "short",   "long",    "bool",    "void",    "float4",
      "float2", "half",   "__half", "uint4",    "int64_t", "int32_t", "float32", "float64", "float16", "int64"};
  if (std::ranges::find(kTypes, word) != kTypes.end()) return "type";
  const bool known = language == "cuda" ? std::ranges::find(kCuda, word) != kCuda.end()
                                        : std::ranges::find(kLoops, word) != kLoops.end();
  if (known) return "keyword";
  return std::isdigit(static_cast<unsigned char>(word[0])) ? "number" : "";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string kernel_class(size_t number) { return fmt::format("k{}", number % 6); }

std::string coloured_source(const Explanation& e) {
  const auto shared = std::make_shared<const Source>(e.file, e.text);
  const Source& source = *shared;
  const std::vector<Stretch> stretches = stretches_of(shared);
  std::map<int, std::string> marks;
  for (const Explanation::Statement& s : e.statements) {
    if (!s.range) continue;
    const std::string kind = s.kernel ? kernel_class(*s.kernel) : "none";
    marks[source.position(s.range->begin).line] += fmt::format("<b class=\"{}\">{}</b>", kind, escaped(s.id));
  }
  const int first = source.position(e.def.begin).line, last = source.position(e.def.end).line;
  std::string out;
  uint32_t begin = 0;
  for (int line = 1; begin < e.text.size(); ++line) {
    const auto end = static_cast<uint32_t>(std::min(e.text.find('\n', begin), e.text.size()));
    const auto mark = marks.find(line);
    out += fmt::format("<span class=\"line{}\"><i>{}</i><em>{}</em>{}\n</span>",
                       line < first || line > last ? " other" : "", line, mark == marks.end() ? "" : mark->second,
                       coloured(e.text, stretches, begin, end));
    begin = end + 1;
  }
  return out;
}

std::string coloured_code(std::string_view code, std::string_view language) {
  std::string out;
  bool at_line = true;
  for (size_t at = 0; at < code.size();) {
    const char c = code[at];
    size_t end = at + 1;
    if (code.substr(at).starts_with("//") || (c == '#' && at_line)) {
      end = std::min(code.find('\n', at), code.size());
      out += span(c == '#' ? "keyword" : "comment", code.substr(at, end - at));
    } else if (code.substr(at).starts_with("/*")) {
      end = std::min(code.find("*/", at), code.size() - 2) + 2;
      out += span("comment", code.substr(at, end - at));
    } else if (c == '"') {
      while (end < code.size() && code[end] != '"' && code[end] != '\n') end += code[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, code.size());
      out += span("number", code.substr(at, end - at));
    } else if (is_word(c)) {
      while (end < code.size() &&
             (is_word(code[end]) || (std::isdigit(static_cast<unsigned char>(c)) && code[end] == '.')))
        ++end;
      const std::string_view word = code.substr(at, end - at);
      const char* const kind = kind_of_word(word, language);
      out += *kind ? span(kind, word) : escaped(word);
    } else {
      out += escaped(code.substr(at, 1));
    }
    at_line = c == '\n' || (at_line && c == ' ');
    at = end;
  }
  return out;
}

}  // namespace tc::api
