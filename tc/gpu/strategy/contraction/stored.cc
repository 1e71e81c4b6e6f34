#include "tc/gpu/strategy/contraction/stored.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tc/gpu/rewrite/instructions.h"
#include "tc/gpu/strategy/contraction/chain.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/layouts.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/specialise.h"
#include "tc/support/check.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

constexpr int64_t kBoxBytes = 16;   // that rows and starts of boxes are multiples of
constexpr int64_t kRowBytes = 128;  // of a staging buffer, at most

/// The subscripts of a tensor's element that a point writes.
const std::vector<Expr>& element_of(const Contraction& c, const std::string& tensor) {
  if (tensor == c.update.tensor) return c.update.subscripts;
  for (const std::vector<poly::Statement>* statements : {&c.before, &c.after}) {
    for (const poly::Statement& statement : *statements) {
      if (statement.tensor == tensor) return statement.subscripts;
    }
  }
  for (const Contraction& product : c.further) {
    if (product.update.tensor == tensor) return product.update.subscripts;
  }
  TC_CHECK(false, "the contraction does not write '{}'", tensor);
}

/// The axis that a subscript of an element is, if it counts dimension `d` or a part of it, and no other dimension.
std::string axis_of(const std::vector<Expr>& element, const StoredTensor& stored, size_t d, const Contraction& c) {
  for (const Axis& axis : c.parallel) {
    const Expr offset = hi::simplify(element[d] - hi::Variable::make(ir::index_type(), axis.name));
    const auto mentions = [&](const Expr& subscript) { return ir::mentions(subscript, axis.name); };
    const bool is_only = std::count_if(element.begin(), element.end(), mentions) == 1;
    if (is_only && hi::is_const_zero(offset) && stored.may_be_counted_by(axis, d)) return axis.name;
  }
  return "";
}

/// The steps in memory from one element to the next along each axis.
std::map<std::string, int64_t> steps_of(const std::vector<Expr>& element, const StoredTensor& stored,
                                        const Contraction& c) {
  std::map<std::string, int64_t> result;
  std::set<std::string> others;  // in no sum of multiples
  for (const Axis& axis : c.parallel) result[axis.name] = 0;
  for (size_t d = 0; d < element.size(); ++d) {
    if (const std::optional<ir::LinearForm> form = ir::linear_form(hi::simplify(element[d]))) {
      for (const auto& [name, coefficient] : form->coefficients) result[name] += coefficient * stored.strides[d];
    } else {
      others.merge(ir::variables_of(element[d]));
    }
  }
  for (const std::string& name : others) result.erase(name);
  return result;
}

std::optional<size_t> position_of(const std::string& axis, const Contraction& c) {
  for (size_t i = 0; i < c.parallel.size(); ++i) {
    if (c.parallel[i].name == axis) return i;
  }
  return std::nullopt;
}

/// How many of a warpgroup's rows an axis counts, the fastest axis first: a box has so many values of it.
int64_t rows_along(size_t axis, const ContractionPlan& plan) {
  int64_t left = kStagedRows;
  for (size_t row : plan.tensor_cores->rows) {
    const int64_t rows = std::min(plan.parallel[row].tile, left);
    if (row == axis) return rows;
    left /= rows;
  }
  return 1;
}

/// The extents of a result's box, the fastest dimension first.
std::vector<int64_t> box_of(const StoredTensor& stored, const Contraction& c, const ContractionPlan& plan) {
  std::vector<int64_t> result;
  for (size_t d = stored.axes.size(); d-- > 0;) {
    const std::optional<size_t> axis = position_of(stored.axes[d], c);
    result.push_back(!axis                                    ? 1
                     : *axis == plan.tensor_cores->columns[0] ? staged_columns(c, plan)
                                                              : rows_along(*axis, plan));
  }
  return result;
}

/// Whether what is done to results reads memory along an axis: other tensors, or results from before.
bool reads_along(const std::string& axis, const Contraction& c) {
  struct Uses : hi::IRVisitor {
    Uses(const std::string& axis, const std::set<std::string>& made) : axis(axis), made(made) {}
    const std::string& axis;
    const std::set<std::string>& made;
    bool found = false;
    using hi::IRVisitor::visit;
    void visit(const hi::Variable* op) override { found = found || op->name == axis; }
    void visit(const hi::Call* op) override {
      if (made.count(op->name) == 0) hi::IRVisitor::visit(op);
    }
  };
  if (!c.further.empty()) return true;
  std::set<std::string> made;
  const auto reads = [&](const std::vector<poly::Statement>& statements) {
    return std::any_of(statements.begin(), statements.end(), [&](const poly::Statement& statement) {
      Uses uses(axis, made);
      statement.value.accept(&uses);
      made.insert(statement.tensor);
      return uses.found;
    });
  };
  if (reads(c.before)) return true;
  const bool is_new = !made.insert(c.update.tensor).second || c.update.assign == ir::Assign::kSet;
  return !is_new || reads(c.after);
}

std::string store_fault(const StoredTensor& stored, const Contraction& c, const ContractionPlan& plan) {
  constexpr size_t kMostDimensions = 5;
  const TensorCores& cores = *plan.tensor_cores;
  const int64_t bytes = stored.type.bytes();
  if (bytes != 2 && bytes != 4) return fmt::format("elements of '{}' have {} bytes", stored.tensor, bytes);
  if (stored.axes.size() > kMostDimensions) {
    return fmt::format("'{}' has more than {} dimensions", stored.tensor, kMostDimensions);
  }
  if (stored.extents.back() * bytes % kBoxBytes != 0) {
    return fmt::format("rows of '{}' are no multiple of {} bytes", stored.tensor, kBoxBytes);
  }
  if (stored.pitch() * bytes % kBoxBytes != 0) {
    return fmt::format("rows of '{}' do not begin at multiples of {} bytes", stored.tensor, kBoxBytes);
  }
  for (const Axis& axis : c.parallel) {
    const bool is_dimension = std::count(stored.axes.begin(), stored.axes.end(), axis.name) == 1;
    if (axis.extent > 1 && !is_dimension) return fmt::format("'{}' is not all of '{}'", axis.name, stored.tensor);
  }
  for (size_t d = 0; d < stored.axes.size(); ++d) {
    if (stored.axes[d].empty() && stored.extents[d] > 1) {
      return fmt::format("not all of '{}' is written", stored.tensor);
    }
    const std::optional<size_t> axis = position_of(stored.axes[d], c);
    if (!axis) continue;
    const auto& [name, begin, extent] = c.parallel[*axis];
    const AxisPlan& a = plan.parallel[*axis];
    if (begin + extent < stored.extents[d] && extent % (a.tile * a.cluster) != 0) {
      return fmt::format("the last box along '{}' reaches what another kernel writes of '{}'", name, stored.tensor);
    }
  }
  if (lies_across(stored, c, plan)) {
    constexpr int64_t kPair = 2;
    const Axis& column = c.parallel[cores.columns[0]];
    if (column.extent % kPair != 0 && reads_along(column.name, c)) {
      return fmt::format("pairs of '{}' end beyond '{}', where what they are combined with does", stored.tensor,
                         column.name);
    }
    const bool is_row = bytes * kStagedRows == kRowBytes && rows_along(cores.rows[0], plan) == kStagedRows;
    if (is_row && plan.parallel[cores.columns[0]].group == kPair && !cores.pairs_rows) return "";
    return fmt::format("rows of an instruction are no row of a staging buffer for '{}'", stored.tensor);
  }
  if (position_of(stored.axes.back(), c) != cores.columns[0]) {
    return fmt::format("neighbours of '{}' in memory are not along '{}'", stored.tensor,
                       c.parallel[cores.columns[0]].name);
  }
  // A box is written in the order of the tensor's dimensions; rows are staged in that of their axes.
  std::vector<size_t> in_memory, staged;
  for (size_t d = stored.axes.size() - 1; d-- > 0;) {
    const std::optional<size_t> axis = position_of(stored.axes[d], c);
    if (axis && rows_along(*axis, plan) > 1) in_memory.push_back(*axis);
  }
  for (size_t axis : cores.rows) {
    if (rows_along(axis, plan) > 1) staged.push_back(axis);
  }
  if (in_memory != staged) return fmt::format("rows of '{}' lie in another order than the operand's", stored.tensor);
  return "";
}

}  // namespace

bool StoredTensor::may_be_counted_by(const Axis& axis, size_t d) const {
  const auto is_edge = [&](int64_t at) { return at * type.bytes() % kBoxBytes == 0 || at == extents[d]; };
  const int64_t end = axis.begin + axis.extent;
  return axis.begin >= 0 && end <= extents[d] && is_edge(axis.begin) && is_edge(end);
}

bool StoredTensor::is_dense_along(const std::string& axis) const {
  const auto step = steps.find(axis);
  return step != steps.end() && (step->second == 0 || step->second == 1);
}

bool is_seen(const poly::Scop& scop, const Contraction& c, const std::string& tensor, const std::string& reader) {
  return scop.program->tensor(tensor).role != ir::Role::kTemporary || is_read_beyond(scop, c, tensor, reader);
}

std::vector<std::string> written_tensors(const Contraction& c) {
  std::vector<std::string> result = {c.update.tensor};
  const auto add = [&](const std::string& tensor) {
    if (std::find(result.begin(), result.end(), tensor) == result.end()) result.push_back(tensor);
  };
  for (const poly::Statement& statement : c.before) add(statement.tensor);
  for (size_t s = 0, f = 0; s <= c.after.size(); ++s) {
    for (; f < c.further.size() && c.further[f].place == s; ++f) add(c.further[f].update.tensor);
    if (s < c.after.size()) add(c.after[s].tensor);
  }
  return result;
}

std::vector<StoredTensor> stored_tensors(const poly::Scop& scop, const Contraction& c) {
  std::vector<StoredTensor> result;
  for (const std::string& name : written_tensors(c)) {
    if (!is_seen(scop, c, name)) continue;
    const ir::Tensor& tensor = scop.program->tensor(name);
    StoredTensor stored{name, tensor.type,          ir::constant_shape(tensor), ir::strides_of(tensor),
                        {},   tensor.at_any_address};
    const std::vector<Expr>& element = element_of(c, name);
    for (size_t d = 0; d < element.size(); ++d) stored.axes.push_back(axis_of(element, stored, d, c));
    stored.steps = steps_of(element, stored, c);
    result.push_back(std::move(stored));
  }
  return result;
}

std::optional<StoredTensor> expected_stored(const ir::Program& program, const ir::Statement& statement,
                                            const Contraction& c) {
  const ir::Statement* last = &statement;
  for (const ir::Statement& reader : program.statements) {
    if (program.tensor(last->tensor).role != ir::Role::kTemporary) break;
    const auto is_read = [&](const ir::Access& access) { return !access.is_write && access.tensor == last->tensor; };
    const auto read = std::find_if(reader.accesses.begin(), reader.accesses.end(), is_read);
    if (read == reader.accesses.end()) continue;
    const bool same = std::equal(read->subscripts.begin(), read->subscripts.end(), reader.subscripts.begin(),
                                 reader.subscripts.end(), [](const Expr& a, const Expr& b) { return hi::equal(a, b); });
    if (!same || reader.reduces()) return std::nullopt;
    last = &reader;
  }
  const ir::Tensor& tensor = program.tensor(last->tensor);
  StoredTensor stored{last->tensor,           tensor.type, ir::constant_shape(tensor),
                      ir::strides_of(tensor), {},          tensor.at_any_address};
  if (stored.extents.size() != c.update.subscripts.size()) return std::nullopt;
  for (size_t d = 0; d < stored.extents.size(); ++d) {
    stored.axes.push_back(axis_of(c.update.subscripts, stored, d, c));
  }
  stored.steps = steps_of(c.update.subscripts, stored, c);
  return stored;
}

double elements_stored(const Contraction& c, const StoredTensor& stored) {
  double result = 1;
  for (size_t d = 0; d < stored.axes.size(); ++d) {
    const std::optional<size_t> axis = position_of(stored.axes[d], c);
    result *= static_cast<double>(axis ? c.parallel[*axis].extent : stored.extents[d]);
  }
  return result;
}

bool lies_across(const StoredTensor& stored, const Contraction& c, const ContractionPlan& plan) {
  return !stored.axes.empty() && stored.axes.back() == c.parallel[plan.tensor_cores->rows[0]].name;
}

namespace {

/// Rows of a staging buffer for so many columns that lie across it: a divisor, up to 64 unless that is less than 40.
int64_t rows_across(int64_t columns) {
  constexpr int64_t kSwizzled = 8, kFew = 40, kMany = 64, kMost = 128;
  int64_t result = 0;
  for (int64_t rows = kSwizzled; rows <= kMost; rows += kSwizzled) {
    if (columns % rows == 0 && (rows <= kMany || result < kFew)) result = rows;
  }
  return result;
}

}  // namespace

int64_t staged_columns(const Contraction& c, const ContractionPlan& plan) {
  constexpr int64_t kQuad = 4;  // threads that share a row
  const AxisPlan& axis = plan.parallel[plan.tensor_cores->columns[0]];
  const auto is_across = [&](const StoredTensor& stored) { return lies_across(stored, c, plan); };
  if (std::any_of(c.stored.begin(), c.stored.end(), is_across)) {
    if (!std::all_of(c.stored.begin(), c.stored.end(), is_across)) return 0;
    return rows_across(axis.tile);
  }
  int64_t bytes = 2;
  for (const StoredTensor& stored : c.stored) bytes = std::max<int64_t>(bytes, stored.type.bytes());
  for (int64_t columns = kRowBytes / bytes; columns >= kQuad * axis.group; columns /= 2) {
    if (axis.tile % columns == 0) return columns;
  }
  return 0;
}

double instructions_of_point(const ir::Program& program, const Contraction& c) {
  constexpr double kLeast = 2;
  const InstructionsOfCall of_call = [&](const hi::Call* call) -> std::optional<double> {
    constexpr double kRead = 1, kPower = 4;
    if (call->name == tile::kExp2ForFloat16) return kPower + instructions_of(call->args[0], of_call);
    return ir::is_tensor_read(program, call) ? std::optional(kRead) : std::nullopt;
  };
  double result = kLeast;
  for (const auto* statements : {&c.before, &c.after}) {
    for (const poly::Statement& s : *statements) {
      result += instructions_of(hi::common_subexpression_elimination(s.value), of_call);
    }
  }
  for (const TileReduction& reduction : c.reductions) result += instructions_of(reduction.value, of_call) + 1;
  return result;
}

int64_t slabs_of(const Contraction& c, const ContractionPlan& plan) {
  return plan.tensor_cores->row_atoms * tile_of(plan.tensor_cores->columns, plan) / staged_columns(c, plan);
}

int64_t staging_buffers(const Contraction& c, const ContractionPlan& plan) { return slabs_of(c, plan) > 1 ? 2 : 1; }

int64_t staging_bytes(const StoredTensor& stored, const Contraction& c, const ContractionPlan& plan) {
  return plan.tensor_cores->warpgroups * plan.teams() * staging_buffers(c, plan) * kStagedRows *
         staged_columns(c, plan) * stored.type.bytes();
}

std::string store_fault(const Contraction& c, const ContractionPlan& plan) {
  constexpr int64_t kVector = 16;  // bytes
  if (c.stored.empty() || !c.pooled.empty()) return "its results are not stored as they are";
  if (staged_columns(c, plan) == 0) return "a block's columns are no rows of boxes";
  for (const StoredTensor& stored : c.stored) {
    if (plan.parallel[plan.tensor_cores->columns[0]].group * stored.type.bytes() > kVector) {
      return fmt::format("a thread's neighbours in '{}' are no vector", stored.tensor);
    }
    if (std::string fault = store_fault(stored, c, plan); !fault.empty()) return fault;
  }
  return "";
}

tile::TensorMap map_of(const StoredTensor& stored, const Contraction& c, const ContractionPlan& plan,
                       const std::string& name) {
  tile::TensorMap map{.name = name, .tensor = stored.tensor};
  for (size_t d = stored.extents.size(); d-- > 0;) {
    map.extents.push_back(stored.extents[d]);
    map.strides.push_back(stored.strides[d]);
  }
  map.box = box_of(stored, c, plan);
  const int64_t row = map.box[0] * stored.type.bytes();
  map.swizzle = row > kBoxBytes ? static_cast<int>(row) : 0;
  return map;
}

}  // namespace tc::gpu
