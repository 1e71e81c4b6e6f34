#include "tc/gpu/rewrite/order_dims.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/layouts.h"
#include "tc/ir/reads.h"
#include "tc/ir/specialise.h"
#include "tc/support/check.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// A dimension as a sum of multiples of those that the program has. Without terms its subscript is 0.
struct Dimension {
  struct Term {
    size_t dimension = 0;
    int64_t factor = 1;
  };
  std::vector<Term> terms;
  int64_t extent = 1;
  int64_t stride = 1;
};

/// A tensor's dimensions as they lie in memory, the slowest first.
using Order = std::vector<Dimension>;

/// The largest offset of an element from the first one.
int64_t reach_of(const Order& order) {
  int64_t reach = 0;
  for (const Dimension& d : order) reach += (d.extent - 1) * d.stride;
  return reach;
}

/// Two dimensions as one, of all offsets that their sums reach, and those between.
Dimension joined(const Dimension& a, const Dimension& b) {
  Dimension result{a.terms, 1, std::gcd(a.stride, b.stride)};
  for (Dimension::Term& term : result.terms) term.factor *= a.stride / result.stride;
  for (Dimension::Term term : b.terms) {
    term.factor *= b.stride / result.stride;
    result.terms.push_back(term);
  }
  result.extent = reach_of({a, b}) / result.stride + 1;
  return result;
}

/// The dimensions that step through memory, the fastest first: none reaches beyond the next one's stride.
Order apart(const ir::Tensor& tensor, const ir::Shape& shape) {
  std::vector<size_t> moving;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1 && tensor.strides[d] != 0) moving.push_back(d);
  }
  std::stable_sort(moving.begin(), moving.end(),
                   [&](size_t a, size_t b) { return tensor.strides[a] > tensor.strides[b]; });
  Order result;
  for (; !moving.empty(); moving.pop_back()) {
    const size_t d = moving.back();
    result.push_back({{{d, 1}}, shape[d], tensor.strides[d]});
    while (result.size() > 1 && result.back().stride <= reach_of({result.begin(), result.end() - 1})) {
      TC_CHECK(tensor.role == ir::Role::kInput, "elements of '{}' share addresses", tensor.name);
      const Dimension last = result.back();
      result.pop_back();
      result.back() = joined(last, result.back());
    }
  }
  return result;
}

Order order_of(const ir::Tensor& tensor) {
  const ir::Shape shape = ir::constant_shape(tensor);
  Order fastest_first = apart(tensor, shape);
  if (fastest_first.empty() || fastest_first.front().stride != 1) {
    fastest_first.insert(fastest_first.begin(), Dimension{});
  }
  const Dimension& slowest = fastest_first.back();
  const int64_t whole = slowest.stride * slowest.extent;
  Order result;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) result.push_back({{{d, 1}}, 1, whole});
  }
  result.insert(result.end(), fastest_first.rbegin(), fastest_first.rend());
  return result;
}

/// A tensor's dimensions in the order of indices that a statement's left side has: T(m,n) of C(n,m) = f(T(m,n)).
std::optional<Order> order_of_left_side(const ir::Tensor& tensor, const ir::Statement& statement,
                                        const hi::Call* read) {
  const ir::Shape shape = ir::constant_shape(tensor);
  Order result;
  for (const Expr& subscript : statement.subscripts) {
    const auto* index = subscript.as<hi::Variable>();
    for (size_t d = 0; index != nullptr && d < read->args.size(); ++d) {
      const auto* own = read->args[d].as<hi::Variable>();
      if (own != nullptr && own->name == index->name) result.push_back({{{d, 1}}, shape[d], 1});
    }
  }
  std::set<size_t> dimensions;
  for (const Dimension& d : result) dimensions.insert(d.terms[0].dimension);
  if (result.size() != shape.size() || dimensions.size() != shape.size()) return std::nullopt;
  return result;
}

/// The subscripts of a tensor whose dimensions have an order.
std::vector<Expr> in_order(const Order& order, const std::vector<Expr>& old) {
  std::vector<Expr> result;
  for (const Dimension& dimension : order) {
    Expr sum;
    for (const Dimension::Term& term : dimension.terms) {
      const Expr& own = old[term.dimension];
      const Expr scaled = term.factor == 1 ? own : own * index_constant(term.factor);
      sum = sum.defined() ? sum + scaled : scaled;
    }
    result.push_back(sum.defined() ? sum : index_constant(0));
  }
  return result;
}

/// The statement with its map indices in the order in which its left side has them.
ir::Statement with_indices_in_order(ir::Statement s) {
  const auto place = [&](const ir::Index& index) {
    const auto found = std::find_if(s.subscripts.begin(), s.subscripts.end(),
                                    [&](const Expr& e) { return ir::mentions(e, index.name); });
    return found - s.subscripts.begin();
  };
  const auto reduction = std::stable_partition(s.indices.begin(), s.indices.end(),
                                               [](const ir::Index& index) { return !index.is_reduction; });
  std::stable_sort(s.indices.begin(), reduction,
                   [&](const ir::Index& a, const ir::Index& b) { return place(a) < place(b); });
  return s;
}

ir::Program with_orders(ir::Program program, const std::map<std::string, Order>& orders) {
  program = with_subscripts(std::move(program), [&](const std::string& tensor, const std::vector<Expr>& old) {
    const auto order = orders.find(tensor);
    return order == orders.end() ? old : in_order(order->second, old);
  });
  for (ir::Statement& s : program.statements) {
    if (orders.count(s.tensor) > 0) s = with_indices_in_order(std::move(s));
  }
  for (ir::Tensor& tensor : program.tensors) {
    const auto order = orders.find(tensor.name);
    if (order == orders.end()) continue;
    tensor.extents.clear();
    std::vector<int64_t> strides;
    for (const Dimension& d : order->second) {
      tensor.extents.push_back(index_constant(d.extent));
      strides.push_back(d.stride);
    }
    const bool is_strided = !tensor.strides.empty();
    tensor.strides.clear();
    if (is_strided && strides != ir::strides_of(tensor)) tensor.strides = strides;
  }
  return program;
}

/// Whether an order does more than leave dimensions of a dense tensor where they are.
bool changes(const ir::Tensor& tensor, const Order& order) {
  if (order.size() != tensor.extents.size()) return true;
  for (size_t d = 0; d < order.size(); ++d) {
    const auto& terms = order[d].terms;
    if (terms.size() != 1 || terms[0].dimension != d || terms[0].factor != 1) return true;
  }
  return false;
}

/// A temporary whose readers' left sides have its indices in another order, with that order.
std::optional<std::pair<std::string, Order>> misplaced_temporary(const ir::Program& program,
                                                                 const std::set<std::string>& placed) {
  for (size_t n = program.statements.size(); n-- > 0;) {
    const ir::Statement& s = program.statements[n];
    if (placed.count(s.tensor) == 0) continue;
    for (const hi::Call* read : ir::reads_in(program, s.value)) {
      const ir::Tensor& tensor = program.tensor(read->name);
      if (tensor.role != ir::Role::kTemporary || placed.count(tensor.name) > 0) continue;
      if (const auto order = order_of_left_side(tensor, s, read)) return std::pair{tensor.name, *order};
    }
  }
  return std::nullopt;
}

}  // namespace

ir::Program order_dims(ir::Program program) {
  std::map<std::string, Order> orders;
  std::set<std::string> placed;  // tensors whose order is settled, and is followed by temporaries
  for (const ir::Tensor& tensor : program.tensors) {
    if (tensor.strides.empty()) continue;
    orders[tensor.name] = order_of(tensor);
    if (tensor.role != ir::Role::kInput && changes(tensor, orders[tensor.name])) placed.insert(tensor.name);
  }
  if (orders.empty()) return program;
  program = with_orders(std::move(program), orders);
  while (const auto next = misplaced_temporary(program, placed)) {
    const auto& [name, order] = *next;
    placed.insert(name);
    if (changes(program.tensor(name), order)) program = with_orders(std::move(program), {{name, order}});
  }
  return program;
}

}  // namespace tc::gpu
