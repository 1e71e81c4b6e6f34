#include "tc/gpu/strategy/contraction/contraction.h"

#include <isl/set.h>
#include <isl/union_map.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/combine.h"
#include "tc/ir/specialise.h"
#include "tc/poly/from_ir.h"
#include "tc/poly/isl_ext.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

/// Operands whose elements are used less often than this are not worth a copy.
constexpr double kLeastReuse = 4;
/// A contraction with less work keeps the classic mapping.
constexpr double kLeastWork = 4096;

using Names = std::vector<std::string>;

struct Linear {
  std::vector<int64_t> coefficients;  ///< of the names
  int64_t constant = 0;
};

std::optional<Linear> scaled(std::optional<Linear> a, int64_t by) {
  if (!a) return std::nullopt;
  for (int64_t& c : a->coefficients) c *= by;
  a->constant *= by;
  return a;
}

std::optional<Linear> linear(const Expr& e, const Names& names) {
  Linear result{std::vector<int64_t>(names.size(), 0), 0};
  if (const int64_t* value = hi::as_const_int(e)) {
    result.constant = *value;
    return result;
  }
  if (const auto* variable = e.as<hi::Variable>()) {
    const auto at = std::find(names.begin(), names.end(), variable->name);
    if (at == names.end()) return std::nullopt;
    result.coefficients[static_cast<size_t>(at - names.begin())] = 1;
    return result;
  }
  if (const auto* op = e.as<hi::Mul>()) {
    if (const int64_t* by = hi::as_const_int(op->b)) return scaled(linear(op->a, names), *by);
    if (const int64_t* by = hi::as_const_int(op->a)) return scaled(linear(op->b, names), *by);
    return std::nullopt;
  }
  const auto* add = e.as<hi::Add>();
  const auto* sub = e.as<hi::Sub>();
  if (!add && !sub) return std::nullopt;
  const std::optional<Linear> a = linear(add ? add->a : sub->a, names);
  const std::optional<Linear> b = scaled(linear(add ? add->b : sub->b, names), add ? 1 : -1);
  if (!a || !b) return std::nullopt;
  result.constant = a->constant + b->constant;
  for (size_t i = 0; i < names.size(); ++i) result.coefficients[i] = a->coefficients[i] + b->coefficients[i];
  return result;
}

/// The index that a subscript is, but for a constant.
struct Shifted {
  size_t index = 0;
  int64_t constant = 0;
};

std::optional<Shifted> shifted(const Expr& e, const Names& names) {
  const std::optional<Linear> value = linear(e, names);
  if (!value) return std::nullopt;
  std::optional<Shifted> result;
  for (size_t i = 0; i < names.size(); ++i) {
    if (value->coefficients[i] == 0) continue;
    if (value->coefficients[i] != 1 || result) return std::nullopt;
    result = Shifted{i, value->constant};
  }
  return result;
}

const isl::set* domain_of(const std::vector<isl::set>& domains, const std::string& id) {
  const auto at =
      std::find_if(domains.begin(), domains.end(), [&](const isl::set& s) { return poly::tuple_name(s) == id; });
  return at == domains.end() ? nullptr : &*at;
}

/// The axes of a domain that is a box.
std::optional<std::vector<Axis>> box_of(const isl::set& domain, const Names& names) {
  if (isl_set_is_box(domain.get()) != isl_bool_true) return std::nullopt;
  std::vector<Axis> axes;
  for (size_t i = 0; i < names.size(); ++i) {
    const int64_t begin = poly::to_int64(domain.dim_min_val(static_cast<int>(i)));
    const int64_t extent = poly::to_int64(domain.dim_max_val(static_cast<int>(i))) - begin + 1;
    if (begin < INT32_MIN / 4 || begin > INT32_MAX / 4 || extent > INT32_MAX / 4) return std::nullopt;
    axes.push_back({names[i], begin, extent});
  }
  return axes;
}

/// Takes the affine reads out of the update's value.
class Operands : public hi::IRMutator {
 public:
  Operands(const ir::Program& program, const Contraction& contraction, const Names& names)
      : program_(program), contraction_(contraction), names_(names) {}
  std::vector<Operand> found;
  bool sound = true;  ///< no read stands under a condition

  /// Takes out only what neighbouring results read from far apart.
  void take_only_crossing() { only_crossing_ = true; }

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* op) override {
    std::optional<Operand> operand = guarded(op);
    if (op->is_intrinsic(hi::Call::if_then_else) && !operand) sound = false;
    if (!ir::is_tensor_read(program_, op) && !operand) return IRMutator::visit(op);
    if (!operand) operand = of_chosen_rows(op);
    if (!operand) operand = affine(op);
    if (!operand || operand->subscripts.empty() || (only_crossing_ && !crosses(*operand))) return IRMutator::visit(op);
    const auto value = [&](const std::string& placeholder) {
      const Expr element = hi::Variable::make(operand->type, placeholder);
      return operand->type == op->type ? element : hi::Cast::make(op->type, element);
    };
    for (const Operand& other : found) {
      if (same(other, *operand)) return value(other.placeholder);
    }
    operand->placeholder = fmt::format("operand {}", found.size());
    found.push_back(*operand);
    return value(operand->placeholder);
  }

  /// What a branch reads of rows that data choose may not be there otherwise.
  Expr visit(const hi::Select* op) override {
    const bool before = std::exchange(in_branch_, true);
    Expr result = IRMutator::visit(op);
    in_branch_ = before;
    return result;
  }

  std::optional<Operand> affine(const hi::Call* op) const {
    Operand operand{op->name, "", op->type, {}, ir::constant_shape(program_.tensor(op->name))};
    for (const Expr& subscript : op->args) {
      const std::optional<Linear> value = linear(subscript, names_);
      if (!value) return std::nullopt;
      operand.subscripts.push_back(subscript_of(*value));
    }
    return operand;
  }

  /// A read under a guard, 0 elsewhere.
  std::optional<Operand> guarded(const hi::Call* op) const {
    if (only_crossing_ || in_branch_) return std::nullopt;
    std::optional<ir::GuardedRead> found = ir::guarded_read(program_, op);
    if (!found || !hi::is_const_zero(hi::simplify(found->otherwise))) return std::nullopt;
    std::optional<Operand> operand = affine(found->read);
    if (operand) operand->inside = std::move(found->inside);
    return operand;
  }

  Subscript subscript_of(const Linear& value) const {
    const auto middle = value.coefficients.begin() + static_cast<long>(contraction_.parallel.size());
    return {{value.coefficients.begin(), middle}, {middle, value.coefficients.end()}, value.constant};
  }

  const Axis& axis(size_t name) const {
    const size_t parallel = contraction_.parallel.size();
    return name < parallel ? contraction_.parallel[name] : contraction_.reduction[name - parallel];
  }

  /// A tensor over the indices of a read, the one that counts along its rows last.
  std::optional<Operand> of_chosen_rows(const hi::Call* op) const {
    if (only_crossing_ || in_branch_ || !reads_chosen_row(program_, op)) return std::nullopt;
    const Expr row = hi::Call::make(op->type, op->name, op->args, op->call_type);
    if (reads_tensor(row, contraction_.update.tensor)) return std::nullopt;
    const std::optional<Linear> along = linear(op->args.back(), names_);
    std::vector<size_t> used;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (hi::expr_uses_var(row, names_[i])) used.push_back(i);
    }
    if (used.empty()) return std::nullopt;
    ChosenRow chosen{op->args, {}, 1};
    if (along) {
      const std::optional<Shifted> one = shifted(op->args.back(), names_);
      const auto last = one ? std::find(used.begin(), used.end(), one->index) : used.end();
      if (last != used.end()) {
        std::rotate(last, last + 1, used.end());
        const auto uses = [&](const Expr& e) { return hi::expr_uses_var(e, names_[one->index]); };
        if (std::count_if(op->args.begin(), op->args.end(), uses) == 1)
          chosen.unit =
              std::gcd(ir::constant_shape(program_.tensor(op->name)).back(), one->constant + axis(one->index).begin);
      }
    }
    Operand operand{op->name, "", op->type, {}, {}};
    for (size_t i : used) {
      Linear only{std::vector<int64_t>(names_.size(), 0), -axis(i).begin};
      only.coefficients[i] = 1;
      operand.subscripts.push_back(subscript_of(only));
      operand.extents.push_back(axis(i).extent);
      chosen.indices.push_back(names_[i]);
    }
    operand.chosen_row = std::move(chosen);
    return operand;
  }

  /// Whether the last parallel axis runs over rows of the operand, and another over the elements of a row.
  bool crosses(const Operand& operand) const {
    constexpr int64_t kLong = 8;
    const size_t last = contraction_.parallel.size() - 1;
    const std::vector<int64_t>& row = operand.subscripts.back().parallel;
    bool across = false, along = false;
    for (const Subscript& s : operand.subscripts) across = across || s.parallel[last] != 0;
    for (size_t axis = 0; axis < last; ++axis) {
      along = along || (row[axis] == 1 && contraction_.parallel[axis].extent >= kLong);
    }
    return across && along && row[last] == 0 && contraction_.parallel[last].extent >= kLong;
  }

  static bool same(const Operand& a, const Operand& b) {
    if (a.tensor != b.tensor || a.chosen_row.has_value() != b.chosen_row.has_value() || a.inside != b.inside) {
      return false;
    }
    if (a.chosen_row) {
      const auto equal = [](const Expr& x, const Expr& y) { return hi::equal(x, y); };
      const std::vector<Expr>& x = a.chosen_row->subscripts;
      return std::equal(x.begin(), x.end(), b.chosen_row->subscripts.begin(), equal);
    }
    for (size_t d = 0; d < a.subscripts.size(); ++d) {
      const Subscript& x = a.subscripts[d];
      const Subscript& y = b.subscripts[d];
      if (x.parallel != y.parallel || x.reduction != y.reduction || x.constant != y.constant) return false;
    }
    return true;
  }

  const ir::Program& program_;
  const Contraction& contraction_;
  const Names& names_;
  bool only_crossing_ = false;
  bool in_branch_ = false;
};

/// How many instances use an element, on average.
double reuse(const Contraction& c, const Operand& operand) {
  double instances = 1, elements = 1;
  for (const Axis& axis : c.parallel) instances *= static_cast<double>(axis.extent);
  for (const Axis& axis : c.reduction) instances *= static_cast<double>(axis.extent);
  for (const Subscript& s : operand.subscripts) {
    int64_t range = 1;
    for (size_t i = 0; i < c.parallel.size(); ++i) range += std::abs(s.parallel[i]) * (c.parallel[i].extent - 1);
    for (size_t i = 0; i < c.reduction.size(); ++i) range += std::abs(s.reduction[i]) * (c.reduction[i].extent - 1);
    elements *= static_cast<double>(range);
  }
  return instances / elements;
}

/// Builds a Contraction around an update.
class Finder {
 public:
  Finder(const poly::Scop& scop, size_t update) : scop_(scop), domains_(poly::statement_domains(scop)), at_(update) {}

  std::optional<Contraction> find(size_t first) {
    if (!set_update()) return std::nullopt;
    for (size_t s = first; s < at_; ++s) {
      const poly::Statement& statement = scop_.statements[s];
      if (statement.tensor != result_.update.tensor) return std::nullopt;
      std::optional<poly::Statement> point = on_points(statement);
      if (!point) return std::nullopt;
      result_.before.push_back(*std::move(point));
    }
    result_.first = first;
    result_.last = at_ + 1;
    if (!within_points()) return std::nullopt;
    for (size_t s = at_ + 1; s < scop_.statements.size(); ++s) {
      const poly::Statement& statement = scop_.statements[s];
      std::optional<poly::Statement> point = on_points(statement);
      if (!point) break;
      ++result_.last;
      if (!within_points()) {
        --result_.last;
        break;
      }
      result_.after.push_back(*std::move(point));
    }
    return result_;
  }

 private:
  bool set_update() {
    const poly::Statement& update = scop_.statements[at_];
    const isl::set* domain = domain_of(domains_, update.id);
    if (!domain || update.guard.defined() || update.accumulator != scop_.program->tensor(update.tensor).type) {
      return false;
    }
    const std::optional<std::vector<Axis>> axes = box_of(*domain, update.indices);
    if (!axes) return false;
    std::set<size_t> used;
    for (const Expr& subscript : update.subscripts) {
      const std::optional<Shifted> index = shifted(subscript, update.indices);
      if (!index || update.is_reduction[index->index] || !used.insert(index->index).second) return false;
      result_.parallel.push_back((*axes)[index->index]);
    }
    for (size_t i = 0; i < axes->size(); ++i) {
      if (used.count(i) == 0) result_.reduction.push_back((*axes)[i]);
    }
    result_.update = update;
    if (reduces() == result_.reduction.empty()) return false;
    if (!reduces()) result_.reduction.push_back({"once", 0, 1});
    return !result_.parallel.empty() && set_operands();
  }

  bool reduces() const { return scop_.statements[at_].kind == poly::Statement::Kind::kUpdate; }

  bool set_operands() {
    Names names;
    double work = 1;
    for (const auto* axes : {&result_.parallel, &result_.reduction}) {
      for (const Axis& axis : *axes) {
        names.push_back(axis.name);
        work *= static_cast<double>(axis.extent);
      }
    }
    Operands operands(*scop_.program, result_, names);
    if (!reduces()) operands.take_only_crossing();
    result_.update.value = operands.mutate(result_.update.value);
    result_.operands = operands.found;
    if (!operands.sound || work < kLeastWork || result_.operands.size() < (reduces() ? 2U : 1U)) return false;
    return std::all_of(result_.operands.begin(), result_.operands.end(), [&](const Operand& operand) {
      return operand.tensor != result_.update.tensor && (!reduces() || reuse(result_, operand) >= kLeastReuse);
    });
  }

  /// An update without a reduction, in its tensor's own type, sets the element from the old value:
  ///     C(m,n) += b(n)   ==>   C(m,n) = C(m,n) + b(n)
  poly::Statement as_set(poly::Statement statement) const {
    if (statement.kind != poly::Statement::Kind::kUpdate) return statement;
    const Expr old =
        hi::Call::make(statement.accumulator, statement.tensor, statement.subscripts, hi::Call::PureExtern);
    statement.value = ir::combine(statement.assign, old, statement.value);
    statement.kind = poly::Statement::Kind::kSet;
    statement.assign = ir::Assign::kSet;
    return statement;
  }

  /// The subscripts of the update's tensor in a statement: its own, or those of a read.
  std::optional<std::vector<Expr>> anchor(const poly::Statement& statement) const {
    if (statement.tensor == result_.update.tensor) return statement.subscripts;
    struct Search : hi::IRVisitor {
      explicit Search(const std::string& n) : name(n) {}
      const std::string& name;
      std::optional<std::vector<Expr>> found;
      using hi::IRVisitor::visit;
      void visit(const hi::Call* op) override {
        if (op->name == name && !found) found = op->args;
        hi::IRVisitor::visit(op);
      }
    } search(result_.update.tensor);
    statement.value.accept(&search);
    return search.found;
  }

  /// A statement over the parallel axes, if its instances are their points, one each.
  std::optional<poly::Statement> on_points(const poly::Statement& statement) {
    const isl::set* domain = domain_of(domains_, statement.id);
    const std::optional<std::vector<Expr>> subscripts = anchor(statement);
    if (!domain || statement.guard.defined() || !subscripts) return std::nullopt;
    if (statement.indices.size() != result_.parallel.size()) return std::nullopt;
    if (std::count(statement.is_reduction.begin(), statement.is_reduction.end(), true) > 0) return std::nullopt;
    const bool updates = statement.kind == poly::Statement::Kind::kUpdate;
    if (updates && statement.accumulator != scop_.program->tensor(statement.tensor).type) return std::nullopt;
    const std::optional<std::vector<Axis>> axes = box_of(*domain, statement.indices);
    if (!axes) return std::nullopt;
    std::map<std::string, Expr> renamed;
    std::vector<Shifted> point(result_.parallel.size());
    for (size_t d = 0; d < subscripts->size(); ++d) {
      const std::optional<Shifted> own = shifted((*subscripts)[d], statement.indices);
      const std::optional<Shifted> of_update = shifted(result_.update.subscripts[d], result_.update.indices);
      if (!own) return std::nullopt;
      const Axis& mine = (*axes)[own->index];
      const int64_t offset = own->constant - of_update->constant;
      const Axis& axis = result_.parallel[d];
      if (mine.begin + offset != axis.begin || mine.extent != axis.extent) return std::nullopt;
      const Expr value = hi::Variable::make(ir::index_type(), axis.name) - hi::make_const(ir::index_type(), offset);
      if (!renamed.emplace(mine.name, offset == 0 ? hi::Variable::make(ir::index_type(), axis.name) : value).second) {
        return std::nullopt;
      }
      point[d] = {own->index, offset};
    }
    poly::Statement result = as_set(statement);
    result.value = hi::substitute(renamed, result.value);
    for (Expr& subscript : result.subscripts) subscript = hi::simplify(hi::substitute(renamed, subscript));
    if (!reads_own_elements(result)) return std::nullopt;
    points_[statement.id] = point;
    return result;
  }

  /// What the group has written is read where it was written.
  bool reads_own_elements(const poly::Statement& statement) {
    written_.emplace(result_.update.tensor, canonical(result_.update.subscripts));
    const std::vector<Expr> own = canonical(statement.subscripts);
    const auto [known, fresh] = written_.emplace(statement.tensor, own);
    if (!same_place(known->second, own)) return false;
    values_.push_back(statement.value);
    // What is written from here on may have been read before, elsewhere.
    return std::all_of(values_.begin(), values_.end(), [&](const Expr& value) { return reads_written_places(value); });
  }

  bool reads_written_places(const Expr& value) {
    struct Search : hi::IRVisitor {
      explicit Search(Finder& f) : finder(f) {}
      Finder& finder;
      bool sound = true;
      using hi::IRVisitor::visit;
      void visit(const hi::Call* op) override {
        const auto found = finder.written_.find(op->name);
        if (found != finder.written_.end()) sound = sound && finder.same_place(found->second, canonical(op->args));
        hi::IRVisitor::visit(op);
      }
    } search(*this);
    value.accept(&search);
    return search.sound;
  }

  static std::vector<Expr> canonical(std::vector<Expr> subscripts) {
    for (Expr& e : subscripts) e = hi::simplify(e);
    return subscripts;
  }
  bool same_place(const std::vector<Expr>& a, const std::vector<Expr>& b) const {
    Names names;
    for (const Axis& axis : result_.parallel) names.push_back(axis.name);
    for (size_t d = 0; d < a.size(); ++d) {
      const std::optional<Linear> x = linear(a[d], names), y = linear(b[d], names);
      if (!x || !y || x->coefficients != y->coefficients || x->constant != y->constant) return false;
    }
    return a.size() == b.size();
  }

  /// Whether every dependence between the statements [first, last) connects instances of one point.
  bool within_points() const {
    const isl::ctx ctx = scop_.context->get();
    std::vector<isl::set> domains;
    std::vector<std::vector<isl::aff>> rows(result_.parallel.size());
    for (size_t s = result_.first; s < result_.last; ++s) {
      const poly::Statement& statement = scop_.statements[s];
      const isl::set* domain = domain_of(domains_, statement.id);
      domains.push_back(*domain);
      for (size_t d = 0; d < rows.size(); ++d) {
        if (s == at_) {
          const auto at = std::find(statement.indices.begin(), statement.indices.end(), result_.parallel[d].name);
          rows[d].push_back(poly::variable(domain->space(), static_cast<int>(at - statement.indices.begin())));
        } else {
          const Shifted& own = points_.at(statement.id)[d];
          rows[d].push_back(poly::variable(domain->space(), static_cast<int>(own.index))
                                .add_constant(poly::make_val(ctx, own.constant)));
        }
      }
    }
    const isl::union_set domain = poly::union_of(ctx, domains);
    const isl::union_map all =
        scop_.dependences.ordered().unite(scop_.dependences.reduction).intersect_domain(domain).intersect_range(domain);
    const isl::multi_union_pw_aff point = poly::band_schedule(ctx, rows);
    return all.is_subset(isl::manage(isl_union_map_eq_at_multi_union_pw_aff(all.copy(), point.copy())));
  }

  const poly::Scop& scop_;
  std::vector<isl::set> domains_;
  size_t at_;
  Contraction result_;
  std::map<std::string, std::vector<Shifted>> points_;  ///< per statement and axis: which index, and its offset
  std::map<std::string, std::vector<Expr>> written_;    ///< the element of a point
  std::vector<Expr> values_;                            ///< of the statements on points
};

}  // namespace

std::optional<Contraction> contraction_at(const poly::Scop& scop, size_t first) {
  constexpr size_t kMostBefore = 4;
  for (size_t at = first; at < std::min(scop.statements.size(), first + kMostBefore); ++at) {
    const poly::Statement& statement = scop.statements[at];
    const bool reduces = statement.kind == poly::Statement::Kind::kUpdate;
    if (reduces && std::count(statement.is_reduction.begin(), statement.is_reduction.end(), true) > 0) {
      return Finder(scop, at).find(first);
    }
  }
  return std::nullopt;
}

bool is_contraction(const ir::Program& program, const ir::Statement& statement) {
  return contraction_of(program, statement).has_value();
}

std::optional<Contraction> transposition_of(const poly::Scop& scop) {
  if (scop.statements.empty() || scop.statements[0].kind != poly::Statement::Kind::kSet) return std::nullopt;
  std::optional<Contraction> whole = Finder(scop, 0).find(0);
  return whole && whole->last == scop.statements.size() ? whole : std::nullopt;
}

std::optional<Contraction> contraction_of(const ir::Program& program, const ir::Statement& statement) {
  ir::Program alone = program;
  alone.statements = {statement};
  const auto context = std::make_shared<poly::Context>();
  const Result<poly::Scop> scop = poly::from_ir(std::make_shared<const ir::Program>(std::move(alone)), context);
  return scop ? contraction_at(*scop, 0) : std::nullopt;
}

}  // namespace tc::gpu
