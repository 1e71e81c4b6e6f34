#include "tc/lang/parser.h"

#include <algorithm>
#include <array>

#include "tc/lang/advice.h"
#include "tc/lang/lexer.h"
#include "tc/lang/limits.h"
#include "tc/lang/numbers.h"
#include "tc/lang/precedence.h"
#include "tc/lang/words.h"
#include "tc/support/check.h"
#include "tc/support/nearest.h"

namespace tc::lang {
namespace {

constexpr std::string_view kClause = "a clause: 'i in low:high', 'x = value' or 'exists expression'";

/// Recursive descent. A function that fails has reported why and returns nothing; the statement or def that it was
/// in is given up, and parsing goes on at the next one.
class Parser {
 public:
  Parser(SourcePtr source, Report& report) : source_(std::move(source)), report_(report) {
    Tokens lexed = lex(*source_, report_);
    tokens_ = std::move(lexed.tokens);
    file_.source = source_;
    file_.comments = std::move(lexed.comments);
  }

  File run() {
    while (!at(TokenKind::kEnd)) {
      if (!at_word(Keyword::kDef)) {
        expected("'def'");
        skip_to_definition();
      } else if (auto definition = parse_definition()) {
        file_.definitions.push_back(std::move(*definition));
      } else {
        skip_to_definition();
      }
    }
    if (file_.definitions.empty() && report_.empty()) expected("'def'");
    return std::move(file_);
  }

 private:
  // Tokens.
  const Token& token(size_t ahead = 0) const { return tokens_[std::min(next_ + ahead, tokens_.size() - 1)]; }
  bool at(TokenKind kind, size_t ahead = 0) const { return token(ahead).kind == kind; }
  bool at_binary(BinaryOp op) const { return at(TokenKind::kBinary) && token().binary == op; }
  std::string_view text(const Token& token) const { return source_->text(token.range); }
  bool at_word(Keyword word, size_t ahead = 0) const {
    return at(TokenKind::kName, ahead) && text(token(ahead)) == spelling_of(word);
  }
  bool is_variable(const Token& token) const {
    return token.kind == TokenKind::kName &&
           std::any_of(variables_.begin(), variables_.end(), [&](const auto& v) { return v.name.text == text(token); });
  }
  /// A type, or a variable of the def in its place (T7).
  bool at_type(size_t ahead = 0) const { return at(TokenKind::kType, ahead) || is_variable(token(ahead)); }
  bool adjacent(size_t ahead) const { return token(ahead).range.end == token(ahead + 1).range.begin; }
  void advance() { next_ = std::min(next_ + 1, tokens_.size() - 1); }
  bool accept(TokenKind kind) {
    if (!at(kind)) return false;
    advance();
    return true;
  }
  uint32_t begin() const { return token().range.begin; }
  uint32_t last_end() const { return next_ == 0 ? 0 : tokens_[next_ - 1].range.end; }
  SourceRange since(uint32_t begin) const { return {begin, std::max(begin, last_end())}; }

  static std::vector<std::string> type_names() {
    std::vector<std::string> names = {"float", "double", "half", "int", "uint"};
    for (int i = 0; i < kScalarTypes; ++i) names.emplace_back(name_of(static_cast<ScalarType>(i)));
    return names;
  }

  // Errors.
  std::string describe(const Token& token) const {
    if (token.kind == TokenKind::kEnd) return "the end of the file";
    if (token.kind == TokenKind::kType) return fmt::format("the type '{}'", text(token));
    return fmt::format("'{}'", text(token));
  }
  /// Silent at a token that the lexer has reported.
  std::nullopt_t expected(std::string_view what, std::string_view advice = {}) {
    if (at(TokenKind::kBad) || stopped_) return std::nullopt;
    Diagnostic* error = report_.error(token().range, "expected {}, not {}", what, describe(token()));
    const std::string_view near = advice_near();
    if (!near.empty()) advice = near;
    if (!advice.empty()) error->notes.push_back({std::nullopt, std::string(advice)});
    return std::nullopt;
  }
  /// For the word of another language that an error is probably about: it, the one before, or the statement's first.
  std::string_view advice_near() const {
    std::vector<size_t> places = {next_};
    if (next_ > 0) places.push_back(next_ - 1);
    if (statement_ > 0) places.insert(places.end(), {statement_, statement_ - 1});
    for (const size_t place : places) {
      if (place >= tokens_.size() || tokens_[place].kind != TokenKind::kName) continue;
      if (const auto advice = advice_for_word(text(tokens_[place])); !advice.empty()) return advice;
    }
    return {};
  }
  bool expect(TokenKind kind, std::string_view what, std::string_view advice = {}) {
    if (accept(kind)) return true;
    expected(what, advice);
    return false;
  }
  /// Gives up on the whole rest of the text, because a limit is passed.
  void stop(SourceRange range, const std::string& message) {
    if (!stopped_) report_.error(range, "{}", message);
    stopped_ = true;
    next_ = tokens_.size() - 1;
  }
  void stop_too_deep(SourceRange range) {
    stop(range, fmt::format("this expression is nested too deeply: at most {} levels are allowed", kMaxDepth));
  }
  void skip_to_definition() {
    while (!at(TokenKind::kEnd) && !at_definition()) advance();
  }

  // What stands here?
  bool at_definition() const {
    const bool generic = at(TokenKind::kBinary, 2) && token(2).binary == BinaryOp::kLt;
    return at_word(Keyword::kDef) && at(TokenKind::kName, 1) &&
           (at(TokenKind::kOpen, 2) || at(TokenKind::kEnd, 2) || generic);
  }
  /// The assignment operator at `ahead`, as a number of tokens; 0 when there is none.
  size_t assignment_length(size_t ahead) const {
    if (at(TokenKind::kAssign, ahead)) return 1;
    if ((!at_word(Keyword::kMin, ahead) && !at_word(Keyword::kMax, ahead)) || !at(TokenKind::kAssign, ahead + 1))
      return 0;
    if (token(ahead + 1).assign != AssignOp::kSet || !adjacent(ahead)) return 0;
    return at(TokenKind::kNot, ahead + 2) && adjacent(ahead + 1) ? 3 : 2;
  }
  /// [ type ] ID [ '(' ... ')' ] assign. Looks a little way only, because recovery asks at every token.
  bool at_statement() const {
    constexpr size_t kTokens = 500;
    constexpr int kNesting = 16;
    size_t ahead = at_type() ? 1 : 0;
    if (!at(TokenKind::kName, ahead)) return false;
    if (at(TokenKind::kOpen, ++ahead)) {
      for (int depth = 0;; ++ahead) {
        if (at(TokenKind::kOpen, ahead)) ++depth;
        if (at(TokenKind::kClose, ahead) && --depth == 0) break;
        if (at(TokenKind::kEnd, ahead) || at(TokenKind::kCloseBrace, ahead)) return false;
        if (ahead == kTokens || depth > kNesting) return false;
      }
      ++ahead;
    }
    return assignment_length(ahead) > 0;
  }
  /// `where` begins the clauses where a tensor of this name would not be assigned to.
  bool at_where() const {
    return at_word(Keyword::kWhere) && (at(TokenKind::kName, 1) || at(TokenKind::kType, 1)) &&
           assignment_length(1) == 0;
  }

  std::optional<Name> parse_name(std::string_view what) {
    if (!at(TokenKind::kName)) return expected(what);
    if (is_variable(token())) {
      report_.error(token().range, "'{}' is a type variable, so nothing else can be called so", text(token()));  // C9
      return std::nullopt;
    }
    Name name{std::string(text(token())), token().range};
    // Parsing goes on: the name has been reported, and all else can still be checked.
    if (find_constant(name.text))
      report_.error(name.range, "'{}' is a constant, so it cannot be a name", name.text);  // C9
    advance();
    return name;
  }

  struct TypeUse {
    ScalarType type;
    std::string variable;
  };
  /// At a type: reads it. Of a variable the type itself is left open.
  TypeUse parse_type() {
    const auto type = scalar_type_from_name(text(token()));
    TypeUse use{type.value_or(ScalarType::kFloat32), type ? "" : std::string(text(token()))};
    advance();
    return use;
  }

  // '<' var {',' var} '>' with var := ID [':' ('float' | 'integer')]
  bool parse_type_variables(Definition& definition) {
    advance();
    do {
      if (at(TokenKind::kType)) {
        expected("the name of a type variable");
        return false;
      }
      const SourceRange range = token().range;
      if (is_variable(token())) report_.error(range, "there are two type variables called '{}'", text(token()));  // C9
      if (!at(TokenKind::kName)) {
        expected("the name of a type variable");
        return false;
      }
      TypeVariable variable{{std::string(text(token())), range}};
      advance();
      if (accept(TokenKind::kColon) && !parse_restriction(variable)) return false;
      variables_.push_back(std::move(variable));
    } while (accept(TokenKind::kComma));
    if (!at_binary(BinaryOp::kGt)) {
      expected("',' or '>' after a type variable");
      return false;
    }
    advance();
    if (variables_.size() > kMaxTypeVariables) {
      report_.error(definition.name.range, "def '{}' has {} type variables: at most {} are allowed",
                    definition.name.text, variables_.size(), kMaxTypeVariables);
    }
    definition.type_variables = variables_;
    return true;
  }

  bool parse_restriction(TypeVariable& variable) {
    const bool is_float = at(TokenKind::kType) && text(token()) == "float";
    if (!is_float && !at_word(Keyword::kInteger)) {
      expected("'float' or 'integer', which restrict a type variable");
      return false;
    }
    variable.restriction = is_float ? TypeVariable::Restriction::kFloat : TypeVariable::Restriction::kInteger;
    advance();
    return true;
  }

  // def := 'def' ID [ '<' var {',' var} '>' ] '(' [ param {',' param} ] ')' arrow '(' result {',' result} ')' '{' {
  // stmt } '}'
  std::optional<Definition> parse_definition() {
    Definition definition;
    const uint32_t start = begin();
    variables_.clear();
    statement_ = 0;
    advance();
    auto name = parse_name("the name of the def");
    if (!name) return std::nullopt;
    definition.name = std::move(*name);
    if (at_binary(BinaryOp::kLt) && !parse_type_variables(definition)) return std::nullopt;
    if (!expect(TokenKind::kOpen, "'('")) return std::nullopt;
    if (!at(TokenKind::kClose)) {
      do {
        auto parameter = parse_parameter();
        if (!parameter) return std::nullopt;
        definition.parameters.push_back(std::move(*parameter));
      } while (accept(TokenKind::kComma));
    }
    if (!expect(TokenKind::kClose, "',' or ')' after a parameter")) return std::nullopt;
    if (!expect(TokenKind::kArrow, "'->'", kDefAdvice)) return std::nullopt;
    if (!expect(TokenKind::kOpen, "'('", kDefAdvice)) return std::nullopt;
    do {
      auto result = parse_result();
      if (!result) return std::nullopt;
      definition.results.push_back(std::move(*result));
    } while (accept(TokenKind::kComma));
    if (!expect(TokenKind::kClose, "',' or ')' after a result")) return std::nullopt;
    const uint32_t body = begin();
    if (!expect(TokenKind::kOpenBrace, "'{'")) return std::nullopt;
    if (definition.parameters.size() + definition.results.size() > kMaxArguments) {
      report_.error(definition.name.range, "def '{}' has {} parameters and results: at most {} are allowed",
                    definition.name.text, definition.parameters.size() + definition.results.size(), kMaxArguments);
    }
    parse_body(definition);
    definition.body = since(body);
    definition.range = since(start);
    return definition;
  }

  void parse_body(Definition& definition) {
    while (!accept(TokenKind::kCloseBrace)) {
      if (at(TokenKind::kEnd) || at_definition()) {
        expected(fmt::format("'}}' to end def '{}'", definition.name.text));
        return;
      }
      if (definition.statements.size() == kMaxStatements) {
        return stop(token().range, fmt::format("too many statements in def '{}': at most {} are allowed",
                                               definition.name.text, kMaxStatements));
      }
      const size_t first = next_;
      statement_ = first;
      if (auto statement = parse_statement()) {
        definition.statements.push_back(std::move(*statement));
      } else {
        skip_to_statement(first);
      }
    }
  }

  /// After an error: the name before an assignment is no statement where it is a let.
  void skip_to_statement(size_t failed) {
    bool in_clauses = next_ > 0 && at_clause_begin(next_ - 1);
    while (!at(TokenKind::kEnd) && !at(TokenKind::kCloseBrace) && !at_definition()) {
      if (next_ > failed && !in_clauses && at_statement()) return;
      in_clauses = at_clause_begin(next_);
      advance();
    }
  }

  bool at_clause_begin(size_t token) const {
    return tokens_[token].kind == TokenKind::kComma || text(tokens_[token]) == spelling_of(Keyword::kWhere);
  }

  // type [ '(' dim {',' dim} ')' ]
  bool parse_dimensions(std::optional<std::vector<ExprPtr>>& dimensions) {
    if (!accept(TokenKind::kOpen)) return true;
    dimensions.emplace();
    if (at(TokenKind::kClose)) {
      expected("a dimension (a type without dimensions has no parentheses)");
      return false;
    }
    return parse_list(*dimensions, "',' or ')' after a dimension");
  }

  // param := type [ '(' dim {',' dim} ')' ] ID
  std::optional<Parameter> parse_parameter() {
    Parameter parameter;
    const uint32_t start = begin();
    if (!at_type()) {
      const std::string near = at(TokenKind::kName) ? nearest(text(token()), type_names()) : "";
      return expected("a parameter's type",
                      near.empty() ? std::string(kTypesAdvice) : fmt::format("did you mean '{}'?", near));
    }
    TypeUse type = parse_type();
    parameter.type = type.type;
    parameter.type_variable = std::move(type.variable);
    if (!parse_dimensions(parameter.dimensions)) return std::nullopt;
    auto name = parse_name("a parameter's name");
    if (!name) return std::nullopt;
    parameter.name = std::move(*name);
    parameter.range = since(start);
    return parameter;
  }

  // result := [ type [ '(' dim {',' dim} ')' ] ] ID
  std::optional<ResultDeclaration> parse_result() {
    ResultDeclaration result;
    const uint32_t start = begin();
    if (at_type()) {
      TypeUse type = parse_type();
      result.type = type.type;
      result.type_variable = std::move(type.variable);
      if (!parse_dimensions(result.dimensions)) return std::nullopt;
    }
    auto name = parse_name("a result's name");
    if (!name) return std::nullopt;
    result.name = std::move(*name);
    result.range = since(start);
    return result;
  }

  // stmt := [ type ] ID [ '(' [ index {',' index} ] ')' ] assign expr [ 'where' clause {',' clause} ]
  std::optional<Statement> parse_statement() {
    Statement statement;
    const uint32_t start = begin();
    if (at_type()) {
      TypeUse type = parse_type();
      statement.type = type.type;
      statement.type_variable = std::move(type.variable);
    }
    const uint32_t left = begin();
    if (at(TokenKind::kComma)) return expected("a statement or '}'", "clauses stand behind 'where': 'where k in 0:K'");
    if (at(TokenKind::kDot) && at(TokenKind::kName, 1)) {
      return expected("a statement or '}'", advice_for_member("", text(token(1))));
    }
    auto name = parse_name(statement.type ? "a tensor's name" : "a statement or '}'");
    if (!name) return std::nullopt;
    statement.tensor = std::move(*name);
    if (accept(TokenKind::kOpen) && !accept(TokenKind::kClose) &&
        !parse_list(statement.subscripts, "',' or ')' after a subscript")) {
      return std::nullopt;
    }
    statement.left_range = since(left);
    if (!parse_assignment(statement)) return std::nullopt;
    statement.right = parse_expr();
    if (!statement.right) return std::nullopt;
    if (at_word(Keyword::kWhere) && at(TokenKind::kNumber, 1)) {
      advance();
      return expected(kClause, kRangeAdvice);
    }
    if (at_where()) {
      advance();
      if (!parse_clauses(statement.clauses)) return std::nullopt;
    }
    statement.range = since(start);
    return statement;
  }

  /// What to write instead of an assignment of other languages: -=, /=, :=, ==, <-.
  std::string_view assignment_habit() const {
    if (at_binary(BinaryOp::kEq)) return "'==' compares; an assignment is written '='";
    if (!adjacent(0)) return {};
    if (at_binary(BinaryOp::kLt) && at(TokenKind::kBinary, 1) && token(1).binary == BinaryOp::kSub) {
      return "an assignment is written '='";
    }
    if (!at(TokenKind::kAssign, 1) || token(1).assign != AssignOp::kSet) return {};
    if (at_binary(BinaryOp::kSub)) return "to subtract, add the negative: '+= -x'";
    if (at_binary(BinaryOp::kDiv)) return "to divide, multiply by the reciprocal: '*= 1.0 / x'";
    return at(TokenKind::kColon) ? "an assignment is written '='" : "";
  }

  bool parse_assignment(Statement& statement) {
    const size_t length = assignment_length(0);
    if (length == 0) {
      const std::string left(source_->text(statement.left_range));
      const std::string_view habit = assignment_habit();
      const std::string near = nearest(left, std::array{std::string(spelling_of(Keyword::kWhere))});
      expected(fmt::format("'=', '+=!' or another assignment after '{}'", left), !habit.empty() ? habit
                                                                                 : !near.empty()
                                                                                     ? "did you mean 'where'?"
                                                                                     : "");
      return false;
    }
    const bool min = at_word(Keyword::kMin);
    statement.op_range = {begin(), token(length - 1).range.end};
    if (length == 1) {
      statement.op = token().assign;
    } else if (length == 2) {
      statement.op = min ? AssignOp::kMin : AssignOp::kMax;
    } else {
      statement.op = min ? AssignOp::kMinInit : AssignOp::kMaxInit;
    }
    for (size_t i = 0; i < length; ++i) advance();
    return true;
  }

  bool parse_clauses(std::vector<Clause>& clauses) {
    do {
      if (clauses.size() == kMaxClauses) {
        stop(token().range, fmt::format("too many clauses: at most {} are allowed in a statement", kMaxClauses));
        return false;
      }
      auto clause = parse_clause();
      if (!clause) return false;
      clauses.push_back(std::move(*clause));
    } while (accept(TokenKind::kComma));
    return true;
  }

  // clause := ID 'in' expr ':' expr | ID '=' expr | 'exists' expr
  std::optional<Clause> parse_clause() {
    const uint32_t start = begin();
    const bool let = at(TokenKind::kAssign, 1) && token(1).assign == AssignOp::kSet;
    // `exists in(i)` asks for a read of a tensor called `in`; `exists in 0:2` gives a range to `exists`.
    const bool range = at_word(Keyword::kIn, 1) && !(at_word(Keyword::kExists) && at(TokenKind::kOpen, 2));
    if (at_word(Keyword::kExists) && !let && !range) {
      advance();
      ExprPtr expression = parse_expr();
      if (!expression) return std::nullopt;
      return Clause{ExistsClause{std::move(expression)}, since(start)};
    }
    auto name = parse_name(kClause);
    if (!name) return std::nullopt;
    if (let) {
      advance();
      ExprPtr value = parse_expr();
      if (!value) return std::nullopt;
      return Clause{LetClause{std::move(*name), std::move(value)}, since(start)};
    }
    if (!range) return expected(fmt::format("'in' or '=' after '{}'", name->text), kRangeAdvice);
    advance();
    ExprPtr low = parse_expr();
    if (!low) return std::nullopt;
    if (!accept(TokenKind::kColon)) return expected("':' between the bounds of a range", kRangeAdvice);
    ExprPtr high = parse_expr();
    if (!high) return std::nullopt;
    return Clause{RangeClause{std::move(*name), std::move(low), std::move(high)}, since(start)};
  }

  /// expr {',' expr} ')'
  bool parse_list(std::vector<ExprPtr>& list, std::string_view what) {
    do {
      if (list.size() == kMaxRank) {
        stop(token().range, fmt::format("too many dimensions or arguments: at most {} are allowed", kMaxRank));
        return false;
      }
      ExprPtr element = parse_expr();
      if (!element) return false;
      list.push_back(std::move(element));
    } while (accept(TokenKind::kComma));
    return expect(TokenKind::kClose, what);
  }

  // Expressions.

  /// Null after an error, also when the tree has grown too high.
  ExprPtr make(Expr::Node node, uint32_t start, std::initializer_list<const ExprPtr*> children) {
    int height = 0;
    for (const ExprPtr* child : children) height = std::max(height, (*child)->height);
    return finish(std::move(node), start, height);
  }
  ExprPtr finish(Expr::Node node, uint32_t start, int height_below) {
    if (height_below >= kMaxHeight) {
      stop({start, start + 1}, fmt::format("this expression is a chain of too many operators: at most {} are allowed; "
                                           "compute a part of it in a statement of its own",
                                           kMaxHeight));
      return nullptr;
    }
    return std::make_shared<const Expr>(Expr{std::move(node), since(start), height_below + 1});
  }

  // expr := binary [ '?' expr ':' expr ]
  ExprPtr parse_expr() {
    if (depth_ >= kMaxDepth) {
      stop_too_deep(token().range);
      return nullptr;
    }
    ++depth_;
    ExprPtr expr = parse_conditional();
    --depth_;
    return expr;
  }

  ExprPtr parse_conditional() {
    const uint32_t start = begin();
    ExprPtr condition = parse_binary(0);
    if (!condition || !accept(TokenKind::kQuestion)) return condition;
    ExprPtr if_true = parse_expr();
    if (!if_true || !expect(TokenKind::kColon, "':' after '?'")) return nullptr;
    ExprPtr if_false = parse_expr();
    if (!if_false) return nullptr;
    return make(Conditional{condition, if_true, if_false}, start, {&condition, &if_true, &if_false});
  }

  /// Operators that bind tighter than `above`; all group to the left, comparisons not at all.
  ExprPtr parse_binary(int above) {
    const uint32_t start = begin();
    ExprPtr left = parse_unary();
    bool compared = false;
    while (left && at(TokenKind::kBinary) && precedence_of(token().binary) > above) {
      const BinaryOp op = token().binary;
      if (is_comparison(op) && compared) {
        report_.error(token().range, "comparisons do not chain: join two with '&&'");
        return nullptr;
      }
      compared = is_comparison(op);
      advance();
      ExprPtr right = parse_binary(precedence_of(op));
      if (!right) return nullptr;
      left = make(Binary{op, left, right}, start, {&left, &right});
    }
    return left;
  }

  ExprPtr parse_unary() {
    const bool negate = at_binary(BinaryOp::kSub);
    if (!negate && !at(TokenKind::kNot)) return parse_primary();
    const uint32_t start = begin();
    if (depth_ >= kMaxDepth) {
      stop_too_deep(token().range);
      return nullptr;
    }
    advance();
    ++depth_;
    ExprPtr operand = parse_unary();
    --depth_;
    if (!operand) return nullptr;
    return make(Unary{negate ? UnaryOp::kNegate : UnaryOp::kNot, operand}, start, {&operand});
  }

  // primary := number | '(' expr ')' | type '(' expr ')' | ID [ '(' expr {',' expr} ')' ] | ID '.' integer
  ExprPtr parse_primary() {
    switch (token().kind) {
      case TokenKind::kNumber:
        return parse_number();
      case TokenKind::kType:
        return parse_cast();
      case TokenKind::kName:
        return is_variable(token()) ? parse_cast() : parse_use();
      case TokenKind::kOpen: {
        advance();
        ExprPtr inner = parse_expr();
        if (!inner || !expect(TokenKind::kClose, "an operator or ')'")) return nullptr;
        return inner;
      }
      default:
        expected("an expression", at(TokenKind::kColon) || at(TokenKind::kDot)
                                      ? "every dimension has an index of its own: A(m, k)"
                                      : "");
        return nullptr;
    }
  }

  /// A number that is none is reported, and stands for 0 so that the rest is still checked.
  ExprPtr parse_number() {
    const uint32_t start = begin();
    auto number = read_number(text(token()));
    if (auto* message = std::get_if<std::string>(&number)) {
      report_.error(token().range, "{}", *message);
      number = IntegerLiteral{0};
    }
    advance();
    if (auto* integer = std::get_if<IntegerLiteral>(&number)) return make(*integer, start, {});
    return make(std::get<FloatLiteral>(std::move(number)), start, {});
  }

  ExprPtr parse_cast() {
    const uint32_t start = begin();
    if (at(TokenKind::kName) && !at(TokenKind::kOpen, 1)) {
      report_.error(token().range, "'{0}' is a type variable and has no value: '{0}(...)' is a cast", text(token()));
      return nullptr;
    }
    TypeUse type = parse_type();
    if (!expect(TokenKind::kOpen, "'(': a type in an expression is a cast", kCastAdvice)) return nullptr;
    ExprPtr operand = parse_expr();
    if (!operand || !expect(TokenKind::kClose, "an operator or ')'")) return nullptr;
    return make(CastTo{type.type, operand, std::move(type.variable)}, start, {&operand});
  }

  /// `inf`, `nan` or `pi`: a number with a name.
  ExprPtr parse_constant() {
    const uint32_t start = begin();
    std::string spelling(text(token()));
    const double value = *find_constant(spelling);
    advance();
    return make(FloatLiteral{value, std::move(spelling)}, start, {});
  }

  ExprPtr parse_use() {
    if (find_constant(text(token())) && !at(TokenKind::kOpen, 1) && !at(TokenKind::kDot, 1)) return parse_constant();
    const uint32_t start = begin();
    Name name = *parse_name("a name");
    if (accept(TokenKind::kOpen)) {
      if (at(TokenKind::kClose)) {
        report_.error({start, token().range.end},
                      "'{0}()' has no subscript: a tensor without dimensions is read as '{0}'", name.text);
        return nullptr;
      }
      Apply apply{std::move(name), {}};
      if (!parse_list(apply.arguments, "an operator, ',' or ')'")) return nullptr;
      int height = 0;
      for (const ExprPtr& argument : apply.arguments) height = std::max(height, argument->height);
      return finish(std::move(apply), start, height);
    }
    if (!accept(TokenKind::kDot)) return make(NameUse{std::move(name.text)}, start, {});
    if (at(TokenKind::kNumber)) {
      const auto number = read_number(text(token()));
      if (const auto* dimension = std::get_if<IntegerLiteral>(&number)) {
        advance();
        return make(ExtentUse{std::move(name), dimension->value}, start, {});
      }
    }
    expected(fmt::format("the number of a dimension after '{}.'", name.text),
             at(TokenKind::kName) ? advice_for_member(name.text, text(token())) : "");
    return nullptr;
  }

  SourcePtr source_;
  Report& report_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
  size_t statement_ = 0;  ///< the first token of the statement at hand; 0 outside of bodies
  int depth_ = 0;
  bool stopped_ = false;
  std::vector<TypeVariable> variables_;  ///< of the def at hand
  File file_;
};

}  // namespace

Result<File> parse(SourcePtr source) {
  TC_CHECK(source != nullptr, "parse needs a source");
  if (source->text().size() > kMaxSourceBytes) {
    return tl::unexpected(Error(fmt::format("{}: the program has {} bytes: at most {} are allowed", source->name(),
                                            source->text().size(), kMaxSourceBytes)));
  }
  Report report(source);
  File file = Parser(source, report).run();
  if (!report.empty()) return tl::unexpected(report.take());
  return file;
}

}  // namespace tc::lang
