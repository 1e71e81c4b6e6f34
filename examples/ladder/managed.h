#pragma once

#include <tc/api/tensor.h>

#include <cstdint>
#include <vector>

/// Memory that a GPU and the host share, by the driver's own functions; freed with the process.
class Managed {
 public:
  /// Whether there is a GPU and its driver.
  static bool available();
  explicit Managed(const tc::api::TensorSpec& spec);
  tc::api::Tensor tensor() const;

 private:
  tc::api::TensorSpec spec_;
  void* data_ = nullptr;
};
