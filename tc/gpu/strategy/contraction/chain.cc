#include "tc/gpu/strategy/contraction/chain.h"

#include <algorithm>
#include <set>

#include "tc/gpu/strategy/contraction/affine_subscript.h"
#include "tc/gpu/strategy/contraction/stored.h"
#include "tc/support/check.h"
#include "tc/support/round.h"
#include "tc/tile/program.h"

namespace tc::gpu {
namespace {

constexpr int64_t kVectorBytes = 16;

std::set<std::string> ids_of(const poly::Scop& scop, const Contraction& c) {
  std::set<std::string> ids;
  for (size_t s = c.first; s < c.last; ++s) ids.insert(scop.statements[s].id);
  return ids;
}

/// Tensors that a contraction's statements touch, and those of them that they write.
struct Touched {
  std::set<std::string> all, written;
};

Touched touched_by(const poly::Scop& scop, const Contraction& c, const std::string& except = "") {
  const std::set<std::string> ids = ids_of(scop, c);
  Touched result;
  for (const poly::Access& access : scop.accesses) {
    if (ids.count(access.statement) == 0 || access.statement == except) continue;
    result.all.insert(access.tensor);
    if (access.writes()) result.written.insert(access.tensor);
  }
  return result;
}

/// The subscripts of what a contraction writes of a tensor, over its parallel axes; null: it writes nothing.
const std::vector<Halide::Expr>* element_of(const Contraction& c, const std::string& tensor) {
  const std::vector<Halide::Expr>* result = c.update.tensor == tensor ? &c.update.subscripts : nullptr;
  for (const poly::Statement& s : c.after) {
    if (s.tensor == tensor) result = &s.subscripts;
  }
  return result;
}

std::vector<std::string> names_of(const std::vector<Axis>& axes) {
  std::vector<std::string> names;
  for (const Axis& axis : axes) names.push_back(axis.name);
  return names;
}

/// The one axis that a subscript is, but for a constant.
std::optional<ChainLink::Dimension> read_by(const Subscript& s) {
  std::optional<ChainLink::Dimension> result;
  const auto add = [&](const std::vector<int64_t>& factors, bool is_row) {
    for (size_t i = 0; i < factors.size(); ++i) {
      if (factors[i] == 0) continue;
      if (factors[i] != 1 || result) return false;
      result = ChainLink::Dimension{0, is_row, i};
    }
    return true;
  };
  return add(s.parallel, true) && add(s.reduction, false) ? result : std::nullopt;
}

/// Whether a contraction is one that chains take: a sum by itself, of what is in memory.
bool may_chain(const Contraction& c) {
  return c.update.assign == ir::Assign::kAdd && c.operands.size() == 2 && c.further.empty() && c.pooled.empty() &&
         c.reductions.empty() && !c.selection &&
         std::none_of(c.operands.begin(), c.operands.end(), [](const Operand& o) { return o.is_tf32; });
}

std::optional<ChainLink> link_of(const Contraction& first, const Contraction& second, size_t operand) {
  const Operand& o = second.operands[operand];
  if (o.chosen_row || o.computed || !o.inside.empty()) return std::nullopt;
  const std::vector<Halide::Expr>* element = element_of(first, o.tensor);
  if (!element || element->size() != first.parallel.size()) return std::nullopt;
  ChainLink link{o.tensor, operand, {}};
  std::set<size_t> makers;
  std::set<std::pair<bool, size_t>> readers;
  bool any_row = false, any_column = false;
  for (size_t d = 0; d < element->size(); ++d) {
    const std::optional<ShiftedIndex> made = shifted((*element)[d], names_of(first.parallel));
    std::optional<ChainLink::Dimension> dimension = read_by(o.subscripts[d]);
    if (!made || !dimension) return std::nullopt;
    dimension->made_by = made->index;
    const Axis& maker = first.parallel[made->index];
    const Axis& reader = dimension->is_row ? second.parallel[dimension->read_by] : second.reduction[dimension->read_by];
    if (maker.begin + made->constant != reader.begin + o.subscripts[d].constant || maker.extent != reader.extent) {
      return std::nullopt;
    }
    if (!makers.insert(dimension->made_by).second) return std::nullopt;
    if (!readers.insert({dimension->is_row, dimension->read_by}).second) return std::nullopt;
    (dimension->is_row ? any_row : any_column) = true;
    link.dimensions.push_back(*dimension);
  }
  const bool has_columns = link.rows_of_second().size() < second.parallel.size();
  return any_row && any_column && has_columns ? std::optional(std::move(link)) : std::nullopt;
}

}  // namespace

std::vector<size_t> ChainLink::rows_of_first() const {
  std::vector<size_t> rows;
  for (const Dimension& d : dimensions) {
    if (d.is_row) rows.push_back(d.made_by);
  }
  return rows;
}

std::vector<size_t> ChainLink::rows_of_second() const {
  std::vector<size_t> rows;
  for (const Dimension& d : dimensions) {
    if (d.is_row) rows.push_back(d.read_by);
  }
  return rows;
}

bool is_read_beyond(const poly::Scop& scop, const Contraction& c, const std::string& tensor,
                    const std::string& reader) {
  const std::set<std::string> own = ids_of(scop, c);
  return std::any_of(scop.accesses.begin(), scop.accesses.end(), [&](const poly::Access& access) {
    return access.tensor == tensor && access.reads() && access.statement != reader && own.count(access.statement) == 0;
  });
}

std::optional<ChainLink> link_between(const poly::Scop& scop, const Contraction& first, const Contraction& second,
                                      const std::set<std::string>& of_rows) {
  if (first.last != second.first || !may_chain(first) || !may_chain(second)) return std::nullopt;
  const Touched before = touched_by(scop, first);
  for (size_t operand = 0; operand < second.operands.size(); ++operand) {
    std::optional<ChainLink> link = link_of(first, second, operand);
    if (!link || second.operands[1 - operand].tensor == link->tensor) continue;
    // The update reads the one operand in shared memory; whatever else the first writes the second leaves alone.
    const Touched others = touched_by(scop, second, second.update.id), all = touched_by(scop, second);
    if (others.all.count(link->tensor) > 0 || all.written.count(link->tensor) > 0) return std::nullopt;
    for (const std::string& tensor : before.written) {
      const bool may_be_read = tensor == link->tensor || of_rows.count(tensor) > 0;
      if (!may_be_read && all.all.count(tensor) > 0) return std::nullopt;
    }
    for (const std::string& tensor : all.written) {
      if (before.all.count(tensor) > 0) return std::nullopt;
    }
    return link;
  }
  return std::nullopt;
}

bool are_independent(const poly::Scop& scop, const Contraction& first, const Contraction& second) {
  const Touched before = touched_by(scop, first), after = touched_by(scop, second);
  const auto disturbs = [&](const Contraction& c, const Touched& own, const Touched& other) {
    return std::any_of(own.written.begin(), own.written.end(), [&](const std::string& tensor) {
      return other.all.count(tensor) > 0 && is_seen(scop, c, tensor, "");
    });
  };
  return !disturbs(first, before, after) && !disturbs(second, after, before);
}

bool go_together(const ChainLink& to, const ChainLink& from) {
  std::vector<size_t> in = to.rows_of_second(), out = from.rows_of_first();
  std::sort(in.begin(), in.end());
  std::sort(out.begin(), out.end());
  return in == out;
}

int64_t ChainBuffers::Rows::pitch() const {
  const int64_t whole = kVectorBytes / type.bytes(), result = round_up(columns, whole);
  return result / whole % 2 == 0 ? result + whole : result;  // an odd number of vectors
}

int64_t ChainBuffers::Rows::bytes() const { return ((rows - 1) * pitch() + columns) * type.bytes(); }

namespace {

/// Whether two operands' boxes lie alike in shared memory.
bool are_alike(const Operand& a, const OperandPlan& x, const Operand& b, const OperandPlan& y) {
  return a.type == b.type && x.box == y.box && x.strides == y.strides && x.innermost == y.innermost &&
         x.merged == y.merged && x.dealt == y.dealt && x.dealt_by == y.dealt_by && x.dealt_stride == y.dealt_stride &&
         x.stage == y.stage;
}

}  // namespace

ChainBuffers buffers_of(const std::vector<const Contraction*>& products, const std::vector<const ChainLink*>& links,
                        const std::vector<const ContractionPlan*>& plans, const std::vector<int64_t>& stages) {
  ChainBuffers result;
  int64_t end = 0;  // of what is allocated so far
  const auto allocate = [&](int64_t bytes) { end = round_up(end, tile::kSharedAlignment) + bytes; };
  std::vector<size_t> parity;
  for (size_t l = 0; l < links.size(); ++l) {
    const ChainLink& link = *links[l];
    ChainBuffers::Rows rows{products[l + 1]->operands[link.operand].type};
    KeptTensor tensor{0, std::vector<int64_t>(link.dimensions.size())};
    for (size_t d = link.dimensions.size(); d-- > 0;) {
      int64_t& all = link.dimensions[d].is_row ? rows.rows : rows.columns;
      tensor.strides[d] = all;
      all *= plans[l]->parallel[link.dimensions[d].made_by].tile;
    }
    for (; tensor.buffer < result.kept.size(); ++tensor.buffer) {
      ChainBuffers::Rows& kept = result.kept[tensor.buffer];
      if (parity[tensor.buffer] != l % 2 || kept.type != rows.type || kept.rows != rows.rows) continue;
      kept.columns = std::max(kept.columns, rows.columns);
      break;
    }
    if (tensor.buffer == result.kept.size()) {
      result.kept.push_back(rows);
      parity.push_back(l % 2);
    }
    result.tensors.push_back(std::move(tensor));
  }
  for (const ChainBuffers::Rows& rows : result.kept) allocate(rows.bytes());
  std::vector<std::pair<size_t, size_t>> owners;  // product and operand of each buffer for copies
  for (size_t p = 0; p < plans.size(); ++p) {
    result.of.emplace_back();
    for (size_t i = 0; i < plans[p]->operands.size(); ++i) {
      const Operand& operand = products[p]->operands[i];
      const OperandPlan& o = plans[p]->operands[i];
      if (o.kept) {
        result.of[p].push_back(-1);
        continue;
      }
      const auto is_taken = [&](size_t buffer) {
        return std::count(result.of[p].begin(), result.of[p].end(), static_cast<int>(buffer)) > 0;
      };
      size_t buffer = 0;
      for (; buffer < owners.size(); ++buffer) {
        const auto& [q, j] = owners[buffer];
        if (!is_taken(buffer) && stages[q] == stages[p] &&
            are_alike(products[q]->operands[j], plans[q]->operands[j], operand, o)) {
          break;
        }
      }
      result.of[p].push_back(static_cast<int>(buffer));
      if (buffer < owners.size()) continue;
      owners.emplace_back(p, i);
      allocate((o.stage * (stages[p] - 1) + o.last_stage) * operand.type.bytes());
    }
  }
  result.copies = owners.size();
  result.bytes = end;
  return result;
}

}  // namespace tc::gpu
