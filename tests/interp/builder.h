#pragma once

#include <Halide.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "tc/interp/interpreter.h"
#include "tc/ir/program.h"

/// Specialised Programs by hand, for tests of the interpreter that need no front end.
namespace tc::testing {

using Halide::Expr;

inline Expr index(const std::string& name) { return Halide::Internal::Variable::make(ir::index_type(), name); }
inline Expr integer(int64_t value) { return Halide::Internal::make_const(ir::index_type(), value); }
inline Expr call(ScalarType type, const std::string& name, std::vector<Expr> arguments) {
  return Halide::Internal::Call::make(ir::to_halide(type), name, arguments, Halide::Internal::Call::PureExtern);
}
inline Expr constant(ScalarType type, double value) { return Halide::Internal::make_const(ir::to_halide(type), value); }

/// A loop of a statement: name in [begin, end).
inline ir::Index map(const std::string& name, int64_t end, int64_t begin = 0) {
  ir::Index index;
  index.name = name;
  index.begin = integer(begin);
  index.end = integer(end);
  return index;
}
inline ir::Index reduced(const std::string& name, int64_t end, int64_t begin = 0) {
  ir::Index index = map(name, end, begin);
  index.is_reduction = true;
  return index;
}

class ProgramBuilder {
 public:
  ProgramBuilder() { program_.name = std::string("f"); }

  ProgramBuilder& tensor(ir::Role role, ScalarType type, const std::string& name, const std::vector<int64_t>& shape) {
    ir::Tensor t;
    t.name = name;
    t.type = ir::to_halide(type);
    t.role = role;
    for (int64_t extent : shape) t.extents.push_back(integer(extent));
    program_.tensors.push_back(std::move(t));
    return *this;
  }
  ProgramBuilder& input(ScalarType type, const std::string& name, const std::vector<int64_t>& shape) {
    return tensor(ir::Role::kInput, type, name, shape);
  }
  ProgramBuilder& result(ScalarType type, const std::string& name, const std::vector<int64_t>& shape) {
    program_.results.push_back(name);
    return tensor(ir::Role::kResult, type, name, shape);
  }
  ProgramBuilder& scalar(ScalarType type, const std::string& name) {
    program_.scalars.push_back({name, ir::to_halide(type), false, {}});
    return *this;
  }

  /// A read of a tensor declared above.
  Expr read(const std::string& name, const std::vector<Expr>& subscripts) const {
    return Halide::Internal::Call::make(program_.tensor(name).type, name, subscripts,
                                        Halide::Internal::Call::PureExtern);
  }

  ProgramBuilder& statement(const std::string& target, const std::vector<Expr>& subscripts, ir::Assign assign,
                            bool initialises, std::vector<ir::Index> indices, Expr value, Expr guard = Expr()) {
    ir::Statement s;
    s.id = fmt::format("S{}", program_.statements.size());
    s.tensor = target;
    s.subscripts = subscripts;
    s.assign = assign;
    s.initialises = initialises;
    s.indices = std::move(indices);
    s.guard = std::move(guard);
    s.accumulator = value.type();
    s.value = std::move(value);
    program_.statements.push_back(std::move(s));
    return *this;
  }
  /// target(subscripts) = value
  ProgramBuilder& set(const std::string& target, const std::vector<Expr>& subscripts, std::vector<ir::Index> indices,
                      Expr value) {
    return statement(target, subscripts, ir::Assign::kSet, false, std::move(indices), std::move(value));
  }

  ir::Program& program() { return program_; }

 private:
  ir::Program program_;
};

inline interp::Value floats(ScalarType type, std::vector<int64_t> shape, std::vector<double> values) {
  return {type, std::move(shape), std::move(values), {}};
}
inline interp::Value integers(ScalarType type, std::vector<int64_t> shape, std::vector<int64_t> values) {
  return {type, std::move(shape), {}, std::move(values)};
}

}  // namespace tc::testing
