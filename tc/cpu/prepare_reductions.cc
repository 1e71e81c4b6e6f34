#include <algorithm>
#include <cmath>
#include <optional>

#include "tc/cpu/access_steps.h"
#include "tc/cpu/prepare.h"
#include "tc/cpu/program_edit.h"

namespace tc::cpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// Instances from which a reduction that has too few results to share among threads is cut into parts.
constexpr int64_t kPartInstances = 1 << 17;
constexpr int64_t kParts = 16;
/// Instances of a part for each partial result that is combined afterwards; of a contraction, which computes fast.
constexpr int64_t kPartGain = 8;
constexpr int64_t kContractionGain = 64;
/// Results that one thread takes together, in vectors along a row, and in rows where these share what is loaded.
constexpr int64_t kTileVectors = 4;
constexpr int64_t kTileRows = 24;
/// The longest part of a contraction, so that its operands stay in the cache.
constexpr int64_t kContractionLength = 2048;
/// Vectors of partial results side by side: enough to hide the latency of an addition.
constexpr int64_t kVectors = 4;

/// How a reduction is split: an index that is cut is begin + (part * steps + step) * lanes + lane, where one that is
/// not cut into parts has no `part`, and one without lanes no `lane`.
struct Split {
  std::optional<size_t> vector;  ///< the number of the index cut into lanes
  int64_t lanes = 1;
  std::optional<size_t> part;  ///< the number of the index cut into parts
  int64_t parts = 1;

  int64_t lanes_of(size_t index) const { return vector == index ? lanes : 1; }
  int64_t parts_of(size_t index) const { return part == index ? parts : 1; }
};

class Splitter {
 public:
  Splitter(const ir::Program& program, const PrepareOptions& options, const ir::Statement& statement)
      : program_(program),
        options_(options),
        statement_(statement),
        references_(references(program, statement.tensor, statement.subscripts, statement.value, statement.guard)) {}

  std::optional<Split> find() const {
    if (!statement_.reduces() || statement_.guard.defined() || statement_.value.type().is_bool()) return std::nullopt;
    if (!has_plain_subscripts(statement_)) return std::nullopt;
    for (const Reference& reference : references_) {
      // What is checked at run time is reported by the statement of the source.
      if (std::find(reference.forms.begin(), reference.forms.end(), std::nullopt) != reference.forms.end()) {
        return std::nullopt;
      }
    }
    Split split;
    if (!writes_vectors()) find_lanes(split);
    if (options_.threads > 1) find_parts(split);
    if (!split.vector && !split.part) return std::nullopt;
    return split;
  }

 private:
  int64_t native_lanes() const {
    if (options_.vector_width > 0) return options_.vector_width;
    int bytes = statement_.accumulator.bytes();
    for (const Reference& r : references_) bytes = std::max(bytes, program_.tensor(r.tensor).type.bytes());
    return std::max(2, options_.vector_bits / (8 * bytes));
  }

  /// True if vectors along the index read and write consecutive elements, or one for all lanes.
  bool fits(const ir::Index& index, bool writes) const {
    bool runs = false;
    for (const Reference& reference : references_) {
      if (reference.is_write && !writes) continue;
      auto step = memory_step(program_, options_.layouts, reference, index.name);
      if (!step || (*step != 1 && (*step != 0 || reference.is_write))) return false;
      runs = runs || *step == 1;
    }
    return runs;
  }

  /// True if vectors along some index of the left side read and write memory well.
  bool writes_vectors() const {
    return std::any_of(statement_.indices.begin(), statement_.indices.end(), [&](const ir::Index& index) {
      return !index.is_reduction && extent_of(index) >= std::max<int64_t>(native_lanes() / 2, 4) && fits(index, true);
    });
  }

  void find_lanes(Split& split) const {
    const int64_t lanes = native_lanes();
    for (size_t i = statement_.indices.size(); i-- > 0;) {
      const ir::Index& index = statement_.indices[i];
      if (!index.is_reduction || extent_of(index) < 2 * lanes || !fits(index, false)) continue;
      int64_t vectors = shares_loads(index) ? 1 : std::min(kVectors, extent_of(index) / (2 * lanes));
      while ((vectors & (vectors - 1)) != 0) --vectors;
      split.vector = i;
      split.lanes = lanes * std::max<int64_t>(vectors, 1);
      return;
    }
  }

  /// True if what is read along the index serves several results: their sums hide each other's latency.
  bool shares_loads(const ir::Index& index) const {
    return std::any_of(statement_.indices.begin(), statement_.indices.end(), [&](const ir::Index& other) {
      return !other.is_reduction && extent_of(other) >= kVectors &&
             std::any_of(references_.begin(), references_.end(), [&](const Reference& r) {
               return !r.is_write && r.depends_on(index.name) && !r.depends_on(other.name);
             });
    });
  }

  /// Parts for the threads, if there are too few tiles of results for them.
  void find_parts(Split& split) const {
    double points = 1;
    double instances = 1;
    for (const ir::Index& index : statement_.indices) {
      auto extent = static_cast<double>(extent_of(index));
      if (!index.is_reduction) points *= extent;
      instances *= extent;
    }
    const bool contraction = !split.vector && is_contraction();
    int64_t tile = split.vector ? 1 : native_lanes() * kTileVectors;
    if (contraction) tile *= kTileRows;
    if (points >= static_cast<double>(2 * options_.threads * tile) || instances < kPartInstances) return;
    int64_t parts = kParts;
    if (contraction) {
      parts = std::max(parts, static_cast<int64_t>(std::ceil(instances / points / kContractionLength)));
    }
    const int64_t gain = contraction ? kContractionGain : kPartGain;
    if (instances >= points * static_cast<double>(gain * split.lanes * parts)) cut_into_parts(split, parts);
  }

  /// True if every operand serves several vectors of results.
  bool is_contraction() const {
    for (const Reference& reference : references_) {
      if (reference.is_write) continue;
      bool serves = std::any_of(statement_.indices.begin(), statement_.indices.end(), [&](const ir::Index& index) {
        return !index.is_reduction && extent_of(index) >= native_lanes() && !reference.depends_on(index.name);
      });
      if (!serves) return false;
    }
    return references_.size() > 2;
  }

  /// Along the outermost reduction index that has room for them.
  void cut_into_parts(Split& split, int64_t parts) const {
    for (size_t i = 0; i < statement_.indices.size(); ++i) {
      const ir::Index& index = statement_.indices[i];
      if (!index.is_reduction || extent_of(index) < parts * split.lanes_of(i)) continue;
      split.part = i;
      split.parts = parts;
      return;
    }
  }

  const ir::Program& program_;
  const PrepareOptions& options_;
  const ir::Statement& statement_;
  std::vector<Reference> references_;
};

/// Makes the statement for the partial results, and the one that combines them.
class PartialResults {
 public:
  PartialResults(ir::Program& program, const ir::Statement& statement, const Split& split)
      : program_(program), statement_(statement), split_(split), partial_(statement), combined_(statement) {}

  std::pair<ir::Statement, ir::Statement> make() {
    partial_.id = fresh(program_, statement_.id + suffix());
    partial_.initialises = true;
    partial_.indices.clear();
    combined_.indices.clear();
    extents_ = program_.tensor(statement_.tensor).extents;
    for (const ir::Index& i : statement_.indices) {
      if (!i.is_reduction) partial_.indices.push_back(i), combined_.indices.push_back(i);
    }
    if (split_.part) part_ = add_dimension("_part", *split_.part, split_.parts);
    if (split_.vector) lane_ = add_dimension("_lane", *split_.vector, split_.lanes);
    for (size_t i = 0; i < statement_.indices.size(); ++i) {
      if (!statement_.indices[i].is_reduction) continue;
      if (split_.part == i || split_.vector == i) {
        cut(i);
      } else {
        partial_.indices.push_back(statement_.indices[i]);
      }
    }
    const ir::Tensor& tensor =
        add_temporary(program_, statement_.tensor + suffix(), statement_.accumulator, std::move(extents_));
    partial_.tensor = tensor.name;
    combined_.value = read(tensor, partial_.subscripts);
    return {std::move(partial_), std::move(combined_)};
  }

 private:
  const char* suffix() const { return split_.vector ? "_lanes" : "_parts"; }

  /// A dimension of the partial results, which the other statement reduces over. The index along it.
  Expr add_dimension(const char* name, size_t of, int64_t extent) {
    ir::Index index = make_index(fresh(program_, statement_.indices[of].name + name), extent, false);
    extents_.push_back(index.end);
    partial_.indices.push_back(index);
    partial_.subscripts.push_back(index_variable(index.name));
    index.is_reduction = true;
    combined_.indices.push_back(index);
    return partial_.subscripts.back();
  }

  /// Puts what the index is made of now in its place.
  void cut(size_t i) {
    const ir::Index& index = statement_.indices[i];
    const int64_t lanes = split_.lanes_of(i);
    const int64_t parts = split_.parts_of(i);
    const int64_t steps = (extent_of(index) + lanes * parts - 1) / (lanes * parts);
    const char* name = lanes > 1 ? "_vector" : "_step";
    ir::Index step = make_index(fresh(program_, index.name + name), steps, true);
    Expr offset = index_variable(step.name);
    if (parts > 1) offset = part_ * index_constant(steps) + offset;
    if (lanes > 1) offset = offset * index_constant(lanes) + lane_;
    if (steps * lanes * parts != extent_of(index)) {
      Expr exists = offset < index_constant(extent_of(index));
      partial_.guard = partial_.guard.defined() ? partial_.guard && exists : exists;
    }
    partial_.value = hi::substitute(index.name, begin_of(index) == 0 ? offset : offset + index.begin, partial_.value);
    partial_.indices.push_back(std::move(step));
  }

  ir::Program& program_;
  const ir::Statement& statement_;
  const Split& split_;
  ir::Statement partial_;
  ir::Statement combined_;
  std::vector<Expr> extents_;
  Expr part_;
  Expr lane_;
};

}  // namespace

ir::Program split_reductions(ir::Program program, const PrepareOptions& options) {
  std::vector<ir::Statement> statements;
  for (const ir::Statement& statement : std::vector<ir::Statement>(program.statements)) {
    std::optional<Split> split = Splitter(program, options, statement).find();
    if (!split) {
      statements.push_back(statement);
      continue;
    }
    auto [partial, combined] = PartialResults(program, statement, *split).make();
    statements.push_back(std::move(partial));
    statements.push_back(std::move(combined));
  }
  program.statements = std::move(statements);
  return program;
}

}  // namespace tc::cpu
