/* A user's program in C: a matrix times a vector, and an error as text. */
#include <stdio.h>
#include <string.h>
#include <tc/api/tc_c.h>

static DLTensor dense(float* data, int rank, int64_t* shape) {
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

static int fail(void) {
  fprintf(stderr, "%s\n", tc_last_error());
  return 1;
}

int main(void) {
  const char* text = "def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }";
  _Alignas(64) float a[6] = {1, 2, 3, 4, 5, 6};
  _Alignas(64) float x[3] = {1, 2, 3};
  _Alignas(64) float y[2] = {0, 0};
  int64_t a_shape[2] = {2, 3};
  int64_t x_shape[1] = {3};
  int64_t y_shape[1] = {2};
  DLTensor a_tensor = dense(a, 2, a_shape);
  DLTensor x_tensor = dense(x, 1, x_shape);
  DLTensor y_tensor = dense(y, 1, y_shape);
  const DLTensor* inputs[2] = {&a_tensor, &x_tensor};
  DLTensor* outputs[1] = {&y_tensor};
  tc_engine* engine = NULL;
  tc_request* request = NULL;
  tc_kernel* kernel = NULL;

  if (tc_engine_create("def mv(", NULL, &engine) != TC_ERROR_USER || strlen(tc_last_error()) == 0) return 1;
  if (tc_engine_create(text, "mv.tc", &engine) != TC_OK) return fail();
  if (tc_request_create("mv", &request) != TC_OK) return fail();
  if (tc_request_input(request, 0, &a_tensor) != TC_OK) return fail();
  if (tc_request_input(request, 1, &x_tensor) != TC_OK) return fail();
  if (tc_compile(engine, request, &kernel) != TC_OK) return fail();
  if (tc_run(kernel, inputs, 2, outputs, 1, NULL, 0) != TC_OK) return fail();
  tc_kernel_destroy(kernel);
  tc_request_destroy(request);
  tc_engine_destroy(engine);
  printf("tensorc %s: y = %g %g\n", tc_version(), y[0], y[1]);
  return y[0] == 14 && y[1] == 32 ? 0 : 1;
}
