#pragma once

#include <tc/api/dlpack_versioned.h>

/// DLPack's table of C functions by which a framework lends its arrays without a call into Python (DLPack 1.3,
/// DLPackExchangeAPI), for use beside a dlpack.h that does not know it yet. A type has it as the capsule
/// "dlpack_exchange_api" in its attribute __dlpack_c_exchange_api__.
namespace tc::python {

struct ExchangeHeader {
  DLPackVersion version;
  ExchangeHeader* previous;  ///< an older table, for those who do not know this major version; may be null
};

struct ExchangeApi {
  ExchangeHeader header;
  int (*allocate)(DLTensor* prototype, DLManagedTensorVersioned** out, void* context,
                  void (*set_error)(void* context, const char* kind, const char* message));
  int (*managed_of_object)(void* object, DLManagedTensorVersioned** out);
  int (*object_of_managed)(DLManagedTensorVersioned* tensor, void** out);
  /// Lends a view until control returns to Python; may be null. 0, or -1 with a Python exception set.
  int (*view_of_object)(void* object, DLTensor* out);
  int (*current_stream)(DLDeviceType device_type, int32_t device_id, void** out);
};

}  // namespace tc::python
