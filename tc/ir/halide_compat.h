#pragma once

#include <Halide.h>

#include <string>
#include <utility>

/// What differs between the versions of Halide that the sources build with, 14 and 19: only this header knows it.
namespace tc::ir {

#if HALIDE_VERSION_MAJOR >= 17
using HalideParameter = Halide::Parameter;
#else
using HalideParameter = Halide::Internal::Parameter;
#endif

/// The value of a constant, or of a vector of equal ones; null of anything else. It lives as long as `e`.
template <typename Node>
auto constant_of(const Halide::Expr& e) -> decltype(&e.as<Node>()->value) {
  if (const auto* node = e.as<Node>()) return &node->value;
  if (const auto* vector = e.as<Halide::Internal::Broadcast>()) return constant_of<Node>(vector->value);
  return nullptr;
}
inline const int64_t* constant_int(const Halide::Expr& e) { return constant_of<Halide::Internal::IntImm>(e); }
inline const uint64_t* constant_uint(const Halide::Expr& e) { return constant_of<Halide::Internal::UIntImm>(e); }
inline const double* constant_float(const Halide::Expr& e) { return constant_of<Halide::Internal::FloatImm>(e); }

/// A loop of the host.
inline Halide::Internal::Stmt make_for(const std::string& name, Halide::Expr begin, Halide::Expr extent,
                                       Halide::Internal::ForType type, Halide::Internal::Stmt body) {
  return Halide::Internal::For::make(name, std::move(begin), std::move(extent), type,
#if HALIDE_VERSION_MAJOR >= 17
                                     Halide::Partition::Auto,
#endif
                                     Halide::DeviceAPI::None, std::move(body));
}

}  // namespace tc::ir
