#include "tc/gpu/rewrite/hoist.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tc/gpu/rewrite/statements.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;

/// What a statement reads, the elements that it updates aside.
std::set<std::string> tensors_read(const ir::Program& program, const ir::Statement& statement) {
  std::set<std::string> result;
  const auto add = [&](const hi::Call* call) {
    if (ir::is_tensor_read(program, call)) result.insert(call->name);
    return false;
  };
  reads(statement.value, add);
  for (const Halide::Expr& subscript : statement.subscripts) reads(subscript, add);
  if (statement.guard.defined()) reads(statement.guard, add);
  return result;
}

/// Whether the order of two statements matters.
bool depend(const ir::Program& program, const ir::Statement& a, const ir::Statement& b) {
  return a.tensor == b.tensor || tensors_read(program, a).count(b.tensor) > 0 ||
         tensors_read(program, b).count(a.tensor) > 0;
}

/// The first of the statements right before a contraction that lead to it: they write its tensor, or what it reads.
size_t begin_of_group(const ir::Program& program, size_t product) {
  std::set<std::string> leads = tensors_read(program, program.statements[product]);
  leads.insert(program.statements[product].tensor);
  size_t first = product;
  while (first > 0 && leads.count(program.statements[first - 1].tensor) > 0) {
    --first;
    leads.merge(tensors_read(program, program.statements[first]));
  }
  return first;
}

/// The last statement that goes on with a contraction's results, or with what is made of them point by point.
size_t last_of_group(const ir::Program& program, size_t product) {
  std::set<std::string> results = {program.statements[product].tensor};
  size_t last = product;
  for (size_t s = product + 1; s < program.statements.size(); ++s) {
    const ir::Statement& statement = program.statements[s];
    std::set<std::string> touched = tensors_read(program, statement);
    touched.insert(statement.tensor);
    const bool goes_on =
        std::any_of(touched.begin(), touched.end(), [&](const auto& name) { return results.count(name) > 0; });
    if (!goes_on) continue;
    last = s;
    if (!statement.reduces()) results.insert(statement.tensor);
  }
  return last;
}

/// Whether a later statement updates what a statement sets by something that is made of a contraction's results: both
/// belong to one reduction.
bool begins_reduction(const ir::Program& program, size_t product, size_t statement) {
  std::set<std::string> made = {program.statements[product].tensor};
  for (size_t s = product + 1; s < program.statements.size(); ++s) {
    const ir::Statement& later = program.statements[s];
    const std::set<std::string> read = tensors_read(program, later);
    if (std::none_of(read.begin(), read.end(), [&](const auto& name) { return made.count(name) > 0; })) continue;
    made.insert(later.tensor);
    if (s > statement && later.tensor == program.statements[statement].tensor) return true;
  }
  return false;
}

}  // namespace

ir::Program hoist_before_products(ir::Program program,
                                  const std::function<bool(const ir::Program&, const ir::Statement&)>& is_contraction) {
  std::vector<ir::Statement>& statements = program.statements;
  const auto is_product = [&](const ir::Statement& s) {
    return s.reduces() && shares_operands(program, s) && is_contraction(program, s);
  };
  for (size_t p = 0; p < statements.size(); ++p) {
    const size_t last = last_of_group(program, p);
    if (last < p + 2 || !is_product(statements[p])) continue;
    size_t first = begin_of_group(program, p);
    for (size_t s = p + 1; s < last; ++s) {
      const ir::Statement& statement = statements[s];
      const bool moves = statement.reduces() ? !is_product(statement)
                                             : ir::instance_count(statement) < ir::result_count(statements[p]);
      const auto from = statements.begin() + static_cast<long>(first), at = statements.begin() + static_cast<long>(s);
      const auto depends = [&](const ir::Statement& other) { return depend(program, statement, other); };
      if (!moves || std::any_of(from, at, depends) || begins_reduction(program, p, s)) continue;
      std::rotate(from, at, at + 1);
      ++first;
      ++p;
    }
  }
  return program;
}

ir::Program sink_behind_chains(ir::Program program,
                               const std::function<bool(const ir::Program&, const ir::Statement&)>& is_contraction) {
  std::vector<ir::Statement>& statements = program.statements;
  std::vector<size_t> products;
  for (size_t s = 0; s < statements.size(); ++s) {
    const bool shares = statements[s].reduces() && shares_operands(program, statements[s]);
    if (shares && is_contraction(program, statements[s])) products.push_back(s);
  }
  for (size_t i = 1; i < products.size(); ++i) {
    const size_t first = products[i - 1], second = products[i], last = last_of_group(program, second);
    std::set<std::string> made = {statements[first].tensor};
    std::set<size_t> rows;
    const auto is_made = [&](const std::string& tensor) { return made.count(tensor) > 0; };
    for (size_t s = first + 1; s < second; ++s) {
      const std::set<std::string> read = tensors_read(program, statements[s]);
      if (std::none_of(read.begin(), read.end(), is_made)) continue;
      made.insert(statements[s].tensor);
      const bool is_row = ir::instance_count(statements[s]) < ir::result_count(statements[first]);
      if (is_row && !statements[s].reduces()) rows.insert(s);
    }
    const std::set<std::string> operands = tensors_read(program, statements[second]);
    if (std::none_of(operands.begin(), operands.end(), is_made)) continue;
    size_t end = last;
    for (auto s = rows.rbegin(); s != rows.rend(); ++s) {
      const auto at = statements.begin() + static_cast<long>(*s), to = statements.begin() + static_cast<long>(end) + 1;
      const auto depends = [&](const ir::Statement& other) { return depend(program, *at, other); };
      if (std::any_of(at + 1, to, depends)) continue;
      std::rotate(at, at + 1, to);
      --end;
    }
    for (size_t later = i; later < products.size(); ++later) {
      if (products[later] <= last) products[later] -= last - end;
    }
  }
  return program;
}

}  // namespace tc::gpu
