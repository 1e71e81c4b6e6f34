#pragma once

#include "tc/api/layout.h"
#include "tc/api/tensor.h"
#include "tc/interp/interpreter.h"

/// Between a caller's tensors and the oracle's.
namespace tc::api {

/// Calls visit(address) for each element of a tensor, in row-major order.
template <typename Visit>
void for_each_element(const Tensor& tensor, Visit visit) {
  const TensorSpec spec = with_strides(tensor.spec());
  const int bytes = bytes_of(spec.type);
  const char* const base = tensor.data_as<char>();
  std::vector<int64_t> at(spec.shape.size(), 0);
  int64_t offset = 0;
  for (int64_t left = spec.elements(); left > 0; --left) {
    visit(base + offset * bytes);
    for (size_t d = at.size(); d-- > 0;) {
      offset += spec.strides[d];
      if (++at[d] < spec.shape[d]) break;
      offset -= at[d] * spec.strides[d];
      at[d] = 0;
    }
  }
}

/// A tensor as the oracle holds it, and back into a dense tensor of the same type and shape.
interp::Value to_value(const Tensor& tensor);
void from_value(const interp::Value& value, Tensor& tensor);

/// A scalar as the oracle holds it; the type holds it.
interp::Value scalar_value(ScalarType type, int64_t bits);

}  // namespace tc::api
