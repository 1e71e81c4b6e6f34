#pragma once

#include <nanobind/nanobind.h>
#include <tc/api/tc.h>

#include <memory>
#include <string>

#include "exchange_api.h"

/// The libraries whose arrays are tensors here, and how their arrays are read and made. All calls need the GIL.
namespace tc::python {

/// How the arrays of a type are read.
enum class Protocol {
  kNone,           ///< no array
  kExchange,       ///< DLPack's C functions (PyTorch)
  kBuffer,         ///< Python's buffers (NumPy, memoryview, array.array, ctypes)
  kDlpack,         ///< __dlpack__ (CuPy, JAX)
  kCudaInterface,  ///< __cuda_array_interface__ (Numba)
};

struct Framework {
  Protocol protocol = Protocol::kNone;
  std::string module;                     ///< top-level: "torch"
  const ExchangeApi* exchange = nullptr;  ///< of kExchange
  bool torch = false;                     ///< PyTorch's; not all of its versions have an exchange
};

/// Of an object's type; remembered for each type.
const Framework& framework_of(nanobind::handle object);

/// An array of a caller's as a tensor, and what keeps that valid. Not movable: the tensor may point into it.
class View {
 public:
  View() = default;
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  ~View() { release(); }

  /// Reads an array. `stream` is the one that it will be used on, for arrays of a framework that orders its work by
  /// itself. Throws TypeError for what is no array; what the framework throws.
  void read(const std::string& name, nanobind::handle array, const Framework& framework, void* stream);

  bool empty() const { return framework_ == nullptr; }
  const Framework& framework() const { return *framework_; }
  nanobind::handle array() const { return array_; }
  bool read_only() const { return read_only_; }
  /// On which the array's owner works with it, where __cuda_array_interface__ names one.
  void* stream() const { return stream_; }
  DLTensor tensor{};

 private:
  void release();
  DLDataType open_buffer();
  void read_buffer(const std::string& name);
  void read_dlpack(const std::string& name, void* stream);
  void read_cuda_interface(const std::string& name);
  /// Room for shape and strides of a rank.
  int64_t* extents(int rank);

  static constexpr int kInlineRank = 8;
  const Framework* framework_ = nullptr;
  nanobind::object array_;  // it may come out of a list that changes during the call
  bool read_only_ = false;
  void* stream_ = nullptr;
  Py_buffer buffer_{};
  DLManagedTensor* managed_ = nullptr;
  DLManagedTensorVersioned* versioned_ = nullptr;
  int64_t inline_extents_[2 * kInlineRank];
  std::unique_ptr<int64_t[]> large_extents_;
};

/// Makes arrays of one kind: what has been looked up once for all calls.
class Maker {
 public:
  Maker() = default;
  /// For arrays beside `like`, dense. `zeroed`: all elements are zero; otherwise they may be anything.
  Maker(const View& like, const api::TensorSpec& spec, bool zeroed);
  bool makes_for(const View& like) const { return framework_ == &like.framework(); }
  nanobind::object make() const;

 private:
  const Framework* framework_ = nullptr;
  nanobind::object function_, shape_, strides_, dtype_, device_, names_;  ///< invalid: not an argument
};

/// Tells a framework that keeps count of what is written to its arrays (PyTorch, for gradients) of a write to one.
void note_written(const View& view);

/// Of an array that is read by __dlpack__. Throws TypeError where it has no memory, as a tracer of JAX's.
DLDevice dlpack_device_of(const std::string& name, nanobind::handle array);

/// The stream that the framework's work of now goes to, on a device; null is the legacy default stream.
void* current_stream(const Framework& framework, DLDevice device);
/// True where the framework does not see what others launch: its arrays are to be handed back when they are ready.
bool wants_finished_arrays(const Framework& framework);

}  // namespace tc::python
