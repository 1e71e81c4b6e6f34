#include "tc/gpu/strategy/scatter/atomic_sums.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "tc/gpu/lower/body.h"
#include "tc/gpu/lower/declare_tensors.h"
#include "tc/gpu/lower/element_moves.h"
#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/layouts.h"
#include "tc/ir/specialise.h"
#include "tc/poly/band_ref.h"
#include "tc/tile/accesses.h"

namespace tc::gpu {

using Halide::Expr;
using tile::NodePtr;
namespace hi = Halide::Internal;

namespace {

using Ids = std::vector<std::string>;

bool contains(const Ids& ids, const std::string& id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

Ids statements_of(const Kernel& kernel) { return poly::statements_at(kernel.scop, kernel.scop.schedule.root()); }

/// An index plus a constant, or a constant alone (the index is -1).
struct Shifted {
  int index = -1;
  int64_t offset = 0;
};

std::optional<Shifted> shifted(const Expr& subscript, const std::vector<ir::Index>& indices) {
  if (const int64_t* constant = ir::constant_int(subscript)) return Shifted{-1, *constant};
  for (size_t i = 0; i < indices.size(); ++i) {
    const Expr rest = hi::simplify(subscript - index_variable(indices[i].name));
    if (const int64_t* constant = ir::constant_int(rest)) return Shifted{static_cast<int>(i), *constant};
  }
  return std::nullopt;
}

/// What a tensor's elements are as subscripts over a statement's indices, where each index is one of them and the
/// statement goes through the whole tensor: per index the dimension and the offset.
std::optional<std::vector<Shifted>> dimensions_of(const ir::Program& program, const ir::Statement& statement,
                                                  const hi::Call* read) {
  const ir::Shape shape = ir::constant_shape(program.tensor(read->name));
  std::vector<Shifted> dimensions(statement.indices.size());
  for (size_t d = 0; d < read->args.size(); ++d) {
    const std::optional<Shifted> at = shifted(read->args[d], statement.indices);
    if (!at || at->index < 0) return std::nullopt;
    const auto i = static_cast<size_t>(at->index);
    const ir::Index& index = statement.indices[i];
    if (dimensions[i].index >= 0 || begin_of(index) + at->offset != 0 || extent_of(index) != shape[d]) {
      return std::nullopt;
    }
    dimensions[i] = {static_cast<int>(d), at->offset};
  }
  const bool all = std::all_of(dimensions.begin(), dimensions.end(), [](const Shifted& s) { return s.index >= 0; });
  return all ? std::optional(dimensions) : std::nullopt;
}

/// The sum that a statement is, if it reads nothing but partial results, each once.
std::optional<PartialSum> partial_sum(const ir::Program& program, const ir::Statement& statement) {
  const auto* read = statement.value.as<hi::Call>();
  if (!statement.reduces() || statement.guard.defined() || !read || read->call_type != hi::Call::PureExtern) {
    return std::nullopt;
  }
  const auto partial = std::find_if(program.tensors.begin(), program.tensors.end(),
                                    [&](const ir::Tensor& t) { return t.name == read->name; });
  const ir::Tensor& result = program.tensor(statement.tensor);
  const std::optional<tile::Atomic::Op> op = atomic_of(statement.assign);
  if (partial == program.tensors.end() || partial->role != ir::Role::kTemporary || !op) return std::nullopt;
  if (partial->type != statement.accumulator || result.type != partial->type || result.type.bits() < 32) {
    return std::nullopt;
  }
  const std::optional<std::vector<Shifted>> dimensions = dimensions_of(program, statement, read);
  if (!dimensions) return std::nullopt;
  PartialSum sum{partial->name, result.name, statement.id, *op, {}};
  for (const Expr& subscript : statement.subscripts) {
    const std::optional<Shifted> at = shifted(subscript, statement.indices);
    if (!at || std::abs(at->offset) > std::numeric_limits<int32_t>::max() / 2) return std::nullopt;
    const Shifted of = at->index < 0 ? Shifted() : (*dimensions)[static_cast<size_t>(at->index)];
    sum.subscripts.push_back({of.index, at->offset - of.offset});
  }
  return sum;
}

/// Tensors that some statements read and write.
struct Touched {
  std::set<std::string> read, written;

  void add(const poly::Scop& scop, const Ids& statements) {
    for (const poly::Access& access : scop.accesses) {
      if (contains(statements, access.statement)) (access.reads() ? read : written).insert(access.tensor);
    }
  }
};

/// How often a thread stores an element of a tensor, at most, on a way through a kernel's text; loops count once if the
/// elements differ from iteration to iteration.
class Stores {
 public:
  explicit Stores(const std::string& tensor) : tensor_(tensor) {}

  int most(const NodePtr& node) {
    if (!node) return 0;
    int result = 0;
    const auto add = [&](const NodePtr& child) { result += most(child); };
    tile::match(
        *node,
        [&](const tile::OneOf<tile::Sequence, tile::Allocate, tile::Ring> auto&) { tile::for_each_child(*node, add); },
        [&](const tile::If& n) {
          result = most(n.then_case);
          result = std::max(result, most(n.else_case));
        },
        [&](const tile::Let& n) {
          lets_[n.name] = hi::substitute(lets_, n.value);
          add(n.body);
        },
        [&](const tile::For& n) {
          loops_.push_back(n.variable);
          add(n.body);
          loops_.pop_back();
        },
        [](const tile::Synchronisation auto&) {},
        [&](const tile::Spec auto&) {
          tile::for_each_access(*node, [&](const tile::NodeAccess& access) {
            if (access.is_write && access.tensor == tensor_) result += of(access.subscripts);
          });
        });
    return result;
  }

 private:
  static constexpr int kMany = 2;

  int of(const std::vector<Expr>& subscripts) const {
    const bool differ = std::all_of(loops_.begin(), loops_.end(), [&](const std::string& loop) {
      return std::any_of(subscripts.begin(), subscripts.end(), [&](const Expr& subscript) {
        return hi::expr_uses_var(hi::substitute(lets_, subscript), loop);
      });
    });
    return differ ? 1 : kMany;
  }

  const std::string& tensor_;
  std::map<std::string, Expr> lets_;
  std::vector<std::string> loops_;
};

/// Whether a tensor is read in a kernel's text.
bool is_read(const tile::Kernel& code, const std::string& tensor) {
  const tile::Flow flow = tile::flow_of(code);
  return std::any_of(flow.leaves.begin(), flow.leaves.end(), [&](const tile::Leaf& leaf) {
    return std::any_of(leaf.accesses.begin(), leaf.accesses.end(), [&](const tile::ElementAccess& access) {
      return access.tensor->name == tensor && (!access.is_write || access.atomic);
    });
  });
}

/// Whether a recipe's launch stores each element of a tensor once, from registers: what threads store is not the same,
/// or they would race.
bool stores_once(const Kernel& kernel, const tile::Kernel& code, const std::string& tensor) {
  const bool by_recipe =
      kernel.recipe == Recipe::kContraction || kernel.recipe == Recipe::kRows || kernel.recipe == Recipe::kElements;
  return by_recipe && !is_read(code, tensor) && Stores(tensor).most(code.body) == 1;
}

/// The one launch but `last` that touches a tensor.
std::optional<size_t> maker_of(const poly::Scop& scop, const std::vector<Kernel>& kernels, size_t last,
                               const std::string& tensor) {
  std::optional<size_t> maker;
  for (size_t k = 0; k < kernels.size(); ++k) {
    Touched touched;
    touched.add(scop, statements_of(kernels[k]));
    if (k == last || touched.read.count(tensor) + touched.written.count(tensor) == 0) continue;
    if (maker) return std::nullopt;
    maker = k;
  }
  return maker;
}

/// Whether another of the statements reads a tensor than one.
bool is_read_beside(const poly::Scop& scop, const Ids& statements, const std::string& one, const std::string& tensor) {
  return std::any_of(scop.accesses.begin(), scop.accesses.end(), [&](const poly::Access& access) {
    return access.reads() && access.tensor == tensor && access.statement != one &&
           contains(statements, access.statement);
  });
}

/// Whether some tensor that is written here is touched there, or the other way round.
bool conflict(const Touched& a, const Touched& b) {
  const auto any = [](const std::set<std::string>& tensors, const std::set<std::string>& others) {
    return std::any_of(tensors.begin(), tensors.end(), [&](const std::string& t) { return others.count(t) > 0; });
  };
  return any(a.written, b.written) || any(a.written, b.read) || any(a.read, b.written);
}

/// Deals the last launch's other statements, in program order, out to `before` and `after`; false if a sum would have
/// to wait for one of the latter.
bool deal_out(const poly::Scop& scop, const Ids& statements, AtomicSums& sums) {
  Touched later;  // sums so far, and what comes after one
  for (const poly::Statement& statement : scop.statements) {
    if (!contains(statements, statement.id)) continue;
    Touched own;
    own.add(scop, {statement.id});
    const bool is_sum = std::any_of(sums.sums.begin(), sums.sums.end(),
                                    [&](const PartialSum& sum) { return sum.together == statement.id; });
    const bool waits = conflict(own, later);
    if (is_sum && waits) return false;
    if (!is_sum) (waits ? sums.after : sums.before).push_back(statement.id);
    if (is_sum || waits) later.add(scop, {statement.id});
  }
  return true;
}

/// Whether what prepares the results, and the sums but for their partial results, may go before launch `sums.parts`.
bool may_go_first(const poly::Scop& scop, const std::vector<Kernel>& kernels, const AtomicSums& sums) {
  Touched passed, moved;
  for (size_t k = sums.parts; k < sums.last; ++k) passed.add(scop, statements_of(kernels[k]));
  moved.add(scop, sums.before);
  for (const PartialSum& sum : sums.sums) {
    moved.written.insert(sum.result);
    passed.written.erase(sum.partial);
  }
  return !conflict(moved, passed);
}

/// Rewrites the stores of partial results.
class Updates {
 public:
  Updates(const AtomicSums& sums, const ir::Program& program) : sums_(sums), program_(program) {}

  NodePtr run(const NodePtr& node) const {
    if (!node) return node;
    return tile::match(
        *node, [&](const tile::OneOf<tile::Store, tile::Move> auto& n) { return changed(n, node); },
        [&](const tile::Structure auto&) {
          return tile::map_children(node, [&](const NodePtr& child) { return run(child); });
        },
        [&](const tile::Synchronisation auto&) { return node; },
        [&](const tile::OneOf<tile::Atomic, tile::Shuffle, tile::MatMul, tile::MatrixLoad, tile::MatrixStore,
                              tile::BoxCopy, tile::BoxStore, tile::ClusterLoad, tile::WarpgroupMatMul> auto&) {
          return node;
        });
  }

 private:
  const PartialSum* find(const std::string& tensor) const {
    for (const PartialSum& sum : sums_.sums) {
      if (sum.partial == tensor) return &sum;
    }
    return nullptr;
  }

  static std::vector<Expr> moved(const PartialSum& sum, const std::vector<Expr>& at) {
    std::vector<Expr> subscripts;
    for (const PartialSum::Subscript& s : sum.subscripts) {
      const Expr from = s.dimension < 0 ? Expr(0) : at[static_cast<size_t>(s.dimension)];
      subscripts.push_back(hi::simplify(from + hi::make_const(from.type(), s.offset)));
    }
    return subscripts;
  }

  NodePtr changed(const tile::Store& s, const NodePtr& node) const {
    const PartialSum* sum = find(s.tensor);
    return sum ? make_node(tile::Atomic{sum->result, moved(*sum, s.subscripts), sum->op, s.value}) : node;
  }
  NodePtr changed(const tile::Move& s, const NodePtr& node) const {
    const PartialSum* sum = find(s.destination);
    if (!sum) return node;
    const ir::Tensor& result = program_.tensor(sum->result);
    const int64_t bytes = tile::element_bytes(result.type);
    const auto along = std::find_if(sum->subscripts.begin(), sum->subscripts.end(), [&](const auto& subscript) {
      return subscript.dimension == s.destination_dimension;
    });
    const bool of_one_result = along == sum->subscripts.end();  // the vector runs along the parts
    if (of_one_result && s.elements > 1) return run(by_elements(s, bytes));
    tile::Move copy = s;
    copy.destination = sum->result;
    copy.destination_subscripts = moved(*sum, s.destination_subscripts);
    copy.update = sum->op;
    copy.destination_dimension = of_one_result ? 0 : static_cast<int>(along - sum->subscripts.begin());
    if (s.elements == 1) return make_node(std::move(copy));
    // Vectors of the result are aligned where those of the partial results are.
    const bool aligned = along + 1 == sum->subscripts.end() && along->offset % s.elements == 0 &&
                         ir::constant_shape(result).back() % s.elements == 0 && ir::pitch_of(result) % s.elements == 0;
    return aligned ? make_node(std::move(copy)) : by_elements(copy, bytes);
  }

  const AtomicSums& sums_;
  const ir::Program& program_;
};

}  // namespace

std::optional<tile::Atomic::Op> atomic_of(ir::Assign assign) {
  switch (assign) {
    case ir::Assign::kAdd:
      return tile::Atomic::Op::kAdd;
    case ir::Assign::kMin:
      return tile::Atomic::Op::kMin;
    case ir::Assign::kMax:
      return tile::Atomic::Op::kMax;
    default:
      return std::nullopt;
  }
}

std::optional<AtomicSums> find_atomic_sums(const poly::Scop& scop, const std::vector<Kernel>& kernels,
                                           const std::vector<tile::Kernel>& codes, size_t last) {
  const ir::Program& program = *scop.program;
  AtomicSums found;
  found.last = last;
  std::optional<size_t> parts;
  for (const std::string& id : statements_of(kernels[last])) {
    const auto statement = std::find_if(program.statements.begin(), program.statements.end(),
                                        [&](const ir::Statement& s) { return s.id == id; });
    const std::optional<PartialSum> sum =
        statement == program.statements.end() ? std::nullopt : partial_sum(program, *statement);
    const std::optional<size_t> maker = sum ? maker_of(scop, kernels, last, sum->partial) : std::nullopt;
    if (!maker || *maker >= last || *maker != parts.value_or(*maker)) continue;
    if (!stores_once(kernels[*maker], codes[*maker], sum->partial)) continue;
    if (is_read_beside(scop, statements_of(kernels[last]), id, sum->partial)) continue;
    parts = maker;
    found.sums.push_back(*sum);
  }
  if (!parts) return std::nullopt;
  found.parts = *parts;
  const bool fits = deal_out(scop, statements_of(kernels[last]), found) && may_go_first(scop, kernels, found);
  return fits ? std::optional(std::move(found)) : std::nullopt;
}

bool is_exact(const AtomicSums& sums, const ir::Program& program) {
  return std::all_of(sums.sums.begin(), sums.sums.end(), [&](const PartialSum& sum) {
    return sum.op != tile::Atomic::Op::kAdd || !program.tensor(sum.result).type.is_float();
  });
}

tile::Kernel with_updates(tile::Kernel code, const AtomicSums& sums, const ir::Program& program) {
  code.body = Updates(sums, program).run(code.body);
  const std::vector<tile::Tensor> before = std::exchange(code.tensors, {});
  code.scalars.clear();
  declare_tensors(code, program);
  for (tile::Tensor& tensor : code.tensors) {
    const auto same = std::find_if(before.begin(), before.end(), [&](const auto& t) { return t.name == tensor.name; });
    if (same != before.end()) tensor.layout = same->layout;  // dimensions that are read as one run are one
  }
  return code;
}

}  // namespace tc::gpu
