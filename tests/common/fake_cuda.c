/* A driver with two GPUs that run nothing, and an NVRTC that translates nothing: what they are handed they check as the
 * real ones do, so far as tests ask. A library by the driver's name, so that one who has opened it is found by it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kDevices = 2, kCapability = 90, kInvalidHandle = 400 };

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
int cuDriverGetVersion(int* version) { return *version = 12040, 0; }
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
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared_bytes, void* stream, void** arguments, void** extra) {
  (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared_bytes, (void)arguments, (void)extra;
  return stream && ((struct owned*)stream)->context != ((struct owned*)function)->context ? kInvalidHandle : 0;
}

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
