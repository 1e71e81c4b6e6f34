#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "tc/ir/program.h"

/// Specialised Programs built by hand, for tests of what comes after the front end.
namespace tc::poly::test {

using Halide::Expr;

inline Expr index(const std::string& name) { return Halide::Internal::Variable::make(ir::index_type(), name); }
inline Expr number(int64_t value) { return Halide::Internal::make_const(ir::index_type(), value); }

class ProgramBuilder {
 public:
  explicit ProgramBuilder(const std::string& name) { program_.name = name; }

  ProgramBuilder& tensor(const std::string& name, const std::vector<int64_t>& extents, ir::Role role,
                         Halide::Type type = Halide::Float(32)) {
    ir::Tensor t;
    t.name = name;
    t.type = type;
    t.role = role;
    for (int64_t extent : extents) t.extents.push_back(number(extent));
    program_.tensors.push_back(t);
    if (role == ir::Role::kResult || role == ir::Role::kInOut) program_.results.push_back(name);
    if (role == ir::Role::kInput || role == ir::Role::kInOut) program_.parameters.push_back(name);
    return *this;
  }
  ProgramBuilder& input(const std::string& name, const std::vector<int64_t>& extents) {
    return tensor(name, extents, ir::Role::kInput);
  }
  ProgramBuilder& result(const std::string& name, const std::vector<int64_t>& extents) {
    return tensor(name, extents, ir::Role::kResult);
  }
  ProgramBuilder& temporary(const std::string& name, const std::vector<int64_t>& extents) {
    return tensor(name, extents, ir::Role::kTemporary);
  }

  /// tensor(subscripts)
  Expr at(const std::string& name, const std::vector<Expr>& subscripts) const {
    return Halide::Internal::Call::make(program_.tensor(name).type, name, subscripts,
                                        Halide::Internal::Call::PureExtern);
  }

  struct Loop {
    std::string name;
    int64_t extent;
    int64_t begin = 0;
  };
  /// The next statement: left side, operator, map indices, reduction indices, value.
  ProgramBuilder& statement(const std::string& tensor, const std::vector<Expr>& subscripts, ir::Assign assign,
                            bool initialises, const std::vector<Loop>& map, const std::vector<Loop>& reduction,
                            const Expr& value) {
    ir::Statement s;
    s.id = fmt::format("S{}", program_.statements.size());
    s.tensor = tensor;
    s.subscripts = subscripts;
    s.assign = assign;
    s.initialises = initialises;
    for (const Loop& l : map) s.indices.push_back(loop(l, false));
    for (const Loop& l : reduction) s.indices.push_back(loop(l, true));
    s.value = value;
    s.accumulator = program_.tensor(tensor).type;
    program_.statements.push_back(s);
    return *this;
  }
  ProgramBuilder& set(const std::string& tensor, const std::vector<Expr>& subscripts, const std::vector<Loop>& map,
                      const Expr& value) {
    return statement(tensor, subscripts, ir::Assign::kSet, false, map, {}, value);
  }
  /// +=!
  ProgramBuilder& sum(const std::string& tensor, const std::vector<Expr>& subscripts, const std::vector<Loop>& map,
                      const std::vector<Loop>& reduction, const Expr& value) {
    return statement(tensor, subscripts, ir::Assign::kAdd, true, map, reduction, value);
  }
  ProgramBuilder& guard(const Expr& condition) {
    program_.statements.back().guard = condition;
    return *this;
  }

  std::shared_ptr<const ir::Program> build() const { return std::make_shared<const ir::Program>(program_); }

 private:
  static ir::Index loop(const Loop& l, bool is_reduction) {
    return {l.name, number(l.begin), number(l.begin + l.extent), is_reduction, false, {}};
  }

  ir::Program program_;
};

using ProgramPtr = std::shared_ptr<const ir::Program>;

/// C(i,j) +=! A(i,k) * B(k,j)
ProgramPtr matmul(int64_t m, int64_t n, int64_t k);
/// C(i,j) = b * C(i,j); C(i,j) += a * A(i,k) * B(k,j)
ProgramPtr sgemm(int64_t m, int64_t n, int64_t k);
/// maximum(i) max=! A(i,j); O(i,j) = exp(A(i,j) - maximum(i)); total(i) +=! O(i,j); O(i,j) = O(i,j) / total(i)
ProgramPtr softmax(int64_t rows, int64_t columns);
/// out(b,op,h,w) +=! in(b,ip,h+kh,w+kw) * weight(op,ip,kh,kw); relu(b,op,h,w) = max(out(b,op,h,w), 0)
ProgramPtr conv_relu(int64_t b, int64_t ip, int64_t op, int64_t h, int64_t w, int64_t kh, int64_t kw);
/// Three layers: O(b,n) = bias(n); O(b,n) += I(b,m) * W(n,m); O(b,n) = max(O(b,n), 0), of widths w0 -> w1 -> w2 -> w3.
ProgramPtr mlp3(int64_t batch, int64_t w0, int64_t w1, int64_t w2, int64_t w3);
/// T(i) = 2 * I(i); O(i) +=! T(i+k) * K(k)
ProgramPtr producer_conv1d(int64_t n, int64_t k);
/// T(i,j) = A(j,i); O(i,j) = T(i,j) + T(i,j)
ProgramPtr transpose_add(int64_t m, int64_t n);
/// H(I(i)) +=! V(i)
ProgramPtr histogram(int64_t n, int64_t bins);
/// P(h) = (h >= 1 && h <= n) ? I(h-1) : 0, h < n + 2; O(h) +=! P(h+k) * K(k), k < 3
ProgramPtr padded_conv1d(int64_t n);
/// Z(i,j) = X(I(i,j))
ProgramPtr gather(int64_t n, int64_t a, int64_t b);
/// mean(i) += ..., variance(i) += ..., O(i,j) = ...: layer normalisation
ProgramPtr layernorm(int64_t rows, int64_t columns);

/// total +=! A(i); O(i,j) = A(i) / total, j < 1
ProgramPtr normalise(int64_t n);

}  // namespace tc::poly::test
