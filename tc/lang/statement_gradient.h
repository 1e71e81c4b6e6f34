#pragma once

#include <map>
#include <string>
#include <vector>

#include "tc/lang/inferred_ranges.h"
#include "tc/lang/typed_ast.h"
#include "tc/support/result.h"

/// Reverse-mode differentiation of one statement.
namespace tc::lang {

/// What one statement adds to the gradient of one tensor, at one tuple of subscripts.
struct Contribution {
  int tensor = 0;
  std::string subscripts;
  std::string value;
  bool once = false;       ///< the subscripts are the statement's indices: each element is written once
  bool all = false;        ///< each element is known to be written
  bool scattered = false;  ///< data choose the elements: op=! begins with all of them (C2)
  bool wide = false;       ///< of float32 or wider, where the tensor's type may be narrower
};

/// The names of the tensors that hold the gradients that are wanted.
using Adjoints = std::map<int, std::string>;

/// Whether a value changes with an element of these tensors, conditions and subscripts apart: those change in steps.
bool changes_with(const TypedExpr& expr, const Adjoints& adjoints);

/// What statement number `number` hands on to the tensors that it reads, in the order of its reads. `adjoint` is the
/// text of the gradient of its right side. With `widened`, float16 and bfloat16 are read as float32. Errors: functions
/// without a derivative, at their place.
Result<std::vector<Contribution>> statement_gradient(const TypedDefinition& definition, size_t number,
                                                     const SourcePtr& source, const InferredRanges& inferred,
                                                     const Adjoints& adjoints, const std::string& adjoint,
                                                     bool widened);

}  // namespace tc::lang
