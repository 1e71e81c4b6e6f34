#include "tc/gpu/rewrite/operand_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/names.h"
#include "tc/ir/specialise.h"
#include "tc/ir/tf32_values.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

bool OperandOrder::operator==(const OperandOrder&) const = default;

namespace {

constexpr const char* kCopy = "_copy";

std::vector<Expr> permuted(const std::vector<Expr>& of, const std::vector<size_t>& dimensions) {
  std::vector<Expr> result;
  for (const size_t d : dimensions) result.push_back(of[d]);
  return result;
}

/// Reads of a tensor at permuted subscripts, less the first element that there is in each dimension.
class Reader : public hi::IRMutator {
 public:
  Reader(const OperandOrder& order, const std::string& instead) : order_(order), instead_(instead) {}

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* op) override {
    if (op->name != order_.tensor || op->args.size() != order_.read.size()) return IRMutator::visit(op);
    std::vector<Expr> at;
    for (const size_t d : order_.dimensions) {
      const int64_t first = order_.stored ? 0 : order_.read[d].begin;
      const Expr subscript = mutate(op->args[d]);
      at.push_back(first == 0 ? subscript : hi::simplify(subscript - index_constant(first)));
    }
    return hi::Call::make(op->type, instead_, at, op->call_type);
  }
  const OperandOrder& order_;
  const std::string& instead_;
};

/// The index whose values a dimension of a read counts by itself; empty: there is none.
std::string index_along(const ir::Statement& statement, const hi::Call* read, size_t dimension) {
  std::string found;
  for (const ir::Index& index : statement.indices) {
    if (!hi::expr_uses_var(read->args[dimension], index.name)) continue;
    if (!found.empty()) return "";
    found = index.name;
  }
  return found;
}

/// Whether a copy writes zeros behind its rows.
bool is_filled_up(const OperandOrder& order) { return order.row > order.read[order.dimensions.back()].extent; }

/// A statement that copies what a product reads, and its tensor.
std::pair<ir::Statement, ir::Tensor> copy_of(const ir::Program& program, const ir::Statement& statement,
                                             const OperandOrder& order) {
  ir::Names names = ir::Names::among_statements(program);
  const hi::Call* read = nullptr;
  for (const hi::Call* call : ir::reads_in(program, statement.value)) {
    if (call->name == order.tensor) read = call;
  }
  ir::Statement copy;
  std::vector<Expr> from(order.dimensions.size());
  for (const size_t d : order.dimensions) {
    std::string name = index_along(statement, read, d);
    const auto is_it = [&](const ir::Index& index) { return index.name == name; };
    if (name.empty() || std::any_of(copy.indices.begin(), copy.indices.end(), is_it)) {
      name = names.fresh(fmt::format("d{}", d));
    }
    const bool is_filled = d == order.dimensions.back() && is_filled_up(order);
    copy.indices.push_back(make_index(name, is_filled ? order.row : order.read[d].extent, false));
    copy.subscripts.push_back(index_variable(name));
    const int64_t first = order.read[d].begin;
    from[d] = first == 0 ? index_variable(name) : index_variable(name) + index_constant(first);
  }
  copy.id = operand_copy_id(statement.id, names);
  copy.tensor = names.fresh(order.tensor + kCopy);
  copy.value = hi::Call::make(read->type, order.tensor, from, read->call_type);
  if (order.rounds) copy.value = ir::tf32_of(copy.value);
  if (is_filled_up(order)) {
    const ir::Range& row = order.read[order.dimensions.back()];
    const Expr is_there = copy.subscripts.back() < index_constant(row.extent);
    copy.value = hi::Call::make(read->type, hi::Call::if_then_else, {is_there, copy.value, ir::zero_of(read->type)},
                                hi::Call::PureIntrinsic);
  }
  copy.accumulator = read->type;
  copy.range = statement.range;
  ir::Tensor tensor = temporary_over(copy.tensor, read->type, copy.indices);
  tensor.extents.back() = index_constant(order.row);
  return {std::move(copy), std::move(tensor)};
}

bool is_written(const ir::Program& program, const std::string& tensor) {
  return std::any_of(program.statements.begin(), program.statements.end(),
                     [&](const ir::Statement& s) { return s.tensor == tensor; });
}

/// Lets everyone write and read a temporary in another order.
void store_in_order(ir::Program& program, const OperandOrder& order) {
  std::vector<std::string> all = order.alongside;
  all.push_back(order.tensor);
  for (const std::string& name : all) {
    const auto tensor = std::find_if(program.tensors.begin(), program.tensors.end(),
                                     [&](const ir::Tensor& t) { return t.name == name; });
    tensor->extents = permuted(tensor->extents, order.dimensions);
    OperandOrder own = order;
    own.tensor = name;
    for (ir::Statement& s : program.statements) {
      const auto reads = [&](const Expr& e) { return e.defined() && reads_tensor(e, name); };
      if (s.tensor != name && !reads(s.value) && !reads(s.guard)) continue;
      if (s.tensor == name) s.subscripts = permuted(s.subscripts, order.dimensions);
      s.value = Reader(own, name).mutate(s.value);
      if (s.guard.defined()) s.guard = Reader(own, name).mutate(s.guard);
      s.accesses.clear();
    }
  }
}

/// The copies of inputs, which come first; the last of them is found first.
struct Copies {
  std::vector<OperandOrder> orders;
  std::vector<ir::Statement> statements;
};

/// Gives one statement's operands their orders; how many statements were put before it.
size_t apply(ir::Program& program, size_t at, const std::vector<OperandOrder>& orders, Copies& copies) {
  size_t added = 0;
  for (auto next = orders.rbegin(); next != orders.rend(); ++next) {
    const OperandOrder& order = *next;
    if (order.stored) {
      store_in_order(program, order);
      continue;
    }
    const auto known = std::find(copies.orders.begin(), copies.orders.end(), order);
    std::string instead;
    if (known != copies.orders.end()) {
      instead = copies.statements[static_cast<size_t>(known - copies.orders.begin())].tensor;
    } else {
      ir::Program all = program;  // with the statements that are to come first, for names that none of them has
      all.statements.insert(all.statements.end(), copies.statements.begin(), copies.statements.end());
      auto [copy, tensor] = copy_of(all, program.statements[at + added], order);
      instead = copy.tensor;
      program.tensors.push_back(std::move(tensor));
      if (is_written(program, order.tensor)) {
        const size_t place = place_of_copy(program, at + added, order.tensor);
        program.statements.insert(program.statements.begin() + static_cast<long>(place), std::move(copy));
        ++added;
      } else {
        copies.orders.push_back(order);
        copies.statements.push_back(std::move(copy));
      }
    }
    ir::Statement& statement = program.statements[at + added];
    statement.value = Reader(order, instead).mutate(statement.value);
    statement.accesses.clear();
  }
  return added;
}

/// Those of equal shape next to each other, else in the order of the products.
std::vector<ir::Statement> grouped(std::vector<ir::Statement> copies) {
  std::reverse(copies.begin(), copies.end());
  const auto shape = [](const ir::Statement& s) {
    std::vector<int64_t> extents;
    for (const ir::Index& index : s.indices) extents.push_back(extent_of(index));
    return extents;
  };
  std::vector<ir::Statement> result;
  for (ir::Statement& copy : copies) {
    const auto last =
        std::find_if(result.rbegin(), result.rend(), [&](const ir::Statement& s) { return shape(s) == shape(copy); });
    result.insert(last == result.rend() ? result.end() : last.base(), std::move(copy));
  }
  return result;
}

}  // namespace

size_t place_of_copy(const ir::Program& program, size_t product, const std::string& source) {
  const std::string& tensor = program.statements[product].tensor;
  while (product > 0 && program.statements[product - 1].tensor == tensor && tensor != source) --product;
  return product;
}

std::string operand_copy_id(const std::string& product, ir::Names& names) { return names.fresh(product + kCopy); }

// Ids of a def's own statements are numbers behind an S.
bool is_operand_copy(const std::string& id) { return id.find(kCopy) != std::string::npos; }

bool may_be_stored(const ir::Program& program, const ir::Statement& statement, const std::string& tensor,
                   std::vector<std::string>& alongside) {
  if (program.tensor(tensor).role != ir::Role::kTemporary || statement.tensor == tensor) return false;
  const auto places_by = [](const ir::Statement& s, const std::string& name) {
    return std::any_of(s.subscripts.begin(), s.subscripts.end(), [&](const Expr& e) { return reads_tensor(e, name); });
  };
  for (const ir::Statement& s : program.statements) {
    const bool is_other = s.tensor != tensor && s.id != statement.id;
    if ((is_other && reads_tensor(s, tensor)) || places_by(s, tensor)) return false;
  }
  std::vector<std::string> points = {tensor};
  const auto is_point = [&](const std::string& name) {
    return std::find(points.begin(), points.end(), name) != points.end();
  };
  bool of_product = false;
  for (size_t i = 0; i < points.size(); ++i) {
    for (const ir::Statement& s : program.statements) {
      if (s.tensor != points[i]) continue;
      of_product = of_product || std::any_of(s.indices.begin(), s.indices.end(),
                                             [](const ir::Index& index) { return index.is_reduction; });
      for (const hi::Call* read : ir::reads_in(program, s.value)) {
        const auto same = [](const Expr& a, const Expr& b) { return hi::equal(a, b); };
        const bool at_point =
            std::equal(read->args.begin(), read->args.end(), s.subscripts.begin(), s.subscripts.end(), same);
        if (at_point && !is_point(read->name) && program.tensor(read->name).role == ir::Role::kTemporary) {
          points.push_back(read->name);
        }
      }
    }
  }
  // Nobody else looks at them.
  for (const ir::Statement& s : program.statements) {
    for (size_t i = 1; i < points.size(); ++i) {
      if (is_point(s.tensor) ? places_by(s, points[i]) : reads_tensor(s, points[i])) return false;
    }
  }
  if (!of_product) return false;
  alongside.assign(points.begin() + 1, points.end());
  return true;
}

ir::Program order_operands(ir::Program program, const ChooseOrders& choose) {
  Copies copies;
  for (size_t left = program.statements.size(); left > 0; --left) {
    const size_t at = left - 1;
    const std::vector<OperandOrder> orders = choose(program, program.statements[at], copies.orders);
    if (!orders.empty()) left += apply(program, at, orders, copies);
  }
  std::vector<ir::Statement> first = grouped(std::move(copies.statements));
  program.statements.insert(program.statements.begin(), first.begin(), first.end());
  return program;
}

}  // namespace tc::gpu
