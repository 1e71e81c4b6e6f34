#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tc/api/dlpack_versioned.h"
#include "tc/support/error.h"
#include "tc/support/scalar_type.h"

namespace tc::api {

/// What a kernel must know of a tensor: everything but where it is.
struct TensorSpec {
  ScalarType type = ScalarType::kFloat32;
  std::vector<int64_t> shape = {};    ///< extents in elements, outermost dimension first; empty for a single element
  std::vector<int64_t> strides = {};  ///< in elements, one for each dimension; empty: dense, row-major

  /// Elements, and the bytes from the first to one past the last address that the tensor touches.
  /// Both must fit int64, which TensorSpec's users check; -1 if they do not.
  int64_t elements() const;
  int64_t span_bytes() const;
  /// "float32(128, 64)", followed by " strides (1, 128)" unless dense.
  std::string to_string() const;
  bool operator==(const TensorSpec&) const = default;
};

/// The spec of a DLPack tensor. Errors: an element type that the language does not have, vector lanes, a negative
/// extent.
Result<TensorSpec> spec_of(const DLTensor& tensor);

/// DLPack's code of an element type.
DLDataType to_dlpack(ScalarType type);

/// A tensor in host memory, and who owns the memory. Move-only. An empty one can be moved, assigned to and asked
/// whether it is empty; anything else throws InternalError.
class Tensor {
 public:
  Tensor();
  ~Tensor();
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;

  /// New memory, aligned to 64 bytes (for an element (0, ..., 0) at the lowest address), all zero.
  /// Errors: strides or extents that do not make sense together, sizes that overflow, more memory than there is.
  static Result<Tensor> allocate(const TensorSpec& spec);
  /// A view of memory that the caller keeps alive; shape and strides are copied.
  static Tensor borrow(const DLTensor& tensor, bool read_only = false);
  /// Takes over a tensor, not null, that another library hands out; its deleter is called with this tensor's
  /// destruction.
  static Tensor adopt(DLManagedTensor* tensor);
  /// The same for DLPack 1.x. Honours the read-only flag. Errors: another major version than 1 (the tensor is then
  /// released, as DLPack demands).
  static Result<Tensor> adopt(DLManagedTensorVersioned* tensor);

  /// Hands the tensor to another library, which calls the deleter when it is done. This tensor becomes empty.
  DLManagedTensor* release();
  DLManagedTensorVersioned* release_versioned();

  bool empty() const { return impl_ == nullptr; }  ///< default-constructed, moved from or released
  const DLTensor& dl() const;
  DLTensor& dl();
  bool read_only() const;
  TensorSpec spec() const;  ///< of a tensor whose element type the language has

  /// The address of the element at (0, ..., 0), byte_offset included.
  void* data() const;
  template <typename T>
  T* data_as() const {
    return static_cast<T*>(data());
  }

 private:
  struct Impl;
  explicit Tensor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tc::api
