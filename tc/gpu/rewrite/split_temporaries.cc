#include "tc/gpu/rewrite/split_temporaries.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/names.h"
#include "tc/ir/reads.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr size_t kMostParts = 4;

/// The values of a subscript, and of the dimension that a part has.
struct Interval {
  int64_t begin = 0, end = 0;
  bool contains(const Interval& other) const { return begin <= other.begin && other.end <= end; }
  bool overlaps(const Interval& other) const { return begin < other.end && other.begin < end; }
  int64_t extent() const { return end - begin; }
};

const ir::Index* index_named(const ir::Statement& s, const std::string& name) {
  const auto at = std::find_if(s.indices.begin(), s.indices.end(), [&](const ir::Index& i) { return i.name == name; });
  return at == s.indices.end() ? nullptr : &*at;
}

/// What a subscript of a statement runs through; nothing if it is no linear form of indices.
std::optional<Interval> interval_of(const ir::Statement& s, const Expr& subscript) {
  const std::optional<ir::LinearForm> form = ir::linear_form(hi::simplify(subscript));
  if (!form) return std::nullopt;
  Interval result{form->constant, form->constant + 1};
  for (const auto& [name, coefficient] : form->coefficients) {
    const ir::Index* index = index_named(s, name);
    if (index == nullptr || extent_of(*index) <= 0) return std::nullopt;
    const int64_t first = coefficient * begin_of(*index), last = first + coefficient * (extent_of(*index) - 1);
    result.begin += std::min(first, last);
    result.end += std::max(first, last);
  }
  return result;
}

std::vector<Expr> expressions_of(const ir::Statement& s) {
  std::vector<Expr> result = {s.value};
  result.insert(result.end(), s.subscripts.begin(), s.subscripts.end());
  if (s.guard.defined()) result.push_back(s.guard);
  return result;
}

std::vector<const hi::Call*> reads_of(const ir::Program& program, const ir::Statement& s) {
  std::vector<const hi::Call*> result;
  for (const Expr& e : expressions_of(s)) {
    const auto reads = ir::reads_in(program, e);
    result.insert(result.end(), reads.begin(), reads.end());
  }
  return result;
}

/// Whether the order of two statements matters.
bool depend(const ir::Program& program, const ir::Statement& a, const ir::Statement& b) {
  const auto reads = [&](const ir::Statement& s, const std::string& tensor) {
    const auto all = reads_of(program, s);
    return std::any_of(all.begin(), all.end(), [&](const hi::Call* read) { return read->name == tensor; });
  };
  return a.tensor == b.tensor || reads(a, b.tensor) || reads(b, a.tensor);
}

/// A split of one temporary along one of its dimensions.
class Splitter {
 public:
  Splitter(const ir::Program& program, std::string tensor, size_t dimension)
      : program_(program), tensor_(std::move(tensor)), dimension_(dimension) {}

  std::optional<ir::Program> run() {
    if (!find_parts() || !writers_fit()) return std::nullopt;
    ir::Names names = ir::Names::among_statements(program_);
    ir::Program result = program_;
    std::erase_if(result.tensors, [&](const ir::Tensor& t) { return t.name == tensor_; });
    for (const Interval& part : parts_) {
      ir::Tensor tensor = program_.tensor(tensor_);
      tensor.name = names.fresh(tensor_);
      const auto extent = tensor.extents.begin() + static_cast<long>(dimension_);
      if (part.extent() == 1) {
        tensor.extents.erase(extent);
      } else {
        *extent = index_constant(part.extent());
      }
      names_.push_back(tensor.name);
      result.tensors.push_back(std::move(tensor));
    }
    result.statements.clear();
    const std::vector<ir::Statement>& all = program_.statements;
    for (size_t s = 0; s < all.size();) {
      size_t end = s;
      while (end < all.size() && all[end].tensor == tensor_) ++end;
      if (end == s) {
        result.statements.push_back(with_parts(all[s++]));
        continue;
      }
      for (size_t p = 0; p < parts_.size(); ++p) {
        for (size_t w = s; w < end; ++w) {
          std::optional<ir::Statement> own = writer_of_part(all[w], p);
          if (!own) continue;
          if (!ids_.insert(own->id).second) own->id = names.fresh(own->id);
          result.statements.push_back(*std::move(own));
        }
      }
      s = end;
    }
    return result;
  }

  /// Of the tensors in its place, in order.
  const std::vector<std::string>& names() const { return names_; }

 private:
  /// Of what others than the writers read; ranges that overlap are one.
  bool find_parts() {
    for (const ir::Statement& s : program_.statements) {
      if (s.tensor == tensor_) continue;
      for (const hi::Call* read : reads_of(program_, s)) {
        if (read->name != tensor_) continue;
        std::optional<Interval> range = interval_of(s, read->args[dimension_]);
        if (!range || !whole().contains(*range)) return false;
        for (size_t p = 0; p < parts_.size();) {
          if (!parts_[p].overlaps(*range)) {
            ++p;
            continue;
          }
          range = Interval{std::min(range->begin, parts_[p].begin), std::max(range->end, parts_[p].end)};
          parts_.erase(parts_.begin() + static_cast<long>(p));
          p = 0;
        }
        parts_.push_back(*range);
      }
    }
    std::sort(parts_.begin(), parts_.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    return parts_.size() > 1 && parts_.size() <= kMostParts;
  }

  Interval whole() const { return {0, ir::constant_shape(program_.tensor(tensor_))[dimension_]}; }

  /// Whether each writer goes along the dimension by an index of its own, and reads what it writes alone.
  bool writers_fit() const {
    return std::all_of(program_.statements.begin(), program_.statements.end(), [&](const ir::Statement& s) {
      if (s.tensor != tensor_) return true;
      const std::optional<ir::LinearForm> own = ir::linear_form(s.subscripts[dimension_]);
      if (!own || own->coefficients.size() > 1 || !interval_of(s, s.subscripts[dimension_])) return false;
      for (const auto& [name, coefficient] : own->coefficients) {
        if (coefficient != 1 || index_named(s, name)->is_reduction) return false;
      }
      const auto reads = reads_of(program_, s);
      return std::all_of(reads.begin(), reads.end(), [&](const hi::Call* read) {
        if (read->name != tensor_) return true;
        const std::optional<ir::LinearForm> at = ir::linear_form(hi::simplify(read->args[dimension_]));
        return at && at->constant == own->constant && at->coefficients == own->coefficients;
      });
    });
  }

  /// What a writer does for a part, by an index that begins at 0; nothing if it writes other parts only.
  std::optional<ir::Statement> writer_of_part(const ir::Statement& s, size_t p) const {
    const Interval& part = parts_[p];
    const Interval written = *interval_of(s, s.subscripts[dimension_]);
    if (!part.overlaps(written)) return std::nullopt;
    ir::Statement result = s;
    const ir::LinearForm form = *ir::linear_form(s.subscripts[dimension_]);
    if (!form.coefficients.empty()) {
      const std::string& name = form.coefficients.begin()->first;
      const int64_t begin = std::max(part.begin, written.begin) - form.constant;
      const int64_t extent = std::min(part.end, written.end) - form.constant - begin;
      const Expr at = extent == 1 ? index_constant(begin) : index_variable(name) + index_constant(begin);
      ir::transform_expressions(result, [&](const Expr& e) { return ir::substitute_variables(e, {{name, at}}); });
      const auto index = std::find_if(result.indices.begin(), result.indices.end(),
                                      [&](const ir::Index& i) { return i.name == name; });
      if (extent == 1) {
        result.indices.erase(index);
      } else {
        *index = make_index(name, extent, false);
      }
    }
    result.value = simplify_indices(result.value, result.indices);
    for (Expr& subscript : result.subscripts) subscript = simplify_indices(subscript, result.indices);
    result.tensor = names_[p];
    result.subscripts = subscripts_in(p, std::move(result.subscripts));
    return with_parts(std::move(result));
  }

  std::vector<Expr> subscripts_in(size_t p, std::vector<Expr> subscripts) const {
    const auto at = subscripts.begin() + static_cast<long>(dimension_);
    if (parts_[p].extent() == 1) {
      subscripts.erase(at);
    } else {
      *at = hi::simplify(*at - index_constant(parts_[p].begin));
    }
    return subscripts;
  }

  /// Reads of the temporary are of its parts.
  ir::Statement with_parts(ir::Statement s) const {
    struct Replacer : hi::IRMutator {
      Replacer(const Splitter& splitter, const ir::Statement& statement) : splitter(splitter), statement(statement) {}
      const Splitter& splitter;
      const ir::Statement& statement;
      using hi::IRMutator::visit;
      Expr visit(const hi::Call* op) override {
        const Expr changed = IRMutator::visit(op);
        const auto* call = changed.as<hi::Call>();
        if (op->name != splitter.tensor_ || call == nullptr) return changed;
        const size_t p = splitter.part_of(*interval_of(statement, call->args[splitter.dimension_]));
        return hi::Call::make(op->type, splitter.names_[p], splitter.subscripts_in(p, call->args), op->call_type);
      }
    } replacer(*this, s);
    std::vector<Expr> before = expressions_of(s);
    ir::Statement result = s;
    result.value = replacer.mutate(s.value);
    for (Expr& subscript : result.subscripts) subscript = replacer.mutate(subscript);
    if (s.guard.defined()) result.guard = replacer.mutate(s.guard);
    const std::vector<Expr> after = expressions_of(result);
    if (!std::equal(before.begin(), before.end(), after.begin(),
                    [](const Expr& a, const Expr& b) { return a.same_as(b); })) {
      result.accesses.clear();
    }
    return result;
  }

  size_t part_of(const Interval& range) const {
    const auto part = std::find_if(parts_.begin(), parts_.end(), [&](const Interval& p) { return p.contains(range); });
    return static_cast<size_t>(part - parts_.begin());
  }

  const ir::Program& program_;
  const std::string tensor_;
  const size_t dimension_;
  std::vector<Interval> parts_;     ///< in order
  std::vector<std::string> names_;  ///< of the tensors, per part
  std::set<std::string> ids_;       ///< of the writers
};

/// Whether a statement reads a tensor.
bool reads_tensor(const ir::Program& program, const ir::Statement& s, const std::string& tensor) {
  const auto all = reads_of(program, s);
  return std::any_of(all.begin(), all.end(), [&](const hi::Call* read) { return read->name == tensor; });
}

/// A temporary in parts, with the temporaries that its writers read part by part.
class ChainSplitter {
 public:
  explicit ChainSplitter(ir::Program program) : program_(std::move(program)) {}

  /// Splits a temporary, and what its parts are made of. Returns whether it could.
  bool split(const std::string& tensor) {
    for (size_t d = 0; d < program_.tensor(tensor).extents.size(); ++d) {
      Splitter splitter(program_, tensor, d);
      std::optional<ir::Program> parts = splitter.run();
      if (!parts) continue;
      const std::set<std::string> sources = sources_of(tensor);
      program_ = *std::move(parts);
      split_.push_back(tensor);
      const bool is_first = part_.empty();
      if (is_first) parts_ = splitter.names();
      for (size_t p = 0; p < splitter.names().size(); ++p) {
        const std::string& name = splitter.names()[p];
        const std::optional<size_t> part = is_first ? std::optional(p) : part_of_readers(name);
        if (part) part_[name] = *part;
      }
      for (const std::string& source : sources) split(source);
      return true;
    }
    return false;
  }

  /// The temporaries that are no more.
  const std::vector<std::string>& temporaries() const { return split_; }

  /// Those of the first one.
  const std::vector<std::string>& parts() const { return parts_; }

  /// The program with what belongs to one part together, as far as dependences allow.
  ir::Program in_order_of_parts() const {
    const std::vector<ir::Statement>& all = program_.statements;
    const std::vector<std::optional<size_t>> parts = parts_of_statements();
    ir::Program result = program_;
    result.statements.clear();
    std::vector<bool> done(all.size(), false);
    const auto is_ready = [&](size_t s) {
      for (size_t before = 0; before < s; ++before) {
        if (!done[before] && depend(program_, all[before], all[s])) return false;
      }
      return !done[s];
    };
    std::optional<size_t> part;
    while (result.statements.size() < all.size()) {
      std::optional<size_t> next;
      for (size_t s = 0; s < all.size() && part && !next; ++s) {
        if (parts[s] == part && is_ready(s)) next = s;
      }
      for (size_t s = 0; s < all.size() && !next; ++s) {
        if (is_ready(s)) next = s;
      }
      done[*next] = true;
      part = parts[*next];
      result.statements.push_back(all[*next]);
    }
    return result;
  }

 private:
  /// The temporaries that writers of a temporary read.
  std::set<std::string> sources_of(const std::string& tensor) const {
    std::set<std::string> result;
    for (const ir::Statement& s : program_.statements) {
      if (s.tensor != tensor) continue;
      for (const hi::Call* read : reads_of(program_, s)) {
        if (read->name != tensor && program_.tensor(read->name).role == ir::Role::kTemporary) result.insert(read->name);
      }
    }
    return result;
  }

  /// The part that all readers of a tensor belong to.
  std::optional<size_t> part_of_readers(const std::string& tensor) const {
    std::set<size_t> parts;
    for (const ir::Statement& s : program_.statements) {
      if (!reads_tensor(program_, s, tensor)) continue;
      const auto part = part_.find(s.tensor);
      if (part == part_.end()) return std::nullopt;
      parts.insert(part->second);
    }
    return parts.size() == 1 ? std::optional(*parts.begin()) : std::nullopt;
  }

  /// Of each statement that has to do with one part alone.
  std::vector<std::optional<size_t>> parts_of_statements() const {
    std::map<std::string, std::optional<size_t>> made(part_.begin(), part_.end());
    std::vector<std::optional<size_t>> result;
    for (const ir::Statement& s : program_.statements) {
      std::set<std::optional<size_t>> parts;
      for (const auto& [tensor, part] : made) {
        if (s.tensor == tensor || reads_tensor(program_, s, tensor)) parts.insert(part);
      }
      result.push_back(parts.size() == 1 ? *parts.begin() : std::nullopt);
      if (!parts.empty()) made[s.tensor] = result.back();
    }
    return result;
  }

  ir::Program program_;
  std::map<std::string, size_t> part_;  ///< of the tensors that are parts
  std::vector<std::string> split_, parts_;
};

}  // namespace

std::optional<SplitTemporary> split_temporary(const ir::Program& program, const std::string& tensor) {
  ChainSplitter splitter(program);
  if (program.tensor(tensor).role != ir::Role::kTemporary || !splitter.split(tensor)) return std::nullopt;
  return SplitTemporary{splitter.in_order_of_parts(), splitter.temporaries(), splitter.parts()};
}

}  // namespace tc::gpu
