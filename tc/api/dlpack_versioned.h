/* The versioned tensors of DLPack 1.x, for use beside a dlpack.h that does not know them yet. The layouts are those
 * of the DLPack specification; a dlpack.h of version 1.0 or later declares them itself. C and C++. */
#ifndef TC_API_DLPACK_VERSIONED_H_
#define TC_API_DLPACK_VERSIONED_H_

#include <dlpack/dlpack.h>
#include <stdint.h>

#if !defined(DLPACK_MAJOR_VERSION)

#ifdef __cplusplus
extern "C" {
#endif

/* A consumer may read tensors of its own major version, whatever the minor one. */
typedef struct {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

/* Bits of DLManagedTensorVersioned.flags. */
#define DLPACK_FLAG_BITMASK_READ_ONLY (((uint64_t)1) << 0)
#define DLPACK_FLAG_BITMASK_IS_COPIED (((uint64_t)1) << 1)

typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

#ifdef __cplusplus
}
#endif

#endif /* !DLPACK_MAJOR_VERSION */

/* The code of bool in DLDataType (8 bits), which DLPack 0.6 does not name. */
#define TC_DLPACK_BOOL 6

/* The codes of 8-bit floats, which DLPack has from version 1.1 on: kDLFloat8_e4m3fn and kDLFloat8_e5m2. */
#define TC_DLPACK_FLOAT8_E4M3FN 10
#define TC_DLPACK_FLOAT8_E5M2 12

#endif /* TC_API_DLPACK_VERSIONED_H_ */
