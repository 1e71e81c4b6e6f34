#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tc/lang/ast.h"
#include "tc/lang/report.h"

namespace tc::lang {

enum class TokenKind : uint8_t {
  kName,
  kType,    ///< a name of scalar_type_from_name
  kNumber,  ///< all that looks like one; the parser reads it
  kArrow,   ///< -> or its one-character form
  kOpen,
  kClose,
  kOpenBrace,
  kCloseBrace,
  kComma,
  kColon,
  kQuestion,
  kDot,
  kNot,
  kAssign,  ///< = += *= +=! *=!  (the parser joins `min` and `=`)
  kBinary,  ///< || && == != < <= > >= + - * / %
  kBad,     ///< reported already
  kEnd,
};

struct Token {
  TokenKind kind;
  SourceRange range;
  AssignOp assign = AssignOp::kSet;  ///< of kAssign
  BinaryOp binary = BinaryOp::kOr;   ///< of kBinary
};

struct Tokens {
  std::vector<Token> tokens;  ///< ends with kEnd
  std::vector<Comment> comments;
};

/// Cuts the text into tokens. Text that is none is reported and becomes kBad, one for each run of it.
Tokens lex(const Source& source, Report& report);

}  // namespace tc::lang
