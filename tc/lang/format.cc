#include "tc/lang/format.h"

#include <fmt/format.h>

#include <algorithm>

#include "tc/lang/precedence.h"
#include "tc/lang/walk.h"

namespace tc::lang {
namespace {

constexpr size_t kWidth = 100;
constexpr std::string_view kIndent = "  ";
constexpr std::string_view kContinuation = "      ";

// Expressions, on one line.

std::string list(const std::vector<ExprPtr>& exprs) {
  std::string out;
  for (const ExprPtr& expr : exprs) {
    if (!out.empty()) out += ", ";
    out += format(*expr);
  }
  return out;
}

/// 0 for a conditional, then the binary operators; a unary binds tighter than they do, all else tightest.
int precedence(const Expr& expr) {
  if (std::holds_alternative<Conditional>(expr.node)) return 0;
  if (const auto* binary = std::get_if<Binary>(&expr.node)) return precedence_of(binary->op);
  return kTightest;
}

/// In parentheses, unless it binds at least as tightly as asked.
std::string operand(const Expr& expr, int at_least) {
  return precedence(expr) >= at_least ? format(expr) : fmt::format("({})", format(expr));
}

std::string binary(const Binary& node) {
  const int own = precedence_of(node.op);
  // Comparisons do not chain, so one inside the other needs parentheses on either side.
  const int left = is_comparison(node.op) ? own + 1 : own;
  return fmt::format("{} {} {}", operand(*node.left, left), spelling_of(node.op), operand(*node.right, own + 1));
}

/// A type, or the variable in its place.
std::string_view type_text(ScalarType type, const std::string& variable) {
  return variable.empty() ? name_of(type) : variable;
}

std::string type_with_dimensions(std::string_view type, const std::optional<std::vector<ExprPtr>>& dimensions) {
  std::string out(type);
  if (dimensions) out += fmt::format("({})", list(*dimensions));
  return out;
}

std::string one_line(const Parameter& parameter) {
  return fmt::format("{} {}",
                     type_with_dimensions(type_text(parameter.type, parameter.type_variable), parameter.dimensions),
                     parameter.name.text);
}

std::string one_line(const ResultDeclaration& result) {
  if (!result.type) return result.name.text;
  return fmt::format("{} {}", type_with_dimensions(type_text(*result.type, result.type_variable), result.dimensions),
                     result.name.text);
}

std::string one_line(const Clause& clause) {
  return std::visit(Overloaded{
                        [](const RangeClause& c) {
                          return fmt::format("{} in {}:{}", c.index.text, format(*c.low), format(*c.high));
                        },
                        [](const LetClause& c) { return fmt::format("{} = {}", c.name.text, format(*c.value)); },
                        [](const ExistsClause& c) { return fmt::format("exists {}", format(*c.expression)); },
                    },
                    clause.node);
}

std::string one_line(const TypeVariable& variable) {
  if (variable.restriction == TypeVariable::Restriction::kNone) return variable.name.text;
  return fmt::format("{}: {}", variable.name.text, name_of(variable.restriction));
}

template <typename Item>
std::string joined(const std::vector<Item>& items) {
  std::string out;
  for (const Item& item : items) {
    if (!out.empty()) out += ", ";
    out += one_line(item);
  }
  return out;
}

// Lines.

/// The space at which a line of `room` characters ends: in its second half, the last one inside the fewest brackets.
size_t place_to_break(std::string_view line, size_t room) {
  size_t best = std::string_view::npos;
  int depth = 0, best_depth = 0;
  for (size_t at = 0; at <= room; ++at) {
    if (line[at] == '(') ++depth;
    if (line[at] == ')') --depth;
    if (line[at] != ' ') continue;
    if (best < room / 2 || best == std::string_view::npos || depth <= best_depth) {
      best = at;
      best_depth = depth;
    }
  }
  return best == std::string_view::npos ? line.find(' ') : best;
}

/// Breaks a line at spaces, of which any may be a newline. Continuations are indented.
std::string wrapped(std::string_view line, std::string_view indent) {
  std::string out(indent);
  while (indent.size() + line.size() > kWidth) {
    const size_t space = place_to_break(line, kWidth - indent.size());
    if (space == std::string_view::npos) break;
    out += line.substr(0, space);
    out += '\n';
    line.remove_prefix(space + 1);
    indent = kContinuation;
    out += indent;
  }
  out += line;
  return out;
}

std::string format_statement(const Statement& statement) {
  std::string line;
  if (statement.type) line += fmt::format("{} ", type_text(*statement.type, statement.type_variable));
  line += statement.tensor.text;
  if (!statement.subscripts.empty()) line += fmt::format("({})", list(statement.subscripts));
  line += fmt::format(" {} {}", spelling_of(statement.op), format(*statement.right));
  if (statement.clauses.empty()) return wrapped(line, kIndent);
  const std::string where = fmt::format("where {}", joined(statement.clauses));
  if (kIndent.size() + line.size() + 1 + where.size() <= kWidth) return fmt::format("{}{} {}", kIndent, line, where);
  return wrapped(line, kIndent) + "\n" + wrapped(where, kContinuation);
}

// Files: the items in order, with the comments between them.

class Printer {
 public:
  explicit Printer(const File& file) : file_(file), text_(file.source->text()) {}

  std::string run() {
    for (const Definition& definition : file_.definitions) {
      comments_before(definition.range.begin, "", true);
      if (!out_.empty() && !after_own_comment_) blank_line();
      if (blank_between(last_, definition.range.begin)) blank_line();
      print(definition);
    }
    comments_before(text_.size(), "", true);
    return std::move(out_);
  }

 private:
  bool comment_before(size_t end) const {
    return next_ < file_.comments.size() && file_.comments[next_].range.begin < end;
  }
  bool same_line(size_t begin, size_t end) const {
    return text_.substr(begin, end - begin).find('\n') == std::string_view::npos;
  }
  bool blank_between(size_t begin, size_t end) const {
    return begin < end && std::count(text_.begin() + begin, text_.begin() + end, '\n') > 1;
  }
  /// One empty line, but none at the beginning of the file or of a body.
  void blank_line() {
    if (!out_.empty() && !out_.ends_with("\n\n") && !body_begins_) out_ += '\n';
  }

  void own_line(std::string_view indent) {
    const SourceRange range = file_.comments[next_++].range;
    if (blank_between(last_, range.begin)) blank_line();
    out_ += fmt::format("{}{}\n", indent, text_.substr(range.begin, range.end - range.begin));
    last_ = range.end;
    body_begins_ = false;
    after_own_comment_ = true;
  }

  /// The comments up to `end`, each on a line of its own. Between defs the first stands apart from what is above.
  void comments_before(size_t end, std::string_view indent, bool top) {
    after_own_comment_ = false;
    while (comment_before(end)) {
      if (top && !after_own_comment_) blank_line();
      own_line(indent);
    }
  }

  /// The comments on the line where an item ends; then the newline.
  void end_line(size_t end, size_t limit) {
    last_ = end;
    if (comment_before(limit) && file_.comments[next_].range.begin >= end &&
        same_line(end, file_.comments[next_].range.begin)) {
      const SourceRange range = file_.comments[next_++].range;
      out_ += fmt::format("  {}", text_.substr(range.begin, range.end - range.begin));
      last_ = range.end;
    }
    out_ += '\n';
  }

  void print(const Definition& definition) {
    const auto& statements = definition.statements;
    const size_t brace = definition.body.begin, body_end = definition.body.end - 1;
    const size_t first = statements.empty() ? body_end : statements.front().range.begin;
    print_header(definition, brace);
    end_line(brace + 1, first);
    body_begins_ = true;
    for (size_t i = 0; i < statements.size(); ++i) {
      const SourceRange range = statements[i].range;
      comments_before(range.begin, kIndent, false);
      if (blank_between(last_, range.begin)) blank_line();
      // A comment inside a statement goes before it.
      last_ = range.begin;
      comments_before(range.end, kIndent, false);
      out_ += format_statement(statements[i]);
      body_begins_ = false;
      end_line(range.end, i + 1 < statements.size() ? statements[i + 1].range.begin : body_end);
    }
    comments_before(body_end, kIndent, false);
    body_begins_ = false;
    out_ += '}';
    end_line(definition.range.end, text_.size());
  }

  void print_header(const Definition& definition, size_t brace) {
    const std::string line = fmt::format("def {}({}) -> ({}) {{", header_name(definition),
                                         joined(definition.parameters), joined(definition.results));
    if (line.size() <= kWidth && !comment_before(brace)) {
      out_ += line;
      return;
    }
    out_ += fmt::format("def {}(\n", header_name(definition));
    last_ = definition.range.begin;
    const auto& parameters = definition.parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const bool last = i + 1 == parameters.size();
      comments_before(parameters[i].range.end, "    ", false);
      out_ += wrapped(one_line(parameters[i]) + (last ? "" : ","), "    ");
      end_line(parameters[i].range.end, last ? definition.results[0].range.begin : parameters[i + 1].range.begin);
    }
    comments_before(brace, "    ", false);
    out_ += wrapped(fmt::format(") -> ({}) {{", joined(definition.results)), "");
  }

  const File& file_;
  std::string_view text_;
  std::string out_;
  size_t next_ = 0;  ///< comment
  size_t last_ = 0;  ///< where what was printed last ends in the text
  bool after_own_comment_ = false;
  bool body_begins_ = false;  ///< nothing stands in the body yet
};

}  // namespace

std::string format(const Expr& expr) {
  return std::visit(
      Overloaded{
          [](const IntegerLiteral& literal) { return fmt::format("{}", literal.value); },
          [](const FloatLiteral& literal) { return literal.spelling; },
          [](const NameUse& use) { return use.name; },
          [](const Apply& apply) { return fmt::format("{}({})", apply.name.text, list(apply.arguments)); },
          [](const ExtentUse& use) { return fmt::format("{}.{}", use.tensor.text, use.dimension); },
          [](const Unary& unary) {
            return fmt::format("{}{}", spelling_of(unary.op), operand(*unary.operand, kTightest));
          },
          [](const Binary& node) { return binary(node); },
          [](const Conditional& node) {
            return fmt::format("{} ? {} : {}", operand(*node.condition, 1), format(*node.if_true),
                               format(*node.if_false));
          },
          [](const CastTo& cast) {
            return fmt::format("{}({})", type_text(cast.type, cast.type_variable), format(*cast.operand));
          },
      },
      expr.node);
}

std::string header_name(const Definition& definition) {
  if (definition.type_variables.empty()) return definition.name.text;
  return fmt::format("{}<{}>", definition.name.text, joined(definition.type_variables));
}

std::string format(const File& file) { return Printer(file).run(); }

}  // namespace tc::lang
