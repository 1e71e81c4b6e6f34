#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "tc/support/result.h"

namespace tc::cuda {

/// An address in a GPU's memory.
using Address = uint64_t;
/// The caller's stream: a CUstream or cudaStream_t; null is the legacy default stream.
using Stream = void*;

/// NVIDIA's driver, opened at run time: nothing of CUDA is needed to build this. Names and values are those of the
/// "CUDA Driver API" documentation; the functions are called through the table below.
struct Driver {
  using Status = int;
  using Device = int;
  using Context = void*;
  using Module = void*;
  using Function = void*;
  using Event = void*;
  using Graph = void*;
  using GraphExec = void*;

  Status (*init)(unsigned);
  Status (*version)(int*);
  Status (*error_name)(Status, const char**);
  Status (*error_text)(Status, const char**);
  Status (*device_count)(int*);
  Status (*device_name)(char*, int, Device);
  Status (*device_memory)(size_t*, Device);
  Status (*device_attribute)(int*, int, Device);
  Status (*retain_primary)(Context*, Device);
  Status (*release_primary)(Device);
  Status (*primary_state)(Device, unsigned* flags, int* is_active);
  Status (*current_context)(Context*);
  Status (*set_context)(Context);
  Status (*current_device)(Device*);
  Status (*context_id)(Context, unsigned long long*);  ///< null before CUDA 12.0
  Status (*load_module)(Module*, const void*);
  Status (*unload_module)(Module);
  Status (*get_function)(Function*, Module, const char*);
  Status (*get_attribute)(int*, int, Function);
  Status (*set_attribute)(Function, int, int);
  /// CUlaunchAttribute and CUlaunchConfig, which cuLaunchKernelEx() takes.
  struct LaunchAttribute {
    int id, padding;
    int value[16];
  };
  struct LaunchConfig {
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    Stream stream;
    const LaunchAttribute* attributes;
    unsigned attribute_count;
  };

  Status (*launch)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**,
                   void**);
  Status (*launch_with)(const LaunchConfig*, Function, void**, void**);  ///< null before CUDA 11.8
  /// cuTensorMapEncodeTiled(): map, type, rank, address, extents, byte strides, box, steps, interleave, swizzle,
  /// promotion to L2, fill. Null before CUDA 12.0.
  Status (*encode_map)(void*, int, unsigned, void*, const uint64_t*, const uint64_t*, const unsigned*, const unsigned*,
                       int, int, int, int);
  Status (*allocate)(Address*, size_t);
  Status (*release)(Address);
  Status (*copy_to_device)(Address, const void*, size_t, Stream);
  Status (*copy_to_host)(void*, Address, size_t, Stream);
  Status (*fill_bytes)(Address, unsigned char, size_t, Stream);
  Status (*pointer_attributes)(unsigned, int*, void**, Address);
  Status (*create_stream)(Stream*, unsigned);
  Status (*destroy_stream)(Stream);
  Status (*synchronize_stream)(Stream);
  Status (*is_capturing)(Stream, int*);
  Status (*begin_capture)(Stream, int);
  Status (*end_capture)(Stream, Graph*);
  Status (*instantiate)(GraphExec*, Graph, unsigned long long);
  Status (*launch_graph)(GraphExec, Stream);
  Status (*destroy_graph)(Graph);
  Status (*destroy_graph_exec)(GraphExec);
  Status (*create_event)(Event*, unsigned);
  Status (*destroy_event)(Event);
  Status (*record_event)(Event, Stream);
  Status (*synchronize_event)(Event);
  Status (*wait_for_event)(Stream, Event, unsigned);
  Status (*elapsed_ms)(float*, Event, Event);

  /// The process's driver, initialised. The error says what is missing: the library, a function of it that an old
  /// driver lacks, or a device.
  static Result<const Driver*> get();

  /// "launching 'matmul': CUDA_ERROR_INVALID_VALUE (invalid argument)". An error that leaves the device's context
  /// unusable is said to be one.
  Error error(Status status, const std::string& doing) const;
  Result<void> check(Status status, const std::string& doing) const {
    if (status != 0) return tl::unexpected(error(status, doing));
    return {};
  }

 private:
  static Result<Driver> open();
};

/// True for an error after which nothing works any more in the device's context: a kernel went astray.
bool is_sticky(Driver::Status status);

/// What to say of code that does not load where NVRTC's version ({13, 0}) is of a later major one than the driver's
/// (12040, as cuDriverGetVersion has it): "; the driver is made for CUDA 12.4, the code by NVRTC 13.0". Else empty.
std::string version_remark(int driver_version, std::pair<int, int> nvrtc_version);

/// The sentence of Driver::error(), from the driver's name and text of the status.
std::string status_text(Driver::Status status, const std::string& name, const std::string& text,
                        const std::string& doing);

}  // namespace tc::cuda
