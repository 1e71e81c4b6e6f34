/* Calls of tc_run_on_stream() as a program in C makes them; launches.py compiles and loads this. */
#include <stddef.h>
#include <time.h>

typedef int (*run_on_stream)(const void* kernel, void* stream, const void* const* inputs, size_t num_inputs,
                             void* const* outputs, size_t num_outputs, const void* scalars, size_t num_scalars);

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

/* Microseconds of a call, the mean of `calls`; -1 if one fails. */
double us_of_calls(run_on_stream run, const void* kernel, void* stream, const void* const* inputs, size_t num_inputs,
                   void* const* outputs, size_t num_outputs, const void* scalars, size_t num_scalars, int calls) {
  const double begin = now_us();
  for (int i = 0; i < calls; ++i) {
    if (run(kernel, stream, inputs, num_inputs, outputs, num_outputs, scalars, num_scalars) != 0) return -1;
  }
  return (now_us() - begin) / calls;
}
