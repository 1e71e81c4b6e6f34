#pragma once

#include <map>
#include <string>
#include <vector>

#include "tc/lang/single_assignment.h"
#include "tc/lang/typed_ast.h"
#include "tc/support/result.h"

/// Reverse-mode differentiation of one statement.
namespace tc::lang {

/// What one statement adds to the gradient of one input, at one tuple of subscripts.
struct Contribution {
  int tensor = 0;
  std::string subscripts;
  std::string value;
  bool once = false;  ///< the subscripts are the statement's indices: each element is written once
  bool all = false;   ///< each element is written
  bool wide = false;  ///< of float32 or wider, where the tensor's type may be narrower
};

/// What statements hand on to the tensors that they read.
struct Adjoints {
  std::map<int, std::string> names;  ///< of tensors whose gradients are wanted
  std::string counts;                ///< a prefix that no name of the def begins with
};

/// What statement number `number` hands on to the tensors that it reads, in the order of its reads. With `widened`,
/// float16 and bfloat16 are read as float32. Errors: operators and functions without a derivative, at their place.
Result<std::vector<Contribution>> statement_gradient(const TypedDefinition& definition, size_t number,
                                                     const SourcePtr& source, const InferredRanges& inferred,
                                                     const Adjoints& adjoints, bool widened);

}  // namespace tc::lang
