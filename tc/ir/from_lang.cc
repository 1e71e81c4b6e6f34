#include "tc/ir/from_lang.h"

#include <algorithm>

#include "tc/ir/accumulators.h"
#include "tc/ir/bounds.h"
#include "tc/ir/convert.h"
#include "tc/ir/in_place.h"
#include "tc/ir/index_expr.h"
#include "tc/ir/ranges.h"
#include "tc/support/check.h"

namespace tc::ir {

using Halide::Expr;

namespace {

Role role_of(lang::Role role) {
  switch (role) {
    case lang::Role::kInput:
      return Role::kInput;
    case lang::Role::kResult:
      return Role::kResult;
    case lang::Role::kInOut:
      return Role::kInOut;
    case lang::Role::kTemporary:
      return Role::kTemporary;
  }
  TC_CHECK(false, "unknown role");
}

Assign assign_of(lang::AssignOp op) {
  switch (op) {
    case lang::AssignOp::kSet:
      return Assign::kSet;
    case lang::AssignOp::kSum:
    case lang::AssignOp::kSumInit:
      return Assign::kAdd;
    case lang::AssignOp::kProduct:
    case lang::AssignOp::kProductInit:
      return Assign::kMul;
    case lang::AssignOp::kMin:
    case lang::AssignOp::kMinInit:
      return Assign::kMin;
    case lang::AssignOp::kMax:
    case lang::AssignOp::kMaxInit:
      return Assign::kMax;
  }
  TC_CHECK(false, "unknown assignment");
}

/// T3.
Halide::Type accumulator_of(Assign assign, Halide::Type type) {
  if ((assign != Assign::kAdd && assign != Assign::kMul) || type.bits() >= 32 || type.is_bool()) return type;
  return type.is_float() ? Halide::Float(32) : Halide::Int(32);
}

/// Names, types and declared shapes. Extents that nobody declares stay undefined.
Program signature_of(const lang::TypedDefinition& definition, const SourcePtr& source) {
  Program program;
  program.name = definition.name;
  program.source = source;
  for (const lang::Size& size : definition.sizes) program.sizes.push_back(size.name);
  for (const lang::Scalar& s : definition.scalars) {
    program.scalars.push_back({s.name, to_halide(s.type), s.compiled_in, s.range});
  }
  Converter converter(definition, nullptr);
  for (const lang::Tensor& t : definition.tensors) {
    Tensor tensor{t.name, to_halide(t.type), std::vector<Expr>(t.rank), role_of(t.role), t.range};
    for (int d = 0; t.dimensions && d < t.rank; ++d) {
      tensor.extents[d] = simplify_index(converter.convert(t.dimensions->at(d)), program.sizes);
    }
    program.tensors.push_back(std::move(tensor));
  }
  for (const lang::Argument& a : definition.arguments) {
    program.parameters.push_back(a.is_scalar ? definition.scalars[a.id].name : definition.tensors[a.id].name);
  }
  for (int result : definition.results) program.results.push_back(definition.tensors[result].name);
  return program;
}

Index convert_index(Converter& converter, const lang::Index& index) {
  Index result;
  result.name = index.name;
  result.is_reduction = index.kind == lang::IndexKind::kReduction;
  result.range = index.range;
  if (index.given) {
    result.begin = converter.convert(index.given->low);
    result.end = converter.convert(index.given->high);
    result.given = true;
    result.range = index.given->range;
  }
  return result;
}

Statement convert_statement(const lang::TypedDefinition& definition, const lang::TypedStatement& from) {
  Converter converter(definition, &from);
  const lang::Tensor& tensor = definition.tensors[from.tensor];
  Statement result;
  result.tensor = tensor.name;
  result.assign = assign_of(from.op);
  result.initialises = lang::starts_from_identity(from.op);
  result.range = from.range;
  for (const lang::Index& index : from.indices) result.indices.push_back(convert_index(converter, index));
  for (const lang::TypedExprPtr& subscript : from.subscripts) result.subscripts.push_back(converter.convert(subscript));
  result.accumulator = accumulator_of(result.assign, to_halide(tensor.type));
  const bool sums = result.assign == Assign::kAdd || result.assign == Assign::kMul;
  result.value = sums ? converter.widen(from.right, result.accumulator) : converter.convert(from.right);
  const size_t executed = converter.accesses.size();
  for (const lang::TypedExprPtr& extra : from.exists) converter.convert(extra);

  Access write;
  write.tensor = result.tensor;
  write.subscripts = result.subscripts;
  write.is_write = true;
  write.range = from.left_range;
  result.accesses.push_back(std::move(write));
  for (size_t i = 0; i < converter.accesses.size(); ++i) {
    result.accesses.push_back(converter.accesses[i]);
    result.accesses.back().exists_only = i >= executed;
  }
  result.index_values = std::move(converter.index_values);
  return result;
}

}  // namespace

namespace {

Result<Program> convert(const lang::TypedDefinition& definition, const SourcePtr& source, const Deadline& deadline) {
  Program program = signature_of(definition, source);
  for (const lang::TypedStatement& statement : definition.statements) {
    program.statements.push_back(convert_statement(definition, statement));
  }
  program = fill_scattered(std::move(program));
  TC_TRY(ranged, infer_ranges(std::move(program), deadline));
  TC_TRY(proved, prove_bounds(std::move(ranged), deadline));
  proved = fill_temporaries(widen_accumulators(snapshot_own_reads(std::move(proved))));
  for (size_t i = 0; i < proved.statements.size(); ++i) proved.statements[i].id = fmt::format("S{}", i);
  return proved;
}

}  // namespace

Result<Program> from_lang(const lang::TypedDefinition& definition, const SourcePtr& source, const Deadline& deadline) {
  try {
    return convert(definition, source, deadline);
  } catch (const OutOfTime& out) {
    return tl::unexpected(out.error);
  } catch (const Halide::Error& error) {
    throw InternalError(fmt::format("Halide: {}", error.what()));
  }
}

Result<Program> from_lang(const lang::TypedProgram& file, const std::string& entry, const Deadline& deadline) {
  std::string names;
  for (const lang::TypedDefinition& definition : file.definitions) {
    const bool only = entry.empty() && file.definitions.size() == 1;
    if (only || definition.name == entry) return from_lang(definition, file.source, deadline);
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", definition.name);
  }
  if (entry.empty())
    return fail("'{}' has {} defs ({}): name one", file.source->name(), file.definitions.size(), names);
  return fail("'{}' has no def '{}', only {}", file.source->name(), entry, names);
}

}  // namespace tc::ir
