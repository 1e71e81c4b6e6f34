/* A driver of NVIDIA's and an NVRTC without a GPU: they write down what they are asked for, and kernels do nothing.
   What the library binds of the two is here, and functions by which a test asks and says what happens. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRIMARY ((void*)0x1000)

static char log_text[1 << 16];
static void* captured = NULL;
static int primary_uses = 0;
static _Thread_local void* current = NULL;

#define NOTE(...) snprintf(log_text + strlen(log_text), sizeof log_text - strlen(log_text), __VA_ARGS__)

/* What has been noted since the last time: a line for each load of code, launch and wait. */
const char* driver_log(void) {
  static char taken[sizeof log_text];
  strcpy(taken, log_text);
  log_text[0] = 0;
  return taken;
}
void driver_capture(void* stream) { captured = stream; }

int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuGetErrorName(int status, const char** name) { return *name = "CUDA_ERROR", 0; }
int cuGetErrorString(int status, const char** text) { return *text = "an error", 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGetName(char* name, int size, int device) { return snprintf(name, size, "no GPU"), 0; }
int cuDeviceTotalMem_v2(size_t* bytes, int device) { return *bytes = 1L << 36, 0; }
int cuDeviceGetAttribute(int* value, int which, int device) {
  static const struct {
    int which, value;
  } known[] = {{1, 1024},       {2, 1024},       {3, 1024},   {4, 64},        /* threads of a block */
               {5, 0x7fffffff}, {6, 65535},      {7, 65535},                  /* a grid's blocks */
               {75, 9},         {76, 0},         {16, 132},   {38, 50 << 20}, /* sm_90, multiprocessors, L2 */
               {39, 2048},      {81, 228 << 10}, {82, 65536}, {97, 227 << 10}};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    if (known[i].which == which) return *value = known[i].value, 0;
  }
  return 1;
}

int cuDevicePrimaryCtxRetain(void** context, int device) { return ++primary_uses, *context = PRIMARY, 0; }
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return *flags = 0, *active = primary_uses > 0, 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { return --primary_uses, 0; }
int cuCtxGetCurrent(void** context) { return *context = current, 0; }
int cuCtxSetCurrent(void* context) { return current = context, 0; }
int cuCtxGetDevice(int* device) { return *device = 0, current ? 0 : 201; }

int cuModuleLoadData(void** module, const void* code) {
  NOTE("load in %p\n", current);
  return *module = malloc(1), 0;
}
int cuModuleUnload(void* module) { return free(module), 0; }
int cuModuleGetFunction(void** function, void* module, const char* name) { return *function = module, 0; }
int cuFuncGetAttribute(int* value, int which, void* function) { return *value = which == 0 ? 1024 : 0, 0; }
int cuFuncSetAttribute(void* function, int which, int value) { return 0; }
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void** arguments, void** extra) {
  NOTE("launch on %p in %p\n", stream, current);
  return 0;
}

int cuMemAlloc_v2(uint64_t* address, size_t bytes) { return *address = (uint64_t)malloc(bytes), 0; }
int cuMemFree_v2(uint64_t address) { return free((void*)address), 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t n, void* stream) {
  return memcpy((void*)to, from, n), 0;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t n, void* stream) { return memcpy(to, (void*)from, n), 0; }
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t n, void* stream) { return memset((void*)to, value, n), 0; }
int cuPointerGetAttributes(unsigned count, const int* which, void** values, uint64_t address) {
  for (unsigned i = 0; i < count; ++i) *(unsigned*)values[i] = which[i] == 2 ? 2 : 0; /* memory of device 0 */
  return 0;
}

int cuStreamCreate(void** stream, unsigned flags) { return *stream = malloc(1), 0; }
int cuStreamDestroy_v2(void* stream) { return free(stream), 0; }
int cuStreamSynchronize(void* stream) { return 0; }
int cuStreamIsCapturing(void* stream, int* is) { return *is = stream == captured, 0; }
int cuStreamBeginCapture_v2(void* stream, int mode) { return captured = stream, 0; }
int cuStreamEndCapture(void* stream, void** graph) { return captured = *graph = NULL, 0; }
int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) { return *exec = NULL, 0; }
int cuGraphLaunch(void* exec, void* stream) { return 0; }
int cuGraphDestroy(void* graph) { return 0; }
int cuGraphExecDestroy(void* exec) { return 0; }

/* An event is the stream that it was recorded on. */
int cuEventCreate(void** event, unsigned flags) { return *event = calloc(1, sizeof(void*)), 0; }
int cuEventDestroy_v2(void* event) { return free(event), 0; }
int cuEventRecord(void* event, void* stream) { return *(void**)event = stream, 0; }
int cuEventSynchronize(void* event) { return 0; }
int cuEventElapsedTime(float* ms, void* begin, void* end) { return *ms = 1, 0; }
int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  NOTE("%p waits for %p\n", stream, *(void**)event);
  return 0;
}

int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0; }
const char* nvrtcGetErrorString(int status) { return "an error"; }
int nvrtcGetNumSupportedArchs(int* count) { return *count = 1, 0; }
int nvrtcGetSupportedArchs(int* archs) { return *archs = 90, 0; }
int nvrtcCreateProgram(void** program, const char* text, const char* name, int count, const char* const* headers,
                       const char* const* names) {
  return *program = NULL, 0;
}
int nvrtcDestroyProgram(void** program) { return 0; }
int nvrtcCompileProgram(void* program, int count, const char* const* options) { return 0; }
static int size_of_code(size_t* size) { return *size = 5, 0; }
static int code(char* bytes) { return strcpy(bytes, "code"), 0; }
int nvrtcGetPTXSize(void* program, size_t* size) { return size_of_code(size); }
int nvrtcGetPTX(void* program, char* bytes) { return code(bytes); }
int nvrtcGetCUBINSize(void* program, size_t* size) { return size_of_code(size); }
int nvrtcGetCUBIN(void* program, char* bytes) { return code(bytes); }
int nvrtcGetProgramLogSize(void* program, size_t* size) { return *size = 1, 0; }
int nvrtcGetProgramLog(void* program, char* bytes) { return *bytes = 0, 0; }
