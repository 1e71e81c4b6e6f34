#include "tc/poly/from_ir.h"

#include <fmt/format.h>

#include <set>

#include "tc/ir/halide_compat.h"
#include "tc/poly/affine.h"
#include "tc/poly/dependences.h"
#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::poly {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// The names of the Variables of an expression.
class VariableNames : public hi::IRVisitor {
 public:
  std::set<std::string> names;

 private:
  using hi::IRVisitor::visit;
  void visit(const hi::Variable* op) override { names.insert(op->name); }
};

/// The affine scope of a statement's indices.
AffineScope scope_of(isl::ctx ctx, const std::string& id, const std::vector<ir::Index>& indices) {
  std::vector<std::string> names;
  std::vector<AffineScope::Range> ranges;
  for (const ir::Index& index : indices) {
    names.push_back(index.name);
    const int64_t* begin = ir::constant_int(index.begin);
    const int64_t* end = ir::constant_int(index.end);
    ranges.push_back(begin && end ? AffineScope::Range({*begin, *end - 1}) : std::nullopt);
  }
  return AffineScope(named_space(ctx, id, indices.size()), names, ranges);
}

/// { S[i] : begin <= i < end }
isl::set box_of(AffineScope& scope, const std::vector<ir::Index>& indices) {
  isl::set box = scope.space().universe_set();
  std::vector<std::string> names;
  for (size_t i = 0; i < indices.size(); ++i) {
    const isl::pw_aff index = variable(scope.space(), i);
    const std::optional<isl::pw_aff> begin = scope.affine(indices[i].begin);
    const std::optional<isl::pw_aff> end = scope.affine(indices[i].end);
    TC_CHECK(begin && end, "the range of '{}' is not affine", indices[i].name);
    box = box.intersect(index.ge_set(*begin)).intersect(index.lt_set(*end));
    names.push_back(indices[i].name);
  }
  return name_dimensions(box, names);
}

/// { T[x] : 0 <= x < extents }
isl::set tensor_box(isl::ctx ctx, const ir::Tensor& tensor) {
  AffineScope scope(named_space(ctx, tensor.name, tensor.rank()), {}, {});
  isl::set box = scope.space().universe_set();
  for (int d = 0; d < tensor.rank(); ++d) {
    const isl::pw_aff x = variable(scope.space(), d);
    const std::optional<isl::pw_aff> extent = scope.affine(tensor.extents[d]);
    TC_CHECK(extent, "extent {} of '{}' is not affine", d, tensor.name);
    box = box.intersect(x.ge_set(constant(scope.space(), 0))).intersect(x.lt_set(*extent));
  }
  return box;
}

struct Reference {
  isl::map relation;
  bool exact = true;
};

/// { S[i] -> T[subscripts] } for i in `domain`; a subscript that is not affine spans its dimension.
Reference reference(AffineScope& scope, const ir::Tensor& tensor, const std::vector<Expr>& subscripts,
                    const isl::set& domain) {
  TC_CHECK(static_cast<int>(subscripts.size()) == tensor.rank(), "'{}' has {} dimensions and {} subscripts",
           tensor.name, tensor.rank(), subscripts.size());
  const isl::space space = scope.space().add_named_tuple(tensor.name, tensor.rank());
  if (subscripts.empty()) return {space.universe_map().intersect_domain(domain), true};
  isl::pw_aff_list list(space.ctx(), tensor.rank());
  std::vector<int> free;
  for (int d = 0; d < tensor.rank(); ++d) {
    std::optional<isl::pw_aff> subscript = scope.affine(subscripts[d]);
    if (!subscript) free.push_back(d);
    list = list.add(subscript ? *subscript : isl::pw_aff(constant(scope.space(), 0)));
  }
  isl::map relation = space.multi_pw_aff(list).as_map().intersect_domain(domain);
  for (int d : free) relation = eliminate_output(relation, d);
  if (!free.empty()) relation = relation.intersect_range(tensor_box(space.ctx(), tensor));
  return {relation, free.empty()};
}

/// Collects the tensor reads of a statement's expressions, each within the affine guards it stands under (R6).
class ReadCollector : public hi::IRVisitor {
 public:
  ReadCollector(const ir::Program& program, AffineScope& scope, std::string statement, const isl::set& domain,
                bool exact, std::vector<Access>& accesses)
      : program_(program),
        scope_(scope),
        statement_(std::move(statement)),
        domain_(domain),
        exact_(exact),
        accesses_(accesses) {}

 private:
  using hi::IRVisitor::visit;

  void visit(const hi::Call* op) override {
    if (op->is_intrinsic(hi::Call::if_then_else) && op->args.size() == 3) {
      branch(op->args[0], op->args[1], op->args[2]);
      return;
    }
    hi::IRVisitor::visit(op);
    if (ir::is_tensor_read(program_, op)) add(op);
  }

  void visit(const hi::Select* op) override { branch(op->condition, op->true_value, op->false_value); }

  void visit(const hi::Let* op) override {
    op->value.accept(this);
    scope_.with_let(op->name, op->value, [&] { op->body.accept(this); });
  }

  void branch(const Expr& condition, const Expr& if_true, const Expr& if_false) {
    condition.accept(this);
    const AffineScope::Truth truth = scope_.truth(condition);
    const bool exact = truth.holds.is_disjoint(truth.fails);
    under(truth.holds, exact, if_true);
    under(truth.fails, exact, if_false);
  }

  void under(const isl::set& guard, bool exact, const Expr& expr) {
    const isl::set outer_domain = domain_;
    const bool outer_exact = exact_;
    domain_ = domain_.intersect(guard).coalesce();
    exact_ = exact_ && exact;
    if (!domain_.is_empty()) expr.accept(this);
    domain_ = outer_domain;
    exact_ = outer_exact;
  }

  void add(const hi::Call* op) {
    for (const auto& [call, domain] : seen_) {
      if (domain.get() == domain_.get() && hi::equal(call, Expr(op))) return;
    }
    seen_.emplace_back(Expr(op), domain_);
    const ir::Tensor& tensor = program_.tensor(op->name);
    Reference ref = reference(scope_, tensor, op->args, domain_);
    if (!exact_) ref.relation = ref.relation.intersect_range(tensor_box(scope_.space().ctx(), tensor));
    accesses_.push_back({statement_, op->name, Access::Kind::kRead, ref.relation.coalesce(), ref.exact && exact_});
  }

  const ir::Program& program_;
  AffineScope& scope_;
  std::string statement_;
  isl::set domain_;
  bool exact_;
  std::vector<Access>& accesses_;
  std::vector<std::pair<Expr, isl::set>> seen_;
};

/// Builds a Scop without dependences, statement by statement.
class Builder {
 public:
  Builder(std::shared_ptr<const ir::Program> program, std::shared_ptr<Context> context) {
    scop_.context = std::move(context);
    scop_.program = std::move(program);
  }

  Scop build() {
    for (const ir::Statement& s : scop_.program->statements) {
      if (s.initialises) add_init(s);
      add(s);
    }
    gather();
    scop_.schedule = canonical_schedule(scop_);
    const isl::union_map none = isl::union_map::empty(ctx());
    scop_.dependences = {none, none, none, none, none};
    return std::move(scop_);
  }

 private:
  isl::ctx ctx() const { return scop_.context->get(); }

  void add(const ir::Statement& s) {
    Statement statement = {s.id,
                           {},
                           s.reduces() ? Statement::Kind::kUpdate : Statement::Kind::kSet,
                           s.assign,
                           s.tensor,
                           s.subscripts,
                           s.value,
                           s.accumulator,
                           {},
                           {}};
    set_indices(statement, s.indices);
    AffineScope scope = scope_of(ctx(), s.id, s.indices);
    isl::set domain = box_of(scope, s.indices);
    std::vector<Access> reads;
    bool exact = true;
    if (s.guard.defined()) {
      const AffineScope::Truth truth = scope.truth(s.guard);
      exact = truth.holds.is_disjoint(truth.fails);
      if (!exact) {
        statement.guard = s.guard;
        ReadCollector guard_reads(*scop_.program, scope, s.id, domain, exact, reads);
        s.guard.accept(&guard_reads);
      }
      domain = name_dimensions(domain.intersect(truth.holds).coalesce(), statement.indices);
    }
    ReadCollector collector(*scop_.program, scope, s.id, domain, exact, reads);
    s.value.accept(&collector);
    for (const Expr& subscript : s.subscripts) subscript.accept(&collector);
    finish(std::move(statement), scope, domain, std::move(reads));
  }

  /// The first half of op=!: one instance for each element that the update writes, if that is known, or else one for
  /// each instance of the update. Reduction ranges have no say: an empty sum is zero.
  void add_init(const ir::Statement& s) {
    Statement statement = {s.id + "_init",
                           {},
                           Statement::Kind::kInit,
                           ir::Assign::kSet,
                           s.tensor,
                           s.subscripts,
                           ir::identity_of(s.assign, s.accumulator),
                           s.accumulator,
                           {},
                           {}};
    VariableNames used;
    for (const Expr& subscript : s.subscripts) subscript.accept(&used);
    std::vector<ir::Index> indices;
    for (const ir::Index& index : s.indices) {
      if (used.names.count(index.name)) indices.push_back(index);
    }
    AffineScope scope = scope_of(ctx(), statement.id, indices);
    isl::set domain = box_of(scope, indices);
    const ir::Tensor& tensor = scop_.program->tensor(s.tensor);
    const Reference image = reference(scope, tensor, s.subscripts, domain);
    if (image.exact && !distinct_variables(s.subscripts) && !image.relation.is_injective()) {
      std::vector<ir::Index> elements;
      statement.subscripts.clear();
      for (int d = 0; d < tensor.rank(); ++d) {
        elements.emplace_back();
        elements.back().name = fmt::format("x{}", d);
        elements.back().begin = Halide::Internal::make_zero(ir::index_type());
        elements.back().end = tensor.extents[d];
        statement.subscripts.push_back(hi::Variable::make(ir::index_type(), elements.back().name));
      }
      domain = rename_tuple(image.relation.range().coalesce(), statement.id);
      indices = elements;
      scope = scope_of(ctx(), statement.id, indices);
    }
    set_indices(statement, indices);
    domain = name_dimensions(domain, statement.indices);
    std::vector<Access> reads;
    ReadCollector collector(*scop_.program, scope, statement.id, domain, true, reads);
    for (const Expr& subscript : statement.subscripts) subscript.accept(&collector);
    finish(std::move(statement), scope, domain, std::move(reads));
  }

  static void set_indices(Statement& statement, const std::vector<ir::Index>& indices) {
    for (const ir::Index& index : indices) {
      statement.indices.push_back(index.name);
      statement.is_reduction.push_back(index.is_reduction);
    }
  }

  static bool distinct_variables(const std::vector<Expr>& subscripts) {
    std::set<std::string> names;
    for (const Expr& subscript : subscripts) {
      const auto* variable = subscript.as<hi::Variable>();
      if (!variable || !names.insert(variable->name).second) return false;
    }
    return true;
  }

  void finish(Statement statement, AffineScope& scope, const isl::set& domain, std::vector<Access> reads) {
    const ir::Tensor& tensor = scop_.program->tensor(statement.tensor);
    const Reference written = reference(scope, tensor, statement.subscripts, domain);
    const bool must = written.exact && !statement.guard.defined();
    if (statement.kind == Statement::Kind::kUpdate) {
      reads.push_back({statement.id, statement.tensor, Access::Kind::kAccumulate, written.relation, must});
    }
    reads.push_back({statement.id, statement.tensor, must ? Access::Kind::kWrite : Access::Kind::kMayWrite,
                     written.relation, must});
    if (!domain.is_empty()) {
      domains_.push_back(domain);
      scop_.accesses.insert(scop_.accesses.end(), reads.begin(), reads.end());
    }
    scop_.statements.push_back(std::move(statement));
  }

  void gather() {
    scop_.domain = union_of(ctx(), domains_);
    scop_.reads = scop_.writes = scop_.may_writes = isl::union_map::empty(ctx());
    for (const Access& access : scop_.accesses) {
      isl::union_map& all = access.reads()                        ? scop_.reads
                            : access.kind == Access::Kind::kWrite ? scop_.writes
                                                                  : scop_.may_writes;
      all = all.unite(access.relation.to_union_map());
    }
  }

  Scop scop_;
  std::vector<isl::set> domains_;
};

}  // namespace

isl::schedule canonical_schedule(const Scop& scop) {
  isl::ctx ctx = scop.context->get();
  isl::schedule whole = isl::schedule::from_domain(isl::union_set::empty(ctx));
  bool first = true;
  for (const isl::set& domain : statement_domains(scop)) {
    isl::schedule part = isl::schedule::from_domain(domain.to_union_set());
    std::vector<std::vector<isl::aff>> rows;
    for (unsigned i = 0; i < domain.tuple_dim(); ++i) rows.push_back({variable(domain.space(), i)});
    if (!rows.empty()) part = insert_band(part, band_schedule(ctx, rows));
    whole = first ? part : sequence(whole, part);
    first = false;
  }
  return whole;
}

Result<Scop> from_ir(std::shared_ptr<const ir::Program> program, std::shared_ptr<Context> context) {
  return within_budget(*context, [&] {
    Scop scop = Builder(std::move(program), context).build();
    scop.dependences = compute_dependences(scop);
    return scop;
  });
}

Result<Scop> accesses_from_ir(std::shared_ptr<const ir::Program> program, std::shared_ptr<Context> context) {
  return within_budget(*context, [&] { return Builder(std::move(program), context).build(); });
}

}  // namespace tc::poly
