#include "tc/compile/interface.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <vector>

#include "tc/cache/version.h"
#include "tc/ir/bounds.h"
#include "tc/ir/canonical.h"
#include "tc/ir/index_expr.h"
#include "tc/lang/format.h"

namespace tc::compile {
namespace {

using Halide::Expr;
namespace hi = Halide::Internal;

/// How an operator is written, and made of its operands.
struct Operator {
  const char* text;
  size_t operands;
  Expr (*make)(const std::vector<Expr>&);
};
template <typename Node>
Expr binary(const std::vector<Expr>& e) {
  return Node::make(e[0], e[1]);
}
const Operator kOperators[] = {
    {"+", 2, binary<hi::Add>},
    {"-", 2, binary<hi::Sub>},
    {"*", 2, binary<hi::Mul>},
    {"/", 2, binary<hi::Div>},
    {"%", 2, binary<hi::Mod>},
    {"min", 2, binary<hi::Min>},
    {"max", 2, binary<hi::Max>},
    {"==", 2, binary<hi::EQ>},
    {"!=", 2, binary<hi::NE>},
    {"<", 2, binary<hi::LT>},
    {"<=", 2, binary<hi::LE>},
    {"&&", 2, binary<hi::And>},
    {"||", 2, binary<hi::Or>},
    {"!", 1, [](const std::vector<Expr>& e) { return hi::Not::make(e[0]); }},
    {"select", 3, [](const std::vector<Expr>& e) { return hi::Select::make(e[0], e[1], e[2]); }},
    {"floor_div", 2, [](const std::vector<Expr>& e) { return ir::floor_div(e[0], e[1]); }},
    {"floor_mod", 2, [](const std::vector<Expr>& e) { return ir::floor_mod(e[0], e[1]); }},
};

bool write(const Expr& e, std::string& text);

bool write_all(const char* name, const std::vector<Expr>& operands, std::string& text) {
  text += '(';
  text += name;
  for (const Expr& operand : operands) {
    text += ' ';
    if (!write(operand, text)) return false;
  }
  text += ')';
  return true;
}

template <typename Node>
bool write_binary(const Expr& e, const char* name, std::string& text, bool& done) {
  const auto* node = e.as<Node>();
  if (!node) return true;
  done = true;
  return write_all(name, {node->a, node->b}, text);
}

constexpr char kUnknown[] = "?";

/// Appends the prefix notation; false for a node that it does not have.
bool write(const Expr& e, std::string& text) {
  if (!e.defined()) return text += kUnknown, true;
  if (const auto* constant = e.as<hi::IntImm>()) return text += std::to_string(constant->value), true;
  if (const auto* variable = e.as<hi::Variable>()) return text += variable->name, true;
  if (const auto* op = e.as<hi::Not>()) return write_all("!", {op->a}, text);
  if (const auto* op = e.as<hi::Select>()) {
    return write_all("select", {op->condition, op->true_value, op->false_value}, text);
  }
  if (const auto* op = e.as<hi::GT>()) return write_all("<", {op->b, op->a}, text);
  if (const auto* op = e.as<hi::GE>()) return write_all("<=", {op->b, op->a}, text);
  if (const auto* op = e.as<hi::Call>()) {
    if (op->name == "tc.floor_div") return write_all("floor_div", op->args, text);
    if (op->name == "tc.floor_mod") return write_all("floor_mod", op->args, text);
    return false;
  }
  bool done = false;
  const bool good = write_binary<hi::Add>(e, "+", text, done) && write_binary<hi::Sub>(e, "-", text, done) &&
                    write_binary<hi::Mul>(e, "*", text, done) && write_binary<hi::Div>(e, "/", text, done) &&
                    write_binary<hi::Mod>(e, "%", text, done) && write_binary<hi::Min>(e, "min", text, done) &&
                    write_binary<hi::Max>(e, "max", text, done) && write_binary<hi::EQ>(e, "==", text, done) &&
                    write_binary<hi::NE>(e, "!=", text, done) && write_binary<hi::LT>(e, "<", text, done) &&
                    write_binary<hi::LE>(e, "<=", text, done) && write_binary<hi::And>(e, "&&", text, done) &&
                    write_binary<hi::Or>(e, "||", text, done);
  return good && done;
}

/// Reads prefix notation. An undefined Expr stands for a text that is not one.
class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  Expr all() {
    const Expr e = next(0);
    return at_ == text_.size() ? e : Expr();
  }

 private:
  static constexpr int kMaxDepth = 1000;

  std::string word() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '(' && text_[at_] != ')') ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Expr next(int depth) {
    if (depth > kMaxDepth || at_ >= text_.size()) return {};
    if (text_[at_] != '(') return leaf(word());
    ++at_;
    const std::string name = word();
    std::vector<Expr> operands;
    while (at_ < text_.size() && text_[at_] == ' ') {
      ++at_;
      operands.push_back(next(depth + 1));
      if (!operands.back().defined()) return {};
    }
    if (at_ >= text_.size() || text_[at_] != ')') return {};
    ++at_;
    for (const Operator& op : kOperators) {
      if (name == op.text && operands.size() == op.operands) return op.make(operands);
    }
    return {};
  }

  static Expr leaf(const std::string& word) {
    if (word.empty()) return {};
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error == std::errc() && end == word.data() + word.size()) return ir::index_constant(value);
    return ir::index_variable(word);
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

std::string source_of(const lang::File& file, const std::string& entry) {
  lang::File alone{.source = file.source, .definitions = {}, .comments = {}};
  for (const lang::Definition& definition : file.definitions) {
    if (definition.name.text == entry) alone.definitions.push_back(definition);
  }
  return lang::format(alone);
}

std::optional<cache::Interface> interface_of(const ir::Program& program, const std::string& text) {
  cache::Interface interface {
    .entry = program.name, .program = ir::digest_of(program).to_string(), .text = text,
    .compiler = cache::compiler_version(), .sizes = program.sizes, .tensors = {}, .scalars = {},
    .parameters = program.parameters, .results = program.results,
    .has_run_time_checks = !ir::run_time_checks(program).empty()
  };
  for (const ir::Tensor& tensor : program.tensors) {
    if (tensor.role == ir::Role::kTemporary) continue;
    using Role = cache::Interface::Role;
    cache::Interface::Tensor& to = interface.tensors.emplace_back();
    to.name = tensor.name;
    to.type = ir::from_halide(tensor.type);
    to.role = tensor.role == ir::Role::kInput   ? Role::kInput
              : tensor.role == ir::Role::kInOut ? Role::kInOut
                                                : Role::kResult;
    for (const Expr& extent : tensor.extents) {
      if (!write(extent, to.extents.emplace_back())) return std::nullopt;
    }
  }
  for (const ir::Scalar& scalar : program.scalars) {
    interface.scalars.push_back({scalar.name, ir::from_halide(scalar.type), scalar.specialised, scalar.value});
  }
  return interface;
}

Digest interface_key(const std::string& text, const std::map<std::string, int64_t>& scalars) {
  std::string all = text;
  for (const auto& [name, value] : scalars) all += fmt::format("# {} = {}\n", name, value);
  return Digest::of(all);
}

Result<void> keep_interfaces(cache::Cache& file, const ir::Program& program, const ir::Program& instance,
                             const std::string& text) {
  const std::optional<cache::Interface> interface = interface_of(program, text);
  if (!interface) return {};
  TC_TRY_VOID(file.put(interface_key(text, {}), *interface));
  std::map<std::string, int64_t> values;
  for (const ir::Scalar& scalar : instance.scalars) {
    if (scalar.value) values[scalar.name] = *scalar.value;
  }
  if (values.empty()) return {};
  std::optional<cache::Interface> filled = interface_of(instance, text);
  if (!filled) return {};
  filled->program = interface->program;
  return file.put(interface_key(text, values), *filled);
}

std::optional<ir::Program> program_of(const cache::Interface& interface) {
  ir::Program program;
  program.name = interface.entry;
  program.sizes = interface.sizes;
  program.parameters = interface.parameters;
  program.results = interface.results;
  for (const cache::Interface::Tensor& tensor : interface.tensors) {
    using Role = cache::Interface::Role;
    ir::Tensor to{.name = tensor.name, .type = ir::to_halide(tensor.type), .extents = {}, .declared = {}};
    to.role = tensor.role == Role::kInput   ? ir::Role::kInput
              : tensor.role == Role::kInOut ? ir::Role::kInOut
                                            : ir::Role::kResult;
    for (const std::string& extent : tensor.extents) {
      if (extent == kUnknown) {
        to.extents.emplace_back();
        program.open = true;
        continue;
      }
      to.extents.push_back(Reader(extent).all());
      if (!to.extents.back().defined() || to.extents.back().type() != ir::index_type()) return std::nullopt;
    }
    program.tensors.push_back(std::move(to));
  }
  for (const cache::Interface::Scalar& scalar : interface.scalars) {
    program.scalars.push_back(
        {.name = scalar.name, .type = ir::to_halide(scalar.type), .specialised = scalar.compiled_in, .declared = {}});
    program.scalars.back().value = scalar.value;
  }
  return program;
}

}  // namespace tc::compile
