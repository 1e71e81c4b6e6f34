#pragma once

#include <string>

#include "tc/ir/program.h"

namespace tc::ir {

/// A Program as text, for people and golden files: roles, types and extents of its tensors, then every statement with
/// the ranges of its indices, then the preconditions. The same Program gives the same text.
std::string to_text(const Program& program);

/// The signature of a def with all types and shapes: "def mv(float32(M,N) A, float32(N) x) -> (float32(M) C)".
std::string signature_text(const Program& program);

/// A statement without its ranges: "C(m, n) +=! A(m, k) * B(k, n)".
std::string statement_text(const Statement& statement);

/// The number of a rule of the language: "R2". "" for the compiler's own statements.
std::string rule_text(RangeRule rule);

/// What set one end of a range of a statement, without the rule: "I(h + kh)", "the guard of X(i + 1)".
std::string cause_text(const Program& program, const Statement& statement, const RangeEnd& by);

/// What `tensorc check` says of a def: its signature, each statement with the ranges of its indices and what set them,
/// and what a call must fulfil.
std::string report(const Program& program);

}  // namespace tc::ir
