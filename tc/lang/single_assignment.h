#pragma once

#include <functional>
#include <map>
#include <set>

#include "tc/lang/inferred_ranges.h"
#include "tc/lang/typed_ast.h"

namespace tc::lang {

/// Calls `visit` with each read of a value, those in subscripts and in lets too.
void for_each_read(const TypedExpr& expr, const std::function<void(const Read&)>& visit);

/// The tensors that a value is made of, those in subscripts too.
std::set<int> tensors_read(const TypedExpr& expr);

/// Whether a value is the same bit for bit wherever it is computed: no float in it is rounded, and none is read of a
/// tensor that is not an input.
bool is_exact(const TypedDefinition& definition, const TypedExpr& expr);

/// Whether an operator uses nothing of what its elements held.
bool overwrites(AssignOp op);

/// A def with a tensor for each state that a tensor goes through.
struct SingleAssignment {
  TypedDefinition definition;
  /// Of a tensor, the one that is its state before: it keeps those elements that its first statement does not write,
  /// and that statement's operator combines with them.
  std::map<int, int> before;
};

/// The same def in which a statement that overwrites a tensor writes one of its own, and the tensor's earlier states
/// are temporaries NAME_1, NAME_2, ...
///     O(n) = exp(I(n));  O(n) = O(n) / 2   ==>   O_1(n) = exp(I(n));  O(n) = O_1(n) / 2
/// The caller's values of an in-out tensor C are an input `old_C`, and C is a result. Several statements write one
/// state if nothing reads it between them, and all but the first are sums into it or write elements of their own.
/// What a maximum, minimum or product reduces is a tensor or exact: other values become temporaries v_NAME. They are
/// of float32 where the tensor is narrower.
///     m(i) max=! 2 * x(i,k)   ==>   v_m(i,k) = 2 * x(i,k);  m(i) max=! v_m(i,k)
/// `inferred` gets what belongs to the new tensors and statements.
SingleAssignment single_assignment(TypedDefinition definition, InferredRanges& inferred);

}  // namespace tc::lang
