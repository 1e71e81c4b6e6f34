/* tensorc from C: TC text in, kernels out.
 *
 *     tc_engine* engine;
 *     tc_request* request;
 *     tc_kernel* kernel;
 *     if (tc_engine_create(text, "mv.tc", &engine) != TC_OK) { fputs(tc_last_error(), stderr); ... }
 *     tc_request_create("mv", &request);
 *     tc_request_input(request, 0, &A);       // DLTensors; only type, shape and strides are read
 *     tc_request_input(request, 1, &x);
 *     tc_compile(engine, request, &kernel);
 *     tc_run(kernel, inputs, 2, outputs, 1, NULL, 0);
 *     tc_kernel_destroy(kernel); tc_request_destroy(request); tc_engine_destroy(engine);
 *
 * Every call that can fail returns a tc_status. After one that is not TC_OK, tc_last_error() is the full text for the
 * calling thread. Handles may be destroyed as NULL. Engines and kernels may be used by many threads at once, a request
 * by one. No C++ exception leaves a call. */
#ifndef TC_API_TC_C_H_
#define TC_API_TC_C_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#include "tc/api/dlpack_versioned.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  TC_OK = 0,
  TC_ERROR_USER = 1,      /* the text, the sizes, the tensors or the options are wrong */
  TC_ERROR_INTERNAL = 2,  /* a fault of ours: please report it */
  TC_ERROR_BUDGET = 3,    /* the compilation would take more than the budget allows */
  TC_ERROR_CANCELLED = 4, /* tc_request_cancel() was called */
  TC_ERROR_MEMORY = 5     /* out of memory */
} tc_status;

typedef struct tc_engine tc_engine;   /* a checked text */
typedef struct tc_request tc_request; /* what to compile */
typedef struct tc_kernel tc_kernel;   /* machine code */

/* The value of a scalar argument: the integer unless is_float. */
typedef struct {
  int is_float;
  int64_t integer;
  double floating;
} tc_scalar;

/* The text of the calling thread's last error, "" if there was none. Valid until the thread's next failing call. */
const char* tc_last_error(void);
/* "0.1.0" */
const char* tc_version(void);

/* What a message of the log is about; each level has those above it too. */
typedef enum {
  TC_LOG_NONE = 0,
  TC_LOG_WARNING = 1, /* something works, but not as it should */
  TC_LOG_INFO = 2,    /* a line for each kernel that is compiled */
  TC_LOG_DETAIL = 3,  /* where a kernel comes from, each pass with its time */
  TC_LOG_TRACE = 4    /* each look-up */
} tc_log_level;
/* Called with a message, which ends with the call, from any thread, several at a time, in the middle of the library's
 * work: it should return soon, and calls nothing of this library. A C++ callback lets no exception out. */
typedef void (*tc_log_callback)(tc_log_level level, const char* text, void* user);
/* Gives the log's messages up to a level to a callback, with `user`; NULL ends the log. A process starts without one.
 * Another thread may still be in the callback before when this returns. */
void tc_set_log(tc_log_callback callback, tc_log_level most, void* user);

/* Reads and checks a text. `name` (may be NULL) stands for it in messages. */
tc_status tc_engine_create(const char* text, const char* name, tc_engine** engine);
/* The same with a cache's file, made if it does not exist: it is asked before anything is compiled, gets what has been
 * compiled, and options that are left to the compiler mean the fastest that it knows for the shape and device. If
 * read_only is not 0 the file must exist and gets nothing. */
tc_status tc_engine_create_cached(const char* text, const char* name, const char* cache, int read_only,
                                  tc_engine** engine);
/* Runs what a cache's file has and compiles nothing: a request that it does not have is an error. `text` (may be NULL:
 * all of the file) has the programs as they were compiled. */
tc_status tc_engine_create_production(const char* cache, const char* text, const char* name, tc_engine** engine);
void tc_engine_destroy(tc_engine* engine);
size_t tc_engine_entries(const tc_engine* engine);
/* The name of an entry, owned by the engine; NULL beyond the last. */
const char* tc_engine_entry(const tc_engine* engine, size_t entry);

/* A request for an entry (NULL or "" if the text has one). The tensors that are set decide the types of a generic def;
 * where none does, the entry is an instance: "softmax<float16>". */
tc_status tc_request_create(const char* entry, tc_request** request);
void tc_request_destroy(tc_request* request);
/* Type, shape and strides of a tensor parameter, or of a result, by position. One that is not set is dense, and its
 * extents follow from the others and from the sizes. */
tc_status tc_request_input(tc_request* request, size_t position, const DLTensor* tensor);
tc_status tc_request_output(tc_request* request, size_t position, const DLTensor* tensor);
/* A symbolic size that no tensor determines. */
tc_status tc_request_size(tc_request* request, const char* name, int64_t value);
/* The value of a scalar parameter that decides shapes, ranges or subscripts. */
tc_status tc_request_scalar(tc_request* request, const char* name, tc_scalar value);
/* What runs the kernel, as a device of DLPack: {kDLCPU, 0}, which it is if this is not called, or {kDLCUDA, number}. */
tc_status tc_request_device(tc_request* request, DLDevice device);
/* Options of the CPU as text (protobuf text format of tc.proto.CpuOptions). */
tc_status tc_request_options(tc_request* request, const char* text);
/* Options of a GPU as text (protobuf text format of tc.proto.MappingOptions). */
tc_status tc_request_mapping(tc_request* request, const char* text);
/* If not 0, a GPU's kernel for tensors of any address that their elements can have. One without it may copy by vectors
 * of up to 16 bytes, and the first call with tensors that are not aligned to these compiles another, which a graph
 * cannot capture and production refuses unless the file has it. The CPU's kernels take such tensors anyway. */
tc_status tc_request_element_aligned(tc_request* request, int element_aligned);
/* Limits of the compilation: operations of the polyhedral library, and wall clock in milliseconds. */
tc_status tc_request_budget(tc_request* request, uint64_t isl_operations, int64_t wall_clock_ms);
/* Stops a tc_compile() of this request that runs in another thread, or the next one. Any thread may call it. */
void tc_request_cancel(tc_request* request);

tc_status tc_compile(const tc_engine* engine, const tc_request* request, tc_kernel** kernel);
void tc_kernel_destroy(tc_kernel* kernel);

/* The text of a stage of the compilation: ast, program, schedule, stmt, object (assembly), or, for a GPU of an
 * architecture ("sm_90a"; NULL is that too), tile, certificate, cuda, ptx, cubin; no GPU is needed. The request's
 * device is ignored. The text is the caller's: tc_text_destroy(). */
tc_status tc_emit(const tc_engine* engine, const tc_request* request, const char* stage, const char* arch, char** text);
void tc_text_destroy(char* text);

/* The options that a kernel was made with, as text; "" if all were chosen by the compiler. Owned by the kernel. */
const char* tc_kernel_options(const tc_kernel* kernel);
/* Whether it was read from a cache's file rather than compiled: 1 or 0. */
int tc_kernel_from_cache(const tc_kernel* kernel);
/* The passes of the compilation in the order that they ran: their names, owned by the kernel, and how many milliseconds
 * each took (`ms` may be NULL). NULL beyond the last; a kernel from a cache's file has none. */
const char* tc_kernel_pass(const tc_kernel* kernel, size_t position, double* ms);

/* How many tensor parameters, results and scalar parameters the kernel has. */
size_t tc_kernel_inputs(const tc_kernel* kernel);
size_t tc_kernel_outputs(const tc_kernel* kernel);
size_t tc_kernel_scalars(const tc_kernel* kernel);
/* Type, shape and strides of a tensor: a DLTensor without data that the kernel owns; NULL beyond the last. */
const DLTensor* tc_kernel_input(const tc_kernel* kernel, size_t position);
const DLTensor* tc_kernel_output(const tc_kernel* kernel, size_t position);

/* Runs: tensor parameters, results (written in place; in-outs also read) and scalar parameters in the order of the
 * text. `scalars` may be NULL if there are none. Checks every argument before anything is written. A kernel of a GPU
 * runs on its default stream. */
tc_status tc_run(const tc_kernel* kernel, const DLTensor* const* inputs, size_t num_inputs, DLTensor* const* outputs,
                 size_t num_outputs, const tc_scalar* scalars, size_t num_scalars);
/* The same on a stream of the GPU (a CUstream or cudaStream_t): returns when the kernels have been launched. May be
 * captured into a graph, if tc_kernel_prepare() has been called for the stream, and the kernel has run once on tensors
 * that are not aligned to its vectors if it is to be captured with such. */
tc_status tc_run_on_stream(const tc_kernel* kernel, void* stream, const DLTensor* const* inputs, size_t num_inputs,
                           DLTensor* const* outputs, size_t num_outputs, const tc_scalar* scalars, size_t num_scalars);
tc_status tc_kernel_prepare(const tc_kernel* kernel, void* stream);

#ifdef __cplusplus
}
#endif

#endif /* TC_API_TC_C_H_ */
