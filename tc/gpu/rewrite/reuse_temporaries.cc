#include "tc/gpu/rewrite/reuse_temporaries.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/in_place.h"
#include "tc/ir/reads.h"
#include "tc/ir/specialise.h"

namespace tc::gpu {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

bool same(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return hi::equal(x, y); });
}

/// The temporary whose place the one that statement `at` sets may take; nothing: none.
std::optional<std::string> source_of(const ir::Program& program, size_t at) {
  const ir::Statement& s = program.statements[at];
  const ir::Tensor& tensor = program.tensor(s.tensor);
  if (s.assign != ir::Assign::kSet || s.guard.defined() || tensor.role != ir::Role::kTemporary) return std::nullopt;
  if (!ir::left_is_identity(s)) return std::nullopt;
  const auto reads = ir::reads_in(program, s.value);
  for (const hi::Call* read : reads) {
    const ir::Tensor& source = program.tensor(read->name);
    const bool fits = source.role == ir::Role::kTemporary && source.name != tensor.name && source.type == tensor.type &&
                      ir::constant_shape(source) == ir::constant_shape(tensor);
    if (!fits) continue;
    const bool is_own = std::all_of(reads.begin(), reads.end(), [&](const hi::Call* other) {
      return other->name != source.name || same(other->args, s.subscripts);
    });
    bool is_free = is_own;
    for (size_t i = 0; i < program.statements.size() && is_free; ++i) {
      const ir::Statement& other = program.statements[i];
      const bool uses_result = other.tensor == tensor.name || reads_tensor(other, tensor.name);
      const bool uses_source = reads_tensor(other, source.name) || other.tensor == source.name;
      is_free = i == at || (i < at ? !uses_result && !reads_tensor(other, source.name) : !uses_source);
    }
    if (is_free) return source.name;
  }
  return std::nullopt;
}

class Renamer : public hi::IRMutator {
 public:
  Renamer(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}

 private:
  using IRMutator::visit;
  Expr visit(const hi::Call* op) override {
    const Expr inside = IRMutator::visit(op);
    const auto* call = inside.as<hi::Call>();
    if (call->name != from_ || call->call_type != hi::Call::PureExtern) return inside;
    return hi::Call::make(call->type, to_, call->args, call->call_type);
  }
  std::string from_, to_;
};

void rename(ir::Program& program, const std::string& from, const std::string& to) {
  Renamer renamer(from, to);
  for (ir::Statement& s : program.statements) {
    if (s.tensor != from && !reads_tensor(s, from)) continue;
    if (s.tensor == from) s.tensor = to;
    for (Expr& subscript : s.subscripts) subscript = renamer.mutate(subscript);
    s.value = renamer.mutate(s.value);
    if (s.guard.defined()) s.guard = renamer.mutate(s.guard);
    s.accesses.clear();
  }
  std::erase_if(program.tensors, [&](const ir::Tensor& tensor) { return tensor.name == from; });
}

}  // namespace

ir::Program reuse_temporaries(ir::Program program,
                              const std::function<bool(const ir::Program&, const std::string& tensor)>& is_of_product,
                              const std::function<bool(const std::string& tensor)>& may_go) {
  for (size_t at = 0; at < program.statements.size(); ++at) {
    const std::optional<std::string> source = source_of(program, at);
    const std::string tensor = program.statements[at].tensor;
    if (source && is_of_product(program, *source) && may_go(tensor)) rename(program, tensor, *source);
  }
  return program;
}

}  // namespace tc::gpu
