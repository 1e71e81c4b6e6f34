/* A driver with two GPUs that run nothing, and an NVRTC that translates nothing: what they are handed they check as the
 * real ones do, so far as tests ask. A library by the driver's name, so that one who has opened it is found by it.
 * With TC_OLD_CUDA the driver is that of CUDA 11.7. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kDevices = 2, kCapability = 90, kInvalidValue = 1, kInvalidHandle = 400 };

struct context {
  int device;
  unsigned long long id;
};
struct owned { /* a module, a function of one, or a stream */
  struct context* context;
};

static struct context primary[kDevices] = {{0, 1}, {1, 2}};
static int primary_uses[kDevices];
static unsigned long long last_id = 2;
static _Thread_local struct context* current;

static struct owned* owned_by_current(void) {
  struct owned* made = malloc(sizeof *made);
  made->context = current;
  return made;
}

int cuInit(unsigned flags) { return (void)flags, 0; }
#ifdef TC_OLD_CUDA
int cuDriverGetVersion(int* version) { return *version = 11070, 0; }
#else
int cuDriverGetVersion(int* version) { return *version = 12040, 0; }
#endif
int cuGetErrorName(int status, const char** name) {
  *name = status == kInvalidHandle ? "CUDA_ERROR_INVALID_HANDLE" : "CUDA_ERROR";
  return 0;
}
int cuGetErrorString(int status, const char** text) { return (void)status, *text = "of the fake driver", 0; }
int cuDeviceGetCount(int* count) { return *count = kDevices, 0; }
int cuDeviceGetName(char* name, int length, int device) {
  return (void)device, strncpy(name, "Fake", (size_t)length), 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) { return (void)device, *bytes = (size_t)1 << 30, 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  *value = attribute == 75 ? kCapability / 10 : attribute == 76 ? kCapability % 10 : attribute <= 4 ? 1024 : 65535;
  return 0;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  ++primary_uses[device];
  return *context = &primary[device], 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { return --primary_uses[device], 0; }
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return *flags = 0, *active = primary_uses[device] > 0, 0;
}
int cuCtxCreate_v2(void** context, unsigned flags, int device) {
  (void)flags;
  current = malloc(sizeof *current);
  current->device = device;
  current->id = ++last_id;
  return *context = current, 0;
}
int cuCtxGetCurrent(void** context) { return *context = current, 0; }
int cuCtxSetCurrent(void* context) { return current = context, 0; }
int cuCtxGetDevice(int* device) { return current ? (*device = current->device, 0) : 201; }
int cuCtxGetId(void* context, unsigned long long* id) { return *id = ((struct context*)context)->id, 0; }

int cuModuleLoadData(void** module, const void* image) { return (void)image, *module = owned_by_current(), 0; }
int cuModuleUnload(void* module) { return free(module), 0; }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  return (void)name, *function = module, ((struct owned*)module)->context == current ? 0 : kInvalidHandle;
}
int cuFuncGetAttribute(int* value, int attribute, void* function) {
  return (void)attribute, (void)function, *value = 1024, 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  return (void)function, (void)attribute, (void)value, 0;
}
/* What a test wants to see of launches. */
void (*fake_on_launch)(const unsigned* cluster, void** arguments);
static int launch(void* function, void* stream, const unsigned* cluster, void** arguments) {
  if (stream && ((struct owned*)stream)->context != ((struct owned*)function)->context) return kInvalidHandle;
  if (fake_on_launch) fake_on_launch(cluster, arguments);
  return 0;
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared_bytes, void* stream, void** arguments, void** extra) {
  static const unsigned one[3] = {1, 1, 1};
  (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared_bytes, (void)extra;
  return launch(function, stream, one, arguments);
}

#ifndef TC_OLD_CUDA
struct launch_attribute {
  int id, padding;
  unsigned value[16];
};
struct launch_config {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  const struct launch_attribute* attributes;
  unsigned attribute_count;
};
/* Launches of kernels that may start before what is on the stream has ended. */
int fake_early_launches;
int cuLaunchKernelEx(const struct launch_config* config, void* function, void** arguments, void** extra) {
  unsigned cluster[3] = {1, 1, 1}, i;
  (void)extra;
  for (i = 0; i < config->attribute_count; ++i) {
    if (config->attributes[i].id == 4) memcpy(cluster, config->attributes[i].value, sizeof cluster);
    if (config->attributes[i].id == 6) fake_early_launches += config->attributes[i].value[0] == 1;
  }
  for (i = 0; i < 3; ++i) {
    if (cluster[i] == 0 || config->grid[i] % cluster[i] != 0) return kInvalidValue;
  }
  return launch(function, config->stream, cluster, arguments);
}

/* The first word of a map is its address. */
int fake_encodings;
int cuTensorMapEncodeTiled(uint64_t* map, int type, unsigned rank, void* address, const uint64_t* extents,
                           const uint64_t* byte_strides, const unsigned* box, const unsigned* steps, int interleave,
                           int swizzle, int promotion, int fill) {
  static const unsigned bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4}, spans[] = {0, 32, 64, 128};
  const uint64_t one = 1;
  unsigned d, row;
  ++fake_encodings;
  if ((uintptr_t)map % 64 != 0 || (uintptr_t)address % 16 != 0 || type < 0 || type > 12) return kInvalidValue;
  if (rank < 1 || rank > 5 || interleave != 0 || fill != 0 || promotion < 0 || promotion > 3) return kInvalidValue;
  for (d = 0; d < rank; ++d) {
    if (extents[d] == 0 || extents[d] > one << 32 || box[d] == 0 || box[d] > 256 || steps[d] != 1) return kInvalidValue;
    if (d > 0 && (byte_strides[d - 1] % 16 != 0 || byte_strides[d - 1] >= one << 40)) return kInvalidValue;
  }
  row = box[0] * bytes[type];
  if (row % 16 != 0 || swizzle < 0 || swizzle > 3 || (swizzle > 0 && row > spans[swizzle])) return kInvalidValue;
  memset(map, 0, 128);
  *map = (uint64_t)(uintptr_t)address;
  return 0;
}
#endif

int fake_allocations;
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  ++fake_allocations;
  return *address = (uint64_t)(uintptr_t)malloc(bytes), 0;
}
int cuMemFree_v2(uint64_t address) { return free((void*)(uintptr_t)address), 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  return (void)stream, memcpy((void*)(uintptr_t)to, from, bytes), 0;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  return (void)stream, memcpy(to, (const void*)(uintptr_t)from, bytes), 0;
}
int cuMemsetD8Async(uint64_t at, unsigned char value, size_t bytes, void* stream) {
  return (void)stream, memset((void*)(uintptr_t)at, value, bytes), 0;
}
int cuPointerGetAttributes(unsigned count, int* attributes, void** values, uint64_t address) {
  unsigned i;
  (void)address;
  for (i = 0; i < count; ++i) *(int*)values[i] = attributes[i] == 2 ? 2 : attributes[i] == 9 ? current->device : 0;
  return 0;
}

int cuStreamCreate(void** stream, unsigned flags) { return (void)flags, *stream = owned_by_current(), 0; }
int cuStreamDestroy_v2(void* stream) { return free(stream), 0; }
int cuStreamSynchronize(void* stream) { return (void)stream, 0; }
int cuStreamIsCapturing(void* stream, int* is) { return (void)stream, *is = 0, 0; }
int cuStreamBeginCapture_v2(void* stream, int mode) { return (void)stream, (void)mode, 1; }
int cuStreamEndCapture(void* stream, void** graph) { return (void)stream, *graph = 0, 1; }
int cuStreamWaitEvent(void* stream, void* event, unsigned flags) { return (void)stream, (void)event, (void)flags, 0; }
int cuGraphInstantiateWithFlags(void** made, void* graph, unsigned long long flags) {
  return (void)graph, (void)flags, *made = 0, 1;
}
int cuGraphLaunch(void* graph, void* stream) { return (void)graph, (void)stream, 1; }
int cuGraphDestroy(void* graph) { return (void)graph, 0; }
int cuGraphExecDestroy(void* graph) { return (void)graph, 0; }
int cuEventCreate(void** event, unsigned flags) { return (void)flags, *event = owned_by_current(), 0; }
int cuEventDestroy_v2(void* event) { return free(event), 0; }
int cuEventRecord(void* event, void* stream) { return (void)event, (void)stream, 0; }
int cuEventSynchronize(void* event) { return (void)event, 0; }
int cuEventElapsedTime(float* ms, void* begin, void* end) { return (void)begin, (void)end, *ms = 1, 0; }

int nvrtcVersion(int* major, int* minor) { return *major = 12, *minor = 4, 0; }
const char* nvrtcGetErrorString(int status) { return (void)status, "of the fake NVRTC"; }
int nvrtcGetNumSupportedArchs(int* count) { return *count = 1, 0; }
int nvrtcGetSupportedArchs(int* list) { return *list = kCapability, 0; }
int nvrtcCreateProgram(void** program, const char* text, const char* name, int count, const char* const* headers,
                       const char* const* names) {
  (void)text, (void)name, (void)count, (void)headers, (void)names;
  return *program = malloc(1), 0;
}
int nvrtcDestroyProgram(void** program) { return free(*program), 0; }
int nvrtcCompileProgram(void* program, int count, const char* const* options) {
  return (void)program, (void)count, (void)options, 0;
}
static int size_of_text(void* program, size_t* size) { return (void)program, *size = 1, 0; }
static int text_of(void* program, char* text) { return (void)program, *text = '\0', 0; }
int nvrtcGetPTXSize(void* program, size_t* size) { return size_of_text(program, size); }
int nvrtcGetPTX(void* program, char* text) { return text_of(program, text); }
int nvrtcGetCUBINSize(void* program, size_t* size) { return size_of_text(program, size); }
int nvrtcGetCUBIN(void* program, char* text) { return text_of(program, text); }
int nvrtcGetProgramLogSize(void* program, size_t* size) { return size_of_text(program, size); }
int nvrtcGetProgramLog(void* program, char* text) { return text_of(program, text); }
