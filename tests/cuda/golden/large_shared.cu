typedef signed char int8;
typedef short int16;
typedef long long int64;
typedef unsigned char uint8;
typedef unsigned short uint16;
typedef unsigned int uint32;
typedef unsigned long long uint64;

// grid (1, 1, 1), block (256, 1, 1), 65536 bytes of shared memory
extern "C" __global__ void __launch_bounds__(256) large_shared(
    const float* __restrict__ X,
    float* __restrict__ Y
) {
  const int thread_x = int(threadIdx.x);
  extern __shared__ __align__(128) unsigned char shared_memory[];
  float* const buffer = (float*)(shared_memory + 0);
  for (int i = thread_x; i < 16384; i += 256) {
    buffer[i] = X[i];
  }
  __syncthreads();
  for (int i = thread_x; i < 16384; i += 256) {
    Y[i] = buffer[16383 - i];
  }
}
