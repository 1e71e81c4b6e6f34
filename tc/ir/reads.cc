#include "tc/ir/reads.h"

#include <numeric>

#include "tc/ir/halide_compat.h"
#include "tc/ir/index_expr.h"

namespace tc::ir {

using Halide::Expr;
namespace hi = Halide::Internal;

std::vector<const hi::Call*> reads_in(const Program& program, const Expr& expr) {
  class Finder : public hi::IRVisitor {
   public:
    explicit Finder(const Program& program) : program_(program) {}
    std::vector<const hi::Call*> found;

   private:
    using IRVisitor::visit;
    void visit(const hi::Call* op) override {
      if (is_tensor_read(program_, op)) found.push_back(op);
      IRVisitor::visit(op);
    }
    const Program& program_;
  } finder(program);
  expr.accept(&finder);
  return finder.found;
}

std::optional<int64_t> offset_divisor(const Expr& subscript, const std::string& index) {
  const Expr rest = hi::simplify(subscript - hi::Variable::make(subscript.type(), index));
  if (mentions(rest, index)) return std::nullopt;
  const hi::ModulusRemainder known = hi::modulus_remainder(rest);
  return std::gcd(known.modulus, known.remainder);
}

std::optional<int64_t> sharing_neighbours(const Expr& subscript, const std::string& index) {
  const auto* over = subscript.as<hi::Div>();
  const int64_t* by = over != nullptr ? constant_int(over->b) : nullptr;
  if (by == nullptr || *by < 1) return std::nullopt;
  const std::optional<int64_t> offset = offset_divisor(over->a, index);
  return offset ? std::optional(std::gcd(*offset, *by)) : std::nullopt;
}

}  // namespace tc::ir
