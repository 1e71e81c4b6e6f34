#pragma once

#include <cstddef>

/// Bounds on the size of a program. They are far above what a person writes, and low enough that no layer's
/// recursion over a tree can exhaust the stack and no input of any size keeps the front end busy for long.
namespace tc::lang {

inline constexpr size_t kMaxSourceBytes = 1 << 20;
inline constexpr int kMaxDepth = 256;    ///< of nested brackets, conditionals and signs, as the text has them
inline constexpr int kMaxHeight = 1000;  ///< of an expression's tree, lets replaced: each term of a flat sum is a level
inline constexpr size_t kMaxNameBytes = 255;
inline constexpr size_t kMaxClauses = 64;       ///< of one statement
inline constexpr size_t kMaxErrors = 20;        ///< reported at once
inline constexpr size_t kMaxStatements = 512;   ///< in one def
inline constexpr size_t kMaxArguments = 256;    ///< parameters and results of one def
inline constexpr size_t kMaxTypeVariables = 8;  ///< of one def
inline constexpr size_t kMaxRank = 32;          ///< dimensions of a tensor, arguments of a call
inline constexpr size_t kMaxNodes = 100'000;    ///< of one statement's expressions, lets replaced

}  // namespace tc::lang
