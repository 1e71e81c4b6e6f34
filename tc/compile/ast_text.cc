#include "tc/compile/ast_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <variant>

namespace tc::compile {
namespace {

class Printer {
 public:
  explicit Printer(const lang::TypedDefinition& definition) : definition_(definition) {}

  std::string print() {
    line("definition {}", definition_.name);
    ++depth_;
    for (const lang::Size& size : definition_.sizes) {
      line("size {}{}", size.name, size.bound_by_parameter ? "" : " (from the caller)");
    }
    for (const lang::Scalar& scalar : definition_.scalars) {
      line("scalar {}: {}{}", scalar.name, name_of(scalar.type), scalar.compiled_in ? ", compiled in" : "");
    }
    for (const lang::Tensor& tensor : definition_.tensors) print_tensor(tensor);
    for (const lang::TypedStatement& statement : definition_.statements) print_statement(statement);
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    out_.append(static_cast<size_t>(depth_) * 2, ' ');
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  void print_tensor(const lang::Tensor& tensor) {
    line("{} {}: {}, rank {}", lang::name_of(tensor.role), tensor.name, name_of(tensor.type), tensor.rank);
    if (tensor.dimensions) print_all(*tensor.dimensions);
  }

  void print_statement(const lang::TypedStatement& statement) {
    statement_ = &statement;
    line("statement {} {}", definition_.tensors[statement.tensor].name, lang::spelling_of(statement.op));
    ++depth_;
    for (const lang::Index& index : statement.indices) {
      line("index {}: {}", index.name, index.kind == lang::IndexKind::kMap ? "map" : "reduction");
      if (index.given) print_all({index.given->low, index.given->high});
    }
    for (const lang::Let& let : statement.lets) {
      line("let {}", let.name);
      print_all({let.value});
    }
    if (!statement.subscripts.empty()) {
      line("left");
      print_all(statement.subscripts);
    }
    line("right");
    print_all({statement.right});
    if (!statement.exists.empty()) {
      line("exists");
      print_all(statement.exists);
    }
    --depth_;
  }

  void print_all(const std::vector<lang::TypedExprPtr>& expressions) {
    ++depth_;
    for (const lang::TypedExprPtr& expression : expressions) {
      std::visit([&](const auto& node) { print(*expression, node); }, expression->node);
    }
    --depth_;
  }

  void leaf(const lang::TypedExpr& expr, const std::string& text) { line("{}: {}", text, name_of(expr.type)); }
  void inner(const lang::TypedExpr& expr, const std::string& text, const std::vector<lang::TypedExprPtr>& operands) {
    leaf(expr, text);
    print_all(operands);
  }

  void print(const lang::TypedExpr& expr, const lang::IntegerConstant& node) {
    leaf(expr, expr.type == ScalarType::kUInt64 ? fmt::format("{}", static_cast<uint64_t>(node.value))
                                                : fmt::format("{}", node.value));
  }
  void print(const lang::TypedExpr& expr, const lang::FloatConstant& node) {
    leaf(expr, fmt::format("{}", node.value));
  }
  void print(const lang::TypedExpr& expr, const lang::IndexRef& node) {
    leaf(expr, "index " + statement_->indices[node.index].name);
  }
  void print(const lang::TypedExpr& expr, const lang::SizeRef& node) {
    leaf(expr, "size " + definition_.sizes[node.size].name);
  }
  void print(const lang::TypedExpr& expr, const lang::ScalarRef& node) {
    leaf(expr, "scalar " + definition_.scalars[node.scalar].name);
  }
  void print(const lang::TypedExpr& expr, const lang::ExtentRef& node) {
    leaf(expr, fmt::format("extent {}.{}", definition_.tensors[node.tensor].name, node.dimension));
  }
  void print(const lang::TypedExpr& expr, const lang::Read& node) {
    inner(expr, "read " + definition_.tensors[node.tensor].name, node.subscripts);
  }
  void print(const lang::TypedExpr& expr, const lang::TypedUnary& node) {
    inner(expr, fmt::format("unary {}", lang::spelling_of(node.op)), {node.operand});
  }
  void print(const lang::TypedExpr& expr, const lang::TypedBinary& node) {
    inner(expr, std::string(lang::spelling_of(node.op)), {node.left, node.right});
  }
  void print(const lang::TypedExpr& expr, const lang::Select& node) {
    inner(expr, "?:", {node.condition, node.if_true, node.if_false});
  }
  void print(const lang::TypedExpr& expr, const lang::Intrinsic& node) {
    inner(expr, "call " + node.name, node.arguments);
  }
  void print(const lang::TypedExpr& expr, const lang::Cast& node) {
    inner(expr, node.implicit ? "implicit cast" : "cast", {node.operand});
  }
  void print(const lang::TypedExpr& expr, const lang::LetRef& node) {
    inner(expr, "let " + statement_->lets[node.let].name, {node.value});
  }

  const lang::TypedDefinition& definition_;
  const lang::TypedStatement* statement_ = nullptr;
  std::string out_;
  int depth_ = 0;
};

}  // namespace

std::string ast_text(const lang::TypedDefinition& definition) { return Printer(definition).print(); }

}  // namespace tc::compile
