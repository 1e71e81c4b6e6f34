#include "tc/gpu/mapping/row_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tc/ir/halide_compat.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/linear_form.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

std::string loop_name(size_t loop) { return fmt::format("loop {}", loop); }

}  // namespace

std::vector<int> loops_of(const GroupStatement& s) {
  std::vector<int> result;
  for (const int i : s.inner) {
    if (s.ranges[static_cast<size_t>(i)].extent > 1) result.push_back(i);
  }
  return result;
}

std::vector<ir::Range> inner_ranges(const GroupStatement& s) {
  std::vector<ir::Range> ranges;
  for (const int i : loops_of(s)) ranges.push_back(s.ranges[static_cast<size_t>(i)]);
  return ranges;
}

bool same_loops(const GroupStatement& a, const GroupStatement& b) { return inner_ranges(a) == inner_ranges(b); }

std::optional<RowWork> work_of(const GroupStatement& s) {
  const std::vector<int> loops = loops_of(s);
  if (loops.empty()) return RowWork::kOnce;
  const auto reductions = std::count_if(loops.begin(), loops.end(),
                                        [&](int i) { return s.statement->is_reduction[static_cast<size_t>(i)]; });
  if (reductions == 0) return RowWork::kElements;
  const bool all = static_cast<size_t>(reductions) == loops.size();
  return all && s.statement->kind == poly::Statement::Kind::kUpdate ? std::optional(RowWork::kReduce) : std::nullopt;
}

Signature signature_of(const GroupStatement& s, const std::vector<Expr>& subscripts) {
  const std::vector<int> loops = loops_of(s);
  std::map<std::string, Expr> known;
  for (size_t m = 0; m < s.shared.size(); ++m) {
    known[s.statement->indices[static_cast<size_t>(s.shared[m])]] = ir::index_variable(fmt::format("member {}", m));
  }
  for (const int i : s.inner) {
    const ir::Range& range = s.ranges[static_cast<size_t>(i)];
    const auto loop = static_cast<size_t>(std::find(loops.begin(), loops.end(), i) - loops.begin());
    known[s.statement->indices[static_cast<size_t>(i)]] =
        range.extent == 1 ? ir::index_constant(range.begin) : ir::index_variable(loop_name(loop));
  }
  Signature result;
  for (const Expr& e : subscripts) result.push_back(hi::simplify(hi::substitute(known, e)));
  return result;
}

bool is_same(const Signature& a, const Signature& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return hi::equal(x, y); });
}

int64_t count_loops(const Signature& signature, size_t loops) {
  return std::count_if(signature.begin(), signature.end(), [&](const Expr& e) {
    for (size_t l = 0; l < loops; ++l) {
      if (hi::expr_uses_var(e, loop_name(l))) return true;
    }
    return false;
  });
}

bool is_plain(const Signature& signature) {
  return std::all_of(signature.begin(), signature.end(),
                     [](const Expr& e) { return e.as<hi::Variable>() != nullptr || ir::constant_int(e) != nullptr; });
}

bool tells_loops(const Signature& signature, size_t loops) {
  std::set<std::string> open;
  for (size_t l = 0; l < loops; ++l) open.insert(loop_name(l));
  for (bool progress = true; progress;) {
    progress = false;
    for (const Expr& e : signature) {
      const std::optional<ir::LinearForm> form = ir::linear_form(e);
      if (!form) continue;
      std::vector<std::string> unknown;
      for (const auto& [name, by] : form->coefficients) {
        if (open.count(name) > 0) unknown.push_back(name);
      }
      if (unknown.size() != 1) continue;
      open.erase(unknown[0]);
      progress = true;
    }
  }
  return open.empty();
}

bool reads_under_condition(const GroupStatement& s, const std::string& tensor) {
  class Finder : public hi::IRVisitor {
   public:
    explicit Finder(const std::string& tensor) : tensor_(tensor) {}
    bool found = false;

   private:
    using IRVisitor::visit;
    void visit(const hi::Call* op) override {
      const bool before = under_condition_;
      under_condition_ = before || op->is_intrinsic(hi::Call::if_then_else);
      found = found || (before && op->name == tensor_);
      IRVisitor::visit(op);
      under_condition_ = before;
    }
    const std::string& tensor_;
    bool under_condition_ = false;
  } finder(tensor);
  s.statement->value.accept(&finder);
  return finder.found;
}

std::vector<Use> uses_of(const FusedGroup& part) {
  std::vector<Use> result;
  for (const GroupStatement& s : part.statements) {
    std::vector<Expr> values = s.statement->subscripts;
    values.push_back(s.statement->value);
    for (const Expr& e : values) {
      for (const hi::Call* read : ir::reads_in(*part.scop->program, e))
        result.push_back({&s, read->name, &read->args, false});
    }
    result.push_back({&s, s.statement->tensor, &s.statement->subscripts, true});
  }
  return result;
}

}  // namespace tc::gpu
