#include "tc/cuda/driver.h"

#include "tc/cuda/library.h"

namespace tc::cuda {
namespace {

constexpr Driver::Status kNoDevice = 100;
constexpr Driver::Status kInvalidImage = 200, kInvalidContext = 201, kNoBinary = 209, kInvalidHandle = 400;

Result<void> bind_all(Driver& d, const Library& library) {
  TC_TRY_VOID(library.bind(d.init, "cuInit"));
  TC_TRY_VOID(library.bind(d.version, "cuDriverGetVersion"));
  TC_TRY_VOID(library.bind(d.error_name, "cuGetErrorName"));
  TC_TRY_VOID(library.bind(d.error_text, "cuGetErrorString"));
  TC_TRY_VOID(library.bind(d.device_count, "cuDeviceGetCount"));
  TC_TRY_VOID(library.bind(d.device_name, "cuDeviceGetName"));
  TC_TRY_VOID(library.bind(d.device_memory, "cuDeviceTotalMem_v2"));
  TC_TRY_VOID(library.bind(d.device_attribute, "cuDeviceGetAttribute"));
  TC_TRY_VOID(library.bind(d.retain_primary, "cuDevicePrimaryCtxRetain"));
  TC_TRY_VOID(library.bind(d.release_primary, "cuDevicePrimaryCtxRelease_v2"));
  TC_TRY_VOID(library.bind(d.primary_state, "cuDevicePrimaryCtxGetState"));
  TC_TRY_VOID(library.bind(d.current_context, "cuCtxGetCurrent"));
  TC_TRY_VOID(library.bind(d.set_context, "cuCtxSetCurrent"));
  TC_TRY_VOID(library.bind(d.current_device, "cuCtxGetDevice"));
  d.context_id = reinterpret_cast<decltype(d.context_id)>(library.find("cuCtxGetId"));
  TC_TRY_VOID(library.bind(d.load_module, "cuModuleLoadData"));
  TC_TRY_VOID(library.bind(d.unload_module, "cuModuleUnload"));
  TC_TRY_VOID(library.bind(d.get_function, "cuModuleGetFunction"));
  TC_TRY_VOID(library.bind(d.get_attribute, "cuFuncGetAttribute"));
  TC_TRY_VOID(library.bind(d.set_attribute, "cuFuncSetAttribute"));
  TC_TRY_VOID(library.bind(d.launch, "cuLaunchKernel"));
  d.launch_with = reinterpret_cast<decltype(d.launch_with)>(library.find("cuLaunchKernelEx"));
  d.encode_map = reinterpret_cast<decltype(d.encode_map)>(library.find("cuTensorMapEncodeTiled"));
  TC_TRY_VOID(library.bind(d.allocate, "cuMemAlloc_v2"));
  TC_TRY_VOID(library.bind(d.release, "cuMemFree_v2"));
  TC_TRY_VOID(library.bind(d.copy_to_device, "cuMemcpyHtoDAsync_v2"));
  TC_TRY_VOID(library.bind(d.copy_to_host, "cuMemcpyDtoHAsync_v2"));
  TC_TRY_VOID(library.bind(d.fill_bytes, "cuMemsetD8Async"));
  TC_TRY_VOID(library.bind(d.pointer_attributes, "cuPointerGetAttributes"));
  TC_TRY_VOID(library.bind(d.create_stream, "cuStreamCreate"));
  TC_TRY_VOID(library.bind(d.destroy_stream, "cuStreamDestroy_v2"));
  TC_TRY_VOID(library.bind(d.synchronize_stream, "cuStreamSynchronize"));
  TC_TRY_VOID(library.bind(d.is_capturing, "cuStreamIsCapturing"));
  TC_TRY_VOID(library.bind(d.begin_capture, "cuStreamBeginCapture_v2"));
  TC_TRY_VOID(library.bind(d.end_capture, "cuStreamEndCapture"));
  TC_TRY_VOID(library.bind(d.instantiate, "cuGraphInstantiateWithFlags"));
  TC_TRY_VOID(library.bind(d.launch_graph, "cuGraphLaunch"));
  TC_TRY_VOID(library.bind(d.destroy_graph, "cuGraphDestroy"));
  TC_TRY_VOID(library.bind(d.destroy_graph_exec, "cuGraphExecDestroy"));
  TC_TRY_VOID(library.bind(d.create_event, "cuEventCreate"));
  TC_TRY_VOID(library.bind(d.destroy_event, "cuEventDestroy_v2"));
  TC_TRY_VOID(library.bind(d.record_event, "cuEventRecord"));
  TC_TRY_VOID(library.bind(d.synchronize_event, "cuEventSynchronize"));
  TC_TRY_VOID(library.bind(d.wait_for_event, "cuStreamWaitEvent"));
  TC_TRY_VOID(library.bind(d.elapsed_ms, "cuEventElapsedTime"));
  return {};
}

}  // namespace

Result<Driver> Driver::open() {
  TC_TRY(library,
         Library::open("NVIDIA's driver", {"libcuda.so.1", "libcuda.so", "/usr/local/nvidia/lib64/libcuda.so.1",
                                           "/usr/lib/wsl/lib/libcuda.so.1"}));
  Driver driver{};
  TC_TRY_VOID(bind_all(driver, library));
  const Status status = driver.init(0);
  if (status == kNoDevice) return fail("NVIDIA's driver ({}) finds no GPU on this machine", library.path());
  TC_TRY_VOID(driver.check(status, "initialising NVIDIA's driver"));
  return driver;
}

Result<const Driver*> Driver::get() {
  static const Result<Driver> driver = open();
  if (!driver) return tl::unexpected(driver.error());
  return &*driver;
}

Error Driver::error(Status status, const std::string& doing) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (error_name(status, &name) != 0 || !name) name = "";
  if (error_text(status, &text) != 0 || !text) text = "";
  return Error(status_text(status, name, text, doing));
}

bool is_sticky(Driver::Status status) {
  switch (status) {
    case 214:  // an uncorrectable ECC error
    case 220:  // the same on NVLink
    case 700:  // an illegal address
    case 702:  // a kernel that took too long
    case 710:  // a failed assertion
    case 714:  // the stack
    case 715:  // an illegal instruction
    case 716:  // a misaligned address
    case 717:  // the wrong address space
    case 718:  // the program counter
    case 719:  // a launch that failed otherwise
      return true;
    default:
      return false;
  }
}

std::string version_remark(int driver_version, std::pair<int, int> nvrtc_version) {
  const int major = driver_version / 1000, minor = driver_version % 1000 / 10;
  if (nvrtc_version.first <= major) return "";
  return fmt::format("; the driver is made for CUDA {}.{}, the code by NVRTC {}.{}", major, minor, nvrtc_version.first,
                     nvrtc_version.second);
}

std::string status_text(Driver::Status status, const std::string& name, const std::string& text,
                        const std::string& doing) {
  std::string result = doing + ": ";
  result += name.empty() ? fmt::format("the driver's error {}", status) : fmt::format("{} ({})", name, text);
  if (is_sticky(status)) {
    result += "; a kernel that ran before has failed, and the device's context is lost to this process";
  } else if (status == kInvalidHandle || status == kInvalidContext) {
    result += "; does the stream belong to another device or context?";
  } else if (status == kNoBinary || status == kInvalidImage) {
    result += "; the code was not compiled for this device";
  }
  return result;
}

}  // namespace tc::cuda
