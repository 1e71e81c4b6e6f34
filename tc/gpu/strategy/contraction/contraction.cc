#include "tc/gpu/strategy/contraction/contraction.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "tc/gpu/rewrite/operand_order.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/gpu/strategy/contraction/affine_subscript.h"
#include "tc/gpu/strategy/contraction/operand.h"
#include "tc/gpu/strategy/contraction/points.h"
#include "tc/gpu/strategy/contraction/selection.h"
#include "tc/gpu/strategy/contraction/stored.h"
#include "tc/ir/layouts.h"
#include "tc/ir/reads.h"
#include "tc/ir/specialise.h"
#include "tc/ir/tf32_values.h"
#include "tc/poly/from_ir.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/restricted.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

/// Operands whose elements are used less often than this are not worth a copy.
constexpr double kLeastReuse = 4;
/// A contraction with less work keeps the classic mapping.
constexpr double kLeastWork = 4096;

/// Takes the affine reads out of the update's value.
class Operands : public hi::IRMutator {
 public:
  Operands(const ir::Program& program, const Contraction& contraction, const std::vector<std::string>& names)
      : program_(program), contraction_(contraction), names_(names) {}
  std::vector<Operand> found;
  std::optional<Expr> selection;  ///< of the operands found
  bool sound = true;              ///< no read stands under a condition on data

  /// Takes out only what neighbouring results read from far apart.
  void take_only_crossing() { only_crossing_ = true; }
  /// Takes out slices that data select, too.
  void take_slices() { slices_ = true; }

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* op) override {
    std::optional<Operand> operand = guarded(op);
    if (op->is_intrinsic(hi::Call::if_then_else) && !operand) return choice(op);
    if (!ir::is_tensor_read(program_, op) && !operand) return IRMutator::visit(op);
    if (!operand) operand = of_selected_slice(op);
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

  /// A choice by indices is made for each product. Where it takes the other branch, the copies have brought some
  /// element of the tensor.
  Expr choice(const hi::Call* op) {
    if (only_crossing_ || !ir::reads_in(program_, op->args[0]).empty()) {
      sound = false;
      return IRMutator::visit(op);
    }
    const bool before = std::exchange(in_branch_, true);
    Expr result =
        hi::Call::make(op->type, op->name, {op->args[0], mutate(op->args[1]), mutate(op->args[2])}, op->call_type);
    in_branch_ = before;
    return result;
  }

  /// What a branch reads of rows that data choose may not be there otherwise.
  Expr visit(const hi::Select* op) override {
    const bool before = std::exchange(in_branch_, true);
    Expr result = IRMutator::visit(op);
    in_branch_ = before;
    return result;
  }

  std::optional<Operand> affine(const hi::Call* op) const {
    const ir::Tensor& tensor = program_.tensor(op->name);
    const ir::Shape shape = ir::constant_shape(tensor);
    if (std::count(shape.begin(), shape.end(), 0) > 0) return std::nullopt;  // a guard never reads it
    Operand operand{
        op->name, "", op->type, {}, ir::constant_shape(tensor), ir::strides_of(tensor), tensor.at_any_address};
    for (const Expr& subscript : op->args) {
      const std::optional<LinearForm> value = linear(subscript, names_);
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

  Subscript subscript_of(const LinearForm& value) const {
    const auto middle = value.coefficients.begin() + static_cast<long>(contraction_.parallel.size());
    return {{value.coefficients.begin(), middle}, {middle, value.coefficients.end()}, value.constant};
  }

  const Axis& axis(size_t name) const {
    const size_t parallel = contraction_.parallel.size();
    return name < parallel ? contraction_.parallel[name] : contraction_.reduction[name - parallel];
  }

  /// A tensor of whose first dimensions one has a subscript that data choose for a row, while the others count along
  /// the columns and the reduction.
  std::optional<Operand> of_selected_slice(const hi::Call* op) {
    if (!slices_ || in_branch_) return std::nullopt;
    const std::optional<SelectedSlice> slice = selected_slice(program_, op, names_, contraction_.parallel.size());
    if (!slice || reads_tensor(slice->selection, contraction_.update.tensor)) return std::nullopt;
    if (selection && !hi::equal(*selection, slice->selection)) return std::nullopt;
    const ir::Tensor& tensor = program_.tensor(op->name);
    Operand operand{
        op->name, "", op->type, {}, ir::constant_shape(tensor), ir::strides_of(tensor), tensor.at_any_address};
    for (size_t d = 0; d < op->args.size(); ++d) {
      const LinearForm none{std::vector<int64_t>(names_.size(), 0), 0};
      operand.subscripts.push_back(subscript_of(d == slice->dimension ? none : *linear(op->args[d], names_)));
    }
    operand.selected = slice->dimension;
    selection = slice->selection;
    return operand;
  }

  /// A tensor over the indices of a read, the one that counts along its rows last.
  std::optional<Operand> of_chosen_rows(const hi::Call* op) const {
    if (only_crossing_ || in_branch_ || !reads_chosen_row(program_, op)) return std::nullopt;
    const Expr row = hi::Call::make(op->type, op->name, op->args, op->call_type);
    if (reads_tensor(row, contraction_.update.tensor)) return std::nullopt;
    const std::optional<LinearForm> along = linear(op->args.back(), names_);
    std::vector<size_t> used;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (hi::expr_uses_var(row, names_[i])) used.push_back(i);
    }
    if (used.empty()) return std::nullopt;
    ChosenRow chosen{op->args, {}, 1};
    if (along) {
      const std::optional<ShiftedIndex> one = shifted(op->args.back(), names_);
      const auto last = one ? std::find(used.begin(), used.end(), one->index) : used.end();
      if (last != used.end()) {
        std::rotate(last, last + 1, used.end());
        const auto uses = [&](const Expr& e) { return hi::expr_uses_var(e, names_[one->index]); };
        if (std::count_if(op->args.begin(), op->args.end(), uses) == 1)
          chosen.unit = std::gcd(ir::row_divisor(program_.tensor(op->name)), one->constant + axis(one->index).begin);
      }
    }
    Operand operand{op->name, "", op->type, {}, {}, {}};
    for (size_t i : used) {
      LinearForm only{std::vector<int64_t>(names_.size(), 0), -axis(i).begin};
      only.coefficients[i] = 1;
      operand.subscripts.push_back(subscript_of(only));
      operand.extents.push_back(axis(i).extent);
      chosen.indices.push_back(names_[i]);
    }
    operand.strides = ir::row_major_strides(operand.extents);
    operand.at_any_address = false;
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
    int64_t run = 1;  // of short dimensions, as those of weights of 3 x 3
    for (size_t axis : run_across(contraction_, operand)) run *= contraction_.parallel[axis].extent;
    return across && (along || run >= kLong) && row[last] == 0 && contraction_.parallel[last].extent >= kLong;
  }

  static bool same(const Operand& a, const Operand& b) {
    if (a.tensor != b.tensor || a.chosen_row.has_value() != b.chosen_row.has_value() || a.inside != b.inside ||
        a.selected != b.selected) {
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
  const std::vector<std::string>& names_;
  bool only_crossing_ = false;
  bool slices_ = false;
  bool in_branch_ = false;
};

/// How many instances use an element, on average.
double reuse(const Contraction& c, const Operand& operand) {
  double instances = 1, elements = 1;
  for (const Axis& axis : c.parallel) instances *= static_cast<double>(axis.extent);
  for (const Axis& axis : c.reduction) instances *= static_cast<double>(axis.extent);
  for (size_t d = 0; d < operand.subscripts.size(); ++d) {
    const Subscript& s = operand.subscripts[d];
    int64_t range = operand.selected == d ? operand.extents[d] : 1;
    for (size_t i = 0; i < c.parallel.size(); ++i) range += std::abs(s.parallel[i]) * (c.parallel[i].extent - 1);
    for (size_t i = 0; i < c.reduction.size(); ++i) range += std::abs(s.reduction[i]) * (c.reduction[i].extent - 1);
    elements *= static_cast<double>(range);
  }
  return instances / elements;
}

void find_tf32(const ir::Program& program, Contraction& c) {
  for (Operand& operand : c.operands) operand.is_tf32 = ir::holds_tf32(program, operand.tensor);
}

/// Operands in the order of the first parallel axes that they use, whatever the order of the factors: A(m,k) before
/// B(k,n) of C(m,n). So products that differ in that order have plans alike.
std::vector<Operand> in_order(std::vector<Operand> operands) {
  const auto first_axis = [](const Operand& operand) {
    size_t first = std::numeric_limits<size_t>::max();
    for (const Subscript& s : operand.subscripts) {
      const auto used = std::find_if(s.parallel.begin(), s.parallel.end(), [](int64_t c) { return c != 0; });
      if (used != s.parallel.end()) first = std::min(first, static_cast<size_t>(used - s.parallel.begin()));
    }
    return first;
  };
  std::stable_sort(operands.begin(), operands.end(),
                   [&](const Operand& a, const Operand& b) { return first_axis(a) < first_axis(b); });
  return operands;
}

bool sums_up(const poly::Statement& s) {
  return s.kind == poly::Statement::Kind::kUpdate && std::count(s.is_reduction.begin(), s.is_reduction.end(), true) > 0;
}

/// Whether a statement sets what the next one adds to.
bool starts_sum(const poly::Scop& scop, size_t s) {
  return scop.statements[s].kind == poly::Statement::Kind::kInit && s + 1 < scop.statements.size() &&
         sums_up(scop.statements[s + 1]) && scop.statements[s + 1].tensor == scop.statements[s].tensor;
}

/// Builds a Contraction around an update.
class Finder {
 public:
  Finder(const poly::Scop& scop, size_t update, double least_reuse = kLeastReuse, double least_work = kLeastWork)
      : scop_(scop),
        domains_(poly::statement_domains(scop)),
        at_(update),
        least_reuse_(least_reuse),
        least_work_(least_work) {}

  /// Lets the contraction take in all statements up to `last` but reductions.
  void go_on_to(size_t last) { last_ = last; }

  std::optional<Contraction> find(size_t first, bool several = false) {
    if (!set_update()) return std::nullopt;
    const Contraction update = result_;
    PointGroup in_order(scop_, result_.parallel, PointGroup::By::kOrder);
    std::optional<Contraction> found = find(first, several, in_order);
    if (!in_order.is_ambiguous()) return found;
    result_ = update;
    PointGroup by_names(scop_, result_.parallel, PointGroup::By::kNames);
    std::optional<Contraction> other = find(first, several, by_names);
    return !found || (other && other->last > found->last) ? other : found;
  }

 private:
  std::optional<Contraction> find(size_t first, bool several, PointGroup& group) {
    group.expect(result_.update.tensor, result_.update.subscripts);
    for (size_t s = first; s < at_; ++s) {
      std::optional<poly::Statement> point = group.add(scop_.statements[s]);
      if (!point) return std::nullopt;
      result_.before.push_back(*std::move(point));
    }
    if (!group.add(scop_.statements[at_])) return std::nullopt;
    for (size_t s = at_ + 1; s < last_.value_or(scop_.statements.size()); ++s) {
      const bool sums = sums_up(scop_.statements[s]);
      if (last_ && (sums || starts_sum(scop_, s))) continue;
      if (sums && !several) break;
      std::optional<poly::Statement> point = group.add(scop_.statements[s]);
      if (!point && last_) return std::nullopt;
      if (!point || (sums && !add_product(scop_.statements[s], *point))) break;
      if (!sums) result_.after.push_back(*std::move(point));
    }
    const auto is_linked = [&](const poly::Statement& s) { return group.are_linked(s.tensor, result_.update.tensor); };
    if (!result_.before.empty() && !is_linked(result_.before.front())) return std::nullopt;
    if (!last_) drop_unlinked(is_linked);
    result_.first = first;
    result_.last = last_.value_or(at_ + 1 + result_.after.size() + result_.further.size());
    if (!result_.further.empty()) say_what_is_read_elsewhere();
    if (writes_selection()) return std::nullopt;
    return result_;
  }

  /// Whether a statement of the group writes what selects slices, which a block reads before all else.
  bool writes_selection() const {
    if (!result_.selection) return false;
    const auto written = scop_.statements.begin() + static_cast<long>(result_.first);
    return std::any_of(written, scop_.statements.begin() + static_cast<long>(result_.last),
                       [&](const poly::Statement& s) { return reads_tensor(*result_.selection, s.tensor); });
  }

  /// A product over the group's points; its statement, and the same over the axes.
  bool add_product(const poly::Statement& own, const poly::Statement& over_axes) {
    constexpr size_t kMost = 3;  // sums of a point that registers have room for
    const std::optional<std::vector<Axis>> box = box_of(*domain_of(domains_, own.id), own.indices);
    Contraction product;
    product.parallel = result_.parallel;
    product.update = over_axes;
    product.place = result_.after.size();
    for (size_t i = 0; i < box->size(); ++i) {
      if (own.is_reduction[i]) {
        product.reduction.push_back({over_axes.indices[i], (*box)[i].begin, (*box)[i].extent});
      }
    }
    if (result_.further.size() + 1 >= kMost || !set_operands(product, true)) return false;
    // Blocks go through the slices of all products at once.
    const std::optional<Expr>&a = result_.selection, &b = product.selection;
    if (a.has_value() != b.has_value() || (a && !hi::equal(*a, *b))) return false;
    result_.further.push_back(std::move(product));
    return true;
  }

  /// From the first further product on that has nothing to do with the first one, all goes; so does such a tail.
  template <typename IsLinked>
  void drop_unlinked(const IsLinked& is_linked) {
    std::vector<poly::Statement>& after = result_.after;
    std::vector<Contraction>& further = result_.further;
    for (size_t f = 0; f < further.size(); ++f) {
      if (is_linked(further[f].update)) continue;
      after.resize(further[f].place);
      further.resize(f);
    }
    const auto ends_with_product = [&] { return !further.empty() && further.back().place == after.size(); };
    while (!after.empty() && !ends_with_product() && !is_linked(after.back())) after.pop_back();
  }

  void say_what_is_read_elsewhere() {
    std::vector<Contraction*> products = {&result_};
    for (Contraction& product : result_.further) products.push_back(&product);
    std::vector<std::string> of_points;
    for (const auto* statements : {&result_.before, &result_.after}) {
      for (const poly::Statement& s : *statements) {
        of_points.push_back(s.tensor);
        for (const hi::Call* read : reads_in(*scop_.program, s.value)) of_points.push_back(read->name);
      }
    }
    for (Contraction* product : products) {
      product->read_elsewhere = of_points;
      for (const Contraction* other : products) {
        if (other == product) continue;
        for (const hi::Call* read : reads_in(*scop_.program, scop_.statement(other->update.id).value)) {
          product->read_elsewhere.push_back(read->name);
        }
      }
    }
  }

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
      if (hi::is_const(subscript)) continue;
      const std::optional<ShiftedIndex> index = shifted(subscript, update.indices);
      if (!index || update.is_reduction[index->index] || !used.insert(index->index).second) return false;
      result_.parallel.push_back((*axes)[index->index]);
    }
    for (size_t i = 0; i < axes->size(); ++i) {
      if (used.count(i) == 0) result_.reduction.push_back((*axes)[i]);
    }
    result_.update = update;
    if (reduces() == result_.reduction.empty()) return false;
    if (!reduces()) result_.reduction.push_back({"once", 0, 1});
    return !result_.parallel.empty() && set_operands(result_, reduces());
  }

  bool reduces() const { return scop_.statements[at_].kind == poly::Statement::Kind::kUpdate; }

  /// Takes the operands out of the value of a product whose axes are known. Slices that data select are taken where
  /// elements are used too seldom without.
  bool set_operands(Contraction& product, bool reduces) const {
    Contraction by_slices = product;
    if (set_operands(product, reduces, false)) return true;
    product = std::move(by_slices);
    return reduces && set_operands(product, reduces, true);
  }

  bool set_operands(Contraction& product, bool reduces, bool slices) const {
    std::vector<std::string> names;
    double work = 1;
    for (const auto* axes : {&product.parallel, &product.reduction}) {
      for (const Axis& axis : *axes) {
        names.push_back(axis.name);
        work *= static_cast<double>(axis.extent);
      }
    }
    Operands operands(*scop_.program, product, names);
    if (!reduces) operands.take_only_crossing();
    if (slices) operands.take_slices();
    product.update.value = operands.mutate(product.update.value);
    product.operands = in_order(std::move(operands.found));
    product.selection = operands.selection;
    if (slices && (!product.selection || product.operands.size() != 2)) return false;
    find_tf32(*scop_.program, product);
    if (!operands.sound || work < least_work_ || product.operands.size() < (reduces ? 2U : 1U)) return false;
    return std::all_of(product.operands.begin(), product.operands.end(), [&](const Operand& operand) {
      return operand.tensor != product.update.tensor && (!reduces || reuse(product, operand) >= least_reuse_);
    });
  }

  const poly::Scop& scop_;
  std::vector<isl::set> domains_;
  size_t at_;
  double least_reuse_, least_work_;
  std::optional<size_t> last_;
  Contraction result_;
};

}  // namespace

size_t accumulator_of(const Contraction& contraction, size_t product) {
  const auto of = [&](size_t i) -> const Contraction& { return i == 0 ? contraction : contraction.further[i - 1]; };
  size_t result = product;
  for (; result > 0; --result) {
    const poly::Statement &own = of(result).update, &other = of(result - 1).update;
    const bool goes_on = of(result).place == (result == 1 ? 0 : of(result - 1).place) && own.tensor == other.tensor &&
                         own.assign == other.assign && own.accumulator == other.accumulator;
    if (!goes_on) break;
  }
  return result;
}

namespace {

/// The first update from a statement on.
std::optional<size_t> update_from(const poly::Scop& scop, size_t first) {
  constexpr size_t kMostBefore = 4;
  for (size_t at = first; at < std::min(scop.statements.size(), first + kMostBefore); ++at) {
    if (sums_up(scop.statements[at])) return at;
  }
  return std::nullopt;
}

std::optional<Contraction> with_stored(const poly::Scop& scop, std::optional<Contraction> contraction) {
  if (!contraction) return contraction;
  contraction->stored = stored_tensors(scop, *contraction);
  contraction->instructions = instructions_of_point(*scop.program, *contraction);
  for (Contraction& product : contraction->further) product.stored = contraction->stored;
  return contraction;
}

}  // namespace

std::optional<Contraction> contraction_at(const poly::Scop& scop, size_t first, bool several) {
  const std::optional<size_t> at = update_from(scop, first);
  return at ? with_stored(scop, Finder(scop, *at).find(first, several)) : std::nullopt;
}

std::optional<Contraction> small_contraction_at(const poly::Scop& scop, size_t first) {
  const std::optional<size_t> at = update_from(scop, first);
  return at ? with_stored(scop, Finder(scop, *at, 1, 1).find(first)) : std::nullopt;
}

std::optional<Contraction> contraction_between(const poly::Scop& scop, size_t first, size_t last) {
  const std::optional<size_t> at = update_from(scop, first);
  if (!at) return std::nullopt;
  Finder finder(scop, *at);
  finder.go_on_to(last);
  return with_stored(scop, finder.find(first));
}

bool is_contraction(const ir::Program& program, const ir::Statement& statement) {
  return contraction_of(program, statement).has_value();
}

std::optional<Contraction> transposition_at(const poly::Scop& scop, size_t statement) {
  if (scop.statements.size() <= statement) return std::nullopt;
  if (scop.statements[statement].kind != poly::Statement::Kind::kSet) return std::nullopt;
  return Finder(scop, statement).find(statement);
}

std::optional<Contraction> transposed_copy_at(const poly::Scop& scop, size_t statement) {
  const poly::Statement& s = scop.statements[statement];
  if (!is_operand_copy(s.id)) return std::nullopt;
  poly::Scop alone = poly::restricted(scop, {s.id});
  alone.statements = {s};
  std::optional<Contraction> copy = transposition_at(alone, 0);
  if (!copy) return std::nullopt;
  copy->first = statement;
  copy->last = statement + 1;
  return copy;
}

std::optional<Contraction> contraction_of(const ir::Program& program, const ir::Statement& statement) {
  ir::Program alone = program;
  alone.statements = {statement};
  const auto context = std::make_shared<poly::Context>();
  const Result<poly::Scop> scop =
      poly::accesses_from_ir(std::make_shared<const ir::Program>(std::move(alone)), context);
  std::optional<Contraction> result = scop ? contraction_at(*scop, 0) : std::nullopt;
  if (!result) return std::nullopt;
  find_tf32(program, *result);  // by the statements that write the operands
  if (std::optional<StoredTensor> stored = expected_stored(program, statement, *result)) result->stored = {*stored};
  return result;
}

}  // namespace tc::gpu
