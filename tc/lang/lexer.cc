#include "tc/lang/lexer.h"

#include <array>

#include "tc/lang/words.h"

namespace tc::lang {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

/// Printable ASCII or white space.
bool is_text(char c) { return is_space(c) || (c > 0x20 && c < 0x7F); }

struct Symbol {
  std::string_view text;
  Token token;
};

/// The longest first.
const std::array kSymbols = {
    Symbol{"\xE2\x86\x92", {TokenKind::kArrow, {}}},
    Symbol{"+=!", {TokenKind::kAssign, {}, AssignOp::kSumInit}},
    Symbol{"*=!", {TokenKind::kAssign, {}, AssignOp::kProductInit}},
    Symbol{"->", {TokenKind::kArrow, {}}},
    Symbol{"+=", {TokenKind::kAssign, {}, AssignOp::kSum}},
    Symbol{"*=", {TokenKind::kAssign, {}, AssignOp::kProduct}},
    Symbol{"||", {TokenKind::kBinary, {}, {}, BinaryOp::kOr}},
    Symbol{"&&", {TokenKind::kBinary, {}, {}, BinaryOp::kAnd}},
    Symbol{"==", {TokenKind::kBinary, {}, {}, BinaryOp::kEq}},
    Symbol{"!=", {TokenKind::kBinary, {}, {}, BinaryOp::kNe}},
    Symbol{"<=", {TokenKind::kBinary, {}, {}, BinaryOp::kLe}},
    Symbol{">=", {TokenKind::kBinary, {}, {}, BinaryOp::kGe}},
    Symbol{"<", {TokenKind::kBinary, {}, {}, BinaryOp::kLt}},
    Symbol{">", {TokenKind::kBinary, {}, {}, BinaryOp::kGt}},
    Symbol{"+", {TokenKind::kBinary, {}, {}, BinaryOp::kAdd}},
    Symbol{"-", {TokenKind::kBinary, {}, {}, BinaryOp::kSub}},
    Symbol{"*", {TokenKind::kBinary, {}, {}, BinaryOp::kMul}},
    Symbol{"/", {TokenKind::kBinary, {}, {}, BinaryOp::kDiv}},
    Symbol{"%", {TokenKind::kBinary, {}, {}, BinaryOp::kMod}},
    Symbol{"=", {TokenKind::kAssign, {}, AssignOp::kSet}},
    Symbol{"!", {TokenKind::kNot, {}}},
    Symbol{"(", {TokenKind::kOpen, {}}},
    Symbol{")", {TokenKind::kClose, {}}},
    Symbol{"{", {TokenKind::kOpenBrace, {}}},
    Symbol{"}", {TokenKind::kCloseBrace, {}}},
    Symbol{",", {TokenKind::kComma, {}}},
    Symbol{":", {TokenKind::kColon, {}}},
    Symbol{"?", {TokenKind::kQuestion, {}}},
    Symbol{".", {TokenKind::kDot, {}}},
};

/// What people bring along from other languages, and what to write here.
struct Habit {
  std::string_view text;
  std::string_view advice;
};
constexpr std::array kHabits = {
    Habit{"//", "a comment begins with '#'"},
    Habit{"/*", "a comment begins with '#'"},
    Habit{"**", "'**' is not an operator: a power is pow(x, y)"},
    Habit{";", "statements are not separated by ';'"},
    Habit{"[", "'[' is not used: subscripts stand in parentheses, as in A(i, j)"},
    Habit{"]", "']' is not used: subscripts stand in parentheses, as in A(i, j)"},
    Habit{"&", "'&' is not an operator: write '&&' for bools, bitwise_and(a, b) for integers"},
    Habit{"|", "'|' is not an operator: write '||' for bools, bitwise_or(a, b) for integers"},
    Habit{"^", "'^' is not an operator: write pow(x, y), or bitwise_xor(a, b) for integers"},
    Habit{"\xEF\xBB\xBF", "a byte order mark has no meaning here: save the file as UTF-8 without one"},
    Habit{"@", "'@' is not an operator: a product is C(m,n) +=! A(m,k) * B(k,n)"},
    Habit{"~", "'~' is not an operator: write '!' for bools, bitwise_not(a) for integers"},
};

constexpr std::string_view kRangeHabit = "'[' is not used: a half-open range is written 'k in 0:K'";

class Lexer {
 public:
  Lexer(const Source& source, Report& report) : text_(source.text()), report_(report) {}

  Tokens run() {
    for (skip_space(); at_ < text_.size(); skip_space()) {
      if (is_letter(text_[at_])) {
        name();
      } else if (starts_number()) {
        number();
      } else if (!habit() && !symbol()) {
        garbage();
      }
    }
    push({TokenKind::kEnd, {size(), size()}});
    return std::move(out_);
  }

 private:
  uint32_t size() const { return static_cast<uint32_t>(text_.size()); }
  bool looking_at(std::string_view what) const { return text_.substr(at_, what.size()) == what; }
  void push(Token token) { out_.tokens.push_back(token); }
  bool after(TokenKind kind) const { return !out_.tokens.empty() && out_.tokens.back().kind == kind; }

  void skip_space() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '#') {
        const uint32_t begin = at_;
        skip_line();
        out_.comments.push_back({{begin, at_}});
        if (at_ == text_.size()) return;
      } else if (!is_space(text_[at_])) {
        return;
      }
    }
  }

  /// To the end of the line, which is not part of a comment, nor is the white space before it.
  void skip_line() {
    const size_t end = text_.find('\n', at_);
    uint32_t stop = end == std::string_view::npos ? size() : static_cast<uint32_t>(end);
    while (stop > at_ && is_space(text_[stop - 1])) --stop;
    at_ = stop;
  }

  void name() {
    const uint32_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const SourceRange range{begin, at_};
    const std::string_view text = text_.substr(begin, at_ - begin);
    if (text.size() > kMaxNameBytes) {
      report_.error(range, "a name of {} characters is too long: at most {} are allowed", text.size(), kMaxNameBytes);
      push({TokenKind::kBad, range});
      return;
    }
    push({scalar_type_from_name(text) ? TokenKind::kType : TokenKind::kName, range});
  }

  /// `.5` is a number, but not in `T.0`.
  bool starts_number() const {
    if (is_digit(text_[at_])) return true;
    return text_[at_] == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]) && !after(TokenKind::kName) &&
           !after(TokenKind::kDot);
  }

  /// Takes all that a number could be meant to be: 1.5e-3, and also 0x1F, 1.2.3 and 2f, which are none.
  void number() {
    const uint32_t begin = at_;
    const bool of_extent = after(TokenKind::kDot);
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      const char before = at_ > begin ? text_[at_ - 1] : '\0';
      const bool sign = (c == '+' || c == '-') && (before == 'e' || before == 'E') && at_ + 1 < text_.size() &&
                        is_digit(text_[at_ + 1]);
      if (!is_digit(c) && !is_letter(c) && (of_extent || (c != '.' && !sign))) break;
    }
    push({TokenKind::kNumber, {begin, at_}});
  }

  bool habit() {
    for (const Habit& habit : kHabits) {
      if (!looking_at(habit.text) || looking_at("&&") || looking_at("||")) continue;
      const uint32_t begin = at_;
      at_ += static_cast<uint32_t>(habit.text.size());
      // Brackets come in pairs, and where one is there are more: said once.
      const bool bracket = habit.text == "[" || habit.text == "]";
      if (!bracket || !bracket_reported_) {
        report_.error({begin, at_}, "{}", bracket && in_range() ? kRangeHabit : habit.advice);
      }
      bracket_reported_ |= bracket;
      if (habit.text == "//") {
        skip_line();
      } else if (habit.text != ";") {
        push({TokenKind::kBad, {begin, at_}});
      }
      return true;
    }
    return false;
  }

  /// After the 'in' of a range.
  bool in_range() const {
    if (!after(TokenKind::kName)) return false;
    const SourceRange last = out_.tokens.back().range;
    return text_.substr(last.begin, last.end - last.begin) == "in";
  }

  bool symbol() {
    for (const Symbol& symbol : kSymbols) {
      if (!looking_at(symbol.text)) continue;
      Token token = symbol.token;
      token.range = {at_, at_ + static_cast<uint32_t>(symbol.text.size())};
      at_ = token.range.end;
      push(token);
      return true;
    }
    return false;
  }

  /// A run of bytes that begin no token.
  void garbage() {
    const uint32_t begin = at_;
    do {
      ++at_;
    } while (at_ < text_.size() && !is_text(text_[at_]) && !looking_at("\xE2\x86\x92"));
    const unsigned char first = text_[begin];
    const bool printable = first > 0x20 && first < 0x7F;
    if (printable) {
      report_.error({begin, at_}, "the character '{}' has no meaning here", static_cast<char>(first));
    } else if (first < 0x80) {
      report_.error({begin, at_}, "the byte 0x{:02X} has no meaning here: is this a text file?", first);
    } else {
      report_.error({begin, at_}, "characters outside ASCII may stand in comments only (the byte 0x{:02X})", first);
    }
    push({TokenKind::kBad, {begin, at_}});
  }

  std::string_view text_;
  Report& report_;
  uint32_t at_ = 0;
  bool bracket_reported_ = false;
  Tokens out_;
};

}  // namespace

Tokens lex(const Source& source, Report& report) { return Lexer(source, report).run(); }

std::vector<std::string_view> all_symbols() {
  std::vector<std::string_view> symbols;
  for (const Symbol& symbol : kSymbols) symbols.push_back(symbol.text);
  return symbols;
}

}  // namespace tc::lang
