/* The C interface as a C89 program uses it. Each function returns 0, or the line of the first failure. */
#include "tc/api/tc_c.h"

#include <string.h>

#define REQUIRE(condition) \
  if (!(condition)) return __LINE__

static DLTensor floats(float* data, int64_t* shape, int rank) {
  DLTensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = data;
  tensor.device.device_type = kDLCPU;
  tensor.ndim = rank;
  tensor.dtype.code = kDLFloat;
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

int c_api_computes(void) {
  const char* text = "def axpy(float a, float(N) x) -> (y) { y(i) += a * x(i) }";
  float x_data[3] = {1, 2, 3};
  float y_data[3] = {10, 20, 30};
  int64_t shape[1] = {3};
  DLTensor x = floats(x_data, shape, 1);
  DLTensor y = floats(y_data, shape, 1);
  const DLTensor* inputs[1];
  DLTensor* outputs[1];
  tc_scalar a;
  tc_engine* engine = NULL;
  tc_request* request = NULL;
  tc_kernel* kernel = NULL;
  inputs[0] = &x;
  outputs[0] = &y;
  memset(&a, 0, sizeof a);
  a.is_float = 1;
  a.floating = 0.5;
  REQUIRE(tc_engine_create(text, "axpy.tc", &engine) == TC_OK);
  REQUIRE(tc_engine_entries(engine) == 1);
  REQUIRE(strcmp(tc_engine_entry(engine, 0), "axpy") == 0);
  REQUIRE(tc_engine_entry(engine, 1) == NULL);
  REQUIRE(tc_request_create("axpy", &request) == TC_OK);
  REQUIRE(tc_request_input(request, 0, &x) == TC_OK);
  REQUIRE(tc_request_options(request, "parallel: false") == TC_OK);
  REQUIRE(tc_request_budget(request, 100000000, 60000) == TC_OK);
  REQUIRE(tc_compile(engine, request, &kernel) == TC_OK);
  REQUIRE(tc_kernel_inputs(kernel) == 1 && tc_kernel_outputs(kernel) == 1 && tc_kernel_scalars(kernel) == 1);
  REQUIRE(tc_kernel_output(kernel, 0)->shape[0] == 3);
  REQUIRE(tc_kernel_output(kernel, 1) == NULL);
  REQUIRE(tc_run(kernel, inputs, 1, outputs, 1, &a, 1) == TC_OK);
  REQUIRE(y_data[0] == 10.5F && y_data[1] == 21 && y_data[2] == 31.5F);
  REQUIRE(tc_run(kernel, inputs, 1, outputs, 1, NULL, 0) == TC_ERROR_USER);
  REQUIRE(strcmp(tc_last_error(), "error: the call has 0 scalars; the kernel takes 1\n") == 0);
  tc_kernel_destroy(kernel);
  tc_request_destroy(request);
  tc_engine_destroy(engine);
  return 0;
}

int c_api_reports_errors(void) {
  tc_engine* engine = NULL;
  tc_request* request = NULL;
  tc_kernel* kernel = NULL;
  REQUIRE(tc_engine_create("def f(", "f.tc", &engine) == TC_ERROR_USER);
  REQUIRE(engine == NULL);
  REQUIRE(strncmp(tc_last_error(), "f.tc:1:", 7) == 0);
  REQUIRE(tc_engine_create(NULL, NULL, &engine) == TC_ERROR_USER);
  REQUIRE(strcmp(tc_last_error(), "error: the text is a null pointer\n") == 0);
  REQUIRE(tc_engine_create("def f(float(N) x) -> (y) { y(i) = x(i) }", NULL, &engine) == TC_OK);
  REQUIRE(tc_request_create(NULL, &request) == TC_OK);
  REQUIRE(tc_request_size(request, "N", -1) == TC_OK);
  REQUIRE(tc_compile(engine, request, &kernel) == TC_ERROR_USER);
  REQUIRE(kernel == NULL);
  REQUIRE(strcmp(tc_last_error(), "error: the size 'N' is -1: sizes are not negative\n") == 0);
  REQUIRE(tc_request_size(request, "N", 5) == TC_OK);
  REQUIRE(tc_request_budget(request, 1, 1000) == TC_OK);
  REQUIRE(tc_compile(engine, request, &kernel) == TC_ERROR_BUDGET);
  tc_request_cancel(request);
  REQUIRE(tc_compile(engine, request, &kernel) == TC_ERROR_CANCELLED);
  REQUIRE(tc_compile(engine, NULL, &kernel) == TC_ERROR_USER);
  REQUIRE(tc_run(NULL, NULL, 0, NULL, 0, NULL, 0) == TC_ERROR_USER);
  tc_request_destroy(request);
  tc_engine_destroy(engine);
  tc_kernel_destroy(NULL);
  tc_request_destroy(NULL);
  tc_engine_destroy(NULL);
  return 0;
}

int c_api_emits(void) {
  const char* text = "def f(float(N,D) x) -> (s) { s(n) +=! x(n,d) }";
  tc_engine* engine = NULL;
  tc_request* request = NULL;
  char* vectors = NULL;
  char* elements = NULL;
  REQUIRE(tc_engine_create(text, "f.tc", &engine) == TC_OK);
  REQUIRE(tc_request_create(NULL, &request) == TC_OK);
  REQUIRE(tc_request_size(request, "N", 64) == TC_OK && tc_request_size(request, "D", 1024) == TC_OK);
  REQUIRE(tc_emit(engine, request, "cuda", "sm_80", &vectors) == TC_OK);
  REQUIRE(strstr(vectors, "float4") != NULL);
  REQUIRE(tc_request_element_aligned(request, 1) == TC_OK);
  REQUIRE(tc_emit(engine, request, "cuda", NULL, &elements) == TC_OK);
  REQUIRE(strstr(elements, "f(") != NULL && strstr(elements, "float4") == NULL);
  tc_text_destroy(elements);
  REQUIRE(tc_emit(engine, request, "cud", NULL, &elements) == TC_ERROR_USER);
  REQUIRE(elements == NULL);
  REQUIRE(strcmp(tc_last_error(), "error: there is no stage 'cud'; did you mean 'cuda'?\n") == 0);
  REQUIRE(tc_emit(engine, request, NULL, NULL, &elements) == TC_ERROR_USER);
  REQUIRE(strcmp(tc_last_error(), "error: the stage is a null pointer\n") == 0);
  REQUIRE(tc_request_element_aligned(NULL, 1) == TC_ERROR_USER);
  tc_text_destroy(vectors);
  tc_text_destroy(NULL);
  tc_request_destroy(request);
  tc_engine_destroy(engine);
  return 0;
}
