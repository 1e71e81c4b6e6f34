#include "tc/cpu/strategy_info.h"

#include <isl/map.h>

#include <algorithm>

#include "tc/poly/isl_ext.h"
#include "tc/poly/plain_equality.h"
#include "tc/support/check.h"

namespace tc::cpu {

namespace hi = Halide::Internal;

namespace {

/// A rough number of simple instructions that an expression takes.
double operations_of(const Halide::Expr& expr) {
  class Counter : public hi::IRVisitor {
   public:
    double count = 1;

   private:
    using IRVisitor::visit;
    void visit(const hi::Call* op) override {
      bool read = op->call_type == hi::Call::PureExtern && !op->args.empty() && op->args[0].type() == Halide::Int(64);
      count += read ? 1 : 15;
      IRVisitor::visit(op);
    }
    void visit(const hi::Mul* op) override { count += 1, IRVisitor::visit(op); }
    void visit(const hi::Add* op) override { count += 1, IRVisitor::visit(op); }
    void visit(const hi::Div* op) override { count += 4, IRVisitor::visit(op); }
  } counter;
  expr.accept(&counter);
  return counter.count;
}

/// Whether every pair of a relation agrees in input i and output j.
bool equal_pairs(const isl::map& map, int i, int j) {
  if (poly::plainly_equal(map, i, j)) return true;
  isl::map equated = isl::manage(isl_map_equate(map.copy(), isl_dim_in, i, isl_dim_out, j));
  return map.is_subset(equated);
}

}  // namespace

bool StatementInfo::reduces() const { return std::find(parallel.begin(), parallel.end(), false) != parallel.end(); }

double StatementInfo::instances() const {
  double result = 1;
  for (int64_t e : extent) result *= static_cast<double>(e);
  return result;
}

bool Analysis::equal_along(int a, int i, int b, int j) const {
  auto found = dependences.find({a, b});
  if (found == dependences.end()) return true;
  return std::all_of(found->second.begin(), found->second.end(),
                     [&](const isl::map& map) { return equal_pairs(map, i, j); });
}

Analysis analyse(const poly::Scop& scop, const ir::Layouts& layouts) {
  Analysis result;
  result.scop = &scop;
  result.layouts = layouts;
  std::map<std::string, isl::set> domains;
  for (const isl::set& domain : poly::sets_of(scop.domain)) domains.emplace(poly::tuple_name(domain), domain);
  std::map<std::string, int> number;
  for (const poly::Statement& statement : scop.statements) {
    auto domain = domains.find(statement.id);
    if (domain == domains.end()) continue;
    number[statement.id] = static_cast<int>(result.statements.size());
    StatementInfo info;
    info.statement = &statement;
    info.domain = domain->second;
    for (size_t i = 0; i < statement.indices.size(); ++i) {
      int64_t low = poly::to_int64(info.domain.dim_min_val(static_cast<int>(i)));
      int64_t high = poly::to_int64(info.domain.dim_max_val(static_cast<int>(i)));
      info.begin.push_back(low);
      info.extent.push_back(high - low + 1);
    }
    info.parallel.assign(statement.indices.size(), true);
    info.references =
        references(*scop.program, statement.tensor, statement.subscripts, statement.value, statement.guard);
    info.operations = operations_of(statement.value);
    result.statements.push_back(std::move(info));
  }
  isl::union_map all = scop.dependences.ordered().unite(scop.dependences.reduction);
  for (const isl::map& map : poly::maps_of(all)) {
    int a = number.at(poly::domain_name(map));
    int b = number.at(poly::range_name(map));
    TC_CHECK(a <= b, "a dependence from {} back to {}", poly::domain_name(map), poly::range_name(map));
    if (a != b) {
      result.dependences[{a, b}].push_back(map);
      continue;
    }
    std::vector<bool>& parallel = result.statements[static_cast<size_t>(a)].parallel;
    for (size_t i = 0; i < parallel.size(); ++i) {
      parallel[i] = parallel[i] && equal_pairs(map, static_cast<int>(i), static_cast<int>(i));
    }
  }
  return result;
}

}  // namespace tc::cpu
