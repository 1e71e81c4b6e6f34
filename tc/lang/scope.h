#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tc/lang/ast.h"
#include "tc/lang/report.h"
#include "tc/lang/typed_ast.h"

/// What the names of a def, and of one of its statements, stand for.
namespace tc::lang {

/// What is known of a tensor before its type is.
struct TensorFacts {
  std::optional<ScalarType> type;  ///< declared, or found by find_element_types
  bool declared = false;           ///< the type stands in the source
};

/// The names that hold for a whole def. Filled by declare_names; the ids are those of TypedDefinition.
struct Scope {
  const Definition* source = nullptr;
  std::set<std::string, std::less<>> defs;  ///< the names of the file's other defs
  TypedDefinition definition;               ///< under construction: sizes, scalars, tensors, arguments, results
  std::vector<TensorFacts> facts;           ///< of each tensor
  std::vector<int> written;                 ///< the tensor of each statement; -1 for a statement already in error

  std::map<std::string, int, std::less<>> sizes;
  std::map<std::string, int, std::less<>> scalars;
  std::map<std::string, int, std::less<>> tensors;
  /// Where a name is first used as an index, or a let, in any statement (C9).
  std::map<std::string, SourceRange, std::less<>> index_names;
  std::map<std::string, SourceRange, std::less<>> let_names;

  Note declared_here(int tensor) const;
};

enum class NameKind : uint8_t { kIndex, kLet, kSize, kScalar, kTensor, kIntrinsic };

struct Resolved {
  NameKind kind;
  int id;  ///< of a let, size, scalar or tensor
};

/// How an expression takes part in index arithmetic.
enum class IndexClass : uint8_t {
  kNone,
  kLiteral,  ///< integer literals only
  kIndex,    ///< indices, sizes, extents and literals, at least one of them not a literal
};

struct LetFacts {
  const LetClause* clause;
  IndexClass index_class = IndexClass::kNone;
  IndexClass index_class_with_scalars = IndexClass::kNone;  ///< integer scalars counted as literals
  int height = 1;                                           ///< of its tree, lets replaced
  size_t nodes = 1;                                         ///< of its tree, lets replaced
  bool used = false;
};

/// The names of one statement.
struct StatementScope {
  const Scope& scope;
  std::vector<LetFacts> lets;
  std::map<std::string, int, std::less<>> let_ids;
  std::map<std::string, int, std::less<>> indices;  ///< ids of TypedStatement::indices

  /// The meaning of a bare name. Whatever is not declared is an index.
  Resolved resolve(std::string_view name) const;
  /// `with_scalars` counts integer scalars (but uint64) as literals.
  IndexClass classify(const Expr& expr, bool with_scalars = false) const;
};

/// Fills a scope from the signature and the left sides: C5, C9, and the dimensions.
void declare_names(Scope& scope, Report& report);

/// Decides which results are in-out, and checks the order of reads and writes: C2, C4.
void find_roles(Scope& scope, Report& report);

/// T2: the types of tensors that have none declared. Returns those that are written and whose type nothing tells; they
/// pass for float32, so that the statements can be looked at for the reason.
std::vector<int> find_element_types(Scope& scope);

}  // namespace tc::lang
