#include "tc/lang/ast.h"

#include "tc/support/check.h"

namespace tc::lang {

std::string_view spelling_of(UnaryOp op) { return op == UnaryOp::kNegate ? "-" : "!"; }

std::string_view spelling_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::kOr:
      return "||";
    case BinaryOp::kAnd:
      return "&&";
    case BinaryOp::kEq:
      return "==";
    case BinaryOp::kNe:
      return "!=";
    case BinaryOp::kLt:
      return "<";
    case BinaryOp::kLe:
      return "<=";
    case BinaryOp::kGt:
      return ">";
    case BinaryOp::kGe:
      return ">=";
    case BinaryOp::kAdd:
      return "+";
    case BinaryOp::kSub:
      return "-";
    case BinaryOp::kMul:
      return "*";
    case BinaryOp::kDiv:
      return "/";
    case BinaryOp::kMod:
      return "%";
  }
  TC_CHECK(false, "no binary operator has the number {}", static_cast<int>(op));
}

std::string_view spelling_of(AssignOp op) {
  switch (op) {
    case AssignOp::kSet:
      return "=";
    case AssignOp::kSum:
      return "+=";
    case AssignOp::kProduct:
      return "*=";
    case AssignOp::kMin:
      return "min=";
    case AssignOp::kMax:
      return "max=";
    case AssignOp::kSumInit:
      return "+=!";
    case AssignOp::kProductInit:
      return "*=!";
    case AssignOp::kMinInit:
      return "min=!";
    case AssignOp::kMaxInit:
      return "max=!";
  }
  TC_CHECK(false, "no assignment operator has the number {}", static_cast<int>(op));
}

bool is_comparison(BinaryOp op) { return op >= BinaryOp::kEq && op <= BinaryOp::kGe; }
bool is_logic(BinaryOp op) { return op == BinaryOp::kOr || op == BinaryOp::kAnd; }
bool is_reducing(AssignOp op) { return op != AssignOp::kSet; }
bool starts_from_identity(AssignOp op) { return op >= AssignOp::kSumInit; }

std::string_view name_of(TypeVariable::Restriction restriction) {
  switch (restriction) {
    case TypeVariable::Restriction::kNone:
      return "";
    case TypeVariable::Restriction::kFloat:
      return "float";
    case TypeVariable::Restriction::kInteger:
      return "integer";
  }
  TC_CHECK(false, "no restriction has the number {}", static_cast<int>(restriction));
}

}  // namespace tc::lang
