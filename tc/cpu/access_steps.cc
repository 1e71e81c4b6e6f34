#include "tc/cpu/access_steps.h"

#include "tc/cpu/place.h"
#include "tc/ir/halide_compat.h"
#include "tc/support/check.h"

namespace tc::cpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

class References : public hi::IRVisitor {
 public:
  explicit References(const ir::Program& program) : program_(program) {}
  std::vector<Reference> result;

  void add(const std::string& tensor, bool is_write, const std::vector<Expr>& subscripts) {
    Reference reference{tensor, is_write, subscripts, {}};
    for (const Expr& subscript : subscripts) reference.forms.push_back(linear_form(subscript));
    result.push_back(std::move(reference));
  }

 private:
  using IRVisitor::visit;
  void visit(const hi::Call* call) override {
    if (ir::is_tensor_read(program_, call)) add(call->name, false, call->args);
    IRVisitor::visit(call);
  }
  const ir::Program& program_;
};

}  // namespace

bool Reference::depends_on(const std::string& index) const {
  for (size_t d = 0; d < subscripts.size(); ++d) {
    if (forms[d] ? forms[d]->coefficients.count(index) > 0 : hi::expr_uses_var(subscripts[d], index)) return true;
  }
  return false;
}

std::vector<Reference> references(const ir::Program& program, const std::string& tensor,
                                  const std::vector<Expr>& subscripts, const Expr& value, const Expr& guard) {
  References visitor(program);
  visitor.add(tensor, true, subscripts);
  value.accept(&visitor);
  for (const Expr& subscript : subscripts) subscript.accept(&visitor);
  if (guard.defined()) guard.accept(&visitor);
  return std::move(visitor.result);
}

std::optional<int64_t> memory_step(const ir::Program& program, const ir::Layouts& layouts, const Reference& reference,
                                   const std::string& index) {
  Place place = place_of_tensor(program, reference.tensor, layouts);
  int64_t step = 0;
  for (size_t d = 0; d < reference.subscripts.size(); ++d) {
    if (reference.forms[d]) {
      auto found = reference.forms[d]->coefficients.find(index);
      if (found != reference.forms[d]->coefficients.end()) step += found->second * place.strides[d];
    } else if (hi::expr_uses_var(reference.subscripts[d], index)) {
      return std::nullopt;
    }
  }
  return step;
}

std::vector<int64_t> constant_extents(const ir::Tensor& tensor) {
  std::vector<int64_t> result;
  for (const Expr& extent : tensor.extents) {
    const int64_t* value = ir::constant_int(extent);
    TC_CHECK(value != nullptr, "'{}' has an extent that is not constant", tensor.name);
    result.push_back(*value);
  }
  return result;
}

}  // namespace tc::cpu
