#pragma once

#include "tc/ir/deadline.h"
#include "tc/ir/program.h"

namespace tc::ir {

/// C3: the whole right side is read before any element of the left is written.
///     a(i, j) = a(j, i)   ==>   a_old(d0, d1) = a(d0, d1);  a(i, j) = a_old(j, i)
/// A read stays in place where every instance reads only the element that it alone writes, and writes once: equal
/// subscripts, which are distinct indices or those of `=` (C7), no reduction index, no op=! . After prove_bounds().
Program snapshot_own_reads(Program program);

/// C2: op=! with data-dependent left subscripts starts the whole tensor from the identity:
///     H(I(i)) +=! 1   ==>   H(d0) = 0;  H(I(i)) += 1
/// After snapshot_own_reads(), so that the statement reads what the fill overwrites (C3).
Program fill_scattered(Program program);

/// R5 for temporaries: one of which not all elements are written before its first read starts from zero. Results
/// start from zero or the caller's values in the engine's hands. Throws OutOfTime.
Program fill_temporaries(Program program, const Deadline& deadline);

/// True where statements write every element of the tensor, whatever the data, before any is read. False where the
/// deadline ends the proof.
bool writes_all(const Program& program, const std::string& tensor, const Deadline& deadline);

/// True where the left subscripts are distinct map indices, and all of them: each element is written for one value of
/// the map indices.
bool left_is_identity(const Statement& statement);

}  // namespace tc::ir
